"""Joint independence of several groups of columns: dHSIC, and what it becomes when rows of the groups are paired anew.

    dHSIC_b = mean_ij prod_g K^g_ij + prod_g mean_ij K^g_ij - (2/n) sum_i prod_g mean_k K^g_ik

(Pfister, Buehlmann, Schoelkopf and Peters 2018, definition 2.6) is the squared distance between the mean embedding of
the joint distribution and that of the product of its margins. With d = 2 it is HSIC_b. A relabelling permutes the rows
of every group but the first, each group whole and by a permutation of its own: this destroys the dependence between
groups and keeps that between the columns of a group.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.diagnostics.dependent_rows import pair_warnings
from kerntest.data.formats.dialect import CsvOptions
from kerntest.engines.engine import allowed_bytes, memory_to_hold
from kerntest.engines.plan import added, count_wanted
from kerntest.errors import UndecidedError, either, option, shown_argument, telling
from kerntest.inference.nulls.permutation import ROUNDING_UNITS, judge
from kerntest.inference.relabelling.designs import are_all, different_orders, orders_of
from kerntest.inference.screens.many_pairs import Screen, in_squares, screen
from kerntest.inference.screens.work_of_screens import (
    JointGroups,
    PairsOfRows,
    Screened,
    bytes_of_pairs,
    work_of_pairs,
)
from kerntest.inference.sides import ORDER_STREAM, Options, Reading, Scale
from kerntest.inference.verdict import (
    MORE,
    MORE_ROWS,
    degenerate,
    permutation_null,
    refuse_overflow,
    relabelling_warning,
)
from kerntest.kernels.base import DensePairs
from kerntest.matrices.different import equal_rows
from kerntest.report.results.independence_record import GroupPair, JointGroup, JointResult
from kerntest.report.results.record import ALL_PERMUTATIONS
from kerntest.report.summaries.test_summary import joint_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias, Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.missing import MissingPolicy
    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.family import BandwidthOption
    from kerntest.kernels.base import Array, Kernel, Points

    # A permutation of the rows of each group but the first.
    Relabelling: TypeAlias = Sequence[NDArray[np.int32]]

# Entries of all matrices that relabelling holds: 1 GB.
LARGEST_ENTRIES = 2**27
# Rows of a block of kernel values.
BLOCK = 256
# Entries of a strip of gathered values (256 KB, and three of them), and the fewest rows that are worth a call.
STRIP_ENTRIES, FEWEST_STRIP_ROWS = 2**15, 64
# Relabellings of one piece of work: each strip of the first matrix is read once for all of them.
TOGETHER = 16


@telling
@np.errstate(over="ignore", invalid="ignore")
def hsic_joint(
    data: Any,
    groups: str | Sequence[Patterns],
    *,
    kernel: Kernel | str = "auto",
    bandwidth: BandwidthOption = "median",
    permutations: int = 1000,
    alpha: float = 0.05,
    scale: Scale = "standardize",
    seed: int = 0,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> JointResult:
    """Test whether several groups of columns are jointly independent.

    Groups can be independent in pairs and dependent together: of two fair coins and whether they agree, any two tell
    nothing of one another and the three are dependent.

    Parameters
    ----------
    data : path, "-", ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
    groups : str, or sequence of str or of sequences of str
        The columns of each group, two groups or more: names, ranges `a:b`, wildcards `temp_*`. One text makes every
        column that it names a group of its own.
    kernel : Kernel or str
        For every group. "auto" is the Gaussian for numbers and the hamming kernel for categories.
    bandwidth : "median" or float
        Of each group.
    permutations : int
        Random relabellings, the observed one among them: every group but the first has its rows, whole, permuted.
    alpha, scale, seed, exclude, categorical, missing, threads, progress
        As in `hsic_test`.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    JointResult

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError
        If a column is in two groups or not there, or there are fewer than two groups.
    DataError
        If the table cannot be read, or a group has nothing to test.
    UndecidedError
        If the kernel matrices of all groups would take more than 1 GB, or two thirds of what `compute_on` allows.

    Notes
    -----
    Cost: O(d n^2) time for each relabelling and up to 8 d n^2 bytes for d groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.integers(0, 2, size=(100, 2))
    >>> hsic_joint(np.column_stack([coins, coins.sum(axis=1) % 2]), ["x1", "x2", "x3"]).reject
    True
    """
    options = Options("biased", "permutation", permutations, alpha, scale, seed)
    reading = Reading(exclude=exclude, categorical=categorical, missing=missing, csv=CsvOptions.of(**csv, seed=seed))
    shared = Screen(data, options, threads, reading, kernel=kernel, bandwidth=bandwidth)
    variables = shared.paired(_groups(shared, groups))
    n, d = shared.n, len(variables)
    most = math.isqrt(allowed_bytes(8 * LARGEST_ENTRIES) // (8 * d))
    if n > most:
        memory = memory_to_hold(8 * d * n**2)
        allowed = memory and either(option("memory", memory), f"`with compute_on({option('memory', memory)})`")
        raise UndecidedError(
            f"the joint test of {d} groups holds {d} whole matrices: {n:,} rows are more than {most:,}",
            hint=f"{f'{allowed} allows them; or ' if allowed else ''}test the pairs with {either('--pairwise', 'hsic_pairs')}, which "
            f"has no such limit, or a random part, by {option('sample', most)}",
            code="undecided.memory",
        )
    families = [shared.kernel(variable) for variable in variables]
    kernels = [family.kernels[0] for family in families]
    points = [one.points for one in variables]
    sides = list(zip(points, kernels, strict=True))
    every_two = list(combinations(range(d), 2))
    if count_wanted(n):
        _plan(shared, sum(len(one.names) for one in variables), sides, every_two, permutations)
    relabellings = _relabellings(n, d - 1, permutations, seed)
    values = JointStatistic(kernels, points, shared.engine).relabelled(relabellings, shared.engine, progress)
    refuse_overflow(kernels[:1], values[None])
    bound = rounding_bound(kernels, points)
    judged, observed = judge(values[None], np.array([bound])), float(values[0])
    # Less than rounding can make is nothing.
    observed = 0.0 if abs(observed) <= bound else observed
    if judged.degenerate.all() and len(values) > 1:
        raise degenerate(kernels[0], kernels[1])
    unseen = [name for family in families for name in family.unused]
    names = [tuple(name for name in one.names if name not in unseen) for one in variables]
    shared.left_out += tuple(unseen)
    named = [", ".join(one.names) for one in variables]
    complete = are_all(orders_of(n) ** (d - 1), permutations)
    words = ALL_PERMUTATIONS if complete else "random permutations"
    in_pairs = screen(sides, every_two, replace(options, estimator="unbiased", permutations=1), shared.engine)
    pairs = tuple(
        GroupPair(
            *(named[a], named[b], one["hsic_unbiased"], one["effect_size"]),
            1.0 if one["p_value"] is None else one["p_value"],
        )
        for (a, b), (one, _) in zip(every_two, in_pairs, strict=True)
    )
    # Columns that depend on each other may do so because rows are of few cases, or follow one another.
    dependent = [
        pair
        for (a, b), one in zip(every_two, pairs, strict=True)
        if max(one.p_value, judged.p_value) <= alpha
        for pair in product(names[a], names[b])
    ]
    tested = [shared.table[name] for group in names for name in group if name in shared.table.names]
    return JointResult(
        schema="kerntest.hsic.joint/1",
        statistic=observed,
        statistic_name="dhsic",
        estimator="biased",
        dhsic=observed,
        p_value=judged.p_value,
        reject=judged.p_value <= alpha,
        decision=joint_sentence(judged.p_value, alpha, d),
        kernel="; ".join(str(one) for one in kernels),
        columns=tuple(name for group in names for name in group),
        groups=tuple(JointGroup(group, str(one)) for group, one in zip(names, kernels, strict=True)),
        pairs=pairs,
        null=permutation_null(judged, len(values), permutations, resampling=f"{words} of whole groups"),
        **shared.told(
            *relabelling_warning(judged.p_value, len(values), alpha, MORE_ROWS if complete else MORE),
            *pair_warnings(dependent, tested, shared.table),
        ),
    )


def _plan(
    shared: Screen,
    columns: int,
    sides: Sequence[tuple[Points, Kernel]],
    every_two: Sequence[tuple[int, int]],
    permutations: int,
) -> None:
    """Tell what the test takes, and the tests of every two groups that are told beside it."""
    n, threads = shared.n, shared.engine.threads
    joint = JointGroups(n, sides, [_different(points) for points, _ in sides], _strip_rows(n))
    groups = {place: Screened.of(*side) for place, side in enumerate(sides)}
    # These have no relabellings of their own.
    pairs = [PairsOfRows(n, [[every_two[index] for index in some] for some in in_squares(every_two, n)], 1)]
    least, most = bytes_of_pairs(groups, pairs, shared.engine, target=False)
    held = joint.held(permutations, threads)
    shared.plan(
        columns,
        f"{len(sides)} kernel matrices whole, under {permutations:,} random permutations of all groups but one",
        (max(held, least), max(held, most)),
        added(joint.work(permutations), work_of_pairs(groups, pairs)),
    )


def _relabellings(n: int, moved: int, asked: int, seed: int) -> list[Relabelling]:
    """Return orders of the rows of so many groups, as they are first: random ones, or of few rows all."""
    if are_all(orders_of(n) ** moved, asked):
        every = [np.array(one, dtype=np.int32) for one in different_orders(range(n))]
        return list(product(every, repeat=moved))
    rng = np.random.default_rng((seed, ORDER_STREAM))
    drawn = [[rng.permutation(n).astype(np.int32) for _ in range(moved)] for _ in range(asked - 1)]
    return [[np.arange(n, dtype=np.int32)] * moved, *drawn]


def _groups(shared: Screen, groups: str | Sequence[Patterns]) -> list[list[str]]:
    """Return the columns of each group."""
    if isinstance(groups, str):
        groups = [[name] for name in shared.names(groups)]
    if not isinstance(groups, list | tuple):
        hint = "['a', 'b', 'c'] are three groups of one column, [['a', 'b'], 'c'] two groups"
        raise shared.refusal(f"groups must be a list of names, not {shown_argument(groups)}", hint, "groups")
    members: list[list[str]] = []
    for number, patterns in enumerate(groups, 1):
        names = shared.names(patterns)
        for name in names:
            if any(name in others for others in members):
                hint = "a column depends on itself: name it in one group"
                raise shared.refusal(f"column {name!r} is in two groups", hint, "column_twice", column=name)
        if not names:
            raise shared.refusal(f"group {number} has no column left", "name more in it, and exclude fewer", "groups")
        members.append(names)
    if len(members) < 2:
        raise shared.refusal(
            f"a joint test needs at least two groups of columns, not {len(members)}",
            either("--joint a,b,c", "['a', 'b', 'c']")
            + " makes three groups of one column; "
            + either("--joint a,b --joint c", "[['a', 'b'], ['c']]")
            + " makes two groups",
            "groups",
        )
    return members


def _different(points: Points) -> int:
    """Return how many different rows there are."""
    found = equal_rows([points.numeric, points.codes])
    return len(points) if found is None else len(found[0])


def _strip_rows(n: int) -> int:
    """Return how many rows of the first matrix are a strip."""
    return max(FEWEST_STRIP_ROWS, STRIP_ENTRIES // n)


def rounding_bound(kernels: Sequence[Kernel], points: Sequence[Points]) -> float:
    """Return how far rounding can move dHSIC_b between two relabellings that are equal.

    With s = sqrt(k(x, x)) and |K_ij| <= s_i s_j, the absolute values of all that is summed add up to at most

        (mean_i prod_g s^g_i + prod_g mean_i s^g_i)^2

    for the observed pairing of rows, and for any that ties with it.

    Positive definite kernels; O(d n) time.
    """
    lengths = [np.sqrt(np.abs(kernel.diagonal(group))) for kernel, group in zip(kernels, points, strict=True)]
    together = float(np.mean(np.prod(lengths, axis=0)))
    apart = math.prod(float(length.mean()) for length in lengths)
    return ROUNDING_UNITS * float(np.finfo(np.float64).eps) * (together + apart) ** 2


class _GroupMatrix:
    """A kernel matrix through the m distinct rows of its group: K_ij = values[place_i, place_j]; means_i = mean_k K_ik.

    Equal rows share their entries, so that relabellings which only exchange them tie. A group of
    categories has a table that stays in the cache.
    """

    def __init__(self, kernel: Kernel, points: Points, engine: Engine) -> None:
        # One of each kind of distinct rows, and which kind each row is.
        columns = np.column_stack([points.numeric, points.codes])
        _, first, kinds = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        rows, self.place = points.take(first), kinds.ravel()
        self.values = np.empty((len(rows), len(rows)))

        def fill(start: int) -> None:
            block = slice(start, start + BLOCK)
            self.values[block] = kernel.evaluate(DensePairs(rows.take(block), rows))

        # Blocks of rows keep memory to one matrix.
        for _ in engine.here.map(fill, range(0, len(rows), BLOCK)):
            pass
        np.fill_diagonal(self.values, kernel.diagonal(rows))
        counts = np.bincount(self.place, minlength=len(rows)).astype(np.float64)
        # Not a BLAS product: its rounding would depend on the number of threads.
        self.means: Array = np.einsum("ij,j->i", self.values, counts)[self.place] / len(self.place)

    def strips(self) -> list[tuple[int, Array]]:
        """Return rows [a, a + h) in the columns from a on, with a, those beyond the square doubled.

        Summed over all strips, K_ij times any symmetric matrix is then the sum over all i, j.
        """
        n = len(self.place)
        height = _strip_rows(n)
        strips = []
        for start in range(0, n, height):
            strip = self.values[self.place[start : start + height, None], self.place[start:]]
            strip[:, height:] *= 2.0
            strips.append((start, strip))
        return strips


class JointStatistic:
    """dHSIC_b of several groups under relabellings: row p_g(i) of each group g is paired with row i of the first.

    At most 8 d n^2 bytes: d - 1 matrices of the distinct rows of a group, and half of one.
    """

    def __init__(self, kernels: Sequence[Kernel], points: Sequence[Points], engine: Engine) -> None:
        # The matrix of the first group is held as strips only: its whole is gone before the others are made.
        first = _GroupMatrix(kernels[0], points[0], engine)
        self.strips, self.means = first.strips(), first.means
        del first
        self.others = [_GroupMatrix(*group, engine) for group in zip(kernels[1:], points[1:], strict=True)]
        self.margins = math.prod(float(means.mean()) for means in (self.means, *(one.means for one in self.others)))

    def relabelled(self, relabellings: Sequence[Relabelling], engine: Engine, progress: Progress | None) -> Array:
        """Return the statistics; they depend neither on the number of threads nor on which are asked for together.

        Cost: O(R d n^2 / 2) time.
        """
        parts = [relabellings[start : start + TOGETHER] for start in range(0, len(relabellings), TOGETHER)]
        # Whole matrices stay where they are: other processes would each need a copy.
        return np.concatenate([*engine.here.map(self, parts, progress)])

    def __call__(self, relabellings: Sequence[Relabelling]) -> Array:
        """Return the statistics under some relabellings."""
        n = len(self.means)
        places = [[one.place[p] for one, p in zip(self.others, each, strict=True)] for each in relabellings]
        sums: Array = np.zeros(len(relabellings))
        for start, strip in self.strips:
            for number, each in enumerate(places):
                product = strip
                for one, place in zip(self.others, each, strict=True):
                    rows, columns = place[start : start + len(strip)], place[start:]
                    # Whole rows are moved as they lie in memory, single entries only where there are fewer of them.
                    few = len(one.values) < len(rows)
                    product = product * (
                        np.take(one.values, columns, axis=1)[rows]
                        if few
                        else np.take(one.values[rows], columns, axis=1)
                    )
                # Row by row: the running sums of one long product would lose digits.
                sums[number] += product.sum(axis=1).sum()
        # mean_i prod_g mean_k K^g_ik.
        crossed = [
            np.prod([self.means, *(one.means[p] for one, p in zip(self.others, each, strict=True))], axis=0).mean()
            for each in relabellings
        ]
        return sums / n**2 + self.margins - 2.0 * np.array(crossed)
