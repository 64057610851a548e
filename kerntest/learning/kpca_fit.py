"""Fitting kernel principal components to rows whose kernel is chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.kernels.base import Points
from kerntest.kernels.dot import Linear
from kerntest.learning.expansion import Expansion, GivenExpansion
from kerntest.learning.features import feature_error, make_features
from kerntest.learning.kpca_model import ConstantColumn, KpcaModel
from kerntest.learning.solvers.centred import CentredMatrix
from kerntest.learning.solvers.covariance import leading_directions
from kerntest.learning.solvers.eigen import leading_eigenpairs
from kerntest.learning.solvers.matrices import GivenMatrix, matrix_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.encoding import Encoder
    from kerntest.learning.kpca_options import KpcaOptions
    from kerntest.learning.solvers.covariance import Directions
    from kerntest.learning.solvers.eigen import Eigenpairs
    from kerntest.learning.solvers.matrices import Matrix

# Eigenvalues below minus this share of the largest are no rounding: the kernel is not positive definite.
NEGATIVE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class KpcaRows:
    """Rows whose components are wanted.

    Parameters
    ----------
    points : Points, n rows; or ndarray, shape (n, n)
        Rows, or a matrix of kernel values.
    encoder : Encoder or None
    kernel : Kernel or None
        With every bandwidth chosen; None for a matrix.
    constants : tuple of ConstantColumn
    """

    points: Points | Array
    encoder: Encoder | None
    kernel: Kernel | None
    constants: tuple[ConstantColumn, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class KpcaFit:
    """A model, and what it took.

    Parameters
    ----------
    model : KpcaModel
    solver : str
        "lanczos" or "dense" for HKH; "covariance" for the columns themselves, or explicit features of them.
    feature_error : float or None
        Root mean square error of the kernel values that explicit features stand for.
    warnings : tuple of str
    """

    model: KpcaModel
    solver: str
    feature_error: float | None
    warnings: tuple[str, ...]


def fit_components(rows: KpcaRows, options: KpcaOptions, engine: Engine, progress: Progress | None = None) -> KpcaFit:
    """Return the components of rows.

    Raises
    ------
    UndecidedError
        If there is no component at all: the kernel takes all rows for equal.
    UsageError
        If there are no such features for the kernel.
    """
    points, kernel = rows.points, rows.kernel
    if not isinstance(points, Points) or kernel is None:
        fit = _by_matrix(rows, options, engine, progress)
    elif options.features is not None:
        fit = _by_features(points, kernel, options, engine, progress)
    elif isinstance(kernel, Linear) and points.numeric.shape[1] <= len(points):
        fit = _by_columns(points, kernel, options, engine)
    else:
        fit = _by_matrix(rows, options, engine, progress)
    return replace(fit, model=replace(fit.model, encoder=rows.encoder, constants=rows.constants))


def _by_matrix(rows: KpcaRows, options: KpcaOptions, engine: Engine, progress: Progress | None) -> KpcaFit:
    """Return components from the eigenvectors v of HKH: coefficients v / sqrt(eigenvalue)."""
    points, kernel = rows.points, rows.kernel
    matrix: Matrix
    over: Callable[[Array, Array], Expansion | GivenExpansion]
    if isinstance(points, Points) and kernel is not None:
        matrix, over = matrix_of(kernel, points), partial(Expansion, kernel, points)
    else:
        matrix, over = GivenMatrix(np.asarray(points)), partial(GivenExpansion, np.arange(len(points)))
    centred = CentredMatrix(matrix, engine, progress=progress)
    found = leading_eigenpairs(centred, options.components, solver=options.solver, seed=options.seed)
    _refuse_nothing(found.values, kernel)
    coefficients = found.vectors / np.sqrt(found.values)
    # New rows are centred by a constant only if the coefficients sum up to 0, to the last digit.
    coefficients -= coefficients.mean(axis=0)
    intercepts = -(coefficients.T @ centred.row_means)
    n = centred.n
    model = KpcaModel(
        None,
        over(coefficients, intercepts),
        np.full(n, 1.0 / n),
        float(centred.row_means.mean()),
        found.values,
        max(centred.trace, float(found.values.sum())),
        n,
    )
    return KpcaFit(model, found.solver, None, _matrix_warnings(found, options))


def _by_columns(points: Points, kernel: Linear, options: KpcaOptions, engine: Engine) -> KpcaFit:
    """Return components of the linear kernel: ordinary principal components, whose centres are the unit vectors."""
    found = leading_directions(lambda part: points.numeric[part], len(points), options.components, engine)
    _refuse_nothing(found.values, kernel)
    width = points.numeric.shape[1]
    centres = Points(np.eye(width), np.zeros((width, points.codes.shape[1]), dtype=np.int64))
    expansion = Expansion(kernel, centres, found.axes, -(found.axes.T @ found.mean))
    model = _directions_model(expansion, found, len(points))
    return KpcaFit(model, "covariance", None, _rank_warnings(len(found.values), options.components))


def _by_features(
    points: Points, kernel: Kernel, options: KpcaOptions, engine: Engine, progress: Progress | None
) -> KpcaFit:
    """Return components of explicit features, a block of rows at a time."""
    features = make_features(options.features or "", kernel, points, options.seed)

    def rows(part: slice) -> Array:
        return features.of_block(points.take(part))

    def projected(part: slice, axes: Array) -> Array:
        return features.of_block(points.take(part), axes)

    found = leading_directions(rows, len(points), options.components, engine, projected=projected, progress=progress)
    _refuse_nothing(found.values, kernel)
    expansion = GivenExpansion(np.arange(features.size), found.axes, -(found.axes.T @ found.mean))
    model = replace(_directions_model(expansion, found, len(points)), features=features)
    if features.kind == "nystroem":
        # What the features miss is variance too, and known without the matrix.
        whole = float(kernel.diagonal(points).sum()) - len(points) * model.mean_square
        model = replace(model, trace=max(model.trace, whole))
    error = feature_error(features, points, engine, options.seed)
    return KpcaFit(model, "covariance", error, _rank_warnings(len(found.values), options.components))


def _directions_model(expansion: Expansion | GivenExpansion, found: Directions, n: int) -> KpcaModel:
    square = float(found.mean @ found.mean)
    return KpcaModel(None, expansion, found.mean, square, found.values, found.trace, n)


def _refuse_nothing(values: Array, kernel: Kernel | None) -> None:
    if not len(values):
        raise UndecidedError(
            f"there is no component: {'the matrix' if kernel is None else f'the kernel {kernel}'} takes all rows for equal",
            hint="choose another bandwidth, or look at the columns with `kerntest inspect`",
            code="undecided.no_component",
        )


def _rank_warnings(found: int, asked: int) -> tuple[str, ...]:
    if found == asked:
        return ()
    return (f"{asked:,} components were asked for, and there are {found:,}: no further eigenvalue is above rounding",)


def _matrix_warnings(found: Eigenpairs, options: KpcaOptions) -> tuple[str, ...]:
    """Return what a reader must know before trusting the components."""
    largest = float(found.values[0])
    warnings = list(_rank_warnings(len(found.values), options.components))
    if found.smallest < -NEGATIVE * largest:
        warnings.insert(
            0,
            f"the kernel is not positive definite: HKH has an eigenvalue of {found.smallest:.3g} (the largest is "
            f"{largest:.3g}); components are those of positive eigenvalues, and their shares those of the sum of all",
        )
    if not found.converged:
        warnings.append(
            "the eigenvalues have not converged: they lie too close together for Lanczos; --solver dense finds them"
        )
    return tuple(warnings)
