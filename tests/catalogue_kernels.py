"""Kernels of every kind, each with its naive function of a row: three numbers, then two codes."""

import functools
import math

import naive
import numpy as np

from kerntest import parse_kernel
from kerntest.kernels.base import Points
from kerntest.kernels.text import bind

NUMERIC, CATEGORIES = ("price", "weight", "depth"), ("city", "shop")


def mixed_points(n, seed):
    rng = np.random.default_rng(seed)
    return Points(np.round(rng.normal(size=(n, 3)), 1), rng.integers(0, 3, size=(n, 2)))


# A naive function of rows that carry two codes behind their three numbers, for every text.
NUMBERS, CODES, ROW = slice(0, 3), slice(3, 5), slice(0, 5)


def on(part, name, **arguments):
    return lambda x, y: naive.naive_kernels[name](x[part], y[part], **arguments)


def times(*functions):
    return lambda x, y: math.prod(function(x, y) for function in functions)


def plus(*functions):
    return lambda x, y: sum(function(x, y) for function in functions)


def to_the(exponent, function):
    return lambda x, y: function(x, y) ** exponent


def cosine(function):
    return lambda x, y: function(x, y) / math.sqrt(function(x, x) * function(y, y))


def weighted(weight, function):
    return lambda x, y: weight * function(x, y)


# Kernels without groups see the whole of the rows, numbers and codes; kernels of numbers have no use for the codes.
UNBOUND = {
    "gaussian(1.5)": on(NUMBERS, "gaussian", bandwidth=1.5),
    "laplacian(0.7)": on(NUMBERS, "laplacian", bandwidth=0.7),
    "laplacian2(2)": on(NUMBERS, "laplacian2", bandwidth=2.0),
    "student-t(1.5, 3)": on(NUMBERS, "student-t", bandwidth=1.5, df=3.0),
    "rational-quadratic(0.5, 2.5)": on(NUMBERS, "rational-quadratic", bandwidth=0.5, alpha=2.5),
    "matern(1.5, 2.5)": on(NUMBERS, "matern", bandwidth=1.5, nu=2.5),
    "matern(1.5, 1.2)": on(NUMBERS, "matern", bandwidth=1.5, nu=1.2),
    "periodic(2, 0.8)": on(NUMBERS, "periodic", period=2.0, bandwidth=0.8),
    "linear": on(NUMBERS, "linear"),
    "polynomial(3)": on(NUMBERS, "polynomial"),
    "polynomial(2, 1, -1)": on(NUMBERS, "polynomial", degree=2, gain=1.0, offset=-1.0),
    "exponential(0.25)": on(NUMBERS, "exponential", gain=0.25),
    "delta": on(ROW, "delta"),
    "hamming(2)": on(ROW, "hamming", bandwidth=2.0),
    "gaussian(1.5) + 0.5*linear": plus(on(NUMBERS, "gaussian", bandwidth=1.5), weighted(0.5, on(NUMBERS, "linear"))),
    "gaussian(1.5)*polynomial(2)": times(on(NUMBERS, "gaussian", bandwidth=1.5), on(NUMBERS, "polynomial", degree=2)),
    "linear^3": to_the(3, on(NUMBERS, "linear")),
    "laplacian(0.7)^0.5": to_the(0.5, on(NUMBERS, "laplacian", bandwidth=0.7)),
    "normalise(polynomial(2))": cosine(on(NUMBERS, "polynomial", degree=2)),
}
GROUPED = {
    "gaussian(1.5)*hamming(2)": times(on(NUMBERS, "gaussian", bandwidth=1.5), on(CODES, "hamming", bandwidth=2.0)),
    "price, depth: gaussian(1.5); weight: linear + 1; city: delta; shop: hamming(0.8)": times(
        lambda x, y: naive.gaussian(x[0:3:2], y[0:3:2], bandwidth=1.5),
        lambda x, y: x[1] * y[1] + 1,
        lambda x, y: naive.delta(x[3:4], y[3:4]),
        lambda x, y: naive.hamming(x[4:5], y[4:5], bandwidth=0.8),
    ),
    "city: delta": lambda x, y: naive.delta(x[3:4], y[3:4]),
    "price, city: laplacian(2) + delta": lambda x, y: (
        naive.laplacian(x[:1], y[:1], bandwidth=2.0) + naive.delta(x[3:4], y[3:4])
    ),
}


def kernel_of(text):
    if text in GROUPED:
        return bind(parse_kernel(text), NUMERIC, CATEGORIES).kernel
    return parse_kernel(text)


@functools.cache
def naive_matrix(text, n, seed):
    function = (UNBOUND | GROUPED)[text]
    points = mixed_points(n, seed)
    rows = [a + b for a, b in zip(points.numeric.tolist(), points.codes.tolist(), strict=True)]
    return naive.gram(function, rows)
