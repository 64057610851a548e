"""Rotations of white rows that make their columns independent of each other: what independent component analysis looks for.

White columns are uncorrelated with mean 0 and variance 1, so that what is left to find is a rotation W, Y = Z W'. A search
over all angles of each pair of columns finds the neighbourhood; from there the likelihood or HSIC is made extreme.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian
from kerntest.matrices.factor import centred, kernel_factor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array

    # The value of a function of the columns, shape (n, m), and its gradient at each entry.
    Contrast: TypeAlias = Callable[[Array], tuple[float, Array]]

# The search looks at so many angles of a quarter turn, goes through all pairs at most so many times, and sees so many rows.
ANGLES, SWEEPS, SEARCHED_ROWS = 16, 10, 4000
# A turn has to gain so many nats, and the search ends with a sweep whose turns are smaller than this.
LEAST_GAIN, LEAST_TURN = 1e-4, 0.02
# Searches whose columns go together by pairs with such correlations have found the same.
SAME = 0.999
# Densities stand on a grid of so many points, over at most so many standard deviations to either side, and are smoothed
# by so many of them. Mean Amari errors of 4 sources over 18 densities, of 250 rows: 0.27 .082, 0.4 .074, 0.53 .092, of
# 1,000 rows: 0.2 .030, 0.3 .028, 0.4 .026.
GRID, FARTHEST, SMOOTHING = 256, 14.0, 0.4
# Hyvarinen's approximation of negentropy (1998) by the means of y exp(-y^2/2) and exp(-y^2/2).
ODD, EVEN = 36.0 / (8.0 * math.sqrt(3.0) - 9.0), 24.0 / (16.0 * math.sqrt(3.0) - 27.0)
GAUSSIAN_ENTROPY = 0.5 * math.log(2.0 * math.pi * math.e)

# Densities for the likelihood stand on a grid of so many points, close together within so many standard deviations and ever
# wider beyond. Their logarithms deviate from the simple ones by functions of these widths, by so much (nats): of all choices
# that of the largest evidence, in so many rounds; then it stays. Each next deviation is so much less probable beforehand
# (nats): without it chance makes two peaks out of one.
POINTS, CORE, WIDTHS, DEVIATIONS, CHOOSING, DOUBT = 240, 2.0, (1.0, 0.4), (0.1, 0.3, 1.0, 3.0, 10.0), 3, 2.0
# Landmarks reach so many standard deviations; eigenvalues below this share of the largest are left out.
LANDMARKS_REACH, SMALLEST = 5.0, 1e-8
# y, y^2 and log cosh y, which have the sources with one peak, are not penalised but for rounding.
FREE, ALMOST_NOTHING = 3, 1e-10
# A density is found when the next Newton step would gain so many nats in all rows together; steps, and halvings of one.
ENOUGH, DENSITY_STEPS, HALVINGS = 0.01, 60, 12
# Newton steps are at most so long, end when they are short against the errors of estimation, 1 / sqrt(n), and leave pairs
# without curvature where they are.
LONGEST_STEP, SETTLED, FLAT, STEPS = 0.3, 0.03, 0.02, 150
# They end, too, when the likelihood has not risen by so many nats in so many steps.
LEAST_RISE, PATIENCE = 0.05, 3
# Of the descent on HSIC: steps, the share of the first value that a step must gain, and landmarks a bandwidth apart.
DESCENT, PROGRESS_MADE, APART, MOST_LANDMARKS = 200, 1e-6, 0.75, 24


class Rotation(NamedTuple):
    """An orthogonal matrix W (m, m), whether its search has settled, in how many steps, and its log-evidence or -HSIC."""

    matrix: Array
    settled: bool
    steps: int
    value: float


# The search over all angles.


def negentropies(columns: Array) -> Array:
    """Return how far each of k white columns, shape (k, n), is from a Gaussian, in nats, by two estimates together.

    The entropy that a Gaussian has more than a kernel density estimate, and Hyvarinen's approximation: the first sees every
    density, the second is steadier where one is nearly Gaussian.
    """
    k, n = columns.shape
    reach = min(FARTHEST, 1.05 * float(np.abs(columns).max(initial=1.0)))
    step = 2.0 * reach / (GRID - 1)
    places = np.clip((columns + reach) / step, 0.0, GRID - 1.001)
    below = places.astype(np.intp)
    share = (places - below).ravel()
    below += GRID * np.arange(k)[:, None]
    below = below.ravel()
    counts = np.bincount(below, 1.0 - share, k * GRID) + np.bincount(below + 1, share, k * GRID)
    counts = counts.reshape(k, GRID)
    waves = 2.0 * np.pi * np.fft.rfftfreq(2 * GRID, step)
    smoothed = np.exp(-0.5 * (waves * SMOOTHING) ** 2)
    density = np.fft.irfft(np.fft.rfft(counts, 2 * GRID) * smoothed)[:, :GRID] / (n * step)
    entropy = -(counts * np.log(np.maximum(density, 1e-9))).sum(axis=1) / n
    grid = np.linspace(-reach, reach, GRID)
    bell = np.exp(-0.5 * grid**2)
    odd, even = counts @ (grid * bell) / n, counts @ bell / n
    return np.asarray(GAUSSIAN_ENTROPY - entropy + ODD * odd**2 + EVEN * (even - math.sqrt(0.5)) ** 2)


def searched(Z: Array, start: Array, swept: Callable[[int], None]) -> Array:
    """Return a rotation from `start` on whose columns are least Gaussian.

    Pair after pair is turned by the best of all angles: there are many local optima. What the sum of the entropies of white
    columns falls by is their mutual information. Before each sweep over all pairs `swept` is told its number. Cost: O(m^2 n)
    time for each of 32 densities and each sweep.
    """
    rows = np.linspace(0, len(Z) - 1, min(len(Z), SEARCHED_ROWS)).astype(np.intp)
    columns, W = start @ Z[rows].T, start.copy()
    angles = np.arange(ANGLES) * (0.5 * np.pi / ANGLES)
    cosines, sines = np.cos(angles)[:, None], np.sin(angles)[:, None]
    # How far each column was turned in all, and how far both of a pair were when it was looked at.
    turns, seen = np.zeros(len(W)), np.full((len(W), len(W)), -1.0)
    for sweep in range(SWEEPS):
        swept(sweep)
        largest = 0.0
        for i, j in combinations(range(len(W)), 2):
            if turns[i] + turns[j] - seen[i, j] < LEAST_TURN:
                continue
            first, second = columns[i], columns[j]
            turned = np.concatenate([cosines * first + sines * second, cosines * second - sines * first])
            found = negentropies(turned).reshape(2, ANGLES).sum(axis=0)
            best = int(found.argmax())
            angle = float(angles[best]) + _vertex(found[best - 1], found[best], found[(best + 1) % ANGLES]) * angles[1]
            if not best or found[best] - found[0] >= LEAST_GAIN:
                turn = min(abs(angle), abs(0.5 * np.pi - angle))
                largest = max(largest, turn)
                turns[[i, j]] += turn
                plane = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
                columns[[i, j]], W[[i, j]] = plane @ columns[[i, j]], plane @ W[[i, j]]
            seen[i, j] = turns[i] + turns[j]
        if largest < LEAST_TURN:
            break
    return W


def _vertex(before: float, at: float, after: float) -> float:
    """Return where the parabola through values at -1, 0 and 1, of which that at 0 is the largest, is largest."""
    bend = before - 2.0 * at + after
    return 0.5 * (before - after) / bend if bend < 0 else 0.0


def good_starts(Z: Array, restarts: int, seed: int, progress: Progress | None = None) -> list[Array]:
    """Return the rotations that searches find from the axes as they are, and from so many random ones, each once."""
    m = Z.shape[1]
    found: list[Array] = []
    for place in range(restarts + 1):
        rng = np.random.default_rng((seed, place))
        start = np.linalg.qr(rng.normal(size=(m, m)))[0] if place else np.eye(m)

        def swept(sweep: int, before: int = place * SWEEPS) -> None:
            if progress is not None:
                progress(before + sweep, (restarts + 1) * SWEEPS + 1)

        W = searched(Z, start, swept)
        if all(np.abs(W @ other.T).max(axis=1).min() < SAME for other in found):
            found.append(W)
    return found


# The likelihood, with densities that are learned from the columns.


def _landmarks(reach: float, width: float, apart: float) -> tuple[Array, Array]:
    """Return landmarks so many widths apart, shape (k,), and K^(-1/2) of them for the Gaussian of this width, (k, r)."""
    count = math.ceil(reach / (apart * width))
    places: Array = np.arange(-float(count), count + 1.0) * (apart * width)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((places[:, None] - places) / width) ** 2))
    kept = values > SMALLEST * values[-1]
    return places, np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _features(column: Array, landmarks: Array, projection: Array, width: float) -> tuple[Array, Array]:
    """Return Nystroem features of the Gaussian at n numbers and their derivatives, both of shape (n, r)."""
    off = (column[:, None] - landmarks) / width
    values = np.exp(-0.5 * off * off)
    return np.asarray(values @ projection), np.asarray((values * off / -width) @ projection)


class Densities:
    """Densities of m white columns on a grid, by penalised likelihood, each step from where the last one ended.

    log p = a y + b y^2 + c log cosh y + f(y) - log Z, where f of the space of a Gaussian kernel has the prior
    exp(-|f|^2 / (2 s^2)). Width and s are those of the largest evidence, by Laplace's approximation.
    """

    def __init__(self, reach: float, rows: int, columns: int) -> None:
        self.rows, self.last = rows, math.asinh(1.001 * max(reach, 1.0) / CORE)
        even = np.linspace(-self.last, self.last, POINTS)
        self.between = float(even[1] - even[0])
        self.grid: Array = CORE * np.sinh(even)
        self.measure = np.log(CORE * self.between * np.cosh(even))
        simple = np.column_stack([self.grid, self.grid**2, np.logaddexp(self.grid, -self.grid)])
        self.choices = []
        for width in WIDTHS:
            landmarks, projection = _landmarks(min(reach, LANDMARKS_REACH), width, 1.0)
            basis = np.column_stack([simple, _features(self.grid, landmarks, projection, width)[0]])
            self.choices += [(basis, doubt, s) for doubt, s in enumerate(DEVIATIONS)]
        # Each begins as a Gaussian.
        self.weights = [np.tile(-0.5 * np.eye(basis.shape[1])[1], (columns, 1)) for basis, *_ in self.choices]
        self.chosen: NDArray[np.intp] | None = None

    def scores(self, columns: Array, *, choose: bool) -> tuple[Array, Array, float]:
        """Return of columns (m, n) their scores -(log p)', shape (m, n), the means of the scores' slopes, and the evidence.

        Cost: O(n m) time, and O(m r^2) for each point of the grid, Newton step and choice, r up to 30.
        """
        m = len(columns)
        below = ((np.arcsinh(columns / CORE) + self.last) / self.between).astype(np.intp).clip(0, POINTS - 2)
        share = (columns - self.grid[below]) / (self.grid[below + 1] - self.grid[below])
        flat = (below + POINTS * np.arange(m)[:, None]).ravel()
        counts = np.bincount(flat, 1.0 - share.ravel(), m * POINTS) + np.bincount(flat + 1, share.ravel(), m * POINTS)
        shares = counts.reshape(m, POINTS) / self.rows
        evidence, logs = np.full(m, -math.inf), np.zeros((m, POINTS))
        chosen = np.zeros(m, dtype=np.intp)
        for place in range(len(self.choices)):
            own = np.arange(m) if choose or self.chosen is None else np.flatnonzero(self.chosen == place)
            if len(own):
                reached = self._likeliest(place, shares[own], own)
                own, reached = own[reached > evidence[own]], reached[reached > evidence[own]]
                evidence[own], chosen[own] = reached, place
                logs[own] = self.weights[place][own] @ self.choices[place][0].T
        self.chosen = chosen
        scores = np.asarray(np.gradient(-logs, self.grid, axis=1))
        slopes = (shares * np.gradient(scores, self.grid, axis=1)).sum(axis=1)
        at = np.take_along_axis(scores, below, 1) * (1.0 - share) + np.take_along_axis(scores, below + 1, 1) * share
        return at, slopes, float(evidence.sum())

    def _likeliest(self, place: int, shares: Array, own: NDArray[np.intp]) -> Array:
        """Find the weights of some columns for one choice by Newton steps, and return the log-evidence of each."""
        basis, doubt, s = self.choices[place]
        n, r = self.rows, basis.shape[1]
        penalties = np.full(r, 1.0 / (n * s * s))
        penalties[:FREE] = ALMOST_NOTHING
        weights, diagonal = self.weights[place][own], np.arange(r)

        def at(weights: Array) -> tuple[Array, Array]:
            logs = weights @ basis.T
            heights = logs + self.measure
            most = heights.max(axis=1, keepdims=True)
            density = np.exp(heights - most)
            total = density.sum(axis=1, keepdims=True)
            value = (shares * logs).sum(axis=1) - (most + np.log(total))[:, 0] - 0.5 * (weights**2) @ penalties
            return value, density / total

        value, density = at(weights)
        for _ in range(DENSITY_STEPS):
            means = density @ basis
            slope = shares @ basis - means - weights * penalties
            bend = (basis.T * density[:, None, :]) @ basis - means[:, :, None] * means[:, None, :]
            bend[:, diagonal, diagonal] += penalties
            way = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
            gain = (slope * way).sum(axis=1)
            if gain.max() < ENOUGH / n:
                break
            length = np.ones(len(own))
            for _ in range(HALVINGS):
                moved = weights + length[:, None] * way
                reached, reshaped = at(moved)
                short = ~(reached >= value + 1e-4 * length * gain)
                if not short.any():
                    break
                length[short] *= 0.5
            better = (reached > value)[:, None]
            if not better.any():
                break
            weights, density = np.where(better, moved, weights), np.where(better, reshaped, density)
            value = np.maximum(value, reached)
        self.weights[place][own] = weights
        found = n * value - 0.5 * np.linalg.slogdet(bend)[1] - 0.5 * (r - FREE) * math.log(n * s * s) - DOUBT * doubt
        return np.asarray(found)


def likeliest(Z: Array, starts: Sequence[Array]) -> Rotation:
    """Return the likeliest of the rotations to which Newton steps go from each start, with densities that are learned anew.

    A small turn by the angle t of columns i and j changes the log-likelihood by -n (g t + h t^2 / 2) with
    g = mean(psi_i(y_i) y_j - psi_j(y_j) y_i) and h = mean(psi_i' - psi_i y_i) + mean(psi_j' - psi_j y_j): pairs do not
    disturb each other.
    """
    return max((_climbed(Z, start) for start in starts), key=lambda found: found.value)


def _climbed(Z: Array, start: Array) -> Rotation:
    """Return the rotation to which Newton steps on the likelihood go from a start."""
    n, m = Z.shape
    densities = Densities(math.sqrt(float(np.einsum("ij,ij->i", Z, Z).max())), n, m)
    W, Y, best, waited = start, start @ Z.T, Rotation(start, settled=False, steps=0, value=-math.inf), 0
    for step in range(1, STEPS + 1):
        scores, slopes, value = densities.scores(Y, choose=step <= CHOOSING)
        # Gaussian columns have no rotation to settle at: the likelihood rises no more, and turns are still long.
        waited = 0 if value > best.value + LEAST_RISE else waited + 1
        if value > best.value:
            best = Rotation(W, settled=False, steps=step, value=value)
        if waited == PATIENCE and step > CHOOSING:
            return best._replace(settled=True)
        products = scores @ Y.T / n
        bend = slopes - np.diag(products)
        curvature = bend[:, None] + bend
        there = curvature > FLAT
        turn = np.where(there, (products.T - products) / np.where(there, curvature, 1.0), 0.0)
        turn = np.clip(turn, -LONGEST_STEP, LONGEST_STEP)
        R = rotation_by(turn)
        W, Y = R @ W, R @ Y
        if np.abs(turn).max() < SETTLED / math.sqrt(n):
            return Rotation(W, settled=True, steps=step, value=value)
    return best


def rotation_by(turn: Array) -> Array:
    """Return the rotation of a skew matrix A by Cayley's formula, (I - A/2)^(-1) (I + A/2)."""
    identity = np.eye(len(turn))
    return np.asarray(np.linalg.solve(identity - 0.5 * turn, identity + 0.5 * turn))


