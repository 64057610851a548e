"""One exact p-value for a family of statistics over a set of relabellings that contains the observed one.

    p = #{g : T_g >= T_observed} / #{g}

Exact under exchangeability. Ties count, with a tolerance that is scaled to the sums T is made of: relabellings that give
the same split of the rows differ in their last digits only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.engines.engine import one_blas_thread
from kerntest.inference.nulls.approximations import upper_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
# The score adds up powers of what each ridge sees, so that what one of them sees clearly counts however little the others
# see; what members share, a plain shift or a smooth dependence, counts so much more. Chosen as the ridges were.
POWER, SHARED = 4, 2.2
# Scores are the same up to this share: relabellings that give the same split differ by rounding.
TIED = 1e-8
# Relabellings whose distances are bounded together: what is made of them takes ten times their memory.
AT_ONCE = 8192
# Rounds of coordinate descent from which bounds and sets come.
SWEEPS = 4
# So many times as many exchanges as there are places are far more than a solution takes.
EXCHANGES = 50
# A place is on the wrong side of 0 beyond this share of the largest |z|.
SLACK = 1e-11


class Judged(NamedTuple):
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

    def remembering(self, memory: float, relabellings: int) -> Judged:
        """Return the p-values where the observed value counts as so many of the relabellings, which say as much as one."""

        def counted(p: Any) -> Any:
            return (p * relabellings - 1.0 + memory) / (relabellings - 1.0 + memory)

        if memory == 1.0:
            return self
        clearest = None if self.p_clearest is None else counted(self.p_clearest)
        return self._replace(p_value=counted(self.p_value), p_values=counted(self.p_values), p_clearest=clearest)


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
    values: Array, tolerances: Array, how: Judge = "together", exponents: Sequence[tuple[int, ...]] = ()
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

    Differences from the observed value up to `tolerances`, shape (F,), count as ties; `exponents` are the j of the
    bandwidths of each member, 2^j medians, for each side.
    """
    z, degenerate = standardised(values, tolerances)
    told = [
        (np.mean(row >= row[0]), row.mean(), row.std())
        for row in map(_with_ties, values, np.broadcast_to(tolerances, len(values)))
    ]
    own, mean, deviation = np.array(told).T
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
            some = z if len(seen) == len(z) else z[seen]
            together = Together(some, np.array(exponents or np.zeros((len(z), 1)))[seen])
            p_value, excess_seen = together.judged(some)
        excess = np.zeros(len(z))
        excess[seen] = excess_seen
    clearest = z.max(axis=0)
    p_clearest = float(np.mean(clearest >= clearest[0] - TIED)) if len(z) > 1 else None
    moments = mean, deviation, _cubes(z)
    return Judged(p_value, selected, z[:, 0], own, *moments, degenerate, excess, p_clearest)


class Together:
    """How members of a family, of which z are the standardised values, are judged together.

    With D_r the distance towards an excess at ridge r and d_r = tr(R (R + r I)^-1) the dimensions that it leaves, the
    score is sum_r (w_r D_r / sqrt(d_r))^4; w_r is 1, for the large ridge more.
    """

    def __init__(self, z: Array, exponents: NDArray[Any]) -> None:
        correlation = z @ z.T / z.shape[1]
        ridges = [np.full(len(z), ridge) for ridge in RIDGES]
        ridges[0] *= 2.0 ** np.maximum(-exponents, 0).sum(axis=1)
        self.covariances = [correlation + np.diag(ridge) for ridge in ridges]
        self.weights = [float(np.trace(np.linalg.solve(one, correlation))) ** -0.5 for one in self.covariances]
        self.weights[0] *= SHARED

    def score(self, found: Sequence[Array], z: Array) -> Array:
        """Return the score of vectors z from their distances at each ridge."""
        joined = np.sum([(w * D) ** POWER for w, D in zip(self.weights, found, strict=True)], axis=0)
        return np.where(z.max(axis=0) > 0, joined, 0.0)

    def nearly(self, z: Array) -> Array:
        """Return the score of vectors z but for what bounds of their distances leave open."""
        return self.score([ExcessDistances(z, one).lower for one in self.covariances], z)

    def judged(self, z: Array) -> tuple[float, Array]:
        """Return the p-value of the first of the vectors z, and its excess u at the ridge that says most.

        Bounds of D tell most relabellings from the observed one. Cost: O(F^2 R) time for the bounds, and O(F^3) for each
        relabelling that they cannot tell.
        """
        observed = [ExcessDistances(z[:, :1], one).exact(np.arange(1)) for one in self.covariances]
        reached = float(self.score([D for D, _ in observed], z[:, :1])[0]) * (1.0 - TIED)
        count = 0
        for start in range(0, z.shape[1], AT_ONCE):
            some = z[:, start : start + AT_ONCE]
            distances = [ExcessDistances(some, one) for one in self.covariances]
            above: NDArray[Any] = self.score([one.lower for one in distances], some) >= reached
            open_ = np.flatnonzero(~above & (self.score([one.upper for one in distances], some) >= reached))
            above[open_] = self.score([one.exact(open_)[0] for one in distances], some[:, open_]) >= reached
            above[0] |= not start
            count += int(above.sum())
        most = int(np.argmax([w * D[0] for w, (D, _) in zip(self.weights, observed, strict=True)]))
        return count / z.shape[1], observed[most][1][:, 0]


