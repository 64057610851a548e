"""All pairs of columns of a table, or all columns against one, each over the rows in which neither is missing.

Pairs with the same rows share the matrices of their columns, the transforms of these, and the relabellings.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import match_names
from kerntest.data.diagnostics import copies_warning, counters
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.messages import one_of
from kerntest.data.rows import arrange, check_usable, reason_to_leave_out, recoded
from kerntest.engines.engine import Engine
from kerntest.engines.plan import TABLE_BYTES, tell
from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError, telling
from kerntest.inference.exact import inputs_of, provenance_of, runs_of
from kerntest.inference.family import BandwidthOption, choose_kernel
from kerntest.inference.nulls.permutation import descending
from kerntest.inference.planning import ABOUT_COLUMNS, held_by_stacks
from kerntest.inference.screens.corrections import PROCEDURES, Correction, adjusted, step_down
from kerntest.inference.screens.correlations import correlations
from kerntest.inference.screens.many_pairs import screen
from kerntest.inference.sides import (
    FEWEST_ROWS,
    Groups,
    MissingPolicy,
    Options,
    Reading,
    Variable,
    complete_rows,
    read_one,
)
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.report.heatmap import screen_figure
from kerntest.report.plot import picture_bytes, picture_kind
from kerntest.report.results.independence_record import PairEffect, ScreenResult
from kerntest.report.summaries.independence_summary import screen_sentence
from kerntest.report.write import check_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Column, Table
    from kerntest.engines.engine import Progress
    from kerntest.inference.sides import Estimator
    from kerntest.kernels.base import Array, Kernel, Points

# From so many sets of rows, sets are tested side by side.
MANY_SETS = 4
# Steps of progress in one set.
STEPS = 1000
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
) -> ScreenResult:
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
    groups = Groups((table,), (chosen,), ())
    if missing == "error":
        complete_rows(groups, "error")
    usable, left_out = _usable(chosen, target)
    pairs = _pairs(usable, sides, target)
    if not pairs:
        raise DataError(
            f"fewer than two columns of {table.name} are left to test: {'; '.join(left_out.values()) or 'it has one'}",
            hint="a column must hold at least two different values, and not one per row",
            code="data.no_columns",
            where={"file": table.name},
        )
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
    tested = _Screen(usable, pairs, kernel, bandwidth, options, keep=target is not None).tested(engine, progress)
    effects = _corrected(tested, correction, alpha)
    made = [effect for effect in effects if effect.p_value is not None]
    rejected = sum(effect.reject for effect in made)
    floor = max((1.0 / effect.permutations for effect in made if effect.permutations), default=0.0)
    coarse = (
        f"permutation p-values cannot be below {floor:.3g}, too coarse to correct for {len(made):,} tests: the corrected "
        "p-values come from the moments of the permutation distribution"
    )
    result = ScreenResult(
        schema="kerntest.hsic.pairwise/1",
        command="hsic",
        target=target,
        estimator=estimator,
        null="moments",
        correction=correction,
        alpha=alpha,
        tests=len(made),
        rejected=rejected,
        reject=rejected > 0,
        decision=screen_sentence(len(made), rejected, alpha, correction, target),
        n=table.n_rows,
        columns=tuple(column.name for column in usable),
        pairs=effects,
        warnings=(
            *chosen.warnings,
            *left_out.values(),
            *_series(usable),
            *counters(usable),
            *copies_warning([column.values for column in usable]),
            *([coarse] if len(made) * floor > alpha and correction != "none" else []),
        ),
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


def _sides(
    table: Table, target: str | None, *, x: Patterns, y: Patterns, columns: Patterns, exclude: Patterns
) -> tuple[list[str], list[str]]:
    """Return the names on the two sides of the pairs; the same names twice for all pairs."""
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

    def side(patterns: Patterns) -> list[str]:
        named = match_names(patterns, table.names, table.name) if patterns else taking_part
        return [name for name in named if name not in excluded]

    left, right = side(x), side(y)
    if target is not None:
        left, right = [name for name in left if name != target], [target]
    if not left or not right:
        raise UsageError(
            f"no pair of columns of {table.name} is selected",
            hint="name more columns, and exclude fewer",
            code="usage.no_columns",
            where={"file": table.name},
        )
    return left, right


def _usable(table: Table, target: str | None) -> tuple[list[Column], dict[str, str]]:
    """Return the columns that can tell anything, and why each of the others cannot."""
    usable, left_out = [], {}
    for column in table.columns:
        present = column.take(~column.missing)
        reason: str | None = f"column {column.name!r} has missing values only and is left out"
        if len(present.values):
            reason = reason_to_leave_out(recoded(present))
        if reason is None:
            usable.append(column)
        elif column.name == target:
            raise DataError(
                f"the target cannot be tested: {reason}",
                hint="name another column as --target",
                code="data.target",
                where={"file": table.name, "column": column.name},
            )
        else:
            left_out[column.name] = reason
    return usable, left_out


def _pairs(columns: Sequence[Column], sides: tuple[list[str], list[str]], target: str | None) -> list[tuple[int, int]]:
    """Return every pair of a column of one side and another column of the other side once; a target comes second."""
    place = {column.name: k for k, column in enumerate(columns)}
    left, right = ([place[name] for name in side if name in place] for side in sides)
    return sorted({(a, b) if target is not None or a < b else (b, a) for a in left for b in right if a != b})


@dataclass(frozen=True, slots=True, eq=False)
class _Tested:
    """The record of a pair before any correction, its set of rows, and -log p under every relabelling where it is kept."""

    effect: PairEffect
    rows: int
    scores: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class _Screen:
    """Pairs of columns, how each is tested, and whether its relabelled statistics are kept."""

    columns: Sequence[Column]
    pairs: Sequence[tuple[int, int]]
    kernel: Kernel | str
    bandwidth: BandwidthOption
    options: Options
    keep: bool

    def tested(self, engine: Engine, progress: Progress | None = None) -> list[_Tested]:
        """Return every pair, tested over the rows in which neither column is missing; those of the same rows together."""
        present = [~column.missing for column in self.columns]
        together: dict[bytes, list[int]] = {}
        for index, (a, b) in enumerate(self.pairs):
            together.setdefault(np.packbits(present[a] & present[b]).tobytes(), []).append(index)
        sets = [(number, members) for number, members in enumerate(together.values())]

        def work(item: tuple[int, list[int]], within: Engine, told: Progress | None) -> list[_Tested]:
            number, members = item
            a, b = self.pairs[members[0]]
            rows = np.flatnonzero(present[a] & present[b])
            return self._over(rows, number, [self.pairs[index] for index in members], within, told)

        if len(sets) < MANY_SETS:
            found: Iterator[list[_Tested]] = (work(one, engine, _share(progress, one[0], len(sets))) for one in sets)
        else:
            # Many small pieces of work: side by side, each on one thread.
            found = engine.map(partial(work, within=Engine(1), told=None), sets, progress)
        results: dict[int, _Tested] = {}
        for (_, members), of_set in zip(sets, found, strict=True):
            results.update(zip(members, of_set, strict=True))
        return [results[index] for index in range(len(self.pairs))]

    def _over(
        self,
        rows: NDArray[np.intp],
        number: int,
        pairs: Sequence[tuple[int, int]],
        engine: Engine,
        progress: Progress | None,
    ) -> list[_Tested]:
        """Return pairs of columns tested over the same rows."""
        n = len(rows)
        taken = {
            place: recoded(self.columns[place].take(rows)) for place in sorted({k for pair in pairs for k in pair})
        }
        notes = {place: _untestable(column, n) for place, column in taken.items()}
        usable = [place for place in taken if notes[place] is None]
        sides = [self._side(taken[place], n) for place in usable]
        wanted = [(usable.index(a), usable.index(b)) for a, b in pairs if a in usable and b in usable]
        found = iter(screen(sides, wanted, self.options, engine, keep=self.keep, progress=progress) if wanted else ())
        tested = []
        for (a, b), beside in zip(pairs, _correlations(taken, pairs), strict=True):
            note = notes[a] or notes[b]
            one = next(found) if note is None else None
            effect = PairEffect(
                taken[a].name, taken[b].name, n, note=note, pearson=beside[0], spearman=beside[1], kendall=beside[2]
            )
            if one is not None:
                names = [str(sides[usable.index(place)][1]) for place in (a, b)]
                effect = replace(effect, kernel_x=names[0], kernel_y=names[1])
            if one is not None and one.p_value is None:
                # What no relabelling changes is rounding.
                effect = replace(effect, note="no pairing of the rows changes the statistic")
            elif one is not None:
                effect = replace(
                    effect,
                    hsic_unbiased=one.effect.unbiased,
                    hsic_biased=one.effect.biased,
                    effect_size=one.effect.effect_size,
                    p_value=one.p_value,
                    p_permutation=one.p_permutation,
                    permutations=one.permutations,
                )
            tested.append(_Tested(effect, number, None if one is None else one.scores))
        if progress is not None:
            progress(1, 1)
        return tested

    def _side(self, column: Column, n: int) -> tuple[Points, Kernel]:
        """Return the rows of one column, scaled, and its kernel; that of the numbers is named by the user."""
        variable = Variable.of(arrange([column], n), "standardize")
        family = choose_kernel(
            self.kernel if variable.numeric_names else "auto",
            self.bandwidth,
            numeric_names=variable.numeric_names,
            category_names=variable.category_names,
            chooser=BandwidthChooser(variable.points, self.options.seed),
        )
        return variable.points, family.kernels[0]


def _share(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Return `progress` as seen by one of several sets of rows."""
    if progress is None:
        return None
    return lambda step, steps: progress(done * STEPS + step * STEPS // steps, total * STEPS)


def _untestable(column: Column, n: int) -> str | None:
    """Return why a column cannot be tested over the rows of a pair; None if it can."""
    if n < FEWEST_ROWS:
        return f"{n} {'row' if n == 1 else 'rows'} without missing values; the test needs at least {FEWEST_ROWS}"
    if column.values.min() == column.values.max():
        return f"{column.name!r} has one value in the rows without missing values"
    return reason_to_leave_out(column)


def _correlations(taken: dict[int, Column], pairs: Sequence[tuple[int, int]]) -> list[tuple[float | None, ...]]:
    """Return Pearson, Spearman and Kendall of each pair; None where a column is text or has one value."""
    numeric = [place for place, column in taken.items() if column.kind != "text"]
    numbers = [index for index, pair in enumerate(pairs) if set(pair) <= set(numeric)]
    found = np.full((3, len(pairs)), np.nan)
    if numbers:
        values = np.column_stack([taken[place].values.astype(np.float64) for place in numeric])
        within = [(numeric.index(pairs[index][0]), numeric.index(pairs[index][1])) for index in numbers]
        found[:, numbers] = correlations(values, within)
    return [tuple(None if np.isnan(one) else one for one in three) for three in found.T.tolist()]


def _corrected(tested: Sequence[_Tested], correction: Correction, alpha: float) -> tuple[PairEffect, ...]:
    """Return the records by p-value, corrected for all that were tested.

    The step-down maximum takes scores over shared relabellings: there is none where missing values give some pairs other
    rows.
    """
    raw = np.array([np.nan if one.effect.p_value is None else one.effect.p_value for one in tested])
    shared = [one for one in tested if one.scores is not None]
    exact: dict[str, float] = {}
    if len({one.rows for one in shared}) == 1:
        p = step_down(np.stack([one.scores for one in shared if one.scores is not None]))
        exact = dict(zip((one.effect.x for one in shared), p.tolist(), strict=True))
    effects = [
        one.effect
        if one.effect.p_value is None
        else replace(one.effect, p_adjusted=p, p_step_down=exact.get(one.effect.x), reject=p <= alpha)
        for one, p in zip(tested, adjusted(raw, correction).tolist(), strict=True)
    ]
    order = _ranking(raw, np.array([effect.effect_size or 0.0 for effect in effects]))
    return tuple(effects[place] for place in order)


def _ranking(p: Array, effect: Array) -> NDArray[np.intp]:
    """Return the places of the pairs by p-value, then effect size; those without a p-value last, equal ones as they come."""
    order = descending(effect, SAME_RANK)
    logs = np.where(np.isnan(p), -1.0, -np.log(np.maximum(p, np.finfo(np.float64).tiny)))[order]
    return order[descending(logs, SAME_RANK * np.maximum(1.0, logs))]


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
