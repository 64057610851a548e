"""Both passes over inputs of any size: what the first finds of their columns, and sums over all rows in the second."""

from __future__ import annotations

import hashlib
import io
import math
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from kerntest.data.column_types import as_text, with_words
from kerntest.data.columns import match_names, select_columns
from kerntest.data.diagnostics import two_sample_warnings
from kerntest.data.facts import MOST_LEVELS, TableFacts, complete_rows
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.read import begins_as, located_files, open_blocks, read_table, unpacked_file
from kerntest.data.rows import apply_missing, missing_error, no_rows_left, reason_from_facts
from kerntest.data.source import MAGIC_BYTES, Source, compression_of, open_file
from kerntest.data.table import Column, Piece, Pieces, RowBlock, Table, refuse_empty
from kerntest.engines.engine import engine_of, tell
from kerntest.errors import DataError, UndecidedError, UsageError, counted, one_of, option_value
from kerntest.inference import exact
from kerntest.inference.exact_plan import piece_bytes, pieces_read_twice
from kerntest.inference.sides import Variable, matched
from kerntest.kernels.base import Points
from kerntest.matrices.factor import parse_features

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import BufferedReader

    from kerntest.data.columns import Patterns
    from kerntest.data.source import Found
    from kerntest.data.table import Kind
    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.sides import MissingPolicy, Options, Reading, Scale
    from kerntest.kernels.base import Array, Kernel
    from kerntest.report.results import record

# Rows from which bandwidths, landmarks and the error of features come.
SAMPLED_ROWS = 2000
# A CSV file up to this size is read at once, like every table of the exact test.
SMALL_BYTES = 1 << 24
# Blocks of a larger one. A block must hold its longest row.
CSV_BLOCK_BYTES = 1 << 22
# Rows from which the types of columns are told, of a schema or of the first block of CSV.
HEAD_ROWS = 1000
# Rows that are typed and worked on together: fewer of many columns, so that their values take no more than 16 MB.
BATCH_ROWS, BATCH_VALUES = 1 << 16, 1 << 21
TRUTH = frozenset({"true", "false"})


class SecondPass(Protocol):
    """What a second pass sums over the rows of each input."""

    def shape(self, source: int) -> tuple[int, ...]:
        """Return the shape of the sums over an input."""

    def add(self, total: Array, rows: Points, source: int, before: int) -> None:
        """Add some rows of an input, so many of it before them, to a total."""


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

    def facts(self, kinds: Mapping[str, Kind], seed: int, sampled: int) -> tuple[int, TableFacts]:
        """Return which input this is of, and what its rows tell."""
        facts = TableFacts("", kinds)
        for before, table in self.tables(kinds):
            facts.add(TableFacts.of(table, kinds, before=before, sampled=sampled, seed=(seed, self.source)), sampled)
        return self.source, facts

    def sums(self, work: SecondPass, kinds: Mapping[str, Kind], scaling: Variable) -> tuple[int, Array]:
        """Return which input this is of, and the sums over its rows without missing values."""
        total, before = np.zeros(work.shape(self.source)), self.used_before
        for _, table in self.tables(kinds):
            complete = complete_rows(table)
            rows = points_of((table if complete.all() else table.take(complete)).columns, scaling)
            if len(rows):
                work.add(total, rows, self.source, before)
            before += len(rows)
        return self.source, total


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
    numeric = np.empty((n, len(scaling.numeric_names)), order="F")
    for place, name in enumerate(scaling.numeric_names):
        np.subtract(by_name[name].values, scaling.centre[place], out=numeric[:, place])
        numeric[:, place] /= scaling.spread[place]
    codes = np.empty((n, len(scaling.category_names)), dtype=np.int64, order="F")
    for place, name in enumerate(scaling.category_names):
        known, own = (np.array(levels, dtype=object) for levels in (scaling.levels[place], by_name[name].levels))
        codes[:, place] = np.searchsorted(known, own)[by_name[name].values]
    return Points(numeric, codes)


