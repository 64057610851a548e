"""Passes over inputs of any size: what the first finds of their columns, a sample of rows, and sums over all rows in the last."""

from __future__ import annotations

import math
import time
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from kerntest.data import columns as table_columns
from kerntest.data.column_types import as_text
from kerntest.data.diagnostics.copies import repeated_rows, same_first_rows
from kerntest.data.diagnostics.dependent_rows import dependent_rows
from kerntest.data.diagnostics.misleading import identifiers, telling_apart, two_sample_warnings
from kerntest.data.facts import MOST_LEVELS, RandomRows, TableFacts, complete_rows, lone_values_among, mixed
from kerntest.data.gaps import lost_rows, missing_error, no_rows_left
from kerntest.data.missing import GAP, PRESENCE, check_policy, filled, presence_name
from kerntest.data.table import Column, Table
from kerntest.engines.engine import CURRENT, fitting
from kerntest.engines.plan import added, tell
from kerntest.errors import DataError, UndecidedError, UsageError, counted, option
from kerntest.inference import exact
from kerntest.inference.features.inputs import BATCH_ROWS, BATCH_VALUES, Input, open_input
from kerntest.inference.method import OneOfTests
from kerntest.inference.relabelling.permuted_pairs import centred_matrix
from kerntest.inference.sides import Variable, matched
from kerntest.inference.sizes.margins import MOST_LEFT_OUT
from kerntest.inference.work_of_tests import piece_bytes
from kerntest.kernels.base import Points
from kerntest.matrices.factor import parse_features
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.missing import Fillings, MissingPolicy
    from kerntest.data.table import Kind, Piece
    from kerntest.engines.engine import Progress
    from kerntest.inference.sides import Options, Reading, Scale
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import FeatureMap

    Keys: TypeAlias = NDArray[np.uint64]

# Rows from which bandwidths, landmarks and the error of features come.
SAMPLED_ROWS = 2000
# What a piece takes in a pass after the first, beside what the first has left: copies of its columns, and more columns.
SUMMED_BYTES, COPIES, SUMMED_COLUMNS = 12 * 10**6, 9.0, 36.0
TRUTH = frozenset({"true", "false"})
# Nystroem features of an eigenvalue of K(C, C) below this share of the largest cost time and show nothing, and their
# inverses would enlarge rounding. Each would add less than this share to k(x, x), on average over the landmarks.
SMALLEST_SHARE = 1e-7
# Standardised numbers are the same up to such a step: their last digits hang on the order of the rows, and on units.
VALUE_STEP = 2.0**-30
NO_KEY = np.uint64(2**64 - 1)


class SecondPass(Protocol):
    """What the last pass sums over the rows of each input."""

    def shape(self, source: int, /) -> tuple[int, ...]:
        """Return the shape of the sums over an input."""

    def add(self, total: Array, rows: Points, source: int, before: int, /) -> None:
        """Add some rows of an input, so many of it before them, to a total."""


def distinct_rows(points: Points) -> NDArray[np.intp]:
    """Return the first of each set of equal rows, in their order: a second one as a landmark shows nothing more."""
    whole = np.column_stack([points.numeric, points.codes])
    return np.sort(np.unique(whole, axis=0, return_index=True)[1]) if len(whole) else np.arange(0)


def refuse_indefinite(kernels: Sequence[Kernel]) -> None:
    """Refuse a kernel that no features stand for."""
    for kernel in kernels:
        if not kernel.positive_definite:
            raise UsageError(
                f"the kernel '{kernel}' is not positive definite: no features stand for it",
                hint=f"{option('method', 'exact')} takes it, or choose another kernel",
                code="usage.features",
            )


def errors(features: FeatureMap, rows: Points, Z: Array) -> tuple[float, float]:
    """Return what features Z of some rows leave out of their kernel K.

    The root mean square of Z Z' - K over pairs of different rows; and |A - A_z| / |A| in the Frobenius norm, A and A_z the
    centred K and Z Z'.
    """
    K = features.kernel(rows)
    apart = Z @ Z.T - K
    size, left_out = (float(np.linalg.norm(centred_matrix(one, "biased"))) for one in (K, apart))
    kernel_error = float(np.sqrt(np.mean(np.square(apart[~np.eye(len(K), dtype=bool)]))))
    return kernel_error, left_out / size if size > 0 else 0.0


