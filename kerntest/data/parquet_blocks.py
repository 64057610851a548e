"""Parquet files as blocks of rows: see `blocks`."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from kerntest.data.blocks import Block, BlockReader, BlockTable
from kerntest.data.parquet import PANDAS_INDEX, malformed_parquet
from kerntest.data.table import refuse_duplicates
from kerntest.data.typed import column_of
from kerntest.data.wording import listed
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from kerntest.data.table import Kind

BLOCK_ROWS = 1 << 16


class ParquetBlocks(BlockReader):
    """The rows of Parquet files; columns are found by name in each, and have the types of its schema."""

    format = "parquet"

    def __init__(
        self, name: str, files: Sequence[tuple[str, Any]], warnings: tuple[str, ...], block_rows: int | None
    ) -> None:
        self.name, self.warnings = name, warnings
        self._files = files
        self._rows = block_rows or BLOCK_ROWS
        self._done = 0
        names = [str(one) for one in files[0][1].schema_arrow.names]
        refuse_duplicates(names, name)
        self.names = tuple(one for one in names if not PANDAS_INDEX.fullmatch(one))
        self.total = sum(file.metadata.num_rows for _, file in files)
        if not self.total:
            raise DataError(
                f"{name} has no rows",
                hint="a table needs at least one column and one row",
                code="data.no_rows",
                where={"file": name},
            )

    @classmethod
    @contextmanager
    def opened(
        cls, name: str, files: Sequence[tuple[str, Path]], warnings: tuple[str, ...], block_rows: int | None
    ) -> Iterator[ParquetBlocks]:
        """Open files whose names and places are given."""
        with ExitStack() as stack:
            readers = []
            for shown, location in files:
                try:
                    readers.append(
                        (
                            shown,
                            stack.enter_context(parquet.ParquetFile(location, pre_buffer=False, buffer_size=1 << 20)),
                        )
                    )
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise malformed_parquet(shown, error) from error
            yield cls(name, readers, warnings, block_rows)

    @property
    def done(self) -> int:
        """Rows read."""
        return self._done

    def blocks(self, kinds: Mapping[str, Kind], keep: Sequence[str] = ()) -> Iterator[Block]:
        """Yield all rows; the types are those of the files, whatever is asked for."""
        self._done = 0
        wanted = list(dict.fromkeys((*kinds, *keep)))
        for shown, file in self._files:
            self._check(shown, file, wanted)
            offset = 0
            batches = file.iter_batches(batch_size=self._rows, columns=wanted)
            while True:
                try:
                    batch = next(batches, None)
                    if batch is None:
                        break
                    # Damage can hide in text.
                    batch.validate(full=True)
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise malformed_parquet(shown, error) from error
                if batch.num_rows:
                    table = pa.table(batch)
                    yield Block(self._typed(table, list(kinds), shown, offset), table.select(list(keep)), self._done)
                    self._done += batch.num_rows
                    offset += batch.num_rows

    def located(self, block: Block) -> BlockTable:
        """Return the table of a block: Parquet has no lines."""
        return block.table

    def _check(self, shown: str, file: Any, wanted: Sequence[str]) -> None:
        """Refuse a further file that lacks a column, or a column whose type changes on its way through."""
        first_name, first = self._files[0]
        lacking = [name for name in wanted if name not in file.schema_arrow.names]
        if lacking:
            raise DataError(
                f"{shown} has other columns than {first_name}: it lacks {listed(lacking, 5)}",
                hint="Parquet files that are read together need the same columns",
                code="data.schemas_differ",
                where={"file": shown},
            )
        for name in wanted:
            kinds = [one.schema_arrow.field(name).type for one in (first, file)]
            if kinds[0] != kinds[1]:
                raise DataError(
                    f"{shown} has other types than {first_name}: column {name!r} is {kinds[1]}, not {kinds[0]}",
                    hint="Parquet files that are read together need one schema",
                    code="data.schemas_differ",
                    where={"file": shown, "column": name},
                )

    def _typed(self, table: Any, names: Sequence[str], shown: str, offset: int) -> BlockTable:
        columns = tuple(column_of(name, table[name], self.name) for name in names)
        part = shown if len(self._files) > 1 else ""
        return BlockTable(self.name, columns, table.num_rows, "parquet", offset=offset, part=part)