# HSIC of all pairs.


def hsic_contrast(bandwidth: float, reach: float) -> Contrast:
    """Return the sum over pairs of HSIC, of Gaussians of one bandwidth, and its gradient, through features of landmarks.

    With centred features A_i, HSIC of two columns is |A_i' A_j / n|^2, and its gradient at y_i the sum over the features of
    2/n (A_j (A_j' A_i / n)) times their derivatives. The landmarks stay, so that it is smooth. Rows farther off than these
    are like no other. Cost: O(n (m r)^2) time, O(n m r) memory, r some 20.
    """
    landmarks, projection = _landmarks(min(reach, MOST_LANDMARKS * APART * bandwidth), bandwidth, APART)

    def value(Y: Array) -> tuple[float, Array]:
        n, m = Y.shape
        pairs = [_features(column, landmarks, projection, bandwidth) for column in np.ascontiguousarray(Y.T)]
        width = pairs[0][0].shape[1]
        F = centred(np.concatenate([features for features, _ in pairs], axis=1))
        products = F.T @ F / n
        for own in (slice(place * width, (place + 1) * width) for place in range(m)):
            products[own, own] = 0.0
        pulls = (2.0 / n) * (F @ products)
        slopes = np.concatenate([derivatives for _, derivatives in pairs], axis=1)
        return 0.5 * float((products**2).sum()), (pulls * slopes).reshape(n, m, width).sum(axis=2)

    return value


