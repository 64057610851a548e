"""From one table with two groups of columns, or two tables with paired rows, to the variables of a test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.arranging import Arranged, arrange
from kerntest.data.checks import one_of
from kerntest.data.csv_options import AS_USUAL, CsvOptions
from kerntest.data.missing import apply_missing, check_usable
from kerntest.data.read import read_table
from kerntest.data.selection import find, match_names, split_patterns
from kerntest.data.table import Table, comment_hint, unknown_column
from kerntest.data.wording import listed
from kerntest.errors import DataError, UsageError
from kerntest.inference.variables import Variable, variable_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.selection import Patterns
    from kerntest.inference.options import MissingPolicy, Scale

# The unbiased estimator divides by n - 3.
FEWEST_ROWS = 4


@dataclass(frozen=True, slots=True)
class PairReading:
    """Which columns and rows to use; each as in `hsic_test`."""

    x_columns: Patterns = None
    y_columns: Patterns = None
    columns: Patterns = None
    exclude: Patterns = None
    categorical: str | Sequence[str] = ()
    missing: MissingPolicy = "error"
    csv: CsvOptions = AS_USUAL


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of columns over the same rows, as tables.

    Parameters
    ----------
    read : tuple of Table
        The tables as they were read, one or two.
    tables : tuple of Table
        One table for each group, with its columns; row i of each is the same case.
    warnings : tuple of str
    """

    read: tuple[Table, ...]
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """The variables of a test over the same n rows.

    Parameters
    ----------
    variables : tuple of Variable
    origin : ndarray of int, shape (n,)
        Which row of the tables (those with missing values counted) each is, from 0.
    arranged : tuple of Arranged
        What each was made from.
    warnings : tuple of str
    """

    variables: tuple[Variable, ...]
    origin: NDArray[np.intp]
    arranged: tuple[Arranged, ...]
    warnings: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.origin)

    def take(self, rows: NDArray[np.intp]) -> Paired:
        """Return some of the rows, scaled as before."""
        return replace(self, variables=tuple(one.take(rows) for one in self.variables), origin=self.origin[rows])


def read_pair(x: Any, y: Any, reading: PairReading) -> Groups:
    """Return the two groups of columns of a test; x and y as in `hsic_test`.

    Raises
    ------
    UsageError
        If an option names a column that is not there, or the two groups cannot be told.
    DataError
        If a table cannot be read, or the rows of two tables do not pair.
    """
    if y is None:
        return _from_one(x, reading)
    first, second = _read_both(x, y, reading)
    if first.n_rows != second.n_rows:
        raise DataError(
            f"{first.name} has {first.n_rows:,} rows and {second.name} {second.n_rows:,}: rows cannot be paired",
            hint="row i of one must be the same case as row i of the other; `kerntest mmd` compares files without pairs",
            code="data.rows_do_not_pair",
            where={"file": second.name},
        )
    tables = tuple(
        _chosen(table, named, _left_out(reading, table, (first, second)))
        for table, named in ((first, reading.x_columns), (second, reading.y_columns))
    )
    return Groups((first, second), tables, tuple(dict.fromkeys(text for table in tables for text in table.warnings)))


def read_one(data: Any, reading: PairReading) -> Table:
    """Return a table for tests of several of its columns; errors as in `read_table`."""
    return _read(data, "data", reading)


def pair_up(groups: Groups, missing: MissingPolicy, scale: Scale) -> Paired:
    """Return groups of columns as variables over the rows without missing values.

    Raises
    ------
    DataError
        If there are missing values and the policy is "error", fewer than 4 rows are left, or a group has no column
        that can tell anything.
    """
    one_of("missing", missing, ("error", "drop"))
    kept, warnings = complete_rows(groups, missing)
    n = len(kept)
    if n < FEWEST_ROWS:
        raise too_few_rows(groups, n, dropped=bool(warnings))
    arranged = []
    for table in groups.tables:
        one = arrange(table.take(kept).columns if n < table.n_rows else table.columns, n)
        if one.empty:
            raise DataError(
                f"no column is left to test among {listed(table.names)} of {table.name}: {'; '.join(one.warnings)}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": table.name},
            )
        arranged.append(one)
    variables = tuple(variable_of(one, scale) for one in arranged)
    warnings += [warning for one in arranged for warning in one.warnings]
    return Paired(variables, kept, tuple(arranged), tuple(warnings))


def too_few_rows(groups: Groups, n: int, *, dropped: bool) -> DataError:
    """Return the error for tables with fewer rows than the unbiased estimator needs."""
    return DataError(
        f"{_named(groups)} has {n} {'row' if n == 1 else 'rows'}{' without missing values' if dropped else ''}; "
        f"the test needs at least {FEWEST_ROWS}",
        hint="give it more rows",
        code="data.too_few_rows",
        where={"file": groups.read[0].name},
    )


