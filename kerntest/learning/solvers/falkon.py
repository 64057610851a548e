"""Ridge regression in the span of a few centres, for very many rows: preconditioned conjugate gradients.

With features z(x) = P' k(C, x), P P' = K(C, C)^-1, the coefficients g minimise sum_i w_i (y_i - <g, z_i> - b)^2 +
lambda |g|^2, that is (Zc' W Zc + lambda) g = Zc' W y with Zc the centred features. The kernel values of all rows and
centres are computed anew, block by block, in every step, and never held. The preconditioner is the inverse of the same
matrix for a random part of the rows, times (all rows / part) (Rudi, Carratino and Rosasco 2017, "FALKON: An optimal
large scale kernel method", take the centres themselves as that part; a few times as many rows save most of the steps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.engine import enough_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array

# Kernel values of one block.
BLOCK = 2**19
# Steps at most, and the relative residual to stop at.
STEPS, TOLERANCE = 300, 1e-7
# The preconditioner sees so many rows for each centre, if there are so many.
ROWS_PER_CENTRE = 10
# Random signs that the trace of the hat matrix is estimated with.
PROBES = 16
STREAM = 5


@dataclass(frozen=True, slots=True, eq=False)
class CentreRidge:
    """A ridge regression on features of centres: weights g (r, T), the weighted mean of the features, residuals (n, T).

    By the rows of the preconditioner, `posterior` B has B B' near I - lambda (Zc' W Zc + lambda)^-1. `degrees` is the
    estimated trace of the hat matrix.
    """

    weights: Array
    mean: Array
    residuals: Array
    degrees: float
    posterior: Array
    condition: float
    steps: int
    converged: bool


def centre_ridge(
    block: Callable[[slice | NDArray[np.intp]], Array],
    projection: Array,
    *,
    targets: Array,
    weights: Array,
    lambda_: float,
    engine: Engine,
    seed: int,
    advanced: Callable[[float], None] | None = None,
) -> CentreRidge:
    """Return the regression. `block` gives the kernel values of some rows and all M centres, `projection` (M, r) is P.

    `advanced` is told after each step which share of the way to the goal is done. Cost: n M kernel values a step, O(M^3)
    once; memory: a block for each thread, four arrays of M x M. Steps grow with the logarithm of the accuracy where the
    rows of the preconditioner are many times the effective degrees of freedom.
    """
    n, total = len(targets), float(weights.sum())
    sums = _Sums(block, n, len(projection), engine)
    means = weights @ targets / total
    centred = weights[:, None] * (targets - means)
    first = sums.transposed(np.column_stack([centred, weights / total]))
    mean = projection.T @ first[:, -1]
    right = projection.T @ first[:, :-1]

    def apply(g: Array) -> Array:
        inner = sums.gram(projection @ g, weights)
        found: Array = projection.T @ inner - total * np.outer(mean, mean @ g) + lambda_ * g
        return found

    rng = np.random.default_rng((seed, STREAM))
    some = np.sort(rng.choice(n, min(n, ROWS_PER_CENTRE * len(projection)), replace=False))
    values, vectors = np.linalg.eigh(total * sums.covariance(some, projection, weights))
    values = np.maximum(values, 0.0)

    def precondition(residual: Array) -> Array:
        found: Array = vectors @ ((vectors.T @ residual) / (values[:, None] + lambda_))
        return found

    probes = rng.choice([-1.0, 1.0], size=(len(mean), PROBES))
    solved, steps, converged = conjugate_gradients(
        apply, precondition, np.column_stack([right, probes]), advanced=advanced
    )
    g = solved[:, : targets.shape[1]]
    fitted = sums.product(projection @ g)
    residuals = targets - means - (fitted - mean @ g)
    slack = lambda_ * float(np.einsum("ij,ij->", probes, solved[:, targets.shape[1] :])) / PROBES
    posterior = vectors * np.sqrt(values / (values + lambda_))
    condition = (float(values[-1]) + lambda_) / (float(values[0]) + lambda_)
    return CentreRidge(g, mean, residuals, 1.0 + len(mean) - slack, posterior, condition, steps, converged)


def conjugate_gradients(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    *,
    advanced: Callable[[float], None] | None = None,
) -> tuple[Array, int, bool]:
    """Return the solutions of a positive definite system for several right-hand sides, the steps, and whether all ended.

    Each has its own step length; all share the products. A side whose residual, in the norm of the preconditioner, has
    fallen to 1e-7 of what it was rests.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = precondition(residual)
    energy = np.einsum("ij,ij->j", residual, direction)
    first, goal = energy.copy(), TOLERANCE**2 * energy
    active = energy > goal
    steps, reached = 0, 0.0
    while active.any() and steps < STEPS:
        product = apply(direction[:, active])
        length = energy[active] / np.einsum("ij,ij->j", direction[:, active], product)
        solution[:, active] += length * direction[:, active]
        residual[:, active] -= length * product
        better = precondition(residual[:, active])
        after = np.einsum("ij,ij->j", residual[:, active], better)
        direction[:, active] = better + after / energy[active] * direction[:, active]
        energy[active] = after
        active = active & (energy > goal)
        steps += 1
        if advanced is not None and active.any():
            # Logarithms of residuals fall about as the steps go.
            way = np.log(energy[active] / first[active]) / (2.0 * math.log(TOLERANCE))
            reached = max(reached, min(float(way.min()), 1.0))
            advanced(reached)
    return solution, steps, not active.any()


