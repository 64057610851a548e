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

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array

    # The value of a function of the columns, shape (n, m), and its gradient at each entry.
    Contrast: TypeAlias = Callable[[Array], tuple[float, Array]]

# The search looks at so many angles of a quarter turn, goes through all pairs at most so many times, and sees so many rows.
ANGLES, SWEEPS, SEARCHED_ROWS = 16, 10, 4000
# A turn has to gain so many nats, and the search ends with a sweep whose turns are smaller than this.
LEAST_GAIN, LEAST_TURN = 1e-4, 0.02
# Densities stand on a grid of so many points, over at most so many standard deviations to either side, and are smoothed
# by so many of them. Mean Amari errors of 4 sources over 18 densities, of 250 rows: 0.27 .082, 0.4 .074, 0.53 .092, of
# 1,000 rows: 0.2 .030, 0.3 .028, 0.4 .026.
GRID, FARTHEST, SMOOTHING = 256, 14.0, 0.4
# Hyvarinen's approximation of negentropy (1998) by the means of y exp(-y^2/2) and exp(-y^2/2).
ODD, EVEN = 36.0 / (8.0 * math.sqrt(3.0) - 9.0), 24.0 / (16.0 * math.sqrt(3.0) - 27.0)
GAUSSIAN_ENTROPY = 0.5 * math.log(2.0 * math.pi * math.e)

# Widths and penalties of scores, which folds of the rows choose between, in so many rounds; then they stay.
WIDTHS, PENALTIES, FOLDS, CHOOSING = (1.0, 0.4), 10.0 ** np.arange(-5.0, 2.1), 5, 3
# Landmarks reach so many standard deviations; eigenvalues below this share of the largest are left out.
LANDMARKS_REACH, SMALLEST = 5.0, 1e-8
# 1, y and tanh(y), which has the sources with one peak, are not penalised but for rounding.
FREE, ALMOST_NOTHING = 3, 1e-9
# Newton steps are at most so long, end when they are short against the errors of estimation, 1 / sqrt(n), and leave pairs
# without curvature where they are.
LONGEST_STEP, SETTLED, FLAT, STEPS = 0.3, 0.03, 0.02, 50
# Of the descent on HSIC: steps, the share of the first value that a step must gain, and landmarks a bandwidth apart.
DESCENT, PROGRESS_MADE, APART, MOST_LANDMARKS = 200, 1e-6, 0.75, 24


class Rotation(NamedTuple):
    """An orthogonal matrix W (m, m), whether its search has settled, and in how many steps."""

    matrix: Array
    settled: bool
    steps: int


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


def searched(Z: Array, start: Array, swept: Callable[[int], None]) -> tuple[Array, float]:
    """Return a rotation from `start` on whose columns are least Gaussian, and their negentropies together.

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
    return W, float(negentropies(columns).sum())


def _vertex(before: float, at: float, after: float) -> float:
    """Return where the parabola through values at -1, 0 and 1, of which that at 0 is the largest, is largest."""
    bend = before - 2.0 * at + after
    return 0.5 * (before - after) / bend if bend < 0 else 0.0


def best_start(Z: Array, restarts: int, seed: int, progress: Progress | None = None) -> Array:
    """Return the best rotation that searches find from the axes as they are, and from so many random ones."""
    m, best, most = Z.shape[1], np.eye(Z.shape[1]), -math.inf
    for place in range(restarts + 1):
        rng = np.random.default_rng((seed, place))
        start = np.linalg.qr(rng.normal(size=(m, m)))[0] if place else np.eye(m)

        def swept(sweep: int, before: int = place * SWEEPS) -> None:
            if progress is not None:
                progress(before + sweep, (restarts + 1) * SWEEPS + 1)

        found, value = searched(Z, start, swept)
        if value > most:
            best, most = found, value
    return best


# The likelihood, with densities that are learned from the columns.


class Score(NamedTuple):
    """The score function -(log p)' of a column and its derivative at the n rows, and which width and penalty it has."""

    values: Array
    slopes: Array
    choice: tuple[float, float]


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


def score(column: Array, choices: Sequence[tuple[float, float]]) -> Score:
    """Return the score function of a white column by score matching (Hyvarinen 2005) in the space of a Gaussian kernel.

    It minimises mean(f(y)^2 / 2 - f'(y)) + penalty |f|^2 / 2 over 1, y, tanh(y) and functions of the kernel: the first is
    half the mean squared distance to the true score, but for a constant. Of several choices of a width and a penalty, that
    is taken which rows left out of the fit are best served by.
    """
    n, best, least = len(column), Score(column, np.ones(len(column)), choices[0]), math.inf
    folds = [slice(first, None, FOLDS) for first in range(FOLDS)]
    bent = np.tanh(column)
    simple = np.column_stack([np.ones(n), column, bent])
    slopes = np.column_stack([np.zeros(n), np.ones(n), 1.0 - bent * bent])
    for width in dict.fromkeys(width for width, _ in choices):
        penalties = np.array([penalty for own, penalty in choices if own == width])
        reach = min(float(np.abs(column).max()), LANDMARKS_REACH)
        values, derivatives = _features(column, *_landmarks(reach, width, 1.0), width)
        F, D = np.concatenate([simple, values], axis=1), np.concatenate([slopes, derivatives], axis=1)
        ridge = np.ones(F.shape[1])
        ridge[:FREE] = ALMOST_NOTHING
        squares = np.stack([F[fold].T @ F[fold] for fold in folds])
        sums = np.stack([D[fold].sum(axis=0) for fold in folds])
        place = 0
        if len(choices) > 1:
            lost = _lost_on_others(squares, sums, n - np.ceil((n - np.arange(FOLDS)) / FOLDS), penalties, ridge)
            place = int(lost.argmin())
            if lost[place] >= least:
                continue
            least = float(lost[place])
        weights = np.linalg.solve(squares.sum(axis=0) / n + np.diag(penalties[place] * ridge), sums.sum(axis=0) / n)
        best = Score(F @ weights, D @ weights, (width, float(penalties[place])))
    return best


