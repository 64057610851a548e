"""Pictures of a two-sample test, and what pictures of all tests share. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import MissingExtraError, UsageError
from kerntest.report.summaries.words import number, percent, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.report.results.record import ColumnEffect

# Colours that people with any colour vision tell apart (Okabe and Ito).
COLOUR_X, COLOUR_Y, NEUTRAL = "#0072B2", "#D55E00", "#7A7A7A"
FORMATS = ("png", "svg", "pdf")
COLUMNS_DRAWN = 20
POINTS_DRAWN = 2000
NAME_DRAWN = 28
CAPTION_PER_INCH = 13


@dataclass(frozen=True, slots=True, eq=False)
class NullPicture:
    """The null distribution: relabelled statistics, or (for a null without them) points of its density.

    Parameters
    ----------
    values : ndarray, shape (R,)
        Relabelled statistics; empty where there are none.
    curve : (ndarray, ndarray) or None
        Abscissae and density of a curve.
    observed, p_value : float
    statistic : str
        Its name.
    title : str
        What the null distribution supposes.
    judged : str
        Whose p-value it is where the statistic is that of one kernel of several: " of all 15".
    """

    values: NDArray[np.float64]
    curve: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    observed: float
    p_value: float
    statistic: str
    title: str = "If there were no difference"
    judged: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class WitnessPicture:
    """The witness function over one or two columns, or its values at the rows where there are more.

    Parameters
    ----------
    columns : tuple of str
        One name, two names, or none.
    grid : tuple of ndarray
        Abscissae of each column, in its own units.
    witness : ndarray
        Over the grid, shape (g,) or (h, g); empty where there is no grid.
    rows_x, rows_y : ndarray, shape (n_x, d) or (n_y, d)
        The rows in these columns; with no columns, their witness values, d = 1.
    names : (str, str)
        What the samples are called.
    """

    columns: tuple[str, ...]
    grid: tuple[NDArray[np.float64], ...]
    witness: NDArray[np.float64]
    rows_x: NDArray[np.float64]
    rows_y: NDArray[np.float64]
    names: tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPicture:
    """What both samples hold in one column.

    Parameters
    ----------
    effect : ColumnEffect
    x, y : ndarray
        Numbers or days, but for the one that many rows hold; or for each of `values` its share of the rows.
    values : tuple of str
        Of a column of categories; empty otherwise.
    dates : bool
        Whether the numbers are days since 1970-01-01.
    """

    effect: ColumnEffect
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    values: tuple[str, ...] = ()
    dates: bool = False


def figure(
    null: NullPicture,
    witness: WitnessPicture,
    columns: tuple[ColumnEffect, ...],
    drawn: Sequence[ColumnPicture],
    *,
    title: str,
    caption: str,
) -> Any:
    """Return a matplotlib figure: null distribution and witness function; of an explanation the effects, and some columns.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    matplotlib_figure = figure_class()
    panels = 3 if columns else 2
    rows = -(-len(drawn) // panels)
    heights = [4.2] + [2.9] * rows
    made = matplotlib_figure(figsize=(5.2 * panels, sum(heights)), layout="constrained")
    axes = made.subplots(1 + rows, panels, height_ratios=heights, squeeze=False).ravel()
    draw_null(axes[0], null)
    _draw_witness(made, axes[1], witness)
    if columns:
        _draw_effects(axes[2], columns)
    for axis, column in zip(axes[panels:], drawn, strict=False):
        _draw_column(axis, column, _file_names(witness.names))
    for axis in axes[panels + len(drawn) :]:
        axis.remove()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    made.suptitle(literal(title), fontsize=11, wrap=True)
    draw_caption(made, caption)
    return made


def draw_caption(made: Any, text: str) -> None:
    """Write a line below all panels, cut to their width."""
    made.supxlabel(literal(_shortened(text, int(made.get_figwidth() * CAPTION_PER_INCH))), fontsize=9)


def picture_bytes(made: Any, kind: str) -> bytes:
    """Return a figure as "png", "svg" or "pdf", without the time of drawing and with names that stay."""
    from matplotlib import rc_context  # noqa: PLC0415 - only to draw

    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    stream = io.BytesIO()
    with rc_context({"svg.hashsalt": "kerntest"}), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box: that is no news for standard error.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        made.savefig(stream, format=kind, dpi=150, metadata=dates)
    return stream.getvalue()


def picture_kind(path: str | PathLike[str]) -> str:
    """Return the kind of picture that a file name asks for, before anything is computed.

    Raises
    ------
    UsageError
        If it is none that can be drawn.
    MissingExtraError
        If matplotlib is not installed.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise UsageError(
            f"a picture cannot be drawn into {os.fspath(path)}",
            hint="end its name in .png, .svg or .pdf",
            code="usage.picture",
            where={"file": os.fspath(path)},
        )
    figure_class()
    return kind


def figure_class() -> Any:
    """Return matplotlib's Figure, which draws without a window or a global state.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError(
            "pictures need matplotlib, which is not installed", hint="pip install 'kerntest[plot]'"
        ) from error
    return Figure


