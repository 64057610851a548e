"""Three tests of independence on three kinds of dependence, after figure 11 of the notes.

    python tests/benchmarks/notes_experiment.py [--samples 100] [--rows 100] [--plot experiment.png]

For each kind many samples are drawn, and each test gives each sample a p-value. Printed are the shares of p-values up to
some levels: of independent rows a share of alpha lies up to alpha. What is to be seen:

- where y rises with x, every test rejects every sample;
- where it rises and falls, Spearman's rho and Kendall's tau behave as if x and y were independent, and HSIC rejects
  at a level of 0.18 almost always, mostly at lower ones too;
- on a circle, they reject less often than if x and y were independent, and HSIC almost always.

--plot draws one sample of each kind on top and the distribution functions of the p-values below (needs the extra `plot`).
"""

from __future__ import annotations

import numpy as np
from measure import parser_of
from scipy.stats import kendalltau, spearmanr

from kerntest import hsic_test

LEVELS = (0.01, 0.05, 0.18, 0.5)


def monotone(rng, n):
    x = rng.uniform(-1.0, 1.0, n)
    return x, np.exp(2.0 * x) + rng.normal(0.0, 0.6, n)


def rising_and_falling(rng, n):
    """With 1.65 waves, rank correlations vary about as much as those of independent rows."""
    x = rng.uniform(-1.0, 1.0, n)
    return x, np.cos(1.65 * np.pi * x) + rng.normal(0.0, 0.45, n)


def circle(rng, n):
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.cos(angle) + rng.normal(0.0, 0.15, n), np.sin(angle) + rng.normal(0.0, 0.15, n)


KINDS = {"monotone": monotone, "rising and falling": rising_and_falling, "circle": circle}
AT_THE_MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
TESTS = {
    "HSIC": lambda x, y, seed: hsic_test(x, y, seed=seed).p_value,
    "HSIC, median bandwidth": lambda x, y, seed: hsic_test(x, y, **AT_THE_MEDIAN, seed=seed).p_value,
    "Spearman": lambda x, y, _: spearmanr(x, y).pvalue,
    "Kendall": lambda x, y, _: kendalltau(x, y).pvalue,
}
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#009E73")
DASHES = ("-", "-", "-", "--")


def p_values(draw, samples, rows, seed):
    """The p-values of every test, shape (samples,) each."""
    found = {name: np.empty(samples) for name in TESTS}
    for sample in range(samples):
        x, y = draw(np.random.default_rng((seed, sample)), rows)
        for name, test in TESTS.items():
            found[name][sample] = test(x, y, sample)
    return found


def plot(found, rows, seed, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 7.4), layout="constrained")
    above, below = figure.subplots(2, len(KINDS))
    for axis, (name, draw) in zip(above, KINDS.items(), strict=True):
        axis.scatter(*draw(np.random.default_rng((seed, 0)), rows), s=14, color="#444444", linewidth=0)
        axis.set(title=name, xlabel="x", ylabel="y")
    for axis, of_tests in zip(below, found.values(), strict=True):
        axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":", label="uniform")
        for (test, p), colour, dash in zip(of_tests.items(), COLOURS, DASHES, strict=True):
            steps = np.linspace(0.0, 1.0, len(p) + 1)
            axis.step(
                [0.0, *np.sort(p), 1.0], [*steps, 1.0], where="post", label=test, color=colour, ls=dash, linewidth=1.8
            )
        axis.set(xlabel="p-value", ylabel="share of samples up to it", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
    below[0].legend(loc="lower right", frameon=False, fontsize=9)
    for axis in (*above, *below):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--plot", metavar="FILE", help="PNG, SVG or PDF")
    arguments = parser.parse_args()
    found = {}
    for kind, draw in KINDS.items():
        found[kind] = p_values(draw, arguments.samples, arguments.rows, arguments.seed)
        print(f"\n{kind:28}" + "".join(f"{f'p <= {level:g}':>10}" for level in LEVELS))
        for test, p in found[kind].items():
            print(f"  {test:26}" + "".join(f"{np.mean(p <= level):10.2f}" for level in LEVELS), flush=True)
    if arguments.plot:
        plot(found, arguments.rows, arguments.seed, arguments.plot)


if __name__ == "__main__":
    main()
