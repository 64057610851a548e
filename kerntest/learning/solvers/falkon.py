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
    from collections.abc import Callable, Iterator

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
    n, centres, total, width = len(targets), len(projection), float(weights.sum()), targets.shape[1]
    engine = enough_for(engine, n * centres)

    step = max(16, BLOCK // centres)
    every = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    means = weights @ targets / total
    right = np.column_stack([weights[:, None] * (targets - means), weights / total])
    first = projection.T @ _sum(engine.map(lambda rows: block(rows).T @ right[rows], every))
    mean = first[:, -1]

    def apply(g: Array) -> Array:
        coefficients = projection @ g

        def work(rows: slice) -> Array:
            K = block(rows)
            return np.asarray(K.T @ (weights[rows, None] * (K @ coefficients)))

        inner = _sum(engine.map(work, every))
        return np.asarray(projection.T @ inner - total * np.outer(mean, mean @ g) + lambda_ * g)

    rng = np.random.default_rng((seed, STREAM))
    some = np.sort(rng.choice(n, min(n, ROWS_PER_CENTRE * centres), replace=False))
    roots = np.sqrt(weights / weights[some].sum())

    def squares(rows: NDArray[np.intp]) -> Array:
        Z = np.column_stack([block(rows) @ projection, np.ones(len(rows))])
        Z *= roots[rows, None]
        return np.asarray(Z.T @ Z)

    # Not sent anywhere: the products may be larger than what they are made of.
    moments = _sum(engine.here.map(squares, np.split(some, range(step, len(some), step))))
    values, vectors = np.linalg.eigh(total * (moments[:-1, :-1] - np.outer(moments[-1, :-1], moments[-1, :-1])))
    values = np.maximum(values, 0.0)

    def precondition(residual: Array) -> Array:
        return np.asarray(vectors @ ((vectors.T @ residual) / (values[:, None] + lambda_)))

    probes = rng.choice([-1.0, 1.0], size=(len(mean), PROBES))
    solved, steps, converged = conjugate_gradients(
        apply, precondition, np.column_stack([first[:, :-1], probes]), advanced=advanced
    )
    g = solved[:, :width]
    coefficients = projection @ g
    fitted = np.concatenate(list(engine.map(lambda rows: block(rows) @ coefficients, every)))
    return CentreRidge(
        weights=g,
        mean=mean,
        residuals=targets - means - (fitted - mean @ g),
        degrees=1.0 + len(mean) - lambda_ * float(np.vdot(probes, solved[:, width:])) / PROBES,
        posterior=vectors * np.sqrt(values / (values + lambda_)),
        condition=(float(values[-1]) + lambda_) / (float(values[0]) + lambda_),
        steps=steps,
        converged=converged,
    )


def _sum(parts: Iterator[Array]) -> Array:
    """Return the sum of arrays, in their order."""
    total = next(parts).copy()
    for part in parts:
        total += part
    return total


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
    solution, residual = np.zeros_like(right), right.copy()
    direction = precondition(residual)
    energy = np.einsum("ij,ij->j", residual, direction)
    first = energy.copy()
    active = energy > 0.0
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
        active &= energy > TOLERANCE**2 * first
        steps += 1
        if advanced is not None and active.any():
            # Logarithms of residuals fall about as the steps go.
            way = np.log(energy[active] / first[active]) / (2.0 * math.log(TOLERANCE))
            reached = max(reached, min(float(way.min()), 1.0))
            advanced(reached)
    return solution, steps, not active.any()
