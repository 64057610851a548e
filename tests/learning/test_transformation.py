"""Components of a table, their file, and files of any size projected on them."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from learning.alike import assert_models_alike
from model_archives import array_of, rewritten
from pyarrow import parquet

from kerntest import KernelPCA, train_kpca, train_svm, transform_file
from kerntest.errors import DataError, ModelError, UndecidedError, UsageError


def rows(count, seed=0):
    """Return a table with a column of every kind, one that numbers the rows, and one that never changes."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, count)
    return pd.DataFrame(
        {
            "id": [f"row {k}" for k in range(count)],
            "across": np.round(np.cos(angle) + 0.1 * rng.normal(size=count), 4),
            "fixed": np.full(count, 2.5),
            "up": np.round(np.sin(angle) + 0.1 * rng.normal(size=count), 4),
            "colour": np.where(np.cos(angle) > 0, "red", "green"),
            "day": (np.datetime64("2024-01-01") + (100 * (1 + np.sin(angle))).astype(int)).astype(str),
            "flag": np.where(np.sin(angle) > 0, "true", "false"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("transformation")
    rows(150, seed=1).to_csv(path / "train.csv", index=False)
    rows(400).to_csv(path / "new.csv", index=False)
    train_kpca(path / "train.csv", components=6, output=path / "all.kt")
    train_kpca(
        path / "train.csv", components=3, columns="across,up,fixed", kernel="gaussian(1)", output=path / "two.kt"
    )
    return path


def transformed(*arguments, **options):
    """Return the output as a data frame of texts, and the report."""
    file = io.BytesIO()
    report = transform_file(*arguments, output=file, **options)
    return pd.read_csv(io.BytesIO(file.getvalue()), dtype=str, keep_default_na=False), report


def numbers(found, names):
    return found[names].astype(float).to_numpy()


def test_scores_are_those_of_the_file_read_as_a_whole(folder):
    found, report = transformed(folder / "all.kt", folder / "new.csv", residual=True)
    pca = KernelPCA.load(folder / "all.kt")
    assert list(found.columns) == ["row", "pc1", "pc2", "pc3", "pc4", "pc5", "pc6", "residual"]
    expected = pca.transform(folder / "new.csv")
    np.testing.assert_allclose(numbers(found, [f"pc{k}" for k in range(1, 7)]), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["residual"].astype(float), pca.residuals(folder / "new.csv"), rtol=0, atol=1e-12)
    assert report.residual == pytest.approx(pca.residuals(folder / "new.csv").mean(), rel=1e-9)
    assert (report.rows, report.transformed, report.incomplete, report.components) == (400, 400, 0, 6)
    assert report.columns_ignored == ("id", "fixed")
    assert not report.reconstructed
    assert report.reconstruction_error is None


def test_pre_images_are_those_of_the_class_in_the_units_of_the_columns(folder):
    found, report = transformed(folder / "all.kt", folder / "new.csv", reconstruct=True)
    names = ["across", "fixed", "up", "colour", "day", "flag"]
    assert list(found.columns) == ["row", *names, "reconstruction_error"]
    whole = KernelPCA.load(folder / "all.kt").denoise(folder / "new.csv")
    np.testing.assert_allclose(
        numbers(found, ["across", "fixed", "up"]), whole[["across", "fixed", "up"]], rtol=0, atol=1e-6
    )
    assert (found["colour"] == whole["colour"]).all()
    assert ((found["flag"] == "true") == whole["flag"]).all()
    assert (pd.to_datetime(found["day"]) - whole["day"]).abs().max() < pd.Timedelta(seconds=1)
    given = rows(400)
    by_column = {one.column: one for one in report.by_column}
    rmse = np.sqrt(((whole["across"] - given["across"]) ** 2).mean())
    assert by_column["across"].rmse == pytest.approx(rmse, rel=1e-6)
    assert by_column["fixed"].rmse == 0
    assert by_column["colour"].changed == pytest.approx((whole["colour"] != given["colour"]).mean(), abs=1e-12)
    assert by_column["colour"].rmse is None
    days = (whole["day"] - pd.to_datetime(given["day"])).dt.total_seconds() / 86400
    assert by_column["day"].rmse == pytest.approx(np.sqrt((days**2).mean()), rel=1e-4)
    errors = found["reconstruction_error"].astype(float)
    assert report.reconstruction_error == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-9)
    assert report.not_converged == 0


def test_the_first_components_alone_leave_more(folder):
    few, one = transformed(folder / "two.kt", folder / "new.csv", components=1, reconstruct=True, residual=True)
    _, all_of_them = transformed(folder / "two.kt", folder / "new.csv", reconstruct=True, residual=True)
    assert one.components == 1
    assert one.residual > all_of_them.residual
    assert list(few.columns) == ["row", "across", "fixed", "up", "reconstruction_error", "residual"]
    scores, _ = transformed(folder / "two.kt", folder / "new.csv", components=2)
    assert list(scores.columns) == ["row", "pc1", "pc2"]
    every, _ = transformed(folder / "two.kt", folder / "new.csv")
    np.testing.assert_allclose(scores[["pc1", "pc2"]].astype(float), every[["pc1", "pc2"]].astype(float), atol=1e-10)
    with pytest.raises(UsageError, match="has 3 components, not 4"):
        transformed(folder / "two.kt", folder / "new.csv", components=4)


@pytest.mark.parametrize(("block", "reconstruct"), [(300, False), (5000, False), (2000, True)])
def test_the_size_of_the_blocks_changes_nothing_but_rounding(folder, block, reconstruct):
    whole, _ = transformed(folder / "two.kt", folder / "new.csv", reconstruct=reconstruct, keep="id")
    cut, _ = transformed(folder / "two.kt", folder / "new.csv", reconstruct=reconstruct, keep="id", block=block)
    assert cut["id"].equals(whole["id"])
    names = [name for name in whole.columns if name != "id"]
    np.testing.assert_allclose(numbers(cut, names), numbers(whole, names), rtol=0, atol=1e-7)


def test_parquet_keeps_the_types(folder, tmp_path):
    table = rows(400)
    table["day"], table["flag"] = pd.to_datetime(table["day"]), table["flag"] == "true"
    parquet.write_table(pa.Table.from_pandas(table), tmp_path / "new.parquet")
    transform_file(folder / "all.kt", tmp_path / "new.parquet", output=tmp_path / "out.parquet", reconstruct=True)
    stored = parquet.read_table(tmp_path / "out.parquet")
    kinds = {name: str(stored.schema.field(name).type) for name in stored.column_names}
    assert kinds == {
        "row": "int64",
        "across": "double",
        "fixed": "double",
        "up": "double",
        "colour": "string",
        "day": "timestamp[us]",
        "flag": "bool",
        "reconstruction_error": "double",
    }
    by_csv, _ = transformed(folder / "all.kt", folder / "new.csv", reconstruct=True)
    np.testing.assert_allclose(stored["up"].to_numpy(), by_csv["up"].astype(float), rtol=0, atol=1e-9)


def test_missing_values_are_refused_left_out_or_left_empty(folder, tmp_path):
    table = rows(30)
    table["across"] = table["across"].astype(object)
    table.loc[[3, 7], "across"] = ""
    table.to_csv(tmp_path / "gaps.csv", index=False)
    with pytest.raises(DataError, match="line 5: column 'across' has no value"):
        transformed(folder / "two.kt", tmp_path / "gaps.csv")
    dropped, report = transformed(folder / "two.kt", tmp_path / "gaps.csv", missing="drop")
    assert dropped["row"].astype(int).tolist() == [k for k in range(1, 31) if k not in {4, 8}]
    assert (report.transformed, report.incomplete) == (28, 2)
    empty, _ = transformed(folder / "two.kt", tmp_path / "gaps.csv", missing="empty", reconstruct=True)
    assert len(empty) == 30
    assert (empty.loc[[3, 7], ["across", "fixed", "up", "reconstruction_error"]] == "").all(axis=None)
    table["across"] = ""
    table.to_csv(tmp_path / "nothing.csv", index=False)
    nothing, report = transformed(folder / "two.kt", tmp_path / "nothing.csv", missing="empty", residual=True)
    assert (nothing[["pc1", "pc2", "pc3", "residual"]] == "").all(axis=None)
    assert report.residual is None
    with pytest.raises(DataError, match="every row"):
        transformed(folder / "two.kt", tmp_path / "nothing.csv", missing="drop")


def test_unknown_categories_are_refused_or_unlike_all(folder, tmp_path):
    table = rows(30)
    table.loc[4, "colour"] = "violet"
    table.to_csv(tmp_path / "violet.csv", index=False)
    with pytest.raises(DataError, match="violet"):
        transformed(folder / "all.kt", tmp_path / "violet.csv")
    found, report = transformed(folder / "all.kt", tmp_path / "violet.csv", unknown="ignore", reconstruct=True)
    assert report.unknown[0].to_dict()["values"] == ["violet"]
    assert found.loc[4, "colour"] in {"red", "green"}


def test_columns_are_handed_through_unless_the_output_has_one_of_the_name(folder, tmp_path):
    found, _ = transformed(folder / "two.kt", folder / "new.csv", keep=["up", "id"])
    assert list(found.columns) == ["row", "id", "up", "pc1", "pc2", "pc3"]
    with pytest.raises(UsageError, match=r"'up' of .* cannot be kept beside the pre-images"):
        transformed(folder / "two.kt", folder / "new.csv", keep=["up"], reconstruct=True)
    rows(30).rename(columns={"id": "pc2"}).to_csv(tmp_path / "named.csv", index=False)
    with pytest.raises(UsageError, match=r"'pc2' of .* cannot be kept beside the scores"):
        transformed(folder / "two.kt", tmp_path / "named.csv", keep="pc2")
    rows(30).rename(columns={"up": "row"}).to_csv(tmp_path / "row.csv", index=False)
    train_kpca(tmp_path / "row.csv", columns="across,row", output=tmp_path / "row.kt")
    with pytest.raises(UsageError, match="two columns 'row'"):
        transformed(tmp_path / "row.kt", tmp_path / "row.csv", reconstruct=True)
    assert list(transformed(tmp_path / "row.kt", tmp_path / "row.csv")[0].columns) == ["row", "pc1", "pc2"]


def test_models_of_other_kinds_are_sent_to_their_command(folder, tmp_path):
    train_svm(folder / "train.csv", "colour", columns="across,up", output=tmp_path / "svm.kt")
    with pytest.raises(ModelError, match="kind 'svm'") as caught:
        transformed(tmp_path / "svm.kt", folder / "new.csv")
    assert f"kerntest predict {tmp_path / 'svm.kt'} DATA" in caught.value.hint
    KernelPCA(2, "precomputed").fit(np.eye(5) + 1).save(tmp_path / "given.kt")
    with pytest.raises(ModelError, match="matrix of kernel values"):
        transformed(tmp_path / "given.kt", folder / "new.csv")


def test_kernels_without_pre_images_are_refused_before_anything_is_read(folder, tmp_path):
    train_kpca(folder / "train.csv", columns="across,up", kernel="polynomial", output=tmp_path / "poly.kt")
    with pytest.raises(UsageError, match="has no pre-images"):
        transformed(tmp_path / "poly.kt", "no such file.csv", reconstruct=True)


def test_the_same_rows_give_the_same_model_on_any_number_of_threads(folder, tmp_path):
    for name, threads in (("one.kt", 1), ("two.kt", 2)):
        train_kpca(folder / "new.csv", components=4, threads=threads, output=tmp_path / name)
    # Axes are as sharp as their eigenvalues are apart.
    values = KernelPCA.load(tmp_path / "one.kt").eigenvalues_
    condition = values[0] / -np.diff(values).max()
    assert_models_alike(tmp_path / "one.kt", tmp_path / "two.kt", condition=condition)


def test_the_result_says_what_was_found(folder):
    result = train_kpca(folder / "train.csv", components=4, color="colour")
    assert (result.schema, result.command, result.components, result.n_train) == ("kerntest.kpca/1", "kpca", 4, 150)
    assert len(result.eigenvalues) == len(result.explained_variance_ratio) == 4
    assert result.explained == pytest.approx(sum(result.explained_variance_ratio), rel=1e-12)
    assert result.train.residual == pytest.approx((1 - result.explained) * result.trace / 150, rel=1e-12)
    assert result.columns == ("across", "up", "day", "flag")
    assert set(result.columns_left_out) == {"id", "fixed"}
    assert result.color == "colour"
    assert result.provenance.inputs[0].rows == 150
    table = rows(150, seed=1).drop(columns=["colour", "id"])
    table["day"], table["flag"] = pd.to_datetime(table["day"]), table["flag"] == "true"
    assert result.train.residual == pytest.approx(KernelPCA(4).fit(table).residuals(table).mean(), rel=1e-9)


def test_associations_are_correlations_and_correlation_ratios(folder):
    table = rows(150, seed=1)
    result = train_kpca(folder / "train.csv", components=2)
    scores = KernelPCA.load(folder / "all.kt").transform(folder / "train.csv")[:, :2]
    found = {one.column: one.to_dict()["values"] for one in result.associations}
    for place in range(2):
        expected = np.corrcoef(table["across"], scores[:, place])[0, 1]
        assert found["across"][place] == pytest.approx(expected, rel=1e-9)
        parts = [scores[table["colour"] == colour, place] for colour in ("red", "green")]
        between = sum(len(part) * part.mean() ** 2 for part in parts)
        ratio = np.sqrt(between / (scores[:, place] ** 2).sum())
        assert found["colour"][place] == pytest.approx(ratio, rel=1e-9)
    clearest = [max(map(abs, values)) for values in found.values()]
    assert clearest == sorted(clearest, reverse=True)


def test_a_table_asked_for_wrongly_is_refused(folder, tmp_path):
    with pytest.raises(UsageError, match="column 'color' is not in"):
        train_kpca(folder / "train.csv", color="color")
    with pytest.raises(UsageError, match="no columns to read"):
        train_kpca(folder / "train.csv", kernel="precomputed")
    with pytest.raises(DataError, match="exists already"):
        train_kpca(folder / "train.csv", output=folder / "all.kt")
    with pytest.raises(UsageError, match="drawn into"):
        train_kpca(folder / "train.csv", plot=tmp_path / "picture.txt")


WRONG = {
    "no_eigenvalues": (("arrays", "eigenvalues", None), "eigenvalues"),
    "one_too_few": (("arrays", "eigenvalues", np.array([1.0])), "do not fit together"),
    "ascending": (("arrays", "eigenvalues", np.array([1.0, 2.0, 3.0])), "positive and descending"),
    "negative": (("arrays", "eigenvalues", np.array([2.0, 1.0, -1.0])), "positive and descending"),
    "mean": (("arrays", "mean", np.zeros(3)), "mean and its centres"),
    "trace": (("fields", "trace", 0.0), "trace must be a positive number"),
    "mean_square": (("fields", "mean_square", "much"), "mean_square must be"),
    "kernel": (("fields", "kernel", "gausian(1)"), "cannot be read"),
    "open_kernel": (("fields", "kernel", "gaussian"), "has no bandwidth"),
    "constants": (("fields", "constants", [{"name": "up", "place": 0, "value": 1.0}]), "columns of their own"),
    "place": (("fields", "constants", [{"name": "x", "place": 9, "value": 1.0}]), "each in its place"),
    "constant_text": (("fields", "constants", [{"name": "x", "place": 0, "value": "1"}]), "finite number"),
    "no_encoder": (("fields", "encoder", {"scale": "none", "columns": []}), "columns"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_model_whose_parts_do_not_fit_is_refused(folder, tmp_path, name):
    (where, key, value), message = WRONG[name]
    content = (folder / "two.kt").read_bytes()
    (tmp_path / "wrong.kt").write_bytes(rewritten(content, **{where: {key: value}}))
    with pytest.raises(ModelError, match=message) as caught:
        KernelPCA.load(tmp_path / "wrong.kt")
    assert caught.value.exit_code == 5


def test_a_model_of_another_learner_is_told_by_name(folder, tmp_path):
    train_svm(folder / "train.csv", "colour", columns="across,up", output=tmp_path / "svm.kt")
    with pytest.raises(ModelError, match="'svm' model, not kernel principal components"):
        KernelPCA.load(tmp_path / "svm.kt")


def test_numbers_too_large_for_a_float_are_refused_and_nothing_is_written(folder, tmp_path):
    train_kpca(folder / "train.csv", columns="across,up", kernel="linear", scale="none", output=tmp_path / "linear.kt")
    table = rows(20)
    table.loc[11, "across"] = 1.7e308
    table["up"] = 1.7e308
    table.to_csv(tmp_path / "huge.csv", index=False)
    for options in ({"residual": True}, {"reconstruct": True}):
        with pytest.raises(UndecidedError, match=r"too large for these rows|overflows") as caught:
            transform_file(tmp_path / "linear.kt", tmp_path / "huge.csv", output=tmp_path / "out.csv", **options)
        assert caught.value.exit_code == 4
        assert not (tmp_path / "out.csv").exists()


def test_a_model_with_a_category_that_its_columns_do_not_have_is_refused(folder, tmp_path):
    content = (folder / "all.kt").read_bytes()
    for wrong in (-1, 2):
        codes = array_of(content, "centres_codes").copy()
        codes[5, 0] = wrong
        (tmp_path / "wrong.kt").write_bytes(rewritten(content, arrays={"centres_codes": codes}))
        with pytest.raises(ModelError, match="categories that its columns do not have"):
            KernelPCA.load(tmp_path / "wrong.kt")