class _Sums:
    """Products with the kernel values of all rows and centres, a block at a time, added in the order of the rows."""

    def __init__(
        self, block: Callable[[slice | NDArray[np.intp]], Array], n: int, centres: int, engine: Engine
    ) -> None:
        self.block, self.n, self.centres, self.engine = block, n, centres, enough_for(engine, n * centres)
        step = max(16, BLOCK // centres)
        self.slices = [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def transposed(self, right: Array) -> Array:
        """Return K' right, shape (M, R)."""
        return self._added(lambda rows: self.block(rows).T @ right[rows], right.shape[1])

    def gram(self, right: Array, weights: Array) -> Array:
        """Return K' W K right, shape (M, R)."""

        def work(rows: slice) -> Array:
            K = self.block(rows)
            found: Array = K.T @ (weights[rows, None] * (K @ right))
            return found

        return self._added(work, right.shape[1])

    def product(self, right: Array) -> Array:
        """Return K right, shape (n, R)."""
        result = np.empty((self.n, right.shape[1]))
        parts = self.engine.map(lambda rows: self.block(rows) @ right, self.slices)
        for rows, part in zip(self.slices, parts, strict=True):
            result[rows] = part
        return result

    def covariance(self, rows: NDArray[np.intp], projection: Array, weights: Array) -> Array:
        """Return the weighted covariance of the features of some rows, shape (r, r)."""
        step = max(16, BLOCK // self.centres)
        parts = [rows[start : start + step] for start in range(0, len(rows), step)]
        total = np.zeros((projection.shape[1], projection.shape[1]))
        mean = np.zeros(projection.shape[1])
        shares = weights / weights[rows].sum()

        def work(part: NDArray[np.intp]) -> tuple[Array, Array]:
            Z = self.block(part) @ projection
            mean: Array = shares[part] @ Z
            Z *= np.sqrt(shares[part])[:, None]
            return Z.T @ Z, mean

        # Not sent anywhere: the products may be larger than what they are made of.
        for squares, part_mean in self.engine.here.map(work, parts):
            total += squares
            mean += part_mean
        centred: Array = total - np.outer(mean, mean)
        return centred

    def _added(self, work: Callable[[slice], Array], width: int) -> Array:
        total = np.zeros((self.centres, width))
        for part in self.engine.map(work, self.slices):
            total += part
        return total
