"""The first pass over tables larger than memory: columns, counts, scales, levels, and a random sample of rows."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kerntest.data.columns import match_names, match_tables, select_columns
from kerntest.data.kinds import as_text
from kerntest.data.messages import counted, one_of, option_value
from kerntest.data.rows import missing_error, no_rows_left
from kerntest.data.table import Table
from kerntest.errors import DataError
from kerntest.inference.streamed.findings import lay_out, misleading_facts, pooled_sample
from kerntest.inference.streamed.rows import RowReader, Wanted
from kerntest.inference.streamed.sources import open_source
from kerntest.inference.streamed.tally import Tallier, Tally
from kerntest.kernels.base import Points
from kerntest.report.record import InputRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Reading, Scale
    from kerntest.inference.streamed.rows import Layout, Piece
    from kerntest.inference.streamed.sources import Source

# Rows from which bandwidths, landmarks and the error of features come.
SAMPLED_ROWS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What a first pass has found, and the way to the rows for a second.

    Parameters
    ----------
    names : tuple of str
        How messages call each input.
    rows, n : tuple of int
        Rows of each input, and those without missing values.
    columns : tuple of str
        The columns used, in the order of the first input.
    left_out : tuple of str
        Columns that cannot tell anything.
    layout : Layout
    reader : RowReader
        `reader.read(piece)` yields the points of a piece; it can be sent to another process.
    sample : Points
        Up to 2,000 of the pooled rows, drawn uniformly and blind to the input they are in, scaled, in random order.
    warnings : tuple of str
    inputs : tuple of InputRecord
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    n: tuple[int, ...]
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    layout: Layout
    reader: RowReader
    sample: Points
    warnings: tuple[str, ...]
    inputs: tuple[InputRecord, ...]
    _sources: tuple[Source, ...]
    _used: tuple[tuple[int, ...], ...]

    @property
    def n_pieces(self) -> int:
        """Number of pieces of all inputs."""
        return sum(map(len, self._used))

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces of all inputs in order. Those of CSV hold their rows and are read as they are asked for."""
        kinds = {one.name: one.kind for one in self.reader.wanted}
        for number, (source, used) in enumerate(zip(self._sources, self._used, strict=True)):
            before = 0
            for piece, count in zip(source.pieces(number, kinds), used, strict=True):
                yield replace(piece, used_before=before)
                before += count

    def about_its_mean(self) -> Survey:
        """Return the same rows with the mean of the sample as the origin of their numbers."""
        mean = self.sample.numeric.mean(axis=0)
        layout = replace(self.layout, centre=self.layout.centre + mean * self.layout.spread)
        sample = Points(self.sample.numeric - mean, self.sample.codes)
        return replace(self, layout=layout, reader=replace(self.reader, layout=layout), sample=sample)

    def read(self, piece: Piece) -> Iterator[Points]:
        """Yield the points of a piece, a few at a time; see `RowReader.read`."""
        return self.reader.read(piece)


@contextmanager
def survey(
    sources: Sequence[Any],
    reading: Reading,
    scale: Scale,
    seed: int,
    engine: Engine,
    *,
    progress: Progress | None = None,
    sampled: int = SAMPLED_ROWS,
) -> Iterator[Survey]:
    """Go through one input, or two with the same columns, once; they stay open until the end of the `with`.

    Parameters
    ----------
    sources : sequence of one or two inputs
        Each a path, a glob, a folder of Parquet, "-", an array, a frame or a Table.
    reading : Reading
    scale : "standardize" or "none"
    seed : int
        Of the sample.
    engine : Engine
    progress : callable, optional
    sampled : int
        Rows of the sample.

    Yields
    ------
    Survey

    Raises
    ------
    UsageError, DataError
        As the exact test does for what is wrong with the inputs or the options about them.

    Notes
    -----
    Cost: one pass over the files; memory for a few pieces, and for CSV up to 16 MB for the whole file.
    """
    one_of("missing", reading.missing, ("error", "drop"))
    letters = ("x", "y") if len(sources) > 1 else ("data",)
    with ExitStack() as stack:
        opened = tuple(
            stack.enter_context(open_source(source, None if isinstance(source, Table) else letter, reading))
            for source, letter in zip(sources, letters, strict=True)
        )
        yield _surveyed(opened, reading, scale, engine, progress, seed=seed, sampled=sampled)


