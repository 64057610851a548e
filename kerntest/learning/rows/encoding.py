"""What every learner keeps of its columns: names, kinds, levels and scales, so that new rows become the same features."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kerntest.data.column_types import as_text, decimal_hint, missing_hint, value_problem
from kerntest.data.columns import arrange, infinity, standardize
from kerntest.data.facts import lone_values
from kerntest.data.gaps import apply_missing
from kerntest.data.missing import GAP, PRESENCE, filled, fillings, presence, presence_name, with_gap_level
from kerntest.data.table import EXACT_INTEGERS, MISSING, Kind, comment_hint
from kerntest.data.written_values import form_of, is_number
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, counted, listed, option, suggest
from kerntest.kernels.base import Points
from kerntest.kernels.text import bind
from kerntest.learning.scores import root_mean_square
from kerntest.report.results.application_record import VALUES_SHOWN, UnknownLevels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kerntest.data.table import Column, Table
    from kerntest.data.written_values import Form
    from kerntest.kernels.base import Array, Codes, Columns, Kernel
    from kerntest.kernels.text import Bound


Scale: TypeAlias = Literal["standardize", "together", "none"]
# Columns of one unit are so many at least; their ranges differ no more than this (pixels at an edge hardly vary), and
# their spreads at least so much, from the first to the last decile, or it makes no difference. Of 178 tables of R packages with
# eight numeric columns or more, seven are told of: votes, counts, heights, lengths, items of a test.
LEAST_OF_ONE_UNIT, RANGES_ALIKE, SPREADS_DIFFER = 8, 32.0, 1.5
_NUMBER = re.compile(r"\d+", re.ASCII)
# The standard deviation of numbers as small as numbers get may round to 0.
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
OTHER_VALUE = "correct the value, or leave its row out"
# As columns are called in a file without a header.
_BY_POSITION = re.compile(r"x[1-9]\d*", re.ASCII)
_NUMBER_WITH_COMMA = re.compile(r"\s*[+-]?[\d.]+(?:,\d+)+[\d.]*\s*", re.ASCII)


@dataclass(frozen=True)
class ColumnSpec:
    """One column as a learner was fitted to it.

    A category (text or boolean) is coded by its place among the sorted `levels`; a value v of numbers or dates (days
    since 1970-01-01), written as `written` says, becomes (v - centre) / spread. Where gaps are information `filled`
    stands for a missing number, and with `indicator` whether it is missing is a category of its own.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    centre: float = 0.0
    spread: float = 1.0
    written: str = ""
    filled: float | None = None
    indicator: bool = False

    @property
    def is_category(self) -> bool:
        """Whether values are codes into `levels`."""
        return self.kind in {"boolean", "text"}

    @property
    def takes_gaps(self) -> bool:
        """Whether a missing value means something."""
        return self.filled is not None or GAP in self.levels

    def stored_fields(self) -> tuple[str, ...]:
        """Return which fields a model file has of it."""
        if self.is_category:
            return ("name", "kind", "levels")
        gaps = ("filled", "indicator") if self.takes_gaps else ()
        return ("name", "kind", "centre", "spread", *(["written"] if self.written else []), *gaps)

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        if self.is_category:
            ascending = self.levels and all(first < second for first, second in pairwise(self.levels))
            return None if ascending else "levels must be texts in ascending order, all different"
        if not self.spread > 0:
            return f"spread must be a positive number, not {self.spread:g}"
        if self.filled is not None and not math.isfinite(self.filled):
            return "filled must be a number"
        with suppress(KeyError):
            if not self.written or ((form := form_of(self.written)).name and form.kind == self.kind):
                return None
        return f"written must be a way to write a {self.kind}"

    @property
    def form(self) -> Form:
        """The form in which numbers or dates were written; plain dates have the year first."""
        return form_of(self.written or ("date, year first" if self.kind == "date" else ""))


