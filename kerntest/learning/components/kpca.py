"""Kernel principal components: `KernelPCA`, and `train_kpca`, from a file to a report and a saved model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kerntest.data.missing import presence_name
from kerntest.data.read import frame_of
from kerntest.errors import DataError, UsageError
from kerntest.learning.components import kpca_fit
from kerntest.learning.components.kpca_fit import KpcaFit, KpcaModel, KpcaOptions
from kerntest.learning.estimator import Transformer
from kerntest.learning.fit_pictures import component_panels
from kerntest.learning.learner import Judgement, Learner, trains
from kerntest.learning.learner import train as train_learner
from kerntest.learning.rows import training_rows as training
from kerntest.learning.rows.leakage import running_numbers
from kerntest.learning.work_of_fits import Cost, cost_of_components, work_of_products
from kerntest.matrices.factor import as_points
from kerntest.matrices.matrix import DENSE_ROWS, DENSE_SHARE
from kerntest.report.results.component_record import ComponentAssociation, KpcaPart, KpcaResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Table
    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import Labelled, TrainingOptions, TrainingRows


class KernelPCA(KpcaOptions, Transformer[KpcaModel, KpcaFit]):
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
        "nystroem:M" or "fourier:M": explicit features for very many rows, which are taken beyond some 49,000 rows, with a
        warning; "none" insists on the kernel matrix.
    solver : "auto", "lanczos" or "dense"
        How eigenvalues are found; "auto" takes the faster one.
    scale : "standardize", "together" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1 of the training rows, each or by one scale.
    seed : int
    threads : int, optional
    unknown : "error" or "ignore"
        What to do with categories of new rows that no training row had: "ignore" takes them as different from all others,
        as `kerntest predict --unknown ignore` does, and as folds need that lack one.

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

    MODEL, CALLED, SHOWN = KpcaModel, "these components are", {"components": "n_components"}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of n rows.

        Parameters
        ----------
        X : path, ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            The columns; with kernel="precomputed" the matrix of kernel values, shape (n, n).
        y : None
            Ignored: so that pipelines can call it.

        Warns
        -----
        KerntestWarning
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
        return self._learned(KpcaLearner(self), X, y)

    @property
    def eigenvalues_(self) -> Array:
        """Of HKH, descending, shape (components,)."""
        return self.model.eigenvalues

    @property
    def explained_variance_ratio_(self) -> Array:
        """Shares of the trace of HKH, that is of the variance in feature space."""
        return self.model.ratios

    def transform(self, X: Any) -> Any:
        """Return the scores of n rows, shape (n, components), centred with the means of the training rows.

        An array, or a frame after `set_output`.

        Parameters
        ----------
        X : as in `fit`
            With kernel="precomputed" the kernel values of n rows with every training row.
        """
        return self._framed(self.model.scores(self._points(X), self.engine), X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the scores, as files of them have them; those of columns are not needed."""
        return named_scores("pc", self.model.n_components, self.n_features_in_, input_features)

    def residuals(self, X: Any) -> Array:
        """Return what the components leave of each row in feature space, |phi(x) - P phi(x)|^2, shape (n,).

        Large for rows unlike the training rows (Hoffmann 2007, "Kernel PCA for novelty detection").
        """
        return self.model.residuals(self._rows(X), self.engine)[1]

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
        given = scores_given(scores, self.model.n_components)
        return rows_in_units(self.model, self.model.preimages(given, self.engine).points)

    def denoise(self, X: Any) -> Any:
        """Return each row's pre-image, as `inverse_transform(transform(X))` does, looked for from the row itself on too."""
        return rows_in_units(self.model, self._with_preimages(X)[1])

    def reconstruction_error(self, X: Any) -> Array:
        """Return how far each row is from its pre-image, in the scaled units of the columns, shape (n,)."""
        return kpca_fit.distances(*self._with_preimages(X))

    def _rows(self, X: Any) -> Points:
        """Return new rows of columns; refuse a model of a matrix."""
        kpca_fit.encoder_of(self.model)
        return as_points(self._points(X))

    def _with_preimages(self, X: Any) -> tuple[Points, Points]:
        """Return new rows and their pre-images."""
        points = self._rows(X)
        return points, self.model.preimages(self.model.scores(points, self.engine), self.engine, points).points


def named_scores(first: str, count: int, columns: int, input_features: Any) -> NDArray[Any]:
    """Return the names of so many scores; refuse names of more or fewer columns than there were in `fit`."""
    if input_features is not None and len(input_features) != columns:
        told = f"input_features should have length equal to number of features ({columns}), got"
        raise UsageError(f"{told} {len(input_features)}", hint="leave them out", code="usage.columns")
    return np.array([f"{first}{place}" for place in range(1, count + 1)], dtype=object)


def scores_given(scores: Any, count: int) -> Array:
    """Return what a caller hands over as so many scores for each row."""
    told = f"of shape {scores.shape}" if hasattr(scores, "shape") else f"of type {type(scores).__name__}"
    try:
        given = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 2 or given.shape[1] != count or not np.isfinite(given).all():
        what = f"scores have shape (rows, {count}) and are finite numbers, not {told}"
        raise DataError(what, hint="inverse_transform takes what transform gives", code="data.wrong_shape")
    return given


def rows_in_units(model: kpca_fit.ComponentModel, points: Points) -> Any:
    """Return rows as an array if all columns are numbers, else as a DataFrame."""
    encoder, columns = kpca_fit.encoder_of(model), kpca_fit.in_units(model, points)
    if all(column.kind == "number" for column in encoder.columns):
        return np.column_stack(list(columns.values()))
    return frame_of(columns, {column.name: column.kind for column in encoder.columns})


