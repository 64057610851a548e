import io
import json
import re
import sys
import threading
import time

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
from kerntest.engines.engine import doing, of_triangle
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


def test_what_is_long_is_broken_between_words_on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    error = DataError("payment 2 " * 12, hint="--exclude delivery_hours,payment leaves the columns out " * 3)
    for screen, most in ((Terminal(), 50), (io.StringIO(), 1000)):
        monkeypatch.setattr(sys, "stderr", screen)
        report(error, as_json=False)
        lines = without_colours(screen.getvalue()).splitlines()
        assert max(map(len, lines)) <= most
        assert (len(lines) > 2) is (most == 50)
        told = " ".join(line.strip() for line in lines)
        assert told.startswith("error: payment 2 payment 2 ")
        assert told.count("hint: --exclude delivery_hours,payment leaves") == 1
        assert told.count("--exclude delivery_hours,payment leaves") == 3


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
        " 0:09:15 left",
        " 0:14:41 left",
        " 0:14:40 left",
    ]


def at_once(monkeypatch):
    """Look at a terminal of 60 columns on which everything appears at once."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(console, "SECONDS_A_TICK", 0.005)
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def appears(screen, text):
    """Wait until a text is on the screen."""
    for _ in range(2000):
        if text in screen.getvalue():
            return True
        time.sleep(0.005)
    return False


def test_what_tells_of_no_progress_is_named_with_its_time(monkeypatch):
    screen = at_once(monkeypatch)
    with progress_bar(quiet=False, doing="fitting") as advance:
        assert appears(screen, "fitting 0:00:00")
        with doing("reading a\n.csv"):
            assert appears(screen, "reading a\\n.csv 0:00:00")
        before = len(screen.getvalue())
        assert appears(Later(screen, before), "fitting 0:00:00")
        advance(1, 4)
        assert appears(screen, f"fitting {'#' * 8:.<33}")
        before = len(screen.getvalue())
        advance(4, 4)
        assert "100%" in screen.getvalue()[before:]
        # What is whole is not the end of all.
        assert appears(Later(screen, before), "fitting 0:00:00")
    drawn = screen.getvalue()
    assert drawn.endswith(WIPED)
    time.sleep(0.05)
    assert screen.getvalue() == drawn


class Later:
    """What was drawn after a place."""

    def __init__(self, screen, start):
        self.screen, self.start = screen, start

    def getvalue(self):
        return self.screen.getvalue()[self.start :]


def test_a_message_wipes_the_line_which_comes_again_below_it(monkeypatch):
    screen = at_once(monkeypatch)
    with progress_bar(quiet=False) as advance:
        advance(1, 4)
        say("a message", label="note")
        before = len(screen.getvalue())
        assert appears(Later(screen, before), "testing #")
    assert f"{WIPED}\x1b[1mnote:\x1b[0m a message\n" in screen.getvalue()


@pytest.mark.parametrize("name", ["a" * 300, "日本語" * 100])
def test_the_line_is_never_longer_than_the_terminal(monkeypatch, name):
    screen = at_once(monkeypatch)
    with progress_bar(quiet=False) as advance, doing(f"reading {name}"):
        assert appears(screen, "0:00:00")
        advance(10, 100)
    lines = screen.getvalue().split(WIPED)
    assert max(map(console._cells, lines)) <= 59


def test_nothing_comes_after_the_end(monkeypatch):
    screen, ending = at_once(monkeypatch), threading.Event()
    monkeypatch.setattr(console, "_ENDING", ending)
    with progress_bar(quiet=False) as advance:
        advance(1, 4)
        console.end("interrupted\n")
        drawn = screen.getvalue()
        advance(2, 4)
        time.sleep(0.05)
        assert screen.getvalue() == drawn
    assert drawn.endswith(f"{WIPED}interrupted\n")


def test_the_time_left_counts_down_and_is_put_off_by_a_step_that_takes_longer(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(console, "SECONDS_A_TICK", 1000.0)
    bar = console._PatientBar("testing")
    bar._appears = -1.0
    monkeypatch.setattr(sys, "stderr", Terminal())
    for second, done in ((0.0, 0), (10.0, 10), (20.0, 20)):
        monkeypatch.setattr(console.time, "monotonic", lambda second=second: second)
        bar.advance(done, 100)
    for second in (30.0, 39.0, 60.0, 100.0):
        bar._draw(second)
    bar.close()
    left = re.findall(r"(\d+:\d\d:\d\d) left", sys.stderr.getvalue())
    assert left == ["0:01:30", "0:01:20", "0:01:10", "0:01:01", "0:04:00", "0:06:40"]


def test_the_lines_of_a_triangle_count_their_entries():
    told = []
    for done in range(5):
        of_triangle(lambda *both: told.append(both))(done, 4)
    assert [done / total for done, total in told] == [0, 0.4, 0.7, 0.9, 1]
    assert of_triangle(None) is None


def test_the_picture_of_a_long_text_shows_the_surroundings():
    text = "a" * 100 + "!" + "b" * 100
    line, caret = picture(text, 101)
    assert line[caret.index("^")] == "!"
    assert line.startswith("  ...")
    assert line.endswith("...")
    assert len(line) < 90


def test_an_option_that_lacks_its_value_is_named_to_programs(kerntest):
    outcome = kerntest("predict", "--format", "jsonl", "--interval")
    assert outcome.code == 2
    assert json.loads(outcome.err)["error"]["where"] == {"value": "--interval"}


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


def test_a_line_leaves_the_last_cell_of_the_terminal_free(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert console._in_one_line("a" * 59) == "a" * 59
    assert console._in_one_line("a" * 100) == "a" * 59
    assert console._in_one_line("日" * 100, 20) == "日" * 19


def test_work_that_begins_again_is_timed_anew(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(console, "SECONDS_A_TICK", 1000.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(console.time, "monotonic", lambda: 0.0)
    bar = console._PatientBar("testing")
    bar._appears = -1.0
    for second, done in ((0.0, 10), (10.0, 80), (20.0, 30), (30.0, 40)):
        monkeypatch.setattr(console.time, "monotonic", lambda second=second: second)
        bar.advance(done, 100)
    bar.close()
    # 10 of 70 in 10 seconds, whatever was there before.
    assert re.findall(r"(\d+:\d\d:\d\d) left", sys.stderr.getvalue()) == ["0:00:03", "0:01:00"]