class Survey:
    """A test by features from its options on: what a first pass over open inputs finds, and sums in a second.

    `rows` and `n` count the rows of each input, all and those without missing values; `left_out` are the columns that
    cannot tell anything; `sample` are pooled rows, drawn uniformly and blind to the input they are in, in random order.
    """

    def __init__(
        self, command: str, options: Options, features: str, threads: int | None, progress: Progress | None
    ) -> None:
        self._started = time.perf_counter()
        self._command, self._progress = command, progress
        self.features = features.strip().lower()
        self.kind, self.number = parse_features(features)
        if options.resampling == "random":
            raise UsageError(
                "--resampling random needs --method exact",
                hint="leave it out: features have relabellings of their own",
                code="usage.method",
            )
        self.options, self.adapted = exact.fitting(options)
        self.engine: Engine = engine_of(threads)

    @contextmanager
    def over(self, data: Sequence[Any], reading: Reading, sampled: int) -> Iterator[None]:
        """Go through one input, or two with the same columns, once; they stay open until the end of the `with`.

        Cost: one pass over the files; memory for a few pieces, and for CSV up to 16 MB for the whole file.
        """
        one_of("missing", reading.missing, ("error", "drop"))
        letters = ("x", "y") if len(data) > 1 else ("data",)
        with ExitStack() as stack:
            self._inputs = [
                stack.enter_context(
                    open_input(one, None if isinstance(one, Table) else letter, reading.categorical, reading.csv)
                )
                for one, letter in zip(data, letters, strict=True)
            ]
            self._reading, self._sampled = reading, max(SAMPLED_ROWS, sampled)
            self.names = tuple(one.head.name for one in self._inputs)
            self._first_pass()
            yield

    def _first_pass(self) -> None:
        """Go through all rows; once more where columns turn out to be text."""
        missing, scale, turned = self._reading.missing, self.options.scale, True
        while turned:
            heads, warnings = self._matched()
            for one, head in zip(self._inputs, heads, strict=True):
                one.settle(head, missing)
            self.kinds = {column.name: column.kind for column in heads[0].columns}
            facts = self._facts()
            turned = sum(one.turned(found) for one, found in zip(self._inputs, facts, strict=True)) > 0
        pooled = TableFacts(" and ".join(self.names), self.kinds)
        for found in facts:
            if found.first_missing is not None and missing == "error":
                raise missing_error(found.first_missing[0], found.missing, found.first_missing[1], ())
            if found.rows and not found.used:
                raise no_rows_left(found.name, found.missing, ())
            pooled.add(found, self._sampled)
        scaling, reasons = _scaling(pooled, scale)
        if pooled.sample is None or not scaling.names:
            raise DataError(
                f"no column of {pooled.name} is left to compare: {'; '.join(reasons.values())}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": self.names[0]},
            )
        self.rows, self.n = tuple(one.rows for one in facts), tuple(one.used for one in facts)
        self.columns = tuple(name for name in self.kinds if name not in reasons)
        self.left_out = tuple(reasons)
        self.sample = replace(scaling, points=points_of(pooled.sample.columns, scaling))
        told = [text for one in self._inputs for text in one.warnings]
        dropped = [(one.name, counted(one.rows - one.used, "row"), one.rows) for one in facts if one.rows > one.used]
        lost = [f"{name}: {count} of {rows:,} with missing values left out" for name, count, rows in dropped]
        misleading = self._misleading(facts, scaling) if len(facts) > 1 else []
        self.warnings = (*dict.fromkeys(told), *warnings, *lost, *misleading, *reasons.values())
        digests = self.engine.here.map(Input.digest, self._inputs)
        read = zip(self._inputs, self.rows, digests, strict=True)
        self.inputs = exact.inputs_of([replace(one.head, n_rows=n, sha256=digest) for one, n, digest in read], self.n)

    @staticmethod
    def _misleading(facts: Sequence[TableFacts], scaling: Variable) -> list[str]:
        """Return what makes a comparison mislead; repeated rows as samples of each input show them, in its own units."""
        plain = replace(scaling, centre=0.0 * scaling.centre, spread=scaling.spread**0)
        points = [points_of(one.sample.columns, plain) for one in facts if one.sample is not None]
        rows = [[*one.numeric.T, *one.codes.T] for one in points]
        return two_sample_warnings(facts, scaling.numeric_names, rows)

    def sums(
        self, work: SecondPass, *, step: str, held: Callable[[int], float], operations: Mapping[str, float]
    ) -> list[Array]:
        """Go through the inputs again, and return the sums over each: they do not depend on what runs side by side."""
        columns, count, threads = len(self.columns), len(self._used), self.engine.threads
        tell(
            self._command,
            sum(self.n),
            columns,
            steps=(step + pieces_read_twice(count),),
            held=threads * piece_bytes(columns) + held(threads),
            operations=operations,
            engine=self.engine,
            method="features",
            besides=time.perf_counter() - self._started,
        )
        sums = [np.zeros(work.shape(source)) for source in range(len(self.n))]
        scaling = replace(self.sample, points=self.sample.points.take(slice(0)))
        over_part = partial(Part.sums, work=work, kinds=self.kinds, scaling=scaling)
        for source, some in self.engine.map(over_part, self._counted_parts(), self._progress, total=count):
            sums[source] += some
        return sums

    def provenance(self, asked: tuple[Kernel | str, ...], rule: str) -> record.Provenance:
        """Return what is needed to run a test again and get the same numbers."""
        return exact.provenance_of(
            self.options, self.inputs, asked=asked, rule=rule, engine=self.engine, started=self._started
        )

    def move_to_its_mean(self) -> None:
        """Make the mean of the sample the origin of the numbers of all rows."""
        sample, mean = self.sample, self.sample.points.numeric.mean(axis=0)
        points = Points(sample.points.numeric - mean, sample.points.codes)
        self.sample = replace(sample, points=points, centre=sample.centre + mean * sample.spread)

    def _facts(self) -> list[TableFacts]:
        """Return what all rows of each input tell, and take note of how many are used of each part."""
        facts = [TableFacts(name, self.kinds) for name in self.names]
        self._used = []
        parts, total = self._parts()
        work = partial(Part.facts, kinds=self.kinds, seed=self.options.seed, sampled=self._sampled)
        for source, found in self.engine.map(work, parts, self._progress, total=total):
            facts[source].add(found, self._sampled)
            self._used.append(found.used)
        return facts

    def _parts(self) -> tuple[Iterator[Part], int]:
        """Return the parts of all inputs in order, and about how many there are."""
        pieces = [one.pieces(self.kinds, self.engine.threads) for one in self._inputs]
        parts = (Part(source, piece) for source, some in enumerate(pieces) for piece in some.items)
        return parts, sum(some.count for some in pieces)

    def _counted_parts(self) -> Iterator[Part]:
        """Yield them with the rows before each; those of CSV hold their rows and are read as they are asked for."""
        before = [0] * len(self._inputs)
        for part, count in zip(self._parts()[0], self._used, strict=True):
            yield replace(part, used_before=before[part.source])
            before[part.source] += count

    def _matched(self) -> tuple[list[Table], tuple[str, ...]]:
        """Return the first rows of each input with the columns of the test, and what was left out."""
        reading, heads = self._reading, [one.head for one in self._inputs]
        if len(heads) == 1:
            return [select_columns(heads[0], reading.columns, reading.exclude)], ()
        try:
            x, y, warnings = matched(heads[0], heads[1], reading)
        except DataError as error:
            name = str(error.where.get("column", ""))
            places = [f"{one.head.name}, {one.texts[name]}" for one in self._inputs if one.texts.get(name)]
            if error.code != "data.types_differ" or not places:
                raise
            # The first rows do not show what made a column one of text.
            raise DataError(
                f"column {name!r} is text in one table and not in the other ({'; '.join(places)})",
                hint=error.hint,
                code=error.code,
                where=error.where,
            ) from None
        return [x, y], warnings