def scorer(values: Array, how: Judge, exponents: Sequence[tuple[int, ...]] = ()) -> Callable[[Array], Array]:
    """Return what gives further vectors of statistics, shape (F, S), the score by which a family was judged.

    `values`, shape (F, R), are the relabelled ones, none of them degenerate; as in `judge`.
    """
    mean, deviation = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    table = (values - mean) / deviation
    if len(values) == 1:
        return lambda some: ((some - mean) / deviation)[0]
    if how == "smallest":
        skewness = _cubes(table)[:, None]
        return lambda some: -np.log(upper_tail((some - mean) / deviation, skewness).min(axis=0))
    together = Together(table, np.array(exponents or np.zeros((len(values), 1))))
    return lambda some: together.nearly((some - mean) / deviation)


def first_of(scored: Array, places: NDArray[np.intp]) -> int:
    """Return the first of the places with the largest score: kernels that measure the same differ by rounding alone."""
    largest = scored[places].max()
    return int(places[np.flatnonzero(scored[places] >= largest - SAME * max(1.0, abs(largest)))[0]])


def scores(values: Array, tolerances: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return values as -log p of a Pearson III curve each, their z, and which are degenerate (score 0); as in `judge`."""
    z, degenerate = standardised(values, tolerances)
    scored = -np.log(upper_tail(z, _cubes(z)[:, None]))
    scored[degenerate] = 0.0
    return scored, z, degenerate


def scores_among_others(values: Array, tolerances: Array) -> Array:
    """Return values as -log p of a Pearson III curve through the moments of the others of their row, 0 where all are equal.

    All relabellings are treated alike, as by `scores`; but what is far from all others does not hide how far, so that clearer
    statistics have higher scores. With d = T - mean and m = -d / (R - 1), the mean of the others, their sums of squares and
    cubes about it are S2 - d^2 - (R - 1) m^2 and S3 - d^3 - 3 m (S2 - d^2) + 2 (R - 1) m^3.
    """
    found = np.zeros(values.shape)
    for place, row in enumerate(values):
        own, rest = _with_ties(row, tolerances[place]), values.shape[1] - 1
        if own.std() <= tolerances[place]:
            continue
        d = own - own.mean()
        m, squares = -d / rest, np.square(d).sum() - d**2
        variance = np.maximum(squares / rest - m**2, max(tolerances[place] ** 2, np.finfo(np.float64).tiny))
        cubes = ((d**3).sum() - d**3 - 3.0 * m * squares) / rest + 2.0 * m**3
        found[place] = -np.log(upper_tail((d - m) / np.sqrt(variance), cubes / variance**1.5))
    return found


def standardised(values: Array, tolerances: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return relabelled values as z, those that tie with the observed one equal to it, and which are degenerate (z = 0)."""
    z, degenerate = np.empty_like(values), np.zeros(len(values), dtype=np.bool_)
    # One after another: each copy of all of them may take gigabytes.
    for place, row in enumerate(values):
        own = _with_ties(row, tolerances[place])
        deviation = own.std()
        degenerate[place] = deviation <= tolerances[place]
        z[place] = 0.0 if degenerate[place] else (own - own.mean()) / deviation
    return z, degenerate


def _cubes(z: Array) -> Array:
    """Return the means of the cubes."""
    return np.array([np.mean(row**3) for row in z])


def _with_ties(values: Array, tolerance: float) -> Array:
    """Return relabelled values with those that tie with the observed one, the first, set equal to it."""
    return np.where(np.abs(values - values[0]) <= tolerance, values[0], values)


class ExcessDistances:
    """How far each of R vectors of statistics z, shape (F, R), lies towards an excess, between `lower` and `upper`.

        D = z'Mz - min over u >= 0 of (z - u)'M(z - u),    M = S^-1

    says how much nearer z is, in the metric of its own covariance S, to some u >= 0 than to none (Kudo 1963; Perlman 1969,
    "One-sided testing problems in multivariate analysis"). By duality, u = z + S w with w >= 0 and u'w = 0: w is the least
    of w'Sw / 2 + z'w over w >= 0, and D = u'Mu. Any w >= 0 and any u >= 0 bound D:

        2 u'Mz - u'Mu <= D <= z'Mz + w'Sw + 2 z'w

    The bounds are those of w after a few rounds of coordinate descent. Cost: O(F^2 R) time.
    """

    def __init__(self, z: Array, covariance: Array) -> None:
        self.z, self.covariance, self.start = z, covariance, np.zeros_like(z)
        w, inverse, diagonal = self.start, np.linalg.inv(covariance), covariance.diagonal()[:, None]
        # w_f = max(0, -(z_f + sum of S_fg w_g over g != f) / S_ff), by few calls: what a vector of relabellings takes here is
        # most of the time of a family.
        slopes, offsets = covariance / -diagonal, z / diagonal
        np.fill_diagonal(slopes, 0.0)
        for slope, offset, own in list(zip(slopes, offsets, w, strict=True)) * SWEEPS:
            step = slope @ w
            step -= offset
            np.maximum(step, 0.0, out=own)
        self.moved, self.metric = covariance @ w, inverse @ z
        u = np.maximum(z + self.moved, 0.0)
        self.lower = np.maximum(_dots(u, 2.0 * self.metric - inverse @ u), 0.0)

    @property
    def upper(self) -> Array:
        """Return what D is at most."""
        return np.maximum(_dots(self.z, self.metric) + _dots(self.start, self.moved + 2.0 * self.z), 0.0)

    def exact(self, places: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return D of some of the vectors, and their u, shape (F, len(places)). Cost: O(F^3) time for each different one."""
        different, first, which = np.unique(self.z[:, places], axis=1, return_index=True, return_inverse=True)
        u = np.zeros_like(different)
        for number, place in enumerate(places[first]):
            w = self._least(different[:, number], self.start[:, place] > 0)
            # D = u'Mu = z'Mz + z'w, without the cancellation.
            u[:, number] = np.where(w > 0, 0.0, np.maximum(different[:, number] + self.covariance @ w, 0.0))
        D = np.maximum(_dots(u, np.asarray(np.linalg.solve(self.covariance, u))), 0.0)
        return D[which.ravel()], u[:, which.ravel()]

    def _least(self, z: Array, held: NDArray[np.bool_]) -> Array:
        """Return w of one vector, by a guess of the places where it is positive.

        Of places on the wrong side the last alone changes sides, which goes in circles by rounding alone (Murty 1974).
        """
        w = np.zeros_like(z)
        for _ in range(EXCHANGES * len(z)):
            w = np.zeros_like(z)
            w[held] = np.linalg.solve(self.covariance[np.ix_(held, held)], -z[held])
            wrong = np.where(held, w, z + self.covariance @ w) < -SLACK * max(1.0, float(np.abs(z).max()))
            if not wrong.any():
                break
            held[np.flatnonzero(wrong)[-1]] ^= True
        return np.maximum(w, 0.0)


def _dots(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("fr,fr->r", left, right))
