"""What each kind of model writes for rows, with the sums over rows that a report tells, and what its file holds."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kerntest.errors import ModelError, UndecidedError, UsageError, check_probability
from kerntest.learning.components.kpca_fit import KpcaModel, distances, in_units
from kerntest.learning.machines.ridge_fit import RidgeModel
from kerntest.learning.machines.svm_fit import SvmModel
from kerntest.learning.model_file import model_of, read_model
from kerntest.report.results.application_record import ColumnError, NumberSummary
from kerntest.report.results.inspection_record import ModelColumn, ModelReport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.rows.encoding import ColumnSpec, Encoder

ROW, ERROR, RESIDUAL, UNSETTLED = "row", "reconstruction_error", "residual", "unsettled"
# Before the name of a column whose errors are summed.
OF = "of "
MICROSECONDS_A_DAY = 86_400_000_000
COMMANDS = {"svm": "predict", "ridge": "predict", "kpca": "transform"}
_ESTIMATORS = {"svm": "SVM", "ridge": "KernelRidge", "kpca": "KernelPCA"}


@dataclass(slots=True)
class Sums:
    """The sum, the range and the number of values that come block by block, in the order of the rows."""

    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    count: int = 0

    @classmethod
    def of(cls, values: NDArray[Any]) -> Sums:
        """Return those of some values."""
        return cls(float(values.sum()), float(values.min()), float(values.max()), len(values)) if len(values) else cls()

    def add(self, other: Sums) -> None:
        """Take in those of the next rows."""
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.count += other.count


@dataclass(frozen=True, slots=True, eq=False)
class ModelColumns(ABC):
    """Which columns a model writes for rows; `shown` is how messages call it."""

    model: SvmModel | RidgeModel | KpcaModel
    shown: str

    @property
    def command(self) -> str:
        """What applies it."""
        return COMMANDS[self.model.KIND]

    @property
    def encoder(self) -> Encoder:
        """What the model knows of its columns."""
        if self.model.encoder is None:
            raise ModelError(
                f"{self.shown} was fitted to a matrix of kernel values, not to columns",
                hint=f"use it from Python: {_ESTIMATORS[self.model.KIND]}.load(path).{self.command}(K)",
                code="model.precomputed",
                where={"file": self.shown},
            )
        return self.model.encoder

    @property
    def made(self) -> str:
        """What is made of a row."""
        return "prediction"

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """All columns, in their order."""

    def takes(self, name: str) -> bool:
        """Say whether the output may have a column of this name."""
        return name in self.names

    @abstractmethod
    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return what a report tells of the model and its columns."""

    @abstractmethod
    def __call__(self, points: Points, engine: Engine) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return Arrow columns to write of n rows, and arrays whose sums are told."""


@dataclass(frozen=True, slots=True, eq=False)
class SvmColumns(ModelColumns):
    """`prediction`: classes as they stood in the training data, numbers, or whether rows are like the training rows.

    On request `decision`, or `decision:A|B` for each pair of classes, and `p:CLASS`.
    """

    model: SvmModel
    proba: bool
    decision: bool
    intervals: bool

    def __post_init__(self) -> None:
        """Refuse what a support vector machine does not have."""
        if self.proba and not self.model.sigmoids:
            raise UsageError(
                f"{self.shown} has no probabilities",
                hint="fit it with `kerntest svm ... --probability`"
                if self.model.task == "classify"
                else "they are for models of classes; --decision gives the decision function",
                code="usage.no_probabilities",
            )
        if self.intervals:
            raise UsageError(
                f"{self.shown} is a support vector machine, which has no standard deviations and no intervals",
                hint="`kerntest ridge` fits models that have",
                code="usage.no_intervals",
            )

    def takes(self, name: str) -> bool:
        """Say whether the output may have a column of this name."""
        return name in {"prediction", "decision"} or name.startswith(("decision:", "p:"))

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        model, names = self.model, ["prediction"]
        classes = () if model.classes is None else model.classes.names
        if self.decision:
            pairs = [f"decision:{classes[i]}|{classes[j]}" for i, j in model.pairs]
            several = [f"decision:{one}" for one in classes] if model.method == "mean" else pairs
            names += several if len(several) > 1 + (model.method == "mean") else ["decision"]
        return names + [f"p:{name}" for name in classes if self.proba]

    def __call__(self, points: Points, engine: Engine) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the columns, and the predicted numbers, or of each class which rows got it."""
        model = self.model
        scores = model.scores(points, engine)
        sums: dict[str, NDArray[Any]]
        if model.task == "regress":
            columns, sums = [pa.array(scores[:, 0])], {"": scores[:, 0]}
        elif model.classes is None:
            alike = scores[:, 0] >= 0
            columns, sums = [pa.array(alike)], {"true": alike, "false": ~alike}
        else:
            codes, classes = model.codes(scores), model.classes
            columns = [pa.array(classes.values(np.arange(len(classes.names)))).take(pa.array(codes))]
            sums = {name: codes == place for place, name in enumerate(classes.names)}
        if self.decision:
            columns += map(pa.array, np.atleast_2d(model.decision(scores).T))
        if self.proba:
            columns += map(pa.array, model.probabilities(scores).T)
        return dict(zip(self.names, columns, strict=True)), sums

    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return what a report tells of the model and its predictions."""
        if self.model.task == "regress":
            return _numbers_told(sums, self.model.target)
        counts = {name: int(one.total) for name, one in sums.items()}
        told = {"task": self.model.task, "target": self.model.target, "predictions": counts}
        return {**told, "numbers": None, "by_target": None}


def _numbers_told(sums: Mapping[str, Sums], target: str | None) -> dict[str, Any]:
    """Return what a report tells of predicted numbers."""
    ranges = {name: NumberSummary(one.low, one.total / one.count, one.high) for name, one in sums.items() if one.count}
    one_of_all = {"numbers": next(iter(ranges.values()), None), "by_target": None}
    told = {"numbers": None, "by_target": ranges} if len(sums) > 1 else one_of_all
    return {"task": "regress", "target": target, "predictions": None, **told}


@dataclass(frozen=True, slots=True, eq=False)
class RidgeColumns(ModelColumns):
    """A column for each target, and on request `TARGET_std`, and then `TARGET_low` and `TARGET_high`."""

    model: RidgeModel
    std: bool
    interval: float | None
    refused: str | None

    def __post_init__(self) -> None:
        """Refuse what a regression does not have; `refused` is the option that asks for it."""
        if self.refused is not None:
            raise UsageError(
                f"{self.refused} is for support vector machines, and {self.shown} is a ridge regression",
                hint="--interval 0.9 gives intervals, --std standard deviations",
                code="usage.no_decision",
            )
        if self.interval is not None:
            check_probability(self.interval)
        if (self.std or self.interval is not None) and self.model.spread is None:
            raise UsageError(
                f"{self.shown} was fitted with --no-intervals, and has none",
                hint="fit it without that option",
                code="usage.no_intervals",
            )
        _check_different(self.names, "the target")

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        endings = ("", "_std", "_low", "_high")[: 4 if self.interval is not None else 2 if self.std else 1]
        return [f"{target}{ending}" for target in self.model.targets for ending in endings]

    def __call__(self, points: Points, engine: Engine) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the columns, and the predictions of each target."""
        mean = self.model.predicted(points, engine)
        found = [mean]
        if self.std or self.interval is not None:
            found.append(self.model.deviations(points, engine))
        if self.interval is not None:
            reach = self.model.reach(self.interval) * found[1]
            found += [mean - reach, mean + reach]
        values = [one[:, place] for place in range(len(self.model.targets)) for one in found]
        columns = dict(zip(self.names, map(pa.array, values), strict=True))
        return columns, dict(zip(self.model.targets, mean.T, strict=True))

    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return what a report tells of the model and its predictions."""
        return _numbers_told(sums, ", ".join(self.model.targets))


def _check_different(names: list[str], origin: str) -> None:
    """Refuse to write two columns of one name."""
    twice = [name for name, count in Counter([ROW, *names]).items() if count > 1]
    if twice:
        raise UsageError(
            f"the output would have two columns {twice[0]!r}",
            hint=f"rename {origin}, and fit the model again",
            code="usage.output_names",
        )


@dataclass(frozen=True, slots=True, eq=False)
class ComponentColumns(ModelColumns):
    """Scores `pc1`, `pc2`, ...; or pre-images, in the columns and units of the data, and `reconstruction_error`.

    On request `residual`, how far each row is from its projection in feature space, squared.
    """

    model: KpcaModel
    reconstruct: bool
    residual: bool

    def __post_init__(self) -> None:
        """Refuse a model without pre-images."""
        if self.reconstruct and self.encoder:
            self.model.check_preimages()
        _check_different(self.names, "the column of the data")

    @property
    def made(self) -> str:
        """What is made of a row."""
        return "pre-image" if self.reconstruct else "score"

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        names = [f"pc{place}" for place in range(1, self.model.n_components + 1)]
        if self.reconstruct:
            names = list(self.encoder.names)
            for one in self.model.constants:
                names.insert(one.place, one.name)
        return names + [ERROR] * self.reconstruct + [RESIDUAL] * self.residual

    def __call__(self, points: Points, engine: Engine) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the columns, and residuals and errors of the rows."""
        # Whatever overflows shows in the columns.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.residual:
                scores, residuals = self.model.residuals(points, engine)
            else:
                scores, residuals = self.model.scores(points, engine), np.empty(0)
            self._check_finite(scores, residuals)
            columns, sums = self._preimages(points, scores, engine) if self.reconstruct else (list(scores.T), {})
        if self.residual:
            columns.append(residuals)
            sums[RESIDUAL] = residuals
        return dict(zip(self.names, map(pa.array, columns), strict=True)), sums

    def _preimages(self, points: Points, scores: Array, engine: Engine) -> tuple[list[Any], dict[str, NDArray[Any]]]:
        """Return pre-images as columns, their errors beside, and how far each column is off."""
        found = self.model.preimages(scores, engine, points)
        errors = distances(points, found.points)
        self._check_finite(found.points.numeric, errors)
        kinds = {spec.name: spec.kind for spec in self.encoder.columns}
        images, given = in_units(self.model, found.points), in_units(self.model, points)
        sums = {ERROR: errors**2, UNSETTLED: ~found.converged}
        for name, one in images.items():
            sums[OF + name] = one != given[name] if one.dtype == object else (one - given[name]) ** 2
        return [*(_in_arrow(one, kinds.get(name, "number")) for name, one in images.items()), errors], sums

    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return what a report tells of the model and its columns."""
        means = {name: one.total / one.count for name, one in sums.items() if one.count}
        return {
            "components": self.model.n_components,
            "residual": means.get(RESIDUAL),
            "reconstructed": self.reconstruct,
            "reconstruction_error": math.sqrt(means[ERROR]) if ERROR in means else None,
            "by_column": tuple(
                ColumnError(name.removeprefix(OF), None, mean)
                if name.removeprefix(OF) in self.encoder.category_names
                else ColumnError(name.removeprefix(OF), math.sqrt(mean), None)
                for name, mean in means.items()
                if name.startswith(OF)
            ),
            "not_converged": int(sums[UNSETTLED].total) if UNSETTLED in sums else 0,
        }

    def _check_finite(self, *numbers: Array) -> None:
        if not all(np.isfinite(one).all() for one in numbers):
            raise UndecidedError(
                f"{self.shown} gives numbers that are too large for these rows",
                hint="look at the rows with `kerntest inspect`; or train the model again",
                code="undecided.overflow",
            )


def _in_arrow(values: NDArray[Any], kind: str) -> Any:
    """Return a column as it stood in the data: numbers, truth values, texts, points in time."""
    if kind == "date":
        return pa.array(np.round(values * MICROSECONDS_A_DAY).astype(np.int64), pa.timestamp("us"))
    if kind == "boolean":
        return pa.array([None if value is None else value == "true" for value in values.tolist()], pa.bool_())
    if kind == "text":
        return pa.array(values.tolist(), pa.string())
    return pa.array(values, pa.float64())


def inspect_model(path: str | PathLike[str]) -> ModelReport:
    """Read a model file, all of it, and say what it holds.

    Parameters
    ----------
    path : path
        A file that a learner wrote.

    Raises
    ------
    ModelError
        If it is damaged, of a newer version, or no model.
    DataError
        If it cannot be read.
    """
    file = read_model(path)
    with Path(path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        size = stream.tell()
    # A kind that a later version of this format adds is still told by name.
    svm = model_of(file, SvmModel) if file.kind == "svm" else None
    ridge = model_of(file, RidgeModel) if file.kind == "ridge" else None
    kpca = model_of(file, KpcaModel) if file.kind == "kpca" else None
    model = svm or ridge or kpca
    encoder, features, support = (model.encoder, model.features, None) if model else (None, None, None)
    if model and features is None and not (kpca and kpca.by_axes):
        support = kpca.n_train if kpca else len(model.expansion.coefficients)
    kernel = file.manifest.get("kernel") if encoder or not model else "precomputed"
    return ModelReport(
        schema="kerntest.model/1",
        command="inspect",
        name=file.name,
        kind=file.kind,
        format_version=int(file.manifest["format_version"]),
        kerntest_version=str(file.manifest["kerntest_version"]),
        task=svm.task if svm else "regress" if ridge else None,
        method=svm.method if svm else None,
        target=svm.target if svm else ", ".join(ridge.targets) if ridge else None,
        classes=svm.classes.names if svm and svm.classes else (),
        columns=tuple(map(_column, encoder.columns)) if encoder else (),
        scale=encoder.scale if encoder else None,
        kernel=kernel if isinstance(kernel, str) else None,
        features=f"{features.kind}:{features.size}" if features else None,
        n_support=support,
        # Those of components are only their centring.
        intercepts=tuple(model.expansion.intercepts.tolist()) if model and not kpca else (),
        probability=bool(svm and svm.sigmoids),
        lambda_=ridge.lambda_ if ridge else None,
        intervals=bool(ridge and ridge.spread),
        eigenvalues=tuple(kpca.eigenvalues.tolist()) if kpca else (),
        explained_variance_ratio=tuple(kpca.ratios.tolist()) if kpca else (),
        bytes=size,
        sha256=digest.hexdigest(),
    )


def _column(spec: ColumnSpec) -> ModelColumn:
    if spec.is_category:
        return ModelColumn(spec.name, spec.kind, spec.levels, None, None)
    return ModelColumn(spec.name, spec.kind, None, spec.centre, spec.spread, spec.written or None)
