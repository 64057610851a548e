"""How surely means over rows are known, of rows that are independent and of rows in clusters; and whether intervals hold what they say.

Rows of one patient or shop, or copies of one row, are right or wrong together: with rows of new clusters in mind their
number counts, and how far the clusters differ, and the number of rows hardly.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.errors import counted
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Codes

CONFIDENCE = 0.95
# Of fewer clusters neither intervals nor standard errors are told: from so many on, of 11 rows or of very unequal sizes,
# 95 % intervals hold the accuracy in 85 to 99 % of draws, whatever it is and however alike rows are.
FEWEST_CLUSTERS = 8
# Intervals miss so many times as often as they should, and chance makes them so with less than this probability.
TOO_OFTEN, IMPROBABLE = 1.5, 1e-3
# Thirds of fewer rows say little of how many intervals hold, and so many standard errors apart the errors in them differ:
# told of at most 1 % of tables with one noise (60 and 200 rows; normal, exponential, t of 4 degrees).
FEWEST_OF_THIRD, DIFFERENT = 15, 3.3
# Of targets that are never below 0: what may even errors that grow with the prediction, or shrink.
TRANSFORMATIONS = {"square root": (np.sqrt, True), "logarithm": (np.log, True), "square": (np.square, False)}


def effective_clusters(clusters: Codes) -> float:
    """Return how many clusters of one size say as much as those of n_k rows: (sum n_k)^2 / sum n_k^2 (Kish 1965)."""
    sizes = np.unique(clusters, return_counts=True)[1]
    return float(len(clusters)) ** 2 / float(sizes @ sizes)


def too_few(clusters: Codes | None) -> bool:
    """Say whether rows are in too few clusters to tell errors by."""
    return clusters is not None and len(np.unique(clusters)) < FEWEST_CLUSTERS


def told_of_few_clusters(clusters: Codes | None) -> list[str]:
    """Return a warning about test rows in too few clusters."""
    if clusters is None or not too_few(clusters):
        return []
    where = f"the {len(clusters):,} test rows are in {counted(len(np.unique(clusters)), 'cluster')} of rows that stay together"
    return [f"{where}, too few for an interval and for standard errors: at least {FEWEST_CLUSTERS} are needed"]


def standard_error(values: Array, clusters: Codes | None = None) -> float:
    """Return the standard error of the mean of n values; of rows in clusters that of a ratio of sums (Cochran 1977).

    sqrt(m / (m - 1) sum_k (s_k - n_k mean)^2) / n of sums s_k of n_k values in m clusters, the effective number of them.
    """
    sums, m = values - values.mean(), float(len(values))
    if clusters is not None:
        sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=sums)
        m = effective_clusters(clusters)
    return float(np.sqrt(m / (m - 1.0) * (sums @ sums))) / len(values)


def over_classes(values: Array, classes: Codes) -> tuple[float, Array]:
    """Return the mean of the means over classes, and what of n rows has, as a mean, the standard error of that.

    Of n_c rows in one of k classes they are n / (k n_c) (v - mean_c), with sqrt(n_c / (n_c - 1)) for the mean that is
    taken from the same rows; one row alone has no mean but that of all.
    """
    _, places, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    means = np.bincount(places, weights=values) / sizes
    mean = float(means.mean())
    centres = np.where(sizes > 1, means, mean)
    factors = len(values) / (len(sizes) * sizes) * np.sqrt(sizes / np.maximum(sizes - 1, 1))
    return mean, (values - centres[places]) * factors[places]


def effective_rows(right: NDArray[np.bool_], clusters: Codes | None) -> float:
    """Return how many independent rows say as much of a share as rows in clusters (Kish 1965).

    p (1 - p) over the squared standard error of the share p, at most the number of rows; of rows that are all alike, as
    many as clusters.
    """
    n, m = float(len(right)), effective_clusters(clusters) if clusters is not None else 0.0
    if clusters is None or right.min() == right.max() or m <= 1.0:
        return m or n
    variance, squared = float(np.var(right)), standard_error(right.astype(np.float64), clusters) ** 2
    # Clusters may be more alike than chance makes them.
    return n if variance >= n * squared else variance / squared


def interval_of_share(
    right: NDArray[np.bool_], clusters: Codes | None = None, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Return the confidence interval of a share of rows; None of rows in too few clusters.

    Of clusters the rows that it is of are fewer as Student's t, of the clusters less one, is wider (Korn and Graubard 1998).
    """
    if too_few(clusters):
        return None
    rows, tail = effective_rows(right, clusters), 0.5 * (1.0 - confidence)
    if clusters is not None:
        from scipy.special import stdtrit  # noqa: PLC0415 - it takes 0.2 s to load

        degrees = max(effective_clusters(clusters) - 1.0, 1.0)
        rows *= (NormalDist().inv_cdf(tail) / float(stdtrit(degrees, tail))) ** 2
    return wilson_interval(float(np.mean(right)), rows, confidence)


