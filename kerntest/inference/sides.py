"""What is tested against what: two groups of columns over the same rows, or pooled rows against the label of their table.

Tables are read, missing values left out, columns scaled; what kernels then see of a side is a `Variable`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.data.columns import (
    Arranged,
    Patterns,
    arrange,
    check_usable,
    find,
    is_all,
    match_names,
    match_tables,
    split_patterns,
    standardize,
)
from kerntest.data.facts import complete_rows, lone_values
from kerntest.data.formats.dialect import AS_USUAL, CsvOptions
from kerntest.data.gaps import apply_missing, lost_rows, lost_to_each, without_value
from kerntest.data.missing import MissingPolicy, check_policy, filled, fillings
from kerntest.data.read import read_table
from kerntest.data.table import Table, comment_hint, unknown_column
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, UsageError, counted, either, listed, one_of, option, positive, whole_number
from kerntest.kernels.base import Array, Columns, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.inference.relabelling.designs import Design


Estimator: TypeAlias = Literal["unbiased", "biased"]
NullMethod: TypeAlias = Literal["permutation", "moments", "gamma", "spectral", "pearson"]
Method: TypeAlias = Literal["auto", "exact", "features"]
Judge: TypeAlias = Literal["together", "smallest"]
Resampling: TypeAlias = Literal["blocks", "shifts", "random"]
Scale: TypeAlias = Literal["standardize", "none"]
Labels: TypeAlias = NDArray[np.uint8]

# The unbiased estimator of HSIC divides by n - 3.
FEWEST_ROWS = 4
# Tells the stream of random orders from other streams of the same seed.
ORDER_STREAM = 0


@dataclass(frozen=True)
class Options:
    """The options of a test that are not about reading tables, checked."""

    estimator: Estimator
    null: NullMethod
    permutations: int
    alpha: float
    scale: Scale
    seed: int
    resampling: Resampling = "shifts"
    judge: Judge = "together"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        one_of("estimator", self.estimator, ("unbiased", "biased"))
        one_of("null", self.null, ("permutation", "moments", "gamma", "spectral", "pearson"))
        one_of("judge", self.judge, ("together", "smallest"))
        one_of("scale", self.scale, ("standardize", "none"))
        positive("alpha", self.alpha, below=1.0)
        whole_number("permutations", self.permutations, at_least=1)
        whole_number("seed", self.seed, at_least=0)

    @property
    def hollow(self) -> bool:
        """Whether matrices are U-centred, with a zero diagonal."""
        return self.estimator == "unbiased"


@dataclass(frozen=True)
class Reading:
    """Which columns and rows of the tables to use; each as in `mmd_test` and `hsic_test`."""

    columns: Patterns = None
    exclude: Patterns = None
    common: bool = False
    categorical: str | Sequence[str] = ()
    missing: MissingPolicy = "error"
    csv: CsvOptions = AS_USUAL
    x_columns: Patterns = None
    y_columns: Patterns = None
    cluster: str | None = None
    paired: str | None = None
    strata: str | None = None

    @property
    def design(self) -> dict[str, str | None]:
        """The columns of a design, by the options that name them."""
        return {"cluster": self.cluster, "paired": self.paired, "strata": self.strata}

    @property
    def apart(self) -> list[str]:
        """The columns that say what belongs together, and are not compared."""
        return [name for name in self.design.values() if name is not None]


class Groups(NamedTuple):
    """The tables as they were read, one table for each side with its columns, and what to warn of."""

    read: tuple[Table, ...]
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """The names of the tables."""
        return " and ".join(dict.fromkeys(one.name for one in self.read))

    def with_gaps(self, missing: MissingPolicy) -> Self:
        """Return columns of their own for gaps where these are information; of two samples filled by both."""
        check_policy(missing)
        if missing != "indicator":
            return self
        shared = len({one.names for one in self.tables}) == 1
        by = [fillings(self.tables if shared else [one]) for one in self.tables]
        return self._replace(tables=tuple(map(filled, self.tables, by)))

    def sides(self) -> list[tuple[Table, Table]]:
        """Each side with the table that it is of."""
        return [(one, self.read[min(place, len(self.read) - 1)]) for place, one in enumerate(self.tables)]


@dataclass(frozen=True, eq=False)
class Variable:
    """n rows of some columns as kernels see them; numbers in their own units are points.numeric * spread + centre."""

    points: Points
    centre: Array
    spread: Array
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, arranged: Arranged, scale: Scale, **more: Any) -> Self:
        """Return arranged columns, scaled."""
        numeric = arranged.numeric
        centre, spread = np.zeros(numeric.shape[1]), np.ones(numeric.shape[1])
        if scale == "standardize":
            numeric, centre, spread = standardize(numeric)
        points = Points(numeric, arranged.codes)
        names = arranged.numeric_names, arranged.category_names
        return cls(points, centre, spread, *names, arranged.levels, **more)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, numeric ones first."""
        return self.numeric_names + self.category_names

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the rows, scaled as before."""
        return replace(self, points=self.points.take(rows))

    def with_columns(self, wanted: set[int]) -> Self:
        """Return the columns at the wanted positions, numeric ones counted first."""
        p = len(self.numeric_names)
        numeric = [place for place in range(p) if place in wanted]
        categories = [place for place in range(len(self.category_names)) if p + place in wanted]
        chosen = self.points.select(Columns(tuple(numeric), tuple(categories)))
        return replace(
            self,
            points=Points(chosen.numeric, chosen.codes),
            centre=self.centre[numeric],
            spread=self.spread[numeric],
            numeric_names=tuple(self.numeric_names[place] for place in numeric),
            category_names=tuple(self.category_names[place] for place in categories),
            levels=tuple(self.levels[place] for place in categories),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(Variable):
    """The pooled rows of two tables in canonical order: 1 is the label of X; `origin` counts rows of their own table."""

    labels: Labels
    origin: NDArray[np.intp]
    design: Design | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of rows of X and of Y."""
        n_x = int(self.labels.sum())
        return n_x, len(self.labels) - n_x


