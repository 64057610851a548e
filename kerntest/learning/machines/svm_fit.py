"""Support vector machines on a matrix of kernel values: what predicts, and how it is found from rows.

Beside them stand two baselines with the same kernel. The nearest mean compares |phi(x) - mu_c|^2, mu_c the mean of the
rows of class c: with a kernel that is a density it is the kernel density classifier. The perceptron (Rosenblatt 1958;
Freund and Schapire 1999) adds y_i k(x_i, .) for every row that it gets wrong, until there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.linalg import LinAlgError

from kerntest.engines.engine import allowed_bytes
from kerntest.errors import UndecidedError, UsageError
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.learning.cross_validation import EQUAL_SCORES
from kerntest.learning.scores import Sigmoid, couple, sigmoid_probability
from kerntest.learning.solvers.hinge import KEPT_BYTES, solve_hinge
from kerntest.learning.solvers.problem import Problem, Solution, solve_indefinite
from kerntest.matrices.factor import Expansion, GivenExpansion, expanded, make_features
from kerntest.matrices.matrix import GivenMatrix, Repeated, matrix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.machines.svm import SvmOptions
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.targets import Classes
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.matrices.factor import FeatureMap
    from kerntest.matrices.matrix import Matrix
    from kerntest.report.results.learning_record import GridSearch

Task: TypeAlias = Literal["classify", "regress", "one-class"]
Method: TypeAlias = Literal["svm", "mean", "perceptron"]
# Kernel values up to this can be squared.
LARGEST_VALUE = 1e150
# The costs at which a machine without errors is looked for, and the share of the cost that a coefficient may have.
HARD_COSTS, REACHED = (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6, 1e8), 0.99
# Slack of a hard margin that is rounding.
HARD_SLACK = 1e-4
# Halvings of the search for the cost of a nu, and widenings of where it is looked for: costs from 1e-12 to 1e9.
NU_STEPS, WIDENINGS = 60, 7
# A one-class machine without a nu calls such a share of the training rows outliers.
ONE_CLASS_NU = 0.1
# Rounds of the perceptron, and numbers of the matrix that it keeps: 400 MB of them.
EPOCHS, KEPT_NUMBERS = 100, 5 * 10**7


@dataclass(frozen=True, slots=True, eq=False)
class SvmModel:
    """What a fitted machine predicts with: J scores over the training rows that support them.

    The scores tell `pairs` of classes apart, and are above 0 for the second; those of the nearest mean are one for each
    class. `sigmoids` make probabilities of them. A precomputed matrix has `n_train` columns and no encoder.
    """

    task: Task
    method: Method
    encoder: Encoder | None
    expansion: Expansion | GivenExpansion
    pairs: tuple[tuple[int, int], ...]
    target: str | None
    classes: Classes | None
    sigmoids: tuple[Sigmoid, ...] = ()
    features: FeatureMap | None = None
    n_train: int = 0
    KIND: ClassVar[str] = "svm"
    CALLED: ClassVar[str] = "a support vector machine"

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it: scores are one for each pair, or class, or one in all."""
        scores = len(self.expansion.intercepts)
        if self.sigmoids and len(self.sigmoids) != len(self.pairs):
            return "its sigmoids and pairs do not fit together"
        if self.task != "classify":
            fits = self.method == "svm" and self.classes is None and not self.pairs and scores == 1
            return None if fits else f"a model for {self.task} has method 'svm', one score, no classes and no pairs"
        if self.classes is None:
            return "a classifier has classes"
        count = len(self.classes.names)
        if sorted(self.pairs) != ([] if self.method == "mean" else list(combinations(range(count), 2))):
            return f"its pairs are not those of {count:,} classes, each once"
        if scores != (count if self.method == "mean" else len(self.pairs)):
            return f"its {scores:,} scores are not those of {count:,} classes"
        return None

    def scores(self, points: Points | Array, engine: Engine) -> Array:
        """Return the scores of n rows (points, or rows of a precomputed matrix), shape (n, J)."""
        return expanded(self.expansion, self.features, points, engine)

    def decision(self, scores: Array) -> Array:
        """Return what is reported as the decision function: (n,) for two classes and other tasks, else (n, J)."""
        if self.method == "mean" and scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def codes(self, scores: Array) -> NDArray[Any]:
        """Return the place of the predicted class: by votes, ties going to the first class.

        With probabilities of more than two classes, the most probable one.
        """
        by_class = scores
        if self.sigmoids and len(self.pairs) > 1:
            by_class = self.probabilities(scores)
        elif self.method != "mean":
            by_class = self._votes(np.where(scores > 0, 1.0, 0.0))
        return np.asarray(np.argmax(by_class, axis=1))

    def class_scores(self, scores: Array) -> Array:
        """Return one score for each class, whose order counts: for ROC curves. Shape (n,) for two classes."""
        if self.method == "mean" or len(self.pairs) == 1:
            return self.decision(scores)
        return self._votes((scores > 0) + scores / (3.0 * (np.abs(scores) + 1.0)))

    def _votes(self, seconds: Array) -> Array:
        """Return the votes for each class, where those of each pair are so many for the second class and 1 in all."""
        votes = np.zeros((len(seconds), max(max(pair) for pair in self.pairs) + 1))
        for place, (i, j) in enumerate(self.pairs):
            votes[:, j] += seconds[:, place]
            votes[:, i] += 1.0 - seconds[:, place]
        return votes

    def probabilities(self, scores: Array) -> Array:
        """Return the probability of every class, shape (n, classes); two classes agree with the decision."""
        if not self.sigmoids:
            raise UsageError(
                "this model has no probabilities", hint="fit it with --probability", code="usage.no_probabilities"
            )
        found = [sigmoid_probability(sigmoid, scores[:, place]) for place, sigmoid in enumerate(self.sigmoids)]
        if len(self.pairs) == 1:
            return np.column_stack([1.0 - found[0], found[0]])
        count = max(max(pair) for pair in self.pairs) + 1
        pairwise = np.full((len(scores), count, count), 0.5)
        for one, (i, j) in zip(found, self.pairs, strict=True):
            pairwise[:, j, i], pairwise[:, i, j] = one, 1.0 - one
        return couple(pairwise)

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Return predictions as they stand in tables: classes, numbers, or whether a row is like the others."""
        if self.classes is not None:
            return self.classes.values(self.codes(scores))
        return scores[:, 0] if self.task == "regress" else np.asarray(scores[:, 0] >= 0)


@dataclass(frozen=True, slots=True, eq=False)
class SvmFit:
    """A model and what it took, sums and largest gap over its machines; None where nothing is minimised.

    `support` are the rows with a coefficient in any machine, `n_bounded` how many are at their upper bound in any,
    `solutions` those of the machines.
    """

    model: SvmModel
    kernel: Kernel | None
    solutions: tuple[Solution, ...]
    support: NDArray[np.intp]
    n_bounded: int
    C: float | None
    objective: float | None
    dual_objective: float | None
    gap: float | None
    iterations: int
    converged: bool
    search: GridSearch | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """One function sum_i beta_i k(x_i, .) + b over some of the training rows, its |beta_i| at most `limits`.

    `C` is its cost, where it has one.
    """

    rows: NDArray[np.intp]
    solution: Solution
    limits: Array | float = math.inf
    C: float | None = None


class Machines:
    """The machines that options ask for, on the matrix of some rows: fitted at one cost after another."""

    def __init__(self, rows: TrainingRows, options: SvmOptions, engine: Engine, method: Method | None = None) -> None:
        self.rows, self.options, self.engine = rows, options, engine
        self.method = method or options.method
        self.names = () if rows.classes is None else rows.classes.names
        self.features: FeatureMap | None = None
        # G with K = G G', where there is one.
        self.factor: Array | None = None
        self.points, kernel = rows.points, rows.kernel
        if not isinstance(self.points, Points) or kernel is None:
            self.matrix: Matrix = GivenMatrix(np.asarray(self.points))
            self.definite = _is_definite(np.asarray(self.points))
        else:
            self.definite = kernel.positive_definite or options.features is not None
            if options.features is not None:
                self.features = make_features(options.features, kernel, self.points, options.seed)
                self.factor, kernel = self.features(self.points, engine), Linear()
                self.points = Points.of(self.factor)
            elif isinstance(kernel, Linear) and self.points.numeric.shape[1] * 4 < len(self.points):
                self.factor = self.points.numeric
            self.matrix = matrix_of(kernel, self.points)
        if float(np.abs(self.matrix.diagonal).max(initial=0.0)) > LARGEST_VALUE:
            raise UndecidedError(
                f"the kernel{'' if rows.kernel is None else f' {str(rows.kernel)!r}'} is beyond the range of numbers on "
                "these data",
                hint="scale the columns, or choose a smaller gain, degree or exponent",
                code="undecided.overflow",
            )

    def fit(self, C: float, start: Sequence[Solution] | None = None, progress: Progress | None = None) -> SvmFit:
        """Return the machines of a cost, from solutions at a similar one; progress is that of the pairs of classes."""
        rows, options, pairs = self.rows, self.options, list(combinations(range(len(self.names)), 2))
        if options.task != "classify":
            found = [self._regression(C) if options.task == "regress" else self._one_class()]
        elif self.method == "mean":
            found, pairs = [self._mean(place) for place in range(len(self.names))], []
        elif self.method == "perceptron":
            found = [self._perceptron(*pair) for pair in pairs]
        else:
            check_nu(rows, options.nu)
            factors = options.class_factors(self.names, rows.codes)

            def work(place: int) -> Machine:
                return self._pair(*pairs[place], C, factors, None if start is None else start[place])

            # All pairs share one matrix, which may be there whole.
            found = list(self.engine.here.map(work, range(len(pairs)), progress))
        coefficients, bounded = np.zeros((len(rows), len(found))), np.zeros(len(rows), dtype=bool)
        for place, machine in enumerate(found):
            coefficients[machine.rows, place] = machine.solution.coefficients
            bounded[machine.rows] |= np.abs(machine.solution.coefficients) >= machine.limits * (1.0 - 1e-9)
        support = np.flatnonzero((coefficients != 0).any(axis=1))
        solutions = tuple(machine.solution for machine in found)
        intercepts = np.array([one.intercept for one in solutions])
        model = SvmModel(
            options.task,
            self.method,
            rows.encoder,
            self._expansion(coefficients[support], intercepts, support),
            tuple(pairs),
            rows.names[0] if rows.names else None,
            rows.classes,
            features=self.features,
            n_train=len(rows),
        )
        minimised = [one for one in solutions if one.method not in {"mean", "perceptron"}]
        return SvmFit(
            model,
            rows.kernel,
            solutions,
            support,
            int(bounded.sum()),
            # Pairs of classes with one nu have a cost each.
            found[0].C if options.nu is None or len(found) == 1 else None,
            sum(one.objective for one in minimised) if minimised else None,
            sum(one.dual_objective for one in minimised) if minimised else None,
            max((one.gap for one in solutions if one.gap is not None), default=None),
            sum(one.iterations for one in solutions),
            all(one.converged for one in solutions),
        )

    def _expansion(
        self, coefficients: Array, intercepts: Array, support: NDArray[np.intp]
    ) -> Expansion | GivenExpansion:
        """Return the scores as an expansion over the rows that support them, or over features."""
        if not isinstance(self.points, Points) or self.rows.kernel is None:
            return GivenExpansion(support, coefficients, intercepts)
        if self.features is not None:
            # Linear in the features: the coefficients of the rows sum up to one weight for each feature.
            weights = self.points.numeric[support].T @ coefficients
            return GivenExpansion(np.arange(len(weights)), weights, intercepts)
        return Expansion(self.rows.kernel, self.points.take(support), coefficients, intercepts)

    def _members(self, i: int, j: int) -> tuple[NDArray[np.intp], Array]:
        """Return the rows of two classes, and -1 or 1 for each."""
        codes = self.rows.codes
        rows = np.flatnonzero((codes == i) | (codes == j))
        return rows, np.where(codes[rows] == j, 1.0, -1.0)

    def _pair(self, i: int, j: int, C: float, factors: Array | None, start: Solution | None) -> Machine:
        """Return the machine that tells two classes apart."""
        rows, signs = self._members(i, j)
        part = self.matrix if len(rows) == self.matrix.n else Repeated(self.matrix, rows)
        costs = np.ones(len(rows)) if factors is None else factors[self.rows.codes[rows]]
        factor, names = None if self.factor is None else self.factor[rows], (self.names[i], self.names[j])

        def at(cost: float) -> Solution:
            return self._solved(part, Problem(signs, cost * costs, np.ones(len(rows))), start=start, factor=factor)

        if self.options.hard_margin:
            return Machine(rows, _hard(at, signs, names))
        if self.options.nu is None:
            return Machine(rows, at(C), C * costs, C)
        solution, C = self._by_nu(part, signs, self.options.nu, names)
        return Machine(rows, solution, C * costs, C)

    def _solved(
        self,
        matrix: Matrix,
        problem: Problem,
        *,
        tolerance: float | None = None,
        start: Solution | None = None,
        factor: Array | None = None,
    ) -> Solution:
        """Return the solution; of a matrix that is not positive semi-definite, a stationary point by SMO."""
        # A nu asks for a certificate: with its tolerance it is never left to SMO.
        if not self.definite and tolerance is None:
            return solve_indefinite(matrix, problem)
        try:
            return solve_hinge(
                matrix,
                problem,
                tolerance=tolerance or self.options.tolerance,
                seed=self.options.seed,
                start=start,
                factor=factor,
                kept_bytes=min(KEPT_BYTES, allowed_bytes(KEPT_BYTES)),
            )
        except LinAlgError as error:
            raise UndecidedError(
                "the kernel is not positive definite on these rows: the problem has no single solution",
                hint="use a positive definite kernel, such as gaussian or laplacian",
                code="undecided.not_positive_definite",
            ) from error

    def _by_nu(self, matrix: Matrix, signs: Array, nu: float, names: tuple[str, str]) -> tuple[Solution, float]:
        """Return the nu-machine: the C-machine whose coefficients are the share nu of their bounds (Chang and Lin 2001).

        sum a(C) / (C n) falls with C: its root is found by regula falsi (Illinois) on log C.
        """
        n, tolerance = len(signs), self.options.tolerance
        solved: dict[float, Solution] = {}

        def share(log_c: float) -> float:
            return float(np.abs(solved[log_c].coefficients).sum()) / (math.exp(log_c) * n)

        def excess(log_c: float) -> float:
            problem = Problem(signs, np.full(n, math.exp(log_c)), np.ones(n))
            solved[log_c] = self._solved(matrix, problem, tolerance=0.1 * tolerance)
            return share(log_c) - nu

        best = _root(excess, math.log(1e-3), math.log(1e3), accuracy=1e-7 * nu)
        if best is None:
            dearest = max(solved)
            least = share(dearest)
            # The next larger number of two digits.
            unit = 10.0 ** (math.floor(math.log10(least)) - 1)
            raise UsageError(
                f"nu = {nu:g} is too small for {names[0]!r} and {names[1]!r}: even a cost of {math.exp(dearest):.1g} "
                f"leaves a share of {least:.3g}",
                hint=f"--nu {(math.floor(least / unit) + 1) * unit:g} or more, or --C with a cost",
                code="usage.nu",
            )
        found = solved[best]
        return replace(found, converged=found.gap is None or found.gap <= tolerance), math.exp(best)

    def _regression(self, C: float) -> Machine:
        """Return epsilon support vector regression (Drucker et al. 1997).

        Targets are brought to standard deviation 1 for the solver; C and epsilon are those of the target's own units.
        Every case has two rows: one for being too low, one for being too high.
        """
        target, n = self.rows.targets[:, 0], len(self.rows)
        centre, spread = float(target.mean()), float(target.std()) or 1.0
        z = (target - centre) / spread
        margins = np.concatenate([z, -z]) - self.options.epsilon / spread
        problem = Problem(np.repeat([1.0, -1.0], n), np.full(2 * n, C / spread), margins)
        solution = self._solved(Repeated(self.matrix, np.tile(np.arange(n), 2)), problem)
        solution = replace(
            solution,
            coefficients=spread * (solution.coefficients[:n] + solution.coefficients[n:]),
            intercept=spread * solution.intercept + centre,
            objective=spread**2 * solution.objective,
            dual_objective=spread**2 * solution.dual_objective,
        )
        return Machine(np.arange(n), solution, C, C)

    def _one_class(self) -> Machine:
        """Return the one-class machine (Schoelkopf et al. 2001): coefficients up to 1 with sum nu n, b = -rho."""
        n, nu = len(self.rows), ONE_CLASS_NU if self.options.nu is None else self.options.nu
        found = self._solved(self.matrix, Problem(np.ones(n), np.ones(n), np.zeros(n), total=nu * n))
        # Support vectors on the boundary are inliers, whatever rounding makes of their zero.
        intercept = found.intercept + EQUAL_SCORES * abs(found.intercept)
        return Machine(np.arange(n), replace(found, intercept=intercept), 1.0)

    def _mean(self, place: int) -> Machine:
        """Return <phi(x), mu_c> - |mu_c|^2 / 2, largest for the nearest mean. Cost: O(n_c^2) kernel values."""
        rows = np.flatnonzero(self.rows.codes == place)
        shares = np.full(len(rows), 1.0 / len(rows))
        outputs = self.matrix.products(rows, shares, rows)
        return Machine(rows, Solution(shares, -0.5 * float(outputs.mean()), outputs, method="mean"))

    def _perceptron(self, i: int, j: int) -> Machine:
        """Return a perceptron; rows are visited in a new random order in each round, from mistake to mistake.

        Cost: O(n) for each mistake, and n kernel values for each row that was ever mistaken.
        """
        rows, signs = self._members(i, j)
        part, n = Repeated(self.matrix, rows), len(rows)
        rng = np.random.default_rng((self.options.seed, 1))
        coefficients, outputs, intercept = np.zeros(n), np.zeros(n), 0.0
        kept: dict[int, Array] = {}
        mistakes = 0
        for _ in range(EPOCHS):
            before, order, at = mistakes, rng.permutation(n), 0
            while at < n:
                wrong = signs[order[at:]] * (outputs[order[at:]] + intercept) <= 0
                jump = int(np.argmax(wrong))
                if not wrong[jump]:
                    break
                row = int(order[at + jump])
                values = kept.get(row)
                if values is None:
                    values = np.asarray(part.block(np.array([row]), slice(None))[0], dtype=np.float64)
                    if (len(kept) + 1) * n <= KEPT_NUMBERS:
                        kept[row] = values
                outputs += signs[row] * values
                coefficients[row] += signs[row]
                intercept += float(signs[row])
                mistakes += 1
                at += jump + 1
            if mistakes == before:
                break
        settled = mistakes == before
        return Machine(
            rows,
            Solution(coefficients, intercept, outputs, iterations=mistakes, converged=settled, method="perceptron"),
        )


def largest_nu(rows: TrainingRows) -> tuple[float, int, int]:
    """Return the largest nu that every pair of classes allows, 2 min(n_i, n_j) / (n_i + n_j), and the pair (Chang and Lin 2001)."""
    counts = np.bincount(rows.codes)
    fewest, most = int(np.argmin(counts)), int(np.argmax(counts))
    return 2.0 * float(counts[fewest]) / float(counts[fewest] + counts[most]), fewest, most


def check_nu(rows: TrainingRows, nu: float | None) -> None:
    """Refuse a nu that the sizes of the classes do not allow."""
    if nu is None or rows.classes is None:
        return
    largest, *pair = largest_nu(rows)
    if nu > largest * (1.0 + 1e-12):
        one, other = (repr(rows.classes.names[place]) for place in sorted(pair))
        raise UsageError(
            f"nu = {nu:g} is infeasible: {one} and {other} allow at most {largest:.4g}",
            hint=f"--nu {math.floor(largest * 1000) / 1000:g}, or class weights with --C",
            code="usage.nu",
        )


def _is_definite(K: Array) -> bool:
    """Say whether a symmetric matrix is positive semi-definite to rounding. Cost: n^3 / 3."""
    shift = 1e-8 * max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(np.float64).tiny)
    try:
        np.linalg.cholesky(K + shift * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def _hard(at: Callable[[float], Solution], signs: Array, names: tuple[str, str]) -> Solution:
    """Return the machine without errors: that of any cost which no coefficient reaches, the least of some."""
    for cost in HARD_COSTS:
        solution = at(cost)
        slack = 1.0 - signs * (solution.outputs + solution.intercept)
        free = float(np.abs(solution.coefficients).max()) < REACHED * cost
        if free and solution.converged and float(slack.max()) <= HARD_SLACK:
            return solution
    raise UndecidedError(
        f"no hard margin was found between {names[0]!r} and {names[1]!r}: this kernel cannot separate them without errors",
        hint="a finite --C allows errors; a smaller --bandwidth separates more",
        code="undecided.not_separable",
    )


def _root(falling: Callable[[float], float], low: float, high: float, *, accuracy: float) -> float | None:
    """Return where a falling function is 0, to an accuracy of its value; None if it stays above."""
    at_low, at_high = falling(low), falling(high)
    for _ in range(WIDENINGS):
        if at_low < 0:
            low, high, at_high = low - 3.0, low, at_low
            at_low = falling(low)
        elif at_high > 0:
            low, high, at_low = high, high + 2.0, at_high
            at_high = falling(high)
    if at_high > 0:
        return None
    best = low if abs(at_low) < abs(at_high) else high
    if min(abs(at_low), abs(at_high)) < accuracy:
        return best
    for _ in range(NU_STEPS):
        if high - low < 1e-10:
            break
        middle = high - at_high * (high - low) / (at_high - at_low)
        # Not too near to an end, or the other end would never move.
        best = min(max(middle, low + 0.01 * (high - low)), high - 0.01 * (high - low))
        found = falling(best)
        if abs(found) < accuracy:
            break
        if found > 0:
            low, at_low, at_high = best, found, 0.5 * at_high
        else:
            high, at_high, at_low = best, found, 0.5 * at_low
    return best
