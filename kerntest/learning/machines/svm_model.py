"""What a fitted support vector machine, or a classifier beside it, predicts with: classes by the votes of pairs, numbers.

Each pair of classes has one vote for each row, the class with most votes is predicted, and of equal ones the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from kerntest.learning.learner import FittedModel
from kerntest.learning.scores import Sigmoid, couple, sigmoid_probability
from kerntest.matrices.expansion import expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.rows.targets import Classes
    from kerntest.report.results.application_record import OutsideValues

Task: TypeAlias = Literal["classify", "regress", "one-class"]
Method: TypeAlias = Literal["svm", "mean", "perceptron"]
# Support vectors on the boundary have a score of 0 but for what the solver leaves: this share of the offset.
ON_BOUNDARY = 1e-6


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SvmModel(FittedModel):
    """What a fitted machine predicts with: J scores over the training rows that support them.

    They are above 0 for the second of the `pairs` of classes. Without pairs they are one for each class, as those of the
    nearest mean are, and of a perceptron for several classes. `sigmoids` make probabilities of those of pairs.
    """

    task: Task
    method: Method
    pairs: tuple[tuple[int, int], ...]
    target: str | None
    classes: Classes | None
    sigmoids: tuple[Sigmoid, ...] = ()
    KIND: ClassVar[str] = "svm"
    CALLED: ClassVar[str] = "a support vector machine"
    FAR_OFF: ClassVar[str] = "the farther off, the more alike are predictions"
    PREDICTS: ClassVar[bool] = True

    @property
    def probability(self) -> bool:
        """Whether it has probabilities."""
        return bool(self.sigmoids)

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it: scores are one for each pair, or class, or one in all."""
        scores = len(self.expansion.intercepts)
        if self.task != "classify":
            fits = self.method == "svm" and self.classes is None and not self.pairs and scores == 1
            return None if fits else f"a model for {self.task} has method 'svm', one score, no classes and no pairs"
        if self.classes is None:
            return "a classifier has classes"
        count, every = len(self.classes.names), list(combinations(range(len(self.classes.names)), 2))
        if self.sigmoids and len(self.sigmoids) != len(every):
            return "its sigmoids and pairs do not fit together"
        none = self.method == "mean" or (self.method == "perceptron" and count > 2 and not self.pairs)
        if list(self.pairs) != ([] if none else every):
            return f"its pairs are not those of {count:,} classes, each once, in order"
        fits = scores == (count if none else len(every))
        return None if fits else f"its {scores:,} scores are not those of {count:,} classes"

    def outside(self, points: Points) -> tuple[tuple[OutsideValues, ...], int]:
        """Return which values of n rows are far beyond those of the training rows; of one class these are outliers, and told so."""
        return ((), 0) if self.task == "one-class" else FittedModel.outside(self, points)

    def scores(
        self, points: Points | Array, engine: Engine, then: Callable[[Array], NDArray[Any]] | None = None
    ) -> NDArray[Any]:
        """Return the scores of n rows, shape (n, J), or what `then` makes of them, a block of rows at a time."""
        return expanded(self.expansion, self.features, points, engine, then)

    def losses(self, points: Points, truth: NDArray[Any], engine: Engine) -> Array:
        """Return of each of n rows how wrong its prediction is: 1 for a wrong class, else its squared error."""
        if self.classes is None:
            return FittedModel.losses(self, points, truth, engine)
        return np.asarray(self.scores(points, engine, self.codes) != truth, dtype=np.float64)

    def decision(self, scores: Array) -> Array:
        """Return what is reported as the decision function: (n,) for two classes and other tasks, else (n, J)."""
        if self.classes is not None and not self.pairs and scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def codes(self, scores: Array) -> NDArray[Any]:
        """Return the place of the class that most votes are for, the first of equal ones; probabilities have no say in it."""
        return np.asarray(np.argmax(self._votes(scores > 0) if self.pairs else scores, axis=1))

    def class_scores(self, scores: Array) -> Array:
        """Return one score for each class, whose order counts: for ROC curves. Shape (n,) for two classes."""
        if len(self.pairs) < 2:
            return self.decision(scores)
        return self._votes((scores > 0) + scores / (3.0 * (np.abs(scores) + 1.0)))

    @property
    def _count(self) -> int:
        return 0 if self.classes is None else len(self.classes.names)

    def _votes(self, seconds: NDArray[Any]) -> Array:
        """Return the votes for each class, where those of each pair are so many for the second class and 1 in all."""
        votes = np.tile(np.arange(self._count - 1.0, -1.0, -1.0), (len(seconds), 1))
        for first, own in _by_first(self._count, seconds):
            votes[:, first] -= own.sum(axis=1)
            votes[:, first + 1 :] += own
        return votes

    def pair_scores(self, scores: Array) -> Array:
        """Return a score for each pair of classes: as it is, or by how much that of the second is above that of the first."""
        if self.pairs:
            return scores
        first, second = np.triu_indices(self._count, 1)
        return np.asarray(scores[:, second] - scores[:, first])

    def probabilities(self, scores: Array) -> Array:
        """Return the probability of every class, shape (n, classes); two classes of equal weights agree with the decision."""
        count, columns = self._count, self.pair_scores(scores).T
        made = [sigmoid_probability(sigmoid, column) for sigmoid, column in zip(self.sigmoids, columns, strict=True)]
        pairwise = np.full((len(scores), count, count), 0.5)
        for first, own in _by_first(count, np.stack(made, axis=1)):
            pairwise[:, first + 1 :, first], pairwise[:, first, first + 1 :] = own, 1.0 - own
        return couple(pairwise) if count > 2 else np.column_stack([pairwise[:, 0, 1], pairwise[:, 1, 0]])

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Return predictions as they stand in tables: classes, numbers, or whether a row is like the others."""
        if self.classes is not None:
            return self.classes.values(self.codes(scores))
        return scores[:, 0] if self.task == "regress" else self.alike(scores)

    def alike(self, scores: Array) -> NDArray[np.bool_]:
        """Return whether rows are like the training rows of a one-class machine: in front of its boundary, or on it."""
        return np.asarray(scores[:, 0] >= -ON_BOUNDARY * abs(self.expansion.intercepts[0]))


def _by_first(count: int, of_pairs: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the first class of pairs, and the columns of those pairs."""
    ends = np.cumsum(np.arange(count - 1, 0, -1)).tolist()
    for first, (start, end) in enumerate(pairwise([0, *ends])):
        yield first, of_pairs[:, start:end]
