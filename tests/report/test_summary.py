from dataclasses import replace
from typing import get_args

import pytest
from example_results import FAMILY, MOMENTS, PERMUTATION, two_sample_result
from hypothesis import given
from hypothesis import strategies as st

from kerntest.inference.sides import NullMethod
from kerntest.report.results.record import FamilyMember, flatten
from kerntest.report.results.two_sample_record import ColumnContents, ColumnEffect, Explanation, Margin
from kerntest.report.summaries.test_summary import (
    contents_lines,
    decision_sentence,
    discrepancy_text,
    explanation_table,
    notes_of,
    two_sample_summary,
)
from kerntest.report.summaries.words import (
    name_list,
    null_text,
    number,
    p_value_meaning,
    shortened_kernel,
    show_times,
    visible,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.001, "0.001"),
        (0.0123456, "0.01235"),
        (-0.0123456, "-0.01235"),
        (1.0, "1"),
        (123456.7, "123457"),
        (0.00001234, "0.00001234"),
        (3.14159e-12, "3.142e-12"),
        (99999.5, "100000"),
        (1.5e20, "1.5e+20"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_have_four_significant_digits(value, text):
    assert number(value) == text


@given(st.floats(min_value=-1e300, max_value=1e300), st.integers(min_value=1, max_value=17))
def test_a_shown_number_is_near_the_number_and_only_zero_is_shown_as_zero(value, digits):
    shown = float(number(value, digits))
    assert shown == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits) * 1.001, abs=0)
    assert (shown == 0) == (value == 0)


@pytest.mark.parametrize(
    ("p_value", "share"),
    [
        (1.0, "every test shows"),
        (0.8248, "82 % of tests show"),
        (0.034, "3.4 % of tests show"),
        (1 / 1700, "1 in 1,700 tests shows"),
        (3 / 1700, "about 1 in 570 tests shows"),
        (0.00005151, "about 1 in 19,000 tests shows"),
        (1e-9, "fewer than 1 in a million tests show"),
    ],
)
def test_a_p_value_in_words(p_value, share):
    assert p_value_meaning(p_value, "there is no difference") == f"{share} as much where there is no difference"


@pytest.mark.parametrize(
    ("p_value", "sentence"),
    [
        (0.001, "The two files differ (p = 0.001 <= alpha = 0.05)."),
        (0.05, "The two files differ (p = 0.05 = alpha = 0.05)."),
        (0.0499999, "The two files differ (p = 0.0499999 <= alpha = 0.05)."),
        (0.43, "No difference found at alpha = 0.05 (p = 0.43). That is not proof that there is none."),
        (0.0500001, "No difference found at alpha = 0.05 (p = 0.0500001). That is not proof that there is none."),
    ],
)
def test_a_decision_shows_the_digits_that_decided(p_value, sentence):
    assert decision_sentence(p_value, 0.05) == sentence


@pytest.mark.parametrize("verdict", ["same", "differ", "undecided"])
def test_what_a_margin_has_decided_is_not_called_unproven(verdict):
    margin = Margin("0.3", 0.3, None, None, None, "gaussian(1)", 0.1, 0.05, 0.2, verdict, (9, 9))
    told = decision_sentence(0.43, 0.05, margin=margin)
    assert "No difference found at alpha = 0.05 (p = 0.43)." in told
    assert ("not proof" in told) == (verdict == "undecided")


def test_a_decision_by_an_approximate_p_value_says_so():
    assert decision_sentence(0.01, 0.05, exact=False).endswith(" differ (p = 0.01 <= alpha = 0.05, p approximate).")
    assert "(p = 0.43, approximate)." in decision_sentence(0.43, 0.05, exact=False)


@pytest.mark.parametrize(
    ("resampling", "lacking"), [("all permutations", "rows"), ("permuted blocks of 5 random rows", "relabellings")]
)
def test_where_no_p_value_could_reject_there_is_no_standard_error_either(resampling, lacking):
    few = replace(PERMUTATION, permutations=10, p_floor=0.1, resampling=resampling)
    result = two_sample_result(0.1, mmd_standard_error=None, null=few)
    assert discrepancy_text(result) == f"0.1111 (too few {lacking} for a standard error)"


def test_the_null_by_moments_tells_an_estimated_skewness():
    curve = "moments: Pearson III curve through three moments of the permutation distribution"
    assert null_text(MOMENTS) == f"{curve}, its skewness estimated, approximate"
    assert null_text(replace(MOMENTS, trace="exact")) == f"{curve}, approximate"


