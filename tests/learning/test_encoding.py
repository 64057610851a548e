"""What models keep of their columns: new rows mean what the training rows meant, or one line says why they cannot."""

import re
import tempfile
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from kerntest import (
    SVM,
    KernelRidge,
    KerntestWarning,
    inspect_model,
    predict_file,
    read_table,
    train_cca,
    train_kpca,
    train_ridge,
    train_svm,
)
from kerntest.errors import DataError, UsageError

HEADER = "age,city,member,joined,code"
ROWS = ("31,Bonn,true,2024-01-01,007", "45,Ulm,false,2024-02-01,012", "27,Bonn,true,2024-03-01,007")
LAST = "60,Köln,true,2024-03-09,012"
TARGETS = np.array([1.0, -2.0, 0.5, 3.0])


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Return a function that reads lines as a CSV file of this name."""

    def read(*lines, name="new.csv", **options):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return read_table(name, **options)

    return read


@pytest.fixture
def training(table):
    return table(HEADER, *ROWS, LAST, name="train.csv")


@pytest.fixture
def model(training):
    return KernelRidge(0.1).fit(training, TARGETS)


def levels_model(table, *levels, **options):
    """Return a regression that gives each category of a column its place among those listed, counted from 1."""
    lines = [level for level in levels for _ in range(2)]
    targets = np.repeat(np.arange(1.0, len(levels) + 1), 2)
    return KernelRidge(1e-9, kernel="delta").fit(table("a", *lines, name="train.csv", **options), targets)


def applied(model, table, **options):
    """Return predictions for the file of a table, which is read as the model has its columns."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/m.kt")
        predict_file(f"{folder}/m.kt", table.name, output=f"{folder}/out.csv", **options)
        return pd.read_csv(f"{folder}/out.csv").iloc[:, 1].to_numpy()


def places(found):
    return np.round(found, 3).tolist()


# Fitting.


def test_columns_are_kept_with_their_levels_and_scales(training, model, tmp_path):
    model.save(tmp_path / "m.kt")
    age, city, member, joined, code = inspect_model(tmp_path / "m.kt").columns
    numbers = np.array([31.0, 45, 27, 60])
    np.testing.assert_allclose([age.centre, age.spread], [numbers.mean(), numbers.std()], rtol=1e-12, atol=0)
    assert [one.name for one in (age, city, member, joined, code)] == HEADER.split(",")
    assert (city.levels, member.levels, code.levels) == (("Bonn", "Köln", "Ulm"), ("false", "true"), ("007", "012"))
    assert (city.centre, city.spread, age.levels, joined.kind) == (None, None, None, "date")
    assert joined.centre == pytest.approx(19_762.75)
    # Levels that no row has are not kept.
    KernelRidge(0.1, scale="none").fit(training.take(np.arange(3)), TARGETS[:3]).save(tmp_path / "raw.kt")
    report = inspect_model(tmp_path / "raw.kt")
    assert [(one.centre, one.spread) for one in report.columns if one.levels is None] == [(0.0, 1.0)] * 2
    assert (report.scale, report.columns[1].levels) == ("none", ("Bonn", "Ulm"))


def test_columns_that_tell_nothing_are_left_out_with_a_warning(table):
    lines = [f"{number % 7},x,name {number}" for number in range(30)]
    with pytest.warns(KerntestWarning) as told:
        found = KernelRidge().fit(table("a,b,c", *lines), np.arange(30.0))
    texts = [str(one.message) for one in told]
    assert any("column 'b' has one value in all rows" in text for text in texts)
    assert any("it identifies rows" in text for text in texts)
    assert len(found.predict(table("a", "3", "4"))) == 2
    with pytest.raises(
        DataError, match=r"no column is left to learn from among a, b of new\.csv: columns 'a', 'b' have"
    ):
        KernelRidge().fit(table("a,b", "1,x", "1,x"), [1.0, 2.0])


def test_a_bandwidth_is_that_of_the_numbers_where_there_are_any(table, tmp_path):
    read = table("a,b", "1,x", "5,y", "2,y", "7,z")
    for names, kernel in ((["b"], "hamming(2)"), (["a"], "gaussian(2)"), (["a", "b"], "a: gaussian(2); b: hamming(1)")):
        KernelRidge(0.1, bandwidth=2.0).fit(read.select(names), TARGETS).save(tmp_path / "m.kt", force=True)
        assert inspect_model(tmp_path / "m.kt").kernel == kernel


