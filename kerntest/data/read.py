"""Any source to a table: files by their content, arrays and frames by their type."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.arrays import table_of_array
from kerntest.data.categories import with_categories
from kerntest.data.csv_options import CsvOptions, CsvWords
from kerntest.data.source import open_source
from kerntest.data.table import Table
from kerntest.engines.plan import note_read
from kerntest.errors import UsageError

if TYPE_CHECKING:
    from typing import Unpack

    from kerntest.data.selection import Patterns


def read_table(source: Any, *, name: str | None = None, categorical: Patterns = (), **csv: Unpack[CsvWords]) -> Table:
    """Read a table of typed columns.

    Parameters
    ----------
    source : str, Path, ndarray, DataFrame, Series, pyarrow.Table or Table
        CSV, Parquet or JSON lines, compressed with gzip, zstd, bzip2 or xz or not; a folder of Parquet files; a glob such as
        ``data/part-*.csv`` of files with one header, read as one table in the order of their names; ``"-"`` for
        stdin; or data in memory. A file is taken for what it holds, not for what it is called.
    name : str, optional
        How messages call the table; default the path as typed, ``"<stdin>"``, or ``"x"``.
    categorical : str or sequence of str
        Columns to treat as text whatever they hold, as names or patterns (see `select_columns`). From CSV the text
        stays as typed; other sources give numbers in their shortest form.
    **csv
        How CSV is written; other sources do not ask.

        decimal : {"auto", ".", ","}
            The decimal mark. "auto": a point; and a comma in columns where all numbers have one (1,5 and 1.234,5),
            unless the comma is the delimiter. A warning says which columns those are. "." allows commas between
            thousands.
        na : str or sequence of str
            Words that stand for a missing value, separated by commas. By default NA, N/A, #N/A, NaN, nan, null, NULL,
            None and n/a. Between quotes they are text in a column of text. An empty field is always missing.
        delimiter : str, optional
            One character between fields, or tab, space, comma, semicolon or bar; by default it is found.
        encoding : str, optional
            Of the text, such as "latin-1"; by default UTF-8.
        header : bool
            Whether the first line names the columns. If not, they are called x1, x2 and so on.
        comment : str, optional
            What lines begin with that are no rows, such as "#".

    Returns
    -------
    Table
        All columns. One that cannot be used (a number column with ``abc`` in it, a nested type) raises only when it
        is selected.

    Raises
    ------
    DataError
        The file is missing, unreadable or malformed, or has no rows; or files read together do not fit together.
    UsageError
        `categorical` names a column that is not there, the source is of no known type, or an option of CSV has no
        meaning.

    Notes
    -----
    In a CSV file a column is number, boolean (true, false) or date when all of its values are. Percents (``21.2%``),
    times of day (``12:30``, in hours), dates in other forms than ISO 8601 (``13/1/2025``, ``1/13/2025 14:30``,
    ``13.01.2025``, ``13 Jan 2025``, ``2025/01/13``), numbers with one currency or unit throughout (``12 kg``) and those
    with a typographer's minus, marks between thousands or brackets for minus are read as numbers and dates, and a warning
    says so. Refused when used are dates whose day and month no value tells apart, numbers with two units, and a column of
    which more than half of the values are numbers or dates and the others not; ``001`` and ``0x1f`` are no numbers. Any
    other column is text. The texts of JSON lines are read so, too, but for plain numbers between quotes. Other sources
    have types and missing values of their own, and their strings are taken as they are.
    """
    options = CsvOptions.of(**csv)
    if isinstance(source, str | Path):
        table = _read_file(source, name, categorical, options)
        note_read(column.values for column in table.columns)
        return table
    if isinstance(source, Table):
        return with_categories(source if name is None else replace(source, name=name), categorical)
    if isinstance(source, np.ndarray):
        return table_of_array(source, name or "x", categorical)
    return _read_frame(source, name or "x", categorical)


# Each kind of source imports its reader when it is met: Parquet and pandas take long to import, and most runs need neither.


def _read_file(path: str | Path, name: str | None, categorical: Patterns, options: CsvOptions) -> Table:
    """Read a file, those of a glob, a folder or stdin."""
    source = open_source(path, name)
    if source.format == "parquet":
        from kerntest.data.parquet import read_parquet  # noqa: PLC0415  (20 ms that a CSV does not need)

        return read_parquet(source, categorical)
    if source.format == "json":
        from kerntest.data.json_lines import read_json_lines  # noqa: PLC0415  (20 ms that a CSV does not need)

        return read_json_lines(source, categorical)
    from kerntest.data.delimited import read_delimited  # noqa: PLC0415  (70 ms that an array does not need)

    return read_delimited(source, categorical, options)


def _read_frame(source: Any, name: str, categorical: Patterns) -> Table:
    """Read a pandas frame or series, a pyarrow table, or another frame that hands over Arrow data."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame | pandas.Series):
        from kerntest.data.frames import table_of_frame  # noqa: PLC0415  (70 ms that an array does not need)

        return table_of_frame(source, name, categorical)
    if hasattr(source, "__arrow_c_stream__"):
        import pyarrow as pa  # noqa: PLC0415  (70 ms that an array does not need)

        from kerntest.data.typed import table_of_arrow  # noqa: PLC0415  (the same)

        return table_of_arrow(pa.table(source), name=name, file_format="frame", categorical=categorical)
    raise UsageError(
        f"{name} is a {type(source).__name__}, which cannot be read as a table",
        hint="hand over a path, a numpy array, a pandas DataFrame or a pyarrow Table",
        code="usage.unknown_source",
    )
