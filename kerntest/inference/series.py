"""The shift test for two stationary series: the order of the rows is kept (Chwialkowski and Gretton 2014).

Rows that follow one another depend on one another, so that they cannot be put into a random order. Shifting one
series against the other along the circle keeps the dependence within each and breaks that between them; shifts of at
least `minimum` rows stand for independence. The p-value (1 + #{T(t) >= T(0)}) / (1 + shifts) is asymptotic: it needs
series that are stationary and forget their past well before the minimum lag.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UsageError
from kerntest.inference.nulls.permutation import judge, tie_tolerance
from kerntest.inference.pair_verdict import PairVerdict, Variables, degenerate_pair, judged_pairs
from kerntest.inference.relabelling import shifted_statistics
from kerntest.inference.statistic import dependence, factor
from kerntest.inference.verdict import relabelling_warning
from kerntest.report import record
from kerntest.report.independence_record import Lags

if TYPE_CHECKING:
    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.pair_family import PairFamily
    from kerntest.inference.sides import Options
    from kerntest.kernels.base import Array

# The default minimum is this share of the rows.
SHARE = 20


def shortest(n: int) -> int:
    """Return the smallest shift of n rows unless one is given."""
    return max(1, n // SHARE)


def shifts_of(n: int, minimum: int | None) -> int:
    """Return how many shifts stand for independence, none among them; at least 1."""
    return max(n - 2 * (shortest(n) if minimum is None else minimum) + 2, 1)


def shift_verdict(
    family: PairFamily,
    variables: Variables,
    options: Options,
    engine: Engine,
    progress: Progress | None,
    *,
    minimum: int | None,
) -> PairVerdict:
    """Judge all pairs of kernels over the shifts from `minimum` to n - minimum rows.

    Parameters
    ----------
    family : PairFamily
    variables : (Variable, Variable)
        In the order of time.
    options : Options
    engine : Engine
    progress : callable, optional
    minimum : int, optional
        Smallest shift; by default a twentieth of the rows.

    Raises
    ------
    UsageError
        If no shift is left, or another null than the permutation null was asked for.
    UndecidedError
        If no pair of kernels can tell any two shifts apart.
    """
    if options.null != "permutation" or options.resampling != "shifts":
        raise UsageError(
            "series have one null, the shift test",
            hint="leave out --null and --resampling, or --time-series",
            code="usage.time_series",
        )
    n = len(variables[0].points)
    minimum = shortest(n) if minimum is None else minimum
    if 2 * minimum > n:
        raise UsageError(
            f"no shift of {n:,} rows is at least {minimum:,} rows away from both ends",
            hint=f"--min-lag may be at most {n // 2}",
            code="usage.min_lag",
        )
    order = np.arange(n)
    sums = shifted_statistics(
        [(variables[0].points, family.first.kernels)],
        [(variables[1].points, family.second.kernels)],
        order,
        [order],
        circle=n,
        estimator=options.estimator,
        engine=engine,
        progress=progress,
    )
    f, g = np.array(family.pairs).T
    every = sums[f, g]
    used = np.r_[0, minimum : n - minimum + 1]
    tolerances = _tolerances(family, variables)
    judged = judge(every[:, used], tolerances, options.judge, family.halvings)
    if judged.degenerate.all():
        raise degenerate_pair(*family.kernels(0))
    scale = factor(n, options.estimator)
    chosen = judged.selected
    kernels = family.kernels(chosen)
    shifts = n - 2 * minimum + 1
    null = record.Null(
        method="shift",
        permutations=shifts + 1,
        requested=None,
        p_floor=1.0 / (shifts + 1),
        exact=False,
        resampling="cyclic shifts of the series",
        orders=None,
        mean=float(scale * judged.mean[chosen]),
        standard_deviation=float(scale * judged.standard_deviation[chosen]),
        skewness=float(judged.skewness[chosen]),
        trace=None,
    )
    verdict = PairVerdict(
        p_value=judged.p_value,
        kernels=kernels,
        found=dependence(kernels[0], variables[0].points, kernels[1], variables[1].points, engine),
        null=null,
        members=judged_pairs(family, judged),
        p_clearest=judged.p_clearest,
        relabelled=scale * every[chosen][used],
        warnings=relabelling_warning(
            judged.p_value, shifts + 1, options.alpha, "it takes longer series, or a smaller --min-lag"
        ),
    )
    # At which shift any of the pairs sees most, by its standard deviations over the shifts that stand for independence.
    deviation = np.where(judged.degenerate, np.inf, judged.standard_deviation)[:, None]
    z, rounding = (every - judged.mean[:, None]) / deviation, tolerances[:, None] / deviation
    strongest = np.flatnonzero((z + rounding).max(axis=0) >= (z - rounding).max())
    # A shift by more than half the circle is one in the other direction. Of several the shortest, forwards before backwards.
    signed = min((int(lag if lag <= n // 2 else lag - n) for lag in strongest), key=lambda lag: (abs(lag), lag < 0))
    return replace(verdict, lags=Lags(minimum, shifts, signed, float(scale * every[chosen, signed])))


def _tolerances(family: PairFamily, variables: Variables) -> Array:
    """Return how far rounding can move the sum of each pair of kernels."""
    n = len(variables[0].points)
    largest = [
        [float(np.abs(kernel.diagonal(variable.points)).max()) for kernel in side.kernels]
        for side, variable in zip((family.first, family.second), variables, strict=True)
    ]
    return np.array([tie_tolerance(largest[0][f], n, largest[1][g] * n) for f, g in family.pairs])
