"""What cannot be fitted is refused in one clear line, before anything is computed where that is possible."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import clouds, gaussian, raises

from kerntest import SVM, train_svm
from kerntest.errors import DataError, UndecidedError, UsageError

X, Y = clouds(40)
TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
K = gaussian(X, X, 1.0)
LABELS = ["u", "v"] * 19 + ["u", None]


def train(table=TABLE, target="y", **options):
    return partial(train_svm, table, target, **options)


VALUES = {
    "C": [0, -1.0, math.nan, math.inf, "1", True, 1e-300, 1e-76, 1e76, 1e300],
    "tolerance": [0.0],
    "epsilon": [-0.1, math.nan, math.inf, "0.1"],
    "nu": [0.0, 1.5, math.nan, "0.5", True],
    "seed": [-1, 1.5],
    "task": ["regression"],
    "method": ["means"],
    "scale": ["standardise"],
    "bandwidth": ["medain", -2.0, math.inf],
    "features": ["nystrom:10", "nystroem", "fourier:0", "fourier:-3"],
    "class_weight": ["heavy", "0:-1", "u:1,v:2,u:3", {"0": 1e-76}, {0: math.nan}, [1, 2]],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in VALUES for value in VALUES[name]], ids=str)
def test_values_that_make_no_sense_are_refused_at_once(name, value):
    raises(UsageError, f"usage.{name}", lambda: SVM(**{name: value}))


NU, HARD, BALANCED = {"nu": 0.2}, {"hard_margin": True}, {"class_weight": "balanced"}
REGRESS, ONE_CLASS, MEAN = {"task": "regress"}, {"task": "one-class"}, {"method": "mean"}
PERCEPTRON, PROBABILITY, FEATURES = {"method": "perceptron"}, {"probability": True}, {"features": "nystroem:5"}
PRECOMPUTED = {"kernel": "precomputed"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((NU, other) for other in (HARD, BALANCED, REGRESS, MEAN, PERCEPTRON)),
        *((HARD, other) for other in (REGRESS, ONE_CLASS, MEAN, PERCEPTRON)),
        *((BALANCED, other) for other in (REGRESS, ONE_CLASS, MEAN, PERCEPTRON)),
        *((PROBABILITY, other) for other in (REGRESS, ONE_CLASS, MEAN)),
        *((MEAN, other) for other in (REGRESS, ONE_CLASS, FEATURES)),
        *((PRECOMPUTED, other) for other in (FEATURES, {"bandwidth": 2.0})),
    ],
    ids=str,
)
def test_options_that_contradict_each_other_are_refused_at_once(one, other):
    raises(UsageError, "usage.contradiction", lambda: SVM(**one, **other))


CALLS = [
    (train(target=None), "usage.target"),
    (train(task="one-class"), "usage.target"),
    (train(target="z"), "usage.unknown_column"),
    (train(target="Y"), "usage.unknown_column"),
    (train(test=TABLE, test_fraction=0.3), "usage.contradiction"),
    (train(test_fraction=0.0), "usage.test_fraction"),
    (train(test_fraction=1.0), "usage.test_fraction"),
    (train(test_fraction=math.nan), "usage.test_fraction"),
    (train(cv=1), "usage.cv"),
    (train(cv=2.5), "usage.cv"),
    (train(kernel="precomputed"), "usage.precomputed"),
    (train(kernel="gaussian(2)", bandwidth=1.0), "usage.bandwidth_twice"),
    (train(kernel="linear", bandwidth=1.0), "usage.bandwidth_twice"),
    (train(kernel="gaussian(2)", bandwidth=1.0, grid=True), "usage.bandwidth_twice"),
    (train(kernel="laplacian", features="fourier:20"), "usage.features"),
    (
        train(TABLE.assign(c=["red", "blue"] * 20), features="fourier:20", kernel="a, b: gaussian; c: delta"),
        "usage.features",
    ),
    (train(class_weight="1:2,7:3"), "usage.class_weight"),
    (train(test=TABLE[["a", "b"]]), "usage.unknown_column"),
    (train(exclude="a,b"), "usage.no_columns"),
    (train(threads=0), "usage.threads"),
]


@pytest.mark.parametrize(("call", "code"), CALLS, ids=[str(call.keywords) for call, _ in CALLS])
def test_calls_that_make_no_sense_are_refused(call, code):
    raises(UsageError, code, call)


DATA = [
    (train(TABLE.assign(y="same")), "data.one_class"),
    (train(TABLE.assign(y=3)), "data.one_class"),
    (train(TABLE.assign(y=1.5), task="regress"), "data.constant_target"),
    (train(TABLE.assign(y=np.array(["u", "v"])[Y]), task="regress"), "data.target_not_numeric"),
    (train(TABLE.assign(y=Y > 0), task="regress"), "data.target_not_numeric"),
    (train(TABLE.assign(y=LABELS)), "data.missing_values"),
    (train(TABLE.assign(y=[math.nan, *Y[1:]]), task="regress"), "data.missing_values"),
    (train(TABLE.assign(a=[math.nan, *X[1:, 0]])), "data.missing_values"),
    (train(TABLE.iloc[:6], cv=7), "data.folds"),
    (train(TABLE.assign(y=[9, *Y[1:]]), cv=3), "data.folds"),
    (train(test=TABLE.drop(columns="a")), "data.columns_differ"),
    (train(test=TABLE[["y"]].assign(z=1.0)), "data.columns_differ"),
    (train(test=TABLE.assign(y=Y + 1)), "data.unknown_class"),
    (train(test=TABLE.assign(a="text")), "data.types_differ"),
    (train(test=TABLE.assign(b=math.nan)), "data.missing_values"),
]


@pytest.mark.parametrize(("call", "code"), DATA)
def test_rows_that_do_not_allow_it_are_refused(call, code):
    raises(DataError, code, call)


def test_more_than_five_hundred_classes_are_none():
    many = pd.DataFrame({"a": np.arange(501.0), "y": np.arange(501)})
    assert "501" in raises(DataError, "data.too_many_classes", train(many)).message
    texts = many.assign(y=[f"id{k}" for k in range(501)])
    raises(DataError, "data.too_many_classes", train(texts))


def test_a_category_that_no_training_row_has_is_said():
    table = TABLE.assign(c=["red", "blue"] * 20)
    error = raises(DataError, "data.unknown_level", train(table, test=table.assign(c=["green", "blue"] * 20)))
    assert "'green'" in error.message
    raises(DataError, "data.unknown_level", lambda: SVM().fit(table, "y").predict(table.assign(c="green")))


def test_a_constant_column_is_known_to_kernels_by_its_name():
    table = TABLE.assign(c="red")
    assert train_svm(table, "y").columns_left_out == ("c",)
    error = raises(UsageError, "usage.unknown_column", train(table, kernel="a, b: gaussian; c: delta"))
    assert "there is no column" not in error.message


@pytest.mark.parametrize(("few", "n"), [(4, 40), (7, 30), (1, 12)])
def test_an_infeasible_nu_names_the_largest_that_is_feasible(few, n):
    y = (np.arange(n) < few).astype(int)
    largest = 2 * few / n
    error = raises(UsageError, "usage.nu", lambda: SVM(nu=largest + 0.01).fit(X[:n], y))
    assert f"{largest:.4g}" in error.message
    hinted = float(error.hint.split()[1].rstrip(","))
    assert 0 <= largest - hinted < 1e-3
    machine = SVM(nu=hinted, kernel="laplacian").fit(X[:n], y)
    assert machine.fit_.converged


@pytest.mark.parametrize("C", [1e3, 1e12])
def test_classes_that_overlap_have_no_hard_margin(C):
    same = np.concatenate([X[:10], X[:10]])
    labels = np.repeat(["good", "bad"], 10)
    error = raises(UndecidedError, "undecided.not_separable", lambda: SVM(C=C, hard_margin=True).fit(same, labels))
    assert "'good'" in error.message
    assert "'bad'" in error.message


@pytest.mark.parametrize("options", [{}, {"method": "mean"}, {"features": "nystroem:10"}, {"grid": True, "cv": 2}])
def test_a_kernel_that_overflows_is_refused(options):
    table = TABLE.assign(a=1e5 * X[:, 0])
    raises(UndecidedError, "undecided.overflow", train(table, kernel="exponential", scale="none", **options))


def test_a_kernel_that_is_not_positive_definite_is_said_to_be():
    result = train_svm(TABLE, "y", kernel="polynomial(3, 1, -1)")
    assert result.duality_gap is None
    assert any("not positive definite" in warning for warning in result.warnings)
    raises(
        UndecidedError, "undecided.not_positive_definite", lambda: SVM(kernel="polynomial(3, 1, -1)", nu=0.3).fit(X, Y)
    )


MATRIX = partial(SVM, kernel="precomputed")
GIVEN = [
    (MATRIX(), K[:, :5], Y, "data.wrong_shape"),
    (MATRIX(), K[0], Y, "data.wrong_shape"),
    (MATRIX(), np.where(np.eye(40) > 0, math.nan, K), Y, "data.wrong_shape"),
    (MATRIX(), np.triu(K), Y, "data.not_symmetric"),
    (MATRIX(), [["a"]], Y, "data.not_numeric"),
    (MATRIX(), K, Y[:-1], "data.rows_do_not_pair"),
    (MATRIX(), K, np.zeros(40), "data.one_class"),
    (MATRIX(task="regress"), K, np.ones(40), "data.constant_target"),
    (MATRIX(task="regress"), K, [math.nan, *Y[1:]], "data.missing_values"),
    (SVM(), [[1.0, 2.0], [3.0]], Y, "data.not_numeric"),
    (SVM(), X, Y[:-1], "data.rows_do_not_pair"),
    (SVM(), X, Y[:, None], "data.wrong_shape"),
    (SVM(), X, [*Y[:-1], math.nan], "data.missing_values"),
    *((SVM(), X, labels, "data.missing_values") for labels in (LABELS, np.array(LABELS, dtype=object))),
    *((SVM(), X, pd.Series(LABELS, dtype=kind), "data.missing_values") for kind in ("object", "string", "category")),
    (SVM(task="regress"), X, np.array([math.inf, *X[1:, 0]]), "data.infinite_values"),
    (SVM(task="regress"), X, np.array([-math.inf, *X[1:, 0]]), "data.infinite_values"),
]


@pytest.mark.parametrize(("machine", "rows", "y", "code"), GIVEN)
def test_rows_and_labels_that_do_not_fit_are_refused(machine, rows, y, code):
    raises(DataError, code, lambda: machine.fit(rows, y))


@pytest.mark.parametrize("rows", [K[:3, :20], np.hstack([K, K])[:3], K[0], np.full((3, 40), math.nan)])
def test_rows_of_a_precomputed_matrix_are_against_all_training_rows(rows):
    machine = SVM(kernel="precomputed").fit(K, Y)
    raises(DataError, "data.wrong_shape", lambda: machine.predict(rows))


def test_what_is_not_there_is_asked_for_in_vain():
    raises(UsageError, "usage.not_fitted", lambda: SVM().predict(X))
    raises(UsageError, "usage.target", lambda: SVM().fit(X))
    raises(UsageError, "usage.target", lambda: SVM(kernel="precomputed").fit(K))
    raises(DataError, "data.columns_differ", lambda: SVM().fit(X, Y).predict(X[:, :1]))
    raises(DataError, "data.unknown_class", lambda: SVM().fit(X, Y).score(X, Y + 1))


def test_the_path_of_a_model_is_looked_at_before_anything_is_fitted(tmp_path):
    (tmp_path / "m").write_text("there")
    raises(DataError, "data.exists", train(output=tmp_path / "m", kernel="exponential", scale="none"))
    with pytest.raises(DataError):
        train_svm(TABLE, "y", output=tmp_path / "no" / "folder")


# Costs and targets of extreme sizes

NUMBERS = X @ [3.0, -1.0]


def numbers_table(target):
    return pd.DataFrame(X, columns=["a", "b"]).assign(y=target)


@pytest.mark.parametrize("C", [1e-75, 1e75])
def test_the_extreme_costs_that_are_taken_give_finite_decisions(C):
    machine = SVM(C=C).fit(X[:20], Y[:20])
    assert np.isfinite(machine.decision_function(X)).all()


@pytest.mark.parametrize("unit", [1e-200, 1e200, 1e308])
def test_numbers_that_the_solver_could_not_square_are_refused(unit):
    target = NUMBERS / np.abs(NUMBERS).max() * unit
    raises(DataError, "data.target_size", train(numbers_table(target), task="regress"))


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_units_of_the_target_change_nothing_but_units(unit):
    plain = SVM(task="regress", C=2.0, epsilon=0.1).fit(X, NUMBERS)
    scaled = SVM(task="regress", C=2.0 * unit, epsilon=0.1 * unit).fit(X, NUMBERS * unit)
    np.testing.assert_allclose(scaled.predict(X) / unit, plain.predict(X), rtol=1e-4, atol=1e-6)


def test_a_margin_wider_than_all_errors_is_told():
    result = train_svm(numbers_table(NUMBERS), "y", task="regress", epsilon=100.0)
    assert result.n_support == 0
    assert any("predicted as the same number" in warning for warning in result.warnings)


def test_a_target_of_dates_is_told_to_be_predicted_in_days():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(40), unit="D")
    result = train_svm(numbers_table(days), "y", task="regress")
    assert any("days since 1970-01-01" in warning for warning in result.warnings)


def test_a_machine_with_a_gap_of_one_is_not_called_usable():
    flipped = np.where(np.arange(20) % 5 == 0, 1 - Y[:20], Y[:20])
    result = train_svm(pd.DataFrame(X[:20], columns=["a", "b"]).assign(y=flipped), "y", C=1e75)
    assert not result.converged
    assert result.duality_gap > 0.5
    warning = next(warning for warning in result.warnings if "duality gap" in warning)
    assert "far from the best" in warning
    assert "usable" not in warning


@pytest.mark.parametrize("unit", [1e100, 1e155, 1e307])
def test_kernel_values_that_the_solver_could_not_square_are_refused(unit):
    raises(UndecidedError, "undecided.overflow", lambda: SVM(kernel="linear", scale="none").fit(X / 4 * unit, Y))


def test_a_nu_below_the_smallest_share_is_not_said_to_separate_the_classes():
    mixed = np.where(np.arange(40) % 4 == 0, 1 - Y, Y)
    with pytest.raises(UsageError, match=r"leaves a share of 0\.") as caught:
        SVM(kernel="linear", nu=0.1).fit(X, mixed)
    assert "separate" not in caught.value.message
    least = float(caught.value.hint.split()[1])
    assert SVM(kernel="linear", nu=least).fit(X, mixed).fit_.converged


# Hints name ways out that lead out

N = 40
ROWS = pd.DataFrame({"a": np.arange(N) * 1.5, "b": np.arange(N) % 3, "y": ["u", "v"] * (N // 2)})


def hint_of(table, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        train_svm(table, "y", **options)
    return caught.value.hint


def test_a_target_cannot_be_excluded_so_no_hint_says_so():
    gaps = ROWS.assign(y=[None, *ROWS["y"][1:]])
    assert hint_of(gaps) == "--missing drop leaves those rows out"
    # Without a the target still has one.
    assert hint_of(gaps.assign(a=[1.0, None, *ROWS["a"][2:]])) == "--missing drop leaves those rows out"
    assert hint_of(ROWS.assign(a=[1.0, None, *ROWS["a"][2:]])).endswith("; --exclude a leaves the column out")
    assert hint_of(ROWS, test=gaps) == "--missing drop leaves those rows out"


def test_a_target_without_a_value_is_to_be_filled_in():
    assert hint_of(ROWS.assign(y=None), missing="drop") == "column 'y' is needed: fill it in"


def test_texts_are_not_said_to_be_numbers_to_predict():
    table = pd.DataFrame({"a": np.arange(1200) % 7, "y": [f"k{k}" for k in range(1200)]})
    assert "regress" not in hint_of(table)
    assert "regress" in hint_of(table.assign(y=np.arange(1200) / 7))


def test_folds_that_nobody_asked_for_are_explained():
    hint = hint_of(ROWS[:4], probability=True)
    assert "folds" not in hint
    assert "5 rows" in hint


def test_numbers_that_hardly_repeat_are_no_classes():
    numbers = ROWS.assign(y=np.arange(N) / 7)
    assert "regress" in hint_of(numbers)
    assert "another --target" in hint_of(numbers.assign(y=[f"id{k}" for k in range(N)]))
    assert train_svm(numbers, "y", task="regress").n_train == N
    few = numbers[:20].assign(y=np.arange(20) // 2)
    assert len(train_svm(few, "y").classes) == 10
