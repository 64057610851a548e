"""How far a vector of statistics lies towards an excess, for many vectors at once.

    D = z'Mz - min over u >= 0 of (z - u)'M(z - u),    M = S^-1

says how much nearer z is, in the metric of its own covariance S, to some u >= 0 than to none (Kudo 1963; Perlman 1969,
"One-sided testing problems in multivariate analysis"). By duality, u = z + S w with w >= 0 and u'w = 0: w is the least of
w'Sw / 2 + z'w over w >= 0, and D = u'Mu. Any w >= 0 and any u >= 0 bound D:

    2 u'Mz - u'Mu <= D <= z'Mz + w'Sw + 2 z'w
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Rounds of coordinate descent from which bounds and sets come.
SWEEPS = 4
# Exchanges of several places that may fail to bring a solution nearer before places are exchanged one by one.
PATIENCE = 3
# A place is on the wrong side of 0 beyond this share of the largest |z|.
SLACK = 1e-11
# Solving for each vector costs about as much as inverting for each set of places and multiplying, up to so many vectors
# a set.
VECTORS_PER_SET = 3


@dataclass(frozen=True, slots=True, eq=False)
class ExcessDistances:
    """Bounds of D for R vectors.

    Parameters
    ----------
    z : ndarray, shape (F, R)
    covariance : ndarray, shape (F, F)
        S.
    start : ndarray, shape (F, R)
        A w >= 0 near the least.
    lower, upper : ndarray, shape (R,)
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
