import re

import pytest
from example_independence import pair_effect, screen_result, selection_result, untested_pair

from kerntest.cli.drawing import summary_text
from kerntest.report.results.independence_record import SelectedColumn
from kerntest.report.summaries.independence_summary import PAIRS_SHOWN, screen_summary, selection_summary


def plain(result, width=80):
    return summary_text(screen_summary(result), width=width, colour=False)


def lines_of_pairs(text):
    """Return the lines between the heading of the table and its legend."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.split()[-3:] == ["r", "rho", "tau"])
    stop = next(place for place, line in enumerate(lines) if line.startswith(("  *", "  p:", "  and ")))
    return lines[start + 1 : stop]


TABLE = """\
Independence tests of every pair of columns (HSIC)
  data       machines.csv: 300 of 320 rows used
  columns    temp_c, wear_um, line, cycle_s, load_percent, power_kw
  each pair  HSIC (unbiased), kernel gaussian, median bandwidth
  p-values   by moments, for 3 tests; Holm: the chance of any false finding is
             at most alpha
    x             y         effect       p  p perm.      r   rho   tau
 *  temp_c        wear_um     0.39  0.0003    0.001  -0.07  0.00  0.01
 *  line          cycle_s     0.39   0.006    0.001      -     -     -
    load_percent  power_kw    0.39       1    0.001   0.94  0.94  0.78
  * p at most alpha = 0.05
  p: corrected for all tests; p perm.: over relabellings of this pair alone
  r, rho, tau: Pearson, Spearman, Kendall; - where a column is not a number
  r, rho and tau are all below 0.1 in 1 of the 2 marked: they miss the
  dependence
Decision: 2 of 3 pairs depend on each other (p-values corrected by Holm, alpha =
0.05).
"""


def test_the_table_of_a_screen():
    assert plain(screen_result()) == TABLE


def test_the_table_of_a_target_names_the_other_column_and_has_exact_p_values():
    pairs = (pair_effect("a", "y", p_step_down=0.001), pair_effect("y", "b", 0.5, p_step_down=0.7))
    text = plain(screen_result(pairs, target="y"))
    assert [line.split()[:3] for line in lines_of_pairs(text)] == [["*", "a", "0.39"], ["b", "0.39", "1"]]
    assert re.search(r"column +effect +p +p exact +p perm\.", text)
    assert "p exact: corrected over relabellings that all tests share" in text
    assert "'y' depends on 1 of 2 columns" in text


def test_the_number_of_rows_is_shown_where_it_varies():
    pairs = (pair_effect("a", "b", n=1300), pair_effect("a", "c", n=1290))
    assert re.search(r"x +y +n +effect", plain(screen_result(pairs)))
    assert "1,290" in plain(screen_result(pairs))
    assert " n " not in plain(screen_result())


def test_a_long_screen_shows_the_first_and_says_how_to_get_the_rest():
    pairs = tuple(pair_effect(f"a{place}", "b") for place in range(PAIRS_SHOWN + 1234))
    text = plain(screen_result(pairs))
    assert len(lines_of_pairs(text)) == PAIRS_SHOWN
    assert "  and 1,234 more: --format csv shows all\n" in text


def test_pairs_that_were_not_tested_are_told_with_their_reason():
    without = tuple(untested_pair(f"a{place}", "b") for place in range(7))
    text = plain(screen_result((pair_effect(), *without)))
    assert "  not tested: a0, b: no row has both\n" in text
    assert "a5" not in text.partition("not tested")[2]
    assert "  and 2 more pairs not tested\n" in text
    assert len(lines_of_pairs(text)) == 1


def test_what_no_coefficient_shows_is_counted_only_where_they_have_values():
    categories = {"pearson": None, "spearman": None, "kendall": None}
    assert "miss" not in plain(screen_result((pair_effect(**categories), pair_effect(pearson=0.5))))
    assert "in all marked" in plain(screen_result((pair_effect(), pair_effect("a", "b"))))
    # Nor where the pair was not found to depend.
    assert "miss" not in plain(screen_result((pair_effect(p_value=0.9),)))


def test_without_a_finding_nothing_is_marked():
    text = plain(screen_result((pair_effect(p_value=0.9),)))
    assert "*" not in text
    assert "No dependence found among 1 pair" in text


LONG = "a_rather_long_name_of_a_column_in_some_export_2026"


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("target", [None, "y"])
def test_long_names_are_broken_after_their_parts_and_numbers_never(width, target):
    pairs = (pair_effect(LONG, "y", 2.5e-221, n=7), pair_effect("y", f"{LONG} again", 0.5, p_permutation=0.000123))
    text = plain(screen_result(pairs, target=target), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "7.5e-221" in text
    assert "0.00012" in text
    rows = lines_of_pairs(text)
    column = rows[0].index("a_rather")
    pieces = [re.split(" {2,}", line[column:])[0] for line in rows if len(line) > column and line[column] != " "]
    assert "".join(pieces).startswith(LONG)
    assert all(piece.endswith(("_", "2026", "again", "y")) for piece in pieces)


def test_a_name_without_parts_is_broken_anywhere():
    name = "x" * 100
    text = plain(screen_result((pair_effect(name, "y"),)))
    assert max(map(len, text.splitlines())) <= 80
    assert "".join(lines_of_pairs(text)).count("x") == 100


def test_colours_change_no_content():
    pairs = (pair_effect("[bold]a[/bold] :smile:", "b\x1b[31m"), pair_effect(LONG, "c"))
    for target in (None, "c"):
        result = screen_result(pairs, target=target, warnings=("[red]careful",))
        coloured = summary_text(screen_summary(result), width=100, colour=True)
        assert "\x1b[" in coloured
        stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        assert "".join(f"{line.rstrip()}\n" for line in stripped.splitlines()) == plain(result, 100)
        assert "[bold]a[/bold] :smile:" in plain(result, 100)
        assert "b\\x1b[31m" in plain(result, 100).replace("\n", "") or target


SELECTION = """\
Columns that 'wear_um' depends on, selected one after another (HSIC)
  data     machines.csv: 300 of 320 rows used
  columns  load_percent, power_kw, temp_c
  null     permutation: 1,000 relabellings by cyclic shifts, in 2 random orders, exact
    column        step  effect    gain      p  p alone
 *  load_percent     1    0.34    0.34  0.001    0.001
    power_kw         2     0.3  -0.038    0.4    0.002
  * in this step and all before it p is at most alpha = 0.05 and the effect grew
  effect: of the columns up to this step together; p: of the step; p alone: of the column by itself
Decision: 'wear_um' depends on 'load_percent'; no further column was found to add to it.
"""


def test_the_table_of_a_selection():
    assert summary_text(selection_summary(selection_result()), width=100, colour=False) == SELECTION


def test_a_selection_fits_the_screen():
    steps = (SelectedColumn(1, LONG * 2, 0.1, 0.3, 0.3, 0.001, 0.001, significant=True),)
    text = summary_text(selection_summary(selection_result(selected=steps)), width=80, colour=False)
    assert max(map(len, text.splitlines())) <= 80
