"""Data and dense references for support vector machines, from numpy alone."""

from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets


@cache
def bundled(name):
    """Return one of scikit-learn's data sets, columns standardised, shortened so that tests stay quick."""
    load, step = {
        "iris": (datasets.load_iris, 1),
        "wine": (datasets.load_wine, 1),
        "cancer": (datasets.load_breast_cancer, 2),
        "digits": (datasets.load_digits, 6),
        "diabetes": (datasets.load_diabetes, 2),
    }[name]
    X, y = load(return_X_y=True)
    X, y = X[::step], y[::step]
    return standardised(X), y


def standardised(X):
    spread = X.std(axis=0)
    return ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]


def gaussian(X, Z, bandwidth):
    squared = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * bandwidth**2))


def laplacian(X, Z, bandwidth):
    return np.exp(-np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2) / bandwidth)


def student_t(X, Z, bandwidth):
    return 1 / (1 + ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2) / bandwidth**2)


def cubic(X, Z):
    return (0.1 * X @ Z.T + 1) ** 3


def clouds(n, d=2, *, separation=1.5, seed=0, classes=2):
    """Return normal clouds in a row, class k of n % classes at k times the separation."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, d))
    X[:, 0] += separation * y
    return X, y


def wave(n=120, d=2, noise=0.2, seed=0):
    """Return normal rows, and a sine of their first column with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1:].sum(axis=1) + noise * rng.normal(size=n)


def frame_of(X, y):
    """Return columns x0, x1 ... and y."""
    return pd.DataFrame({**{f"x{k}": column for k, column in enumerate(X.T)}, "y": y})


def coefficients_of(machine, n):
    """Return the coefficients of every training row in every machine of a fit, shape (n, J), zero without support."""
    expansion, fit = machine.fit_.model.expansion, machine.fit_
    found, count = np.zeros((n, len(expansion.intercepts))), expansion.coefficients.shape[1]
    # Equal rows, whose centre is one, may share its coefficient equally.
    lines = expansion.coefficients[fit.centres] / np.bincount(fit.centres)[fit.centres, None]
    if not expansion.owners:
        found[fit.support] = lines
    for row, centre, line in zip(fit.support, fit.centres, lines, strict=True):
        own = expansion.owners[centre] if expansion.owners else -1
        for place, pair in enumerate(combinations(range(count), 2)):
            if own in pair:
                found[row, place] = line[sum(pair) - own]
    return found


def raises(error, code, call):
    """Call, and return the error of that class and code that it must raise: one clear line."""
    with pytest.raises(error) as caught:
        call()
    found = caught.value
    assert type(found) is error
    assert found.code == code, (found.code, found.message)
    assert "\n" not in found.message
    assert found.message.isprintable()
    return found