def least(contrast: Contrast, Z: Array, start: Array) -> Rotation:
    """Return the rotation near `start` where a contrast is least, by quasi-Newton steps (BFGS) on the group of rotations.

    Tangents are skew matrices, the same at each rotation: Y' = Y R' with R = I + A changes the contrast by the sum over
    i < j of A_ij (M - M')_ij, M the product of gradient' and Y.
    """
    m, W, Y = len(start), start, Z @ start.T
    pairs = np.triu_indices(m, 1)

    def at(Y: Array) -> tuple[float, Array]:
        value, gradient = contrast(Y)
        product = gradient.T @ Y
        return value, (product - product.T)[pairs]

    value, slope = at(Y)
    first, inverse = value, np.eye(len(slope))
    inverse *= 0.1 / max(float(np.linalg.norm(slope)), np.finfo(np.float64).tiny)
    for step in range(1, DESCENT + 1):
        way = -inverse @ slope
        way *= min(1.0, LONGEST_STEP / max(float(np.abs(way).max()), np.finfo(np.float64).tiny))
        for length in (1.0, 0.5, 0.2, 0.05, 0.01):
            turn = np.zeros((m, m))
            turn[pairs] = length * way
            R = rotation_by(turn - turn.T)
            moved = Y @ R.T
            reached, bent = at(moved)
            if reached <= value + 1e-4 * length * float(way @ slope):
                break
        else:
            return Rotation(W, settled=True, steps=step, value=-value)
        gained, value, change, taken = value - reached, reached, bent - slope, length * way
        W, Y, slope = R @ W, moved, bent
        if gained < PROGRESS_MADE * first:
            return Rotation(W, settled=True, steps=step, value=-value)
        along = float(taken @ change)
        if along > 1e-10 * float(np.linalg.norm(taken) * np.linalg.norm(change)):
            if step == 1:
                inverse = np.eye(len(slope)) * (along / float(change @ change))
            left = np.eye(len(slope)) - np.outer(taken, change) / along
            inverse = left @ inverse @ left.T + np.outer(taken, taken) / along
    return Rotation(W, settled=False, steps=DESCENT, value=-value)


