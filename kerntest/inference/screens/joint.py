"""Joint independence of several groups of columns: dHSIC, and what it becomes when rows of the groups are paired anew.

    dHSIC_b = mean_ij prod_g K^g_ij + prod_g mean_ij K^g_ij - (2/n) sum_i prod_g mean_k K^g_ik

(Pfister, Buehlmann, Schoelkopf and Peters 2018, definition 2.6) is the squared distance between the mean embedding of
the joint distribution and that of the product of its margins. With d = 2 it is HSIC_b. A relabelling permutes the rows
of every group but the first, each group whole and by a permutation of its own: this destroys the dependence between
groups and keeps that between the columns of a group.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import match_names
from kerntest.data.diagnostics import counters
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.rows import check_usable
from kerntest.engines.plan import TABLE_BYTES, tell
from kerntest.engines.setting import allowed_bytes, engine_of
from kerntest.errors import UndecidedError, UsageError, telling
from kerntest.inference.exact import inputs_of, paired_copies, provenance_of
from kerntest.inference.family import BandwidthOption, choose_kernel
from kerntest.inference.nulls.permutation import ROUNDING_UNITS, judge
from kerntest.inference.planning import ABOUT_COLUMNS
from kerntest.inference.screens.many_pairs import screen
from kerntest.inference.sides import ORDER_STREAM, Groups, MissingPolicy, Options, Reading, Scale, pair_up, read_one
from kerntest.inference.verdict import degenerate_pair, permutation_null, refuse_overflow, relabelling_warning
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import DensePairs
from kerntest.report.results.independence_record import GroupPair, JointGroup, JointResult
from kerntest.report.summaries.independence_summary import joint_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Table
    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.sides import Paired
    from kerntest.kernels.base import Array, Kernel, Points

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
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    JointResult

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError
        If a column is in two groups or not there, or there are fewer than two groups.
    DataError
        If the table cannot be read, or a group has nothing to test.
    UndecidedError
        If the kernel matrices of all groups would take more than 1 GB.

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
    started = time.perf_counter()
    options = Options("biased", "permutation", permutations, alpha, scale, seed)
    engine = engine_of(threads)
    table = read_one(data, Reading(categorical=categorical, csv=CsvOptions.of(**csv)))
    tables = _groups(table, groups, exclude)
    paired = pair_up(tables, missing, scale)
    refuse_too_many(paired.n, len(paired.variables))
    families = [
        choose_kernel(
            kernel,
            bandwidth,
            numeric_names=variable.numeric_names,
            category_names=variable.category_names,
            chooser=BandwidthChooser(variable.points, seed),
        )
        for variable in paired.variables
    ]
    kernels = [family.kernels[0] for family in families]
    columns = sum(len(one.names) for one in paired.variables)
    tell(
        "hsic",
        paired.n,
        columns,
        steps=(
            f"{len(kernels)} kernel matrices whole, under {permutations:,} random permutations of all groups but one",
        ),
        held=TABLE_BYTES * paired.n * columns + 8.0 * len(kernels) * paired.n**2,
        operations={"relabelled": (len(kernels) - 1.0) * permutations * paired.n**2},
        engine=engine,
        refusal=(f"this test of {paired.n:,} rows takes", ABOUT_COLUMNS),
    )
    points = [one.points for one in paired.variables]
    values = relabelled_joint(kernels, points, _permutations(paired.n, len(kernels) - 1, options), engine, progress)
    refuse_overflow(kernels[:1], values[None])
    judged = judge(values[None], np.array([joint_bound(kernels, points)]))
    if judged.degenerate.all() and len(values) > 1:
        raise degenerate_pair(kernels[0], kernels[1])
    names = [
        tuple(name for name in one.names if name not in family.unused)
        for one, family in zip(paired.variables, families, strict=True)
    ]
    return JointResult(
        schema="kerntest.hsic.joint/1",
        command="hsic",
        statistic=float(values[0]),
        statistic_name="dhsic",
        estimator="biased",
        dhsic=float(values[0]),
        p_value=judged.p_value,
        alpha=alpha,
        reject=judged.p_value <= alpha,
        decision=joint_sentence(judged.p_value, alpha, len(kernels)),
        kernel="; ".join(str(one) for one in kernels),
        n=paired.n,
        columns=tuple(name for group in names for name in group),
        groups=tuple(JointGroup(group, str(one)) for group, one in zip(names, kernels, strict=True)),
        pairs=_in_pairs(kernels, paired, options, engine),
        null=permutation_null(judged, len(values), permutations, resampling="random permutations of whole groups"),
        warnings=(
            *tables.warnings,
            *paired.warnings,
            *(text for table in tables.tables for text in counters(table.columns)),
            *paired_copies(paired),
            *relabelling_warning(judged.p_value, len(values), alpha),
        ),
        provenance=provenance_of(
            options,
            inputs_of(tables.read, [paired.n]),
            asked=(kernel,),
            rule=str(bandwidth),
            engine=engine,
            started=started,
        ),
        columns_left_out=(
            *(name for one in paired.arranged for name in one.left_out),
            *(name for family in families for name in family.unused),
        ),
    )


def _groups(table: Table, groups: str | Sequence[Patterns], exclude: Patterns) -> Groups:
    """Return the columns of each group as a table."""
    excluded = set(match_names(exclude, table.names, table.name))
    if isinstance(groups, str):
        groups = [[name] for name in match_names(groups, table.names, table.name) if name not in excluded]
    owner: dict[str, int] = {}
    members: list[list[str]] = []
    for number, patterns in enumerate(groups):
        names = [name for name in match_names(patterns, table.names, table.name) if name not in excluded]
        for name in names:
            if owner.setdefault(name, number) != number:
                raise UsageError(
                    f"column {name!r} is in two groups",
                    hint="a column depends on itself: name it in one group",
                    code="usage.column_twice",
                    where={"file": table.name, "column": name},
                )
        if not names:
            raise UsageError(
                f"group {number + 1} has no column left",
                hint="name more in it, and exclude fewer",
                code="usage.groups",
                where={"file": table.name},
            )
        members.append(names)
    if len(members) < 2:
        raise UsageError(
            f"a joint test needs at least two groups of columns, not {len(members)}",
            hint="--joint a,b,c makes three groups of one column; --joint a,b --joint c makes two groups",
            code="usage.groups",
        )
    return Groups(
        (table,), tuple(check_usable(table.select(names)) for names in members), table.select(list(owner)).warnings
    )


def _permutations(n: int, moved: int, options: Options) -> list[list[NDArray[np.int32]]]:
    """Return the identity, and random permutations of every group but the first."""
    rng = np.random.default_rng((options.seed, ORDER_STREAM))
    drawn = [[rng.permutation(n).astype(np.int32) for _ in range(moved)] for _ in range(options.permutations - 1)]
    return [[np.arange(n, dtype=np.int32)] * moved, *drawn]


def _in_pairs(kernels: Sequence[Kernel], paired: Paired, options: Options, engine: Engine) -> tuple[GroupPair, ...]:
    """Return the HSIC test of every two groups, by moments."""
    pairs = list(combinations(range(len(kernels)), 2))
    names = [", ".join(one.names) for one in paired.variables]
    sides = [(one.points, kernel) for one, kernel in zip(paired.variables, kernels, strict=True)]
    found = screen(sides, pairs, replace(options, estimator="unbiased", permutations=1), engine)
    return tuple(
        GroupPair(
            names[a], names[b], one.effect.unbiased, one.effect.effect_size, 1.0 if one.p_value is None else one.p_value
        )
        for (a, b), one in zip(pairs, found, strict=True)
    )


def largest_rows(d: int) -> int:
    """Return the largest number of rows that can be relabelled in d groups: d matrices of 1 GB in all, or what is allowed."""
    return math.isqrt(allowed_bytes(8 * LARGEST_ENTRIES) // (8 * d))


def refuse_too_many(n: int, d: int) -> None:
    """Refuse to relabel more rows than d whole matrices have room for."""
    most = largest_rows(d)
    if n > most:
        raise UndecidedError(
            f"the joint test of {d} groups holds {d} whole matrices: {n:,} rows are more than {most:,}",
            hint=f"test the pairs with --pairwise, which has no such limit, or a random sample of {most:,} rows",
            code="undecided.memory",
        )


def joint_bound(kernels: Sequence[Kernel], points: Sequence[Points]) -> float:
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


def relabelled_joint(
    kernels: Sequence[Kernel],
    points: Sequence[Points],
    permutations: Sequence[Sequence[NDArray[np.integer[Any]]]],
    engine: Engine,
    progress: Progress | None = None,
) -> Array:
    """Return dHSIC_b when row p_g(i) of each group g is paired with row i of the first, for R relabellings (p_2 .. p_d).

    Cost: O(R d n^2 / 2) time, at most 8 d n^2 bytes: d - 1 matrices of the distinct rows of a group, and half of one.
    Values do not depend on the number of threads, nor on which relabellings are asked for together.
    """
    n, d = len(points[0]), len(kernels)
    refuse_too_many(n, d)
    # The matrix of the first group is held as strips only: its whole is gone before the others are made.
    strips, first_means = _strips(_table(kernels[0], points[0], engine))
    others = [_table(kernel, group, engine) for kernel, group in zip(kernels[1:], points[1:], strict=True)]
    other_means = [table.row_means() for table in others]
    work = _Relabelling(strips, first_means, others, other_means, _product_of_margins([first_means, *other_means]))
    parts = [permutations[start : start + TOGETHER] for start in range(0, len(permutations), TOGETHER)]
    # Whole matrices stay where they are: other processes would each need a copy.
    return np.concatenate([np.empty(0), *engine.here.map(work, parts, progress)])


def _product_of_margins(row_means: Sequence[Array] | Array) -> float:
    """Return prod_g mean_ij K^g_ij from the means of the rows of every K^g, shape (d, n)."""
    return math.prod(float(means.mean()) for means in row_means)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A kernel matrix through the m distinct rows of its group: K_ij = values[place_i, place_j].

    Equal rows share their entries, so that relabellings which only exchange them tie. A group of
    categories has a table that stays in the cache.
    """

    values: Array
    place: NDArray[np.intp]

    def row_means(self) -> Array:
        """Return mean_k K_ik, shape (n,)."""
        counts = np.bincount(self.place, minlength=len(self.values)).astype(np.float64)
        # Not a BLAS product: its rounding would depend on the number of threads.
        means: Array = np.einsum("ij,j->i", self.values, counts)[self.place] / len(self.place)
        return means


