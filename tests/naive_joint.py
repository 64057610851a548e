"""The oracle of joint independence: dHSIC term by term, in plain Python. Fractions in, fractions out."""

import math


def dhsic(matrices):
    """Return dHSIC_b of d kernel matrices by double sums (Pfister et al. 2018, definition 2.6)."""
    n = len(matrices[0])
    joint = sum(math.prod(K[i][j] for K in matrices) for i in range(n) for j in range(n)) / n**2
    margins = math.prod(sum(sum(row) for row in K) / n**2 for K in matrices)
    crossed = sum(math.prod(sum(K[i]) / n for K in matrices) for i in range(n)) / n
    return joint + margins - 2 * crossed


def permuted(K, p):
    """Return the matrix of the rows p(0), p(1), ..."""
    return [[K[i][j] for j in p] for i in p]


def relabelled(matrices, permutations):
    """Return dHSIC_b with the rows of every group but the first permuted, each by its own permutation."""
    first, *others = matrices
    return dhsic([first, *(permuted(K, p) for K, p in zip(others, permutations, strict=True))])