def test_every_null_has_words_of_its_own():
    words = {
        null_text(replace(MOMENTS, method=name, trace=None)) for name in get_args(NullMethod) if name != "permutation"
    }
    assert len(words) == len(get_args(NullMethod)) - 1


def test_long_lists_are_cut_where_it_saves_something():
    names = [f"c{index}" for index in range(49)]
    assert name_list(names) == ", ".join(names[:12]) + " and 37 more"
    assert name_list(names[:13]) == ", ".join(names[:13])
    assert name_list(names, shown=None) == ", ".join(names)
    # As options take them.
    assert name_list(["a", "b,c", 'd"e']) == 'a, "b,c", "d""e"'


def test_kernels_are_shortened_only_inside_their_parentheses():
    assert shortened_kernel("0.123456*student-t(1.23456789, df=3)") == "0.123456*student-t(1.235, df=3)"
    grouped = "price_0.123456: gaussian(0.00012345678); 'a(1.23456)': delta"
    assert shortened_kernel(grouped) == "price_0.123456: gaussian(0.0001235); 'a(1.23456)': delta"


def test_of_many_columns_of_a_kernel_the_first_are_named():
    names = [*(f"c{place}" for place in range(11)), "'a, b: c'", *(f"d{place}" for place in range(30))]
    shown = f"{', '.join(names[:12])} and 30 more: gaussian(1.5); t: delta"
    assert shortened_kernel(f"{', '.join(names)}: gaussian(1.5); t: delta") == shown
    assert (
        shortened_kernel(f"t: delta; {', '.join(names[:13])}: linear") == f"t: delta; {', '.join(names[:13])}: linear"
    )


def test_of_a_bandwidth_for_each_column_the_first_are_shown():
    many = f"additive({', '.join(f'0.{place:02}5678901' for place in range(1, 51))})"
    assert shortened_kernel(many) == "additive(0.01568, 0.02568, 0.03568, 0.04568 and 46 more)"
    assert shortened_kernel("c*: additive(1, 2, 3, 4, 5); d: delta") == "c*: additive(1, 2, 3, 4, 5); d: delta"
    result = two_sample_result(kernel=many, family=replace(FAMILY, members=(FamilyMember(many, 3.5, 0.001),)))
    assert ("kernel", shortened_kernel(many)) in two_sample_summary(result).lines
    assert f"  z = 3.5, p = 0.001: {shortened_kernel(many)}" in notes_of(result)
    assert (result.to_dict()["kernel"], result.to_dict()["family"]["members"][0]["kernel"]) == (many, many)


def test_unprintable_characters_are_written_out():
    assert visible("plain größe 値") == "plain größe 値"
    assert visible("a\x1b[31m\n\u202eb") == r"a\x1b[31m\n\u202eb"


@pytest.mark.parametrize(
    ("p_value", "p_clearest", "judge", "told"),
    [
        (0.01, 0.4, "together", True),
        (0.01, 0.02, "together", False),
        (0.3, 0.4, "together", False),
        (0.01, 0.4, "smallest", False),
    ],
)
def test_a_contrast_that_decided_is_told(p_value, p_clearest, judge, told):
    family = replace(FAMILY, judge=judge, p_clearest=p_clearest)
    lines = [text for _, text in two_sample_summary(two_sample_result(p_value, family=family)).lines]
    said = "by itself it shows nothing (p = 0.4, corrected), only all kernels together do: "
    assert any(line.startswith(said) for line in lines) == told


@pytest.mark.parametrize(
    ("z", "p_value", "judge", "told"),
    [
        ((-0.5, 0.0), 1.0, "together", True),
        ((-0.5, 0.1), 1.0, "together", False),
        ((-0.5, 0.0), 1.0, "smallest", False),
    ],
)
def test_a_family_without_any_excess_is_told(z, p_value, judge, told):
    members = tuple(replace(member, z=one) for member, one in zip(FAMILY.members, z, strict=True))
    result = two_sample_result(p_value, family=replace(FAMILY, judge=judge, members=members))
    lines = [text for _, text in two_sample_summary(result).lines]
    assert ("no kernel shows an excess: no statistic lies above its mean, so p = 1" in lines) == told