def complete_rows(groups: Groups, missing: MissingPolicy) -> tuple[NDArray[np.intp], list[str]]:
    """Return the rows without a missing value in any group, and a warning where some are left out."""
    tables = groups.tables
    rows = np.arange(tables[0].n_rows)
    everything = replace(tables[0], columns=tuple(column for table in tables for column in table.columns))
    if len({id(read) for read in groups.read}) == 1:
        apply_missing(everything, missing)
        names = groups.read[0].name
    else:
        # Each by itself, so that an error names the right file.
        for table in tables:
            apply_missing(table, missing)
        names = _named(groups)
    absent = np.zeros(len(rows), dtype=bool)
    for column in everything.columns:
        absent |= column.missing
    dropped = int(np.count_nonzero(absent))
    if not dropped:
        return rows, []
    counted = "1 row" if dropped == 1 else f"{dropped:,} rows"
    return rows[~absent], [f"{names}: {counted} of {len(rows):,} with missing values left out"]


def _from_one(data: Any, reading: PairReading) -> Groups:
    """Return two groups of columns of one table."""
    table = read_one(data, reading)
    excluded = _left_out(reading, table, (table,))
    names = [name for name in table.names if name not in excluded]
    x = _named_columns(reading.x_columns, table)
    y = _named_columns(reading.y_columns, table)
    if x is None and y is None:
        if len(names) != 2:
            raise UsageError(
                f"which of the {len(names)} columns of {table.name} are x, and which are y?",
                hint=comment_hint(names)
                or "--x a,b --y c names them; --y c alone takes all others as x; --pairwise tests every pair",
                code="usage.no_groups",
                where={"file": table.name},
            )
        x, y = names[:1], names[1:]
    # One of the two alone is tested against all other columns.
    x = [name for name in names if name not in set(y or ())] if x is None else x
    y = [name for name in names if name not in set(x)] if y is None else y
    x, y = ([name for name in group if name not in excluded] for group in (x, y))
    both = [name for name in x if name in set(y)]
    if both:
        raise UsageError(
            f"column {both[0]!r} is in both --x and --y",
            hint="a column depends on itself: name it in one of the two",
            code="usage.column_twice",
            where={"file": table.name, "column": both[0]},
        )
    for group, option in ((x, "--x"), (y, "--y")):
        if not group:
            raise UsageError(
                f"no column of {table.name} is left for {option}",
                hint="name at least one column in each of --x and --y",
                code="usage.no_columns",
                where={"file": table.name},
            )
    tables = tuple(check_usable(table.select(group)) for group in (x, y))
    return Groups((table,), tables, table.select([*x, *y]).warnings)


def _named_columns(patterns: Patterns, table: Table) -> list[str] | None:
    """Return the names that an option means; None where it was not given."""
    if patterns is None or (not patterns and patterns != ""):
        return None
    return match_names(patterns, table.names, table.name)


def _chosen(table: Table, patterns: Patterns, excluded: set[str]) -> Table:
    named = _named_columns(patterns, table)
    names = [name for name in (table.names if named is None else named) if name not in excluded]
    if not names:
        raise UsageError(
            f"no column of {table.name} is selected",
            hint="name at least one in --x and --y, and exclude fewer",
            code="usage.no_columns",
            where={"file": table.name},
        )
    return check_usable(table.select(names))


def _left_out(reading: PairReading, table: Table, tables: tuple[Table, ...]) -> set[str]:
    """Return the columns of one table that do not take part; a name must be in at least one of the tables."""
    every = tuple(dict.fromkeys(name for each in tables for name in each.names))
    where = " or ".join(dict.fromkeys(each.name for each in tables))
    excluded = set(match_names(reading.exclude, every, where))
    if reading.columns:
        excluded |= set(every) - set(match_names(reading.columns, every, where))
    return excluded & set(table.names)


def _read_both(x: Any, y: Any, reading: PairReading) -> tuple[Table, Table]:
    """Return both tables; a name in `categorical` must be in one of them."""
    plain = replace(reading, categorical=())
    tables = []
    patterns = split_patterns(reading.categorical)
    unknown = set(patterns)
    for source, letter in ((x, "x"), (y, "y")):
        known: list[str] = []
        if patterns:
            # Which of the names are here, is known only once the table is read. Stdin can be read once only.
            known = patterns
            if not (isinstance(source, str) and source == "-"):
                names = _read(source, letter, plain).names
                known = [pattern for pattern in patterns if find(pattern, names)]
        tables.append(_read(source, letter, replace(reading, categorical=known)))
        unknown -= set(known)
    if unknown:
        names = tuple(name for table in tables for name in table.names)
        raise unknown_column(min(unknown), f"{tables[0].name} or {tables[1].name}", names)
    return tables[0], tables[1]


def _read(source: Any, letter: str, reading: PairReading) -> Table:
    named = isinstance(source, (str, Table)) or hasattr(source, "__fspath__")
    name = None if named else letter
    if isinstance(source, np.ndarray) and letter == "y":
        # So that x1 of one array is not taken for x1 of the other.
        plain = read_table(source, name=name)
        source = replace(
            plain, columns=tuple(replace(column, name=f"y{k + 1}") for k, column in enumerate(plain.columns))
        )
    return read_table(source, name=name, categorical=reading.categorical, **reading.csv.words())


def _named(groups: Groups) -> str:
    return " and ".join(dict.fromkeys(read.name for read in groups.read))