class Paired(NamedTuple):
    """Variables over the same n rows, the rows of the tables that these are, from 0, and what each was made from."""

    variables: tuple[Variable, ...]
    origin: NDArray[np.intp]
    arranged: tuple[Arranged, ...]
    warnings: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.origin)


# Two samples


def read_two(x: Any, y: Any, reading: Reading) -> Groups:
    """Return both tables with their shared columns; x and y as in `mmd_test`."""
    read = (read_one(x, reading, "x"), read_one(y, reading, "y"))
    first, second, warnings = matched(*read, reading)
    # Two inputs of one name have the same to tell.
    told = tuple(dict.fromkeys((*first.warnings, *second.warnings, *warnings)))
    return Groups(read, (first, second), told)


def matched(x: Table, y: Table, reading: Reading) -> tuple[Table, Table, tuple[str, ...]]:
    """Return two tables with their shared columns, and what was left out."""
    wanted: Any = {name: getattr(reading, name) for name in ("columns", "common", "categorical")}
    return match_tables(x, y, exclude=[*split_patterns(reading.exclude), *reading.apart], **wanted)


def names_apart(tables: Sequence[Table]) -> tuple[str, str]:
    """Return the names of X and Y; of one name, with the letter by which they can be told apart."""
    x, y = (table.name for table in tables)
    return (f"{x} (X)", f"{y} (Y)") if x == y else (x, y)


def without_missing(tables: Sequence[Table], policy: MissingPolicy) -> tuple[tuple[Table, Table], list[str]]:
    """Return both tables without missing values, and a warning for each that lost rows."""
    used, warnings = [], []
    for table in tables:
        kept, dropped = apply_missing(table, policy, among=tables)
        used.append(kept)
        warnings += lost_rows(table.name, dropped, table.n_rows, *_missing_in([table]))
    return (used[0], used[1]), warnings


def _missing_in(tables: Sequence[Table]) -> tuple[dict[str, int], list[str]]:
    """Return how many rows each column alone makes incomplete, and the columns of which their table has no other."""
    columns = [column for table in tables for column in table.columns]
    # Tables that were read apart may not have the same rows.
    same = len({len(column.values) for column in columns}) == 1
    counts = lost_to_each(columns) if same else {column.name: column.n_missing for column in columns}
    return counts, [table.names[0] for table in tables if len(table.names) == 1]


def lay_out(pooled: Arranged, scale: Scale, design: Design | None = None) -> Sample:
    """Return the pooled rows scaled, in ascending order of their values, columns compared in the order of their names.

    What is drawn at random afterwards depends on the rows as a set, so that the test is exact for every single seed, and
    not only on average over seeds, where files are sorted. Rows that are equal in every column are told apart by their
    label; kernels cannot tell them apart at all.
    """
    labels = (np.arange(pooled.n_x + pooled.n_y) < pooled.n_x).astype(np.uint8)
    names = pooled.numeric_names + pooled.category_names
    columns = dict(zip(names, [*pooled.numeric.T, *pooled.codes.T], strict=True))
    # lexsort takes the most important key last.
    order = np.lexsort([labels, *(columns[name] for name in sorted(names, reverse=True))])
    placed = replace(pooled, numeric=pooled.numeric[order], codes=pooled.codes[order])
    origin = np.where(order < pooled.n_x, order, order - pooled.n_x)
    if design is not None:
        design = design._replace(units=design.units[order], strata=design.strata[order])
    return Sample.of(placed, scale, labels=labels[order], origin=origin, design=design)


