"""From two tables to the rows of a test: read, matched, without missing values, pooled, scaled, in canonical order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.checks import one_of
from kerntest.data.columns import match_tables
from kerntest.data.csv_options import AS_USUAL, CsvOptions
from kerntest.data.missing import apply_missing
from kerntest.data.read import read_table
from kerntest.data.scaling import standardize
from kerntest.data.table import Table
from kerntest.inference.order import canonical_order
from kerntest.kernels.base import Columns, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.pooling import Pooled
    from kerntest.inference.labels import Labels
    from kerntest.inference.options import MissingPolicy, Scale
    from kerntest.kernels.base import Array


@dataclass(frozen=True, slots=True)
class Sample:
    """The pooled rows as kernels see them: scaled, in canonical order.

    Parameters
    ----------
    points : Points
        n rows.
    labels : ndarray of uint8, shape (n,)
        1 for rows of X.
    origin : ndarray of int, shape (n,)
        Which row of its own table each is, counted from 0.
    centre, spread : ndarray, shape (p,)
        A numeric column is (points.numeric * spread + centre) in its own units.
    numeric_names, category_names : tuple of str
    """

    points: Points
    labels: Labels
    origin: NDArray[np.intp]
    centre: Array
    spread: Array
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]

    def take(self, rows: NDArray[np.intp]) -> Sample:
        """Return the same columns of some rows; at least two of each table where it has as many."""
        found = np.unique(np.concatenate([rows, *(np.flatnonzero(self.labels == label)[:2] for label in (0, 1))]))
        return replace(self, points=self.points.take(found), labels=self.labels[found], origin=self.origin[found])

    def with_columns(self, wanted: set[int]) -> Sample:
        """Return the same rows with the columns at the wanted positions, numeric columns counted first."""
        p = len(self.numeric_names)
        numeric = tuple(place for place in range(p) if place in wanted)
        categories = tuple(place for place in range(len(self.category_names)) if p + place in wanted)
        chosen = self.points.select(Columns(numeric, categories))
        return Sample(
            Points(chosen.numeric, chosen.codes),
            self.labels,
            self.origin,
            self.centre[list(numeric)],
            self.spread[list(numeric)],
            tuple(self.numeric_names[place] for place in numeric),
            tuple(self.category_names[place] for place in categories),
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Which columns and rows of the tables to use; each as in `mmd_test`."""

    columns: str | Sequence[str] | None = None
    exclude: str | Sequence[str] | None = None
    common: bool = False
    categorical: str | Sequence[str] = ()
    missing: MissingPolicy = "error"
    csv: CsvOptions = AS_USUAL


@dataclass(frozen=True, slots=True)
class TwoTables:
    """Both tables as read, then with the same columns in the same order, and what the reader should know of that."""

    read: tuple[Table, Table]
    matched: tuple[Table, Table]
    warnings: tuple[str, ...]


def read_two(
    x: Any,
    y: Any,
    reading: Reading,
) -> TwoTables:
    """Return both tables with their shared columns; x and y as in `mmd_test`.

    Raises
    ------
    UsageError
        If an option names a column that is not there.
    DataError
        If a table cannot be read, or the two do not fit together.
    """
    read = tuple(
        read_table(
            source,
            name=None if _has_name(source) else letter,
            categorical=reading.categorical,
            **reading.csv.words(),
        )
        for source, letter in ((x, "x"), (y, "y"))
    )
    first, second, warnings = match_tables(
        read[0],
        read[1],
        columns=reading.columns,
        exclude=reading.exclude,
        common=reading.common,
        categorical=reading.categorical,
    )
    # Two inputs of one name have the same to tell.
    told = tuple(dict.fromkeys((*first.warnings, *second.warnings, *warnings)))
    return TwoTables((read[0], read[1]), (first, second), told)


def names_apart(tables: tuple[Table, Table]) -> tuple[str, str]:
    """Return the names of X and Y; of one name, with the letter by which they can be told apart."""
    x, y = (table.name for table in tables)
    return (f"{x} (X)", f"{y} (Y)") if x == y else (x, y)


def _has_name(source: object) -> bool:
    return isinstance(source, (str, Table)) or hasattr(source, "__fspath__")


def without_missing(tables: tuple[Table, Table], policy: MissingPolicy) -> tuple[tuple[Table, Table], list[str]]:
    """Return both tables without missing values, and a warning for each that lost rows.

    Raises
    ------
    DataError
        If there are missing values and the policy is "error", or no row is left.
    """
    one_of("missing", policy, ("error", "drop"))
    used, warnings = [], []
    for table in tables:
        kept, dropped = apply_missing(table, policy)
        used.append(kept)
        if dropped:
            rows = "1 row" if dropped == 1 else f"{dropped:,} rows"
            warnings.append(f"{table.name}: {rows} of {table.n_rows:,} with missing values left out")
    return (used[0], used[1]), warnings


def lay_out(pooled: Pooled, scale: Scale) -> Sample:
    """Return the pooled rows scaled and in canonical order."""
    labels = (np.arange(pooled.n_x + pooled.n_y) < pooled.n_x).astype(np.uint8)
    order = canonical_order(pooled.numeric, pooled.codes, pooled.numeric_names, pooled.category_names, labels)
    numeric = pooled.numeric[order]
    centre, spread = np.zeros(numeric.shape[1]), np.ones(numeric.shape[1])
    if scale == "standardize":
        numeric, centre, spread = standardize(numeric)
    points = Points(numeric, pooled.codes[order])
    origin = np.where(order < pooled.n_x, order, order - pooled.n_x)
    return Sample(points, labels[order], origin, centre, spread, pooled.numeric_names, pooled.category_names)
