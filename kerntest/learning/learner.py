"""The one way of every learner: read, split, choose, fit, judge, draw, save; and what its Python classes share."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cache, wraps
from importlib.metadata import version
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar

import kerntest
from kerntest.data.formats.dialect import CsvOptions
from kerntest.engines.setting import prepare_fit
from kerntest.errors import UsageError, warn_of
from kerntest.learning.cross_validation import train_test_split
from kerntest.learning.estimator import FitT, LearnerOptions, as_rows, training_matrix
from kerntest.learning.rows.leakage import guarded, kept_together, told_of_shared
from kerntest.learning.rows.targets import Classes, checked_weights, target_of
from kerntest.learning.rows.training_rows import (
    TrainingOptions,
    TrainingRows,
    read_labelled,
    read_like,
    rows_like,
)
from kerntest.learning.saved_models import save_model
from kerntest.report.figures import picture_kind
from kerntest.report.results.record import InputRecord, Provenance
from kerntest.report.write import check_writable, write_file, written_together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Unpack

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Column
    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Codes
    from kerntest.learning.rows.training_rows import Labelled, MissingPolicy

LIBRARIES = ("numpy", "scipy", "pyarrow")


class Warned(Protocol):
    """What every judgement and every result has."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before trusting the model."""


JudgedT = TypeVar("JudgedT", bound=Warned)
WarnedT = TypeVar("WarnedT", bound=Warned)
ResultT = TypeVar("ResultT")
_Parameters = ParamSpec("_Parameters")