@pytest.mark.parametrize(
    "values", [["a", "b", None, "a"], ["a", "b", np.nan, "a"], np.ma.array([1, 2, 3, 1], mask=[0, 0, 1, 0])]
)
def test_targets_that_are_missing_are_not_taken_for_texts_or_numbers(values):
    with pytest.raises(DataError, match="y has 1 missing value"):
        SVM().fit(np.eye(4), values)
    for y in (["a", "b", "a"], ["a", "b"] * 3):
        with pytest.raises(DataError, match=f"X has 4 rows and y {len(y)} values"):
            SVM().fit(np.eye(4), y)
    with pytest.raises(DataError, match=r"y has shape \(2, 2\), not \(n,\)"):
        SVM().fit(np.eye(4), np.eye(2))


def test_there_are_at_most_500_classes():
    X = np.repeat(np.arange(501.0), 2)[:, None]
    with pytest.raises(DataError, match="has 501 different values, which are too many for classes"):
        SVM(method="mean").fit(X, [f"class {int(value)}" for value in X[:, 0]])
    assert len(SVM(method="mean").fit(X[2:], [f"class {int(value)}" for value in X[2:, 0]]).classes_) == 500


# New rows.


@pytest.mark.parametrize("values", [[0.0, 5e-324], [1.7e308, 1.7e308, -1.7e308], [-1e-310, 2e-310], [1e15, 1e15 + 1]])
def test_numbers_as_small_and_as_large_as_they_get_are_told_apart(values, tmp_path):
    rows, targets = np.array(values)[:, None], np.where(np.array(values) == values[-1], 1.0, -1.0)
    model = KernelRidge(1e-6, kernel="gaussian(0.1)").fit(rows, targets)
    model.save(tmp_path / "m.kt")
    for one in (model, KernelRidge.load(tmp_path / "m.kt")):
        np.testing.assert_allclose(one.predict(rows), targets, rtol=0, atol=1e-3)


# Columns that are not there, or of another kind.


def test_a_missing_column_is_named_with_the_one_that_may_be_meant(table, model):
    row = "1,Ulm,true,2024-01-01,007"
    with pytest.raises(DataError, match=r"new\.csv has no column 'city', which the model needs") as caught:
        model.predict(table("age,town,member,joined,code,cities", f"{row},x"))
    assert (caught.value.hint, caught.value.code) == ("did you mean 'cities'?", "data.columns_differ")
    assert caught.value.where == {"file": "new.csv", "column": "city"}
    with pytest.raises(DataError) as caught:
        model.predict(table("age,z,member,joined,code", row))
    assert caught.value.hint == "the columns are age, z, member, joined, code"
    with pytest.raises(DataError, match=r"lacks 3 columns that the model needs: 'age', 'city', 'code'$") as caught:
        model.predict(table("Age,zip,member,joined,code_", row))
    assert caught.value.hint == "did you mean 'Age'?"


@pytest.mark.parametrize(
    ("header", "other", "said"), [("a,b", "x1,x2", "needs a header"), ("x1,x2", "a,b", "header=F")]
)
def test_names_by_position_are_told_from_names(table, header, other, said):
    model = KernelRidge(0.1).fit(table(header, "1,2", "3,4", "5,7"), [1.0, 2.0, 3.0])
    with pytest.raises(DataError) as caught:
        model.predict(table(other, "1,2", "3,4"))
    assert said in caught.value.hint


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((ROWS[0], "old,Ulm,true,2024-01-01,007"), "line 3: column 'age' holds 'old', which is not a number (1 of 2 v"),
        ((ROWS[0], "1,Ulm,true,soon,007"), "line 3: column 'joined' holds 'soon', which is not a date (1 of 2 values"),
        (
            (ROWS[0], "1,Ulm,perhaps,2024-01-01,007"),
            "line 3: column 'member' holds 'perhaps', unknown to the model, in 1",
        ),
        (("2024-01-01,Ulm,true,2024-01-01,007",), "line 2: column 'age' holds '2024-01-01', which is not a number"),
        (("true,Ulm,true,2024-01-01,007",), "line 2: column 'age' holds 'true', which is not a number"),
        (("1,Ulm,true,19000,007",), "line 2: column 'joined' holds '19000', which is not a date"),
    ],
)
def test_a_value_of_another_kind_is_named_with_its_line(table, model, rows, message):
    with pytest.raises(DataError) as caught:
        model.predict(table(HEADER, *rows))
    assert caught.value.message.startswith(f"new.csv, {message}")
    assert caught.value.where["line"] == 1 + len(rows)
    assert ("as in training" in caught.value.hint) == (len(rows) == 1)


