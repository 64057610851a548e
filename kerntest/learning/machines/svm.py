"""Support vector machines: `SVM`, to fit, predict, save and load, and `train_svm`, from a file to a judged, saved model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import UsageError, warn_of
from kerntest.learning.estimator import Estimator, as_rows
from kerntest.learning.learner import train as train_learner
from kerntest.learning.learner import trains
from kerntest.learning.machines.svm_learner import SvmLearner, fit_warnings
from kerntest.learning.machines.svm_machines import SvmOptions
from kerntest.learning.machines.svm_model import SvmFit, SvmModel
from kerntest.learning.rows.leakage import kept_together
from kerntest.learning.rows.targets import numbers_of, target_of
from kerntest.learning.scores import regression_metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.report.results.svm_record import SvmResult


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
        warnings: tuple[str, ...] = ()
        if self.precomputed:
            rows = learner.given(X, y)
        else:
            labelled = kept_together(learner.with_values(as_rows(X), y))
            rows, warnings = learner.rows(labelled), labelled.warnings
        self.fit_ = learner.fit(rows, self.engine)
        self._model = self.fit_.model
        warn_of([*warnings, *rows.warnings, *fit_warnings(rows, self.fit_)])
        return self

    @property
    def classes_(self) -> tuple[str, ...]:
        """The names of the classes, sorted."""
        return () if self.model.classes is None else self.model.classes.names

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a class, a number, or whether each row is like the training rows (one-class), shape (n,)."""
        return self.model.predicted(self._scores(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores: (n,) for two classes (above 0: the second), numbers and one class; else one for each pair."""
        return self.model.decision(self._scores(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class, shape (n, classes); the most probable one is what `predict` says."""
        return self.model.probabilities(self._scores(X))

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
        return {"task": model.task, "method": model.method}

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
