"""Several outputs of one run: all are complete before the first takes its name, and a signal leaves them as they were."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import streams

from kerntest import train_svm
from kerntest.cli.main import run

SAMPLES = Path(__file__).parents[2] / "sample_data"
IRIS, VERSICOLOR, VIRGINICA = (str(SAMPLES / f"{name}.csv") for name in ("iris", "iris_versicolor", "iris_virginica"))
MMD = ["mmd", VERSICOLOR, VIRGINICA, "--permutations", "20", "--json"]
SVM = ["svm", IRIS, "--target", "species"]
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux")
FULL = "/dev/full"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "species.kt"
    train_svm(IRIS, "species", output=path)
    return path


@pytest.fixture
def model(trained, tmp_path):
    return str(shutil.copy(trained, tmp_path))


@pytest.fixture
def sketched(monkeypatch):
    """Let pictures be a few octets: it is about when they are written, not about what is drawn."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    monkeypatch.setattr(Figure, "savefig", lambda _, stream, **_options: stream.write(b"a picture"))


def failing(model):
    """Command lines whose last output cannot be written, with the files that the others would write."""
    return {
        "predict, report": (["predict", model, IRIS, "-o", "o.csv", "--report", FULL], ["o.csv"]),
        "transform, report": (["transform", model, IRIS, "-o", "o.csv", "--report", FULL], ["o.csv"]),
        "svm, report": ([*SVM, "-o", "m.kt", "--force", "--report", FULL], ["m.kt"]),
        "svm, report, picture": ([*SVM, "--plot", "p.png", "--report", FULL], ["p.png"]),
        "ridge, report": (
            [
                "ridge",
                IRIS,
                "--target",
                "petal_width_cm",
                "--columns",
                "petal_length_cm",
                "-o",
                "m.kt",
                "--force",
                "--report",
                FULL,
            ],
            ["m.kt"],
        ),
        "kpca, report": (
            ["kpca", IRIS, "-o", "m.kt", "--force", "--plot", "p.png", "--report", FULL],
            ["m.kt", "p.png"],
        ),
        "mmd, witness": ([*MMD, "--witness", "w.csv", "-o", FULL], ["w.csv"]),
        "mmd, picture": ([*MMD, "--witness", "w.csv", "--plot", "p.png", "-o", FULL], ["w.csv", "p.png"]),
        "hsic, witness": (
            [
                "hsic",
                IRIS,
                "--x",
                "petal_width_cm",
                "--y",
                "species",
                "--permutations",
                "20",
                "--witness",
                "w.csv",
                "-o",
                FULL,
            ],
            ["w.csv"],
        ),
    }


@needs_full
@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("name", failing("m"))
def test_a_run_that_fails_leaves_every_file_as_it_was(kerntest, tmp_path, monkeypatch, model, name):
    monkeypatch.chdir(tmp_path)
    arguments, written = failing(model)[name]
    if name.startswith("transform"):
        kerntest("kpca", IRIS, "-o", model, "--force", "-q")
    before = {file.name for file in tmp_path.iterdir()}
    first = kerntest(*arguments)
    assert first.code == 3
    assert "no space left" in first.err
    assert "wrote" not in first.err
    assert {file.name for file in tmp_path.iterdir()} == before
    for file in written:
        Path(file).write_text("old")
    assert kerntest(*arguments).code == 3
    assert {Path(file).read_text() for file in written} == {"old"}
    assert {file.name for file in tmp_path.iterdir()} == {*before, *written}


