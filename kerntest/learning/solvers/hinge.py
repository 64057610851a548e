"""Support vector machines: from a random subset to all rows, and to a certified duality gap.

All begins with the function that compares the means of the classes. Few rows are solved for at once, with the whole matrix;
of many rows a random subset of some hundred first, with costs raised to stand for all, unless one class is rare, a factor would
be long and few pairs of rows nearly solve the problem, as where nothing tells it from the other. Its matrix tells whether the
rank is numerically full: then the active set method goes on, else Newton's method on the smoothed hinge. Each is the other's
fallback; where it is nearly diagonal, conjugate gradients solve for all rows at once. Where it is local, or where some rows are
alone beside a crowd, a subset says little of the others: pairs of all rows are moved first, then either goes on. The rows of
the subset that mattered are where the whole problem starts, by one of three ways:

    active set   rows of the matrix are made for free coefficients only, in single precision where it is enough
    factor       K = G G' with few columns: everything costs n r (low rank, many rows)
    levels       Newton on larger and larger subsets, then on all rows, in single precision where it is enough

Where systems of many rows have taken as long as pairs of all rows would, these lead to where a few more systems are enough.
The last two stop at a band about the margin: the rows of it are solved alone, as `finish` certifies all.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from scipy.linalg import lapack

from kerntest.learning.solvers import problem as systems
from kerntest.learning.solvers.active_set import Falling, Point, Sets, active_set, newton
from kerntest.learning.solvers.finish import ENTRY_BYTES, LEAST_RIDGE, REFINED_ROWS, RIDGE_SHARE, Finish, gap_of
from kerntest.learning.solvers.pairs import descend, filled
from kerntest.matrices.factor import pivoted_factor
from kerntest.matrices.matrix import FactorMatrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem, Solution, System
    from kerntest.matrices.matrix import Entries, Matrix

Scalar = TypeVar("Scalar", bound=np.generic)
Guess: TypeAlias = "tuple[Point, float, bool]"

# Rows of the first subset: a sixth of all, within these bounds.
FEWEST, MOST = 100, 400
# From so many rows on, a matrix of low rank is replaced by a factor of at most a sixteenth as many columns, or this many.
FACTOR_ROWS, FACTOR_SHARE, FACTOR_COLUMNS = 1000, 16, 85
# By how much the factor may change an output if every coefficient is at its bound.
FACTOR_ERROR = 0.03
# Beyond so many rows the active set method would free too many at once.
ACTIVE_SET_ROWS = 40_000
# Newton's last width over all rows, of a factor and of levels. The rows within so many widths of the margin are then solved
# alone; with a factor, where more rows are in a width, it is at most this over n.
FACTOR_WIDTH, LEVEL_WIDTH, REACH, FACTOR_CROWD = 0.1, 0.1, 3.0, 150.0
# Where these are too many, or costs so large that they say nothing of the others, Newton's method goes on, and only
# so many are solved alone, so close to the margin. With a factor, so many free rows for each column are too many.
CLOSE, MOST_CLOSE, LARGE_COST, CROWDED = 0.03, 200, 1e4, 8
# The band to start from holds a share of the rows, and is not narrower than this.
CROWDED_BAND, NARROWEST = 5, 0.01
# Rows of the largest subset before all; and up to how many a second way is tried where the first has failed.
MOST_LEVEL, CAREFUL_ROWS = 6000, 10_000
# Up to so many rows the whole matrix is made, and that of a level; so many become free at once beyond.
WHOLE, DENSE_LEVEL, MOST_FREED = 600, 1500, 400
# Up to so many rows the whole matrix is made in single precision, where that is enough.
SINGLE_WHOLE = 2800
# Pairs of rows lead the way where a cost times the mean sum of a row is large enough that not all rows end at their bounds,
# and the squared entries of a row with the others, in units of the diagonal, are on average below this, for few rows and for
# more; or where more than some rows are alone, by such a mean, beside a crowd or beside some of many times the mean.
INSIDE, VERY_LOCAL, LOCAL = 0.5, 0.03, 0.1
ALONE, SOME_ALONE, CROWD, UNEVEN = 0.02, 0.03, 0.07, 4.0
# They stop at such a violation. The active set method goes on at such a ridge, and soon gives up; then Newton's method, which
# begins and ends with such widths, times the root of the cost.
PAIRS_RIDGE, PAIRS_PATIENCE = 1e-4, 6
PAIRS_TOLERANCE, PAIRS_START, PAIRS_END, PAIRS_FACTOR, PAIRS_STEPS = 0.1, 0.01, 0.003, 0.3, 200
# The first ridge of the active set method over all rows, and what it is multiplied by.
RIDGE, RIDGE_FACTOR, JUMP = 0.01, 0.01, 1.0
# Conjugate gradients are for matrices whose eigenvalues have a variance below so many squared diagonal entries, and so many
# rows: for fewer a factorisation is as fast. A larger cost counts as so many units of a margin over a diagonal entry.
NEARLY_DIAGONAL, LEAST_PRODUCTS, LARGE_SHARE = 4.0, 100, 4.0
# The ridge, of the whole the second, and the width of the band to start from the means of the classes with, whose outputs
# are so many margins, at full rank and else.
FIRST_RIDGE, LAST_RIDGE, FIRST_WIDTH, FULL_MEANS, MEANS = 0.003, 0.03, 0.1, 1.0, 1.5
# The violation of a margin that the way to the last step works with, and its ridge.
ROUGH, ROUGH_RIDGE = 3e-4, 1e-5
# Sum of coefficients beyond which single precision is too coarse.
SINGLE_SUM = 3e4
# Bytes that kept rows of the matrix may take.
KEPT_BYTES = 10**9
# The matrix has numerically full rank, or a high one, if so many of its pivots stand out.
PROBE_ROWS, PROBE_TOLERANCE, FULL_RANK, HIGH_RANK = 256, 1e-2, 0.96, 0.8
# Newton's method takes the rows of a subset whose slack is above minus this: without a row, outputs may change there.
NEAR_MARGIN = 3.0
# Bytes for each entry of the whole matrix in single precision, and what is made of it.
PAIRS_BYTES = 7
# Pairs of rows lead too where so small a share is of one class, of equal costs, and the first, twice as many as it has rows, leave
# such a gap: its coefficients are at their bound, and nearly all of the others do equally well. They stop at such a violation,
# or after so many for each row. Else systems may take this share of what they may before pairs lead. A factor of few columns is as
# quick, but where the coefficients of the class can move an output by no more than so many margins.
RARE, RARE_GAP, RARE_TOLERANCE, RARE_STEPS, RARE_PATIENCE, RARE_SUM = 0.25, 2e-3, 3e-5, 3, 1.0 / 3.0, 0.15
# Multiplications for each pair of rows that systems of more than a level may take before pairs of rows lead, where these
# then stop, and how many for each row there are at most.
BEFORE_PAIRS, CROWD_TOLERANCE, CROWD_STEPS = 600.0, 0.01, 20


def solve_hinge(
    matrix: Matrix,
    problem: Problem,
    *,
    tolerance: float = 1e-6,
    seed: int = 0,
    factor: Array | None = None,
    start: Solution | None = None,
    kept_bytes: int = KEPT_BYTES,
) -> Solution:
    """Return a solution with its certificate: a relative duality gap within the tolerance, if `converged`.

    `factor` is G with K = G G' exactly, as the linear kernel has; `start` the solution of a similar problem over the same
    rows. Rows of the matrix beyond `kept_bytes` are made again whenever they are needed. LinAlgError says that the matrix
    is not positive semi-definite. Cost: |F|^3 / 3 + n |F| for each of some 10 to 60 systems with |F| free rows, and n
    kernel values for each row that was ever free; never n x n beyond six hundred rows.
    """
    solver = _Solver(matrix, problem, tolerance, seed=seed, kept_bytes=kept_bytes)
    if start is not None:
        guess = solver.from_start(start)
    elif factor is not None:
        guess = solver.all_at_once(systems.FactorSystem(factor, problem, solver.counter), "exact factor")
    else:
        guess = solver.from_nothing()
    final = matrix if factor is None else FactorMatrix(factor)
    finish = Finish(final, problem, solver.counter, tolerance, kept_bytes)
    found = finish.certified(*guess)
    if found.converged or factor is not None or len(problem) > CAREFUL_ROWS:
        return found
    # Slow, and right where others fail: on noisy rows of one column with large costs, where the subset says little of the whole.
    again = finish.certified(*solver.all_at_once(solver.system(np.arange(len(problem)), problem), "Newton"))
    return again if gap_of(again) < gap_of(found) else replace(found, iterations=again.iterations)


class _Solver:
    """The ways of one problem to a guess, and from there to a solution with a certificate.

    A guess is a point, the width of the band to go on from, and whether its outputs are exact.
    """

    def __init__(self, matrix: Matrix, problem: Problem, tolerance: float, *, seed: int, kept_bytes: int) -> None:
        self.matrix, self.problem, self.tolerance, self.kept_bytes = matrix, problem, tolerance, kept_bytes
        self.n, self.largest = len(problem), float(problem.costs.max())
        self.whole: Entries | None = None
        self.seed, self.counter = seed, systems.Counter()
        diagonal = max(float(matrix.diagonal.max(initial=0.0)), np.finfo(np.float64).tiny)
        self.fill, self.large = self.largest * diagonal, self.largest * diagonal > LARGE_COST
        # A ridge below the least is lost in rounding beside the matrix.
        self.least_ridge = LEAST_RIDGE * diagonal
        # Ridge and violation on the way, where the matrix is not exact, and at the end.
        self.rough = (max(min(1e-5, ROUGH_RIDGE / self.largest), self.least_ridge), ROUGH)
        self.exact = (max(RIDGE_SHARE * tolerance / self.largest, self.least_ridge), 0.1 * tolerance)

    @cached_property
    def rng(self) -> np.random.Generator:
        """What subsets are drawn by."""
        return np.random.default_rng((self.seed, 0))

    def from_nothing(self) -> Guess:
        """Return a guess from the means of the classes on, or, where that takes too long, as where rows crowd at the margin, from pairs."""
        self.counter.most = BEFORE_PAIRS * self.n**2 if self.n > DENSE_LEVEL else math.inf
        try:
            return self._from_means()
        except systems.TooLongError:
            # What it held is let go with the error.
            pass
        finally:
            self.counter.most = math.inf
        return self._by_descent(CROWD_TOLERANCE, CROWD_STEPS * self.n)

    def _by_descent(self, tolerance: float, most: int, first: int = 0) -> Guess:
        """Return a guess from so many pairs of rows that few of the free rows are wrong.

        TooLongError says that the first pairs, if so many are to be tried, leave a large gap.
        """
        problem, matrix, beta = self.problem, self.matrix, filled(self.problem)
        dtype = np.float32 if matrix.single else np.float64
        v = problem.signs * problem.margins - matrix.outputs(beta)
        # Of a function that is nearly constant, what many steps add up to needs more digits than entries have.
        v = v if first else v.astype(dtype)
        room, few = self.kept_bytes // (np.dtype(dtype).itemsize * self.n), self.n <= SINGLE_WHOLE
        K = self._whole(dtype) if room >= self.n and (few or not first) else None

        # Rows used longest ago make room for others.
        @lru_cache(maxsize=max(2, room))
        def made(i: int) -> Entries:
            row: Entries = matrix.block(np.array([i]), slice(None), dtype)[0]
            return row

        rows = made if K is None else K.__getitem__
        if first:
            beta, _ = descend(rows, matrix.diagonal, problem, beta, v, tolerance=tolerance, most=first)
            f = problem.signs * problem.margins - v
            if gap_of(problem.certified(beta, f, tolerance=tolerance, iterations=0, method="")) > RARE_GAP:
                raise systems.TooLongError
        beta, _ = descend(rows, matrix.diagonal, problem, beta, v, tolerance=tolerance, most=most)
        f, a = self.matrix.outputs(beta), problem.signs * beta
        sets = Sets((a > 0) & (a < problem.costs), a >= problem.costs)
        return Point(beta, f, problem.intercept(beta, f), sets, method="pairs"), 0.0, True

    def _from_means(self) -> Guess:
        """Return a guess from the means of the classes on: of all rows at once where they are few, else of a random subset."""
        n, problem = self.n, self.problem
        size = min(MOST, max(FEWEST, n // 6))
        members = np.arange(n) if n <= WHOLE else _random_subset(problem.signs, size, self.rng)
        K = self.matrix.square(members)
        square = float(K.diagonal() @ K.diagonal())
        # The mean squared entry of two rows, in units of the diagonal.
        mean = (float(np.vdot(K, K)) / square - 1.0) / max(len(K) - 1, 1)
        fits = n >= LEAST_PRODUCTS and ENTRY_BYTES * n**2 <= self.kept_bytes
        if fits and mean * (n - 1) < NEARLY_DIAGONAL * min(1.0, n / WHOLE) ** 2:
            point = self._by_products(K)
            if point.reached:
                return point, 0.0, True
        rank = _rank_share(K, FEWEST if len(members) == n else PROBE_ROWS)
        full = rank >= FULL_RANK
        if len(members) == n:
            return self._of_few(K, mean, rank)
        G = None if full else self._factor(members, FACTOR_COLUMNS)
        guess = self._by_first_pairs(low=G is not None)
        if guess is None and G is None and not full and n > FACTOR_SHARE * FACTOR_COLUMNS:
            G = self._factor(members, n // FACTOR_SHARE)
        if guess is None and self._pairs_lead(K, mean, full=full, low=G is not None):
            guess = self._by_pairs(copies=_many_copies(K))
        if guess is not None:
            return guess
        point = self._first(K, problem.rows(members, n / size), full=full, last=False)
        coefficients = _spread(point.coefficients, members, n)
        reached = full and point.reached and n <= ACTIVE_SET_ROWS
        if reached and (guess := self._by_active_set(coefficients, point.intercept)) is not None:
            return guess
        if full and not point.reached:
            G = self._factor(members, max(n // FACTOR_SHARE, FACTOR_COLUMNS))
        return self._by_subsets(members, coefficients, point.intercept, G)

    def _by_first_pairs(self, *, low: bool) -> Guess | None:
        """Return a guess from pairs where one class is rare and the first nearly solve the problem; `low` as in `_pairs_lead`."""
        positive = int(np.count_nonzero(self.problem.signs > 0))
        rare = min(positive, self.n - positive)
        share = min(RARE, RARE_SUM / (self.fill * self.n)) if low else RARE
        if 0 < rare <= share * self.n and self.problem.costs.min() == self.largest:
            with suppress(systems.TooLongError):
                return self._by_descent(RARE_TOLERANCE, RARE_STEPS * self.n, 2 * rare + FEWEST)
            self.counter.most *= RARE_PATIENCE
        return None

    def _of_few(self, K: Array, mean: float, rank: float) -> Guess:
        """Return a guess where the whole matrix is there, with its mean squared entry and the share of its rank."""
        problem = self.problem
        if rank < FULL_RANK and mean < VERY_LOCAL and self._not_all_bounded(K):
            guess = self._by_pairs(K, copies=_many_copies(K))
            if guess is not None:
                return guess
        # In regressions every row is there twice.
        classes = not problem.total and bool((problem.margins == 1.0).all())
        return self._first(K, problem, full=rank >= (HIGH_RANK if classes else FULL_RANK), last=True), 0.0, True

    def _not_all_bounded(self, K: Array) -> bool:
        return self.largest * self.n * float(K.mean()) > INSIDE

    def _pairs_lead(self, K: Array, mean: float, *, full: bool, low: bool) -> bool:
        """Say whether some rows say little of the others; `low` is whether a factor has few columns."""
        if PAIRS_BYTES * self.n**2 > self.kept_bytes or not self._not_all_bounded(K):
            return False
        if not full and not low and mean < LOCAL and self.n <= SINGLE_WHOLE:
            return True
        others = (np.einsum("ij,ij->i", K, K) / float(np.mean(K.diagonal() ** 2)) - 1.0) / max(len(K) - 1, 1)
        alone = float(np.mean(others < ALONE))
        return alone > SOME_ALONE and (mean > CROWD or float(others.max()) > UNEVEN * mean)

    def _factor(self, members: NDArray[np.intp], most: int) -> Array | None:
        """Return G with K ~ G G', where at most so many columns are enough and rows are many."""
        tolerance, held = FACTOR_ERROR / float(self.problem.costs.sum()), self.kept_bytes // (12 * self.n)
        few = self.n < FACTOR_ROWS
        return None if few else pivoted_factor(self.matrix, tolerance, min(most, held), members)

    def _by_pairs(self, K: Entries | None = None, *, copies: bool) -> Guess | None:
        """Return a guess from pairs of rows on, then by Newton's method over all rows; `K` is the whole matrix, if it is there.

        None where there are copies and only that is left: it frees all copies of a row, in systems of nearly all rows.
        """
        problem, every, beta, few = self.problem, np.arange(self.n), filled(self.problem), K is not None
        if K is None:
            K = self._whole(np.float32 if self.matrix.single else np.float64)
        v = (problem.signs * problem.margins - K @ beta.astype(K.dtype)).astype(K.dtype)
        rows = K.__getitem__
        beta, _ = descend(rows, self.matrix.diagonal, problem, beta, v, tolerance=PAIRS_TOLERANCE, most=self.n)
        single = K.dtype != np.float64 and self._single(beta)
        if K.dtype != np.float64 and not single and self.n <= SINGLE_WHOLE:
            K = self.matrix.square(every)
        dense = single or K.dtype == np.float64
        system = systems.DenseSystem(K, problem, self.counter) if dense else self.system(every, problem)
        a = problem.signs * beta
        sets = Sets((a > 0) & (a < problem.costs), a >= problem.costs)
        abort = int(np.count_nonzero(sets.free)) // 2 + 10
        end, violation = self.rough if single else self.exact
        falling = Falling(PAIRS_RIDGE, end, RIDGE_FACTOR, violation)
        point, _ = active_set(system, sets, falling, patience=PAIRS_PATIENCE, abort=abort, single=single)
        if point.reached:
            return replace(point, method="pairs, then active set"), 0.0, not single
        if copies:
            return None
        f = system.outputs(beta)
        b, root = problem.intercept(beta, f), math.sqrt(self.largest)
        start, end = PAIRS_START * root, PAIRS_END * root
        if few:
            point = newton(system, beta, f, b, start=start, finish=self.exact)
            return replace(point, method="pairs"), 0.0, True
        point = newton(system, beta, f, b, start=start, end=end, factor=PAIRS_FACTOR, steps=PAIRS_STEPS)
        return self._near_guess(system, replace(point, method="pairs"), every, end)

    def from_start(self, start: Solution) -> Guess:
        """Return a guess from the solution of a similar problem: free and bounded rows stay what they were."""
        a = self.problem.signs * start.coefficients
        share = a / max(float(a.max(initial=0.0)), np.finfo(np.float64).tiny)
        upper = share >= 1.0 - 1e-9
        coefficients = np.clip(a, 0.0, self.problem.costs) * self.problem.signs
        sets = Sets((share > 0) & ~upper, upper)
        return Point(coefficients, start.outputs, start.intercept, sets, method="start"), 0.0, False

    def all_at_once(self, system: System, method: str) -> Guess:
        """Return a guess by Newton's method over all rows from the widest band on."""
        zero, start = np.zeros(self.n), max(1.0, 0.01 * self.largest)
        if isinstance(system, systems.FactorSystem):
            point = newton(system, zero, zero, 0.0, start=start, end=FACTOR_WIDTH)
            if not _crowded(system, point):
                f, b = point.outputs, point.intercept
                point = newton(system, point.coefficients, f, b, start=FACTOR_WIDTH, finish=self.exact)
        else:
            point = newton(system, zero, zero, 0.0, start=start, finish=self.exact)
        return replace(point, method=method), 0.0, True

    def _first(self, K: Array, problem: Problem, *, full: bool, last: bool) -> Point:
        """Return the solution of a dense problem, exact if it is the last one."""
        system, largest = systems.DenseSystem(K, problem, self.counter), float(problem.costs.max())
        beta, f, b = _class_means(K, problem, FULL_MEANS if full else MEANS)
        if full:
            end, tolerance = self.exact if last else (0.01, 0.1)
            slack = problem.slack(f, b)
            upper = slack > JUMP * system.reach
            # The ridge of a whole problem falls at once.
            ridge, factor = (LAST_RIDGE, 0.0) if last else (FIRST_RIDGE, 0.03)
            falling = Falling(max(ridge * float(K[0, 0]), end), end, factor, tolerance)
            point, _ = active_set(system, Sets((slack > 0) & ~upper, upper), falling, jump=JUMP)
            if point.reached:
                return replace(point, method="dense")
        start = max(FIRST_WIDTH, 0.01 * largest)
        if last:
            point = newton(system, beta, f, b, start=start, finish=self.exact)
        else:
            point = newton(system, beta, f, b, start=start, end=_width(largest))
        return replace(point, reached=point.reached and not full, method="dense")

    def _by_products(self, K: Array) -> Point:
        """Return a point by the active set method from all rows free on, by conjugate gradients with the whole matrix."""
        K = K if len(K) == self.n else self.matrix.square(np.arange(self.n))
        # Coefficients are hardly larger than a margin over a diagonal entry, whatever their costs.
        cost = min(self.largest, LARGE_SHARE / float(K.diagonal().mean()))
        end = max(RIDGE_SHARE * self.tolerance / cost, self.least_ridge)
        every, falling = np.ones(self.n, dtype=bool), Falling(RIDGE / cost, end, RIDGE_FACTOR, self.exact[1])
        system = systems.NearlyDiagonalSystem(K, self.problem, self.counter)
        return replace(active_set(system, Sets(every, ~every), falling)[0], method="conjugate gradients")

    def _by_active_set(self, coefficients: Array, b: float) -> Guess | None:
        """Return a guess by the active set method over all rows; None where it fails and leaves no start."""
        problem, every = self.problem, np.arange(self.n)
        single = self.n > WHOLE and self._single(coefficients)
        system = self.system(every, problem, single=single)
        end, violation = self.rough if single else self.exact
        # Where costs are small, rows well beyond the margin of the subset's function are at their bound.
        upper = problem.slack(self.matrix.outputs(coefficients), b) > JUMP * system.reach
        sets, falling = Sets((coefficients != 0) & ~upper, upper), Falling(RIDGE, end, RIDGE_FACTOR, violation)
        point, good = active_set(system, sets, falling, most_freed=MOST_FREED, jump=JUMP, single=single)
        if point.reached:
            return replace(point, method="active set"), 0.0, not single
        if good is None:
            return None
        beta, f = good.coefficients, good.outputs
        if single:
            system = self.system(every, problem)
            f = system.outputs(beta)
        width = max(min(good.ridge * self.largest, 4.0), 0.1)
        point = newton(system, beta, f, good.intercept, start=width, finish=self.exact)
        return replace(point, method="active set, then Newton"), 0.0, True

    def _by_subsets(self, members: NDArray[np.intp], coefficients: Array, b: float, G: Array | None = None) -> Guess:
        """Return a guess by Newton's method on larger and larger subsets, then on the rows near the margin.

        Of a matrix that is nearly G G' by the factor, otherwise by the rows that are near the margin at each level.
        """
        n, others = self.n, np.ones(self.n, dtype=bool)
        others[members] = False
        order = np.concatenate([members, self.rng.permutation(np.flatnonzero(others))])
        sizes = _levels(len(members), n, 3, MOST_LEVEL) if G is None else _levels(len(members), n, 6, n)
        # Small costs fill the coefficients of a narrower band.
        level_width = LEVEL_WIDTH * max(0.1, min(1.0, self.largest))
        last = level_width if G is None else min(FACTOR_WIDTH, FACTOR_CROWD / n)
        for level, size in enumerate(sizes):
            taken = np.sort(order[:size])
            part = self.problem.rows(taken, n / size)
            if G is None:
                f = self.matrix.outputs(coefficients, taken)
                chosen = _near_margin(part, f, b, coefficients[taken])
                taken, part, f = taken[chosen], part.rows(chosen), f[chosen]
                single = not self.large and self._single(coefficients)
                system: System = self.system(taken, part, single=single)
            else:
                rows = G if size == n else G[taken]
                f, system = rows @ (coefficients @ G), systems.FactorSystem(rows, part, self.counter)
            start = _width(float(part.costs.max()))
            if G is None and size == n and self.largest < 1.0:
                start = level_width
            if G is None:
                # Where many rows are near the margin, narrower bands hold fewer of them.
                crowd = len(taken) // CROWDED_BAND
                narrow = 2.0 * float(np.partition(np.abs(part.slack(f, b)), crowd)[crowd])
                start = min(start, max(narrow, NARROWEST))
                # The last subset is solved a little further, as all rows are.
                factor, end = 0.1, min(start, level_width) if level >= len(sizes) - 2 else start
                last = end
            else:
                factor, end = 0.3, last if size == n else FACTOR_WIDTH
                start = FACTOR_WIDTH if size == n and len(sizes) > 1 else start
            point = newton(system, coefficients[taken], f, b, start=start, end=end, factor=factor, steps=100)
            coefficients, b = _spread(point.coefficients, taken, n), point.intercept
        return self._near_guess(system, replace(point, method="levels" if G is None else "factor"), taken, last)

    def _near_guess(self, system: System, point: Point, rows: NDArray[np.intp], width: float) -> Guess:
        """Return a guess from the last width: the rows next to the margin are still to be solved, if there is room."""
        slack = system.problem.slack(point.outputs, point.intercept)
        free, upper, method = np.abs(slack) < REACH * width, slack >= REACH * width, point.method
        if _crowded(system, point):
            free, upper, width = point.sets.free, point.sets.upper, 0.0
        elif self.large or np.count_nonzero(free) ** 2 * ENTRY_BYTES > self.kept_bytes:
            f, b = point.outputs, point.intercept
            point = newton(system, point.coefficients, f, b, start=width, finish=self.rough)
            width = 0.0
            slack = np.abs(system.problem.slack(point.outputs, point.intercept))
            closest = (slack < CLOSE) & ~point.sets.free
            if np.count_nonzero(closest) > MOST_CLOSE:
                closest[np.argpartition(slack, MOST_CLOSE)[MOST_CLOSE:]] = False
            free = point.sets.free | closest
            upper = (np.abs(point.coefficients) > 0.5 * system.problem.costs) & ~free
        sets = Sets(_spread(free, rows, self.n), _spread(upper, rows, self.n))
        coefficients = _spread(point.coefficients, rows, self.n)
        return Point(coefficients, point.outputs, point.intercept, sets, method=method), width, False

    def _single(self, coefficients: Array) -> bool:
        """Say whether single precision is enough for products with coefficients like these."""
        return self.matrix.single and float(np.abs(coefficients).sum()) < SINGLE_SUM

    def _whole(self, dtype: type[np.float32 | np.float64]) -> Entries:
        """Return the whole matrix, which is kept where it is small and in single precision."""
        if self.whole is not None and dtype is np.float32:
            return self.whole
        K = self.matrix.square(np.arange(self.n), dtype)
        if dtype is np.float32 and self.n <= SINGLE_WHOLE:
            self.whole = K
        return K

    def system(
        self, members: NDArray[np.intp], part: Problem, *, single: bool = False
    ) -> systems.DenseSystem | systems.CachedSystem:
        """Return the system of some rows, with the whole matrix where it is small."""
        if single and self.n <= SINGLE_WHOLE and 4 * self.n**2 <= self.kept_bytes:
            K = self._whole(np.float32)
            K = K if len(members) == self.n else K[np.ix_(members, members)]
            return systems.DenseSystem(K, part, self.counter)
        if len(members) <= DENSE_LEVEL and 16 * len(members) ** 2 <= self.kept_bytes:
            return systems.DenseSystem(self.matrix.square(members), part, self.counter)
        dtype = np.float32 if single else np.float64
        return systems.CachedSystem(self.matrix, members, part, self.counter, kept_bytes=self.kept_bytes, dtype=dtype)