def _surveyed(
    sources: tuple[Source, ...],
    reading: Reading,
    scale: Scale,
    engine: Engine,
    progress: Progress | None,
    *,
    seed: int,
    sampled: int,
) -> Survey:
    """Return what the rows of open inputs tell."""
    forced = {name for one in sources for name in match_names(reading.categorical, one.head.names, one.name)}
    texts: list[dict[str, str]] = [{} for _ in sources]
    while True:
        heads, warnings = _matched(sources, texts, reading)
        for source, head in zip(sources, heads, strict=True):
            source.settle(head, reading.missing)
        wanted = tuple(Wanted(column.name, column.kind, column.name in forced) for column in heads[0].columns)
        reader = RowReader(tuple(one.name for one in sources), wanted)
        facts, used = _counted(sources, Tallier(reader, seed, sampled), engine, progress)
        turned = [
            _turned(source, tally, texts[k]) for k, (source, tally) in enumerate(zip(sources, facts, strict=True))
        ]
        if not any(turned):
            break
    for source, tally in zip(sources, facts, strict=True):
        _check_missing(source, tally, reading)
    layout, left_out, reasons = lay_out(wanted, facts, scale)
    if not layout.names:
        raise _no_columns(sources, reasons)
    digests = list(engine.here.map(_digest, sources))
    rows, n = tuple(tally.rows for tally in facts), tuple(tally.used for tally in facts)
    return Survey(
        names=reader.names,
        rows=rows,
        n=n,
        columns=tuple(one.name for one in wanted if one.name not in left_out),
        left_out=left_out,
        layout=layout,
        reader=replace(reader, layout=layout),
        sample=pooled_sample(facts, layout, sampled),
        warnings=(
            *dict.fromkeys(text for one in sources for text in one.warnings),
            *warnings,
            *(text for one, tally in zip(sources, facts, strict=True) for text in _dropped(one, tally)),
            *(misleading_facts(reader.names, wanted, facts, layout) if len(facts) > 1 else ()),
            *reasons,
        ),
        inputs=tuple(
            InputRecord(
                one.name,
                one.format,
                tally.rows,
                tally.used,
                digest,
                one.head.delimiter,
                one.compression,
                len(one.stored) or len(one.head.files) or None,
            )
            for one, tally, digest in zip(sources, facts, digests, strict=True)
        ),
        _sources=sources,
        _used=used,
    )


def _digest(source: Source) -> str | None:
    return source.digest()


def _matched(
    sources: Sequence[Source], texts: Sequence[dict[str, str]], reading: Reading
) -> tuple[list[Table], tuple[str, ...]]:
    """Return the first rows of each input with the columns of the test, and what was left out.

    Raises
    ------
    UsageError, DataError
        As `match_tables` and `select_columns` do; and where a column is text in one input only.
    """
    heads = [
        replace(
            one.head, columns=tuple(as_text(column) if column.name in odd else column for column in one.head.columns)
        )
        for one, odd in zip(sources, texts, strict=True)
    ]
    if len(heads) == 1:
        return [select_columns(heads[0], reading.columns, reading.exclude)], ()
    try:
        x, y, warnings = match_tables(
            heads[0],
            heads[1],
            columns=reading.columns,
            exclude=reading.exclude,
            common=reading.common,
            categorical=reading.categorical,
        )
    except DataError as error:
        name = str(error.where.get("column", ""))
        places = [f"{one.name}, {odd[name]}" for one, odd in zip(sources, texts, strict=True) if odd.get(name)]
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


def _counted(
    sources: Sequence[Source], work: Tallier, engine: Engine, progress: Progress | None
) -> tuple[list[Tally], tuple[tuple[int, ...], ...]]:
    """Return what all rows of each input tell, and how many are used of each of its pieces."""
    kinds = {one.name: one.kind for one in work.reader.wanted}
    facts = [Tally(number, 0) for number in range(len(sources))]
    used: list[list[int]] = [[] for _ in sources]
    pieces = (piece for number, source in enumerate(sources) for piece in source.pieces(number, kinds))
    total = sum(source.n_pieces for source in sources)
    for tally in engine.map(work, pieces, progress, total=total):
        facts[tally.source].add(tally, work.most)
        used[tally.source].append(tally.used)
    return facts, tuple(map(tuple, used))


def _turned(source: Source, tally: Tally, texts: dict[str, str]) -> bool:
    """Take note of the columns that are text after all; say whether there are any.

    Raises
    ------
    DataError
        If a column of a file with a schema is of another kind than its first rows.
    """
    for name, turned in tally.turned.items():
        if name in tally.fitting:
            turned.refuse_stray(*tally.fitting[name].tolist())
        if source.settled or name in texts:
            raise DataError(
                f"column {name!r} of {source.name} is {turned.column.kind} in some of its rows only",
                hint=f"--categorical {option_value([name])} takes it as text; --exclude {option_value([name])} leaves it out",
                code="data.types_differ",
                where={"file": source.name, "column": name},
            )
        texts[name] = turned.place
    return bool(tally.turned)


def _check_missing(source: Source, tally: Tally, reading: Reading) -> None:
    """Refuse missing values, or an input that has nothing else.

    Raises
    ------
    DataError
        As `apply_missing` does.
    """
    if not tally.missing or tally.first_missing is None:
        return
    if reading.missing == "error" or not tally.used:
        table, row = tally.first_missing
        if reading.missing == "error":
            raise missing_error(table, tally.missing, row, ())
        raise no_rows_left(source.name, tally.missing, ())


def _dropped(source: Source, tally: Tally) -> list[str]:
    dropped = tally.rows - tally.used
    if not dropped:
        return []
    return [f"{source.name}: {counted(dropped, 'row')} of {tally.rows:,} with missing values left out"]


def _no_columns(sources: Sequence[Source], reasons: Sequence[str]) -> DataError:
    return DataError(
        f"no column of {' and '.join(one.name for one in sources)} is left to compare: {'; '.join(reasons)}",
        hint="a column must hold at least two different values, and not one per row",
        code="data.no_columns",
        where={"file": sources[0].name},
    )
