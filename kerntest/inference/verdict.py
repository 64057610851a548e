"""A verdict: what a null says of a family of kernels, and the permutation null, which judges them together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.wording import counted
from kerntest.errors import UndecidedError
from kerntest.inference.nulls.permutation import JUDGES, Judged, judge, tie_tolerance
from kerntest.inference.permuted_blocks import ALL, BlockedRows, block_sums, factor_sums, relabelled_sums
from kerntest.inference.randomly import random_orders, random_sums
from kerntest.inference.statistic import Effect, LabelMatrix, discrepancy, label_matrix
from kerntest.matrices.factor import FEW_ROWS, LEFT_OUT, low_rank_factor, terms
from kerntest.report import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Judge, Labels, Options, Sample
    from kerntest.kernels.base import Array, Kernel, Points

# What helps where relabellings are too few.
MORE, MORE_ROWS = "use more --permutations", "it takes more rows"
# No more than so many times as many are advised at once.
MOST_MORE = 20.0
# Random relabellings that show whether a kernel can tell any two apart, where those of the test cannot.
OTHER_RELABELLINGS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a null says.

    Parameters
    ----------
    p_value : float
    kernel : Kernel
        The kernel it is reported for.
    found : Effect
        What that kernel measures.
    null : record.Null
        How the p-value was found.
    family : record.Family or None
        The other kernels, where there are any.
    relabelled : ndarray, shape (R,), or None
        The statistic of `kernel` under every relabelling, the observed first.
    warnings : tuple of str
    """

    p_value: float
    kernel: Kernel
    found: Effect
    null: record.Null
    family: record.Family | None
    relabelled: Array | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Relabelled:
    """Sums <K, B_g> of every kernel over one set of relabellings.

    Parameters
    ----------
    sums : ndarray, shape (F, R)
        [:, 0] is the observed labelling.
    label : LabelMatrix
    tolerances : ndarray, shape (F,)
        How far rounding can move a sum.
    resampling : str
        What the relabellings are, in words.
    complete : bool
        Whether they are all that there are.
    """

    sums: Array
    label: LabelMatrix
    tolerances: Array
    resampling: str
    complete: bool

    @property
    def floor(self) -> float:
        """The smallest p-value that they can give: samples of one size may change places."""
        ties = 2 if self.complete and self.label.n_x == self.label.n_y else 1
        return ties / int(self.sums.shape[1])


def different_relabellings(labels: Labels, options: Options) -> int:
    """Return how many different relabellings a test has: as many as were asked for, or as there are splits of its rows."""
    splits = math.comb(len(labels), int(labels.sum()))
    return splits if splits <= ALL else min(options.permutations, splits)


def relabel(
    kernels: Sequence[Kernel],
    sample: Sample,
    options: Options,
    engine: Engine,
    progress: Progress | None,
    *,
    relabellings: int,
) -> Relabelled:
    """Return the statistics of all kernels over shared relabellings: permuted blocks of rows, or of rows if asked for.

    Raises
    ------
    UndecidedError
        If a kernel overflows.
    """
    n, n_x = len(sample.points), int(sample.labels.sum())
    label = label_matrix(n_x, n - n_x, options.estimator)
    points, blocks = sample.points, BlockedRows.of(sample.labels, options.seed)
    left_out = np.zeros(len(kernels))
    resampling, complete = "random permutations", False
    with np.errstate(over="ignore", invalid="ignore"):
        if options.resampling == "random":
            labellings = random_orders(sample.labels, relabellings, options.seed)[1]
            placed = points.take(random_orders(sample.labels, 1, options.seed)[0])
            sums = random_sums(kernels, placed, label, labellings, engine=engine, progress=progress)
        else:
            moved = blocks.relabellings(relabellings, options.seed)
            between, left_out = _between_blocks(kernels, points, blocks, engine, progress)
            diagonals = np.stack([blocks.summed(kernel.diagonal(points)) for kernel in kernels])
            sums = relabelled_sums(between, diagonals, label, blocks, moved, engine=engine)
            if len(moved) == math.comb(n, n_x):
                resampling, complete = record.ALL_PERMUTATIONS, True
            elif blocks.free < n:
                resampling = f"permuted blocks of {counted(int(blocks.starts[1]), 'random row')}"
    refuse_overflow(kernels, sums)
    norm = math.sqrt(label.squared_norm)
    # A sum over all pairs of rows, their labels not centred, before the sums over rows are taken out.
    tolerances = np.array([tie_tolerance(float(kernel.diagonal(points).max()), n, float(n)) for kernel in kernels])
    # The trace of what a factor leaves out, times the norm of B, bounds what it could add.
    tolerances += left_out * norm
    return Relabelled(sums, label, tolerances, resampling, complete)


