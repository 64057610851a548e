"""A model applied to the rows of a file block by block: what predicting and projecting share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from kerntest.data.selection import match_names
from kerntest.data.wording import counted, listed
from kerntest.errors import DataError, UsageError
from kerntest.learning.strangers import Strangers, known_levels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.data.blocks import Block, BlockReader, BlockTable
    from kerntest.data.selection import Patterns
    from kerntest.data.table import Table
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Points
    from kerntest.learning.encoding import Encoded, Encoder
    from kerntest.learning.prediction_output import Sink

MissingRule: TypeAlias = Literal["error", "drop", "empty"]
UnknownRule: TypeAlias = Literal["error", "ignore"]
ROW = "row"


class FoundColumns(Protocol):
    """What a model gives for m rows."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def arrow(self, numbers: NDArray[np.intp], kept: Any, rows: NDArray[np.intp], place: NDArray[np.intp]) -> Any:
        """Return the table to write, as `PredictedColumns.arrow` does."""


def kept_columns(keep: Patterns, reader: BlockReader, taken: Callable[[str], bool], made: str) -> list[str]:
    """Return the columns to hand through.

    Parameters
    ----------
    keep : str, sequence of str or None
    reader : BlockReader
    taken : callable
        Whether the output has a column of this name itself.
    made : str
        What the model makes, such as "predictions".

    Raises
    ------
    UsageError
        If a name is not there, or taken.
    """
    names = match_names(keep, reader.names, reader.name)
    for name in names:
        if name == ROW or taken(name):
            raise UsageError(
                f"column {name!r} of {reader.name} cannot be kept beside the {made}, which have columns of such names",
                hint="rename it in the data, or name the others in --keep",
                code="usage.keep",
                where={"file": reader.name, "column": name},
            )
    return names


def check_columns(reader: BlockReader, encoder: Encoder, shown: str) -> None:
    """Refuse a table without a column that the model needs, before any row of it is read."""
    from kerntest.data.table import Column, Table  # noqa: PLC0415 - for this check alone

    empty = tuple(Column(name, "number", np.empty(0)) for name in reader.names)
    encoder.select(Table(reader.name, empty, 0, reader.format), name=shown)


@dataclass(slots=True, eq=False, kw_only=True)
class RowWork(ABC):
    """One run over the data: what is asked for, and what was met on the way.

    Parameters
    ----------
    encoder : Encoder
    shown : str
        How messages call the model.
    engine : Engine
    kept : list of str
        Columns to hand through.
    missing, unknown : str
        The rules.
    made : str
        What the model makes of a row, such as "prediction".
    """

    encoder: Encoder
    shown: str
    engine: Engine
    kept: list[str]
    missing: MissingRule
    unknown: UnknownRule
    made: str
    rows: int = 0
    done: int = 0
    columns: tuple[str, ...] = ()
    strangers: Strangers = field(default_factory=Strangers)

    @abstractmethod
    def found(self, points: Points | None) -> FoundColumns:
        """Return what the model gives for rows; None for no rows, which still have their columns."""

    @abstractmethod
    def count(self, found: Any) -> None:
        """Take note of what was given."""

    def run(self, reader: BlockReader, sink: Sink, progress: Progress | None) -> None:
        """Apply the model to every row and write what it gives."""
        kinds = {column.name: column.kind for column in self.encoder.columns}
        for block in reader.blocks(kinds, self.kept):
            sink.write(self._output(block, reader))
            if progress is not None:
                progress(min(reader.done, reader.total), reader.total)
        if self.missing == "drop" and not self.done:
            raise DataError(
                f"every row of {reader.name} has a missing value",
                hint=f"--missing empty gives every row, without a {self.made}",
                code="data.no_rows_left",
                where={"file": reader.name},
            )

    def _output(self, block: Block, reader: BlockReader) -> Any:
        """Return the output for a block, as an Arrow table."""
        table = known_levels(block.table, self.encoder)
        incomplete = self._incomplete(table, block, reader)
        complete = np.flatnonzero(~incomplete)
        found = self._found(table, complete, block, reader)
        written = complete if self.missing == "drop" else np.arange(table.n_rows)
        place = np.full(table.n_rows, -1, dtype=np.intp)
        place[complete] = np.arange(len(complete))
        self.rows += table.n_rows
        self.done += found.n
        self.count(found)
        output = found.arrow(block.first_row + written + 1, block.kept, written, place[written])
        self.columns = tuple(output.column_names)
        return output

    def _found(self, table: BlockTable, complete: NDArray[np.intp], block: Block, reader: BlockReader) -> FoundColumns:
        """Return what the model gives for the complete rows; an error tells the line on which it stands."""
        if not len(complete):
            return self.found(None)
        whole = len(complete) == table.n_rows
        chosen = table if whole else table.take(complete)
        try:
            points = self._encoded(chosen).points
        except DataError as error:
            raise self._located(error, complete, block, reader) from None
        found = self.found(points)
        self.strangers.meet(self.encoder, chosen, points.codes)
        return found

    def _located(self, error: DataError, complete: NDArray[np.intp], block: Block, reader: BlockReader) -> DataError:
        """Return an error about a block with the line on which it stands."""
        try:
            self._encoded(known_levels(reader.located(block), self.encoder).take(complete))
        except DataError as located:
            return located
        return error

    def _encoded(self, table: Table) -> Encoded:
        return self.encoder.transform(table, name=self.shown, unknown=self.unknown)

    def _incomplete(self, table: BlockTable, block: Block, reader: BlockReader) -> NDArray[np.bool_]:
        """Return which rows lack a value that the model needs."""
        masks = {column.name: column.missing for column in table.columns if column.problem is None}
        incomplete = np.zeros(table.n_rows, dtype=bool)
        for mask in masks.values():
            incomplete |= mask
        if self.missing == "error" and incomplete.any():
            row = int(np.argmax(incomplete))
            names = [name for name, mask in masks.items() if mask[row]]
            located = reader.located(block)
            what = f"column {names[0]!r} has" if len(names) == 1 else f"columns {listed(names, 5)} have"
            raise DataError(
                f"{reader.name}, {located.place(row)}: {what} no value, and the model needs one",
                hint=f"--missing drop leaves such rows out; --missing empty gives them without a {self.made}",
                code="data.missing_values",
                where={**located.where(row), "column": names[0]},
            )
        return incomplete

    def warnings(self, reader: BlockReader) -> tuple[str, ...]:
        """Return what a reader of the output must know."""
        warnings = list(reader.warnings)
        incomplete = self.rows - self.done
        if incomplete:
            what = "left out" if self.missing == "drop" else f"without a {self.made}"
            warnings.append(f"{reader.name}: {counted(incomplete, 'row')} with missing values {what}")
        return (*warnings, *self.strangers.warnings(reader.name, self.shown))

    def ignored(self, reader: BlockReader) -> tuple[str, ...]:
        """Return the columns of the data that nobody asked for."""
        known = {*self.encoder.names, *self.kept}
        return tuple(name for name in reader.names if name not in known)
