"""Each null without resampling against a long permutation run: where it is right and where it is not.

    python tests/benchmarks/nulls.py [--repetitions 20]

For random data without a difference, the exact 5 %, 1 % and 0.1 % points of the statistic come from 100,000
relabellings; shown is the p-value that each null gives there, averaged over data sets. More than the level: the null is
conservative; less: it rejects too often.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from kerntest.data.read import read_table
from kerntest.data.rows import pool
from kerntest.engines.local import LocalEngine
from kerntest.inference.family import Family
from kerntest.inference.invariants import centre, kernel_invariants, kernel_spectrum
from kerntest.inference.nulls.gamma import gamma_p_value
from kerntest.inference.nulls.moments import (
    label_invariants,
    moments_p_value,
    permutation_moments,
)
from kerntest.inference.nulls.pearson import pearson_tail
from kerntest.inference.nulls.spectral import label_spectrum, spectral_p_value
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import Options, lay_out
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.stationary import Gaussian

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


def tails(rng, draw, shrink):
    """The p-value of each null at the exact points of one data set."""
    x, y = draw(rng)
    sample = lay_out(pool(read_table(x), read_table(y)), "standardize")
    engine, n = LocalEngine(), len(sample.points)
    kernel = Gaussian(BandwidthChooser(sample.points, 0).median("euclidean", None) * shrink)
    rows = {}
    for estimator in ("unbiased", "biased"):
        options = Options(estimator, "permutation", 100_000, 0.05, "standardize", int(rng.integers(2**31)))
        test = TwoSamples(options, engine, None, sample)
        sums, label = test.relabelled(Family(((kernel,),)), 100_000).sums[0], test.label
        points = np.quantile(sums, [1 - level for level in LEVELS])
        hollow = estimator == "unbiased"
        b = label_invariants(label)
        moments = permutation_moments(kernel_invariants(kernel, sample.points, engine, hollow=hollow, seed=0)[0], b, n)
        spectrum = kernel_spectrum(kernel, sample.points, engine, hollow=hollow, seed=0)[0]
        few = sums[:5000]
        kurtosis = float(np.mean((few - few.mean()) ** 4) / few.var() ** 2)
        rows[f"moments, {estimator}"] = [moments_p_value(t, moments) for t in points]
        rows[f"spectral, {estimator}"] = [spectral_p_value(t, spectrum, label_spectrum(label), n) for t in points]
        rows[f"pearson, {estimator}"] = [
            pearson_tail((t - moments.mean) / moments.standard_deviation, moments.skewness, kurtosis) for t in points
        ]
        if estimator == "biased":
            diagonal = centre(kernel, sample.points, engine, hollow=False)[1]
            a = kernel_invariants(kernel, sample.points, engine, hollow=False, seed=0)[0]
            # The mean of (A_ij B_ij)^2 over relabellings.
            square = (a.trace_square - a.diagonal_square) * (b.trace_square - b.diagonal_square) / (n * (n - 1)) ** 2
            rows["gamma, biased"] = [gamma_p_value(t, float(diagonal.sum()), b.trace, square, n) for t in points]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
