"""A ridge regression from a file to a judged, saved model: `train_ridge`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from kerntest.data.checks import check_probability
from kerntest.data.csv_options import CsvOptions
from kerntest.data.read import read_table
from kerntest.data.table import Table, unknown_column
from kerntest.engines.plan import prepare_fit
from kerntest.engines.setting import engine_of
from kerntest.errors import UsageError, telling
from kerntest.learning.leakage import guarded
from kerntest.learning.parts import check_parts, parts_of
from kerntest.learning.provenance import provenance_of
from kerntest.learning.ridge import chosen_kernel
from kerntest.learning.ridge_data import rows_of, target_names
from kerntest.learning.ridge_fit import dense_bytes, kernels_of
from kerntest.learning.ridge_judge import judge_ridge, ridge_result
from kerntest.learning.ridge_machine import fit_ridge
from kerntest.learning.ridge_options import AUTO, Criterion, RidgeOptions
from kerntest.learning.saved_models import save_model
from kerntest.learning.training_rows import TrainingOptions, read_labelled
from kerntest.matrices.factor import parse_features
from kerntest.report.plot import picture_kind
from kerntest.report.write import check_writable, write_file, written_together

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from kerntest.data.csv_options import CsvWords
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Kernel
    from kerntest.learning.encoding import Scale
    from kerntest.learning.kernel_choice import ChosenKernel
    from kerntest.learning.ridge_data import RidgeRows
    from kerntest.learning.ridge_options import RidgeBandwidth
    from kerntest.learning.training_rows import MissingPolicy
    from kerntest.report.ridge_record import RidgeResult


@telling
def train_ridge(
    train: Any,
    target: str | Sequence[str],
    *,
    test: Any = None,
    test_fraction: float | None = None,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    plot: str | PathLike[str] | None = None,
    lambda_: float | None = None,
    kernel: Kernel | str = "gaussian",
    bandwidth: RidgeBandwidth = AUTO,
    criterion: Criterion = "loo",
    cv: int | None = None,
    weights: str | None = None,
    interval: float = 0.9,
    intervals: bool = True,
    features: str | None = None,
    scale: Scale = "standardize",
    seed: int = 0,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    cluster: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> RidgeResult:
    """Fit a kernel ridge regression to a table, judge it, and save it.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
        The rows to learn from.
    target : str or sequence of str
        The column to predict, or several.
    test : as train, optional
        Rows to judge by. Columns are found by name.
    test_fraction : float, optional
        Instead of `test`: the share of the rows of `train` that is held out.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    plot : path, optional
        PNG, SVG or PDF file: the fit with its band over one numeric column, or else what was predicted and what was
        there; the residuals; the grid.
    lambda_, kernel, bandwidth, criterion, cv, features, intervals, scale, seed
        As in `KernelRidge`.
    weights : str, optional
        A column of weights of rows, which is not learned from. Errors on test rows all count alike.
    interval : float
        Probability of the predictive intervals whose coverage is told.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    cluster : str, optional
        A column, such as a patient or a shop, whose rows of one value stay together in test parts and folds, and are left
        out together. It is not learned from. Copies of a row stay together without it.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    RidgeResult

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError, DataError, UndecidedError
        If the options, the rows or the kernel do not allow it.
    """
    started = time.perf_counter()
    options = RidgeOptions(lambda_, kernel, bandwidth, criterion, cv, features, intervals, scale, seed)
    _check_call(options, test, test_fraction, interval)
    if output is not None:
        check_writable(os.fspath(output), new=not force)
    drawn_as = ""
    if plot is not None:
        drawn_as = picture_kind(plot)
        check_writable(os.fspath(plot))
    engine = engine_of(threads)
    reading = TrainingOptions(columns, exclude, categorical, missing, CsvOptions.of(**csv), cluster)
    table = _table(train, reading)
    names = target_names(target, table)
    labelled = guarded(read_labelled(table, names, reading, beside=_beside(names, weights, table)))
    (learned, tested), inputs = parts_of(labelled, test, test_fraction, reading, seed=seed)
    rows, left_out, warnings = rows_of(learned, scale, len(names))
    chosen = chosen_kernel(rows, options, left_out)
    fixed = (lambda_ is not None, bandwidth != AUTO or not chosen.free.free)
    if all(fixed) and criterion != "loo":
        raise UsageError(
            f"--criterion {criterion} has nothing to choose: lambda and the bandwidth are given",
            hint="leave out --criterion, or --lambda",
            code="usage.criterion",
        )
    _plan(rows, chosen, options, engine)
    fit = fit_ridge(rows, chosen, options, engine, progress=progress)
    judged = judge_ridge(rows, fit, tested, options=options, interval=interval, fixed=fixed, engine=engine)
    result = ridge_result(
        judged,
        fixed=fixed,
        weights=weights,
        left_out=(*left_out, *chosen.unused),
        cluster=cluster,
        warnings=(*labelled.warnings, *warnings, *judged.warnings),
        output=output,
        provenance=provenance_of(options, inputs, _rule(options, chosen, fixed), engine, started),
    )
    picture = None
    if plot is not None:
        from kerntest.learning.ridge_picture import ridge_picture  # noqa: PLC0415 - only to draw

        picture = ridge_picture(result, judged, drawn_as, engine)
    with written_together():
        if output is not None:
            save_model(output, fit.model, force=force)
        if plot is not None and picture is not None:
            write_file(os.fspath(plot), picture)
    return result


def _plan(rows: RidgeRows, chosen: ChosenKernel, options: RidgeOptions, engine: Engine) -> None:
    """Tell the plan of the fit."""
    n, kernels = len(rows), len(kernels_of(rows, chosen, options)[0])
    columns = len(rows.encoder.columns) if rows.encoder else 1
    if options.features is None:
        method, step, held = "dense", f"eigenvalues of the kernel matrix of {n:,} rows", dense_bytes(n, engine)
        operations = {"spectrum": 1.0 * kernels * n**3}
    else:
        size = min(parse_features(options.features)[1], n)
        method, step, held = "features", f"{size:,} features of {n:,} rows", 2.0 * 8 * size * (size + n / 16)
        operations = {"product": 10.0 * kernels * n * size**2}
    prepare_fit("ridge", n, columns, method=method, step=step, held=held, operations=operations, engine=engine)


def _check_call(options: RidgeOptions, test: Any, fraction: float | None, interval: float) -> None:
    """Refuse options that make no sense together."""
    if options.precomputed:
        raise UsageError(
            "a precomputed matrix has no columns to read from a table",
            hint="use kerntest.KernelRidge(kernel='precomputed') from Python",
            code="usage.precomputed",
        )
    check_parts(test, fraction)
    check_probability(interval)


def _table(train: Any, reading: TrainingOptions) -> Table:
    named = isinstance(train, (str, Table)) or hasattr(train, "__fspath__")
    return read_table(train, name=None if named else "train", categorical=reading.categorical, **reading.csv.words())


def _beside(names: tuple[str, ...], weights: str | None, table: Table) -> list[str]:
    """Return the columns that go along: the weights."""
    if not names:
        raise UsageError("--target names no column", hint="name the column to predict", code="usage.target")
    if weights is None:
        return []
    if weights not in table.names:
        raise unknown_column(weights, table.name, table.names)
    if weights in names:
        raise UsageError(
            f"column {weights!r} cannot be both target and weight", hint="name another one", code="usage.weights"
        )
    return [weights]


def _rule(options: RidgeOptions, chosen: ChosenKernel, fixed: tuple[bool, bool]) -> str:
    """Return how the bandwidth was chosen, in words."""
    return chosen.rule if fixed[1] else f"the best multiple of the median, by {options.criterion}"
