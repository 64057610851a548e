"""The figures of lecture notes on kernel methods, from simulated data and the calls that everybody has.

    python -m kerntest.gallery DIR

draws them into a folder, with a page, index.html, that says what is seen in each and which command does the same on a
file. The data are simulated, the same each time. It takes half a minute, and matplotlib, the extra `plot`.
"""

from __future__ import annotations

import html
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import kerntest
from kerntest.errors import DataError, KerntestError, KerntestWarning
from kerntest.report import panels
from kerntest.report.write import write_file, written_together

Array: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]
Function: TypeAlias = Callable[[Array], Array]
Rows: TypeAlias = "Callable[[np.random.Generator, int], tuple[Array, Codes]]"
Machine: TypeAlias = "Callable[[str, Array, Codes], kerntest.SVM]"
# What a panel shows, and the panel.
Cell: TypeAlias = tuple[str, panels.Panel]

USAGE = """Usage: python -m kerntest.gallery DIR

Draw the figures of lecture notes on kernel methods into the folder DIR, and a page about them, index.html.

Example:
  python -m kerntest.gallery pictures
"""
INDEX, SEED, TRAINING_ROWS, NEW_ROWS, MESH = "index.html", 20, 400, 4000, 121
MARKS: dict[str, Any] = {"color": panels.NEUTRAL, "s": 14, "alpha": 0.7, "linewidth": 0, "label": "rows"}
TRUTH: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": "--", "label": "truth"}
FIT: dict[str, Any] = {"color": panels.COLOUR_X, "linewidth": 2.0, "label": "fit"}
BOUNDARY: dict[str, Any] = {"levels": [0.0], "colors": "black", "linewidths": 1.2}
# How much of a colour the ground below rows has.
TINT, PALE = 0.22, 0.6


class Picture(NamedTuple):
    """A figure in rows of panels `width` inches wide, what is seen in it, the command that does this, and its numbers."""

    title: str
    rows: Sequence[Sequence[Cell]]
    seen: str
    command: str
    numbers: dict[str, float]
    caption: str = ""
    width: float = 4.0
    heights: Sequence[float] | float = 3.4

    def figure(self) -> Any:
        """Return it drawn."""
        drawn = [[partial(_titled, *cell) for cell in row] for row in self.rows]
        return panels.figure(drawn, self.title, width=self.width, heights=self.heights, caption=self.caption)


def _titled(heading: str, draw: panels.Panel, axis: Any) -> None:
    draw(axis)
    panels.write_title(axis, heading)


def stream(*number: int) -> np.random.Generator:
    """Return the random numbers of a figure."""
    return np.random.default_rng((SEED, *number))


def witness() -> Picture:
    """Draw the witness function of a Gaussian and a Laplace distribution (Gretton et al. 2012, figure 1)."""
    rng, n, scale = stream(1), 20_000, math.sqrt(0.5)
    x, y, grid = rng.normal(size=n), rng.laplace(scale=scale, size=n), np.linspace(-5.0, 5.0, 401)
    kernel = kerntest.parse_kernel(f"gaussian({scale:.4g})")
    function = kernel(grid, x).mean(axis=1) - kernel(grid, y).mean(axis=1)
    found = kerntest.mmd_test(x, y, kernel=kernel, scale="none")
    densities = {
        "Gaussian": np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi),
        "Laplace": np.exp(-np.abs(grid) / scale) / (2 * scale),
    }

    def draw(axis: Any) -> None:
        for (name, density), colour in zip(densities.items(), panels.COLOURS, strict=False):
            axis.plot(grid, density, color=colour, linewidth=1.8, label=name)
            axis.fill_between(grid, density, color=colour, alpha=0.12, linewidth=0)
        # 0 is at mid height, as that of the witness function.
        axis.set(xlim=grid[[0, -1]], ylim=(-0.8, 0.8), xlabel="value", ylabel="density")
        axis.set_yticks([0.0, 0.2, 0.4, 0.6, 0.8])
        panels.draw_curve(axis, grid, function, "witness function")

    return Picture(
        "Two distributions of equal mean and variance",
        [[(f"MMD = {found.mmd:.3f}, p = {found.p_value:.3g}", draw)]],
        "The witness function, the difference of the two mean embeddings, is above 0 where the Gaussian distribution is "
        "denser than that of Laplace and below 0 where it is not, although their means and variances are equal.",
        "kerntest mmd A.csv B.csv --plot witness.png",
        {"MMD": found.mmd, "p": found.p_value},
        f"{n:,} rows of each; kernel {kernel}",
        width=7.6,
        heights=4.2,
    )


