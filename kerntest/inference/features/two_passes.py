"""Both passes over inputs of any size: what the first finds of their columns, and sums over all rows in the second."""

from __future__ import annotations

import math
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kerntest.data import columns as table_columns
from kerntest.data import source as sources
from kerntest.data.column_types import as_text
from kerntest.data.diagnostics import two_sample_warnings
from kerntest.data.facts import MOST_LEVELS, TableFacts, complete_rows
from kerntest.data.missing import GAP, PRESENCE, check_policy, filled, presence_name
from kerntest.data.read import begins_as, blocks_of, located_files, read_table
from kerntest.data.row_choice import EVERY_ROW
from kerntest.data.table import Column, Piece, Pieces, RowBlock, Table, refuse_empty
from kerntest.engines.engine import fitting
from kerntest.engines.plan import tell
from kerntest.errors import DataError, UndecidedError, UsageError, counted, option
from kerntest.inference import exact
from kerntest.inference.relabelling.permuted_pairs import centred_matrix
from kerntest.inference.sides import Variable, matched
from kerntest.inference.work_of_tests import piece_bytes
from kerntest.kernels.base import Points
from kerntest.matrices.factor import parse_features
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.facts import RandomRows
    from kerntest.data.missing import Fillings, MissingPolicy
    from kerntest.data.row_choice import RowChoice
    from kerntest.data.table import Kind
    from kerntest.engines.engine import Progress
    from kerntest.inference.sides import Options, Reading, Scale
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import FeatureMap

# Rows from which bandwidths, landmarks and the error of features come.
SAMPLED_ROWS = 2000
# A CSV file up to this size is read at once, like every table of the exact test.
SMALL_BYTES = 1 << 24
# Blocks of a larger one, of which the first tells the types of columns. A block must hold its longest row.
CSV_BLOCK_BYTES = 1 << 22
# Rows that are typed and worked on together: fewer of many columns, so that their values take no more than 16 MB.
BATCH_ROWS, BATCH_VALUES = 1 << 16, 1 << 21
TRUTH = frozenset({"true", "false"})
# Nystroem features of an eigenvalue of K(C, C) below this share of the largest cost time and show nothing, and their
# inverses would enlarge rounding. Each would add less than this share to k(x, x), on average over the landmarks.
SMALLEST_SHARE = 1e-7
# The features leave out so much of a kernel matrix that this should be known.
LARGE_ERROR = 0.1