@dataclass(frozen=True)
class Encoder:
    """The way from typed columns to the features of a learner.

    The columns are in the order of the training table; `na` are the words that stood for a missing value there. With
    `scale` "standardize" numbers and dates have mean 0 and standard deviation 1 over the training rows (divisor n); with
    "together" all columns are divided by one number, so that 1 is their mean variance. `moments` are the
    means of numeric features and, below, their covariance, where the kernel needs it.
    """

    columns: tuple[ColumnSpec, ...]
    scale: Scale
    na: tuple[str, ...] = MISSING
    moments: tuple[tuple[float, ...], ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in the order of the training table."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def numeric(self) -> tuple[ColumnSpec, ...]:
        """Numbers and dates, in the order in which `Points` holds them."""
        return tuple(column for column in self.columns if not column.is_category)

    @cached_property
    def categories(self) -> tuple[ColumnSpec, ...]:
        """Text and booleans, in the order in which `Points` holds them; last whether numbers are missing."""
        gaps = (ColumnSpec(presence_name(one.name), "text", PRESENCE) for one in self.columns if one.indicator)
        return (*(column for column in self.columns if column.is_category), *gaps)

    def bound(self, kernel: Kernel) -> Bound:
        """Return a kernel with the columns that each of its parts sees."""
        numeric, categories = ([one.name for one in specs] for specs in (self.numeric, self.categories))
        return bind(kernel, numeric, categories)

    def moments_of(self, columns: Columns | None) -> Array:
        """Return the means of numeric features (None: of all), and below them their covariance."""
        means, covariance = np.split(np.array(self.moments), [1])
        chosen = list(range(means.shape[1]) if columns is None else columns.numeric)
        return np.vstack([means[:, chosen], covariance[np.ix_(chosen, chosen)]])

    @classmethod
    def fit(cls, table: Table, scale: Scale, gaps: Sequence[str] = ()) -> tuple[Encoder, Points, dict[str, str]]:
        """Learn the usable columns of a table of features; give its rows as `transform` would.

        Values are missing in the columns `gaps` only. Columns that cannot tell anything are left out; the third says of
        each why.
        """
        read, by = table, fillings([table], gaps)
        table = filled(read, by)
        added = {presence_name(name) for name, value in by.items() if value is not None}
        arranged = arrange(table.columns, table.n_rows)
        if arranged.empty:
            raise DataError(
                f"no column is left to learn from among {listed(table.names)} of {table.name}: "
                f"{'; '.join(arranged.warnings)}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": table.name},
            )
        centre, spread = np.zeros(len(arranged.numeric_names)), np.ones(len(arranged.numeric_names))
        if scale != "none":
            _, centre, spread = standardize(arranged.numeric)
        if scale == "together" and len(spread):
            # The root mean square of all deviations: the columns keep their proportions.
            spread = np.full(len(spread), root_mean_square(spread))
        pairs = zip(centre.tolist(), np.maximum(spread, _SMALLEST).tolist(), strict=True)
        scales = dict(zip(arranged.numeric_names, pairs, strict=True))
        levels = dict(zip(arranged.category_names, arranged.levels, strict=True))
        specs = [
            ColumnSpec(one.name, one.kind, tuple(sorted({*levels[one.name], *([GAP] if one.name in by else [])})))
            if one.is_category
            else ColumnSpec(
                one.name,
                one.kind,
                (),
                *scales[one.name],
                one.written,
                by.get(one.name),
                presence_name(one.name) in arranged.category_names and one.name in by,
            )
            for one in table.columns
            if one.name not in {*arranged.left_out, *added}
        ]
        encoder = cls(tuple(specs), scale, table.na)
        points = encoder.transform(read)[0] if by else Points(encoder.scaled(arranged.numeric), arranged.codes)
        return encoder, points, dict(arranged.reasons)

    def told_of_scales(self, table: Table, points: Points) -> Iterator[str]:
        """Yield what standardising does to the columns of a table, that a reader should know."""
        if self.scale != "none":
            yield from lone_values(table.select([one.name for one in self.columns]))
        yield from self._told_of_one_unit(points)

    def _told_of_one_unit(self, points: Points) -> Iterator[str]:
        """Yield a hint where all columns look like numbers of one unit, and standardising each makes a difference.

        They are numbered ones of one name, or are written with one unit, and range over about as much.
        """
        specs = self.numeric
        if self.scale != "standardize" or len(specs) < LEAST_OF_ONE_UNIT or len(specs) < len(self.columns):
            return
        units = {form_of(spec.written).unit if spec.written else "" for spec in specs}
        alike = len(units) == 1 if units != {""} else len({_NUMBER.sub("#", spec.name) for spec in specs}) == 1
        if not alike or {spec.kind for spec in specs} != {"number"}:
            return
        spreads = np.array([spec.spread for spec in specs])
        ranges = np.ptp(points.numeric, axis=0) * spreads
        small, large = np.quantile(spreads, [0.1, 0.9])
        # Columns of two values, such as indicators of categories, have none.
        ends = [(column == column.min()) | (column == column.max()) for column in points.numeric.T]
        measured = not any(map(np.all, ends))
        if measured and ranges.max() <= RANGES_ALIKE * ranges.min() and large >= SPREADS_DIFFER * small:
            # Of one digit: folds of a search have one text then, which Python shows once.
            yield (
                f"the {len(specs):,} columns look like one unit, and their spreads differ {large / small:.1g} times: "
                f"{option('scale', 'together')} keeps their proportions"
            )

    def scaled(self, numeric: Array) -> Array:
        """Return numbers in the units of the training rows: not finite where a value is so far off that it overflows."""
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
    ) -> tuple[Points, tuple[UnknownLevels, ...]]:
        """Turn new rows into points of the same features; their columns are found by name.

        With `unknown` "ignore" a category that no training row had gets the code -1, which differs from that of every
        training row, and is told. Numbers that arrive where text was (a column of codes without a letter among them) are
        compared by value; text that arrives where numbers were must consist of numbers.
        """
        table = self.select(table, name=name)
        if needed := [spec.name for spec in self.columns if not spec.takes_gaps]:
            apply_missing(table.select(needed), "error")
        told = [presence(table[spec.name]) for spec in self.columns if spec.indicator]
        numeric = np.empty((table.n_rows, len(self.numeric)))
        codes = np.column_stack([np.empty((table.n_rows, len(self.categories) - len(told)), int), *told])
        for place, spec in enumerate(self.numeric):
            column = table.select([spec.name])
            there = ~column.columns[0].missing
            numeric[:, place] = math.nan if spec.filled is None else spec.filled
            numeric[there, place] = _numbers(spec, column if there.all() else column.take(there), name)
        strange: dict[int, UnknownLevels] = {}
        for place, spec in enumerate(one for one in self.columns if one.is_category):
            one = with_gap_level(table[spec.name]) if spec.takes_gaps else table[spec.name]
            codes[:, place], met = level_codes(spec.name, spec.levels, one)
            if met.rows:
                strange[place] = met
        if strange and unknown == "error":
            place = min(strange)
            raise _unknown_levels(self.categories[place], codes[:, place], table, [*strange.values()], name)
        scaled = self.scaled(numeric)
        if not np.isfinite(scaled).all():
            # The first column with such a value, and the first such row in it.
            place, row = np.argwhere(~np.isfinite(scaled.T))[0].tolist()
            spec = self.numeric[place]
            trouble = (
                f"too far from the training rows of {name} to be scaled (their mean is {spec.centre:g}, their standard "
                f"deviation {spec.spread:g})"
            )
            raise _unfit(table[spec.name], table, row, trouble, OTHER_VALUE, code="data.infinite_values")
        return Points(scaled, codes), (*strange.values(),)

    def select(self, table: Table, *, name: str = "the model") -> Table:
        """Return the columns of the learner as they are in a table of new rows, found by name."""
        wanted, present = set(self.names), set(table.names)
        absent = [column for column in self.names if column not in present]
        if absent:
            raise _columns_missing(absent, table, [column for column in table.names if column not in wanted], name)
        chosen = table.select(self.names)
        for spec, column in zip(self.columns, chosen.columns, strict=True):
            problem, hint = infinity(column, chosen), OTHER_VALUE
            if column.problem is not None and column.problem.kind is None:
                problem, hint = column.problem, f"{name} was fitted to {spec.kind} there"
            if problem is not None:
                error = problem.error
                raise DataError(error.message, hint=hint, code=error.code, where=error.where)
        return chosen

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        if not self.columns or len(set(self.names)) < len(self.columns):
            return "columns must be one column or more, each with a name of its own"
        if self.scale == "none" and any((column.centre, column.spread) != (0.0, 1.0) for column in self.columns):
            return "scale must be 'standardize' where a column has a centre or a spread"
        if self.moments and {len(self.moments) - 1, *map(len, self.moments)} != {len(self.numeric)}:
            return "moments must be means and a line for each numeric column, each of as many numbers"
        return None


