"""All pairs of columns of a table, or all columns against one, from file to record."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import match_names
from kerntest.data.copies import copies_warning
from kerntest.data.diagnostics import counters
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.messages import one_of
from kerntest.data.rows import check_usable, reason_to_leave_out, recoded
from kerntest.engines.plan import TABLE_BYTES, tell
from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError, telling
from kerntest.inference.exact import inputs_of, provenance_of, runs_of
from kerntest.inference.nulls.permutation import descending, scores
from kerntest.inference.planning import ABOUT_COLUMNS, held_by_stacks
from kerntest.inference.screen_pairs import TestedPair, tested_pairs
from kerntest.inference.screening import ScreenOptions
from kerntest.inference.screens.corrections import PROCEDURES, Correction, adjusted, step_down
from kerntest.inference.sides import Groups, MissingPolicy, Options, Reading, complete_rows, read_one
from kerntest.report import independence_record
from kerntest.report.heatmap import pairs_figure, ranking_figure
from kerntest.report.independence_record import PairEffect
from kerntest.report.independence_summary import screen_sentence
from kerntest.report.plot import picture_bytes, picture_kind
from kerntest.report.write import check_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Column, Table
    from kerntest.engines.base import Progress
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Estimator
    from kerntest.kernels.base import Array, Kernel

ScreenResult = independence_record.ScreenResult
# Effect sizes, and logarithms of p-values, that differ by less come from columns that are equal but for rounding.
SAME_RANK = 1e-8


@telling
@np.errstate(over="ignore", invalid="ignore")
def hsic_pairs(
    data: Any,
    *,
    target: str | None = None,
    x_columns: str | Sequence[str] | None = None,
    y_columns: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    kernel: Kernel | str = "gaussian",
    bandwidth: BandwidthOption = "median",
    estimator: Estimator = "unbiased",
    correction: Correction = "holm",
    permutations: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    plot: str | PathLike[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "drop",
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> independence_record.ScreenResult:
    """Test every pair of columns of a table for independence, or every column against a target.

    Parameters
    ----------
    data : path, "-", ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
    target : str, optional
        Test all other columns against this one.
    x_columns, y_columns : str or sequence of str, optional
        Test only the pairs of one of these columns and one of those.
    columns, exclude : str or sequence of str, optional
        Columns that take part (the target besides), or do not.
    kernel : Kernel or str
        For every column of numbers; text and boolean columns have the delta kernel.
    bandwidth : "median" or float
        Of every column, over the rows of each pair.
    estimator : "unbiased" or "biased"
        Which estimate of HSIC is tested.
    correction : "holm", "bh" or "none"
        How p-values are corrected for the number of pairs: Holm (the chance of any false finding is at most alpha) or
        Benjamini-Hochberg (the share of false findings is).
    permutations : int
        Relabellings at least, for the permutation p-value beside it.
    alpha : float
    seed : int
        Of the random order of the rows.
    plot : path, optional
        PNG, SVG or PDF file for a heat map of all pairs, or a ranking for a target. Needs matplotlib.
    categorical : str or sequence of str
        Numeric columns to take as categories.
    missing : "drop" or "error"
        Each pair uses the rows in which both columns are present; or missing values are refused.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    ScreenResult
        Pairs by p-value. The p-value that is corrected comes from the exact mean, variance and skewness of the
        permutation distribution: the smallest permutation p-value, 1 / permutations, is too coarse for many pairs.

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError
        If an option makes no sense or names a column that is not there.
    DataError
        If the table cannot be read, or fewer than two columns can be tested.

    Notes
    -----
    Cost: O(P n^2 log n + pairs n^2 / 4) time for P columns without missing values; pairs with missing values of their
    own cost O(n^2 log n) each. O(n P) memory.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> found = hsic_pairs(np.column_stack([x, x**2 + rng.normal(size=200), rng.normal(size=200)]))
    >>> [(pair.x, pair.y, pair.reject) for pair in found.pairs][0]
    ('x1', 'x2', True)
    """
    started = time.perf_counter()
    options = Options(estimator, "permutation", permutations, alpha, "standardize", seed)
    one_of("correction", correction, tuple(PROCEDURES))
    one_of("missing", missing, ("error", "drop"))
    drawn_as = None if plot is None else picture_kind(plot)
    if plot is not None:
        check_writable(os.fspath(plot))
    engine = engine_of(threads)
    table = read_one(data, Reading(categorical=categorical, csv=CsvOptions.of(**csv)))
    sides = _sides(table, target, x=x_columns, y=y_columns, columns=columns, exclude=exclude)
    chosen = check_usable(table.select([name for name in table.names if name in {*sides[0], *sides[1]}]))
    if missing == "error":
        complete_rows(Groups((table,), (chosen,), ()), "error")
    usable, left_out = _usable(chosen, target)
    pairs = _pairs(usable, sides, target)
    if not pairs:
        raise DataError(
            f"fewer than two columns of {table.name} are left to test: {'; '.join(left_out.values()) or 'it has one'}",
            hint="a column must hold at least two different values, and not one per row",
            code="data.no_columns",
            where={"file": table.name},
        )
    how = ScreenOptions(kernel, bandwidth, estimator, permutations, seed)
    entries = float(table.n_rows) ** 2
    tell(
        "hsic",
        table.n_rows,
        len(usable),
        steps=(
            f"{len(pairs):,} pairs of {len(usable):,} columns, each under {permutations:,} cyclic relabellings or more",
        ),
        # One statistic for each relabelling of each pair, where they are kept, and the blocks of lines under way.
        held=TABLE_BYTES * table.n_rows * len(usable)
        + 8.0 * table.n_rows * (len(pairs) if target is not None else 64)
        # A target has one matrix on its side: no stack.
        + held_by_stacks(table.n_rows, 2 if target is not None else len(usable), engine),
        operations={
            **dict.fromkeys(("distance", "kernel", "lag"), entries * len(usable)),
            "pair": 2.0 * entries * len(pairs),
        },
        engine=engine,
        refusal=(f"this test of {table.n_rows:,} rows takes", ABOUT_COLUMNS),
    )
    tested = tested_pairs(usable, pairs, how, engine, keep=target is not None, progress=progress)
    effects, count, coarse = _effects(tested, correction, alpha, target=target)
    rejected = sum(effect.reject for effect in effects)
    copies = copies_warning([column.values for column in usable])
    result = ScreenResult(
        schema="kerntest.hsic.pairwise/1",
        command="hsic",
        target=target,
        estimator=estimator,
        null="moments",
        correction=correction,
        alpha=alpha,
        tests=count,
        rejected=rejected,
        reject=rejected > 0,
        decision=screen_sentence(count, rejected, alpha, correction, target),
        n=table.n_rows,
        columns=tuple(column.name for column in usable),
        pairs=effects,
        warnings=(*chosen.warnings, *left_out.values(), *_series(usable), *counters(usable), *copies, *coarse),
        provenance=provenance_of(
            options,
            inputs_of([table], [table.n_rows]),
            asked=(kernel,),
            rule=str(bandwidth),
            engine=engine,
            started=started,
        ),
        columns_left_out=tuple(left_out),
    )
    if plot is not None and drawn_as is not None:
        write_file(os.fspath(plot), picture_bytes(screen_figure(result), drawn_as))
    return result


def screen_figure(result: independence_record.ScreenResult) -> Any:
    """Return a matplotlib figure of a screen: a heat map, or a ranking where there is a target."""
    title = result.decision
    if result.target is not None:
        names = [pair.x for pair in result.pairs]
        effect = np.array([np.nan if pair.effect_size is None else pair.effect_size for pair in result.pairs])
        p = np.array([np.nan if pair.p_adjusted is None else pair.p_adjusted for pair in result.pairs])
        return ranking_figure(names, effect, p, result.alpha, title)
    place = {name: k for k, name in enumerate(result.columns)}
    effect, p = (np.full((len(place), len(place)), np.nan) for _ in range(2))
    for pair in result.pairs:
        if pair.effect_size is not None and pair.p_adjusted is not None:
            for i, j in ((place[pair.x], place[pair.y]), (place[pair.y], place[pair.x])):
                effect[i, j], p[i, j] = pair.effect_size, pair.p_adjusted
    return pairs_figure(list(place), effect, p, result.alpha, title)


def _sides(
    table: Table, target: str | None, *, x: Patterns, y: Patterns, columns: Patterns, exclude: Patterns
) -> tuple[list[str], list[str]]:
    """Return the names on the two sides of the pairs; the same names twice for all pairs.

    Raises
    ------
    UsageError
        If a name is not there, or a side is empty.
    """
    if target is not None and target not in table.names:
        match_names([target], table.names, table.name)
    excluded = set(match_names(exclude, table.names, table.name))
    if target in excluded:
        raise UsageError(
            f"column {target!r} is both the target and excluded",
            hint="leave it out of --exclude",
            code="usage.column_twice",
            where={"file": table.name, "column": str(target)},
        )
    taking_part = match_names(columns, table.names, table.name) if columns else list(table.names)
    taking_part = [name for name in taking_part if name not in excluded]

    def side(patterns: Patterns) -> list[str]:
        named = match_names(patterns, table.names, table.name) if patterns else taking_part
        return [name for name in named if name not in excluded]

    left, right = side(x), [target] if target is not None else side(y)
    if target is not None:
        left = [name for name in left if name != target]
    if not left or not right:
        raise UsageError(
            f"no pair of columns of {table.name} is selected",
            hint="name more columns, and exclude fewer",
            code="usage.no_columns",
            where={"file": table.name},
        )
    return left, right


def _usable(table: Table, target: str | None) -> tuple[list[Column], dict[str, str]]:
    """Return the columns that can tell anything, and why each of the others cannot.

    Raises
    ------
    DataError
        If the target is one of the others.
    """
    usable, left_out = [], {}
    for column in table.columns:
        present = column.take(~column.missing)
        if not len(present.values):
            reason: str | None = f"column {column.name!r} has missing values only and is left out"
        else:
            reason = reason_to_leave_out(recoded(present))
        if reason is None:
            usable.append(column)
            continue
        if column.name == target:
            raise DataError(
                f"the target cannot be tested: {reason}",
                hint="name another column as --target",
                code="data.target",
                where={"file": table.name, "column": column.name},
            )
        left_out[column.name] = reason
    return usable, left_out


def _pairs(columns: Sequence[Column], sides: tuple[list[str], list[str]], target: str | None) -> list[tuple[int, int]]:
    """Return every pair of a column of one side and another column of the other side once; a target comes second."""
    place = {column.name: k for k, column in enumerate(columns)}
    left, right = ([place[name] for name in side if name in place] for side in sides)
    wanted = {(a, b) if target is not None or a < b else (b, a) for a in left for b in right if a != b}
    return sorted(wanted)


def _effects(
    tested: Sequence[TestedPair], correction: Correction, alpha: float, *, target: str | None
) -> tuple[tuple[PairEffect, ...], int, tuple[str, ...]]:
    """Return the records of all pairs by p-value, how many were tested, and a warning about coarse p-values."""
    raw = np.array([np.nan if one.found is None or one.found.p_value is None else one.found.p_value for one in tested])
    corrected = adjusted(raw, correction)
    exact = _stepped_down(tested) if target is not None else [None] * len(tested)
    effects = []
    for one, p, p_adjusted, p_exact in zip(tested, raw, corrected, exact, strict=True):
        found = one.found
        if found is not None and found.p_value is None:
            # What no relabelling changes is rounding.
            found = None
        known = found is not None
        effects.append(
            PairEffect(
                x=one.names[0],
                y=one.names[1],
                n=one.n,
                hsic_unbiased=found.unbiased if found else None,
                hsic_biased=found.biased if found else None,
                effect_size=found.effect_size if found else None,
                p_value=float(p) if known else None,
                p_adjusted=float(p_adjusted) if known else None,
                p_permutation=found.p_permutation if found else None,
                permutations=found.permutations if found else None,
                p_step_down=p_exact if known else None,
                reject=known and float(p_adjusted) <= alpha,
                pearson=one.correlations[0],
                spearman=one.correlations[1],
                kendall=one.correlations[2],
                kernel_x=str(one.kernels[0]) if one.kernels else None,
                kernel_y=str(one.kernels[1]) if one.kernels else None,
                note=one.note,
            )
        )
    order = _ranking(raw, np.array([effect.effect_size or 0.0 for effect in effects]))
    count = int(np.isfinite(raw).sum())
    floors = [1.0 / one.found.permutations for one in tested if one.found is not None]
    coarse: tuple[str, ...] = ()
    if floors and count * max(floors) > alpha and correction != "none":
        warning = (
            f"permutation p-values cannot be below {max(floors):.3g}, too coarse to correct for {count:,} tests: the "
            "corrected p-values come from the moments of the permutation distribution"
        )
        coarse = (warning,)
    return tuple(effects[place] for place in order), count, coarse


def _ranking(p: Array, effect: Array) -> NDArray[np.intp]:
    """Return the places of the pairs by p-value, then effect size; those without a p-value last, equal ones as they come."""
    order = descending(effect, SAME_RANK)
    logs = np.where(np.isnan(p), -1.0, -np.log(np.maximum(p, np.finfo(np.float64).tiny)))[order]
    return order[descending(logs, SAME_RANK * np.maximum(1.0, logs))]


def _stepped_down(tested: Sequence[TestedPair]) -> list[float | None]:
    """Return p-values corrected by the step-down maximum over the shared relabellings of the target.

    None where missing values give some columns other rows, and with them other relabellings.
    """
    result: list[float | None] = [None] * len(tested)
    shared = [k for k, one in enumerate(tested) if one.found is not None and one.found.relabelled is not None]
    if not shared or len({tested[k].rows for k in shared}) > 1:
        return result
    found = [one.found for one in tested if one.found is not None and one.found.relabelled is not None]
    values = np.stack([one.relabelled for one in found if one.relabelled is not None])
    scored = scores(values, np.array([one.tolerance for one in found]))[0]
    for k, p in zip(shared, step_down(scored), strict=True):
        result[k] = float(p)
    return result


def _series(columns: Sequence[Column]) -> list[str]:
    """Return a warning where several columns run from row to row, as series in time do."""
    running = runs_of(columns)
    if len(running) < 2:
        return []
    named = ", ".join(repr(name) for name in running[:4]) + (
        f" and {len(running) - 4} more" if len(running) > 4 else ""
    )
    warning = (
        f"neighbouring rows are alike in {named}: if the rows are a series in time, p-values of their pairs are far too "
        "small; --time-series tests two series"
    )
    return [warning]