def large_error(subject: str, error: float) -> list[str]:
    """Return a warning where the features leave out much of the kernel."""
    warning = (
        f"{subject} features leave out {percent(error)} of what the kernel sees; the test is valid, but sees less: ask for "
        f"more {option('features')}, or a larger bandwidth"
    )
    return [warning] if error > MOST_LEFT_OUT else []


# A part is some rows of input 0 or 1, one after another.


def part_facts(
    part: tuple[int, Piece], *, kinds: Mapping[str, Kind], seed: int, sampled: int, gaps: bool
) -> tuple[int, TableFacts]:
    """Return which input a part is of, and what its rows tell."""
    source, piece = part
    facts = TableFacts("", kinds)
    for before, table in _tables(piece, kinds):
        some = TableFacts.of(table, kinds, before=before, sampled=sampled, seed=(seed, source), gaps=gaps)
        facts.add(some, sampled)
    return source, facts


def part_sums(
    part: tuple[tuple[int, Piece], int],
    *,
    work: SecondPass,
    kinds: Mapping[str, Kind],
    scaling: Variable,
    fillings: Fillings,
) -> tuple[int, Array]:
    """Return which input a part is of, and the sums over its rows without missing values, so many before them."""
    (source, piece), before = part
    total = np.zeros(work.shape(source))
    for table in _complete(piece, kinds, fillings):
        rows = points_of(table.columns, scaling)
        if len(rows):
            work.add(total, rows, source, before)
        before += len(rows)
    return source, total


def part_keys(
    part: tuple[int, Piece],
    *,
    kinds: Mapping[str, Kind],
    scaling: Variable,
    fillings: Fillings,
    seed: int,
    known: Keys,
    most: int,
) -> tuple[list[RandomRows], NDArray[np.intp]]:
    """Return the rows of a part with the smallest `value_keys`, and how often those with known keys are there instead."""
    found, counts = [], np.zeros(len(known), dtype=np.intp)
    for table in _complete(part[1], kinds, fillings):
        keys = value_keys(points_of(table.columns, scaling), scaling, seed)
        place = np.searchsorted(known, keys)
        counts += np.bincount(place[known[place] == keys], minlength=len(known))
        others = np.flatnonzero(known[place] != keys)
        different, first = np.unique(keys[others], return_index=True)
        rows = others[first[:most]]
        found.append(RandomRows(different[:most], tuple(column.take(rows) for column in table.columns)))
    return found, counts


def value_keys(rows: Points, scaling: Variable, seed: int) -> Keys:
    """Return a random number for each row that its values alone decide, in whatever order rows and columns stand."""
    standardised = bool((scaling.spread != 1.0).any())
    numbers = np.rint(rows.numeric / VALUE_STEP) if standardised else rows.numeric
    keys = np.full(len(rows), seed, dtype=np.uint64)
    # 0.0 and -0.0 are one.
    for name, values in zip(scaling.names, (*(numbers + 0.0).T, *rows.codes.T), strict=True):
        of_column = mixed(np.array([zlib.crc32(name.encode())], dtype=np.uint64))
        keys += mixed(np.ascontiguousarray(values).view(np.uint64) ^ of_column)
    return mixed(keys)


def _complete(piece: Piece, kinds: Mapping[str, Kind], fillings: Fillings) -> Iterator[Table]:
    """Yield the rows of a part that miss no value, once gaps are filled."""
    for _, read in _tables(piece, kinds):
        table = filled(read, fillings)
        complete = complete_rows(table)
        yield table if complete.all() else table.take(complete)