def _numbers(spec: ColumnSpec, table: Table, model: str) -> Array:
    """Return a column of numbers or dates, shape (n,), in its own units; DataError for what is none."""
    column = table[spec.name]
    if column.kind == spec.kind:
        return np.asarray(column.values)
    read = [spec.form.read_again(level) if column.kind == "text" else None for level in column.levels]
    values = np.array(read, dtype=np.float64)[column.values] if read else np.full(table.n_rows, np.nan)
    odd = np.flatnonzero(np.isnan(values))
    if not len(odd):
        return values
    strange = [column.levels[code] for code in np.unique(column.values[odd])] if column.is_category else []
    hint = f"{missing_hint(strange, table)}{OTHER_VALUE}"
    if _NUMBER_WITH_COMMA.fullmatch(_value(column, odd[0])):
        hint = decimal_hint()
    elif 2 * len(odd) > len(values) or column.kind != "text":
        hint = f"write {spec.name!r} as in training, such as {spec.form.example}, or train with rows written as these"
    said = (
        f"which is not a {spec.form.noun} ({len(values) - len(odd):,} of {len(values):,} values are), but {model} was "
        f"fitted to {spec.kind}s{f' written as {spec.written}' if spec.written else ''}"
    )
    raise _unfit(column, table, int(odd[0]), said, hint)