@pytest.mark.parametrize(
    ("x", "y", "told"),
    [
        (
            ColumnContents(0.0, 10012.25, 3.5, 10010.0, 10012.0, 10014.0),
            ColumnContents(0.0, 10015.5, 3.25, 10013.0, 10015.0, 10018.0),
            "mean 10012.25 -> 10015.5, sd 3.5 -> 3.25\nquartiles 10010, 10012, 10014 -> 10013, 10015, 10018",
        ),
        (
            ColumnContents(0.02, 0.2, 1.5, 0.0, 0.0, 0.0, "0", 0.9),
            ColumnContents(0.1, 0.4, 2.0, 0.0, 0.0, 0.1, "0", 0.7),
            "mean 0.2 -> 0.4, sd 1.5 -> 2, 0: 90 % -> 70 %, missing 2 % -> 10 %",
        ),
        (
            ColumnContents(0.0, value="new\nline", share=0.25),
            ColumnContents(0.0, value="new\nline", share=0.5),
            "new\\nline: 25 % -> 50 %",
        ),
        (
            ColumnContents(0.0, "2024-01-05", 2.0, "2024-01-04", "2024-01-05", "2024-01-06T12:00"),
            ColumnContents(0.0, "2024-02-05", 0.0, "2024-02-05", "2024-02-05", "2024-02-05"),
            (
                "mean 2024-01-05 -> 2024-02-05, sd 2 -> 0 days\nquartiles 2024-01-04, 2024-01-05, 2024-01-06T12:00 -> "
                "2024-02-05, 2024-02-05, 2024-02-05"
            ),
        ),
    ],
)
def test_what_a_column_was_and_is(x, y, told):
    assert "\n".join(contents_lines(x, y)) == told


@pytest.mark.parametrize(
    ("tested", "told"),
    [(14, None), (2, "the first 2 only"), (0, "none")],
    ids=["every column", "two columns", "no column"],
)
def test_columns_are_told_with_their_effects(tested, told):
    columns = tuple(
        ColumnEffect(f"c{place}", "delta", 9.0, 0.001, 0.01, 0.02 if place < tested else None, 0.5)
        for place in range(14)
    )
    table = explanation_table(Explanation(columns, ()))
    assert [heading for heading, _ in table.columns] == [
        "column",
        "effect",
        "p alone",
        *["p without"] * bool(tested),
        "X -> Y",
    ]
    assert table.rows[0] == ("c0", "0.5", "0.01", *["0.02"] * bool(tested), "")
    assert table.rows[11][3:] == (*[("0.02" if tested > 11 else "-")] * bool(tested), "")
    assert len(table.rows) == 12
    assert not any("within" in note for note in table.notes)
    (note,) = [note for note in explanation_table(Explanation(columns, ()), within="shop").notes if "within" in note]
    assert note == "effects and p are within 'shop'; X -> Y as if both had as many rows of every 'shop'"
    assert table.notes[0] == "and 2 more: to_dict() has all"
    assert table.notes[1].startswith(
        "p alone: of the column by itself, under kernels of its own, corrected for all columns"
    )
    assert ("p without" in table.notes[1]) == bool(tested)
    notes = notes_of(two_sample_result(0.01, explanation=Explanation(columns, ())))
    assert [note for note in notes if note.startswith("  c")] == [
        f"  c{place}: effect 0.5, z = 9, p = 0.001, corrected 0.01: delta" for place in range(14)
    ]
    left = f"tests of all without one column: {told}, for so large tables; exclude='COLUMN' makes one"
    assert table.notes[2:] == (() if told is None else (left,))


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [
        (0.9, 0.9, "less than a second"),
        (0.1, 0.9, "less than a second"),
        (1.0, 1.0, "about 1 second"),
        (89.0, 89.0, "about 89 seconds"),
        (80.0, 90.0, "about 2 minutes"),
        (600.0, 600.0, "about 10 minutes"),
        (5400.0, 5400.0, "about 2 hours"),
        (36_000.0, 36_000.0, "about 10 hours"),
        (172_800.0, 172_800.0, "about 2 days"),
        (3.0, 12.0, "3 to 12 seconds"),
        (20.0, 120.0, "20 seconds to 2 minutes"),
        (0.2, 3.0, "less than a second to 3 seconds"),
        (6000.0, 60_000.0, "2 to 17 hours"),
        (1.0, 6.0, "1 to 6 seconds"),
    ],
)
def test_a_duration_or_a_range_is_said_in_its_unit(least, most, text):
    assert show_times(least, most) == text


def test_flatten_gives_one_level_with_dotted_names():
    flat = flatten(two_sample_result().to_dict())
    assert flat["null.method"] == "permutation"
    assert flat["columns"] == "order_value;payment"
    assert flat["provenance.inputs.name"] == "before.csv;after.csv"
    assert flat["provenance.inputs.delimiter"] == ";;"
    assert flat["family.members.z"] == "3.5;4.25"
    assert not any(isinstance(value, (dict, list)) for value in flat.values())


def test_a_number_that_is_not_finite_is_null():
    assert two_sample_result(mmd=float("nan")).to_dict()["mmd"] is None
