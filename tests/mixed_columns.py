"""A table with columns of every kind, some of which depend on others."""

import numpy as np
import pandas as pd


def mixed_frame(n=40, seed=0):
    """Return numbers, ties, text and booleans; `square`, `where`, `sum` and `y` depend on the first ones."""
    rng = np.random.default_rng((seed, n))
    frame = pd.DataFrame(
        {
            "plain": rng.normal(size=n),
            "wide": rng.lognormal(size=n) * 100,
            "ties": rng.normal(size=n).round(),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
            "new": rng.random(n) < 0.5,
        }
    )
    in_oslo = 2 * (frame["city"] == "Oslo")
    return frame.assign(
        square=frame["plain"] ** 2 + 0.3 * rng.normal(size=n),
        where=np.where(rng.random(n) < 0.7, frame["city"], "Lima"),
        sum=frame["plain"] + in_oslo + 0.3 * rng.normal(size=n),
        y=frame["plain"] ** 2 + in_oslo + 0.3 * rng.normal(size=n),
    )