def level_codes(name: str, levels: tuple[str, ...], column: Column) -> tuple[Codes, UnknownLevels]:
    """Return a column of categories as codes into some levels, shape (n,); -1 for those that are told."""
    text = column if column.is_category else as_text(column)
    # Of whole numbers every digit is known.
    kind = column.kind if column.digits is None else text.kind
    codes: Codes = np.array(_places(levels, kind, text.levels), dtype=np.int64)[text.values]
    strange = text.values[codes < 0].tolist()
    values = tuple(text.levels[code] for code in dict.fromkeys(strange))
    return codes, UnknownLevels(name, values, len(strange))


# How rows to learn from are called where others are compared with them.
TRAINING_PART = "the training part"


def _unknown_levels(
    spec: ColumnSpec, codes: Codes, table: Table, strange: Sequence[UnknownLevels], model: str
) -> DataError:
    """Return the error for categories that no training row had: the first column in full, the others by name."""
    first, *others = strange
    known = listed(list(map(repr, spec.levels)), VALUES_SHOWN)
    hint = f"{OTHER_VALUE}, or {option('unknown', 'ignore')} goes on without it; {known} are known"
    said = f"unknown to {model}, in {counted(first.rows, 'row')}"
    if len(first.values) > 1:
        said += f" ({first.shown})"
    elif close := suggest(first.values[0], spec.levels):
        hint = f"did you mean {close!r}? {OTHER_VALUE.capitalize()}"
    if others:
        said += f"; so {'does' if len(others) == 1 else 'do'} {listed([repr(one.column) for one in others])}"
    return _unfit(table[spec.name], table, int(np.argmax(codes < 0)), said, hint, code="data.unknown_level")


def _unfit(
    column: Column, table: Table, row: int, said: str, hint: str, *, code: str = "data.types_differ"
) -> DataError:
    """Return the error for a value that a model cannot take."""
    return value_problem(column, table, row, said, hint=hint, value=_value(column, row), code=code).error


def _columns_missing(absent: list[str], table: Table, others: Sequence[str], model: str) -> DataError:
    """Return the error that lists the columns that are not there, and what the first may be called instead."""
    close = suggest(absent[0], tuple(others))
    hint = comment_hint(table.names) or f"the columns are {listed(table.names, 20)}"
    by_position = [all(map(_BY_POSITION.fullmatch, names)) for names in (absent, table.names)]
    if table.format == "csv" and by_position[0] != by_position[1]:
        ways = "name", f"{table.name} needs a header, and no {option('header', False)}"
        if by_position[0]:
            ways = "position", f"if {table.name} has no header, {option('header', False)} says so"
        hint = f"{model} knows its columns by {ways[0]}: {ways[1]}"
    elif close:
        hint = f"did you mean {close!r}?"
    lacks = f"lacks {len(absent):,} columns that {model} needs: {listed([repr(name) for name in absent], 20)}"
    if len(absent) == 1:
        lacks = f"has no column {absent[0]!r}, which {model} needs"
    where = {"file": table.name, "column": absent[0]}
    return DataError(f"{table.name} {lacks}", hint=hint, code="data.columns_differ", where=where)


def _places(levels: Sequence[str], kind: str, found: Sequence[str]) -> list[int]:
    """Return the place of each level of a column among those of the model, -1 for none.

    The same text, else the only one that means the same: 1.0 and 1, or TRUE and true. Which kind a file's column is
    depends on all of its values, which a block of its rows does not have; so each value speaks for itself.
    """
    known = {level: code for code, level in enumerate(levels)}
    if kind != "number" and all(level in known for level in found):
        return [known[level] for level in found]
    by_meaning: dict[float | str | None, int] = {}
    for level, code in known.items():
        meant = _meaning(level)
        # Two of one meaning leave it open which is meant.
        by_meaning[meant] = -1 if meant in by_meaning else code
    by_meaning.pop(None, None)
    places = []
    for level in found:
        same = level in known and (kind != "number" or _meaning(level) in by_meaning)
        places.append(known[level] if same else by_meaning.get(_meaning(level), -1))
    return places


def _meaning(text: str) -> float | str | None:
    """Return the truth value or the number that a text is; None beyond 2^53, where numbers are not all told apart."""
    if (folded := text.casefold()) in {"true", "false"}:
        return folded
    number = float(text) if is_number(text) else math.inf
    return number if abs(number) < EXACT_INTEGERS else None


def _value(column: Column, row: int | np.intp) -> str:
    """Return a value as text."""
    text = as_text(column.take(np.array([row])))
    return text.levels[int(text.values[0])]
