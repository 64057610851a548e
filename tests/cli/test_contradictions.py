"""Options that contradict each other or have no effect, and values that cannot be, are refused before anything is read."""

import shlex

import pytest

# The tables and models are not there: whoever looked for them would say so.
REFUSED = [
    ("hsic d.csv y.csv --null moments --permutations 9", "--permutations does not go with --null moments", "a curve"),
    ("hsic data.csv --pairwise --target a", "--pairwise does not go with --target", "choose one"),
    ("hsic data.csv --pairwise --select 2", "--select does not go with --pairwise", ""),
    ("hsic data.csv y.csv --joint a,b", "a second file does not go with --joint", "give one file"),
    ("hsic data.csv --time-series --permutations 9", "--permutations does not go with --time-series", "--min-lag"),
    ("hsic data.csv --time-series --statistic coco", "--statistic does not go with --time-series", "HSIC"),
    ("hsic data.csv --time-series --pairwise", "--time-series does not go with --pairwise", ""),
    ("hsic data.csv --joint a,b --columns a", "--columns does not go with --joint", "--joint a,b,c"),
    ("hsic data.csv --joint a,b --time-series", "--time-series does not go with --joint", ""),
    ("hsic data.csv --joint a,b --null gamma", "--null does not go with --joint", "one null"),
    ("hsic data.csv --pairwise --kernel-x delta", "--kernel-x does not go with --pairwise", "--kernel is the kernel"),
    ("hsic data.csv --pairwise --null moments", "--null does not go with --pairwise", "moments p-value"),
    ("hsic data.csv --pairwise --scale none", "--scale does not go with --pairwise", "standardised"),
    ("hsic data.csv --target a --y b", "--y does not go with --target", "--columns"),
    ("hsic data.csv --target a --select 2 --correction bh", "--correction does not go with --select", ""),
    ("hsic data.csv --target a --select 2 --kernel delta", "--kernel does not go with --select", "of its own"),
    ("hsic data.csv --target a --select 2 --plot p.png", "--plot does not go with --select", "--target NAME --plot"),
    ("svm data.csv --target kind --C 2 --nu 0.1", "--C does not go with --nu", ""),
    ("svm data.csv --target kind --C 2 --hard-margin", "--C does not go with --hard-margin", ""),
    ("svm data.csv --target kind --C 2 --task one-class", "--C does not go with --task one-class", ""),
    ("svm data.csv --target kind --C 2 --method mean", "--C does not go with --method mean", ""),
    ("svm data.csv --target kind --bandwidth 2 --grid", "--bandwidth does not go with --grid", ""),
    ("svm data.csv --target kind --epsilon 0 --task one-class", "--epsilon does not go with --task one-class", ""),
    ("mmd d.csv o.csv --null moments --permutations 9", "--permutations does not go with --null moments", "a curve"),
    ("mmd d.csv o.csv --null pearson --resampling blocks", "--resampling does not go with --null pearson", "a curve"),
    ("mmd d.csv o.csv --null moments --judge smallest", "--judge does not go with --null moments", "a curve"),
    ("mmd d.csv o.csv --features fourier:9 --method exact", "--features does not go with --method exact", "alone"),
    ("mmd d.csv o.csv --columns ''", "--columns names no column", "leave it out"),
    ("mmd d.csv o.csv --engine loca", "--engine must be auto, local, gpu or dask, not 'loca'", "'local'"),
    ("hsic d.csv o.csv --engine local --scheduler tcp://a:1", "a scheduler is for the engine dask, not for local", ""),
    ("hsic d.csv o.csv --memory much", "'much' is no amount of memory", ""),
    ("hsic d.csv o.csv --dry-run -q", "--dry-run and -q contradict each other", ""),
    ("svm d.csv --target y --engine dask", "no such option: --engine", ""),
    ("mmd d.csv o.csv --witness w.csv -o ./w.csv", "-o and --witness would both write w.csv", ""),
    ("hsic - -", "DATA and Y cannot both be read from stdin", "as a file"),
    ("ridge d.csv", "--target is missing", "it names the column to predict"),
    ("ridge d.csv --target y --lambda 0", "--lambda must be a positive number, not '0'", ""),
    ("ridge d.csv --target y --criterion aic", "--criterion must be loo, gcv, cv or evidence, not 'aic'", ""),
    ("ridge d.csv --target y --interval 90", "--interval must be a number between 0 and 1", ""),
    ("ridge d.csv --target y -o m.kt --plot m.kt", "-o and --plot would both write m.kt", ""),
    ("svm d.csv --target y -o x --report x", "-o and --report would both write x", ""),
    ("svm d.csv --target y --bandwidth 1,2", "a learner has one bandwidth, not 1.0, 2.0", "--grid tries several"),
    ("svm d.csv --target y -o -", "--output writes a file, not the standard output", ""),
    ("svm d.csv --target y --plot -", "--plot writes a file, not the standard output", ""),
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
]


@pytest.mark.parametrize(("line", "message", "hint"), REFUSED, ids=[line for line, _, _ in REFUSED])
def test_what_makes_no_sense_is_refused(kerntest, tmp_path, monkeypatch, *, line, message, hint):
    monkeypatch.chdir(tmp_path)
    outcome = kerntest(*shlex.split(line))
    assert (outcome.code, outcome.out) == (2, "")
    error, way_out = outcome.err.splitlines()
    assert error.startswith(f"error: {message}")
    assert way_out.startswith("hint: ")
    assert hint in way_out
    assert list(tmp_path.iterdir()) == []