def _scaling(pooled: TableFacts, scale: Scale) -> tuple[Variable, dict[str, str]]:
    """Return how columns are scaled and coded, without rows, and which are left out and why."""
    numbers: dict[str, tuple[float, float]] = {}
    levels: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, str | None] = {}
    for name, kind in pooled.kinds.items():
        reason_to_leave_out = partial(reason_from_facts, name, kind, n_rows=pooled.used)
        if name in pooled.levels:
            known = pooled.levels[name]
            reasons[name] = (
                f"column {name!r} has more than {MOST_LEVELS:,} different values, too many for categories of so many "
                "rows, and is left out"
            )
            if known is not None:
                levels[name] = tuple(sorted(known))
                reasons[name] = reason_to_leave_out(n_levels=len(known), constant=len(known) == 1, value=0.0)
            continue
        found = pooled.numbers[name]
        constant, spread = found.low == found.high, math.sqrt(found.squares / found.count)
        if not math.isfinite(spread) or not (constant or spread):
            raise UndecidedError(
                f"the values of column {name!r} are too large, or too close together, for their spread to be a number",
                hint=f"divide them by a power of ten, or leave the column out with --exclude {option_value([name])}",
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


# Inputs


class Input:
    """One input: a reader of files in pieces with the first rows of all columns as its head; or a table in memory."""

    def __init__(self, head: Table, reader: Any = None, found: Found | None = None) -> None:
        self.head, self.reader, self.warnings = head, reader, head.warnings
        self.stored = () if found is None else found.files
        if found is not None:
            self.head = replace(head, files=tuple(name for name, _ in found.files), compression=_compression(found))
        # Whether the types of the head are those of all rows; which columns are text after all, and where that is seen.
        self.settled = reader is None or head.format != "csv"
        self.texts: dict[str, str] = {}
        self._used = self.head

    def turned(self, found: TableFacts) -> bool:
        """Take columns that are text in some rows for text from the beginning; say whether there are any."""
        for name, other in found.others.items():
            present = found.rows - found.missing[name]
            other.refuse_stray(present - found.strange[name], present)
            if self.settled or name in self.texts:
                shown = option_value([name])
                raise DataError(
                    f"column {name!r} of {found.name} is {other.column.kind} in some of its rows only",
                    hint=f"--categorical {shown} takes it as text; --exclude {shown} leaves it out",
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
            apply_missing(matched, missing)

    def pieces(self, kinds: Mapping[str, Kind], at_once: int) -> Pieces:
        """Return some columns of all rows, in pieces of which so many are worked on side by side."""
        height = min(BATCH_ROWS, max(1, BATCH_VALUES // len(kinds)))
        if self.reader is None:
            table = self._used.select(list(kinds))
            return Pieces(_slices(table, height), -(-table.n_rows // height))
        if self.settled:
            self.reader.rows = height
            return cast("Pieces", self.reader.pieces(kinds, at_once=at_once))
        # Truth values are texts until all of them have been seen.
        pieces = self.reader.pieces({name: "text" if kind == "boolean" else kind for name, kind in kinds.items()})
        # Bytes that are compressed make more blocks.
        return Pieces(pieces.items, max(2, pieces.count))

    def digest(self) -> str | None:
        """Return the digest of the files as stored, as `read_table` does; None for data in memory."""
        if not self.stored:
            return self.head.sha256
        digests = []
        for shown, location in self.stored:
            with open_file(location, shown) as file:
                digests.append(hashlib.file_digest(cast("BufferedReader", file), "sha256").hexdigest())
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode("ascii")).hexdigest()


def _slices(table: Table, height: int) -> Iterator[Piece]:
    for start in range(0, table.n_rows, height):
        part = table.take(np.arange(start, min(start + height, table.n_rows)))
        if part.lines is None:
            part = Table(part.name, part.columns, part.n_rows, part.format, offset=start)
        yield Piece(RowBlock(part, None, start), start + part.n_rows)


def _compression(found: Found) -> str | None:
    """Return how files are compressed, as `read_table` says it."""
    methods = set()
    for shown, location in found.files:
        with open_file(location, shown) as file:
            methods.add(compression_of(file.read(MAGIC_BYTES)) or "")
    return ", ".join(sorted(methods - {""})) or None


@contextmanager
def open_input(data: Any, name: str | None, categorical: Patterns, csv: CsvOptions) -> Iterator[Input]:
    """Open files that are read in pieces, or data in memory, which messages call by `name`; errors as in `read_table`."""
    if isinstance(data, Input):
        # Opened before, by who wanted to see its columns.
        yield data
        return
    whole = partial(read_table, categorical=categorical, **csv.words())
    if not isinstance(data, (str, Path)):
        yield Input(whole(data, name=name))
        return
    with ExitStack() as stack:
        shown, found = located_files(data, stack)
        form = begins_as(*found.files[0])
        path = str(found.files[0][1]) if str(data) == "-" else data
        if form == "parquet":
            yield _parquet_input(shown, found, categorical, stack)
        elif form == "json" or _size(found) <= SMALL_BYTES // (8 if _compression(found) else 1):
            yield Input(whole(path, name=shown))
        else:
            blocks = open_blocks(path, **csv.words(), block_bytes=CSV_BLOCK_BYTES)
            yield _csv_input(stack.enter_context(blocks), shown, found, categorical, csv)


def _size(found: Found) -> int:
    try:
        return sum(location.stat().st_size for _, location in found.files)
    except OSError:
        # Whoever reads them says what is wrong.
        return 0


def _parquet_input(shown: str, found: Found, categorical: Patterns, stack: ExitStack) -> Input:
    from kerntest.data.formats.parquet import (  # noqa: PLC0415 - 70 ms that an array does not need
        ParquetBlocks,
        refuse_other_schema,
    )

    plain = [(name, stack.enter_context(unpacked_file(name, location)), location) for name, location in found.files]
    # A copy is read by this process alone.
    copied = shown != str(found.files[0][1]) and len(plain) == 1
    reader = ParquetBlocks(
        shown, [(name, one, copied or one != location) for name, one, location in plain], found.warnings, None
    )
    first, *others = reader.schemas
    for other in others:
        refuse_other_schema(first, other)
    refuse_empty(shown, reader.total, len(reader.names))
    reader.categorical = frozenset(match_names(categorical, reader.names, shown))
    reader.rows = HEAD_ROWS
    head = _first_block(reader).table
    return Input(replace(head, notes=(*found.warnings, *reader.left_out)), reader, found)


def _csv_input(reader: Any, shown: str, found: Found, categorical: Patterns, options: CsvOptions) -> Input:
    reader.name = shown
    # Names that are not there are refused before any row is read.
    match_names(categorical, reader.names, shown)
    block = _first_block(reader, reader.names)
    head = _typed_again(block, categorical, options)
    columns = tuple(
        replace(column, remarks=(*reader.remarks.get(column.name, ()), *column.remarks)) for column in head.columns
    )
    notes = tuple(dict.fromkeys((*reader.warnings, *head.notes)))
    return Input(replace(head, columns=columns, delimiter=block.table.delimiter, notes=notes), reader, found)


def _first_block(reader: Any, keep: Sequence[str] = ()) -> RowBlock:
    """Return the first rows of all columns, as texts where the file does not say more."""
    pieces = reader.pieces(dict.fromkeys(reader.names, "text"), keep)
    block: RowBlock = next(iter(next(iter(pieces.items)).blocks()))
    return block


def _typed_again(block: RowBlock, categorical: Patterns, options: CsvOptions) -> Table:
    """Return columns of text typed the way a whole file is: as CSV in which all values are quoted."""
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array does not need
    from pyarrow import csv  # noqa: PLC0415 - the same

    from kerntest.data.column_types import without_blanks  # noqa: PLC0415 - the same
    from kerntest.data.formats.csv import read_delimited  # noqa: PLC0415 - the same
    from kerntest.data.in_memory import column_of  # noqa: PLC0415 - the same

    table = block.table.take(np.arange(min(block.table.n_rows, 50 * HEAD_ROWS)))
    texts = {
        column.name: pa.array(np.array([*column.levels, None], dtype=object)[column.values], pa.string())
        for column in table.columns
    }
    stream = io.BytesIO()
    csv.write_csv(pa.table(texts), stream, csv.WriteOptions(delimiter=table.delimiter, quoting_style="all_valid"))
    source = Source(table.name, "csv", ((table.name, stream.getvalue()),), sha256="", size=0)
    again = CsvOptions(options.decimal, options.na, delimiter=table.delimiter)
    head = read_delimited(source, categorical, again)
    if head.n_rows < table.n_rows:
        # Rows of one empty value are blank lines.
        return head
    kept = block.kept.slice(0, table.n_rows)
    return with_words(head, lambda names: [without_blanks(column_of(name, kept[name], table.name)) for name in names])
