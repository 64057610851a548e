"""What a file holds: the record that `kerntest inspect` writes, field by field its JSON."""

from __future__ import annotations

from dataclasses import dataclass

from kerntest.report.record import Record


@dataclass(frozen=True, slots=True)
class LevelCount(Record):
    """One value of a text or boolean column, and how many rows hold it."""

    value: str
    count: int


@dataclass(frozen=True, slots=True)
class ColumnReport(Record):
    """One column.

    Parameters
    ----------
    name : str
    type : str
        "number", "boolean", "text", "date", or "other" for a type that cannot be used.
    missing : int
        Missing values.
    different : int
        Different values, missing ones aside.
    minimum, maximum : float, str or None
        Of the numbers that are finite; of dates in ISO form; None for text and booleans.
    mean, median, deviation : float or None
        Of the numbers that are finite; the standard deviation with divisor n.
    numbers : float or None
        Of a text column: the share of its values that are numbers or dates, from 0 to 1.
    levels : tuple of LevelCount
        The most frequent values of a text or boolean column, at most five.
    use : str
        What a two-sample test would do: "used"; "left out", with a warning; or "refused", with an error, unless the
        column is excluded.
    note : str or None
        Why it would be left out or refused, or what to know about using it.
    line : int or None
        Where in the file the value is that makes the column unusable.
    value : str or None
        That value.
    """

    name: str
    type: str
    missing: int
    different: int
    minimum: float | str | None
    mean: float | None
    median: float | None
    deviation: float | None
    maximum: float | str | None
    numbers: float | None
    levels: tuple[LevelCount, ...]
    use: str
    note: str | None
    line: int | None
    value: str | None


@dataclass(frozen=True, slots=True)
class TableReport(Record):
    """A table: where it came from, and its columns. Field by field this is the JSON of `kerntest inspect`.

    Parameters
    ----------
    schema : str
        "kerntest.table/1".
    name, format, delimiter, compression, sha256
        As in `kerntest.Table`.
    files : tuple of str
        The files that were read as one table; empty for data in memory.
    bytes : int or None
        Size of the files as stored.
    rows : int
    complete_rows : int
        Rows without a missing value in any of the columns.
    columns : tuple of ColumnReport
        In the order of the file.
    warnings : tuple of str
        What to know about how the file was read.
    version : str
        Of kerntest.
    """

    schema: str
    command: str
    name: str
    format: str
    delimiter: str | None
    compression: str | None
    files: tuple[str, ...]
    bytes: int | None
    sha256: str | None
    rows: int
    complete_rows: int
    columns: tuple[ColumnReport, ...]
    warnings: tuple[str, ...]
    version: str