def _between_blocks(
    kernels: Sequence[Kernel], points: Points, blocks: BlockedRows, engine: Engine, progress: Progress | None
) -> tuple[Array, Array]:
    """Return the sums over pairs of blocks, shape (F, b, b), and the trace that factors leave out of each matrix.

    The terms of sums each on its own: those whose matrix is of low rank by its factor, the others together, tile by tile.
    """
    sums, left_out = np.zeros((len(kernels), *2 * blocks.in_x.shape)), np.zeros(len(kernels))
    whole = [(place, term) for place, kernel in enumerate(kernels) for term in terms(kernel)]
    if len(points) > FEW_ROWS:
        # From wide to narrow: where a bandwidth is too narrow for a factor, the next of the same kind is too.
        chains: dict[tuple[str, int], list[tuple[int, Kernel]]] = {}
        for place, kernel in enumerate(kernels):
            for number, term in enumerate(terms(kernel)):
                chains.setdefault((str(kernel).partition("(")[0], number), []).append((place, term))

        def by_factors(chain: list[tuple[int, Kernel]]) -> list[tuple[Array, float]]:
            factors = ((term, low_rank_factor(term, points, LEFT_OUT)) for _, term in chain)
            some = takewhile(lambda one: one[1] is not None, factors)
            return [(factor_sums(factor, points, term, blocks), factor.residual) for term, factor in some if factor]

        whole = []
        for chain, found in zip(chains.values(), engine.here.map(by_factors, list(chains.values())), strict=True):
            for (place, _), (between, residual) in zip(chain, found, strict=False):
                sums[place] += between
                left_out[place] += residual
            whole += chain[len(found) :]
    if whole:
        over_tiles = block_sums([term for _, term in whole], points, blocks, engine, progress)
        for (place, _), between in zip(whole, over_tiles, strict=True):
            sums[place] += between
    return sums, left_out


def permutation_verdict(
    family: Family, sample: Sample, options: Options, engine: Engine, progress: Progress | None
) -> Verdict:
    """Judge the family over all relabellings together."""
    relabelled = relabel(family.kernels, sample, options, engine, progress, relabellings=options.permutations)
    judged = judge(relabelled.sums, relabelled.tolerances, options.judge, family.halvings)
    if judged.degenerate.all():
        # A few relabellings of a few rows can all be the same split (p = 1): only others tell what the kernel sees.
        others = replace(options, resampling="random")
        more = relabel(family.kernels, sample, others, engine, None, relabellings=OTHER_RELABELLINGS)
        refuse_degenerate(judge(more.sums, more.tolerances), family)
    chosen, used, factor = judged.selected, relabelled.sums.shape[1], relabelled.label.factor
    null = record.Null(
        method="permutation",
        permutations=used,
        requested=options.permutations,
        p_floor=relabelled.floor,
        exact=True,
        resampling=relabelled.resampling,
        orders=None,
        mean=float(factor * judged.mean[chosen]),
        standard_deviation=float(factor * judged.standard_deviation[chosen]),
        skewness=float(judged.skewness[chosen]),
        trace=None,
    )
    together = judged_family(family, judged, options.judge)
    kernel = family.kernels[chosen]
    found = discrepancy(kernel, sample.points, sample.labels, engine)
    values = factor * relabelled.sums[chosen]
    return Verdict(
        judged.p_value,
        kernel,
        found,
        null,
        together,
        values,
        relabelling_warning(
            judged.p_value, used, options.alpha, MORE_ROWS if relabelled.complete else MORE, relabelled.floor
        ),
    )


