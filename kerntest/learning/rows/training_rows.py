"""From a table, or from what Python callers hand over, to what a learner is trained on: rows, targets and weights."""

from __future__ import annotations

import math
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from kerntest.data.column_types import as_text, as_written, number_text
from kerntest.data.column_types import column_of as typed_column
from kerntest.data.columns import (
    EXACT_INTEGERS,
    apply_missing,
    check_usable,
    lost_rows,
    named_columns,
    split_patterns,
    told_of_left_out,
    units_differ,
)
from kerntest.data.formats.dialect import AS_USUAL, CsvOptions
from kerntest.data.missing import check_policy, filled, fillings
from kerntest.data.read import read_table
from kerntest.data.table import Column, Kind, Table
from kerntest.data.written_values import is_number
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, UsageError, either, listed, option, suggest
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Kernel, Points
from kerntest.kernels.elementary import Hamming, by_covariance
from kerntest.kernels.text import parse_kernel
from kerntest.learning.rows.encoding import TRAINING_PART, Encoder, level_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.missing import MissingPolicy
    from kerntest.kernels.base import Array, Columns, Metric
    from kerntest.learning.learner import LearnerOptions

_RowsT = TypeVar("_RowsT", bound="Labelled | TrainingRows")


# More classes than this are no classes.
MOST_CLASSES = 500
# Targets whose coefficients and scales are still numbers, with every lambda; weights whose products are.
LARGEST_TARGET = 1e250
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-75, 1e75