def _crowded(system: System, point: Point) -> bool:
    """Say whether so many rows of a factor lie at the margin that a function of its columns decides few of them."""
    free = int(np.count_nonzero(point.sets.free))
    return isinstance(system, systems.FactorSystem) and free > max(CROWDED * len(system.product), REFINED_ROWS)


def _width(largest: float) -> float:
    """Return the width of the band to start from where a good start is there."""
    return max(0.1, min(5.0, 1e-3 * largest))


def _spread(values: NDArray[Scalar], rows: NDArray[np.intp], n: int) -> NDArray[Scalar]:
    """Return the values of some rows as those of all, zero elsewhere."""
    everywhere = np.zeros(n, dtype=values.dtype)
    everywhere[rows] = values
    return everywhere


def _class_means(K: Array, problem: Problem, margins: float) -> tuple[Array, Array, float]:
    """Return the function that compares the means of two classes, which are at so many margins; 0 for other problems."""
    n, positive = len(problem), problem.signs > 0
    count = int(np.count_nonzero(positive))
    if problem.total or not 0 < count < n or (problem.margins <= 0).any():
        return np.zeros(n), np.zeros(n), 0.0
    beta = np.where(positive, 1.0 / count, -1.0 / (n - count))
    f = K @ beta
    above, below = float(f @ positive) / count, float(f @ ~positive) / (n - count)
    most = float(problem.costs.max()) * min(count, n - count)
    scale = most if most * (above - below) < 2.0 * margins else 2.0 * margins / (above - below)
    return scale * beta, scale * f, -0.5 * scale * (above + below)


