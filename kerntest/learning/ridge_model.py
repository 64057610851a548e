"""A fitted ridge regression: what predicts, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from scipy.special import stdtrit

from kerntest.errors import UsageError
from kerntest.kernels.base import Points
from kerntest.learning.expansion import Expansion, GivenExpansion, as_points, expanded

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.encoding import Encoder
    from kerntest.matrices.factor import FeatureMap


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What the variance of predictions follows from.

    With a(x) = sum_i w_i k(x_i, x) / sum w, and c(x) the q functions of the posterior,

        var(f(x) + b) = t^2 (floor + k(x, x) - 2 a(x) - |c(x)|^2),    floor = lambda / sum w + mean of a.

    Parameters
    ----------
    coefficients : ndarray, shape (m, 1 + q)
        Of a and of c, over the centres or the features of the predictions.
    intercepts : ndarray, shape (1 + q,)
    floor : float
    """

    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]
    floor: float

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = 0 < len(self.intercepts) == self.coefficients.shape[1]
        return None if fits else "what its intervals follow from does not fit together"


@dataclass(frozen=True, slots=True, eq=False)
class RidgeModel:
    """What a fitted regression predicts with.

    Parameters
    ----------
    encoder : Encoder or None
        Of the columns; None for a precomputed matrix.
    expansion : Expansion or GivenExpansion
        The predictions, T functions.
    targets : tuple of str
        Their names.
    lambda_ : float
    scales : ndarray, shape (T,)
        t, the standard deviations of the priors; that of the noise is t sqrt(lambda).
    n_train : int
    spread : Spread or None
    features : FeatureMap or None
    """

    encoder: Encoder | None
    expansion: Expansion | GivenExpansion
    targets: tuple[str, ...]
    lambda_: float
    scales: Annotated[Array, 1]
    n_train: int
    spread: Spread | None = None
    features: FeatureMap | None = None
    KIND: ClassVar[str] = "ridge"
    CALLED: ClassVar[str] = "a ridge regression"

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        count = len(self.targets)
        if not count or len(set(self.targets)) < count or count != len(self.expansion.intercepts):
            return "targets must be the names of its predictions, all different"
        if len(self.scales) != count or (self.scales < 0).any():
            return "its scales and targets do not fit together"
        if self.spread is not None and len(self.spread.coefficients) != len(self.expansion.coefficients):
            return "what its intervals follow from does not fit its centres"
        return None if self.lambda_ > 0 else "lambda must be a positive number"

    def predicted(self, points: Points | Array, engine: Engine) -> Array:
        """Return predictions for n rows, shape (n, T)."""
        return expanded(self.expansion, self.features, points, engine)

    def deviations(self, points: Points | Array, engine: Engine, *, noise: bool = True) -> Array:
        """Return the standard deviation of new values at n rows, shape (n, T); without noise, of the function itself.

        Raises
        ------
        UsageError
            If the model was fitted without, or to a matrix, which does not have k(x, x) of new rows.

        Notes
        -----
        Cost: O(n m q), m centres and q <= m functions of the posterior.
        """
        if self.spread is None or not isinstance(points, Points):
            what = "keeps nothing for intervals" if isinstance(points, Points) else "was fitted to a matrix"
            raise UsageError(
                f"this model {what}: it has no standard deviations",
                hint="fit it without --no-intervals" if isinstance(points, Points) else "fit it to columns",
                code="usage.no_intervals",
            )
        prior: FeatureMap | Kernel | None = self.features
        if prior is None and isinstance(self.expansion, Expansion):
            prior = self.expansion.kernel
        if prior is None:
            message = "a model of columns has a kernel"
            raise TypeError(message)
        found = expanded(self._spread_expansion(self.spread), self.features, points, engine)
        variance = self.spread.floor + prior.diagonal(as_points(points)) - 2.0 * found[:, 0]
        variance -= np.einsum("ij,ij->i", found[:, 1:], found[:, 1:])
        np.maximum(variance, 0.0, out=variance)
        if noise:
            variance += self.lambda_
        deviations: Array = np.sqrt(variance)[:, None] * self.scales
        return deviations

    def _spread_expansion(self, spread: Spread) -> Expansion | GivenExpansion:
        if isinstance(self.expansion, Expansion):
            return Expansion(self.expansion.kernel, self.expansion.centres, spread.coefficients, spread.intercepts)
        return GivenExpansion(self.expansion.columns, spread.coefficients, spread.intercepts)

    @property
    def noise(self) -> Array:
        """Standard deviations of the noise, of rows of weight 1, shape (T,)."""
        deviations: Array = self.scales * np.sqrt(self.lambda_)
        return deviations

    def reach(self, probability: float) -> float:
        """Return how many standard deviations an interval of this probability reaches to each side.

        Student's t with n - 1 degrees of freedom, for t^2 is estimated.
        """
        # From the lower tail, whose probability has all its digits where 0.5 + 0.5 P would be 1.
        return -float(stdtrit(max(self.n_train - 1, 1), 0.5 * (1.0 - probability)))
