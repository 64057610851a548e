"""Models applied to files of any size: what every kind of model writes is what its class gives, whatever the file."""

import csv
import io
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import modules_of, run_process
from learning.files_to_apply import as_arrow, rows
from pyarrow import parquet
from tolerances import assert_close

from kerntest import (
    SVM,
    KernelPCA,
    KernelRidge,
    KerntestWarning,
    compute_on,
    inspect_model,
    predict_file,
    train_kpca,
    train_ridge,
    train_svm,
    transform_file,
)
from kerntest.engines.plan import UNITS
from kerntest.errors import DataError, ModelError, UndecidedError, UsageError, as_typed

RUNS = {
    "kind": {"decision": True, "proba": True},
    "weight": {},
    "usual": {"decision": True},
    "ridge": {"interval": 0.9},
    "both": {"interval": 0.8},
    "all": {"residual": True},
    "two": {"reconstruct": True},
}


def test_unknown_categories_may_be_ignored_in_python_as_by_predict(tmp_path):
    """With the same predictions, a warning, and the option that the error names; a file does not keep it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "c": rng.choice(["x", "y", "z"], 90)})
    frame["y"] = frame.a + (frame.c == "x")
    new = frame[["a", "c"]].iloc[:6].assign(c=["x", "q", "y", "r", "z", "q"])
    for kind, y in ((SVM, frame.y > 0), (KernelRidge, frame.y), (KernelPCA, None)):
        given = (frame[["a", "c"]],) if y is None else (frame[["a", "c"]], y)
        strict, lenient = kind().fit(*given), kind(unknown="ignore").fit(*given)
        applied = "transform" if kind is KernelPCA else "predict"
        with pytest.raises(DataError, match="unknown to") as caught:
            getattr(strict, applied)(new)
        assert "unknown='ignore'" in caught.value.hint
        with pytest.warns(KerntestWarning, match=r"X: column 'c' holds 'q', 'r', unknown to the model, in 3 rows"):
            found = getattr(lenient, applied)(new)
        lenient.save(tmp_path / kind.__name__)
        new.to_csv(tmp_path / "new.csv", index=False)
        by_file = transform_file if kind is KernelPCA else predict_file
        with pytest.warns(KerntestWarning):
            by_file(tmp_path / kind.__name__, tmp_path / "new.csv", output=tmp_path / "out.csv", unknown="ignore")
        told = pd.read_csv(tmp_path / "out.csv").iloc[:, 1:].to_numpy()
        assert (told[:, 0] == found).all() if kind is SVM else np.allclose(told, np.reshape(found, told.shape))
        loaded = kind.load(tmp_path / kind.__name__)
        assert loaded.unknown == "error"
        loaded.unknown = "ignore"
        with pytest.warns(KerntestWarning):
            assert np.array_equal(getattr(loaded, applied)(new), found)
    with pytest.raises(UsageError, match="unknown must be"):
        SVM(unknown="drop")
    with pytest.raises(TypeError, match="unexpected keyword argument 'unknown'"):
        train_kpca(frame, unknown="ignore")


@pytest.fixture
def applied(folder):
    """Return what applies a model: to a file, with the output as a data frame of texts, and the report."""

    def apply(model, data="new.csv", **options):
        file, function = io.BytesIO(), transform_file if model in {"all", "two", "poly", "row"} else predict_file
        report = function(folder / f"{model}.kt", folder / data, output=file, **options)
        return pd.read_csv(io.BytesIO(file.getvalue()), dtype=str, keep_default_na=False), report

    return apply


def numbers(found, names):
    return found[names].astype(float).to_numpy()


def by_class(folder, model):
    """Return the columns that a model writes for the rows to apply it to, as its Python class gives them."""
    new, path = folder / "new.csv", folder / f"{model}.kt"
    if model in {"all", "two"}:
        pca = KernelPCA.load(path)
        if model == "two":
            return dict(zip(("size", "fixed", "weight"), pca.denoise(new).T, strict=True))
        return {f"pc{k}": one for k, one in enumerate(pca.transform(new).T, 1)} | {"residual": pca.residuals(new)}
    if model in {"ridge", "both"}:
        ridge = KernelRidge.load(path)
        ends = ridge.predict(new, return_std=True) + ridge.predict_interval(new, RUNS[model]["interval"])
        by_target = zip(ridge.model.targets, np.stack(ends).T.reshape(-1, 500, 4), strict=True)
        return {
            f"{target}{end}": one
            for target, found in by_target
            for end, one in zip(("", "_std", "_low", "_high"), found.T, strict=True)
        }
    machine = SVM.load(path)
    if model == "usual":
        return {"prediction": machine.predict(new) > 0, "decision": machine.pair_scores(new)}
    found = {"prediction": machine.predict(new)}
    if model == "kind":
        pairs = ("10|20", "10|30", "20|30")
        found |= {f"decision:{pair}": one for pair, one in zip(pairs, machine.pair_scores(new).T, strict=True)}
        found |= {f"p:{name}": one for name, one in zip((10, 20, 30), machine.predict_proba(new).T, strict=True)}
    return found


@pytest.mark.parametrize("model", RUNS)
def test_what_is_written_is_what_the_class_gives(folder, applied, model):
    found, report = applied(model, **RUNS[model])
    expected = by_class(folder, model)
    assert list(found.columns)[: 1 + len(expected)] == ["row", *expected]
    assert report.columns == tuple(found.columns)
    assert found["row"].astype(int).tolist() == list(range(1, 501))
    for name, one in expected.items():
        if np.asarray(one).dtype == bool:
            assert found[name].tolist() == ["true" if value else "false" for value in one]
        else:
            atol = 1e-6 if model == "two" else 1e-10
            np.testing.assert_allclose(found[name].astype(float), one.astype(float), rtol=1e-10, atol=atol)
    done = report.transformed if model in {"all", "two"} else report.predicted
    assert (report.rows, done, report.incomplete) == (500, 500, 0)
    assert {"id", "note"} <= set(report.columns_ignored)


@pytest.mark.parametrize(("classes", "names"), [("flag", ["decision"]), ("kind", ["10", "20", "30"])])
def test_the_nearest_mean_decides_by_classes(folder, applied, classes, names):
    model = folder / f"mean-{classes}.kt"
    train_svm(folder / "train.csv", classes, method="mean", columns="size,weight", output=model)
    found, _ = applied(model.stem, decision=True)
    columns = names if classes == "flag" else [f"decision:{name}" for name in names]
    assert list(found.columns) == ["row", "prediction", *columns]
    expected = np.atleast_2d(SVM.load(model).decision_function(folder / "new.csv").T)
    np.testing.assert_allclose(numbers(found, columns).T, expected, rtol=1e-9)


def test_the_report_sums_up_what_is_written(folder, applied):
    found, report = applied("weight")
    values = found["prediction"].astype(float)
    told = report.numbers
    np.testing.assert_allclose(
        [told.minimum, told.mean, told.maximum], [values.min(), values.mean(), values.max()], rtol=1e-9
    )
    both, one = applied("both")[1], applied("ridge")[1]
    assert (both.kind, both.task, both.target) == ("ridge", "regress", "weight, power")
    assert set(both.by_target) == {"weight", "power"}
    assert (one.columns, one.by_target) == (("row", "weight"), None)
    for model in ("kind", "usual"):
        found, report = applied(model)
        counts = {name: int((found["prediction"] == name).sum()) for name in report.predictions}
        assert report.predictions == counts
        assert sum(counts.values()) == 500
    # In words those of one class are no truths.
    words = f"like the training rows (true) {counts['true']}, outliers (false) {counts['false']}"
    assert ("predicted", words) in report.in_words().lines
    _, report = applied("all", residual=True)
    assert report.residual == pytest.approx(
        KernelPCA.load(folder / "all.kt").residuals(folder / "new.csv").mean(), rel=1e-9
    )
    assert (report.components, report.reconstructed, report.reconstruction_error) == (6, False, None)


def test_pre_images_are_in_the_units_of_the_columns(folder, applied, tmp_path):
    found, report = applied("all", reconstruct=True)
    names = ["size", "fixed", "colour", "flag", "day", "weight"]
    assert list(found.columns) == ["row", *names, "reconstruction_error"]
    whole, given = KernelPCA.load(folder / "all.kt").denoise(folder / "new.csv"), rows(500)
    np.testing.assert_allclose(
        numbers(found, ["size", "fixed", "weight"]), whole[["size", "fixed", "weight"]], atol=1e-5
    )
    assert (found["colour"] == whole["colour"]).all()
    assert ((found["flag"] == "true") == whole["flag"]).all()
    assert (pd.to_datetime(found["day"]) - whole["day"]).abs().max() < pd.Timedelta(seconds=1)
    told = {one.column: one for one in report.by_column}
    assert told["size"].rmse == pytest.approx(np.sqrt(((whole["size"] - given["size"]) ** 2).mean()), rel=1e-6)
    assert told["fixed"].rmse == 0
    assert told["colour"].changed == pytest.approx((whole["colour"] != given["colour"]).mean(), abs=1e-12)
    assert (told["colour"].rmse, told["size"].changed) == (None, None)
    days = (whole["day"] - pd.to_datetime(given["day"])).dt.total_seconds() / 86400
    assert told["day"].rmse == pytest.approx(np.sqrt((days**2).mean()), rel=1e-4)
    errors = found["reconstruction_error"].astype(float)
    assert report.reconstruction_error == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-9)
    parquet.write_table(as_arrow(), tmp_path / "new.parquet")
    transform_file(folder / "all.kt", tmp_path / "new.parquet", output=tmp_path / "out.parquet", reconstruct=True)
    stored = parquet.read_table(tmp_path / "out.parquet")
    kinds = [str(stored.schema.field(name).type) for name in stored.column_names]
    assert kinds == ["int64", "double", "double", "string", "bool", "timestamp[us]", "double", "double"]
    np.testing.assert_allclose(stored["weight"].to_numpy(), found["weight"].astype(float), rtol=0, atol=1e-5)


def test_the_first_components_alone_leave_more(applied):
    few, one = applied("two", components=1, reconstruct=True, residual=True)
    _, all_of_them = applied("two", reconstruct=True, residual=True)
    assert (one.components, one.residual > all_of_them.residual) == (1, True)
    assert list(few.columns) == ["row", "size", "fixed", "weight", "reconstruction_error", "residual"]
    scores, every = applied("two", components=2)[0], applied("two", components=3)[0]
    assert list(scores.columns) == ["row", "pc1", "pc2"]
    np.testing.assert_allclose(numbers(scores, ["pc1", "pc2"]), numbers(every, ["pc1", "pc2"]), atol=1e-10)
    with pytest.raises(UsageError, match="has 3 components, not 4"):
        applied("two", components=4)


# Files.


def test_rows_are_the_same_in_whatever_files_they_stand(applied, tmp_path):
    whole, _ = applied("kind")
    table = rows(500)
    table[list(table.columns)[::-1]].to_csv(tmp_path / "turned.csv.gz", index=False)
    for place, part in enumerate((table[:200], table[200:201], table[201:])):
        part.to_csv(tmp_path / f"part-{place}.csv", index=False)
    (tmp_path / "parts").mkdir()
    parquet.write_table(as_arrow()[:123], tmp_path / "parts" / "a.parquet")
    parquet.write_table(as_arrow()[123:], tmp_path / "parts" / "b.parquet")
    table.to_csv(tmp_path / "komma.csv", index=False, sep=";", decimal=",")
    # Categories mean the same in every block.
    coded = table.assign(flag=table["flag"].str.upper(), colour=table["colour"].replace("1", "1.0"))
    coded.to_csv(tmp_path / "coded.csv", index=False)
    for name, block in (
        ("turned.csv.gz", 500),
        ("part-*.csv", 3000),
        ("parts", None),
        ("komma.csv", 900),
        ("coded.csv", 800),
    ):
        found, report = applied("kind", str(tmp_path / name), block=block)
        assert found.equals(whole), name
        assert report.rows == 500
        assert any("decimal comma" in warning for warning in report.warnings) == (name == "komma.csv")


def test_blocks_may_be_shorter_than_a_row(applied, tmp_path):
    header, *lines = rows(40).drop(columns=["id", "note"]).to_csv(index=False).splitlines(keepends=True)
    lines.sort(key=len)
    (tmp_path / "two.csv").write_text(header + lines[0] + lines[-1])
    # A block may end with one row, and the next before any.
    for block in (None, len(lines[0])):
        assert applied("kind", tmp_path / "two.csv", block=block)[1].rows == 2
    table = rows(500)[:20].copy()
    table.loc[11, "note"] = "long " * 2000
    table.to_csv(tmp_path / "long.csv", index=False)
    assert applied("kind", tmp_path / "long.csv", block=500)[0].equals(applied("kind")[0][:20])


def test_memory_does_not_grow_with_the_file(folder, tmp_path):
    header, _, body = (folder / "new.csv").read_text().partition("\n")
    peaks = []
    for copies in (2, 10):
        (tmp_path / "long.csv").write_text(header + "\n" + body * copies)
        tracemalloc.start()
        predict_file(folder / "weight.kt", tmp_path / "long.csv", output=tmp_path / "out.csv", block=10_000, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_the_plan_of_a_large_file_has_about_its_rows(folder, tmp_path):
    header, _, body = (folder / "new.csv").read_text().partition("\n")
    (tmp_path / "long.csv").write_text(header + "\n" + body * 40)
    plans = []
    for data in (folder / "new.csv", tmp_path / "long.csv"):
        with compute_on("local", planned=plans.append, planned_from=0):
            predict_file(folder / "weight.kt", data, output=tmp_path / "out.csv", block=100_000)
    assert (plans[0].rows, plans[0].work) == (500, ("predictions of 500 rows, a block of them at a time",))
    assert 15_000 < plans[1].rows < 25_000
    assert plans[1].work == (f"predictions of about {plans[1].rows:,} rows, a block of them at a time",)


def test_the_plan_of_predictions_counts_a_value_for_each_row_and_centre(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("kerntest.engines.plan.costs", lambda: dict.fromkeys(UNITS, 0.0) | {"exp": 1.0})
    plans = []
    with compute_on("local", planned=plans.append, planned_from=0, threads=1):
        predict_file(folder / "weight.kt", folder / "new.csv", output=tmp_path / "out.csv")
    centres = len(SVM.load(folder / "weight.kt").model.expansion.centres)
    # An exponential of the numbers and one of the categories.
    assert plans[0].seconds_range[0] == 2 * 500 * centres


def test_the_plan_of_predictions_counts_the_row_groups_of_parquet(folder, tmp_path):
    table, plans = pd.read_csv(folder / "new.csv"), []
    large = pd.concat([table] * 200, ignore_index=True)
    for size in (5000, 100_000):
        large.to_parquet(tmp_path / f"{size}.parquet", row_group_size=size)
        with compute_on("local", planned=plans.append, planned_from=0, threads=1):
            predict_file(folder / "weight.kt", tmp_path / f"{size}.parquet", output=tmp_path / "out.csv")
    small, one = (plan.memory_bytes for plan in plans)
    assert one - small > 100_000


@pytest.mark.parametrize("model", ["kind", "weight", "usual", "both"])
def test_models_are_applied_to_files_without_pandas(folder, tmp_path, model):
    run = "from kerntest import predict_file; predict_file(sys.argv[1], sys.argv[2], output=sys.argv[3])"
    loaded = modules_of(run, folder / f"{model}.kt", folder / "new.csv", tmp_path / "out.csv")
    assert "pyarrow" in loaded
    assert "pandas" not in loaded


# Rows that lack a value, or have one that does not fit.


@pytest.fixture
def changed(folder, tmp_path):
    """Return what writes the rows anew with other values at (line, column), and as many rows."""

    def write(values, count=500):
        lines = list(csv.reader(io.StringIO((folder / "new.csv").read_text())))[: 1 + count]
        for (number, column), value in values.items():
            lines[number][lines[0].index(column)] = value
        with (tmp_path / "changed.csv").open("w", newline="") as file:
            csv.writer(file).writerows(lines)
        return tmp_path / "changed.csv"

    return write


HOLES = {(3, "size"): "", (6, "size"): "NA"}


@pytest.mark.parametrize("model", RUNS)
def test_missing_values_are_refused_left_out_or_left_empty(applied, changed, model):
    whole, path = applied(model, **RUNS[model])[0], changed(HOLES)
    with pytest.raises(DataError, match=r"changed\.csv, line 5: column 'size' has no value") as caught:
        applied(model, path, block=60)
    assert caught.value.where["line"] == 5
    assert "missing=" in caught.value.hint
    dropped, report = applied(model, path, missing="drop", block=2000, **RUNS[model])
    assert dropped["row"].astype(int).tolist() == [k for k in range(1, 501) if k not in {3, 6}]
    assert (report.rows, report.incomplete) == (500, 2)
    empty, _ = applied(model, path, missing="empty", block=2000, **RUNS[model])
    assert empty["row"].equals(whole["row"])
    assert (empty.iloc[[2, 5], 1:] == "").all(axis=None)
    names = [name for name in whole.columns if model != "usual" or name != "prediction"]
    for found in (dropped, empty.drop(index=[2, 5])):
        np.testing.assert_allclose(
            numbers(found, names), numbers(whole.drop(index=[2, 5]), names), rtol=1e-9, atol=1e-7
        )
    # A block may have no row that is complete, and a file.
    cut, report = applied(model, changed(HOLES, 12), missing="drop", block=60, **RUNS[model])
    assert cut["row"].astype(int).tolist() == [1, 2, 4, 5, 7, 8, 9, 10, 11, 12]
    nothing = changed({(1, "size"): "", (2, "size"): "NA"}, 2)
    empty, report = applied(model, nothing, missing="empty", **RUNS[model])
    assert (empty.iloc[:, 1:] == "").all(axis=None)
    assert (report.incomplete, getattr(report, "residual", None)) == (2, None)
    with pytest.raises(DataError, match="every row"):
        applied(model, nothing, missing="drop")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("size", "oops", r"line \d+: column 'size' holds 'oops', which is not a number"),
        ("size", "inf", r"line \d+: column 'size' holds 'inf', which is not a finite number"),
        ("size", "007", "column 'size' holds '007', which is not a number"),
        ("day", "soon", r"line \d+: column 'day' holds 'soon', which is not a date"),
        ("colour", "violet", r"line \d+: column 'colour' holds 'violet', unknown to .*kind.kt, in 1 row"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_line(applied, changed, column, value, message):
    for options, holes in (({"block": 700}, {}), ({"missing": "drop"}, {(20, "day"): "", (398, "day"): ""})):
        path = changed({(401, column): value, **holes})
        with pytest.raises(DataError, match=message) as caught:
            applied("kind", path, **options)
        assert value in path.read_text().splitlines()[caught.value.where["line"] - 1]


def test_numbers_too_large_for_a_float_are_refused_and_nothing_is_written(folder, tmp_path):
    train_kpca(
        folder / "train.csv", columns="size,weight", kernel="linear", scale="none", output=tmp_path / "linear.kt"
    )
    table = rows(20).assign(weight=1.7e308)
    table.loc[11, "size"] = 1.7e308
    table.to_csv(tmp_path / "huge.csv", index=False)
    for options in ({"residual": True}, {"reconstruct": True}):
        with pytest.raises(UndecidedError, match=r"too large for these rows|overflows") as caught:
            transform_file(tmp_path / "linear.kt", tmp_path / "huge.csv", output=tmp_path / "out.csv", **options)
        assert caught.value.exit_code == 4
        assert not (tmp_path / "out.csv").exists()


def test_a_target_that_is_kept_stands_beside_its_predictions(applied):
    plain, found = applied("ridge", interval=0.9)[0], applied("ridge", keep="weight", interval=0.9)[0]
    assert list(found.columns) == ["row", "weight", "weight_predicted", "weight_std", "weight_low", "weight_high"]
    assert found["weight_predicted"].equals(plain["weight"])
    assert found["weight"].astype(float).equals(rows(500)["weight"])


# What cannot be.


def test_columns_are_handed_through_unless_the_output_has_one_of_the_name(folder, applied, tmp_path):
    found, report = applied("kind", keep=["note", "size"])
    assert (list(found.columns), report.columns_ignored) == (["row", "size", "note", "prediction"], ("id", "fixed"))
    for model, name, made, options in (
        ("kind", "prediction", "predictions", {}),
        ("kind", "p:10", "predictions", {"proba": True}),
        ("usual", "decision", "predictions", {"decision": True}),
        ("ridge", "weight_std", "predictions", {"std": True}),
        ("two", "size", "pre-images", {"reconstruct": True}),
        ("two", "pc2", "scores", {}),
        ("two", "row", "scores", {}),
    ):
        rows(30).rename(columns={"id": name} if name != "size" else {}).to_csv(tmp_path / "named.csv", index=False)
        with pytest.raises(UsageError, match=f"'{name}' of .* cannot be kept beside the {made}"):
            applied(model, tmp_path / "named.csv", keep=name, **options)
        # Of all columns those are kept that can be.
        found, report = applied(model, tmp_path / "named.csv", keep="*", **options)
        assert list(found.columns).count(name) == 1
        left, _, why = report.warnings[0].partition(f" of {tmp_path / 'named.csv'} ")
        assert (name in left.split(", "), why) == (True, "not kept: what is written has columns so called")
    rows(30).rename(columns={"weight": "row"}).to_csv(tmp_path / "row.csv", index=False)
    train_kpca(tmp_path / "row.csv", columns="size,row", output=folder / "row.kt")
    # Beside a column so called that the model makes, the numbers of the rows have another name.
    found, report = applied("row", tmp_path / "row.csv", reconstruct=True, keep="note")
    assert list(found.columns) == ["row_number", "note", "size", "row", "reconstruction_error"] == [*report.columns]
    assert found["row_number"].astype(int).tolist() == list(range(1, 31))
    assert list(applied("row", tmp_path / "row.csv")[0].columns) == ["row", "pc1", "pc2"]


def test_what_cannot_be_is_refused(folder, applied, tmp_path):
    rows(5).drop(columns="day").to_csv(tmp_path / "lacking.csv", index=False)
    train_kpca(folder / "train.csv", columns="size,weight", kernel="polynomial", output=folder / "poly.kt")
    SVM(kernel="precomputed").fit(np.eye(6) + 0.5, ["a", "b"] * 3).save(folder / "matrix.kt")
    KernelPCA(2, "precomputed").fit(np.eye(5) + 1).save(tmp_path / "given.kt")
    KernelRidge(0.1, intervals=False).fit(rows(30)[["size", "weight"]], "weight").save(folder / "plain.kt")
    KernelRidge(0.1).fit(rows(30)[["size", "weight"]], rows(30)[["id", "size"]].set_axis(["y", "y_std"], axis=1)).save(
        folder / "twice.kt"
    )
    for error, message, call in (
        (UsageError, r"written as \.csv, \.jsonl or \.parquet, not as \.txt", lambda: predict_file(folder / "kind.kt", folder / "new.csv", output=tmp_path / "out.txt")),
        (UsageError, "has no probabilities", lambda: applied("weight", proba=True)),
        (UsageError, "and has none", lambda: applied("plain", interval=0.9)),
        (UsageError, "no standard deviations and no intervals", lambda: applied("weight", std=True)),
        (UsageError, "proba=True is for support vector machines", lambda: applied("ridge", proba=True)),
        (UsageError, "decision=True is for support vector machines", lambda: applied("ridge", decision=True)),
        (UsageError, "interval must be", lambda: applied("ridge", interval=90)),
        (UsageError, "two columns 'y_std'", lambda: applied("twice", std=True)),
        (UsageError, "missing must be", lambda: applied("kind", missing="dorp")),
        (UsageError, "unknown must be", lambda: applied("kind", unknown="eror")),
        (UsageError, "column 'nope' is not in", lambda: applied("kind", keep="nope")),
        (DataError, "kind.kt is a model, not a table", lambda: applied("kind", "kind.kt")),
        (DataError, "kind.kt is a model, not a table", lambda: train_kpca(folder / "kind.kt")),
        (ModelError, "is not a model", lambda: predict_file(folder / "new.csv", folder / "new.csv")),
        (DataError, "does not exist", lambda: applied("kind", tmp_path / "nowhere.csv")),
        (DataError, r"has no column 'day', which .* needs", lambda: applied("kind", tmp_path / "lacking.csv")),
        # Before anything is read.
        (UsageError, "has no pre-images", lambda: applied("poly", "no such file.csv", reconstruct=True)),
        (ModelError, "fitted to a matrix of kernel values", lambda: applied("matrix")),
        (ModelError, "fitted to a matrix of kernel values", lambda: transform_file(tmp_path / "given.kt", folder / "new.csv")),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


def test_models_of_other_kinds_are_sent_to_their_command(folder):
    for function, model, way in (
        (transform_file, "kind", "`kerntest predict {} DATA` predicts with it"),
        (transform_file, "ridge", "`kerntest predict {} DATA` predicts with it"),
        (predict_file, "two", "`kerntest transform {} DATA` projects rows with it"),
    ):
        other = {transform_file: "predict_file predicts", predict_file: "transform_file projects rows"}[function]
        with pytest.raises(ModelError, match="holds a model of kind") as caught:
            function(folder / f"{model}.kt", folder / "new.csv")
        assert caught.value.hint == f"{other} with it"
        with pytest.raises(ModelError, match=r"which `kerntest .*` cannot apply") as caught, as_typed():
            function(folder / f"{model}.kt", folder / "new.csv")
        assert caught.value.hint == way.format(folder / f"{model}.kt")


def test_what_true_means_of_one_class_is_told_wherever_it_is_met(folder):
    told = "true for rows like the training rows, false for outliers"
    done = run_process("predict", folder / "usual.kt", folder / "new.csv")
    assert done.out.startswith("row,prediction")
    assert f"prediction: {told}" in done.err
    assert told not in run_process("predict", folder / "kind.kt", folder / "new.csv").err
    assert ("task", f"one-class: {told}") in inspect_model(folder / "usual.kt").in_words().lines


def test_numbers_with_a_currency_that_training_had_none_of_are_read_as_test_rows_are(tmp_path):
    """The reader is told to look at the units. Where training had a unit, numbers of another one, or of none, are refused."""
    rng = np.random.default_rng(0)
    plain = pd.DataFrame({"price": np.round(rng.uniform(900, 3000, 80), 2), "y": rng.normal(size=80)})
    dollars = plain.assign(price=[f"${value:,.2f}" for value in plain["price"]])
    found, told = {}, {}
    for name, table in (("plain", plain), ("dollars", dollars)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        parquet.write_table(pa.Table.from_pandas(table), tmp_path / f"{name}.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train_ridge(tmp_path / "plain.csv", "y", lambda_=0.1, output=tmp_path / "m.kt")
        judged = train_ridge(tmp_path / "plain.csv", "y", lambda_=0.1, test=tmp_path / "dollars.csv")
    for data in ("plain.csv", "dollars.csv", "dollars.parquet"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told[data] = predict_file(
                tmp_path / "m.kt", tmp_path / data, output=tmp_path / "out.csv", block=500
            ).warnings
        found[data] = pd.read_csv(tmp_path / "out.csv")["y"].to_numpy()
        assert_close(found[data], found["plain.csv"])
    assert judged.test.rmse == pytest.approx(np.sqrt(np.mean((found["dollars.csv"] - plain["y"]) ** 2)), rel=1e-9)
    (warning,) = told["dollars.csv"]
    assert (told["plain.csv"], len(told["dollars.parquet"])) == ((), 1)
    assert warning.startswith("column 'price' is written as plain number in ")
    assert "m.kt and as number with $ in " in warning
    assert warning.endswith("check that the units agree")
    assert [one for one in judged.warnings if "and as number with $ in " in one]
