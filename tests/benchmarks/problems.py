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


def bump(u):
    """A rise and a fall on (-1, 0)."""
    with np.errstate(divide="ignore", over="ignore"):
        left = np.exp(-1.0 / (1.0 - (4.0 * u + 3.0) ** 2))
        right = np.exp(-1.0 / (1.0 - (4.0 * u + 1.0) ** 2))
    return np.where((u > -1.0) & (u < -0.5), left, np.where((u > -0.5) & (u < 0.0), -right, 0.0))


def perturbed_uniform(rngs, n, height, bumps=2, columns=1):
    """Y uniform on the unit cube; the density of X has `bumps` bumps a side of random sign on it. Drawn by rejection."""
    signs = rngs[2].choice([-1.0, 1.0], size=(bumps,) * columns)

    def density(x):
        values = [bump(bumps * column - np.arange(1, bumps + 1)[:, None]) for column in x.T]
        total = np.zeros(len(x))
        for place in np.ndindex(signs.shape):
            term = np.full(len(x), signs[place])
            for column, index in enumerate(place):
                term = term * values[column][index]
            total += term
        return 1.0 + np.exp(columns) * height * total

    accepted = np.empty((0, columns))
    while len(accepted) < n:
        candidates = rngs[0].random((8 * n, columns))
        level = rngs[0].random(8 * n) * (1.0 + height)
        accepted = np.concatenate([accepted, candidates[level < density(candidates)]])
    return accepted[:n], rngs[1].random((n, columns))


def mean_shift(rngs, n, distance, columns=1):
    """Standard Gaussians; the mean of Y is `distance` away, spread over all columns."""
    return rngs[0].normal(size=(n, columns)), rngs[1].normal(size=(n, columns)) + distance / np.sqrt(columns)


def scaled_column(rngs, n, sd, columns=10):
    """Standard Gaussians; one column of Y has standard deviation `sd`."""
    x, y = rngs[0].normal(size=(n, columns)), rngs[1].normal(size=(n, columns))
    y[:, 0] *= sd
    return x, y


def tails(rngs, n, df, columns=1):
    """Standard Gaussians against Student's t with `df` degrees of freedom, of equal variance."""
    t = rngs[1].normal(size=(n, columns)) / np.sqrt(rngs[1].chisquare(df, size=(n, 1)) / df)
    return rngs[0].normal(size=(n, columns)), t * np.sqrt((df - 2) / df)


def outliers(rngs, n, share, columns=5, distance=4.0):
    """Standard Gaussians; a share of the rows of Y is `distance` away in one column."""
    x, y = rngs[0].normal(size=(n, columns)), rngs[1].normal(size=(n, columns))
    y[rngs[1].random(n) < share, 0] += distance
    return x, y


def two_humps(rngs, n, apart, columns=5):
    """Standard Gaussians; one column of Y has two humps, its mean and variance as before."""
    x, y = rngs[0].normal(size=(n, columns)), rngs[1].normal(size=(n, columns))
    y[:, 0] = np.sqrt(1 - apart**2) * y[:, 0] + apart * rngs[1].choice([-1.0, 1.0], size=n)
    return x, y


def stripes(rngs, n, height, waves=6):
    """Uniform on the unit interval; the density of Y is a sine on it."""
    accepted = np.empty(0)
    while len(accepted) < n:
        candidates, level = rngs[1].random(4 * n), rngs[1].random(4 * n) * (1 + height)
        accepted = np.concatenate([accepted, candidates[level < 1 + height * np.sin(2 * np.pi * waves * candidates)]])
    return rngs[0].random((n, 1)), accepted[:n, None]


def counts(rngs, n, rate, columns=4):
    """Poisson counts with many ties; the rate of one column of Y is `rate` instead of 2."""
    x, y = (rng.poisson(2.0, size=(n, columns)).astype(float) for rng in rngs[:2])
    y[:, 0] = rngs[1].poisson(rate, size=n)
    return x, y


def unequal(draw, other):
    """The same problem with another number of rows in Y."""

    def drawn(rngs, n, strength, **options):
        return draw(rngs, n, strength, **options)[0], draw(rngs, other, strength, **options)[1]

    return drawn


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
    # The strength that is no difference.
    none: float = 0.0


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
        none=1.0,
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
    Problem(
        "perturbed square, d = 2, m = n = 500: height of 2 x 2 bumps",
        perturbed_uniform,
        500,
        (0.4, 0.6, 0.8),
        {"MMD-FUSE": (0.17, 0.49, 0.89), "MMDAgg": (0.15, 0.40, 0.83)},
        {"columns": 2},
    ),
    Problem(
        "perturbed square, d = 2, m = n = 1,500: height of 2 x 2 bumps",
        perturbed_uniform,
        1500,
        (0.4,),
        {"MMD-FUSE": (0.69,), "MMDAgg": (0.60,)},
        {"columns": 2},
    ),
    Problem(
        "perturbed square, d = 2, m = n = 2,000: height of 3 x 3 bumps",
        perturbed_uniform,
        2000,
        (0.4,),
        {"MMDAgg": (0.26,)},
        {"columns": 2, "bumps": 3},
    ),
    Problem("mean shift, d = 1, m = n = 100: distance", mean_shift, 100, (0.0, 0.3, 0.5)),
    Problem("mean shift, d = 10, m = n = 100: distance", mean_shift, 100, (0.6, 0.9), options={"columns": 10}),
    Problem(
        "mean shift, d = 5, m = 300, n = 30: distance", unequal(mean_shift, 30), 300, (0.8,), options={"columns": 5}
    ),
    Problem("one of 10 columns scaled, m = n = 200: its sd", scaled_column, 200, (1.3, 1.5, 1.7)),
    Problem("one of 50 columns scaled, m = n = 200: its sd", scaled_column, 200, (1.7,), options={"columns": 50}),
    Problem("one of 20 columns scaled, m = n = 1,000: its sd", scaled_column, 1000, (1.15,), options={"columns": 20}),
    Problem("two columns scaled, m = n = 20: sd of one", scaled_column, 20, (2.5,), options={"columns": 2}),
    Problem("rotated dependence, d = 2, m = n = 200: correlation", rotated_dependence, 200, (0.1, 0.2, 0.3)),
    Problem("tails, d = 1, m = n = 250: degrees of freedom", tails, 250, (3.0,)),
    Problem("tails, d = 5, m = n = 150: degrees of freedom", tails, 150, (6.0,), options={"columns": 5}),
    Problem("outliers in one of 5 columns, m = n = 150: their share", outliers, 150, (0.06,)),
    Problem("two humps in one of 5 columns, m = n = 200: distance", two_humps, 200, (0.85,)),
    Problem("stripes, d = 1, m = n = 300: height of 6 waves", stripes, 300, (0.45,)),
    Problem("counts in 4 columns, m = n = 150: rate of one instead of 2", counts, 150, (2.0, 2.4), none=2.0),
)