@pytest.mark.parametrize(
    ("lines", "message", "hint"),
    [
        (["a", "1", "2", "x", *"3" * 17], r"line 4: column 'a' holds 'x', .* \(19 of 20 v", "na='NA,N/A"),
        (["a,b", "1,x", "2,x", '"1,5",x', *["3,x"] * 17], "holds '1,5', which is not a n", "decimal=',' or"),
        (["a", "1", "x", "y"], r"line 3: .* holds 'x', .* \(1 of 3", "write 'a' as in training, such as 12.5"),
    ],
)
def test_numbers_with_a_stray_value_name_it_and_the_way_out(table, lines, message, hint):
    model = KernelRidge(0.1).fit(table("a", "1", "2"), [1.0, 2.0])
    with pytest.raises(DataError, match=message) as caught:
        applied(model, table(*lines))
    assert caught.value.hint.startswith(hint)


def test_texts_that_are_all_numbers_are_numbers(table):
    model = KernelRidge(0.1).fit(table("a", "1", "2", "4"), [1.0, 2.0, 0.0])
    found = model.predict(read_table(pd.DataFrame({"a": ["1.5", " 2 ", "-3e2"]})))
    np.testing.assert_allclose(found, model.predict(table("a", "1.5", "2", "-300")), rtol=1e-12)
    with pytest.raises(DataError, match=r"row 2: column 'a' holds '007', which is not a number \(1 of 2"):
        model.predict(read_table(pd.DataFrame({"a": ["1.5", "007"]})))
    both = read_table(pd.DataFrame({"a": ["7", "x"]}))
    np.testing.assert_allclose(model.predict(both.take(np.array([0]))), model.predict(table("a", "7")), rtol=1e-12)


# Categories.


def test_categories_are_compared_by_what_they_mean_in_any_column(table):
    model = levels_model(table, "1", "2.0", "1e1", "x", categorical="a")
    assert places(model.predict(table("a", "2", "1.0", "10"))) == [2, 1, 3]
    assert places(applied(model, table("a", "2", "1.0", "x"), block=1)) == [2, 1, 4]
    with pytest.raises(DataError, match=r"new\.csv, line 3: column 'a' holds '3', unknown to the model, in 1 row\n"):
        model.predict(table("a", "2", "3"))


@pytest.mark.parametrize(
    ("levels", "known", "unknown"),
    [
        # The same text wins over the same value, and two of one value are told apart.
        (("1", "1.0", "2.0", "2.00"), {"1": 1}, "2"),
        # So are whole numbers that floats do not tell apart.
        (("12", "9007199254740992"), {"12": 1, "9007199254740992": 2}, "9007199254740993"),
    ],
)
def test_numbers_are_categories_by_their_text_first(table, levels, known, unknown):
    model = levels_model(table, *levels, categorical="a")
    assert places(model.predict(table("a", *known))) == [*known.values()]
    assert places(model.predict(table("a", *levels, categorical="a"))) == list(range(1, 1 + len(levels)))
    with pytest.raises(DataError, match=f"holds '{unknown}', unknown"):
        model.predict(table("a", unknown))


@pytest.mark.parametrize(
    ("levels", "met", "expected"),
    [
        (("True", "False", "unsure"), ("True", "False"), [1, 2]),
        (("true", "false"), ("TRUE", "False", "TRUE"), [1, 2, 1]),
        (("2024-01-01", "never", "2024-05-01", "soon"), ("2024-05-01",), [3]),
    ],
)
def test_dates_and_booleans_among_texts_are_compared_by_what_they_mean(table, levels, met, expected):
    model = levels_model(table, *levels)
    assert places(model.predict(table("a", *met))) == expected
    with pytest.raises(DataError, match="holds 'perhaps', unknown"):
        model.predict(table("a", *met, "perhaps"))