# Two variables, or more


def read_pair(x: Any, y: Any, reading: Reading) -> Groups:
    """Return the two groups of columns of a test; x and y as in `hsic_test`."""
    read = (read_one(x, reading),) if y is None else _read_both(x, y, reading)
    first, second = read[0], read[-1]

    def refusal(message: str, hint: str, code: str, table: Table = first, **where: str) -> UsageError:
        return UsageError(message, hint=hint, code=f"usage.{code}", where={"file": table.name, **where})

    if first.n_rows != second.n_rows:
        raise DataError(
            f"{first.name} has {first.n_rows:,} rows and {second.name} {second.n_rows:,}: rows cannot be paired",
            hint="row i of one must be the same case as row i of the other; "
            f"{either('`kerntest mmd` compares files', 'mmd_test compares tables')} without pairs",
            code="data.rows_do_not_pair",
            where={"file": second.name},
        )
    sources = (first, second)
    named = [
        None if is_all(patterns) else match_names(patterns, table.names, table.name)
        for patterns, table in zip((reading.x_columns, reading.y_columns), sources, strict=True)
    ]
    # A name must be in at least one of the tables.
    every, where = (
        list(dict.fromkeys([*first.names, *second.names])),
        " or ".join(dict.fromkeys((first.name, second.name))),
    )
    excluded = set(match_names([*split_patterns(reading.exclude), *reading.apart], every, where))
    if not is_all(reading.columns):
        excluded |= {*every} - {*match_names(reading.columns, every, where)}
    free = [[name for name in table.names if name not in excluded] for table in sources]
    if y is None and named == [None, None]:
        if len(free[0]) < 2:
            said = f"{first.name} has {counted(len(free[0]), 'column')} to test, and it takes two"
            hint = "; ".join(first.notes) or comment_hint(free[0]) or "name the columns, and exclude fewer"
            raise refusal(said, hint, "no_groups")
        if len(free[0]) != 2:
            raise refusal(
                f"which of the {len(free[0])} columns of {first.name} are x, and which are y?",
                comment_hint(free[0])
                or f"{option('x', 'a,b')}{either('', ',')} {option('y', 'c')} names them; {option('y', 'c')} alone takes "
                f"all others as x; {either('--pairwise', 'hsic_pairs')} tests every pair",
                "no_groups",
            )
        named = [free[0][:1], free[0][1:]]
    # Of one table, one group of the two alone is tested against all other columns.
    others = [one if y is None else None for one in reversed(named)]
    groups = [
        [name for name in some if name not in (other or ())] if own is None else [name for name in own if name in some]
        for own, other, some in zip(named, others, free, strict=True)
    ]
    for name in [name for name in groups[0] if y is None and name in groups[1]]:
        hint = "a column depends on itself: name it in one of the two"
        raise refusal(f"column {name!r} is in both {option('x')} and {option('y')}", hint, "column_twice", column=name)
    for side, table, group in zip((option("x"), option("y")), sources, groups, strict=True):
        if not group:
            hint = f"name at least one column in each of {option('x')} and {option('y')}, and exclude fewer"
            raise refusal(f"no column of {table.name} is left for {side}", hint, "no_columns", table)
    tables = tuple(check_usable(table.select(group)) for table, group in zip(sources, groups, strict=True))
    # The notes of a table are told once, in the order of its columns.
    warned = tables if y is not None else (first.select(groups[0] + groups[1]),)
    return Groups(read, tables, tuple(dict.fromkeys(text for table in warned for text in table.warnings)))


