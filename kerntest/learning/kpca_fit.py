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
from kerntest.learning.kpca_model import ConstantColumn, KpcaModel
from kerntest.matrices.eigen import Directions, leading_directions, leading_eigenpairs
from kerntest.matrices.factor import feature_error, make_features
from kerntest.matrices.matrix import CentredMatrix, GivenMatrix, matrix_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.encoding import Encoder
    from kerntest.learning.kpca_options import KpcaOptions
    from kerntest.matrices.eigen import Eigenpairs
    from kerntest.matrices.matrix import Matrix

# Eigenvalues below minus this share of the largest are no rounding: the kernel is not positive definite.
NEGATIVE = 1e-8
# Eigenvalues that differ by less than this share of themselves are equal to rounding.
TIED = 1e-11


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

    def take(self, rows: NDArray[np.intp]) -> KpcaRows:
        """Return some of the rows, of points."""
        if not isinstance(self.points, Points):
            message = "rows of a matrix stay together"
            raise TypeError(message)
        return replace(self, points=Points(self.points.numeric[rows], self.points.codes[rows]))


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
    elif isinstance(kernel, Linear):
        fit = _by_columns(points, kernel, options, engine, progress)
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
    with np.errstate(over="ignore", invalid="ignore"):
        centred = CentredMatrix(matrix, engine, progress=progress)
    _refuse_overflow(centred)
    found = leading_eigenpairs(centred, options.components, solver=options.solver, seed=options.seed)
    _refuse_nothing(found.values, kernel)
    coefficients = found.vectors / np.sqrt(found.values)
    # New rows are centred by a constant only if the coefficients sum up to 0.
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
    return KpcaFit(model, found.solver, None, _matrix_warnings(found, options, centred))


def _by_columns(
    points: Points, kernel: Linear, options: KpcaOptions, engine: Engine, progress: Progress | None
) -> KpcaFit:
    """Return components of the linear kernel: ordinary principal components, axes in the space of the columns.

    The centres are these axes and the mean of the rows, whatever the number of rows and columns.
    """
    n, width = points.numeric.shape
    _refuse_far_apart(points, kernel)
    if options.solver == "auto" and width <= n:
        found = leading_directions(lambda part: points.numeric[part], n, options.components, engine)
        solver, warnings = "covariance", _value_warnings(found.values, options.components)
    else:
        found, solver, warnings = _axes_by_matrix(points, kernel, options, engine, progress)
    _refuse_nothing(found.values, kernel)
    count = len(found.values)
    centres = Points(
        np.vstack([found.axes.T, found.mean]), np.zeros((count + 1, points.codes.shape[1]), dtype=np.int64)
    )
    expansion = Expansion(kernel, centres, np.eye(count + 1, count), -(found.axes.T @ found.mean))
    model = replace(_directions_model(expansion, found, n), mean=np.eye(count + 1)[count])
    return KpcaFit(model, solver, None, warnings)


def _refuse_far_apart(points: Points, kernel: Linear) -> None:
    """Refuse rows whose products overflow, as sums over all of them."""
    # Sums of all squared deviations, which are at most twice as long as rows.
    bound = 0.5 * np.sqrt(np.finfo(np.float64).max / max(points.numeric.size, 1))
    if np.abs(points.numeric).max(initial=0.0) > bound:
        raise UndecidedError(
            f"the kernel '{kernel}' overflows on these data",
            hint="leave out --scale none, or divide the columns by a large number",
            code="undecided.overflow",
        )


def _axes_by_matrix(
    points: Points, kernel: Linear, options: KpcaOptions, engine: Engine, progress: Progress | None
) -> tuple[Directions, str, tuple[str, ...]]:
    """Return the axes of ordinary principal components from the eigenvectors of HKH, for more columns than rows."""
    near = points.numeric.mean(axis=0)
    moved = points.numeric - near
    rest = moved.mean(axis=0)
    # HKH is that of the deviations, whose products keep the digits in which far-off rows differ.
    moved -= rest
    centred = CentredMatrix(matrix_of(kernel, Points(moved, points.codes)), engine, progress=progress)
    found = leading_eigenpairs(centred, options.components, solver=options.solver, seed=options.seed)
    axes = moved.T @ (found.vectors / np.sqrt(found.values))
    trace = max(centred.trace, float(found.values.sum()))
    warnings = _matrix_warnings(found, options, centred)
    return Directions(found.values, axes, near + rest, trace), found.solver, warnings


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
    return KpcaFit(model, "covariance", error, _value_warnings(found.values, options.components))


def _directions_model(expansion: Expansion | GivenExpansion, found: Directions, n: int) -> KpcaModel:
    square = float(found.mean @ found.mean)
    return KpcaModel(None, expansion, found.mean, square, found.values, found.trace, n)


def _refuse_nothing(values: Array, kernel: Kernel | None) -> None:
    if not len(values):
        raise UndecidedError(
            f"there is no component: {'the matrix' if kernel is None else f'the kernel {kernel}'} takes all rows for equal",
            hint="choose another bandwidth, scale the columns, or look at them with `kerntest inspect`",
            code="undecided.no_component",
        )


def _refuse_overflow(centred: CentredMatrix) -> None:
    if not np.isfinite([centred.trace, centred.rounding]).all():
        raise UndecidedError(
            "the sums of the kernel matrix overflow",
            hint="divide the matrix, or the weights of the kernel, by a large number",
            code="undecided.overflow",
        )


def _value_warnings(values: Array, asked: int) -> tuple[str, ...]:
    """Return what eigenvalues say: fewer than asked for, or equal ones, whose axes are arbitrary."""
    warnings = []
    if len(values) < asked:
        there = f"there {'is' if len(values) == 1 else 'are'} {len(values):,}"
        warnings.append(f"{asked:,} components were asked for, and {there}: no further eigenvalue is above rounding")
    tied = np.flatnonzero(np.diff(values) >= -TIED * values[:-1]) + 1
    if len(tied):
        warnings.append(
            f"pc{tied[0]} and pc{tied[0] + 1} have the same eigenvalue to rounding"
            f"{', and so have later ones' if len(tied) > 1 else ''}: which axes they are is arbitrary"
        )
    return tuple(warnings)


def _matrix_warnings(found: Eigenpairs, options: KpcaOptions, centred: CentredMatrix) -> tuple[str, ...]:
    """Return what a reader must know before trusting the components."""
    if not len(found.values):
        return ()
    largest = float(found.values[0])
    warnings = list(_value_warnings(found.values, options.components))
    if found.smallest < -max(NEGATIVE * largest, centred.rounding):
        more = found.values.sum() > centred.trace
        shares = (
            f"their own sum, which is more than the {centred.trace:.3g} of all eigenvalues"
            if more
            else "the sum of all"
        )
        warnings.insert(
            0,
            f"the kernel is not positive definite: HKH has an eigenvalue of {found.smallest:.3g} (the largest is "
            f"{largest:.3g}); components are those of positive eigenvalues, and their shares those of {shares}",
        )
    if not found.converged:
        warnings.append(
            "the eigenvalues have not converged: they lie too close together for Lanczos; --solver dense finds them"
        )
    return tuple(warnings)
