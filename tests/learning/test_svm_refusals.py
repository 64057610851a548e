"""What cannot be fitted is refused in one clear line, before anything is computed where that is possible."""

import math
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import clouds, gaussian, raises

from kerntest import SVM, train_ridge, train_svm
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
    "task": ["regression"],
    "method": ["means"],
    "class_weight": ["heavy", "0:-1", "u:1,v:2,u:3", {"0": 1e-76}, {0: math.nan}, [1, 2]],
}
NU, HARD, BALANCED = {"nu": 0.2}, {"hard_margin": True}, {"class_weight": "balanced"}
REGRESS, ONE_CLASS, MEAN = {"task": "regress"}, {"task": "one-class"}, {"method": "mean"}
PERCEPTRON, PROBABILITY, FEATURES = {"method": "perceptron"}, {"probability": True}, {"features": "nystroem:5"}
PRECOMPUTED = {"kernel": "precomputed"}
CONTRADICTIONS = [
    *((NU, other) for other in (HARD, BALANCED, REGRESS, MEAN, PERCEPTRON)),
    *((HARD, other) for other in (REGRESS, ONE_CLASS, MEAN, PERCEPTRON)),
    *((BALANCED, other) for other in (REGRESS, ONE_CLASS, MEAN, PERCEPTRON)),
    *((PROBABILITY, other) for other in (REGRESS, ONE_CLASS, MEAN)),
    *((MEAN, other) for other in (REGRESS, ONE_CLASS, FEATURES)),
]
OPTIONS = [
    *((f"usage.{name}", {name: value}) for name in VALUES for value in VALUES[name]),
    *(("usage.contradiction", one | other) for one, other in CONTRADICTIONS),
]


@pytest.mark.parametrize(("code", "options"), OPTIONS, ids=str)
def test_options_that_make_no_sense_are_refused_at_once(code, options):
    raises(UsageError, code, lambda: SVM(**options))


def changed(**columns):
    return TABLE.assign(**columns)


def fitted(rows, y, **options):
    return lambda: SVM(**options).fit(rows, y)


TEXTS, NAN, HUGE = np.array(["u", "v"])[Y], math.nan, X / 4 * 1e155
COLOURED = changed(c=["red", "blue"] * 20)
REFUSED = {
    "usage.target": [
        *(train(target=None), train(task="one-class"), fitted(X, None), fitted(K, None, **PRECOMPUTED)),
    ],
    "usage.unknown_column": [*(train(target=name) for name in "zY"), train(test=TABLE[["a", "b"]])],
    "usage.test_fraction": [train(test_fraction=share) for share in (0.0, 1.0, NAN)],
    "usage.cv": [train(cv=folds) for folds in (1, 2.5)],
    "usage.bandwidth_twice": [
        *(train(kernel=kernel, bandwidth=1.0) for kernel in ("gaussian(2)", "linear")),
        train(kernel="gaussian(2)", bandwidth=1.0, grid=True),
    ],
    "usage.features": [
        train(kernel="laplacian", features="fourier:20"),
        train(COLOURED, features="fourier:20", kernel="a, b: gaussian; c: delta"),
    ],
    "usage.class_weight": [train(class_weight="1:2,7:3")],
    "usage.no_columns": [train(exclude="a,b")],
    "data.one_class": [train(changed(y=value)) for value in ("same", 3)] + [fitted(K, np.zeros(40), **PRECOMPUTED)],
    "data.constant_target": [train(changed(y=1.5), **REGRESS), fitted(K, np.ones(40), **PRECOMPUTED, **REGRESS)],
    "data.target_not_numeric": [train(changed(y=values), **REGRESS) for values in (TEXTS, Y > 0)],
    "data.too_many_classes": [
        train(pd.DataFrame({"a": np.arange(501.0), "y": values}))
        for values in (np.arange(501), [f"id{k}" for k in range(501)])
    ],
    "data.missing_values": [
        *(train(changed(y=LABELS)), train(changed(y=[NAN, *Y[1:]]), **REGRESS), train(changed(a=[NAN, *X[1:, 0]]))),
        *(train(test=changed(b=NAN)), fitted(K, [NAN, *Y[1:]], **PRECOMPUTED, **REGRESS)),
        *(fitted(X, labels) for labels in ([*Y[:-1], NAN], LABELS, np.array(LABELS, dtype=object))),
        *(fitted(X, pd.Series(LABELS, dtype=kind)) for kind in ("object", "string", "category")),
    ],
    "data.infinite_values": [fitted(X, np.array([sign * math.inf, *X[1:, 0]]), **REGRESS) for sign in (-1, 1)],
    "data.folds": [train(TABLE.iloc[:6], cv=7), train(changed(y=[9, *Y[1:]]), cv=3)],
    "data.columns_differ": [
        *(train(test=TABLE.drop(columns="a")), train(test=TABLE[["y"]].assign(z=1.0))),
        lambda: SVM().fit(X, Y).predict(X[:, :1]),
    ],
    "data.unknown_class": [train(test=changed(y=Y + 1)), lambda: SVM().fit(X, Y).score(X, Y + 1)],
    "data.unknown_level": [
        train(COLOURED, test=changed(c=["green", "blue"] * 20)),
        lambda: SVM().fit(COLOURED, "y").predict(COLOURED.assign(c="green")),
    ],
    "data.types_differ": [train(test=changed(a="text"))],
    "data.target_size": [
        train(changed(y=X[:, 0] / np.abs(X).max() * unit), **REGRESS) for unit in (1e-200, 1e200, 1e308)
    ],
    "data.wrong_shape": [
        *(fitted(rows, Y, **PRECOMPUTED) for rows in (K[:, :5], K[0], np.where(np.eye(40) > 0, NAN, K))),
        *(partial(SVM(**PRECOMPUTED).fit(K, Y).predict, rows) for rows in (K[:3, :20], K[0], np.full((3, 40), NAN))),
        *(fitted(rows, Y) for rows in (X[:, 0], X[0].tolist(), X[None])),
        fitted(X, np.column_stack([Y, Y])),
    ],
    "data.not_symmetric": [fitted(np.triu(K), Y, **PRECOMPUTED)],
    "data.not_numeric": [fitted([["a"]], Y, **PRECOMPUTED), fitted([[1.0, 2.0], [3.0]], Y)],
    "data.rows_do_not_pair": [fitted(K, Y[:-1], **PRECOMPUTED), fitted(X, Y[:-1])],
    "undecided.overflow": [
        train(changed(a=1e5 * X[:, 0]), kernel="exponential", scale="none", **options)
        for options in ({}, MEAN, {"features": "nystroem:10"}, {"grid": True, "cv": 2})
    ]
    + [fitted(HUGE, Y, kernel="linear", scale="none"), fitted(1e200 * K, Y, **PRECOMPUTED)],
}


