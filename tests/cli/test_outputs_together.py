"""Several outputs of one run: all are complete before the first takes its name, and a failure leaves them as they were."""

import datetime as dt
import io
import json
import math
import os
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from command_line import ROOT, streams

from kerntest import train_kpca, train_svm
from kerntest.cli.main import run
from kerntest.report.write import RowWriter, parquet_bytes

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux")
MMD = "mmd iris_versicolor.csv iris_virginica.csv --permutations 20"
HSIC = "hsic iris.csv --x petal_width_cm --y species --permutations 20"
SVM = "svm iris.csv --target species"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, iris = tmp_path_factory.mktemp("models"), ROOT / "sample_data" / "iris.csv"
    train_svm(iris, "species", output=folder / "species.kt")
    train_kpca(iris, output=folder / "plane.kt")
    return folder


@pytest.fixture(autouse=True)
def folder(models, tmp_path, monkeypatch):
    """Stand among tables and models; pictures are a few octets: it is about when they are written, not what is drawn."""
    for path in (*models.iterdir(), *(ROOT / "sample_data").glob("iris*.csv")):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, stream, **_options: stream.write(b"a picture"))
    return tmp_path


@pytest.fixture
def shell(kerntest):
    return lambda line, **options: kerntest(*shlex.split(line), **options)


def names(folder):
    return {path.name for path in folder.iterdir()}


@needs_full
@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("predict species.kt iris.csv -o o.csv --report /dev/full", ["o.csv"]),
        ("transform plane.kt iris.csv -o o.csv --report /dev/full", ["o.csv"]),
        (f"{SVM} --plot p.png --report /dev/full", ["p.png"]),
        ("kpca iris.csv -o m.kt --force --plot p.png --report /dev/full", ["m.kt", "p.png"]),
        (f"{MMD} --witness w.csv --plot p.png -o /dev/full", ["w.csv", "p.png"]),
        (f"{HSIC} --witness w.csv -o /dev/full", ["w.csv"]),
    ],
)
def test_a_run_that_fails_leaves_every_file_as_it_was(shell, folder, words, written):
    before = names(folder)
    first = shell(words)
    assert first.code == 3
    assert "no space left" in first.err
    assert "wrote" not in first.err
    assert names(folder) == before
    for file in written:
        Path(file).write_text("old")
    assert shell(words).code == 3
    assert {Path(file).read_text() for file in written} == {"old"}
    assert names(folder) == {*before, *written}


@needs_full
@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("predict species.kt iris.csv -o o.csv", "o.csv"),
        (f"{SVM} -o m.kt --force", "m.kt"),
        ("kpca iris.csv --plot p.png", "p.png"),
    ],
)
def test_a_full_standard_output_leaves_the_old_files(folder, words, written):
    Path(written).write_text("old")
    before = names(folder)
    # What is left in the buffer of stdout does not fit in at its end either.
    with (
        Path(os.devnull).open("r+b") as null,
        Path("/dev/full").open("wb") as full,
        suppress(OSError),
        streams(null, full, null),
    ):
        code = run(shlex.split(words))
    assert (code, Path(written).read_text(), names(folder)) == (3, "old", before)


def test_outputs_of_a_run_that_goes_well_replace_their_files(shell, folder):
    written = ("o.json", "w.csv", "p.png")
    for name in written:
        Path(name).write_text("old")
    before = names(folder)
    outcome = shell(f"{MMD} -o o.json --witness w.csv --plot p.png")
    assert outcome.code == 0
    assert [line for line in outcome.err.splitlines() if line.startswith("wrote")] == [
        f"wrote {name}" for name in written
    ]
    assert not any(Path(name).read_bytes() == b"old" for name in written)
    assert names(folder) == before


@pytest.mark.parametrize("links", [True, False])
def test_of_two_runs_onto_one_model_the_later_is_refused(shell, folder, monkeypatch, links):
    real, before = os.link, names(folder)

    def beaten(source, target):
        # Another run was faster: its file is there when ours is complete.
        Path(target).write_text("theirs")
        if not links:
            raise PermissionError(1, "no links here")
        real(source, target)

    monkeypatch.setattr(os, "link", beaten)
    outcome = shell(f"{SVM} -o two.kt --plot p.png")
    assert outcome.code == 3
    assert "two.kt exists already" in outcome.err
    assert "hint: --force overwrites it; -o names another file" in outcome.err
    assert Path("two.kt").read_text() == "theirs"
    assert names(folder) == {*before, "two.kt"}


def test_where_there_are_no_links_a_model_is_written_too(shell, folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    before = names(folder)
    for words in (SVM, f"{SVM} --force"):
        assert shell(f"{words} -o m.kt").code == 0
    assert shell("inspect m.kt").code == 0
    assert names(folder) == {*before, "m.kt"}


@pytest.mark.parametrize(
    ("ending", "start"), [("json", "{"), ("jsonl", "{"), ("csv", "schema,"), ("txt", "Two-sample")]
)
def test_the_name_of_a_file_tells_its_format(shell, ending, start):
    assert shell(f"{MMD} -o result.{ending}").code == 0
    assert Path(f"result.{ending}").read_text().startswith(start)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("mmd iris.csv iris.csv -o ./link.csv", "-o ./link.csv would replace the data in iris.csv"),
        ("mmd - other.csv -o link.csv", "-o link.csv would replace the data in -"),
        ("kpca link.csv --report iris.csv", "--report iris.csv would replace the data in link.csv"),
        ("predict species.kt iris.csv -o species.kt", "-o species.kt would replace the model species.kt"),
    ],
)
def test_no_output_replaces_what_is_read(shell, words, told):
    Path("link.csv").symlink_to("iris.csv")
    before = {path: path.read_bytes() for path in map(Path, ("iris.csv", "species.kt"))}
    outcome = shell(words, stdin="iris.csv")
    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("ending", "start"), [("md", "## Two-sample"), ("html", "<!DOCTYPE html>"), ("ndjson", "{"), ("log", "Two-sample")]
)
def test_other_names_tell_other_formats(shell, ending, start):
    assert shell(f"{MMD} -o result.{ending}").code == 0
    assert Path(f"result.{ending}").read_text().startswith(start)


