"""Kernel principal components for Python: `KernelPCA`, to fit, project, go back, save and load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError, warn_of
from kerntest.learning.given_matrix import as_rows, rows_against, training_matrix
from kerntest.learning.kpca_data import distances, encoder_of, in_units, rows_of
from kerntest.learning.kpca_fit import KpcaFit, KpcaRows, fit_components
from kerntest.learning.kpca_model import KpcaModel
from kerntest.learning.kpca_options import KpcaOptions
from kerntest.learning.saved_models import load_model, save_model
from kerntest.learning.training_rows import TrainingOptions, read_labelled

if TYPE_CHECKING:
    from os import PathLike

    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.learning.encoding import Scale
    from kerntest.learning.kernel_choice import Bandwidth
    from kerntest.matrices.eigen import EigenSolver


class KernelPCA:
    """Principal components in the feature space of a kernel, with their pre-images.

    With the linear kernel, ordinary principal components. The axes have unit length in feature space, so that the scores
    of the training rows have mean 0 and the sum of squares of an eigenvalue of HKH; the sign makes the largest positive.

    Parameters
    ----------
    components : int
        How many; fewer are found where the rank is less, with a warning in `fit_.warnings`.
    kernel : Kernel or str
        A kernel or its text; "precomputed" for rows of a matrix of kernel values.
    bandwidth : "median" or float
        For bandwidths that the kernel leaves open.
    features : str, optional
        "nystroem:M" or "fourier:M": explicit features for very many rows.
    solver : "auto", "lanczos" or "dense"
        How eigenvalues are found; "auto" takes the faster one.
    scale : "standardize" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1 of the training rows.
    seed : int
    threads : int, optional

    Examples
    --------
    Two rings, which no straight line parts: one component does.

    >>> import numpy as np
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> pca = KernelPCA(components=1, kernel="gaussian(1)").fit(np.concatenate([ring, 4 * ring]))
    >>> inner, outer = pca.transform(2 * ring), pca.transform(5 * ring)
    >>> bool(inner.min() > outer.max())
    True
    """

    def __init__(
        self,
        components: int = 2,
        kernel: Kernel | str = "gaussian",
        *,
        bandwidth: Bandwidth = "median",
        features: str | None = None,
        solver: EigenSolver = "auto",
        scale: Scale = "standardize",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.options = KpcaOptions(components, kernel, bandwidth, features, solver, scale, seed)
        self._engine = engine_of(threads)
        self._model: KpcaModel | None = None
        self.fit_: KpcaFit | None = None

    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Find the components of n rows.

        Parameters
        ----------
        X : path, ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            The columns; with kernel="precomputed" the matrix of kernel values, shape (n, n).
        y : None
            Ignored: so that pipelines can call it.

        Warns
        -----
        DataWarning
            Of what is to be known before the model is used.

        Raises
        ------
        UsageError, DataError, UndecidedError
            If the options, the rows or the kernel do not allow it.

        Notes
        -----
        Cost: O(n^2 (p + components)) for some ten products, n^2 / 2 numbers of memory up to 23,000 rows, O(n) beyond,
        where kernel values are evaluated anew for each product. With M features O(n M (p + M)).
        """
        del y
        warnings: list[str] = []
        if self.options.precomputed:
            rows = KpcaRows(training_matrix(X), None, None)
        else:
            labelled = read_labelled(as_rows(X), (), TrainingOptions(), name="X")
            rows, _, _, found = rows_of(labelled.features, self.options)
            warnings += [*labelled.warnings, *found]
        self.fit_ = fit_components(rows, self.options, self._engine)
        self._model = self.fit_.model
        warn_of([*warnings, *self.fit_.warnings])
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Find the components of n rows and return their scores, shape (n, components)."""
        return self.fit(X, y).transform(X)

    @property
    def model(self) -> KpcaModel:
        """What was fitted.

        Raises
        ------
        UsageError
            If nothing was.
        """
        if self._model is None:
            raise UsageError("these components are not fitted", hint="call fit first", code="usage.not_fitted")
        return self._model

    @property
    def eigenvalues_(self) -> Array:
        """Of HKH, descending, shape (components,)."""
        return self.model.eigenvalues

    @property
    def explained_variance_ratio_(self) -> Array:
        """Shares of the trace of HKH, that is of the variance in feature space."""
        return self.model.ratios

    def transform(self, X: Any) -> Array:
        """Return the scores of n rows, shape (n, components), centred with the means of the training rows.

        Parameters
        ----------
        X : as in `fit`
            With kernel="precomputed" the kernel values of n rows with every training row.
        """
        model = self.model
        if model.encoder is None:
            return model.scores(rows_against(X, model.n_train), self._engine)
        return model.scores(self._points(X), self._engine)

    def residuals(self, X: Any) -> Array:
        """Return what the components leave of each row in feature space, |phi(x) - P phi(x)|^2, shape (n,).

        Large for rows unlike the training rows (Hoffmann 2007, "Kernel PCA for novelty detection").
        """
        return self.model.residuals(self._points(X), self._engine)[1]

    def inverse_transform(self, scores: Any) -> Any:
        """Return rows for scores, in the units of the columns: the pre-images of projections.

        Parameters
        ----------
        scores : ndarray, shape (n, components)

        Returns
        -------
        ndarray, shape (n, p), or DataFrame
            A DataFrame where some columns are not numbers.

        Raises
        ------
        UsageError
            If the kernel has no pre-images here.
        DataError
            If the scores have another shape.

        Notes
        -----
        The fixed point of Mika et al. (1999), "Kernel PCA and de-noising in feature spaces", and what corresponds to it
        for other kernels of distances; least squares for the linear kernel. From the best of the three training rows with
        the nearest scores on.
        """
        model = self.model
        try:
            given = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.ndim != 2 or given.shape[1] != model.n_components or not np.isfinite(given).all():
            raise DataError(
                f"scores have shape (rows, {model.n_components}) and are finite numbers, not {_shown(scores)}",
                hint="inverse_transform takes what transform gives",
                code="data.wrong_shape",
            )
        found = model.preimages(given, self._engine)
        return self._in_units(found.points)

    def denoise(self, X: Any) -> Any:
        """Return each row's pre-image, as `inverse_transform(transform(X))` does, looked for from the row itself on too."""
        points = self._points(X)
        found = self.model.preimages(self.model.scores(points, self._engine), self._engine, points)
        return self._in_units(found.points)

    def reconstruction_error(self, X: Any) -> Array:
        """Return how far each row is from its pre-image, in the scaled units of the columns, shape (n,)."""
        points = self._points(X)
        found = self.model.preimages(self.model.scores(points, self._engine), self._engine, points)
        return distances(points, found.points)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file that `kerntest transform` and `KernelPCA.load` read."""
        save_model(path, self.model, force=force)

    @classmethod
    def load(cls, path: str | PathLike[str], *, threads: int | None = None) -> KernelPCA:
        """Return components that project with the model of a file."""
        model = load_model(path, KpcaModel)
        loaded = cls(components=model.n_components, threads=threads)
        loaded._model = model
        return loaded

    def _points(self, X: Any) -> Points:
        labelled = read_labelled(as_rows(X), (), TrainingOptions(), name="X")
        return encoder_of(self.model).transform(labelled.features).points

    def _in_units(self, points: Points) -> Any:
        """Return rows as an array if all columns are numbers, else as a DataFrame."""
        encoder, columns = encoder_of(self.model), in_units(self.model, points)
        if all(column.kind == "number" for column in encoder.columns):
            return np.column_stack(list(columns.values()))
        import pandas as pd  # noqa: PLC0415 - 0.3 s that columns of numbers do not need

        frame = pd.DataFrame(columns)
        for spec in encoder.columns:
            if spec.kind == "date":
                frame[spec.name] = pd.to_datetime(frame[spec.name], unit="D")
            elif spec.kind == "boolean":
                frame[spec.name] = frame[spec.name].map({"true": True, "false": False})
        return frame


def _shown(scores: Any) -> str:
    """Return what scores are, for a message."""
    shape = getattr(scores, "shape", None)
    return f"of shape {shape}" if isinstance(shape, tuple) else f"of type {type(scores).__name__}"
