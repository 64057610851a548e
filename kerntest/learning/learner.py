"""What every learner is: its options, its Python class, and the one way: read, split, choose, fit, judge, draw, save."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, ParamSpec, Self, TypeVar, get_args

import numpy as np

import kerntest
from kerntest.data.formats.dialect import CsvOptions
from kerntest.engines.engine import engine_of
from kerntest.errors import (
    UsageError,
    arguments_of,
    counted,
    one_of,
    option,
    positive,
    shown_argument,
    warn_of,
    whole_number,
)
from kerntest.learning.cross_validation import train_test_split
from kerntest.learning.fit_pictures import importance_panels
from kerntest.learning.importance import permutation_importance
from kerntest.learning.intervals import told_of_few_clusters
from kerntest.learning.model_file import save_model
from kerntest.learning.rows.encoding import Scale
from kerntest.learning.rows.leakage import guarded, told_of_shared, told_of_time
from kerntest.learning.rows.ranges import ColumnRange, ranges_of, values_outside, vanishes
from kerntest.learning.rows.targets import Classes, checked_weights
from kerntest.learning.rows.training_rows import (
    TrainingOptions,
    TrainingRows,
    check_bandwidth,
    check_kernel,
    encoded_rows,
    read_like,
    rows_like,
)
from kerntest.learning.work_of_fits import Cost, prepare
from kerntest.matrices.expansion import Expansion, GivenExpansion, expanded
from kerntest.matrices.factor import MOST_WORK, FeatureMap, as_points, feature_error, parse_features
from kerntest.report.panels import check_picture, side_by_side, write_picture
from kerntest.report.results.learning_record import PredictorResult
from kerntest.report.results.record import InputRecord, Provenance, library_versions
from kerntest.report.summaries.words import told_of_work
from kerntest.report.write import check_model_name, check_writable, written_together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.missing import MissingPolicy
    from kerntest.data.table import Column
    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import Labelled
    from kerntest.report.panels import Panel
    from kerntest.report.results.application_record import OutsideValues
    from kerntest.report.results.learning_record import Importance


# A fit has what is saved as `model`; it and a result have `warnings`.
FitT = TypeVar("FitT", bound=Any)
ModelT = TypeVar("ModelT", bound="FittedModel")
ResultT = TypeVar("ResultT", bound=Any)
_Parameters = ParamSpec("_Parameters")


# What insists on kernel matrices, however much work they are; and how many landmarks stand for them at least.
NO_FEATURES = "none"
FEWEST_LANDMARKS = 200


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
    unknown: Literal["error", "ignore"] = "error"
    # What else than a number the bandwidth may be; the first is the default.
    BANDWIDTHS: ClassVar[tuple[str, ...]] = ("median",)
    # The option that tries several bandwidths.
    SEARCH: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        engine_of(self.threads)
        one_of("scale", self.scale, get_args(Scale))
        one_of("unknown", self.unknown, ("error", "ignore"))
        whole_number("seed", self.seed, at_least=0)
        check_kernel(self.kernel)
        if not isinstance(self.bandwidth, str) or self.bandwidth not in self.BANDWIDTHS:
            check_bandwidth(
                self.bandwidth, self.BANDWIDTHS, f"{option(self.SEARCH, True)} tries several" if self.SEARCH else ""
            )
        if self.asked_features is not None:
            parse_features(self.asked_features)
        self.refuse(self.precomputed and self.asked_features, "a precomputed kernel and features")
        self.refuse(self.precomputed and self.bandwidth != self.BANDWIDTHS[0], "a precomputed kernel and a bandwidth")

    @property
    def engine(self) -> Engine:
        """Where is computed: what `compute_on` set, or so many threads."""
        return engine_of(self.threads)

    @property
    def asked_features(self) -> str | None:
        """The features that were asked for, if any were; "none" insists on kernel matrices."""
        return None if self.features == NO_FEATURES else self.features

    def with_features(self, features: str | None) -> Self:
        """Return the options with features, or with none."""
        own = copy(self)
        own.features = features
        return own

    @property
    def precomputed(self) -> bool:
        """Whether rows are rows of a matrix of kernel values."""
        return isinstance(self.kernel, str) and self.kernel.strip().lower() == "precomputed"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as scikit-learn asks for them."""
        del deep
        return {name: vars(self)[name] for name in signature(type(self)).parameters}

    def stored(self) -> dict[str, Any]:
        """Return the options as a model file keeps them: all but how new rows are worked on."""
        given = {name: value for name, value in self.get_params().items() if name not in {"threads", "unknown"}}
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        return plain | {"kernel": str(self.kernel)}

    @staticmethod
    def refuse(wrong: object, what: str, hint: str = "give one of them") -> None:
        """Refuse two options that contradict each other, if they do."""
        if wrong:
            raise UsageError(f"{what} contradict each other", hint=hint, code="usage.contradiction")

    @classmethod
    def taken_from(cls, words: dict[str, Any]) -> Self:
        """Return the options among keyword arguments, which leave them."""
        return cls(**{name: words.pop(name) for name in signature(cls).parameters if name in words})