class Learner(ABC, Generic[FitT, JudgedT, ResultT]):
    """What a learner does: `rows`, `fit`, `judge`, `arrays`, `result`; and what is read, planned and drawn for it."""

    COMMAND: ClassVar[str]
    # Its Python class.
    ESTIMATOR: ClassVar[str]
    # Whether other rows than those that are learned from can judge it.
    JUDGED: ClassVar[bool] = True
    options: LearnerOptions
    # Whether the target is one of classes.
    classifies: bool = False

    @abstractmethod
    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return a table with its targets."""

    @abstractmethod
    def rows(self, labelled: Labelled) -> TrainingRows:
        """Return the rows of a table as they are learned from, with their kernel."""

    def target_columns(self, y: Any) -> tuple[str, ...]:
        """Return the columns of X that y names, where it names some."""
        del y
        return ()

    def target_values(self, y: Any, n: int) -> tuple[Column, ...]:
        """Return the targets of n rows that y holds."""
        del y, n
        return ()

    def with_targets(self, rows: TrainingRows, targets: Sequence[Column], table: str) -> TrainingRows:
        """Return rows with their targets."""
        del targets, table
        return rows

    def handed_over(self, X: Any, y: Any, weights: Any = None) -> TrainingRows:
        """Return the rows of what Python callers hand over: a table, or a matrix of kernel values, targets and weights."""
        if self.options.precomputed:
            matrix = training_matrix(X)
            rows = self.with_targets(TrainingRows(matrix), self.target_values(y, len(matrix)), "y")
            if weights is None:
                return rows
            return replace(rows, weights=checked_weights(_weights(weights, len(matrix)), "K", positive=True))
        names = self.target_columns(y)
        labelled = read_labelled(as_rows(X), names, TrainingOptions(), name="X")
        if not names:
            labelled = replace(labelled, targets=self.target_values(y, labelled.n))
        if weights is not None:
            labelled = replace(labelled, beside=(_weights(weights, labelled.n),))
        if self.JUDGED:
            labelled = kept_together(labelled)
        rows = self.rows(labelled)
        return replace(rows, warnings=(*labelled.warnings, *rows.warnings))

    @abstractmethod
    def cost(self, rows: TrainingRows, engine: Engine) -> tuple[str, str, float, dict[str, float]]:
        """Return how it is solved in a word and in a sentence, the bytes that are held then, and operations by their kind."""

    @abstractmethod
    def fit(self, rows: TrainingRows, engine: Engine, progress: Progress | None = None) -> FitT:
        """Return what the options find."""

    @abstractmethod
    def judge(self, rows: TrainingRows, fit: FitT, test: TrainingRows | None, engine: Engine) -> JudgedT:
        """Return how good a fit is, on the rows it has learned from and on others."""

    def arrays(self, fit: FitT) -> Any:
        """Return what a model file keeps."""
        return fit.model

    @abstractmethod
    def result(self, judged: JudgedT, learned: Labelled, known: dict[str, Any]) -> ResultT:
        """Return the record of a fit; `known` are its fields that every learner has."""

    def rule(self, rows: TrainingRows) -> str:
        """Return how the bandwidths were chosen, in words."""
        return "" if rows.chosen is None else rows.chosen.rule

    @abstractmethod
    def picture(self, result: ResultT, judged: JudgedT, learned: Labelled, kind: str, engine: Engine) -> bytes:
        """Return a picture as "png", "svg" or "pdf"."""


def _weights(values: Any, n: int) -> Column:
    return target_of(values, n, name="sample_weight")


def train(
    learner: Learner[FitT, JudgedT, ResultT],
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
    reading = TrainingOptions(columns, exclude, categorical, missing, CsvOptions.of(**csv), cluster)
    if learner.options.precomputed:
        raise UsageError(
            "a precomputed matrix has no columns to read from a table",
            hint=f"use kerntest.{learner.ESTIMATOR}(kernel='precomputed') from Python",
            code="usage.precomputed",
        )
    if test is not None and test_fraction is not None:
        raise UsageError(
            "--test and --test-fraction contradict each other", hint="give one of them", code="usage.contradiction"
        )
    if output is not None:
        check_writable(os.fspath(output), new=not force)
    drawn_as = ""
    if plot is not None:
        drawn_as = picture_kind(plot)
        check_writable(os.fspath(plot))
    engine = learner.options.engine
    labelled = learner.read(data, reading)
    tested, inputs = None, [_input_of(labelled)]
    if learner.JUDGED:
        labelled = guarded(labelled, by_class=learner.classifies)
    learned = labelled
    if test_fraction is not None:
        drawn = train_test_split(
            _classes(labelled) if learner.classifies else None,
            labelled.n,
            test_fraction,
            learner.options.seed,
            labelled.clusters,
        )
        # What was found in the table is told once.
        learned, tested = labelled.take(drawn[0]), replace(labelled.take(drawn[1]), warnings=())
    elif test is not None:
        tested = told_of_shared(labelled, read_like(test, labelled, reading))
        inputs.append(_input_of(tested))
    rows = learner.rows(learned)
    width = len(rows.encoder.columns) if rows.encoder else 1
    method, step, held, operations = learner.cost(rows, engine)
    prepare_fit(
        learner.COMMAND, len(rows), width, method=method, step=step, held=held, operations=operations, engine=engine
    )
    fit = learner.fit(rows, engine, progress)
    held_out = None if tested is None else rows_like(tested, rows)
    judged = learner.judge(rows, fit, held_out, engine)
    found = (labelled, rows, fit, *(() if held_out is None else (held_out,)), judged)
    result = learner.result(
        judged,
        learned,
        {
            "schema": f"kerntest.{learner.COMMAND}/1",
            "command": learner.COMMAND,
            "n_train": len(rows),
            "n_test": 0 if held_out is None else len(held_out),
            "judged_on": "train" if held_out is None else "test",
            "features": learner.options.features,
            "model": None if output is None else os.fspath(output),
            "columns": rows.columns,
            "columns_left_out": rows.left_out,
            "warnings": tuple(warning for one in found for warning in one.warnings),
            "provenance": _provenance(learner, rows, tuple(inputs), engine, started),
        },
    )
    picture = None if plot is None else learner.picture(result, judged, learned, drawn_as, engine)
    with written_together():
        if output is not None:
            save_model(output, learner.arrays(fit), force=force)
        if plot is not None and picture is not None:
            write_file(os.fspath(plot), picture)
    return result


def trains(
    options: type[LearnerOptions], *without: str
) -> Callable[[Callable[_Parameters, WarnedT]], Callable[_Parameters, WarnedT]]:
    """Let a function take the options of a learner and those of `train`, show them in its signature, and warn of its result."""
    *common, csv = [
        one for one in signature(train).parameters.values() if one.kind is not Parameter.POSITIONAL_OR_KEYWORD
    ]
    common += [one.replace(kind=Parameter.KEYWORD_ONLY) for one in signature(options).parameters.values()]

    def decorated(function: Callable[_Parameters, WarnedT]) -> Callable[_Parameters, WarnedT]:
        *own, _ = signature(function).parameters.values()

        @wraps(function)
        def told(*args: _Parameters.args, **words: _Parameters.kwargs) -> WarnedT:
            for name in words.keys() & set(without):
                raise TypeError(f"unexpected keyword argument {name!r}")
            result = function(*args, **words)
            warn_of(result.warnings)
            return result

        vars(told)["__signature__"] = Signature([*own, *(one for one in common if one.name not in without), csv])
        return told

    return decorated


def _classes(labelled: Labelled) -> Codes:
    """Return the class of each row."""
    target, name = labelled.targets[0], labelled.read.name
    return Classes.of(target, name).codes(target, name)


def _input_of(labelled: Labelled) -> InputRecord:
    """Return what was read."""
    read = labelled.read
    return InputRecord(
        read.name,
        read.format,
        read.n_rows,
        labelled.n,
        read.sha256,
        read.delimiter,
        read.compression,
        len(read.files) or None,
    )


def _provenance(
    learner: Learner[FitT, JudgedT, ResultT],
    rows: TrainingRows,
    inputs: tuple[InputRecord, ...],
    engine: Engine,
    started: float,
) -> Provenance:
    """Return what a model was fitted to, and with what."""
    options = learner.options
    return Provenance(
        version=kerntest.__version__,
        seed=options.seed,
        inputs=inputs,
        kernel=str(options.kernel),
        bandwidth=learner.rule(rows),
        scale=options.scale,
        dtype=engine.dtype,
        threads=engine.threads,
        libraries=_versions(),
        seconds=time.perf_counter() - started,
        engine=engine.name,
    )


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}
