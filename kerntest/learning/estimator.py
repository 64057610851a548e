"""What `SVM`, `KernelRidge` and `KernelPCA` share: parameters, the model and its file; and what Python callers hand over."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from kerntest.data.messages import one_of, whole_number
from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError
from kerntest.learning.rows.training_rows import (
    TrainingOptions,
    check_bandwidth,
    check_kernel,
    read_labelled,
)
from kerntest.learning.saved_models import load_model, save_model
from kerntest.matrices.factor import parse_features

if TYPE_CHECKING:
    from os import PathLike

    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.learning.rows.encoding import Scale


class Fit(Protocol):
    """What every fit has."""

    @property
    def model(self) -> Any:
        """What predicts, and is saved."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was found while fitting."""


FitT = TypeVar("FitT", bound=Fit)
ModelT = TypeVar("ModelT", bound=Any)


class _Kernelled:
    # A field of each learner's own: it is the second parameter of all.
    kernel: Kernel | str


@dataclass(kw_only=True, eq=False, repr=False)
class LearnerOptions(_Kernelled):
    """The options that every learner has: its class and its `train_*` take them, and those of its own, from here.

    Those of one learner are checked in its own `__post_init__`.
    """

    bandwidth: str | float = "median"
    features: str | None = None
    scale: Scale = "standardize"
    seed: int = 0
    threads: int | None = None
    # What else than a number the bandwidth may be; the first is the default.
    BANDWIDTHS: ClassVar[tuple[str, ...]] = ("median",)
    # What else there is than to name a bandwidth, for messages.
    ADVICE: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be, and keep the engine that is set now."""
        self.engine = engine_of(self.threads)
        one_of("scale", self.scale, ("standardize", "none"))
        whole_number("seed", self.seed, at_least=0)
        check_kernel(self.kernel)
        if self.bandwidth not in self.BANDWIDTHS:
            check_bandwidth(self.bandwidth, self.BANDWIDTHS, self.ADVICE)
        if self.features is not None:
            parse_features(self.features)
        given = self.precomputed
        self._refuse(
            (given and self.features is not None, "a precomputed kernel and features", "give one of them"),
            (
                given and self.bandwidth != self.BANDWIDTHS[0],
                "a precomputed kernel and a bandwidth",
                "give one of them",
            ),
        )

    @property
    def precomputed(self) -> bool:
        """Whether rows are rows of a matrix of kernel values."""
        return isinstance(self.kernel, str) and self.kernel.strip().lower() == "precomputed"

    @staticmethod
    def _refuse(*contradictions: tuple[bool, str, str]) -> None:
        """Refuse two options that contradict each other: whether they do, which, and a hint."""
        for wrong, what, hint in contradictions:
            if wrong:
                raise UsageError(f"{what} contradict each other", hint=hint, code="usage.contradiction")

    @classmethod
    def taken_from(cls, words: dict[str, Any]) -> Self:
        """Return the options among keyword arguments, which leave them."""
        return cls(**{name: words.pop(name) for name in signature(cls).parameters if name in words})


class Estimator(LearnerOptions, Generic[ModelT, FitT]):
    """What `SVM`, `KernelRidge` and `KernelPCA` share beside their options: the model and its file."""

    MODEL: ClassVar[type]
    # What one is called in messages.
    CALLED: ClassVar[str]

    _model: ModelT | None = None
    fit_: FitT | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn asks for them."""
        del deep
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and forget what was fitted."""
        unknown = [name for name in params if name not in self.get_params()]
        if unknown:
            raise UsageError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}",
                hint=f"they are {', '.join(self.get_params())}",
                code="usage.parameter",
            )
        fresh = type(self)(**{**self.get_params(), **params})
        vars(self).clear()
        vars(self).update(vars(fresh))
        return self

    @property
    def _estimator_type(self) -> str:
        return "transformer"

    def __sklearn_tags__(self) -> Any:
        made = import_module("sklearn.utils")
        kind = self._estimator_type
        return made.Tags(
            kind,
            made.TargetTags(required=kind in {"classifier", "regressor"}),
            classifier_tags=made.ClassifierTags() if kind == "classifier" else None,
            regressor_tags=made.RegressorTags() if kind == "regressor" else None,
        )

    @property
    def model(self) -> ModelT:
        """What was fitted; UsageError if nothing was."""
        if self._model is None:
            raise UsageError(f"{self.CALLED} not fitted", hint="call fit first", code="usage.not_fitted")
        return self._model

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file that the command line and `load` read."""
        save_model(path, self.model, force=force)

    @classmethod
    def load(cls, path: str | PathLike[str], *, threads: int | None = None) -> Self:
        """Return one that works with the model of a file."""
        model: Any = load_model(path, cls.MODEL)
        loaded = cls(**cls._loaded(model), threads=threads)
        loaded._model = model
        return loaded

    @classmethod
    def _loaded(cls, model: ModelT) -> dict[str, Any]:
        """Return the parameters that a model file knows."""
        del model
        return {}

    def _points(self, X: Any) -> Points | Array:
        """Return new rows as the model takes them."""
        if self.model.encoder is None:
            return rows_against(X, self.model.n_train)
        labelled = read_labelled(as_rows(X), (), TrainingOptions(), name="X")
        points: Points = self.model.encoder.transform(labelled.features)[0]
        return points


def as_rows(X: Any) -> Any:
    """Return lists of numbers as an array, and everything else as it is."""
    if not isinstance(X, (list, tuple)):
        return X
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            "rows in lists are equally many numbers each",
            hint="hand over a DataFrame where there is text",
            code="data.not_numeric",
        ) from error


def training_matrix(X: Any) -> Array:
    """Return a precomputed matrix of the training rows, shape (n, n) and symmetric."""
    matrix = _matrix(X)
    if not len(matrix) or matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"a precomputed matrix has shape (n, n), not {matrix.shape}",
            hint="entry i, j is the kernel of training rows i and j",
            code="data.wrong_shape",
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10 * float(np.abs(matrix).max(initial=0.0))):
        raise DataError("a precomputed matrix must be symmetric", hint="K = (K + K.T) / 2", code="data.not_symmetric")
    return matrix


def rows_against(X: Any, n_train: int) -> Array:
    """Return further rows of a precomputed matrix, shape (m, n_train)."""
    matrix = _matrix(X)
    if matrix.shape[1] != n_train:
        raise DataError(
            f"the rows of the matrix have {matrix.shape[1]:,} columns, and the machine was fitted to {n_train:,} rows",
            hint="entry i, j is the kernel of row i and training row j: hand over all training rows",
            code="data.wrong_shape",
        )
    return matrix


def _matrix(X: Any) -> Array:
    """Return kernel values as a matrix of finite numbers."""
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            "a precomputed matrix holds numbers, and nothing else",
            hint="hand over an array of shape (rows, training rows)",
            code="data.not_numeric",
        ) from error
    if matrix.ndim != 2:
        raise DataError(
            f"a precomputed matrix has two dimensions, not shape {matrix.shape}",
            hint="one row alone is K[None, :]",
            code="data.wrong_shape",
        )
    if not np.isfinite(matrix).all():
        row, column = (int(place) + 1 for place in np.argwhere(~np.isfinite(matrix))[0])
        raise DataError(
            f"a precomputed matrix has finite entries, not {matrix[row - 1, column - 1]} in row {row:,}, column {column:,}",
            hint="look at the kernel of these two rows",
            code="data.wrong_shape",
        )
    return matrix
