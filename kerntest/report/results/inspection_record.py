"""What a table or a model file holds, field by field the JSON of `kerntest inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import kerntest
from kerntest.data.column_types import date_text
from kerntest.data.columns import named_columns
from kerntest.data.diagnostics.cases import ALIKE, case_columns
from kerntest.data.facts import complete_rows, described, frequent_levels, type_of, usable, use_of
from kerntest.data.read import read_table
from kerntest.dataclass import dataclass
from kerntest.errors import counted, option, telling
from kerntest.report.results.record import Record, Result
from kerntest.report.summaries import words
from kerntest.report.summaries.learner_summary import TITLES, importance_lines, importance_texts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from kerntest.data.formats.dialect import SeededWords
    from kerntest.data.table import Column, Table
    from kerntest.report.results.learning_record import Importance


@dataclass(frozen=True)
class LevelCount(Record):
    """One value of a text or boolean column, and how many rows hold it."""

    value: str
    count: int


@dataclass(frozen=True)
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


@dataclass(frozen=True, kw_only=True)
class TableReport(Result):
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
    chosen_from, chosen_by : int, str or None
        How many rows there are, and how these were chosen; None where all are told of.
    columns : tuple of ColumnReport
        In the order of the file.
    warnings : tuple of str
        What to know about how the file was read.
    version : str
        Of kerntest.
    """

    WORDS = "results.inspection_record.table_summary"
    schema: str = "kerntest.table/1"
    command: str = "inspect"
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
    chosen_from: int | None = None
    chosen_by: str | None = None
    version: str = kerntest.__version__


ROLES: dict[str, Literal["right", "doubtful", "wrong"]] = {"used": "right", "left out": "doubtful", "refused": "wrong"}
WIDEST_VALUE = 24


def table_summary(report: TableReport) -> words.Summary:
    """Return what a file holds in words: a line for each column, however many there are."""
    rows, used = [], sum(column.use == "used" for column in report.columns)
    columns = counted(len(report.columns), "column")
    if used < len(report.columns):
        columns += f", of which a test would use {used:,}"
    for one in report.columns:
        use = one.use if one.note is None else f"{one.use}: {words.visible(one.note)}"
        counts = (f"{one.missing:,}", f"{one.different:,}", values_text(one))
        rows.append((words.visible(one.name), one.type, *counts, words.Cell(use, ROLES[one.use])))
    table = words.ResultTable(
        (
            ("column", "name"),
            ("type", "word"),
            ("missing", "number"),
            ("different", "number"),
            ("values", "text"),
            ("in a test", "text"),
        ),
        tuple(rows),
    )
    rows_told = f"{counted(report.rows, 'row')}{words.chosen_text(report.chosen_from, report.chosen_by)}"
    title = f"{words.visible(report.name)}: {rows_told}, {columns}"
    warnings = tuple(words.visible(warning) for warning in report.warnings)
    return words.Summary(title, (("format", _origin(report)),), "", warnings, (table,))


def _origin(report: TableReport) -> str:
    """Return the format and the size of what was read."""
    said = [report.format if report.delimiter is None else f"{report.format} with delimiter {report.delimiter!r}"]
    if report.compression is not None:
        said.append(f"compressed with {report.compression}")
    if len(report.files) > 1:
        said.append(
            f"{len(report.files):,} files, {words.visible(report.files[0])} to {words.visible(report.files[-1])}"
        )
    if report.bytes is not None:
        said.append(counted(report.bytes, "byte"))
    if report.complete_rows < report.rows:
        ways = " or ".join(option("missing", way) for way in ("drop", "indicator")[not report.complete_rows :])
        said.append(f"{report.complete_rows:,} of {counted(report.rows, 'row')} complete: a test needs {ways}")
    return ", ".join(said)


def values_text(column: ColumnReport) -> str:
    """Return the range of numbers and dates, the most frequent values of the others, and how many numbers are in text."""
    parts = []
    if column.levels:
        parts = [f"{_cut(level.value)} {level.count:,}" for level in column.levels]
        parts += ["..."] * (column.different > len(column.levels))
    elif column.minimum is not None and column.maximum is not None:
        ends = [end if isinstance(end, str) else words.number(end) for end in (column.minimum, column.maximum)]
        if ends[0] == ends[1] and column.different == 1:
            return ends[0]
        parts = [f"{ends[0]} to {ends[1]}"]
        moments = {"mean": column.mean, "sd": column.deviation, "median": column.median}
        parts += [f"{name} {words.number(value)}" for name, value in moments.items() if value is not None]
    if column.numbers is not None and 0 < column.numbers < 1:
        # Neither all nor none.
        share = min(99, max(1, round(100 * column.numbers)))
        parts.append(f"{share} % of the values are {'dates' if column.type == 'date' else 'numbers'}")
    return ", ".join(parts)


