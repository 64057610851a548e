"""A support vector machine from a file to a judged, saved model: `train_svm`."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kerntest.data.csv_options import CsvOptions
from kerntest.engines.plan import prepare_fit
from kerntest.engines.setting import allowed_bytes, engine_of
from kerntest.errors import UsageError, telling
from kerntest.learning.grid import COSTS, MULTIPLES, search
from kerntest.learning.leakage import guarded
from kerntest.learning.parts import check_parts, parts_of
from kerntest.learning.provenance import provenance_of
from kerntest.learning.saved_models import save_model
from kerntest.learning.solvers.hinge import KEPT_BYTES
from kerntest.learning.svm_data import chosen_kernel, fit_machine, folds_of, rows_of
from kerntest.learning.svm_judge import judge, svm_result
from kerntest.learning.svm_options import ClassWeights, SvmOptions
from kerntest.learning.training import Classes, Labelled, TrainingOptions, read_labelled
from kerntest.matrices.factor import parse_features
from kerntest.report.plot import picture_kind
from kerntest.report.write import check_writable, write_file, written_together

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from kerntest.data.csv_options import CsvWords
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Codes, Kernel
    from kerntest.learning.encoding import Scale
    from kerntest.learning.kernel_choice import Bandwidth
    from kerntest.learning.svm_fit import Rows
    from kerntest.learning.svm_model import Method, Task
    from kerntest.learning.training import MissingPolicy
    from kerntest.report.svm_record import GridSearch, SvmResult


@telling
def train_svm(
    train: Any,
    target: str | None = None,
    *,
    test: Any = None,
    test_fraction: float | None = None,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    grid: bool = False,
    cv: int | None = None,
    plot: str | PathLike[str] | None = None,
    C: float = 1.0,
    kernel: Kernel | str = "gaussian",
    bandwidth: Bandwidth = "median",
    task: Task = "classify",
    nu: float | None = None,
    hard_margin: bool = False,
    epsilon: float = 0.1,
    class_weight: ClassWeights = None,
    method: Method = "svm",
    probability: bool = False,
    features: str | None = None,
    scale: Scale = "standardize",
    tolerance: float = 1e-6,
    seed: int = 0,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    cluster: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> SvmResult:
    """Fit a support vector machine to a table, judge it, and save it.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
        The rows to learn from.
    target : str, optional
        The column to predict; none for task="one-class".
    test : as train, optional
        Rows to judge by. Columns are found by name.
    test_fraction : float, optional
        Instead of `test`: the share of the rows of `train` that is held out, drawn by class.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    grid : bool
        Choose C and the bandwidth by cross-validation inside the training part (the test part is not touched).
    cv : int, optional
        Folds; 5 by default with `grid`. Without `grid`: the cross-validated score of the options as they are.
    plot : path, optional
        PNG, SVG or PDF file: decision regions for two columns, else the ROC curve and the confusion matrix.
    C, kernel, bandwidth, task, nu, hard_margin, epsilon, class_weight, method, probability, features, scale, tolerance, seed
        As in `SVM`.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    cluster : str, optional
        A column, such as a patient or a shop, whose rows of one value stay together in test parts and folds. It is not
        learned from. Copies of a row stay together without it.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    SvmResult

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
    options = SvmOptions(
        C,
        kernel,
        bandwidth,
        task,
        nu,
        hard_margin,
        epsilon,
        class_weight,
        method,
        probability,
        features,
        scale,
        tolerance,
        seed,
    )
    _check_call(options, target, test, test_fraction, cv)
    if output is not None:
        check_writable(os.fspath(output), new=not force)
    drawn_as = ""
    if plot is not None:
        drawn_as = picture_kind(plot)
        check_writable(os.fspath(plot))
    engine = engine_of(threads)
    reading = TrainingOptions(columns, exclude, categorical, missing, CsvOptions.of(**csv), cluster)
    labelled = guarded(read_labelled(train, target, reading), by_class=task == "classify")
    codes = _classes(labelled, options, test_fraction)
    (learned, tested), inputs = parts_of(labelled, test, test_fraction, reading, seed=seed, codes=codes)
    rows, left_out, warnings = rows_of(learned, options)
    chosen = chosen_kernel(rows, options, left_out)
    _plan(rows, options, engine, whole_grid=grid, cv=cv)
    found: GridSearch | None = None
    cost, used = options.C, chosen.kernel
    if grid or cv is not None:
        folds, warned = folds_of(rows, cv or 5, seed)
        warnings += warned
        found, cost, best = search(rows, chosen, options, folds, engine, whole_grid=grid, progress=progress)
        used = chosen.kernel if best is None else best
    # A search has told how far it is; one fit more is little beside it.
    told = progress if found is None else None
    fit = fit_machine(rows, replace(chosen, kernel=used), options, engine, C=cost, progress=told)
    judged = judge(rows, fit, tested, options=options, kernel=used, engine=engine, found=found)
    result = svm_result(
        judged,
        found=found,
        left_out=(*left_out, *chosen.unused),
        cluster=cluster,
        warnings=(*labelled.warnings, *warnings, *judged.warnings),
        output=output,
        provenance=provenance_of(options, inputs, chosen.rule, engine, started),
    )
    picture = None
    if plot is not None:
        from kerntest.learning.svm_picture import svm_picture  # noqa: PLC0415 - only to draw

        picture = svm_picture(result, judged, drawn_as, engine)
    with written_together():
        if output is not None:
            save_model(output, fit.model, force=force)
        if plot is not None and picture is not None:
            write_file(os.fspath(plot), picture)
    return result