@dataclass(frozen=True)
class TrainingOptions:
    """Which columns and rows to learn from."""

    columns: Patterns = None
    exclude: Patterns = None
    categorical: str | Sequence[str] = ()
    missing: MissingPolicy = "error"
    csv: CsvOptions = AS_USUAL
    cluster: str | None = None
    # Whether categories take no part: whatever is missing there.
    numbers: bool = False

    def read(self, data: Any, name: str = "train") -> Table:
        """Return a table as it is; `name` is what data in memory are called."""
        named = isinstance(data, (str, Table)) or hasattr(data, "__fspath__")
        return read_table(data, name=None if named else name, categorical=self.categorical, **self.csv.words())

    def apart(self, targets: Sequence[str], beside: Sequence[str] = ()) -> list[str]:
        """Return the columns that are not learned from."""
        return [*targets, *beside, *([] if self.cluster is None else [self.cluster])]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows without missing values: the columns to learn from, their targets, and what else goes along.

    `read` is the table as it was read, `beside` are further columns that are not learned from, such as weights.
    `clusters`, shape (n,), are equal for rows that stay together, by the column `cluster` and otherwise. `gaps` are the
    columns to learn from in which a value may be missing, which is information then.
    """

    read: Table
    features: Table
    targets: tuple[Column, ...]
    warnings: tuple[str, ...]
    beside: tuple[Column, ...] = ()
    cluster: Column | None = None
    clusters: NDArray[np.intp] | None = None
    gaps: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.features.n_rows

    @property
    def shown(self) -> Table:
        """The columns to learn from, gaps that are information filled."""
        return filled(self.features, fillings([self.features], self.gaps))

    @property
    def target(self) -> Column | None:
        """The first target, where there is one."""
        return self.targets[0] if self.targets else None

    def take(self, rows: NDArray[np.intp]) -> Labelled:
        """Return some of the rows."""
        return _some(self, rows, "features", "targets", "beside", "cluster", "clusters")


def _some(record: _RowsT, rows: NDArray[np.intp], *names: str) -> _RowsT:
    """Return a record with some rows of these fields: arrays, what has `take`, tuples of it; None and nothing stay."""

    def taken(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(taken, value))
        return value[rows] if isinstance(value, np.ndarray) else value.take(rows)

    there = {name: value for name in names if (value := getattr(record, name)) is not None}
    empty = [name for name, value in there.items() if isinstance(value, np.ndarray) and not len(value)]
    return replace(record, **{name: taken(value) for name, value in there.items() if name not in empty})


def read_labelled(
    data: Any,
    targets: Sequence[str],
    options: TrainingOptions,
    *,
    name: str = "train",
    beside: Sequence[str] = (),
    check: Callable[[Column, str], object] | None = None,
) -> Labelled:
    """Return the rows of a table to learn from; `name` is what data in memory are called.

    `check` refuses targets that cannot be predicted, before anything else is asked of the rows.
    """
    table = options.read(data, name)
    if options.cluster in (*targets, *beside):
        told = f"column {options.cluster!r} cannot be target or weight and {option('cluster')} too"
        raise UsageError(told, hint="name another one", code="usage.cluster", where={"column": str(options.cluster)})
    apart = table.select(options.apart(targets, beside)).names
    if apart and len(apart) == len(table.names):
        only = f"{listed(list(map(repr, apart)))} {'is' if len(apart) == 1 else 'are'} all that {table.name} has"
        told, hint = f"{only}: there is no column to learn from", "hand over a table with others beside"
        raise DataError(told, hint=hint, code="data.no_columns", where={"file": table.name})
    for target in table.select(targets).columns:
        present = target.take(~target.missing)
        if check is not None and target.problem is None and len(present.values):
            check(present, table.name)
    names = named_columns(table, options.columns, [*split_patterns(options.exclude), *apart]).names
    return _whole_rows(table, names, targets, options, beside)


def read_like(data: Any, trained: Labelled, options: TrainingOptions) -> Labelled:
    """Return further rows for a model: those of its columns that are there, whatever else is in the table.

    The training rows tell how dates and percents are written. A table without columns of theirs is refused.
    """
    options = replace(options, categorical=(), cluster=None)
    table = options.read(data, "test")
    # Sizes such as 10 mm that were categories in training are so here, too.
    known = trained.read.columns
    sizes = [one.name for one in known if one.kind == "text" and one.name in table.names and table[one.name].written]
    if sizes and str(data) != "-":
        table = replace(options, categorical=sizes).read(data, "test")
    table = as_written(table, {column.name: column.written for column in known})
    targets = table.select([column.name for column in trained.targets]).names
    names = trained.features.names
    there = [name for name in names if name in table.names]
    if not there:
        told, hint = f"{table.name} has none of the columns of the training rows", f"they are {listed(list(names))}"
        raise DataError(told, hint=hint, code="data.columns_differ", where={"file": table.name})
    found = _whole_rows(table, there, targets, options)
    units = units_differ(trained.read.select(there), table.select(there))
    return replace(found, warnings=(*found.warnings, *units))


def _whole_rows(
    table: Table, names: Sequence[str], targets: Sequence[str], options: TrainingOptions, beside: Sequence[str] = ()
) -> Labelled:
    """Return the rows of a table that have no missing values; warn about the others."""
    apart = options.apart(targets, beside)
    chosen = check_usable(table.select([*names, *apart]))
    check_policy(options.missing)
    gaps = options.missing == "indicator"
    # What is predicted, and what goes along, must be there.
    idle = {one.name for one in chosen.columns if gaps or (options.numbers and one.is_category)}.difference(apart)
    counts = {column.name: column.n_missing for column in chosen.columns if column.name not in idle}
    kept, dropped = apply_missing(chosen, options.missing, apart, whole=counts)
    lost = lost_rows(table.name, dropped, table.n_rows, counts, apart if len(names) > 1 else chosen.names)
    warnings = (*chosen.warnings, *lost)
    features, predicted, others = (kept.select(some) for some in (names, targets, beside))
    cluster = None if options.cluster is None else kept[options.cluster]
    with_gaps = tuple(column.name for column in features.columns if gaps and column.n_missing)
    return Labelled(table, features, predicted.columns, warnings, others.columns, cluster, gaps=with_gaps)


@dataclass(frozen=True)
class ConstantColumn:
    """A column with one number in all training rows, kept for its place among the columns of pre-images."""

    name: str
    place: int
    value: float


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows as they are learned from: n points, or a matrix of n x n kernel values, and what they are to become.

    `targets`, shape (n, T), are numbers, `codes`, shape (n,), classes. Rows of one of the `clusters` are in one fold.
    """

    points: Points | Array
    encoder: Encoder | None = None
    chosen: ChosenKernel | None = None
    names: tuple[str, ...] = ()
    targets: Array = field(default_factory=lambda: np.empty((0, 0)))
    codes: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    classes: Classes | None = None
    weights: Array | None = None
    clusters: NDArray[np.intp] | None = None
    left_out: tuple[str, ...] = ()
    constants: tuple[ConstantColumn, ...] = ()
    warnings: tuple[str, ...] = ()
    # Of rows of two sides: `chosen` is that of the first.
    chosen_y: ChosenKernel | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def kernel(self) -> Kernel | None:
        """With every bandwidth chosen; None for a matrix of kernel values."""
        return None if self.chosen is None else self.chosen.kernel

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that take part."""
        return () if self.encoder is None else tuple(name for name in self.encoder.names if name not in self.left_out)

    def with_kernel(self, kernel: Kernel | None) -> TrainingRows:
        """Return the rows with another kernel in place of theirs, if they have one."""
        if self.chosen is None or kernel is None:
            return self
        return replace(self, chosen=replace(self.chosen, kernel=kernel))

    def take(self, rows: NDArray[np.intp]) -> TrainingRows:
        """Return some of the rows; of a matrix, with all of its columns."""
        return _some(self, rows, "points", "targets", "codes", "weights", "clusters")


@dataclass(frozen=True)
class ChosenKernel:
    """A kernel for the columns of a table, before (`free`) and after its bandwidths were chosen by a `rule` in words.

    It does not see the columns `unused`; `chooser` knows the medians of the rows.
    """

    kernel: Kernel
    free: Kernel
    unused: tuple[str, ...]
    rule: str
    chooser: BandwidthChooser = field(compare=False, repr=False)

    def at_multiples(self, factors: Sequence[float]) -> list[Kernel]:
        """Return for each factor the kernel with every open bandwidth at so many times its median."""
        median = self.chooser.median
        return [self.free.resolve(lambda *asked, factor=factor: factor * median(*asked)) for factor in factors]


# One text is the kernel of many fits.
_parsed = lru_cache(maxsize=64)(parse_kernel)


def choose_kernel(
    options: LearnerOptions, encoder: Encoder, points: Points, left_out: Mapping[str, str]
) -> ChosenKernel:
    """Return a kernel for some rows, every bandwidth that it leaves open the median of their distances, or a number.

    A plain "gaussian" where there are categories only becomes the hamming kernel. `left_out` says why columns of the
    table are not among those of the encoder.
    """
    kernel, bandwidth = options.kernel, options.bandwidth
    if isinstance(kernel, str):
        plain = kernel.strip().lower() == "gaussian"
        kernel = Hamming() if plain and not encoder.numeric else _parsed(kernel)
    try:
        bound, unused = encoder.bound(kernel)
    except UsageError as error:
        wanted = str(error.where.get("value", ""))
        reason = next((left_out[name] for name in left_out if name == wanted or fnmatchcase(name, wanted)), None)
        if error.code != "usage.unknown_column" or reason is None:
            raise
        told, hint = f"the kernel sees no {wanted!r}: {reason}", "leave the column out of the kernel"
        raise UsageError(told, hint=hint, code=error.code, where=error.where) from error
    rule = "median heuristic" if isinstance(bandwidth, str) else f"as given: {bandwidth:g}"
    if not bound.free:
        if not isinstance(bandwidth, str):
            told = f"the kernel '{kernel}' leaves no bandwidth open: {option('bandwidth')} has nothing to set"
            raise UsageError(told, hint="leave out one of the two", code="usage.bandwidth_twice")
        rule = "in the kernel"
    chooser = BandwidthChooser(points, options.seed)
    bound = bound.whitened(chooser.moments)

    def chosen(metric: Metric, columns: Columns | None) -> float:
        # Beside numbers, a bandwidth that is given is theirs.
        by_median = isinstance(bandwidth, str) or (encoder.numeric and metric == "mismatches")
        return chooser.median(metric, columns) if by_median else float(bandwidth)

    return ChosenKernel(bound.resolve(chosen), bound, unused, rule, chooser)


def check_kernel(kernel: Kernel | str) -> None:
    """Refuse what is neither a kernel nor text."""
    if not isinstance(kernel, (str, Kernel)):
        hint = "such as kernel='gaussian(1.5)'; `kerntest kernels` lists them"
        raise UsageError(f"a kernel is a text or a Kernel, not {kernel!r}", hint=hint, code="usage.kernel")


def check_bandwidth(bandwidth: object, words: tuple[str, ...], advice: str) -> None:
    """Refuse what is no bandwidth, none of the words for one either; `advice` says what else there is."""
    if isinstance(bandwidth, Real) and not isinstance(bandwidth, bool) and 0 < float(bandwidth) < math.inf:
        return
    message = f"a bandwidth must be positive and finite, not {bandwidth}"
    hint = "bandwidths are in the units of the scaled columns: 1 is one standard deviation"
    if isinstance(bandwidth, str):
        message, meant = f"{bandwidth!r} is no bandwidth of a learner", suggest(bandwidth, words)
        others = "; ".join(filter(None, (f"use {', '.join(words)} or a number", advice)))
        hint = f"did you mean '{meant}'?" if meant else others
    elif isinstance(bandwidth, (tuple, list)):
        message, hint = f"a learner has one bandwidth, not {listed([f'{one}' for one in bandwidth])}", advice
    raise UsageError(message, hint=hint, code="usage.bandwidth")


def encoded_rows(labelled: Labelled, options: LearnerOptions) -> TrainingRows:
    """Return the rows of a table with their kernel: its open bandwidths are medians, unless one is given."""
    encoder, points, reasons = Encoder.fit(labelled.features, options.scale, labelled.gaps)
    chosen = choose_kernel(options, encoder, points, reasons)
    if by_covariance(chosen.kernel):
        encoder = replace(encoder, moments=tuple(map(tuple, chosen.chooser.moments(None).tolist())))
    left_out, warnings = (
        (*reasons, *chosen.unused),
        (*told_of_left_out(reasons), *encoder.told_of_scales(labelled.features, points)),
    )
    return TrainingRows(points, encoder, chosen, clusters=labelled.clusters, left_out=left_out, warnings=warnings)


def rows_like(tested: Labelled, rows: TrainingRows, unknown: Literal["error", "ignore"] = "error") -> TrainingRows:
    """Return further rows of a table as the training rows are; categories that none of these has are told, or refused."""
    name = tested.read.name
    points, met = cast("Encoder", rows.encoder).transform(tested.features, name=TRAINING_PART, unknown=unknown)
    warnings = (*tested.warnings, *(one.told(f"test rows of {name}", TRAINING_PART) for one in met))
    like = TrainingRows(points, rows.encoder, rows.chosen, rows.names, classes=rows.classes, warnings=warnings)
    if rows.classes is not None:
        return replace(like, codes=rows.classes.codes(tested.targets[0], name))
    if tested.targets:
        return replace(like, targets=np.stack([numbers_of(column, name) for column in tested.targets], axis=1))
    return like


# Targets and weights.


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a target of this kind, sorted: numbers by value, texts by their characters."""

    names: tuple[str, ...]
    kind: Kind

    def flaw(self) -> str | None:
        """Return what is wrong with them, if a stranger wrote them."""
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            return "names must be two classes or more, all different"
        if self.kind == "number" and not all(
            is_number(name) and number_text(float(name)) == name for name in self.names
        ):
            return "names must be numbers in their shortest form"
        if self.kind == "boolean" and self.names != ("false", "true"):
            return "names must be 'false' and 'true'"
        return None

    @classmethod
    def of(cls, target: Column, table: str) -> Classes:
        """Return the classes of a column: two or more, at most 500."""
        present = np.unique(target.values).tolist()
        if len(present) > MOST_CLASSES:
            raise hardly_classes(target, len(present), table)
        if target.is_category:
            names = tuple(target.levels[code] for code in present)
        else:
            names = as_text(target).levels if target.kind == "date" else tuple(map(number_text, present))
        if len(names) < 2:
            what = f"is {names[0] if names else '(nothing)'} in every row: there is one class only"
            raise unfit(target, table, what, "a classifier needs rows of at least two classes", "data.one_class")
        return cls(names, target.kind)

    def codes(self, column: Column, table: str) -> NDArray[np.intp]:
        """Return the place of each row's class; DataError for one that is none of these."""
        if column.kind == self.kind == "number":
            numbers = np.array(list(map(float, self.names)))
            places = np.searchsorted(numbers, column.values)
            if (numbers.take(places, mode="clip") == column.values).all():
                return places
        codes, unknown = level_codes(column.name, self.names, as_text(column))
        if unknown.rows:
            what = f"has {unknown.shown}, which no row of {TRAINING_PART} has"
            hint = f"the classes are {listed(list(self.names))}"
            raise unfit(column, table, what, hint, "data.unknown_class", value=unknown.values[0])
        return np.asarray(codes, dtype=np.intp)

    def values(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Return classes as they stood in the data: numbers, truth values or texts."""
        if self.kind == "number":
            numbers = np.array([float(name) for name in self.names])
            whole = bool(np.all(numbers == np.floor(numbers)) and np.all(np.abs(numbers) < EXACT_INTEGERS))
            return (numbers.astype(np.int64) if whole else numbers)[codes]
        if self.kind == "boolean":
            return np.array([name == "true" for name in self.names])[codes]
        return np.array(self.names, dtype=object)[codes]


def hardly_classes(target: Column, count: int, table: str, most: int = MOST_CLASSES) -> DataError:
    """Return the error for a target with more different values than classes can be."""
    fewer = f"merge rare values, or name another {option('target')}: of so many rows there are at most"
    hint = f"{fewer} {most}" if target.is_category else f"{option('task', 'regress')} predicts numbers"
    what = f"has {count:,} different values, which are {'too many' if target.is_category else 'continuous, too many'} for classes"
    return unfit(target, table, what, hint, "data.too_many_classes")


def unfit(column: Column, table: str, what: str, hint: str, code: str, **where: str) -> DataError:
    """Return the error for a column that is not what it was named for."""
    where = {"file": table, "column": column.name, **where}
    return DataError(f"column {column.name!r} of {table} {what}", hint=hint, code=code, where=where)


def numbers_of(target: Column, table: str) -> Array:
    """Return a target of numbers; DataError if it holds text."""
    if target.is_category:
        hint, what = (
            either("`kerntest svm --task classify`", "train_svm") + " predicts classes",
            f"holds {target.kind}, not numbers to predict",
        )
        raise unfit(target, table, what, hint, "data.target_not_numeric")
    return np.asarray(target.values, dtype=np.float64)


def numbers_to_learn(columns: Sequence[Column], table: str) -> Array:
    """Return targets of numbers that vary, shape (n, T); refuse those of which differences and scales could leave the range."""
    targets = np.stack([numbers_of(column, table) for column in columns], axis=1)
    for column, numbers in zip(columns, targets.T, strict=True):
        if numbers.min() == numbers.max():
            what = "has one value in all rows: there is nothing to predict"
            raise unfit(column, table, what, f"name another {option('target')}", "data.constant_target")
        if (largest := float(np.abs(numbers).max())) > LARGEST_TARGET:
            what = f"has numbers too large to learn: one of size {largest:.3g}"
            raise unfit(column, table, what, "bring them to other units", "data.target_size")
    return targets


def told_of_dates(columns: Sequence[Column]) -> list[str]:
    """Return what targets of dates are predicted as."""
    told = "column {!r} holds dates: they are predicted in days since 1970-01-01"
    return [told.format(column.name) for column in columns if column.kind == "date"]


def checked_weights(column: Column, table: str, *, positive: bool = False) -> Array:
    """Return weights of rows: 0, or numbers whose products are neither too large nor too small; not all 0, or none."""
    weights = np.full(1, np.nan) if column.is_category else np.asarray(column.values, dtype=np.float64)
    odd = weights[(weights != 0) & ~((weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT))]
    if len(odd) or not weights.any():
        what = column.kind if column.is_category else f"{odd[0]:g}" if len(odd) else "zero everywhere"
        wanted = f"0, which leaves a row out, or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        hint = f"{option('weights')} names a column such as a number of repeats, or 1 / (variance of the row)"
        raise unfit(column, table, f"holds {what}, and weights are {wanted}", hint, "data.weights")
    if positive and not weights.all():
        told, hint = "weights of 0 leave rows out, which a precomputed matrix still has", "leave them out of the matrix"
        raise UsageError(told, hint=hint, code="usage.weights")
    return weights


def target_of(values: Any, n_rows: int, *, name: str = "y") -> Column:
    """Return what is handed over beside n rows to be predicted: a column without missing values."""
    column = column_of(values, name)
    return _paired(Table(name, (column,), len(column.values), "array"), n_rows)[0]


def _paired(table: Table, n_rows: int) -> tuple[Column, ...]:
    """Return the columns of a table that has a value for each of n rows."""
    if table.n_rows != n_rows:
        raise DataError(
            f"X has {n_rows:,} rows and {table.name} {table.n_rows:,} values",
            hint=f"value i of {table.name} belongs to row i of X",
            code="data.rows_do_not_pair",
        )
    return apply_missing(check_usable(table), "error", table.names)[0].columns


def column_of(values: Any, name: str) -> Column:
    """Return values as the column that they would be in a table; None, NaN, NaT and NA are missing."""
    pandas = type(values).__module__.startswith("pandas.")
    streamed = hasattr(values, "__arrow_c_stream__") and not pandas
    if not (pandas or streamed or hasattr(values, "__arrow_c_array__")) or hasattr(values, "columns"):
        try:
            array = np.asanyarray(values)
        except ValueError as error:
            raise _no_column(name, "holds sequences of different lengths") from error
        if array.ndim != 1:
            raise _no_column(name, f"has shape {array.shape}, not (n,)", "data.wrong_shape")
        if array.dtype.kind in "iuf":
            return Column(name, "number", np.ma.filled(array.astype(np.float64), np.nan))
        if isinstance(values, np.ndarray) or array.dtype.kind == "M":
            # Of the units of numpy's times, and of its texts, Arrow does not have all.
            values = array.astype({"M": "datetime64[us]", "T": object}.get(array.dtype.kind, array.dtype))
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array of numbers does not need

    try:
        found = pa.chunked_array(values) if streamed else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _no_column(name, "holds values of mixed or unknown types") from error
    return typed_column(name, found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found]), name)


def _no_column(name: str, trouble: str, code: str = "data.unusable_type") -> DataError:
    hint = "hand over one number, truth value, text or date for each row"
    return DataError(f"{name} {trouble}", hint=hint, code=code)


def given_targets(y: Any, n: int) -> list[Column]:
    """Return one target or several, shape (n,) or (n, T), or a frame, as columns."""
    if hasattr(y, "columns"):
        return [*_paired(read_table(y, name="y"), n)]
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        try:
            y = np.asarray(y)
        except ValueError as error:
            raise _no_column("y", "holds rows of different lengths", "data.wrong_shape") from error
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1]:
        return [target_of(column, n, name=f"y{place}") for place, column in enumerate(y.T, start=1)]
    return [target_of(y, n)]