def _cut(value: str) -> str:
    """Return a value on one line, cut if it is long."""
    text = words.visible(value)
    return text if len(text) <= WIDEST_VALUE else f"{text[: WIDEST_VALUE - 3]}..."


@telling
def inspect_table(
    source: Any,
    *,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    name: str | None = None,
    **csv: Unpack[SeededWords],
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
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    TableReport
        A frozen record; its fields are those of the JSON. A column that no test could use is reported as such: it
        raises nothing.

    Warns
    -----
    KerntestWarning
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
    selected = named_columns(table, columns, exclude)
    named = case_columns(selected, usable(selected).columns)
    cases = next((one.column for one in named if one.sure and max(one.alike.values()) > ALIKE), None)
    return TableReport(
        name=table.name,
        format=table.format,
        delimiter=table.delimiter,
        compression=table.compression,
        files=table.files,
        bytes=table.size,
        sha256=table.sha256,
        rows=table.n_rows,
        complete_rows=int(np.count_nonzero(complete_rows(usable(selected)))),
        columns=tuple(_column_report(column, selected, cases) for column in selected.columns),
        warnings=selected.warnings,
        chosen_from=table.chosen_from,
        chosen_by=table.chosen_by or None,
    )


def _column_report(column: Column, table: Table, cases: Column | None) -> ColumnReport:
    """Return what there is to say about one column; `cases` names cases of several rows."""
    use = use_of(column, table)
    if cases is not None and column.name == cases.name:
        told = f"rows with the same value are alike: consider {option('cluster', [column.name])}"
        use["note"] = "; ".join(filter(None, (use["note"], told)))
    return ColumnReport(
        name=column.name,
        type=type_of(column),
        missing=0 if type_of(column) == "other" else column.n_missing,
        # With counts, since without them numpy.ma is loaded: 10 ms.
        different=len(np.unique(column.values[~column.missing], return_counts=True)[0]),
        levels=tuple(LevelCount(value, count) for value, count in frequent_levels(column)),
        **described(column, table.na),
        **use,
    )


@dataclass(frozen=True)
class ModelColumn(Record):
    """A column that a model was fitted to.

    Parameters
    ----------
    name : str
    kind : str
        "number", "boolean", "text" or "date".
    levels : tuple of str or None
        The values of text and booleans.
    centre, spread : float or None
        Of numbers, and of dates in days since 1970-01-01: a value v became (v - centre) / spread.
    written : str or None
        In which form the values are read from text, such as "percent" or "date, day first"; None for plain ones.
    filled : float or None
        What stands for a missing number where gaps are information.
    indicator : bool or None
        Whether the model also sees which of these are missing.
    low, high : float or None
        The ends of numbers and dates in the training rows; not in older files.
    """

    name: str
    kind: str
    levels: tuple[str, ...] | None = None
    centre: float | None = None
    spread: float | None = None
    written: str | None = None
    filled: float | None = None
    indicator: bool | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class ModelReport(Result):
    """A model file.

    Parameters
    ----------
    schema : str
        "kerntest.model/1".
    name : str
        The file.
    kind : str
        Which learner wrote it: "svm", "ridge", "kpca", "unmix", "cca".
    format_version : int
    kerntest_version : str
    task, method : str or None
    target : str or None
    classes : tuple of str
        Sorted; empty where there are none.
    columns : tuple of ModelColumn
        What new rows need.
    scale : str or None
        "standardize", "together" or "none".
    kernel : str or None
    features : str or None
        Explicit features instead of the kernel, such as "nystroem:100".
    n_support : int or None
        Different training rows that the model keeps; none with explicit features.
    intercepts : tuple of float
        One for each decision function.
    probability : bool
        Whether it predicts probabilities.
    lambda_ : float or None
        Of a ridge regression; of canonical correlations as a share of the variance.
    intervals : bool
        Whether it predicts intervals.
    eigenvalues : tuple of float
        Of principal components, of HKH.
    explained_variance_ratio : tuple of float
        The same relative to the trace of HKH.
    importance : Importance or None
        What each column was worth on the rows held out when it was fitted; None without them.
    mixing : tuple of tuple of float
        Of independent sources: for each column by how much it changes with each source, in its own units.
    correlations : tuple of float
        Of canonical correlations, on the training rows; `correlations_left_out` are those of rows left out in folds, and
    columns_x, columns_y : tuple of str
        the columns of each side.
    bytes : int
    sha256 : str
    """

    WORDS = "results.inspection_record.model_summary"
    schema: str = "kerntest.model/1"
    command: str = "inspect"
    name: str
    kind: str
    format_version: int
    kerntest_version: str
    task: str | None = None
    method: str | None = None
    target: str | None = None
    classes: tuple[str, ...] = ()
    columns: tuple[ModelColumn, ...] = ()
    scale: str | None = None
    kernel: str | None = None
    features: str | None = None
    n_support: int | None = None
    intercepts: tuple[float, ...] = ()
    probability: bool = False
    lambda_: float | None = None
    intervals: bool = False
    eigenvalues: tuple[float, ...] = ()
    explained_variance_ratio: tuple[float, ...] = ()
    importance: Importance | None = None
    mixing: tuple[tuple[float, ...], ...] = ()
    correlations: tuple[float, ...] = ()
    columns_x: tuple[str, ...] = ()
    columns_y: tuple[str, ...] = ()
    correlations_left_out: tuple[float, ...] = ()
    bytes: int
    sha256: str


KIND_TITLES = {
    "ridge": "Kernel ridge regression",
    "kpca": "Kernel principal components",
    "unmix": "Independent components",
    "cca": "Canonical correlations",
}


def model_summary(report: ModelReport) -> words.Summary:
    """Return what a model is, what was learned, and the columns that new rows need."""
    target = "" if report.target is None else f", predicts {words.visible(report.target)}"
    if report.task == "one-class":
        target = ": true for rows like the training rows, false for outliers"
    shares = words.name_list([words.percent(ratio) for ratio in report.explained_variance_ratio])
    told: list[tuple[str, Any]] = [
        ("task", report.task and f"{report.task}{target}"),
        (
            "classes",
            report.classes
            and f"{len(report.classes):,}: {words.name_list([report.classes[place] for place in words.natural_order(report.classes)])}",
        ),
        ("kernel", report.kernel and words.visible(words.shortened_kernel(report.kernel))),
        ("features", report.features),
        ("support", None if report.n_support is None else counted(report.n_support, "different training row")),
        ("intercept", words.name_list([words.number(one) for one in report.intercepts])),
        ("components", report.eigenvalues and f"{len(report.eigenvalues):,}: {shares} of the variance"),
        ("sources", report.mixing and f"{len(report.mixing[0]):,}, linear in the columns"),
    ]
    if report.correlations:
        correlations = words.name_list([words.number(one, 2) for one in report.correlations])
        told += [("x", words.name_list(report.columns_x)), ("y", words.name_list(report.columns_y))]
        told += [("pairs", f"{len(report.correlations):,}: correlations {correlations} on the training rows")]
        left_out = words.name_list([words.number(one, 2) for one in report.correlations_left_out])
        told += [("", left_out and f"{left_out} on rows left out in folds")]
        told += [("lambda", words.number(report.lambda_ or 0.0))]
    elif report.lambda_ is not None:
        intervals = "yes" if report.intervals else f"no; it was fitted with {option('intervals', False)}"
        told += [("lambda", words.number(report.lambda_)), ("intervals", intervals)]
    if report.task == "classify":
        told.append(("probability", "yes" if report.probability else f"no; {option('probability', True)} fits them"))
    told += [
        ("scale", report.scale),
        ("format", f"version {report.format_version}, written by kerntest {words.visible(report.kerntest_version)}"),
        ("file", f"{counted(report.bytes, 'byte')}, sha256 {report.sha256[:16]}..."),
    ]
    worth, headings, heading = dict[str, tuple[str, str]](), list[tuple[str, Any]](), ""
    told += importance_lines(report)
    if (importance := report.importance) is not None and not importance.none:
        worth = importance_texts(importance)
        headings = [("rise" if importance.score == "RMSE" else "lost", "number"), ("+-", "number")]
        score = "rise of the RMSE" if importance.score == "RMSE" else f"{importance.score} lost, in %,"
        heading = f"Columns, the {score} where one is shuffled, of {importance.rows:,} rows held out:"
    order = {name: place for place, name in enumerate(worth)}
    columns = words.ResultTable(
        (("column", "name"), ("type", "word"), *headings, ("values", "text")),
        tuple(
            (words.visible(one.name), one.kind, *worth.get(one.name, ("-", "-") if worth else ()), _values(one))
            for one in sorted(report.columns, key=lambda one: order.get(one.name, len(order)))
        ),
        heading,
    )
    title = (TITLES | KIND_TITLES).get(report.method or report.kind, words.visible(report.kind))
    lines = tuple((label, text) for label, text in told if text)
    return words.Summary(f"{words.visible(report.name)}: {title}", lines, "", (), (columns,) if report.columns else ())


def _values(column: ModelColumn) -> str:
    """Return the levels of a category, the scaling of a number."""
    if column.levels is not None:
        return f"{len(column.levels):,}: {words.name_list(column.levels)}"
    written = "" if column.written is None else f", written as {column.written}"
    written += "" if column.filled is None else "; may be missing"
    if column.low is not None and column.high is not None:
        shown = date_text if column.kind == "date" else words.number
        written = f", {shown(column.low)} to {shown(column.high)}{written}"
    if column.centre is None or column.spread is None or (column.centre, column.spread) == (0.0, 1.0):
        return f"as it is{written}"
    days = " (days since 1970-01-01)" if column.kind == "date" else ""
    return f"mean {words.number(column.centre)}, sd {words.number(column.spread)}{days}{written}"
