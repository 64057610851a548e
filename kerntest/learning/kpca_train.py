"""Kernel principal components from a file to a report and a saved model: `train_kpca`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from kerntest.data.csv_options import CsvOptions
from kerntest.engines.plan import prepare_fit
from kerntest.engines.setting import allowed_bytes, engine_of
from kerntest.errors import UsageError, telling
from kerntest.learning.association import associations
from kerntest.learning.kpca_data import rows_of
from kerntest.learning.kpca_fit import KpcaRows, fit_components
from kerntest.learning.kpca_options import KpcaOptions
from kerntest.learning.leakage import running_numbers
from kerntest.learning.provenance import input_of, provenance_of
from kerntest.learning.saved_models import save_model
from kerntest.learning.training_rows import TrainingOptions, read_labelled
from kerntest.matrices.factor import parse_features
from kerntest.matrices.matrix import KEPT_BYTES
from kerntest.report.kpca_record import KpcaPart, KpcaResult
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
    from kerntest.learning.kernel_choice import Bandwidth
    from kerntest.learning.kpca_model import KpcaModel
    from kerntest.learning.training_rows import MissingPolicy
    from kerntest.matrices.eigen import EigenSolver


@telling
def train_kpca(
    train: Any,
    *,
    components: int = 2,
    color: str | None = None,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    plot: str | PathLike[str] | None = None,
    kernel: Kernel | str = "gaussian",
    bandwidth: Bandwidth = "median",
    features: str | None = None,
    solver: EigenSolver = "auto",
    scale: Scale = "standardize",
    seed: int = 0,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> KpcaResult:
    """Find the principal components of a table in the feature space of a kernel, and save them.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
    components : int
        How many.
    color : str, optional
        A column that takes no part and colours the rows in the picture.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    plot : path, optional
        PNG, SVG or PDF file: the rows in the first two components, and the scree.
    kernel, bandwidth, features, solver, scale, seed
        As in `KernelPCA`.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    KpcaResult

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
    options = KpcaOptions(components, kernel, bandwidth, features, solver, scale, seed)
    if options.precomputed:
        raise UsageError(
            "a precomputed matrix has no columns to read from a table",
            hint="use kerntest.KernelPCA(kernel='precomputed') from Python",
            code="usage.precomputed",
        )
    if output is not None:
        check_writable(os.fspath(output), new=not force)
    drawn_as = ""
    if plot is not None:
        drawn_as = picture_kind(plot)
        check_writable(os.fspath(plot))
    engine = engine_of(threads)
    reading = TrainingOptions(columns, exclude, categorical, missing, CsvOptions.of(**csv))
    labelled = read_labelled(train, (), reading, beside=() if color is None else (color,))
    rows, chosen, left_out, warnings = rows_of(labelled.features, options)
    _plan(rows, options, engine)
    fit = fit_components(rows, options, engine, progress)
    model = fit.model
    scores = model.scores(rows.points, engine)
    result = KpcaResult(
        schema="kerntest.kpca/1",
        command="kpca",
        n_train=model.n_train,
        n_test=0,
        judged_on="train",
        components=model.n_components,
        components_requested=components,
        eigenvalues=tuple(model.eigenvalues.tolist()),
        explained_variance_ratio=tuple(model.ratios.tolist()),
        explained=model.explained,
        trace=model.trace,
        train=_part(model),
        test=None,
        associations=associations(labelled.features.select(_names(model)), scores),
        kernel=str(chosen.kernel),
        bandwidth=getattr(chosen.kernel, "bandwidth", None),
        gamma=getattr(chosen.kernel, "gamma", None),
        solver=fit.solver,
        features=features,
        feature_error=fit.feature_error,
        color=color,
        model=None if output is None else os.fspath(output),
        columns=_names(model),
        columns_left_out=left_out,
        warnings=(*labelled.warnings, *running_numbers(labelled), *warnings, *fit.warnings),
        provenance=provenance_of(options, (input_of(labelled),), chosen.rule, engine, started),
    )
    picture = None
    if plot is not None:
        from kerntest.learning.kpca_picture import kpca_picture  # noqa: PLC0415 - only to draw

        picture = kpca_picture(result, scores, labelled.beside[0] if labelled.beside else None, drawn_as)
    with written_together():
        if output is not None:
            save_model(output, model, force=force)
        if plot is not None and picture is not None:
            write_file(os.fspath(plot), picture)
    return result


def _plan(rows: KpcaRows, options: KpcaOptions, engine: Engine) -> None:
    """Tell the plan of the fit."""
    n = len(rows.points)
    columns = len(rows.encoder.columns) if rows.encoder else 1
    if options.features is not None:
        size = parse_features(options.features)[1]
        method, step, held = "features", f"covariance of {size:,} features of {n:,} rows", 6.0 * 8 * size * size
        operations = {"kernel": 1.0 * n * size, "product": 2.0 * n * size**2}
    else:
        kept = 4.0 * n * n
        method, step = "exact", f"{options.components:,} components of the kernel matrix of {n:,} rows"
        held = kept if kept <= allowed_bytes(KEPT_BYTES) else 8.0 * n * 64
        operations = {"distance": 2.0 * n * n, "product": 100.0 * n * n}
    prepare_fit("kpca", n, columns, method=method, step=step, held=held, operations=operations, engine=engine)


def _names(model: KpcaModel) -> tuple[str, ...]:
    return () if model.encoder is None else model.encoder.names


def _part(model: KpcaModel) -> KpcaPart:
    return KpcaPart(model.n_train, model.explained, (1.0 - model.explained) * model.trace / model.n_train)
