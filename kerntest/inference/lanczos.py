"""The largest eigenvalues of many operators side by side, by the Lanczos method with full reorthogonalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Convergence is looked at after so many steps each: it takes an eigendecomposition of its own.
STEPS = 4
# Room for so many vectors at first, and whenever it is full.
ROOM = 16
# A direction shorter than this share of the largest eigenvalue is rounding: all that the operator reaches is found.
EXHAUSTED = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Leading:
    """The largest eigenvalue of each operator B S, and its eigenvector a as S a.

    Parameters
    ----------
    values : ndarray, shape (b,)
    images : ndarray, shape (b, m)
        S a with a' S a = 1.
    """

    values: Array
    images: Array


def leading_eigenvalues(
    operator: Callable[[Array, NDArray[np.intp]], Array],
    metric: Callable[[Array], Array],
    start: Array,
    *,
    accuracy: float,
) -> Leading:
    """Return the largest eigenvalue of operators B_k S, all factors symmetric and positive semi-definite.

    Each is self-adjoint in the inner product <a, b> = a' S b, in which its Lanczos vectors are orthonormal. Some
    eigenvalue lies within the residual |B S a - theta a| of theta; it is the largest unless the start has no part in
    its direction.

    Parameters
    ----------
    operator : callable
        Maps S a, shape (b, m), and the numbers k of the operators, shape (b,), to B_k S a, shape (b, m).
    metric : callable
        Maps a, shape (b, m), to S a.
    start : ndarray, shape (b, m)
        A generic vector for each operator.
    accuracy : float
        The residual, relative to the eigenvalue, at which to stop.

    Notes
    -----
    Cost: t <= m steps, each one application of every factor; O(b m t^2) time and O(b m t) memory beside. An operator
    whose eigenvalue has converged is set aside while others go on.
    """
    count, size = start.shape
    values, images = np.zeros(count), np.zeros((count, size))
    basis = _Basis.of(start, metric)
    for step in range(1, size + 1):
        basis.advance(operator, metric)
        if step % STEPS and step < size:
            continue
        theta, weights = basis.largest()
        residual = basis.below[:, step - 1] * np.abs(weights[:, -1])
        done = (residual <= accuracy * theta) | (step == size)
        values[basis.numbers[done]] = theta[done]
        images[basis.numbers[done]] = np.matmul(weights[done, None, :], basis.images[done, :step])[:, 0]
        basis.keep(~done)
        if not len(basis.numbers):
            break
    return Leading(values, images)


@dataclass(slots=True, eq=False)
class _Basis:
    """The Lanczos vectors of the operators that have not converged, and the tridiagonal matrices between them."""

    numbers: NDArray[np.intp]
    vectors: Array
    images: Array
    diagonal: Array
    below: Array
    steps: int = 0

    @classmethod
    def of(cls, start: Array, metric: Callable[[Array], Array]) -> _Basis:
        """Begin with one vector for each operator."""
        count, size = start.shape
        basis = cls(
            np.arange(count),
            np.empty((count, 0, size)),
            np.empty((count, 0, size)),
            np.empty((count, 0)),
            np.empty((count, 0)),
        )
        basis._make_room()
        image = metric(start)
        length = _length(start, image)
        basis._append(start, image, _inverse(length, length > 0))
        return basis

    def advance(self, operator: Callable[[Array, NDArray[np.intp]], Array], metric: Callable[[Array], Array]) -> None:
        """Apply every operator to its last vector; what is new in the result is the next vector."""
        last = self.steps
        found = operator(self.images[:, last], self.numbers)
        vectors, images = self.vectors[:, : last + 1], self.images[:, : last + 1]
        overlaps = np.matmul(images, found[:, :, None])
        self.diagonal[:, last] = overlaps[:, last, 0]
        found = found - np.matmul(overlaps.transpose(0, 2, 1), vectors)[:, 0]
        # Once more, for what rounding has left.
        found -= np.matmul(np.matmul(images, found[:, :, None]).transpose(0, 2, 1), vectors)[:, 0]
        image = metric(found)
        length = _length(found, image)
        new = length > EXHAUSTED * self.diagonal[:, : last + 1].max(axis=1)
        self.below[:, last] = np.where(new, length, 0.0)
        self.steps += 1
        if self.steps == self.vectors.shape[1]:
            self._make_room()
        self._append(found, image, _inverse(length, new))

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
        for name in ("numbers", "vectors", "images", "diagonal", "below"):
            setattr(self, name, getattr(self, name)[wanted])

    def _append(self, vector: Array, image: Array, scale: Array) -> None:
        np.multiply(vector, scale[:, None], out=self.vectors[:, self.steps])
        np.multiply(image, scale[:, None], out=self.images[:, self.steps])

    def _make_room(self) -> None:
        for name in ("vectors", "images", "diagonal", "below"):
            values = getattr(self, name)
            more = np.empty((values.shape[0], ROOM, *values.shape[2:]))
            setattr(self, name, np.concatenate([values, more], axis=1))


def _length(vectors: Array, images: Array) -> Array:
    """Return sqrt(a' S a) for each vector a; what rounding made negative is 0."""
    length: Array = np.sqrt(np.maximum(np.einsum("bm,bm->b", vectors, images), 0.0))
    return length


def _inverse(length: Array, new: NDArray[np.bool_]) -> Array:
    """Return 1 / length where a vector is new, and 0 where it is rounding, which ends its sequence in zeros."""
    return np.divide(1.0, length, out=np.zeros_like(length), where=new)
