"""What each kind of model writes for rows, with the sums over rows that a report tells, and what its file holds."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from kerntest.data.table import in_arrow
from kerntest.dataclass import dataclass
from kerntest.errors import ModelError, UndecidedError, UsageError, counted, either, explained, option, positive
from kerntest.learning.components.cca_fit import CcaModel
from kerntest.learning.components.kpca_fit import KpcaModel, distances, in_units
from kerntest.learning.components.unmix_fit import UnmixModel
from kerntest.learning.machines.ridge_fit import RidgeModel
from kerntest.learning.machines.svm_model import SvmModel
from kerntest.learning.model_file import model_of, read_model
from kerntest.report.results.application_record import ColumnError, NumberSummary
from kerntest.report.results.inspection_record import ModelColumn, ModelReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.rows.encoding import Encoder

    # Whether something is refused: what is told, a hint and a code.
    Case = tuple[bool, str, str, str]
    # Arrow columns to write of n rows, and arrays whose sums are told.
    Written = tuple[dict[str, Any], dict[str, NDArray[Any]]]

ROW, ERROR, RESIDUAL, UNSETTLED = "row", "reconstruction_error", "residual", "unsettled"
# Before the name of a column whose errors are summed.
OF = "of "
MICROSECONDS_A_DAY = 86_400_000_000


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


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelColumns(ABC):
    """Which columns a model writes for rows, beside those of the data that are `kept`; messages call it `shown`.

    Further fields are what was asked for.
    """

    MODEL: ClassVar[Any]
    ESTIMATOR: ClassVar[str]
    # What applies it, and which rows a report counts.
    COMMAND: ClassVar[str] = "predict"
    DONE: ClassVar[str] = "predicted"
    model: Any
    shown: str
    kept: tuple[str, ...] = ()

    @property
    def encoder(self) -> Encoder:
        """What the model knows of its columns."""
        encoder: Encoder | None = self.model.encoder
        if encoder is None:
            raise ModelError(
                f"{self.shown} was fitted to a matrix of kernel values, not to columns",
                hint=f"use it from Python: {self.ESTIMATOR}.load(path).{self.COMMAND}(K)",
                code="model.precomputed",
                where={"file": self.shown},
            )
        return encoder

    @property
    def row(self) -> str:
        """What the column with the numbers of the rows is called."""
        return ROW if ROW not in self.names else f"{ROW}_number"

    @property
    def made(self) -> str:
        """What is made of a row."""
        return "prediction"

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """All columns, in their order."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What `kerntest inspect` tells of such models only."""

    def checked(self) -> Self:
        """Refuse what the model does not have, and columns of one name."""
        names = [self.row, *self.names] if self.encoder else []
        twice = [name for name in names if names.count(name) > 1]
        told = f"the output would have two columns {(twice or [''])[0]!r}"
        columns = bool(twice), told, "rename that column of the data, and fit the model again", "usage.output_names"
        for holds, said, hint, code in (*self.refused(), columns):
            if holds:
                raise UsageError(said, hint=hint, code=code)
        return self

    @abstractmethod
    def refused(self) -> Iterator[Case]:
        """Yield what the model may not have."""

    @property
    def warnings(self) -> Iterator[str]:
        """What a reader of the columns must know, whatever the rows are."""
        return iter(())

    @abstractmethod
    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return what a report tells of the model and its columns."""

    @abstractmethod
    def __call__(self, points: Points, engine: Engine) -> Written:
        """Return the columns of n rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionColumns(ModelColumns):
    """What machines and regressions share."""

    proba: bool = False
    decision: bool = False
    std: bool = False
    interval: float | None = None

    @property
    def deviates(self) -> bool:
        """Whether standard deviations are asked for, or what is made of them."""
        return self.std or self.interval is not None

    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return the range of predicted numbers, of one target or of several, or how many rows have each class."""
        told = {name: self.about.get(name) for name in ("task", "target", "probability")}
        if told["task"] != "regress":
            shares = {(told["task"], name): one.total / one.n for name, one in sums.items() if one.n}
            counts = {name: int(one.total) for name, one in sums.items()}
            return told | {"predictions": counts, "outliers": shares.get(("one-class", "false"))}
        ranges = {name: NumberSummary(one.low, one.total / one.n, one.high) for name, one in sums.items() if one.n}
        return told | ({"by_target": ranges} if len(sums) > 1 else {"numbers": next(iter(ranges.values()), None)})


class SvmColumns(PredictionColumns):
    """`prediction`: classes as they stood in the training data, numbers, or whether rows are like the training rows.

    On request `decision`, or `decision:A|B` for each pair of classes, and `p:CLASS`.
    """

    MODEL = SvmModel
    ESTIMATOR = "SVM"

    @property
    def about(self) -> dict[str, Any]:
        """What `kerntest inspect` tells of such models only."""
        model = self.model
        told = {"classes": model.classes.names if model.classes else (), "probability": bool(model.sigmoids)}
        return told | {name: getattr(model, name) for name in ("task", "method", "target")}

    def refused(self) -> Iterator[Case]:
        """Yield probabilities that were not fitted, and intervals."""
        way = f"they are for models of classes; {option('decision', True)} gives the decision function"
        if self.model.task == "classify":
            way = f"fit it again with {option('probability', True)}"
        lacking = self.proba and not self.model.sigmoids
        yield lacking, f"{self.shown} has no probabilities", way, "usage.no_probabilities"
        none = f"{self.shown} is a support vector machine, which has no standard deviations and no intervals"
        yield (
            self.deviates,
            none,
            f"{either('`kerntest ridge`', 'train_ridge')} fits models that have",
            "usage.no_intervals",
        )

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        classes, names = self.about["classes"], ["prediction"]
        if self.decision:
            several = [f"{classes[i]}|{classes[j]}" for i, j in self.model.pairs] or classes
            names += [f"decision:{one}" for one in several] if len(classes) > 2 else ["decision"]
        return names + [f"p:{name}" for name in classes if self.proba]

    def __call__(self, points: Points, engine: Engine) -> Written:
        """Return the columns, and the predicted numbers, or of each class which rows got it."""
        model = self.model

        def written(scores: Array) -> Array:
            """Return what is predicted, classes as their places, and the numbers that stand beside it."""
            parts = [model.predicted(scores) if model.classes is None else model.codes(scores)]
            if self.decision:
                parts.append(model.decision(scores))
            if self.proba:
                parts.append(model.probabilities(scores))
            return np.column_stack(parts)

        predicted, *numbers = model.scores(points, engine, written).T
        if model.classes is not None:
            codes, names = predicted.astype(np.intp), model.classes.names
            column = in_arrow(model.classes.values(np.arange(len(names)))).take(in_arrow(codes))
            sums = {name: codes == place for place, name in enumerate(names)}
        elif model.task == "regress":
            column, sums = in_arrow(predicted), {"": predicted}
        else:
            alike = predicted.astype(np.bool_)
            column, sums = in_arrow(alike), {"true": alike, "false": ~alike}
        return dict(zip(self.names, [column, *map(in_arrow, numbers)], strict=True)), sums


class RidgeColumns(PredictionColumns):
    """A column for each target, and on request `TARGET_std`, and then `TARGET_low` and `TARGET_high`.

    Beside a target that is kept, its predictions are called `TARGET_predicted`.
    """

    MODEL = RidgeModel
    ESTIMATOR = "KernelRidge"

    @property
    def warnings(self) -> Iterator[str]:
        """Where intervals hold too few rows, as the rows left out have told."""
        return (one.told("training rows, left out") for one in self.model.uneven if self.interval is not None)

    @property
    def about(self) -> dict[str, Any]:
        """What `kerntest inspect` tells of such models only."""
        model, target = self.model, ", ".join(self.model.targets)
        return {"task": "regress", "target": target, "lambda_": model.lambda_, "intervals": model.spread is not None}

    def refused(self) -> Iterator[Case]:
        """Yield what only machines have, and intervals that were not kept."""
        if self.interval is not None:
            positive("interval", self.interval, below=1.0)
        told = f"{option('proba' if self.proba else 'decision', True)} is for support vector machines, and {self.shown} is a ridge regression"
        ways = f"{option('interval', 0.9)} gives intervals, {option('std', True)} standard deviations"
        yield self.proba or self.decision, told, ways, "usage.no_decision"
        none = f"{self.shown} was fitted with {option('intervals', False)}, and has none"
        yield self.deviates and self.model.spread is None, none, "fit it without that option", "usage.no_intervals"

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        endings = ("_std", "_low", "_high")[: 3 if self.interval is not None else int(self.std)]
        firsts = {target: "_predicted" if target in self.kept else "" for target in self.model.targets}
        return [f"{target}{ending}" for target, first in firsts.items() for ending in (first, *endings)]

    def __call__(self, points: Points, engine: Engine) -> Written:
        """Return the columns, and the predictions of each target."""
        mean = self.model.scores(points, engine)
        found = [mean]
        if self.deviates:
            found.append(self.model.deviations(points, engine))
        if self.interval is not None:
            reach = self.model.reach(self.interval) * found[1]
            found += [mean - reach, mean + reach]
        values = [one[:, place] for place in range(len(self.model.targets)) for one in found]
        columns = dict(zip(self.names, map(in_arrow, values), strict=True))
        return columns, dict(zip(self.model.targets, mean.T, strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class ComponentColumns(ModelColumns):
    """Scores `pc1`, `pc2`, ...; or pre-images, in the columns and units of the data, and `reconstruction_error`.

    On request `residual`, how far each row is from its projection in feature space, squared.
    """

    MODEL: ClassVar[Any] = KpcaModel
    ESTIMATOR = "KernelPCA"
    COMMAND = "transform"
    DONE = "transformed"
    # How the names of scores begin.
    FIRST: ClassVar[str] = "pc"
    components: int | None = None
    reconstruct: bool = False
    residual: bool = False
    # Of canonical correlations, the functions of which side.
    side: str | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What `kerntest inspect` tells of such models only; its intercepts are only their centring."""
        model = self.model
        values, shares = (tuple(one.tolist()) for one in (model.eigenvalues, model.ratios))
        support = None if model.by_axes else model.n_train
        return {"eigenvalues": values, "explained_variance_ratio": shares, "n_support": support, "intercepts": ()}

    def checked(self) -> Self:
        """Refuse what the model does not have; only as many components as were asked for are left."""
        columns = super().checked()
        return columns if self.components is None else replace(columns, model=self.model.first(self.components))

    def refused(self) -> Iterator[Case]:
        """Yield more components than there are; refuse a model without pre-images."""
        asked, there = self.components, self.model.n_components
        told = f"{self.shown} has {counted(there, 'component')}, not {asked:,}" if asked is not None else ""
        yield (
            asked is not None and not 1 <= asked <= there,
            told,
            f"fit it again with more {option('components')}",
            "usage.components",
        )
        has_sides = isinstance(self.model, CcaModel)
        told = f"{self.shown} has no two sides"
        yield self.side is not None and not has_sides, told, f"leave out {option('side', self.side)}", "usage.no_sides"
        if self.reconstruct and not has_sides:
            self.model.preimage_search()

    @property
    def made(self) -> str:
        """What is made of a row."""
        return "pre-image" if self.reconstruct else "score"

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        names = [f"{self.FIRST}{place}" for place in range(1, self.model.n_components + 1)]
        if self.reconstruct:
            names = list(self.encoder.names)
            for one in self.model.constants:
                names.insert(one.place, one.name)
        return names + [ERROR] * self.reconstruct + [RESIDUAL] * self.residual

    def __call__(self, points: Points, engine: Engine) -> Written:
        """Return the columns, and residuals and errors of the rows."""
        sums: dict[str, NDArray[Any]] = {}
        # Whatever overflows shows in the columns.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.residual:
                scores, sums[RESIDUAL] = self.model.residuals(points, engine)
            else:
                scores = self.model.scores(points, engine)
            self._check_finite(scores, *sums.values())
            columns = [*scores.T]
            if self.reconstruct:
                columns, errors = self._preimages(points, scores, engine)
                sums = errors | sums
        columns += [sums[name] for name in (RESIDUAL,) if self.residual]
        return dict(
            zip(self.names, (one if isinstance(one, pa.Array) else in_arrow(one) for one in columns), strict=True)
        ), sums

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
        return [*(_as_written(one, kinds.get(name, "number")) for name, one in images.items()), errors], sums

    def told(self, sums: Mapping[str, Sums]) -> dict[str, Any]:
        """Return means of residuals and errors."""
        means = {name: one.total / one.n for name, one in sums.items() if one.n}
        off = {name.removeprefix(OF): mean for name, mean in means.items() if name.startswith(OF)}
        categories = [one.name for one in self.encoder.categories]
        return {
            "components": len(self.model.expansion.intercepts),
            "residual": means.get(RESIDUAL),
            "reconstructed": self.reconstruct,
            "reconstruction_error": math.sqrt(means[ERROR]) if ERROR in means else None,
            "by_column": tuple(
                ColumnError(name, changed=mean) if name in categories else ColumnError(name, rmse=math.sqrt(mean))
                for name, mean in off.items()
            ),
            "not_converged": int(sums.get(UNSETTLED, Sums()).total),
        }

    def _check_finite(self, *numbers: Array) -> None:
        if not all(np.isfinite(one).all() for one in numbers):
            raise UndecidedError(
                f"{self.shown} gives numbers that are too large for these rows",
                hint=f"look at the rows with {either('`kerntest inspect`', 'inspect_table()')}; or train the model again",
                code="undecided.overflow",
            )


