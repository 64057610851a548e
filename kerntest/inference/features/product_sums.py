"""Two variables by features: one sum over all rows, and the two centred kernel matrices that it stands for.

With z_x and z_y the features of the two variables of a row, a = |z_x|^2 and b = |z_y|^2, what is summed are the products
of all entries of s = (1, z_x, a, z_y, b). Nothing of size n is ever held.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.diagnostics.copies import copies_warning
from kerntest.data.diagnostics.dependent_rows import order_warnings
from kerntest.data.missing import presence_name
from kerntest.dataclass import dataclass
from kerntest.engines.engine import Engine
from kerntest.engines.plan import added
from kerntest.errors import UsageError, option
from kerntest.inference import sides
from kerntest.inference.family import choose_pair
from kerntest.inference.features import two_passes
from kerntest.inference.features.inputs import Input, open_input
from kerntest.inference.nulls.approximations import MatrixPair, curve_p_value
from kerntest.inference.nulls.moments import Invariants, Spectrum
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.statistic import Effect, centred_inner, effect_size, factor
from kerntest.inference.verdict import Verdict, degenerate, refuse_overflow
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Linear
from kerntest.matrices.factor import feature_error, make_features
from kerntest.report.results.independence_record import IndependenceResult, PairApproximation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.errors import UndecidedError
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Estimator
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import FeatureMap

# Landmarks of each side, and rows on which features are compared with the kernel.
FEATURES, ERROR_ROWS = "nystroem:200", 1000
# The nulls that need no relabellings.
NULLS = ("moments", "gamma", "spectral")
# Kernel values of the rows under way in one thread: 2 MB, which stay in the cache (measured: twice as fast as 8 MB).
HELD_ENTRIES, FEWEST_TOGETHER = 2**18, 64
# Matrices of the sampled rows at once.
MATRICES = 2.0
# Tells the stream that splits the sample from other streams of the same seed.
SPLIT_STREAM = 6
MOST_DRAWN = 10**9 - 1


@dataclass(frozen=True, eq=False)
class SideFeatures:
    """Features of one of the two variables of a row, of some of its columns.

    `origin` is taken from the numeric columns before the kernel sees them, `centre` (near the mean of the features) from
    the features: the sums then keep their digits.
    """

    columns: Columns
    origin: Array
    map: FeatureMap
    centre: Array

    @classmethod
    def of(cls, text: str, kernel: Kernel, columns: Columns, rows: Points, seed: int) -> SideFeatures:
        """Return features of one variable, chosen on some of its rows, in random order."""
        two_passes.refuse_indefinite((kernel,))
        # Only to the linear kernel every origin is the same; a far one would take its digits away.
        origin = rows.numeric.mean(axis=0) if isinstance(kernel, Linear) else np.zeros(rows.numeric.shape[1])
        points = Points(rows.numeric - origin, rows.codes)
        different = points.take(two_passes.distinct_rows(points))
        features = make_features(text, kernel, different, seed, smallest=two_passes.SMALLEST_SHARE)
        return cls(columns, origin, features, features.of_block(points).mean(axis=0))

    def points(self, rows: Points) -> Points:
        """Return the variable at rows, as its kernel sees it."""
        chosen = rows.select(self.columns)
        return Points(chosen.numeric - self.origin, chosen.codes)

    def __call__(self, rows: Points) -> Array:
        """Return z - centre, shape (n, r). Cost: O(n M (p + r)) time for M landmarks."""
        values = self.map.of_block(self.points(rows))
        values -= self.centre
        return values


@dataclass(frozen=True, eq=False)
class ProductSums:
    """The second pass of a test of independence: sums of the products of all entries of s = (1, z_x, a, z_y, b)."""

    sides: Sequence[SideFeatures]

    @property
    def places(self) -> tuple[slice, slice]:
        """Where (z_x, a) and (z_y, b) stand in s."""
        end = self.sides[0].map.size + 2
        return slice(1, end), slice(end, end + self.sides[1].map.size + 1)

    def shape(self, _source: int) -> tuple[int, int]:
        """Return the shape of the sums."""
        return self.places[1].stop, self.places[1].stop

    def add(self, total: Array, rows: Points, _source: int, _before: int) -> None:
        """Add sum_i s_i s_i' over some rows. Cost: O(n (M (p + r) + (r_x + r_y)^2)) time."""
        landmarks = max(len(side.map.projection) for side in self.sides)
        height = max(FEWEST_TOGETHER, HELD_ENTRIES // max(landmarks, len(total)))
        for start in range(0, len(rows), height):
            some = Points(rows.numeric[start : start + height], rows.codes[start : start + height])
            s = np.ones((len(some), len(total)))
            for side, place in zip(self.sides, self.places, strict=True):
                values = s[:, place.start : place.stop - 1]
                values[...] = side(some)
                np.einsum("ir,ir->i", values, values, out=s[:, place.stop - 1])
            # One array twice: the product is then known to be symmetric, and takes half the time.
            total += s.T @ s

    def pair(self, gram: Array, sample: Points, estimator: Estimator) -> FeaturePair:
        """Return both matrices from the sums over all rows, the mean of the features taken out. Cost: O((r_x + r_y)^3) time.

        Moving the origin is linear in s: with g = z_x - m, d = |g|^2 = a - 2 <m, z_x> + |m|^2.
        """
        n, moved, hollow = round(float(gram[0, 0])), np.eye(len(gram)), estimator == "unbiased"
        for place in self.places:
            values, square = slice(place.start, place.stop - 1), place.stop - 1
            mean = gram[0, values] / n
            moved[0, values], moved[0, square], moved[values, square] = -mean, mean @ mean, -2.0 * mean
        gram = moved.T @ gram @ moved
        x, y = (
            CentredSide(side.map.kernel, gram[place, place], side(sample) + moved[0, place][:-1], n, hollow=hollow)
            for side, place in zip(self.sides, self.places, strict=True)
        )
        return FeaturePair(x, y, gram[self.places], estimator)


def inner_product(gram: Array, traces: float, n: int, *, hollow: bool) -> float:
    """Return <HKH, HLH> = |sum_i g_i h_i'|^2, or <U(K), U(L)>, from sum_i (g_i, d_i)(h_i, e_i)' and sum_i d_i sum_i e_i."""
    whole, diagonals = float(np.vdot(gram[:-1, :-1], gram[:-1, :-1])), float(gram[-1, -1])
    return float(centred_inner(whole - diagonals, diagonals, traces, n, hollow=True)) if hollow else whole


class CentredSide:
    """One centred kernel matrix, U(K) where it is `hollow`, else HKH = G G', from sums over its features g and d = |g|^2.

    `gram` is sum_i (g_i, d_i)(g_i, d_i)' over all n rows, shape (r + 1, r + 1), `sampled` g of m rows drawn at random.
    With S = sum_i g_i g_i'

        tr HKH = tr S,  sum_ij (HKH)_ij^2 = |S|^2,  tr (HKH)^3 = tr S^3,  sum_ij d_i (HKH)_ij d_j = |sum_i d_i g_i|^2

    come from the sums alone, exactly. What is left, sums of cubes of single entries and with them of d, has a share of
    order 1/n in the third moment (the triangles tr A^3 have the rest): it is scaled up from sampled rows, exact where these
    are all rows.
    """

    def __init__(self, kernel: Kernel, gram: Array, sampled: Array, n: int, *, hollow: bool) -> None:
        self.kernel, self.gram, self.sampled, self.n, self.hollow = kernel, gram, sampled, n, hollow
        self.trace, self.diagonal = float(np.trace(gram[:-1, :-1])), np.einsum("ir,ir->i", sampled, sampled)

    @property
    def entries(self) -> Array:
        """The entries between the sampled rows, shape (m, m); their diagonal is set to 0.

        U(K)_ij = <g_i, g_j> + (d_i + d_j) / (n - 2) - tr / ((n - 1)(n - 2)), with the trace of all n rows.
        """
        entries: Array = self.sampled @ self.sampled.T
        if self.hollow:
            own = self.diagonal / (self.n - 2)
            entries += own[:, None]
            entries += own
            entries -= self.trace / ((self.n - 1) * (self.n - 2))
        np.fill_diagonal(entries, 0.0)
        return entries

    def squared_norm(self, *, hollow: bool) -> float:
        """Return the sum of the squared entries of HKH, or of U(K)."""
        return inner_product(self.gram, self.trace**2, self.n, hollow=hollow)

    def over_pairs(self, *entries: Array) -> float:
        """Return the sum over all pairs of n different rows that one of products of entries of the sampled rows stands for."""
        m, product = len(entries[0]), ",".join(["ij"] * len(entries))
        # No array of the products is formed.
        return float(np.einsum(f"{product}->", *entries)) * (self.n * (self.n - 1)) / (m * (m - 1))

    def over_rows(self, values: Array) -> float:
        """Return the sum over all n rows that one over the sampled rows stands for."""
        return float(values.mean()) * self.n

    def first_invariants(self) -> Invariants:
        """Return the invariants up to second order, which are exact."""
        square = self.squared_norm(hollow=self.hollow)
        return Invariants(0.0, square) if self.hollow else Invariants(self.trace, square, float(self.gram[-1, -1]))

    def invariants(self) -> tuple[Invariants, bool]:
        """Return the invariants, exact but for a share of 1/n. Cost: O(r^3 + m r^2 + m^2 r) time, O(m^2) memory."""
        first, entries = self.first_invariants(), self.entries
        cubes = self.over_pairs(entries, entries, entries)
        if self.hollow:
            return first._replace(trace_cube=self._hollow_trace_cube(), entry_cubes=cubes), True
        S, d, along = self.gram[:-1, :-1], self.diagonal, self.gram[:-1, -1]
        diagonal_cube = self.over_rows(d**3)
        found = first._replace(
            diagonal_cube=diagonal_cube,
            diagonal_with_square=self.over_rows(d * np.einsum("ir,ir->i", self.sampled @ S, self.sampled)),
            diagonal_form=float(along @ along),
            trace_cube=float(np.vdot(S @ S, S)),
            entry_cubes=cubes + diagonal_cube,
        )
        return found, True

    def _hollow_trace_cube(self) -> float:
        """Return tr U(K)^3 = tr (M - D)^3 = tr M^3 - 3 tr M^2 D + 2 tr D^3 of M = W C W', W = (G, d, 1)."""
        n, rank = self.n, len(self.gram) - 1
        grand = -self.trace / ((n - 2) * (n - 1))
        C = np.eye(rank + 2)
        C[rank:, rank:] = [[0.0, 1.0 / (n - 2)], [1.0 / (n - 2), grand]]
        # The features are centred, so that they have no sum.
        products = np.pad(self.gram, (0, 1))
        products[rank:, rank + 1] = products[rank + 1, rank:] = self.trace, n
        N = C @ products
        W = np.column_stack([self.sampled, self.diagonal, np.ones(len(self.sampled))])
        D = self.diagonal * (n / (n - 2)) + grand
        on_square = np.einsum("ir,ir->i", W @ (N @ C), W)
        return float(np.trace(N @ N @ N)) - 3.0 * self.over_rows(D * on_square) + 2.0 * self.over_rows(D**3)

    def spectrum(self) -> tuple[Spectrum, bool]:
        """Return the eigenvalues of HKH that are not 0, all exact; or those of U(K), as if its diagonal were one number."""
        values = np.asarray(np.linalg.eigvalsh(self.gram[:-1, :-1]))
        if not self.hollow:
            return Spectrum(values, np.ones(len(values))), True
        mean, rest = self.trace / self.n, max(self.n - len(values), 0)
        return Spectrum(np.append(values - mean, -mean), np.append(np.ones(len(values)), rest)), False


class FeaturePair(MatrixPair):
    """Two centred kernel matrices that features stand for.

    `crossed` is sum_i (g_i, d_i)(h_i, e_i)' over the centred features of x and y.
    """

    def __init__(self, x: CentredSide, y: CentredSide, crossed: Array, estimator: Estimator) -> None:
        self.x, self.y, self.crossed, self.n, self.matrices = x, y, crossed, x.n, (x, y)
        self.factor, self.value = factor(self.n, estimator), self.inner(hollow=x.hollow)
        self.rounding = tie_tolerance(float(x.diagonal.max()), self.n, float(y.diagonal.max()) * self.n)

    def inner(self, *, hollow: bool) -> float:
        """Return <HKH, HLH>, or <U(K), U(L)>."""
        return inner_product(self.crossed, self.x.trace * self.y.trace, self.n, hollow=hollow)

    def effect(self) -> Effect:
        """Return both estimates of HSIC and the effect size, for the kernels that the features stand for."""
        unbiased, biased = self.inner(hollow=True), self.inner(hollow=False)
        size = effect_size(unbiased, self.x.squared_norm(hollow=True), self.y.squared_norm(hollow=True))
        return Effect(factor(self.n, "unbiased") * unbiased, factor(self.n, "biased") * biased, size)

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2, scaled up from the sampled rows."""
        entries = self.x.entries
        entries *= self.y.entries
        return self.x.over_pairs(entries, entries)

    def relabelled(self, at_least: int) -> Array:
        """Refuse: the features of no row are held."""
        raise NotImplementedError(at_least)

    def degenerate(self) -> UndecidedError:
        """Return the error for kernels that cannot tell rows apart."""
        return degenerate(self.x.kernel, self.y.kernel)


def speaking_rows(n: int, sampled: int, seed: int) -> list[NDArray[np.intp]]:
    """Return which rows of a random sample speak for one side, and which for the other: as if drawn apart from all n rows.

    What is chosen for a side (bandwidth, landmarks) then does not depend on how rows are paired. Two sets of h rows, each
    drawn by itself from n, share a hypergeometric number of rows: as many are shared here. Each is in random order.
    """
    rng = np.random.default_rng((seed, SPLIT_STREAM))
    if sampled >= n:
        return [rng.permutation(n), rng.permutation(n)]
    half = sampled // 2
    # numpy draws from fewer than 1e9 rows: of more none is shared, but for one chance in a thousand.
    shared = int(rng.hypergeometric(half, min(n, MOST_DRAWN) - half, half))
    order = rng.permutation(sampled)
    return [order[:half], rng.permutation(order[half - shared : 2 * half - shared])]


@np.errstate(over="ignore", invalid="ignore")
def hsic_by_features(
    x: Any,
    y: Any,
    run: two_passes.Survey,
    result: Callable[..., IndependenceResult],
    *,
    kernels: tuple[Kernel | str, Kernel | str],
    bandwidth: BandwidthOption,
) -> IndependenceResult:
    """Return the `result` of `hsic_test` with ``method="features"``. Cost: O(n (M (p + r) + r^2)) time, r of M features a side."""
    options, reading = run.options, run.reading
    if options.null not in NULLS:
        raise UsageError(
            f"{option('null', options.null)} needs {option('method', 'exact')}",
            hint=f"{option('method', 'features')} has the nulls {', '.join(NULLS)}",
            code="usage.method",
        )
    with _opened_groups(x, y, reading) as (data, groups):
        names = [name for table in groups.tables for name in table.names]
        categorical = reading.categorical if y is None else ()
        run.reading = replace(reading, columns=names, exclude=None, categorical=categorical)
        with run.over((data,), 2 * run.number):
            n, sample = run.n[0], run.sample.points
            m, places = len(sample), _places(groups, run)
            rows = speaking_rows(n, m, options.seed)
            first = [min(run.columns.index(run.sample.names[place]) for place in some) for some in places]
            if first[1] < first[0]:
                # Which rows speak for a side does not depend on which of the two is called x.
                rows.reverse()
            chosen = [run.sample.with_columns(set(some)).take(its) for some, its in zip(places, rows, strict=True)]
            family = choose_pair(kernels, bandwidth, chosen, seed=options.seed, single=True)
            p = len(run.sample.numeric_names)
            columns = (
                Columns(tuple(k for k in some if k < p), tuple(k - p for k in some if k >= p)) for some in places
            )
            each = zip(family.members[0], columns, (variable.points for variable in chosen), strict=True)
            work = ProductSums([SideFeatures.of(run.features, *one, options.seed) for one in each])
            ranks = [side.map.size for side in work.sides]
            width = sum(ranks)
            run.plan_sums(
                f"products of {ranks[0]:,} + {ranks[1]:,} features, for the {options.null} null",
                lambda threads: 8.0 * width**2 * (threads + 2),
                added(
                    *(side.map.work(n) for side in work.sides),
                    {"product": 0.5 * width**2 * n, "entry": 4.0 * width * n},
                ),
                # Matrices of the sampled rows, and features of these.
                judged=lambda _: 8.0 * (m * (MATRICES * m + 2.0 * width) + 6.0 * width**2),
            )
            (gram,) = run.sums(work)
    pair = work.pair(gram, sample, options.estimator)
    refuse_overflow(family.members[0], [pair.x.gram, pair.y.gram])
    p_value, null = curve_p_value(options.null, pair)
    errors, doubts = np.empty((2, 2)), []
    # On rows that had no say in the features.
    for place, (side, others) in enumerate(zip(work.sides, rows[::-1], strict=True)):
        some = side.points(sample.take(others))
        few = some.take(slice(ERROR_ROWS))
        matrix_error = two_passes.errors(side.map, few, side.map.of_block(few))[1]
        errors[:, place] = feature_error(side.map, some, Engine(1), options.seed), matrix_error
        doubts += two_passes.large_error(f"{'xy'[place]}: the", matrix_error)
    if options.null == "gamma" and m < n:
        doubts.append(f"the variance of the Gamma null is that of {m:,} rows drawn at random")
    verdict = Verdict(p_value, family.members[0], pair.effect(), null, warnings=tuple(doubts))
    numbers: list[Any] = [*ranks, *errors.ravel().tolist(), m]
    return result(
        run,
        verdict,
        family,
        run.provenance(run.tables, run.n, kernels, family.rule),
        groups=groups,
        unused=[run.left_out] * 2,
        n=n,
        warnings=(
            *groups.warnings,
            *(text for text in run.warnings if text not in groups.warnings),
            *order_warnings(
                groups.sides(),
                rejects=p_value <= options.alpha,
                without="" if run.why else option("method", "features"),
            ),
            *copies_warning([*sample.numeric.T, *sample.codes.T], total=n, has_others=run.has_others),
        ),
        method="features",
        approximation=PairApproximation(run.features, run.kind, *numbers),
    )


@contextmanager
def _opened_groups(x: Any, y: Any, reading: sides.Reading) -> Iterator[tuple[Input, sides.Groups]]:
    """Give an input with its two groups of columns, as its first rows show them."""
    if y is None:
        with open_input(x, "data", reading) as data:
            yield data, sides.read_pair(data.head, None, replace(reading, categorical=()))
        return
    if any(isinstance(one, (str, Path)) for one in (x, y)):
        raise UsageError(
            f"{option('method', 'features')} reads one file with the columns of both sides",
            hint=f"join the two files row by row into one, and name the columns with {option('x')} and {option('y')}",
            code="usage.method",
        )
    # Two tables whose rows pair are one; a name that both have is followed by that of its table.
    groups, tables = sides.read_pair(x, y, reading), []
    both = set(groups.tables[0].names) & set(groups.tables[1].names)
    for table, letter in zip(groups.tables, "xy", strict=True):
        names = [f"{name} of {letter}" if name in both else name for name in table.names]
        renamed = (replace(one, name=name, remarks=()) for one, name in zip(table.columns, names, strict=True))
        tables.append(replace(table, columns=tuple(renamed)))
    name = " and ".join(dict.fromkeys(table.name for table in tables))
    joined = replace(tables[0], name=name, columns=(*tables[0].columns, *tables[1].columns), notes=())
    yield Input(joined), sides.Groups((joined,), tuple(tables), groups.warnings)


def _places(groups: sides.Groups, run: two_passes.Survey) -> list[list[int]]:
    """Return which columns of the sample are x and which y; DataError if there are none."""
    if run.n[0] < sides.FEWEST_ROWS:
        raise sides.too_few_rows(groups, run.n[0], dropped=run.rows[0] > run.n[0])
    places = []
    for table in groups.tables:
        names = {*table.names, *map(presence_name, table.names)}
        places.append([place for place, name in enumerate(run.sample.names) if name in names])
        if not places[-1]:
            raise sides.no_columns_left(table, run.warnings)
    return places
