"""What every command keeps: it is one call of an exported function, and outputs, gates and errors go the same way in all."""

import csv
import functools
import io
import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from command_line import Terminal
from records import assert_alike, differences

import kerntest as package
from kerntest import errors


@dataclass
class Call:
    """A command line on the tables of the working folder, and the call that it stands for."""

    words: str
    function: str
    given: tuple = ("data.csv",)
    named: dict = field(default_factory=dict)
    # More words, which are called in Python as they are called here, and those that are not.
    options: str = ""
    others: dict = field(default_factory=dict)
    # Where the words of the result go; the rows of the result as CSV.
    report: str = "-o"
    rows: str = ""

    def result(self, **more):
        return getattr(package, self.function)(*self.given, **(self.named | more))

    def options_and_arguments(self):
        """Yield more words, and what they are in Python."""
        yield "", {}
        for words in filter(None, self.options.split(" | ")):
            pairs = [one.partition(" ") for one in words.removeprefix("--").split(" --")]
            yield words, {name.replace("-", "_"): in_python(text) for name, _, text in pairs}
        yield from self.others.items()


def in_python(text):
    """Return a value as Python writes it: a number, a word, or True for an option without a value."""
    try:
        return float(text) if {".", "e"} & {*text} else int(text)
    except ValueError:
        return text.strip("'").lower() or True


