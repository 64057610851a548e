"""The oracle: textbook versions of everything, one pair of rows at a time, in plain Python. Slow and obvious."""

import math


def inner(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def euclidean(x, y):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def manhattan(x, y):
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def mismatches(x, y):
    return sum(a != b for a, b in zip(x, y, strict=True))


def gaussian(x, y, bandwidth=1.0):
    return math.exp(-(euclidean(x, y) ** 2) / (2 * bandwidth**2))


def laplacian(x, y, bandwidth=1.0):
    return math.exp(-manhattan(x, y) / bandwidth)


def laplacian2(x, y, bandwidth=1.0):
    return math.exp(-euclidean(x, y) / bandwidth)


def student_t(x, y, bandwidth=1.0, df=1.0):
    return (1 + euclidean(x, y) ** 2 / (df * bandwidth**2)) ** (-(df + 1) / 2)


def rational_quadratic(x, y, bandwidth=1.0, alpha=1.0):
    return (1 + euclidean(x, y) ** 2 / (2 * alpha * bandwidth**2)) ** (-alpha)


def bessel_k(order, z):
    """Return K_order(z) as the integral of exp(-z cosh t) cosh(order t) over t > 0, by the trapezoidal rule."""
    step = 1e-3
    total = math.exp(-z) / 2
    for number in range(1, 20_000):
        t = number * step
        term = math.exp(-z * math.cosh(t)) * math.cosh(order * t)
        total += term
        if term < 1e-18 * total:
            break
    return step * total


def matern(x, y, bandwidth=1.0, nu=1.5):
    distance = euclidean(x, y)
    if distance == 0:
        return 1.0
    z = math.sqrt(2 * nu) * distance / bandwidth
    return 2 ** (1 - nu) / math.gamma(nu) * z**nu * bessel_k(nu, z)


def periodic(x, y, period=1.0, bandwidth=1.0):
    total = sum(math.sin(math.pi * (a - b) / period) ** 2 for a, b in zip(x, y, strict=True))
    return math.exp(-2 * total / bandwidth**2)


def linear(x, y):
    return inner(x, y)


def polynomial(x, y, degree=3, gain=1.0, offset=1.0):
    return (gain * inner(x, y) + offset) ** degree


def exponential(x, y, gain=1.0):
    return math.exp(gain * inner(x, y))


def delta(x, y):
    return float(all(a == b for a, b in zip(x, y, strict=True)))


def hamming(x, y, bandwidth=1.0):
    return math.exp(-mismatches(x, y) / bandwidth)


naive_kernels = {
    "gaussian": gaussian,
    "laplacian": laplacian,
    "laplacian2": laplacian2,
    "student-t": student_t,
    "rational-quadratic": rational_quadratic,
    "matern": matern,
    "periodic": periodic,
    "linear": linear,
    "polynomial": polynomial,
    "exponential": exponential,
    "delta": delta,
    "hamming": hamming,
}


def gram(kernel_function, X, Y=None):
    """Return the kernel matrix as a list of rows, by double loop."""
    return [[kernel_function(x, y) for y in (X if Y is None else Y)] for x in X]
