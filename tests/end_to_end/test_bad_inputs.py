"""Whatever is wrong: the right exit code, one line that says what, one that says what to do, and nothing on stdout."""

import json
import shlex
import shutil

import numpy as np
import pytest

RIDGE = "ridge machines.csv --target wear_um"
FIXED = "--lambda 0.1 --bandwidth median"
BANDWIDTH = "--bandwidth must be auto, median, or positive numbers"
GATED = "svm iris.csv --target species --test-fraction 0.3 --fail-on"
ALPHA = "--alpha must be a number between 0 and 1, both excluded, not"
# What does not go with what, in tables that are not there: whoever looked for them would say so.
APART = [
    ("hsic d.csv y.csv --null moments --permutations 9", "--permutations", "--null moments", "a curve"),
    ("svm d.csv --target y --select-by f1", "--select-by", "a machine without --grid or --cv", "add --grid"),
    ("hsic d.csv --pairwise --target a", "--pairwise", "--target", "choose one"),
    ("hsic d.csv --pairwise --select 2", "--select", "--pairwise", ""),
    ("hsic d.csv y.csv --joint a,b", "a second file", "--joint", "give one file"),
    ("hsic d.csv --time-series --permutations 9", "--permutations", "--time-series", "--min-lag"),
    ("hsic d.csv --time-series --statistic coco", "--statistic", "--time-series", "HSIC"),
    ("hsic d.csv --time-series --pairwise", "--time-series", "--pairwise", ""),
    ("hsic d.csv --joint a,b --columns a", "--columns", "--joint", "--joint a,b,c"),
    ("hsic d.csv --joint a,b --time-series", "--time-series", "--joint", ""),
    ("hsic d.csv --joint a,b --null gamma", "--null", "--joint", "one null"),
    ("hsic d.csv --pairwise --kernel-x delta", "--kernel-x", "--pairwise", "--kernel is the kernel"),
    ("hsic d.csv --pairwise --null moments", "--null", "--pairwise", "moments p-value"),
    ("hsic d.csv --pairwise --scale none", "--scale", "--pairwise", "standardised"),
    ("hsic d.csv --target a --y b", "--y", "--target", "--columns"),
    ("hsic d.csv --target a --select 2 --correction bh", "--correction", "--select", ""),
    ("hsic d.csv --target a --select 2 --kernel delta", "--kernel", "--select", "of its own"),
    ("hsic d.csv --target a --select 2 --plot p.png", "--plot", "--select", "--target NAME --plot"),
    ("svm d.csv --target kind --C 2 --nu 0.1", "--C", "--nu", ""),
    ("svm d.csv --target kind --C 2 --hard-margin", "--C", "--hard-margin", ""),
    ("svm d.csv --target kind --C 2 --task one-class", "--C", "--task one-class", ""),
    ("svm d.csv --target kind --C 2 --method mean", "--C", "--method mean", ""),
    ("svm d.csv --target kind --bandwidth 2 --grid", "--bandwidth", "--grid", ""),
    ("svm d.csv --target kind --epsilon 0 --task one-class", "--epsilon", "--task one-class", ""),
    ("mmd d.csv o.csv --null moments --permutations 9", "--permutations", "--null moments", "a curve"),
    ("mmd d.csv o.csv --null pearson --resampling blocks", "--resampling", "--null pearson", "a curve"),
    ("mmd d.csv o.csv --null moments --judge smallest", "--judge", "--null moments", "a curve"),
    ("mmd d.csv o.csv --features fourier:9 --method exact", "--features", "--method exact", "alone"),
]
# What is typed among the sample data and some files with faults; by its exit code: the message and the hint.
MISTAKES = {
    2: [
        ("mmd x.csv y.csv --bandwith 1", "no such option: --bandwith", "did you mean --bandwidth?"),
        ("mmd x.csv y.csv --gamma 2", "no such option: --gamma", "1 / sqrt(2 gamma) here: --bandwidth"),
        ("ridge x.csv --target y --alpha 1", "no such option: --alpha", "it is --lambda here"),
        ("transform m.kt x.csv --inverse", "no such option: --inverse", "it is --reconstruct here"),
        ("mmd x.csv y.csv --bogus", "no such option: --bogus", "`kerntest mmd --help`"),
        ("mmd x.csv y.csv --columns aa", "column 'aa' is in neither x.csv nor y.csv", "did you mean 'a'?"),
        ("mmd x.csv y.csv --exclude z", "column 'z' is in neither x.csv nor y.csv", "columns are a, b"),
        ("mmd x.csv y.csv --exclude a,b", "no column of x.csv and y.csv is selected", "exclude fewer"),
        *((f"mmd x.csv y.csv --alpha {alpha}", f"{ALPHA} '{alpha}'", "--help") for alpha in ("0", "1", "abc")),
        *((f"mmd x.csv y.csv --bandwidth {value}", BANDWIDTH, "--help") for value in ("0", "-1", "nan", "abc")),
        (
            "mmd x.csv y.csv --kernel gaussian(1.5) --bandwidth 2",
            "the kernel 'gaussian(1.5)' leaves no bandwidth open: --bandwidth has nothing to set",
            "leave out one of the two",
        ),
        (
            "mmd x.csv y.csv --null moments --kernel gaussian --bandwidth 1,2",
            "this null judges one kernel: give one bandwidth",
            "--null permutation judges several bandwidths together",
        ),
        ("hsic machines.csv", "which of the 8 columns of machines.csv are x, and which are y?", ""),
        ("hsic machines.csv --x temp_c,wear_um --y wear_um", "column 'wear_um' is in both --x and --y", ""),
        ("hsic machines.csv --joint line,nowhere", "column 'nowhere' is not in machines.csv", ""),
        ("hsic machines.csv --pairwise --bandwidth 1e300", "must be between 1e-75", "found from the data"),
        ("hsic river.csv --x rain_mm --y level_cm --time-series --min-lag 300", "no shift of 400 rows", ""),
        ("svm iris.csv", "--task classify needs --target", "--target names"),
        ("svm uneven.csv --target uneven --nu 0.9", "nu = 0.9 is infeasible", "--nu 0."),
        ("svm iris.csv --target species --class-weight setosa:nan", "must be positive and finite, not nan", "above 0"),
        ("svm iris.csv --target species --bandwidth 1,2", "a learner has one bandwidth, not 1.0, 2.0", "--grid"),
        ("kpca iris.csv --color spesies", "column 'spesies' is not in iris.csv", "'species'"),
        (
            "kpca iris.csv --bandwidth auto",
            "--bandwidth must be median or a positive number, not 'auto'",
            "kpca --help",
        ),
        ("kpca iris.csv --bandwidth 1e-300", "bandwidth of gaussian must be between 1e-75", "found from the data"),
        ("kpca iris.csv --components 0", "--components must be a whole number from 1", "--help"),
        ("kpca iris.csv --features nystrom:50", "'nystrom:50' are no features", "nystroem:500"),
        ("kpca before.csv --features fourier:50", "random Fourier features are for the Gaussian", "nystroem"),
        ("kpca iris.csv --plot p.gif", "cannot be drawn into p.gif", ".png"),
        ("transform shop.kt after.csv --components 9", "shop.kt has 5 components, not 9", "fit it again"),
        ("transform shop.kt after.csv -o scores.txt", ".csv, .jsonl or .parquet", "scores.csv"),
        ("transform shop.kt after.csv --denoise --keep items", "'items' of after.csv cannot be kept", "rename"),
        ("kpca iris.csv -o pc.json", "pc.json would hold a model", "-o pc.kt keeps the model, --report pc.json is for"),
        ("kpca iris.csv -o pc.svg", "pc.svg would hold a model", "--plot pc.svg is for the plot"),
        ("kpca iris.csv -o iris.csv", "would replace the data", "another file"),
        ("ridge machines.csv", "--target is missing", ""),
        (f"{RIDGE} --weights wear_um", "both target and weight", ""),
        (f"{RIDGE} --test t.csv --test-fraction 0.5", "contradict", ""),
        ("ridge river.csv --target level_cm --kernel gaussian(1) --bandwidth 2", "no bandwidth open", ""),
        (f"{GATED} acuracy<0.9", "--fail-on: the report has no 'acuracy'", "did you mean 'accuracy'?"),
        (f"{GATED} test.acuracy<0.9", "--fail-on: the report has no 'test.acuracy'", "did you mean 'test.accuracy'?"),
        (
            f"{GATED} kernel<1",
            "'kernel' is no number in the report",
            "numbers are n_train, n_test, rmse, r2, accuracy, ",
        ),
        (f"{GATED} zzz<1", "the report has no 'zzz'", "numbers are n_train, n_test, "),
        (f"{GATED} 'accuracy<0.9 and 1>0'", "the report has no 'accuracy<0.9 and 1'", ""),
        # The tables and models are not there either.
        ("mmd d.csv o.csv --columns ''", "--columns names no column", "leave it out"),
        ("mmd d.csv o.csv --engine loca", "--engine must be auto, local, gpu or dask, not 'loca'", "'local'"),
        (
            "hsic d.csv o.csv --engine local --scheduler tcp://a:1",
            "a scheduler is for the engine dask, not for local",
            "",
        ),
        ("hsic d.csv o.csv --memory much", "'much' is no amount of memory", ""),
        ("hsic d.csv o.csv --dry-run -q", "--dry-run and -q contradict each other", ""),
        ("svm d.csv --target y --engine dask", "no such option: --engine", ""),
        ("mmd d.csv o.csv --witness w.csv -o ./w.csv", "-o and --witness would both write w.csv", ""),
        ("mmd d.csv o.csv -o r.xlsx", "a report is written as .txt, .json", "-o r.csv"),
        ("mmd d.csv o.csv -o r.csv.gz", "not as .gz", "-o r.csv"),
        ("svm d.csv --target y --report r.XLSX", "not as .xlsx", "--report r.csv"),
        ("hsic - -", "DATA and Y cannot both be read from stdin", "as a file"),
        ("ridge d.csv", "--target is missing", "it names the column to predict"),
        ("ridge d.csv --target y --lambda 0", "--lambda must be a positive number, not '0'", ""),
        ("ridge d.csv --target y --criterion aic", "--criterion must be loo, gcv, cv or evidence, not 'aic'", ""),
        ("ridge d.csv --target y --interval 90", "--interval must be a number between 0 and 1", ""),
        ("ridge d.csv --target y -o m.kt --plot m.kt", "-o and --plot would both write m.kt", ""),
        ("svm d.csv --target y -o x --report x", "-o and --report would both write x", ""),
        (
            "ridge d.csv --target y --bandwidth 1,2",
            "a learner has one bandwidth, not 1.0, 2.0",
            "auto, median or a number",
        ),
        ("svm d.csv --target y --bandwidth 1,2", "a learner has one bandwidth, not 1.0, 2.0", "--grid tries several"),
        ("svm d.csv --target y -o -", "--output writes a file, not the standard output", ""),
        (
            "svm d.csv --target y --plot -",
            "--plot and the result would both go to the standard output",
            "--report FILE",
        ),
        ("kpca d.csv --bandwidth auto", "--bandwidth must be median or a positive number, not 'auto'", ""),
        ("kpca d.csv --bandwidth 1,2", "--bandwidth must be median or a positive number, not '1,2'", ""),
        ("kpca d.csv --bandwidth nan", "--bandwidth must be median or a positive number, not 'nan'", ""),
        ("kpca d.csv --bandwidth 0", "--bandwidth must be median or a positive number, not '0'", ""),
        ("predict m.kt n.csv --interval 90", "--interval must be a number between 0 and 1", ""),
        ("predict m.kt n.csv --report -", "--report - is for the report, and stdout gets the pred", ""),
        (
            "transform m.kt n.csv --report -",
            "--report - is for the report, and stdout gets the s",
            "-o FILE.csv puts the scores",
        ),
        (
            "predict m.kt n.csv --fail-on incomplet>0",
            "--fail-on: the report has no 'incomplet'",
            "did you mean 'incomplete'?",
        ),
        ("predict m.kt n.csv --fail-on model>0", "--fail-on: 'model' is no number in the report", "numbers are rows, "),
        ("mmd d.csv o.csv --fail-on zzz>0", "--fail-on: the report has no 'zzz'", "numbers are "),
        ("hsic d.csv o.csv --fail-on zzz>0", "--fail-on: the report has no 'zzz'", "numbers are "),
        (
            "svm d.csv --target y --fail-on accuracy",
            "must be NAME<NUMBER, with <, <=, > or >=, not 'accuracy'",
            "quote it for the shell",
        ),
        ("svm d.csv --target y --fail-on accuracy==1", "must be NAME<NUMBER", "a number is below or above a limit"),
        ("svm d.csv --target y --fail-on accuracy<nan", "must be NAME<NUMBER", "quote"),
        ("svm d.csv --target y --fail-on reject", "must be NAME<NUMBER", "quote"),
        (
            "mmd d.csv o.csv --fail-on rejct",
            "must be reject, accept, same, differ, undecided or NAME<NUMBER",
            "did you mean 'reject'?",
        ),
        ("mmd d.csv o.csv --fail-on efect_size>1", "the report has no 'efect_size'", "did you mean 'effect_size'?"),
        *((line, f"{one} does not go with {other}", hint) for line, one, other, hint in APART),
    ],
    3: [
        ("mmd y.cvs y.csv", "y.cvs does not exist", "did you mean 'y.csv'?"),
        ("mmd ragged.csv y.csv", "ragged.csv, line 3: expected 2 fields, found 1", "delimiter"),
        ("mmd x.csv ragged.csv", "ragged.csv, line 3: expected 2 fields, found 1", "delimiter"),
        ("mmd folder y.csv", "folder is a folder without Parquet files", "name one file"),
        ("mmd text.parquet y.csv", "text.parquet is named .parquet but it is not Parquet", "CSV"),
        ("mmd x.csv y.csv -o no/such/folder.json", "cannot write no/such/folder.json", ""),
        ("mmd x.csv y.csv -o .", "cannot write .", ""),
        ("hsic gaussian.csv before.csv", "gaussian.csv has 500 rows and before.csv 400: rows cannot be paired", ""),
        ("hsic machines_with_missing.csv --x line --y wear_um", "has 5 missing values: line 2, wear_um 3", ""),
        ("hsic machines_with_missing.csv --pairwise --missing error", "10 missing values: line 2, power_kw 5", ""),
        ("hsic nowhere.csv --pairwise", "nowhere.csv does not exist", ""),
        ("svm one.csv --target species", "is setosa in every row: there is one class only", "two classes"),
        ("svm few.csv --target species --cv 9", "into 9 folds", "at most 6"),
        ("svm same.csv --target y", "there is one class only", "two classes"),
        ("svm unlabelled.csv --target species", "species 1 (the first in line 3)", "--missing drop"),
        ("svm many.csv --target y", "10,000 different values", "--task regress"),
        ("svm iris.csv --target species --task regress", "holds text", "--task classify"),
        ("svm iris.csv --target species --test odd.csv", "has 'rose', which no row of the training part has", "setosa"),
        ("kpca big.csv", "line 3: column 'a' holds '1e400', which is beyond 1.8e308", ""),
        ("kpca iris.csv --exclude species -o species.kt", "species.kt exists already", "--force"),
        ("transform shop.kt iris.csv", "order_value_eur", ""),
        ("transform shop.kt with_missing.csv", "with_missing.csv, line 8", "--missing drop"),
        ("predict species.kt late.csv", "line 152", "correct the value"),
        ("ridge machines.csv --target line", "not numbers to predict", ""),
    ],
    4: [
        ("mmd x.csv y.csv --kernel exponential(gain=1e6)", "overflows on these", "scale"),
    ],
    5: [
        ("transform species.kt iris.csv", "species.kt holds a model of kind 'svm'", "kerntest predict"),
        ("predict shop.kt after.csv", "kind 'kpca'", "kerntest transform shop.kt DATA"),
        ("inspect newer.kt", "newer.kt", ""),
        ("transform corrupted.kt after.csv", "corrupted.kt", ""),
        ("inspect text.kt", "text.kt", ""),
    ],
}