class SourceColumns(ComponentColumns):
    """Sources `s1`, `s2`, ...; or what they mix to, in the columns and units of the data."""

    MODEL = UnmixModel
    ESTIMATOR = "KernelICA"
    FIRST = "s"

    @property
    def about(self) -> dict[str, Any]:
        """What `kerntest inspect` tells of such models only: by how much columns change with the sources."""
        spread = np.array([one.spread for one in self.encoder.numeric])
        mixing = (spread[:, None] * self.model.mixing).tolist()
        kernel = str(self.model.kernel)
        return {"mixing": tuple(map(tuple, mixing)), "n_support": None, "intercepts": (), "kernel": kernel}


@dataclass(frozen=True, eq=False, kw_only=True)
class VariateColumns(ComponentColumns):
    """Canonical variates `x1`, `x2`, ... and `y1`, `y2`, ...; or those of one side, which need no columns of the other."""

    MODEL = CcaModel
    ESTIMATOR = "KernelCCA"

    @property
    def about(self) -> dict[str, Any]:
        """What `kerntest inspect` tells of such models only."""
        model = self.model
        return {
            "lambda_": model.lambda_,
            "correlations": tuple(model.correlations.tolist()),
            "correlations_left_out": model.left_out,
            "columns_x": model.columns_of("x"),
            "columns_y": model.columns_of("y"),
            "kernel": "; ".join(map(str, model.kernels)),
            "n_support": None,
            "intercepts": (),
        }

    def checked(self) -> Self:
        """Refuse what the model does not have; of one side what is asked of it is left."""
        columns = super().checked()
        return columns if self.side is None else replace(columns, model=columns.model.one_side(self.side))

    def refused(self) -> Iterator[Case]:
        """Yield what only components have."""
        wrong = option("reconstruct" if self.reconstruct else "residual", True)
        told = f"{self.shown} holds canonical correlations: {wrong} is for components"
        yield self.reconstruct or self.residual, told, "leave it out", "usage.no_preimages"
        yield from super().refused()

    @property
    def names(self) -> list[str]:
        """All columns, in their order."""
        sides = ("x", "y") if self.side is None else (self.side,)
        count = len(self.model.expansion.intercepts)
        return [f"{side}{place}" for side in sides for place in range(1, count + 1)]


