"""What the tests take, counted: units of work, least and most, and bytes, by rows, columns, relabellings and kernels."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kerntest.engines.plan import added
from kerntest.inference.explain import cross_covariance
from kerntest.inference.nulls.moments import EXACT_TRACE_ROWS, PROBES
from kerntest.inference.relabelling import shifts
from kerntest.inference.relabelling.circles import SHARES
from kerntest.inference.relabelling.designs import ALL, BLOCKS
from kerntest.inference.relabelling.permuted_blocks import TILE, TOGETHER_BLOCKS, TOGETHER_ROWS, kernels_together
from kerntest.inference.statistic import UNITS
from kerntest.kernels.algebra import terms
from kerntest.kernels.counting import work_of_values
from kerntest.kernels.elementary import Gaussian
from kerntest.kernels.text import is_additive, plain
from kerntest.matrices import factor
from kerntest.matrices.different import few_different
from kerntest.matrices.factor import FEW_ROWS, LEFT_OUT, MOST_DIRECTIONS, TOLERANCE, expected_rank
from kerntest.matrices.passes import kept_together, plan_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.engines.plan import Work
    from kerntest.inference.exact import Statistic
    from kerntest.inference.relabelling.designs import BlockedRows
    from kerntest.inference.sides import Options
    from kerntest.kernels.base import Kernel, Points

Side: TypeAlias = "tuple[Points, Sequence[Kernel]]"
# Members of a family, as places in the kernels of both sides.
Pair: TypeAlias = "tuple[int, int]"

# All measured. Steps over the entries of a matrix while a sweep, a block of lags, a pair of these or blocks of rows add
# them up; sweeps of a null that is a curve; and steps of Lanczos for each permutation, least and most.
SWEPT_ENTRIES, LINED_ENTRIES, PAIRED_ENTRIES, SUMMED_ENTRIES = 8.0, 8.0, 4.0, 4.0
SWEEPS, LANCZOS_STEPS = 5.0, (8, 30)
# Of all correlations of the columns of two factors the share that is needed.
NEEDED = 0.65
# Calls of numpy for a column of a factor, a tile, and a term of a kernel, however few rows there are.
CALLS_OF_COLUMN, CALLS_OF_TILE, CALLS_OF_TERM = 150.0, 50.0, 150.0
# The same of the relabellings of a stratum for each kernel.
CALLS_OF_STRATUM = 500.0
# Steps over the entries of relabellings that are drawn, of their labels for each kernel, and of tiles of blocks of
# several sizes.
DRAWN_ENTRIES, LABEL_ENTRIES, UNEVEN_ENTRIES = 60.0, 30.0, 6.0
# Of measured peaks: what tiles and FFT take besides the arrays of a block, finished pieces that wait, copies of the sums
# while they are judged, and of vectors while a matrix is multiplied with them.
BLOCK_SHARE, UNDER_WAY, SUMS, SWEPT, SUMS_OF_BLOCKS, COPIES, COPIES_OF_TERMS = 1.1, 3, 4, 4, 2, 4.0, 9.0
# Labels and weights of blocks of a design, and what each kernel makes of them; sums of rows over the samples of each stratum.
LABELS, LABELS_OF_KERNEL, CELLS = 4.0, 2.0, 8.0
# A tile of the matrices of a two-sample test with the arrays that go with it.
TILE_BYTES = 2**24
# Columns of a factor in units of those of a sample; and columns that are made together, with what they are made of.
MORE_COLUMNS, COLUMNS_UNDER_WAY = 1.2, 60.0
# Columns of the factor by which a kernel is measured in units of those that leave out more; and arrays of them, of which
# those below so many bytes stay with the process when they are gone.
FINER, MEASURED, KEPT_FREE = 1.25, (1.3, 2.4), 2**25
# So many more tiles are held where values are products of those of numbers and of categories.
FACTORS_OF_TILE = 4
# Bytes for each entry between circles; and transforms in two dimensions, and steps over the entries of those of a pair.
CIRCLED_BYTES, CIRCLED, ENTRIES_OF_CIRCLE = 40.0, 4.0, 6.0
# Products of entries between clusters, with those of a tile.
PRODUCTS_BYTES = 16.0
# The same of the matrix of a sample.
SAMPLE_BYTES = 24.0
# A piece of a file, and each of its columns.
PIECE_BYTES, COLUMN_BYTES = 75 * 10**6, 3 * 10**6


class Step(NamedTuple):
    """What is computed: in words, the bytes that it holds on so many threads beside the rows, and its work, least and most.

    Where values decide, it holds `least` bytes or more.
    """

    what: str
    held: Callable[[int], float]
    work: Work
    most: Work
    least: Callable[[int], float] | None = None

    @classmethod
    def sure(cls, what: str, held: Callable[[int], float], work: Work) -> Step:
        """Return a step whose least is its most."""
        return cls(what, held, work, work)


def step_of_test(
    sides: Sequence[Side],
    options: Options,
    *,
    pairs: Sequence[Pair] = ((0, 0),),
    statistic: Statistic = "hsic",
    designed: BlockedRows | None = None,
    several: bool = False,
    cosets: int = 1,
    places: int = 0,
    whole: int | None = None,
    circle: int = 0,
    stride: int = 1,
) -> Step:
    """Return what a test of some pairs of kernels takes, whose rows may lie in blocks of a design, or in blocks anew.

    Of a design `several` rows may be of one unit. Random permutations of two variables hold matrices of `whole` rows; of
    none where clusters are shifted on circles, in so many `cosets`, or by products of entries between so many `places`. So many rows are shifted on a `circle`, if not the
    usual, and shifts by a `stride` are relabellings.
    """
    n, paired, permutations = len(sides[0][0]), len(sides) > 1, options.permutations
    first, second = len(sides[0][1]), len(sides[-1][1]) if paired else 1
    matrices, entries = first + second * paired, float(n) ** 2 / 2
    counted = f"{first} + {second}" if paired else f"{first}"
    counted += f" kernel {'matrix' if max(first, second) == 1 else 'matrices'}"

    def swept(times: float) -> Work:
        """Sweeps make all values of each matrix and sum them up."""
        every = (work_of_values([kernel], points) for points, kernels in sides for kernel in kernels)
        return added(*every, {"entry": SWEPT_ENTRIES * matrices}, times=times * entries)

    if statistic != "hsic":
        what = f"{counted} as products of few columns, under {permutations:,} random permutations"
        return _spectral(what, sides, permutations, statistic)
    if options.null != "permutation":
        # So many vectors a matrix is multiplied with at once, and the diagonal beside those of a cubic trace; in all more.
        probes = {"moments": 2, "pearson": 2, "spectral": 1}.get(options.null, 0)
        vectors = n if probes and n <= EXACT_TRACE_ROWS else probes * PROBES
        multiplied = {0: 0, 1: 2 * PROBES, 2: 5 * PROBES}[probes] if n > EXACT_TRACE_ROWS else probes * n
        beside = n > EXACT_TRACE_ROWS and options.null != "spectral"
        relabelled = step_of_test(sides, replace(options, null="permutation"), pairs=pairs, cosets=cosets)
        again = relabelled.work if options.null == "pearson" else {}
        work = added(swept(SWEEPS), {"product": 2.0 * matrices * multiplied * entries})

        def held(threads: int) -> float:
            curve = swept_bytes(n, vectors + beside, threads) if vectors else 0.0
            return curve + (relabelled.held(threads) if again else 0.0)

        return Step.sure(f"{counted} in tiles, for the {options.null} null", held, added(work, again))
    if options.resampling == "random" and whole == 0:
        what = f"{counted} in tiles, under {permutations:,} cyclic shifts of clusters"
        # The one side is swept to be centred; of a few clusters, or of their sums, hardly anything is transformed.
        made = added(swept(1.5), {"call": CALLS_OF_TILE * (n / TILE) ** 2 / 2})
        circled: Work = {"fft": CIRCLED * (first + cosets * second), "entry": ENTRIES_OF_CIRCLE * cosets * len(pairs)}
        tile, tables = CIRCLED_BYTES * matrices * TILE**2, 24.0 * len(pairs) * max(permutations, ALL)
        if places:
            tiles, tables_of = n / TILE * (n / TILE + 1.0) / 2, float(first * second) * places**2
            of_places: Work = {
                "product": first * second * places * entries,
                "gather": permutations * places * len(pairs) * min(SHARES, tiles),
                "entry": ENTRIES_OF_CIRCLE * matrices * entries + 2.0 * tables_of * tiles,
            }
            tile += PRODUCTS_BYTES * tables_of
            return Step.sure(what, lambda threads: threads * (tile + tables), added(made, of_places))
        spectra = 16.0 * cosets * len(pairs) * TILE**2
        most, least = (lambda threads, held=held: threads * held for held in (tile + tables + spectra, tile))
        return Step(what, most, made, added(made, added(circled, times=entries)), least)
    if options.resampling == "random" and paired:
        what, held_pairs = (
            f"{counted} whole, under {permutations:,} random permutations",
            float(n if whole is None else whole) ** 2 / 2,
        )
        each = 2.0 * permutations * held_pairs
        moved = {"gather": 1.3 * second * each, "product": 3.0 * first * second * each}
        # Matrices are stacked one side after the other, and one of them is relabelled.
        return Step.sure(what, lambda _: 16.0 * (first + 2 * second + 2) * held_pairs, added(swept(1.0), moved))
    if options.resampling == "random":
        what = f"{counted} in tiles, under {permutations:,} random permutations"
        together = min(TOGETHER_ROWS, permutations)
        sums = {"product": 2.0 * permutations * matrices * entries}
        work = added(swept(-(-permutations // together)), sums)
        return Step.sure(what, lambda threads: swept_bytes(n, together + 1, threads), work)
    if not paired:
        what = f"{counted} in tiles, summed over blocks of rows, under {permutations:,} permutations of these"
        what += f", in {cosets:,} random orders" if cosets > 1 else ""
        return _blocks(what, *sides[0], permutations, designed=designed, several=several, cosets=cosets)
    return _shifts(counted, sides, permutations, pairs, circle=circle or shifts.circle_length(n), stride=stride)


def work_of_factor(rank: float, kernel: Kernel, points: Points) -> dict[str, float]:
    """Return what an incomplete Cholesky factor of so many columns takes, or to find none; of a sum each term has its own."""
    count, columns = len(terms(kernel)), rank if math.isfinite(rank) else float(factor.FIRST_COLUMNS)
    entries = len(points) * columns
    values = added(work_of_values([kernel], points), {"product": columns}, times=entries / count)
    # Beyond the columns that are tried first a sample of the rows tells whether there is one.
    looked = {"exp": factor.SAMPLED**2, "product": factor.SAMPLED**2 * 300.0, "call": 3000.0}
    looked = added(looked, times=float(count) if rank / count > factor.FIRST_COLUMNS else 0.0)
    return added(values, looked, {"entry": 2.0 * entries, "call": CALLS_OF_COLUMN * columns})


def _blocks(
    what: str,
    points: Points,
    kernels: Sequence[Kernel],
    permutations: int,
    *,
    designed: BlockedRows | None,
    several: bool,
    cosets: int,
) -> Step:
    """Return the sums of kernels over pairs of blocks of rows, for each set of these, and of those over relabellings."""
    n, blocks = len(points), float(min(len(points), BLOCKS) if designed is None else len(designed.in_x))
    calls = CALLS_OF_TILE * len(kernels) * (n / TILE) ** 2 / 2 + CALLS_OF_TERM * sum(map(len, map(terms, kernels)))
    drawn = permutations * blocks * (DRAWN_ENTRIES + LABEL_ENTRIES * len(kernels))
    relabelled: Work = {"product": permutations * len(kernels) * blocks**2, "entry": drawn}
    # What each set of blocks takes, but for the relabellings.
    shared: Work = {"call": calls}
    if designed is not None:
        # Pairs of rows that belong together are summed by themselves.
        strata = int(designed.strata.max()) + 1
        pairs = float(n * min(UNITS, n))
        weighed = blocks**2 * (9.0 if designed.swaps else 6.0) / strata
        own: Work = {"entry": 8.0 * len(kernels), "product": blocks * len(kernels)}
        own = added(work_of_values(kernels, points), own, times=pairs if several else 0.0)
        calls = CALLS_OF_STRATUM * strata * len(kernels) * math.ceil(permutations / TOGETHER_BLOCKS)
        each: Work = {"product": permutations * len(kernels) * weighed, "call": calls}
        shared = added(shared, own, each)
    ends: list[list[Work]] = [[shared], [shared]]
    tiled: list[list[Kernel]] = [[], []]
    # From wide to narrow, until a bandwidth is too narrow for a factor.
    narrow: set[str] = set()
    widest, chains, measured = dict[str, list[float]](), dict[str, int](), 0.0
    for kernel in kernels:
        name = str(kernel).partition("(")[0]
        ranks = (math.inf, math.inf) if name in narrow else expected_rank(kernel, points, LEFT_OUT)
        # Terms of one name follow one another; a thread has one chain of them. One is tried even of the first.
        chains.setdefault(name, len(terms(kernel)) if n > FEW_ROWS and kernel.positive_definite else 0)
        if math.isinf(ranks[0]):
            narrow.add(name)
        for end, rank in enumerate(ranks):
            if math.isinf(rank):
                tiled[end].append(kernel)
            else:
                ends[end] += [work_of_factor(rank, kernel, points), {"product": rank * blocks**2}]
            tried = _columns_tried(kernel, ranks[0], rank, n)
            columns = widest.setdefault(name, [0.0, 0.0])
            # A sum may end before all of its terms are made.
            columns[end] = max(columns[end], tried * (0.5 if not end and len(terms(kernel)) > 1 else 1.0))
        measured = max(measured, _measured_bytes(n, kernel, ranks))
    for works, whole in zip(ends, tiled, strict=True):
        # The matrix of the clearest kernel, and its square, times both samples of every stratum.
        strata = 0 if designed is None or 2 * len(whole) <= len(kernels) else int(designed.strata.max()) + 1
        works.append({"product": 4.0 * n**2 * strata})
        summed = SUMMED_ENTRIES + (0.0 if designed is None or designed.even else UNEVEN_ENTRIES)
        values = added(work_of_values(whole, points, halved=True), {"entry": summed * len(whole)})
        works.append(added(values, times=n**2 / 2))
    # Each term of a sum keeps its distances and its values of a tile.
    together = max((len(terms(kernel)) for kernel in tiled[1]), default=1)
    if tiled[1] and points.codes.shape[1] and points.numeric.shape[1]:
        together += FACTORS_OF_TILE

    def held(threads: int, end: int = 1) -> float:
        # Factors are gone before pairs of rows of one unit are summed.
        factors = chained_bytes(n, chains, widest, threads, end)
        own = derived_bytes(points, kernels)
        tiles = blocked_bytes(n, len(kernels), permutations, threads * together, cosets)
        if designed is None:
            return own + max(factors + tiles, measured * end)
        # Beside the sums over as many blocks as there are without a design.
        weighed = own_bytes(designed, kernels, permutations, threads) - blocked_bytes(n, len(kernels), 0, 0)
        units = 16.0 * n * blocks if several else 0.0
        cells = CELLS * 8.0 * n * 2 * (int(designed.strata.max()) + 1)
        return own + max(max(factors, units, weighed) + tiles, cells, measured * end)

    low, high = (added(relabelled, added(*works, times=float(cosets))) for works in ends)
    return Step(what, held, low, high, partial(held, end=0))


def _columns_tried(kernel: Kernel, least: float, rank: float, n: int) -> float:
    """Return of how many columns a factor of each term is made, or tried, of a kernel of such a rank, infinite for none."""
    if math.isinf(least):
        return float(factor.FIRST_COLUMNS)
    return (max(least, factor.MOST_COLUMNS * math.sqrt(n)) if math.isinf(rank) else rank) / len(terms(kernel))


def _measured_bytes(n: int, kernel: Kernel, ranks: tuple[float, float]) -> float:
    """Return the bytes of all columns of the factor by which a kernel is measured, if it is the clearest; of none it is by tiles."""
    if math.isinf(ranks[0]):
        return 0.0
    columns = min(FINER * _columns_tried(kernel, *ranks, n), factor.MOST_COLUMNS * math.sqrt(n)) * len(terms(kernel))
    return 8.0 * n * MEASURED[8 * n * factor.ROOM < KEPT_FREE] * min(columns, factor.MOST_OF_SUM * n)


def _shifts(
    counted: str, sides: Sequence[Side], permutations: int, pairs: Sequence[Pair], *, circle: int, stride: int
) -> Step:
    """Return the sums of pairs of matrices over all shifts, of which those by a stride are relabellings, as `TwoVariables` goes."""
    n, single, shifted = len(sides[0][0]), len(pairs) == 1, circle // stride
    orders = shifts.orders_needed(permutations, shifted)
    known = [_ranks(*side, single=single) for side in sides]
    finite = (
        [{place: ends[end] for place, ends in some.items() if ends[end] <= factor.MOST_OF_SUM * n} for some in known]
        for end in (0, 1)
    )
    (low, *helds, _), (high, other, lined) = (_by_shifts(sides, pairs, orders, circle, ranks) for ranks in finite)
    helds.append(other)
    way = "a block of lags at a time" if lined else "as products of few columns"
    what = f"{counted} {way}, under {orders * shifted:,} cyclic relabellings"
    # Factors may take more than lines, in less time.
    most, least = (lambda threads, of=of: of(held(threads) for held in helds) for of in (max, min))
    return Step(what, most, low, high, least)


def _ranks(points: Points, kernels: Sequence[Kernel], *, single: bool) -> dict[int, tuple[float, float]]:
    """Return the least and most columns of the matrices that `TwoVariables` looks at as products of few."""
    many, tolerance = len(points) > FEW_ROWS, TOLERANCE if single else LEFT_OUT
    smooth, repeated = points.numeric.shape[1] == 1, many and few_different(points, math.sqrt(len(points))) is not None
    return {
        place: expected_rank(kernel, points, tolerance)
        for place, kernel in enumerate(kernels)
        if single or (many and (repeated or is_additive(kernel) or (smooth and isinstance(plain(kernel), Gaussian))))
    }


def _by_shifts(
    sides: Sequence[Side], pairs: Sequence[Pair], orders: int, circle: int, ranks: Sequence[dict[int, float]]
) -> tuple[Work, Callable[[int], float], bool]:
    """Return the work of all shifts, and the bytes, where matrices are products of so many columns; and whether any goes by lines."""
    n = len(sides[0][0])
    needed = {(f, g): NEEDED * ranks[0][f] * ranks[1][g] for f, g in pairs if f in ranks[0] and g in ranks[1]}
    correlated = shifts.correlated_pairs(n, ranks, pairs, needed)
    lined = [pair for pair in pairs if pair not in correlated]
    each, transformed = sum(needed[pair] for pair in correlated), shifts.transform_work(circle)
    works = [added({"fft": transformed, "entry": 3.0}, times=each * orders * n)]
    works.append({"entry": PAIRED_ENTRIES * len(lined) * orders * n**2 / 2})
    columns, kept = 0.0, 1
    for side, ((points, kernels), own, times) in enumerate(zip(sides, ranks, (1, orders), strict=True)):
        for place, rank in own.items():
            works += [work_of_factor(rank, kernels[place], points), {"product": rank**2 * n, "spectrum": rank**3}]
        places = sorted({pair[side] for pair in lined})
        # Of many rows additive kernels are linear kernels of their factors, where these have few columns.
        thin = {place for place in places if place in own and is_additive(kernels[place])}
        whole = [kernels[place] for place in places if place not in thin]
        line = {
            "product": sum(own[place] for place in thin),
            "entry": LINED_ENTRIES * len(places),
            "fft": transformed * len(places),
        }
        works.append(added(work_of_values(whole, points), line, times=times * n**2 / 2))
        kept = max(kept, kept_together(whole) if whole else 1)
        # Transforms of those that are correlated, beside all factors.
        columns += (
            sum(own.values())
            + COPIES * sum(own[place] for place in thin)
            + (1.0 + times) * max((own[pair[side]] for pair in correlated), default=0.0)
        )
    first, second = (len({pair[side] for pair in lined}) for side in (0, 1))

    def held(threads: int) -> float:
        """Return the bytes of factors, and of lines."""
        bytes_ = sum(derived_bytes(*side) for side in sides) + 8.0 * n * columns
        return bytes_ + shifted_bytes(n, first, second, orders, threads, kept=kept) if lined else bytes_

    return added(*works), held, bool(lined)


def _spectral(what: str, sides: Sequence[Side], permutations: int, statistic: Statistic) -> Step:
    """Return a measure by singular values, of many columns some steps of Lanczos for each permutation."""
    n = len(sides[0][0])
    most = min(n, cross_covariance.MOST_COLUMNS) if n > cross_covariance.FULL_RANK_ROWS else n
    ranks = [
        min(expected_rank(kernels[0], points, cross_covariance.TOLERANCE, most)[0], most) for points, kernels in sides
    ]
    factors = added(
        *(work_of_factor(rank, kernels[0], points) for rank, (points, kernels) in zip(ranks, sides, strict=True))
    )
    # Of one side the factor is made while that of the other is there.
    bytes_ = 12.0 * n * sum(ranks)
    if statistic != "coco":
        whole = added(
            *({"spectrum": float(rank) ** 3, "product": n * rank * (rank + MOST_DIRECTIONS)} for rank in ranks)
        )
        factors, ranks = added(factors, whole), [min(rank, MOST_DIRECTIONS) for rank in ranks]
    if statistic == "kmi" or 2 * math.prod(ranks) <= cross_covariance.SMALL_RANK * sum(ranks):
        each: Work = {
            "product": n * math.prod(ranks),
            "gather": n * ranks[1],
            # A determinant is half as much.
            "spectrum": (0.5 if statistic == "kmi" else 1.0) * min(ranks) ** 3,
            "call": 20.0,
        }
        return Step.sure(what, lambda _: bytes_, added(factors, added(each, times=permutations)))
    step = {"product": 2.0 * n * sum(ranks), "gather": 2.0 * n}
    low, high = (added(factors, added(step, times=float(steps * permutations))) for steps in LANCZOS_STEPS)
    return Step(what, lambda _: bytes_, low, high)


def derived_bytes(points: Points, kernels: Sequence[Kernel]) -> float:
    """Return the bytes of what is derived from rows and kept with them: in another order, and for products of matrices.

    Of terms on single columns these are three columns each, on either side of a product.
    """
    copies = COPIES + (COPIES_OF_TERMS if any(len(terms(kernel)) > 1 for kernel in kernels) else 0.0)
    return 8.0 * points.numeric.size * copies


def factor_bytes(n: int, rank: float) -> float:
    """Return the bytes that making a factor takes, of which a sample told the columns: there are some more."""
    copied, most = 2.0 * factor.ROOM if rank > factor.ROOM else 0.0, max(rank, factor.MOST_COLUMNS * math.sqrt(n))
    return 8.0 * n * (max(copied, min(MORE_COLUMNS * rank, most)) + COLUMNS_UNDER_WAY)


def chained_bytes(n: int, chains: dict[str, int], widest: dict[str, list[float]], threads: int, end: int) -> float:
    """Return the bytes of the factors that threads make side by side: one of each of the kernels, and terms, of a name.

    After the columns that are tried first, the matrix of a sample tells whether there are more.
    """
    sampled = max(factor.SAMPLED, factor.SAMPLED_PER_COLUMN * factor.MOST_COLUMNS * math.sqrt(n)) + factor.FARTHEST
    first = factor_bytes(n, factor.FIRST_COLUMNS) + SAMPLE_BYTES * min(sampled, n) ** 2
    columns = sorted(widest[name][end] for name, count in chains.items() for _ in range(count))
    return sum(
        max(factor_bytes(n, some), first if some >= factor.FIRST_COLUMNS else 0.0) for some in columns[-threads:]
    )


def swept_bytes(n: int, vectors: int, threads: int) -> float:
    """Return the bytes that products of a matrix with so many vectors take: each thread has a strip and hands over one."""
    return 8.0 * n * vectors * (2 * threads + SWEPT) + TILE_BYTES * threads


def blocked_bytes(n: int, matrices: int, permutations: int, tiles: int, cosets: int = 1) -> float:
    """Return the bytes that sums of so many matrices over blocks of rows take, of which so many tiles are under way.

    Of a tile distances and values are kept, and what they are made of.
    Relabellings of one set of blocks are held while their statistics are found; these are judged a third at a time.
    """
    blocks = min(n, BLOCKS)
    relabelled = permutations * (8.0 * matrices * (1.0 + 1.0 / 3.0) + blocks / cosets)
    # Tiles are equally large.
    edge = n / math.ceil(n / TILE)
    return 8.0 * matrices * SUMS_OF_BLOCKS * blocks**2 + relabelled + 24.0 * edge**2 * tiles


def own_bytes(designed: BlockedRows, kernels: Sequence[Kernel], permutations: int, threads: int) -> float:
    """Return the bytes that blocks of a design take: sums of the kernels that are held at a time, or labels and weights with them."""
    blocks, n = len(designed.in_x), int(designed.starts[-1])
    together = kernels_together(len(kernels), blocks)
    # Threads have strips of sums under way, or those of a term by its factor, and as many wait.
    most = min(2 * threads, max(len(terms(kernel)) for kernel in kernels)) if threads > 1 and n > FEW_ROWS else 1
    under_way = max(float(most), SUMS_OF_BLOCKS - 1 + 2.0 * threads / math.ceil(n / TILE))
    vectors = min(permutations, TOGETHER_BLOCKS) * (LABELS + LABELS_OF_KERNEL * min(threads, together))
    return 8.0 * blocks * (together * blocks + max(under_way * together * blocks, vectors))


def shifted_bytes(n: int, first: int, second: int, orders: int, threads: int, *, kept: int) -> float:
    """Return the bytes that sums over shifts take, as `shift_sums` goes, of which so many matrices are kept for those of a side.

    Transforms of the second side are held for some orders, of the first where it multiplies all at once.
    """
    circle, stacked = shifts.circle_length(n), first >= shifts.MANY and second * orders >= shifts.MANY
    lines = max(block.count for block in plan_blocks(circle, n - circle, max(kept, first + second if stacked else 1)))
    together = second * min(orders, max(1, shifts.HELD_ENTRIES // (second * circle * lines)))
    blocks = BLOCK_SHARE * threads * ((2 + first if stacked else 3) + together + kept) * lines * circle
    spectra = (threads + UNDER_WAY) * first * together * circle
    return 8.0 * (blocks + spectra + SUMS * first * second * orders * circle)


def piece_bytes(columns: int) -> int:
    """Return what a piece of a file takes while it is read and worked on (in Parquet its pages too)."""
    return PIECE_BYTES + COLUMN_BYTES * columns
