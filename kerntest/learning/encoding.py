"""What every learner keeps of its columns: names, kinds, levels and scales, so that new rows become the same features."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from kerntest.data.arranging import arrange
from kerntest.data.forms import PLAIN, form_of
from kerntest.data.missing import apply_missing, check_usable
from kerntest.data.scaling import standardize
from kerntest.data.table import MISSING, Kind
from kerntest.data.wording import listed
from kerntest.errors import DataError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.incoming import Incoming, select_specs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.data.csv_options import CsvWords
    from kerntest.data.table import Table
    from kerntest.kernels.base import Array, Codes
    from kerntest.learning.incoming import Unknown

Scale: TypeAlias = Literal["standardize", "none"]
SCALES: tuple[Scale, ...] = get_args(Scale)
# The standard deviation of numbers as small as numbers get may round to 0.
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column as a learner was fitted to it.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "text", "date"}
    levels : tuple of str
        Of text and boolean: the different values, sorted; a value is coded by its place among them.
    centre, spread : float
        Of numbers and dates (days since 1970-01-01): a value v becomes (v - centre) / spread.
    written : str
        In which form numbers and dates were written, as `Column` has it.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    centre: float = 0.0
    spread: float = 1.0
    written: str = ""

    @property
    def is_category(self) -> bool:
        """Whether values are codes into `levels`."""
        return self.kind in {"boolean", "text"}

    def stored_fields(self) -> tuple[str, ...]:
        """Return which fields a model file has of it."""
        if self.is_category:
            return ("name", "kind", "levels")
        return ("name", "kind", "centre", "spread", *(("written",) if self.written else ()))

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        if self.is_category:
            ascending = self.levels and all(first < second for first, second in pairwise(self.levels))
            return None if ascending else "levels must be texts in ascending order, all different"
        if not self.spread > 0:
            return f"spread must be a positive number, not {self.spread:g}"
        try:
            form = form_of(self.written) if self.written else None
        except KeyError:
            form = PLAIN
        known = form is None or (form.name and form.kind == self.kind)
        return None if known else f"written must be a way to write a {self.kind}"


@dataclass(frozen=True, slots=True)
class Encoder:
    """The way from typed columns to the features of a learner.

    Parameters
    ----------
    columns : tuple of ColumnSpec
        In the order of the training table.
    scale : {"standardize", "none"}
        Whether numbers and dates were brought to mean 0 and standard deviation 1 of the training rows (divisor n).
    na : tuple of str
        Words that stood for a missing value in the training table.
    """

    columns: tuple[ColumnSpec, ...]
    scale: Scale
    na: tuple[str, ...] = MISSING

    @property
    def written(self) -> dict[str, str]:
        """In which forms columns were written, where not plainly."""
        return {column.name: column.written for column in self.columns if column.written}

    def csv(self, words: CsvWords) -> CsvWords:
        """Return how to read new rows: what the caller says, and else as the training table was read."""
        return words if words.get("na") is not None else {**words, "na": self.na}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in the order of the training table."""
        return tuple(column.name for column in self.columns)

    @property
    def numeric(self) -> tuple[ColumnSpec, ...]:
        """Numbers and dates, in the order in which `Points` holds them."""
        return tuple(column for column in self.columns if not column.is_category)

    @property
    def categories(self) -> tuple[ColumnSpec, ...]:
        """Text and booleans, in the order in which `Points` holds them."""
        return tuple(column for column in self.columns if column.is_category)

    @property
    def numeric_names(self) -> tuple[str, ...]:
        """The names of numbers and dates, in the order in which `Points` holds them."""
        return tuple(column.name for column in self.numeric)

    @property
    def category_names(self) -> tuple[str, ...]:
        """The names of text and booleans, in the order in which `Points` holds them."""
        return tuple(column.name for column in self.categories)

    @classmethod
    def fit(cls, table: Table, scale: Scale) -> Fitted:
        """Learn the columns of a training table.

        Parameters
        ----------
        table : Table
            The feature columns only, n rows without missing values.
        scale : {"standardize", "none"}

        Returns
        -------
        Fitted
            With the rows as points: scaled by the very numbers that are kept, as `transform` scales.

        Raises
        ------
        DataError
            If there are missing values or infinities, a column cannot be used, or none is left.
        UsageError
            If `scale` is no such thing.

        Notes
        -----
        Cost: O(n p) time and memory, O(n log n) for each column of text.
        """
        if scale not in SCALES:
            raise UsageError(
                f"scale must be {' or '.join(SCALES)}, not {scale!r}",
                hint="standardize brings columns of different units to one scale",
                code="usage.scale",
            )
        usable = apply_missing(check_usable(table), "error")[0]
        arranged = arrange(usable.columns, table.n_rows)
        if arranged.empty:
            raise DataError(
                f"no column is left to learn from among {listed(table.names)} of {table.name}: "
                f"{'; '.join(arranged.warnings)}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": table.name},
            )
        centre, spread = np.zeros(arranged.numeric.shape[1]), np.ones(arranged.numeric.shape[1])
        if scale == "standardize":
            _, centre, spread = standardize(arranged.numeric)
            spread = np.maximum(spread, _SMALLEST)
        specs = {
            name: ColumnSpec(name, table[name].kind, centre=float(c), spread=float(s), written=table[name].written)
            for name, c, s in zip(arranged.numeric_names, centre, spread, strict=True)
        } | {
            name: ColumnSpec(name, table[name].kind, levels)
            for name, levels in zip(arranged.category_names, arranged.levels, strict=True)
        }
        encoder = cls(tuple(specs[name] for name in table.names if name in specs), scale, table.na)
        points = Points(encoder.scaled(arranged.numeric), arranged.codes)
        return Fitted(encoder, points, arranged.left_out, arranged.warnings)

    def scaled(self, numeric: Array) -> Array:
        """Return numbers in the units of the training rows.

        Parameters
        ----------
        numeric : ndarray, shape (n, p)
            In the order of `numeric`, in the units of the table.

        Returns
        -------
        ndarray, shape (n, p)
            Not finite where a value is so far from the training rows that the result overflows.
        """
        if self.scale == "none":
            return numeric
        centre = np.array([column.centre for column in self.numeric])
        spread = np.array([column.spread for column in self.numeric])
        # A power of two taken out first keeps the difference of huge numbers from overflowing, and costs no digit.
        exponent = -np.frexp(spread)[1]
        with np.errstate(over="ignore", invalid="ignore"):
            scaled: Array = np.ldexp(numeric, exponent) - np.ldexp(centre, exponent)
            scaled /= np.ldexp(spread, exponent)
        return scaled

    def transform(
        self, table: Table, *, name: str = "the model", unknown: Literal["error", "ignore"] = "error"
    ) -> Encoded:
        """Turn new rows into points of the same features.

        Parameters
        ----------
        table : Table
            n rows whose columns are found by name, in any order; those that the learner does not know are ignored.
        name : str
            How messages call the model.
        unknown : {"error", "ignore"}
            What to do about a category that no training row had. "ignore": its code is -1, which differs from that
            of every training row (two unknown values share it), and a warning says so.

        Raises
        ------
        DataError
            If columns are missing or of another kind, a value is missing, unknown or not finite.

        Notes
        -----
        Numbers that arrive where text was (a column of codes without a letter among them) are compared by value, in
        their shortest form; text that arrives where numbers were must consist of numbers.

        Cost: O(n p) time and memory, O(n log n) for a column of numbers taken as text.
        """
        incoming = Incoming(apply_missing(self.select(table, name=name), "error")[0], name)
        numeric = [incoming.numbers(spec) for spec in self.numeric]
        found = [incoming.codes(spec) for spec in self.categories]
        strange = [stranger for _, stranger in found if stranger is not None]
        if strange and unknown == "error":
            raise incoming.unknown_levels(strange)
        points = Points(self._finite(_beside(numeric, table.n_rows), incoming), _beside_codes(found, table.n_rows))
        return Encoded(points, tuple(map(incoming.unknown_warning, strange)))

    def select(self, table: Table, *, name: str = "the model") -> Table:
        """Return the columns of the learner, found by name, as they are in a table of new rows.

        For callers who leave out rows with missing values before they call `transform`.

        Raises
        ------
        DataError
            If a column is not there, or of a type that we do not know.
        """
        return select_specs(table, self.columns, name)

    def _finite(self, numeric: Array, incoming: Incoming) -> Array:
        """Return the numbers scaled; refuse those that are not finite, before or after."""
        scaled = self.scaled(numeric)
        finite = np.isfinite(scaled)
        if not finite.all():
            # The first column with such a value, and the first such row in it.
            place = int(np.argmin(finite.all(axis=0)))
            row = int(np.argmin(finite[:, place]))
            raise incoming.not_finite(self.numeric[place], row, float(numeric[row, place]))
        return scaled

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        if not self.columns or len(set(self.names)) < len(self.columns):
            return "columns must be one column or more, each with a name of its own"
        if self.scale == "none" and any((column.centre, column.spread) != (0.0, 1.0) for column in self.columns):
            return "scale must be 'standardize' where a column has a centre or a spread"
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A training table as a learner takes it.

    Parameters
    ----------
    encoder : Encoder
        What to keep of its columns.
    points : Points
        Its n rows.
    left_out : tuple of str
        Columns that cannot tell anything: constant, or different in every row.
    warnings : tuple of str
        Why they were left out.
    """

    encoder: Encoder
    points: Points
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """New rows as a fitted learner takes them.

    Parameters
    ----------
    points : Points
        n rows, in the order of the table.
    warnings : tuple of str
        Which categories no training row had.
    """

    points: Points
    warnings: tuple[str, ...]


def _beside(columns: Sequence[Array], n_rows: int) -> Array:
    """Return columns of numbers side by side, shape (n, p)."""
    return np.column_stack(columns) if columns else np.empty((n_rows, 0))


def _beside_codes(columns: Sequence[tuple[Codes, Unknown | None]], n_rows: int) -> Codes:
    """Return columns of codes side by side, shape (n, q)."""
    codes: Codes = np.empty((n_rows, len(columns)), dtype=np.int64)
    for place, (column, _) in enumerate(columns):
        codes[:, place] = column
    return codes
