"""Independent components: how sources are found of which columns are mixtures, and the model that gives them for rows."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np

from kerntest.errors import DataError, UndecidedError, counted, one_of, option, whole_number
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian, Linear
from kerntest.learning.components.kpca_fit import ComponentModel
from kerntest.learning.learner import LearnerOptions, first_flaw, sized
from kerntest.learning.solvers import rotations
from kerntest.learning.solvers.preimage import PreImages
from kerntest.matrices.expansion import Expansion, expanded
from kerntest.matrices.factor import as_points, leading_directions
from kerntest.matrices.matrix import largest_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.training_rows import TrainingRows

Contrast: TypeAlias = Literal["likelihood", "hsic"]
# Standard deviations that a bandwidth between sources may have.
BANDWIDTHS = (0.05, 20.0)
# What of a kernel matrix its features may lack: in numbers that are told, and where matrices are permuted.
TOLD, PERMUTED = 1e-10, 1e-4
# Rows for each source, below which there are few, and below which there are too few.
FEW, TOO_FEW = 10, 2
# Two sources are as independent when they are turned into each other by 45 degrees: with this p-value, from so many
# relabellings. Where HSIC is so many times more than chance gives, they clearly are not.
UNDETERMINED, RELABELLINGS, CLEARLY = 0.05, 199, 5.0
SEED_OF_PAIRS = 11


@dataclass(eq=False, repr=False)
class UnmixOptions(LearnerOptions):
    """Which sources; each as in `KernelICA`."""

    components: int | None = None
    _: KW_ONLY
    contrast: Contrast = "likelihood"
    restarts: int = 3
    bandwidth: str | float = 1.0
    # Of the sources; that of the rows is linear.
    kernel: Kernel | str = field(default="gaussian", init=False)
    features: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.components is not None:
            whole_number("components", self.components, at_least=2)
        one_of("contrast", self.contrast, get_args(Contrast))
        whole_number("restarts", self.restarts, at_least=0)
        hint = "it is in standard deviations of a source: 1 is one of them"
        sized("bandwidth", cast("float", self.bandwidth), BANDWIDTHS, hint)
        super().__post_init__()

    def stored(self) -> dict[str, object]:
        """Return the options as a model file keeps them."""
        return {name: value for name, value in super().stored().items() if name != "kernel"}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnmixModel(ComponentModel):
    """Sources s = U (x - m) of rows x in their scaled units, and the mixtures x = m + A s that they make, but for noise.

    The rows of U, shape (J, p), are the centres of an expansion of the linear kernel; `mixing` is A, shape (p, J), `mean` m.
    `bandwidth` is that of the Gaussian by which the sources are told to be independent.
    """

    mean: Annotated[Array, 1]
    mixing: Annotated[Array, 2]
    bandwidth: float
    KIND: ClassVar[str] = "unmix"
    CALLED: ClassVar[str] = "independent components"

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        if self.encoder is None or not isinstance(self.expansion, Expansion) or self.encoder.categories:
            return "sources are those of columns of numbers"
        shape, low, high = (len(self.encoder.numeric), len(self.expansion.centres)), *BANDWIDTHS
        return first_flaw(
            {
                "its mean, its mixing matrix and its columns do not fit together": (len(self.mean), *self.mixing.shape)
                != (shape[0], *shape),
                "its sources and their functions do not fit together": self.expansion.coefficients.shape
                != (shape[1],) * 2,
                "it has no sources": not shape[1],
                f"bandwidth must be between {low:g} and {high:g}": not low <= self.bandwidth <= high,
                "constants must be columns of their own, each in its place": not self.constants_fit,
            }
        )

    @property
    def kernel(self) -> Kernel:
        """The kernel of the sources."""
        return Gaussian(self.bandwidth)

    @property
    def n_components(self) -> int:
        """J."""
        return len(self.mixing.T)

    @property
    def unmixing(self) -> Array:
        """U, shape (J, p)."""
        return cast("Expansion", self.expansion).centres.numeric

    def scores(self, points: Points | Array, engine: Engine) -> Array:
        """Return the sources of n rows, shape (n, J): less their mean first, so that far-off rows keep their digits."""
        given = as_points(points)
        return expanded(self.expansion, None, Points(given.numeric - self.mean, given.codes), engine)

    def residuals(self, points: Points, engine: Engine) -> tuple[Array, Array]:
        """Return the sources of n rows, and |x - m - A s|^2, what they leave of them, shape (n,)."""
        scores = self.scores(points, engine)
        left = points.numeric - self._mixed(scores)
        return scores, np.einsum("ij,ij->i", left, left)

    def _mixed(self, scores: Array) -> Array:
        return self.mean + scores @ self.mixing.T

    def first(self, count: int) -> UnmixModel:
        """Return the model of the first few sources."""
        return replace(self, expansion=_functions(self.unmixing[:count]), mixing=self.mixing[:, :count])

    def preimage_search(self) -> None:
        """Look for nothing: sources are mixed again."""

    def preimages(self, scores: Array, engine: Engine, start: Points | None = None) -> PreImages:
        """Return the rows that sources mix to."""
        del engine, start
        codes = np.zeros((len(scores), 0), dtype=np.int64)
        return PreImages(Points(self._mixed(scores), codes), np.ones(len(scores), dtype=np.bool_))


def _functions(unmixing: Array) -> Expansion:
    """Return the functions <u_j, x>."""
    count, codes = len(unmixing), np.zeros((len(unmixing), 0), dtype=np.int64)
    return Expansion(Linear(), Points(np.ascontiguousarray(unmixing), codes), np.eye(count), np.zeros(count))


class UnmixFit(NamedTuple):
    """A model, the sources of its rows, which pairs of them are undetermined, how it was found, and what is to be told."""

    model: UnmixModel
    sources: Array
    undetermined: tuple[tuple[int, int], ...]
    settled: bool
    steps: int
    warnings: tuple[str, ...]


def fit_sources(rows: TrainingRows, options: UnmixOptions, progress: Progress | None = None) -> UnmixFit:
    """Return the sources of rows: white columns, turned so that they are independent, the one of most variance first."""
    X = as_points(rows.points).numeric
    n, width = X.shape
    asked = width if options.components is None else options.components
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.square(X).sum())
    if not np.isfinite(squares):
        told, hint = (
            "the squares of the columns overflow",
            f"leave out {option('scale', 'none')}, or divide the columns",
        )
        raise UndecidedError(told, hint=hint, code="undecided.overflow")
    found = leading_directions(lambda part: X[part], n, asked, options.engine)
    count = len(found.values)
    _check_enough(n, width, count)
    lengths = np.sqrt(found.values / n)
    Z = (X - found.mean) @ (found.axes / lengths)
    rotation = rotations.likeliest(Z, rotations.good_starts(Z, options.restarts, options.seed, progress))
    if options.contrast == "hsic":
        reach = math.sqrt(float(np.einsum("ij,ij->i", Z, Z).max()))
        rotation = rotations.least(rotations.hsic_contrast(float(options.bandwidth), reach), Z, rotation.matrix)
    W = rotation.matrix
    # The source that makes most of the variance first; of each, the largest entry is positive.
    W = W[np.argsort(-(((found.axes * lengths) @ W.T) ** 2).sum(axis=0), kind="stable")]
    sources = Z @ W.T
    signs = np.where(sources[largest_entries(sources), np.arange(count)] < 0, -1.0, 1.0)
    W, sources = W * signs[:, None], sources * signs
    model = UnmixModel.of(
        rows,
        constants=rows.constants,
        expansion=_functions(W @ (found.axes / lengths).T),
        mean=found.mean,
        mixing=(found.axes * lengths) @ W.T,
        bandwidth=float(options.bandwidth),
    )
    undetermined = tuple(_undetermined(sources, model.bandwidth, options.seed))
    warnings = tuple(_warnings(n, count, options, rotation.settled, undetermined))
    if progress is not None:
        progress(1, 1)
    return UnmixFit(model, sources, undetermined, rotation.settled, rotation.steps, warnings)


def _check_enough(n: int, width: int, count: int) -> None:
    """Refuse fewer than two columns, and fewer rows than tell one rotation from another."""
    if count < 2:
        what = "there is one column (n_features = 1)" if width == 1 else "all columns are multiples of one"
        hint = "sources are told apart in two columns or more, of numbers or dates"
        raise DataError(f"{what}: nothing is mixed there", hint=hint, code="data.too_few_columns")
    if n <= TOO_FEW * count:
        told = f"{counted(n, 'row')} cannot tell {count:,} sources apart"
        hint = f"{option('components', 2)} looks for fewer; {FEW} rows for each source are few, {10 * FEW} are better"
        raise UndecidedError(told, hint=hint, code="undecided.too_few_rows")


def _undetermined(sources: Array, bandwidth: float, seed: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sources that are as independent when they are turned by 45 degrees: only Gaussian ones are."""
    n = len(sources)
    for i, j in combinations(range(sources.shape[1]), 2):
        turned = np.column_stack([sources[:, i] + sources[:, j], sources[:, i] - sources[:, j]]) / math.sqrt(2.0)
        features = rotations.centred_features(turned, bandwidth, PERMUTED)
        found = rotations.pair_dependences(features)[0, 1]
        by_chance = float(np.prod([np.square(one).sum() / n for one in features])) / (n - 1)
        if found > CLEARLY * by_chance:
            continue
        if rotations.independence_p_value(features, RELABELLINGS, seed + SEED_OF_PAIRS, UNDETERMINED) > UNDETERMINED:
            yield i, j


def _warnings(
    n: int, count: int, options: UnmixOptions, settled: bool, undetermined: tuple[tuple[int, int], ...]
) -> Iterator[str]:
    """Yield what is to be known of the sources."""
    if options.components is not None and count < options.components:
        yield f"{options.components:,} sources were asked for, and the columns have {count:,} independent directions"
    if n < FEW * count:
        yield f"{n:,} rows are few for {count:,} sources: how they are turned is mostly chance"
    if not settled:
        called = "HSIC" if options.contrast == "hsic" else "the likelihood"
        yield f"{called} has not settled: other rotations are about as good"
    if undetermined:
        names = [f"s{place + 1}" for place in sorted({place for pair in undetermined for place in pair})]
        together = f"{', '.join(names[:-1])} and {names[-1]}"
        yield (
            f"{together} are undetermined: turned into each other they are as independent, as Gaussian sources are, of which "
            "no method can tell which they were"
        )
