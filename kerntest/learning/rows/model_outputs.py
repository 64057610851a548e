"""What each kind of model writes for rows, with the sums over rows that a report tells, and what its file holds."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
# Of each kind of model: what applies it, its Python class, and what is kept of it.
KINDS: dict[str, tuple[str, str, Any]] = {
    "svm": ("predict", "SVM", SvmModel),
    "ridge": ("predict", "KernelRidge", RidgeModel),
    "kpca": ("transform", "KernelPCA", KpcaModel),
}


class Sums(NamedTuple):
    """The sum, the range and the number of values that come block by block, in the order of the rows."""

    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    n: int = 0

    @classmethod
    def of(cls, values: NDArray[Any]) -> Sums:
        """Return those of some values."""
        return cls(float(values.sum()), float(values.min()), float(values.max()), len(values)) if len(values) else cls()

    def plus(self, other: Sums) -> Sums:
        """Return those of the next rows too."""
        ends = min(self.low, other.low), max(self.high, other.high)
        return Sums(self.total + other.total, *ends, self.n + other.n)


def _refuse(*cases: tuple[bool, str, str, str]) -> None:
    """Refuse the first of some cases that holds: what is told, a hint and a code."""
    for holds, told, hint, code in cases:
        if holds:
            raise UsageError(told, hint=hint, code=code)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ModelColumns(ABC):
    """Which columns a model writes for rows, beside those of the data that are `kept`; messages call it `shown`."""

    model: SvmModel | RidgeModel | KpcaModel
    shown: str
    kept: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What applies it."""
        return KINDS[self.model.KIND][0]

    @property
    def encoder(self) -> Encoder:
        """What the model knows of its columns."""
        if self.model.encoder is None:
            raise ModelError(
                f"{self.shown} was fitted to a matrix of kernel values, not to columns",
                hint=f"use it from Python: {KINDS[self.model.KIND][1]}.load(path).{self.command}(K)",
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

    def check_names(self) -> None:
        """Refuse to write two columns of one name."""
        twice = [name for name in self.names if [ROW, *self.names].count(name) > 1]
        told = f"the output would have two columns {(twice or [''])[0]!r}"
        _refuse((bool(twice), told, "rename that column of the data, and fit the model again", "usage.output_names"))

    @abstractmethod
    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return what a report tells of the model and its columns."""

    @abstractmethod
    def __call__(self, points: Points, engine: Engine) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return Arrow columns to write of n rows, and arrays whose sums are told."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
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
        way = "they are for models of classes; --decision gives the decision function"
        if self.model.task == "classify":
            way = "fit it with `kerntest svm ... --probability`"
        none = f"{self.shown} is a support vector machine, which has no standard deviations and no intervals"
        _refuse(
            (
                self.proba and not self.model.sigmoids,
                f"{self.shown} has no probabilities",
                way,
                "usage.no_probabilities",
            ),
            (self.intervals, none, "`kerntest ridge` fits models that have", "usage.no_intervals"),
        )

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
        regresses = self.model.task == "regress"
        told = _ranges(sums) if regresses else {"predictions": {name: int(one.total) for name, one in sums.items()}}
        return {"task": self.model.task, "target": self.model.target, **told}


def _ranges(sums: Mapping[str, Sums]) -> dict[str, Any]:
    """Return what a report tells of predicted numbers, of one target or of several."""
    ranges = {name: NumberSummary(one.low, one.total / one.n, one.high) for name, one in sums.items() if one.n}
    return {"by_target": ranges} if len(sums) > 1 else {"numbers": next(iter(ranges.values()), None)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RidgeColumns(ModelColumns):
    """A column for each target, and on request `TARGET_std`, and then `TARGET_low` and `TARGET_high`.

    Beside a target that is kept, its predictions are called `TARGET_predicted`.
    """

    model: RidgeModel
    std: bool
    interval: float | None
    refused: str | None

    def __post_init__(self) -> None:
        """Refuse what a regression does not have; `refused` is the option that asks for it."""
        told = f"{self.refused} is for support vector machines, and {self.shown} is a ridge regression"
        if self.interval is not None:
            check_probability(self.interval)
        deviates = self.std or self.interval is not None
        none = f"{self.shown} was fitted with --no-intervals, and has none"
        ways = "--interval 0.9 gives intervals, --std standard deviations"
        _refuse(
            (self.refused is not None, told, ways, "usage.no_decision"),
            (deviates and self.model.spread is None, none, "fit it without that option", "usage.no_intervals"),
        )
        self.check_names()

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        endings = ("_std", "_low", "_high")[: 3 if self.interval is not None else int(self.std)]
        firsts = {target: "_predicted" if target in self.kept else "" for target in self.model.targets}
        return [f"{target}{ending}" for target, first in firsts.items() for ending in (first, *endings)]

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
        return {"task": "regress", "target": ", ".join(self.model.targets), **_ranges(sums)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
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
            self.model.preimage_search()
        self.check_names()

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
        sums: dict[str, NDArray[Any]] = {}
        # Whatever overflows shows in the columns.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.residual:
                scores, sums[RESIDUAL] = self.model.residuals(points, engine)
            else:
                scores = self.model.scores(points, engine)
            self._check_finite(scores, *sums.values())
            columns: list[Any] = list(scores.T)
            if self.reconstruct:
                columns, errors = self._preimages(points, scores, engine)
                sums = errors | sums
        columns += [sums[name] for name in (RESIDUAL,) if self.residual]
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
        means = {name: one.total / one.n for name, one in sums.items() if one.n}
        off = {name.removeprefix(OF): mean for name, mean in means.items() if name.startswith(OF)}
        categories = self.encoder.category_names
        return {
            "components": self.model.n_components,
            "residual": means.get(RESIDUAL),
            "reconstructed": self.reconstruct,
            "reconstruction_error": math.sqrt(means[ERROR]) if ERROR in means else None,
            "by_column": tuple(
                ColumnError(name, changed=mean) if name in categories else ColumnError(name, rmse=math.sqrt(mean))
                for name, mean in off.items()
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
    return pa.array(values.tolist(), pa.string()) if kind == "text" else pa.array(values, pa.float64())


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
    model = model_of(file, KINDS[file.kind][2]) if file.kind in KINDS else None
    told: dict[str, Any] = {}
    if isinstance(model, SvmModel):
        told = {"task": model.task, "method": model.method, "target": model.target}
        told |= {"classes": model.classes.names if model.classes else (), "probability": bool(model.sigmoids)}
    elif isinstance(model, RidgeModel):
        told = {"task": "regress", "target": ", ".join(model.targets), "lambda_": model.lambda_}
        told["intervals"] = model.spread is not None
    elif isinstance(model, KpcaModel):
        told = {
            "eigenvalues": tuple(model.eigenvalues.tolist()),
            "explained_variance_ratio": tuple(model.ratios.tolist()),
        }
    kernel = file.manifest.get("kernel")
    if model is not None:
        encoder, features, components = model.encoder, model.features, isinstance(model, KpcaModel)
        if encoder is None:
            kernel = "precomputed"
        else:
            told |= {"scale": encoder.scale, "columns": tuple(map(_column, encoder.columns))}
        if features is not None:
            told["features"] = f"{features.kind}:{features.size}"
        elif not (components and model.by_axes):
            told["n_support"] = model.n_train if components else len(model.expansion.coefficients)
        # Those of components are only their centring.
        told["intercepts"] = () if components else tuple(model.expansion.intercepts.tolist())
    return ModelReport(
        name=file.name,
        kind=file.kind,
        format_version=int(file.manifest["format_version"]),
        kerntest_version=str(file.manifest["kerntest_version"]),
        kernel=kernel if isinstance(kernel, str) else None,
        bytes=size,
        sha256=digest.hexdigest(),
        **told,
    )


def _column(spec: ColumnSpec) -> ModelColumn:
    if spec.is_category:
        return ModelColumn(spec.name, spec.kind, spec.levels)
    return ModelColumn(spec.name, spec.kind, None, spec.centre, spec.spread, spec.written or None)
