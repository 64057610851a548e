"""Two-sample problems with published power, and others beside them. X and Y come from independent streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

CENTRES = np.array([[20.0, 20.0], [20.0, -20.0], [-20.0, 20.0], [-20.0, -20.0]])


def streams(seed, repetition):
    """Two independent generators, and a third for what both share."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence((seed, repetition)).spawn(3)]


def mixture(rngs, n, sd):
    """Four Gaussians with equal weight; in Y the one at (-20, -20) has standard deviation `sd`."""

    def draw(rng, last):
        which = rng.integers(0, 4, n)
        noise = rng.normal(size=(n, 2))
        noise[which == 3] *= last
        return CENTRES[which] + noise

    return draw(rngs[0], 1.0), draw(rngs[1], sd)


def perturbed_uniform(rngs, n, scale, bumps=2):
    """Y uniform on [0, 1]; the density of X has bumps of random sign on it. Drawn by rejection."""
    signs = rngs[2].choice([-1.0, 1.0], size=bumps)

    def bump(u):
        with np.errstate(divide="ignore", over="ignore"):
            left = np.exp(-1.0 / (1.0 - (4.0 * u + 3.0) ** 2))
            right = np.exp(-1.0 / (1.0 - (4.0 * u + 1.0) ** 2))
        return np.where((u > -1.0) & (u < -0.5), left, np.where((u > -0.5) & (u < 0.0), -right, 0.0))

    def density(x):
        return 1.0 + np.e * scale * sum(sign * bump(bumps * x - j) for j, sign in enumerate(signs, start=1))

    accepted = np.empty(0)
    while len(accepted) < n:
        candidates = rngs[0].random(4 * n)
        height = rngs[0].random(4 * n) * (1.0 + scale)
        accepted = np.concatenate([accepted, candidates[height < density(candidates)]])
    return accepted[:n, None], rngs[1].random((n, 1))


def mean_shift(rngs, n, distance, columns=1):
    """Standard Gaussians; the mean of Y is `distance` away, spread over all columns."""
    return rngs[0].normal(size=(n, columns)), rngs[1].normal(size=(n, columns)) + distance / np.sqrt(columns)


def scaled_column(rngs, n, sd, columns=10):
    """Standard Gaussians; one column of Y has standard deviation `sd`."""
    x, y = rngs[0].normal(size=(n, columns)), rngs[1].normal(size=(n, columns))
    y[:, 0] *= sd
    return x, y


def rotated_dependence(rngs, n, correlation):
    """Two standard Gaussian columns; their correlation has the opposite sign in Y."""

    def draw(rng, rho):
        z = rng.normal(size=(n, 2))
        z[:, 1] = rho * z[:, 0] + np.sqrt(1.0 - rho**2) * z[:, 1]
        return z

    return draw(rngs[0], correlation), draw(rngs[1], -correlation)


@dataclass(frozen=True)
class Problem:
    """A problem at several strengths, with what others published for it (power at level 0.05)."""

    name: str
    draw: Callable
    n: int
    strengths: tuple
    published: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)


PROBLEMS = (
    Problem(
        "mixture, d = 2, m = n = 500: sd of one of four Gaussians",
        mixture,
        500,
        (0.5, 0.7, 1.0, 1.6, 2.0),
        {
            "MMD-FUSE": (0.995, 0.51, 0.035, 0.635, 0.905),
            "MMDAgg": (0.995, 0.46, 0.05, 0.675, 0.945),
            "median bandwidth": (0.055, 0.03, 0.035, 0.03, 0.05),
        },
    ),
    Problem(
        "perturbed uniform, d = 1, m = n = 500: height of two bumps",
        perturbed_uniform,
        500,
        (0.0, 0.2, 0.3, 0.4, 0.5),
        {
            "MMD-FUSE": (0.045, 0.18, 0.505, 0.825, 0.975),
            "MMDAgg": (0.035, 0.21, 0.605, 0.88, 0.985),
            "median bandwidth": (0.04, 0.105, 0.29, 0.465, 0.675),
        },
    ),
    Problem("mean shift, d = 1, m = n = 100: distance", mean_shift, 100, (0.0, 0.3, 0.5)),
    Problem("mean shift, d = 10, m = n = 100: distance", mean_shift, 100, (0.6, 0.9), options={"columns": 10}),
    Problem("one of 10 columns scaled, m = n = 200: its sd", scaled_column, 200, (1.5, 1.7)),
    Problem("rotated dependence, d = 2, m = n = 200: correlation", rotated_dependence, 200, (0.2, 0.3)),
)
