import gzip
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kerntest.cli.completion import completed
from kerntest.data.formats.dialect import header_names
from kerntest.kernels import AROUND, NAMES

SAMPLES = Path(__file__).parents[2] / "sample_data"
ALL = ["order_value_eur", "items", "delivery_hours", "site_minutes", "payment", "first_order"]


@pytest.fixture
def complete(kerntest, monkeypatch):
    monkeypatch.chdir(SAMPLES)

    def invoke(line, shell="fish"):
        words = line.split(" ")
        monkeypatch.setenv("_KERNTEST_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
        outcome = kerntest()
        assert outcome.err == ""
        answers = [answer.partition("\t")[0].removeprefix("plain,") for answer in outcome.out.splitlines()]
        return [answer for answer in answers if answer]

    return invoke


def bytes_read():
    """Return how many bytes this process has read so far, where the system counts them."""
    try:
        return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text(encoding="ascii"))[1])
    except OSError:
        return 0


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "#compdef kerntest"), ("fish", "complete")]
)
def test_the_script_of_each_shell(kerntest, shell, word):
    outcome = kerntest("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert word in outcome.out
    assert f"_KERNTEST_COMPLETE={shell}_complete" in outcome.out


def test_another_shell_is_a_usage_error(kerntest):
    outcome = kerntest("completion", "bsh")
    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean 'bash'?" in outcome.err


def test_commands_options_and_words_complete(complete):
    assert complete("kerntest m") == ["mmd"]
    assert complete("kerntest mmd --perm") == ["--permutations"]
    assert complete("kerntest mmd --null ") == ["permutation", "moments", "gamma", "spectral", "pearson"]
    assert complete("kerntest completion z") == ["zsh"]


def test_kernel_names_complete_also_inside_an_expression(complete):
    assert complete("kerntest mmd --kernel gau") == ["gaussian"]
    assert complete("kerntest mmd --kernel linear+lap") == ["linear+laplacian", "linear+laplacian2"]
    assert complete("kerntest mmd --kernel ") == ["auto", *NAMES, *AROUND]


ANY = ("--columns", "--exclude", "--categorical")
BOTH = ("--x", "--y", *ANY, "--target", "--pairwise --x", "--x items --joint")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("inspect before.csv", ANY),
        ("mmd before.csv after.csv", ANY),
        ("mmd before.csv", ANY),
        ("inspect b*.parquet", ANY),
        ("hsic before.csv", BOTH),
    ],
)
def test_the_names_in_the_header_are_offered(complete, command, options):
    for option in options:
        assert complete(f"kerntest {command} {option} ") == ALL
        assert complete(f"kerntest {command} {option} it") == ["items"]


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        # The second file of an independence test is looked at too.
        ("hsic iris.csv before.csv --y p", ["petal_length_cm", "petal_width_cm", "payment"]),
        # The name after the last comma is completed, and none is offered twice.
        ("inspect before.csv --columns items,p", ["items,payment"]),
        (
            "inspect before.csv --columns items,payment,",
            [f"items,payment,{name}" for name in ALL if name not in {"items", "payment"}],
        ),
        ("inspect before.csv --columns nothing,x", []),
        ("inspect before.csv --columns items,order_value_eur:d", ["items,order_value_eur:delivery_hours"]),
        ("inspect before.csv --columns nothing:d", []),
        # A bad file hides nothing.
        ("mmd nowhere.csv before.csv --columns it", ["items"]),
        *((f"inspect {file}--columns ", []) for file in ("", "nowhere.csv ", "- ", "no*.csv ", ".. ", "'' ")),
    ],
)
def test_names_that_are_offered(complete, line, answers):
    assert complete(f"kerntest {line}") == answers


def test_bash_gets_names_that_it_can_read(complete, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('unit price,"a,b",c$d\n1,2,3\n')
    assert complete(f"kerntest inspect {path} --columns ", "bash") == ["unit\\ price", '\\"a,b\\"', "c\\$d"]
    assert complete(f"kerntest inspect {path} --columns ") == ["unit price", '"a,b"', "c$d"]


def test_quotes_that_are_open_stay():
    assert completed('x,"a', ["a,b", "ab", "x"]) == ['x,"a,b"', 'x,"ab"']
    assert completed("", ["a\x1b", "b"]) == ["b"]


def test_headers_of_each_kind_of_file(tmp_path):
    plain = tmp_path / "a.csv"
    plain.write_bytes('\ufeff"größe ";n;\n1;2;3\n'.encode())
    assert header_names(plain) == ("größe", "n", "unnamed_3")
    packed = tmp_path / "b.csv"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert header_names(packed) == ("größe", "n", "unnamed_3")
    parquet.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / "c.parquet")
    assert header_names(tmp_path / "c.parquet") == ("x", "y")
    assert header_names(tmp_path) == ("x", "y")
    (tmp_path / "d.csv").write_text('"a' + "x" * 200_000)
    assert len(header_names(tmp_path / "d.csv")[0]) < 70_000
    (tmp_path / "e.csv").write_bytes(b"a\rb\n")
    assert header_names(tmp_path / "e.csv") == ()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert header_names(tmp_path / "pipe") == ()


def test_of_a_huge_file_only_the_beginning_is_read(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n1,2\n")
        # A hole: 20 GB that take no room.
        file.truncate(20 << 30)
    before = bytes_read()
    assert header_names(path) == ("a", "b")
    assert bytes_read() - before < 10**6