def rising(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return x and y that rises with it."""
    x = rng.uniform(-1.0, 1.0, n)
    return x, np.exp(2.0 * x) + rng.normal(0.0, 0.6, n)


def rising_and_falling(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return x and 1.65 waves: rank correlations vary about as much as those of independent rows."""
    x = rng.uniform(-1.0, 1.0, n)
    return x, np.cos(1.65 * np.pi * x) + rng.normal(0.0, 0.45, n)


def circle(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return rows about a circle: rank correlations vary less than those of independent rows."""
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.cos(angle) + rng.normal(0.0, 0.15, n), np.sin(angle) + rng.normal(0.0, 0.15, n)


def dependence(samples: int = 100) -> Picture:
    """Draw the distribution functions of the p-values of three tests on three kinds of dependence."""
    from scipy.stats import kendalltau, spearmanr  # noqa: PLC0415 - takes half a second to load

    tests: dict[str, Callable[[Array, Array], float]] = {
        "HSIC": lambda x, y: kerntest.hsic_test(x, y).p_value,
        "Spearman": lambda x, y: float(spearmanr(x, y).pvalue),
        "Kendall": lambda x, y: float(kendalltau(x, y).pvalue),
    }
    kinds = {"rising": rising, "rising and falling": rising_and_falling, "circle": circle}
    numbers, rows = dict[str, float](), list[list[Cell]]([[], []])
    for kind, sample in kinds.items():
        drawn = [sample(stream(2, number), 100) for number in range(samples)]
        found = {name: np.sort([test(*one) for one in drawn]) for name, test in tests.items()}
        numbers |= {f"{kind}, {name}": float(np.mean(p <= 0.05)) for name, p in found.items()}
        rows[0].append((f"{kind}: one sample", partial(draw_curves, *drawn[0], {})))
        rows[1].append((f"{kind}: p-values", partial(draw_distributions, found)))
    return Picture(
        f"What three tests of independence see in {samples} samples of 100 rows",
        rows,
        "Where y rises with x all tests reject nearly every sample; where it rises and falls, or on a circle, rank "
        "correlations see no more than in independent rows (dotted), and HSIC still rejects.",
        "kerntest hsic DATA.csv --x x --y y --plot dependence.png",
        numbers,
        heights=[3.1, 4.0],
    )


def draw_curves(x: Array, y: Array, curves: dict[str, tuple[Array, Array]], axis: Any) -> None:
    """Draw rows of two columns, and functions: the truth, or a fit."""
    axis.scatter(x, y, **MARKS)
    for name, curve in curves.items():
        axis.plot(*curve, **(FIT if name == "fit" else TRUTH))
    axis.set(xlabel="x", ylabel="y")
    if curves:
        # What a fit does beyond the rows and the truth is not of interest.
        low, high = min(y.min(), curves["truth"][1].min()), max(y.max(), curves["truth"][1].max())
        axis.set(xlim=curves["truth"][0][[0, -1]], ylim=(low - 0.1 * (high - low), high + 0.1 * (high - low)))
        axis.legend(**panels.LEGEND)


def draw_distributions(found: dict[str, Array], axis: Any) -> None:
    """Draw the distribution functions of p-values."""
    axis.plot([0.0, 1.0], [0.0, 1.0], color="black", linewidth=0.8, linestyle=":", label="independent rows")
    # The first one is seen below the others.
    for (name, p), colour, dash, width in zip(
        found.items(), panels.COLOURS, ("-", "-", "--"), (3.2, 1.8, 1.8), strict=False
    ):
        label, style = f"{name}: {100 * np.mean(p <= 0.05):.0f} % up to 0.05", {"linestyle": dash, "linewidth": width}
        axis.step(
            [0.0, *p, 1.0], [*np.linspace(0, 1, len(p) + 1), 1.0], where="post", label=label, color=colour, **style
        )
    axis.set(xlabel="p-value", ylabel="share of samples up to it", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
    panels.legend_below(axis, axis.get_legend_handles_labels()[0], ncols=2)


def root_mean_square(values: Array) -> float:
    """Return it of deviations."""
    return math.sqrt(float(np.mean(values**2)))


def regression() -> Picture:
    """Draw ridge regressions with four kernels, and tell their errors on new rows."""
    rng, spread, numbers, cells = stream(3), 0.35, dict[str, float](), list[Cell]()

    def truth(x: Array) -> Array:
        return np.asarray(np.sin(2.2 * x) + 0.15 * np.maximum(x - 7.0, 0.0) ** 2)

    x, new, grid = rng.uniform(0.0, 10.0, 120), rng.uniform(0.0, 10.0, NEW_ROWS), np.linspace(0.0, 10.0, 501)
    y, new_y = (truth(one) + spread * rng.normal(size=len(one)) for one in (x, new))
    # Periods in standard deviations of x.
    waves = [f"periodic({period:.2f}, {width})" for period in np.arange(0.6, 1.4, 0.02) for width in (0.5, 1, 2)]
    tried = {
        "polynomial": [f"polynomial({degree}, gain={gain})" for degree in range(2, 13) for gain in (0.3, 1, 3)],
        "Gaussian": ["gaussian"],
        "Laplacian": ["laplacian"],
        "periodic": waves,
    }
    for name, kernels in tried.items():
        fits = [kerntest.KernelRidge(kernel=kernel, intervals=False).fit(x[:, None], y) for kernel in kernels]
        best = min(fits, key=lambda fit: fit.loo_rmse_ or math.inf)
        numbers[name] = root_mean_square(best.predict(new[:, None]) - new_y)
        curves = {"truth": (grid, truth(grid)), "fit": (grid, best.predict(grid[:, None]))}
        cells.append((f"{name}: RMSE {numbers[name]:.3f}", partial(draw_curves, x, y, curves)))
    return Picture(
        f"Ridge regression with four kernels: errors on {NEW_ROWS:,} new rows",
        [cells[:2], cells[2:]],
        f"The {min(numbers, key=lambda name: numbers[name])} kernel follows a wave that rises at its end best; the polynomial sways, "
        "the Laplacian is rough, and the periodic kernel repeats what it has seen, so that it misses the end.",
        "kerntest ridge TRAIN.csv --target y --kernel laplacian --test NEW.csv --plot fit.png",
        numbers,
        f"120 rows, noise of standard deviation {spread}; lambda, bandwidth, degree and period by leave-one-out",
        width=4.8,
    )


def smoothness() -> Picture:
    """Draw what lambda and the bandwidth do to a ridge regression."""
    rng, numbers, rows = stream(4), dict[str, float](), list[list[Cell]]([[], []])
    x, grid = np.linspace(-0.5, 1.5, 60), np.linspace(-0.5, 1.5, 401)
    y, truth = np.sinc(2.5 * x) + 0.15 * rng.normal(size=len(x)), np.sinc(2.5 * grid)
    for row, lambdas, bandwidths in (0, (10.0, 0.1, 1e-7), (0.15,) * 3), (1, (0.1,) * 3, (1.5, 0.15, 0.02)):
        for lambda_, bandwidth, told in zip(
            lambdas, bandwidths, ("too smooth", "about right", "too rough"), strict=True
        ):
            fit = kerntest.KernelRidge(lambda_, f"gaussian({bandwidth})", scale="none", intervals=False)
            values = fit.fit(x[:, None], y).predict(grid[:, None])
            changed = f"bandwidth = {bandwidth:g}" if row else f"lambda = {lambda_:g}"
            numbers[changed] = root_mean_square(values - truth)
            curves = {"truth": (grid, truth), "fit": (grid, values)}
            rows[row].append((f"{changed}: {told}", partial(draw_curves, x, y, curves)))
    return Picture(
        "What lambda and the bandwidth do to a ridge regression",
        rows,
        "A large lambda (above, bandwidth 0.15) or a wide kernel (below, lambda 0.1) flattens the curve, a small lambda or a "
        "narrow kernel follows the noise; leave-one-out finds what lies between.",
        "kerntest ridge DATA.csv --target y --columns x --plot fit.png",
        numbers,
    )


def two_normals(rng: np.random.Generator, n: int) -> tuple[Array, Codes]:
    """Return rows about two means, and which."""
    classes = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) + np.where(classes[:, None] == 1, [1.1, 0.8], [-1.1, -0.8]), classes


def half_circles(rng: np.random.Generator, n: int) -> tuple[Array, Codes]:
    """Return rows about two half-circles that reach into each other, and which."""
    classes, angle = rng.integers(0, 2, n), rng.uniform(0.0, np.pi, n)
    turned = np.column_stack([np.cos(angle), np.sin(angle)]) * np.where(classes == 1, -1.0, 1.0)[:, None]
    return turned + np.outer(classes, [1.0, 0.4]) + 0.25 * rng.normal(size=(n, 2)), classes


def rings(rng: np.random.Generator, n: int) -> tuple[Array, Codes]:
    """Return rows about a circle and a smaller one inside, and which."""
    classes, angle = rng.integers(0, 2, n), rng.uniform(0.0, 2.0 * np.pi, n)
    turned = np.column_stack([np.cos(angle), np.sin(angle)]) * np.where(classes == 1, 0.35, 1.0)[:, None]
    return turned + 0.1 * rng.normal(size=(n, 2)), classes


def wave_height(x: Array) -> Array:
    """Return where the rows of `wave` change their class."""
    return np.asarray(1.1 * np.sin(3.0 * x) + 0.3 * x)


def wave(rng: np.random.Generator, n: int) -> tuple[Array, Codes]:
    """Return rows above and below a wave, 4 % of them as if on the other side."""
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    return X, ((X[:, 1] > wave_height(X[:, 0])) ^ (rng.random(n) < 0.04)).astype(np.intp)


def judged(
    rng: np.random.Generator, data: Mapping[str, Rows], kernels: dict[str, str], machine: Machine, draw: Any
) -> tuple[dict[str, float], list[list[Cell]]]:
    """Return the accuracies on new rows of a machine with each kernel on each of some data, and the panels."""
    numbers, lines = dict[str, float](), list[list[Cell]]()
    for name, sample in data.items():
        (X, classes), (new, truth) = sample(rng, TRAINING_ROWS), sample(rng, NEW_ROWS)
        lines.append([])
        for called, kernel in kernels.items():
            fitted = machine(kernel, X, classes)
            numbers[f"{name}, {called}"] = accuracy = float(np.mean(fitted.predict(new) == truth))
            panel = partial(draw_plane, X, classes, fitted.decision_function, partial(draw, name))
            lines[-1].append((f"{name}, {called}: {100 * accuracy:.1f} %", panel))
    return numbers, lines


def draw_plane(X: Array, classes: Codes, function: Function, draw: Any, axis: Any) -> None:
    """Draw a function over a plane, where it is 0, and rows in the looks of their classes."""
    room = 0.05 * np.ptp(X, axis=0)
    mesh = np.stack(np.meshgrid(*np.linspace(X.min(axis=0) - room, X.max(axis=0) + room, MESH).T))
    values = function(mesh.reshape(2, -1).T).reshape(MESH, MESH)
    draw(mesh, values, axis)
    axis.contour(*mesh, values, **BOUNDARY)
    limits = [(one.min(), one.max()) for one in mesh]
    draw_classes(X, classes, "x", axis)
    axis.set(xlim=limits[0], ylim=limits[1])


def draw_classes(X: Array, classes: Codes, axes: str, axis: Any) -> None:
    """Draw rows in the looks of their classes."""
    panels.scatter_classes(axis, X, classes, 15.0)
    axis.set(xlabel=f"{axes}1", ylabel=f"{axes}2")


def searched(kernels: str, X: Array, classes: Codes) -> kerntest.SVM:
    """Return the machine whose kernel, cost and bandwidth do best in cross-validation."""
    table = np.column_stack([X, classes])
    found = [kerntest.train_svm(table, "x3", kernel=kernel, grid=True) for kernel in kernels.split()]
    best = max(found, key=lambda one: -math.inf if one.grid is None else one.grid.mean)
    return kerntest.SVM(best.C or 1.0, best.kernel).fit(X, classes)


def classification() -> Picture:
    """Draw the boundaries of machines with three kernels on three data sets."""
    powers = " ".join(f"polynomial({degree})" for degree in (2, 3, 5, 7))
    kernels = {"linear": "linear", "polynomial": powers, "Gaussian": "gaussian"}
    data = {"two normals": two_normals, "half-circles": half_circles, "wave": wave}

    def draw(name: str, mesh: Array, values: Array, axis: Any) -> None:
        axis.contourf(*mesh, values, levels=[-np.inf, 0.0, np.inf], colors=panels.COLOURS[:2], alpha=TINT)
        if name == "wave":
            axis.plot(mesh[0][0], wave_height(mesh[0][0]), **TRUTH)

    numbers, rows = judged(stream(5), data, kernels, searched, draw)
    return Picture(
        f"Support vector machines: accuracy on {NEW_ROWS:,} new rows",
        rows,
        "Where a straight line is right, no kernel gains on it; the more the boundary bends (dashed: the true one), the more the "
        "Gaussian kernel gains on the line, and in the end on polynomials too.",
        "kerntest svm TRAIN.csv --target class --grid --test NEW.csv --plot regions.png",
        numbers,
        f"{TRAINING_ROWS} rows each of two classes, circles and triangles; C, bandwidth and degree by cross-validation",
        width=3.7,
    )


def densities() -> Picture:
    """Draw the contours of the classifier by kernel density estimates, that of the nearest mean embedding."""
    kernels = {"linear": "linear", "Student-t": "student-t(0.3, df=3)", "Gaussian": "gaussian(0.3)"}
    hues = panels.matplotlib("cm").ScalarMappable(cmap="RdBu_r").to_rgba(np.linspace(0.0, 1.0, 15))

    def machine(kernel: str, X: Array, classes: Codes) -> kerntest.SVM:
        return kerntest.SVM(kernel=kernel, method="mean").fit(X, classes)

    def draw(_name: str, mesh: Array, values: Array, axis: Any) -> None:
        levels = np.linspace(-1.0, 1.0, len(hues) + 1) * np.abs(values).max()
        axis.contourf(*mesh, values, levels=levels, colors=1.0 - PALE * (1.0 - hues))

    numbers, rows = judged(stream(6), {"two normals": two_normals, "rings": rings}, kernels, machine, draw)
    return Picture(
        f"Nearest mean embedding: accuracy on {NEW_ROWS:,} new rows",
        rows,
        "A row goes to the class of the nearer mean embedding: but for a constant, that whose kernel density estimate is higher "
        "(contours: the difference, 0 in black), with smoother boundaries for the heavy tails of Student's t.",
        "kerntest svm TRAIN.csv --target class --method mean --kernel 'student-t(0.3, df=3)' --plot regions.png",
        numbers,
        f"{TRAINING_ROWS} rows each of two classes, circles and triangles; bandwidth 0.3 standard deviations",
        width=3.7,
    )


# The strokes of each digit: places in a square of ten by ten, across and down.
STROKES = (
    "51 32 24 26 38 59 78 86 84 72 51",
    "33 51 59",
    "23 31 61 73 65 29 89",
    "22 41 72 64 45 66 77 59 28",
    "69 61 26 86",
    "71 31 35 55 76 68 49 28",
    "61 43 26 38 59 77 65 45 27",
    "21 81 49",
    "55 33 51 73 55 37 59 77 55",
    "74 55 34 32 51 72 74 59",
)
PIXELS, NOISE = 16, 0.35


def handwriting(rng: np.random.Generator, n: int) -> Array:
    """Return images of the digits 0, 1, ..., 9, 0, ..., shape (n, 256), grey values from 0 to 1: pen strokes that vary."""
    centres = (np.indices((PIXELS, PIXELS)).reshape(2, -1)[::-1].T + 0.5) / PIXELS
    images = np.empty((n, PIXELS**2))
    for number, image in enumerate(images):
        places = np.array([[*map(int, pair)] for pair in STROKES[number % 10].split()]) / 10.0 - 0.5
        turned = places @ (np.eye(2) + rng.uniform(-0.12, 0.12, size=(2, 2)))
        places = turned + 0.5 + rng.uniform(-0.03, 0.03, size=2) + 0.012 * rng.normal(size=places.shape)
        along, apart = np.diff(places, axis=0)[:, None], centres - places[:-1, None]
        share = np.clip((apart * along).sum(axis=2) / (along**2).sum(axis=2), 0.0, 1.0)
        distance = np.linalg.norm(apart - share[..., None] * along, axis=2).min(axis=0)
        image[:] = np.exp(-((distance / rng.uniform(0.055, 0.075)) ** 2))
    return images


def components() -> Picture:
    """Draw principal components of two rings, and digits freed of noise by linear and by Gaussian components."""
    rng = stream(7)
    X, classes = rings(rng, 300)
    clean, new = handwriting(rng, 2000), handwriting(rng, 100)
    lines = {"new digits": new, "with noise": new + NOISE * rng.normal(size=new.shape)}
    cells: list[Cell] = [("two rings", partial(draw_classes, X, classes, "x"))]
    for name, kernel, denoising, counts in (
        ("linear", "linear", "linear", (10, 20, 30)),
        ("Gaussian", "gaussian(0.5)", "gaussian(8)", (20, 40, 80)),
    ):
        scores = kerntest.KernelPCA(2, kernel).fit_transform(X)
        cells.append((f"{name} components", partial(draw_classes, scores, classes, "pc")))
        fits = [kerntest.KernelPCA(count, denoising, scale="none").fit(clean) for count in counts]
        lines[name] = min(
            (fit.denoise(lines["with noise"]) for fit in fits), key=lambda one: root_mean_square(one - new)
        )
    numbers = {name: root_mean_square(images - new) for name, images in lines.items()}
    return Picture(
        "Kernel principal components part rings and take noise from digits",
        [cells, [("Digits, and the root mean squared error of 100 such", partial(draw_digits, lines, numbers))]],
        "Ordinary components turn two rings, those of a Gaussian kernel part them; and Gaussian components of 2,000 clean digits "
        "leave less noise in new ones than ordinary components.",
        "kerntest kpca CLEAN.csv --components 40 -o model.kt && kerntest transform model.kt NOISY.csv --reconstruct",
        numbers,
        f"digits simulated as strokes of a pen, {PIXELS} x {PIXELS} pixels; noise of standard deviation {NOISE}; of each kernel the "
        "best of three numbers of components",
        heights=[3.4, 4.2],
    )


def draw_digits(lines: dict[str, Array], numbers: dict[str, float], axis: Any) -> None:
    """Draw the first ten images of each kind in a line."""
    mosaic = np.vstack([np.hstack(list(images[:10].reshape(10, PIXELS, PIXELS))) for images in lines.values()])
    axis.imshow(mosaic, cmap="gray_r", vmin=0.0, vmax=1.0)
    names = [f"{name}\nerror {numbers[name]:.3f}" if numbers[name] else name for name in lines]
    axis.set_yticks([PIXELS * (place + 0.5) - 0.5 for place in range(len(lines))], names, fontsize=9)
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


FIGURES = (witness, dependence, regression, smoothness, classification, densities, components)


def draw_gallery(folder: str, tell: Callable[[str], object] = str) -> dict[str, Picture]:
    """Draw all figures and the page about them into a folder, all or none; `tell` hears of each; return them by name."""
    panels.matplotlib("figure")
    place, pictures = Path(folder), dict[str, Picture]()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "name a folder in which files can be written, or a new one"
        raise DataError(f"{folder} is no folder: {error.strerror}", hint=hint, code="data.unwritable") from error
    with written_together(), warnings.catch_warnings():
        warnings.simplefilter("ignore", KerntestWarning)
        for make in FIGURES:
            name = make.__name__
            pictures[name] = make()
            panels.write_picture(place / f"{name}.png", pictures[name].figure())
            tell(f"{name}: {pictures[name].title}\n")
        write_file(place / INDEX, page_of(pictures).encode())
    return pictures


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Kernel methods in pictures</title><style>
body{{max-width:60em;margin:2em auto;padding:0 1em;font:1em/1.5 sans-serif}}
img{{max-width:100%}}pre{{background:#eee;padding:.6em;overflow:auto}}
</style><h1>Kernel methods in pictures</h1>{entries}</html>
"""
ENTRY = """<h2>{title}</h2><p>{seen} On files of your own:</p><pre>{command}</pre><img src="{name}.png" alt="{title}">
"""


def page_of(pictures: dict[str, Picture]) -> str:
    """Return the page that says what is seen in each picture, and which command does it."""
    told = {name: [html.escape(text) for text in (one.title, one.seen, one.command)] for name, one in pictures.items()}
    entries = [ENTRY.format(name=name, title=title, seen=seen, command=do) for name, (title, seen, do) in told.items()]
    return PAGE.format(entries="\n".join(entries))


def main(arguments: Sequence[str]) -> int:
    """Draw the gallery into the folder that is named, and return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        asked = list(arguments) in (["-h"], ["--help"])
        (sys.stdout if asked else sys.stderr).write(USAGE)
        return 0 if asked else 2
    try:
        draw_gallery(arguments[0], sys.stderr.write)
    except KerntestError as error:
        sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    sys.stdout.write(f"{Path(arguments[0]) / INDEX}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