@needs_full
@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("command", ["predict", "svm", "kpca"])
def test_a_full_standard_output_leaves_the_old_files(tmp_path, model, command):
    arguments = {
        "predict": ["predict", model, IRIS, "-o", "out"],
        "svm": [*SVM, "-o", "out", "--force"],
        "kpca": ["kpca", IRIS, "--plot", "out"],
    }[command]
    target = tmp_path / {"predict": "o.csv", "svm": "m.kt", "kpca": "p.png"}[command]
    target.write_text("old")
    arguments = [str(target) if one == "out" else one for one in arguments]
    # What is left in the buffer of stdout does not fit in at its end either.
    with (
        Path(os.devnull).open("r+b") as null,
        Path(FULL).open("wb") as full,
        suppress(OSError),
        streams(null, full, null),
    ):
        code = run(arguments)
    assert (code, target.read_text()) == (3, "old")
    assert {file.name for file in tmp_path.iterdir()} == {target.name, "species.kt"}


def test_outputs_of_a_run_that_goes_well_replace_their_files(kerntest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("o.json", "w.csv", "p.png"):
        Path(name).write_text("old")
    outcome = kerntest(*MMD, "-o", "o.json", "--witness", "w.csv", "--plot", "p.png")
    assert (outcome.code, outcome.err.count("wrote ")) == (0, 3)
    assert not any(file.read_bytes() == b"old" for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("links", [True, False])
def test_of_two_runs_onto_one_model_the_later_is_refused(kerntest, tmp_path, monkeypatch, links):
    path = tmp_path / "two.kt"
    real = os.link

    def beaten(source, target):
        # Another run was faster: its file is there when ours is complete.
        Path(target).write_text("theirs")
        if not links:
            raise PermissionError(1, "no links here")
        real(source, target)

    monkeypatch.setattr(os, "link", beaten)
    outcome = kerntest(*SVM, "-o", path, "--plot", tmp_path / "p.png")
    assert outcome.code == 3
    assert f"{path} exists already" in outcome.err
    assert "hint: --force overwrites it; -o names another file" in outcome.err
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_where_there_are_no_links_a_model_is_written_too(kerntest, tmp_path, monkeypatch):
    def refuse(source, target):
        del source, target
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert kerntest(*SVM, "-o", tmp_path / "m.kt").code == 0
    assert kerntest("inspect", tmp_path / "m.kt").code == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_a_model_that_is_read_is_called_a_model(kerntest, model):
    outcome = kerntest("predict", model, IRIS, "-o", model)
    assert outcome.code == 2
    assert f"-o {model} would replace the model {model}" in outcome.err


@pytest.mark.parametrize(
    ("ending", "start"), [("json", "{"), ("jsonl", "{"), ("csv", "schema,"), ("txt", "Two-sample")]
)
def test_the_name_of_a_file_tells_its_format(kerntest, tmp_path, ending, start):
    path = tmp_path / f"result.{ending}"
    assert kerntest(*MMD[:-1], "-o", path).code == 0
    assert path.read_text().startswith(start)


def test_no_output_replaces_another_or_what_is_read(kerntest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "a,b\n" + "1,2\n3,4\n" * 5
    Path("x.csv").write_text(rows, encoding="utf-8")
    Path("link.csv").symlink_to("x.csv")
    for outputs, told in (
        (("mmd", "x.csv", "x.csv", "-o", "./link.csv"), "-o ./link.csv would replace the data in x.csv"),
        (("mmd", "-", "y.csv", "-o", "link.csv"), "-o link.csv would replace the data in -"),
        (
            ("hsic", "x.csv", "--x", "a", "-o", "r.csv", "--witness", "./r.csv"),
            "-o and --witness would both write ./r.csv",
        ),
        (("svm", "x.csv", "--target", "b", "-o", "m.json", "--report", "./m.json"), "-o and --report would both write"),
        (("ridge", "x.csv", "--target", "b", "-o", "m.svg", "--plot", "m.svg"), "-o and --plot would both write"),
        (("kpca", "link.csv", "--report", "x.csv"), "--report x.csv would replace the data in link.csv"),
    ):
        outcome = kerntest(*outputs, stdin="x.csv")
        assert (outcome.code, outcome.out) == (2, "")
        assert told in outcome.err
    assert Path("x.csv").read_text(encoding="utf-8") == rows