def wilson_interval(share: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's confidence interval of a share p of n rows, with z the quantile of the normal distribution (1927).

        (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    It stays within [0, 1] and, unlike p +- z sqrt(p (1 - p) / n), has a width where all rows are hits.
    """
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    centre, reach = share + z * z / (2.0 * n), z * np.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n))
    # The ends of the scale are reached exactly, not but for rounding.
    low = 0.0 if share == 0.0 else float((centre - reach) / (1.0 + z * z / n))
    return low, 1.0 if share == 1.0 else float((centre + reach) / (1.0 + z * z / n))


def covered_share(errors: Array, reach: Array) -> float:
    """Return the share of errors that intervals hold."""
    return float(np.mean(np.abs(errors) <= reach))


def told_of_coverage(
    name: str, held: NDArray[np.bool_], interval: float, rows: str, clusters: Codes | None = None
) -> list[str]:
    """Return a warning about intervals that hold far fewer rows than chance explains (a binomial tail)."""
    from scipy.special import bdtr  # noqa: PLC0415 - it takes 0.2 s to load

    coverage, n = float(np.mean(held)), effective_rows(held, clusters)
    if 1.0 - coverage < TOO_OFTEN * (1.0 - interval) or bdtr(round(coverage * n), round(n), interval) >= IMPROBABLE:
        return []
    told = f"intervals of {percent(interval)} hold {name!r} in {percent(coverage)} of {rows}, too few for chance"
    return [f"{told}: standard deviations and intervals of this regression are too small"]


SET_TO_0 = "ends below 0 can be set to 0, and hold as many rows"


def told_below_zero(name: str, truth: Array, low: Array, interval: float, rows: str) -> list[str]:
    """Return a warning about intervals of a target that is never below 0, more of which reach below it than they should miss."""
    below = float(np.mean(low < 0.0))
    # Of 0 and 1 no intervals are of use.
    if truth.min() < 0.0 or below <= 1.0 - interval or np.isin(truth, [0.0, truth.max()]).all():
        return []
    told = f"intervals of {percent(interval)} reach below 0 in {percent(below)} of {rows}, and {name!r} never does"
    # No transformation keeps intervals above what many rows are equal to.
    way = f"the logarithm of {name!r}, predicted in its place, keeps them above" if truth.min() > 0.0 else SET_TO_0
    return [f"{told}: {way}"]


@dataclass(frozen=True)
class UnevenCoverage:
    """Which shares of the rows with the lowest and with the highest third of the predictions intervals hold, where that matters.

    The errors of a transformation of the target, if there is one, are alike in both.
    """

    target: str
    interval: float
    low: float
    high: float
    transformation: str | None = None

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        if self.transformation is not None and self.transformation not in TRANSFORMATIONS:
            return f"there is no transformation {self.transformation!r}"
        fits = 0.0 < self.interval < 1.0 and 0.0 <= self.low <= 1.0 and 0.0 <= self.high <= 1.0
        return None if fits else "shares must be between 0 and 1"

    def told(self, rows: str, *, date: bool = False) -> str:
        """Return a warning: the noise is taken to be one for all rows. The day from which a `date` is counted is nobody's zero."""
        grow, (low, high) = "grow" if self.high < self.low else "shrink", map(percent, (self.low, self.high))
        told = f"intervals allow for errors of one size, and errors {grow} with the prediction of {self.target!r}"
        shares = f"those of {percent(self.interval)} hold {low} of the third with the lowest and {high} of that with the highest"
        way_out = f"; predict the {self.transformation} of {self.target!r}, of which they are alike, in its place"
        way_out = "" if date or self.transformation is None else way_out
        return f"{told}: {shares} ({rows}){way_out}"


def uneven_coverage(
    name: str, predicted: Array, errors: Array, reach: Array, *, interval: float, clusters: Codes | None = None
) -> tuple[UnevenCoverage, ...]:
    """Return what intervals of one noise hold of the lowest and the highest third, if errors differ and it matters.

    It does if one third is held too rarely, or so much more rarely than the other as intervals miss in all. Errors differ by Welch's t of their absolute values.
    """
    first, last = np.quantile(predicted, [1 / 3, 2 / 3])
    thirds = [predicted <= first, predicted >= last]
    groups = [None if clusters is None else clusters[one] for one in thirds]
    counts = [
        np.count_nonzero(one) if own is None else len(np.unique(own)) for one, own in zip(thirds, groups, strict=True)
    ]
    if first >= last or min(counts) < FEWEST_OF_THIRD:
        return ()

    def apart(errors: Array) -> float:
        """Return by how many standard errors those of the highest third are larger."""
        low, high = (np.abs(errors[one]) for one in thirds)
        error = math.hypot(*map(standard_error, (low, high), groups))
        return float(high.mean() - low.mean()) / max(error, np.finfo(np.float64).tiny)

    low, high = (covered_share(errors[one], reach[one]) for one in thirds)
    missed = 1.0 - interval
    matters = 1.0 - min(low, high) >= TOO_OFTEN * missed or abs(high - low) >= missed
    if not matters or abs(beyond := apart(errors)) <= DIFFERENT:
        return ()
    truth, evened = predicted + errors, dict[str, float]()
    for called, (transformed, grow) in TRANSFORMATIONS.items():
        if grow == (beyond > 0.0) and (truth.min() > 0.0 or (truth.min() == 0.0 and called != "logarithm")):
            evened[called] = abs(apart(transformed(truth) - transformed(np.maximum(predicted, truth.min()))))
    best = min(evened, key=evened.__getitem__, default="")
    way = best if evened.get(best, math.inf) <= DIFFERENT else None
    return (UnevenCoverage(name, interval, low, high, way),)