def centred_features(Y: Array, bandwidth: float, tolerance: float) -> list[Array]:
    """Return of each column A with HKH = A A' for the Gaussian, but for this share of the trace of K, shapes (n, r)."""
    kernel, n = Gaussian(bandwidth), len(Y)
    factors = (kernel_factor(kernel, Points.of(column[:, None]), tolerance=tolerance, most=n) for column in Y.T)
    return [centred(factor.columns) for factor in factors]


def pair_dependences(features: Sequence[Array]) -> Array:
    """Return HSIC of all pairs of columns from their features, less its mean over relabellings, shape (m, m).

    |A_i' A_j|^2 / n^2 - tr(A_i A_i') tr(A_j A_j') / (n^2 (n - 1)); 0 on the diagonal.
    """
    m, n = len(features), len(features[0])
    found, traces = np.zeros((m, m)), [float(np.square(one).sum()) for one in features]
    for i, j in combinations(range(m), 2):
        by_chance = traces[i] * traces[j] / (n - 1)
        found[i, j] = found[j, i] = (float(((features[i].T @ features[j]) ** 2).sum()) - by_chance) / n**2
    return found


def independence_p_value(features: Sequence[Array], relabellings: int, seed: int, enough: float = 1.0) -> float:
    """Return the permutation p-value of the sum over pairs of HSIC: the rows of each column but the first are permuted.

    Relabellings end when it is sure to be larger than `enough`, with the least that it can still be.
    Cost: O(n (sum of the ranks)^2) time for each relabelling.
    """
    n, rng = len(features[0]), np.random.default_rng(seed)
    ends = np.cumsum([one.shape[1] for one in features])

    def total(parts: Sequence[Array]) -> float:
        products = np.concatenate(parts, axis=1)
        products = (products.T @ products) ** 2
        inside = sum(products[a:b, a:b].sum() for a, b in zip([0, *ends], ends, strict=False))
        return float(products.sum() - inside)

    least_seen, reached = total(features) * (1.0 - 1e-12), 1.0
    for _ in range(relabellings):
        reached += total([features[0], *(one[rng.permutation(n)] for one in features[1:])]) >= least_seen
        if reached > enough * (1.0 + relabellings):
            break
    return reached / (1.0 + relabellings)
