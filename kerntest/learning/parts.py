"""The rows to learn from, and those to judge by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kerntest.errors import UsageError
from kerntest.learning.cross_validation import train_test_split
from kerntest.learning.leakage import told_of_shared
from kerntest.learning.provenance import input_of
from kerntest.learning.training_rows import read_like

if TYPE_CHECKING:
    from kerntest.kernels.base import Codes
    from kerntest.learning.training_rows import Labelled, TrainingOptions
    from kerntest.report.record import InputRecord


def check_parts(test: Any, fraction: float | None) -> None:
    """Refuse two ways at once to say which rows to judge by.

    Raises
    ------
    UsageError
        As above.
    """
    if test is not None and fraction is not None:
        raise UsageError(
            "--test and --test-fraction contradict each other", hint="give one of them", code="usage.contradiction"
        )


def parts_of(
    labelled: Labelled,
    test: Any,
    fraction: float | None,
    reading: TrainingOptions,
    *,
    seed: int,
    codes: Codes | None = None,
) -> tuple[tuple[Labelled, Labelled | None], tuple[InputRecord, ...]]:
    """Return the rows to learn from and those to judge by, if any, and what was read.

    Parameters
    ----------
    labelled : Labelled
        The table to learn from.
    test : path or table, optional
        Rows to judge by.
    fraction : float, optional
        Instead: the share of the rows of `labelled`.
    reading : TrainingOptions
    seed : int
        Of the draw.
    codes : ndarray of int, shape (n,), optional
        The class of each row, to draw by.
    """
    if fraction is not None:
        train_rows, test_rows = train_test_split(codes, labelled.n, fraction, seed, labelled.clusters)
        # What was found in the table is told once.
        held_out = replace(labelled.take(test_rows), warnings=())
        return (labelled.take(train_rows), held_out), (input_of(labelled),)
    if test is None:
        return (labelled, None), (input_of(labelled),)
    held = read_like(test, labelled, reading)
    return (labelled, told_of_shared(labelled, held)), (input_of(labelled), input_of(held))
