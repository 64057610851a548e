"""p-values over a set of relabellings that contains the observed labelling: exact under exchangeability.

    p = #{g : T_g >= T_observed} / #{g}

Ties count, with a tolerance that is scaled to the sums T is made of: relabellings that give the same split of the
rows differ in their last digits only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.nulls.pearson3 import log_upper_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Rounding errors of the relabelled sums are below this many units (measured: below 1), see `tie_tolerance`.
ROUNDING_UNITS = 8.0

# Scores are the same up to this: on a device they come from float32.
SAME = 1e-4

COMBINATION = "smallest p-value (Pearson III scores over the shared relabellings)"


@dataclass(frozen=True, slots=True)
class Judged:
    """A family of statistics judged together.

    Parameters
    ----------
    p_value : float
        Of the whole family; the smallest possible is 1 / relabellings.
    selected : int
        The member with the most extreme observed value; with handicaps, of those that no relabelling could make more
        extreme the one with the least.
    z : ndarray, shape (F,)
        Observed values in standard deviations of the relabelled ones.
    p_values : ndarray, shape (F,)
        Of each member by itself.
    mean, standard_deviation, skewness : ndarray, shape (F,)
        Of the relabelled values.
    degenerate : ndarray of bool, shape (F,)
        Members whose value no relabelling changes.
    """

    p_value: float
    selected: int
    z: Array
    p_values: Array
    mean: Array
    standard_deviation: Array
    skewness: Array
    degenerate: NDArray[np.bool_]


def tie_tolerance(largest_entry: float, rows: int, other_norm: float) -> float:
    """Return how far rounding can move <K, B> between two relabellings that are equal.

    Parameters
    ----------
    largest_entry : float
        Bound on |K_ij|: the largest k(x, x).
    rows : int
        n; |K| <= n * largest_entry bounds the norm of K.
    other_norm : float
        Frobenius norm of B.
    """
    return ROUNDING_UNITS * float(np.finfo(np.float64).eps) * largest_entry * rows * other_norm


def descending(values: Array, tolerance: Array | float) -> NDArray[np.intp]:
    """Return the places of values from the largest to the smallest; those that rounding alone tells apart as they come.

    Parameters
    ----------
    values : ndarray, shape (m,)
    tolerance : float or ndarray, shape (m,)
        How far rounding can move a value.
    """
    order = np.argsort(-values, kind="stable")
    ranked, apart = values[order], np.broadcast_to(tolerance, values.shape)[order]
    tied = np.cumsum(np.r_[False, ranked[:-1] - ranked[1:] > apart[1:]])[: len(order)]
    return order[np.lexsort([order, tied])]


def judge(values: Array, tolerances: Array, handicaps: Array | None = None) -> Judged:
    """Return one exact p-value for F statistics over the same R relabellings.

    The relabelled values of each statistic are turned into -log p by a Pearson III curve through their own mean,
    standard deviation and skewness; the family's statistic is the largest of them (the smallest p), and its p-value
    is its rank over the relabellings. The curve is the same function for every relabelling, so that the rank is
    exact whether the curve fits or not; a curve is used, not the rank of each value, because ranks of different
    statistics tie at the top. With F = 1 this is the ordinary permutation p-value.

    Parameters
    ----------
    values : ndarray, shape (F, R)
        Statistics; [:, 0] is the observed labelling.
    tolerances : ndarray, shape (F,)
        Differences from the observed value up to this count as ties.
    handicaps : ndarray, shape (F,), optional
        Taken from the score of each statistic, that is, p is multiplied by exp(handicap) before the smallest is
        found: where a family is large, its likelier members are given a start. The same for every relabelling, so
        that the rank stays exact.

    References
    ----------
    Hemerik and Goeman (2018), "Exact testing with random permutations"; Westfall and Young (1993) for the minimum.
    """
    values = _with_ties(values, tolerances)
    mean, deviation = values.mean(axis=1), values.std(axis=1)
    z, degenerate = _standardised(values, tolerances)
    skewness = np.mean(z**3, axis=1)
    own = np.mean(values >= values[:, :1], axis=1)
    if len(values) == 1:
        return Judged(float(own[0]), 0, z[:, 0], own, mean, deviation, skewness, degenerate)
    scored = scores(values, tolerances)[0]
    if handicaps is not None:
        scored -= handicaps[:, None]
    combined = scored.max(axis=0)
    p_value = float(np.mean(combined >= combined[0]))
    selected = first_of(scored[:, 0], np.flatnonzero(~degenerate | degenerate.all()))
    if handicaps is not None:
        # Of members that are all as clear as these relabellings can tell, the one with the least handicap: scores beyond
        # the relabelled values are extrapolated.
        clear = np.flatnonzero(~degenerate & (own == own[~degenerate].min(initial=1.0)))
        if len(clear):
            selected = first_of(scored[:, 0], clear[handicaps[clear] == handicaps[clear].min()])
    return Judged(p_value, selected, z[:, 0], own, mean, deviation, skewness, degenerate)


def first_of(scored: Array, places: NDArray[np.intp]) -> int:
    """Return the first of the places with the largest score: kernels that measure the same differ by rounding alone."""
    largest = scored[places].max()
    return int(places[np.flatnonzero(scored[places] >= largest - SAME * max(1.0, abs(largest)))[0]])


def scores(values: Array, tolerances: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return relabelled values as -log p of a Pearson III curve each, their z, and which are degenerate (score 0).

    Parameters
    ----------
    values, tolerances
        As in `judge`.

    Returns
    -------
    scores : ndarray, shape (F, R)
    z : ndarray, shape (F, R)
    degenerate : ndarray of bool, shape (F,)
    """
    z, degenerate = _standardised(_with_ties(values, tolerances), tolerances)
    scored = -log_upper_tail(z, np.mean(z**3, axis=1)[:, None])
    scored[degenerate] = 0.0
    return scored, z, degenerate


def _with_ties(values: Array, tolerances: Array) -> Array:
    """Return the values with those that tie with the observed one set equal to it."""
    observed = values[:, :1]
    return np.where(np.abs(values - observed) <= tolerances[:, None], observed, values)


def _standardised(values: Array, tolerances: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return values in units of their standard deviation from their mean; 0 where they do not vary."""
    mean, deviation = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    degenerate = deviation[:, 0] <= tolerances
    safe = np.where(degenerate[:, None], 1.0, deviation)
    return np.where(degenerate[:, None], 0.0, (values - mean) / safe), degenerate
