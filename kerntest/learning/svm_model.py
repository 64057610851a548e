"""A fitted support vector machine: what predicts, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from kerntest.errors import UsageError
from kerntest.learning.calibration import Sigmoid, couple, sigmoid_probability
from kerntest.learning.evaluation import expanded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.encoding import Encoder
    from kerntest.learning.expansion import Expansion, GivenExpansion
    from kerntest.learning.training_rows import Classes
    from kerntest.matrices.factor import FeatureMap

Task: TypeAlias = Literal["classify", "regress", "one-class"]
Method: TypeAlias = Literal["svm", "mean", "perceptron"]


@dataclass(frozen=True, slots=True, eq=False)
class SvmModel:
    """What a fitted machine predicts with.

    Parameters
    ----------
    task : "classify", "regress" or "one-class"
    method : "svm", "mean" or "perceptron"
        Scores of "mean" are one for each class; those of the others one for each pair of classes.
    encoder : Encoder or None
        Of the columns; None for a precomputed matrix.
    expansion : Expansion or GivenExpansion
        The scores, J functions.
    pairs : tuple of (int, int)
        Which classes each score tells apart; above 0 it is for the second. Empty where it does not.
    target : str or None
        Name of the target.
    classes : Classes or None
    sigmoids : tuple of Sigmoid
        From scores to probabilities, one for each pair; empty without.
    features : FeatureMap or None
        Explicit features that the scores are linear in.
    n_train : int
        Number of training rows: that of the columns of a precomputed matrix.
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
