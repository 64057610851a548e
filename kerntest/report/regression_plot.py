"""Pictures of a regression: the fit over one column with its band, predictions against the truth, residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.decision_plot import evenly, write_title
from kerntest.report.heatmap import abridged
from kerntest.report.plot import COLOUR_X, COLOUR_Y, NEUTRAL, POINTS_DRAWN, literal
from kerntest.report.summaries.words import number, percent

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class FitPicture:
    """A regression over one column.

    Parameters
    ----------
    names : (str, str)
        Of the column and of the target.
    across, mean : ndarray, shape (g,)
        In the units of the table.
    low, high : ndarray, shape (g,), or None
    band : str
        What lies between them.
    rows, test_rows : ndarray, shape (n, 2)
        Column and target.
    remark : str
    """

    names: tuple[str, str]
    across: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    band: str
    rows: NDArray[np.float64]
    test_rows: NDArray[np.float64]
    remark: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class TruthPicture:
    """Predictions against what was there.

    Parameters
    ----------
    target : str
    truth, predicted : ndarray, shape (n,)
    reach : ndarray, shape (n,), or None
        Half the width of the intervals.
    interval : float
    rows : str
        Which rows were judged, such as "test rows".
    covered : float or None
        Share of the rows within their intervals.
    """

    target: str
    truth: NDArray[np.float64]
    predicted: NDArray[np.float64]
    reach: NDArray[np.float64] | None
    interval: float
    rows: str
    covered: float | None


@dataclass(frozen=True, slots=True, eq=False)
class ResidualPicture:
    """Residuals against predictions.

    Parameters
    ----------
    target : str
    predicted, residuals : ndarray, shape (n,)
    rows : str
        Which they are, such as "training rows, each left out".
    rmse : float
    """

    target: str
    predicted: NDArray[np.float64]
    residuals: NDArray[np.float64]
    rows: str
    rmse: float


def draw_fit(axis: Any, picture: FitPicture) -> None:
    """Draw the function, the band that holds new values, and the rows. At most 2,000 rows of either part are drawn."""
    if picture.low is not None and picture.high is not None:
        style = {"color": COLOUR_X, "alpha": 0.18, "linewidth": 0, "label": picture.band}
        axis.fill_between(picture.across, picture.low, picture.high, **style)
    shown = picture.rows[evenly(len(picture.rows), POINTS_DRAWN)]
    tests = picture.test_rows[evenly(len(picture.test_rows), POINTS_DRAWN)]
    size = _size(len(shown) + len(tests))
    axis.scatter(shown[:, 0], shown[:, 1], s=size, color=NEUTRAL, alpha=0.7, linewidth=0, label="training rows")
    if len(tests):
        style = {"facecolor": "none", "edgecolor": COLOUR_Y, "linewidth": 0.8}
        axis.scatter(tests[:, 0], tests[:, 1], s=1.3 * size, label="test rows", **style)
    axis.plot(picture.across, picture.mean, color=COLOUR_X, linewidth=1.8, label="fit")
    axis.set_xlim(picture.across[0], picture.across[-1])
    _open(axis, picture.names)
    axis.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none", fontsize=8)
    write_title(axis, "Fit and rows", picture.remark)


def draw_truth(axis: Any, picture: TruthPicture) -> None:
    """Draw predictions over the truth with their intervals, and the line where both agree."""
    shown = evenly(len(picture.truth), POINTS_DRAWN)
    truth, predicted = picture.truth[shown], picture.predicted[shown]
    low = float(min(truth.min(), predicted.min()))
    high = float(max(truth.max(), predicted.max()))
    margin = 0.04 * (high - low or 1.0)
    ends = [low - margin, high + margin]
    axis.plot(ends, ends, color=NEUTRAL, linewidth=0.9, linestyle="dotted")
    if picture.reach is not None and len(shown) <= POINTS_DRAWN // 4:
        axis.errorbar(
            truth, predicted, yerr=picture.reach[shown], fmt="none", ecolor=COLOUR_X, alpha=0.25, linewidth=0.8
        )
    axis.scatter(truth, predicted, s=_size(len(shown)), color=COLOUR_X, alpha=0.75, linewidth=0)
    axis.set_xlim(*ends)
    target = abridged(picture.target, 30)
    _open(axis, (target, f"predicted {target}"))
    remark = ""
    if picture.covered is not None:
        remark = f"{percent(picture.interval)} intervals hold {percent(picture.covered)}"
    write_title(axis, f"Predicted and true: {literal(picture.rows)}", remark)


def draw_residuals(axis: Any, picture: ResidualPicture) -> None:
    """Draw residuals over predictions, with lines at 0 and at the root mean square to both sides."""
    shown = evenly(len(picture.residuals), POINTS_DRAWN)
    axis.axhline(0.0, color=NEUTRAL, linewidth=0.9)
    for side in (-1.0, 1.0):
        axis.axhline(side * picture.rmse, color=NEUTRAL, linewidth=0.9, linestyle="dotted")
    axis.scatter(
        picture.predicted[shown],
        picture.residuals[shown],
        s=_size(len(shown)),
        color=COLOUR_X,
        alpha=0.75,
        linewidth=0,
    )
    largest = 1.08 * float(np.abs(picture.residuals[shown]).max(initial=picture.rmse)) or 1.0
    axis.set_ylim(-largest, largest)
    target = abridged(picture.target, 30)
    _open(axis, (f"predicted {target}", f"{target} - predicted"))
    write_title(axis, f"Residuals: {literal(picture.rows)}", f"dotted: RMSE {number(picture.rmse)}")


def _open(axis: Any, names: tuple[str, str]) -> None:
    """Name the axes, and leave the panel open above and to the right."""
    axis.set_xlabel(literal(abridged(names[0], 46)))
    axis.set_ylabel(literal(abridged(names[1], 46)))
    axis.spines[["top", "right"]].set_visible(False)


def _size(count: int) -> float:
    return float(np.clip(5000.0 / max(count, 1), 8.0, 24.0))
