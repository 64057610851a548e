"""Canonical correlations: how pairs of functions of x and of y are found, and the model that gives them for rows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, cast

import numpy as np

from kerntest.engines.engine import one_blas_thread
from kerntest.errors import UndecidedError, UsageError, counted, option, whole_number
from kerntest.kernels.algebra import ColumnGroups, OnColumns
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.kernels.text import parse_kernel
from kerntest.learning.cross_validation import EQUAL_SCORES, draw_folds
from kerntest.learning.learner import FittedModel, LearnerOptions, first_flaw
from kerntest.matrices.expansion import Expansion, expanded
from kerntest.matrices.factor import MOST_DIRECTIONS, as_points, leading_directions, make_features, row_blocks
from kerntest.matrices.matrix import SHARED_ROWS, largest_entries

if TYPE_CHECKING:
    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import ChosenKernel, TrainingRows
    from kerntest.matrices.factor import FeatureMap

# The penalties that are tried, as shares of the variance of a side.
SHARES = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
LARGEST_SHARE = 1e6
# Of up to so many rows all are landmarks; of more so many, drawn at random, stand for them.
EXACT_ROWS, LANDMARKS = 1000, 500
# Rows that a fold needs to have a correlation, and entries of a block of rows.
ROWS_OF_A_FOLD, BLOCK = 3, 2**19
# Variance below this share of the largest, and correlations below it, are rounding.
ROUNDING = 1e-12


@dataclass(eq=False, repr=False)
class CcaOptions(LearnerOptions):
    """Which pairs; each as in `KernelCCA`."""

    components: int = 2
    kernel: Kernel | str = "gaussian"
    _: KW_ONLY
    lambda_: float | None = None
    cv: int = 5

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        whole_number("components", self.components, at_least=1)
        whole_number("cv", self.cv, at_least=2)
        if self.lambda_ is not None and not 0 <= self.lambda_ <= LARGEST_SHARE:
            told = f"lambda must be between 0 and {LARGEST_SHARE:g}, not {self.lambda_:g}"
            hint = "it is a share of the variance of each side: 0.01 is little, 1 much"
            raise UsageError(told, hint=hint, code="usage.lambda")
        super().__post_init__()
        if self.precomputed:
            told, hint = "canonical correlations take columns, not a precomputed matrix", "name a kernel of the columns"
            raise UsageError(told, hint=hint, code="usage.precomputed")
        if self.asked_features is not None and not self.asked_features.strip().lower().startswith("nystroem"):
            told, hint = "canonical correlations have features on landmarks", option("features", "nystroem:500")
            raise UsageError(told, hint=hint, code="usage.features")

    @property
    def linear(self) -> bool:
        """Whether the kernel is linear."""
        kernel = self.kernel
        return isinstance(parse_kernel(kernel) if isinstance(kernel, str) else kernel, Linear)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CcaModel(FittedModel):
    """Pairs of functions f_j of x and g_j of y, each of mean 0 and variance 1 over the training rows.

    Those of x are the expansion, those of y `y_coefficients` and `y_intercepts` of another kernel over the same centres, rows
    with the columns of both. `lambda_` is the penalty as a share of the variance of each side, `left_out` are the correlations of
    rows left out in folds.
    """

    y_kernel: Kernel
    y_coefficients: Annotated[Array, 2]
    y_intercepts: Annotated[Array, 1]
    lambda_: float
    correlations: Annotated[Array, 1]
    left_out: tuple[float, ...] = ()
    KIND: ClassVar[str] = "cca"
    CALLED: ClassVar[str] = "canonical correlations"

    def flaw(self) -> str | None:
        """Return what is wrong with it, whoever wrote it."""
        if self.encoder is None or not isinstance(self.expansion, Expansion):
            return "canonical correlations are those of columns"
        return first_flaw(
            {
                "its pairs and its functions do not fit together": not 0
                < len(self.correlations)
                == len(self.expansion.intercepts)
                == len(self.y_intercepts),
                "its functions of y and its centres do not fit together": self.of_y.flaw(),
                "lambda must not be negative": self.lambda_ < 0,
                "it has more correlations left out than pairs": len(self.left_out) > len(self.correlations),
            }
        )

    @property
    def kernel(self) -> None:
        """None: there are two."""
        return

    @property
    def kernels(self) -> tuple[Kernel | None, ...]:
        """That of x and that of y."""
        return self.of_x.kernel, self.y_kernel

    @property
    def of_x(self) -> Expansion:
        """The functions of x."""
        return cast("Expansion", self.expansion)

    @property
    def of_y(self) -> Expansion:
        """The functions of y."""
        return Expansion(self.y_kernel, self.of_x.centres, self.y_coefficients, self.y_intercepts)

    @property
    def names_in(self) -> tuple[str, ...]:
        """The columns of x."""
        return self.columns_of("x")

    @property
    def n_components(self) -> int:
        """The number of pairs K."""
        return len(self.correlations)

    def columns_of(self, side: str) -> tuple[str, ...]:
        """Return the columns that the functions of a side see, in their order."""
        encoder, kernel = cast("Encoder", self.encoder), getattr(self, f"of_{side}").kernel
        if not isinstance(kernel, ColumnGroups):
            return encoder.names
        seen = {name.text for part in kernel.parts for name in cast("OnColumns", part).names}
        return tuple(name for name in encoder.names if name in seen)

    def scores(self, points: Points | Array, engine: Engine) -> Array:
        """Return the variates of n rows, those of x first, shape (n, 2 K)."""
        return np.hstack([expanded(one, None, points, engine) for one in (self.of_x, self.of_y)])

    def first(self, count: int) -> CcaModel:
        """Return the model of the first few pairs."""
        x = self.of_x
        return replace(
            self,
            expansion=replace(x, coefficients=x.coefficients[:, :count].copy(), intercepts=x.intercepts[:count]),
            y_coefficients=self.y_coefficients[:, :count].copy(),
            y_intercepts=self.y_intercepts[:count],
            correlations=self.correlations[:count],
        )

    def one_side(self, side: str) -> FittedModel:
        """Return the functions of x or of y alone, which need no columns of the other."""
        encoder, names, own = cast("Encoder", self.encoder), self.columns_of(side), getattr(self, f"of_{side}")
        narrowed = replace(encoder, columns=tuple(one for one in encoder.columns if one.name in names))
        numeric, codes = (
            [[one.name for one in whole].index(one.name) for one in own_specs]
            for whole, own_specs in ((encoder.numeric, narrowed.numeric), (encoder.categories, narrowed.categories))
        )
        centres = Points(own.centres.numeric[:, numeric], own.centres.codes[:, codes])
        kernel = narrowed.bound(parse_kernel(str(own.kernel))).kernel
        expansion = replace(own, kernel=kernel, centres=centres)
        return FittedModel(encoder=narrowed, n_train=self.n_train, expansion=expansion, ranges=self.ranges)


class CcaFit(NamedTuple):
    """A model, its variates of the rows, singular values, penalties of both sides, and what is to be told.

    `cells` are lambdas that were tried, with the mean correlation of the first pair on rows left out; `left_out` that of every
    pair for the lambda of the model, and `held` the first pair on each row by functions that were found without it; all are
    empty without folds.
    """

    model: CcaModel
    scores: Array
    singular: Array
    penalties: tuple[float, float]
    cells: tuple[tuple[float, float], ...]
    left_out: tuple[float, ...]
    held: Array
    folds: int
    warnings: tuple[str, ...]


class _Side:
    """One side: its features, and the directions of most variance among them."""

    def __init__(
        self, chosen: ChosenKernel, rows: TrainingRows, options: CcaOptions, progress: Progress | None
    ) -> None:
        self.kernel, self.points, self.features = chosen.kernel, as_points(rows.points), cast("FeatureMap", None)
        if options.linear:
            # All columns of a side, none of which is a category.
            (part,) = self.kernel.parts
            self.places = list(cast("OnColumns", part).bound.numeric)
        else:
            asked = options.asked_features or f"nystroem:{len(rows)}"
            self.features = make_features(asked, self.kernel, self.points, options.seed)
        with np.errstate(over="ignore", invalid="ignore"):
            sample = self.block(slice(0, 1))
            finite = np.isfinite(np.square(sample).sum())
            if self.features is None:
                finite = np.isfinite(np.square(self.points.numeric[:, self.places]).sum())
        if not finite:
            hint = f"leave out {option('scale', 'none')}, or divide the columns by a large number"
            raise UndecidedError(f"the kernel '{self.kernel}' overflows", hint=hint, code="undecided.overflow")
        self.held = 0 if self.features is None else self.features.width
        ways: dict[str, Any] = {"projected": self.block, "held": self.held, "progress": progress}
        found = leading_directions(self.block, len(rows), MOST_DIRECTIONS, options.engine, **ways)
        self.axes, self.mean, self.trace = found.axes, found.mean, found.trace
        if not len(found.values):
            hint = "choose another bandwidth, scale the columns, or look at them"
            told = f"the kernel '{self.kernel}' takes all rows for equal"
            raise UndecidedError(told, hint=hint, code="undecided.no_component")

    def block(self, part: slice, axes: Array | None = None) -> Array:
        """Return the features of some rows, or their products with axes."""
        if self.features is not None:
            return self.features.of_block(self.points.take(part), axes)
        columns = self.points.numeric[part][:, self.places]
        return np.asarray(columns if axes is None else columns @ axes)

    def directions(self, part: slice) -> Array:
        """Return some rows along the directions, less the mean of all."""
        return self.block(part, self.axes) - self.mean @ self.axes

    def expansion(self, weights: Array) -> Expansion:
        """Return the functions of these weights of the directions."""
        along = self.axes @ weights
        intercepts = -(self.mean @ along)
        if self.features is not None:
            landmarks = self.features.landmarks
            return Expansion(self.kernel, landmarks, self.features.projection @ along, intercepts)
        width = self.points.numeric.shape[1]
        codes = np.zeros((width, self.points.codes.shape[1]), dtype=np.int64)
        coefficients = np.zeros((width, along.shape[1]))
        coefficients[self.places] = along
        return Expansion(self.kernel, Points(np.eye(width), codes), coefficients, intercepts)


class _Moments(NamedTuple):
    """Sums of products of rows along the directions of x and then of y, their sums and how many rows they are."""

    products: Array
    sums: Array
    n: float

    def plus(self, other: _Moments, sign: float = 1.0) -> _Moments:
        products, sums = self.products + sign * other.products, self.sums + sign * other.sums
        return _Moments(products, sums, self.n + sign * other.n)

    def scatters(self, width: int) -> tuple[Array, Array, Array]:
        """Return the sums of products of deviations from the mean: of x, of y, and of both."""
        whole = self.products - np.outer(self.sums, self.sums) / max(self.n, 1.0)
        return whole[:width, :width], whole[width:, width:], whole[:width, width:]


class _Pairs(NamedTuple):
    """Weights of the directions of x and of y, a column for each pair, and singular values."""

    x: Array
    y: Array
    singular: Array

    def correlations(self, moments: _Moments) -> Array:
        """Return the correlations on rows of these moments; 0 where one is constant there."""
        of_x, of_y, cross = moments.scatters(len(self.x))
        both, *squares = (
            np.einsum("ij,ij->j", left, matrix @ right)
            for left, matrix, right in ((self.x, cross, self.y), (self.x, of_x, self.x), (self.y, of_y, self.y))
        )
        lengths = np.sqrt(np.maximum(squares[0], 0.0) * np.maximum(squares[1], 0.0))
        return np.asarray(np.clip(np.where(lengths > 0, both / np.where(lengths > 0, lengths, 1.0), 0.0), -1.0, 1.0))

    def scaled(self, x: Array, y: Array) -> _Pairs:
        """Return the same functions times numbers."""
        return _Pairs(self.x * x, self.y * y, self.singular)


class _Whitened:
    """The scatter of both sides, decomposed, for any penalty."""

    def __init__(self, moments: _Moments, width: int) -> None:
        of_x, of_y, self.cross = moments.scatters(width)
        self.spectra = np.linalg.eigh(of_x), np.linalg.eigh(of_y)

    def pairs(self, penalties: tuple[float, float], count: int) -> _Pairs:
        """Return the leading singular pairs of (S_xx + p I)^(-1/2) S_xy (S_yy + q I)^(-1/2)."""
        from scipy.linalg import eigh  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load

        roots = []
        for (values, vectors), penalty in zip(self.spectra, penalties, strict=True):
            kept = values > ROUNDING * values[-1]
            roots.append(vectors[:, kept] / np.sqrt(values[kept] + penalty))
        product = roots[0].T @ self.cross @ roots[1]
        wide = product.shape[0] > product.shape[1]
        small = product.T if wide else product
        count = min(count, len(small))
        squares, left = eigh(small @ small.T, subset_by_index=(len(small) - count, len(small) - 1))
        singular, left = np.sqrt(np.maximum(squares[::-1], 0.0)), left[:, ::-1]
        right = small.T @ left / np.maximum(singular, np.finfo(np.float64).tiny)
        first, second = (right, left) if wide else (left, right)
        return _Pairs(roots[0] @ first, roots[1] @ second, singular)


class _Search:
    """The rows along the directions of both sides, their moments fold by fold, and the pairs that these say."""

    def __init__(self, rows: TrainingRows, options: CcaOptions, progress: Progress | None) -> None:
        self.n, self.options = len(rows), options
        n = self.n
        kernels = (rows.chosen, rows.chosen_y)
        self.sides = [_Side(one, rows, options, progress) for one in kernels if one is not None]
        self.width, total = self.sides[0].axes.shape[1], sum(one.axes.shape[1] for one in self.sides)
        self.parts = row_blocks(n, max(total, *(one.held for one in self.sides)), BLOCK)
        folds = min(options.cv, n // ROWS_OF_A_FOLD)
        if folds < 2 and options.lambda_ is None:
            told = f"{counted(n, 'row')} are too few to choose lambda by rows left out"
            raise UndecidedError(told, hint=option("lambda", 0.1), code="undecided.too_few_rows")
        self.folds = folds if folds > 1 else 0
        # Without folds all rows are in one.
        self.fold = np.zeros(n, dtype=np.intp)
        if self.folds:
            self.fold = draw_folds(n, folds, options.seed, clusters=rows.clusters)
        nothing = _Moments(np.zeros((total, total)), np.zeros(total), 0.0)
        self.by_fold = [nothing] * max(self.folds, 1)
        for found in options.engine.here.map(self._moments, self.parts, progress):
            self.by_fold = [own.plus(more) for own, more in zip(self.by_fold, found, strict=True)]
        self.every = nothing
        for one in self.by_fold:
            self.every = self.every.plus(one)

    def _moments(self, part: slice) -> list[_Moments]:
        Z = np.hstack([one.directions(part) for one in self.sides])
        own = [Z[self.fold[part] == place] for place in range(len(self.by_fold))]
        return [_Moments(some.T @ some, some.sum(axis=0), float(len(some))) for some in own]

    @property
    def widest(self) -> int:
        """How many directions a side has at most."""
        return max(len(one.axes.T) for one in self.sides)

    def penalties(self, share: float, rows: float) -> tuple[float, float]:
        """Return what is added to the scatter of so many rows: a share of its trace."""
        x, y = (share * one.trace * rows / self.n for one in self.sides)
        return x, y

    def tried(self) -> dict[float, tuple[list[_Pairs], Array]]:
        """Return for each share the pairs without each fold, and their mean correlations on that fold."""
        options = self.options
        shares = SHARES if options.lambda_ is None else (options.lambda_,)
        pairs: dict[float, list[_Pairs]] = {share: [] for share in shares}
        held: dict[float, list[Array]] = {share: [] for share in shares}
        for own in self.by_fold if self.folds else ():
            others = self.every.plus(own, -1.0)
            whitened = _Whitened(others, self.width)
            for share in shares:
                found = whitened.pairs(self.penalties(share, others.n), options.components)
                pairs[share].append(found)
                held[share].append(found.correlations(own))
        few = min((len(one) for every in held.values() for one in every), default=0)
        return {
            share: (pairs[share], np.mean([one[:few] for one in held[share]], axis=0) if few else np.empty(0))
            for share in shares
        }

    def of_all(self, share: float) -> tuple[_Pairs, tuple[float, float]]:
        """Return the pairs of all rows, of variance 1, and their penalties; refuse none."""
        penalties = self.penalties(share, self.n)
        found = _Whitened(self.every, self.width).pairs(penalties, self.options.components)
        there = int(np.count_nonzero(found.singular > np.sqrt(ROUNDING)))
        if not there:
            told = "no function of x goes with one of y: all correlations are 0"
            raise UndecidedError(told, hint="look at the columns of both sides", code="undecided.no_component")
        found = _Pairs(*(one[..., :there] for one in found))
        of_x, of_y, _ = self.every.scatters(self.width)
        x, y = (
            np.sqrt(self.n / np.einsum("ij,ij->j", one, matrix @ one))
            for one, matrix in ((found.x, of_x), (found.y, of_y))
        )
        return found.scaled(x, y), penalties

    def variates(self, pairs: _Pairs, without: list[_Pairs]) -> tuple[Array, Array]:
        """Return the variates of all rows, those of x first, and the first pair on each row by those found without it.

        The latter point the way of the former and have their length.
        """
        count = len(pairs.singular)
        scores, held = np.empty((self.n, 2 * count)), np.empty((self.n if without else 0, 2))
        matrices, whole = self.every.scatters(self.width), (pairs.x, pairs.y)
        along = [matrix @ one[:, 0] / self.n for matrix, one in zip(matrices, whole, strict=False)]
        firsts = [
            [one[:, 0] / (one[:, 0] @ towards) for one, towards in zip((some.x, some.y), along, strict=True)]
            for some in without
        ]
        for part in self.parts:
            rotated = [one.directions(part) for one in self.sides]
            scores[part] = np.hstack([Z @ weights for Z, weights in zip(rotated, whole, strict=True)])
            for place, first in enumerate(firsts):
                own = np.flatnonzero(self.fold[part] == place)
                found = [Z[own] @ weights for Z, weights in zip(rotated, first, strict=True)]
                held[part.start + own] = np.column_stack(found)
        return scores, held


def fit_pairs(rows: TrainingRows, options: CcaOptions, progress: Progress | None = None) -> CcaFit:
    """Return the leading pairs: functions of x and y whose correlation, regularised, is largest.

    Of lambdas the one with the largest mean correlation of the first pair over rows left out in folds; of equal ones the
    largest.
    """
    search = _Search(rows, options, progress)
    import scipy.linalg  # noqa: F401, PLC0415 - loaded before its BLAS is held: it takes 0.1 s

    # For matrices so small threads of BLAS only wait for each other.
    with nullcontext() if search.widest > SHARED_ROWS else one_blas_thread():
        tried = search.tried()
        best = max((float(held[0]) for _, held in tried.values() if len(held)), default=0.0)
        share = max(share for share, (_, held) in tried.items() if not len(held) or held[0] >= best - EQUAL_SCORES)
        pairs, penalties = search.of_all(share)
        without, left_out = tried[share]
        there = len(pairs.singular)
        # Without some fold there may be no pair.
        scores, held = search.variates(pairs, without if len(left_out) else [])
        # The largest variate of x in size is positive; that of y goes with it.
        signs = np.where(scores[largest_entries(scores[:, :there]), np.arange(there)] < 0, -1.0, 1.0)
        pairs = pairs.scaled(signs, signs)
        of_x, of_y = (one.expansion(weights) for one, weights in zip(search.sides, (pairs.x, pairs.y), strict=True))
    model = CcaModel.of(
        rows,
        expansion=of_x,
        y_kernel=of_y.kernel,
        y_coefficients=of_y.coefficients,
        y_intercepts=of_y.intercepts,
        lambda_=float(share),
        correlations=pairs.correlations(search.every),
        left_out=tuple(left_out[:there].tolist()),
    )
    warnings = []
    # Nobody asked for the default.
    if there < options.components != CcaOptions.components:
        verb = "is" if there == 1 else "are"
        warnings.append(f"{options.components:,} pairs were asked for, and there {verb} {there:,}")
    return CcaFit(
        model,
        scores * np.tile(signs, 2),
        pairs.singular,
        penalties,
        tuple((one, float(held[0])) for one, (_, held) in tried.items() if len(held) and options.lambda_ is None),
        model.left_out,
        held * signs[0],
        search.folds,
        tuple(warnings),
    )
