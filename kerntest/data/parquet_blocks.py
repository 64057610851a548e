"""Parquet files as blocks of rows: see `blocks`.

Row groups can be read one by one, so that workers read what they work on. Where blocks begin follows from the row groups
alone: small ones stand together in one block, large ones are cut into several.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from kerntest.data.blocks import BlockReader, Pieces, loaded
from kerntest.data.parquet import PANDAS_INDEX, malformed_parquet
from kerntest.data.parquet_rows import Layout, ParquetPiece, SeenFile, Span, Stretch
from kerntest.data.table import refuse_duplicates
from kerntest.data.wording import listed
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kerntest.data.blocks import Block, BlockTable, Piece
    from kerntest.data.table import Kind

BLOCK_ROWS = 1 << 16
# A piece of work has so many blocks at most, fewer where there would be less than so many pieces for each worker.
PIECE_BLOCKS, PIECES_EACH = 4, 4
# Who works on a part of a large row group decodes what stands before it, too: no group is cut into more parts.
GROUP_PARTS = 16


class ParquetBlocks(BlockReader):
    """The rows of Parquet files; columns are found by name in each, and have the types of its schema.

    Parameters
    ----------
    name : str
    files : sequence of (str, Path, bool)
        How messages call each file, where it is, and whether it is a copy that only this process should read.
    warnings : tuple of str
    block_rows : int or None

    Raises
    ------
    DataError
        If a file is malformed, or there are no rows.
    """

    format = "parquet"

    def __init__(
        self, name: str, files: Sequence[tuple[str, Path, bool]], warnings: tuple[str, ...], block_rows: int | None
    ) -> None:
        self.name, self.warnings = name, warnings
        self._rows = block_rows or BLOCK_ROWS
        self._files: list[tuple[SeenFile, Any]] = []
        self._spans: list[Span] = []
        self.total = 0
        for shown, location, copied in files:
            self._add(shown, location, copied=copied)
        names = [str(one) for one in self._files[0][1].names]
        refuse_duplicates(names, name)
        self.names = tuple(one for one in names if not PANDAS_INDEX.fullmatch(one))
        if not self.total:
            raise DataError(
                f"{name} has no rows",
                hint="a table needs at least one column and one row",
                code="data.no_rows",
                where={"file": name},
            )

    def _add(self, shown: str, location: Path, *, copied: bool) -> None:
        """Take note of a file and of its row groups."""
        try:
            with parquet.ParquetFile(location, pre_buffer=False) as opened:
                metadata, schema = opened.metadata, opened.schema_arrow
            # Damage can hide in names.
            str(schema)
            sizes = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
        except (pa.ArrowException, OSError, ValueError) as error:
            raise malformed_parquet(shown, error) from error
        file = SeenFile(shown, str(Path(location).absolute()), metadata.num_rows, platform.node(), copied)
        self._files.append((file, schema))
        offset = first = rows = 0
        for place, size in enumerate([*sizes, self._rows + 1]):
            if rows and rows + size > self._rows:
                self._spans.append(Span(file, range(first, place), rows, offset, self.total + offset))
                offset, first, rows = offset + rows, place, 0
            rows += size
        self.total += metadata.num_rows

    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows; the types are those of the files, whatever is asked for."""
        layout = Layout(self.name, tuple(kinds), tuple(keep), self._rows, len(self._files) > 1)
        for file, schema in self._files:
            self._check(file.shown, schema, layout.columns)
        n_blocks = sum(self._blocks_of(span) for span in self._spans)
        if at_once == 1:
            stretches = [Stretch(span, 0, span.n_rows) for span in self._spans]
            return Pieces(self._read_here(layout, stretches), n_blocks)
        together = max(1, min(PIECE_BLOCKS, n_blocks // (PIECES_EACH * at_once)))
        jobs = self._jobs(together)
        count = sum(self._blocks_of(job[0].span) if self._stays(job[0].span) else 1 for job in jobs)
        return Pieces(self._apart(layout, jobs), count)

    def _blocks_of(self, span: Span) -> int:
        return -(-span.n_rows // self._rows)

    def _stays(self, span: Span) -> bool:
        """Whether rows are read by this process and nobody else."""
        return span.file.copied or self._blocks_of(span) > GROUP_PARTS * PIECE_BLOCKS

    def _jobs(self, together: int) -> list[tuple[Stretch, ...]]:
        """Return stretches, those in one piece side by side, of about so many blocks."""
        jobs: list[tuple[Stretch, ...]] = []
        room = 0
        for span in self._spans:
            if self._stays(span):
                jobs.append((Stretch(span, 0, span.n_rows),))
                room = 0
                continue
            step = self._rows * max(together, -(-self._blocks_of(span) // GROUP_PARTS))
            for start in range(0, span.n_rows, step):
                stretch = Stretch(span, start, min(start + step, span.n_rows))
                if stretch.n_rows <= room:
                    jobs[-1] = (*jobs[-1], stretch)
                else:
                    jobs.append((stretch,))
                    room = self._rows * together
                room -= stretch.n_rows
        return jobs

    def _apart(self, layout: Layout, jobs: list[tuple[Stretch, ...]]) -> Iterator[Piece]:
        for job in jobs:
            if self._stays(job[0].span):
                yield from self._read_here(layout, job)
            else:
                yield ParquetPiece(layout, job)

    def _read_here(self, layout: Layout, stretches: Sequence[Stretch]) -> Iterator[Piece]:
        """Yield pieces that are read already."""

        def blocks() -> Iterator[Block]:
            left = iter(stretches)
            stretch = next(left, None)
            while stretch is not None:
                # A file stays open while its rows are read.
                current = stretch.span.file
                with current.opened() as file:
                    while stretch is not None and stretch.span.file is current:
                        yield from layout.blocks(file, stretch)
                        stretch = next(left, None)

        return loaded(blocks(), lambda block: block.first_row + block.table.n_rows)

    @staticmethod
    def located(block: Block) -> BlockTable:
        """Return the table of a block: Parquet has no lines."""
        return block.table

    def _check(self, shown: str, schema: Any, wanted: Sequence[str]) -> None:
        """Refuse a further file that lacks a column, or a column whose type changes on its way through."""
        first, first_schema = self._files[0]
        lacking = [name for name in wanted if name not in schema.names]
        if lacking:
            raise DataError(
                f"{shown} has other columns than {first.shown}: it lacks {listed(lacking, 5)}",
                hint="Parquet files that are read together need the same columns",
                code="data.schemas_differ",
                where={"file": shown},
            )
        for name in wanted:
            kinds = [one.field(name).type for one in (first_schema, schema)]
            if kinds[0] != kinds[1]:
                raise DataError(
                    f"{shown} has other types than {first.shown}: column {name!r} is {kinds[1]}, not {kinds[0]}",
                    hint="Parquet files that are read together need one schema",
                    code="data.schemas_differ",
                    where={"file": shown, "column": name},
                )
