"""From a table to what a learner is trained on: the columns to learn from, the targets, the rows as they are learned from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from kerntest.data.columns import match_names, units_differ
from kerntest.data.formats.dialect import AS_USUAL, CsvOptions
from kerntest.data.kinds import as_text, as_written, number_text
from kerntest.data.messages import counted, listed
from kerntest.data.read import read_table
from kerntest.data.rows import EXACT_INTEGERS, apply_missing, check_usable
from kerntest.data.table import Column, Kind, Table, unknown_column
from kerntest.errors import DataError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.encoding import Encoder
from kerntest.learning.kernel_choice import choose_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.encoding import Scale
    from kerntest.learning.kernel_choice import ChosenKernel

MissingPolicy: TypeAlias = Literal["error", "drop"]
# More classes than this are no classes.
MOST_CLASSES = 500


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
    apart = [*targets, *beside, *([] if options.cluster is None else [options.cluster])]
    _check_names(apart, table)
    taking_part = match_names(options.columns, table.names, table.name) if options.columns else list(table.names)
    excluded = set(match_names(options.exclude, table.names, table.name))
    names = [column for column in taking_part if column not in excluded and column not in apart]
    if not names:
        raise UsageError(
            f"no column of {table.name} is left to learn from",
            hint="name more in --columns, and exclude fewer",
            code="usage.no_columns",
            where={"file": table.name},
        )
    chosen, kept, warnings = _whole_rows(table, names, apart, options)
    return Labelled(
        table,
        kept.select(names),
        tuple(kept[target] for target in targets),
        (*chosen.warnings, *warnings),
        tuple(kept[column] for column in beside),
        None if options.cluster is None else kept[options.cluster],
    )


def _whole_rows(
    table: Table, names: Sequence[str], apart: Sequence[str], options: TrainingOptions
) -> tuple[Table, Table, list[str]]:
    """Return columns of a table, those of its rows that have no missing values, and a warning about the others."""
    chosen = check_usable(table.select([*names, *apart]))
    kept, dropped = apply_missing(chosen, options.missing, apart)
    said = f"{table.name}: {counted(dropped, 'row')} of {table.n_rows:,} with missing values left out"
    return chosen, kept, [said] if dropped else []


def _check_names(names: Sequence[str], table: Table) -> None:
    """Refuse columns that are not there."""
    for name in names:
        if name not in table.names:
            raise unknown_column(name, table.name, table.names)


def read_like(data: Any, trained: Labelled, options: TrainingOptions) -> Labelled:
    """Return further rows for a model: those of its columns that are there, whatever else is in the table.

    The training rows tell how dates and percents are written. A table without columns of theirs is refused.
    """
    table = replace(options, categorical=()).read(data, "test")
    # Sizes such as 10 mm that were categories in training are so here, too.
    known = trained.read.columns
    sizes = [one.name for one in known if one.kind == "text" and one.name in table.names and table[one.name].written]
    if sizes and str(data) != "-":
        table = replace(options, categorical=sizes).read(data, "test")
    table = as_written(table, {column.name: column.written for column in known})
    targets = [column.name for column in trained.targets]
    _check_names(targets, table)
    names = trained.features.names
    there = [name for name in names if name in table.names]
    if not there:
        raise DataError(
            f"{table.name} has none of the columns of the training rows",
            hint=f"they are {listed(list(names))}",
            code="data.columns_differ",
            where={"file": table.name},
        )
    chosen, kept, warnings = _whole_rows(table, there, targets, options)
    units = units_differ(trained.read.select(there), chosen.select(there))
    return Labelled(
        table,
        kept.select(there),
        tuple(kept[target] for target in targets),
        (*chosen.warnings, *units, *warnings),
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


def encoded_rows(
    labelled: Labelled, kernel: Kernel | str, bandwidth: str | float, *, scale: Scale, seed: int
) -> TrainingRows:
    """Return the rows of a table with their kernel: its open bandwidths are medians, unless `bandwidth` is a number."""
    fitted = Encoder.fit(labelled.features, scale)
    reasons = dict(zip(fitted.left_out, fitted.warnings, strict=True))
    width = "median" if isinstance(bandwidth, str) else bandwidth
    chosen = choose_kernel(kernel, width, fitted.encoder, fitted.points, seed, left_out=reasons)
    return TrainingRows(
        fitted.points,
        fitted.encoder,
        chosen,
        clusters=labelled.clusters,
        left_out=(*fitted.left_out, *chosen.unused),
        warnings=tuple(fitted.warnings),
    )


def rows_like(tested: Labelled, rows: TrainingRows) -> TrainingRows:
    """Return further rows of a table as the training rows are."""
    if rows.encoder is None:
        message = "a table has an encoder"
        raise TypeError(message)
    found = rows.encoder.transform(tested.features, name="the training part")
    name = tested.read.name
    like = TrainingRows(
        found.points,
        rows.encoder,
        rows.chosen,
        rows.names,
        classes=rows.classes,
        warnings=(*tested.warnings, *found.warnings),
    )
    if rows.classes is not None:
        return replace(like, codes=rows.classes.codes(tested.targets[0], name))
    if tested.targets:
        return replace(like, targets=np.stack([numbers_of(column, name) for column in tested.targets], axis=1))
    return like


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes of a target of this kind, sorted: numbers by value, texts by their characters."""

    names: tuple[str, ...]
    kind: Kind

    def flaw(self) -> str | None:
        """Return what is wrong with them, if a stranger wrote them."""
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            return "names must be two classes or more, all different"
        if self.kind == "number" and not all(map(_is_number, self.names)):
            return "names must be numbers in their shortest form"
        if self.kind == "boolean" and self.names != ("false", "true"):
            return "names must be 'false' and 'true'"
        return None

    @classmethod
    def of(cls, target: Column, table: str) -> Classes:
        """Return the classes of a column: two or more, at most 500."""
        if target.is_category:
            names = tuple(target.levels[code] for code in np.unique(target.values))
        else:
            present = np.unique(target.values)
            if len(present) > MOST_CLASSES:
                raise hardly_classes(target, len(present), table)
            names = as_text(target).levels if target.kind == "date" else tuple(number_text(v) for v in present.tolist())
        if len(names) > MOST_CLASSES:
            raise hardly_classes(target, len(names), table)
        if len(names) < 2:
            raise DataError(
                f"every row of {table} has {target.name} = {names[0] if names else '(nothing)'}: there is one class only",
                hint="a classifier needs rows of at least two classes",
                code="data.one_class",
                where={"file": table, "column": target.name},
            )
        return cls(names, target.kind)

    def codes(self, column: Column, table: str) -> NDArray[np.intp]:
        """Return the place of each row's class; DataError for one that is none of these."""
        as_names = column if column.is_category else as_text(column)
        place = {name: k for k, name in enumerate(self.names)}
        unknown = [level for level in as_names.levels if level not in place]
        if unknown:
            used = {as_names.levels[code] for code in np.unique(as_names.values)}
            unknown = [level for level in unknown if level in used]
        if unknown:
            raise DataError(
                f"{table}: {column.name} has {listed([repr(level) for level in unknown])}, which no row of the "
                "training part has",
                hint=f"the classes are {listed(list(self.names))}",
                code="data.unknown_class",
                where={"file": table, "column": column.name, "value": unknown[0]},
            )
        codes = np.array([place.get(level, -1) for level in as_names.levels], dtype=np.intp)
        return np.asarray(codes[as_names.values], dtype=np.intp)

    def values(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Return classes as they stood in the data: numbers, truth values or texts."""
        if self.kind == "number":
            numbers = np.array([float(name) for name in self.names])
            whole = bool(np.all(numbers == np.floor(numbers)) and np.all(np.abs(numbers) < EXACT_INTEGERS))
            return (numbers.astype(np.int64) if whole else numbers)[codes]
        if self.kind == "boolean":
            return np.array([name == "true" for name in self.names])[codes]
        return np.array(self.names, dtype=object)[codes]


def _is_number(text: str) -> bool:
    """Say whether a text is what we write for a finite number."""
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and number_text(number) == text


def hardly_classes(target: Column, count: int, table: str) -> DataError:
    """Return the error for a target with more different values than classes can be."""
    fewer = (
        f"merge rare values, or name another --target: classes have several rows, and there are at most {MOST_CLASSES}"
    )
    return DataError(
        f"column {target.name!r} of {table} has {count:,} different values, which are too many for classes",
        hint=fewer if target.is_category else "--task regress predicts numbers",
        code="data.too_many_classes",
        where={"file": table, "column": target.name},
    )


def numbers_of(target: Column, table: str) -> Array:
    """Return a target of numbers; DataError if it holds text."""
    if target.is_category:
        raise DataError(
            f"column {target.name!r} of {table} holds {target.kind}, not numbers to predict",
            hint="`kerntest svm --task classify` predicts classes",
            code="data.target_not_numeric",
            where={"file": table, "column": target.name},
        )
    return np.asarray(target.values, dtype=np.float64)


def varied_numbers_of(target: Column, table: str) -> Array:
    """Return a target of numbers to learn from, which are not all the same."""
    numbers = numbers_of(target, table)
    if numbers.min() == numbers.max():
        raise DataError(
            f"column {target.name!r} of {table} has one value in all rows: there is nothing to predict",
            hint="name another --target",
            code="data.constant_target",
            where={"file": table, "column": target.name},
        )
    return numbers
