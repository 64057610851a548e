"""Kernels, and here the names that their texts may contain, which shell completion reads without loading any of them.

`text.KERNELS` holds the classes behind the names; a test keeps the two in step.
"""

from __future__ import annotations

ADDITIVE, MAHALANOBIS = "additive", "mahalanobis"
# What takes a kernel in parentheses.
NORMALISE, EXP = AROUND = "normalise", "exp"
DISTANCES = "gaussian", "laplacian", "laplacian2", "student-t", "rational-quadratic", "matern", "periodic"
NAMES: tuple[str, ...] = (*DISTANCES, "linear", "polynomial", "exponential", "delta", "hamming", ADDITIVE, MAHALANOBIS)

ALIASES: dict[str, str] = {
    "rbf": "gaussian",
    "student": "student-t",
    "rq": "rational-quadratic",
    "poly": "polynomial",
    "normalize": NORMALISE,
}


def canonical(name: str) -> str:
    """Return the catalogue's spelling of `name`: lower case, hyphens, no alias. Unknown names come back folded."""
    folded = name.lower().replace("_", "-")
    return ALIASES.get(folded, folded)
