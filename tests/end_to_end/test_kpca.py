import csv
import io
import json
import shutil

import numpy as np
import pytest
from pyarrow import parquet
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelPCA


@pytest.fixture
def here(tmp_path, monkeypatch, shop):
    """Stand in a copy of the sample data."""
    folder = tmp_path / "here"
    shutil.copytree(shop, folder)
    monkeypatch.chdir(folder)
    return folder


def check_failure(outcome, code, message, hint=""):
    assert outcome.code == code, outcome.err
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) == 2, outcome.err
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert lines[1].startswith("hint: ")
    assert hint in lines[1]


def test_from_a_table_to_components_to_projections_to_rows(kerntest, here):
    fitted = kerntest(
        "kpca", "wine.csv", "--color", "cultivar", "--components", "4", "--plot", "w.svg", "-o", "w.kt", "--json"
    )
    assert fitted.err == "wrote w.svg\nwrote w.kt\n"
    result = json.loads(fitted.out)
    assert (result["components"], result["n_train"], result["model"]) == (4, 178, "w.kt")
    assert sum(result["explained_variance_ratio"]) == pytest.approx(result["explained"], rel=SAME_MACHINE)
    assert result["eigenvalues"][0] / result["trace"] == pytest.approx(
        result["explained_variance_ratio"][0], rel=SAME_MACHINE
    )
    assert (here / "w.svg").read_bytes().startswith(b"<?xml")
    written = kerntest("transform", "w.kt", "wine.csv", "--keep", "cultivar")
    assert written.code == 0
    rows = list(csv.DictReader(io.StringIO(written.out)))
    assert list(rows[0]) == ["row", "cultivar", "pc1", "pc2", "pc3", "pc4"]
    expected = KernelPCA.load("w.kt").transform("wine.csv")
    found = [[float(row[f"pc{k}"]) for k in range(1, 5)] for row in rows]
    # A file holds all digits: what differs is two runs of the same sums.
    assert_close(found, expected, share=SAME_MACHINE)
    denoised = kerntest("transform", "w.kt", "wine.csv", "--denoise", "-o", "d.parquet", "--json")
    report = json.loads(denoised.out)
    assert report["reconstructed"] is True
    assert len(report["by_column"]) == 13
    assert parquet.read_table("d.parquet").num_rows == 178
    told = json.loads(kerntest("inspect", "w.kt", "--json").out)
    assert (told["kind"], told["kernel"]) == ("kpca", result["kernel"])
    assert_close(told["eigenvalues"], result["eigenvalues"], share=SAME_MACHINE)
    assert_close(told["explained_variance_ratio"], result["explained_variance_ratio"], share=SAME_MACHINE)


@pytest.mark.parametrize("extra", [[], ["--features", "nystroem:60"]], ids=["dense", "nystroem"])
def test_the_same_seed_gives_the_same_model_whatever_the_threads(kerntest, here, extra):
    del here
    line = ("kpca", "before.csv", "--components", "3", "-q", "--json", *extra)
    results, scores = [], []
    for name, threads in (("one.kt", 1), ("two.kt", 2)):
        results.append(json.loads(kerntest(*line, "-o", name, "--threads", threads).out))
        scores.append(np.abs(KernelPCA.load(name).transform("after.csv")))
    for name in ("eigenvalues", "trace", "explained"):
        assert_close(results[0][name], results[1][name], share=SAME_MACHINE)
    values = np.array(results[0]["eigenvalues"])
    # An axis turns by the error of the matrix over the distance of its eigenvalue to the next.
    gap = np.diff(-values).min() / values[0]
    assert_close(*scores, share=SAME_MACHINE, condition=1 / gap)


def test_the_kernel_of_the_result_gives_the_same_components(kerntest, here):
    del here
    first = json.loads(kerntest("kpca", "before.csv", "--json").out)
    again = json.loads(kerntest("kpca", "before.csv", "--json", "--kernel", first["kernel"]).out)
    assert again["eigenvalues"] == pytest.approx(first["eigenvalues"], rel=SAME_MACHINE)


