"""Principal components in the feature space of a kernel: how they are found, and the model that projects on them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, cast

import numpy as np

from kerntest.errors import UndecidedError, UsageError, either, one_of, option, whole_number
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.learning.learner import FittedModel, LearnerOptions, first_flaw
from kerntest.learning.solvers.preimage import PreImages, PreImageSearch
from kerntest.matrices.expansion import Expansion, GivenExpansion, expanded
from kerntest.matrices.factor import Directions, as_points, leading_directions, make_features
from kerntest.matrices.matrix import SOLVERS, CentredMatrix, GivenMatrix, leading_eigenpairs, matrix_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import ConstantColumn, TrainingRows
    from kerntest.matrices.matrix import Eigenpairs, EigenSolver, Matrix

# What is left of the variance below this share is rounding.
ALL = 1e-12
# By so much of itself a trace may lie below the sum of the eigenvalues.
ROUNDING = 1e-9
# Eigenvalues below minus this share of the largest are no rounding: the kernel is not positive definite.
NEGATIVE = 1e-8
# Eigenvalues that differ by less than this share of themselves are equal to rounding.
TIED = 1e-11


@dataclass(eq=False, repr=False)
class KpcaOptions(LearnerOptions):
    """Which components; each as in `KernelPCA`."""

    components: int = 2
    kernel: Kernel | str = "gaussian"
    _: KW_ONLY
    solver: EigenSolver = "auto"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        whole_number("components", self.components, at_least=1)
        one_of("solver", self.solver, SOLVERS)
        super().__post_init__()
        self.refuse(self.asked_features and self.solver != "auto", f"features and the solver {self.solver}")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ComponentModel(FittedModel):
    """A model whose functions go back to rows, in which columns of one value have their place."""

    constants: tuple[ConstantColumn, ...] = ()

    @property
    def constants_fit(self) -> bool:
        """Whether constants have names of their own, and each its place."""
        places = [one.place for one in self.constants]
        names = [*(one.name for one in self.constants), *(() if self.encoder is None else self.encoder.names)]
        return len(set(names)) == len(names) and places == sorted(set(places)) and max(places, default=-1) < len(names)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KpcaModel(ComponentModel):
    """Principal components in the feature space of a kernel.

    With phi the feature map, m the mean of phi over the training rows and f_j the unit axes, the score of a row x is
    <f_j, phi(x) - m> = sum_i a_ij k(x_i, x) + b_j. The coefficients of each f_j sum up to 0, so that the centring of new
    rows by the training means is a constant: b_j = -sum_i a_ij r_i with the row means r of the training matrix. `mean` is
    m over the same c centres or features, `mean_square` <m, m>, `trace` that of HKH.
    """

    mean: Annotated[Array, 1]
    mean_square: float
    eigenvalues: Annotated[Array, 1]
    trace: float
    KIND: ClassVar[str] = "kpca"
    CALLED: ClassVar[str] = "kernel principal components"

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        values, count = self.eigenvalues, self.n_components
        return first_flaw(
            {
                "its eigenvalues and components do not fit together": not 0 < count == len(self.expansion.intercepts),
                "its eigenvalues are not positive and descending": (values <= 0).any() or (np.diff(values) > 0).any(),
                "its mean and its centres do not fit together": len(self.mean) != len(self.expansion.coefficients),
                "trace must be a positive number": self.trace <= 0,
                "its trace is less than the sum of its eigenvalues": self.trace < (1.0 - ROUNDING) * values.sum(),
                "constants must be columns of their own, each in its place": not self.constants_fit,
            }
        )

    @property
    def n_components(self) -> int:
        """J."""
        return len(self.eigenvalues)

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
        return self.features is None and isinstance(self.kernel, Linear)

    def scores(self, points: Points | Array, engine: Engine) -> Array:
        """Return the scores of n rows (points, or rows of a precomputed matrix), shape (n, J)."""
        expansion, seen = self._seen(points)
        return expanded(expansion, self.features, seen, engine)

    def residuals(self, points: Points, engine: Engine) -> tuple[Array, Array]:
        """Return the scores of n rows, and what the components leave of them: |phi(x) - m|^2 - sum_j score_j^2, shape (n,).

        |phi(x) - m|^2 = k(x, x) - 2 <m, phi(x)> + <m, m>; rounding below 0 is 0.
        """
        expansion, seen = self._seen(points)
        # Rows that are moved by their mean have a mean of 0.
        mean, square = (0.0 * self.mean, 0.0) if self.by_axes else (self.mean, self.mean_square)
        coefficients, intercepts = np.column_stack([expansion.coefficients, mean]), np.append(expansion.intercepts, 0.0)
        beside = replace(expansion, coefficients=coefficients, intercepts=intercepts)
        found = expanded(beside, self.features, seen, engine)
        prior: Any = self.features or self.kernel
        squares = prior.diagonal(seen) - 2.0 * found[:, -1] + square
        return found[:, :-1], np.maximum(squares - np.einsum("ij,ij->i", found[:, :-1], found[:, :-1]), 0.0)

    def _seen(self, points: Points | Array) -> tuple[Expansion | GivenExpansion, Points | Array]:
        """Return the scores as functions of rows less their training mean for the linear kernel: far-off rows keep digits."""
        if not (isinstance(self.expansion, Expansion) and self.by_axes):
            return self.expansion, points
        given = as_points(points)
        moved = Points(given.numeric - self.mean @ self.expansion.centres.numeric, given.codes)
        return replace(self.expansion, intercepts=np.zeros(self.n_components)), moved

    def first(self, count: int) -> KpcaModel:
        """Return the model of the first few components."""
        coefficients, intercepts = self.expansion.coefficients[:, :count], self.expansion.intercepts[:count]
        expansion = replace(self.expansion, coefficients=np.ascontiguousarray(coefficients), intercepts=intercepts)
        return replace(self, expansion=expansion, eigenvalues=self.eigenvalues[:count])

    def preimage_search(self) -> PreImageSearch:
        """Return the search for pre-images; refuse what has none here."""
        why, hint = "random Fourier features have no pre-images", f"{option('features', 'nystroem:500')} has"
        if self.kernel is None:
            why, hint = "a precomputed matrix has no columns to go back to", "fit the kernel itself to the rows"
        elif self.features is None:
            return PreImageSearch(self.kernel, cast("Expansion", self.expansion).centres)
        elif self.features.kind == "nystroem":
            return PreImageSearch(self.kernel, self.features.landmarks)
        raise UsageError(why, hint=hint, code="usage.no_preimages")

    def preimages(self, scores: Array, engine: Engine, start: Points | None = None) -> PreImages:
        """Return the rows whose images are nearest to the projections of scores; `start` are the rows projected."""
        search, weights = self.preimage_search(), scores @ self.expansion.coefficients.T + self.mean
        nearby = self.expansion.coefficients * self.eigenvalues
        if self.features is not None:
            weights, nearby = weights @ self.features.projection.T, self.scores(search.centres, engine)
        return search.find(weights, scores, nearby, engine, start)


def encoder_of(model: ComponentModel) -> Encoder:
    """Return what a model knows of its columns; refuse one of a matrix."""
    if model.encoder is None:
        cast("KpcaModel", model).preimage_search()
    return cast("Encoder", model.encoder)


def in_units(model: ComponentModel, points: Points) -> dict[str, NDArray[Any]]:
    """Return rows as columns in their own units, in the order of the training table.

    Numbers and dates (days since 1970-01-01) are floats, text and booleans levels as objects; None for a category that
    no training row had.
    """
    encoder = encoder_of(model)
    found: dict[str, NDArray[Any]] = {}
    for column, values in zip(encoder.numeric, points.numeric.T, strict=True):
        found[column.name] = values * column.spread + column.centre
    for spec, codes in zip(encoder.categories, points.codes.T, strict=True):
        found[spec.name] = np.array([*spec.levels, None], dtype=object)[codes]
    order = list(encoder.names)
    for one in model.constants:
        found[one.name] = np.full(len(points), one.value)
        order.insert(one.place, one.name)
    return {name: found[name] for name in order}


def distances(first: Points, second: Points) -> Array:
    """Return how far rows are from their pre-images, shape (n,): sqrt(|x - z|^2 + number of categories that differ).

    Numbers count in the units in which the kernel sees them.
    """
    moved = first.numeric - second.numeric
    differ = np.count_nonzero(first.codes != second.codes, axis=1)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", moved, moved) + differ))


class KpcaFit(NamedTuple):
    """A model, how it was found ("lanczos", "dense", "covariance" of columns or features), and what is to be told."""

    model: KpcaModel
    solver: str
    warnings: tuple[str, ...]


def fit_components(rows: TrainingRows, options: KpcaOptions, progress: Progress | None = None) -> KpcaFit:
    """Return the components of rows; refuse a kernel that takes all rows for equal."""
    points, kernel, search = rows.points, rows.kernel, _Search(options, progress)
    if not isinstance(points, Points) or kernel is None:
        found = search.by_matrix(GivenMatrix(np.asarray(points)), partial(GivenExpansion, np.arange(len(points))))
    elif options.features is not None:
        found = search.by_features(options.features, points, kernel)
    elif isinstance(kernel, Linear):
        found = search.by_columns(points, kernel)
    else:
        found = search.by_matrix(matrix_of(kernel, points), partial(Expansion, kernel, points))
    model = KpcaModel.of(rows, constants=rows.constants, **found)
    if not model.n_components:
        what = f"there is no component: {'the matrix' if kernel is None else f'the kernel {kernel}'} takes all rows for equal"
        hint = "choose another bandwidth, scale the columns, or look at them with "
        hint += either("`kerntest inspect`", "inspect_table()")
        raise UndecidedError(what, hint=hint, code="undecided.no_component")
    return KpcaFit(model, search.solver, (*search.warnings, *_value_warnings(model.eigenvalues, options.components)))


def _overflow(told: str, hint: str) -> UndecidedError:
    return UndecidedError(told, hint=f"{hint} by a large number", code="undecided.overflow")


class _Search:
    """The search for the parts of a model: its expansion, the mean and its square, eigenvalues and the trace.

    It leaves which solver found them, and what a reader must know of it.
    """

    def __init__(self, options: KpcaOptions, progress: Progress | None) -> None:
        self.options, self.progress, self.solver, self.warnings = options, progress, "covariance", list[str]()

    def by_matrix(self, matrix: Matrix, over: Callable[[Array, Array], Expansion | GivenExpansion]) -> dict[str, Any]:
        """Return components from the eigenvectors v of HKH: coefficients v / sqrt(eigenvalue)."""
        centred, found, trace = self._eigenpairs(matrix)
        coefficients, n = found.vectors / np.sqrt(found.values), centred.n
        # New rows are centred by a constant only if the coefficients sum up to 0.
        coefficients -= coefficients.mean(axis=0)
        return {
            "expansion": over(coefficients, -(coefficients.T @ centred.row_means)),
            "mean": np.full(n, 1.0 / n),
            "mean_square": float(centred.row_means.mean()),
            "eigenvalues": found.values,
            "trace": trace,
        }

    def _eigenpairs(self, matrix: Matrix) -> tuple[CentredMatrix, Eigenpairs, float]:
        """Return HKH, its leading eigenpairs and its trace."""
        options = self.options
        with np.errstate(over="ignore", invalid="ignore"):
            centred = CentredMatrix(matrix, options.engine, progress=self.progress)
        if not np.isfinite([centred.trace, centred.rounding]).all():
            way_out = "divide the matrix, or the weights of the kernel,"
            raise _overflow("the sums of the kernel matrix overflow", way_out)
        found = leading_eigenpairs(centred, options.components, solver=options.solver, seed=options.seed)
        self.solver, total = found.solver, float(found.values.sum())
        largest = float(found.values.max(initial=0.0))
        if found.smallest < -max(NEGATIVE * largest, centred.rounding):
            more = f"their own sum, which is more than the {centred.trace:.3g} of all eigenvalues"
            told = (
                f"the kernel is not positive definite: HKH has an eigenvalue of {found.smallest:.3g} (the largest is "
                f"{largest:.3g}); components are those of positive eigenvalues, and their shares those of "
            )
            self.warnings.append(told + (more if total > centred.trace else "the sum of all"))
        if not found.converged:
            told = "the eigenvalues have not converged: they lie too close together for Lanczos"
            self.warnings.append(f"{told}; {option('solver', 'dense')} finds them")
        return centred, found, max(centred.trace, total)

    def by_columns(self, points: Points, kernel: Linear) -> dict[str, Any]:
        """Return components of the linear kernel: ordinary principal components, axes in the space of the columns.

        The centres are these axes and the mean of the rows, whatever the number of rows and columns.
        """
        n, width = points.numeric.shape
        # Sums of all squared deviations, which are at most twice as long as rows.
        bound = 0.5 * np.sqrt(np.finfo(np.float64).max / max(points.numeric.size, 1))
        if np.abs(points.numeric).max(initial=0.0) > bound:
            way_out = f"leave out {option('scale', 'none')}, or divide the columns"
            raise _overflow(f"the kernel '{kernel}' overflows on these data", way_out)
        if self.options.solver == "auto" and width <= n:
            count, engine = self.options.components, self.options.engine
            found = leading_directions(lambda part: points.numeric[part], n, count, engine)
        else:
            # HKH is that of the deviations, whose products keep the digits in which far-off rows differ.
            near = points.numeric.mean(axis=0)
            moved = points.numeric - near
            rest = moved.mean(axis=0)
            moved -= rest
            _, pairs, trace = self._eigenpairs(matrix_of(kernel, Points(moved, points.codes)))
            found = Directions(pairs.values, moved.T @ (pairs.vectors / np.sqrt(pairs.values)), near + rest, trace)
        codes = np.zeros((len(found.values) + 1, points.codes.shape[1]), dtype=np.int64)
        centres, which = Points(np.vstack([found.axes.T, found.mean]), codes), np.eye(len(codes))
        return _along(found, partial(Expansion, kernel, centres, which[:, :-1]), which[-1])

    def by_features(self, text: str, points: Points, kernel: Kernel) -> dict[str, Any]:
        """Return components of explicit features, a block of rows at a time."""
        features, n, options = make_features(text, kernel, points, self.options.seed), len(points), self.options

        def block(part: slice, axes: Array | None = None) -> Array:
            return features.of_block(points.take(part), axes)

        ways: dict[str, Any] = {"projected": block, "held": features.width, "progress": self.progress}
        found = leading_directions(block, n, options.components, options.engine, **ways)
        parts = _along(found, partial(GivenExpansion, np.arange(features.size), found.axes), found.mean)
        if features.kind == "nystroem":
            # What the features miss is variance too, and known without the matrix.
            parts["trace"] = max(found.trace, float(kernel.diagonal(points).sum()) - n * parts["mean_square"])
        return parts | {"features": features}


def _along(found: Directions, over: Callable[[Array], Expansion | GivenExpansion], mean: Array) -> dict[str, Any]:
    """Return the parts of a model of axes, over which the mean has these coefficients."""
    return {
        "expansion": over(-(found.axes.T @ found.mean)),
        "mean": mean,
        "mean_square": float(found.mean @ found.mean),
        "eigenvalues": found.values,
        "trace": found.trace,
    }


def _value_warnings(values: Array, asked: int) -> list[str]:
    """Return what eigenvalues say: fewer than asked for, or equal ones, whose axes are arbitrary."""
    found, warnings = len(values), []
    if found < asked:
        there = f"{asked:,} components were asked for, and there {'is' if found == 1 else 'are'} {found:,}"
        warnings.append(f"{there}: no further eigenvalue is above rounding")
    tied = np.flatnonzero(np.diff(values) >= -TIED * values[:-1]) + 1
    if len(tied):
        more = ", and so have later ones" if len(tied) > 1 else ""
        same = f"pc{tied[0]} and pc{tied[0] + 1} have the same eigenvalue to rounding{more}"
        warnings.append(f"{same}: which axes they are is arbitrary")
    return warnings