def judged_family(family: Family, judged: Judged, how: Judge) -> record.Family | None:
    """Return the record of a family that was judged; None for one kernel."""
    if len(family.kernels) < 2:
        return None
    excess = [None] * len(judged.z) if judged.excess is None else judged.excess.tolist()
    members = tuple(
        record.FamilyMember(str(kernel), float(z), float(p), u)
        for kernel, z, p, u in zip(family.kernels, judged.z, judged.p_values, excess, strict=True)
    )
    return record.Family(how, JUDGES[how], members, family.thinning, judged.p_clearest)


def relabelling_warning(
    p_value: float, used: int, alpha: float, way_out: str = MORE, floor: float | None = None
) -> tuple[str, ...]:
    """Return a warning where the relabellings are too few: to reject at all, or to tell the p-value from alpha."""
    floor = 1.0 / used if floor is None else floor
    if floor > alpha:
        warning = (
            f"the smallest p-value that {counted(used, 'relabelling')} can give is {floor:.3g}, above alpha = "
            f"{alpha:g}: the test cannot reject; {way_out}"
        )
        return (warning,)
    distance, error = abs(p_value - alpha), math.sqrt(p_value * (1.0 - p_value) / used)
    # Without a way to more relabellings these are all, and their p-value has no Monte-Carlo error. Where none of them
    # reaches the observed one, its error is not known.
    if way_out != MORE or p_value <= floor or distance > 2.0 * error:
        return ()
    enough = used * min((2.0 * error / distance) ** 2, MOST_MORE) if distance else used * MOST_MORE
    warning = (
        f"alpha = {alpha:g} lies within two Monte-Carlo standard errors ({error:.2g} each) of the p-value, so that other "
        f"relabellings might decide otherwise: --permutations {_round_number_above(enough)} would tell more surely"
    )
    return (warning,)


def _round_number_above(number: float) -> int:
    """Return the least of 1, 2, 5, 10, 20, ... that is larger."""
    power = int(10.0 ** math.floor(math.log10(number)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power > number)


def refuse_overflow(kernels: Sequence[Kernel], sums: np.ndarray[Any, Any]) -> None:
    """Refuse sums that are not finite.

    Raises
    ------
    UndecidedError
        Naming the kernel.
    """
    for kernel, values in zip(kernels, sums, strict=True):
        if not np.isfinite(values).all():
            raise overflow(kernel)


def overflow(kernel: Kernel) -> UndecidedError:
    """Return the error for a kernel whose values or sums are beyond the range of numbers."""
    return UndecidedError(
        f"the kernel '{kernel}' overflows on these rows",
        hint="--scale standardize, or a smaller gain or degree, keeps it in range",
        code="undecided.overflow",
    )


def refuse_degenerate(judged: Judged, family: Family) -> None:
    """Refuse a family of which no member can tell any two relabellings apart.

    Raises
    ------
    UndecidedError
        As above.
    """
    if judged.degenerate.all():
        raise degenerate_kernel(family)


def degenerate_kernel(family: Family) -> UndecidedError:
    """Return the error for kernels that find all pairs of rows equally similar."""
    return UndecidedError(
        f"the kernel '{family.kernels[0]}' finds all pairs of different rows equally similar, or these rows allow one "
        "value of the statistic only: nothing can be tested",
        hint="try --kernel gaussian --bandwidth median: a bandwidth far too small or too large, delta on numbers, or too few "
        "different rows do this",
        code="undecided.degenerate_kernel",
    )
