"""Greedy selection of columns for their joint dependence with a target (Song et al. 2012, forward selection)."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import match_names
from kerntest.data.diagnostics import counters
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.messages import whole_number
from kerntest.data.rows import check_usable
from kerntest.engines.plan import TABLE_BYTES, tell
from kerntest.engines.setting import engine_of
from kerntest.errors import UsageError, telling
from kerntest.inference.exact import inputs_of, paired_copies, provenance_of
from kerntest.inference.family import choose_kernels
from kerntest.inference.nulls.invariants import centre
from kerntest.inference.nulls.permutation import scores, tie_tolerance
from kerntest.inference.planning import ABOUT_COLUMNS, held_by_stacks
from kerntest.inference.relabelling.shifts import circle_length, orders_needed, shift_sums
from kerntest.inference.screens.corrections import step_down
from kerntest.inference.sides import ORDER_STREAM, Groups, MissingPolicy, Options, Reading, Variable, pair_up, read_one
from kerntest.inference.statistic import Effect, dependence, factor
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Gaussian, Hamming
from kerntest.kernels.groups import BoundGroups, ColumnName, Group, OnColumns
from kerntest.matrices.lags import KernelStack
from kerntest.matrices.matrix import CentredProduct
from kerntest.report.results.independence_record import SelectedColumn, SelectionResult
from kerntest.report.results.record import Null
from kerntest.report.summaries.independence_summary import selection_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Table
    from kerntest.engines.engine import Engine, Progress
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
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    SelectionResult

    Warns
    -----
    DataWarning
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
    started = time.perf_counter()
    options = Options("unbiased", "permutation", permutations, alpha, "standardize", seed)
    whole_number("select", k, at_least=1)
    engine = engine_of(threads)
    table = read_one(data, Reading(categorical=categorical, csv=CsvOptions.of(**csv)))
    groups = _groups(table, target, columns, exclude)
    paired = pair_up(groups, missing, "standardize")
    candidates, goal = paired.variables
    steps = min(k, len(candidates.names))
    count = len(candidates.names)
    tell(
        "hsic",
        paired.n,
        count + 1,
        steps=(
            f"{steps} of {count} columns, one after another, each step under {permutations:,} relabellings or more",
        ),
        held=TABLE_BYTES * paired.n * (count + 1) + held_by_stacks(paired.n, count, engine),
        operations={"lag": 4.0 * steps * count * paired.n**2},
        engine=engine,
        refusal=(f"this test of {paired.n:,} rows takes", ABOUT_COLUMNS),
    )
    selection = _Selection(candidates, goal, options, engine)
    chosen = selection.steps(steps, progress)
    significant = sum(step.significant for step in chosen)
    return SelectionResult(
        schema="kerntest.hsic.selection/1",
        command="hsic",
        target=target,
        alpha=alpha,
        reject=significant > 0,
        decision=selection_sentence(target, [step.column for step in chosen], significant),
        n=paired.n,
        columns=candidates.names,
        selected=tuple(chosen),
        significant=significant,
        null=selection.relabellings(),
        warnings=(
            *groups.warnings,
            *paired.warnings,
            *(text for table in groups.tables for text in counters(table.columns)),
            *paired_copies(paired),
        ),
        provenance=provenance_of(
            options,
            inputs_of(groups.read, [paired.n]),
            asked=("gaussian",),
            rule="median",
            engine=engine,
            started=started,
        ),
        columns_left_out=tuple(name for one in paired.arranged for name in one.left_out),
    )


def _groups(table: Table, target: str, columns: Any, exclude: Any) -> Groups:
    """Return the candidates and the target as two groups of columns."""
    match_names([target], table.names, table.name)
    named = match_names(columns, table.names, table.name) if columns else list(table.names)
    excluded = {target, *match_names(exclude, table.names, table.name)}
    candidates = [name for name in named if name not in excluded]
    if not candidates or target not in table.names:
        raise UsageError(
            f"no column of {table.name} is left to select from",
            hint="name more in --columns, and exclude fewer",
            code="usage.no_columns",
            where={"file": table.name},
        )
    return Groups(
        (table,),
        tuple(check_usable(table.select(names)) for names in (candidates, [target])),
        table.select([*candidates, target]).warnings,
    )


class _Candidates:
    """The candidates with their columns in units of their median distances, and the products of their kernels."""

    def __init__(self, variable: Variable, seed: int) -> None:
        self.names = variable.names
        self.numbers = len(variable.numeric_names)
        medians = [
            BandwidthChooser(variable.with_columns({place}).points, seed).median("euclidean", None)
            for place in range(self.numbers)
        ]
        self.numeric = variable.points.numeric / np.array(medians)
        self.codes = variable.points.codes

    def product(self, chosen: Sequence[int], columns: int) -> tuple[Points, Kernel]:
        """Return the chosen columns and the product of their kernels, each at sqrt(columns) times its median.

        exp(-d^2 / (2 c s^2)) for a number, exp(-mismatch / c) for a category: with c columns in all, the product has
        about the width of a Gaussian at the median of all of them together.
        """
        numeric = [place for place in chosen if place < self.numbers]
        categories = [place - self.numbers for place in chosen if place >= self.numbers]
        points = Points(self.numeric[:, numeric], self.codes[:, categories])
        gaussian, hamming = Gaussian(math.sqrt(columns)), Hamming(float(columns))
        if not categories:
            return points, gaussian
        if not numeric:
            return points, hamming
        parts = (
            (gaussian, Columns(tuple(range(len(numeric))), ())),
            (hamming, Columns((), tuple(range(len(categories))))),
        )
        groups = tuple(
            Group((ColumnName("*", wildcard=True),), OnColumns(kernel, columns)) for kernel, columns in parts
        )
        return points, BoundGroups(groups)


class _Selection:
    """Forward selection over one set of relabellings."""

    def __init__(self, candidates: Variable, target: Variable, options: Options, engine: Engine) -> None:
        self.options = options
        self.engine = engine
        self.n = len(target.points)
        self.candidates = _Candidates(candidates, options.seed)
        self.goal = choose_kernels(
            "auto",
            "median",
            numeric_names=target.numeric_names,
            category_names=target.category_names,
            chooser=BandwidthChooser(target.points, options.seed),
            single=True,
        ).kernels[0]
        self.target = target.points
        self.centring = centre(self.goal, self.target, engine, hollow=True)[0]
        self.circle = circle_length(self.n)
        rng = np.random.default_rng((options.seed, ORDER_STREAM))
        self.places = [rng.permutation(self.n) for _ in range(orders_needed(options.permutations, self.circle))]

    def steps(self, k: int, progress: Progress | None) -> list[SelectedColumn]:
        """Return k steps."""
        taken: list[int] = []
        chosen: list[SelectedColumn] = []
        alone: dict[int, float] = {}
        before, going = 0.0, True
        for step in range(1, k + 1):
            left = [c for c in range(len(self.candidates.names)) if c not in taken]
            found = [self._together([*taken, c]) for c in left]
            p_values = dict(zip(left, self._p_values(taken, left), strict=True))
            alone = alone or p_values
            best = self._largest(found)
            column, effect = left[best], found[best].effect_size
            # A copy of a selected column gives the product kernel that there was.
            gained = effect - before > self._rounding(found[best])
            going = going and p_values[column] <= self.options.alpha and gained
            chosen.append(
                SelectedColumn(
                    step=step,
                    column=self.candidates.names[column],
                    hsic_unbiased=found[best].unbiased,
                    effect_size=effect,
                    gain=effect - before,
                    p_value=p_values[column],
                    p_alone=alone[column],
                    significant=going,
                )
            )
            before = effect
            taken.append(column)
            if progress is not None:
                progress(step, k)
        return chosen

    def _together(self, chosen: Sequence[int]) -> Effect:
        """Return how the target depends on some candidates together."""
        points, kernel = self.candidates.product(chosen, len(chosen))
        return dependence(kernel, points, self.goal, self.target, self.engine)

    def _largest(self, found: Sequence[Effect]) -> int:
        """Return the first place of those with the largest effect size up to rounding."""
        effects = np.array([one.effect_size for one in found])
        rounding = np.array([self._rounding(one) for one in found])
        return int(np.flatnonzero(effects + rounding >= (effects - rounding).max())[0])

    def _rounding(self, found: Effect) -> float:
        """Return how far rounding can move an effect size, the root of a share of <U(K), U(L)>."""
        product = found.unbiased / factor(self.n, "unbiased")
        return 0.5 * found.effect_size * tie_tolerance(1.0, self.n, float(self.n)) / product if product > 0 else 0.0

    def _p_values(self, taken: Sequence[int], left: Sequence[int]) -> list[float]:
        """Return the corrected p-value of each candidate that is left.

        The statistic is <U(K_S o K_c), U(L)> = sum_ij (K_S o U(L))_ij K_c,ij for the selected columns S and the
        candidate c: a sum over two matrices of which shifts move the second, K_c, alone.
        """
        columns = len(taken) + 1
        selected = self.candidates.product(taken, columns) if taken else None
        points, kernel = CentredProduct.of(self.goal, self.target, self.centring, selected and selected[::-1])
        weights = KernelStack([(points, (kernel,))], self.places[:1], self.circle, hollow=True)
        sums = []
        for start in range(0, len(left), TOGETHER):
            part = left[start : start + TOGETHER]
            sources = []
            for c in part:
                rows, alone = self.candidates.product([c], columns)
                sources.append((rows, (alone,)))
            found = shift_sums(
                weights,
                KernelStack(sources, self.places, self.circle),
                n=self.n,
                circle=self.circle,
                orders=len(self.places),
                engine=self.engine,
            )
            sums.append(found.values[0].reshape(len(part), -1))
        values = np.concatenate(sums)
        # |L| <= n bounds what U(L) was made of: where U(L) is 0, its own norm is rounding.
        tolerances = np.full(len(values), tie_tolerance(1.0, self.n, float(self.n)))
        return [float(p) for p in step_down(scores(values, tolerances)[0])]

    def relabellings(self) -> Null:
        """Return what the p-values come from."""
        used = len(self.places) * self.circle
        return Null(
            method="permutation",
            permutations=used,
            requested=self.options.permutations,
            p_floor=1.0 / used,
            exact=True,
            resampling="cyclic shifts",
            orders=len(self.places),
            mean=None,
            standard_deviation=None,
            skewness=None,
            trace=None,
        )
