"""Two samples that differ, as arrays and as frames."""

import numpy as np
import pandas as pd


def arrays(n_x=20, n_y=25, p=2, shift=0.5):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_x, p)) + shift, rng.normal(size=(n_y, p))


def frames(n_x=30, n_y=40):
    rng = np.random.default_rng(1)

    def frame(n, shift):
        return pd.DataFrame(
            {
                "price": rng.normal(size=n) + shift,
                "weight": rng.lognormal(size=n),
                "city": rng.choice(["Bern", "Oslo", "Rome"], n),
                "new": rng.random(n) < 0.5,
            }
        )

    return frame(n_x, 0.7), frame(n_y, 0.0)
