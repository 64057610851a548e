"""Several outputs of one run: all are complete before the first takes its name, and a failure leaves them as they were."""

import os
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import ROOT, streams

from kerntest import train_kpca, train_svm
from kerntest.cli.main import run

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
