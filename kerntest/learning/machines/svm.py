"""Support vector machines: `SVM`, to fit, predict, save and load, and `train_svm`, from a file to a judged, saved model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from kerntest.data.column_types import number_text
from kerntest.errors import UsageError, one_of, positive, suggest, warn_of
from kerntest.learning.learner import Estimator, LearnerOptions, trains
from kerntest.learning.learner import train as train_learner
from kerntest.learning.machines.svm_fit import Method, SvmFit, SvmModel, Task
from kerntest.learning.machines.svm_training import SvmLearner, fit_warnings
from kerntest.learning.rows.targets import numbers_of, target_of
from kerntest.learning.scores import regression_metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Kernel
    from kerntest.report.results.learning_record import SvmResult

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
        _check_cost("C", self.C, "usage.C")
        positive("tolerance", self.tolerance)
        if not (isinstance(self.epsilon, (int, float, np.number)) and 0 <= self.epsilon < math.inf):
            raise UsageError(
                f"epsilon must be 0 or more and finite, not {self.epsilon!r}", hint="0.1 is usual", code="usage.epsilon"
            )
        if self.nu is not None:
            positive("nu", self.nu)
            if self.nu > 1:
                raise UsageError(
                    f"nu must be above 0 and at most 1, not {self.nu:g}", hint="0.1 is usual", code="usage.nu"
                )
        if self.class_weight is not None and not _is_balanced(self.class_weight):
            _named_weights(self.class_weight)
        nu, hard, weighted = self.nu is not None, self.hard_margin, self.class_weight is not None
        task, mean, method = f"--task {self.task}", self.method == "mean", f"--method {self.method}"
        other, classes = self.method != "svm", "it is for classes"
        what_is_for_classes = (
            (hard, "--hard-margin"),
            (weighted, "--class-weight"),
            (self.probability, "--probability"),
            (other, method),
        )
        self._refuse(
            (nu and hard, "--nu and --hard-margin", "give one of them"),
            (nu and weighted, "--nu and --class-weight", "use --C with weights"),
            (nu and self.task == "regress", "--nu and --task regress", "use --C and --epsilon"),
            *(
                (self.task != "classify" and given, f"{name} and {task}", classes)
                for given, name in what_is_for_classes
            ),
            (
                other and (nu or hard or weighted),
                f"{method} and --nu, --hard-margin or --class-weight",
                "they belong to --method svm",
            ),
            (mean and self.features is not None, "--method mean and --features", "give one of them"),
            (mean and self.probability, "--method mean and --probability", "give one of them"),
        )

    def stored(self) -> dict[str, Any]:
        """Return the options as a model file keeps them, weights by the names of their classes."""
        weights = self.class_weight
        return super().stored() | {"class_weight": _named_weights(weights) if isinstance(weights, Mapping) else weights}

    def class_factors(self, classes: tuple[str, ...], codes: NDArray[Any]) -> Array | None:
        """Return the factor of C for each class; refuse weights of classes that are not there."""
        if self.class_weight is None:
            return None
        if _is_balanced(self.class_weight):
            counts = np.bincount(codes, minlength=len(classes))
            return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)), dtype=np.float64)
        weights = _named_weights(self.class_weight)
        unknown = next((name for name in weights if name not in classes), None)
        if unknown is not None:
            meant = suggest(unknown, classes)
            raise UsageError(
                f"no row has the class {unknown!r} of --class-weight",
                hint=f"did you mean {meant!r}?" if meant else f"the classes are {', '.join(classes[:10])}",
                code="usage.class_weight",
            )
        return np.array([weights.get(name, 1.0) for name in classes])


class SVM(SvmOptions, Estimator[SvmModel, SvmFit]):
    """Kernel support vector machine for two classes, several classes (one against one), numbers, or one class.

    Parameters
    ----------
    C : float
        Cost of a violation of the margin: 1/2 |w|^2 + C sum(slack).
    kernel : Kernel or str
        A kernel or its text; "precomputed" for rows of a matrix of kernel values.
    bandwidth : "median" or float
        For bandwidths that the kernel leaves open.
    task : "classify", "regress" or "one-class"
    nu : float, optional
        Instead of C: an upper bound for the share of margin errors and a lower one for that of support vectors. For
        "one-class" the share of training rows to call outliers, 0.1 by default.
    hard_margin : bool
        No errors at all; refused where the classes cannot be separated.
    epsilon : float
        Errors of a regression up to this, in units of the target, cost nothing.
    class_weight : "balanced", mapping or str, optional
        Factors of C for each class.
    method : "svm", "mean" or "perceptron"
        The machine, or the nearest mean embedding or the kernel perceptron with the same kernel.
    probability : bool
        Also fit probabilities, to scores of rows held out in five folds, copies of a row in one.
    features : str, optional
        "nystroem:M" or "fourier:M": explicit features for very many rows.
    scale : "standardize" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1 of the training rows.
    tolerance : float
        Relative duality gap.
    seed : int
    threads : int, optional

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.where((X**2).sum(axis=1) > 1.4, "outside", "inside")
    >>> machine = SVM(C=10).fit(X, y)
    >>> machine.predict(np.array([[0.0, 0.0], [2.0, 2.0]])).tolist()
    ['inside', 'outside']
    """

    MODEL, CALLED = SvmModel, "this machine is"

    def fit(self, X: Any, y: Any = None) -> SVM:
        """Fit to n rows.

        Parameters
        ----------
        X : path, ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            The columns; with kernel="precomputed" the matrix of kernel values, shape (n, n).
        y : str, or sequence of n labels or numbers
            The target: a column of X, or values. Not needed for "one-class".

        Warns
        -----
        DataWarning
            Of what is to be known before the model is used.

        Raises
        ------
        UsageError, DataError, UndecidedError
            If the options, the rows or the kernel do not allow it.
        """
        learner = SvmLearner(self)
        rows = learner.handed_over(X, y)
        self.fit_ = learner.fit(rows, self.engine)
        self._model = self.fit_.model
        warn_of([*rows.warnings, *fit_warnings(rows, self.fit_)])
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the classes, sorted; only classifiers have them."""
        if self.model.classes is None:
            raise AttributeError("only a classifier has classes_")
        return self.model.classes.values(np.arange(len(self.model.classes.names)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a class, a number, or whether each row is like the training rows (one-class), shape (n,)."""
        return self.model.predicted(self._scores(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores: (n,) for two classes (above 0: the second), numbers and one class; else one for each pair."""
        return self.model.decision(self._scores(X))

    @property
    def predict_proba(self) -> Callable[[Any], NDArray[np.float64]]:
        """Return the probability of every class, shape (n, classes); the most probable one is what `predict` says.

        Only there with `probability`, as other libraries expect.
        """
        if not self.probability:
            raise AttributeError("this machine has no probabilities: fit it with probability=True")
        return lambda X: self.model.probabilities(self._scores(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy; of a regression r2."""
        model, scores = self.model, self._scores(X)
        truth = target_of(y, len(scores))
        if model.classes is None:
            return regression_metrics(numbers_of(truth, "y"), scores[:, 0]).r2 or 0.0
        return float(np.mean(model.codes(scores) == model.classes.codes(truth, "y")))

    @property
    def _estimator_type(self) -> str:
        return {"classify": "classifier", "regress": "regressor", "one-class": "outlier_detector"}[self.task]

    @classmethod
    def _loaded(cls, model: SvmModel) -> dict[str, Any]:
        return {"task": model.task, "method": model.method, "probability": bool(model.sigmoids)}

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return self.model.scores(self._points(X), self.engine)


@trains(SvmOptions)
def train_svm(
    train: Any,
    target: str | None = None,
    *,
    grid: bool = False,
    cv: int | None = None,
    **options: Any,
) -> SvmResult:
    """Fit a support vector machine to a table, judge it, and save it.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
        The rows to learn from.
    target : str, optional
        The column to predict; none for task="one-class".
    test : as train, optional
        Rows to judge by. Columns are found by name.
    test_fraction : float, optional
        Instead of `test`: the share of the rows of `train` that is held out, drawn by class.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    grid : bool
        Choose C and the bandwidth by cross-validation inside the training part (the test part is not touched).
    cv : int, optional
        Folds; 5 by default with `grid`. Without `grid`: the cross-validated score of the options as they are.
    plot : path, optional
        PNG, SVG or PDF file: decision regions for two columns, else the ROC curve and the confusion matrix.
    C, kernel, bandwidth, task, nu, hard_margin, epsilon, class_weight, method, probability, features, scale, tolerance, seed
        As in `SVM`.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    cluster : str, optional
        A column, such as a patient or a shop, whose rows of one value stay together in test parts and folds. It is not
        learned from. Copies of a row stay together without it.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    SvmResult

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError, DataError, UndecidedError
        If the options, the rows or the kernel do not allow it.
    """
    machine = SvmOptions.taken_from(options)
    if (target is None) != (machine.task == "one-class"):
        raise UsageError(
            f"--task {machine.task} {'needs' if target is None else 'has no'} --target",
            hint="--target names the column to predict" if target is None else "leave one of them out",
            code="usage.target",
        )
    if cv is not None and (isinstance(cv, bool) or not isinstance(cv, int) or cv < 2):
        raise UsageError(f"cv must be a whole number of at least 2, not {cv!r}", hint="5 is usual", code="usage.cv")
    return train_learner(SvmLearner(machine, target, grid=grid, cv=cv), train, **options)


def _check_cost(name: str, value: float, code: str) -> None:
    """Refuse costs that are not positive, or of which the solver could not square the products."""
    positive(name, value, code=code)
    if not SMALLEST_COST <= value <= LARGEST_COST:
        raise UsageError(
            f"{name} must be between {SMALLEST_COST:g} and {LARGEST_COST:g} in size, not {value:g}",
            hint="--hard-margin allows no errors at all" if value > 1 else None,
            code=code,
        )


def _is_balanced(given: ClassWeights) -> bool:
    return isinstance(given, str) and given == BALANCED


def _named_weights(given: str | Mapping[Any, float]) -> dict[str, float]:
    """Return weights by the name of their class, from a mapping or from a text like 'good:1,bad:5'."""
    code, weights = "usage.class_weight", dict[str, float]()
    if isinstance(given, Mapping):
        weights = {_class_name(label): weight for label, weight in given.items()}
    elif not isinstance(given, str):
        raise UsageError(
            f"class_weight is 'balanced' or a mapping of classes to weights, not a {type(given).__name__}",
            hint="such as {'good': 1, 'bad': 5}",
            code=code,
        )
    for part in given.split(",") if isinstance(given, str) else ():
        name, _, number = part.rpartition(":")
        try:
            weight = float(number)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(
                f"{part.strip()!r} is no class with a weight",
                hint="write --class-weight balanced, or --class-weight 'good:1,bad:5'",
                code=code,
            )
        if name.strip() in weights:
            raise UsageError(f"--class-weight has {name.strip()!r} twice", hint="give each class one weight", code=code)
        weights[name.strip()] = weight
    for name, weight in weights.items():
        _check_cost(f"the weight of {name!r}", weight, code)
    return {name: float(weight) for name, weight in weights.items()}


def _class_name(label: object) -> str:
    """Return what a class is called that holds a label: true, 1 and 1.0 as 1, 0.5, or a text or date as it is."""
    if isinstance(label, (bool, np.bool_)):
        return str(bool(label)).lower()
    return number_text(float(label)) if isinstance(label, (int, float, np.number)) else str(label)
