"""Support vector machines for Python: `SVM`, to fit, predict, save and load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.setting import engine_of
from kerntest.errors import UsageError, warn_of
from kerntest.learning.given_matrix import as_rows, rows_against
from kerntest.learning.given_values import target_of
from kerntest.learning.leakage import kept_together
from kerntest.learning.metrics import regression_metrics
from kerntest.learning.saved_models import load_model, save_model
from kerntest.learning.svm_data import chosen_kernel, fit_machine, given_rows, rows_of, with_target
from kerntest.learning.svm_judge import fit_warnings
from kerntest.learning.svm_model import SvmModel
from kerntest.learning.svm_options import ClassWeights, SvmOptions
from kerntest.learning.training import TrainingOptions, numbers_of, read_labelled

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.kernels.base import Kernel
    from kerntest.learning.encoding import Scale
    from kerntest.learning.kernel_choice import Bandwidth
    from kerntest.learning.svm_fit import SvmFit
    from kerntest.learning.svm_model import Method, Task


class SVM:
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

    def __init__(
        self,
        C: float = 1.0,
        kernel: Kernel | str = "gaussian",
        *,
        bandwidth: Bandwidth = "median",
        task: Task = "classify",
        nu: float | None = None,
        hard_margin: bool = False,
        epsilon: float = 0.1,
        class_weight: ClassWeights = None,
        method: Method = "svm",
        probability: bool = False,
        features: str | None = None,
        scale: Scale = "standardize",
        tolerance: float = 1e-6,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.options = SvmOptions(
            C,
            kernel,
            bandwidth,
            task,
            nu,
            hard_margin,
            epsilon,
            class_weight,
            method,
            probability,
            features,
            scale,
            tolerance,
            seed,
        )
        self._engine = engine_of(threads)
        self._model: SvmModel | None = None
        self.fit_: SvmFit | None = None

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
        options = self.options
        warnings: list[str] = []
        if options.precomputed:
            rows = given_rows(X, y, options)
            chosen = None
        else:
            labelled = kept_together(with_target(as_rows(X), y, options))
            rows, left_out, found = rows_of(labelled, options)
            warnings += [*labelled.warnings, *found]
            chosen = chosen_kernel(rows, options, left_out)
        self.fit_ = fit_machine(rows, chosen, options, self._engine)
        self._model = self.fit_.model
        warn_of([*warnings, *fit_warnings(rows, self.fit_)])
        return self

    @property
    def model(self) -> SvmModel:
        """What was fitted.

        Raises
        ------
        UsageError
            If nothing was.
        """
        if self._model is None:
            raise UsageError("this machine is not fitted", hint="call fit first", code="usage.not_fitted")
        return self._model

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

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file that `kerntest predict` and `SVM.load` read."""
        save_model(path, self.model, force=force)

    @classmethod
    def load(cls, path: str | PathLike[str], *, threads: int | None = None) -> SVM:
        """Return a machine that predicts with the model of a file."""
        model = load_model(path, SvmModel)
        machine = cls(task=model.task, method=model.method, threads=threads)
        machine._model = model
        return machine

    def _scores(self, X: Any) -> NDArray[np.float64]:
        model = self.model
        if model.encoder is None:
            return model.scores(rows_against(X, model.n_train), self._engine)
        labelled = read_labelled(as_rows(X), None, TrainingOptions(), name="X")
        return model.scores(model.encoder.transform(labelled.features).points, self._engine)
