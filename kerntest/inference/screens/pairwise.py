"""All pairs of columns of a table, or all columns against one, each over the rows in which neither is missing.

Pairs with the same rows share the matrices of their columns, the transforms of these, and the relabellings. Beside the
kernel tests stand correlations, which see straight lines (Pearson) and monotone relations (Spearman, Kendall): where a
test finds a dependence and they are near 0, it is of another kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.data.columns import apply_missing, arrange, check_usable, reason_to_leave_out, recoded, standardize
from kerntest.data.diagnostics import copies_warning, counters
from kerntest.engines.engine import Engine
from kerntest.errors import DataError, one_of, telling
from kerntest.inference.exact import held_by_stacks, runs_of
from kerntest.inference.explain.pictures import Files
from kerntest.inference.nulls.permutation import descending
from kerntest.inference.screens.many_pairs import PROCEDURES, Correction, Screen, adjusted, screen, step_down
from kerntest.inference.screens.screen_picture import screen_figure
from kerntest.inference.sides import FEWEST_ROWS, MissingPolicy, Options, Variable
from kerntest.report.results.independence_record import PairEffect, ScreenResult
from kerntest.report.summaries.independence_summary import screen_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Column, Table
    from kerntest.engines.engine import Progress
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Estimator
    from kerntest.kernels.base import Array, Kernel, Points

# From so many sets of rows, sets are tested side by side.
MANY_SETS = 4
# Steps of progress in one set.
STEPS = 1000
# Effect sizes, and logarithms of p-values, that differ by less come from columns that are equal but for rounding.
SAME_RANK = 1e-8
# Entries of one block of pairs whose correlations are computed: what a pair needs then stays in the cache.
BLOCK = 2**17
# Runs of this many entries are compared one by one before runs are merged.
SHORT_RUN = 8


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
    options = Options(estimator, "permutation", permutations, alpha, "standardize", seed)
    one_of("correction", correction, tuple(PROCEDURES))
    one_of("missing", missing, ("error", "drop"))
    files = Files(None, plot)
    shared = Screen(data, options, threads, categorical, csv)
    table, n = shared.table, shared.table.n_rows
    sides = _sides(shared, target, x=x_columns, y=y_columns, columns=columns, exclude=exclude)
    chosen = check_usable(table.select([name for name in table.names if name in {*sides[0], *sides[1]}]))
    if missing == "error":
        apply_missing(chosen, "error")
    usable, left_out = _usable(chosen, target)
    place = {column.name: k for k, column in enumerate(usable)}
    left, right = ([place[name] for name in side if name in place] for side in sides)
    # Each pair once, in the order of the table; a target comes second.
    pairs = sorted({(a, b) if target is not None or a < b else (b, a) for a in left for b in right if a != b})
    if not pairs:
        raise DataError(
            f"fewer than two columns of {table.name} are left to test: {'; '.join(left_out.values()) or 'it has one'}",
            hint="a column must hold at least two different values, and not one per row",
            code="data.no_columns",
            where={"file": table.name},
        )
    # One statistic for each relabelling of each pair, where they are kept, and the blocks of lines under way; a target
    # has one matrix on its side: no stack.
    stacked, kept = (len(usable), 64) if target is None else (2, len(pairs))
    shared.plan(
        n,
        len(usable),
        f"{len(pairs):,} pairs of {len(usable):,} columns, each under {permutations:,} cyclic relabellings or more",
        8.0 * n * kept + held_by_stacks(n, stacked, shared.engine),
        **dict.fromkeys(("distance", "kernel", "lag"), float(n) ** 2 * len(usable)),
        pair=2.0 * float(n) ** 2 * len(pairs),
    )
    tested = _Pairs(usable, pairs, shared, kernel, bandwidth, keep=target is not None).tested(progress)
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
        target=target,
        estimator=estimator,
        null="moments",
        correction=correction,
        tests=len(made),
        rejected=rejected,
        reject=rejected > 0,
        decision=screen_sentence(len(made), rejected, alpha, correction, target),
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
        columns_left_out=tuple(left_out),
        **shared.told(n, kernel, bandwidth),
    )
    files.write(dict, lambda: screen_figure(result))
    return result


def _sides(
    shared: Screen, target: str | None, *, x: Patterns, y: Patterns, columns: Patterns, exclude: Patterns
) -> tuple[list[str], list[str]]:
    """Return the names on the two sides of the pairs; the same names twice for all pairs."""
    if target is not None:
        shared.names([target])
    excluded = set(shared.names(exclude))
    if target in excluded:
        raise shared.refusal(
            f"column {target!r} is both the target and excluded",
            "leave it out of --exclude",
            "column_twice",
            column=str(target),
        )
    taking_part = shared.names(columns or shared.table.names)
    left, right = (shared.names(patterns or taking_part, excluded) for patterns in (x, y))
    if target is not None:
        left, right = [name for name in left if name != target], [target]
    if not left or not right:
        raise shared.refusal(
            f"no pair of columns of {shared.table.name} is selected",
            "name more columns, and exclude fewer",
            "no_columns",
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


# A pair before any correction, -log p under every relabelling where it is kept, and its set of rows.
_Tested: TypeAlias = tuple[PairEffect, "Array | None", int]


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of columns, how each is tested, and whether its relabelled statistics are kept."""

    columns: Sequence[Column]
    pairs: Sequence[tuple[int, int]]
    shared: Screen
    kernel: Kernel | str
    bandwidth: BandwidthOption
    keep: bool

    def tested(self, progress: Progress | None) -> list[_Tested]:
        """Return every pair, tested over the rows in which neither column is missing; those of the same rows together."""
        present = [~column.missing for column in self.columns]
        together: dict[bytes, list[int]] = {}
        for index, (a, b) in enumerate(self.pairs):
            together.setdefault(np.packbits(present[a] & present[b]).tobytes(), []).append(index)

        def work(item: tuple[int, list[int]], engine: Engine, told: Progress | None) -> list[_Tested]:
            number, members = item
            pairs = [self.pairs[index] for index in members]
            rows = np.flatnonzero(present[pairs[0][0]] & present[pairs[0][1]])
            return [(*one, number) for one in self._over(rows, pairs, engine, told)]

        sets, engine = list(enumerate(together.values())), self.shared.engine
        if len(sets) < MANY_SETS:
            found: Iterable[list[_Tested]] = (work(one, engine, _share(progress, one[0], len(sets))) for one in sets)
        else:
            # Many small pieces of work: side by side, each on one thread.
            found = engine.map(partial(work, engine=Engine(1), told=None), sets, progress)
        results = zip(chain(*together.values()), chain.from_iterable(found), strict=True)
        return [tested for _, tested in sorted(results, key=itemgetter(0))]

    def _over(
        self, rows: NDArray[np.intp], pairs: Sequence[tuple[int, int]], engine: Engine, progress: Progress | None
    ) -> Iterator[tuple[PairEffect, Array | None]]:
        """Yield pairs of columns tested over the same rows."""
        n = len(rows)
        taken = {place: recoded(self.columns[place].take(rows)) for place in sorted(set(chain(*pairs)))}
        notes = {place: _untestable(column, n) for place, column in taken.items()}
        sides = {place: self._side(column, n) for place, column in taken.items() if notes[place] is None}
        usable, wanted = list(sides), [(a, b) for a, b in pairs if a in sides and b in sides]
        places = [(usable.index(a), usable.index(b)) for a, b in wanted]
        made = screen(list(sides.values()), places, self.shared.options, engine, keep=self.keep, progress=progress)
        found = dict(zip(wanted, made, strict=True))
        numbers = {place: column.values for place, column in taken.items() if column.kind != "text"}
        for (a, b), coefficients in zip(pairs, correlations(numbers, pairs, n).T.tolist(), strict=True):
            known: dict[str, Any] = {"note": notes[a] or notes[b]}
            for name, value in zip(("pearson", "spearman", "kendall"), coefficients, strict=True):
                known[name] = None if np.isnan(value) else value
            measured, scores = found.get((a, b), ({}, None))
            if measured:
                known |= {"kernel_x": str(sides[a][1]), "kernel_y": str(sides[b][1])}
                # What no relabelling changes is rounding.
                unchanged = {"note": "no pairing of the rows changes the statistic"}
                known |= unchanged if measured["p_value"] is None else measured
            yield PairEffect(taken[a].name, taken[b].name, n, **known), scores
        if progress is not None:
            progress(1, 1)

    def _side(self, column: Column, n: int) -> tuple[Points, Kernel]:
        """Return the rows of one column, scaled, and its kernel; that of the numbers is named by the user."""
        variable = Variable.of(arrange([column], n), "standardize")
        family = self.shared.kernel(variable, self.kernel if variable.numeric_names else "auto", self.bandwidth)
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


