"""One exact p-value for a family of statistics over a set of relabellings that contains the observed one.

    p = #{g : T_g >= T_observed} / #{g}

Exact under exchangeability. Ties count, with a tolerance that is scaled to the sums T is made of: relabellings that give
the same split of the rows differ in their last digits only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.engine import one_blas_thread
from kerntest.inference.nulls.pearson import log_upper_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.inference.sides import Judge
    from kerntest.kernels.base import Array

# Rounding errors of the relabelled sums are below this many units (measured: below 1), see `tie_tolerance`.
ROUNDING_UNITS = 8.0
# Scores are the same up to this.
SAME = 1e-4
# How a family may be judged, and what the record says of it.
JUDGES = {
    "together": "how far the vector of statistics lies towards an excess, in its covariance over the shared relabellings",
    "smallest": "smallest p-value (Pearson III scores over the shared relabellings)",
}
# Ridges of the correlation of the members: a small one sees contrasts between members, the large one what they share. Of
# the large one members have more, twice as much for each halving of their bandwidth below the median: what is shared is
# measured by the wide ones, which are best at plain shifts. Chosen on some fifty problems, see tests/benchmarks.
RIDGES = (10.0, 1e-2, 1e-4)
# Scores are the same up to this share: relabellings that give the same split differ by rounding.
TIED = 1e-8
# Rounds of coordinate descent from which bounds and sets come.
SWEEPS = 4
# Exchanges of several places that may fail to bring a solution nearer before places are exchanged one by one.
PATIENCE = 3
# A place is on the wrong side of 0 beyond this share of the largest |z|.
SLACK = 1e-11
# Solving for each vector costs about as much as inverting for each set of places and multiplying, up to so many vectors
# a set.
VECTORS_PER_SET = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """A family of F statistics judged together.

    `selected` is the member with the most extreme observed value; `z` are the observed values in standard deviations of
    the relabelled ones, whose moments follow; no relabelling changes the value of degenerate members. `excess` is the
    excess u >= 0 nearest to z, at the ridge that says most, of a family judged together; `p_clearest` the p-value of its
    largest z, corrected for having looked at all of them.
    """

    p_value: float
    selected: int
    z: Array
    p_values: Array
    mean: Array
    standard_deviation: Array
    skewness: Array
    degenerate: NDArray[np.bool_]
    excess: Array | None = None
    p_clearest: float | None = None


def tie_tolerance(largest_entry: float, rows: int, other_norm: float) -> float:
    """Return how far rounding can move <K, B> between two relabellings that are equal.

    `largest_entry` bounds |K_ij|, so that n times it bounds the norm of K; `other_norm` is the Frobenius norm of B.
    """
    return ROUNDING_UNITS * float(np.finfo(np.float64).eps) * largest_entry * rows * other_norm


def descending(values: Array, tolerance: Array | float) -> NDArray[np.intp]:
    """Return the places of values from the largest to the smallest; those that rounding alone tells apart as they come."""
    order = np.argsort(-values, kind="stable")
    ranked, apart = values[order], np.broadcast_to(tolerance, values.shape)[order]
    tied = np.cumsum(np.r_[False, ranked[:-1] - ranked[1:] > apart[1:]])[: len(order)]
    return order[np.lexsort([order, tied])]


def judge(
    values: Array, tolerances: Array, how: Judge = "together", halvings: NDArray[np.intp] | None = None
) -> Judged:
    """Return one exact p-value for F statistics over the same R relabellings, shape (F, R), the observed one first.

    Both ways give every relabelling a score by one rule that treats all of them alike, the observed one included; the
    p-value is its rank (Hemerik and Goeman 2018). With F = 1 both are the ordinary permutation p-value.

    "together": the score adds up, over the ridges r, how far the standardised values z lie towards an excess in the
    metric (R + r I)^-1, with R their correlation over the relabellings; 0 where no statistic is above its mean (Chatterjee
    and Bhattacharya 2025, for a Mahalanobis distance of kernel statistics; Kudo 1963, for its one-sided form).

    "smallest": every value becomes -log p by a Pearson III curve through the mean, deviation and skewness of its
    statistic, and the largest of these is the score (Westfall and Young 1993). A curve, not the rank of each value,
    because ranks tie.

    Differences from the observed value up to `tolerances`, shape (F,), count as ties; `halvings` says how many factors of
    two the bandwidths of each member lie below the median.
    """
    values = _with_ties(values, tolerances)
    mean, deviation = values.mean(axis=1), values.std(axis=1)
    z, degenerate = standardised(values, tolerances)
    skewness = np.mean(z**3, axis=1)
    own = np.mean(values >= values[:, :1], axis=1)
    seen = np.flatnonzero(~degenerate)
    selected = first_of(z[:, 0], seen if len(seen) else np.arange(len(z)))
    excess = None
    if len(seen) < 2:
        p_value = float(own[selected])
    elif how == "smallest":
        scored = scores(values[seen], tolerances[seen])[0]
        combined = scored.max(axis=0)
        p_value = float(np.mean(combined >= combined[0] * (1.0 - TIED)))
    else:
        # For its many small products further threads of BLAS only wait: 5 ms instead of 40 to 90 (11 members, 5,000
        # relabellings).
        with one_blas_thread():
            p_value, excess_seen = _together(z[seen], np.zeros(len(seen)) if halvings is None else halvings[seen])
        excess = np.zeros(len(z))
        excess[seen] = excess_seen
    clearest = z.max(axis=0)
    p_clearest = float(np.mean(clearest >= clearest[0] - TIED)) if len(z) > 1 else None
    return Judged(p_value, selected, z[:, 0], own, mean, deviation, skewness, degenerate, excess, p_clearest)


def _together(z: Array, halvings: NDArray[Any]) -> tuple[float, Array]:
    """Return the p-value of a family judged together, and the excess u at the ridge that says most.

    With D_r the distance towards an excess at ridge r and d_r = tr(R (R + r I)^-1) the dimensions that it leaves, the
    score is sum_r D_r / sqrt(d_r). Bounds of D tell most relabellings from the observed one.

    Cost: O(F^2 R) time for the bounds, and O(F^3) for each relabelling that they cannot tell.
    """
    correlation = z @ z.T / z.shape[1]
    ridges = [np.full(len(z), ridge) for ridge in RIDGES]
    ridges[0] *= 2.0**halvings
    distances = [ExcessDistances.bounded(z, correlation + np.diag(ridge)) for ridge in ridges]
    weights = [float(np.trace(np.linalg.solve(one.covariance, correlation))) ** -0.5 for one in distances]
    above_mean: NDArray[np.bool_] = z.max(axis=0) > 0

    def score(found: Sequence[Array], places: NDArray[np.intp]) -> Array:
        joined: Array = np.sum([w * D for w, D in zip(weights, found, strict=True)], axis=0)
        scored: Array = np.where(above_mean[places], joined, 0.0)
        return scored

    observed = [one.exact(np.arange(1)) for one in distances]
    every = np.arange(z.shape[1])
    own = float(score([D for D, _ in observed], every[:1])[0])
    reached = own * (1.0 - TIED)
    above: NDArray[Any] = np.asarray(score([one.lower for one in distances], every) >= reached)
    open_ = np.flatnonzero(~above & (score([one.upper for one in distances], every) >= reached))
    above[open_] = score([one.exact(open_)[0] for one in distances], open_) >= reached
    above[0] = True
    most = int(np.argmax([w * D[0] for w, (D, _) in zip(weights, observed, strict=True)]))
    return float(np.mean(above)), observed[most][1][:, 0]


def first_of(scored: Array, places: NDArray[np.intp]) -> int:
    """Return the first of the places with the largest score: kernels that measure the same differ by rounding alone."""
    largest = scored[places].max()
    return int(places[np.flatnonzero(scored[places] >= largest - SAME * max(1.0, abs(largest)))[0]])


def scores(values: Array, tolerances: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return values as -log p of a Pearson III curve each, their z, and which are degenerate (score 0); as in `judge`."""
    z, degenerate = standardised(values, tolerances)
    scored = -log_upper_tail(z, np.mean(z**3, axis=1)[:, None])
    scored[degenerate] = 0.0
    return scored, z, degenerate