BAD = {
    "no_such_file": (["no.csv"], 3, "no.csv does not exist", ""),
    "no_such_color": (["iris.csv", "--color", "spesies"], 2, "column 'spesies' is not in iris.csv", "'species'"),
    "missing_values": (["with_missing.csv"], 3, "6 missing values", "--missing drop"),
    "kernel": (["iris.csv", "--kernel", "exponental"], 2, "unknown kernel 'exponental'", "'exponential'"),
    "bandwidth": (
        ["iris.csv", "--bandwidth", "auto"],
        2,
        "--bandwidth must be median or a positive number, not 'auto'",
        "kerntest kpca --help",
    ),
    "components": (["iris.csv", "--components", "0"], 2, "--components must be a whole number from 1", "--help"),
    "features": (["iris.csv", "--features", "nystrom:50"], 2, "'nystrom:50' are no features", "nystroem:500"),
    "fourier": (
        ["before.csv", "--features", "fourier:50"],
        2,
        "random Fourier features are for the Gaussian",
        "nystroem",
    ),
    "constant": (["same.csv"], 3, "no column is left to learn from", "two different values"),
    "overflow": (["iris.csv", "--kernel", "exponential(900)"], 4, "overflows", "scale the columns"),
    "picture": (["iris.csv", "--plot", "p.gif"], 2, "cannot be drawn into p.gif", ".png"),
    "over_the_data": (["iris.csv", "-o", "iris.csv"], 2, "would replace the data", "another file"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_has_no_components_is_told_in_two_lines(kerntest, here, name):
    (here / "same.csv").write_text("a,b\n" + "1,2\n" * 20)
    arguments, code, message, hint = BAD[name]
    outcome = kerntest("kpca", *arguments, *([] if "-o" in arguments else ["-o", "m.kt"]))
    if name == "kernel":
        # The place in the text is shown between message and hint.
        assert (outcome.code, outcome.out) == (code, "")
        assert message in outcome.err
        assert hint in outcome.err
    else:
        check_failure(outcome, code, message, hint)
    assert not (here / "m.kt").exists()


def test_a_model_is_not_overwritten_unless_asked(kerntest, here):
    (here / "m.kt").write_text("mine")
    check_failure(
        kerntest("kpca", "iris.csv", "--exclude", "species", "-o", "m.kt"), 3, "m.kt exists already", "--force"
    )
    assert (here / "m.kt").read_text() == "mine"
    assert kerntest("kpca", "iris.csv", "--exclude", "species", "-o", "m.kt", "--force").code == 0


BAD_TRANSFORMS = {
    "of_another_kind": (["species.kt", "iris.csv"], 5, "species.kt holds a model of kind 'svm'", "kerntest predict"),
    "column_missing": (["shop.kt", "iris.csv"], 3, "order_value_eur", ""),
    "missing_value": (["shop.kt", "with_missing.csv"], 3, "with_missing.csv, line 8", "--missing drop"),
    "too_many": (["shop.kt", "after.csv", "--components", "9"], 2, "shop.kt has 5 components, not 9", "fit it again"),
    "no_pre_images": (["p.kt", "iris.csv", "--denoise"], 2, "has no pre-images", "gaussian"),
    "output": (["shop.kt", "after.csv", "-o", "scores.txt"], 2, ".csv or .parquet", "scores.csv"),
    "kept": (
        ["shop.kt", "after.csv", "--denoise", "--keep", "items"],
        2,
        "'items' of after.csv cannot be kept",
        "rename",
    ),
}


@pytest.mark.parametrize("name", BAD_TRANSFORMS)
def test_what_cannot_be_projected_is_told_in_two_lines(kerntest, here, name):
    del here
    assert kerntest("kpca", "iris.csv", "--exclude", "species", "--kernel", "polynomial", "-q", "-o", "p.kt").code == 0
    arguments, code, message, hint = BAD_TRANSFORMS[name]
    check_failure(kerntest("transform", *arguments), code, message, hint)


@pytest.mark.parametrize("damage", ["truncated", "corrupted", "newer", "text"])
def test_a_damaged_model_is_5_and_two_lines(kerntest, here, damage):
    content = (here / "shop.kt").read_bytes()
    broken = {
        "truncated": content[: len(content) // 2],
        "corrupted": content[:9000] + bytes([content[9000] ^ 0xFF]) + content[9001:],
        "newer": content.replace(b'"format_version": 1', b'"format_version": 2'),
        "text": b"a,b\n1,2\n",
    }[damage]
    (here / "bad.kt").write_bytes(broken)
    for command in (["transform", "bad.kt", "before.csv"], ["inspect", "bad.kt"]):
        check_failure(kerntest(*command), 5, "bad.kt")


def test_stdin_is_read_and_predict_sends_to_transform(kerntest, here):
    piped = kerntest("transform", "shop.kt", "-", stdin=here / "after.csv")
    assert piped.code == 0
    tables = [
        [list(map(float, row)) for row in list(csv.reader(io.StringIO(text)))[1:]]
        for text in (piped.out, kerntest("transform", "shop.kt", "after.csv").out)
    ]
    assert_close(*tables, share=SAME_MACHINE)
    check_failure(kerntest("predict", "shop.kt", "after.csv"), 5, "kind 'kpca'", "kerntest transform shop.kt DATA")
