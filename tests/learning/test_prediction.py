import csv
import io
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from kerntest import SVM, predict_file, train_svm
from kerntest.errors import DataError, ModelError, UsageError

COLOURS = ["red", "green", "1", "a,b"]


def rows(count, seed=0):
    """Return a table with a column of every kind, and texts that are hard to cut at the right place."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, count)
    return pd.DataFrame(
        {
            "id": np.arange(count),
            "size": np.round(rng.normal(size=count), 4),
            "note": [f'text "{k}"' + ("\nmore" if k % 7 == 0 else "") for k in range(count)],
            "colour": rng.choice(COLOURS, count),
            "flag": rng.choice(["true", "false"], count),
            "day": days.astype(str),
            "weight": np.round(100 * rng.normal(size=count), 2),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a model of three classes, one of numbers, and rows to predict."""
    path = tmp_path_factory.mktemp("prediction")
    train = rows(150, seed=1)
    kind = train["size"] + (train["colour"] == "red") + 0.5 * (train["flag"] == "true")
    train["kind"] = np.where(kind > 1, 10, np.where(train["weight"] > 50, 20, 30))
    train = train.drop(columns=["id", "note"])
    train.to_csv(path / "train.csv", index=False)
    train_svm(path / "train.csv", "kind", probability=True, output=path / "kind.kt")
    train_svm(path / "train.csv", "weight", task="regress", exclude="kind", output=path / "weight.kt")
    rows(500).to_csv(path / "new.csv", index=False)
    return path


def predicted(*arguments, **options):
    """Return the predictions as a data frame of texts, and the report."""
    file = io.BytesIO()
    report = predict_file(*arguments, output=file, **options)
    return pd.read_csv(io.BytesIO(file.getvalue()), dtype=str, keep_default_na=False), report


def test_predictions_are_those_of_the_file_read_as_a_whole(folder):
    found, report = predicted(folder / "kind.kt", folder / "new.csv", decision=True, proba=True)
    machine = SVM.load(folder / "kind.kt")
    assert found["prediction"].astype(float).tolist() == machine.predict(folder / "new.csv").tolist()
    assert set(found["prediction"]) <= {"10", "20", "30"}
    decisions = found[[name for name in found.columns if name.startswith("decision:")]].astype(float).to_numpy()
    np.testing.assert_allclose(decisions, machine.decision_function(folder / "new.csv"), rtol=1e-12, atol=1e-12)
    probabilities = found[["p:10", "p:20", "p:30"]].astype(float).to_numpy()
    np.testing.assert_allclose(probabilities, machine.predict_proba(folder / "new.csv"), rtol=1e-12, atol=1e-12)
    assert found["row"].astype(int).tolist() == list(range(1, 501))
    assert (report.rows, report.predicted, sum(report.predictions.values())) == (500, 500, 500)
    assert report.columns_ignored == ("id", "note")


@pytest.mark.parametrize("block", [1000, 4096])
def test_the_size_of_the_blocks_changes_nothing(folder, block):
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv", keep="*")
    cut, _ = predicted(folder / "kind.kt", folder / "new.csv", keep="*", block=block)
    assert cut.equals(whole)
    numbers, report = predicted(folder / "weight.kt", folder / "new.csv", block=block)
    expected = SVM.load(folder / "weight.kt").predict(folder / "new.csv")
    np.testing.assert_allclose(numbers["prediction"].astype(float), expected, rtol=1e-12, atol=1e-12)
    assert report.numbers.minimum == pytest.approx(expected.min(), rel=1e-12)
    assert report.numbers.maximum == pytest.approx(expected.max(), rel=1e-12)
    assert report.numbers.mean == pytest.approx(expected.mean(), rel=1e-9)


def test_rows_like_those_of_a_model_of_one_class_are_told_from_outliers(folder, tmp_path):
    SVM(task="one-class", nu=0.2).fit(rows(150, seed=1)[["size", "weight"]]).save(tmp_path / "usual.kt")
    found, report = predicted(tmp_path / "usual.kt", folder / "new.csv", decision=True, block=2000)
    usual = SVM.load(tmp_path / "usual.kt").decision_function(rows(500)[["size", "weight"]]) >= 0
    assert found["prediction"].tolist() == ["true" if one else "false" for one in usual]
    np.testing.assert_array_equal(found["decision"].astype(float) >= 0, usual)
    assert report.predictions == {"true": int(usual.sum()), "false": int((~usual).sum())}


