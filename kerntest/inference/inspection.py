"""What a file holds, and what a test would make of it, before any test runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kerntest
from kerntest.data.columns import match_names
from kerntest.data.diagnostics import complete_rows, count_different, frequent_levels, numbers_of, type_of, verdict_on
from kerntest.data.read import read_table
from kerntest.errors import UsageError, telling
from kerntest.report.table_report import ColumnReport, LevelCount, TableReport

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Column, Table


@telling
def inspect_table(
    source: Any,
    *,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    name: str | None = None,
    **csv: Unpack[CsvWords],
) -> TableReport:
    """Return what a table holds, column by column, and what a two-sample test would do with each.

    Parameters
    ----------
    source : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
        As in `read_table`.
    columns, exclude : str or sequence of str, optional
        Columns to report or to leave out: names, ranges `a:b`, wildcards `temp_*`. Default: all.
    categorical : str or sequence of str
        Columns to treat as text.
    name : str, optional
        How to call the table; default the path as typed.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    TableReport
        A frozen record; its fields are those of the JSON. A column that no test could use is reported as such: it
        raises nothing.

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    DataError
        If the table cannot be read.
    UsageError
        If an option names a column that is not there, or leaves none.

    Notes
    -----
    Cost: that of reading, and O(n log n) time for each column.

    Examples
    --------
    >>> import numpy as np
    >>> report = inspect_table(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]]))
    >>> [(column.name, column.different, column.use) for column in report.columns]
    [('x1', 3, 'used'), ('x2', 1, 'left out')]
    """
    table = read_table(source, name=name, categorical=categorical, **csv)
    named = match_names(columns, table.names, table.name) if columns else list(table.names)
    excluded = set(match_names(exclude, table.names, table.name))
    chosen = [column for column in named if column not in excluded]
    if not chosen:
        raise UsageError(
            f"no column of {table.name} is selected",
            hint="name at least one in --columns, and exclude fewer",
            code="usage.no_columns",
        )
    selected = table.select(chosen)
    return TableReport(
        schema="kerntest.table/1",
        command="inspect",
        name=table.name,
        format=table.format,
        delimiter=table.delimiter,
        compression=table.compression,
        files=table.files,
        bytes=table.size,
        sha256=table.sha256,
        rows=table.n_rows,
        complete_rows=complete_rows(selected),
        columns=tuple(_column_report(column, selected) for column in selected.columns),
        warnings=selected.warnings,
        version=kerntest.__version__,
    )


def _column_report(column: Column, table: Table) -> ColumnReport:
    """Return what there is to say about one column."""
    numbers = numbers_of(column, table.na)
    verdict = verdict_on(column, table)
    return ColumnReport(
        name=column.name,
        type=type_of(column),
        missing=0 if type_of(column) == "other" else column.n_missing,
        different=count_different(column),
        minimum=numbers.minimum,
        mean=numbers.mean,
        median=numbers.median,
        deviation=numbers.deviation,
        maximum=numbers.maximum,
        numbers=numbers.share,
        levels=tuple(LevelCount(value, count) for value, count in frequent_levels(column)),
        use=verdict.use,
        note=verdict.note,
        line=verdict.line,
        value=verdict.value,
    )
