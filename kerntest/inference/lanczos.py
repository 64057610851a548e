"""The largest eigenvalues of many operators side by side, by the Lanczos method with full reorthogonalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

    Operator: TypeAlias = Callable[[Array, NDArray[np.intp]], Array]

# Convergence is looked at after so many steps each: it takes an eigendecomposition of its own.
STEPS = 4
# Room for so many vectors at first, and whenever it is full.
ROOM = 16
# A direction shorter than this share of the largest eigenvalue is rounding: all that the operator reaches is found.
EXHAUSTED = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Leading:
    """The largest eigenvalue of each operator, and its eigenvector.

    Parameters
    ----------
    values : ndarray, shape (b,)
    vectors : ndarray, shape (b, m)
        Of unit length.
    """

    values: Array
    vectors: Array


def leading_eigenvalues(operator: Operator, start: Array, *, accuracy: float) -> Leading:
    """Return the largest eigenvalue of operators B_k, each symmetric and positive semi-definite.

    Some eigenvalue lies within the residual |B a - theta a| of theta; it is the largest unless the start has no part in
    its direction.

    Parameters
    ----------
    operator : callable
        Maps vectors, shape (b, m), and the numbers k of their operators, shape (b,), to B_k a, shape (b, m).
    start : ndarray, shape (b, m)
        A generic vector for each operator.
    accuracy : float
        The residual, relative to the eigenvalue, at which to stop.

    Notes
    -----
    Cost: t <= m applications of each operator, O(b m t^2) time and O(b m t) memory beside. An operator whose
    eigenvalue has converged is set aside while others go on.
    """
    count, size = start.shape
    values, vectors = np.zeros(count), np.zeros((count, size))
    basis = _Basis.of(start)
    for step in range(1, size + 1):
        basis.advance(operator)
        if step % STEPS and step < size:
            continue
        theta, weights = basis.largest()
        residual = basis.below[:, step - 1] * np.abs(weights[:, -1])
        done = (residual <= accuracy * theta) | (step == size)
        values[basis.numbers[done]] = theta[done]
        vectors[basis.numbers[done]] = np.matmul(weights[done, None, :], basis.vectors[done, :step])[:, 0]
        basis.keep(~done)
        if not len(basis.numbers):
            break
    return Leading(values, vectors)


@dataclass(slots=True, eq=False)
class _Basis:
    """The Lanczos vectors of the operators that have not converged, and the tridiagonal matrices between them."""

    numbers: NDArray[np.intp]
    vectors: Array
    diagonal: Array
    below: Array
    steps: int = 0

    @classmethod
    def of(cls, start: Array) -> _Basis:
        """Begin with one vector for each operator."""
        count, size = start.shape
        basis = cls(np.arange(count), np.empty((count, 0, size)), np.empty((count, 0)), np.empty((count, 0)))
        basis._make_room()
        basis.vectors[:, 0] = start / np.linalg.norm(start, axis=1, keepdims=True)
        return basis

    def advance(self, operator: Operator) -> None:
        """Apply every operator to its last vector; what is new in the result is the next vector."""
        last = self.steps
        vectors = self.vectors[:, : last + 1]
        found, overlaps = _reduced(operator(vectors[:, last], self.numbers), vectors)
        # Once more, for what rounding has left.
        found, _ = _reduced(found, vectors)
        self.diagonal[:, last] = overlaps[:, last]
        length = np.linalg.norm(found, axis=1)
        new = length > EXHAUSTED * self.diagonal[:, : last + 1].max(axis=1)
        self.below[:, last] = np.where(new, length, 0.0)
        self.steps += 1
        if self.steps == self.vectors.shape[1]:
            self._make_room()
        # Where nothing is new the sequence ends in zeros.
        inverse = np.divide(1.0, length, out=np.zeros_like(length), where=new)
        np.multiply(found, inverse[:, None], out=self.vectors[:, self.steps])

    def largest(self) -> tuple[Array, Array]:
        """Return the largest eigenvalue of each tridiagonal matrix, shape (b,), and its eigenvector, (b, steps)."""
        steps = np.arange(self.steps)
        tridiagonal = np.zeros((len(self.numbers), self.steps, self.steps))
        tridiagonal[:, steps, steps] = self.diagonal[:, : self.steps]
        tridiagonal[:, steps[1:], steps[:-1]] = self.below[:, : self.steps - 1]
        eigenvalues, eigenvectors = np.linalg.eigh(tridiagonal)
        return eigenvalues[:, -1], eigenvectors[:, :, -1]

    def keep(self, wanted: NDArray[np.bool_]) -> None:
        """Drop the operators that are not wanted."""
        if wanted.all():
            return
        for name in ("numbers", "vectors", "diagonal", "below"):
            setattr(self, name, getattr(self, name)[wanted])

    def _make_room(self) -> None:
        for name in ("vectors", "diagonal", "below"):
            values = getattr(self, name)
            more = np.empty((values.shape[0], ROOM, *values.shape[2:]))
            setattr(self, name, np.concatenate([values, more], axis=1))


def _reduced(found: Array, vectors: Array) -> tuple[Array, Array]:
    """Return each vector less its projections on orthonormal ones, shape (b, t, m), and its inner products with them."""
    overlaps = np.matmul(vectors, found[:, :, None])
    return found - np.matmul(overlaps.transpose(0, 2, 1), vectors)[:, 0], overlaps[:, :, 0]