class SecondPass(Protocol):
    """What a second pass sums over the rows of each input."""

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
    return [warning] if error > LARGE_ERROR else []


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
    for _, read in _tables(piece, kinds):
        table = filled(read, fillings)
        complete = complete_rows(table)
        rows = points_of((table if complete.all() else table.take(complete)).columns, scaling)
        if len(rows):
            work.add(total, rows, source, before)
        before += len(rows)
    return source, total


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
    cannot tell anything; `sample` are pooled rows, drawn uniformly and blind to the input they are in, in random order.
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
    ) -> None:
        super().__init__(options, threads)
        self.adapted = (*why, *self.adapted)
        self._command, self._progress, self.reading = command, progress, reading
        self.features = features.strip().lower()
        self.kind, self.number = parse_features(features)
        # Both passes have the same parts, on however many threads the sums then fit.
        self._at_once = self.engine.threads

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
            for source, some in self.engine.map(work, parts, self._progress, total=total):
                self._before.append(facts[source].used)
                facts[source].add(some, self._sampled)
            turned = sum(one.turned(found) for one, found in zip(self._inputs, facts, strict=True)) > 0
        pooled = TableFacts(" and ".join(names), self.kinds)
        for one, found in zip(self._inputs, facts, strict=True):
            if found.first_missing is not None and missing == "error":
                raise table_columns.missing_error(found.first_missing[0], found.missing, found.first_missing[1], ())
            if not found.rows:
                raise one.choice.nothing_left(found.name)
            if not found.used:
                raise table_columns.no_rows_left(found.name, found.missing, ())
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
        self.names, self.left_out = names, tuple(reasons)
        self.rows, self.n = tuple(one.rows for one in facts), tuple(one.used for one in facts)
        every = (one for name in self.kinds for one in (name, presence_name(name)))
        self.columns = tuple(name for name in every if name in scaling.names)
        self.sample = replace(scaling, points=self._points(pooled.sample, scaling))
        told = [text for one in self._inputs for text in one.warnings]
        needed = [*self.kinds] if len(self.kinds) == 1 else []
        lost = [
            text
            for one in facts
            for text in table_columns.lost_rows(one.name, one.rows - one.used, one.rows, one.missing, needed)
        ]
        misleading: list[str] = []
        if len(facts) > 1:
            # Repeated rows as samples of each input show them.
            sampled = [self._points(one.sample, scaling) for one in facts if one.sample is not None]
            rows = [[*one.numeric.T, *one.codes.T] for one in sampled]
            misleading = list(two_sample_warnings(facts, scaling.numeric_names, rows))
        self.warnings = (*dict.fromkeys(told), *warnings, *lost, *misleading, *reasons.values())
        digests = self.engine.here.map(Input.digest, self._inputs)
        read = zip(self._inputs, self.rows, digests, strict=True)
        self.tables = [replace(one.head, n_rows=n, sha256=digest) for one, n, digest in read]

    def sums(
        self, work: SecondPass, *, step: str, held: Callable[[int], float], units: Mapping[str, float]
    ) -> list[Array]:
        """Go through the inputs again, and return the sums over each: they do not depend on what runs side by side.

        `held` are the bytes that the sums take on so many threads.
        """
        columns, count = len(self.columns), len(self._before)

        def taken(threads: int) -> float:
            return threads * piece_bytes(columns) + held(threads)

        what, hint = "the sums of features take", f"fewer {option('features')} take less"
        self.engine = fitting(self.engine, taken, what=what, hint=hint)
        tell(
            self._command,
            sum(self.n),
            columns,
            steps=(f"{step}, in {counted(count, 'piece')} read twice",),
            held=taken(self.engine.threads),
            work=units,
            engine=self.engine,
            method="features",
            besides=time.perf_counter() - self.started,
        )
        sums = [np.zeros(work.shape(source)) for source in range(len(self.n))]
        scaling = replace(self.sample, points=self.sample.points.take(slice(0)))
        over_part = partial(part_sums, work=work, kinds=self.kinds, scaling=scaling, fillings=self.fillings)
        # Those of CSV hold their rows and are read as they are asked for.
        parts = zip(self._parts()[0], self._before, strict=True)
        for source, some in self.engine.map(over_part, parts, self._progress, total=count):
            sums[source] += some
        return sums

    def _points(self, rows: RandomRows, scaling: Variable) -> Points:
        """Return some rows as kernels see them."""
        table = Table("", rows.columns, len(rows.keys), "array")
        return points_of(filled(table, self.fillings).columns, scaling)

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


