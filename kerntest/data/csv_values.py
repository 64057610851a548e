"""Values of CSV as text, made into what a column must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kerntest.data.categories import BLANKS, without_blanks
from kerntest.data.numerals import read_numerals
from kerntest.data.suspicion import in_form
from kerntest.data.typed import column_of

if TYPE_CHECKING:
    from kerntest.data.csv_options import Decimal
    from kerntest.data.table import Column, Kind, Table

_DATES = (pa.date32(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
_LEADING_ZERO = r"^[+-]?0[0-9xX]"


def typed_column(name: str, texts: Any, kind: Kind, table: Table, decimal: Decimal, *, written: str = "") -> Column:
    """Return a column of what was asked for, or of text where some value cannot be that.

    Parameters
    ----------
    name : str
    texts : pyarrow.ChunkedArray of string, shape (n,)
        As typed, without words that are missing values unless they are quoted; the empty text is missing.
    kind : {"number", "boolean", "text", "date"}
        Booleans stay text, for True and true are told apart by nobody who knows that they are booleans.
    table : Table
        For its name, its delimiter, its lines and its words for a missing value.
    decimal : {"auto", ".", ","}
        "." allows commas between thousands.
    written : str
        In which form numbers and dates are written, of `forms`.

    Notes
    -----
    Values become numbers and dates as those of `read_table` do, each by itself.
    """
    # Words for a missing value are text only in text, and only between quotes.
    if kind not in {"number", "date"}:
        return without_blanks(column_of(name, texts, table.name), table.na)
    texts = pc.utf8_trim(texts, BLANKS)
    present = pc.if_else(pc.is_in(texts, value_set=pa.array(("", *table.na))), pa.scalar(None, pa.string()), texts)
    if written:
        text = column_of(name, present, table.name)
        return in_form(text, written) or text
    if kind == "number":
        return _numbers(name, present, table, decimal)
    for date in _DATES:
        if (found := _cast(present, date)) is not None:
            return column_of(name, found, table.name)
    text = column_of(name, present, table.name)
    return in_form(text, "date, year first") or text


def _numbers(name: str, present: Any, table: Table, decimal: Decimal) -> Column:
    """Return numbers; a value like 001 is a name, and makes the column one of text."""
    if not pc.any(pc.match_substring_regex(present, _LEADING_ZERO)).as_py():
        found = _cast(present, pa.float64())
        # 1e400 stays as it is typed, so that a message can show it.
        if (
            found is not None
            and not pc.any(pc.and_(pc.is_inf(found), pc.match_substring_regex(present, "[0-9]"))).as_py()
        ):
            return column_of(name, found, table.name)
    text = column_of(name, present, table.name)
    if decimal != ".":
        return text
    return read_numerals([text], table, decimal, lambda _: ())[0]


def _cast(texts: Any, kind: Any) -> Any:
    """Return texts as another type; None where one of them is not of it."""
    try:
        return pc.cast(texts, kind)
    except pa.ArrowException:
        return None
