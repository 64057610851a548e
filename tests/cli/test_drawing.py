"""Tables on pages of any width: nothing is cut off, everything is aligned, and lines end where they may."""

import re

import pytest
from rich.cells import cell_len as cells

from kerntest.report.drawing import _shortened, html_page, summary_html, summary_markdown, summary_text
from kerntest.report.summaries.words import Cell, ResultTable, Summary

TABLE = ResultTable(
    columns=(("column", "name"), ("東京", "number"), ("what it is", "text"), ("kind", "word")),
    rows=(
        ("a_long_name_of-a.column", "1.5", "it goes on for 12 % of the line and further", "x"),
        ("größe", "-20.25", "short", "yy"),
        (Cell("城市", "chosen"), "3", "e\u0301te\u0301", Cell("z", "wrong")),
    ),
    title="A table with a title",
    notes=("a note that takes more than one line on a narrow page, and is set in",),
)
SUMMARY = Summary(
    "A title that may be long",
    (("label", "a text of 50 % with some more words behind it"), ("", "goes on")),
    "what was decided, in a sentence",
    ("the first warning, which is long enough to be broken", "second"),
    (TABLE,),
)


def drawn(width, *, colour=False, summary=SUMMARY):
    return summary_text(summary, width=width, colour=colour)


@pytest.mark.parametrize(("text", "taken"), [("abc", 3), ("größe", 5), ("城市", 4), ("e\u0301", 1), ("Ａ", 2), ("", 0)])
def test_cells(text, taken):
    assert cells(text) == taken


