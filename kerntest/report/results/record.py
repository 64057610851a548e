"""What every result is, and the results of two-sample tests, field by field their JSON."""

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


@dataclass(frozen=True)
class MinimumEffect(Record):
    """Whether the difference is as large as was asked for.

    Parameters
    ----------
    minimum : float
        The smallest MMD that matters.
    kernel : str
        The kernel it is measured with: the named one, or the Gaussian at the median bandwidth.
    mmd, standard_error : float or None
        MMD under that kernel; the error is None where MMD is 0.
    lower_bound : float
        Lower confidence bound of MMD at level 1 - alpha; 0 where there is none above.
    reached : bool
        lower_bound >= minimum.
    """

    minimum: float
    kernel: str
    mmd: float
    standard_error: float | None
    lower_bound: float
    reached: bool


@dataclass(frozen=True)
class ColumnContents(Record):
    """What one sample holds in a column, in the column's own units.

    Parameters
    ----------
    missing : float
        Share of the rows, as they were read, that have no value.
    mean, lower_quartile, median, upper_quartile : float, str or None
        Of the numbers that were tested; of dates in ISO form; None for text and booleans.
    standard_deviation : float or None
        Divisor n - 1; of dates in days.
    value : str or None
        Of text and booleans the value whose share differs most between the samples; of numbers and dates the one that at
        least half of all rows hold, None where there is none.
    share : float or None
        Of the rows that were tested, how many hold it.
    """

    missing: float
    mean: float | str | None = None
    standard_deviation: float | None = None
    lower_quartile: float | str | None = None
    median: float | str | None = None
    upper_quartile: float | str | None = None
    value: str | None = None
    share: float | None = None


@dataclass(frozen=True)
class ColumnEffect(Record):
    """One column tested alone, and all the others without it.

    Parameters
    ----------
    column : str
    kernel : str
        What the column is compared by: gaussian at its own median bandwidth, or delta where it holds categories.
    z : float
        Its statistic in null standard deviations.
    p_value, p_adjusted : float
        Of the column alone, and corrected for all columns.
    p_without : float or None
        Of the joint test without the column; None where there is no other, and where that would take too long.
    effect_size : float
        As in `TwoSampleResult`, of the column alone: on one scale for numbers and categories, whatever n.
    x, y : ColumnContents or None
        What it was, and what it is.
    """

    column: str
    kernel: str
    z: float
    p_value: float
    p_adjusted: float
    p_without: float | None
    effect_size: float = 0.0
    x: ColumnContents | None = None
    y: ColumnContents | None = None


@dataclass(frozen=True)
class TypicalRow(Record):
    """A row that is much more typical of its own sample than of the other.

    Parameters
    ----------
    sample : str
        Name of its table; of two tables of one name with the letter X or Y.
    row : int
        Its number among the data rows, counted from 1.
    line : int or None
        Its line in a CSV file.
    witness : float
        The witness function there: positive where the first sample is denser.
    file : str or None
        Of a table of several files, the one that has the line.
    """

    sample: str
    row: int
    line: int | None
    witness: float
    file: str | None = None


@dataclass(frozen=True)
class Explanation(Record):
    """Where two samples differ: columns by how much each differs alone, and the most typical rows of each."""

    columns: tuple[ColumnEffect, ...]
    rows: tuple[TypicalRow, ...]


@dataclass(frozen=True)
class Approximation(Record):
    """Explicit features that stood for a kernel, and the blocks that relabellings moved.

    Parameters
    ----------
    features : str
        As asked for, such as "nystroem:300".
    kind : str
        "nystroem" or "fourier".
    number : int
        Landmarks, or random features.
    kernel_error : float
        Root mean square of <z(x), z(y)> - k(x, y) over pairs of sampled rows that are no landmarks, of the reported
        kernel.
    matrix_error : float
        |A - A_z| / |A| in the Frobenius norm, A the centred kernel matrix of such rows and A_z that of the features.
    rows_sampled : int
        Rows from which bandwidths, landmarks and these errors come.
    blocks : int or None
        Blocks of rows that relabellings permute.
    rows_per_block : int or None
    fixed_rows : int or None
        Rows that keep their file under every relabelling: beyond the last whole block of each file, and most of a file
        that has very many more rows than the other.
    """

    features: str
    kind: str
    number: int
    kernel_error: float
    matrix_error: float
    rows_sampled: int
    blocks: int | None = None
    rows_per_block: int | None = None
    fixed_rows: int | None = None


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


@dataclass(frozen=True, kw_only=True)
class TwoSampleResult(StatisticResult):
    """The result of a two-sample test. Field by field this is the JSON of `kerntest mmd`.

    Parameters
    ----------
    kernel : str
        Given back as `kernel=` it gives the same statistic.
    bandwidth, gamma : float or None
        Of a kernel that has one bandwidth; gamma = 1 / (2 bandwidth^2) for the Gaussian.
    mmd2_unbiased, mmd2_biased : float
        Both estimators of MMD^2. The unbiased one may be negative.
    mmd : float
        sqrt(max(mmd2_unbiased, 0)).
    mmd_standard_error : float or None
        Standard error of `mmd` when the distributions differ (Gretton et al. 2012, section 5); None near 0, where
        it is not valid.
    effect_size : float
        sqrt of the normalised statistic <A, B> / sqrt(<A, A> <B, B>), between 0 and 1.
    reject : bool
        p_value <= alpha and, where a minimum effect was asked for, that it is reached.
    minimum_effect, explanation : optional
        Where they were asked for.
    cluster, paired, strata : str or None
        The columns that say which rows move together, are pairs, or are compared with each other.
    units : int or None
        Clusters, or pairs.
    method : str
        "exact", or "features": every kernel value replaced by that of explicit features.
    approximation : Approximation or None
        How the features were made, and how far they are from the kernel.
    """

    WORDS = "summaries.test_summary.two_sample_summary"
    bandwidth: float | None
    gamma: float | None
    n_x: int
    n_y: int
    mmd2_unbiased: float
    mmd2_biased: float
    mmd: float
    mmd_standard_error: float | None
    effect_size: float
    family: FamilyRecord | None
    minimum_effect: MinimumEffect | None = None
    explanation: Explanation | None = None
    cluster: str | None = None
    paired: str | None = None
    strata: str | None = None
    units: int | None = None
    method: str = "exact"
    approximation: Approximation | None = None


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