def _corrected(tested: Sequence[_Tested], correction: Correction, alpha: float) -> tuple[PairEffect, ...]:
    """Return the records by p-value, corrected for all that were tested.

    The step-down maximum takes scores over shared relabellings: there is none where missing values give some pairs other
    rows.
    """
    effects = [effect for effect, _, _ in tested]
    raw = np.array([np.nan if effect.p_value is None else effect.p_value for effect in effects])
    kept = {effect.x: scores for effect, scores, _ in tested if scores is not None}
    exact: dict[str, float] = {}
    if len({rows for _, scores, rows in tested if scores is not None}) == 1:
        exact = dict(zip(kept, step_down(np.stack(list(kept.values()))).tolist(), strict=True))
    for place, p in enumerate(adjusted(raw, correction).tolist()):
        if not np.isnan(p):
            name = effects[place].x
            effects[place] = replace(effects[place], p_adjusted=p, p_step_down=exact.get(name), reject=p <= alpha)
    # By p-value, then effect size; those without a p-value last, equal ones as they come.
    order = descending(np.array([effect.effect_size or 0.0 for effect in effects]), SAME_RANK)
    logs = np.where(np.isnan(raw), -1.0, -np.log(np.maximum(raw, np.finfo(np.float64).tiny)))[order]
    return tuple(effects[place] for place in order[descending(logs, SAME_RANK * np.maximum(1.0, logs))])