class Input:
    """One input: a reader of files in pieces with the first rows of all columns as its head; or a table in memory."""

    def __init__(
        self, head: Table, reader: Any = None, found: sources.Found | None = None, choice: RowChoice = EVERY_ROW
    ) -> None:
        self.head, self.reader, self.warnings, self.choice = head, reader, head.warnings, choice
        self.stored = () if found is None else found.files
        # Whether the types of the head are those of all rows; which columns are text after all, and where that is seen.
        self.settled = reader is None or head.format != "csv"
        self.texts: dict[str, str] = {}
        self._used = self.head

    def count(self) -> int:
        """Return the number of rows, counted if need be."""
        if self.reader is None:
            return self.head.n_rows
        if self.settled and not self.choice:
            return int(self.reader.total)
        pieces = self.choice.pieces(self.reader, {self.head.names[0]: "text"}).items
        return sum(block.table.n_rows for piece in pieces for block in piece.blocks())

    def turned(self, found: TableFacts) -> bool:
        """Take columns that are text in some rows for text from the beginning; say whether there are any."""
        for name, other in found.others.items():
            present = found.rows - found.missing[name]
            other.refuse_stray(present - found.strange[name], present)
            if self.settled or name in self.texts:
                raise DataError(
                    f"column {name!r} of {found.name} is {other.column.kind} in some of its rows only",
                    hint=f"{option('categorical', [name])} takes it as text; {option('exclude', [name])} leaves it out",
                    code="data.types_differ",
                    where={"file": found.name, "column": name},
                )
            self.texts[name] = other.place
        columns = (as_text(column) if column.name in found.others else column for column in self.head.columns)
        self.head = replace(self.head, columns=tuple(columns))
        return bool(found.others)

    def settle(self, matched: Table, missing: MissingPolicy) -> None:
        """Take the columns that are used, and the forms in which they are written, which another input may have told."""
        self._used, self.warnings = matched, matched.warnings
        if self.reader is not None:
            self.reader.written = {column.name: column.written for column in matched.columns if column.written}
        elif missing == "error":
            # All rows are here, so that missing values are refused at once.
            table_columns.apply_missing(matched, missing)

    def pieces(self, kinds: Mapping[str, Kind], at_once: int) -> Pieces:
        """Return some columns of all rows, in pieces of which so many are worked on side by side."""
        height = min(BATCH_ROWS, max(1, BATCH_VALUES // len(kinds)))
        if self.reader is None:
            table = self._used.select(list(kinds))
            return Pieces(_slices(table, height), -(-table.n_rows // height))
        self.choice = self.choice.settled(self.reader, at_once)
        if self.settled:
            self.reader.rows = height
            return self.choice.pieces(self.reader, kinds, at_once=at_once)
        # Truth values are texts until all of them have been seen.
        known: dict[str, Kind] = {name: "text" if kind == "boolean" else kind for name, kind in kinds.items()}
        pieces = self.choice.pieces(self.reader, known)
        # Bytes that are compressed make more blocks.
        return Pieces(pieces.items, max(2, pieces.count))

    def digest(self) -> str | None:
        """Return the digest of the files as stored, as `read_table` does; None for data in memory."""
        return sources.digest_of(_stored_bytes(*file) for file in self.stored) if self.stored else self.head.sha256


def _slices(table: Table, height: int) -> Iterator[Piece]:
    for start in range(0, table.n_rows, height):
        part = table.take(np.arange(start, min(start + height, table.n_rows)))
        if part.lines is None:
            part = Table(part.name, part.columns, part.n_rows, part.format, offset=start)
        yield Piece(RowBlock(part, None, start), start + part.n_rows)


def _stored_bytes(name: str, location: Path) -> Iterator[bytes]:
    with sources.open_file(location, name) as file:
        yield from sources.chunks_of(file)


@contextmanager
def open_input(data: Any, name: str, reading: Reading) -> Iterator[Input]:
    """Open files that are read in pieces, or data in memory, which messages call by `name`; errors as in `read_table`."""
    csv, whole = reading.csv, partial(read_table, categorical=reading.categorical, **reading.csv.words())
    if isinstance(data, Input):
        # Opened before, by who wanted to see its columns.
        yield data
        return
    if not isinstance(data, (str, Path)):
        yield Input(whole(data, name=None if isinstance(data, Table) else name))
        return
    with ExitStack() as stack:
        shown, found = located_files(data, stack)
        form, size, methods = begins_as(*found.files[0]), 0, set()
        for part, location in found.files:
            with sources.open_file(location, part) as file:
                methods.add(sources.compression_of(file.read(sources.MAGIC_BYTES)) or "")
                size += file.seek(0, os.SEEK_END)
        if form == "json" or (form == "csv" and size <= SMALL_BYTES // (8 if any(methods) else 1)):
            yield Input(whole(found.files[0][1] if found.copied else data, name=shown))
            return
        block_bytes = CSV_BLOCK_BYTES if form == "csv" else None
        reader: Any = blocks_of(shown, found, form, csv, stack, block_bytes=block_bytes)
        # Names that are not there are refused before any row is read.
        texts = table_columns.match_names(reading.categorical, reader.names, shown)
        refuse_empty(reader.name, reader.total, len(reader.names))
        head = reader.head(texts)
        files, compression = tuple(part for part, _ in found.files), ", ".join(sorted(methods - {""})) or None
        head = replace(head, files=files, compression=compression, chosen_by=csv.choice.said)
        yield Input(head, reader, found, csv.choice.known(head))
