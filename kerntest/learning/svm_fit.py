"""Fitting a support vector machine to rows whose kernel is chosen: machines to one model, with what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.kernels.base import Points
from kerntest.kernels.dot import Linear
from kerntest.learning.baselines import nearest_mean, perceptron
from kerntest.learning.expansion import Expansion, GivenExpansion
from kerntest.learning.machines import Costs, Machine, fit_numbers, fit_one_class, fit_pairs
from kerntest.learning.svm_model import SvmModel
from kerntest.learning.ties import EQUAL_SCORES
from kerntest.matrices.factor import feature_error, make_features
from kerntest.matrices.matrix import GivenMatrix, Repeated, matrix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.solvers.problem import Solution
    from kerntest.learning.svm_options import SvmOptions
    from kerntest.learning.training_rows import TrainingRows
    from kerntest.matrices.factor import FeatureMap
    from kerntest.matrices.matrix import Matrix
    from kerntest.report.svm_record import GridSearch

# Kernel values up to this can be squared.
LARGEST_VALUE = 1e150


@dataclass(frozen=True, slots=True, eq=False)
class SvmFit:
    """A model, and what it took.

    Parameters
    ----------
    model : SvmModel
    machines : tuple of Machine
        For pairs of classes; empty otherwise.
    support : ndarray of int
        Training rows with a coefficient that is not zero in any machine.
    n_bounded : int
        How many of them are at their upper bound in any machine.
    objective, dual_objective, gap : float or None
        Sums over the machines, and the largest relative gap. None where nothing is minimised.
    iterations : int
    converged : bool
    C : float or None
    feature_error : float or None
    kernel : Kernel or None
    search : GridSearch or None
        What chose the cost and the kernel.
    warnings : tuple of str
    """

    model: SvmModel
    machines: tuple[Machine, ...]
    support: NDArray[np.intp]
    n_bounded: int
    objective: float | None
    dual_objective: float | None
    gap: float | None
    iterations: int
    converged: bool
    C: float | None
    feature_error: float | None
    kernel: Kernel | None
    search: GridSearch | None = None
    warnings: tuple[str, ...] = ()


def fit_rows(
    rows: TrainingRows,
    options: SvmOptions,
    engine: Engine,
    *,
    C: float | None = None,
    start: Sequence[Machine] | None = None,
    matrix: Matrix | None = None,
    progress: Progress | None = None,
) -> SvmFit:
    """Return a machine fitted to rows.

    Parameters
    ----------
    rows : TrainingRows
    options : SvmOptions
    engine : Engine
    C : float, optional
        Instead of that of the options.
    start : sequence of Machine, optional
        Machines of similar costs.
    matrix : Matrix, optional
        That of the rows, where it is known.
    progress : callable, optional
        Of the pairs of classes.

    Raises
    ------
    UndecidedError
        If the kernel is not positive definite, or a hard margin does not exist.
    UsageError
        If nu is infeasible.
    """
    features, factor, points, kernel = None, None, rows.points, rows.kernel
    if isinstance(points, Points) and options.features is not None and kernel is not None:
        features = make_features(options.features, kernel, points, options.seed)
        factor = features(points, engine)
        points = Points.of(factor)
        matrix = matrix_of(Linear(), points)
    elif isinstance(points, Points) and isinstance(kernel, Linear) and points.numeric.shape[1] * 4 < len(points):
        factor = points.numeric
    if matrix is None:
        matrix = (
            matrix_of(kernel, points)
            if isinstance(points, Points) and kernel is not None
            else GivenMatrix(np.asarray(points))
        )
    _check_range(matrix, kernel)
    cost = options.C if C is None else C
    definite = _is_definite(np.asarray(points)) if kernel is None else kernel.positive_definite or features is not None
    fitted = _Fitter(rows, options, engine, matrix, factor, cost, start, definite, progress)
    solved = fitted.solve()
    expansion, chosen = _expansion(solved, kernel, points, features)
    error = None
    if features is not None and isinstance(rows.points, Points):
        error = feature_error(features, rows.points, engine, options.seed)
    model = SvmModel(
        options.task,
        options.method,
        rows.encoder,
        expansion,
        solved.pairs,
        rows.names[0] if rows.names else None,
        rows.classes,
        features=features,
        n_train=len(rows),
    )
    solutions = solved.solutions
    return SvmFit(
        model=model,
        machines=solved.machines,
        support=chosen,
        n_bounded=solved.n_bounded,
        objective=sum(s.objective for s in solutions) if solutions else None,
        dual_objective=sum(s.dual_objective for s in solutions) if solutions else None,
        gap=max((s.gap for s in solutions if s.gap is not None), default=None),
        iterations=sum(s.iterations for s in solutions) if solutions else solved.mistakes,
        converged=all(s.converged for s in solutions) and solved.settled,
        C=solved.C,
        feature_error=error,
        kernel=kernel,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """Coefficients over all training rows, shape (n, J), with what they came from."""

    coefficients: Array
    intercepts: Array
    pairs: tuple[tuple[int, int], ...]
    machines: tuple[Machine, ...] = ()
    solutions: tuple[Solution, ...] = ()
    n_bounded: int = 0
    C: float | None = None
    mistakes: int = 0
    settled: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class _Fitter:
    """Solves what the options ask for."""

    rows: TrainingRows
    options: SvmOptions
    engine: Engine
    matrix: Matrix
    factor: Array | None
    C: float
    start: Sequence[Machine] | None
    definite: bool
    progress: Progress | None

    def solve(self) -> _Solved:
        """Return the coefficients."""
        if self.options.task == "regress":
            return self._numbers()
        if self.options.task == "one-class":
            return self._one_class()
        if self.options.method == "mean":
            return self._means()
        if self.options.method == "perceptron":
            return self._perceptrons()
        return self._machines()

    @property
    def _codes(self) -> NDArray[np.intp]:
        return self.rows.codes

    @property
    def _names(self) -> tuple[str, ...]:
        return () if self.rows.classes is None else self.rows.classes.names

    def _machines(self) -> _Solved:
        options, classes = self.options, self.rows.classes
        weights = None if classes is None else options.weights(classes, self._codes)
        costs = Costs(math.inf if options.hard_margin else self.C, options.nu, weights)
        machines = fit_pairs(
            self.matrix,
            self._codes,
            len(self._names),
            costs,
            self.engine,
            tolerance=options.tolerance,
            seed=options.seed,
            names=self._names,
            start=self.start,
            factor=self.factor,
            definite=self.definite,
            progress=self.progress,
        )
        n = len(self.rows)
        coefficients, intercepts = np.zeros((n, len(machines))), np.empty(len(machines))
        bounded = np.zeros(n, dtype=bool)
        for place, machine in enumerate(machines):
            found = machine.solution
            coefficients[machine.rows, place] = found.coefficients
            intercepts[place] = found.intercept
            limit = machine.C if weights is None else machine.C * weights[self._codes[machine.rows]]
            bounded[machine.rows] |= np.abs(found.coefficients) >= limit * (1.0 - 1e-9)
        return _Solved(
            coefficients,
            intercepts,
            tuple(machine.pair for machine in machines),
            tuple(machines),
            tuple(machine.solution for machine in machines),
            int(bounded.sum()),
            None if options.hard_margin else machines[0].C if len(machines) == 1 or options.nu is None else None,
        )

    def _numbers(self) -> _Solved:
        target = self.rows.targets[:, 0]
        options = self.options
        solution, coefficients = fit_numbers(
            self.matrix,
            target,
            self.C,
            options.epsilon,
            tolerance=options.tolerance,
            seed=options.seed,
            definite=self.definite,
        )
        bounded = int((np.abs(coefficients) >= self.C * (1.0 - 1e-9)).sum())
        return _Solved(coefficients[:, None], np.array([solution.intercept]), (), (), (solution,), bounded, self.C)

    def _one_class(self) -> _Solved:
        nu = 0.1 if self.options.nu is None else self.options.nu
        solution = fit_one_class(
            self.matrix, nu, tolerance=self.options.tolerance, seed=self.options.seed, definite=self.definite
        )
        bounded = int((solution.coefficients >= 1.0 - 1e-9).sum())
        # Support vectors on the boundary are inliers, whatever rounding makes of their zero.
        intercept = solution.intercept + EQUAL_SCORES * abs(solution.intercept)
        return _Solved(solution.coefficients[:, None], np.array([intercept]), (), (), (solution,), bounded)

    def _means(self) -> _Solved:
        coefficients, intercepts = nearest_mean(self.matrix, self._codes, len(self._names))
        return _Solved(coefficients, intercepts, ())

    def _perceptrons(self) -> _Solved:
        pairs = tuple(combinations(range(len(self._names)), 2))
        coefficients, intercepts = np.zeros((len(self.rows), len(pairs))), np.empty(len(pairs))
        mistakes, settled = 0, True
        for place, (i, j) in enumerate(pairs):
            members = np.flatnonzero((self._codes == i) | (self._codes == j))
            signs = np.where(self._codes[members] == j, 1.0, -1.0)
            found, intercepts[place], made, done = perceptron(Repeated(self.matrix, members), signs, self.options.seed)
            coefficients[members, place] = found
            mistakes, settled = mistakes + made, settled and done
        return _Solved(coefficients, intercepts, pairs, mistakes=mistakes, settled=settled)


def _check_range(matrix: Matrix, kernel: Kernel | None) -> None:
    """Refuse kernel values that the solver could not square.

    Raises
    ------
    UndecidedError
        As above.
    """
    if float(np.abs(matrix.diagonal).max(initial=0.0)) > LARGEST_VALUE:
        raise UndecidedError(
            f"the kernel{'' if kernel is None else f' {str(kernel)!r}'} is beyond the range of numbers on these data",
            hint="scale the columns, or choose a smaller gain, degree or exponent",
            code="undecided.overflow",
        )


def _is_definite(K: Array) -> bool:
    """Say whether a symmetric matrix is positive semi-definite to rounding. Cost: n^3 / 3."""
    shift = 1e-8 * max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(np.float64).tiny)
    try:
        np.linalg.cholesky(K + shift * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def _expansion(
    solved: _Solved, kernel: Kernel | None, points: Points | Array, features: FeatureMap | None
) -> tuple[Expansion | GivenExpansion, NDArray[np.intp]]:
    """Return the scores as an expansion over the rows that have coefficients, and which rows these are."""
    chosen = np.flatnonzero((solved.coefficients != 0).any(axis=1))
    coefficients = solved.coefficients[chosen]
    if not isinstance(points, Points):
        return GivenExpansion(chosen, coefficients, solved.intercepts), chosen
    if features is not None or kernel is None:
        # Linear in the features: the coefficients of the rows sum up to one weight for each feature.
        weights = points.numeric[chosen].T @ coefficients
        return GivenExpansion(np.arange(len(weights)), weights, solved.intercepts), chosen
    centres = Points(points.numeric[chosen], points.codes[chosen])
    return Expansion(kernel, centres, coefficients, solved.intercepts), chosen