def _series(columns: Sequence[Column]) -> list[str]:
    """Return a warning where several columns run from row to row, as series in time do."""
    running = runs_of(columns)
    if len(running) < 2:
        return []
    more = f" and {len(running) - 4} more" if len(running) > 4 else ""
    warning = (
        f"neighbouring rows are alike in {', '.join(map(repr, running[:4]))}{more}: if the rows are a series in time, "
        "p-values of their pairs are far too small; --time-series tests two series"
    )
    return [warning]


# Correlations, by numpy alone: pandas and scipy.stats would take longer to load than a screen of a small table takes.


def correlations(columns: Mapping[int, NDArray[Any]], pairs: Sequence[tuple[int, int]], n: int) -> Array:
    """Return Pearson's r, Spearman's rho and Kendall's tau-b of pairs of columns of n rows, shape (3, pairs).

    NaN where a column is not there or holds one value. Large offsets and values up to 1e300 lose no digits.
    Cost: O(p n log n) for p columns and O(n log n) for each pair.
    """
    found = np.full((3, len(pairs)), np.nan)
    codes, ranks, tied = np.empty((len(columns), n), np.int64), np.empty((len(columns), n)), []
    for row, column in enumerate(columns.values()):
        _, codes[row], counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks[row] = (np.cumsum(counts) - (counts - 1) / 2)[codes[row]]
        tied.append((counts * (counts - 1) // 2).sum())
    place = {name: row for row, name in enumerate(columns) if tied[row] < n * (n - 1) // 2}
    numbers = [index for index, pair in enumerate(pairs) if place.keys() >= {*pair}]
    if not numbers:
        return found
    values = np.array([*columns.values()], dtype=np.float64)
    scaled = [np.ascontiguousarray(standardize(one.T)[0].T) for one in (values, ranks)]
    step = max(1, BLOCK // n)
    for start in range(0, len(numbers), step):
        block = numbers[start : start + step]
        first, second = np.array([[place[name] for name in pairs[index]] for index in block]).T
        found[:2, block] = [np.vecdot(one[first], one[second]) / n for one in scaled]
        found[2, block] = _kendall(codes, np.array(tied), first, second)
    return np.clip(found, -1.0, 1.0, out=found)


def _kendall(
    codes: NDArray[np.int64], tied: NDArray[np.int64], first: NDArray[np.intp], second: NDArray[np.intp]
) -> Array:
    """Return tau_b = (P - Q) / sqrt((T - T_x) (T - T_y)) (Kendall 1945).

    Of T pairs of rows, P are concordant, Q discordant, T_x and T_y tied. A pair is discordant where it is out of order
    in y after sorting by x, and merging sorted runs counts such pairs as it goes (Knight 1966).
    """
    n = codes.shape[1]
    total, bits = n * (n - 1) // 2, n.bit_length()
    # One key orders the rows by x and, where x is tied, by y.
    keys = codes[first] << bits | codes[second]
    keys.sort(axis=1)
    discordant = _inversions(keys & ((1 << bits) - 1))
    # The k-th entry of a run of equal keys makes k pairs with those before it.
    places = np.arange(n)
    starts = np.where(np.diff(keys, axis=1, prepend=-1) > 0, places, 0)
    tied_in_both = (places - np.maximum.accumulate(starts, axis=1)).sum(axis=1)
    untied = total - tied[first] - tied[second] + tied_in_both
    scale = (total - tied[first]).astype(np.float64) * (total - tied[second])
    balance: Array = (untied - 2 * discordant) / np.sqrt(np.where(scale > 0, scale, 1.0))
    return balance


def _inversions(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many pairs of entries, all in [0, n), of each row stand in descending order. Cost: O(n log n) a row."""
    q, n = rows.shape
    width = SHORT_RUN << max(0, (n - 1) // SHORT_RUN).bit_length()
    padded = np.full((q, width), n)
    padded[:, :n] = rows
    runs = padded.reshape(q, -1, SHORT_RUN)
    found = np.zeros(q, dtype=np.int64)
    for lag in range(1, SHORT_RUN):
        found += np.count_nonzero(runs[..., :-lag] > runs[..., lag:], axis=(1, 2))
    runs.sort(axis=2)
    length = SHORT_RUN
    while length < width:
        # The last bit of an entry tells the right run from the left: equal entries keep their order.
        halves = runs.reshape(-1, 2, length) << 1
        halves[:, 1] |= 1
        merged = halves.reshape(-1, 2 * length)
        merged.sort(axis=1, kind="stable")  # merges two ascending runs in linear time
        # An entry of the right run at place k, with r others before it, comes after k - r of the left run.
        in_order = (merged & 1) @ np.arange(2 * length) - length * (length - 1) // 2
        found += (length * length - in_order).reshape(q, -1).sum(axis=1)
        runs = merged >> 1
        length *= 2
    return found
