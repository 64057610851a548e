"""Whatever is wrong: the right exit code, one line that says what, one that says what to do, and nothing on stdout."""

import json
import os
import shlex
import shutil

import numpy as np
import pytest
from command_line import run_process

RIDGE = "ridge machines.csv --target wear_um"
FIXED = "--lambda 0.1 --bandwidth median"
BANDWIDTH = "--bandwidth must be auto, median, or positive numbers"
ALPHA = "--alpha must be a number between 0 and 1, both excluded, not"
# What is typed among the sample data and some files with faults; the exit code, the message and the hint.
MISTAKES = [
    ("mmd x.csv y.csv --bandwith 1", 2, "no such option: --bandwith", "did you mean --bandwidth?"),
    ("mmd x.csv y.csv --columns aa", 2, "column 'aa' is in neither x.csv nor y.csv", "did you mean 'a'?"),
    ("mmd x.csv y.csv --exclude z", 2, "column 'z' is in neither x.csv nor y.csv", "columns are a, b"),
    ("mmd x.csv y.csv --exclude a,b", 2, "no column of x.csv and y.csv is selected", "exclude fewer"),
    *((f"mmd x.csv y.csv --alpha {alpha}", 2, f"{ALPHA} '{alpha}'", "--help") for alpha in ("0", "1", "abc")),
    *((f"mmd x.csv y.csv --bandwidth {value}", 2, BANDWIDTH, "--help") for value in ("0", "-1", "nan", "abc")),
    (
        "mmd x.csv y.csv --kernel gaussian(1.5) --bandwidth 2",
        2,
        "the kernel 'gaussian(1.5)' leaves no bandwidth open: --bandwidth has nothing to set",
        "leave out one of the two",
    ),
    (
        "mmd x.csv y.csv --null moments --kernel gaussian --bandwidth 1,2",
        2,
        "this null judges one kernel: give one bandwidth",
        "--null permutation judges several bandwidths together",
    ),
    ("mmd y.cvs y.csv", 3, "y.cvs does not exist", "did you mean 'y.csv'?"),
    ("mmd ragged.csv y.csv", 3, "ragged.csv, line 3: expected 2 fields, found 1", "delimiter"),
    ("mmd x.csv ragged.csv", 3, "ragged.csv, line 3: expected 2 fields, found 1", "delimiter"),
    ("mmd folder y.csv", 3, "folder is a folder without Parquet files", "name one file"),
    ("mmd text.parquet y.csv", 3, "text.parquet is named .parquet but it is not Parquet", "CSV"),
    ("mmd same.csv same.csv", 3, "no column of same.csv and same.csv is left to compare", ""),
    ("mmd x.csv y.csv --kernel exponential(gain=1e6)", 4, "overflows on these", "scale"),
    ("mmd x.csv y.csv -o no/such/folder.json", 3, "cannot write no/such/folder.json", ""),
    ("mmd x.csv y.csv -o .", 3, "cannot write .", ""),
    ("hsic machines.csv", 2, "which of the 8 columns of machines.csv are x, and which are y?", ""),
    ("hsic machines.csv --x temp_c,wear_um --y wear_um", 2, "column 'wear_um' is in both --x and --y", ""),
    ("hsic machines.csv --joint line,nowhere", 2, "column 'nowhere' is not in machines.csv", ""),
    ("hsic machines.csv --pairwise --bandwidth 1e300", 2, "must be between 1e-75", "found from the data"),
    ("hsic river.csv --x rain_mm --y level_cm --time-series --min-lag 300", 2, "no shift of 400 rows", ""),
    ("hsic gaussian.csv before.csv", 3, "gaussian.csv has 500 rows and before.csv 400: rows cannot be paired", ""),
    ("hsic machines_with_missing.csv --x line --y wear_um", 3, "has 5 missing values: line 2, wear_um 3", ""),
    ("hsic machines_with_missing.csv --pairwise --missing error", 3, "10 missing values: line 2, power_kw 5", ""),
    ("hsic nowhere.csv --pairwise", 3, "nowhere.csv does not exist", ""),
    ("svm iris.csv", 2, "--task classify needs --target", "--target names"),
    ("svm one.csv --target species", 3, "is setosa in every row: there is one class only", "two classes"),
    ("svm few.csv --target species --cv 9", 3, "into 9 folds", "at most 6"),
    ("svm uneven.csv --target uneven --nu 0.9", 2, "nu = 0.9 is infeasible", "--nu 0."),
    ("svm same.csv --target y", 3, "no column is left to learn from", "two different values"),
    ("svm unlabelled.csv --target species", 3, "species 1 (the first in line 3)", "--missing drop"),
    ("svm many.csv --target y", 3, "10,000 different values", "--task regress"),
    ("svm iris.csv --target species --task regress", 3, "holds text", "--task classify"),
    ("svm iris.csv --target species --test odd.csv", 3, "has 'rose', which no row of the training part has", "setosa"),
    ("svm iris.csv --target species --class-weight setosa:nan", 2, "must be positive and finite, not nan", "above 0"),
    ("svm iris.csv --target species --bandwidth 1,2", 2, "a learner has one bandwidth, not 1.0, 2.0", "--grid"),
    ("kpca iris.csv --color spesies", 2, "column 'spesies' is not in iris.csv", "'species'"),
    ("kpca iris.csv --bandwidth auto", 2, "--bandwidth must be median or a positive number, not 'auto'", "kpca --help"),
    ("kpca iris.csv --bandwidth 1e-300", 2, "bandwidth of gaussian must be between 1e-75", "found from the data"),
    ("kpca iris.csv --components 0", 2, "--components must be a whole number from 1", "--help"),
    ("kpca iris.csv --features nystrom:50", 2, "'nystrom:50' are no features", "nystroem:500"),
    ("kpca before.csv --features fourier:50", 2, "random Fourier features are for the Gaussian", "nystroem"),
    ("kpca iris.csv --plot p.gif", 2, "cannot be drawn into p.gif", ".png"),
    ("kpca big.csv", 3, "line 3: column 'a' holds '1e400', which is beyond 1.8e308", ""),
    ("kpca iris.csv --exclude species -o species.kt", 3, "species.kt exists already", "--force"),
    ("transform species.kt iris.csv", 5, "species.kt holds a model of kind 'svm'", "kerntest predict"),
    ("predict shop.kt after.csv", 5, "kind 'kpca'", "kerntest transform shop.kt DATA"),
    ("transform shop.kt iris.csv", 3, "order_value_eur", ""),
    ("transform shop.kt with_missing.csv", 3, "with_missing.csv, line 8", "--missing drop"),
    ("transform shop.kt after.csv --components 9", 2, "shop.kt has 5 components, not 9", "fit it again"),
    ("transform shop.kt after.csv -o scores.txt", 2, ".csv or .parquet", "scores.csv"),
    ("transform shop.kt after.csv --denoise --keep items", 2, "'items' of after.csv cannot be kept", "rename"),
    ("predict species.kt late.csv", 3, "line 152", "correct the value"),
    ("inspect newer.kt", 5, "newer.kt", ""),
    ("transform corrupted.kt after.csv", 5, "corrupted.kt", ""),
    ("inspect text.kt", 5, "text.kt", ""),
    ("kpca iris.csv -o iris.csv", 2, "would replace the data", "another file"),
    ("ridge machines.csv", 2, "--target is missing", ""),
    (f"{RIDGE} --weights wear_um", 2, "both target and weight", ""),
    (f"{RIDGE} --test t.csv --test-fraction 0.5", 2, "contradict", ""),
    ("ridge river.csv --target level_cm --kernel gaussian(1) --bandwidth 2", 2, "no bandwidth open", ""),
    ("ridge machines.csv --target line", 3, "not numbers to predict", ""),
]


