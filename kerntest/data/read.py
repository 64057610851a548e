"""Any source to a table: files by their content, arrays and frames by their type."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.column_types import texts_understood
from kerntest.data.columns import Patterns, match_names, table_of, with_categories
from kerntest.data.formats.dialect import CsvOptions, SeededWords, utf8_lines
from kerntest.data.source import (
    HEAD_BYTES,
    MAGIC_BYTES,
    STDIN,
    Format,
    Found,
    chunks_of,
    chunks_with_lines,
    compression_of,
    find_files,
    format_of_head,
    head_of,
    open_file,
    open_source,
    refuse_archive,
    unpacked_stream,
)
from kerntest.data.table import Column, Table, refuse_empty
from kerntest.engines.engine import doing, note_read
from kerntest.errors import KerntestError, UsageError, bad_file, explained, shown_argument

# Files of this size have a million rows, or compressed several millions.
LARGE_BYTES = 1 << 24

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from kerntest.data.table import BlockReader, Kind


@explained
def read_table(
    source: Any, *, name: str | None = None, categorical: Patterns = (), **csv: Unpack[SeededWords]
) -> Table:
    """Read a table of typed columns.

    Parameters
    ----------
    source : str, Path, ndarray, DataFrame or Series (of pandas, Polars or others that hand over Arrow data), pyarrow.Table or Table
        CSV, Parquet or JSON lines, compressed with gzip, zstd, bzip2 or xz or not; a folder of Parquet files; a glob such as
        ``data/part-*.csv`` of files with one header, read as one table in the order of their names; ``"-"`` for
        stdin; or data in memory. A file is taken for what it holds, not for what it is called.
    name : str, optional
        How messages call the table; default the path as typed, ``"<stdin>"``, or ``"x"``.
    categorical : str or sequence of str
        Columns to treat as text whatever they hold, as names or patterns (`temp_*`). From CSV the text
        stays as typed; other sources give numbers in their shortest form.
    **csv
        How CSV is written, which other sources do not ask; and which rows are read.

        decimal : {"auto", ".", ","}
            The decimal mark. "auto": a point; and a comma in columns where all numbers have one (1,5 and 1.234,5),
            unless the comma is the delimiter. A warning says which columns those are. "." allows commas between
            thousands.
        na : str or sequence of str
            Words that stand for a missing value, separated by commas. By default NA, N/A, #N/A, NaN, nan, null, NULL,
            None and n/a. Between quotes they are text in a column of text. An empty field is always missing.
        delimiter : str, optional
            One character between fields, or tab, space, comma, semicolon or bar; by default it is found. Several spaces
            are one, as in aligned columns.
        encoding : str, optional
            Of the text, such as "latin-1"; by default UTF-8.
        header : bool
            Whether the first line names the columns. If not, they are called x1, x2 and so on.
        comment : str, optional
            What lines begin with that are no rows, such as "#".
        dayfirst : bool, optional
            Whether dates such as 03/04/2020 have the day first, where no value of their
            column tells.
        where : str, optional
            A condition for which rows: "year == 2009 and price > 0". It compares columns with numbers, with 'texts' and
            dates between single quotes, or with columns, by ==, !=, <, <=, > and >=, also `0 < price <= 5`; `site in
            ('north', 'south')`, `price is missing`, `is not missing`; `and`, `or`, `not` and parentheses; a column of
            true and false stands by itself. Odd names stand between backquotes or double quotes. A comparison with a
            missing value neither holds nor fails. Rows keep their numbers.
        sample : int, optional
            So many rows, at random; of those of `where`.
        seed : int
            Of the random rows.

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
    ``13.01.2025``, ``13 Jan 2025``, ``Jan 13, 2025``, ``2025/01/13``), numbers with one currency or unit throughout (``12 kg``) and those
    with a typographer's minus, marks between thousands or brackets for minus are read as numbers and dates, and a warning
    says so. Refused when used are dates whose day and month no value tells apart, numbers with two units, and a column of
    which more than half of the values are numbers or dates and the others not, and times of which some have a UTC offset
    and others not: those that have one are moved to UTC; ``001`` and ``0x1f`` are no numbers. Any
    other column is text. Whole numbers beyond 2^53 are text, with every digit, where different ones would be one
    floating-point number; a warning says so. Other sources have types and missing values of their own; their texts are read so, too, but for
    whole numbers, which stay text, and categories; times of day and durations are hours.
    """
    options = CsvOptions.of(**csv)
    if not isinstance(name, str | None):
        raise UsageError(f"name must be text, not {shown_argument(name)}", hint="it is for messages", code="usage.name")
    if isinstance(source, str | Path):
        with doing(f"reading {name or source}"):
            table = options.choice.of(_read_file(source, name, categorical, options))
        note_read(column.values for column in table.columns)
        return table
    if isinstance(source, Table):
        table = with_categories(source if name is None else replace(source, name=name), categorical)
    elif isinstance(source, np.ndarray):
        table = _read_array(source, name or "x", categorical)
    else:
        table = _read_frame(source, name or "x", categorical, options.dayfirst)
    return options.choice.of(table)


# Each kind of source imports its reader when it is met: Parquet and pandas take long to import, and most runs need neither.


def _read_file(path: str | Path, name: str | None, categorical: Patterns, options: CsvOptions) -> Table:
    """Read a file, those of a glob, a folder or stdin."""
    source = open_source(path, name)
    if source.format == "parquet":
        from kerntest.data.formats.parquet import read_parquet  # noqa: PLC0415  (20 ms that a CSV does not need)

        return read_parquet(source, categorical, dayfirst=options.dayfirst)
    if source.format == "json":
        from kerntest.data.formats.parquet import read_json_lines  # noqa: PLC0415  (20 ms that a CSV does not need)

        return read_json_lines(source, categorical, dayfirst=options.dayfirst)
    from kerntest.data.formats.csv import read_delimited  # noqa: PLC0415  (70 ms that an array does not need)

    return read_delimited(source, categorical, options)


def _read_frame(source: Any, name: str, categorical: Patterns, dayfirst: bool | None) -> Table:
    """Read a pandas frame or series without its index, a pyarrow table, or another frame that hands over Arrow data."""
    pandas = sys.modules.get("pandas")
    is_pandas = pandas is not None and isinstance(source, pandas.DataFrame | pandas.Series)
    if not is_pandas and not hasattr(source, "__arrow_c_stream__"):
        said = f"{name} is a {type(source).__name__}, which cannot be read as a table"
        hint = "hand over a path, a numpy array, a DataFrame of pandas or Polars, or a pyarrow Table"
        if callable(getattr(source, "collect", None)):
            hint = "its collect() gives a table"
        raise UsageError(said, hint=hint, code="usage.unknown_source")
    import pyarrow as pa  # noqa: PLC0415  (70 ms that an array does not need)

    if not is_pandas:
        try:
            table = pa.table(source)
        except pa.ArrowInvalid:
            # A single column, such as a Series of Polars.
            table = pa.table({str(getattr(source, "name", "") or "x1"): pa.chunked_array(source)})
        columns: list[tuple[str, Any]] = list(zip(table.column_names, table.columns, strict=True))
        return _with_texts(
            table_of(name, "frame", table.num_rows, columns, categorical), categorical, columns, dayfirst
        )
    frame, columns = source.to_frame() if source.ndim == 1 else source, []
    for label, series in frame.items():
        try:
            values = pa.array(series, from_pandas=True)
            columns.append((str(label), values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])))
        except (pa.ArrowException, TypeError, ValueError):
            columns.append((str(label), None))
    return _with_texts(table_of(name, "frame", len(frame), columns, categorical), categorical, columns, dayfirst)


def _with_texts(table: Table, categorical: Patterns, held: Sequence[tuple[str, Any]], dayfirst: bool | None) -> Table:
    """Return a frame whose texts are read as in a file; categories stay."""
    forced = {*match_names(categorical, table.names, table.name)}
    forced |= {name for name, values in held if hasattr(getattr(values, "type", None), "index_type")}
    return texts_understood(table, forced, dayfirst)


@contextmanager
def open_blocks(
    path: str | Path, *, block_bytes: int | None = None, **csv: Unpack[SeededWords]
) -> Iterator[BlockReader]:
    """Open a file, those of a glob, a folder of Parquet, or stdin (``"-"``) for reading block by block."""
    options = CsvOptions.of(**csv)
    with ExitStack() as stack:
        shown, found = located_files(path, stack)
        form = begins_as(*found.files[0])
        if form == "json":
            from kerntest.data.formats.parquet import parquet_of_json  # noqa: PLC0415 - 90 ms that a CSV does not need

            whole = open_source(found.files[0][1] if found.copied else path, shown)
            copy = (shown, stack.enter_context(parquet_of_json(whole)))
            found, form = replace(found, files=(copy,), copied=True), "parquet"
        yield blocks_of(shown, found, form, options, stack, block_bytes=block_bytes)


def blocks_of(
    shown: str, found: Found, form: Format, options: CsvOptions, stack: ExitStack, *, block_bytes: int | None
) -> BlockReader:
    """Return the reader of files of CSV or Parquet, whose copies the stack removes."""
    if form == "parquet":
        from kerntest.data.formats.parquet import ParquetBlocks  # noqa: PLC0415 - 90 ms that a CSV does not need

        plain = [(name, stack.enter_context(unpacked_file(name, given)), given) for name, given in found.files]
        seen = [(name, one, found.copied or one != given) for name, one, given in plain]
        return ParquetBlocks(shown, seen, found.warnings, block_bytes, dayfirst=options.dayfirst)
    from kerntest.data.formats.csv import CsvBlocks  # noqa: PLC0415 - the same the other way round

    if options.transcodes:
        copies = ((name, stack.enter_context(_in_utf8(name, given, options))) for name, given in found.files)
        found = replace(found, files=tuple(copies))
    return CsvBlocks(shown, found, options, block_bytes, stack)


def located_files(path: str | Path, stack: ExitStack) -> tuple[str, Found]:
    """Return how messages call a path, and its files; stdin is copied into one, which the stack removes."""
    if str(path) == "-":
        return STDIN, Found(
            ((STDIN, stack.enter_context(_copied(chunks_with_lines(sys.stdin.buffer, STDIN)))),), copied=True
        )
    return str(path), find_files(path, str(path))


@contextmanager
def _in_utf8(name: str, location: Path, options: CsvOptions) -> Iterator[Path]:
    """Give a CSV file as UTF-8 without comments: a temporary copy."""
    with open_file(location, name) as file, _copied(utf8_lines(unpacked_stream(file, name), name, options)) as copy:
        yield copy


@contextmanager
def unpacked_file(name: str, location: Path) -> Iterator[Path]:
    """Give a file without its compression: itself, or a temporary copy."""
    with open_file(location, name) as file:
        if compression_of(file.read(MAGIC_BYTES)) is None:
            yield location
            return
        file.seek(0)
        with _copied(chunks_of(unpacked_stream(file, name))) as copy:
            yield copy


@contextmanager
def _copied(chunks: Iterable[bytes]) -> Iterator[Path]:
    """Give a temporary file of what comes in chunks, which can be read more than once."""
    with tempfile.TemporaryDirectory(prefix="kerntest-") as folder:
        copy = Path(folder) / "input"
        with copy.open("wb") as file:
            file.writelines(chunks)
        yield copy


def is_large(source: Any) -> bool:
    """Say whether a source is files with more than is read at once without a second thought."""
    if not isinstance(source, str | Path) or str(source) == "-":
        return False
    try:
        files = find_files(source, str(source)).files
        return sum(location.stat().st_size for _, location in files) > LARGE_BYTES
    except (KerntestError, OSError):
        return False


def begins_as(name: str, location: Path) -> Format:
    """Tell the format of a file from its beginning, compressed or not; of a damaged one, whoever reads it says so."""
    with open_file(location, name) as file:
        refuse_archive(head := head_of(file, HEAD_BYTES), name)
        return format_of_head(head)


def _read_array(array: Any, name: str, categorical: Patterns) -> Table:
    """Return the table of a numeric array: one column for 1-D, else its columns, named x1, x2, ..."""
    if array.dtype.kind not in "biuf":
        hint = "hand over a DataFrame where there is text, or convert with .astype(float)"
        raise bad_file(name, f"is an array of {array.dtype}, not of numbers", hint=hint, code="data.not_numeric")
    if array.ndim not in {1, 2}:
        hint = "hand over an array of shape (rows,) or (rows, columns)"
        raise bad_file(name, f"is an array of {array.ndim} dimensions", hint=hint, code="data.wrong_shape")
    n_rows, n_columns = array.shape if array.ndim == 2 else (len(array), 1)
    refuse_empty(name, n_rows, n_columns)
    values = np.ma.filled(array.astype(np.float64), np.nan).reshape(n_rows, n_columns).T.copy()
    columns = tuple(Column(f"x{j}", "number", column) for j, column in enumerate(values, start=1))
    # Of many columns at once.
    for column, *ends in zip(columns, values.min(axis=1).tolist(), values.max(axis=1).tolist(), strict=True):
        vars(column)["range"] = tuple(ends)
    return with_categories(Table(name, columns, n_rows, "array"), categorical)


def frame_of(columns: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Any:
    """Return columns as a DataFrame: dates, days since 1970-01-01, as times, booleans, "true" and "false", as such."""
    import pandas as pd  # noqa: PLC0415 - 0.3 s of import

    frame = pd.DataFrame(columns)
    for name, kind in kinds.items():
        if kind == "date":
            frame[name] = pd.to_datetime(frame[name], unit="D")
        elif kind == "boolean":
            frame[name] = frame[name].map({"true": True, "false": False})
    return frame
