"""The picture of a grid over bandwidths and another option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from kerntest.report.learning_plot import SearchPicture

if TYPE_CHECKING:
    from collections.abc import Sequence


class Cell(Protocol):
    """What every cell of a grid has."""

    @property
    def multiple(self) -> float:
        """Of the median bandwidth."""

    @property
    def bandwidth(self) -> float | None:
        """Of a kernel that has one."""


def grid_picture(
    cells: Sequence[Cell],
    values: Sequence[float],
    scores: Sequence[float],
    chosen: int,
    *,
    name: str,
    score: str,
    heading: str = "Cross-validation",
    smaller_is_better: bool = False,
) -> SearchPicture | None:
    """Return the scores of a grid, bandwidths across; None where there was only one cell.

    Parameters
    ----------
    cells : sequence of Cell
    values : sequence of float
        The other option in each cell.
    scores : sequence of float
        Of each cell.
    chosen : int
        Place of the cell that was chosen.
    name : str
        Of the other option.
    score : str
        What the scores are.
    heading : str
        How they were found.
    smaller_is_better : bool
    """
    if len(cells) < 2:
        return None
    up, multiples = sorted(set(values)), sorted({cell.multiple for cell in cells})
    table = np.full((len(up), len(multiples)), np.nan)
    for cell, value, one in zip(cells, values, scores, strict=True):
        table[up.index(value), multiples.index(cell.multiple)] = one
    widths = {cell.multiple: cell.bandwidth for cell in cells}
    across = [widths[multiple] for multiple in multiples]
    named = "bandwidth" if all(width is not None for width in across) else "bandwidth / median"
    return SearchPicture(
        (named, name),
        np.array([multiple if width is None else width for multiple, width in zip(multiples, across, strict=True)]),
        np.array(up),
        table,
        (up.index(values[chosen]), multiples.index(cells[chosen].multiple)),
        score,
        smaller_is_better=smaller_is_better,
        heading=heading,
    )