def _random_subset(signs: Array, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return random rows, of both signs where there are both."""
    members = rng.choice(len(signs), size, replace=False)
    for sign in (1.0, -1.0):
        if not (signs[members] == sign).any():
            some = np.flatnonzero(signs == sign)[:2]
            members[: len(some)] = some
    return np.unique(members)


def _levels(first: int, n: int, factor: int, most: int) -> list[int]:
    """Return the sizes of the subsets between the first and all rows, and n."""
    sizes = []
    size = first
    # A subset that is nearly all rows is not worth its systems.
    while 2.0 * factor * size < n and size < most:
        size = min(factor * size, most)
        sizes.append(size)
    return [*sizes, n]


def _near_margin(problem: Problem, f: Array, b: float, coefficients: Array) -> NDArray[np.intp]:
    """Return the rows near the margin or beyond it, and those in use; all if they are most."""
    near = (problem.slack(f, b) > -NEAR_MARGIN) | (coefficients != 0)
    return np.flatnonzero(near) if near.mean() < 0.8 else np.arange(len(near))


def _many_copies(K: Array) -> bool:
    """Say whether rows have a copy among the others, on average."""
    return int(np.count_nonzero(np.greater_equal(K, (1.0 - 1e-12) * K.diagonal()))) >= 2 * len(K)


def _rank_share(K: Array, most: int) -> float:
    """Return the share of the pivots of some rows, at most so many, that stand out."""
    size = min(len(K), most)
    scale = float(K.diagonal()[:size].max())
    return int(lapack.dpstrf(np.asfortranarray(K[:size, :size]), lower=1, tol=PROBE_TOLERANCE * scale)[2]) / size
