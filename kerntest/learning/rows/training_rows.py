"""From a table to what a learner is trained on: the columns to learn from, the targets, the rows as they are learned from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from kerntest.data.column_types import as_written
from kerntest.data.columns import apply_missing, check_usable, match_names, units_differ
from kerntest.data.formats.dialect import AS_USUAL, CsvOptions
from kerntest.data.read import read_table
from kerntest.data.table import Column, Table
from kerntest.errors import DataError, UsageError, counted, listed, suggest
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Kernel, Points
from kerntest.kernels.elementary import Hamming
from kerntest.kernels.text import bind, parse_kernel
from kerntest.learning.rows.encoding import Encoder
from kerntest.learning.rows.targets import Classes, numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.kernels.base import Array, Columns, Metric
    from kerntest.learning.learner import LearnerOptions

MissingPolicy: TypeAlias = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Which columns and rows to learn from."""

    columns: Patterns = None
    exclude: Patterns = None
    categorical: str | Sequence[str] = ()
    missing: MissingPolicy = "error"
    csv: CsvOptions = AS_USUAL
    cluster: str | None = None

    def read(self, data: Any, name: str = "train") -> Table:
        """Return a table as it is; `name` is what data in memory are called."""
        named = isinstance(data, (str, Table)) or hasattr(data, "__fspath__")
        return read_table(data, name=None if named else name, categorical=self.categorical, **self.csv.words())


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Rows without missing values: the columns to learn from, their targets, and what else goes along.

    `read` is the table as it was read, `beside` are further columns that are not learned from, such as weights.
    `clusters`, shape (n,), are equal for rows that stay together, by the column `cluster` and otherwise.
    """

    read: Table
    features: Table
    targets: tuple[Column, ...]
    warnings: tuple[str, ...]
    beside: tuple[Column, ...] = ()
    cluster: Column | None = None
    clusters: NDArray[np.intp] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.features.n_rows

    @property
    def target(self) -> Column | None:
        """The first target, where there is one."""
        return self.targets[0] if self.targets else None

    def take(self, rows: NDArray[np.intp]) -> Labelled:
        """Return some of the rows."""
        return replace(
            self,
            features=self.features.take(rows),
            targets=tuple(column.take(rows) for column in self.targets),
            beside=tuple(column.take(rows) for column in self.beside),
            cluster=None if self.cluster is None else self.cluster.take(rows),
            clusters=None if self.clusters is None else self.clusters[rows],
        )


def read_labelled(
    data: Any, targets: Sequence[str], options: TrainingOptions, *, name: str = "train", beside: Sequence[str] = ()
) -> Labelled:
    """Return the rows of a table to learn from; `name` is what data in memory are called."""
    table = options.read(data, name)
    if options.cluster is not None and options.cluster in (*targets, *beside):
        raise UsageError(
            f"column {options.cluster!r} cannot be target or weight and --cluster too",
            hint="name another one",
            code="usage.cluster",
            where={"column": options.cluster},
        )
    apart = table.select([*targets, *beside, *([] if options.cluster is None else [options.cluster])]).names
    taking_part = match_names(options.columns, table.names, table.name) if options.columns else table.names
    excluded = {*match_names(options.exclude, table.names, table.name), *apart}
    names = [column for column in taking_part if column not in excluded]
    if not names:
        raise UsageError(
            f"no column of {table.name} is left to learn from",
            hint="name more in --columns, and exclude fewer",
            code="usage.no_columns",
            where={"file": table.name},
        )
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
        raise DataError(
            f"{table.name} has none of the columns of the training rows",
            hint=f"they are {listed(list(names))}",
            code="data.columns_differ",
            where={"file": table.name},
        )
    return _whole_rows(table, there, targets, options, like=trained.read)


def _whole_rows(
    table: Table,
    names: Sequence[str],
    targets: Sequence[str],
    options: TrainingOptions,
    beside: Sequence[str] = (),
    *,
    like: Table | None = None,
) -> Labelled:
    """Return the rows of a table that have no missing values; warn about the others, and about units unlike those of another."""
    apart = [*targets, *beside, *([] if options.cluster is None else [options.cluster])]
    chosen = check_usable(table.select([*names, *apart]))
    kept, dropped = apply_missing(chosen, options.missing, apart)
    units = [] if like is None else units_differ(like.select(names), chosen.select(names))
    said = f"{table.name}: {counted(dropped, 'row')} of {table.n_rows:,} with missing values left out"
    return Labelled(
        table,
        kept.select(names),
        kept.select(targets).columns,
        (*chosen.warnings, *units, *([said] if dropped else [])),
        kept.select(beside).columns,
        None if options.cluster is None else kept[options.cluster],
    )


@dataclass(frozen=True, slots=True)
class ConstantColumn:
    """A column with one number in all training rows, kept for its place among the columns of pre-images."""

    name: str
    place: int
    value: float


@dataclass(frozen=True, slots=True, eq=False)
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
        points = self.points.take(rows) if isinstance(self.points, Points) else self.points[rows]
        return replace(
            self,
            points=points,
            targets=self.targets[rows] if len(self.targets) else self.targets,
            codes=self.codes[rows] if len(self.codes) else self.codes,
            weights=None if self.weights is None else self.weights[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
        )


@dataclass(frozen=True, slots=True)
class ChosenKernel:
    """A kernel for the columns of a table, before (`free`) and after its bandwidths were chosen by a `rule` in words.

    It does not see the columns `unused`; the chooser of the rows knows their medians by then.
    """

    kernel: Kernel
    free: Kernel
    unused: tuple[str, ...]
    rule: str
    chooser: BandwidthChooser | None = field(default=None, compare=False, repr=False)


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
        kernel = Hamming() if plain and not encoder.numeric_names else parse_kernel(kernel)
    try:
        bound, unused = bind(kernel, encoder.numeric_names, encoder.category_names)
    except UsageError as error:
        wanted = str(error.where.get("value", ""))
        reason = next((left_out[name] for name in left_out if name == wanted or fnmatchcase(name, wanted)), None)
        if error.code != "usage.unknown_column" or reason is None:
            raise
        raise UsageError(
            f"the kernel sees no {wanted!r}: {reason}",
            hint="leave the column out of the kernel",
            code=error.code,
            where=error.where,
        ) from error
    if not bound.free and not isinstance(bandwidth, str):
        raise UsageError(
            f"the kernel '{kernel}' leaves no bandwidth open: --bandwidth has nothing to set",
            hint="leave out one of the two",
            code="usage.bandwidth_twice",
        )
    if not bound.free:
        return ChosenKernel(bound, bound, unused, "in the kernel")
    chooser = BandwidthChooser(points, options.seed)
    if isinstance(bandwidth, str):
        return ChosenKernel(bound.resolve(chooser.median), bound, unused, "median heuristic", chooser)

    def rule(metric: Metric, columns: Columns | None) -> float:
        return chooser.median(metric, columns) if encoder.numeric_names and metric == "mismatches" else float(bandwidth)

    return ChosenKernel(bound.resolve(rule), bound, unused, f"as given: {bandwidth:g}")


def check_kernel(kernel: Kernel | str) -> None:
    """Refuse what is neither a kernel nor text."""
    if not isinstance(kernel, (str, Kernel)):
        raise UsageError(
            f"a kernel is a text or a Kernel, not {kernel!r}",
            hint="such as kernel='gaussian(1.5)'; `kerntest kernels` lists them",
            code="usage.kernel",
        )


def at_multiples(chosen: ChosenKernel, factors: Sequence[float], points: Points, seed: int) -> list[Kernel]:
    """Return for each factor the kernel with every open bandwidth at so many times its median."""
    median = (chosen.chooser or BandwidthChooser(points, seed)).median
    return [chosen.free.resolve(lambda *asked, factor=factor: factor * median(*asked)) for factor in factors]


def check_bandwidth(bandwidth: object, words: tuple[str, ...], advice: str) -> None:
    """Refuse what is no bandwidth, none of the words for one either; `advice` says what else there is."""
    number = isinstance(bandwidth, (int, float, np.number)) and not isinstance(bandwidth, bool)
    if number and 0 < cast("float", bandwidth) < math.inf:
        return
    message = f"a bandwidth must be positive and finite, not {bandwidth}"
    hint = "bandwidths are in the units of the scaled columns: 1 is one standard deviation"
    others = f"use {', '.join(words)} or a number"
    if isinstance(bandwidth, str) and bandwidth != "median":
        message, meant = f"{bandwidth!r} is no bandwidth of a learner", suggest(bandwidth, words)
        hint = f"did you mean '{meant}'?" if meant else f"{others}{advice and '; '}{advice}"
    elif isinstance(bandwidth, (tuple, list)):
        message = f"a learner has one bandwidth, not {listed([f'{one}' for one in bandwidth])}"
        hint = advice or others
    raise UsageError(message, hint=hint, code="usage.bandwidth")


def encoded_rows(labelled: Labelled, options: LearnerOptions) -> TrainingRows:
    """Return the rows of a table with their kernel: its open bandwidths are medians, unless one is given."""
    encoder, points, reasons = Encoder.fit(labelled.features, options.scale)
    chosen = choose_kernel(options, encoder, points, reasons)
    return TrainingRows(
        points,
        encoder,
        chosen,
        clusters=labelled.clusters,
        left_out=(*reasons, *chosen.unused),
        warnings=tuple(reasons.values()),
    )


def rows_like(tested: Labelled, rows: TrainingRows) -> TrainingRows:
    """Return further rows of a table as the training rows are."""
    if rows.encoder is None:
        message = "a table has an encoder"
        raise TypeError(message)
    points, _ = rows.encoder.transform(tested.features, name="the training part")
    like = TrainingRows(points, rows.encoder, rows.chosen, rows.names, classes=rows.classes, warnings=tested.warnings)
    name = tested.read.name
    if rows.classes is not None:
        return replace(like, codes=rows.classes.codes(tested.targets[0], name))
    if tested.targets:
        return replace(like, targets=np.stack([numbers_of(column, name) for column in tested.targets], axis=1))
    return like
