"""How the columns of a table go with scores: what a component is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.report.kpca_record import ComponentAssociation

if TYPE_CHECKING:
    from kerntest.data.table import Column, Table
    from kerntest.kernels.base import Array


def associations(table: Table, scores: Array) -> tuple[ComponentAssociation, ...]:
    """Return how each column goes with each of J scores, the clearest column first.

    Parameters
    ----------
    table : Table
        n rows without missing values.
    scores : ndarray, shape (n, J)

    Notes
    -----
    Cost: O(n J) for each column.
    """
    moved = scores - scores.mean(axis=0)
    squares = np.einsum("ij,ij->j", moved, moved)
    found = [_association(column, moved, squares) for column in table.columns]
    return tuple(sorted(found, key=lambda one: -max(abs(value or 0.0) for value in one.values)))


def _association(column: Column, moved: Array, squares: Array) -> ComponentAssociation:
    if column.is_category:
        values = _correlation_ratios(column.values, len(column.levels), moved, squares)
        return ComponentAssociation(column.name, "eta", values)
    return ComponentAssociation(column.name, "pearson", _correlations(column.values, moved, squares))


def _correlations(values: Array, moved: Array, squares: Array) -> tuple[float | None, ...]:
    """Return the correlation of numbers with each score; None where either is constant."""
    scaled = values / max(float(np.abs(values).max(initial=0.0)), np.finfo(np.float64).tiny)
    deviations = scaled - scaled.mean()
    sizes = np.sqrt(squares * float(deviations @ deviations))
    products = deviations @ moved
    return tuple(
        None if size == 0 else float(np.clip(product / size, -1.0, 1.0))
        for product, size in zip(products.tolist(), sizes.tolist(), strict=True)
    )


def _correlation_ratios(codes: Array, levels: int, moved: Array, squares: Array) -> tuple[float | None, ...]:
    """Return eta = sqrt(sum of squares between categories / sum of squares) for each score."""
    counts = np.bincount(codes, minlength=levels)
    sums = np.stack([np.bincount(codes, weights=score, minlength=levels) for score in moved.T], axis=1)
    between = (sums**2 / np.maximum(counts, 1)[:, None]).sum(axis=0)
    return tuple(
        None if whole == 0 else float(np.sqrt(min(part / whole, 1.0)))
        for part, whole in zip(between.tolist(), squares.tolist(), strict=True)
    )
