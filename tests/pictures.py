"""Pictures as calls draw them, and what their panels show."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

HOSTILE = ["price $ per $", "two\nlines", "x" * 300, "$\\frac{1}{0$", "a\tb\x1b[31m", "\\$", "_^{}", "温度 😀"]


def drawn_by(call, *data, kind="png", render=False, **options):
    """Return the result of a call and the figure that it drew, which is laid out only if it is to be rendered."""
    figures = []

    def keep(figure, stream, **_options):
        figures.append(figure)
        stream.write(b"a picture")
        if render:
            figure.draw_without_rendering()

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", keep)
        result = call(*data, plot=Path(folder) / f"drawn.{kind}", **options)
        assert (Path(folder) / f"drawn.{kind}").read_bytes() == b"a picture"
    return result, figures[0]


def panels(figure):
    """Return the panels of a figure: a second axis over the same place, or a colour bar, has no title."""
    return [axis for axis in figure.axes if axis.get_title()]


def panel(figure, start):
    (found,) = [axis for axis in panels(figure) if axis.get_title().startswith(start)]
    return found


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def tick_labels(axis, which):
    return [label.get_text() for label in getattr(axis, f"get_{which}ticklabels")()]


def layers(axis, kind):
    return [layer for layer in axis.collections if type(layer).__name__ == kind]


def scatters(axis):
    """Return the points, faces and edges of every scatter with points."""
    found = [layer for layer in layers(axis, "PathCollection") if len(layer.get_offsets())]
    return [(np.asarray(one.get_offsets()), one.get_facecolor(), one.get_edgecolor()) for one in found]


def points(axis):
    """Return all points of all scatters in ascending order."""
    return sorted(np.concatenate([found for found, _, _ in scatters(axis)]).tolist())


def texts(axis):
    """Return what stands in the cells of a map, by their row and column."""
    return {text.get_position()[::-1]: text.get_text() for text in axis.texts}
