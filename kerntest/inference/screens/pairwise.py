"""All pairs of columns of a table, or all columns against one, each over the rows in which neither is missing.

Pairs with the same rows share the matrices of their columns, the transforms of these, and the relabellings. Beside the
kernel tests stand correlations, which see straight lines (Pearson) and monotone relations (Spearman, Kendall): where a
test finds a dependence and they are near 0, it is of another kind.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from importlib import import_module
from itertools import chain, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.data.columns import arrange, check_usable, is_all, laid_below, reason_to_leave_out, told_of_left_out
from kerntest.data.diagnostics.copies import copies_warning, unused
from kerntest.data.diagnostics.dependent_rows import pair_warnings
from kerntest.data.facts import lone_values
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.gaps import apply_missing
from kerntest.data.missing import MissingPolicy, check_policy, filled, fillings, presence_name
from kerntest.engines.engine import Engine
from kerntest.engines.plan import count_wanted
from kerntest.errors import DataError, counted, listed, one_of, option, telling
from kerntest.inference.explain.pictures import BARS_DRAWN, Files, draw_effects
from kerntest.inference.nulls.permutation import descending
from kerntest.inference.relabelling.shifts import circle_length, orders_needed
from kerntest.inference.screens.correlations import correlations
from kerntest.inference.screens.many_pairs import (
    PROCEDURES,
    Correction,
    Screen,
    adjusted,
    in_squares,
    screen,
    step_down,
)
from kerntest.inference.screens.work_of_screens import MANY_SETS, PairsOfRows, Screened, bytes_of_pairs, work_of_pairs
from kerntest.inference.sides import FEWEST_ROWS, Options, Reading, Variable
from kerntest.report import panels
from kerntest.report.results.independence_record import PairEffect, ScreenResult
from kerntest.report.summaries.test_summary import screen_sentence
from kerntest.report.summaries.words import number, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Column
    from kerntest.engines.engine import Progress
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Estimator
    from kerntest.kernels.base import Array, Kernel, Points

    # A pair before any correction, -log p under every relabelling where it is kept, and its set of rows.
    Tested: TypeAlias = tuple[PairEffect, Array | None, int]

# Of so many columns a plan looks at each, of more at some of them.
LOOKED = 24
# Steps of progress in one set.
STEPS = 1000
# The best order of the leaves of a tree takes the cube of their number.
MOST_IN_BEST_ORDER = 300
# Effect sizes, and logarithms of p-values, that differ by less come from columns that are equal but for rounding.
SAME_RANK = 1e-8
COEFFICIENTS = ("pearson", "spearman", "kendall")


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
    missing : "drop", "error" or "indicator"
        Each pair uses the rows in which both columns are present; or missing values are refused; or taken as information
        as in `mmd_test`: whether a column is there is then tested against the values of all others, not its values filled.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    ScreenResult
        Pairs by p-value. The p-value that is corrected comes from the exact mean, variance and skewness of the
        permutation distribution: the smallest permutation p-value, 1 / permutations, is too coarse for many pairs.

    Warns
    -----
    KerntestWarning
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
    options = Options(estimator, "permutation", permutations, alpha, "standardize", seed)
    one_of("correction", correction, tuple(PROCEDURES))
    check_policy(missing)
    files = Files(None, plot)
    sides: Any = {"x_columns": x_columns, "y_columns": y_columns}
    reading = Reading(columns, exclude, False, categorical, missing, CsvOptions.of(**csv, seed=seed), **sides)
    shared = _Pairs(data, options, threads, reading, kernel=kernel, bandwidth=bandwidth)
    target = shared.choose(target)
    usable, pairs, n = shared.columns, shared.pairs, shared.n
    looked, sets = shared.looked() if count_wanted(n) else {}, shared.sets(permutations)
    shared.plan(
        len(usable),
        f"{len(pairs):,} pairs of {len(usable):,} columns, each under {permutations:,} cyclic relabellings or more",
        bytes_of_pairs(looked, sets, shared.engine, target=target is not None),
        work_of_pairs(looked, sets) if looked else {},
    )
    effects = _corrected(shared.tested(progress), correction, alpha)
    made = [effect for effect in effects if effect.p_value is not None]
    rejected = sum(effect.reject for effect in made)
    names, numbers = [column.name for column in usable], shared.table.numbers()
    result = ScreenResult(
        schema="kerntest.hsic.pairwise/1",
        target=target,
        estimator=estimator,
        null="moments",
        correction=correction,
        tests=len(made),
        rejected=rejected,
        reject=rejected > 0,
        decision=screen_sentence(len(made), rejected, alpha, correction, target),
        columns=tuple(names),
        pairs=effects,
        **shared.told(
            *pair_warnings([(pair.x, pair.y) for pair in made if pair.reject], usable, shared.table),
            *copies_warning([column.values for column in usable], others=unused([(shared.table, numbers, names)])),
            *lone_values(replace(shared.table, columns=tuple(usable))),
            used=max((pair.n for pair in made), default=None),
        ),
    )
    files.write(dict, lambda: screen_figure(result))
    return result


class _Pairs(Screen):
    """Pairs of columns, and how each is tested."""

    columns: Sequence[Column]
    pairs: Sequence[tuple[int, int]]
    target: str | None

    def choose(self, target: str | None) -> str | None:
        """Find the columns that can tell anything, and the pairs: each once, in the order of the table; a target second."""
        self.n, name, reading = self.table.n_rows, self.table.name, self.reading
        taking_part = self.names(self.table.names if is_all(reading.columns) else reading.columns)
        named = (reading.x_columns, reading.y_columns)
        sides = [taking_part if is_all(patterns) else self.names(patterns) for patterns in named]
        if target is not None:
            target, *others = self.matching([target])
            if others:
                message = f"{option('target')} is one column, not {listed([repr(one) for one in (target, *others)])}"
                raise self.refusal(message, "name one of them", "target")
            if target in self.excluded:
                message, hint = (
                    f"column {target!r} is both the target and excluded",
                    f"leave it out of {option('exclude')}",
                )
                raise self.refusal(message, hint, "column_twice", column=target)
            sides = [[one for one in sides[0] if one != target], [target]]
        self.target = target
        if not all(sides):
            hint = "name more columns, and exclude fewer"
            raise self.refusal(f"no pair of columns of {name} is selected", hint, "no_columns")
        chosen = check_usable(self.table.select([one for one in self.table.names if one in {*chain(*sides)}]))
        if reading.missing == "error":
            apply_missing(chosen, "error")
        own, gaps_told = set[tuple[str, str]](), list[str]()
        if reading.missing == "indicator":
            by = fillings([chosen])
            added = {name: presence_name(name) for name, value in by.items() if value is not None}
            # Where a column has gaps is tested against the values of all others, but for those with the same gaps.
            rows = {name: chosen[name].missing.tobytes() for name in added}
            own = {(one, added[other]) for one, other in product(added, repeat=2) if rows[one] == rows[other]}
            own |= {(gaps, one) for one, gaps in own} | {
                (one, gaps) for one in added.values() for gaps in added.values()
            }
            # Values are tested where they are: what fills gaps in the same rows of two columns would make them depend.
            values = {name: chosen[name] for name in added}
            chosen = filled(chosen, by)
            chosen = replace(chosen, columns=tuple(values.get(one.name, one) for one in chosen.columns))
            together = [[name for name in added if rows[name] == one] for one in dict.fromkeys(rows.values())]
            gaps_told = [f"the same rows have no value in {listed(names)}" for names in together if len(names) > 1]
            sides = [
                [*side, *(gaps for name, gaps in added.items() if name in side and name != target)] for side in sides
            ]
        reasons = {column.name: _reason(column) for column in chosen.columns}
        if target is not None and (reason := reasons[target]):
            raise DataError(
                f"the target cannot be tested: {reason}",
                hint=f"name another column as {option('target')}",
                code="data.target",
                where={"file": name, "column": target},
            )
        self.columns = [column for column in chosen.columns if reasons[column.name] is None]
        told = {one: reason for one, reason in reasons.items() if reason is not None}
        self.left_out, self.warnings = tuple(told), (*chosen.warnings, *gaps_told, *told_of_left_out(told))
        place = {column.name: k for k, column in enumerate(self.columns)}
        left, right = ([place[one] for one in side if one in place] for side in sides)
        pairs = (
            (a, b) for a in left for b in right if a != b and (self.columns[a].name, self.columns[b].name) not in own
        )
        self.pairs = sorted({(a, b) if target is not None or a < b else (b, a) for a, b in pairs})
        if not self.pairs:
            # How a table of one column was read says what it may be.
            read = self.table.warnings[0] if len(self.table.names) == 1 and self.table.warnings else None
            raise DataError(
                f"fewer than two columns of {name} are left to test: {'; '.join(told.values()) or 'it has one'}",
                hint=read or "a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": name},
            )
        return target

    @cached_property
    def together(self) -> list[list[int]]:
        """The places of pairs over the same rows, those in which neither column is missing."""
        present = [np.packbits(~column.missing) for column in self.columns]
        whole, together = [not column.missing.any() for column in self.columns], dict[bytes, list[int]]()
        for index, (a, b) in enumerate(self.pairs):
            common = (
                b"" if whole[a] and whole[b] else blake2b((present[a] & present[b]).tobytes(), digest_size=16).digest()
            )
            together.setdefault(common, []).append(index)
        return list(together.values())

    def rows_of(self, members: Sequence[int]) -> NDArray[np.intp]:
        """Return the rows of pairs over the same rows."""
        a, b = self.pairs[members[0]]
        return np.flatnonzero(~(self.columns[a].missing | self.columns[b].missing))

    def sets(self, permutations: int) -> list[PairsOfRows]:
        """Return what a plan is to know of the pairs over the same rows."""
        found = []
        for members in self.together:
            pairs, n = [self.pairs[index] for index in members], len(self.rows_of(members))
            if n < FEWEST_ROWS:
                continue
            circle = circle_length(n)
            orders = orders_needed(permutations, circle)
            squares = [[pairs[index] for index in some] for some in in_squares(pairs, orders * circle)]
            found.append(PairsOfRows(n, squares, orders))
        return found

    def looked(self) -> dict[int, Screened]:
        """Return what a plan knows of each column; of many one that was looked at stands for those after it."""
        places = sorted({*chain(*self.pairs)})
        step, found = -(-len(places) // LOOKED), dict[int, Screened]()
        for start in range(0, len(places), step):
            column = self.columns[places[start]].take(~self.columns[places[start]].missing)
            points, kernel = self._side(laid_below(column), len(column.values))
            found |= dict.fromkeys(places[start : start + step], Screened.of(points, kernel))
        return found

    def tested(self, progress: Progress | None) -> list[Tested]:
        """Return every pair, tested over the rows in which neither column is missing; those of the same rows together."""
        sets = list(enumerate(self.together))

        def work(item: tuple[int, list[int]], engine: Engine | None = None) -> list[Tested]:
            number, members = item
            pairs = [self.pairs[index] for index in members]
            common = self.rows_of(members)

            def told(step: int, steps: int) -> None:
                if progress is not None and engine is None:
                    progress(number * STEPS + step * STEPS // steps, len(sets) * STEPS)

            return [(*one, number) for one in self._over(common, pairs, engine or self.engine, told)]

        found: Iterable[list[Tested]] = map(work, sets)
        if len(sets) >= MANY_SETS:
            # Many small pieces of work: side by side, each on one thread.
            found = self.engine.map(partial(work, engine=Engine(1)), sets, progress)
        tested = dict(zip(chain(*self.together), chain.from_iterable(found), strict=True))
        return [tested[index] for index in range(len(self.pairs))]

    def _over(
        self, common: NDArray[np.intp], pairs: Sequence[tuple[int, int]], engine: Engine, progress: Progress
    ) -> Iterator[tuple[PairEffect, Array | None]]:
        """Yield pairs of columns tested over the same rows; with a target their relabelled statistics are kept."""
        n, keep = len(common), self.target is not None
        every = {place: self.columns[place] for place in sorted({*chain(*pairs)})}
        # All rows are there already.
        taken = {place: laid_below(one if len(one.values) == n else one.take(common)) for place, one in every.items()}
        notes = {place: _untestable(column, n) for place, column in taken.items()}
        sides = {place: self._side(column, n) for place, column in taken.items() if notes[place] is None}
        usable, wanted = list(sides), [(a, b) for a, b in pairs if a in sides and b in sides]
        places = [(usable.index(a), usable.index(b)) for a, b in wanted]
        made = screen(list(sides.values()), places, self.options, engine, keep=keep, progress=progress)
        found = dict(zip(wanted, made, strict=True))
        numbers = {place: column.values for place, column in taken.items() if column.kind != "text"}
        for (a, b), coefficients in zip(pairs, correlations(numbers, pairs, n).T.tolist(), strict=True):
            known: dict[str, Any] = {"note": notes[a] or notes[b]}
            known |= {name: one for name, one in zip(COEFFICIENTS, coefficients, strict=True) if not np.isnan(one)}
            measured, scores = found.get((a, b), ({}, None))
            if measured:
                known |= {"kernel_x": str(sides[a][1]), "kernel_y": str(sides[b][1])}
                # What no relabelling changes is rounding.
                known |= {"note": _unchanged(taken[a], taken[b])} if measured["p_value"] is None else measured
            yield PairEffect(taken[a].name, taken[b].name, n, **known), scores
        progress(1, 1)

    def _side(self, column: Column, n: int) -> tuple[Points, Kernel]:
        """Return the rows of one column, scaled, and its kernel; that of the numbers is named by the user."""
        variable = Variable.of(arrange([column], n), "standardize")
        return variable.points, self.kernel(variable, None if variable.numeric_names else "auto").kernels[0]


def _reason(column: Column) -> str | None:
    """Return why a column can tell nothing, if so."""
    present = column.take(~column.missing)
    if not len(present.values):
        return f"column {column.name!r} has missing values only and is left out"
    return reason_to_leave_out(laid_below(present))


def _untestable(column: Column, n: int) -> str | None:
    """Return why a column cannot be tested over the rows of a pair; None if it can."""
    if n < FEWEST_ROWS:
        return f"{counted(n, 'row')} without missing values; the test needs at least {FEWEST_ROWS}"
    if column.values.min() == column.values.max():
        return f"{column.name!r} has one value in the rows without missing values"
    return reason_to_leave_out(column)


def _unchanged(*columns: Column) -> str:
    """Return why no pairing of the rows of two columns changes the statistic."""
    of_one_row = (one for one in columns if one.is_category and len(np.unique(one.values)) == len(one.values))
    if (column := next(of_one_row, None)) is not None:
        return f"all values of {column.name!r} are different"
    return "no pairing of the rows changes the statistic"


def _corrected(tested: Sequence[Tested], correction: Correction, alpha: float) -> tuple[PairEffect, ...]:
    """Return the records by p-value, corrected for all that were tested.

    The step-down maximum takes scores over shared relabellings: there is none where missing values give some pairs other
    rows.
    """
    effects = [effect for effect, _, _ in tested]
    raw = np.array([np.nan if effect.p_value is None else effect.p_value for effect in effects])
    kept = {effect.x: scores for effect, scores, _ in tested if scores is not None}
    exact: dict[str, float] = {}
    if len({rows for _, scores, rows in tested if scores is not None}) == 1:
        exact = dict(zip(kept, step_down([*kept.values()]).tolist(), strict=True))
    for place, p in enumerate(adjusted(raw, correction).tolist()):
        if not np.isnan(p):
            name = effects[place].x
            effects[place] = replace(effects[place], p_adjusted=p, p_step_down=exact.get(name), reject=p <= alpha)
    # By p-value, then effect size; those without a p-value last, equal ones as they come.
    order = descending(np.array([effect.effect_size or 0.0 for effect in effects]), SAME_RANK)
    logs = np.where(np.isnan(raw), -1.0, -np.log(np.maximum(raw, np.finfo(np.float64).tiny)))[order]
    return tuple(effects[place] for place in order[descending(logs, SAME_RANK * np.maximum(1.0, logs))])


# Pictures: a heat map of all pairs of columns, or a ranking of columns with a target


def screen_figure(result: ScreenResult) -> Any:
    """Return a figure of a screen: a heat map, or a ranking where there is a target."""
    effect, p = np.array([(pair.effect_size, pair.p_adjusted) for pair in result.pairs], dtype=np.float64).T
    if result.target is not None:
        return ranking_figure([pair.x for pair in result.pairs], effect, p, result.alpha, result.decision)
    place = {name: k for k, name in enumerate(result.columns)}
    i, j = ([place[name] for name in names] for names in zip(*((one.x, one.y) for one in result.pairs), strict=True))
    table = np.full((2, len(place), len(place)), np.nan)
    table[:, i, j] = table[:, j, i] = effect, p
    order, names = by_similarity(table[0]), list(place)
    effect, p = table[:, order][:, :, order]
    return pairs_figure([names[one] for one in order], effect, p, result.alpha, result.decision)


def by_similarity(effect: Array) -> list[int]:
    """Return the order of columns in which those that depend on one another stand together; that of the table for few."""
    if len(effect) <= panels.CELLS_WITH_TEXT:
        return list(range(len(effect)))
    # Only large pictures need it.
    hierarchy = import_module("scipy.cluster.hierarchy")

    apart = 1.0 - np.nan_to_num(effect)[np.triu_indices(len(effect), 1)]
    tree = hierarchy.linkage(apart, "average", optimal_ordering=len(effect) <= MOST_IN_BEST_ORDER)
    return [int(leaf) for leaf in hierarchy.leaves_list(tree)]


def pairs_figure(names: Sequence[str], effect: Array, adjusted_p: Array, alpha: float, title: str) -> Any:
    """Return a heat map of the effect sizes of all pairs of columns, significant pairs marked.

    It grows with the columns, up to a limit; legible to about 60 of them.
    """
    columns, roomy = len(names), len(names) <= panels.CELLS_WITH_TEXT
    # Cells of 0.6 inch, smaller with many columns.
    side = max(float(np.clip(0.6 * columns, 2.4, 9.0)), min(0.17 * columns, 16.0))
    cell = panels.POINTS_PER_INCH * side / columns
    size, longest = float(np.clip(0.75 * cell, 5.0, 9.0)), 24 if roomy else 20
    room = min(longest, max(len(visible(name)) for name in names)) * 0.6 * size / panels.POINTS_PER_INCH

    def draw(axis: Any) -> None:
        shown = np.where(np.isnan(adjusted_p) | np.eye(columns, dtype=np.bool_), np.nan, effect)
        panels.draw_cells(axis, shown, 0.0, 1.0, "effect size")
        if roomy:
            panels.write_cells(axis, [["" if np.isnan(one) else f"{one:.2f}" for one in line] for line in shown], shown)
        rows, across = np.nonzero(~np.isnan(shown) & (adjusted_p <= alpha))
        # Where cells have values, into their upper right corner.
        away, diameter = 0.34 if roomy else 0.0, float(np.clip((0.32 if roomy else 0.22) * cell, 1.2, 6.0))
        axis.scatter(across + away, rows - away, s=diameter**2, color=panels.COLOUR_Y, edgecolor="white", linewidth=0.3)
        ticks = range(0, columns, max(1, int(np.ceil(1.1 * size / cell))))
        labels = [panels.named(names[place], longest) for place in ticks]
        axis.set_xticks(ticks, labels, rotation=90, fontsize=size)
        axis.set_yticks(ticks, labels, fontsize=size)
        axis.set(ylim=(columns - 0.5, -0.5), aspect="equal")
        told = f"adjusted p <= {number(alpha)}: {counted(len(rows) // 2, 'pair')}"
        untested = panels.matplotlib("patches").Patch(label="not tested", **panels.HATCHED)
        handles = [panels.mark(told, marker="o", color=panels.COLOUR_Y), untested]
        axis.figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)

    return panels.figure([[draw]], title, width=side + room + 1.4, heights=side + room + 0.7)


def ranking_figure(
    names: Sequence[str],
    effect: Array,
    adjusted_p: Array,
    alpha: float,
    title: str,
    *,
    heading: str = "Each column alone",
) -> Any:
    """Return a ranking, of the columns that depend most on a target: a bar for each, the largest on top."""
    (tested,) = np.nonzero(~np.isnan(adjusted_p))
    # Equal effects by p-value, then in the order of the table.
    ranked = tested[np.lexsort([adjusted_p[tested], -effect[tested]])]
    shown = [names[place] for place in ranked]
    draw = partial(
        draw_effects, names=shown, effects=effect[ranked], p=adjusted_p[ranked], alpha=alpha, heading=heading
    )
    return panels.figure([[draw]], title, width=7.0, heights=1.1 + 0.26 * max(min(len(shown), BARS_DRAWN), 3))