KERNEL = "--kernel laplacian | --kernel 'gaussian(1.5) + linear' | --bandwidth 2.5 | "
RANDOM = "--seed 7 | --threads 1 | "
LEVEL = "--alpha 1e-3 | --permutations 99"
JUDGED = "--test other.csv | --test-fraction 0.3 | --test-fraction 0.3 --cluster shop | "
TWO_SIDES = " | --estimator BIASED | --null moments | --resampling random | --judge smallest | --scale none"
CALLS = {
    "mmd": Call(
        "mmd data.csv other.csv --exclude gaps",
        "mmd_test",
        ("data.csv", "other.csv"),
        {"exclude": ["gaps"]},
        options=f"{KERNEL}{RANDOM}{LEVEL}{TWO_SIDES} | --bandwidth Median --kernel gaussian | --categorical code"
        " | --min-effect 0.1 | --explain",
        others={
            "--bandwidth '0.5, 1,2'": {"bandwidth": (0.5, 1.0, 2.0)},
            "--columns a,b --columns k*": {"columns": ["a", "b", "kind"]},
        },
    ),
    "mmd --by": Call(
        "mmd data.csv --by code --exclude gaps,shop",
        "mmd_test",
        named={"by": "code", "exclude": "gaps,shop"},
        options=f"{RANDOM}{LEVEL}{TWO_SIDES} | --bandwidth median --kernel gaussian | --explain | --reference 2",
        rows="pairs",
    ),
    "hsic": Call(
        "hsic data.csv --x a --y b",
        "hsic_test",
        named={"x_columns": "a", "y_columns": "b"},
        options=f"{RANDOM}{LEVEL}{TWO_SIDES} | --kernel-x laplacian | --statistic COCO | --time-series"
        " | --time-series --min-lag 9",
        others={
            "--kernel linear": {"kernel_x": "linear", "kernel_y": "linear"},
            "--kernel linear --kernel-x laplacian": {"kernel_x": "laplacian", "kernel_y": "linear"},
            "--kernel linear --kernel-y laplacian": {"kernel_x": "linear", "kernel_y": "laplacian"},
            "--bandwidth 0.5,1": {"bandwidth": (0.5, 1.0)},
        },
    ),
    "hsic, groups": Call(
        "hsic data.csv --x a,k* --x c --y code --y b",
        "hsic_test",
        named={"x_columns": ["a", "kind", "c"], "y_columns": ["code", "b"]},
        options="--categorical code | --method features",
    ),
    "hsic, two files": Call(
        "hsic data.csv other.csv --exclude gaps", "hsic_test", ("data.csv", "other.csv"), {"exclude": "gaps"}
    ),
    "hsic --pairwise": Call(
        "hsic data.csv --pairwise --exclude gaps,shop",
        "hsic_pairs",
        named={"exclude": "gaps,shop"},
        options=f"--threads 1 | {LEVEL} | --kernel laplacian --bandwidth 2.0 | --correction bh",
        others={"--x a,b --y c": {"x_columns": "a,b", "y_columns": "c"}},
        rows="pairs",
    ),
    "hsic --target": Call(
        "hsic data.csv --target y --exclude shop",
        "hsic_pairs",
        named={"target": "y", "exclude": "shop"},
        options="--missing error --columns a,y | --correction none",
        rows="pairs",
    ),
    "hsic --select": Call(
        "hsic data.csv --target y --select 2 --columns a,b,c",
        "hsic_select",
        named={"target": "y", "k": 2, "columns": "a,b,c"},
        rows="selected",
    ),
    "hsic --joint": Call(
        "hsic data.csv --joint 'a,\"b\"' --joint 'c*'",
        "hsic_joint",
        ("data.csv", [["a", "b"], ["c*"]]),
        options=f"{RANDOM}{LEVEL} | --scale none",
    ),
    "hsic --joint of columns": Call("hsic data.csv --joint a,b,c", "hsic_joint", ("data.csv", [["a"], ["b"], ["c"]])),
    "svm": Call(
        "svm data.csv --target kind --exclude gaps",
        "train_svm",
        named={"target": "kind", "exclude": "gaps"},
        options=f"{KERNEL}{RANDOM}{JUDGED}--grid --cv 2 | --cv 3 | --nu .5 | --hard-margin | --method mean | --probability"
        " | --tolerance 1e-9",
        others={
            "--C 10": {"C": 10.0},
            "--class-weight no:1,yes:5": {"class_weight": {"no": 1.0, "yes": 5.0}},
        },
        report="--report",
    ),
    "svm --task regress": Call(
        "svm data.csv --target y --exclude gaps --task REGRESS",
        "train_svm",
        named={"target": "y", "exclude": "gaps", "task": "regress"},
        options="--epsilon 0.2 | --bandwidth 2.0 --cv 3",
        report="--report",
    ),
    "ridge": Call(
        "ridge data.csv --target y --exclude gaps --lambda 1 --bandwidth 2",
        "train_ridge",
        named={"target": "y", "exclude": "gaps", "lambda_": 1.0, "bandwidth": 2.0},
        options=f"{RANDOM}{JUDGED}--kernel laplacian | --bandwidth MEDIAN | --weights w | --interval 0.5",
        others={"--lambda 1e-3": {"lambda_": 1e-3}, "--target a": {"target": ("y", "a")}},
        report="--report",
    ),
    "ridge, chosen": Call(
        "ridge data.csv --target y --columns a,b",
        "train_ridge",
        named={"target": "y", "columns": "a,b"},
        options="--criterion Evidence | --criterion cv --cv 3",
        report="--report",
    ),
    "kpca": Call(
        "kpca data.csv --exclude gaps",
        "train_kpca",
        named={"exclude": "gaps"},
        options=f"{KERNEL}{RANDOM}--categorical code | --features nystroem:9 | --scale none | --components 3"
        " | --color kind | --solver Lanczos",
        others={
            "--columns a,b --columns k*": {"columns": ["a", "b", "kind"]},
            "--exclude 'a'": {"exclude": ["gaps", "a"]},
        },
        report="--report",
    ),
    "unmix": Call(
        "unmix data.csv --columns a,b,c,y",
        "train_unmix",
        named={"columns": "a,b,c,y"},
        options=f"{RANDOM}--components 2 --scale none | --contrast HSIC --bandwidth 0.5 | --restarts 2 | --color kind"
        " | --test-fraction 0.3 | --test other.csv",
        report="--report",
    ),
    "cca": Call(
        "cca data.csv --x a,b --y c,y",
        "train_cca",
        named={"x_columns": "a,b", "y_columns": "c,y"},
        options=f"{KERNEL}{RANDOM}--components 1 --scale none | --cv 3 | --features nystroem:9"
        " | --test-fraction 0.3 | --test other.csv | --cluster shop",
        others={"--lambda 0.1": {"lambda_": 0.1}},
        report="--report",
    ),
    "kpca --missing": Call("kpca data.csv --missing drop", "train_kpca", named={"missing": "drop"}, report="--report"),
}


