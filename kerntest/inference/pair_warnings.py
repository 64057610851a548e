"""What a reader must know before believing an independence test: found in the data and the kernels, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.copies import copies_warning
from kerntest.data.misleading import counters, counts_rows
from kerntest.data.wording import counted, listed
from kerntest.kernels.catalogue import why_not_characteristic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.data.table import Column
    from kerntest.inference.pair_family import PairFamily
    from kerntest.inference.pair_verdict import PairVerdict
    from kerntest.inference.sides import Groups, Paired

# Neighbouring rows that are this much alike, in standard errors of the serial correlation, are no random sample.
SERIAL_ERRORS = 6.0
FEWEST_ROWS = 30


def pair_warnings(
    groups: Groups, paired: Paired, family: PairFamily, verdict: PairVerdict, *, time_series: bool
) -> tuple[str, ...]:
    """Return the warnings of a test.

    Parameters
    ----------
    groups : Groups
        The tables with the columns of each side.
    paired : Paired
        The rows that were used.
    family, verdict
        The kernels, and what was found.
    time_series : bool
        Whether the rows are known to follow one another in time.
    """
    warnings = series_warnings(groups, paired, time_series=time_series)
    if not time_series:
        warnings += [text for table in groups.tables for text in counters(table.columns)] + paired_copies(paired)
    warnings += kernel_warnings(family, verdict)
    if time_series:
        warnings.append(
            "the p-value of a shift test is asymptotic: it holds for long stationary series that forget their past "
            f"well within the minimum lag of {counted(verdict.lags.minimum if verdict.lags else 1, 'row')}"
        )
    return tuple(warnings)


def kernel_warnings(family: PairFamily, verdict: PairVerdict) -> list[str]:
    """Return warnings where the kernels do not see everything."""
    warnings = []
    unused = [*family.first.unused, *family.second.unused]
    if unused:
        warnings.append(
            f"columns that the kernel does not name are left out: {', '.join(unused)} (add '*: ...' to use them)"
        )
    # What the reported kernels do not see, others of the family may.
    all_seen = any(all(kernel.characteristic for kernel in family.kernels(pair)) for pair in range(len(family.pairs)))
    for kernel, side in zip(verdict.kernels, "xy", strict=True):
        reason = None if all_seen else why_not_characteristic(kernel)
        if reason is not None:
            warnings.append(f"{side}: {reason}".replace("MMD", "HSIC"))
        if not kernel.positive_definite:
            warnings.append(
                f"{side}: the kernel '{kernel}' is not positive definite: HSIC is then no squared distance and may be "
                "negative; the p-value is valid all the same"
            )
    return warnings


def series_warnings(groups: Groups, paired: Paired, *, time_series: bool) -> list[str]:
    """Return warnings where rows that follow one another in the file are alike on both sides.

    Two unrelated random walks look dependent to every test that takes rows for independent.
    """
    if time_series or paired.n < FEWEST_ROWS:
        return []
    alike = [[column.name for column in table.columns if _runs(column, paired.origin)] for table in groups.tables]
    return series_warning(alike)


def series_warning(alike: Sequence[Sequence[str]]) -> list[str]:
    """Return a warning where some columns of both sides, named here, are alike from row to row."""
    if not all(alike):
        return []
    names = listed([repr(names[0]) for names in alike])
    warning = (
        f"neighbouring rows are alike in {names}: if the rows are a series in time, the p-value is far too small; "
        "--time-series tests series"
    )
    return [warning]


def runs_of(columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns that are correlated from row to row, missing values left out."""
    running = []
    for column in columns:
        rows = np.flatnonzero(~column.missing)
        if len(rows) >= FEWEST_ROWS and _runs(column, rows):
            running.append(column.name)
    return running


def _runs(column: Column, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> bool:
    """Say whether a column of numbers is correlated from row to row, or counts the rows."""
    if column.is_category:
        return False
    values = column.values[rows]
    if counts_rows(values):
        return True
    # Equal values have equal ranks: their place in the file would make a series of any column with ties.
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts + 1))[place]
    ranks -= ranks.mean()
    total = float(ranks @ ranks)
    return total > 0 and float(ranks[1:] @ ranks[:-1]) / total * np.sqrt(len(ranks)) > SERIAL_ERRORS


def paired_copies(paired: Paired) -> list[str]:
    """Return the warning about copies among the rows of a test."""
    points = [one.points for one in paired.variables]
    return copies_warning([column for one in points for column in (*one.numeric.T, *one.codes.T)])