def test_kept_columns_are_handed_through_as_typed(folder):
    found, report = predicted(folder / "kind.kt", folder / "new.csv", keep=["note", "size"], block=1000)
    original = pd.read_csv(folder / "new.csv", dtype=str, keep_default_na=False)
    assert list(found.columns) == ["row", "size", "note", "prediction"]
    assert found["note"].equals(original["note"])
    assert found["size"].equals(original["size"])
    assert report.columns_ignored == ("id",)


def test_columns_may_stand_in_any_order_and_compressed(folder, tmp_path):
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv")
    table = rows(500)
    table[list(table.columns)[::-1]].to_csv(tmp_path / "turned.csv.gz", index=False)
    turned, _ = predicted(folder / "kind.kt", tmp_path / "turned.csv.gz", block=500)
    assert turned.equals(whole)


def test_several_files_are_one_table(folder, tmp_path):
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv")
    table = rows(500)
    for place, part in enumerate((table[:200], table[200:201], table[201:])):
        part.to_csv(tmp_path / f"part-{place}.csv", index=False)
    found, report = predicted(folder / "kind.kt", str(tmp_path / "part-*.csv"), block=3000)
    assert found.equals(whole)
    assert report.rows == 500


def test_a_block_may_end_with_one_row_and_the_next_before_any(folder, tmp_path):
    header, *lines = rows(40).drop(columns=["id", "note"]).to_csv(index=False).splitlines(keepends=True)
    lines.sort(key=len)
    path = tmp_path / "two.csv"
    path.write_text(header + lines[0] + lines[-1])
    whole, _ = predicted(folder / "kind.kt", path)
    cut, report = predicted(folder / "kind.kt", path, block=len(lines[0]))
    assert cut.equals(whole)
    assert report.rows == 2


def as_arrow(count=500):
    table = rows(count)
    table["flag"] = table["flag"] == "true"
    table["day"] = pd.to_datetime(table["day"])
    return pa.Table.from_pandas(table)


@pytest.mark.parametrize("block", [7, 100, None])
def test_parquet_goes_through_in_batches_with_its_types(folder, tmp_path, block):
    parquet.write_table(as_arrow(), tmp_path / "new.parquet", row_group_size=90)
    report = predict_file(
        folder / "kind.kt", tmp_path / "new.parquet", output=tmp_path / "out.parquet", keep="id,day", block=block
    )
    found = parquet.read_table(tmp_path / "out.parquet")
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv")
    assert found["prediction"].to_pylist() == whole["prediction"].astype(int).tolist()
    assert found["row"].to_pylist() == list(range(1, 501))
    assert found.schema.field("day").type == as_arrow().schema.field("day").type
    assert found["id"].to_pylist() == list(range(500))
    assert report.columns == ("row", "id", "day", "prediction")


def test_a_folder_of_parquet_is_one_table(folder, tmp_path):
    table = as_arrow()
    (tmp_path / "parts").mkdir()
    parquet.write_table(table[:123], tmp_path / "parts" / "a.parquet")
    parquet.write_table(table[123:], tmp_path / "parts" / "b.parquet")
    found, _ = predicted(folder / "kind.kt", tmp_path / "parts")
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv")
    assert found.equals(whole)