def test_a_result_as_parquet_is_its_csv(shell):
    for words in (MMD, "hsic iris.csv --pairwise"):
        assert shell(f"{words} -o r.parquet").code == 0
        found = pd.read_parquet("r.parquet").drop(columns="provenance.seconds", errors="ignore")
        told = pd.read_csv(io.StringIO(shell(f"{words} --format csv -q").out))
        assert list(found) == [name for name in told if name != "provenance.seconds"]
        assert len(found) == len(told)
        numbers = found.select_dtypes("float")
        pd.testing.assert_frame_equal(numbers, told[list(numbers)].astype(float))


def test_a_column_of_numbers_and_texts_is_one_of_texts_in_parquet():
    found = pd.read_parquet(io.BytesIO(parquet_bytes([{"a": 1, "b": None}, {"a": "x", "b": 2.5}])))
    assert found["a"].tolist() == ["1", "x"]
    assert math.isnan(found["b"][0])
    assert found["b"][1] == 2.5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (f"{MMD} -o r.json --format csv", "--format csv contradicts the name r.json, which asks for json"),
        (f"{MMD} -o r.md --json", "--format json contradicts the name r.md, which asks for markdown"),
        (f"{SVM} --report r.txt --json", "--format json contradicts the name r.txt, which asks for table"),
        (f"{MMD} -o r.xlsx", "a report is written as .txt, .json, .jsonl, .csv, .md, .html or .parquet, not as .xlsx"),
        ("kpca iris.csv --report m.kt", "not as .kt"),
        (f"{MMD} --plot -", "--plot and the result would both go to the standard output"),
        (f"{MMD} --plot - --witness - -o r.json", "--witness and --plot would both go to the standard output"),
        (f"{SVM} --plot - --report -", "--plot and the result would both go to the standard output"),
        (f"{SVM} -o -", "--output writes a file, not the standard output"),
        ("predict species.kt iris.csv -o - --json", "--format json is for the report"),
    ],
)
def test_outputs_that_contradict_their_names_or_each_other_are_refused(shell, folder, words, told):
    before = names(folder)
    outcome = shell(words)
    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err
    assert names(folder) == before


def test_md_is_short_for_markdown(shell):
    assert shell(f"{MMD} --format md").out.splitlines()[0] == shell(f"{MMD} --format markdown").out.splitlines()[0]
    assert shell(f"{MMD} --format MD").out.startswith("## ")


def test_a_dash_is_the_standard_output(folder):
    def written(words):
        with Path(os.devnull).open("r+b") as null, (folder / "out").open("w+b") as out, streams(null, out, null):
            assert run(shlex.split(words)) == 0
        return (folder / "out").read_bytes()

    rows = written("predict species.kt iris.csv")
    assert rows.startswith(b"row,prediction\n1,setosa\n")
    assert written("predict species.kt iris.csv -o -") == rows
    assert written("predict species.kt iris.csv -o - --report r.json") == rows
    assert written("transform plane.kt iris.csv -o -").startswith(b"row,pc1,pc2\n")
    assert written(f"{MMD} --witness - -o r.json").startswith(b"sample,row,line,witness\n")
    assert written(f"{MMD} --plot - -o r.json") == b"a picture"
    assert written(f"{SVM} --plot - --report r.md") == b"a picture"
    assert written(f"{MMD} --format parquet").startswith(b"PAR1")
    assert written(f"{MMD} -o -").startswith(b"Two-sample test")


def test_a_terminal_is_sent_no_bytes_that_are_no_text(shell, monkeypatch):
    monkeypatch.setattr("kerntest.cli.run.is_terminal", lambda _: True)
    for words in (f"{MMD} --format parquet", f"{MMD} --plot - -o r.json"):
        outcome = shell(words)
        assert (outcome.code, outcome.out) == (2, "")
        assert "is no text, and the standard output is a terminal" in outcome.err


def test_rows_are_written_as_json_lines(shell):
    for words in ("predict species.kt iris.csv --decision", f"{MMD} --witness rows.jsonl"):
        assert shell(words if "--witness" in words else f"{words} -o rows.jsonl").code == 0
        found = pd.DataFrame([json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()])
        assert shell((words if "--witness" in words else f"{words} -o rows.jsonl").replace(".jsonl", ".csv")).code == 0
        pd.testing.assert_frame_equal(found, pd.read_csv("rows.csv"), rtol=1e-9)


def test_numbers_that_are_not_finite_are_null_in_json_lines():
    stream = io.BytesIO()
    day = dt.date(2026, 1, 2)
    RowWriter(stream, "jsonl").write(pa.table({"a": [math.nan, 1.0], "b": [day, None], "c": [True, False]}))
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert rows == [{"a": None, "b": "2026-01-02", "c": True}, {"a": 1.0, "b": None, "c": False}]