@pytest.fixture
def here(good, shop):
    """Stand among the good files, the sample data and files with something wrong in them."""
    for file in shop.iterdir():
        if file.suffix in {".csv", ".kt"}:
            shutil.copy(file, good)
    (good / "folder").mkdir()
    (good / "text.parquet").write_bytes((good / "x.csv").read_bytes())
    content = (shop / "before.parquet").read_bytes()
    (good / "cut.parquet").write_bytes(content[: len(content) // 2])
    model = (shop / "species.kt").read_bytes()
    (good / "truncated.kt").write_bytes(model[: len(model) // 2])
    (good / "newer.kt").write_bytes(model.replace(b'"format_version": 1', b'"format_version": 2'))
    model = (shop / "shop.kt").read_bytes()
    (good / "corrupted.kt").write_bytes(model[:9000] + bytes([model[9000] ^ 0xFF]) + model[9001:])
    (good / "text.kt").write_text("a,b\n1,2\n")
    lines = (good / "iris.csv").read_text().splitlines()
    second = lines[2].rpartition(",")[0]
    files = {
        "one": lines[:51],
        "ragged": ["a,b", "1,2", "3", "4,5"],
        "few": [lines[0], *lines[48:54]],
        "same": ["a,b,y", *["1,2,1"] * 20],
        "unlabelled": [*lines[:2], f"{second},", *lines[3:]],
        "many": ["a,y", *(f"{k % 97},{k}" for k in range(10_000))],
        "odd": [lines[0], lines[1], f"{second},rose"],
        "late": [*lines, "oops,1,1,1,setosa"],
        "big": ["a,b", "1,2", "1e400,3", "4,5"],
        "uneven": [f"{lines[0]},uneven", *(f"{line},{'a' if k < 10 else 'b'}" for k, line in enumerate(lines[1:]))],
    }
    for name, content in files.items():
        (good / f"{name}.csv").write_text("\n".join(content) + "\n")
    return good


def check_failure(outcome, code, message, hint=""):
    lines = outcome.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    hints = [line for line in lines if line.startswith("hint: ")]
    assert (outcome.code, outcome.out) == (code, "")
    assert errors == lines[:1]
    assert message in errors[0]
    assert hints == lines[-1:] != ["hint: "]
    assert hint in hints[0]
    assert "Traceback" not in outcome.err
    return lines


@pytest.mark.parametrize(("line", "code", "message", "hint"), MISTAKES, ids=[line for line, *_ in MISTAKES])
def test_a_mistake_is_told_in_two_lines_and_writes_nothing(kerntest, here, *, line, code, message, hint):
    before = {path: path.read_bytes() for path in here.iterdir() if path.is_file()}
    assert len(check_failure(kerntest(*shlex.split(line)), code, message, hint)) == 2
    if not line.startswith(("predict", "transform")):
        assert json.loads(kerntest(*shlex.split(line), "--json").err)["error"]["exit_code"] == code
    assert {path: path.read_bytes() for path in here.iterdir() if path.is_file()} == before


def test_an_empty_stdin_is_3(kerntest, good):
    del good
    check_failure(kerntest("mmd", "-", "y.csv", stdin=os.devnull), 3, "<stdin> is empty")


@pytest.mark.parametrize(
    "words", ["mmd x.csv y.csv --kernel", "hsic x.csv --x a --y b --kernel-x linear --kernel-y", "kpca x.csv --kernel"]
)
def test_a_kernel_that_cannot_be_read_is_2_and_shows_where(kerntest, good, words):
    del good
    text = "laplacian + 0.5*gauss!an"
    lines = check_failure(kerntest(*words.split(), text), 2, "unknown kernel 'gauss' at character 17")
    assert lines[1:3] == [f"  {text}", f"  {'^':>17}"]


@pytest.mark.parametrize("null", ["permutation", "moments"])
def test_a_kernel_that_sees_nothing_is_4(kerntest, good, null):
    rng = np.random.default_rng(0)
    for name in ("x.csv", "y.csv"):
        np.savetxt(good / name, rng.normal(size=(20, 2)), delimiter=",", header="a,b", comments="")
    outcome = kerntest("mmd", "x.csv", "y.csv", "--kernel", "gaussian(1e-9)", "--null", null)
    check_failure(outcome, 4, "the kernel 'gaussian(1e-09)' finds all pairs of different rows equally", "--bandwidth")


def test_a_failure_leaves_the_old_result_and_outranks_a_gate(kerntest, good):
    (good / "old.json").write_text("old", encoding="utf-8")
    outcome = kerntest("mmd", "x.csv", "no.csv", "-o", "old.json", "--fail-on", "reject", "--json")
    assert (outcome.code, outcome.out) == (3, "")
    error = json.loads(outcome.err)["error"]
    assert (error["code"], error["where"], bool(error["hint"])) == ("data.missing_file", {"file": "no.csv"}, True)
    assert (good / "old.json").read_text(encoding="utf-8") == "old"


@pytest.mark.thorough
def test_the_same_through_a_whole_process(good):
    outcome = run_process("mmd", "x.csv", "y.csv", "--kernel", "exponential(gain=1e6)", cwd=good)
    check_failure(outcome, 4, "overflows")