def literal(text: str) -> str:
    """Return text that matplotlib shows as it is: a dollar would start a formula."""
    return visible(text).replace("$", r"\$")


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _file_names(names: tuple[str, str]) -> list[str]:
    """Return names of samples for a legend: of a long path the end, with X or Y where both have the same one."""
    cut = [name if len(name) <= NAME_DRAWN else f"…{name[1 - NAME_DRAWN :]}" for name in names]
    return cut if cut[0] != cut[1] else [f"{letter}: {name}" for letter, name in zip("XY", cut, strict=True)]


def bins(rows: int) -> int:
    """Return into how many bins a histogram of so many rows is divided."""
    return int(np.clip(1.3 * np.sqrt(rows), 10, 45))


def bin_edges(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the edges of `count` bins over values, of a width even where all values are equal but for rounding."""
    low, high = float(values.min()), float(values.max())
    narrowest = 1e-6 * max(abs(low), abs(high)) or 1e-6
    if high - low < narrowest:
        low, high = (low + high - narrowest) / 2, (low + high + narrowest) / 2
    return np.linspace(low, high, count + 1)


def draw_null(axis: Any, null: NullPicture) -> None:
    """Draw the null distribution with the observed statistic."""
    if len(null.values):
        edges = bin_edges(null.values, int(np.clip(np.sqrt(len(null.values)), 20, 80)))
        label = f"{len(null.values):,} relabellings"
        axis.hist(null.values, bins=edges, color=NEUTRAL, alpha=0.55, density=True, label=label)
    if null.curve is not None:
        axis.fill_between(*null.curve, color=NEUTRAL, alpha=0.45, linewidth=0, label="null distribution")
    axis.axvline(null.observed, color=COLOUR_Y, linewidth=2, label=f"observed, p = {number(null.p_value)}{null.judged}")
    axis.set_xlabel(null.statistic)
    axis.set_ylabel("density")
    axis.set_title(null.title, fontsize=10)
    axis.margins(x=0.06)
    axis.set_ylim(bottom=0)
    axis.locator_params(axis="x", nbins=5)
    axis.legend(framealpha=0.85, edgecolor="none", fontsize=8)


def _draw_witness(made: Any, axis: Any, witness: WitnessPicture) -> None:
    names = [literal(name) for name in _file_names(witness.names)]
    if len(witness.columns) == 1:
        _draw_line(axis, witness, names)
    elif len(witness.columns) == 2:
        _draw_map(made, axis, witness, names)
    else:
        both = np.concatenate([witness.rows_x[:, 0], witness.rows_y[:, 0]])
        edges = np.linspace(both.min(), both.max(), bins(len(both)))
        for rows, colour, name in zip((witness.rows_x, witness.rows_y), (COLOUR_X, COLOUR_Y), names, strict=True):
            axis.hist(rows[:, 0], bins=edges, color=colour, alpha=0.5, density=True, label=name)
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set_xlabel("witness function at the rows")
        axis.set_ylabel("density")
        axis.set_title("Left: more typical of Y. Right: more typical of X", fontsize=10)
        axis.legend(frameon=False, fontsize=8)


def _draw_line(axis: Any, witness: WitnessPicture, names: list[str]) -> None:
    (grid,) = witness.grid
    edges = np.linspace(grid[0], grid[-1], bins(len(witness.rows_x) + len(witness.rows_y)))
    for rows, colour, name in zip((witness.rows_x, witness.rows_y), (COLOUR_X, COLOUR_Y), names, strict=True):
        axis.hist(rows[:, 0], bins=edges, color=colour, alpha=0.35, density=True, label=name)
    axis.set_xlabel(literal(_shortened(witness.columns[0], 40)))
    axis.set_ylabel("density of the rows")
    above = axis.twinx()
    above.spines["top"].set_visible(False)
    (line,) = above.plot(grid, witness.witness, color="black", linewidth=1.6, label="witness function")
    above.axhline(0.0, color="black", linewidth=0.6, linestyle=":")
    above.set_ylabel("witness function")
    # Zero of the witness function at mid height, so that its sign can be read.
    reach = 1.15 * float(np.abs(witness.witness).max()) or 1.0
    above.set_ylim(-reach, reach)
    handles, _ = axis.get_legend_handles_labels()
    axis.legend(handles=[*handles, line], frameon=False, fontsize=8)
    axis.set_title("Above 0: X is denser. Below: Y is", fontsize=10)


def _draw_map(made: Any, axis: Any, witness: WitnessPicture, names: list[str]) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - only to draw

    reach = float(np.abs(witness.witness).max()) or 1.0
    levels = np.linspace(-reach, reach, 22)
    drawn = axis.contourf(*witness.grid, witness.witness, levels=levels, cmap="RdBu", alpha=0.75)
    axis.contour(*witness.grid, witness.witness, levels=[0.0], colors="black", linewidths=0.8)
    samples = zip((witness.rows_x, witness.rows_y), ("o", "^"), (COLOUR_X, COLOUR_Y), names, strict=True)
    for rows, marker, colour, name in samples:
        step = -(-len(rows) // POINTS_DRAWN)
        kept = rows[::step]
        axis.scatter(
            kept[:, 0], kept[:, 1], s=16, marker=marker, color=colour, edgecolor="white", linewidth=0.4, label=name
        )
    axis.set_xlabel(literal(_shortened(witness.columns[0], 40)))
    axis.set_ylabel(literal(_shortened(witness.columns[1], 40)))
    bar = made.colorbar(drawn, ax=axis)
    bar.locator = MaxNLocator(6)
    bar.update_ticks()
    bar.set_label("witness function")
    axis.set_title("Above 0: X is denser. Below: Y is", fontsize=10)
    axis.legend(frameon=True, framealpha=0.85, fontsize=8)


def _draw_effects(axis: Any, columns: tuple[ColumnEffect, ...]) -> None:
    shown = columns[:COLUMNS_DRAWN][::-1]
    sizes = [column.effect_size for column in shown]
    colours = [COLOUR_Y if column.p_adjusted <= 0.05 else NEUTRAL for column in shown]
    # By place, not by name: shortened names may be equal.
    axis.barh(range(len(shown)), sizes, color=colours)
    axis.set_yticks(range(len(shown)), [literal(_shortened(column.column, 24)) for column in shown])
    for place, column in enumerate(shown):
        axis.annotate(
            f"p = {number(column.p_adjusted, 2)}",
            (sizes[place], place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axis.set_xlim(0.0, 1.3 * max(*sizes, 0.05))
    axis.set_xlabel("effect size (coloured: corrected p <= 0.05)")
    more = len(columns) - len(shown)
    axis.set_title("Each column alone" + (f" (first {len(shown)} of {len(columns)})" if more else ""), fontsize=10)


def _draw_column(axis: Any, column: ColumnPicture, names: list[str]) -> None:
    """Draw what both samples hold in a column: shares of their rows."""
    effect = column.effect
    sides = list(zip((column.x, column.y), (COLOUR_X, COLOUR_Y), map(literal, names), strict=True))
    if column.values:
        for (shares, colour, name), offset in zip(sides, (-0.2, 0.2), strict=True):
            axis.bar(np.arange(len(shares)) + offset, shares, width=0.4, color=colour, label=name)
        axis.set_xticks(range(len(column.values)), [literal(_shortened(value, 10)) for value in column.values])
    elif len(both := np.concatenate([column.x, column.y])):
        # Far outliers would squeeze everything else: drawn is where 99 % of the rows lie.
        edges = bin_edges(np.clip(both, *np.quantile(both, [0.005, 0.995])), bins(len(both)))
        for (values, colour, name), held in zip(sides, (effect.x, effect.y), strict=True):
            share = 1.0 if held is None or held.share is None else 1.0 - held.share
            weights = np.full(len(values), share / max(len(values), 1))
            axis.hist(values, edges, weights=weights, color=colour, alpha=0.5, label=name)
        if column.dates:
            from matplotlib import dates  # noqa: PLC0415 - only to draw

            locator: Any = dates.AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]  # no types there
            axis.xaxis.set_major_locator(locator)
            axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # no types there
        else:
            axis.locator_params(axis="x", nbins=6)
    if not column.values and effect.x is not None and effect.y is not None and effect.x.value is not None:
        x, y = (percent(one.share or 0.0) for one in (effect.x, effect.y))
        axis.set_xlabel(literal(f"not drawn: {effect.x.value} in {x} and {y} of the rows"), fontsize=9)
    axis.set_title(
        f"{literal(_shortened(effect.column, 40))}: effect {number(effect.effect_size, 2)}, p = "
        f"{number(effect.p_adjusted, 2)}",
        fontsize=10,
    )
    axis.set_ylabel("share of the rows")
    axis.margins(y=0.25)
    axis.legend(frameon=False, fontsize=8)
