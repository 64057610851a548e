"""Handwritten digits with noise, and what principal components make of them: numbers, and a picture in rows.

    python tests/benchmarks/denoise_digits.py [--picture digits.png]

The 8 x 8 digits that scikit-learn carries, grey values from 0 to 1. Components come from 1,500 clean images; noise of
standard deviation 0.25 is added to the 297 others, which are projected and brought back. Ordinary components: as many as
serve best (looked up on the clean images, which favours them). The Gaussian: 32 components, median bandwidth.
"""

from __future__ import annotations

import numpy as np
from measure import parser_of

from kerntest import KernelPCA

NOISE, TRAIN, COMPONENTS = 0.25, 1500, 32


def digits():
    """Return training images, and clean and noisy images of other digits, each of shape (n, 64); and their labels."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    X, y = X[order] / 16.0, y[order]
    noisy = X + NOISE * rng.normal(size=X.shape)
    return X[:TRAIN], X[TRAIN:], noisy[TRAIN:], y[TRAIN:]


def squared_error(images, clean):
    return float(np.mean((images - clean) ** 2))


def linear(train, noisy, clean):
    """Return the images of the best number of ordinary components, and that number."""
    pca = KernelPCA(40, kernel="linear", scale="none").fit(train)
    scores = pca.transform(noisy)
    found = []
    for count in range(4, 41):
        kept = scores.copy()
        kept[:, count:] = 0.0
        images = pca.inverse_transform(kept)
        found.append((squared_error(images, clean), count, images))
    return min(found, key=lambda one: one[:2])


def kernel(train, noisy):
    """Return the pre-images of the components of the Gaussian."""
    return KernelPCA(COMPONENTS, scale="none").fit(train).denoise(noisy)


def draw(path, lines, labels):
    """Draw one image of each digit: a line for each kind of image."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(10, 1.05 * len(lines)), layout="constrained")
    chosen = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    axes = made.subplots(len(lines), 10)
    for axis_line, (name, images) in zip(axes, lines.items(), strict=True):
        for axis, row in zip(axis_line, chosen, strict=True):
            axis.imshow(images[row].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            axis.set_xticks([])
            axis.set_yticks([])
        axis_line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10)
    made.savefig(path, dpi=110)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--picture", metavar="FILE")
    options = parser.parse_args()
    train, clean, noisy, labels = digits()
    error, count, flat = linear(train, noisy, clean)
    curved = kernel(train, noisy)
    print(f"mean squared error of {len(noisy)} noisy images: {squared_error(noisy, clean):.4f}")
    print(f"ordinary components, {count}: {error:.4f}")
    print(f"Gaussian, {COMPONENTS} components, median bandwidth: {squared_error(curved, clean):.4f}")
    if options.picture:
        lines = {"clean": clean, "noisy": noisy, "linear": flat, "kernel": curved}
        draw(options.picture, lines, labels)


if __name__ == "__main__":
    main()