def test_unknown_categories_are_named_counted_and_located(table, model):
    rows = ["1,Ulm,true,2024-01-01,007", "1,Trier,true,2024-01-01,013", "1,Berlin,true,2024-01-01,007"]
    with pytest.raises(DataError) as caught:
        model.predict(table(HEADER, *rows))
    error = caught.value
    assert error.message == (
        "new.csv, line 3: column 'city' holds 'Trier', unknown to the model, in 2 rows ('Trier', 'Berlin'); so does 'code'"
    )
    assert error.hint.endswith("or unknown='ignore' goes on without it; 'Bonn', 'Köln', 'Ulm' are known")
    assert (error.code, error.exit_code) == ("data.unknown_level", 3)
    assert error.where == {"file": "new.csv", "line": 3, "column": "city", "value": "Trier"}
    with pytest.raises(DataError) as caught:
        model.predict(table(HEADER, "1,bonn,true,2024-01-01,007"))
    assert caught.value.hint == "did you mean 'Bonn'? Correct the value, or leave its row out"


def test_unknown_categories_can_be_taken_as_different_from_all_known_ones(table, tmp_path):
    levels_model(table, "Bonn", "Ulm").save("m.kt")
    table("a", "Trier", "Ulm", "Berlin", "Trier")
    with pytest.warns(KerntestWarning):
        report = predict_file("m.kt", "new.csv", output=tmp_path / "out.csv", unknown="ignore", block=1)
    found = pd.read_csv(tmp_path / "out.csv").iloc[:, 1].round(3)
    # Delta of an unknown value is 0 with every known one: what is left is the mean of the targets.
    assert found.tolist() == [1.5, 2.0, 1.5, 1.5]
    (warning,) = report.warnings
    assert warning == (
        "new.csv: column 'a' holds 'Trier', 'Berlin', unknown to m.kt, in 3 rows: taken as different from every known "
        "value"
    )
    assert report.to_dict()["unknown"] == [{"column": "a", "values": ["Trier", "Berlin"], "rows": 3}]


@pytest.mark.parametrize("train", [partial(train_ridge, target="y"), partial(train_svm, target="k")])
def test_a_category_that_is_in_the_test_part_alone_is_told(train):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "city": [*(["Bonn", "Ulm"] * 30), *(f"c{k}" for k in range(30))]})
    frame = frame.assign(y=frame["a"], k=np.where(frame["a"] > 0, "up", "down"))
    found = train(frame.drop(columns="k" if train.func is train_ridge else "y"), test_fraction=0.3)
    (told,) = [one for one in found.warnings if "taken as different" in one]
    assert re.search(
        r"^test rows of train: column 'city' holds 'c\d+',.* unknown to the training part, in \d+ rows", told
    )
    # Rows of another file are refused, which can be mended.
    with pytest.raises(DataError, match="unknown to the training part"):
        train(frame.assign(city=["Bonn", "Ulm"] * 45), test=frame)


def test_missing_values_are_refused(table, model):
    row = "1,Ulm,true,2024-01-01,007"
    with pytest.raises(DataError, match=r"new\.csv has 1 missing value: age 1 \(the first in line 3\)"):
        model.predict(table(f"{HEADER},note", f"{row},y", ",Ulm,true,2024-01-01,007,x"))


# Values that are not there, or no numbers.


def test_numbers_that_are_not_finite_are_refused_before_and_after_scaling(table):
    model = KernelRidge(0.1).fit(table("a,b", "1,0", "2,1e-300"), [1.0, 2.0])
    with pytest.raises(DataError, match=r"new\.csv, line 3: column 'a' holds 'inf', which is not a finite number"):
        model.predict(table("a,b", "1,0", "inf,0"))
    with pytest.raises(
        DataError, match=r"line 2: column 'b' holds '1e\+30', too far from the training rows of"
    ) as caught:
        model.predict(table("a,b", "1,1e30"))
    assert caught.value.code == "data.infinite_values"


def test_columns_that_cannot_be_used_are_refused_only_where_the_model_needs_them(table):
    model = KernelRidge(0.1).fit(table("a", "1", "2"), [1.0, 2.0])
    nested = pa.table({"a": [1.0], "b": [[1, 2]]})
    parquet.write_table(nested, "new.parquet")
    parquet.write_table(nested.rename_columns(["b", "a"]), "turned.parquet")
    assert len(applied(model, read_table("new.parquet", name="new.parquet"))) == 1
    with pytest.raises(DataError, match="column 'a' is of type list") as caught:
        applied(model, read_table("turned.parquet", name="turned.parquet"))
    assert "was fitted to number there" in caught.value.hint


