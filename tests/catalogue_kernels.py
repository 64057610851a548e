"""Kernels of every kind, each with its naive function of a row: three numbers, then two codes."""

import functools
import math
import re

import naive
import numpy as np

from kerntest import parse_kernel
from kerntest.kernels.base import Points
from kerntest.kernels.text import bind

NUMERIC, CATEGORIES = ("price", "weight", "depth"), ("city", "shop")


def mixed_points(n, seed):
    rng = np.random.default_rng(seed)
    return Points(np.round(rng.normal(size=(n, 3)), 1), rng.integers(0, 3, size=(n, 2)))


def naive_of(text, codes=range(5)):
    """Return the naive function of a text, which Python reads at every pair of rows; of groups of columns their product."""
    if text.startswith("exp("):
        return lambda x, y: math.exp(naive_of(text[len("exp(") : -1], codes)(x, y))
    if text.startswith("normalise("):
        inner = naive_of(text[len("normalise(") : -1], codes)
        return lambda x, y: inner(x, y) / math.sqrt(inner(x, x) * inner(y, y))
    groups = []
    for group in text.split(";"):
        names, colon, kernel = group.rpartition(":")
        seen = [(NUMERIC + CATEGORIES).index(name.strip()) for name in names.split(",")] if colon else range(5)
        code = re.sub(r"([a-z][a-z0-9-]*)(\(?)", lambda m: m[1].replace("-", "_") + (m[2] or "()"), kernel.strip())
        groups.append((compile(code.replace("^", "**"), text, "eval"), seen))

    def value(x, y):
        total = 1.0
        for code, seen in groups:
            scope = {}
            for name, function in naive.naive_kernels.items():
                places = [i for i in seen if (i in codes if name in {"delta", "hamming"} else i < 3)]
                rows = [x[i] for i in places], [y[i] for i in places]
                scope[name.replace("-", "_")] = functools.partial(function, *rows)
            total *= eval(code, scope)
        return total

    return value


# Kernels without groups see the whole of the rows, numbers and codes; kernels of numbers have no use for the codes.
UNBOUND = {
    text: naive_of(text)
    for text in (
        "gaussian(1.5)", "laplacian(0.7)", "laplacian2(2)", "student-t(1.5, 3)", "rational-quadratic(0.5, 2.5)",
        "matern(1.5, 2.5)", "matern(1.5, 1.2)", "periodic(2, 0.8)", "linear", "polynomial(3)", "polynomial(2, 1, -1)",
        "exponential(0.25)", "delta", "hamming(2)", "gaussian(1.5) + 0.5*linear", "gaussian(1.5)*polynomial(2)", "linear^3",
        "laplacian(0.7)^0.5", "normalise(polynomial(2))", "exp(0.5*laplacian(0.7) + delta)",
    )
}  # fmt: skip
# In groups, and in tables with categories, delta and hamming see these alone.
GROUPED = {
    text: naive_of(text, codes=(3, 4))
    for text in (
        "gaussian(1.5)*hamming(2)",
        "price, depth: gaussian(1.5); weight: linear + 1; city: delta; shop: hamming(0.8)",
        "city: delta",
        "price, city: laplacian(2) + delta",
    )
}


def kernel_of(text):
    kernel = parse_kernel(text)
    return bind(kernel, NUMERIC, CATEGORIES).kernel if text in GROUPED else kernel


@functools.cache
def naive_matrix(text, n, seed):
    points = mixed_points(n, seed)
    rows = [a + b for a, b in zip(points.numeric.tolist(), points.codes.tolist(), strict=True)]
    return naive.gram((UNBOUND | GROUPED)[text], rows)
