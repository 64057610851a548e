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
ROUNDING_UNITS = 32.0

COMBINATION = "smallest p-value (Pearson III scores over the shared relabellings)"


@dataclass(frozen=True, slots=True)
class Judged:
    """A family of statistics judged together.

    Parameters
    ----------
    p_value : float
        Of the whole family; the smallest possible is 1 / relabellings.
    selected : int
        The member with the most extreme observed value.
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


def judge(values: Array, tolerances: Array) -> Judged:
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

    References
    ----------
    Hemerik and Goeman (2018), "Exact testing with random permutations"; Westfall and Young (1993) for the minimum.
    """
    observed = values[:, :1]
    ties = np.abs(values - observed) <= tolerances[:, None]
    values = np.where(ties, observed, values)
    mean, deviation = values.mean(axis=1), values.std(axis=1)
    degenerate = deviation <= tolerances
    safe = np.where(degenerate, 1.0, deviation)
    z = np.where(degenerate[:, None], 0.0, (values - mean[:, None]) / safe[:, None])
    skewness = np.mean(z**3, axis=1)
    own = np.mean(values >= observed, axis=1)
    if len(values) == 1:
        return Judged(float(own[0]), 0, z[:, 0], own, mean, deviation, skewness, degenerate)
    scores = -log_upper_tail(z, skewness[:, None])
    scores[degenerate] = 0.0
    combined = scores.max(axis=0)
    p_value = float(np.mean(combined >= combined[0]))
    selected = int(scores[:, 0].argmax())
    return Judged(p_value, selected, z[:, 0], own, mean, deviation, skewness, degenerate)