def _plan(rows: Rows, options: SvmOptions, engine: Engine, *, whole_grid: bool, cv: int | None) -> None:
    """Tell the plan of the fit."""
    n, columns = len(rows), len(rows.encoder.columns) if rows.encoder else 1
    fits = 1
    if options.features is None:
        step, held = f"kernel matrix of {n:,} rows", min(8.0 * n * n, allowed_bytes(KEPT_BYTES))
        operations = {"distance": 8.0 * n * n}
    else:
        size = parse_features(options.features)[1]
        step, held = f"{size:,} features of {n:,} rows", 4.0 * 8 * n * size
        operations = {"product": 5.0 * n * size**2}
    if whole_grid or cv is not None:
        step += f", {cv or 5} folds" + (", for a grid of costs and bandwidths" if whole_grid else "")
        fits += (cv or 5) * (len(COSTS) * len(MULTIPLES) if whole_grid else 1)
    operations = {name: fits * count for name, count in operations.items()}
    prepare_fit("svm", n, columns, method=options.method, step=step, held=held, operations=operations, engine=engine)


def _check_call(options: SvmOptions, target: str | None, test: Any, fraction: float | None, cv: int | None) -> None:
    """Refuse options that make no sense together."""
    if options.precomputed:
        raise UsageError(
            "a precomputed matrix has no columns to read from a table",
            hint="use kerntest.SVM(kernel='precomputed') from Python",
            code="usage.precomputed",
        )
    if (target is None) != (options.task == "one-class"):
        raise UsageError(
            f"--task {options.task} {'needs' if target is None else 'has no'} --target",
            hint="--target names the column to predict" if target is None else "leave one of them out",
            code="usage.target",
        )
    check_parts(test, fraction)
    if cv is not None and (isinstance(cv, bool) or not isinstance(cv, int) or cv < 2):
        raise UsageError(f"cv must be a whole number of at least 2, not {cv!r}", hint="5 is usual", code="usage.cv")


def _classes(labelled: Labelled, options: SvmOptions, fraction: float | None) -> Codes | None:
    """Return the class of each row, to draw test rows by."""
    if fraction is None or labelled.target is None or options.task != "classify":
        return None
    name = labelled.read.name
    return Classes.of(labelled.target, name).codes(labelled.target, name)