def sized(
    name: str, value: float, limits: tuple[float, float], hint: str | None = None, code: str | None = None
) -> None:
    """Refuse what is no positive number, or not between two limits: what the solvers square and divide by."""
    positive(name, value, code=code)
    if not limits[0] <= value <= limits[1]:
        told = f"{name} must be between {limits[0]:g} and {limits[1]:g} in size, not {value:g}"
        raise UsageError(told, hint=hint, code=code or f"usage.{name}")


def values_for_name(target: object, estimator: str) -> UsageError:
    """Return the error for a target that is handed over as values where the name of a column is meant."""
    told = f"target must be the name of a column of train, not {shown_argument(target)}"
    return UsageError(told, hint=f"kerntest.{estimator}().fit(X, y) takes values", code="usage.target")


def first_flaw(cases: dict[str, Any]) -> str | None:
    """Return the first of some flaws that a model has, if it has one: a stranger may have written it."""
    return next((flaw for flaw, found in cases.items() if found), None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FittedModel:
    """What every learner keeps: functions of rows, and what it knows of their columns.

    A precomputed matrix has `n_train` columns and no encoder.
    """

    encoder: Encoder | None
    expansion: Expansion | GivenExpansion
    n_train: int
    features: FeatureMap | None = None
    importance: Importance | None = None
    ranges: tuple[ColumnRange, ...] = ()
    # What its values do where the kernel goes to 0.
    FAR_OFF: ClassVar[str] = "the farther off, the more alike are scores"
    # Whether it predicts, which it cannot where no kernel reaches.
    PREDICTS: ClassVar[bool] = False
    # What a model file calls it, and messages do.
    KIND: ClassVar[str]
    CALLED: ClassVar[str]

    @property
    def kernel(self) -> Kernel | None:
        """With every bandwidth chosen; None for a precomputed matrix."""
        return getattr(self.features or self.expansion, "kernel", None)

    @property
    def kernels(self) -> tuple[Kernel | None, ...]:
        """All of them."""
        return (self.kernel,)

    @property
    def names_in(self) -> tuple[str, ...] | None:
        """The columns that an estimator is handed; None for a precomputed matrix."""
        return None if self.encoder is None else self.encoder.names

    @classmethod
    def of(cls, rows: TrainingRows, **found: Any) -> Self:
        """Return what was found of some rows."""
        return cls(encoder=rows.encoder, n_train=len(rows), **found)

    def with_ranges(self, rows: TrainingRows) -> Self:
        """Return it with what it knows of the ranges of the columns of its training rows."""
        return self if rows.encoder is None else replace(self, ranges=ranges_of(rows.encoder, as_points(rows.points)))

    def outside(self, points: Points) -> tuple[tuple[OutsideValues, ...], int]:
        """Return which values of n rows are far beyond those of the training rows, and how many rows hold one."""
        kernel = self.kernel if self.PREDICTS else None
        return values_outside(self.ranges, self.encoder, points, kernel) if self.encoder else ((), 0)

    @property
    def far_off(self) -> str:
        """What becomes of rows with such values."""
        encoder = self.encoder
        local = encoder and all(one is not None and vanishes(one, encoder) for one in self.kernels)
        return self.FAR_OFF if local else "they are extrapolated"

    def scores(self, points: Points | Array, engine: Engine) -> Array:
        """Return the functions at n rows (points, or rows of a precomputed matrix), shape (n, J)."""
        return expanded(self.expansion, self.features, points, engine)

    def losses(self, points: Points, truth: NDArray[Any], engine: Engine) -> Array:
        """Return of each of n rows how wrong its prediction is: 1 for a wrong class, else its squared error."""
        return np.asarray(np.square(self.scores(points, engine) - truth).mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Judgement(Generic[ResultT]):
    """How good a fit is: fields of its record, warnings, and the panels of a picture with their title, of the record."""

    fields: dict[str, Any]
    drawn: Callable[[ResultT], tuple[Sequence[Panel], str]]
    warnings: Sequence[str] = ()


class Learner(ABC, Generic[FitT, ResultT]):
    """What a learner does: `read`, `rows`, `fit`, `judge`; and what is planned for it."""

    COMMAND: ClassVar[str]
    # Its Python class, and its record.
    ESTIMATOR: ClassVar[str]
    RESULT: ClassVar[Any]
    # Whether other rows than those that are learned from can judge it.
    JUDGED: ClassVar[bool] = True
    # Whether it learns from numbers alone.
    NUMBERS: ClassVar[bool] = False
    # Whether what stands beside the columns are weights of rows.
    WEIGHTED: ClassVar[bool] = False
    # Where features take the place of the kernel matrices of n rows they have (w / n)^(1 / p) landmarks: w, p, and the most.
    LANDMARKS: ClassVar[tuple[float, int, int]] = 12e9, 2, 1000
    options: LearnerOptions
    # Whether it has a target, and whether that is one of classes.
    supervised: bool = True
    classifies: bool = False

    @property
    def splits(self) -> bool:
        """Whether a fit itself holds rows out."""
        return self.JUDGED

    @abstractmethod
    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return a table with its targets."""

    def rows(self, labelled: Labelled) -> TrainingRows:
        """Return the rows of a table as they are learned from, with their kernel, and with weights those that have one."""
        name, told, weights = labelled.read.name, tuple[str, ...](), None
        if self.WEIGHTED and labelled.beside:
            weights = checked_weights(labelled.beside[0], name)
            kept = np.flatnonzero(weights)
            if lost := len(weights) - len(kept):
                told = (f"{name}: {counted(lost, 'row')} of weight 0 left out",)
                labelled, weights = labelled.take(kept), weights[kept]
        rows = self.with_targets(encoded_rows(labelled, self.options), labelled.targets, name)
        return replace(rows, weights=weights, warnings=(*told, *rows.warnings))

    def with_targets(self, rows: TrainingRows, targets: Sequence[Column], table: str) -> TrainingRows:
        """Return rows with their targets."""
        del targets, table
        return rows

    @abstractmethod
    def cost(self, rows: TrainingRows) -> Cost:
        """Return what a fit takes."""

    @abstractmethod
    def fit(self, rows: TrainingRows, progress: Progress | None = None) -> FitT:
        """Return what the options find."""

    @abstractmethod
    def judge(self, rows: TrainingRows, fit: FitT, test: TrainingRows | None, learned: Labelled) -> Judgement[ResultT]:
        """Return how good a fit is, on the rows it has learned from (`learned` is their table) and on others."""

    def work(self, rows: TrainingRows) -> float:
        """Return the work of the kernel matrices of rows, in nanoseconds on one processor; 0 where no features are for them."""
        del rows
        return 0.0

    def settle(self, rows: TrainingRows) -> tuple[str, ...]:
        """Take features where kernel matrices are too much work and nobody says otherwise; return why."""
        options, n, definite = self.options, len(rows), rows.kernel is not None and rows.kernel.positive_definite
        if options.features is not None or not definite or (work := self.work(rows)) <= MOST_WORK:
            self.options = options.with_features(options.asked_features)
            return ()
        budget, power, most = self.LANDMARKS
        count = float(f"{(budget / n) ** (1.0 / power):.1g}")
        self.options = options.with_features(f"nystroem:{min(max(count, FEWEST_LANDMARKS), most):.0f}")
        return (told_of_work(f"{n:,} rows, which", work / MOST_WORK, option("features", NO_FEATURES)),)

    def fitted(self, fit: FitT) -> LearnerOptions:
        """Return the options that fit the same model without a search."""
        del fit
        return self.options

    def rule(self, rows: TrainingRows) -> str:
        """Return how the bandwidths were chosen, in words."""
        return "" if rows.chosen is None else rows.chosen.rule


def train(
    learner: Learner[FitT, ResultT],
    data: Any,
    *,
    test: Any = None,
    test_fraction: float | None = None,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    plot: str | PathLike[str] | None = None,
    columns: Patterns = None,
    exclude: Patterns = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    cluster: str | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> ResultT:
    """Return the record of a learner that was fitted to a table, judged, and saved."""
    started = time.perf_counter()
    options = learner.options
    read_as = CsvOptions.of(**csv, seed=options.seed)
    reading = TrainingOptions(columns, exclude, categorical, missing, read_as, cluster, learner.NUMBERS)
    if options.precomputed:
        told = "a precomputed matrix has no columns to read from a table"
        hint = f"use kerntest.{learner.ESTIMATOR}(kernel='precomputed') from Python"
        raise UsageError(told, hint=hint, code="usage.precomputed")
    options.refuse(test is not None and test_fraction is not None, f"{option('test')} and {option('test-fraction')}")
    options.refuse(
        options.unknown != "error" and test is None,
        f"{option('unknown', 'ignore')} and no {option('test')}",
        "leave it out, or add rows to judge by",
    )
    if output is not None:
        check_model_name(output)
        check_writable(os.fspath(output), new=not force)
    if plot is not None:
        check_picture(plot)
    engine, labelled = options.engine, learner.read(data, reading)
    if learner.JUDGED:
        labelled = guarded(labelled, by_class=learner.classifies)
    others = None if test is None else told_of_shared(labelled, read_like(test, labelled, reading))
    labelled = replace(
        labelled, warnings=(*labelled.warnings, *told_of_time(labelled, others, by_class=learner.classifies))
    )
    learned, tested = labelled, others
    if test_fraction is not None:
        learned, tested = _parted(labelled, test_fraction, options.seed, by_class=learner.classifies)
    inputs = [InputRecord.of(one.read, one.n) for one in (labelled, others) if one is not None]
    rows = learner.rows(learned)
    # Which rows have the only ones of a category is for chance to say where they are drawn here.
    unknown = options.unknown if test_fraction is None else "ignore"
    held_out = None if tested is None else rows_like(tested, rows, unknown)
    why = learner.settle(rows)
    prepare(learner, rows, engine, why)
    fit = learner.fit(rows, progress)
    model: FittedModel = fit.model.with_ranges(rows)
    odd = () if held_out is None else model.outside(as_points(held_out.points))[0]
    name = f"test rows of {(tested or learned).read.name}"
    far = [one.told(name, model.far_off) for one in odd if one.tells(len(held_out or ()))]
    judged = learner.judge(rows, fit, held_out, learned)
    found = (labelled, rows, fit, *(() if held_out is None else (held_out,)), judged)
    kernel, features, together = model.kernel, model.features, dict[str, Any]()
    if learner.JUDGED:
        model, together = _weighed(learner, model, held_out, rows.left_out)
        far += told_of_few_clusters(held_out.clusters) if held_out is not None and learner.supervised else []
        # The column whose rows stay together, and how many sets of rows do.
        together["cluster"] = None if labelled.cluster is None else labelled.cluster.name
        together["n_clusters"] = None if rows.clusters is None else len(np.unique(rows.clusters))
    result: ResultT = learner.RESULT(
        **judged.fields,
        **together,
        schema=f"kerntest.{learner.COMMAND}/1",
        command=learner.COMMAND,
        n_train=len(rows),
        n_test=0 if held_out is None else len(held_out),
        judged_on="train" if held_out is None else "test",
        kernel="; ".join(map(str, model.kernels)),
        bandwidth=getattr(kernel, "bandwidth", None),
        gamma=getattr(kernel, "gamma", None),
        features=learner.options.features,
        feature_error=features and feature_error(features, as_points(rows.points), engine, options.seed),
        model=None if output is None else os.fspath(output),
        columns=rows.columns,
        columns_left_out=rows.left_out,
        warnings=(*why, *(warning for one in found for warning in one.warnings), *far),
        provenance=Provenance(
            version=kerntest.__version__,
            seed=options.seed,
            inputs=tuple(inputs),
            kernel=str(options.kernel),
            bandwidth=learner.rule(rows),
            scale=options.scale,
            dtype=engine.dtype,
            threads=engine.threads,
            libraries=library_versions(),
            seconds=time.perf_counter() - started,
            engine=engine.name,
        ),
    )
    with written_together():
        if output is not None:
            save_model(output, model, learner.fitted(fit).stored(), force=force)
        if plot is not None:
            drawn, title = judged.drawn(result)
            write_picture(plot, side_by_side([*drawn, *importance_panels(model.importance)], title))
    return result


def _weighed(
    learner: Learner[Any, Any], model: FittedModel, held_out: TrainingRows | None, unused: Sequence[str]
) -> tuple[FittedModel, dict[str, Any]]:
    """Return a model that knows what its columns are worth on rows held out, if there are any with something to predict.

    And the field of the record of one that predicts.
    """
    if not issubclass(learner.RESULT, PredictorResult):
        return model, {}
    if held_out is None or not learner.supervised:
        return model, {"importance": None, "n_test_clusters": None}
    truth, options = held_out.codes if learner.classifies else held_out.targets, learner.options
    points, engine = as_points(held_out.points), options.engine
    clusters = held_out.clusters
    told: Any = {"seed": options.seed, "unused": unused, "clusters": clusters}
    balanced = learner.classifies and getattr(options, "weights", None) is not None
    found = permutation_importance(model, points, truth, engine, balanced=balanced, **told)
    count = None if clusters is None else len(np.unique(clusters))
    return replace(model, importance=found), {"importance": found, "n_test_clusters": count}


def _parted(labelled: Labelled, fraction: float, seed: int, *, by_class: bool) -> tuple[Labelled, Labelled]:
    """Return the rows to learn from and those held out."""
    codes, name = None, labelled.read.name
    if by_class:
        codes = Classes.of(labelled.targets[0], name).codes(labelled.targets[0], name)
    own, others = train_test_split(codes, labelled.n, fraction, seed, labelled.clusters)
    # What was found in the table is told once.
    return labelled.take(own), replace(labelled.take(others), warnings=())


def trains(
    options: type[LearnerOptions], *without: str
) -> Callable[[Callable[_Parameters, ResultT]], Callable[_Parameters, ResultT]]:
    """Let a function take the options of a learner and those of `train`, show them in its signature, and warn of its result."""
    # Models are applied by others; what is unknown may be met in a file of rows to judge by.
    hidden = {*without, *({"unknown"} if "test" in without else ())}
    *common, csv = [
        one for one in signature(train).parameters.values() if one.kind is not Parameter.POSITIONAL_OR_KEYWORD
    ]
    common += [one.replace(kind=Parameter.KEYWORD_ONLY) for one in signature(options).parameters.values()]

    def decorated(function: Callable[_Parameters, ResultT]) -> Callable[_Parameters, ResultT]:
        *own, _ = signature(function).parameters.values()

        @wraps(function)
        def told(*args: _Parameters.args, **words: _Parameters.kwargs) -> ResultT:
            for name in words.keys() & hidden:
                raise TypeError(f"unexpected keyword argument {name!r}")
            with arguments_of(told, args, words):
                result = function(*args, **words)
            warn_of(result.warnings)
            return result

        vars(told)["__signature__"] = Signature([*own, *(one for one in common if one.name not in hidden), csv])
        return told

    return decorated