EVERY = pytest.mark.parametrize("name", CALLS)
TESTS = [name for name, call in CALLS.items() if call.report == "-o"]
LEARNERS = [name for name in CALLS if name not in TESTS]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with two small tables."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for name, shift in (("data.csv", 0.0), ("other.csv", 0.5)):
        a, b, c, noise, w = rng.normal(size=(5, 40)).round(6)
        columns = {
            "a": a + shift,
            "b": (a + 0.5 * b).round(6),
            "c": c,
            "code": rng.integers(1, 4, 40),
            "kind": np.where(a + 0.7 * noise > 0, "yes", "no"),
            "shop": [f"s{place // 5}" for place in range(40)],
            "gaps": np.where(rng.random(40) < 0.1, "", c.astype(str)),
            "w": np.abs(w) + 0.1,
            "y": (np.sin(2 * a) + 0.2 * noise).round(6),
        }
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def shell(kerntest):
    """Run a command line as it would be typed."""
    return lambda line, *words: kerntest(*shlex.split(line), *words)


def lasting(document):
    """A report without what differs from run to run."""
    document = json.loads(json.dumps(document))
    document["provenance"].pop("seconds")
    document["warnings"] = sorted(document["warnings"])
    return document


@functools.cache
def without_more_words(name):
    """Return the report of a call as it is; the tables are the same in all tests."""
    return lasting(CALLS[name].result().to_dict())