KINDS: dict[str, type[ModelColumns]] = {
    one.MODEL.KIND: one for one in (SvmColumns, RidgeColumns, ComponentColumns, SourceColumns, VariateColumns)
}


def columns_to_write(path: str | PathLike[str], command: str, asked: dict[str, Any]) -> ModelColumns:
    """Return what a command writes with the model of a file."""
    file = read_model(path)
    kind = KINDS.get(file.kind)
    if kind is None or command != kind.COMMAND:
        ways = {
            "predict": ("predict_file", "predicts with it"),
            "transform": ("transform_file", "projects rows with it"),
        }
        way = "inspect" if kind is None else kind.COMMAND
        called, does = ways.get(way, ("inspect_model", "says what it holds"))
        raise ModelError(
            f"{file.name} holds a model of kind {file.kind!r}, which {either(f'`kerntest {command}`', ways[command][0])} cannot apply",
            hint=either(f"`kerntest {way} {file.name}{' DATA' if way in ways else ''}`", called) + f" {does}",
            code="model.kind",
            where={"file": file.name},
        )
    return kind(model=model_of(file, kind.MODEL), shown=file.name, **asked).checked()


def _as_written(values: NDArray[Any], kind: str) -> Any:
    """Return a column as it stood in the data: numbers, truth values, texts, points in time."""
    if kind == "date":
        return in_arrow(np.round(values * MICROSECONDS_A_DAY).astype(np.int64)).cast(pa.timestamp("us"))
    if kind == "boolean":
        return pa.array([None if value is None else value == "true" for value in values.tolist()], pa.bool_())
    return pa.array(values.tolist(), pa.string()) if kind == "text" else in_arrow(values.astype(np.float64))