@pytest.mark.parametrize("factor", [1.0, 1e200])
def test_columns_scaled_together_keep_their_proportions(factor, tmp_path):
    rng = np.random.default_rng(0)
    X = factor * (rng.normal(size=(60, 3)) * [1.0, 2.0, 5.0] + [3.0, 0.0, -1.0])
    y = (X[:, 2] > 0).astype(int)
    scaled = (X - X.mean(axis=0)) / np.sqrt(((X / factor).var(axis=0)).mean()) / factor
    ours, peer = SVM(scale="together").fit(X, y), SVM(scale="none").fit(scaled, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(scaled), atol=1e-5)
    # The model keeps it, and says so.
    ours.save(tmp_path / "m")
    loaded = SVM.load(tmp_path / "m")
    assert loaded.scale == "together"
    assert inspect_model(tmp_path / "m").scale == "together"
    np.testing.assert_allclose(loaded.decision_function(X), ours.decision_function(X), rtol=1e-9)
    # Columns apart give another machine; the nearer of two rows may be another one.
    assert np.abs(SVM().fit(X, y).decision_function(X) - ours.decision_function(X)).max() > 1e-2


def of_one_unit(n=12, count=50, *, spread=4.0):
    """Columns of one name and unit, the later ones wider."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(count, n)), -2, 2) * np.geomspace(1, spread, n)
    return pd.DataFrame(X, columns=[f"nm{400 + 10 * place}" for place in range(n)])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table, True),
        # Another name, a category, few columns, an indicator, another range, or no difference: nothing is told.
        (lambda table: table.rename(columns={"nm400": "age"}), False),
        (lambda table: table.assign(nm1=["a", "b"] * 25), False),
        (lambda table: table.iloc[:, :7], False),
        (lambda table: table.iloc[:, :8], True),
        (lambda table: table.assign(nm400=8.0 * (table["nm510"] > 1)), False),
        (lambda table: table.assign(nm400=100 * table["nm510"]), False),
        (lambda table: table / table.std(), False),
    ],
)
def test_columns_of_one_unit_are_told_of_where_it_makes_a_difference(change, told):
    table = change(of_one_unit())
    warnings = [one for one in train_kpca(table).warnings if "look like one unit" in one]
    assert len(warnings) == told
    if told:
        assert warnings[0].startswith(f"the {table.shape[1]} columns look like one unit, and their spreads differ ")
        assert warnings[0].endswith(" times: scale='together' keeps their proportions")
    assert not any("one unit" in one for one in train_kpca(table, scale="together").warnings)


def test_columns_that_are_written_with_one_unit_are_told_of(tmp_path):
    table = of_one_unit().round(3)
    names = "abcdefghijkl"
    rows = [",".join(f"{value} mm" for value in row) for row in table.to_numpy()]
    (tmp_path / "d.csv").write_text("\n".join([",".join(names), *rows]))
    assert any("look like one unit" in one for one in train_kpca(tmp_path / "d.csv").warnings)


@pytest.mark.parametrize("train", [train_ridge, train_svm, train_cca])
def test_categories_of_a_test_file_are_known_before_the_fit_or_taken_as_different(train, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": np.resize([*"ab"], 60), "x": rng.normal(size=60), "y": np.resize([1.0, 2.0], 60)})
    asked = {"y_columns": "y"} if train is train_cca else {"target": "y"}
    strange = table.assign(city=np.resize([*"ac"], 60))
    found = train(table, **asked, test=strange, unknown="ignore")
    assert found.n_test == 60
    assert any("'city' holds 'c'" in one and "taken as different" in one for one in found.warnings)
    with pytest.raises(UsageError, match="unknown='ignore' and no test= contradict"):
        train(table, **asked, test_fraction=0.3, unknown="ignore")
    monkeypatch.setattr("kerntest.learning.learner.prepare", None)
    with pytest.raises(DataError, match="unknown to the training part, in 30 rows") as caught:
        train(table, **asked, test=strange)
    assert "unknown='ignore' goes on without it" in caught.value.hint