@pytest.mark.filterwarnings("ignore::kerntest.errors.KerntestWarning")
@pytest.mark.parametrize(
    ("name", "words", "named"),
    [(name, *option) for name, call in CALLS.items() for option in call.options_and_arguments()],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_is_one_call_of_the_library(shell, name, words, named):
    call = CALLS[name]
    outcome = shell(f"{call.words} {words} --json")
    assert outcome.code == 0, outcome.err
    found = lasting(json.loads(outcome.out))
    with errors.as_typed():
        assert_alike(found, lasting(call.result(**named).to_dict()))
    # A word that nobody heard would be found here.
    assert not words or list(differences(found, without_more_words(name)))


@EVERY
def test_the_report_goes_where_it_is_told_in_every_format(shell, folder, name):
    call = CALLS[name]
    shown = shell(f"{call.words} --json")
    document = json.loads(shown.out)
    assert shown.err == "".join(f"warning: {warning}\n" for warning in document["warnings"])
    assert shown.out.endswith("}\n")
    quiet = shell(f"{call.words} --json -q")
    assert (quiet.err, lasting(json.loads(quiet.out))) == ("", lasting(document))
    outcome = shell(f"{call.words} --json -q {call.report} report.json")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert lasting(json.loads((folder / "report.json").read_text(encoding="utf-8"))) == lasting(document)
    assert "wrote report.json\n" in shell(f"{call.words} --json {call.report} report.json").err
    table = list(csv.DictReader(io.StringIO(shell(f"{call.words} -q --format csv").out)))
    rows = document[call.rows] if call.rows else [document]
    assert len(table) == len(rows)
    assert list(table[0])[: len(rows[0])] == list(rows[0]) or "provenance.seed" in table[0]
    lines = shell(f"{call.words} -q --format jsonl").out.splitlines()
    assert [json.loads(line).get("p_value") for line in lines] == [row.get("p_value") for row in rows]
    verbose = shell(f"{call.words} --json -v")
    assert "data.csv: csv with delimiter ',', 40 rows read" in verbose.err
    assert lasting(json.loads(verbose.out)) == lasting(document)


@pytest.mark.parametrize("name", TESTS)
def test_a_gate_is_an_exit_code_and_the_result_is_there(shell, name):
    words = CALLS[name].words
    document = json.loads(shell(f"{words} --json -q").out)
    for gate in ("reject", "accept"):
        outcome = shell(f"{words} --json --fail-on {gate}")
        failed = document["reject"] == (gate == "reject")
        assert outcome.code == (1 if failed else 0)
        assert lasting(json.loads(outcome.out)) == lasting(document)
        assert outcome.err.endswith(f"exit code 1, because of --fail-on {gate}\n") is failed


@EVERY
def test_no_output_replaces_what_is_read_or_another_and_nothing_is_half_written(shell, folder, name, monkeypatch):
    call = CALLS[name]
    before = (folder / "data.csv").read_bytes()
    outcome = shell(f"{call.words} {call.report} ./data.csv")
    assert (outcome.code, outcome.out) == (2, "")
    assert "would replace the data in data.csv" in outcome.err
    for place, code in (("no/report.json", 3), (".", 3), ("''", 2)):
        # Told before the data are looked for.
        outcome = shell(f"{call.words.replace('data.csv', 'nowhere.csv')} {call.report} {place}")
        assert (outcome.code, outcome.out) == (code, "")
        assert "nowhere.csv" not in outcome.err
    (folder / "old.json").write_text("old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    outcome = shell(f"{call.words} --json -q {call.report} old.json")
    assert (outcome.code, outcome.out) == (3, "")
    assert json.loads(outcome.err)["error"]["message"].endswith("no space left on device")
    assert (folder / "old.json").read_text() == "old"
    assert (folder / "data.csv").read_bytes() == before
    assert sorted(file.name for file in folder.iterdir()) == ["data.csv", "old.json", "other.csv"]


@EVERY
def test_stdin_is_a_table_unless_it_is_a_terminal_or_closed(shell, kerntest, name, monkeypatch):
    call = CALLS[name]
    words = shlex.split(call.words.replace("data.csv", "-"))
    piped = json.loads(kerntest(*words, "--json", "-q", stdin="data.csv").out)
    named = json.loads(shell(f"{call.words} --json -q").out)
    assert piped["provenance"]["inputs"][0]["name"] == "<stdin>"
    # Names of files are said in other places too.
    assert_alike(*({**one, "provenance": 0, "warnings": 0, "decision": 0} for one in (piped, named)))
    for stdin, told in ((Terminal(), "stdin is a terminal"), (None, "stdin is closed")):
        monkeypatch.setattr(sys, "stdin", stdin)
        outcome = kerntest(*words)
        assert (outcome.code, outcome.out) == (2, "")
        assert told in outcome.err


ERRORS = [
    (errors.UsageError("no such column", hint="look"), 2),
    (errors.DataError("bad line", where={"file": "x", "line": 3}), 3),
    (FileNotFoundError(2, "No such file or directory", "x.csv"), 3),
    (errors.UndecidedError("degenerate"), 4),
    (MemoryError(), 4),
    (errors.ModelError("truncated"), 5),
    (ZeroDivisionError("oops"), 70),
    (EOFError(), 70),
    (RecursionError("deep"), 70),
    (KeyboardInterrupt(), 130),
]


@pytest.fixture
def failing(monkeypatch):
    """Let reading a table fail."""

    def let(error):
        def fail(*_, **__):
            raise error

        for module in [module for name, module in sys.modules.items() if name.startswith("kerntest.")]:
            if hasattr(module, "read_table"):
                monkeypatch.setattr(module, "read_table", fail)

    return let


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "name", ["mmd", "hsic", "hsic --pairwise", "hsic --joint", "svm", "ridge", "kpca", "unmix", "cca"]
)
def test_every_error_has_its_exit_code_and_leaves_stdout_empty(shell, failing, monkeypatch, *, name, error, code):
    words = CALLS[name].words
    assert shell(words).code == 0
    failing(error)
    outcome = shell(words)
    assert (outcome.code, outcome.out) == (code, "")
    assert "Traceback" not in outcome.err
    if isinstance(error, errors.KerntestError):
        assert outcome.err.startswith(f"error: {error.message}\n")
    as_json = shell(f"{words} --json")
    assert (as_json.code, as_json.out) == (code, "")
    document = json.loads(as_json.err)
    assert document["schema"] == "kerntest.error/1"
    assert sorted(document["error"]) == ["code", "exit_code", "hint", "message", "where"]
    assert document["error"]["exit_code"] == code
    if code == 70:
        assert outcome.err.splitlines()[1].startswith("hint: this is a bug")
        monkeypatch.setenv("KERNTEST_DEBUG", "1")
        assert "Traceback" in shell(words).err


STRANGE = "[bold]a_rather_long_name_of_a_column[/bold]_:smile:"


@pytest.mark.parametrize("width", [40, 63, 80, 120, 250])
@pytest.mark.parametrize(
    "words",
    [
        "mmd data.csv other.csv --exclude gaps",
        "hsic data.csv --x *rather* --y c",
        "hsic data.csv --pairwise --exclude gaps,shop",
        "hsic data.csv --target y --select 2 --columns *rather*,c",
        "hsic data.csv --joint *rather*,c",
        "svm data.csv --target kind --exclude gaps --grid --cv 2",
        "svm data.csv --target shop --exclude gaps --test-fraction 0.4",
        "ridge data.csv --target *rather* --columns c",
        "ridge data.csv --target y --columns *rather*",
        "kpca data.csv --exclude gaps --components 5",
    ],
)
def test_nothing_is_cut_off_at_any_width(shell, folder, monkeypatch, words, width):
    monkeypatch.setenv("COLUMNS", str(width))
    # What would be markup, and a command to the terminal.
    for table in ("data.csv", "other.csv"):
        text = (folder / table).read_text(encoding="utf-8")
        (folder / table).write_text(text.replace("a,b,", f"{STRANGE},b\x1b[31m,", 1), encoding="utf-8")
    outcome = shell(words)
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= width
    assert "\x1b" not in outcome.out
    assert "…" not in outcome.out
    assert "..." in outcome.out or STRANGE in "".join(outcome.out.split()) or "--json has" in outcome.out


def test_files_and_lists_may_be_written_in_several_ways(shell, folder):
    shutil.copy(folder / "other.csv", folder / "-x.csv")
    plain = json.loads(shell(f"{CALLS['mmd'].words} --json --columns a,b").out)
    for words in ("mmd --columns a,b --json data.csv -- -x.csv", "mmd data.csv other.csv --json --columns 'a,\nb'"):
        assert json.loads(shell(words).out)["p_value"] == plain["p_value"]


@pytest.mark.parametrize(
    ("words", "shown", "caret"),
    [
        ("mmd data.csv other.csv --exclude gaps --kernel 'linear + gausian(1.5)'", "linear + gausian(1.5)", 9),
        ("hsic data.csv --x a --y b --kernel-x linear --kernel-y gausian(2)", "gausian(2)", 0),
        ("hsic data.csv --x a --y b --kernel-x 'z: linear' --kernel-y linear", "z: linear", 0),
        ("svm data.csv --target kind --exclude gaps --kernel gausian", "gausian", 0),
        ("kpca data.csv --exclude gaps --kernel gausian", "gausian", 0),
    ],
)
def test_an_error_in_a_kernel_points_at_its_place(shell, words, shown, caret):
    outcome = shell(words)
    assert outcome.code == 2
    assert outcome.err.splitlines()[1:3] == [f"  {shown}", f"  {' ' * caret}^"]
    assert "\nhint: " in outcome.err


APPLIED = {
    "predict svm.kt other.csv": ("predict_file", {}),
    "predict svm.kt other.csv --proba --decision": ("predict_file", {"proba": True, "decision": True}),
    "predict svm.kt other.csv --keep shop --keep a*": ("predict_file", {"keep": ["shop", "a"]}),
    "predict ridge.kt other.csv --std --interval 0.8": ("predict_file", {"std": True, "interval": 0.8}),
    "predict ridge.kt gaps.csv --missing EMPTY": ("predict_file", {"missing": "empty"}),
    "transform kpca.kt other.csv --components 1": ("transform_file", {"components": 1}),
    "transform kpca.kt other.csv --denoise": ("transform_file", {"reconstruct": True}),
    "transform kpca.kt other.csv --residual --unknown ignore": (
        "transform_file",
        {"residual": True, "unknown": "ignore"},
    ),
}


@pytest.mark.parametrize("words", APPLIED)
def test_applying_a_model_is_one_call_of_the_library(shell, kerntest, folder, words):
    fits = {"svm": "--target kind --probability", "ridge": "--target y", "kpca": "--color kind"}
    kind = words.split()[1].removesuffix(".kt")
    assert shell(f"{kind} data.csv --columns a,b {fits[kind]} -q -o {kind}.kt").code == 0
    (folder / "gaps.csv").write_text("a,b\n1,2\n,3\n", encoding="utf-8")
    function, named = APPLIED[words]
    plain = shell(words)
    report = json.loads(shell(f"{words} -o rows.csv --json -q").out)
    model, data = words.split()[1:3]
    with errors.as_typed():
        expected = getattr(package, function)(model, data, output="expected.csv", **named).to_dict()
    unlike = {"seconds": 0, "output": 0}
    assert_alike(report | unlike, json.loads(json.dumps(expected)) | unlike)
    rows = (folder / "rows.csv").read_text(encoding="utf-8")
    assert kerntest(*shlex.split(words.replace(f" {data}", " -")), stdin=data).out == rows
    assert plain.out == rows == (folder / "expected.csv").read_text(encoding="utf-8")
    assert "warning: " not in plain.err or report["warnings"]
    told = shell(f"{words} -o rows.csv")
    assert "wrote rows.csv" in told.err
    assert f"{report['rows']} rows" in told.out or f"{report['rows']} row" in told.out