@pytest.mark.parametrize("width", [30, 40, 55, 80, 200])
def test_lines_are_as_long_as_the_page_at_most_and_lose_nothing(width):
    lines = drawn(width).splitlines()
    assert max(map(cells, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    shown = "".join("".join(lines).split())
    for word in ("decided,", "second", "-20.25", "größe", "城市"):
        assert word in shown


def test_a_wide_page_has_one_line_each():
    assert drawn(200) == (
        "A title that may be long\n"
        "  label  a text of 50 % with some more words behind it\n"
        "         goes on\n"
        "A table with a title\n"
        "  column                     東京  what it is                                   kind\n"
        "  a_long_name_of-a.column     1.5  it goes on for 12 % of the line and further  x\n"
        "  größe                    -20.25  short                                        yy\n"
        "  城市                          3  e\u0301te\u0301                                          z\n"
        "  a note that takes more than one line on a narrow page, and is set in\n"
        "Decision: what was decided, in a sentence\n"
        "Warnings:\n"
        "  -  the first warning, which is long enough to be broken\n"
        "  -  second\n"
    )


def test_a_narrow_page_has_texts_below_their_rows_and_shortens_names():
    assert drawn(42) == (
        "A title that may be long\n"
        "  label  a text of 50 % with some more\n"
        "         words behind it\n"
        "         goes on\n"
        "A table with a title\n"
        "  column                     東京  kind\n"
        "  a_long_name_of-a.column     1.5  x\n"
        "    it goes on for 12 % of the line and\n"
        "    further\n"
        "  größe                    -20.25  yy\n"
        "    short\n"
        "  城市                          3  z\n"
        "    e\u0301te\u0301\n"
        "  a note that takes more than one line on\n"
        "  a narrow page, and is set in\n"
        "Decision: what was decided, in a sentence\n"
        "Warnings:\n"
        "  -  the first warning, which is long\n"
        "     enough to be broken\n"
        "  -  second\n"
    )
    assert "  a_long_...column         1.5  x\n" in drawn(36)
    assert "no room for whole names: to_dict() has all" in " ".join(drawn(36).split())


@pytest.mark.parametrize(
    "name", ["a_rather_long_name_of_a_column", "東京の温度センサー_東京の温度センサー", "x" * 50, "é" * 44]
)
def test_a_shortened_name_is_never_wider_than_its_column(name):
    for most in range(1, 50):
        short = _shortened(name, most)
        assert cells(short) <= most
        assert (short == name) == (cells(name) <= most)
        if most >= 8 and short != name:
            beginning, end = short.split("...")
            assert name.startswith(beginning)
            assert name.endswith(end)
            assert beginning
            assert end


def test_shortened_names_stay_apart_if_there_is_a_way():
    def column(*names, width=30):
        table = ResultTable((("column", "name"), ("n", "number")), tuple((name, "1" * 10) for name in names))
        lines = drawn(width, summary=Summary("t", (), "", (), (table,))).splitlines()
        return [line.split()[0] for line in lines[2:-2]]

    assert column("a_column_of_the_year_2025_in_all", "another") == ["a_colum...in_all", "another"]
    # They differ at their beginnings, or at their ends, alone.
    assert column(*(f"abcdefghij{k}xxxxxxxxxxxxxxxxxxxxxxxxxxx" for k in "123")) == [
        f"abcdefghij{k}xx..." for k in "123"
    ]
    assert column(*(f"xxxxxxxxxxxxxxxxxxxxxxxxxxx{k}abcdefghij" for k in "123")) == [
        f"...xx{k}abcdefghij" for k in "123"
    ]
    # Between the same beginnings and ends, beside others.
    many = [f"{'x' * 40}{k}{'y' * 40}" for k in "123"]
    assert column("another", *many) == ["another", *(f"...x{k}yyyyyyyy..." for k in "123")]
    # One is the beginning of another, and both end alike.
    assert len({*column("x" * 40, "x" * 60)}) == 2


def test_numbers_are_left_out_before_names_are_unreadable():
    columns = (("x", "name"), ("y", "name"), *((f"n{k}", "number") for k in range(6)))
    row = ("a_name_of_some_length", "b_name_of_some_length", *("1.234",) * 6)
    table = ResultTable(columns, (row,), keep="n1")
    text = drawn(60, summary=Summary("t", (), "", (), (table,)))
    assert text == (
        "t\n"
        "  x                  y                     n0     n1     n2\n"
        "  a_name_...length   b_name_...length   1.234  1.234  1.234\n"
        "  no room for n3, n4, n5, whole names: to_dict() has all\n"
    )


def test_a_word_longer_than_its_line_goes_on_in_the_next():
    long = "x" * 25
    lines = drawn(20, summary=Summary("t", (("a", f"see {long}"), ("b", "東京" * 6)), "", ())).splitlines()
    assert lines == [
        "t",
        "  a  see",
        "     " + "x" * 15,
        "     " + "x" * 10,
        "  b  " + "東京東京東京東"[:7],
        "     京東京東京",
    ]


def test_a_percent_sign_stays_with_its_number():
    for width in range(14, 40):
        text = drawn(width, summary=Summary("", (("", "so many are 98.1 % of all of them"),), "", ()))
        assert "98.1 %" in text


def test_colours_change_no_word():
    coloured = drawn(200, colour=True)
    plain = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert [line.rstrip() for line in plain.splitlines()] == drawn(200).splitlines()
    assert re.search(r"\x1b\[1mA title that may be long\x1b\[0m\n", coloured)
    assert "\x1b[1;32m城市" in coloured
    assert "\x1b[31mz" in coloured
    assert "\x1b[33mWarnings:\x1b[0m\n" in coloured
    assert "\x1b[36mgröße" in coloured


def test_headings_of_a_table_without_a_title_are_bold():
    table = ResultTable((("name", "name"), ("n", "number")), (("a", "1"),))
    text = drawn(80, colour=True, summary=Summary("t", (), "", (), (table,)))
    assert "\x1b[1mname\x1b[0m" in text
    assert "\x1b[1mn\x1b[0m\n" in text


def test_words_are_no_tags_in_html():
    table = ResultTable((("<h>", "name"),), (("<c>",),), title="<t>", notes=("<n>",))
    shown = summary_html(Summary("<1>", (("<2>", "<3>"),), "<4>", ("<5>",), (table,)))
    for word in ("h", "c", "t", "n", *"12345"):
        assert f"&lt;{word}&gt;" in shown
        assert f"<{word}>" not in shown


def test_words_are_no_marks_in_markdown():
    table = ResultTable(
        (("a|b", "name"), ("n", "number")), (("*x* | `y`", "1"), (Cell("_z", "chosen"), "2")), "#t", ("[n](u)",)
    )
    shown = summary_markdown(Summary("<h>", (("a_b", "$c$"), ("", "~~d~~")), "no *", ("w",), (table,)))
    assert shown == (
        "## \\<h\\>\n\n|  |  |\n| --- | --- |\n| a_b | \\$c\\$ |\n|  | \\~\\~d\\~\\~ |\n\n**\\#t**\n\n"
        "| a\\|b | n |\n| --- | ---: |\n| \\*x\\* \\| \\`y\\` | 1 |\n| \\_z | 2 |\n\n- \\[n\\](u)\n\n"
        "**Decision: no \\***\n\nWarnings:\n\n- w\n"
    )


def test_a_page_of_html_is_whole():
    page = html_page(Summary("<t>", (), "d", ()))
    assert page.startswith('<!DOCTYPE html>\n<meta charset="utf-8">\n<title>&lt;t&gt;</title>')
    assert summary_html(Summary("<t>", (), "d", ())) in page


def test_texts_below_a_row_keep_their_order():
    columns = (("name", "name"), ("first", "text"), ("number", "number"), ("second", "text"))
    row = ("a name of some length", "some thirty letters of a text", "1.5", "and some more letters of another text")
    text = drawn(32, summary=Summary("t", (), "", (), (ResultTable(columns, (row, ("b", "-", "2", "only this"))),)))
    assert text.splitlines()[2:] == [
        "  a name of some length     1.5",
        "    some thirty letters of a",
        "    text",
        "    and some more letters of",
        "    another text",
        "  b                           2",
        "    only this",
    ]


def test_notes_say_nothing_of_numbers_that_have_no_room():
    numbers = ["p", "p perm.", "r", "tau"]
    table = ResultTable(
        (("x", "name"), *((one, "number") for one in numbers)),
        (("a_long_name_of_a_column", *["0.123456"] * 4),),
        notes=("p: corrected; p perm.: alone", "r, tau: coefficients; - where there is none", "tau is large: look"),
        keep="p",
    )
    wide, narrow = (summary_text(Summary("T", (), "", (), (table,)), width=width, colour=False) for width in (200, 40))
    assert (
        "  p: corrected; p perm.: alone\n  r, tau: coefficients; - where there is none\n  tau is large: look\n" in wide
    )
    assert "no room for r, tau" in narrow
    assert "p perm.: alone" in narrow
    assert "coefficients" not in narrow
    assert "- where" not in narrow
    assert "tau is large: look" in narrow