def _lost_on_others(squares: Array, sums: Array, rows: Array, penalties: Array, ridge: Array) -> Array:
    """Return for each penalty what fits without a fold lose on it, summed over the folds."""
    inner = (squares.sum(axis=0) - squares) / rows[:, None, None]
    right = (sums.sum(axis=0) - sums) / rows[:, None]
    systems = inner[:, None] + penalties[:, None, None] * np.diag(ridge)
    weights = np.linalg.solve(systems, np.broadcast_to(right[:, None, :, None], (*systems.shape[:3], 1)))[..., 0]
    half = 0.5 * np.einsum("fpr,frs,fps->p", weights, squares, weights)
    return np.asarray(half - np.einsum("fpr,fr->p", weights, sums))


def likeliest(Z: Array, start: Array) -> Rotation:
    """Return the rotation near `start` of the largest likelihood, by Newton steps, with scores that are learned anew.

    A small turn by the angle t of columns i and j changes the log-likelihood by -n (g t + h t^2 / 2) with
    g = mean(psi_i(y_i) y_j - psi_j(y_j) y_i) and h = mean(psi_i' - psi_i y_i) + mean(psi_j' - psi_j y_j): pairs do not
    disturb each other. Cost: O(n m (m + r^2)) time for each of some ten steps, r up to 30.
    """
    every = [(width, penalty) for width in WIDTHS for penalty in PENALTIES.tolist()]
    W, Y, chosen = start, Z @ start.T, [every] * len(start)
    for step in range(1, STEPS + 1):
        scores = [score(column, choices) for column, choices in zip(np.ascontiguousarray(Y.T), chosen, strict=True)]
        if step >= CHOOSING:
            chosen = [[one.choice] for one in scores]
        products = np.stack([one.values for one in scores]) @ Y / len(Y)
        bend = np.array([one.slopes.mean() for one in scores]) - np.diag(products)
        curvature = bend[:, None] + bend
        there = curvature > FLAT
        turn = np.where(there, (products.T - products) / np.where(there, curvature, 1.0), 0.0)
        turn = np.clip(turn, -LONGEST_STEP, LONGEST_STEP)
        R = rotation_by(turn)
        W, Y = R @ W, Y @ R.T
        if np.abs(turn).max() < SETTLED / math.sqrt(len(Y)):
            return Rotation(W, settled=True, steps=step)
    return Rotation(W, settled=False, steps=STEPS)


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
            return Rotation(W, settled=True, steps=step)
        gained, value, change, taken = value - reached, reached, bent - slope, length * way
        W, Y, slope = R @ W, moved, bent
        if gained < PROGRESS_MADE * first:
            return Rotation(W, settled=True, steps=step)
        along = float(taken @ change)
        if along > 1e-10 * float(np.linalg.norm(taken) * np.linalg.norm(change)):
            if step == 1:
                inverse = np.eye(len(slope)) * (along / float(change @ change))
            left = np.eye(len(slope)) - np.outer(taken, change) / along
            inverse = left @ inverse @ left.T + np.outer(taken, taken) / along
    return Rotation(W, settled=False, steps=DESCENT)


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


def independence_p_value(features: Sequence[Array], relabellings: int, seed: int) -> float:
    """Return the permutation p-value of the sum over pairs of HSIC: the rows of each column but the first are permuted.

    Cost: O(n (sum of the ranks)^2) time for each relabelling.
    """
    n, rng = len(features[0]), np.random.default_rng(seed)
    ends = np.cumsum([one.shape[1] for one in features])

    def total(parts: Sequence[Array]) -> float:
        products = np.concatenate(parts, axis=1)
        products = (products.T @ products) ** 2
        inside = sum(products[a:b, a:b].sum() for a, b in zip([0, *ends], ends, strict=False))
        return float(products.sum() - inside)

    least_seen = total(features) * (1.0 - 1e-12)
    others = (total([features[0], *(one[rng.permutation(n)] for one in features[1:])]) for _ in range(relabellings))
    return (1.0 + sum(other >= least_seen for other in others)) / (1.0 + relabellings)
