"""What the Python classes of learners share: the protocol of scikit-learn, which is imported only by those who ask for it."""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import replace
from functools import wraps
from importlib import import_module
from inspect import signature
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

import numpy as np

from kerntest.errors import DataError, UsageError, arguments_of, one_of, warn_of
from kerntest.kernels.base import Points
from kerntest.learning.importance import permutation_importance
from kerntest.learning.learner import FitT, FittedModel, LearnerOptions, ModelT
from kerntest.learning.model_file import damaged, model_of, read_model, save_model
from kerntest.learning.rows.leakage import kept_together
from kerntest.learning.rows.targets import checked_weights, given_targets, target_of
from kerntest.learning.rows.training_rows import TrainingOptions, TrainingRows, read_labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.kernels.base import Array
    from kerntest.learning.learner import Learner
    from kerntest.learning.rows.training_rows import Labelled
    from kerntest.report.results.learning_record import Importance


def only_if(holds: Callable[[Any], bool], told: str) -> Callable[[Callable[..., Any]], Any]:
    """Let a class have a method only where a condition holds: others ask whether it is there."""

    def decorated(method: Callable[..., Any]) -> Any:
        @property  # type: ignore[misc]  # mypy knows properties in classes only
        @wraps(method)
        def found(self: Any) -> Callable[..., Any]:
            if not holds(self):
                raise AttributeError(told)
            return MethodType(method, self)

        return found

    return decorated