def _tables(piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[tuple[int, Table]]:
    """Yield how many rows of the input stand before some, and these, in the kinds that the values have."""
    for block in piece.blocks():
        columns = map(_as_wanted, block.table.columns, kinds.values())
        yield block.first_row, replace(block.table, columns=tuple(columns))


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


def points_of(columns: Sequence[Column], scaling: Variable) -> Points:
    """Return rows without missing values as kernels see them, scaled and coded as others were."""
    by_name, n = {column.name: column for column in columns}, len(columns[0].values)
    numbers = np.array([by_name[name].values for name in scaling.numeric_names]).reshape(len(scaling.numeric_names), n)
    numbers -= scaling.centre[:, None]
    numbers /= scaling.spread[:, None]
    codes = np.empty((n, len(scaling.category_names)), dtype=np.int64, order="F")
    for place, name in enumerate(scaling.category_names):
        known, own = (np.array(levels, dtype=object) for levels in (scaling.levels[place], by_name[name].levels))
        codes[:, place] = np.searchsorted(known, own)[by_name[name].values]
    return Points(numbers.T, codes)


class Survey(exact.RunOfTest):
    """A test by features from its options on: what a first pass over open inputs finds, and sums in a second.

    `rows` and `n` count the rows of each input, all and those without missing values; `left_out` are the columns that
    cannot tell anything; `sample` are pooled rows, drawn uniformly and blind to the input they are in, in random order, and
    `sample_of_each` rows of each of two inputs.
    """

    def __init__(
        self,
        command: str,
        options: Options,
        features: str,
        reading: Reading,
        *,
        threads: int | None,
        progress: Progress | None,
        why: Sequence[str] = (),
        among: OneOfTests | None = None,
    ) -> None:
        super().__init__(options, threads)
        self.adapted, self.why = (*why, *self.adapted), tuple(why)
        self._command, self._progress, self.reading, self._among = command, progress, reading, among
        self.features = features.strip().lower()
        self.kind, self.number = parse_features(features)
        # Of several tests, of rows that are in memory, the sums over them take most of the time.
        self._told_early = progress if among is None else None
        # Both passes have the same parts, on however many threads the sums then fit.
        self._at_once, self._began = self.engine.threads, time.process_time()

    @contextmanager
    def over(self, data: Sequence[Any], sampled: int) -> Iterator[None]:
        """Go through one input, or two with the same columns, once; they stay open until the end of the `with`.

        Cost: one pass over the files; memory for a few pieces, and for CSV up to 16 MB for the whole file.
        """
        check_policy(self.reading.missing)
        names = ("x", "y") if len(data) > 1 else ("data",)
        with ExitStack() as stack:
            opened = (open_input(one, name, self.reading) for one, name in zip(data, names, strict=True))
            self._inputs = list(map(stack.enter_context, opened))
            self._sampled = max(SAMPLED_ROWS, sampled)
            self._first_pass([one.head.name for one in self._inputs], self.reading.missing)
            yield

    def _first_pass(self, names: list[str], missing: MissingPolicy) -> None:
        """Go through all rows; once more where columns turn out to be text."""
        turned = True
        while turned:
            heads, warnings = self._matched()
            for one, head in zip(self._inputs, heads, strict=True):
                one.settle(head, missing)
            self.kinds = {column.name: column.kind for column in heads[0].columns}
            facts = [TableFacts(name, self.kinds) for name in names]
            # Used rows of its input before each part.
            self._before: list[int] = []
            parts, total = self._parts()
            gaps = missing == "indicator"
            work = partial(part_facts, kinds=self.kinds, seed=self.options.seed, sampled=self._sampled, gaps=gaps)
            for source, some in self.engine.map(work, parts, self._told_early, total=total):
                self._before.append(facts[source].used)
                facts[source].add(some, self._sampled)
            turned = sum(one.turned(found) for one, found in zip(self._inputs, facts, strict=True)) > 0
        pooled = TableFacts(" and ".join(names), self.kinds)
        for one, found in zip(self._inputs, facts, strict=True):
            if found.first_missing is not None and missing == "error":
                first, row = found.first_missing
                raise missing_error(first, found.missing, row, (), found.rows)
            if not found.rows:
                raise one.choice.nothing_left(found.name)
            if not found.used:
                empty = [name for name, count in found.missing.items() if count == found.rows]
                raise no_rows_left(
                    found.name, found.missing, empty or [max(found.missing, key=found.missing.__getitem__)]
                )
            pooled.add(found, self._sampled)
        self.fillings = _fillings(pooled) if missing == "indicator" else {}
        scaling, reasons = _scaling(pooled, self.options.scale, self.fillings)
        if pooled.sample is None or not scaling.names:
            raise DataError(
                f"no column of {pooled.name} is left to compare: {'; '.join(reasons.values())}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": names[0]},
            )
        self.names, self.left_out, self._facts = names, tuple(reasons), facts
        self.rows, self.n = tuple(one.rows for one in facts), tuple(one.used for one in facts)
        every = (one for name in self.kinds for one in (name, presence_name(name)))
        self.columns = tuple(name for name in every if name in scaling.names)
        self._drawn, self.sample = (
            pooled.sample,
            replace(scaling, points=points_of(self._filled(pooled.sample), scaling)),
        )
        told = [text for one in self._inputs for text in one.warnings]
        needed = [*self.kinds] if len(self.kinds) == 1 else []
        lost = [
            text for one in facts for text in lost_rows(one.name, one.rows - one.used, one.rows, one.missing, needed)
        ]
        self.sample_of_each = [
            points_of(self._filled(one.sample), scaling) for one in facts if one.sample is not None and len(facts) > 1
        ]
        misleading = self._misleading(facts, heads, scaling.names) if len(facts) > 1 else []
        misleading += lone_values_among(pooled) if self.options.scale == "standardize" else ()
        self.warnings = (*dict.fromkeys(told), *warnings, *lost, *misleading, *table_columns.told_of_left_out(reasons))
        digests = self.engine.here.map(Input.digest, self._inputs)
        read = zip(self._inputs, self.rows, digests, strict=True)
        self.tables = [replace(one.head, n_rows=n, sha256=digest) for one, n, digest in read]

    def _misleading(self, facts: Sequence[TableFacts], heads: Sequence[Table], names: Sequence[str]) -> list[str]:
        """Return what would make a test of two inputs mislead, as far as their facts, samples of each and first rows tell."""
        sampled = zip(facts, self.sample_of_each, strict=True)
        rows = [(one.name, [*some.numeric.T, *some.codes.T], one.used) for one, some in sampled]
        told = list(two_sample_warnings(facts, names))
        # First rows tell of all where these can be different.
        able = [name for name in names if all(name in one.numbers and one.numbers[name].may_differ for one in facts)]
        told += identifiers(heads, able, told)
        # Repeated rows as samples of each input show them, of the columns that are read.
        copies = list(repeated_rows(rows, has_others=self.has_others))
        if not any(text.startswith("the files") for text in copies):
            compared = [name for name in self.kinds if name in names]
            copies += same_first_rows([one.select(compared) for one in heads])
        return told + copies

    def plan_sums(
        self,
        step: str,
        held: Callable[[int], float],
        units: Mapping[str, float],
        *,
        judged: Callable[[int], float],
        passes: int = 2,
        after: Sequence[Mapping[str, float]] = ({},),
    ) -> None:
        """Tell the plan of sums that hold so many bytes on so many threads, and find threads that fit into the memory.

        What comes `after` them takes least and most, and holds what is `judged`.
        """
        columns, current = len(self.columns), CURRENT.get()
        rows = min(max(self.n), BATCH_ROWS, BATCH_VALUES // max(columns, 1))
        values = 8.0 * rows * (COPIES * columns + SUMMED_COLUMNS)

        def need(threads: int) -> float:
            summed = threads * (SUMMED_BYTES + values) + held(threads)
            return current.taken(threads * piece_bytes(columns)) + max(summed, judged(threads))

        what, hint = "the sums of features take", f"fewer {option('features')} take less"
        self.engine = fitting(self.engine, need, what=what, hint=hint)
        told = f"{step}, in {counted(len(self._before), 'piece')} read {passes} times"
        among = self._among or OneOfTests(1, sum(self.n), 1.0)
        if self._among is not None:
            told = f"{counted(among.tests, 'pair')} by features, each of about {told}"
        rows, times, beside = among.rows, among.times, among.beside
        threads = self.engine.threads
        if times:
            summed = added(units, times=times)
            tell(
                self._command,
                rows,
                columns,
                steps=(told, *self.why, *(one.what for one in beside)),
                memory=(max(need(threads), *(one.held(threads) for one in beside), 0.0),) * 2,
                work=added(summed, added(after[0], times=among.tests), *(one.work for one in beside)),
                most=added(summed, added(after[-1], times=among.tests), *(one.most for one in beside)),
                engine=self.engine,
                method="features",
                besides=(times * passes - 1) * (time.process_time() - self._began) / self._at_once,
            )

    def draw_by_values(self) -> None:
        """Draw the sample anew, by what is in the rows: the same in whatever order they stand, and blind to their input.

        Rows that are frequent have their share of it, each other one counts once. Cost: one pass over the inputs.
        """
        drawn, n, seed = self._filled(self._drawn), sum(self.n), self.options.seed
        most, scaling = len(self._drawn.keys), replace(self.sample, points=self.sample.points.take(slice(0)))

        def some(keys: Keys, places: NDArray[np.intp]) -> RandomRows:
            return RandomRows(keys, tuple(column.take(places) for column in drawn))

        keys, first, times = np.unique(
            value_keys(self.sample.points, scaling, seed), return_index=True, return_counts=True
        )
        # That occur more than once among rows drawn by their places.
        keys, first = keys[times > 1], first[times > 1]
        told: Any = {"kinds": self.kinds, "scaling": scaling, "fillings": self.fillings, "seed": seed, "most": most}
        work = partial(part_keys, known=np.append(keys, NO_KEY), **told)
        parts, total = self._parts()
        sample, counts = some(keys[:0], first[:0]), np.zeros(len(keys) + 1)
        for found, others in self.engine.map(work, parts, self._told_early, total=total):
            counts += others
            for one in found:
                sample = sample.with_others(one, most)
        copies = np.rint(counts[:-1] * (most / n)).astype(np.intp)
        sample = sample.with_others(some(keys[copies == 0], first[copies == 0]), most - int(copies.sum()))
        which = np.repeat(np.arange(len(keys)), copies)
        number = np.arange(len(which)) - np.repeat(np.cumsum(copies) - copies, copies)
        sample = sample.with_others(some(mixed(keys[which] + number.astype(np.uint64)), first[which]), most)
        self.sample = replace(scaling, points=points_of(sample.columns, scaling))

    def sums(self, work: SecondPass) -> list[Array]:
        """Go through the inputs again, and return the sums over each: they do not depend on what runs side by side."""
        sums = [np.zeros(work.shape(source)) for source in range(len(self.n))]
        scaling = replace(self.sample, points=self.sample.points.take(slice(0)))
        over_part = partial(part_sums, work=work, kinds=self.kinds, scaling=scaling, fillings=self.fillings)
        # Those of CSV hold their rows and are read as they are asked for.
        parts = zip(self._parts()[0], self._before, strict=True)
        for source, some in self.engine.map(over_part, parts, self._progress, total=len(self._before)):
            sums[source] += some
        return sums

    def apart(self, *, rejects: bool) -> tuple[str, ...]:
        """Return what tells two inputs apart, and, of a test that rejects, what their first rows tell of rows that are not independent."""
        dependent = tuple(dependent_rows([one.head for one in self._inputs], self._matched()[0])) if rejects else ()
        return (*telling_apart(self._facts, self.columns, (*self.warnings, *dependent)), *dependent)

    @property
    def has_others(self) -> bool:
        """Whether an input has columns that are not tested."""
        return any({*one.head.names} - {*self.columns} for one in self._inputs)

    def _filled(self, rows: RandomRows) -> tuple[Column, ...]:
        """Return the columns of some rows without gaps."""
        return filled(Table("", rows.columns, len(rows.keys), "array"), self.fillings).columns

    def _parts(self) -> tuple[Iterator[tuple[int, Piece]], int]:
        """Return the parts of all inputs in order, and about how many there are."""
        pieces = [one.pieces(self.kinds, self._at_once) for one in self._inputs]
        parts = ((source, piece) for source, some in enumerate(pieces) for piece in some.items)
        return parts, sum(some.count for some in pieces)

    def _matched(self) -> tuple[list[Table], tuple[str, ...]]:
        """Return the first rows of each input with the columns of the test, and what was left out."""
        reading, heads = self.reading, [one.head for one in self._inputs]
        if len(heads) == 1:
            return [
                table_columns.check_usable(table_columns.named_columns(heads[0], reading.columns, reading.exclude))
            ], ()
        try:
            x, y, warnings = matched(heads[0], heads[1], reading)
        except DataError as error:
            # The first rows do not show what made a column one of text.
            texts = ((one.head.name, one.texts.get(str(error.where.get("column")))) for one in self._inputs)
            places = [f"{name}, {text}" for name, text in texts if text]
            error.hint = "; ".join(filter(None, [*places, error.hint]))
            raise
        return [x, y], warnings


def _fillings(pooled: TableFacts) -> Fillings:
    """Return what fills the gaps of columns, as `fillings` does of whole tables."""
    found: dict[str, float | None] = {}
    for name in pooled.missing:
        numbers = pooled.numbers.get(name)
        found[name] = numbers.mean if numbers is not None and numbers.low < numbers.high else None
    return found


def _scaling(pooled: TableFacts, scale: Scale, fillings: Fillings) -> tuple[Variable, dict[str, str]]:
    """Return how columns are scaled and coded, without rows, and which are left out and why."""
    numbers: dict[str, tuple[float, float]] = {}
    levels: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, str | None] = {}
    for name, kind in pooled.kinds.items():
        reason_to_leave_out = partial(table_columns.reason_from_facts, name, kind, n_rows=pooled.used)
        as_category = fillings.get(name, 0.0) is None
        if name in pooled.levels or as_category:
            known = pooled.levels.get(name, set())
            if (one := pooled.numbers.get(name)) is not None:
                known = set(as_text(Column(name, kind, np.array([one.low]))).levels)
            if known is not None and as_category:
                known |= {GAP}
            reasons[name] = (
                f"column {name!r} has more than {MOST_LEVELS:,} different values, too many for categories of so many "
                "rows, and is left out"
            )
            if known is not None:
                levels[name] = tuple(sorted(known))
                reasons[name] = reason_to_leave_out(n_levels=len(known), constant=len(known) == 1, value=0.0)
            continue
        found = pooled.numbers[name]
        if name in fillings:
            levels[presence_name(name)], reasons[presence_name(name)] = PRESENCE, None
        # Gaps are filled with the mean.
        constant, spread = found.low == found.high, math.sqrt(found.squares / pooled.used)
        if not math.isfinite(spread) or not (constant or spread):
            raise UndecidedError(
                f"the values of column {name!r} are too large, or too close together, for their spread to be a number",
                hint=f"divide them by a power of ten, or leave the column out with {option('exclude', [name])}",
                code="undecided.distance_range",
            )
        numbers[name] = (found.mean, spread) if scale == "standardize" else (0.0, 1.0)
        reasons[name] = reason_to_leave_out(n_levels=0, constant=constant, value=found.low)
    numeric, categories = ([name for name in known if reasons[name] is None] for known in (numbers, levels))
    centre, spreads = np.array([numbers[name] for name in numeric]).reshape(-1, 2).T
    nothing = Points(np.empty((0, len(numeric))), np.empty((0, len(categories)), dtype=np.int64))
    used_levels = tuple(levels[name] for name in categories)
    scaling = Variable(nothing, centre, spreads, tuple(numeric), tuple(categories), used_levels)
    return scaling, {name: reason for name, reason in reasons.items() if reason is not None}
