"""From a table to the rows that a learner is trained on, and to others like them."""

from __future__ import annotations

import math
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from kerntest.data.column_types import as_written
from kerntest.data.columns import check_usable, named_columns, split_patterns, told_of_left_out, units_differ
from kerntest.data.formats.dialect import AS_USUAL, CsvOptions
from kerntest.data.gaps import apply_missing, lost_rows, lost_to_each
from kerntest.data.missing import check_policy, filled, fillings
from kerntest.data.read import read_table
from kerntest.data.table import Column, Table
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, UsageError, listed, option, suggest
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Kernel, Points
from kerntest.kernels.elementary import Hamming, by_covariance
from kerntest.kernels.text import parse_kernel
from kerntest.learning.rows.encoding import TRAINING_PART, Encoder
from kerntest.learning.rows.targets import numbers_of
from kerntest.matrices.different import equal_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.missing import MissingPolicy
    from kerntest.kernels.base import Array, Columns, Metric
    from kerntest.learning.learner import LearnerOptions
    from kerntest.learning.rows.targets import Classes

_RowsT = TypeVar("_RowsT", bound="Labelled | TrainingRows")
# Rows are merged where different ones are fewer than this share.
MERGED = 0.9


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
    shown: Sequence[str] = (),
    check: Callable[[Column, str], object] | None = None,
) -> Labelled:
    """Return the rows of a table to learn from; `name` is what data in memory are called.

    Rows without a value in a column that is `shown` alone stay. `check` refuses targets that cannot be predicted, before anything else is asked of the rows.
    """
    table = options.read(data, name)
    if options.cluster in (*targets, *beside):
        told = f"column {options.cluster!r} cannot be target or weight and {option('cluster')} too"
        raise UsageError(told, hint="name another one", code="usage.cluster", where={"column": str(options.cluster)})
    apart = table.select(options.apart(targets, (*beside, *shown))).names
    if apart and len(apart) == len(table.names):
        only = f"{listed(list(map(repr, apart)))} {'is' if len(apart) == 1 else 'are'} all that {table.name} has"
        told, hint = f"{only}: there is no column to learn from", "hand over a table with others beside"
        raise DataError(told, hint=hint, code="data.no_columns", where={"file": table.name})
    for target in table.select(targets).columns:
        present = target.take(~target.missing)
        if check is not None and target.problem is None and len(present.values):
            check(present, table.name)
    names = named_columns(table, options.columns, [*split_patterns(options.exclude), *apart]).names
    return _whole_rows(table, names, targets, options, beside, shown=shown)


def read_like(data: Any, trained: Labelled, options: TrainingOptions) -> Labelled:
    """Return further rows for a model: those of its columns that are there, whatever else is in the table.

    The training rows tell how dates and percents are written. A table without columns of theirs is refused.
    """
    options = replace(options, categorical=())
    table = options.read(data, "test")
    options = replace(options, cluster=options.cluster if options.cluster in table.names else None)
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
    table: Table,
    names: Sequence[str],
    targets: Sequence[str],
    options: TrainingOptions,
    beside: Sequence[str] = (),
    *,
    shown: Sequence[str] = (),
) -> Labelled:
    """Return the rows of a table that have no missing values; warn about the others."""
    apart = options.apart(targets, beside)
    chosen = check_usable(table.select([*names, *apart, *shown]), {options.cluster or ""}.difference(names))
    check_policy(options.missing)
    gaps = options.missing == "indicator"
    # What is predicted, and what goes along, must be there.
    idle = {one.name for one in chosen.columns if gaps or (options.numbers and one.is_category)}.difference(apart)
    idle.update(shown)
    counts = {column.name: column.n_missing for column in chosen.columns if column.name not in idle}
    kept, dropped = apply_missing(chosen, options.missing, apart, whole=counts)
    alone = lost_to_each([column for column in chosen.columns if column.name in counts])
    lost = lost_rows(table.name, dropped, table.n_rows, alone, apart if len(names) > 1 else chosen.names)
    warnings = (*chosen.warnings, *lost)
    features, predicted, others = (kept.select(some) for some in (names, targets, (*beside, *shown)))
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

    def merged(self) -> tuple[TrainingRows, NDArray[np.intp] | None]:
        """Return the rows that differ, if only in what they are to become, and which of them each row is; None where most do.

        What counts each of them as often as it is there learns the same: a coefficient of a machine that m rows share is at
        most m times the cost.
        """
        points, labels = self.points, self.targets if self.classes is None else self.codes
        if not isinstance(points, Points):
            return self, None
        found = equal_rows([points.numeric, points.codes, labels.reshape(len(self), -1)], MERGED)
        return (self, None) if found is None else (self.take(found[0]), found[1])


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
    others = "; ".join(filter(None, (f"use {', '.join(words)} or a number", advice)))
    if isinstance(bandwidth, str):
        message, meant = f"{bandwidth!r} is no bandwidth of a learner", suggest(bandwidth, words)
        hint = f"did you mean '{meant}'?" if meant else others
    elif isinstance(bandwidth, (tuple, list)):
        message, hint = f"a learner has one bandwidth, not {listed([f'{one}' for one in bandwidth])}", others
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
    told: Any = {"classes": rows.classes, "clusters": tested.clusters, "warnings": warnings}
    like = TrainingRows(points, rows.encoder, rows.chosen, rows.names, **told)
    if rows.classes is not None:
        return replace(like, codes=rows.classes.codes(tested.targets[0], name))
    if tested.targets:
        return replace(like, targets=np.stack([numbers_of(column, name) for column in tested.targets], axis=1))
    return like
