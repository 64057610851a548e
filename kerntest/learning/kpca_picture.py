"""What a picture of principal components shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.report.component_plot import ComponentPicture, ScreePicture
from kerntest.report.kpca_summary import kpca_sentence
from kerntest.report.learning_plot import learning_figure
from kerntest.report.plot import picture_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.data.table import Column
    from kerntest.kernels.base import Array
    from kerntest.report.kpca_record import KpcaResult


# Axes of larger numbers would not have a finite length.
LARGEST = 1e307


def kpca_picture(result: KpcaResult, scores: Array, color: Column | None, kind: str) -> bytes:
    """Return a picture of the rows in the first two components and of the scree, as "png", "svg" or "pdf".

    Parameters
    ----------
    result : KpcaResult
    scores : ndarray, shape (n, J)
    color : Column or None
        What colours the rows.
    kind : str
    """
    rows = ComponentPicture(
        scores[:, :2],
        result.explained_variance_ratio[:2],
        None if color is None else color.name,
        None if color is None else _drawable(color),
        () if color is None else color.levels,
        dates=color is not None and color.kind == "date",
    )
    panels = (rows, ScreePicture(result.explained_variance_ratio, result.explained))
    title = f"{result.provenance.inputs[0].name}: {kpca_sentence(result).removesuffix('.')}"
    return picture_bytes(learning_figure(panels, title), kind)


def _drawable(color: Column) -> NDArray[np.generic]:
    """Return the values of a column, numbers no larger than axes can be."""
    return color.values if color.is_category else np.clip(color.values, -LARGEST, LARGEST)