def good_files(folder):
    """Write two good files, `x.csv` and `y.csv`, with the columns a and b."""
    rows = [(0.5, 2), (1.25, 3), (-0.75, 5), (2.0, 1), (0.25, 4), (1.5, 2.5)]
    for name, shift in (("x.csv", 0.0), ("y.csv", 0.125)):
        lines = ["a,b", *(f"{a + shift},{b - 2 * shift}" for a, b in rows)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def good(tmp_path, monkeypatch):
    """Stand in a folder with two good files alone."""
    good_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def faulty(tmp_path_factory, shop):
    """Return a folder with good files, the sample data and files with something wrong in them."""
    folder = tmp_path_factory.mktemp("faulty")
    good_files(folder)
    for file in shop.iterdir():
        if file.suffix in {".csv", ".kt"}:
            shutil.copy(file, folder)
    (folder / "folder").mkdir()
    (folder / "text.parquet").write_bytes((folder / "x.csv").read_bytes())
    model = (shop / "species.kt").read_bytes()
    (folder / "newer.kt").write_bytes(model.replace(b'"format_version": 1', b'"format_version": 2'))
    model = (shop / "shop.kt").read_bytes()
    (folder / "corrupted.kt").write_bytes(model[:9000] + bytes([model[9000] ^ 0xFF]) + model[9001:])
    (folder / "text.kt").write_text("a,b\n1,2\n")
    lines = (folder / "iris.csv").read_text().splitlines()
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
        (folder / f"{name}.csv").write_text("\n".join(content) + "\n")
    return folder, contents_of(folder)


def contents_of(folder):
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


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


EVERY = [(code, *row) for code, rows in MISTAKES.items() for row in rows]


@pytest.mark.parametrize(("code", "line", "message", "hint"), EVERY, ids=[line for _, line, *_ in EVERY])
def test_a_mistake_is_told_in_two_lines_and_writes_nothing(kerntest, faulty, monkeypatch, *, code, line, message, hint):
    folder, before = faulty
    monkeypatch.chdir(folder)
    words = shlex.split(line)
    assert len(check_failure(kerntest(*words), code, message, hint)) == 2
    if not line.startswith(("predict", "transform")):
        assert json.loads(kerntest(*words, "--json").err)["error"]["exit_code"] == code
    assert contents_of(folder) == before


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
