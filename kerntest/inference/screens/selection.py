"""Greedy selection of columns for their joint dependence with a target (Song et al. 2012, forward selection)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import is_all
from kerntest.data.formats.dialect import CsvOptions
from kerntest.errors import either, option, telling, whole_number
from kerntest.inference.nulls.moments import centre
from kerntest.inference.nulls.permutation import scores, tie_tolerance
from kerntest.inference.relabelling.shifts import circle_length, cyclic_orders, orders_needed, shift_sums
from kerntest.inference.screens.many_pairs import Screen, step_down
from kerntest.inference.sides import Options, Reading, Variable
from kerntest.inference.statistic import dependence, factor
from kerntest.inference.work_of_tests import held_by_stacks, work_of_selection
from kerntest.kernels.algebra import ColumnGroups, ColumnName, OnColumns
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Gaussian, Hamming
from kerntest.matrices.passes import CentredProduct, KernelStack
from kerntest.report.results.independence_record import SelectedColumn, SelectionResult
from kerntest.report.results.record import Null
from kerntest.report.summaries.test_summary import selection_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.missing import MissingPolicy
    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Kernel

# Candidates whose transforms are made in one pass.
TOGETHER = 32


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

    The first column is the one with the largest effect size with the target. Every further one makes the effect size
    of all selected columns together, under a product of Gaussians whose bandwidths are the medians times the square
    root of the number of columns, as large as possible: a copy of a selected column adds little, a column that acts
    together with it does.

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
    Cost: O(P n^2 log n) time for each step with P candidates; O(32 n) to O(1024 n) numbers of memory.

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
    steps = min(k, count)
    shared.plan(
        count + 1,
        f"{steps} of {count} columns, one after another, each step under {permutations:,} relabellings or more",
        held_by_stacks(n, count, shared.engine),
        work_of_selection(n, count, steps, orders_needed(permutations, circle_length(n))),
    )
    selection = _Selection(candidates, goal, shared)
    chosen = selection.steps(steps, progress)
    significant = sum(step.significant for step in chosen)
    used = len(selection.places) * selection.circle
    return SelectionResult(
        schema="kerntest.hsic.selection/1",
        target=target,
        reject=significant > 0,
        decision=selection_sentence(target, chosen, alpha),
        columns=candidates.names,
        selected=tuple(chosen),
        significant=significant,
        null=Null("permutation", used, permutations, 1.0 / used, True, "cyclic shifts", len(selection.places)),
        **shared.told(),
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
        self.centring = centre(self.goal, self.target, self.engine, hollow=True)[0]
        self.circle, self.places = cyclic_orders(self.n, shared.options.permutations, shared.options.seed)
        # |L| <= n bounds what U(L) was made of: where U(L) is 0, its own norm is rounding.
        self.tolerance = tie_tolerance(1.0, self.n, float(self.n))

    def product(self, chosen: Sequence[int], columns: int) -> tuple[Points, Kernel]:
        """Return the chosen columns and the product of their kernels, each at sqrt(columns) times its median.

        exp(-d^2 / (2 c s^2)) for a number, exp(-mismatch / c) for a category: with c columns in all, the product has
        about the width of a Gaussian at the median of all of them together.
        """
        numeric = [place for place in chosen if place < self.numbers]
        categories = [place - self.numbers for place in chosen if place >= self.numbers]
        points = Points(self.numeric[:, numeric], self.codes[:, categories])
        gaussian, hamming = Gaussian(math.sqrt(columns)), Hamming(float(columns))
        if not (numeric and categories):
            return points, gaussian if numeric else hamming
        every = (ColumnName("*", wildcard=True),)
        of_numbers = OnColumns(gaussian, Columns(tuple(range(len(numeric))), ()), every)
        of_categories = OnColumns(hamming, Columns((), tuple(range(len(categories)))), every)
        return points, ColumnGroups((of_numbers, of_categories))

    def steps(self, k: int, progress: Progress | None) -> list[SelectedColumn]:
        """Return k steps."""
        taken: list[int] = []
        chosen: list[SelectedColumn] = []
        alone: dict[int, float] = {}
        before, going = 0.0, True
        for step in range(1, k + 1):
            left = [c for c in range(len(self.names)) if c not in taken]
            together = [self.product([*taken, c], step) for c in left]
            found = [dependence(kernel, points, self.goal, self.target, self.engine) for points, kernel in together]
            p_values = dict(zip(left, self._p_values(taken, left), strict=True))
            alone = alone or p_values
            # How far rounding can move an effect size, the root of a share of <U(K), U(L)>; the first of the largest.
            effects, products = np.array([(one.effect_size, one.unbiased) for one in found]).T
            products /= factor(self.n, "unbiased")
            rounding = np.divide(0.5 * self.tolerance * effects, products, where=products > 0, out=np.zeros(len(left)))
            best = int(np.flatnonzero(effects + rounding >= (effects - rounding).max())[0])
            column, effect = left[best], found[best].effect_size
            # A copy of a selected column gives the product kernel that there was.
            going = going and p_values[column] <= self.alpha and effect - before > rounding[best]
            of_step = effect - before, p_values[column], alone[column], bool(going)
            chosen.append(SelectedColumn(step, self.names[column], found[best].unbiased, effect, *of_step))
            before = effect
            taken.append(column)
            if progress is not None:
                progress(step, k)
        return chosen

    def _p_values(self, taken: Sequence[int], left: Sequence[int]) -> list[float]:
        """Return the corrected p-value of each candidate that is left.

        The statistic is <U(K_S o K_c), U(L)> = sum_ij (K_S o U(L))_ij K_c,ij for the selected columns S and the
        candidate c: a sum over two matrices of which shifts move the second, K_c, alone.
        """
        columns = len(taken) + 1
        selected = self.product(taken, columns) if taken else None
        points, kernel = CentredProduct.of(self.goal, self.target, self.centring, selected and selected[::-1])
        weights = KernelStack([(points, (kernel,))], self.places[:1], self.circle, hollow=True)
        sums = []
        for start in range(0, len(left), TOGETHER):
            alone = [self.product([c], columns) for c in left[start : start + TOGETHER]]
            stack = KernelStack([(rows, (kernel,)) for rows, kernel in alone], self.places, self.circle)
            found = shift_sums(weights, stack, engine=self.engine)
            sums.append(found.values[0].reshape(len(alone), -1))
        values = np.concatenate(sums)
        p: list[float] = step_down(scores(values, np.full(len(values), self.tolerance))[0]).tolist()
        return p
