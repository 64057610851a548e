"""A picture of the scores of an outlier detector: how rows spread, and which fall below 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.decision_plot import write_title
from kerntest.report.plot import COLOUR_X, COLOUR_Y
from kerntest.report.summaries.words import counted, percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = 40


@dataclass(frozen=True, slots=True, eq=False)
class ScorePicture:
    """Scores of rows; those below 0 are outliers.

    Parameters
    ----------
    train, test : ndarray, shape (n,) and (m,)
        m may be 0.
    """

    train: NDArray[np.float64]
    test: NDArray[np.float64]


def draw_scores(axis: Any, picture: ScorePicture) -> None:
    """Draw the share of training and of test rows by their score, and the line below which rows are outliers."""
    every = np.concatenate([picture.train, picture.test])
    edges = np.histogram_bin_edges(every, bins=BINS)
    for scores, name, colour in ((picture.train, "training row", COLOUR_X), (picture.test, "test row", COLOUR_Y)):
        if not len(scores):
            continue
        outside = percent(float(np.mean(scores < 0)))
        axis.hist(
            scores,
            bins=edges,
            weights=np.full(len(scores), 1.0 / len(scores)),
            color=colour,
            alpha=0.45,
            label=f"{counted(len(scores), name)}: {outside} below 0",
        )
    axis.axvline(0.0, color="black", linewidth=1.1)
    axis.set_xlabel("score (decision function)")
    axis.set_ylabel("share of the rows")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="best", frameon=True, framealpha=0.85, edgecolor="none", fontsize=8)
    write_title(axis, "Scores of the rows", "below 0: outliers")
