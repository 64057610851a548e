"""Two variables that depend on each other, as arrays and as columns of a frame."""

import numpy as np
import pandas as pd


def arrays(n=40, p=1, q=1, strength=1.0, seed=0):
    """Return x, shape (n, p), and y, shape (n, q): noise plus `strength` times the square of the first column of x."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, p)), rng.normal(size=(n, q))
    y[:, 0] += strength * x[:, 0] ** 2
    return x, y


def frame(n=40, seed=1):
    """Return a frame with numbers, text, booleans and dates; `price` depends on `weight` and on `city`."""
    rng = np.random.default_rng(seed)
    weight, city = rng.lognormal(size=n), rng.choice(["Bern", "Oslo", "Rome"], n)
    return pd.DataFrame(
        {
            "weight": weight,
            "depth": rng.normal(size=n),
            "city": city,
            "price": weight + (city == "Oslo") + 0.3 * rng.normal(size=n),
            "new": rng.random(n) < 0.5,
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
        }
    )


def columns_of(x, y):
    """Return two arrays as one frame with names of their own."""
    return pd.DataFrame(
        {f"x{k + 1}": column for k, column in enumerate(x.T)} | {f"y{k + 1}": column for k, column in enumerate(y.T)}
    )
