"""Fitted kernel principal components: what projects rows, and finds rows for projections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from kerntest.errors import UsageError
from kerntest.kernels.base import Points
from kerntest.kernels.dot import Linear
from kerntest.learning.attraction import check_attracts
from kerntest.learning.evaluation import as_points, expanded
from kerntest.learning.expansion import Expansion
from kerntest.learning.preimage import PreImages, Projections, preimages

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.encoding import Encoder
    from kerntest.learning.expansion import GivenExpansion
    from kerntest.matrices.factor import FeatureMap

# What is left of the variance below this share is rounding.
ALL = 1e-12
# By so much of itself a trace may lie below the sum of the eigenvalues.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ConstantColumn:
    """A column of numbers that tells nothing, kept for pre-images.

    Parameters
    ----------
    name : str
    place : int
        Among the columns of pre-images.
    value : float
        In all training rows.
    """

    name: str
    place: int
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class KpcaModel:
    """Principal components in the feature space of a kernel.

    With phi the feature map, m the mean of phi over the training rows and f_j the unit axes, the score of a row x is
    <f_j, phi(x) - m> = sum_i a_ij k(x_i, x) + b_j. The coefficients of each f_j sum up to 0, so that the centring of new
    rows by the training means is a constant: b_j = -sum_i a_ij r_i with the row means r of the training matrix.

    Parameters
    ----------
    encoder : Encoder or None
        Of the columns; None for a precomputed matrix.
    expansion : Expansion or GivenExpansion
        The J scores, over c centres or features.
    mean : ndarray, shape (c,)
        m over the same centres or features.
    mean_square : float
        <m, m>.
    eigenvalues : ndarray, shape (J,)
        Of HKH, descending.
    trace : float
        Of HKH: the sum of all of its eigenvalues.
    n_train : int
    features : FeatureMap or None
        Explicit features that the scores are linear in.
    constants : tuple of ConstantColumn
        In the order of their places.
    """

    encoder: Encoder | None
    expansion: Expansion | GivenExpansion
    mean: Annotated[Array, 1]
    mean_square: float
    eigenvalues: Annotated[Array, 1]
    trace: float
    n_train: int
    features: FeatureMap | None = None
    constants: tuple[ConstantColumn, ...] = ()
    KIND: ClassVar[str] = "kpca"
    CALLED: ClassVar[str] = "kernel principal components"

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        if not 0 < self.n_components == len(self.expansion.intercepts):
            return "its eigenvalues and components do not fit together"
        if (self.eigenvalues <= 0).any() or (np.diff(self.eigenvalues) > 0).any():
            return "its eigenvalues are not positive and descending"
        if len(self.mean) != len(self.expansion.coefficients):
            return "its mean and its centres do not fit together"
        if self.trace <= 0:
            return "trace must be a positive number"
        if self.trace < (1.0 - ROUNDING) * float(self.eigenvalues.sum()):
            return "its trace is less than the sum of its eigenvalues"
        places = [one.place for one in self.constants]
        names = [*(one.name for one in self.constants), *(() if self.encoder is None else self.encoder.names)]
        if len(set(names)) < len(names) or places != sorted(set(places)) or max(places, default=-1) >= len(names):
            return "constants must be columns of their own, each in its place"
        return None

    @property
    def n_components(self) -> int:
        """J."""
        return len(self.eigenvalues)

    @property
    def kernel(self) -> Kernel | None:
        """With every bandwidth chosen; None for a precomputed matrix."""
        if self.features is not None:
            return self.features.kernel
        return self.expansion.kernel if isinstance(self.expansion, Expansion) else None

    @property
    def ratios(self) -> Array:
        """The share of the variance in feature space that each component explains."""
        return self.eigenvalues / self.trace

    @property
    def explained(self) -> float:
        """The share of all components together; 1 where nothing but rounding is left."""
        share = float(self.eigenvalues.sum()) / self.trace
        return 1.0 if share > 1.0 - ALL else share

    @property
    def by_axes(self) -> bool:
        """Whether the centres are the axes and the mean, as the linear kernel has them, not training rows."""
        return isinstance(self.expansion, Expansion) and isinstance(self.expansion.kernel, Linear)

    def scores(self, points: Points | Array, engine: Engine) -> Array:
        """Return the scores of n rows (points, or rows of a precomputed matrix), shape (n, J)."""
        if isinstance(self.expansion, Expansion) and isinstance(self.expansion.kernel, Linear):
            return self._of_deviations(self._deviations(as_points(points), self.expansion), engine)
        return expanded(self.expansion, self.features, points, engine)

    def residuals(self, points: Points, engine: Engine) -> tuple[Array, Array]:
        """Return the scores of n rows, and what the components leave of them, |phi(x) - m|^2 - sum_j score_j^2, shape (n,).

        Notes
        -----
        |phi(x) - m|^2 = k(x, x) - 2 <m, phi(x)> + <m, m>; rounding below 0 is 0. Cost: as that of the scores.
        """
        if isinstance(self.expansion, Expansion) and isinstance(self.expansion.kernel, Linear):
            moved = self._deviations(points, self.expansion)
            scores = self._of_deviations(moved, engine)
            return scores, _rest(np.einsum("ij,ij->i", moved.numeric, moved.numeric), scores)
        beside = replace(
            self.expansion,
            coefficients=np.column_stack([self.expansion.coefficients, self.mean]),
            intercepts=np.append(self.expansion.intercepts, 0.0),
        )
        found = expanded(beside, self.features, points, engine)
        scores, means = found[:, :-1], found[:, -1]
        if self.kernel is None:
            raise _no_columns()
        own = self.kernel.diagonal(points) if self.features is None else self.features.diagonal(points)
        squares = own - 2.0 * means + self.mean_square
        return scores, _rest(squares, scores)

    def _deviations(self, points: Points, expansion: Expansion) -> Points:
        """Return rows less their training mean: all that the linear kernel sees, without the digits of far-off rows."""
        return Points(points.numeric - self.mean @ expansion.centres.numeric, points.codes)

    def _of_deviations(self, moved: Points, engine: Engine) -> Array:
        """Return the scores of rows that are centred already."""
        about_mean = replace(self.expansion, intercepts=np.zeros(self.n_components))
        return expanded(about_mean, self.features, moved, engine)

    def first(self, count: int) -> KpcaModel:
        """Return the model of the first few components."""
        expansion = replace(
            self.expansion,
            coefficients=np.ascontiguousarray(self.expansion.coefficients[:, :count]),
            intercepts=self.expansion.intercepts[:count],
        )
        return replace(self, expansion=expansion, eigenvalues=self.eigenvalues[:count])

    def check_preimages(self) -> None:
        """Refuse a kernel, or features, that have no pre-images here.

        Raises
        ------
        UsageError
            As above.
        """
        if self.kernel is None:
            raise _no_columns()
        if self.features is not None and self.features.kind == "fourier":
            raise UsageError(
                "random Fourier features have no pre-images",
                hint="--features nystroem:500 has",
                code="usage.no_preimages",
            )
        if not isinstance(self.kernel, Linear):
            check_attracts(self.kernel)

    def preimages(self, scores: Array, engine: Engine, start: Points | None = None) -> PreImages:
        """Return the rows whose images are nearest to the projections that scores stand for.

        Parameters
        ----------
        scores : ndarray, shape (n, J)
        engine : Engine
        start : Points, optional
            The rows that were projected, from where to look.

        Raises
        ------
        UsageError
            If the kernel, or the features, have no pre-images here.
        """
        self.check_preimages()
        if self.kernel is None:
            raise _no_columns()
        weights = scores @ self.expansion.coefficients.T + self.mean
        if self.features is not None:
            centres = self.features.landmarks
            weights = weights @ self.features.projection.T
            nearby = self.scores(centres, engine)
        elif isinstance(self.expansion, Expansion):
            centres = self.expansion.centres
            nearby = self.expansion.coefficients * self.eigenvalues
        else:
            raise _no_columns()
        return preimages(self.kernel, Projections(centres, weights, scores, nearby), engine, start)


def _rest(squares: Array, scores: Array) -> Array:
    """Return what scores leave of squared lengths."""
    return np.asarray(np.maximum(squares - np.einsum("ij,ij->i", scores, scores), 0.0))


def _no_columns() -> UsageError:
    return UsageError(
        "a precomputed matrix has no columns to go back to",
        hint="fit the kernel itself to the rows",
        code="usage.no_preimages",
    )
