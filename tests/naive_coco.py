"""The oracle of the constrained covariance: the generalised eigenvalue problem of Gretton's notes, eq. 4.6, as it stands.

[ 0         K~ L~ / n ] [alpha]         [ K~  0  ] [alpha]
[ L~ K~ / n     0     ] [beta ] = gamma [ 0   L~ ] [beta ],     K~ = HKH, L~ = HLH
"""

import numpy as np
import scipy.linalg

# The share of the largest eigenvalue below which an eigenvalue of K~ or L~ is rounding.
ROUNDING = 1e-13


def doubly_centred(K):
    """Return HKH with H = I - 1/n, by matrix products."""
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / n
    return H @ np.asarray(K) @ H


def orthonormal(A):
    """Return Q with Q' A Q = I, whose columns span the range of A."""
    values, vectors = np.linalg.eigh(A)
    kept = values > ROUNDING * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def solve(K, L):
    """Return the largest gamma with alpha' K~ alpha = beta' L~ beta = 1, alpha and beta."""
    n = len(K)
    K, L = doubly_centred(K), doubly_centred(L)
    left = np.block([[np.zeros((n, n)), K @ L / n], [L @ K / n, np.zeros((n, n))]])
    # The right side is singular: both vectors are sought in its range.
    Q = scipy.linalg.block_diag(orthonormal(K), orthonormal(L))
    reduced = Q.T @ left @ Q
    gammas, vectors = np.linalg.eigh((reduced + reduced.T) / 2)
    # The squared norms of the parts are equal and sum to 1.
    solution = np.sqrt(2) * Q @ vectors[:, -1]
    return gammas[-1], solution[:n], solution[n:]


def coco(K, L):
    """Return the constrained covariance of rows with these kernel matrices."""
    return solve(K, L)[0]


def relabelled(K, L, permutations, measure=coco):
    """Return a measure with row i of x paired with row p[i] of y, for every permutation p."""
    return np.array([measure(K, np.asarray(L)[np.ix_(p, p)]) for p in permutations])


def penalty(K):
    """Return the penalty of a side: 0.03 n^(-1/4) of the trace of its centred kernel matrix."""
    return 0.03 * len(K) ** -0.25 * np.trace(doubly_centred(K))


def leading(K, count):
    """Return HKH of its first eigenvectors alone."""
    values, vectors = np.linalg.eigh(doubly_centred(K))
    return (vectors[:, -count:] * values[-count:]) @ vectors[:, -count:].T


def kcc(K, L, count=None):
    """Return the largest singular value of (K~ + p I)^(-1/2) K~^(1/2) L~^(1/2) (L~ + q I)^(-1/2), by the eigenvalues of its square."""
    smooth = [
        np.linalg.solve(one + p * np.eye(len(one)), one)
        for one, p in ((leading(side, count or len(side)), penalty(side)) for side in (K, L))
    ]
    return np.sqrt(np.abs(np.linalg.eigvals(smooth[0] @ smooth[1])).max())


def kmi(K, L, count=None):
    """Return -1/2 log det(I - K~ L~ / (v w)) with v and w the largest eigenvalues of K~ and L~ and the penalties."""
    sides = [leading(side, count or len(side)) for side in (K, L)]
    v, w = (
        np.linalg.eigvalsh(doubly_centred(one))[-1] + penalty(side) for one, side in zip(sides, (K, L), strict=True)
    )
    return -0.5 * np.linalg.slogdet(np.eye(len(K)) - sides[0] @ sides[1] / (v * w))[1]
