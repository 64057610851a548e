"""A model applied to a table of any size: `predict_file`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kerntest.data.blocks import open_blocks
from kerntest.data.checks import one_of
from kerntest.engines.setting import engine_of
from kerntest.errors import ModelError, UsageError, telling
from kerntest.learning.model_file import read_model
from kerntest.learning.predicted_columns import predicted_columns
from kerntest.learning.predicting import Predicting, Range, Told, Wanted
from kerntest.learning.prediction_output import file_format, open_sink
from kerntest.learning.ridge_model import RidgeModel
from kerntest.learning.ridge_prediction import RidgePredictions, check_wanted, output_names
from kerntest.learning.rowwise import Found, check_columns, kept_columns
from kerntest.learning.saved_models import model_of
from kerntest.learning.svm_model import SvmModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import BinaryIO, Unpack

    from kerntest.data.csv_options import CsvWords
    from kerntest.data.selection import Patterns
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Points
    from kerntest.learning.encoding import Encoder
    from kerntest.learning.model_file import ModelFile
    from kerntest.learning.rowwise import MissingRule, UnknownRule
    from kerntest.report.prediction_report import PredictionReport


@telling
def predict_file(
    model: str | PathLike[str],
    data: str | PathLike[str],
    *,
    output: str | PathLike[str] | BinaryIO | None = None,
    proba: bool = False,
    decision: bool = False,
    std: bool = False,
    interval: float | None = None,
    keep: Patterns = None,
    missing: MissingRule = "error",
    unknown: UnknownRule = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    block: int | None = None,
    **csv: Unpack[CsvWords],
) -> PredictionReport:
    """Apply a model to the rows of a file, which need not fit into memory.

    Parameters
    ----------
    model : path
        A file that `train_svm`, `train_ridge`, `SVM.save` or `KernelRidge.save` wrote.
    data : path or "-"
        CSV or Parquet, as `read_table` takes it; its columns are found by name, in any order, and others are ignored.
    output : path or binary file
        A .csv or .parquet file, whole or not there at all; or an open file, which gets CSV. None: the standard output.
    proba : bool
        Also the probability of each class, in columns `p:CLASS`, where the model was fitted with probabilities.
    decision : bool
        Also the decision function: `decision`, or `decision:A|B` for each pair of classes (above 0 for B).
    std : bool
        Of a ridge regression, whose predictions have the names of their targets: also the standard deviation of new
        values, in columns `TARGET_std`.
    interval : float, optional
        Of a ridge regression: also the ends of intervals that hold new values with this probability, in columns
        `TARGET_low` and `TARGET_high` after `TARGET_std`.
    keep : str or sequence of str, optional
        Columns of the data to hand through, as in `mmd_test`; of CSV their text. None by default.
    missing : {"error", "drop", "empty"}
        Rows with a missing value: refused, left out, or left without a prediction.
    unknown : {"error", "ignore"}
        Categories that no training row had: refused, or taken as different from every known one.
    threads : int, optional
    progress : callable, optional
    block : int, optional
        Bytes of CSV or rows of Parquet that are handled at a time; the predictions do not depend on it.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    PredictionReport

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    ModelError
        If the model cannot be read, or is one that predicts nothing.
    DataError
        If the data cannot be read or do not fit the model, or the output cannot be written.
    UsageError
        If an option makes no sense, or asks for what the model does not have.

    Notes
    -----
    Pieces of the data are worked on side by side; the workers of a cluster read the row groups of Parquet themselves.
    The rows, their order and their classes are the same on every engine and for every number of threads or workers;
    numbers agree to 1e-10 of their scale.

    Cost: O(rows x support vectors x columns) time; memory for a few blocks, whatever the size of the data. CSV with
    decimal commas and without `decimal="."` is an exception, see `open_blocks`.
    """
    started = time.perf_counter()
    one_of("missing", missing, ("error", "drop", "empty"))
    one_of("unknown", unknown, ("error", "ignore"))
    engine = engine_of(threads)
    shown = os.fspath(model)
    wanted = Wanted(proba, decision, std, interval)
    fitted, taken = _load(read_model(model), shown, wanted)
    if output is not None and not hasattr(output, "write"):
        file_format(os.fspath(output))
    encoder = _encoder(fitted, shown)
    with open_blocks(os.fspath(data), **encoder.csv(csv), block_bytes=block) as reader:
        reader.written = encoder.written
        kept = kept_columns(keep, reader, taken, "predictions")
        check_columns(reader, encoder, shown)
        work = _work(
            fitted,
            encoder=encoder,
            shown=shown,
            kept=tuple(kept),
            missing=missing,
            unknown=unknown,
            made="prediction",
            located=reader.located,
            wanted=wanted,
        )
        engine = work.prepared("predict", reader, engine)
        with open_sink(output) as sink:
            applied = work.run(reader, engine, sink, progress)
        return work.report(applied, reader, output, started)


def _load(file: ModelFile, shown: str, wanted: Wanted) -> tuple[SvmModel | RidgeModel, Callable[[str], bool]]:
    """Return the model of a file that can do what is asked for, and which names of columns its predictions take."""
    if file.kind == "ridge":
        regression = model_of(file, RidgeModel)
        check_wanted(regression, wanted, shown)
        return regression, set(output_names(regression, wanted)).__contains__
    if file.kind != "svm":
        projects = file.kind == "kpca"
        raise ModelError(
            f"{shown} holds a model of kind {file.kind!r}, which this kerntest cannot predict with",
            hint=f"`kerntest {f'transform {shown} DATA' if projects else f'inspect {shown}'}` "
            f"{'projects rows with it' if projects else 'says what it holds'}",
            code="model.kind",
            where={"file": shown},
        )
    fitted = model_of(file, SvmModel)
    if wanted.proba and not fitted.sigmoids:
        raise UsageError(
            f"{shown} has no probabilities",
            hint="fit it with `kerntest svm ... --probability`"
            if fitted.task == "classify"
            else "they are for models of classes; --decision gives the decision function",
            code="usage.no_probabilities",
        )
    if wanted.std or wanted.interval is not None:
        raise UsageError(
            f"{shown} is a support vector machine, which has no standard deviations and no intervals",
            hint="`kerntest ridge` fits models that have",
            code="usage.no_intervals",
        )
    return fitted, _is_taken


def _encoder(model: SvmModel | RidgeModel, shown: str) -> Encoder:
    if model.encoder is None:
        learner = "SVM" if isinstance(model, SvmModel) else "KernelRidge"
        raise ModelError(
            f"{shown} was fitted to a matrix of kernel values, not to columns",
            hint=f"predict with it from Python: {learner}.load(path).predict(K)",
            code="model.precomputed",
            where={"file": shown},
        )
    return model.encoder


def _work(model: SvmModel | RidgeModel, **parameters: Any) -> Predicting[Any]:
    """Return what predicts with a model."""
    if isinstance(model, SvmModel):
        return SvmPredictions(model=model, **parameters)
    return RidgePredictions(model=model, **parameters)


def _is_taken(name: str) -> bool:
    """Say whether predictions may have a column of this name."""
    return name in {"prediction", "decision"} or name.startswith(("decision:", "p:"))


@dataclass(slots=True, eq=False)
class SvmTally:
    """How many rows got each class, or the range of the numbers they got."""

    counts: dict[str, int] = field(default_factory=dict)
    numbers: Range = field(default_factory=Range)

    def add(self, other: SvmTally) -> None:
        """Take note of the next rows."""
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.numbers.add(other.numbers)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SvmPredictions(Predicting[SvmTally]):
    """Predictions of a support vector machine."""

    model: SvmModel

    def found(self, points: Points | None, engine: Engine) -> Found[SvmTally]:
        """Return the predictions for rows."""
        scores = None if points is None else self.model.scores(points, engine)
        columns, counts = predicted_columns(self.model, scores, proba=self.wanted.proba, decision=self.wanted.decision)
        tally = SvmTally(counts)
        if self.model.task == "regress":
            tally.numbers.take(columns["prediction"])
        return Found(columns, 0 if points is None else len(points), tally)

    def nothing(self) -> SvmTally:
        """Return the tally of no rows."""
        return SvmTally()

    def told(self, tally: SvmTally) -> Told:
        """Return what the report tells."""
        model = self.model
        if model.task == "regress":
            return Told("svm", model.task, model.target, None, tally.numbers.summary())
        return Told("svm", model.task, model.target, tally.counts)
