"""Each null without resampling against a long permutation run: where it is right and where it is not.

    python tests/benchmarks/nulls.py [--repetitions 20]

For random data without a difference, the exact 5 %, 1 % and 0.1 % points of the statistic come from 100,000
relabellings; shown is the p-value that each null gives there, averaged over data sets. More than the level: the null is
conservative; less: it rejects too often.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from measure import parser_of

from kerntest import read_table
from kerntest.data.columns import pool
from kerntest.engines.engine import Engine
from kerntest.inference.family import Family
from kerntest.inference.nulls.approximations import CURVES, MatrixPair
from kerntest.inference.nulls.moments import CentredKernel, CentredLabel
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import Options, lay_out
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.elementary import Gaussian

LEVELS = (0.05, 0.01, 0.001)
SETTINGS = {
    "m = n = 100, d = 1": lambda rng: (rng.normal(size=(100, 1)), rng.normal(size=(100, 1))),
    "m = n = 100, d = 5": lambda rng: (rng.normal(size=(100, 5)), rng.normal(size=(100, 5))),
    "m = n = 100, d = 100": lambda rng: (rng.normal(size=(100, 100)), rng.normal(size=(100, 100))),
    "m = n = 20, d = 2": lambda rng: (rng.normal(size=(20, 2)), rng.normal(size=(20, 2))),
    "m = 20, n = 300, d = 2": lambda rng: (rng.normal(size=(20, 2)), rng.normal(size=(300, 2))),
    "m = n = 100, d = 2, heavy tails": lambda rng: (rng.standard_t(2, size=(100, 2)), rng.standard_t(2, size=(100, 2))),
    "m = n = 100, bandwidth a tenth of the median, d = 2": lambda rng: (
        rng.normal(size=(100, 2)),
        rng.normal(size=(100, 2)),
    ),
}


class Known(MatrixPair):
    """What curves ask of two matrices, found once for many values of <A, B>."""

    factor, rounding = 1.0, 0.0

    def __init__(self, value, matrices, sums):
        self.value, self.n, self.matrices, self.sums = value, matrices[0].n, matrices, sums

    def squared_products(self):
        """The mean over relabellings."""
        a, b = (one.trace_square - one.diagonal_square for one in self.first_invariants())
        return a * b / (self.n * (self.n - 1))

    def relabelled(self, _):
        return self.sums

    def degenerate(self):
        raise NotImplementedError


def tails(rng, draw, shrink):
    """The p-value of each null at the exact points of one data set."""
    x, y = draw(rng)
    sample = lay_out(pool(read_table(x), read_table(y)), "standardize")
    engine = Engine()
    kernel = Gaussian(BandwidthChooser(sample.points, 0).median("euclidean", None) * shrink)
    rows = {}
    for estimator in ("unbiased", "biased"):
        options = Options(estimator, "permutation", 100_000, 0.05, "standardize", int(rng.integers(2**31)))
        test = TwoSamples(options, engine, None, sample)
        sums, label = test.relabelled(Family(((kernel,),)), 100_000).sums[0], test.label
        points = np.quantile(sums, [1 - level for level in LEVELS])
        hollow = estimator == "unbiased"
        matrices = CentredKernel(kernel, sample.points, engine, hollow=hollow), CentredLabel(label)
        for one in matrices:
            # Once for all values.
            for name in ("invariants", "first_invariants", "spectrum"):
                setattr(one, name, cache(getattr(one, name)))
        for name, curve in CURVES.items():
            if name != "gamma" or not hollow:
                pairs = [Known(float(t), matrices, sums[:5000]) for t in points]
                rows[f"{name}, {estimator}"] = [curve(pair).p_value for pair in pairs]
    return rows


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    repetitions = parser.parse_args().repetitions
    for name, draw in SETTINGS.items():
        shrink = 0.1 if "tenth" in name else 1.0
        found = [tails(np.random.default_rng((3, repetition)), draw, shrink) for repetition in range(repetitions)]
        print(f"\n{name:52}" + "".join(f"{level:>10g}" for level in LEVELS))
        for null in found[0]:
            means = [math.exp(np.mean([math.log(one[null][k]) for one in found])) for k in range(len(LEVELS))]
            print(f"  {null:50}" + "".join(f"{mean:10.5f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