@pytest.mark.parametrize(("code", "call"), [(code, call) for code, calls in REFUSED.items() for call in calls])
def test_what_cannot_be_fitted_is_refused(code, call):
    raises({"usage": UsageError, "data": DataError, "undecided": UndecidedError}[code.partition(".")[0]], code, call)


def test_weights_that_are_nearly_balanced_are_known():
    with pytest.raises(UsageError, match="are no weights of classes") as caught:
        SVM(class_weight="balancd")
    assert caught.value.hint == "did you mean 'balanced'?"


N = 40
ROWS = pd.DataFrame({"a": np.arange(N) * 1.5, "b": np.arange(N) % 3, "y": ["u", "v"] * (N // 2)})
GAPS, NUMBERS_OF_ROWS = ROWS.assign(y=[None, *ROWS["y"][1:]]), ROWS.assign(y=np.arange(N) / 7)
DROP = "missing='drop' leaves those rows out"
HINTS = [
    (GAPS, {}, f"^{DROP}$"),
    # Without a the target still has one.
    (GAPS.assign(a=[1.0, None, *ROWS["a"][2:]]), {}, f"^{DROP}$"),
    (ROWS.assign(a=[1.0, None, *ROWS["a"][2:]]), {}, "; exclude='a' leaves the column out$"),
    (ROWS, {"test": GAPS}, f"^{DROP}$"),
    (ROWS.assign(y=None), {"missing": "drop"}, "^column 'y' is needed: fill it in$"),
    (ROWS[:4], {"probability": True}, "^(?!.*folds).*5 rows"),
    (NUMBERS_OF_ROWS, {}, "regress"),
    (ROWS.assign(y=[f"id{k}" for k in range(N)]), {}, "^(?!.*regress).*another target="),
]


@pytest.mark.parametrize(("table", "options", "hint"), HINTS)
def test_hints_name_ways_out_that_lead_out(table, options, hint):
    with pytest.raises(DataError) as caught:
        train_svm(table, "y", **options)
    assert re.search(hint, caught.value.hint)


def test_the_path_of_a_model_is_looked_at_before_anything_is_fitted(tmp_path):
    (tmp_path / "m").write_text("there")
    raises(DataError, "data.exists", train(output=tmp_path / "m", kernel="exponential", scale="none"))


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
    hinted = float(error.hint.split()[0].removeprefix("nu=").rstrip(","))
    assert 0 <= largest - hinted < 1e-3
    machine = SVM(nu=hinted, kernel="laplacian").fit(X[:n], y)
    assert machine.fit_.converged


@pytest.mark.parametrize("C", [1e3, 1e12])
def test_classes_that_overlap_have_no_hard_margin(C):
    same = np.concatenate([X[:10], X[:10]])
    labels = np.repeat(["good", "bad"], 10)
    error = raises(UndecidedError, "undecided.not_separable", lambda: SVM(C=C, hard_margin=True).fit(same, labels))
    assert error.hint.endswith("a smaller bandwidth= separates more")
    linear = SVM(C=C, hard_margin=True, kernel="linear")
    told = raises(UndecidedError, "undecided.not_separable", lambda: linear.fit(same, labels))
    assert told.hint.endswith("kernel='gaussian' separates more")
    assert "'good'" in error.message
    assert "'bad'" in error.message


def test_a_kernel_that_is_not_positive_definite_is_said_to_be():
    result = train_svm(TABLE, "y", kernel="polynomial(3, 1, -1)")
    assert result.duality_gap is None
    assert any("not positive definite" in warning for warning in result.warnings)
    raises(
        UndecidedError, "undecided.not_positive_definite", lambda: SVM(kernel="polynomial(3, 1, -1)", nu=0.3).fit(X, Y)
    )


# Costs and targets of extreme sizes


def test_a_machine_with_a_gap_of_one_is_not_called_usable():
    flipped = np.where(np.arange(20) % 5 == 0, 1 - Y[:20], Y[:20])
    result = train_svm(pd.DataFrame(X[:20], columns=["a", "b"]).assign(y=flipped), "y", C=1e75)
    assert not result.converged
    assert result.duality_gap > 0.5
    warning = next(warning for warning in result.warnings if "duality gap" in warning)
    assert "far from the best" in warning
    assert "usable" not in warning


def test_of_pairs_that_a_nu_is_too_small_for_the_one_that_asks_for_most_is_told():
    """So that who follows the hint is not refused again."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1))
    X[100:, 0] += 1.5
    y = np.repeat(["a", "b", "c"], 50)
    with pytest.raises(UsageError, match="too small for 'a' and 'b'") as caught:
        SVM(kernel="linear", nu=0.05).fit(X[::-1], y[::-1])
    least = float(caught.value.hint.split()[0].removeprefix("nu="))
    assert SVM(kernel="linear", nu=least).fit(X, y).fit_.converged
    assert SVM(kernel="linear", nu=least - 0.05).fit(X[50:], y[50:]).fit_.converged


def test_a_nu_below_the_smallest_share_is_not_said_to_separate_the_classes():
    mixed = np.where(np.arange(40) % 4 == 0, 1 - Y, Y)
    with pytest.raises(UsageError, match=r"leaves a share of 0\.") as caught:
        SVM(kernel="linear", nu=0.1).fit(X, mixed)
    assert "separate" not in caught.value.message
    least = float(caught.value.hint.split()[0].removeprefix("nu="))
    assert SVM(kernel="linear", nu=least).fit(X, mixed).fit_.converged


def test_a_fit_that_says_nothing_is_told():
    options = {"task": "regress", "epsilon": 100.0}
    assert "predicted as the same number" in " ".join(
        train_svm(TABLE.assign(y=X @ [3.0, -1.0]), "y", **options).warnings
    )
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(40), unit="D")
    assert "days since 1970-01-01" in " ".join(train_svm(TABLE.assign(y=days), "y", **options).warnings)


def test_a_steep_kernel_is_told_of_a_gain_and_another_one_of_the_cost():
    r = np.random.default_rng(0)
    x = r.normal(size=(80, 30))
    data = pd.DataFrame(x).add_prefix("c").assign(y=np.where(x[:, 0] > 0, "a", "b"))
    (steep,) = [
        text for text in train_svm(data, target="y", kernel="exp(linear)").warnings if "far from the best" in text
    ]
    assert "at the outermost: a smaller gain, as in exp(0.03*linear)" in steep
    assert not [
        text for text in train_svm(data, target="y", kernel="exp(0.03*linear)").warnings if "the solver" in text
    ]


def test_what_cannot_be_predicted_is_told_before_missing_values_and_a_lone_target_is_named():
    table = TABLE.assign(a=[*X[1:, 0], None], text=LABELS, many=np.arange(40.0))
    for target, options, told in (
        ("text", REGRESS, "column 'text' of train holds text, not numbers to predict"),
        ("one", {}, "column 'one' of train is 1 in every row: there is one class only"),
        ("many", {}, "1 missing value: a 1"),
    ):
        with pytest.raises(DataError, match=re.escape(told)):
            train(table.assign(one=1), target, exclude="text" if target != "text" else "", **options)()
    with pytest.raises(DataError, match="column 'text' of train holds text, not numbers to predict"):
        train_ridge(table, "text")
    for fit in (train_svm, train_ridge):
        with pytest.raises(DataError, match=r"^'y' is all that train has: there is no column to learn from"):
            fit(TABLE[["y"]], "y")
    with pytest.raises(DataError, match=r"^'y', 'b' are all that train has"):
        train_ridge(TABLE[["y", "b"]], "y", weights="b")