@trains(KpcaOptions, "test", "test_fraction", "cluster")
def train_kpca(train: Any, *, color: str | None = None, **options: Any) -> KpcaResult:
    """Find the principal components of a table in the feature space of a kernel, and save them.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
    components : int
        How many.
    color : str, optional
        A column that takes no part and colours the rows in the picture.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    plot : path, optional
        PNG, SVG or PDF file: the rows in the first two components, and the scree.
    kernel, bandwidth, features, solver, scale, seed
        As in `KernelPCA`.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    KpcaResult

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError, DataError, UndecidedError
        If the options, the rows or the kernel do not allow it.
    """
    return train_learner(KpcaLearner(KpcaOptions.taken_from(options), color), train, **options)


class KpcaLearner(Learner[KpcaFit, KpcaResult]):
    """Components of a table; the column `color` takes no part."""

    COMMAND, ESTIMATOR, RESULT, JUDGED, supervised = "kpca", "KernelPCA", KpcaResult, False, False
    LANDMARKS, work = (75e9, 2, 1000), work_of_products

    def __init__(self, options: KpcaOptions, color: str | None = None) -> None:
        self.options: KpcaOptions = options
        self.color = color

    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return a table, with warnings of columns that number its rows."""
        labelled = training.read_labelled(data, (), reading, shown=() if self.color is None else (self.color,))
        return replace(labelled, warnings=(*labelled.warnings, *running_numbers(labelled)))

    def rows(self, labelled: Labelled) -> TrainingRows:
        """Return the rows of a table. Columns that the kernel does not see take no part: new rows need not have them."""
        features, rows = labelled.features, super().rows(labelled)
        if rows.chosen is not None and rows.chosen.unused:
            seen = [name for name in features.names if name not in rows.left_out]
            narrowed = self.rows(replace(labelled, features=features.select(seen)))
            unseen = tuple(name for name in features.names if name not in seen)
            return replace(narrowed, left_out=unseen, warnings=(*rows.warnings, *narrowed.warnings))
        return rows if rows.encoder is None else replace(rows, constants=_constants(features, rows.encoder))

    def cost(self, rows: TrainingRows) -> Cost:
        """Return what the eigenvectors take."""
        options, n = self.options, len(rows)
        dense = options.solver == "dense" or n <= DENSE_ROWS or options.components > DENSE_SHARE * n
        told: Any = {"components": options.components, "features": options.features}
        return cost_of_components(rows.kernel, rows.points, dense=dense, **told)

    def fit(self, rows: TrainingRows, progress: Progress | None = None) -> KpcaFit:
        """Return the components."""
        return kpca_fit.fit_components(rows, self.options, progress)

    def judge(
        self, rows: TrainingRows, fit: KpcaFit, test: TrainingRows | None, learned: Labelled
    ) -> Judgement[KpcaResult]:
        """Return how much components explain of their own rows: there are no others."""
        del test
        model = fit.model
        scores = model.scores(rows.points, self.options.engine)
        left = (1.0 - model.explained) * model.trace / model.n_train
        fields = {
            "components": model.n_components,
            "components_requested": self.options.components,
            "eigenvalues": tuple(model.eigenvalues.tolist()),
            "explained_variance_ratio": tuple(model.ratios.tolist()),
            "explained": model.explained,
            "trace": model.trace,
            "train": KpcaPart(model.n_train, model.explained, left),
            "test": None,
            "associations": associations(learned.shown, scores, rows.columns),
            "solver": fit.solver,
            "color": self.color,
        }
        color = learned.beside[0] if learned.beside else None
        return Judgement(fields, partial(component_panels, scores=scores[:, :2], color=color))


def _constants(table: Table, encoder: Encoder) -> tuple[training.ConstantColumn, ...]:
    """Return the columns with one number in all rows, with their places among those that pre-images have."""
    there = set(encoder.names)
    places, found = 0, list[training.ConstantColumn]()
    for column in table.columns:
        if column.name not in there and column.kind == "number" and (column.values == column.values[0]).all():
            found.append(training.ConstantColumn(column.name, places + len(found), float(column.values[0])))
        places += column.name in there
    return tuple(found)


def associations(table: Table, scores: Array, columns: Sequence[str]) -> tuple[ComponentAssociation, ...]:
    """Return how each of some columns, and whether its values are there, goes with each of J scores, the clearest first.

    Numbers by their correlation, categories by eta = sqrt(sum of squares between categories / sum of squares); None where
    either is constant.
    """
    moved = scores - scores.mean(axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->j", moved, moved))
    found = []
    told = {*columns, *map(presence_name, columns)}
    for column in (one for one in table.columns if one.name in told):
        if column.is_category:
            counts = np.maximum(np.bincount(column.values), 1)
            sums = np.stack([np.bincount(column.values, weights=score) for score in moved.T])
            whole, along = lengths, np.sqrt((sums**2 / counts).sum(axis=1))
        else:
            scaled = column.values / max(float(np.abs(column.values).max(initial=0.0)), np.finfo(np.float64).tiny)
            deviations = scaled - scaled.mean()
            whole, along = lengths * float(np.linalg.norm(deviations)), deviations @ moved
        shares = np.clip(along / np.where(whole > 0, whole, 1.0), -1.0, 1.0).tolist()
        values = tuple(share if there else None for share, there in zip(shares, whole > 0, strict=True))
        found.append(ComponentAssociation(column.name, "eta" if column.is_category else "pearson", values))
    return tuple(sorted(found, key=lambda one: -max(abs(value or 0.0) for value in one.values)))
