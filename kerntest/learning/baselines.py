"""Two other classifiers in the same feature space: the nearest mean embedding, and the kernel perceptron.

The nearest mean compares |phi(x) - mu_c|^2, mu_c the mean of the rows of class c: with a kernel that is a density it
is the kernel density classifier. The perceptron (Rosenblatt 1958; Freund and Schapire 1999) adds y_i k(x_i, .) for
every row that it gets wrong, until there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.matrices.matrix import Matrix

EPOCHS = 100
# Rows of the matrix that the perceptron keeps: 400 MB of them.
KEPT_NUMBERS = 5 * 10**7


def nearest_mean(matrix: Matrix, codes: NDArray[np.intp], classes: int) -> tuple[Array, Array]:
    """Return the scores f_c(x) = <phi(x), mu_c> - |mu_c|^2 / 2 as coefficients (n, classes) and intercepts (classes,).

    The class with the largest score has the nearest mean. Cost: O(sum_c n_c^2) kernel values.
    """
    coefficients = np.zeros((len(codes), classes))
    intercepts = np.zeros(classes)
    for c in range(classes):
        rows = np.flatnonzero(codes == c)
        coefficients[rows, c] = 1.0 / len(rows)
        norm = float(matrix.products(rows, np.full(len(rows), 1.0 / len(rows)), rows).mean())
        intercepts[c] = -0.5 * norm
    return coefficients, intercepts


def perceptron(matrix: Matrix, signs: Array, seed: int) -> tuple[Array, float, int, bool]:
    """Return coefficients, the intercept, how many mistakes were made, and whether none is left.

    Rows are visited in a new random order in each of at most 100 rounds; the pass jumps from mistake to mistake.

    Notes
    -----
    Cost: O(n) for each mistake, and n kernel values for each row that was ever mistaken.
    """
    n = len(signs)
    rng = np.random.default_rng((seed, 1))
    coefficients, outputs, intercept = np.zeros(n), np.zeros(n), 0.0
    kept: dict[int, Array] = {}
    mistakes, settled = 0, False
    for _ in range(EPOCHS):
        order = rng.permutation(n)
        at, made = 0, 0
        while at < n:
            wrong = signs[order[at:]] * (outputs[order[at:]] + intercept) <= 0
            jump = int(np.argmax(wrong))
            if not wrong[jump]:
                break
            at += jump
            row = int(order[at])
            values = kept.get(row)
            if values is None:
                values = np.asarray(matrix.block(np.array([row]), slice(None))[0], dtype=np.float64)
                if (len(kept) + 1) * n <= KEPT_NUMBERS:
                    kept[row] = values
            outputs += signs[row] * values
            coefficients[row] += signs[row]
            intercept += float(signs[row])
            made += 1
            at += 1
        mistakes += made
        if made == 0:
            settled = True
            break
    return coefficients, intercept, mistakes, settled
