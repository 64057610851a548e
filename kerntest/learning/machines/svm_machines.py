"""Options of support vector machines, and the machines that they ask for, on a matrix of kernel values.

The nearest mean compares |phi(x) - mu_c|^2, mu_c the mean of the rows of class c: with a kernel that is a density it
is the kernel density classifier. The perceptron (Rosenblatt 1958; Freund and Schapire 1999) adds y_i k(x_i, .) for
every row that it gets wrong, until there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.linalg import LinAlgError

from kerntest.data.kinds import number_text
from kerntest.data.messages import one_of, positive
from kerntest.engines.setting import allowed_bytes
from kerntest.errors import UndecidedError, UsageError, suggest
from kerntest.learning.cross_validation import EQUAL_SCORES
from kerntest.learning.estimator import LearnerOptions
from kerntest.learning.solvers.hinge import KEPT_BYTES, solve_hinge
from kerntest.learning.solvers.problem import Problem, Solution
from kerntest.learning.solvers.smo import solve_indefinite
from kerntest.matrices.matrix import Repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.matrices.matrix import Matrix

# The costs at which a machine without errors is looked for, and the share of the cost that a coefficient may have.
HARD_COSTS, REACHED = (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6, 1e8), 0.99
# Slack of a hard margin that is rounding.
HARD_SLACK = 1e-4
# Halvings of the search for the cost of a nu, and widenings of where it is looked for: costs from 1e-12 to 1e9.
NU_STEPS, WIDENINGS = 60, 7
# Rounds of the perceptron, and numbers of the matrix that it keeps: 400 MB of them.
EPOCHS, KEPT_NUMBERS = 100, 5 * 10**7
Task: TypeAlias = Literal["classify", "regress", "one-class"]
Method: TypeAlias = Literal["svm", "mean", "perceptron"]
ClassWeights: TypeAlias = str | Mapping[Any, float] | None
BALANCED = "balanced"
# Costs and their factors: the objective squares their products.
SMALLEST_COST, LARGEST_COST = 1e-75, 1e75


@dataclass(eq=False, repr=False)
class SvmOptions(LearnerOptions):
    """What kind of machine; each as in `SVM`."""

    C: float = 1.0
    kernel: Kernel | str = "gaussian"
    _: KW_ONLY
    task: Task = "classify"
    nu: float | None = None
    hard_margin: bool = False
    epsilon: float = 0.1
    class_weight: ClassWeights = None
    method: Method = "svm"
    probability: bool = False
    tolerance: float = 1e-6
    ADVICE = "--grid tries several"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        one_of("task", self.task, get_args(Task))
        one_of("method", self.method, get_args(Method))
        super().__post_init__()
        positive("C", self.C)
        _check_size("C", self.C, "usage.C")
        positive("tolerance", self.tolerance)
        if not (isinstance(self.epsilon, (int, float, np.number)) and 0 <= self.epsilon < math.inf):
            raise UsageError(
                f"epsilon must be 0 or more and finite, not {self.epsilon!r}", hint="0.1 is usual", code="usage.epsilon"
            )
        if self.nu is not None:
            positive("nu", self.nu)
        if self.nu is not None and self.nu > 1:
            raise UsageError(f"nu must be above 0 and at most 1, not {self.nu:g}", hint="0.1 is usual", code="usage.nu")
        if self.class_weight is not None and not _is_balanced(self.class_weight):
            _named_weights(self.class_weight)
        nu, hard, weighted = self.nu is not None, self.hard_margin, self.class_weight is not None
        task, no_classes = f"--task {self.task}", self.task != "classify"
        mean, method = self.method == "mean", f"--method {self.method}"
        other = self.method != "svm"
        self._refuse(
            (nu and hard, "--nu and --hard-margin", "give one of them"),
            (nu and weighted, "--nu and --class-weight", "use --C with weights"),
            (nu and self.task == "regress", "--nu and --task regress", "use --C and --epsilon"),
            (no_classes and hard, f"--hard-margin and {task}", "it is for classes"),
            (no_classes and weighted, f"--class-weight and {task}", "it is for classes"),
            (no_classes and self.probability, f"--probability and {task}", "it is for classes"),
            (no_classes and other, f"{method} and {task}", "it is for classes"),
            (
                other and (nu or hard or weighted),
                f"{method} and --nu, --hard-margin or --class-weight",
                "they belong to --method svm",
            ),
            (mean and self.features is not None, "--method mean and --features", "give one of them"),
            (mean and self.probability, "--method mean and --probability", "give one of them"),
        )

    def weights(self, classes: tuple[str, ...], codes: NDArray[Any]) -> Array | None:
        """Return the factor of C for each class.

        Raises
        ------
        UsageError
            If a class is not there or a weight not positive.
        """
        given = self.class_weight
        if given is None:
            return None
        counts = np.bincount(codes, minlength=len(classes))
        if _is_balanced(given):
            return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)), dtype=np.float64)
        weights = np.ones(len(classes))
        for name, weight in _named_weights(given).items():
            if name not in classes:
                meant = suggest(name, classes)
                raise UsageError(
                    f"no row has the class {name!r} of --class-weight",
                    hint=f"did you mean {meant!r}?" if meant else f"the classes are {', '.join(classes[:10])}",
                    code="usage.class_weight",
                )
            weights[classes.index(name)] = weight
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """One function of a model, sum_i coefficients_i k(x_i, .) + intercept, over some of the training rows.

    Above 0 it is for the second class of its `pair`. Coefficients are at most `limits` in size. `C` is the cost that was
    found where nu was given. Of a perceptron, `mistakes` were made, and `settled` says whether none is left.
    """

    rows: NDArray[np.intp]
    coefficients: Array
    intercept: float
    pair: tuple[int, int] | None = None
    limits: Array | float = math.inf
    solution: Solution | None = None
    C: float | None = None
    mistakes: int = 0
    settled: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Machines:
    """What a model is made of: the machines that the options ask for, of rows with their matrix of kernel values.

    `factor` is a G with K = G G', where there is one; `definite` says whether K is positive semi-definite: if not, SMO
    finds a stationary point. `start` are machines of a similar cost.
    """

    rows: TrainingRows
    options: SvmOptions
    C: float
    matrix: Matrix
    definite: bool = True
    factor: Array | None = None
    start: Sequence[Machine] | None = None

    def fit(self, engine: Engine, progress: Progress | None = None) -> list[Machine]:
        """Return the machines; progress is that of the pairs of classes."""
        if self.options.task == "regress":
            return [self._regression()]
        if self.options.task == "one-class":
            return [self._one_class()]
        if self.options.method == "mean":
            return [self._mean(place) for place in range(len(self._names))]
        pairs = list(combinations(range(len(self._names)), 2))
        if self.options.method == "perceptron":
            return [self._perceptron(*pair) for pair in pairs]
        weights = self.options.weights(self._names, self.rows.codes)

        def work(place: int) -> Machine:
            start = None if self.start is None else self.start[place].solution
            return self._pair(*pairs[place], weights, start)

        # All pairs share one matrix, which may be there whole.
        return list(engine.here.map(work, range(len(pairs)), progress))

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.rows.classes is None else self.rows.classes.names

    def _members(self, i: int, j: int) -> tuple[NDArray[np.intp], Array]:
        """Return the rows of two classes, and -1 or 1 for each."""
        codes = self.rows.codes
        rows = np.flatnonzero((codes == i) | (codes == j))
        return rows, np.where(codes[rows] == j, 1.0, -1.0)

    def _part(self, rows: NDArray[np.intp]) -> Matrix:
        return self.matrix if len(rows) == self.matrix.n else Repeated(self.matrix, rows)

    def _pair(self, i: int, j: int, weights: Array | None, start: Solution | None) -> Machine:
        """Return the machine that tells two classes apart."""
        rows, signs = self._members(i, j)
        part = self._part(rows)
        factors = np.ones(len(rows)) if weights is None else weights[self.rows.codes[rows]]
        factor = None if self.factor is None else self.factor[rows]
        names = self._names[i], self._names[j]

        def at(cost: float) -> Solution:
            problem = Problem(signs, cost * factors, np.ones(len(rows)))
            return self._solved(part, problem, start=start, factor=factor)

        C: float | None = self.C
        if self.options.nu is not None:
            solution, C = self._by_nu(part, signs, self.options.nu, names)
        elif self.options.hard_margin:
            solution, C = _hard(at, signs, names), None
        else:
            solution = at(self.C)
        limits = math.inf if C is None else C * factors
        return Machine(rows, solution.coefficients, solution.intercept, (i, j), limits, solution, C)

    def _solved(
        self,
        matrix: Matrix,
        problem: Problem,
        *,
        tolerance: float | None = None,
        start: Solution | None = None,
        factor: Array | None = None,
        definite: bool | None = None,
    ) -> Solution:
        """Return the solution; of a matrix that is not positive semi-definite, a stationary point by SMO."""
        if not (self.definite if definite is None else definite):
            return solve_indefinite(matrix, problem)
        try:
            return solve_hinge(
                matrix,
                problem,
                tolerance=self.options.tolerance if tolerance is None else tolerance,
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
        largest = 2.0 * min((signs > 0).sum(), (signs < 0).sum()) / n
        if nu > largest * (1 + 1e-12):
            raise UsageError(
                f"nu = {nu:g} is infeasible: {names[0]!r} and {names[1]!r} allow at most {largest:.4g}",
                hint=f"--nu {math.floor(largest * 1000) / 1000:g}, or class weights with --C",
                code="usage.nu",
            )
        solved: dict[float, Solution] = {}

        def share(log_c: float) -> float:
            return float(np.abs(solved[log_c].coefficients).sum()) / (math.exp(log_c) * n)

        def excess(log_c: float) -> float:
            problem = Problem(signs, np.full(n, math.exp(log_c)), np.ones(n))
            solved[log_c] = self._solved(matrix, problem, tolerance=0.1 * tolerance, definite=True)
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

    def _regression(self) -> Machine:
        """Return epsilon support vector regression (Drucker et al. 1997).

        Targets are brought to standard deviation 1 for the solver; C and epsilon are those of the target's own units.
        Every case has two rows: one for being too low, one for being too high.
        """
        target, n = self.rows.targets[:, 0], len(self.rows)
        centre, spread = float(target.mean()), float(target.std()) or 1.0
        z = (target - centre) / spread
        margins = np.concatenate([z, -z]) - self.options.epsilon / spread
        problem = Problem(np.repeat([1.0, -1.0], n), np.full(2 * n, self.C / spread), margins)
        solution = self._solved(Repeated(self.matrix, np.tile(np.arange(n), 2)), problem)
        coefficients = spread * (solution.coefficients[:n] + solution.coefficients[n:])
        scaled = replace(
            solution,
            objective=spread**2 * solution.objective,
            dual_objective=spread**2 * solution.dual_objective,
        )
        intercept = spread * solution.intercept + centre
        return Machine(np.arange(n), coefficients, intercept, limits=self.C, solution=scaled, C=self.C)

    def _one_class(self) -> Machine:
        """Return the one-class machine (Schoelkopf et al. 2001): coefficients up to 1 with sum nu n, b = -rho."""
        n, nu = len(self.rows), 0.1 if self.options.nu is None else self.options.nu
        solution = self._solved(self.matrix, Problem(np.ones(n), np.ones(n), np.zeros(n), total=nu * n))
        # Support vectors on the boundary are inliers, whatever rounding makes of their zero.
        intercept = solution.intercept + EQUAL_SCORES * abs(solution.intercept)
        return Machine(np.arange(n), solution.coefficients, intercept, limits=1.0, solution=solution)

    def _mean(self, place: int) -> Machine:
        """Return <phi(x), mu_c> - |mu_c|^2 / 2, largest for the nearest mean. Cost: O(n_c^2) kernel values."""
        rows = np.flatnonzero(self.rows.codes == place)
        shares = np.full(len(rows), 1.0 / len(rows))
        return Machine(rows, shares, -0.5 * float(self.matrix.products(rows, shares, rows).mean()))

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
        return Machine(rows, coefficients, intercept, (i, j), mistakes=mistakes, settled=mistakes == before)


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


def _check_size(name: str, value: float, code: str) -> None:
    """Refuse costs of which the solver could not square the products."""
    if not SMALLEST_COST <= value <= LARGEST_COST:
        raise UsageError(
            f"{name} must be between {SMALLEST_COST:g} and {LARGEST_COST:g} in size, not {value:g}",
            hint="--hard-margin allows no errors at all" if value > 1 else None,
            code=code,
        )


def _is_balanced(given: ClassWeights) -> bool:
    return isinstance(given, str) and given == BALANCED


def _named_weights(given: str | Mapping[Any, float]) -> dict[str, float]:
    """Return weights by the name of their class, from a mapping or from a text like 'good:1,bad:5'.

    Raises
    ------
    UsageError
        If it is neither, or a weight is not positive.
    """
    if isinstance(given, str):
        weights = _written_weights(given)
    elif isinstance(given, Mapping):
        weights = {_class_name(label): weight for label, weight in given.items()}
    else:
        raise UsageError(
            f"class_weight is 'balanced' or a mapping of classes to weights, not a {type(given).__name__}",
            hint="such as {'good': 1, 'bad': 5}",
            code="usage.class_weight",
        )
    for name, weight in weights.items():
        positive(f"the weight of {name!r}", weight, code="usage.class_weight")
        _check_size(f"the weight of {name!r}", weight, "usage.class_weight")
    return {name: float(weight) for name, weight in weights.items()}


def _written_weights(text: str) -> dict[str, float]:
    """Return weights by the name of their class, from a text like 'good:1,bad:5'."""
    weights: dict[str, float] = {}
    for name, weight in map(_written_weight, text.split(",")):
        if name in weights:
            raise UsageError(
                f"--class-weight has {name!r} twice", hint="give each class one weight", code="usage.class_weight"
            )
        weights[name] = weight
    return weights


def _written_weight(part: str) -> tuple[str, float]:
    """Return a class and its weight, from a text like 'bad:5'."""
    name, _, number = part.rpartition(":")
    try:
        weight = float(number)
    except ValueError:
        name = ""
    if not name:
        raise UsageError(
            f"{part.strip()!r} is no class with a weight",
            hint="write --class-weight balanced, or --class-weight 'good:1,bad:5'",
            code="usage.class_weight",
        )
    return name.strip(), weight


def _class_name(label: object) -> str:
    """Return what a class is called that holds a label: true, 1 and 1.0 as 1, 0.5, or a text or date as it is."""
    if isinstance(label, (bool, np.bool_)):
        return str(bool(label)).lower()
    return number_text(float(label)) if isinstance(label, (int, float, np.number)) else str(label)
