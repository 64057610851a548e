"""Support vector machines on a matrix of kernel values: their options, what predicts, and how it is found from rows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kerntest.engines.engine import Engine, allowed_bytes, one_blas_thread
from kerntest.errors import KerntestError, UndecidedError, UsageError, option
from kerntest.kernels.algebra import has_bandwidth, overflow
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.learning.machines.baselines import mean_scores, nearest_mean, perceptron
from kerntest.learning.machines.svm_model import Method, SvmModel
from kerntest.learning.solvers.hinge import solve_hinge
from kerntest.learning.solvers.pairs import solve_indefinite
from kerntest.learning.solvers.problem import Problem, Solution
from kerntest.learning.solvers.smoothed import CHOOSING_BYTES, CostPath
from kerntest.learning.solvers.stacked import MOST_SINGLE, Stack, solve_stack, stacks
from kerntest.learning.work_of_fits import kept_by_machine
from kerntest.matrices.expansion import Expansion, GivenExpansion, in_pairs
from kerntest.matrices.factor import FeatureMap, as_points, make_features
from kerntest.matrices.matrix import FactorMatrix, GivenMatrix, Matrix, Repeated, is_definite, matrix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array
    from kerntest.learning.machines.svm_options import SvmOptions
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.learning_record import GridSearch

# Kernel values up to this can be squared.
LARGEST_VALUE = 1e150
# The costs at which a machine without errors is looked for, the share of them that a coefficient may have, and what slack
# is rounding.
HARD_COSTS, REACHED, HARD_SLACK = (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6, 1e8), 0.99, 1e-4
# Up to so many bytes the matrix of all rows is shared by pairs of small classes, and by those of middling ones.
WHOLE_BYTES, SHARED_BYTES = 2 * 10**8, 5 * 10**7
# How often the search for the cost of a nu is widened: costs from 1e-12 to 1e9.
WIDENINGS = 7
# And from what cost a machine starts whose logarithm is so near.
NEAR_COST = 0.1
# The fewest rows by which a machine is judged beforehand, and what tells the draw of them from other streams of the same seed;
# how many times longer twice as many may take, and the most seconds that are spent on the next.
PILOT_ROWS, PILOT_STREAM, TWICE, PILOT_SECONDS = 300, 9, 8.0, 2.0
# The nu of a one-class machine without one.
ONE_CLASS_NU = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class SvmFit:
    """A model and what it took, sums and largest gap over its machines; None where nothing is minimised.

    `support` are the rows with a coefficient in any machine, which copies share, `centres` which one stands for each of them in
    the model, and `n_bounded` how many of these are at their upper bound in any. `units` are warnings that C or
    epsilon are out of proportion to the target.
    """

    model: SvmModel
    solutions: tuple[Solution, ...]
    support: NDArray[np.intp]
    centres: NDArray[np.intp]
    n_bounded: int
    C: float | None
    objective: float | None
    dual_objective: float | None
    gap: float | None
    iterations: int
    converged: bool
    search: GridSearch | None = None
    units: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def standing(self) -> NDArray[np.intp]:
        """The first of the rows that each row of the model stands for."""
        return self.support[np.unique(self.centres, return_index=True)[1]]

    @property
    def n_support(self) -> int:
        """How many different rows the model keeps."""
        return len(self.standing)


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """One function sum_i beta_i k(x_i, .) + b over some of the rows, its |beta_i| at most `limits`, of cost C if it has one."""

    rows: NDArray[np.intp]
    solution: Solution
    limits: Array | float = math.inf
    C: float | None = None


class Pilot(NamedTuple):
    """What the machine of so many rows took, the largest part that was tried: its seconds, and its free rows."""

    rows: int
    seconds: float
    free: int


@one_blas_thread()
def pilot(rows: TrainingRows, options: SvmOptions) -> Pilot | None:
    """Return what a machine takes of up to a fourth of the rows, of the two largest classes, with a cost that stands for all.

    It takes a second at most. Of few rows nothing is known.
    """
    kernel, points, every, found = rows.kernel, rows.points, np.arange(len(rows)), None
    if kernel is None or not isinstance(points, Points) or options.method != "svm":
        return None
    if rows.classes is not None:
        pair = np.argsort(np.bincount(rows.codes, minlength=len(rows.classes.names)))[-2:]
        every = np.flatnonzero(np.isin(rows.codes, pair))
    order = np.random.default_rng((options.seed, PILOT_STREAM)).permutation(every)
    for halvings in range(int(math.log2(len(order) / PILOT_ROWS)), 1, -1):
        part = rows.take(order[: len(order) >> halvings])
        if rows.classes is not None and np.ptp(part.codes) == 0:
            continue
        began = time.thread_time()
        try:
            machines = Machines(part, options.feasible(part), Engine(1))
            started = time.thread_time()
            machine = machines.largest(options.C * len(order) / len(part))
        except KerntestError:
            break
        sizes = np.abs(machine.solution.coefficients)
        free = int(np.count_nonzero((sizes > 0) & (sizes < machine.limits * (1.0 - 1e-9))))
        found = Pilot(len(machine.rows), time.thread_time() - started, free)
        # What it begins with, such as features, grows no faster.
        if TWICE * (time.thread_time() - began) > PILOT_SECONDS:
            break
    return found


class Machines:
    """The machines that options ask for, on the matrix of some rows: fitted at one cost after another."""

    def __init__(
        self,
        rows: TrainingRows,
        options: SvmOptions,
        engine: Engine,
        method: Method | None = None,
        *,
        choosing: bool = False,
        inner: Array | None = None,
    ) -> None:
        """Make ready what all costs share; `choosing` is for machines that are not certified, at ascending costs.

        The matrix of the rows may be given as `inner`.
        """
        self.method, self.names = method or options.method, () if rows.classes is None else rows.classes.names
        self.options, self.engine, self.given = options, engine, rows
        # Which of the different rows each of the given ones is; the perceptron visits all.
        self.rows, self.copies = (rows, None) if self.method == "perceptron" else rows.merged()
        self.features: FeatureMap | None = None
        # G with K = G G', where there is one.
        self.factor: Array | None = None
        if inner is not None and self.copies is not None:
            first = np.unique(self.copies, return_index=True)[1]
            inner = inner[np.ix_(first, first)]
        points, kernel, self.inner = self.rows.points, rows.kernel, inner
        self.choosing, self.paths = choosing, dict[tuple[int, int], CostPath]()
        # How many machines are solved side by side.
        self.beside = 1
        if inner is not None:
            self.matrix: Matrix = GivenMatrix(inner)
            self.definite = True
        elif not isinstance(points, Points) or kernel is None:
            self.matrix = GivenMatrix(np.asarray(points))
            self.definite = is_definite(np.asarray(points))
        else:
            self.definite = kernel.positive_definite or options.features is not None
            if options.features is not None:
                self.features = make_features(options.features, kernel, as_points(rows.points), options.seed)
                self.factor = self.features(points, engine)
            elif isinstance(kernel, Linear) and points.numeric.shape[1] * 4 < len(points):
                self.factor = points.numeric
            self.matrix = matrix_of(kernel, points) if self.factor is None else FactorMatrix(self.factor)
        if float(np.abs(self.matrix.diagonal).max(initial=0.0)) > LARGEST_VALUE:
            raise overflow(rows.kernel or "precomputed")

    def fit(self, C: float, start: Sequence[Solution] | None = None, progress: Progress | None = None) -> SvmFit:
        """Return the machines of a cost, from solutions at a similar one; progress is that of the pairs of classes."""
        rows, options, pairs = self.rows, self.options, list(combinations(range(len(self.names)), 2))
        if options.task != "classify":
            found = [self.largest(C)]
        elif self.method == "mean":
            counts = self._summed(np.ones(len(self.given)))
            found = [Machine(own, nearest_mean(self.matrix, own, counts[own])) for own in self.of_class]
            pairs = []
        elif self.method == "perceptron":
            functions = perceptron(self.matrix, rows.codes, len(self.names), options.seed)
            found, pairs = [Machine(np.arange(len(rows)), one) for one in functions], pairs if len(pairs) == 1 else []
        else:
            found = self._pairs(pairs, C, start, progress)
        # Of more pairs than classes a row keeps one coefficient for each class that it is told from.
        paired = len(pairs) > len(self.names)
        coefficients = np.zeros((len(rows), len(self.names) if paired else len(found)))
        # Those of all machines at once: there may be very many.
        sizes, members = [len(one.rows) for one in found], np.concatenate([one.rows for one in found])
        limits = np.concatenate([np.full(size, one.limits) for size, one in zip(sizes, found, strict=True)])
        beta = np.concatenate([one.solution.coefficients for one in found])
        columns = np.array([i + j for i, j in pairs]) if paired else np.arange(len(found))
        coefficients[members, np.repeat(columns, sizes) - (rows.codes[members] if paired else 0)] = beta
        support, solutions = np.flatnonzero((coefficients != 0).any(axis=1)), [machine.solution for machine in found]
        intercepts, owners = np.array([one.intercept for one in solutions]), rows.codes[support] if paired else None
        expansion, kept = self._expansion(coefficients[support], intercepts, support, owners)
        bounded = np.searchsorted(support, members[np.abs(beta) >= limits * (1.0 - 1e-9)])
        # Copies share a coefficient.
        copies = np.arange(len(rows)) if self.copies is None else self.copies
        sharing = np.flatnonzero(np.isin(copies, support))
        model = SvmModel.of(
            self.given,
            expansion=expansion,
            features=self.features,
            task=options.task,
            method=self.method,
            pairs=tuple(pairs),
            target=rows.names[0] if rows.names else None,
            classes=rows.classes,
        )
        minimised = self.method == "svm"
        return SvmFit(
            model,
            tuple(solutions),
            sharing,
            kept[np.searchsorted(support, copies[sharing])],
            len(set(kept[bounded].tolist())),
            # Pairs of classes with one nu have a cost each.
            found[0].C if options.nu is None or len(found) == 1 else None,
            sum(one.objective for one in solutions) if minimised else None,
            sum(one.dual_objective for one in solutions) if minimised else None,
            max((one.gap for one in solutions if one.gap is not None), default=None),
            sum(one.iterations for one in solutions),
            all(one.converged for one in solutions),
        )

    def _expansion(
        self, weights: Array, intercepts: Array, support: NDArray[np.intp], owners: NDArray[np.intp] | None
    ) -> tuple[Expansion | GivenExpansion, NDArray[np.intp]]:
        """Return the scores as an expansion over the rows that support them, or over features; and the place of each row in it."""
        points, kernel, places = self.rows.points, self.rows.kernel, np.arange(len(support))
        if self.features is not None and self.factor is not None:
            # Linear in the features: the coefficients of the rows sum up to one weight for each feature.
            features = self.factor[support].T
            summed = features @ weights if owners is None else in_pairs(features, weights, owners)
            return GivenExpansion(np.arange(self.features.size), summed, intercepts), places
        owned = () if owners is None else tuple(owners.tolist())
        if kernel is None:
            return GivenExpansion(support, weights, intercepts, owned), places
        expansion = Expansion(kernel, as_points(points).take(support), weights, intercepts, owned)
        # Machines to choose from are soon forgotten.
        return (expansion, places) if self.choosing else expansion.merged()

    def largest(self, C: float) -> Machine:
        """Return the machine of the two largest classes, or that of all rows."""
        if self.options.task != "classify":
            return self._regression(C) if self.options.task == "regress" else self._one_class()
        i, j = sorted(np.argsort(np.bincount(self.rows.codes, minlength=len(self.names)))[-2:].tolist())
        return self._pair(i, j, C, None)

    @cached_property
    def costs(self) -> Array:
        """The factor of C of each row: that of its class, and its weight, of equal ones in all."""
        rows = self.given
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        if rows.classes is not None:
            weights = weights * self.options.class_factors(self.names, rows.codes)[rows.codes]
        return self._summed(weights)

    def mean_scores(self) -> Array:
        """Return the scores of the given rows by the nearest mean, as its model gives them."""
        scores = mean_scores(self.matrix, self.of_class, self._summed(np.ones(len(self.given))))
        return scores if self.copies is None else scores[self.copies]

    def _summed(self, weights: Array) -> Array:
        """Return what all of the given rows that are equal have in all."""
        return weights if self.copies is None else np.asarray(np.bincount(self.copies, weights), dtype=np.float64)

    def _members(self, i: int, j: int) -> tuple[NDArray[np.intp], Array]:
        """Return the rows of two classes, and -1 or 1 for each."""
        rows = np.sort(np.concatenate([self.of_class[i], self.of_class[j]]))
        return rows, np.where(self.rows.codes[rows] == j, 1.0, -1.0)

    def _pairs(
        self, pairs: list[tuple[int, int]], C: float, start: Sequence[Solution] | None, progress: Progress | None
    ) -> list[Machine]:
        """Return the machine of each pair of classes: of classes of few rows many at once, as far as that settles them."""
        options, sizes = self.options, np.bincount(self.rows.codes, minlength=len(self.names))
        costs = self.costs
        pieces = stacks(np.array([sizes[i] + sizes[j] for i, j in pairs]))
        # Together, or alone with what they share of the matrix of all rows.
        stacked = any(len(places) > 1 for places in pieces)
        alone = len(pairs) > 1 and start is None and self.inner is None
        most = WHOLE_BYTES if stacked else SHARED_BYTES if alone else 0
        whole = 8 * len(self.rows) ** 2 <= min(most, allowed_bytes(most))
        plain = whole and self.definite and options.nu is None and not options.hard_margin
        if plain and (stacked or np.sort(sizes)[:2].sum() <= MOST_SINGLE):
            # Made before threads ask for it.
            _ = self.whole

        def work(places: list[int]) -> list[Machine]:
            """Return the machines of some pairs, in their order."""
            some, settled = [pairs[place] for place in places], dict[int, Machine]()
            if plain and len(places) > 1:
                settled = self._stacked(some, C * costs, C)
            elif plain and alone and sizes[some[0][0]] + sizes[some[0][1]] <= MOST_SINGLE:
                settled = {0: self._alone(*some[0], C * costs, C)}
            return [
                settled.get(number) or self._pair(*pairs[place], C, None if start is None else start[place])
                for number, place in enumerate(places)
            ]

        found, self.beside = dict[int, Machine](), max(min(self.engine.threads, len(pieces)), 1)
        if options.nu is not None and len(pairs) > 1:
            return self._all_by_nu(pairs, progress)
        for places, machines in zip(pieces, self.engine.here.map(work, pieces, progress), strict=True):
            found.update(zip(places, machines, strict=True))
        return [found[place] for place in range(len(pairs))]

    def _all_by_nu(self, pairs: list[tuple[int, int]], progress: Progress | None) -> list[Machine]:
        """Return the nu-machine of each pair; of pairs that a nu is too small for, the one that asks for most is told."""

        def work(pair: tuple[int, int]) -> Machine | UsageError:
            try:
                return self._pair(*pair, 1.0, None)
            except UsageError as error:
                return error

        found, errors = list[Machine](), list[UsageError]()
        for one in self.engine.here.map(work, pairs, progress):
            if isinstance(one, Machine):
                found.append(one)
            else:
                errors.append(one)
        if errors:
            raise max(errors, key=lambda error: float(error.where.get("least", 1.0)))
        return found

    def _alone(self, i: int, j: int, costs: Array, C: float) -> Machine:
        """Return the machine of a pair, from its part of the matrix of all rows."""
        members, (first, second) = np.concatenate([self.of_class[i], self.of_class[j]]), (self.parts[i], self.parts[j])
        size = len(self.of_class[i])
        K, signs = np.empty((len(members), len(members))), np.ones(len(members))
        K[:size, :size], K[size:, size:] = self.whole[first, first], self.whole[second, second]
        K[:size, size:] = self.whole[first, second]
        K[size:, :size], signs[:size] = K[:size, size:].T, -1.0
        problem = Problem(signs, costs[members], np.ones(len(members)))
        return Machine(members, self._solved(GivenMatrix(K), problem), costs[members], C)

    def _stacked(self, pairs: list[tuple[int, int]], costs: Array, C: float) -> dict[int, Machine]:
        """Return the machines of pairs of small classes by their places, as far as all at once settles them."""
        every = np.arange(len(self.rows))
        members = [np.concatenate([every[self.parts[i]], every[self.parts[j]]]) for i, j in pairs]
        sizes = np.array([len(one) for one in members])
        places, there = np.zeros((len(pairs), int(sizes.max())), dtype=np.intp), np.arange(sizes.max()) < sizes[:, None]
        places[there] = np.concatenate(members)
        rows = self.by_class[places]
        signs = np.where(self.rows.codes[rows] == np.array(pairs)[:, 1:], 1.0, -1.0)
        stack = Stack(self.whole[places[:, :, None], places[:, None, :]], signs, np.where(there, costs[rows], 0.0))
        found = solve_stack(stack, self.options.tolerance)
        own = [self.by_class[one] for one in members]
        return {place: Machine(own[place], one, costs[own[place]], C) for place, one in found.items()}

    @cached_property
    def whole(self) -> Array:
        """The matrix of all rows, those of a class together."""
        return np.asarray(Repeated(self.matrix, self.by_class).square(np.arange(self.matrix.n)))

    @cached_property
    def by_class(self) -> NDArray[np.intp]:
        """The rows of one class after those of another."""
        return np.concatenate(self.of_class)

    @cached_property
    def parts(self) -> list[slice]:
        """Where the rows of each class are among those."""
        ends = np.cumsum([0, *map(len, self.of_class)]).tolist()
        return [slice(*one) for one in pairwise(ends)]

    @cached_property
    def of_class(self) -> list[NDArray[np.intp]]:
        """The rows of each class."""
        return [np.flatnonzero(self.rows.codes == place) for place in range(len(self.names))]

    def _pair(self, i: int, j: int, C: float, start: Solution | None) -> Machine:
        """Return the machine that tells two classes apart, at a cost, without errors or by nu."""
        (rows, signs), both = self._members(i, j), f"{self.names[i]!r} and {self.names[j]!r}"
        part, costs = self.matrix if len(rows) == self.matrix.n else Repeated(self.matrix, rows), self.costs[rows]
        if self.options.nu is not None:
            solution, C = self._by_nu(part, signs, costs, self.options.nu, both)
            return Machine(rows, solution, C * costs, C)
        factor, ones = None if self.factor is None else self.factor[rows], np.ones(len(rows))
        if self.choosing:
            path = self.paths.get((i, j)) or self.paths.setdefault((i, j), self._path(part, rows))
            return Machine(rows, path.at(Problem(signs, C * costs, ones)), C * costs, C)
        if not self.options.hard_margin:
            return Machine(rows, self._solved(part, Problem(signs, C * costs, ones), start, factor), C * costs, C)
        # Of costs that no coefficient reaches the least.
        for cost in HARD_COSTS:
            solution = self._solved(part, Problem(signs, cost * costs, ones), start, factor)
            slack = 1.0 - signs * (solution.outputs + solution.intercept)
            free = bool((np.abs(solution.coefficients) < REACHED * cost * costs).all())
            if free and solution.converged and float(slack.max()) <= HARD_SLACK:
                return Machine(rows, solution)
        told = f"no hard margin was found between {both}: this kernel cannot separate them"
        narrower = self.rows.kernel is not None and has_bandwidth(self.rows.kernel)
        more = f"a smaller {option('bandwidth')}" if narrower else option("kernel", "gaussian")
        hint = f"without {option('hard-margin', True)} errors are allowed; {more} separates more"
        raise UndecidedError(told, hint=hint, code="undecided.not_separable")

    def _path(self, part: Matrix, rows: NDArray[np.intp]) -> CostPath:
        """Return what finds the machines of two classes at one cost after another; pairs share the bytes that are kept."""
        K, kept = self.inner, min(CHOOSING_BYTES, allowed_bytes(CHOOSING_BYTES))
        if K is not None and len(rows) < len(K):
            K = K[np.ix_(rows, rows)]
        return CostPath(part, K, kept // (len(self.names) * (len(self.names) - 1) // 2))

    def _solved(
        self, matrix: Matrix, problem: Problem, start: Solution | None = None, factor: Array | None = None
    ) -> Solution:
        """Return the solution; of a matrix that is not positive semi-definite, a stationary point by SMO."""
        options = self.options
        # A nu asks for a certificate, and for a far tighter one, as its share hardly changes with small costs: it is never left to SMO.
        by_nu = options.nu is not None and options.task == "classify"
        if not self.definite and not by_nu:
            return solve_indefinite(matrix, problem)
        tolerance = options.tolerance * (1e-4 if by_nu else 1.0)
        kept = kept_by_machine(self.beside)
        try:
            return solve_hinge(
                matrix, problem, tolerance=tolerance, seed=options.seed, start=start, factor=factor, kept_bytes=kept
            )
        except np.linalg.LinAlgError as error:
            told = "the kernel is not positive definite on these rows: the problem has no single solution"
            hint = "use a positive definite kernel, such as gaussian or laplacian"
            raise UndecidedError(told, hint=hint, code="undecided.not_positive_definite") from error

    def _by_nu(self, matrix: Matrix, signs: Array, costs: Array, nu: float, both: str) -> tuple[Solution, float]:
        """Return the nu-machine: the C-machine whose coefficients are the share nu of their bounds (Chang and Lin 2001).

        sum a(C) / (C n) falls with C: its root is found on log C, by the method of Brent (1973). Costs are numbers of rows.
        """
        from scipy.optimize import brentq  # noqa: PLC0415 - takes 0.14 s to load

        n, ones, known = float(costs.sum()), np.ones(len(signs)), dict[float, Solution]()

        def at(log_c: float) -> Solution:
            if log_c not in known:
                # Of nearly the same cost the same rows are free.
                nearest = min(known, key=lambda one: abs(one - log_c), default=math.inf)
                start = known[nearest] if abs(nearest - log_c) < NEAR_COST else None
                known[log_c] = self._solved(matrix, Problem(signs, math.exp(log_c) * costs, ones), start)
            return known[log_c]

        def excess(log_c: float) -> float:
            return float(np.abs(at(log_c).coefficients).sum()) / (math.exp(log_c) * n) - nu

        low, high = math.log(1e-3), math.log(1e3)
        for _ in range(WIDENINGS):
            if excess(low) < 0:
                low, high = low - 3.0, low
            elif excess(high) > 0:
                low, high = high, high + 2.0
        if (over := excess(high)) > 0:
            least, cost = over + nu, math.exp(high)
            # The next larger number of two digits.
            unit = 10.0 ** (math.floor(math.log10(least)) - 1)
            told = f"nu = {nu:g} is too small for {both}: even a cost of {cost:.1g} leaves a share of {least:.3g}"
            hint = (
                f"{option('nu', round((math.floor(least / unit) + 1) * unit, 6))} or more, or {option('C')} with a cost"
            )
            raise UsageError(told, hint=hint, code="usage.nu", where={"least": f"{least:.6g}"})
        best = brentq(excess, low, high, xtol=1e-10) if excess(low) > 0 else low
        solution = at(best)
        converged = solution.gap is None or solution.gap <= self.options.tolerance
        return replace(solution, converged=converged), math.exp(best)

    def _regression(self, C: float) -> Machine:
        """Return epsilon support vector regression (Drucker et al. 1997).

        Targets have standard deviation 1 for the solver. Every case has two rows, for being too low and too high.
        """
        target, n = self.rows.targets[:, 0], len(self.rows)
        centre, spread = float(target.mean()), float(target.std()) or 1.0
        z = (target - centre) / spread
        margins = np.concatenate([z, -z]) - self.options.epsilon / spread
        limits = C * self.costs
        problem = Problem(np.repeat([1.0, -1.0], n), np.tile(limits / spread, 2), margins)
        solution = self._solved(Repeated(self.matrix, np.tile(np.arange(n), 2)), problem)
        coefficients = spread * (solution.coefficients[:n] + solution.coefficients[n:])
        primal, dual = spread**2 * solution.objective, spread**2 * solution.dual_objective
        solution = replace(solution, coefficients=coefficients, objective=primal, dual_objective=dual)
        return Machine(np.arange(n), replace(solution, intercept=spread * solution.intercept + centre), limits, C)

    def _one_class(self) -> Machine:
        """Return the one-class machine (Schoelkopf et al. 2001): coefficients up to 1 with sum nu n, b = -rho."""
        n, nu = len(self.rows), ONE_CLASS_NU if self.options.nu is None else self.options.nu
        costs = self.costs
        found = self._solved(self.matrix, Problem(np.ones(n), costs, np.zeros(n), total=nu * float(costs.sum())))
        return Machine(np.arange(n), found, costs)
