"""The first pass over inputs of any size: columns, counts, scales, levels, a random sample, and the way to all rows."""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import match_tables, select_columns
from kerntest.data.diagnostics import apart_text, left_out_unevenly, repeated_rows, time_trouble, unequal_sizes
from kerntest.data.kinds import as_text
from kerntest.data.messages import counted, one_of, option_value
from kerntest.data.rows import missing_error, no_rows_left, reason_from_facts
from kerntest.data.table import Column, Table
from kerntest.errors import DataError, UndecidedError
from kerntest.inference.exact import inputs_of
from kerntest.inference.features.batches import Input, open_input
from kerntest.inference.features.column_facts import MOST_LEVELS, NumberFacts, TableFacts, complete_rows
from kerntest.inference.sides import Variable
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kerntest.data.blocks import Piece
    from kerntest.data.table import Kind
    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.sides import Reading, Scale

TRUTH = frozenset({"true", "false"})


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows of input 0 or 1, one after another, with so many used rows of the input before them."""

    source: int
    piece: Piece
    used_before: int = 0

    def tables(self, kinds: Mapping[str, Kind]) -> Iterator[tuple[int, Table]]:
        """Yield how many rows of the input stand before some, and these, in the kinds that the values have."""
        for block in self.piece.blocks():
            columns = map(_as_wanted, block.table.columns, kinds.values())
            yield block.first_row, replace(block.table, columns=tuple(columns))

    def rows(self, kinds: Mapping[str, Kind], scaling: Variable) -> Iterator[Points]:
        """Yield the rows without missing values, some at a time, scaled and coded as the sample was."""
        for _, table in self.tables(kinds):
            kept = complete_rows(table)
            used = table if kept is None else table.take(kept)
            if used.n_rows:
                yield _points(used, scaling)


def _as_wanted(column: Column, kind: Kind) -> Column:
    """Return a column in the kind that is wanted where that changes nothing; else as it is."""
    if column.kind == kind:
        return column
    if kind == "boolean" and column.kind == "text" and TRUTH.issuperset(map(str.lower, column.levels)):
        # True and true are one value in a column of truth values.
        levels = tuple(sorted(set(map(str.lower, column.levels))))
        places = np.array([*(levels.index(level.lower()) for level in column.levels), -1], dtype=np.int64)
        return replace(column, kind="boolean", values=places[column.values], levels=levels)
    if kind == "text" and column.kind == "boolean":
        return as_text(column)
    if column.missing.all():
        nothing = np.int64(-1) if kind in {"boolean", "text"} else np.float64(np.nan)
        return Column(column.name, kind, np.full(len(column.values), nothing))
    return column


def _points(table: Table, scaling: Variable) -> Points:
    """Return rows without missing values as kernels see them."""
    columns = {column.name: column for column in table.columns}
    numeric = np.empty((table.n_rows, len(scaling.numeric_names)), order="F")
    for place, name in enumerate(scaling.numeric_names):
        np.subtract(columns[name].values, scaling.centre[place], out=numeric[:, place])
        numeric[:, place] /= scaling.spread[place]
    codes = np.empty((table.n_rows, len(scaling.category_names)), dtype=np.int64, order="F")
    for place, name in enumerate(scaling.category_names):
        places = np.searchsorted(
            np.array(scaling.levels[place], dtype=object), np.array(columns[name].levels, dtype=object)
        )
        codes[:, place] = places[columns[name].values]
    return Points(numeric, codes)


@contextmanager
def survey(
    data: Sequence[Any],
    reading: Reading,
    scale: Scale,
    seed: int,
    engine: Engine,
    *,
    progress: Progress | None = None,
    sampled: int,
) -> Iterator[Survey]:
    """Go through one input, or two with the same columns, once; they stay open until the end of the `with`.

    Cost: one pass over the files; memory for a few pieces, and for CSV up to 16 MB for the whole file.
    """
    one_of("missing", reading.missing, ("error", "drop"))
    letters = ("x", "y") if len(data) > 1 else ("data",)
    with ExitStack() as stack:
        opened = (
            open_input(one, None if isinstance(one, Table) else letter, reading.categorical, reading.csv)
            for one, letter in zip(data, letters, strict=True)
        )
        found = Survey([stack.enter_context(one) for one in opened], reading, engine, sampled, seed)
        found.run(scale, progress)
        yield found


class Survey:
    """What a first pass over open inputs has found, and the way to the rows for a second.

    Attributes
    ----------
    names : tuple of str
        How messages call each input.
    kinds : dict of str to str
        What each column is.
    rows, n : tuple of int
        Rows of each input, and those without missing values.
    columns, left_out : tuple of str
        The columns used, in the order of the first input, and those that cannot tell anything.
    sample : Variable
        Pooled rows, drawn uniformly and blind to the input they are in, scaled, in random order.
    warnings : tuple of str
    inputs : tuple of InputRecord
    """

    def __init__(self, inputs: Sequence[Input], reading: Reading, engine: Engine, sampled: int, seed: int) -> None:
        self._inputs, self._reading, self._engine = inputs, reading, engine
        self._sampled, self._seed = sampled, seed
        # Columns that are text after all, and where that is seen.
        self._texts: list[dict[str, str]] = [{} for _ in inputs]
        self._used: list[int] = []
        self.names = tuple(one.head.name for one in inputs)

    def run(self, scale: Scale, progress: Progress | None) -> None:
        """Go through all rows; once more where columns turn out to be text."""
        while True:
            heads, warnings = self._matched()
            for one, head in zip(self._inputs, heads, strict=True):
                one.settle(head, self._reading.missing)
            self.kinds = {column.name: column.kind for column in heads[0].columns}
            facts = self._counted(progress)
            turned = [self._turned(*both) for both in zip(self._inputs, facts, self._texts, strict=True)]
            if not any(turned):
                break
        for name, found in zip(self.names, facts, strict=True):
            if found.first_missing is not None and self._reading.missing == "error":
                raise missing_error(found.first_missing[0], found.missing, found.first_missing[1], ())
            if found.rows and not found.used:
                raise no_rows_left(name, found.missing, ())
        scaling, reasons = _scaling(self.kinds, facts, scale)
        if not scaling.names:
            raise DataError(
                f"no column of {' and '.join(self.names)} is left to compare: {'; '.join(reasons.values())}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": self.names[0]},
            )
        self.rows, self.n = tuple(one.rows for one in facts), tuple(one.used for one in facts)
        self.columns = tuple(name for name in self.kinds if name not in reasons)
        self.left_out = tuple(reasons)
        self.sample = replace(scaling, points=_sampled(facts, scaling, self._sampled))
        self.warnings = (
            *dict.fromkeys(text for one in self._inputs for text in one.warnings),
            *warnings,
            *(text for counts in zip(self.names, self.rows, self.n, strict=True) for text in _dropped(*counts)),
            *(_misleading(self.names, self.kinds, facts, scaling) if len(facts) > 1 else ()),
            *reasons.values(),
        )
        digests = self._engine.here.map(Input.digest, self._inputs)
        read = zip(self._inputs, self.rows, digests, strict=True)
        self.inputs = inputs_of([replace(one.head, n_rows=n, sha256=digest) for one, n, digest in read], self.n)

    @property
    def n_parts(self) -> int:
        """Number of parts of all inputs."""
        return len(self._used)

    def parts(self) -> Iterator[Part]:
        """Yield the parts of all inputs in order; those of CSV hold their rows and are read as they are asked for."""
        before = [0] * len(self._inputs)
        for part, count in zip(self._parts()[0], self._used, strict=True):
            yield replace(part, used_before=before[part.source])
            before[part.source] += count

    def _parts(self) -> tuple[Iterator[Part], int]:
        """Return the parts of all inputs, and about how many there are."""
        pieces = [one.pieces(self.kinds, self._engine.threads) for one in self._inputs]
        parts = (Part(source, piece) for source, some in enumerate(pieces) for piece in some.items)
        return parts, sum(some.count for some in pieces)

    def move_to_its_mean(self) -> None:
        """Make the mean of the sample the origin of the numbers of all rows."""
        sample, mean = self.sample, self.sample.points.numeric.mean(axis=0)
        points = Points(sample.points.numeric - mean, sample.points.codes)
        self.sample = replace(sample, points=points, centre=sample.centre + mean * sample.spread)

    def _matched(self) -> tuple[list[Table], tuple[str, ...]]:
        """Return the first rows of each input with the columns of the test, and what was left out."""
        heads = [
            replace(
                one.head,
                columns=tuple(as_text(column) if column.name in texts else column for column in one.head.columns),
            )
            for one, texts in zip(self._inputs, self._texts, strict=True)
        ]
        reading = self._reading
        if len(heads) == 1:
            return [select_columns(heads[0], reading.columns, reading.exclude)], ()
        try:
            x, y, warnings = match_tables(
                *heads,
                columns=reading.columns,
                exclude=reading.exclude,
                common=reading.common,
                categorical=reading.categorical,
            )
        except DataError as error:
            name = str(error.where.get("column", ""))
            places = [
                f"{one.name}, {texts[name]}" for one, texts in zip(heads, self._texts, strict=True) if texts.get(name)
            ]
            if error.code == "data.types_differ" and places:
                # The first rows do not show what made a column one of text.
                raise DataError(
                    f"column {name!r} is text in one table and not in the other ({'; '.join(places)})",
                    hint=error.hint,
                    code=error.code,
                    where=error.where,
                ) from None
            raise
        return [x, y], warnings

    def _counted(self, progress: Progress | None) -> list[TableFacts]:
        """Return what all rows of each input tell, and take note of how many are used of each part."""
        facts = [TableFacts(source) for source in range(len(self._inputs))]
        self._used = []
        parts, total = self._parts()
        work = partial(_facts_of, self.kinds, self._seed, self._sampled)
        for found in self._engine.map(work, parts, progress, total=total):
            facts[found.source].add(found, self._sampled)
            self._used.append(found.used)
        return facts

    @staticmethod
    def _turned(one: Input, found: TableFacts, texts: dict[str, str]) -> bool:
        """Take note of the columns that are text after all; say whether there are any."""
        for name, turned in found.turned.items():
            turned.refuse_stray(found.present[name] - found.strange[name], found.present[name])
            if one.settled or name in texts:
                shown = option_value([name])
                raise DataError(
                    f"column {name!r} of {one.head.name} is {turned.column.kind} in some of its rows only",
                    hint=f"--categorical {shown} takes it as text; --exclude {shown} leaves it out",
                    code="data.types_differ",
                    where={"file": one.head.name, "column": name},
                )
            texts[name] = turned.place
        return bool(found.turned)


def _facts_of(kinds: Mapping[str, Kind], seed: int, sampled: int, part: Part) -> TableFacts:
    """Return what the rows of a part tell."""
    facts = TableFacts(part.source)
    for before, table in part.tables(kinds):
        facts.add(TableFacts.of(table, kinds, before, part.source, most=sampled, seed=seed), sampled)
    return facts


def _scaling(kinds: Mapping[str, Kind], facts: Sequence[TableFacts], scale: Scale) -> tuple[Variable, dict[str, str]]:
    """Return how columns are scaled and coded, without rows, and which are left out and why."""
    n = sum(found.used for found in facts)
    numbers: dict[str, tuple[float, float]] = {}
    levels: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, str] = {}
    for name, kind in kinds.items():
        reason, value = None, 0.0
        if kind in {"boolean", "text"}:
            known = [found.levels.get(name, set()) for found in facts]
            both = set().union(*(some or () for some in known))
            if None in known or len(both) > MOST_LEVELS:
                reason = (
                    f"column {name!r} has more than {MOST_LEVELS:,} different values, too many for categories of so many "
                    "rows, and is left out"
                )
            levels[name], constant = tuple(sorted(both)), len(both) == 1
        else:
            pooled = _pooled(facts, name)
            constant, value, spread = pooled.low == pooled.high, pooled.low, math.sqrt(pooled.squares / pooled.count)
            if not math.isfinite(spread) or not (constant or spread):
                raise UndecidedError(
                    f"the values of column {name!r} are too large, or too close together, for their spread to be a number",
                    hint="divide them by a power of ten, or leave the column out with --exclude "
                    + option_value([name]),
                    code="undecided.distance_range",
                )
            numbers[name] = (pooled.mean, spread) if scale == "standardize" else (0.0, 1.0)
        reason = reason or reason_from_facts(
            name, kind, n_rows=n, n_levels=len(levels.get(name, ())), constant=constant, value=value
        )
        if reason is not None:
            reasons[name] = reason
    numeric = tuple(name for name in numbers if name not in reasons)
    categories = tuple(name for name in levels if name not in reasons)
    centre, spreads = (np.array([numbers[name][k] for name in numeric]) for k in (0, 1))
    nothing = Points(np.empty((0, len(numeric))), np.empty((0, len(categories)), dtype=np.int64))
    return Variable(nothing, centre, spreads, numeric, categories, tuple(levels[name] for name in categories)), reasons


def _pooled(facts: Sequence[TableFacts], name: str) -> NumberFacts:
    """Return what is known of a column of all inputs together."""
    pooled = replace(facts[0].numbers[name])
    for found in facts[1:]:
        pooled.add(found.numbers[name])
    return pooled


def _sampled(facts: Sequence[TableFacts], scaling: Variable, most: int) -> Points:
    """Return the sampled rows of all inputs together, in the random order of their keys."""
    drawn, *others = [found.sample for found in facts if found.sample is not None]
    for other in others:
        drawn = drawn.with_others(other, most)
    numeric = np.empty((len(drawn.keys), len(scaling.numeric_names)))
    for place, name in enumerate(scaling.numeric_names):
        numeric[:, place] = (drawn.columns[name] - scaling.centre[place]) / scaling.spread[place]
    codes = np.empty((len(drawn.keys), len(scaling.category_names)), dtype=np.int64)
    for place, name in enumerate(scaling.category_names):
        codes[:, place] = np.searchsorted(np.array(scaling.levels[place], dtype=object), drawn.columns[name])
    return Points(numeric, codes)


def _dropped(name: str, rows: int, used: int) -> list[str]:
    return [f"{name}: {counted(rows - used, 'row')} of {rows:,} with missing values left out"] if rows > used else []


def _misleading(
    names: Sequence[str], kinds: Mapping[str, Kind], facts: Sequence[TableFacts], scaling: Variable
) -> list[str]:
    """Return what a reader must know before believing a two-sample test of these inputs; see `misleading`."""
    x, y = facts
    missing = {name: x.missing[name] + y.missing[name] for name in kinds}
    warnings = [
        *left_out_unevenly(names, [x.rows, y.rows], [x.rows - x.used, y.rows - y.used], missing),
        *unequal_sizes(names, [x.used, y.used]),
    ]
    for name in x.numbers:
        both, pooled = (x.numbers[name], y.numbers[name]), _pooled(facts, name)
        trouble = time_trouble(
            kinds[name],
            apart_text([(one.low, one.high) for one in both], names),
            counts=partial(all, [one.counts_rows for one in both]),
            runs=partial(all, [one.runs for one in both]),
        )
        # Columns of one value are left out.
        if trouble is not None and pooled.low < pooled.high:
            warnings.append(f"column {name!r} {trouble}; leave it out with --exclude {option_value([name])}")
    return [*warnings, *_repeated(names, facts, scaling)]


def _repeated(names: Sequence[str], facts: Sequence[TableFacts], scaling: Variable) -> list[str]:
    """Return the warnings about repeated rows that the samples show: of many more rows only of such as occur very often."""
    drawn = [found.sample for found in facts if found.sample is not None]
    columns = {name: np.concatenate([one.columns[name] for one in drawn]) for name in scaling.names}
    n = sum(len(one.keys) for one in drawn)
    numeric = np.column_stack([np.empty((n, 0)), *(columns[name] for name in scaling.numeric_names)])
    codes = [np.unique(columns[name], return_inverse=True)[1] for name in scaling.category_names]
    coded = np.column_stack([np.empty((n, 0), dtype=np.int64), *codes])
    return repeated_rows(names, numeric, coded, len(drawn[0].keys), totals=[found.used for found in facts])
