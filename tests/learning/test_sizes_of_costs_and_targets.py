"""Costs and targets of extreme sizes are refused with a reason, and what comes of the others is told as it is."""

import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import clouds, raises

from kerntest import SVM, train_svm
from kerntest.errors import DataError, UndecidedError, UsageError

X, Y = clouds(40)
NUMBERS = X @ [3.0, -1.0]


def numbers_table(target):
    return pd.DataFrame(X, columns=["a", "b"]).assign(y=target)


@pytest.mark.parametrize("C", [1e-300, 1e-76, 1e76, 1e300])
def test_a_cost_whose_products_leave_the_range_of_numbers_is_refused(C):
    raises(UsageError, "usage.C", lambda: SVM(C=C))
    raises(UsageError, "usage.class_weight", lambda: SVM(class_weight={"0": C}))


@pytest.mark.parametrize("C", [1e-75, 1e75])
def test_the_extreme_costs_that_are_taken_give_finite_decisions(C):
    machine = SVM(C=C).fit(X[:20], Y[:20])
    assert np.isfinite(machine.decision_function(X)).all()


@pytest.mark.parametrize("unit", [1e-200, 1e200, 1e308])
def test_numbers_that_the_solver_could_not_square_are_refused(unit):
    target = NUMBERS / np.abs(NUMBERS).max() * unit
    raises(DataError, "data.target_size", lambda: SVM(task="regress").fit(X, target))
    raises(DataError, "data.target_size", lambda: train_svm(numbers_table(target), "y", task="regress"))


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
