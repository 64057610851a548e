"""Results of learners as the library would give them, for tests of what is made of them."""

from kerntest import SvmResult
from kerntest.report.results.learning_record import (
    Baseline,
    ClassificationMetrics,
    ClassMetrics,
    GridCell,
    GridSearch,
    RegressionMetrics,
)
from kerntest.report.results.record import InputRecord, Provenance

TIES = "the best mean over the folds; of equal ones the smallest C, then the largest bandwidth"


def metrics(confusion=((9, 1), (2, 8)), names=("no", "yes"), **changes):
    """Return the judgement that a confusion matrix is, roughly: nobody checks the sums."""
    total = sum(map(sum, confusion))
    right = sum(row[place] for place, row in enumerate(confusion))
    classes = tuple(ClassMetrics(name, 0.9, 0.8, 0.85, sum(row)) for name, row in zip(names, confusion, strict=True))
    values = {
        "n": total,
        "accuracy": right / total,
        "accuracy_interval": (0.6, 0.95),
        "balanced_accuracy": 0.85,
        "macro_f1": 0.849,
        "classes": classes,
        "confusion": tuple(map(tuple, confusion)),
        "roc_auc": 0.93,
        "log_loss": None,
        "brier": None,
    }
    return ClassificationMetrics(**(values | changes))


def grid(score="accuracy"):
    """Return a grid of two costs and two bandwidths."""
    sign = 1.0 if score == "accuracy" else -1.0
    cells = tuple(
        GridCell(cost, multiple, 2.0 * multiple, f"gaussian({2.0 * multiple})", sign * mean, 0.02)
        for multiple, cost, mean in ((0.5, 1.0, 0.7), (0.5, 10.0, 0.75), (1.0, 1.0, 0.875), (1.0, 10.0, 0.8))
    )
    return GridSearch(score, 5, TIES, cells, 2, cells[2].mean)


def svm_result(**changes):
    """Return the result of a classifier judged on test rows."""
    judged = metrics()
    values = {
        "schema": "kerntest.svm/1",
        "command": "svm",
        "task": "classify",
        "method": "svm",
        "target": "bought",
        "classes": ("no", "yes"),
        "n_train": 60,
        "n_test": 20,
        "judged_on": "test",
        "accuracy": judged.accuracy,
        "balanced_accuracy": judged.balanced_accuracy,
        "roc_auc": judged.roc_auc,
        "confusion": judged.confusion,
        "rmse": None,
        "r2": None,
        "outliers": None,
        "train": metrics(((28, 2), (1, 29))),
        "test": judged,
        "baseline": Baseline("nearest mean", 0.8, 0.79),
        "kernel": "gaussian(2.0000000001)",
        "bandwidth": 2.0000000001,
        "gamma": 0.125,
        "C": 1.0,
        "nu": None,
        "lambda_": 1 / 120,
        "n_support": 30,
        "n_bounded": 12,
        "objective": 10.5,
        "dual_objective": 10.4999999,
        "duality_gap": 1e-8,
        "intercept": 0.25,
        "iterations": 9,
        "converged": True,
        "features": None,
        "feature_error": None,
        "probability": False,
        "grid": None,
        "model": None,
        "columns": ("price", "size"),
        "columns_left_out": (),
        "cluster": None,
        "n_clusters": None,
        "warnings": (),
        "provenance": Provenance(
            version="0.1.0",
            seed=0,
            inputs=(InputRecord("shop.csv", "csv", 80, 80, "ab" * 32, ",", None, 1),),
            kernel="gaussian",
            bandwidth="median heuristic",
            scale="standardize",
            dtype="float64",
            threads=2,
            libraries={"numpy": "2.0"},
            seconds=0.25,
        ),
    }
    return SvmResult(**(values | changes))


def regression_result():
    """Return the result of a regression judged on its training rows."""
    judged = RegressionMetrics(60, 2.5, 2.0, 0.75, 6.0)
    return svm_result(
        task="regress",
        classes=(),
        n_test=0,
        judged_on="train",
        accuracy=None,
        balanced_accuracy=None,
        roc_auc=None,
        confusion=None,
        rmse=2.5,
        r2=0.75,
        train=judged,
        test=None,
        baseline=None,
    )
