"""What the nulls need to know of a centred matrix: sums of its entries, its eigenvalues, and the moments that they give.

The exact mean, variance and skewness of <A, B> over all n! relabellings are sums of products of an invariant of A and one
of B, for symmetric A and B with zero row sums. The first two moments are those of Kazi-Aoual et al. (1995). The third is
E[T^3] = sum_P m_P(A) m_P(B) / (n)_|P| over the set partitions P of the six index places of A_ij A_kl A_mn: m_P sums over
indices that are equal within the parts of P and different between them, and comes by Moebius inversion from unrestricted
sums, most of which vanish with the row sums.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.kernels.elementary import Linear
from kerntest.matrices.factor import Factor, centred_factor, kernel_factor, low_rank
from kerntest.matrices.passes import Centring, Sweep, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.statistic import LabelMatrix
    from kerntest.kernels.base import Array, Kernel, Points

# Up to this many rows tr A^3 is computed exactly, from three sweeps with as many vectors as there are rows.
EXACT_TRACE_ROWS = 2000
# Random vectors for tr A^3 beyond: so many find the leading part of the matrix, and as many again measure the rest.
PROBES = 60
PROBE_STREAM = 2
# A factor serves for tr A^3 where the matrix of one column is of so low a rank, to this share of its trace.
LARGEST_RANK = 400
FACTOR_TOLERANCE = 1e-13
# The cubes cost q^3 products a row: more than the n kernel values that they save beyond so many per row.
CUBES_PER_ROW = 40
# A cubic trace with a doubt beyond this share of |A|^3 is computed otherwise.
CANCELLED = 1e-10
# Differences of sums below this share of the sums are rounding.
ROUNDING = 1e-12
# Products of eigenvalues below this share of the largest change no digit of a p-value that one would read.
NEGLIGIBLE = 1e-12


class Invariants(NamedTuple):
    """The sums over a centred matrix M, with diagonal d, that three moments are made of."""

    # sum d_i, sum M_ij^2, sum d_i^2, sum d_i^3.
    trace: float
    trace_square: float
    diagonal_square: float = 0.0
    diagonal_cube: float = 0.0
    # sum_i d_i (M^2)_ii, sum_ij d_i M_ij d_j.
    diagonal_with_square: float = 0.0
    diagonal_form: float = 0.0
    # tr M^3, sum_ij M_ij^3.
    trace_cube: float = 0.0
    entry_cubes: float = 0.0

    def third_order(self) -> Array:
        """Return the eight unrestricted sums of third order, in the order of `_SUMS`."""
        t = self.trace
        products = [t * t * t, t * self.diagonal_square, self.diagonal_cube, t * self.trace_square]
        return np.array([*products, self.diagonal_with_square, self.diagonal_form, self.trace_cube, self.entry_cubes])


class Moments(NamedTuple):
    """Mean, standard deviation and skewness of <A, B> over all relabellings."""

    mean: float
    standard_deviation: float
    skewness: float


def permutation_moments(a: Invariants, b: Invariants, n: int) -> Moments:
    """Return the exact moments of sum_ij A_ij B_{p(i) p(j)} for a uniform permutation p of n >= 4 rows."""
    mean = a.trace * b.trace / (n - 1)
    spread = _spread(a, n) * _spread(b, n) * 2.0 / ((n - 1) ** 2 * (n + 1) * (n - 2))
    tips = _tips(a, n) * _tips(b, n) / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    variance = max(spread + tips, 0.0)
    third_a, third_b = a.third_order(), b.third_order()
    raw = sum(
        float(weights @ third_a) * float(weights @ third_b) / math.perm(n, parts)
        for parts, weights in _third_moment_table()
        if n >= parts
    )
    # Of values whose cubes are too small for a float nothing is known.
    cubed = variance * math.sqrt(variance)
    skewness = (raw - 3.0 * mean * variance - mean * mean * mean) / cubed if cubed > 0 else 0.0
    return Moments(float(mean), math.sqrt(variance), float(skewness))


def _spread(m: Invariants, n: int) -> float:
    return _difference((n - 1) * m.trace_square, m.trace * m.trace)


def _tips(m: Invariants, n: int) -> float:
    return _difference(n * (n + 1) * m.diagonal_square, (n - 1) * (m.trace * m.trace + 2.0 * m.trace_square))


def _difference(a: float, b: float) -> float:
    """Return a - b, or 0 where it is no more than their rounding: a statistic that cannot vary has variance 0."""
    return 0.0 if abs(a - b) <= ROUNDING * (abs(a) + abs(b)) else a - b


# The places of the eight sums in `third_order`: three edges, of which so many lie within a part, on so many parts.
_SUMS = {(3, 3): 0, (3, 2): 1, (3, 1): 2, (1, 3): 3, (1, 2): 4, (2, 2): 5, (0, 3): 6, (0, 2): 7}


@cache
def _third_moment_table() -> list[tuple[int, Array]]:
    """Return, for every set partition of the six places, its number of parts and its weights on the eight sums."""
    table = []
    for partition in _set_partitions(list(range(6))):
        weights = np.zeros(len(_SUMS))
        for merger in _set_partitions(partition):
            part_of = {place: k for k, group in enumerate(merger) for part in group for place in part}
            # A free index sums over a whole row, which is zero.
            if 1 not in Counter(part_of.values()).values():
                loops = sum(part_of[place] == part_of[place + 1] for place in (0, 2, 4))
                # Moebius function of the lattice of partitions.
                signs = ((-1) ** (len(group) - 1) * math.factorial(len(group) - 1) for group in merger)
                weights[_SUMS[loops, len(merger)]] += math.prod(signs)
        table.append((len(partition), weights))
    return table


def _set_partitions(items: list[Any]) -> Iterator[list[list[Any]]]:
    if not items:
        yield []
        return
    first, *rest = items
    for partition in _set_partitions(rest):
        yield [[first], *partition]
        for k, part in enumerate(partition):
            yield [*partition[:k], [first, *part], *partition[k + 1 :]]


# Eigenvalues


class Spectrum(NamedTuple):
    """Eigenvalues with how often each occurs (not always a whole number, where many are stood for by a few)."""

    values: Array
    multiplicities: Array


def completed(leading: Array, trace: float, trace_square: float, n: int) -> Spectrum:
    """Return leading ones of n eigenvalues and one value for the rest, with its mean and sum of squares, by those of all."""
    rest, rest_square = trace - leading.sum(), trace_square - (leading**2).sum()
    if len(leading) >= n or rest_square <= NEGLIGIBLE * trace_square:
        values, counts = [], []
    elif abs(rest) <= 1e-9 * math.sqrt(rest_square * n):
        # The rest cancels: a pair of opposite values keeps the sum of squares.
        size = math.sqrt(rest_square / n)
        values, counts = [size, -size], [n / 2, n / 2]
    else:
        values, counts = [rest_square / rest], [rest**2 / rest_square]
    return Spectrum(np.append(leading, values), np.append(np.ones(len(leading)), counts))


# Sums


def centre(kernel: Kernel, points: Points, engine: Engine, *, hollow: bool) -> tuple[Centring, Array]:
    """Return the centring of a kernel matrix, and the diagonal of what it gives. Cost: one sweep; none of the linear kernel."""
    n = len(points)
    if isinstance(kernel, Linear):
        rows = points.numeric @ points.numeric.sum(axis=0) - kernel.diagonal(points)
    else:
        rows = sweep(kernel, points, np.ones((n, 1)), engine).product[:, 0]
    if hollow:
        return Centring(rows / (n - 2), float(rows.sum()) / ((n - 1) * (n - 2)), hollow=True), np.zeros(n)
    on_diagonal = kernel.diagonal(points)
    means = (rows + on_diagonal) / n
    centring = Centring(means, float(means.mean()), hollow=False)
    return centring, on_diagonal - 2.0 * means + centring.grand


class CentredKernel:
    """A centred kernel matrix as nulls need it: U(K) where it is `hollow`, else HKH."""

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        engine: Engine,
        *,
        hollow: bool,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel, self.points, self.engine, self.hollow = kernel, points, engine, hollow
        self.n, self.progress, self._rng = len(points), progress, np.random.default_rng((seed, PROBE_STREAM))

    @cached_property
    def centring(self) -> tuple[Centring, Array]:
        """The centring, and the diagonal of what it gives."""
        return centre(self.kernel, self.points, self.engine, hollow=self.hollow)

    def _swept(self, vectors: Array, **more: Any) -> Sweep:
        """Return the product of the centred matrix with some vectors, and sums of its entries."""
        centring = self.centring[0]
        return sweep(self.kernel, self.points, vectors, self.engine, centring=centring, progress=self.progress, **more)

    def _signs(self) -> Array:
        return self._rng.choice(np.array([-1.0, 1.0]), (self.n, PROBES))

    def first_invariants(self) -> Invariants:
        """Return the invariants up to second order; the others are 0. Cost: two sweeps of O(n^2 p / 2) time."""
        diagonal = self.centring[1]
        square = self._swept(np.zeros((self.n, 0))).total_square
        return Invariants(float(diagonal.sum()), square, float(diagonal @ diagonal))

    def invariants(self) -> tuple[Invariants, bool]:
        """Return the invariants, and whether tr A^3 is exact.

        Cost: of a matrix of low rank r, such as that of a smooth kernel on one column, O(n r^3) time, exact; where the
        rank is some hundreds, O(n^2 + n r^2) for one column. Of others, O(n^3) time up to 2,000 rows; beyond, three sweeps
        of O(n^2 (p + 120)) time and O(120 n) memory. The estimate is Hutch++ (Meyer et al. 2021): the part of the matrix in
        the span of A S, for random signs S, exactly, and random signs for the rest.
        """
        factor = low_rank(self.kernel, self.points)
        by_factor = None if factor is None else low_rank_invariants(factor, hollow=self.hollow)
        if by_factor is not None:
            return by_factor, True
        diagonal = self.centring[1]

        def times(vectors: Array) -> Sweep:
            together = np.column_stack([vectors, diagonal])
            return self._swept(together, third_order=True)

        column, exact, swept = _factor_of_one_column(self.kernel, self.points), True, None
        if column is not None:
            swept = times(np.empty((self.n, 0)))
            cube, doubt = _Centred(column, hollow=self.hollow).trace_cube()
            if doubt > CANCELLED * swept.total_square * math.sqrt(swept.total_square):
                # Centring takes nearly all of the matrix away: the factor has too few digits left.
                swept = None
        if swept is None:
            exact = self.n <= EXACT_TRACE_ROWS
            swept, cube = _by_all(times, self.n) if exact else self._by_probes(times)
        invariants = Invariants(
            trace=float(diagonal.sum()),
            trace_square=swept.total_square,
            diagonal_square=float((diagonal**2).sum()),
            diagonal_cube=float((diagonal**3).sum()),
            diagonal_with_square=float(diagonal @ swept.squares[:, 0]),
            diagonal_form=float(diagonal @ swept.product[:, -1]),
            trace_cube=cube,
            entry_cubes=swept.cubes,
        )
        return invariants, exact

    def _by_probes(self, times: Callable[[Array], Sweep]) -> tuple[Sweep, float]:
        """Return a sweep and the estimate of tr A^3 by Hutch++."""
        swept = times(self._signs())
        basis = np.linalg.qr(swept.product[:, :-1])[0]
        probes = self._signs()
        probes -= basis @ (basis.T @ probes)
        once = times(np.column_stack([basis, probes])).product[:, :-1]
        twice = times(once).product[:, :-1]
        forms = np.einsum("ij,ij->j", once, twice)
        return swept, float(forms[:PROBES].sum() + forms[PROBES:].mean())

    def spectrum(self) -> tuple[Spectrum, bool]:
        """Return the eigenvalues, and whether they are all exact.

        Cost: O(n^3) time and n^2 memory up to 2,000 rows. Beyond, the leading 60 eigenvalues by one step of randomised
        subspace iteration (Halko et al. 2011), the rest stood for by one value with their sum and sum of squares: three
        sweeps of O(n^2 (p + 60)) time.
        """
        exact = self.n <= EXACT_TRACE_ROWS
        basis = np.eye(self.n) if exact else np.linalg.qr(self._swept(self._signs()).product)[0]
        swept = self._swept(basis)
        projected = swept.product if exact else basis.T @ swept.product
        leading = np.asarray(np.linalg.eigvalsh(projected), dtype=np.float64)
        return completed(leading, float(self.centring[1].sum()), swept.total_square, self.n), exact


def _by_all(times: Callable[[Array], Sweep], n: int) -> tuple[Sweep, float]:
    """Return a sweep and tr A^3 of the whole matrix."""
    swept = times(np.eye(n))
    A = swept.product[:, :n]
    return swept, float(np.vdot(A @ A, A))


def _factor_of_one_column(kernel: Kernel, points: Points) -> Factor | None:
    """Return a kernel matrix of one column that is of some hundreds of columns."""
    if points.numeric.shape[1] + points.codes.shape[1] > 1:
        return None
    factor = kernel_factor(kernel, points, tolerance=FACTOR_TOLERANCE, most=min(LARGEST_RANK, len(points)))
    return centred_factor(factor) if factor.complete else None


class CentredLabel:
    """The centred matrix of the label of two samples: HLH is of one column."""

    def __init__(self, label: LabelMatrix) -> None:
        self.label, self.n = label, label.n_x + label.n_y

    def first_invariants(self) -> Invariants:
        """Return the invariants: all of them cost as little."""
        label, n = self.label, self.n
        column = np.repeat([label.n_y / n, -label.n_x / n], [label.n_x, label.n_y])[:, None]
        return _Centred(Factor(column), hollow=label.hollow).invariants()

    def invariants(self) -> tuple[Invariants, bool]:
        """Return the invariants, which are exact."""
        return self.first_invariants(), True

    def spectrum(self) -> tuple[Spectrum, bool]:
        """Return the eigenvalues but that of the vector of ones, 0.

        Differences of two rows of one sample are eigenvectors, n_x - 1 and n_y - 1 of them; what is left belongs to the
        contrast between the samples, and has the rest of the trace.
        """
        n_x, n_y, n = self.label.n_x, self.label.n_y, self.n
        if not self.label.hollow:
            return Spectrum(np.array([n_x * n_y / n, 0.0]), np.array([1.0, n - 2.0])), True
        within = -np.array([n_y * (n_y - 1), n_x * (n_x - 1)]) / ((n - 1) * (n - 2))
        counts = np.array([n_x - 1.0, n_y - 1.0])
        return Spectrum(np.append(-(within @ counts), within), np.append(1.0, counts)), True


def low_rank_invariants(factor: Factor, *, hollow: bool) -> Invariants | None:
    """Return the invariants of the centring of a kernel matrix, HKH = G G' or U(K). Cost: O(n r^3) time, O(n r) memory.

    None where a sweep over the whole matrix costs less, or where centring takes nearly all of the matrix away and the
    factor has too few digits left.
    """
    n, rank = factor.columns.shape
    if rank**3 > CUBES_PER_ROW * n:
        return None
    A = _Centred(factor, hollow=hollow)
    found = A.invariants()
    return found if A.trace_cube()[1] <= CANCELLED * max(found.trace_square, 0.0) ** 1.5 else None


class _Centred:
    """A centred matrix A = M - D, M = W C W' for W of shape (n, q), where D is 0 or the diagonal of M.

        sum_ij M_ij^2 = tr(N N),  tr M^3 = tr(N N N)    for N = C W'W
        sum_ij M_ij^3 = sum_abc T_abc^2                 for T_abc = sum_i W_ia W_ib W_ic and C = I, signs elsewhere

    HKH = G G' is one such matrix with D = 0. The U-centring is another but for its diagonal, which is zero: with the
    diagonal d of G G' and row means r = -d / (n - 2), M = G G' - r 1' - 1 r' + g 1 1'.
    """

    def __init__(self, factor: Factor, *, hollow: bool) -> None:
        W, d = factor.columns, factor.diagonal
        n, rank = W.shape
        self.W, self.C, self.diagonal, self.taken_out = W, np.eye(rank), d, np.zeros(n)
        if hollow:
            row = -d / (n - 2)
            grand = float(row.sum()) / (n - 1)
            # r 1' = (r t)(1/t)', with both of one length: where all entries are tiny, sums of cubes of r +- 1 would cancel.
            length = float(np.linalg.norm(row))
            t = np.sqrt(np.sqrt(n) / length) if length > 0 else 1.0
            self.W, self.C = np.column_stack([W, row * t, np.full(n, 1.0 / t)]), np.eye(rank + 2)
            self.C[rank:, rank:] = [[0.0, -1.0], [-1.0, grand * t**2]]
            self.diagonal, self.taken_out = np.zeros(n), d - 2.0 * row + grand
        self.N = self.C @ (self.W.T @ self.W)

    @property
    def on_square(self) -> Array:
        """(M^2)_ii = W_i N C W_i'."""
        return np.asarray(np.einsum("ir,ir->i", self.W @ (self.N @ self.C), self.W))

    def trace_cube(self) -> tuple[float, float]:
        """Return tr (M - D)^3 = tr M^3 - 3 tr M^2 D + 2 tr D^3, and how far rounding can move it. Cost: O(n q^2) time."""
        N, D = self.N, self.taken_out
        terms = float(np.trace(N @ N @ N)), -3.0 * float(self.on_square @ D), 2.0 * float((D**3).sum())
        return sum(terms), float(np.finfo(np.float64).eps) * sum(map(abs, terms))

    def invariants(self) -> Invariants:
        """Return the invariants."""
        d, D = self.diagonal, self.taken_out
        along = self.W.T @ d
        return Invariants(
            trace=float(d.sum()),
            trace_square=float(np.trace(self.N @ self.N)) - float(D @ D),
            diagonal_square=float(d @ d),
            diagonal_cube=float((d**3).sum()),
            diagonal_with_square=float(d @ self.on_square),
            diagonal_form=float(along @ self.C @ along),
            trace_cube=self.trace_cube()[0],
            entry_cubes=self._entry_cubes() - float((D**3).sum()),
        )

    def _entry_cubes(self) -> float:
        """Return sum_ij M_ij^3 = sum_abc s_a s_b s_c T_abc^2, with M = W diag(s) W' for signs s.

        T has no order: of each a only b, c >= a are computed, and stand for all orders of the three.
        """
        values, vectors = np.linalg.eigh(self.C)
        across, signs = np.ascontiguousarray((self.W @ (vectors * np.sqrt(np.abs(values)))).T), np.sign(values)
        total = 0.0
        for a, (column, sign) in enumerate(zip(across, signs, strict=True)):
            squares = np.square((across[a:] * column) @ across[a:].T)
            squares *= sign * np.outer(signs[a:], signs[a:])
            # Three orders of each (b, c), or of the (a, c) that are met twice; one of (a, a, a).
            squares[1:, 1:] *= 3.0
            squares[0, 1:] *= 1.5
            squares[1:, 0] *= 1.5
            total += float(squares.sum())
        return total