def pair_up(groups: Groups, missing: MissingPolicy, scale: Scale, cluster: str | None = None) -> Paired:
    """Return groups of columns as variables over the rows without missing values, those of the clusters dropped with them."""
    tables, first = groups.tables, groups.tables[0]
    everything = replace(first, columns=tuple(column for table in tables for column in table.columns))
    counts, alone = _missing_in(tables)
    # Tables that were read apart each by itself, so that an error names the right file.
    for table in (everything,) if len({id(read) for read in groups.read}) == 1 else tables:
        apply_missing(table, missing, alone)
    kept = np.flatnonzero(complete_rows(everything))
    warnings = lost_rows(groups.name, first.n_rows - len(kept), first.n_rows, counts, alone)
    if cluster is not None and missing == "drop":
        lost = next((one for one in groups.read if cluster in one.names), groups.read[0])[cluster].missing[kept]
        warnings += without_value(int(np.count_nonzero(lost)), [cluster])
        kept = kept[~lost]
    n = len(kept)
    if n < FEWEST_ROWS:
        raise too_few_rows(groups, n, dropped=n < first.n_rows)
    arranged = []
    for table in (table.take(kept) if n < table.n_rows else table for table in tables):
        one = arrange(table.columns, n)
        warnings += lone_values(table) if scale == "standardize" else ()
        if one.empty:
            raise no_columns_left(table, one.warnings)
        arranged.append(one)
    warnings += [warning for one in arranged for warning in one.warnings]
    return Paired(tuple(Variable.of(one, scale) for one in arranged), kept, tuple(arranged), tuple(warnings))


def no_columns_left(table: Table, reasons: Sequence[str]) -> DataError:
    """Return the error for a side all of whose columns are left out."""
    return DataError(
        f"no column is left to test among {listed(table.names)} of {table.name}: {'; '.join(reasons)}",
        hint="a column must hold at least two different values, and not one per row",
        code="data.no_columns",
        where={"file": table.name, **({"column": table.names[0]} if len(table.names) == 1 else {})},
    )


def too_few_rows(groups: Groups, n: int, *, dropped: bool) -> DataError:
    """Return the error for tables with fewer rows than the unbiased estimator needs."""
    rows = f"{counted(n, 'row')}{' without missing values' if dropped else ''}"
    said = f"{groups.name} has {rows}; the test needs at least {FEWEST_ROWS}"
    return DataError(said, hint="give it more rows", code="data.too_few_rows", where={"file": groups.read[0].name})


def _read_both(x: Any, y: Any, reading: Reading) -> tuple[Table, Table]:
    """Return both tables, of which the same rows are chosen; a name in `categorical` must be in one of them."""
    choice, reading = reading.csv.choice, replace(reading, csv=replace(reading.csv, where=None, sample=None))
    tables = list[Table]()
    patterns = split_patterns(reading.categorical)
    unknown = set(patterns)
    for source, letter in ((x, "x"), (y, "y")):
        if isinstance(source, np.ndarray) and letter == "y":
            # So that x1 of one array is not taken for x1 of the other.
            plain = read_table(source, name=letter)
            named = tuple(replace(column, name=f"y{k + 1}") for k, column in enumerate(plain.columns))
            source = replace(plain, columns=named)  # noqa: PLW2901 - the same source under names of its own
        if letter == "y" and isinstance(source, str) and not Path(source).exists():
            _refuse_columns_of(tables[0], source)
        known = patterns
        if patterns and not (isinstance(source, str) and source == "-"):
            # Which of the names are here, is known only once the table is read. Stdin can be read once only.
            names = read_one(source, replace(reading, categorical=()), letter).names
            known = [pattern for pattern in patterns if find(pattern, names)]
        tables.append(read_one(source, replace(reading, categorical=known), letter))
        unknown -= set(known)
    if unknown:
        names = tuple(name for table in tables for name in table.names)
        raise unknown_column(
            next(one for one in patterns if one in unknown), f"{tables[0].name} or {tables[1].name}", names
        )
    first, second = tables
    if first.n_rows != second.n_rows:
        return first, second
    chosen = choice.of(first, beside=second), choice.of(second, beside=first)
    if not np.array_equal(chosen[0].numbers(), chosen[1].numbers()):
        # A column of this name is in both.
        raise UsageError(
            f"{option('where', choice.where)} chooses other rows of {first.name} than of {second.name}",
            hint="rows are pairs: name columns that one of the two has, or that are the same in both",
            code="usage.where",
            where={"text": str(choice.where)},
        )
    return chosen


def _refuse_columns_of(table: Table, source: str) -> None:
    """Refuse names of columns of the first table where a second one is meant, which is not there."""
    if source and {*split_patterns(source)} <= {*table.names}:
        said = f"there is no table {source}, and {table.name} has columns of that name"
        raise UsageError(
            said, hint=f"did you mean {option('y', source)}?", code="usage.columns_for_table", where={"value": source}
        )


def read_one(source: Any, reading: Reading, letter: str = "data") -> Table:
    """Return one table; `letter` is what arrays are called."""
    named = isinstance(source, (str, Table)) or hasattr(source, "__fspath__")
    return read_table(source, name=None if named else letter, categorical=reading.categorical, **reading.csv.words())