class Estimator(LearnerOptions, Generic[ModelT, FitT]):
    """What all learners share beside their options: the model and its file."""

    MODEL: ClassVar[type]
    # What one is called in messages.
    CALLED: ClassVar[str]
    # The parameters that a model knows, and by which name.
    SHOWN: ClassVar[dict[str, str]]
    # Whether it may have several targets.
    SEVERAL: ClassVar[bool] = False

    _model: ModelT | None = None
    fit_: FitT | None = None
    # Of an array there are no names.
    n_features_in_: int
    feature_names_in_: Array

    def __init_subclass__(cls, **options: Any) -> None:
        """Let each name the parameter that it does not have."""
        super().__init_subclass__(**options)
        made = cls.__init__

        @wraps(made)
        def initialise(self: Any, *args: Any, **params: Any) -> None:
            with arguments_of(cls, args, params):
                made(self, *args, **params)

        vars_of: Any = cls
        vars_of.__init__ = initialise

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        given = {name: value for name, value in self.get_params().items() if value != usual[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and forget what was fitted."""
        for name in [name for name in params if name not in self.get_params()]:
            told, hint = f"{type(self).__name__} has no parameter {name!r}", f"they are {', '.join(self.get_params())}"
            raise UsageError(told, hint=hint, code="usage.parameter")
        fresh = type(self)(**{**self.get_params(), **params})
        for name in ("_model", "fit_", "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        vars(self).update(vars(fresh))
        return self

    @property
    def _estimator_type(self) -> str:
        return "transformer"

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    def __sklearn_tags__(self) -> Any:
        made, kind = import_module("sklearn.utils"), self._estimator_type
        own = {"classifier": "ClassifierTags", "regressor": "RegressorTags", "transformer": "TransformerTags"}
        tags = {f"{one}_tags": getattr(made, name)() if kind == one else None for one, name in own.items()}
        target = made.TargetTags(required=kind in {"classifier", "regressor"}, multi_output=self.SEVERAL)
        return made.Tags(kind, target, input_tags=made.InputTags(pairwise=self.precomputed), **tags)

    @property
    def model(self) -> ModelT:
        """What was fitted; UsageError if nothing was."""
        if self._model is None:
            raise not_fitted(f"{self.CALLED} not fitted", "call fit first")
        return self._model

    def _truth(self, y: Any, n: int) -> NDArray[Any]:
        """Return what n rows should be predicted as: codes of classes, or numbers, shape (n, T)."""
        raise NotImplementedError

    @only_if(lambda self: self._estimator_type in {"classifier", "regressor"}, "it predicts nothing to be worth for")
    def importance(self, X: Any, y: Any) -> Importance | None:
        """Return what each column is worth on n rows that were not learned from, with its standard error.

        By how much accuracy falls (balanced where classes have weights), of regressions the RMSE rises, where the values of one column are shuffled; a category is
        one column, several targets count together. Cost: about a second, or a fifth of the fit; None of so many columns that it would
        take minutes. See `kerntest.learning.importance`.
        """
        points = self._points(X)
        if not isinstance(points, Points):
            told, hint = "a matrix of kernel values has no columns to shuffle", "fit to the columns themselves"
            raise UsageError(told, hint=hint, code="usage.precomputed")
        truth = self._truth(y, len(points))
        balanced = truth.ndim == 1 and getattr(self, "class_weight", None) is not None
        return permutation_importance(self.model, points, truth, self.engine, seed=self.seed, balanced=balanced)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file that the command line and `load` read."""
        save_model(path, self.model, self.stored(), force=force)

    @classmethod
    def load(cls, path: str | PathLike[str], *, threads: int | None = None) -> Self:
        """Return one that works with the model of a file, and has the parameters that it was fitted with."""
        loaded, file = cls(threads=threads), read_model(path)
        model: Any = model_of(file, cls.MODEL)
        # What the model of an older file shows.
        shown: dict[str, Any] = {name: getattr(model, place) for name, place in cls.SHOWN.items()}
        shown["kernel"] = str(model.kernel or "precomputed")
        shown |= {} if model.encoder is None else {"scale": model.encoder.scale}
        shown |= {} if model.features is None else {"features": f"{model.features.kind}:{model.features.size}"}
        try:
            loaded.set_params(**file.manifest.get("parameters", shown) | {"threads": threads})
        except (AttributeError, TypeError, ValueError, UsageError) as error:
            raise damaged(file.name, f"its parameters are none of {cls.__name__}: {error}") from error
        loaded._model = model
        # Of the columns that it was fitted to, a file has those that it needs.
        names = model.names_in
        loaded._of_columns(model.n_train if names is None else len(names), names)
        return loaded

    def _of_columns(self, count: int, names: Sequence[str] | None) -> None:
        """Keep how many columns there were in `fit`, and their names where they have any."""
        self.n_features_in_ = count
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _learned(self, learner: Learner[FitT, Any], X: Any, y: Any, weights: Any = None) -> Self:
        """Fit to what a caller hands over, and warn of what is to be known."""
        rows, features = self._handed_over(learner, X, y, weights)
        why = learner.settle(rows)
        self.fit_ = learner.fit(rows)
        self._model = self.fit_.model.with_ranges(rows)
        names = None if features is None or features.format == "array" else features.names
        self._of_columns(len(rows) if features is None else len(features.names), names)
        warn_of([*why, *rows.warnings, *self.fit_.warnings])
        return self

    def _handed_over(
        self, learner: Learner[FitT, Any], X: Any, y: Any, weights: Any
    ) -> tuple[TrainingRows, Table | None]:
        """Return the rows of what callers hand over, a table or a matrix of kernel values, and the columns of a table."""

        def beside(n: int) -> tuple[Column, ...]:
            return () if weights is None else (target_of(weights, n, name="sample_weight"),)

        if self.precomputed:
            matrix = kernel_values(X)
            n = len(matrix)
            given = [checked_weights(column, "K", positive=True) for column in beside(n)]
            rows = learner.with_targets(
                TrainingRows(matrix), self._target_values(y, n, supervised=learner.supervised), "y"
            )
            return replace(rows, weights=given[0] if given else None), None
        names = (y,) if isinstance(y, str) else y if self.SEVERAL and isinstance(y, (list, tuple)) else ()
        if not learner.supervised or not all(isinstance(name, str) for name in names):
            names = ()
        labelled = _labelled(as_rows(X), names, TrainingOptions(numbers=learner.NUMBERS))
        if labelled.n < 2:
            told, hint = "X has 1 sample, and one row has nothing to learn from", "hand over two rows or more"
            raise DataError(told, hint=hint, code="data.no_columns")
        targets = labelled.targets if names else self._target_values(y, labelled.n, supervised=learner.supervised)
        labelled = replace(labelled, targets=targets, beside=beside(labelled.n))
        if learner.splits:
            labelled = kept_together(labelled)
        rows = learner.rows(labelled)
        return replace(rows, warnings=(*labelled.warnings, *rows.warnings)), labelled.features

    def _target_values(self, y: Any, n: int, *, supervised: bool) -> tuple[Column, ...]:
        """Return the targets of n rows that y holds: several, or one, which may be a column."""
        if not supervised:
            return ()
        if y is None:
            told = f"{type(self).__name__} requires y to be passed, but the target y is None"
            hint = f"fit({'K' if self.precomputed else 'X'}, y)"
            raise UsageError(told, hint=hint, code="usage.target")
        if self.SEVERAL:
            return tuple(given_targets(y, n))
        return (target_of(np.asarray(y)[:, 0] if getattr(y, "shape", ())[1:] == (1,) else y, n),)

    def _applied(self) -> FittedModel:
        """Return what is applied to the columns that are handed over."""
        return self.model

    def _points(self, X: Any) -> Points | Array:
        """Return new rows as the model takes them: by the names of their columns, or by place where one side has none."""
        model = self._applied()
        encoder, named = model.encoder, hasattr(self, "feature_names_in_")
        if encoder is None:
            return kernel_values(X, self.model.n_train)
        table = TrainingOptions().read(as_rows(X), "X")
        count, array = len(table.names), table.format == "array"
        known = set(encoder.names) <= set(table.names)
        if array and count != self.n_features_in_ and not (named and known):
            told = f"X has {count:,} features, but {type(self).__name__} is expecting {self.n_features_in_:,} features as input"
            raise DataError(told, hint="hand over the columns of the fit, in their order", code="data.columns_differ")
        by_place = array if named else table.format == "frame"
        if by_place and count == self.n_features_in_ and not known:
            names = self.feature_names_in_ if named else [f"x{place}" for place in range(1, count + 1)]
            columns = [replace(column, name=name) for column, name in zip(table.columns, names, strict=True)]
            table = replace(table, columns=tuple(columns))
            has, had = ("no names", "names") if named else ("names", "none")
            warn_of([f"the columns of X have {has}, and those of the fit had {had}: they are taken in their order"])
        labelled = _labelled(table, (), TrainingOptions())
        points: Points
        try:
            points, strange = encoder.transform(labelled.features, unknown=self.unknown)
        except DataError as error:
            if error.code == "data.unknown_level":
                # A fold of scikit-learn's that lacks a category shows no more of an error.
                error.add_note(f"hint: {error.hint}")
            raise
        warn_of([one.told("X", "the model") for one in strange])
        self._told_of_outside(model, points, "X")
        return points

    @staticmethod
    def _told_of_outside(model: FittedModel, points: Points, name: str) -> None:
        """Warn of values far from those of the training rows."""
        warn_of([one.told(name, model.far_off) for one in model.outside(points)[0] if one.tells(len(points))])


class Transformer(Estimator[ModelT, FitT]):
    """An estimator whose `transform` gives new columns: as an array, or as a frame where that is asked for."""

    # As others call it who copy it.
    _sklearn_output_config: dict[str, str] | None = None

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to n rows; y is ignored."""

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Return the new columns of n rows, shape (n, components)."""

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to n rows and return their new columns, shape (n, components)."""
        return self.fit(X, y).transform(X)

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the new columns."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let `transform` return arrays ("default"), or frames of "pandas" or "polars"; None changes nothing."""
        if transform is not None:
            one_of("transform", transform, ("default", "pandas", "polars"))
            self._sklearn_output_config = {"transform": transform}
        return self

    def _framed(self, values: Array, X: Any) -> Any:
        """Return new columns as was asked for here, or else of scikit-learn as a whole."""
        library = sys.modules.get("sklearn")
        usual = "default" if library is None else library.get_config()["transform_output"]
        asked = (self._sklearn_output_config or {}).get("transform", usual)
        if asked == "default":
            return values
        names = self.get_feature_names_out()
        if asked == "polars":
            return import_module(asked).DataFrame(values, schema=list(names), orient="row")
        index = X.index if hasattr(X, "columns") else None
        return import_module(asked).DataFrame(values, columns=names, index=index)


def _labelled(X: Any, names: Sequence[str], options: TrainingOptions) -> Labelled:
    """Return rows that are handed over, without missing values: an estimator has no option for these."""
    try:
        return read_labelled(X, names, options, name="X")
    except DataError as error:
        if error.code == "data.missing_values":
            error.hint = (
                "leave such rows out, as by X.dropna(), or fill the gaps in, as by an imputer before it in a pipeline; "
                "train_svm, train_ridge and the others take missing='drop' and missing='indicator'"
            )
        raise


def not_fitted(told: str, hint: str) -> UsageError:
    """Return the error of what was not fitted; where scikit-learn is loaded, it is one of its own, too."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    bases = (UsageError,) if theirs is None else (UsageError, theirs)
    # Another process makes it again.
    kind: Any = type("NotFittedError", bases, {"__reduce__": lambda _: (not_fitted, (told, hint))})
    error: UsageError = kind(told, hint=hint, code="usage.not_fitted")
    return error


def _floats(X: Any, told: str, hint: str) -> Array:
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(told, hint=hint, code="data.not_numeric") from error


def as_rows(X: Any) -> Any:
    """Return whatever numpy takes as an array of rows and columns, and tables, frames and paths as they are."""
    if hasattr(X, "toarray"):
        told, hint = "Sparse data are not supported: X is a sparse matrix", "hand over X.toarray()"
        raise DataError(told, hint=hint, code="data.not_numeric")
    frame = hasattr(X, "__arrow_c_stream__") or hasattr(X, "columns") or hasattr(X, "to_frame")
    if frame or not (hasattr(X, "__array__") or isinstance(X, (list, tuple))):
        return X
    rows: Any = X if isinstance(X, (np.ndarray, list, tuple)) else np.asarray(X)
    if getattr(rows, "dtype", np.dtype(object)).kind == "O":
        rows = _floats(rows, "rows are equally many numbers each", "hand over a DataFrame where there is text")
    told = ""
    if rows.dtype.kind == "c":
        told, hint, code = (
            f"Complex data not supported: X is an array of {rows.dtype}",
            "hand over X.real",
            "not_numeric",
        )
    elif rows.ndim != 2:
        told = f"X has shape {rows.shape}, not (rows, columns). Reshape your data"
        hint, code = "X.reshape(-1, 1) is one column, X.reshape(1, -1) one row", "wrong_shape"
    elif not rows.shape[1]:
        told = f"X has no columns: 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required."
        hint, code = "hand over one column at least", "no_columns"
    if told:
        raise DataError(told, hint=hint, code=f"data.{code}")
    return rows


def kernel_values(X: Any, n_train: int | None = None) -> Array:
    """Return a precomputed matrix: of n training rows, (n, n) and symmetric, or of m further ones against them, (m, n)."""
    told, hint = (
        "a precomputed matrix holds numbers, and nothing else",
        "hand over an array of shape (rows, training rows)",
    )
    K = _floats(X, told, hint)
    told, hint, code = "", "entry i, j is the kernel of training rows i and j", "data.wrong_shape"
    if K.ndim != 2:
        told, hint = f"a precomputed matrix has two dimensions, not shape {K.shape}", "one row alone is K[None, :]"
    elif not np.isfinite(K).all():
        row, column = np.argwhere(~np.isfinite(K))[0].tolist()
        place, hint = f"in row {row + 1:,}, column {column + 1:,}", "look at the kernel of these two rows"
        told = f"a precomputed matrix has finite entries, not {K[row, column]} {place}"
    elif n_train is not None and K.shape[1] != n_train:
        hint = "entry i, j is the kernel of row i and training row j: hand over all training rows"
        told = f"the rows of the matrix have {K.shape[1]:,} columns, and the machine was fitted to {n_train:,} rows"
    elif n_train is None and not 0 < K.shape[0] == K.shape[1]:
        told = f"a precomputed matrix has shape (n, n), not {K.shape}"
    elif n_train is None and not np.allclose(K, K.T, rtol=1e-8, atol=1e-10 * float(np.abs(K).max(initial=0.0))):
        told, hint, code = "a precomputed matrix must be symmetric", "K = (K + K.T) / 2", "data.not_symmetric"
    if told:
        raise DataError(told, hint=hint, code=code)
    return K
