"""Greedy selection of columns for their joint dependence with a target (Song et al. 2012, forward selection)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import is_all
from kerntest.data.diagnostics.dependent_rows import pair_warnings
from kerntest.data.formats.dialect import CsvOptions
from kerntest.engines.engine import one_blas_thread
from kerntest.errors import counted, either, option, telling, whole_number
from kerntest.inference.nulls.permutation import scores_among_others, tie_tolerance
from kerntest.inference.relabelling.shifts import circle_length, cyclic_orders, low_rank_sums, orders_needed, shift_sums
from kerntest.inference.screens.leftover import SHARE_LEFT, Leftover, features_of
from kerntest.inference.screens.many_pairs import Screen, step_down
from kerntest.inference.screens.work_of_screens import LONG_RANK, held_by_stacks, leftover_bytes, work_of_selection
from kerntest.inference.sides import Options, Reading, Variable
from kerntest.inference.statistic import dependence, factor, low_rank_dependence
from kerntest.kernels.algebra import ColumnGroups, ColumnName, OnColumns
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Gaussian, Hamming
from kerntest.matrices.factor import EQUAL, LEFT_OUT
from kerntest.matrices.passes import KernelStack
from kerntest.report.results.independence_record import SelectedColumn, SelectionResult
from kerntest.report.results.record import Null
from kerntest.report.summaries.test_summary import selection_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.missing import MissingPolicy
    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import Factor

# Candidates whose transforms are made in one pass.
TOGETHER = 32
# The squared width of the narrower kernel of a regression on columns, as a share of that of the wider.
NARROWER = 0.25


@telling
def hsic_select(
    data: Any,
    target: str,
    k: int = 5,
    *,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    permutations: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> SelectionResult:
    """Select k columns, one after another, that together depend on a target most.

    The first column is the one with the largest effect size with the target. Every further one is the column that,
    together with those selected, has the largest effect size on what kernel ridge regression on those leaves of the
    target: a copy of a selected column adds nothing, a column that acts together with it does. Columns together have a
    product of Gaussians whose bandwidths are the medians times the square root of their number.

    Parameters
    ----------
    data : path, "-", ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
    target : str
        The column to explain.
    k : int
        How many columns to select; all candidates if there are fewer.
    columns, exclude : str or sequence of str, optional
        Candidates; all columns but the target by default.
    permutations : int
        Relabellings at least; all n cyclic ones come for the price of a few.
    alpha : float
        Level up to which a step is called significant.
    seed : int
    categorical, missing
        As in `hsic_test`.
    threads : int, optional
    progress : callable, optional
        Called with (steps done, k).
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    SelectionResult

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError
        If an option makes no sense or names a column that is not there.
    DataError
        If the table cannot be read, or there is nothing to select from.

    Notes
    -----
    Cost: O(P n^2 log n) time for the first step with P candidates, O(P r s n log n) for each further one with matrices as
    products of r <= 200 and s columns; O(32 n) to O(1024 n) numbers of memory. A further step is a test of independence
    given the columns before it, whose relabellings are of residuals: its level is approximate.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> X[:, 3] = X[:, 0] ** 2 + 0.3 * rng.normal(size=200)
    >>> hsic_select(X, "x4", 1).selected[0].column
    'x1'
    """
    options = Options("unbiased", "permutation", permutations, alpha, "standardize", seed)
    whole_number(either("select", "k"), k, at_least=1, code="usage.select")
    reading = Reading(columns, exclude, categorical=categorical, missing=missing, csv=CsvOptions.of(**csv, seed=seed))
    shared = Screen(data, options, threads, reading)
    shared.matching([target])
    names = [name for name in shared.names(shared.table.names if is_all(columns) else columns) if name != target]
    if not names or target not in shared.table.names:
        message = f"no column of {shared.table.name} is left to select from"
        raise shared.refusal(message, f"name more in {option('columns')}, and exclude fewer", "no_columns")
    candidates, goal = shared.paired([names, [target]])
    n, count = shared.n, len(candidates.names)
    steps, orders = min(k, count), orders_needed(permutations, circle_length(n))
    shared.plan(
        count + 1,
        f"{steps} of {count} columns, one after another, each step under {permutations:,} relabellings or more",
        max(held_by_stacks(n, count, shared.engine.threads), leftover_bytes(n, orders) if steps > 1 else 0.0),
        work_of_selection(n, count, steps, orders),
        work_of_selection(n, count, steps, orders, LONG_RANK),
    )
    selection = _Selection(candidates, goal, shared)
    chosen = selection.steps(steps, progress)
    significant = sum(step.significant for step in chosen)
    tested = [shared.table[name] for name in (*candidates.names, target) if name in shared.table.names]
    used = len(selection.places) * selection.circle
    return SelectionResult(
        schema="kerntest.hsic.selection/1",
        target=target,
        reject=significant > 0,
        decision=selection_sentence(target, chosen),
        columns=candidates.names,
        selected=tuple(chosen),
        significant=significant,
        null=Null("permutation", used, permutations, 1.0 / used, True, "cyclic shifts", len(selection.places)),
        **shared.told(
            *(
                [f"{counted(count, 'column')} can be selected, not {k:,}: all of them stand in their order"]
                if k > count
                else ()
            ),
            *pair_warnings([(step.column, target) for step in chosen if step.significant], tested, shared.table),
        ),
    )


class _Selection:
    """Forward selection over one set of relabellings; candidates have their columns in units of their median distances."""

    def __init__(self, candidates: Variable, target: Variable, shared: Screen) -> None:
        self.alpha, self.engine, self.n = shared.options.alpha, shared.engine, len(target.points)
        self.names, self.numbers = candidates.names, len(candidates.numeric_names)
        medians = [
            BandwidthChooser(candidates.with_columns({place}).points, shared.options.seed).median("euclidean", None)
            for place in range(self.numbers)
        ]
        self.numeric, self.codes = candidates.points.numeric / np.array(medians), candidates.points.codes
        self.goal, self.target = shared.kernel(target, "auto").kernels[0], target.points
        self.circle, self.places = cyclic_orders(self.n, shared.options.permutations, shared.options.seed)
        # |L| <= n bounds what U(L) was made of: where U(L) is 0, its own norm is rounding.
        self.tolerance = tie_tolerance(1.0, self.n, float(self.n))

    def product(self, chosen: Sequence[int], columns: float) -> tuple[Points, Kernel]:
        """Return the chosen columns and the product of their kernels, each at sqrt(columns) times its median.

        exp(-d^2 / (2 c s^2)) for a number, exp(-mismatch / c) for a category: with c columns in all, the product has
        about the width of a Gaussian at the median of all of them together.
        """
        numeric = [place for place in chosen if place < self.numbers]
        categories = [place - self.numbers for place in chosen if place >= self.numbers]
        points = Points(self.numeric[:, numeric], self.codes[:, categories])
        gaussian, hamming = Gaussian(math.sqrt(columns)), Hamming(columns)
        if not (numeric and categories):
            return points, gaussian if numeric else hamming
        every = (ColumnName("*", wildcard=True),)
        of_numbers = OnColumns(gaussian, Columns(tuple(range(len(numeric))), ()), every)
        of_categories = OnColumns(hamming, Columns((), tuple(range(len(categories)))), every)
        return points, ColumnGroups((of_numbers, of_categories))

    def steps(self, k: int, progress: Progress | None) -> list[SelectedColumn]:
        """Return k steps: the first by the definition of the test, the others by what is left of the target."""
        taken: list[int] = []
        chosen: list[SelectedColumn] = []
        before, going = 0.0, True
        own = features_of(self.goal, self.target)
        for step in range(1, k + 1):
            left = [c for c in range(len(self.names)) if c not in taken]
            parts, rounding, p_values = self._given(taken, left, own) if taken else self._alone(left)
            if not taken:
                alone = dict(zip(left, p_values, strict=True))
            # The first of the largest: rounding may part those that are equal.
            best = int(np.flatnonzero(parts + rounding >= (parts - rounding).max())[0])
            column = left[best]
            taken.append(column)
            points, kernel = self.product(taken, step)
            together = dependence(kernel, points, self.goal, self.target, self.engine)
            effect, p_value = together.effect_size, p_values[best]
            going = going and p_value <= self.alpha
            of_step = effect - before, float(parts[best]), p_value, alone[column], bool(going)
            chosen.append(SelectedColumn(step, self.names[column], together.unbiased, effect, *of_step))
            before = effect
            if progress is not None:
                progress(step, k)
        return chosen

    def _alone(self, left: Sequence[int]) -> tuple[Array, Array, list[float]]:
        """Return the effect size of each column by itself, how far rounding can move it, and its corrected p-value."""
        found = [dependence(kernel, points, self.goal, self.target, self.engine) for points, kernel in self._each(left)]
        effects, products = np.array([(one.effect_size, one.unbiased) for one in found]).T
        products /= factor(self.n, "unbiased")
        # An effect size is the root of a share of <U(K), U(L)>.
        rounding = np.divide(0.5 * self.tolerance * effects, products, where=products > 0, out=np.zeros(len(left)))
        goal = KernelStack(
            [(self.target, (self.goal,))], self.places[:1], self.circle, hollow=True, centred_by_rows=True
        )
        sums = []
        for start in range(0, len(left), TOGETHER):
            alone = [(rows, (kernel,)) for rows, kernel in self._each(left[start : start + TOGETHER])]
            stack = KernelStack(alone, self.places, self.circle, hollow=True, centred_by_rows=True)
            sums.append(shift_sums(goal, stack, engine=self.engine).centred()[0].reshape(len(alone), -1))
        values = np.concatenate(sums)
        return effects, rounding, step_down(scores_among_others(values, np.full(len(values), self.tolerance))).tolist()

    def _each(self, columns: Sequence[int]) -> list[tuple[Points, Kernel]]:
        """Return every one of some columns alone, and its kernel."""
        return [self.product([column], 1) for column in columns]

    def _given(self, taken: Sequence[int], left: Sequence[int], own: Factor) -> tuple[Array, Array, list[float]]:
        """Return the effect size of each candidate on what the columns taken leave of the target, its rounding and p-value.

        Both K, of the taken and the candidate together, and L are regressed on the taken: <R K R, R L R> over shifts of
        the second. What follows from the columns taken is in neither, whether the candidate depends on them or not
        (Zhang et al. 2011; Shah and Peters 2020).
        """
        columns = len(taken) + 1
        # Narrower kernels too, so that a target which is no smooth function of the columns leaves nothing of itself.
        leftover = Leftover((self.product(taken, columns * share) for share in (1.0, NARROWER)), own)
        rest, effects, values, tolerances = leftover.of(own), [], [], []
        for c in left:
            points, kernel = self.product([*taken, c], columns)
            both = leftover.of(features_of(kernel, points))
            sums = low_rank_sums(
                both, rest, self.places, self.circle, hollow=False, engine=self.engine, tolerance=LEFT_OUT
            )
            # Residuals vary less than errors do; those of other relabellings less by no more than that.
            sums[0, 0] *= leftover.share
            values.append(sums.ravel())
            with one_blas_thread():
                effects.append(low_rank_dependence(both, rest).effect_size)
            tolerances.append(self.tolerance + LEFT_OUT * float(both.lengths.sum() * rest.lengths.sum()))
        told = np.array(effects)
        if rest.lengths.sum() <= SHARE_LEFT * own.lengths.sum():
            # Less than the features left out.
            return np.zeros(len(left)), np.zeros(len(left)), [1.0] * len(left)
        return told, EQUAL * told, step_down(scores_among_others(np.array(values), np.array(tolerances))).tolist()
