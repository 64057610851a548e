"""Which rows of a table are read: those for which a condition holds, and of these some at random."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.condition import Condition
from kerntest.data.facts import random_keys
from kerntest.data.table import Piece, Pieces, RowBlock, Table
from kerntest.dataclass import dataclass
from kerntest.errors import bad_file, counted, either, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import BlockReader, Kind
    from kerntest.errors import DataError

# Tells the rows that are read from other rows drawn by the same seed.
CHOICE_STREAM = 8


@dataclass(frozen=True)
class RowChoice:
    """Which rows are read: those for which a condition `where` holds, of these so many (`sample`) by the seed.

    A row is drawn by its number in the file alone. Of a file in pieces `columns` are those of the condition, with their
    kinds and how they are written, `limit` is the largest key that is drawn.
    """

    where: str | None = None
    sample: int | None = None
    seed: int = 0
    columns: tuple[tuple[str, Kind, str], ...] = ()
    limit: int | None = None

    def check(self) -> None:
        """Refuse what cannot be."""
        if self.where is not None:
            Condition(self.where)
        if self.sample is not None:
            whole_number("sample", self.sample, at_least=1)
        whole_number("seed", self.seed, at_least=0)

    def __bool__(self) -> bool:
        """Whether any row may be left out."""
        return self.where is not None or self.sample is not None

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Return for which rows the condition holds."""
        if self.where is None:
            return np.ones(table.n_rows, dtype=bool)
        return Condition(self.where, table).truth.holds

    def keys(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the random keys of rows, by their numbers from 1."""
        return random_keys(numbers - 1, (self.seed, CHOICE_STREAM))

    def of(self, table: Table, beside: Table | None = None) -> Table:
        """Return the chosen rows of a table; the condition may look at columns `beside` it, of the same rows."""
        if not self:
            return table
        seen = table
        if beside is not None:
            seen = replace(
                table, columns=(*table.columns, *(one for one in beside.columns if one.name not in table.names))
            )
        rows = np.flatnonzero(self.holds(seen))
        if not len(rows):
            raise self.nothing_left(table.name, seen)
        by = str(self.where)
        if self.sample is not None and self.sample < len(rows):
            keys, by = self.keys(table.numbers()[rows]), self.said
            rows = np.sort(rows[np.argpartition(keys, self.sample - 1)[: self.sample]])
        elif self.where is None or (len(rows) == table.n_rows and table.chosen_from is not None):
            return table
        whole = table.n_rows if table.chosen_from is None else table.chosen_from
        return replace(table.take(rows), chosen_from=whole, chosen_by=by)

    @property
    def said(self) -> str:
        """The choice in words."""
        drawn = None if self.sample is None else f"{counted(self.sample, 'row')} at random"
        return "; ".join(filter(None, [self.where, drawn]))

    def nothing_left(self, name: str, table: Table | None = None) -> DataError:
        """Return the error for a condition that no row fulfils, of a table with the value that may have been meant."""
        hint = either(
            f"`kerntest inspect {name}` shows what its columns hold", "inspect_table shows what its columns hold"
        )
        meant = None if table is None else Condition(str(self.where), table).meant()
        hint = hint if meant is None else f"did you mean {meant!r}? {hint}"
        return bad_file(name, f"has no row for which {self.where} holds", hint=hint, code="data.no_rows_chosen")

    # Files in pieces.

    def known(self, head: Table) -> RowChoice:
        """Return the choice with the kinds of the columns that the condition looks at, as the first rows show them."""
        if self.where is None:
            return self
        looked_at = Condition(self.where, head).columns.values()
        return replace(self, columns=tuple((one.name, one.kind, one.written) for one in looked_at))

    def settled(self, reader: BlockReader, at_once: int) -> RowChoice:
        """Return the choice with the largest key that is drawn: the rows are gone through once for it."""
        if self.sample is None or self.limit is not None:
            return self
        keys = np.empty(0, dtype=np.uint64)
        for piece in self._read(reader, {} if self.columns else {reader.names[0]: "text"}, (), at_once).items:
            for block in piece.blocks():
                numbers = block.first_row + np.flatnonzero(self.holds(block.table)) + 1
                keys = np.concatenate([keys, self.keys(numbers)])
                if len(keys) > self.sample:
                    keys = np.partition(keys, self.sample - 1)[: self.sample]
        if not len(keys):
            raise self.nothing_left(reader.name)
        return replace(self, limit=int(keys.max()))

    def pieces(
        self, reader: BlockReader, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1
    ) -> Pieces:
        """Return the chosen rows of a file in pieces."""
        if not self:
            return reader.pieces(kinds, keep, at_once)
        settled = self.settled(reader, at_once)
        made = self._read(reader, kinds, keep, at_once)
        return Pieces((_ChosenRows(piece, settled, tuple(kinds)).piece for piece in made.items), made.count)

    def _read(self, reader: BlockReader, kinds: Mapping[str, Kind], keep: Sequence[str], at_once: int) -> Pieces:
        """Return all rows with the columns of the condition beside others."""
        reader.written = {name: written for name, _, written in self.columns if written} | dict(reader.written)
        return reader.pieces({name: kind for name, kind, _ in self.columns} | dict(kinds), keep, at_once)


EVERY_ROW = RowChoice()


@dataclass(frozen=True, eq=False)
class _ChosenRows:
    """The chosen rows of a piece, of so many columns."""

    whole: Piece
    choice: RowChoice
    names: tuple[str, ...]

    @property
    def piece(self) -> Piece:
        """The piece of these rows."""
        return Piece(self, self.whole.done)

    def __call__(self) -> Iterator[RowBlock]:
        """Yield what is chosen of each block."""
        for block in self.whole.blocks():
            mask = self.choice.holds(block.table)
            if self.choice.limit is not None:
                mask &= self.choice.keys(block.first_row + block.table.numbers()) <= np.uint64(self.choice.limit)
            kept = block.kept.filter(mask) if block.kept.num_columns else block.kept
            yield RowBlock(block.table.select(list(self.names)).take(mask), kept, block.first_row)