def standardised(values: Array, tolerances: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return relabelled values as z, those that tie with the observed one equal to it, and which are degenerate (z = 0)."""
    values = _with_ties(values, tolerances)
    mean, deviation = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    degenerate = deviation[:, 0] <= tolerances
    safe = np.where(degenerate[:, None], 1.0, deviation)
    return np.where(degenerate[:, None], 0.0, (values - mean) / safe), degenerate


def _with_ties(values: Array, tolerances: Array) -> Array:
    """Return the values with those that tie with the observed one set equal to it."""
    observed = values[:, :1]
    return np.where(np.abs(values - observed) <= tolerances[:, None], observed, values)


@dataclass(frozen=True, slots=True, eq=False)
class ExcessDistances:
    """How far each of R vectors of statistics z lies towards an excess, with bounds of it.

        D = z'Mz - min over u >= 0 of (z - u)'M(z - u),    M = S^-1

    says how much nearer z is, in the metric of its own covariance S, to some u >= 0 than to none (Kudo 1963; Perlman 1969,
    "One-sided testing problems in multivariate analysis"). By duality, u = z + S w with w >= 0 and u'w = 0: w is the least
    of w'Sw / 2 + z'w over w >= 0, and D = u'Mu. Any w >= 0 and any u >= 0 bound D:

        2 u'Mz - u'Mu <= D <= z'Mz + w'Sw + 2 z'w

    `start` is a w >= 0 near the least, shape (F, R).
    """

    z: Array
    covariance: Array
    start: Array
    lower: Array
    upper: Array

    @classmethod
    def bounded(cls, z: Array, covariance: Array) -> ExcessDistances:
        """Return the bounds that a few rounds of coordinate descent give. Cost: O(F^2 R) time."""
        w = _descended(z, covariance)
        inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        moved, metric = covariance @ w, inverse @ z
        u = np.maximum(z + moved, 0.0)
        upper = _dots(z, metric) + _dots(w, moved + 2.0 * z)
        lower = _dots(u, 2.0 * metric - inverse @ u)
        return cls(z, covariance, w, np.maximum(lower, 0.0), np.maximum(upper, 0.0))

    def exact(self, places: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return D of some of the vectors, and their u, shape (F, len(places))."""
        z = self.z[:, places]
        w = _least(z, self.covariance, self.start[:, places])
        # u'Mu = z'Mz + z'w, without the cancellation.
        u = np.where(w > 0, 0.0, np.maximum(z + self.covariance @ w, 0.0))
        metric = np.asarray(np.linalg.solve(self.covariance, u), dtype=np.float64)
        return np.maximum(_dots(u, metric), 0.0), u


def _dots(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("fr,fr->r", left, right))


def _descended(z: Array, covariance: Array) -> Array:
    """Return w after some rounds of coordinate descent from 0, all vectors at once."""
    w = np.zeros_like(z)
    for _ in range(SWEEPS):
        for place, row in enumerate(covariance):
            step = row @ w
            step += z[place]
            step /= -row[place]
            step += w[place]
            np.maximum(step, 0.0, out=w[place])
    return w


def _least(z: Array, covariance: Array, start: Array) -> Array:
    """Return the least w of every vector by block principal pivoting.

    The places where w may be positive are guessed, w is solved for, and all places on the wrong side change sides; where
    that does not bring it nearer, the last wrong place alone, which cannot go in circles (Portugal, Judice and Vicente
    1994).
    """
    size, count = z.shape
    w, held = start.copy(), start > 0
    slack = SLACK * np.maximum(1.0, np.abs(z).max(axis=0))
    fewest, patience = np.full(count, size + 1), np.full(count, PATIENCE)
    todo = np.arange(count)
    while len(todo):
        part, inside = z[:, todo], held[:, todo]
        w[:, todo] = _solved(part, covariance, inside)
        gradient = part + covariance @ w[:, todo]
        wrong = np.where(inside, w[:, todo], gradient) < -slack[todo]
        number = wrong.sum(axis=0)
        todo, wrong, number = todo[number > 0], wrong[:, number > 0], number[number > 0]
        nearer = number < fewest[todo]
        fewest[todo] = np.minimum(fewest[todo], number)
        patience[todo] = np.where(nearer, PATIENCE, patience[todo] - 1)
        last = size - 1 - np.argmax(wrong[::-1], axis=0)
        alone = np.arange(size)[:, None] == last
        held[:, todo] ^= np.where(patience[todo] < 0, alone, wrong)
    return np.maximum(w, 0.0)


def _solved(z: Array, covariance: Array, held: NDArray[np.bool_]) -> Array:
    """Return w with S_AA w_A = -z_A on the places A that are held, 0 elsewhere; A may differ from vector to vector."""
    places = np.arange(len(z))
    _, first, which = np.unique(np.packbits(held, axis=0), axis=1, return_index=True, return_inverse=True)
    sets = held[:, first].T
    systems = np.where(sets[:, :, None] & sets[:, None, :], covariance, 0.0)
    systems[:, places, places] = np.where(sets, covariance.diagonal(), 1.0)
    right = np.where(held, -z, 0.0).T[:, :, None]
    if VECTORS_PER_SET * len(first) < held.shape[1]:
        solved = np.matmul(np.linalg.inv(systems)[which.ravel()], right)
    else:
        solved = np.linalg.solve(systems[which.ravel()], right)
    return np.asarray(solved[:, :, 0].T)
