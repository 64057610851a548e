"""From a table to the rows whose components are wanted, and from pre-images back to columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import UsageError
from kerntest.learning.encoding import Encoder
from kerntest.learning.kernel_choice import ChosenKernel, choose_kernel
from kerntest.learning.kpca_fit import KpcaRows
from kerntest.learning.kpca_model import ConstantColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.kpca_model import KpcaModel
    from kerntest.learning.kpca_options import KpcaOptions


def rows_of(table: Table, options: KpcaOptions) -> tuple[KpcaRows, ChosenKernel, tuple[str, ...], list[str]]:
    """Return the rows of a table, their kernel, the columns left out, and warnings.

    Columns that the kernel does not see take no part: new rows need not have them.

    Raises
    ------
    DataError, UsageError
        If no column is left, or the kernel does not fit the columns.
    """
    fitted = Encoder.fit(table, options.scale)
    reasons = dict(zip(fitted.left_out, fitted.warnings, strict=True))
    chosen = choose_kernel(
        options.kernel, options.bandwidth, fitted.encoder, fitted.points, options.seed, left_out=reasons
    )
    left_out, warnings = tuple(fitted.left_out), list(fitted.warnings)
    if chosen.unused:
        seen = [name for name in table.names if name not in {*left_out, *chosen.unused}]
        rows, narrowed, _, more = rows_of(table.select(seen), options)
        unseen = tuple(name for name in table.names if name not in seen)
        return rows, replace(narrowed, rule=chosen.rule), unseen, [*warnings, *more]
    rows = KpcaRows(fitted.points, fitted.encoder, chosen.kernel, _constants(table, fitted.encoder))
    return rows, chosen, left_out, warnings


def _constants(table: Table, encoder: Encoder) -> tuple[ConstantColumn, ...]:
    """Return the columns with one number in all rows, with their places among those that pre-images have."""
    there = set(encoder.names)
    kept = [column for column in table.columns if column.name in there or _is_constant(column)]
    return tuple(
        ConstantColumn(column.name, place, float(column.values[0]))
        for place, column in enumerate(kept)
        if column.name not in there
    )


def _is_constant(column: Column) -> bool:
    return column.kind == "number" and bool((column.values == column.values[0]).all())


def in_units(model: KpcaModel, points: Points) -> dict[str, NDArray[Any]]:
    """Return rows as columns in their own units, in the order of the training table.

    Numbers and dates (days since 1970-01-01) are floats, text and booleans levels as objects; None for a category that
    no training row had.
    """
    encoder = encoder_of(model)
    centre = np.array([column.centre for column in encoder.numeric])
    spread = np.array([column.spread for column in encoder.numeric])
    found: dict[str, NDArray[Any]] = dict(zip(encoder.numeric_names, (points.numeric * spread + centre).T, strict=True))
    for place, spec in enumerate(encoder.categories):
        levels = np.array([*spec.levels, None], dtype=object)
        found[spec.name] = levels[points.codes[:, place]]
    order = list(encoder.names)
    for one in model.constants:
        found[one.name] = np.full(len(points), one.value)
        order.insert(one.place, one.name)
    return {name: found[name] for name in order}


def encoder_of(model: KpcaModel) -> Encoder:
    """Return what a model knows of its columns.

    Raises
    ------
    UsageError
        If it has none.
    """
    if model.encoder is None:
        raise UsageError(
            "a precomputed matrix has no columns to go back to",
            hint="fit the kernel itself to the rows",
            code="usage.no_preimages",
        )
    return model.encoder


def distances(first: Points, second: Points) -> Array:
    """Return how far rows are from their pre-images, shape (n,): sqrt(|x - z|^2 + number of categories that differ).

    Numbers count in the units in which the kernel sees them.
    """
    moved = first.numeric - second.numeric
    differ = np.count_nonzero(first.codes != second.codes, axis=1)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", moved, moved) + differ))