def with_holes(folder, tmp_path, count=500):
    lines = list(csv.reader(io.StringIO((folder / "new.csv").read_text())))[: 1 + count]
    lines[3][1] = ""
    lines[6][3] = "NA"
    with (tmp_path / "holes.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return tmp_path / "holes.csv"


def test_missing_values_are_refused_with_their_line(folder, tmp_path):
    with pytest.raises(DataError, match=r"holes\.csv, line 5: column 'size' has no value") as caught:
        predicted(folder / "kind.kt", with_holes(folder, tmp_path), block=60)
    assert caught.value.where["line"] == 5
    assert "--missing" in caught.value.hint


def test_missing_values_can_be_dropped_or_left_empty(folder, tmp_path):
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv", decision=True)
    path = with_holes(folder, tmp_path)
    dropped, report = predicted(folder / "kind.kt", path, missing="drop", decision=True, block=2000)
    complete = whole.drop(index=[2, 5]).reset_index(drop=True)
    assert dropped[["row", "prediction"]].equals(complete[["row", "prediction"]])
    assert (report.rows, report.predicted, report.incomplete) == (500, 498, 2)
    empty, _ = predicted(folder / "kind.kt", path, missing="empty", decision=True, block=2000)
    assert empty["row"].equals(whole["row"])
    assert (empty.loc[[2, 5], "prediction"] == "").all()
    assert (empty.iloc[[2, 5], 2:] == "").all(axis=None)
    assert empty["prediction"].drop(index=[2, 5]).equals(whole["prediction"].drop(index=[2, 5]))


def test_a_block_may_have_no_row_that_is_complete(folder, tmp_path):
    path = with_holes(folder, tmp_path, 12)
    whole, _ = predicted(folder / "kind.kt", path, missing="drop")
    cut, report = predicted(folder / "kind.kt", path, missing="drop", block=60)
    assert cut["row"].astype(int).tolist() == [1, 2, 4, 5, 7, 8, 9, 10, 11, 12]
    assert cut.equals(whole)
    assert (report.rows, report.predicted, report.incomplete) == (12, 10, 2)


def changed(folder, tmp_path, number, column, value):
    lines = list(csv.reader(io.StringIO((folder / "new.csv").read_text())))
    lines[number][lines[0].index(column)] = value
    with (tmp_path / "changed.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return tmp_path / "changed.csv"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("size", "oops", r"line \d+: column 'size' holds 'oops', which is not a number"),
        ("size", "inf", r"line \d+: column 'size' holds 'inf', which is not a finite number"),
        ("size", "007", "column 'size' holds '007', which is not a number"),
        ("day", "soon", r"line \d+: column 'day' holds 'soon', which is not a date"),
        ("colour", "violet", "holds 'violet', unknown to .*kind.kt, in 1 row"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_line(folder, tmp_path, column, value, message):
    path = changed(folder, tmp_path, 401, column, value)
    with pytest.raises(DataError, match=message) as caught:
        predicted(folder / "kind.kt", path, block=700)
    text = path.read_text().splitlines()
    assert value in text[caught.value.where["line"] - 1]


def test_a_value_that_does_not_fit_is_named_with_its_line_where_rows_are_left_out(folder, tmp_path):
    table = rows(500)
    table.loc[[20, 398], "day"] = None
    table.loc[400, "colour"] = "violet"
    table.to_csv(tmp_path / "odd.csv", index=False)
    with pytest.raises(DataError, match=r"holds 'violet', unknown to .*in 1 row \(the first in line \d+\)") as caught:
        predicted(folder / "kind.kt", tmp_path / "odd.csv", missing="drop")
    assert "violet" in (tmp_path / "odd.csv").read_text().splitlines()[caught.value.where["line"] - 1]


def test_unknown_categories_can_be_ignored_and_are_told(folder, tmp_path):
    path = changed(folder, tmp_path, 400, "colour", "violet")
    _, report = predicted(folder / "kind.kt", path, unknown="ignore", block=700)
    assert report.to_dict()["unknown"] == [{"column": "colour", "values": ["violet"], "rows": 1}]
    assert any("'violet'" in warning for warning in report.warnings)


def test_categories_mean_the_same_in_every_block(folder, tmp_path):
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv")
    table = rows(500)
    table["flag"] = table["flag"].str.upper()
    table["colour"] = table["colour"].replace("1", "1.0")
    table.to_csv(tmp_path / "otherwise.csv", index=False)
    found, _ = predicted(folder / "kind.kt", tmp_path / "otherwise.csv", block=800)
    assert found.equals(whole)


def test_decimal_commas_are_read_as_such(folder, tmp_path):
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv")
    rows(500).to_csv(tmp_path / "komma.csv", index=False, sep=";", decimal=",")
    found, report = predicted(folder / "kind.kt", tmp_path / "komma.csv", block=900)
    assert found.equals(whole)
    assert any("decimal comma" in warning for warning in report.warnings)


def test_thousands_may_have_commas_where_that_was_said(folder, tmp_path):
    plain = rows(500).assign(weight=1234.0)
    plain.to_csv(tmp_path / "plain.csv", index=False)
    plain.assign(weight="1,234").to_csv(tmp_path / "marked.csv", index=False)
    whole, _ = predicted(folder / "kind.kt", tmp_path / "plain.csv")
    found, _ = predicted(folder / "kind.kt", tmp_path / "marked.csv", decimal=".", block=900)
    assert found.equals(whole)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_after_a_failure_the_output_is_as_it_was(folder, tmp_path, ending):
    path = changed(folder, tmp_path, 400, "size", "oops")
    output = tmp_path / f"out.{ending}"
    output.write_bytes(b"old")
    with pytest.raises(DataError):
        predict_file(folder / "kind.kt", path, output=output, block=700)
    assert output.read_bytes() == b"old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["changed.csv", f"out.{ending}"]


def test_what_cannot_be_is_refused(folder, tmp_path):
    model, new = folder / "kind.kt", folder / "new.csv"
    with pytest.raises(UsageError, match=r"written as \.csv or \.parquet, not as \.txt"):
        predict_file(model, new, output=tmp_path / "out.txt")
    with pytest.raises(UsageError, match="has no probabilities"):
        predicted(folder / "weight.kt", new, proba=True)
    with pytest.raises(UsageError, match="missing must be"):
        predicted(model, new, missing="dorp")
    with pytest.raises(UsageError, match="column 'nope' is not in"):
        predicted(model, new, keep="nope")
    with pytest.raises(ModelError, match="is not a model"):
        predicted(new, new)
    with pytest.raises(DataError, match="does not exist"):
        predicted(model, tmp_path / "nowhere.csv")
    rows(5).drop(columns="day").to_csv(tmp_path / "lacking.csv", index=False)
    with pytest.raises(DataError, match=r"has no column 'day', which .* needs"):
        predicted(model, tmp_path / "lacking.csv")
    rows(5).assign(prediction=1).to_csv(tmp_path / "taken.csv", index=False)
    with pytest.raises(UsageError, match=r"column 'prediction' of .* cannot be kept"):
        predicted(model, tmp_path / "taken.csv", keep="*")


def test_a_model_of_a_matrix_has_no_columns(folder, tmp_path):
    matrix = np.eye(6) + 0.5
    SVM(kernel="precomputed").fit(matrix, ["a", "b"] * 3).save(tmp_path / "given.kt")
    with pytest.raises(ModelError, match="fitted to a matrix of kernel values"):
        predicted(tmp_path / "given.kt", folder / "new.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"size,size\n1,2\n", "more than one column named 'size'"),
        (b"", "is empty"),
        (b"size,colour,flag,day,weight\n", "has a header but no rows"),
        (b"size,colour,flag,day,weight\n\n\n", "has a header but no rows"),
        (b"size,colour,flag,day,weight\n1,red,true,2024-01-01,2\n1,2\n", "line 3: expected 5 fields, found 2"),
        (b'size,colour,flag,day,weight\n1,"red,true,2024-01-01,2\n', "a quote is opened and never closed"),
        (b"size,colour,flag,day,weight\n1,r\xff,true,2024-01-01,2\n", "line 2: byte 0xff is not UTF-8"),
        (b"\0\1\2\3" * 9, "neither CSV nor Parquet"),
        (b"PAR1" + b"x" * 40, "is malformed Parquet"),
        (b"\x1f\x8b\x08\x00rest", "is truncated or damaged"),
    ],
)
def test_malformed_data_are_refused(folder, tmp_path, monkeypatch, content, message):
    (tmp_path / "bad.csv").write_bytes(content)
    # The second time as if it were too large to be looked at before the first block.
    for small in (1 << 24, max(1, len(content) - 1)):
        monkeypatch.setattr("kerntest.data.formats.csv_blocks.SMALL_BYTES", small)
        with pytest.raises(DataError, match=message) as caught:
            predicted(folder / "kind.kt", tmp_path / "bad.csv")
        assert caught.value.hint


def test_rows_longer_than_a_block_are_read(folder, tmp_path):
    table = rows(500)[:20].copy()
    table.loc[11, "note"] = "long " * 2000
    table.to_csv(tmp_path / "long.csv", index=False)
    found, _ = predicted(folder / "kind.kt", tmp_path / "long.csv", block=500)
    whole, _ = predicted(folder / "kind.kt", folder / "new.csv")
    assert found.equals(whole[:20])


def test_memory_does_not_grow_with_the_file(folder, tmp_path):
    text = (folder / "new.csv").read_text()
    header, _, body = text.partition("\n")
    peaks = []
    for copies in (2, 10):
        (tmp_path / "long.csv").write_text(header + "\n" + body * copies)
        tracemalloc.start()
        predict_file(folder / "weight.kt", tmp_path / "long.csv", output=tmp_path / "out.csv", block=10_000, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_the_progress_ends_where_the_work_ends(folder):
    steps = []
    predicted(
        folder / "kind.kt", folder / "new.csv", block=2000, progress=lambda done, total: steps.append((done, total))
    )
    assert len(steps) > 3
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1] == (folder / "new.csv").stat().st_size
