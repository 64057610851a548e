"""Kernel ridge regression for Python: `KernelRidge`, to fit, predict, save and load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.checks import check_probability
from kerntest.data.wording import counted
from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError, warn_of
from kerntest.learning.estimator import as_rows, rows_against
from kerntest.learning.kernel_choice import choose_kernel
from kerntest.learning.leakage import kept_together
from kerntest.learning.ridge_data import given_rows, given_targets, rows_of, with_targets
from kerntest.learning.ridge_judge import fit_warnings
from kerntest.learning.ridge_machine import fit_ridge
from kerntest.learning.ridge_model import RidgeModel
from kerntest.learning.ridge_options import AUTO, Criterion, RidgeOptions
from kerntest.learning.saved_models import load_model, save_model
from kerntest.learning.scores import regression_metrics, root_mean_square
from kerntest.learning.training_rows import TrainingOptions, numbers_of, read_labelled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.learning.encoding import Scale
    from kerntest.learning.kernel_choice import Bandwidth, ChosenKernel
    from kerntest.learning.ridge_data import RidgeRows
    from kerntest.learning.ridge_machine import RidgeFit
    from kerntest.learning.ridge_options import RidgeBandwidth
    from kerntest.report.ridge_record import RidgeGrid


class KernelRidge:
    """Kernel ridge regression with a free intercept, and the Gaussian process that it is the mean of.

    Minimises sum_i w_i (y_i - f(x_i) - b)^2 + lambda |f|^2. What is not given is chosen by exact leave-one-out (or
    another criterion) over 10 bandwidths and 20 lambdas, from one eigendecomposition for each bandwidth.

    Parameters
    ----------
    lambda_ : float, optional
        As in (K + lambda I) alpha = y - b. Chosen if not given.
    kernel : Kernel or str
        A kernel or its text; "precomputed" for rows of a matrix of kernel values.
    bandwidth : "auto", "median" or float
        For bandwidths that the kernel leaves open; "auto" chooses a multiple of the median, from 0.1 to 6.3.
    criterion : "loo", "gcv", "cv" or "evidence"
        What chooses: exact leave-one-out, generalised cross-validation, exact k-fold cross-validation, or the evidence
        of the Gaussian process. Of equal cells the smoothest: the largest lambda, then the largest bandwidth. A row is left
        out with its copies.
    cv : int, optional
        Folds of "cv", the criterion where they are given; 5 by default.
    features : str, optional
        "nystroem:M" or "fourier:M": for very many rows.
    intervals : bool
        Whether to keep what standard deviations need: as many numbers again as the kernel matrix has, at most.
    scale : "standardize" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1 of the training rows.
    seed : int
    threads : int, optional

    Notes
    -----
    Cost of `fit`: 9 n^3 operations for each bandwidth, and 40 n^2 bytes at once.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> regression = KernelRidge().fit(X, y)
    >>> mean, deviation = regression.predict(np.array([[0.0], [1.0]]), return_std=True)
    >>> bool(np.abs(mean - np.sin([0.0, 1.0])).max() < 0.05)
    True
    >>> bool(0.05 < regression.noise_[0] < 0.15)
    True
    """

    def __init__(
        self,
        lambda_: float | None = None,
        kernel: Kernel | str = "gaussian",
        *,
        bandwidth: RidgeBandwidth = AUTO,
        criterion: Criterion = "loo",
        cv: int | None = None,
        features: str | None = None,
        intervals: bool = True,
        scale: Scale = "standardize",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.options = RidgeOptions(lambda_, kernel, bandwidth, criterion, cv, features, intervals, scale, seed)
        self._engine = engine_of(threads)
        self._model: RidgeModel | None = None
        self._flat = True
        self.fit_: RidgeFit | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelRidge:
        """Fit to n rows.

        Parameters
        ----------
        X : path, ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            The columns; with kernel="precomputed" the matrix of kernel values, shape (n, n).
        y : str, list of str, or numbers of shape (n,) or (n, T)
            The targets: columns of X, or values.
        sample_weight : sequence of n numbers, optional
            A row of weight 2 counts like two rows in the fit, and is left out as one; of weight 0 it is not there.

        Warns
        -----
        DataWarning
            Of what is to be known before the model is used.

        Raises
        ------
        UsageError, DataError, UndecidedError
            If the options, the rows or the kernel do not allow it.
        """
        options = self.options
        chosen, warnings, fixed = None, list[str](), True
        if options.precomputed:
            rows = given_rows(X, y, sample_weight)
        else:
            labelled, n_targets = with_targets(as_rows(X), y, sample_weight)
            labelled = kept_together(labelled)
            rows, left_out, found = rows_of(labelled, options.scale, n_targets)
            warnings += [*labelled.warnings, *found]
            chosen = chosen_kernel(rows, options, left_out)
            fixed = options.bandwidth != AUTO or not chosen.free.free
        self.fit_ = fit_ridge(rows, chosen, options, self._engine)
        self._model = self.fit_.model
        self._flat = len(rows.names) == 1
        warn_of([*warnings, *fit_warnings(rows, self.fit_, (options.lambda_ is not None, fixed))])
        return self

    @property
    def model(self) -> RidgeModel:
        """What was fitted.

        Raises
        ------
        UsageError
            If nothing was.
        """
        if self._model is None:
            raise UsageError("this regression is not fitted", hint="call fit first", code="usage.not_fitted")
        return self._model

    @property
    def lambda_(self) -> float:
        """The lambda of the fit."""
        return self.model.lambda_

    @property
    def noise_(self) -> Array:
        """Estimated standard deviation of the noise for each target, shape (T,)."""
        return self.model.noise

    @property
    def grid_(self) -> RidgeGrid:
        """The lambdas and bandwidths tried, with their scores."""
        return self._fitted().grid

    @property
    def loo_rmse_(self) -> float | None:
        """Root mean squared error of leave-one-out; of several targets the root mean square of theirs."""
        found = self._fitted().loo_rmse
        return None if found is None else root_mean_square(found)

    @property
    def effective_df_(self) -> float:
        """Trace of the hat matrix, the intercept counting 1."""
        return self._fitted().degrees

    def predict(self, X: Any, *, return_std: bool = False, noise: bool = True) -> Any:
        """Return predictions, shape (n,), or (n, T) for several targets.

        Parameters
        ----------
        X : as in `fit`, m rows
        return_std : bool
            Also return standard deviations of the same shape.
        noise : bool
            Whether these are of a new value, with its noise, or of the function alone.
        """
        points = self._points(X)
        mean = self.model.predicted(points, self._engine)
        if not return_std:
            return self._shaped(mean)
        return self._shaped(mean), self._shaped(self.model.deviations(points, self._engine, noise=noise))

    def predict_interval(self, X: Any, probability: float = 0.9) -> tuple[Array, Array]:
        """Return where new values lie with this probability: their lower and upper ends.

        Student's t with n - 1 degrees of freedom about the prediction, by the Gaussian process.
        """
        check_probability(probability)
        mean, deviation = self.predict(X, return_std=True)
        reach = self.model.reach(probability) * deviation
        return mean - reach, mean + reach

    def score(self, X: Any, y: Any) -> float:
        """Return r2; of several targets the mean of theirs."""
        predicted = self.model.predicted(self._points(X), self._engine)
        truth = [numbers_of(column, "y") for column in given_targets(y, len(predicted))]
        wanted = predicted.shape[1]
        if len(truth) != wanted:
            raise DataError(
                f"y has {counted(len(truth), 'target')}, and the regression predicts {wanted:,}",
                hint="hand over the targets that it was fitted to, in their order",
                code="data.wrong_shape",
            )
        found = [regression_metrics(one, predicted[:, place]).r2 or 0.0 for place, one in enumerate(truth)]
        return float(np.mean(found))

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file that `kerntest predict` and `KernelRidge.load` read."""
        save_model(path, self.model, force=force)

    @classmethod
    def load(cls, path: str | PathLike[str], *, threads: int | None = None) -> KernelRidge:
        """Return a regression that predicts with the model of a file."""
        model = load_model(path, RidgeModel)
        regression = cls(threads=threads)
        regression._model = model
        regression._flat = len(model.targets) == 1
        return regression

    def _fitted(self) -> RidgeFit:
        if self.fit_ is None:
            raise UsageError(
                "this regression was not fitted here", hint="a model file keeps what predicts", code="usage.not_fitted"
            )
        return self.fit_

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._flat else values

    def _points(self, X: Any) -> Points | Array:
        model = self.model
        if model.encoder is None:
            return rows_against(X, model.n_train)
        labelled = read_labelled(as_rows(X), (), TrainingOptions(), name="X")
        return model.encoder.transform(labelled.features).points


def chosen_kernel(rows: RidgeRows, options: RidgeOptions, left_out: Mapping[str, str]) -> ChosenKernel:
    """Return the kernel of the options for rows of columns, of which some were left out for a reason."""
    if rows.encoder is None:
        message = "a table has an encoder"
        raise TypeError(message)
    points: Any = rows.points
    bandwidth: Bandwidth = "median" if options.bandwidth == AUTO else options.bandwidth
    return choose_kernel(options.kernel, bandwidth, rows.encoder, points, options.seed, left_out=left_out)
