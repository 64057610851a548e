"""Components applied to a table of any size: `transform_file`, scores or pre-images of every row."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import kerntest
from kerntest.data.blocks import open_blocks
from kerntest.data.checks import one_of
from kerntest.data.wording import counted
from kerntest.engines.setting import engine_of
from kerntest.errors import ModelError, UndecidedError, UsageError, telling
from kerntest.learning.kpca_data import distances, encoder_of, in_units
from kerntest.learning.kpca_model import KpcaModel
from kerntest.learning.model_file import read_model
from kerntest.learning.prediction_output import file_format, open_sink
from kerntest.learning.rowwise import Found, RowWork, check_columns, kept_columns
from kerntest.learning.saved_models import model_of
from kerntest.report.transform_report import ColumnError, TransformReport

if TYPE_CHECKING:
    from os import PathLike
    from typing import BinaryIO, Unpack

    from numpy.typing import NDArray

    from kerntest.data.blocks import BlockReader
    from kerntest.data.csv_options import CsvWords
    from kerntest.data.selection import Patterns
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.preimage import PreImages
    from kerntest.learning.rowwise import Applied, MissingRule, UnknownRule

ERROR, RESIDUAL = "reconstruction_error", "residual"
MICROSECONDS_A_DAY = 86_400_000_000


@telling
def transform_file(
    model: str | PathLike[str],
    data: str | PathLike[str],
    *,
    output: str | PathLike[str] | BinaryIO | None = None,
    components: int | None = None,
    reconstruct: bool = False,
    residual: bool = False,
    keep: Patterns = None,
    missing: MissingRule = "error",
    unknown: UnknownRule = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    block: int | None = None,
    **csv: Unpack[CsvWords],
) -> TransformReport:
    """Project the rows of a file, which need not fit into memory, on the components of a model.

    Parameters
    ----------
    model : path
        A file that `train_kpca` or `KernelPCA.save` wrote.
    data : path or "-"
        CSV or Parquet, as `read_table` takes it; its columns are found by name, in any order, and others are ignored.
    output : path or binary file
        A .csv or .parquet file, whole or not there at all; or an open file, which gets CSV. None: the standard output.
    components : int, optional
        How many of the components to use; all by default.
    reconstruct : bool
        Write pre-images of the projections, in the columns and units of the data, instead of scores.
    residual : bool
        Also how far each row is from its projection in feature space, squared, in a column `residual`.
    keep, missing, unknown, threads, progress, block
        As in `predict_file`.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    TransformReport

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    ModelError
        If the model cannot be read, or is no model of components.
    DataError
        If the data cannot be read or do not fit the model, or the output cannot be written.
    UsageError
        If an option makes no sense, or the kernel has no pre-images here.

    Notes
    -----
    Pieces of the data are worked on side by side, as `predict_file` does.

    Cost: O(rows x centres x columns) time, for pre-images some ten to a hundred times; memory for a few blocks.
    """
    started = time.perf_counter()
    one_of("missing", missing, ("error", "drop", "empty"))
    one_of("unknown", unknown, ("error", "ignore"))
    shown = os.fspath(model)
    fitted = _load(model, shown, components)
    engine = engine_of(threads)
    if reconstruct:
        fitted.check_preimages()
    if output is not None and not hasattr(output, "write"):
        file_format(os.fspath(output))
    encoder = encoder_of(fitted)
    with open_blocks(os.fspath(data), **encoder.csv(csv), block_bytes=block) as reader:
        reader.written = encoder.written
        made = _made(fitted, reconstruct=reconstruct, residual=residual)
        kept = kept_columns(keep, reader, set(made).__contains__, "pre-images" if reconstruct else "scores")
        check_columns(reader, encoder, shown)
        work = _Transformation(
            encoder=encoder,
            shown=shown,
            kept=tuple(kept),
            missing=missing,
            unknown=unknown,
            made="pre-image" if reconstruct else "score",
            located=reader.located,
            model=fitted,
            reconstruct=reconstruct,
            residual=residual,
        )
        engine = work.prepared("transform", reader, engine)
        with open_sink(output) as sink:
            applied = work.run(reader, engine, sink, progress)
        return work.report(applied, reader, output, started)


def _load(model: str | PathLike[str], shown: str, components: int | None) -> KpcaModel:
    """Return the model of a file, with as many components as are asked for."""
    file = read_model(model)
    if file.kind != KpcaModel.KIND:
        known = file.kind in {"svm", "ridge"}
        raise ModelError(
            f"{shown} holds a model of kind {file.kind!r}, which has no components to project on",
            hint=f"`kerntest {f'predict {shown} DATA' if known else f'inspect {shown}'}` "
            f"{'predicts with it' if known else 'says what it holds'}",
            code="model.kind",
            where={"file": shown},
        )
    fitted = model_of(file, KpcaModel)
    if fitted.encoder is None:
        raise ModelError(
            f"{shown} was fitted to a matrix of kernel values, not to columns",
            hint="project with it from Python: KernelPCA.load(path).transform(K)",
            code="model.precomputed",
            where={"file": shown},
        )
    if components is None:
        return fitted
    if not 1 <= components <= fitted.n_components:
        raise UsageError(
            f"{shown} has {counted(fitted.n_components, 'component')}, not {components:,}",
            hint="fit it again with more --components",
            code="usage.components",
        )
    return fitted.first(components)


def _made(model: KpcaModel, *, reconstruct: bool, residual: bool) -> list[str]:
    """Return the columns that the model makes, in their order.

    Raises
    ------
    UsageError
        If two of them have one name.
    """
    names = column_names(model) if reconstruct else score_names(model)
    names += [ERROR] * reconstruct + [RESIDUAL] * residual
    twice = [name for name in names if names.count(name) > 1 or name == "row"]
    if twice:
        raise UsageError(
            f"the output would have two columns {twice[0]!r}",
            hint="rename the column of the data, and fit the model again",
            code="usage.output_names",
        )
    return names


def score_names(model: KpcaModel) -> list[str]:
    """Return pc1, pc2, ..."""
    return [f"pc{place}" for place in range(1, model.n_components + 1)]


def column_names(model: KpcaModel) -> list[str]:
    """Return the columns of pre-images."""
    names = list(encoder_of(model).names)
    for one in model.constants:
        names.insert(one.place, one.name)
    return names


@dataclass(slots=True, eq=False)
class _Tally:
    """Sums over rows.

    Parameters
    ----------
    residuals : float
        Of |phi(x) - P phi(x)|^2.
    squares : float
        Of the squared distances of rows from their pre-images.
    by_column : dict of str to float
        Of squared errors of numbers, and of changed categories.
    not_converged : int
        Pre-images that did not settle.
    """

    residuals: float = 0.0
    squares: float = 0.0
    by_column: dict[str, float] = field(default_factory=dict)
    not_converged: int = 0

    def add(self, other: _Tally) -> None:
        """Take note of the next rows."""
        self.residuals += other.residuals
        self.squares += other.squares
        self.not_converged += other.not_converged
        for name, error in other.by_column.items():
            self.by_column[name] = self.by_column.get(name, 0.0) + error


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Transformation(RowWork[_Tally]):
    """Scores or pre-images of the rows of a file, and what is told of them."""

    model: KpcaModel
    reconstruct: bool
    residual: bool

    def found(self, points: Points | None, engine: Engine) -> Found[_Tally]:
        """Return the scores, or the pre-images.

        Raises
        ------
        UndecidedError
            If a number is too large for a float.
        """
        if points is None:
            points = _no_points(self.model)
        # Whatever overflows shows in the columns.
        with np.errstate(over="ignore", invalid="ignore"):
            columns, numbers, tally = self._computed(points, engine)
        if not all(np.isfinite(one).all() for one in numbers):
            raise UndecidedError(
                f"{self.shown} gives numbers that are too large for these rows",
                hint="look at the rows with `kerntest inspect`; or train the model again",
                code="undecided.overflow",
            )
        return Found(columns, len(points), tally)

    def _computed(self, points: Points, engine: Engine) -> tuple[dict[str, Any], list[Array], _Tally]:
        """Return the columns to write, all numbers that must be finite, and the sums to tell."""
        tally = _Tally()
        if self.residual:
            scores, residuals = self.model.residuals(points, engine)
            tally.residuals = float(residuals.sum())
        else:
            scores, residuals = self.model.scores(points, engine), np.empty(0)
        numbers = [scores, residuals]
        if self.reconstruct and np.isfinite(scores).all():
            images = self.model.preimages(scores, engine, points)
            columns = self._reconstructed(points, images, numbers, tally)
        else:
            columns = dict(zip(score_names(self.model), map(pa.array, scores.T), strict=True))
        if self.residual:
            columns[RESIDUAL] = pa.array(residuals)
        return columns, numbers, tally

    def _reconstructed(self, points: Points, found: PreImages, numbers: list[Array], tally: _Tally) -> dict[str, Any]:
        """Return the pre-images as columns, with their errors."""
        errors = distances(points, found.points)
        numbers += [found.points.numeric, errors]
        if not np.isfinite(found.points.numeric).all():
            return {}
        tally.squares = float(errors @ errors)
        tally.not_converged = int((~found.converged).sum())
        images, given = in_units(self.model, found.points), in_units(self.model, points)
        kinds = {spec.name: spec.kind for spec in encoder_of(self.model).columns}
        columns = {}
        for name, values in images.items():
            kind = kinds.get(name, "number")
            columns[name] = _arrow(values, kind)
            if kind in {"boolean", "text"}:
                tally.by_column[name] = float(np.count_nonzero(values != given[name]))
            else:
                tally.by_column[name] = float(np.sum((values - given[name]) ** 2))
        return columns | {ERROR: pa.array(errors)}

    def nothing(self) -> _Tally:
        """Return the tally of no rows."""
        return _Tally()

    def report(self, applied: Applied[_Tally], reader: BlockReader, output: Any, started: float) -> TransformReport:
        """Return what came of it."""
        warnings, tally = list(self.warnings(reader, applied)), applied.tally
        if tally.not_converged:
            warnings.append(
                f"{counted(tally.not_converged, 'pre-image')} did not settle: the best row met is written for each of them"
            )
        named = output is not None and not hasattr(output, "write")
        done = applied.done
        return TransformReport(
            schema="kerntest.transform/1",
            command="transform",
            model=self.shown,
            kind=KpcaModel.KIND,
            data=reader.name,
            rows=applied.rows,
            transformed=done,
            incomplete=applied.rows - done,
            components=self.model.n_components,
            residual=tally.residuals / done if self.residual and done else None,
            reconstructed=self.reconstruct,
            reconstruction_error=float(np.sqrt(tally.squares / done)) if self.reconstruct and done else None,
            by_column=self._by_column(tally, done) if done else (),
            not_converged=tally.not_converged,
            output=os.fspath(output) if named else None,
            columns=applied.columns,
            columns_ignored=self.ignored(reader),
            unknown=applied.strangers.records(),
            warnings=tuple(warnings),
            version=kerntest.__version__,
            seconds=time.perf_counter() - started,
        )

    def _by_column(self, tally: _Tally, done: int) -> tuple[ColumnError, ...]:
        categories = set(encoder_of(self.model).category_names)
        return tuple(
            ColumnError(name, None, total / done)
            if name in categories
            else ColumnError(name, float(np.sqrt(total / done)), None)
            for name, total in tally.by_column.items()
        )


def _no_points(model: KpcaModel) -> Points:
    from kerntest.kernels.base import Points  # noqa: PLC0415 - for this alone

    encoder = encoder_of(model)
    return Points(np.empty((0, len(encoder.numeric))), np.empty((0, len(encoder.categories)), dtype=np.int64))


def _arrow(values: NDArray[Any], kind: str) -> Any:
    """Return a column as it stood in the data: numbers, truth values, texts, points in time."""
    if kind == "date":
        return pa.array(np.round(values * MICROSECONDS_A_DAY).astype(np.int64), pa.timestamp("us"))
    if kind == "boolean":
        return pa.array([None if value is None else value == "true" for value in values.tolist()], pa.bool_())
    if kind == "text":
        return pa.array(values.tolist(), pa.string())
    return pa.array(values, pa.float64())
