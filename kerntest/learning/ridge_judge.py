"""How good a fitted ridge regression is: on the rows it has learned from, on those it has not seen, left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.wording import counted
from kerntest.learning.ridge_data import test_rows
from kerntest.learning.scores import regression_metrics, root_mean_square
from kerntest.learning.solvers.ridge_path import ROUNDING
from kerntest.report.ridge_record import IntervalMetrics, RidgeResult, TargetFit

if TYPE_CHECKING:
    from os import PathLike

    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.ridge_data import RidgeRows
    from kerntest.learning.ridge_machine import RidgeFit
    from kerntest.learning.ridge_options import RidgeOptions
    from kerntest.learning.training_rows import Labelled
    from kerntest.report.record import Provenance

# Systems with a larger condition number are told of: rounding is then seen in the fit.
ILL_CONDITIONED = 1e12


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRidge:
    """A fitted regression with its predictions.

    Parameters
    ----------
    rows : RidgeRows
        The training part.
    test : RidgeRows or None
    fit : RidgeFit
    options : RidgeOptions
    interval : float
        Probability of the intervals.
    test_predicted, test_spread : ndarray, shape (m, T), or None
    train_metrics, test_metrics : tuple of IntervalMetrics
        One for each target; the second empty without test rows.
    loo_coverage : float or None
    warnings : tuple of str
    """

    rows: RidgeRows
    test: RidgeRows | None
    fit: RidgeFit
    options: RidgeOptions
    interval: float
    test_predicted: Array | None
    test_spread: Array | None
    train_metrics: tuple[IntervalMetrics, ...]
    test_metrics: tuple[IntervalMetrics, ...]
    loo_coverage: float | None
    warnings: tuple[str, ...]


def judge_ridge(
    rows: RidgeRows,
    fit: RidgeFit,
    tested: Labelled | None,
    *,
    options: RidgeOptions,
    interval: float,
    fixed: tuple[bool, bool],
    engine: Engine,
) -> JudgedRidge:
    """Return a fitted regression judged on its training rows and on others.

    Parameters
    ----------
    rows, fit, options, engine
    tested : Labelled or None
        Rows to judge by.
    interval : float
    fixed : (bool, bool)
        Whether lambda and the bandwidth were given.

    Raises
    ------
    DataError
        If the other rows do not fit the training rows.
    """
    reach = fit.model.reach(interval)
    test, warnings = (None, []) if tested is None else test_rows(tested, rows)
    predicted = spread = None
    if test is not None:
        predicted = fit.model.predicted(test.points, engine)
        if fit.model.spread is not None:
            spread = fit.model.deviations(test.points, engine)
    covered = None
    if fit.left_out is not None and fit.left_out_spread is not None:
        covered = float(np.mean(np.abs(fit.left_out) <= reach * fit.left_out_spread))
    return JudgedRidge(
        rows,
        test,
        fit,
        options,
        interval,
        predicted,
        spread,
        _metrics(rows.targets, fit.fitted, None, reach),
        () if test is None or predicted is None else _metrics(test.targets, predicted, spread, reach),
        covered,
        (*warnings, *fit_warnings(rows, fit, fixed)),
    )


def _metrics(truth: Array, predicted: Array, spread: Array | None, reach: float) -> tuple[IntervalMetrics, ...]:
    """Return how well each target is predicted."""
    found = []
    for place in range(truth.shape[1]):
        one = regression_metrics(truth[:, place], predicted[:, place])
        covered = None
        if spread is not None:
            covered = float(np.mean(np.abs(truth[:, place] - predicted[:, place]) <= reach * spread[:, place]))
        found.append(IntervalMetrics(one.n, one.rmse, one.mae, one.r2, one.max_error, covered))
    return tuple(found)


def over_targets(metrics: tuple[IntervalMetrics, ...]) -> IntervalMetrics | None:
    """Return the mean over the targets, of the RMSE the root mean square; None of none."""
    if len(metrics) < 2:
        return metrics[0] if metrics else None
    r2 = [one.r2 for one in metrics if one.r2 is not None]
    covered = [one.coverage for one in metrics if one.coverage is not None]
    return IntervalMetrics(
        metrics[0].n,
        root_mean_square(np.array([one.rmse for one in metrics])),
        sum(one.mae for one in metrics) / len(metrics),
        sum(r2) / len(r2) if r2 else None,
        max(one.max_error for one in metrics),
        sum(covered) / len(covered) if covered else None,
    )


def fit_warnings(rows: RidgeRows, fit: RidgeFit, fixed: tuple[bool, bool]) -> list[str]:
    """Return what a reader must know before trusting the regression."""
    warnings = []
    if fit.condition > ILL_CONDITIONED:
        # A lambda that is rounding itself cannot stand in for the eigenvalues that are.
        without = ""
        if fit.n_zero and fit.condition * np.finfo(np.float64).eps * ROUNDING >= 1:
            without = f", without the {counted(fit.n_zero, 'direction')} whose eigenvalue is 0 to rounding"
        warnings.append(
            f"the system is ill-conditioned (condition number {fit.condition:.1e}): it was solved through its "
            f"eigenvalues{without}; a larger --lambda is safer"
        )
    if not fit.converged:
        warnings.append(
            f"conjugate gradients stopped after {fit.iterations} steps before they had converged: the regression is "
            "usable, not exact; a larger --lambda or fewer features help"
        )
    if fit.iterations is not None:
        what = {
            (False, False): "lambda and the bandwidth were",
            (False, True): "lambda was",
            (True, False): "the bandwidth was",
        }
        chosen = "" if all(fixed) else f"; {what[fixed]} chosen on {fit.grid.n_rows:,} of them"
        warnings.append(
            f"leave-one-out of {len(rows):,} rows is not computed with conjugate gradients: generalised cross-validation "
            f"stands for it{chosen}"
        )
    return [*warnings, *_edge_warnings(fit, fixed)]


def _edge_warnings(fit: RidgeFit, fixed: tuple[bool, bool]) -> list[str]:
    """Return what it means that the best cell is at an end of the grid."""
    cells = fit.grid.cells
    best = cells[fit.grid.chosen]
    lambdas = [cell.lambda_ for cell in cells]
    multiples = [cell.multiple for cell in cells]
    warnings = []
    if not fixed[0] and best.lambda_ >= max(lambdas):
        warnings.append(
            f"the best lambda is the largest of the grid, {best.lambda_:g}: the columns may say little of the target"
        )
    if not fixed[0] and best.lambda_ <= min(lambdas):
        warnings.append(
            f"the best lambda is the smallest of the grid, {best.lambda_:g}: a smaller --lambda may be better still"
        )
    if not fixed[1] and best.multiple >= max(multiples) and best.lambda_ < max(lambdas):
        warnings.append(
            "the best bandwidth is the largest of the grid: a larger --bandwidth, or --kernel linear, may be better still"
        )
    if not fixed[1] and best.multiple <= min(multiples) and best.lambda_ < max(lambdas):
        warnings.append("the best bandwidth is the smallest of the grid; --kernel laplacian2 suits rougher functions")
    return warnings


def ridge_result(
    judged: JudgedRidge,
    *,
    fixed: tuple[bool, bool],
    weights: str | None,
    left_out: tuple[str, ...],
    cluster: str | None,
    warnings: tuple[str, ...],
    output: str | PathLike[str] | None,
    provenance: Provenance,
) -> RidgeResult:
    """Return the record of a fitted regression."""
    fit, rows, options = judged.fit, judged.rows, judged.options
    model = fit.model
    train, test = over_targets(judged.train_metrics), over_targets(judged.test_metrics)
    if train is None:
        message = "a regression has a target"
        raise TypeError(message)
    shown = train if test is None else test
    cell = fit.grid.cells[fit.grid.chosen]
    kernel = getattr(model.expansion, "kernel", None) if model.features is None else model.features.kernel
    loo = None if fit.loo_rmse is None else root_mean_square(fit.loo_rmse)
    explained = _left_out_r2(judged)
    seen = () if rows.encoder is None else rows.encoder.names
    return RidgeResult(
        schema="kerntest.ridge/1",
        command="ridge",
        target=rows.names[0],
        targets=rows.names,
        n_train=len(rows),
        n_test=0 if judged.test is None else len(judged.test),
        judged_on="train" if judged.test is None else "test",
        rmse=shown.rmse,
        r2=shown.r2,
        lambda_=model.lambda_,
        lambda_per_row=model.lambda_ / len(rows),
        criterion="none" if all(fixed) else options.criterion,
        loo_rmse=loo,
        loo_r2=None if explained is None else float(explained.mean()),
        loo_coverage=judged.loo_coverage,
        gcv_rmse=root_mean_square(fit.gcv_rmse),
        effective_df=fit.degrees,
        log_evidence=fit.log_evidence,
        interval=judged.interval,
        train=train,
        test=test,
        fits=_target_fits(judged),
        kernel=cell.kernel,
        bandwidth=getattr(kernel, "bandwidth", None),
        gamma=getattr(kernel, "gamma", None),
        condition_number=fit.condition,
        n_zero=fit.n_zero,
        solver="eigenvalues" if fit.iterations is None else "conjugate gradients",
        iterations=fit.iterations or 0,
        converged=fit.converged,
        features=options.features,
        feature_error=fit.feature_error,
        weights=weights,
        grid=None if all(fixed) else fit.grid,
        model=None if output is None else str(output),
        columns=tuple(name for name in seen if name not in left_out),
        columns_left_out=left_out,
        cluster=cluster,
        n_clusters=None if rows.clusters is None else len(np.unique(rows.clusters)),
        warnings=warnings,
        provenance=provenance,
    )


def _left_out_r2(judged: JudgedRidge) -> Array | None:
    """Return for each target which share of its variance the predictions of rows left out explain, shape (T,)."""
    if judged.fit.loo_rmse is None:
        return None
    explained: Array = 1.0 - np.square(judged.fit.loo_rmse / judged.fit.spreads)
    return explained


def _target_fits(judged: JudgedRidge) -> tuple[TargetFit, ...]:
    """Return what is known of each target."""
    fit, model = judged.fit, judged.fit.model
    explained = _left_out_r2(judged)
    return tuple(
        TargetFit(
            name=name,
            intercept=float(model.expansion.intercepts[place]),
            loo_rmse=None if fit.loo_rmse is None else float(fit.loo_rmse[place]),
            loo_r2=None if explained is None else float(explained[place]),
            gcv_rmse=float(fit.gcv_rmse[place]),
            noise=float(model.noise[place]),
            scale=float(model.scales[place]),
            train=judged.train_metrics[place],
            test=judged.test_metrics[place] if judged.test_metrics else None,
        )
        for place, name in enumerate(judged.rows.names)
    )