def _table(kernel: Kernel, points: Points, engine: Engine) -> _Table:
    """Return the kernel matrix of a group; blocks of rows keep memory to one matrix."""
    order, place = _distinct(points)
    rows = points.take(order)
    values = np.empty((len(order), len(order)))

    def fill(start: int) -> None:
        values[start : start + BLOCK] = kernel.evaluate(DensePairs(rows.take(slice(start, start + BLOCK)), rows))

    for _ in engine.here.map(fill, range(0, len(order), BLOCK)):
        pass
    np.fill_diagonal(values, kernel.diagonal(rows))
    return _Table(values, place)


def _distinct(points: Points) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return one of each kind of distinct rows, and which kind each row is."""
    columns = [*points.numeric.T, *points.codes.T]
    order = np.lexsort(columns)
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for column in columns:
        ascending = column[order]
        new[1:] |= ascending[1:] != ascending[:-1]
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.cumsum(new) - 1
    return order[new], place


@dataclass(frozen=True, slots=True, eq=False)
class _Strip:
    """Rows [start, start + h) of the first matrix in the columns from `start` on, those beyond its square doubled.

    Summed over all strips, K_ij times any symmetric matrix is then the sum over all i, j.
    """

    start: int
    values: Array


def _strips(table: _Table) -> tuple[list[_Strip], Array]:
    """Return the first matrix as strips, and the means of its rows."""
    n = len(table.place)
    height = max(FEWEST_STRIP_ROWS, STRIP_ENTRIES // n)
    strips = []
    for start in range(0, n, height):
        here = table.place[start : start + height]
        values = table.values[here[:, None], table.place[start:]]
        values[:, len(here) :] *= 2.0
        strips.append(_Strip(start, values))
    return strips, table.row_means()


@dataclass(frozen=True, slots=True, eq=False)
class _Relabelling:
    """The work on some relabellings: dHSIC_b under each."""

    strips: Sequence[_Strip]
    first_means: Array
    others: Sequence[_Table]
    other_means: Sequence[Array]
    margins: float

    def __call__(self, permutations: Sequence[Sequence[NDArray[np.integer[Any]]]]) -> Array:
        """Return the statistics, shape (len(permutations),)."""
        n = len(self.first_means)
        places = [[table.place[p] for table, p in zip(self.others, each, strict=True)] for each in permutations]
        sums: Array = np.zeros(len(permutations))
        scratch = np.empty((3, self.strips[0].values.size))
        for strip in self.strips:
            for number, each in enumerate(places):
                sums[number] += self._strip_sum(strip, each, scratch)
        crossed = np.array([self._crossed_rows(each) for each in permutations])
        return sums / n**2 + self.margins - 2.0 * crossed

    def _strip_sum(self, strip: _Strip, places: Sequence[NDArray[np.intp]], scratch: Array) -> float:
        """Return the sum over a strip of its entries times those of all other matrices."""
        shape, size = strip.values.shape, strip.values.size
        between, product, gathered = scratch
        product, gathered = product[:size].reshape(shape), gathered[:size].reshape(shape)
        for number, (table, place) in enumerate(zip(self.others, places, strict=True)):
            columns = place[strip.start :]
            _gather(table.values, columns[: shape[0]], columns, between, product if number == 0 else gathered)
            if number > 0:
                np.multiply(product, gathered, out=product)
        # Row by row: the running sums of one long product would lose digits.
        return float(np.vecdot(strip.values, product).sum())

    def _crossed_rows(self, permutation: Sequence[NDArray[np.integer[Any]]]) -> float:
        """Return mean_i prod_g mean_k K^g_ik."""
        product = self.first_means.copy()
        for means, p in zip(self.other_means, permutation, strict=True):
            product *= means[p]
        return float(product.mean())


def _gather(table: Array, rows: NDArray[np.intp], columns: NDArray[np.intp], between: Array, out: Array) -> None:
    """Write table[rows_i, columns_j] into `out`.

    Whole rows are moved as they lie in memory, single entries only inside what was moved: both steps stay in the cache.
    With few distinct rows the columns are taken first, and then once for all rows that are equal.

    `between` has room for h m or m w entries, whichever is less.
    """
    m, (h, w) = len(table), out.shape
    # "clip" writes into `out` at once, where the default would write into a copy first.
    if 4 * m <= 3 * h:
        some_columns = between[: m * w].reshape(m, w)
        np.take(table, columns, axis=1, out=some_columns, mode="clip")
        np.take(some_columns, rows, axis=0, out=out, mode="clip")
    else:
        some_rows = between[: h * m].reshape(h, m)
        np.take(table, rows, axis=0, out=some_rows, mode="clip")
        np.take(some_rows, columns, axis=1, out=out, mode="clip")