@explained
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
    kernel = file.manifest.get("kernel")
    told: dict[str, Any] = {"kernel": kernel if isinstance(kernel, str) else None}
    # A kind that a later version of this format adds is still told by name.
    if (kind := KINDS.get(file.kind)) is not None:
        model = model_of(file, kind.MODEL)
        encoder, features, expansion = model.encoder, model.features, model.expansion
        told |= {"n_support": len(expansion.coefficients), "intercepts": tuple(expansion.intercepts.tolist())}
        told |= kind(model=model, shown=file.name).about
        if features is not None:
            told |= {"features": f"{features.kind}:{features.size}", "n_support": None}
        if encoder is None:
            told["kernel"] = "precomputed"
        else:
            ends = {one.column: {"low": one.low, "high": one.high} for one in model.ranges}
            columns = (
                {name: getattr(spec, name) for name in spec.stored_fields()} | ends.get(spec.name, {})
                for spec in encoder.columns
            )
            told |= {
                "importance": model.importance,
                "scale": encoder.scale,
                "columns": tuple(ModelColumn(**one) for one in columns),
            }
    return ModelReport(
        name=file.name,
        kind=file.kind,
        format_version=int(file.manifest["format_version"]),
        kerntest_version=str(file.manifest["kerntest_version"]),
        bytes=size,
        sha256=digest.hexdigest(),
        **told,
    )
