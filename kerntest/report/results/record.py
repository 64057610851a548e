"""What every result is, field by field its JSON, and what the results of all tests have."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from kerntest.dataclass import dataclass

if TYPE_CHECKING:
    import pandas as pd

    from kerntest.data.table import Table
    from kerntest.report.results.independence_record import KernelPair
    from kerntest.report.summaries.words import Summary

LIBRARIES = ("numpy", "scipy", "pyarrow")
# Says of relabellings that there are no others.
ALL_PERMUTATIONS = "all permutations"


class Record:
    """Base of all records: conversion to plain Python data.

    `rows_from` names the field of a record of many tests that holds them, `LAST` the fields that stand behind all others.
    """

    __slots__ = ()
    rows_from: ClassVar[str] = ""
    LAST: ClassVar[tuple[str, ...]] = ("warnings", "provenance")

    @classmethod
    @cache
    def names(cls) -> list[str]:
        """Return the names of the fields in the order of the JSON."""
        found = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # all records are dataclasses
        return sorted(found, key=lambda name: cls.LAST.index(name) if name in cls.LAST else -1)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain dicts, lists, numbers and texts; a number that is not finite becomes None."""
        plain: dict[str, Any] = plain_data(self)
        return plain

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with a row for each of many tests, or one with nested fields as `null.method`."""
        import pandas as pd  # noqa: PLC0415 - pandas takes 0.3 s to import and only this method needs it

        return pd.DataFrame(self.rows_of_tests() if self.rows_from else [flatten(self.to_dict())])

    def rows_of_tests(self) -> list[dict[str, Any]]:
        """Return many tests as plain data; none where the record is of one."""
        return plain_data(getattr(self, self.rows_from)) if self.rows_from else []


class Result(Record):
    """Base of what users get: its representation is what the command prints."""

    __slots__ = ()
    # What puts it into words, below `kerntest.report`, by its command or for all: that need not be loaded for JSON.
    WORDS: ClassVar[str]
    command: str

    def __init_subclass__(cls) -> None:
        # A data class has one of its own where it finds none.
        cls.__repr__ = Result.__repr__  # type: ignore[method-assign]  # the same

    def in_words(self) -> Summary:
        """Return lines, tables and the decision."""
        module, _, function = self.WORDS.format(command=self.command).rpartition(".")
        words: Summary = getattr(import_module(f"kerntest.report.{module}"), function)(self)
        return words

    def summary(self, width: int = 100) -> str:
        """Return the lines and tables that the command prints, for a page of so many characters."""
        return self._drawn("summary_text", width=width, colour=False)

    def to_markdown(self) -> str:
        """Return the lines and tables that the command prints as Markdown."""
        return self._drawn("summary_markdown")

    def __repr__(self) -> str:
        return self.summary().rstrip()

    def _repr_html_(self) -> str:
        return self._drawn("summary_html")

    def _drawn(self, function: str, **options: Any) -> str:
        # Loaded only for people.
        text: str = getattr(import_module("kerntest.report.drawing"), function)(self.in_words(), **options)
        return text


def library_versions() -> dict[str, str | None]:
    """Return the versions of the libraries that made the numbers; None for one that took no part."""
    return {name: getattr(sys.modules.get(name), "__version__", None) for name in LIBRARIES}


@dataclass(frozen=True)
class InputRecord(Record):
    """One input: its name as typed, its rows as read and as used, and the checksum of its bytes (None for arrays).

    `delimiter` is what was found between the fields of a CSV file, None for other formats; `compression` "gzip",
    "zstd", "bzip2" or "xz", None for plain files; `files` how many files were read as one table, None for arrays.
    Where rows were chosen, `chosen_by` says how, and `chosen_from` from how many (None where that was not counted).
    """

    name: str
    format: str
    rows: int
    rows_used: int
    sha256: str | None
    delimiter: str | None = None
    compression: str | None = None
    files: int | None = None
    chosen_from: int | None = None
    chosen_by: str | None = None

    @classmethod
    def of(cls, table: Table, rows_used: int) -> InputRecord:
        """Return what is told of a table of which so many rows were used."""
        files = len(table.files) or None
        told = (table.sha256, table.delimiter, table.compression, files, table.chosen_from, table.chosen_by or None)
        return cls(table.name, table.format, table.n_rows, rows_used, *told)


@dataclass(frozen=True)
class Provenance(Record):
    """What is needed to run the same test, or fit the same model, again and get the same numbers.

    `engine` is where it was computed; on a GPU `device` names it. `device_error` is None: a GPU computes in float64 too.
    """

    version: str
    seed: int
    inputs: tuple[InputRecord, ...]
    kernel: str
    bandwidth: str
    scale: str
    dtype: str
    threads: int
    libraries: Mapping[str, str | None]
    seconds: float
    engine: str = "local"
    device: str | None = None
    device_error: float | None = None


@dataclass(frozen=True)
class Null(Record):
    """How the p-value was found.

    Parameters
    ----------
    method : str
        "permutation", "moments", "gamma", "spectral" or "pearson".
    permutations, requested : int or None
        Relabellings used, the identity among them, and how many were asked for. None for "moments".
    p_floor : float or None
        The smallest p-value this null can give: 1 / permutations. None without resampling.
    exact : bool
        Whether the level is exact in finite samples under exchangeability.
    resampling : str or None
        "permuted blocks of 5 random rows", "random permutations", "all permutations" or "cyclic shifts"; None without
        resampling.
    orders : int or None
        Random orders of the rows (cosets of the group of shifts, or of permutations of blocks) that were used; None for
        permutations within one.
    mean, standard_deviation, skewness : float or None
        Of the null distribution of the reported statistic.
    trace : str or None
        "exact" or "stochastic": how the cubic term of the skewness was found, for "moments".
    """

    method: str
    permutations: int | None = None
    requested: int | None = None
    p_floor: float | None = None
    exact: bool = False
    resampling: str | None = None
    orders: int | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    skewness: float | None = None
    trace: str | None = None
    kurtosis: float | None = None


@dataclass(frozen=True)
class FamilyMember(Record):
    """One kernel of a family.

    Parameters
    ----------
    kernel : str
    z : float
        Its statistic in null standard deviations.
    p_value : float
        Its own, not corrected for the others.
    excess : float or None
        Of a family judged together: how much of the excess nearest to all z is its own, in null standard deviations.
    """

    kernel: str
    z: float
    p_value: float
    excess: float | None = None


@dataclass(frozen=True)
class FamilyRecord(Record):
    """Several kernels, or pairs of kernels, judged together by one exact p-value.

    Parameters
    ----------
    judge : str
        "together" or "smallest".
    combination : str
        How the kernels were combined, in words.
    members : tuple of FamilyMember, or of KernelPair
        In the order of the family. Their own p-values are not corrected for one another; the result's p-value is.
    thinning : str
        How the choice of kernels depends on the number of rows, in words.
    p_clearest : float or None
        The p-value of the largest z alone, corrected for having looked at all members.
    """

    judge: str
    combination: str
    members: tuple[FamilyMember | KernelPair, ...]
    thinning: str
    p_clearest: float | None = None


@dataclass(frozen=True, kw_only=True)
class AnyTestResult(Result):
    """What the results of all tests have.

    Parameters
    ----------
    schema : str
        What the record is, and its version: "kerntest.mmd/1".
    columns_left_out : tuple of str
        Columns that the test did not use: excluded, in one input only, constant, identifiers, not seen by the kernel.
    """

    LAST: ClassVar[tuple[str, ...]] = ("columns", "columns_left_out", *Record.LAST)
    schema: str
    command: str
    alpha: float
    reject: bool
    decision: str
    columns: tuple[str, ...]
    columns_left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...]
    provenance: Provenance


@dataclass(frozen=True, kw_only=True)
class StatisticResult(AnyTestResult):
    """What the results of tests by one statistic have.

    Parameters
    ----------
    statistic : float
        The estimate named by `estimator`, for `kernel`.
    p_value : float
        In (0, 1]; of the whole family of kernels where there is one.
    kernel : str
        As resolved. With a family: the member that saw most, selected by the test itself.
    """

    statistic: float
    estimator: str
    p_value: float
    kernel: str
    null: Null


def plain_data(value: Any) -> Any:
    """Return `value` with records as dicts, tuples as lists, numpy scalars as Python's, and NaN and infinity as None.

    A field that Python has another use for, such as `lambda_`, loses its underscore.
    """
    if isinstance(value, Record):
        return {name.rstrip("_"): plain_data(getattr(value, name)) for name in value.names()}
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested mapping as one level with dotted keys; lists become one text, joined by ';'.

    A list of mappings becomes one such text per key: the names of two inputs are ``inputs.name``: ``"a.csv;b.csv"``.
    """
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{name}."))
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            items = [_level(item) for item in value]
            flat.update({f"{name}.{part}": _joined([item.get(part) for item in items]) for part in items[0]})
        elif isinstance(value, list):
            flat[name] = _joined(value)
        else:
            flat[name] = value
    return flat


def _level(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of a list of mappings as one level with dotted keys; lists in it stay as they are."""
    level: dict[str, Any] = {}
    for key, value in nested.items():
        level.update(
            {f"{key}.{part}": one for part, one in _level(value).items()}
            if isinstance(value, Mapping)
            else {key: value}
        )
    return level


def _joined(values: list[Any]) -> str:
    """Return plain values as one text; None leaves its place empty."""
    return ";".join("" if value is None else str(value) for value in values)
