"""Scores of rows as the columns of a table of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.svm_model import SvmModel
    from kerntest.learning.training import Classes


def written_table(
    found: Mapping[str, Any], numbers: NDArray[np.intp], kept: Any, rows: NDArray[np.intp], place: NDArray[np.intp]
) -> Any:
    """Return an Arrow table of the numbers of rows, the columns handed through and what was found.

    Parameters
    ----------
    found : mapping of str to pyarrow.Array
        By the name of its column, of the m rows that `place` counts.
    numbers : ndarray of int, shape (k,)
        Number of each row to write in its file, from 1.
    kept : pyarrow.Table, shape (n, ...)
        Columns to hand through, of all rows of the block.
    rows : ndarray of int, shape (k,)
        The rows to write.
    place : ndarray of int, shape (k,)
        Where what was found for each of them is; -1 for rows without.
    """
    there = pa.array(place, mask=place < 0)
    columns: dict[str, Any] = {"row": pa.array(numbers, pa.int64())}
    everything = len(rows) == kept.num_rows
    columns |= {
        name: kept[name] if everything else kept[name].take(pa.array(rows, pa.int64())) for name in kept.column_names
    }
    return pa.table(columns | {name: one.take(there) for name, one in found.items()})


def predicted_columns(
    model: SvmModel, scores: Array | None, *, proba: bool, decision: bool
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return predictions from scores; None for no rows, which still have their columns.

    Parameters
    ----------
    model : SvmModel
    scores : ndarray, shape (m, J), or None
    proba, decision : bool
        Whether to add probabilities and decision functions.

    Returns
    -------
    columns : dict of str to pyarrow.Array, each of m values
        `prediction`: classes as they stood in the training data, numbers, or whether a row is like the training rows.
    counts : dict of str to int
        Rows of each class.
    """
    if scores is None:
        scores = np.empty((0, len(model.expansion.intercepts)))
    prediction, counts = _predictions(model, scores)
    further: dict[str, Array] = {}
    if decision:
        found = model.decision(scores)
        names = _decision_names(model, found.ndim)
        further |= dict(zip(names, found[:, None].T if found.ndim == 1 else found.T, strict=True))
    if proba and model.classes is not None:
        found = model.probabilities(scores) if len(scores) else np.empty((0, len(model.classes.names)))
        further |= {f"p:{name}": found[:, place] for place, name in enumerate(model.classes.names)}
    return {"prediction": prediction, **float_columns(further)}, counts


def float_columns(columns: Mapping[str, Array]) -> dict[str, Any]:
    """Return columns of numbers as Arrow holds them."""
    return {name: pa.array(values, pa.float64()) for name, values in columns.items()}


def _predictions(model: SvmModel, scores: Array) -> tuple[Any, dict[str, int]]:
    """Return the predictions, and how often there is each."""
    if model.task == "regress":
        return pa.array(scores[:, 0], pa.float64()), {}
    if model.task == "one-class" or model.classes is None:
        alike = np.asarray(scores[:, 0] >= 0)
        return pa.array(alike), {"true": int(alike.sum()), "false": int((~alike).sum())}
    codes = model.codes(scores)
    counts = np.bincount(codes, minlength=len(model.classes.names))
    levels = _levels(model.classes)
    return levels.take(pa.array(codes, pa.int64())), dict(zip(model.classes.names, counts.tolist(), strict=True))


def _levels(classes: Classes) -> Any:
    """Return the classes as they stood in the training data; whole numbers as such."""
    if classes.kind == "boolean":
        return pa.array([name == "true" for name in classes.names])
    if classes.kind == "number":
        numbers = [float(name) for name in classes.names]
        whole = all(number.is_integer() and abs(number) < 2**53 for number in numbers)
        return pa.array([int(number) for number in numbers], pa.int64()) if whole else pa.array(numbers, pa.float64())
    return pa.array(classes.names, pa.string())


def _decision_names(model: SvmModel, ndim: int) -> list[str]:
    """Return the names of the decision functions."""
    names = () if model.classes is None else model.classes.names
    if ndim == 1:
        return ["decision"]
    if model.method == "mean":
        return [f"decision:{name}" for name in names]
    return [f"decision:{names[i]}|{names[j]}" for i, j in model.pairs]
