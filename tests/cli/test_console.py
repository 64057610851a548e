import io
import json
import re
import sys

import numpy as np
import pytest
from command_line import Terminal
from example_results import two_sample_result

from kerntest.cli import console
from kerntest.cli.console import (
    PIPED_WIDTH,
    WIPED,
    picture,
    progress_bar,
    report,
    say,
    terminal_width,
    uses_colour,
    wants_json,
)
from kerntest.errors import DataError
from kerntest.report.drawing import summary_text
from kerntest.report.summaries.test_summary import two_sample_summary


def without_colours(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_colours_need_a_terminal_that_has_them(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert uses_colour(Terminal())
    assert not uses_colour(io.StringIO())
    assert not uses_colour(None)
    monkeypatch.setenv("NO_COLOR", "")
    assert uses_colour(Terminal())
    monkeypatch.setenv("NO_COLOR", "0")
    assert not uses_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not uses_colour(Terminal())


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_changes_no_content(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    summary = two_sample_summary(two_sample_result(warnings=("one", "two")))
    plain = summary_text(summary, width=100, colour=False)
    coloured = summary_text(summary, width=100, colour=True)
    assert "\x1b" not in plain
    assert "\x1b" in coloured
    kept = "".join(f"{line.rstrip()}\n" for line in without_colours(coloured).splitlines())
    assert kept == plain


def test_width(monkeypatch):
    assert terminal_width() == PIPED_WIDTH
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal_width() == 72
    monkeypatch.setenv("COLUMNS", "5")
    assert terminal_width() == 40


def test_a_closed_stderr_is_no_reason_to_fail(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    say("nobody hears this")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    say("nor this", label="error")


def test_no_progress_where_nobody_looks(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(quiet=False) as advance:
        assert advance is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar(quiet=True) as advance:
        assert advance is None
    monkeypatch.setenv("TERM", "dumb")
    with progress_bar(quiet=False) as advance:
        assert advance is None


@pytest.mark.parametrize(("patience", "appears"), [(0.0, True), (1000.0, False)])
def test_progress_appears_only_after_a_while_and_goes_away(monkeypatch, patience, appears):
    assert console.PATIENCE_SECONDS == 1
    monkeypatch.setattr(console, "PATIENCE_SECONDS", patience)
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_bar(quiet=False) as advance:
        advance(5, 10)
        advance(10, 10)
    shown = without_colours(screen.getvalue())
    assert ("testing" in shown) is appears
    assert ("100%" in shown) is appears
    if appears:
        assert screen.getvalue().endswith(WIPED)


def test_the_time_left_is_told_only_when_it_is_known(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    screen, clock = Terminal(), iter([0.0, 2.0, 3.0, 30.0, 100.0, 101.0])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    with progress_bar(quiet=False) as advance:
        for done in (1, 40, 49, 101):
            advance(done, 1000)
        say("a message", label="note")
        advance(102, 1000)
    drawn = [line.rstrip() for line in screen.getvalue().split(WIPED)]
    assert [line.split("%")[1] for line in drawn if line.endswith(("%", "left"))] == [
        "",
        "",
        " 0:14:41 left",
        " 0:14:40 left",
    ]


def test_the_picture_of_a_long_text_shows_the_surroundings():
    text = "a" * 100 + "!" + "b" * 100
    line, caret = picture(text, 101)
    assert line[caret.index("^")] == "!"
    assert line.startswith("  ...")
    assert line.endswith("...")
    assert len(line) < 90


def test_the_picture_points_behind_the_end_and_at_wide_characters():
    assert picture("linear +", 9) == ("  linear +", "          ^")
    assert picture("値!", 2) == ("  値!", "    ^")
    assert picture("", 1) == ("  ", "  ^")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["mmd", "--json"], True),
        (["mmd", "--format", "json"], True),
        (["mmd", "--format=JSON"], True),
        (["mmd", "--format", "json", "--format", "table"], False),
        (["mmd", "--format"], False),
        (["mmd", "--", "--json"], False),
        ([], False),
    ],
)
def test_whether_errors_are_json(arguments, wanted):
    assert wants_json(arguments) is wanted


def test_an_error_is_told_whatever_is_in_it(capsys):
    report(DataError("bad", where={"line": np.int64(3)}), as_json=True)
    assert json.loads(capsys.readouterr().err)["error"]["where"] == {"line": "3"}
