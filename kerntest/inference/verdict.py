"""From kernels and rows to a verdict: each null in the words of the record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.inference.labels import LabelSide, label_matrix
from kerntest.inference.nulls.moments import kernel_invariants, label_invariants, moments_p_value, permutation_moments
from kerntest.inference.nulls.permutation import COMBINATION, Judged, judge, tie_tolerance
from kerntest.inference.order import random_orders
from kerntest.inference.shifts import circle_length, orders_needed, shift_sums
from kerntest.inference.statistic import Discrepancy, discrepancy
from kerntest.report import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.family import Family
    from kerntest.inference.options import Options
    from kerntest.inference.sample import Sample
    from kerntest.kernels.base import Kernel

# The moments of the permutation distribution need four rows.
FEWEST_ROWS = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a null says: a p-value, the kernel it is reported for, what that kernel measures, and how it was found."""

    p_value: float
    kernel: Kernel
    found: Discrepancy
    null: record.Null
    family: record.Family | None
    warnings: tuple[str, ...]


def permutation_verdict(
    family: Family, sample: Sample, options: Options, engine: Engine, progress: Progress | None
) -> Verdict:
    """Judge the family over all cyclic relabellings of as many random orders as are needed."""
    n = len(sample.points)
    n_x = int(sample.labels.sum())
    circle = circle_length(n)
    orders = orders_needed(options.permutations, circle)
    order, labellings = random_orders(sample.labels, orders, options.seed)
    label = label_matrix(n_x, n - n_x, options.estimator)
    points = sample.points.take(order)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = shift_sums(
            family.kernels,
            points,
            LabelSide(label, labellings, circle),
            circle=circle,
            orders=orders,
            engine=engine,
            progress=progress,
        ).reshape(len(family.kernels), orders * circle)
    refuse_overflow(family.kernels, sums)
    other_norm = math.sqrt(label.squared_norm)
    tolerances = np.array([tie_tolerance(float(k.diagonal(points).max()), n, other_norm) for k in family.kernels])
    judged = judge(sums, tolerances)
    refuse_degenerate(judged, family)
    used = orders * circle
    chosen = judged.selected
    null = record.Null(
        method="permutation",
        permutations=used,
        requested=options.permutations,
        p_floor=1.0 / used,
        exact=True,
        resampling="cyclic shifts",
        orders=orders,
        mean=float(label.factor * judged.mean[chosen]),
        standard_deviation=float(label.factor * judged.standard_deviation[chosen]),
        skewness=float(judged.skewness[chosen]),
        trace=None,
    )
    members = tuple(
        record.FamilyMember(str(kernel), float(z), float(p))
        for kernel, z, p in zip(family.kernels, judged.z, judged.p_values, strict=True)
    )
    together = record.Family(COMBINATION, members, family.thinning) if len(members) > 1 else None
    warnings = []
    if null.p_floor is not None and null.p_floor > options.alpha:
        warnings.append(
            f"the smallest p-value that {used:,} relabellings can give is {null.p_floor:.3g}, above alpha = "
            f"{options.alpha:g}: the test cannot reject; use more --permutations"
        )
    kernel = family.kernels[chosen]
    found = discrepancy(kernel, sample.points, sample.labels, engine)
    return Verdict(judged.p_value, kernel, found, null, together, tuple(warnings))


def moments_verdict(
    family: Family, sample: Sample, options: Options, engine: Engine, progress: Progress | None
) -> Verdict:
    """Judge one kernel by the exact moments of its permutation distribution."""
    (kernel,) = family.kernels
    n = len(sample.points)
    n_x = int(sample.labels.sum())
    if n < FEWEST_ROWS:
        raise UndecidedError("the moments of the null need at least 4 rows", code="undecided.too_few_rows")
    label = label_matrix(n_x, n - n_x, options.estimator)
    invariants, exact = kernel_invariants(
        kernel,
        sample.points,
        engine,
        hollow=options.estimator == "unbiased",
        seed=options.seed,
        progress=progress,
    )
    moments = permutation_moments(invariants, label_invariants(label), n)
    largest = float(kernel.diagonal(sample.points).max())
    if not moments.standard_deviation > tie_tolerance(largest, n, math.sqrt(label.squared_norm)):
        raise degenerate_kernel(family)
    found = discrepancy(kernel, sample.points, sample.labels, engine)
    value = (found.unbiased if options.estimator == "unbiased" else found.biased) / label.factor
    null = record.Null(
        method="moments",
        permutations=None,
        requested=None,
        p_floor=None,
        exact=False,
        resampling=None,
        orders=None,
        mean=label.factor * moments.mean,
        standard_deviation=label.factor * moments.standard_deviation,
        skewness=moments.skewness,
        trace="exact" if exact else "stochastic",
    )
    return Verdict(moments_p_value(value, moments), kernel, found, null, None, ())


def refuse_overflow(kernels: Sequence[Kernel], sums: np.ndarray[Any, Any]) -> None:
    """Refuse sums that are not finite.

    Raises
    ------
    UndecidedError
        Naming the kernel.
    """
    for kernel, values in zip(kernels, sums, strict=True):
        if not np.isfinite(values).all():
            raise UndecidedError(
                f"the kernel '{kernel}' overflows on these rows",
                hint="--scale standardize, or a smaller gain or degree, keeps it in range",
                code="undecided.overflow",
            )


def refuse_degenerate(judged: Judged, family: Family) -> None:
    """Refuse a family of which no member can tell any two relabellings apart.

    Raises
    ------
    UndecidedError
        As above.
    """
    if judged.degenerate.all():
        raise degenerate_kernel(family)


def degenerate_kernel(family: Family) -> UndecidedError:
    """Return the error for kernels that find all pairs of rows equally similar."""
    return UndecidedError(
        f"the kernel '{family.kernels[0]}' finds all pairs of different rows equally similar: nothing can be tested",
        hint="its bandwidth is far too small or far too large for these rows; try --bandwidth median",
        code="undecided.degenerate_kernel",
    )
