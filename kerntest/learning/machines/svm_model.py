"""Fitted support vector machines: what predicts, and how it comes from rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kerntest.errors import UndecidedError, UsageError
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.learning.machines.svm_machines import Machine, Machines, Method, SvmOptions, Task
from kerntest.learning.scores import Sigmoid, classification_metrics, couple, regression_metrics, sigmoid_probability
from kerntest.matrices.expansion import Expansion, GivenExpansion, as_points, expanded
from kerntest.matrices.factor import feature_error, make_features
from kerntest.matrices.matrix import GivenMatrix, matrix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.targets import Classes
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.matrices.factor import FeatureMap
    from kerntest.matrices.matrix import Matrix
    from kerntest.report.results.learning_record import ClassificationMetrics, RegressionMetrics
    from kerntest.report.results.svm_record import Baseline, GridSearch

# Kernel values up to this can be squared.
LARGEST_VALUE = 1e150


@dataclass(frozen=True, slots=True, eq=False)
class SvmModel:
    """What a fitted machine predicts with: J scores over the training rows that support them.

    The scores tell `pairs` of classes apart, and are above 0 for the second; those of the nearest mean are one for each
    class. `sigmoids` make probabilities of them. A precomputed matrix has `n_train` columns and no encoder.
    """

    task: Task
    method: Method
    encoder: Encoder | None
    expansion: Expansion | GivenExpansion
    pairs: tuple[tuple[int, int], ...]
    target: str | None
    classes: Classes | None
    sigmoids: tuple[Sigmoid, ...] = ()
    features: FeatureMap | None = None
    n_train: int = 0
    KIND: ClassVar[str] = "svm"
    CALLED: ClassVar[str] = "a support vector machine"

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it: scores are one for each pair, or class, or one in all."""
        scores = len(self.expansion.intercepts)
        if self.sigmoids and len(self.sigmoids) != len(self.pairs):
            return "its sigmoids and pairs do not fit together"
        if self.task != "classify":
            fits = self.method == "svm" and self.classes is None and not self.pairs and scores == 1
            return None if fits else f"a model for {self.task} has method 'svm', one score, no classes and no pairs"
        if self.classes is None:
            return "a classifier has classes"
        count = len(self.classes.names)
        if sorted(self.pairs) != ([] if self.method == "mean" else list(combinations(range(count), 2))):
            return f"its pairs are not those of {count:,} classes, each once"
        if scores != (count if self.method == "mean" else len(self.pairs)):
            return f"its {scores:,} scores are not those of {count:,} classes"
        return None

    def scores(self, points: Points | Array, engine: Engine) -> Array:
        """Return the scores of n rows (points, or rows of a precomputed matrix), shape (n, J)."""
        return expanded(self.expansion, self.features, points, engine)

    def codes(self, scores: Array) -> NDArray[Any]:
        """Return the place of the predicted class: by votes, ties going to the first class.

        With probabilities of more than two classes, the most probable one.
        """
        if self.method == "mean":
            return np.asarray(np.argmax(scores, axis=1))
        if self.sigmoids and len(self.pairs) > 1:
            return np.asarray(np.argmax(self.probabilities(scores), axis=1))
        count = 0 if self.classes is None else len(self.classes.names)
        votes = np.zeros((len(scores), count), dtype=np.intp)
        for place, (i, j) in enumerate(self.pairs):
            second = scores[:, place] > 0
            votes[:, j] += second
            votes[:, i] += ~second
        return np.asarray(np.argmax(votes, axis=1))

    def decision(self, scores: Array) -> Array:
        """Return what is reported as the decision function: (n,) for two classes and other tasks, else (n, J)."""
        if self.method == "mean" and scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def class_scores(self, scores: Array) -> Array:
        """Return one score for each class, whose order counts: for ROC curves. Shape (n,) for two classes."""
        if self.method == "mean" or self.classes is None or len(self.classes.names) == 2:
            return self.decision(scores)
        total = np.zeros((len(scores), len(self.classes.names)))
        for place, (i, j) in enumerate(self.pairs):
            squashed = scores[:, place] / (3.0 * (np.abs(scores[:, place]) + 1.0))
            second = scores[:, place] > 0
            total[:, j] += second + squashed
            total[:, i] += ~second - squashed
        return total

    def probabilities(self, scores: Array) -> Array:
        """Return the probability of every class, shape (n, classes); two classes agree with the decision.

        Raises
        ------
        UsageError
            If the model has none.
        """
        if not self.sigmoids or self.classes is None:
            raise UsageError(
                "this model has no probabilities",
                hint="fit it with --probability",
                code="usage.no_probabilities",
            )
        found = np.column_stack(
            [sigmoid_probability(sigmoid, scores[:, place]) for place, sigmoid in enumerate(self.sigmoids)]
        )
        if len(self.pairs) == 1:
            return np.column_stack([1.0 - found[:, 0], found[:, 0]])
        count = len(self.classes.names)
        pairwise = np.full((len(scores), count, count), 0.5)
        for place, (i, j) in enumerate(self.pairs):
            pairwise[:, j, i] = found[:, place]
            pairwise[:, i, j] = 1.0 - found[:, place]
        return couple(pairwise)

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Return predictions as they stand in tables: classes, numbers, or whether a row is like the others."""
        if self.task == "regress":
            return scores[:, 0]
        if self.task == "one-class":
            return np.asarray(scores[:, 0] >= 0)
        if self.classes is None:
            message = "a classifier has classes"
            raise ValueError(message)
        return self.classes.values(self.codes(scores))


@dataclass(frozen=True, slots=True, eq=False)
class SvmFit:
    """A model and what it took; the rows that support it, and how many of them are at their upper bound, in any machine."""

    model: SvmModel
    machines: tuple[Machine, ...]
    support: NDArray[np.intp]
    n_bounded: int
    C: float | None
    feature_error: float | None
    kernel: Kernel | None
    search: GridSearch | None = None
    warnings: tuple[str, ...] = ()

    @property
    def objective(self) -> float | None:
        """The sum over the machines; None where nothing is minimised."""
        return self._sum([one.solution.objective for one in self.machines if one.solution])

    @property
    def dual_objective(self) -> float | None:
        """The sum of the bounds from below."""
        return self._sum([one.solution.dual_objective for one in self.machines if one.solution])

    @staticmethod
    def _sum(values: list[float]) -> float | None:
        return sum(values) if values else None

    @property
    def gap(self) -> float | None:
        """The largest relative duality gap; None without one."""
        gaps = [one.solution.gap for one in self.machines if one.solution]
        return max((gap for gap in gaps if gap is not None), default=None)

    @property
    def iterations(self) -> int:
        """Linear systems solved; mistakes of perceptrons."""
        return sum(one.solution.iterations if one.solution else one.mistakes for one in self.machines)

    @property
    def converged(self) -> bool:
        """Whether every machine is as good as was asked for."""
        return all(one.solution.converged if one.solution else one.settled for one in self.machines)


def fit_rows(
    rows: TrainingRows,
    options: SvmOptions,
    engine: Engine,
    *,
    C: float | None = None,
    start: Sequence[Machine] | None = None,
    matrix: Matrix | None = None,
    progress: Progress | None = None,
) -> SvmFit:
    """Return a machine fitted to rows, with another C than that of the options, from machines of a similar cost."""
    features, factor, points, kernel = None, None, rows.points, rows.kernel
    if isinstance(points, Points) and options.features is not None and kernel is not None:
        features = make_features(options.features, kernel, points, options.seed)
        factor = features(points, engine)
        points = Points.of(factor)
        matrix = matrix_of(Linear(), points)
    elif isinstance(points, Points) and isinstance(kernel, Linear) and points.numeric.shape[1] * 4 < len(points):
        factor = points.numeric
    if matrix is None:
        matrix = (
            matrix_of(kernel, points)
            if isinstance(points, Points) and kernel is not None
            else GivenMatrix(np.asarray(points))
        )
    if float(np.abs(matrix.diagonal).max(initial=0.0)) > LARGEST_VALUE:
        raise UndecidedError(
            f"the kernel{'' if kernel is None else f' {str(kernel)!r}'} is beyond the range of numbers on these data",
            hint="scale the columns, or choose a smaller gain, degree or exponent",
            code="undecided.overflow",
        )
    definite = _is_definite(np.asarray(points)) if kernel is None else kernel.positive_definite or features is not None
    cost = options.C if C is None else C
    machines = Machines(rows, options, cost, matrix, definite, factor, start).fit(engine, progress)
    coefficients, bounded = np.zeros((len(rows), len(machines))), np.zeros(len(rows), dtype=bool)
    for place, machine in enumerate(machines):
        coefficients[machine.rows, place] = machine.coefficients
        bounded[machine.rows] |= np.abs(machine.coefficients) >= machine.limits * (1.0 - 1e-9)
    intercepts = np.array([machine.intercept for machine in machines])
    support = np.flatnonzero((coefficients != 0).any(axis=1))
    model = SvmModel(
        options.task,
        options.method,
        rows.encoder,
        _expansion(coefficients[support], intercepts, points, support, None if features else kernel),
        tuple(machine.pair for machine in machines if machine.pair is not None),
        rows.names[0] if rows.names else None,
        rows.classes,
        features=features,
        n_train=len(rows),
    )
    return SvmFit(
        model=model,
        machines=tuple(machines),
        support=support,
        n_bounded=int(bounded.sum()),
        # Pairs of classes with one nu have a cost each.
        C=machines[0].C if options.nu is None or len(machines) == 1 else None,
        feature_error=None
        if features is None
        else feature_error(features, as_points(rows.points), engine, options.seed),
        kernel=kernel,
    )


def _is_definite(K: Array) -> bool:
    """Say whether a symmetric matrix is positive semi-definite to rounding. Cost: n^3 / 3."""
    shift = 1e-8 * max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(np.float64).tiny)
    try:
        np.linalg.cholesky(K + shift * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def _expansion(
    coefficients: Array, intercepts: Array, points: Points | Array, support: NDArray[np.intp], kernel: Kernel | None
) -> Expansion | GivenExpansion:
    """Return the scores as an expansion over the rows that support them; without a kernel points are features."""
    if not isinstance(points, Points):
        return GivenExpansion(support, coefficients, intercepts)
    if kernel is None:
        # Linear in the features: the coefficients of the rows sum up to one weight for each feature.
        weights = points.numeric[support].T @ coefficients
        return GivenExpansion(np.arange(len(weights)), weights, intercepts)
    return Expansion(kernel, points.take(support), coefficients, intercepts)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """Rows with the scores that a machine gives them, and how well they are predicted, if anything is."""

    rows: TrainingRows
    scores: Array
    metrics: ClassificationMetrics | RegressionMetrics | None

    @classmethod
    def of(cls, model: SvmModel, rows: TrainingRows, engine: Engine) -> ScoredRows:
        """Return rows with their scores."""
        scores = model.scores(rows.points, engine)
        if rows.classes is None:
            return cls(rows, scores, regression_metrics(rows.targets[:, 0], scores[:, 0]) if rows.names else None)
        probabilities = model.probabilities(scores) if model.sigmoids else None
        codes, by_class = model.codes(scores), model.class_scores(scores)
        names = rows.classes.names
        found = classification_metrics(rows.codes, codes, by_class, names, probabilities=probabilities)
        return cls(rows, scores, found)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedMachine:
    """A fitted machine on the rows that it has learned from and on others, beside the nearest mean."""

    fit: SvmFit
    options: SvmOptions
    train: ScoredRows
    test: ScoredRows | None
    baseline: Baseline | None
    warnings: tuple[str, ...]

    @property
    def seen(self) -> ScoredRows:
        """The rows that it is judged by."""
        return self.test or self.train
