"""Results of ridge regressions as the library would give them, for tests of what is made of them."""

from example_svm import svm_result

from kerntest import RidgeResult
from kerntest.report.results.ridge_record import IntervalMetrics, RidgeCell, RidgeGrid, TargetFit

TIES = "the best score; of equal ones the smoothest: the largest lambda, then the largest bandwidth"


def metrics(n=20, **changes):
    """Return how well rows are predicted."""
    values = {"n": n, "rmse": 2.5, "mae": 2.0, "r2": 0.75, "max_error": 6.0, "coverage": 0.85}
    return IntervalMetrics(**(values | changes))


def target_fit(name="wear", **changes):
    """Return a target judged on test rows."""
    values = {
        "name": name,
        "intercept": 4.0,
        "loo_rmse": 2.75,
        "loo_r2": 0.7,
        "gcv_rmse": 2.7,
        "noise": 2.25,
        "scale": 8.0,
        "train": metrics(60, rmse=1.5, r2=0.9, coverage=None),
        "test": metrics(),
    }
    return TargetFit(**(values | changes))


def ridge_grid(multiples=(0.5, 1.0), lambdas=(0.1, 1.0), **changes):
    """Return a grid whose best cell is the second lambda of the second bandwidth."""
    cells = tuple(
        RidgeCell(penalty, multiple, 2.0 * multiple, f"gaussian({2.0 * multiple})", 3.0 + place / 8, 9.5)
        for place, (multiple, penalty) in enumerate((m, one) for m in multiples for one in lambdas)
    )
    best = len(lambdas) + 1 if len(cells) > len(lambdas) + 1 else 0
    values = {
        "criterion": "loo",
        "score": "RMSE",
        "folds": None,
        "n_rows": 60,
        "tie_rule": TIES,
        "cells": cells,
        "chosen": best,
    }
    return RidgeGrid(**(values | changes))


def ridge_result(**changes):
    """Return the result of a regression of one target judged on test rows."""
    fit = target_fit()
    values = {
        "schema": "kerntest.ridge/1",
        "command": "ridge",
        "target": "wear",
        "targets": ("wear",),
        "n_train": 60,
        "n_test": 20,
        "judged_on": "test",
        "rmse": fit.test.rmse,
        "r2": fit.test.r2,
        "lambda_": 0.3,
        "lambda_per_row": 0.005,
        "criterion": "loo",
        "loo_rmse": fit.loo_rmse,
        "loo_r2": fit.loo_r2,
        "loo_coverage": 0.9,
        "gcv_rmse": fit.gcv_rmse,
        "effective_df": 12.5,
        "log_evidence": -99.5,
        "interval": 0.9,
        "train": fit.train,
        "test": fit.test,
        "fits": (fit,),
        "kernel": "gaussian(2.0000000001)",
        "bandwidth": 2.0000000001,
        "gamma": 0.125,
        "condition_number": 12345.0,
        "n_zero": 0,
        "solver": "eigenvalues",
        "iterations": 0,
        "converged": True,
        "features": None,
        "feature_error": None,
        "weights": None,
        "grid": None,
        "model": None,
        "columns": ("price", "size"),
        "columns_left_out": (),
        "cluster": None,
        "n_clusters": None,
        "warnings": (),
        "provenance": svm_result().provenance,
    }
    return RidgeResult(**(values | changes))
