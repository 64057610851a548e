"""Two classical classifiers with the kernel of a support vector machine, which it is compared with.

The nearest mean compares |phi(x) - mu_c|^2, mu_c the mean of the rows of class c: with a kernel that is a density it is the
kernel density classifier.

The perceptron (Rosenblatt 1958) corrects itself for every row that it gets wrong, until there is none. For several classes
it is the structured one (Collins 2002): phi(x, c) is phi(x) in the place of class c, and a row of class y whose best wrong
class is z moves w by phi(x, y) - phi(x, z). Its w is the mean over all rows visited, which errs less on rows that are not
separable than the last one does; of two classes it is the last one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.scores import classification_metrics
from kerntest.learning.solvers.problem import Solution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.matrices.matrix import Matrix
    from kerntest.report.results.learning_record import ClassificationMetrics

# Rounds of the perceptron, and numbers of the matrix that it keeps: 400 MB of them.
EPOCHS, KEPT_NUMBERS = 100, 5 * 10**7


def largest_class(own: TrainingRows, seen: TrainingRows) -> ClassificationMetrics:
    """Return how well others are predicted by the class of most of the rows that are learned from, and by their shares."""
    names = () if own.classes is None else own.classes.names
    shares = np.bincount(own.codes, minlength=len(names)) / len(own)
    codes, probabilities = np.full(len(seen), shares.argmax()), np.tile(shares, (len(seen), 1))
    scores = probabilities[:, 1] if len(names) == 2 else probabilities
    return classification_metrics(seen.codes, codes, scores, names, probabilities=probabilities)


def nearest_mean(matrix: Matrix, rows: NDArray[np.intp], counts: Array) -> Solution:
    """Return <phi(x), mu_c> - |mu_c|^2 / 2 for the rows of a class, each there so often, largest for the nearest mean.

    Cost: O(n_c^2) kernel values.
    """
    shares = counts / counts.sum()
    outputs = matrix.products(rows, shares, rows)
    return Solution(shares, -0.5 * float(shares @ outputs), outputs, method="mean")


def mean_scores(matrix: Matrix, of_class: Sequence[NDArray[np.intp]], counts: Array) -> Array:
    """Return those functions of all classes at all rows, one column for each. Cost: of the entries of two rows of a class one."""
    scores = np.empty((matrix.n, len(of_class)))
    for column, rows in enumerate(of_class):
        shares = np.zeros(matrix.n)
        shares[rows] = counts[rows] / counts[rows].sum()
        outputs = matrix.outputs(shares)
        scores[:, column] = outputs - 0.5 * float(shares @ outputs)
    return scores


def perceptron(matrix: Matrix, codes: NDArray[np.intp], count: int, seed: int) -> list[Solution]:
    """Return one function for each of several classes, averaged, or that of the second of two; the largest one decides.

    Rows are visited in a new random order in each round. Cost: O(n) for each mistake, and n kernel values for each row that
    was ever mistaken.
    """
    n, rng, visited, settled = len(codes), np.random.default_rng((seed, 1)), 0, False
    # Functions at all rows; their coefficients, intercepts last; and the sums of the moments at which these were corrected.
    outputs, coefficients, late = np.zeros((3, count, n + 1))
    mistakes = np.zeros(count, dtype=np.intp)

    @lru_cache(maxsize=KEPT_NUMBERS // n)
    def row_of(row: int) -> Array:
        return np.asarray(matrix.block(np.array([row]), slice(None))[0])

    for _ in range(EPOCHS):
        settled = True
        for row in rng.permutation(n).tolist():
            own, scores = int(codes[row]), outputs[:, row] + coefficients[:, n]
            mine, scores[own] = scores[own], -np.inf
            best = int(scores.argmax())
            if mine <= scores[best]:
                for place, sign in ((own, 1.0), (best, -1.0)):
                    outputs[place, :n] += sign * row_of(row)
                    coefficients[place, [row, n]] += sign
                    late[place, [row, n]] += sign * visited
                mistakes[own], settled = mistakes[own] + 1, False
            visited += 1
        if settled:
            break
    if count > 2:
        coefficients -= late / visited
    used = [int(mistakes.sum())] if count == 2 else mistakes.tolist()
    return [
        Solution(one[:n], float(one[n]), np.empty(0), iterations=made, converged=settled, method="perceptron")
        for one, made in zip(coefficients[-len(used) :], used, strict=True)
    ]
