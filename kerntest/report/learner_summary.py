"""What the summaries of all learners say in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kerntest.report.summary import counted, input_notes, input_text, name_list, number, run_note, visible

if TYPE_CHECKING:
    from kerntest.report.record import Provenance

PARTS = {"train": "training", "test": "test"}


class LearnerResult(Protocol):
    """What the result of every learner has."""

    @property
    def n_train(self) -> int:
        """Rows learned from."""

    @property
    def n_test(self) -> int:
        """Rows judged by."""

    @property
    def judged_on(self) -> str:
        """Where the judgement comes from."""

    @property
    def kernel(self) -> str:
        """As resolved."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Learned from."""

    @property
    def columns_left_out(self) -> tuple[str, ...]:
        """Not learned from."""

    @property
    def features(self) -> str | None:
        """Explicit features."""

    @property
    def feature_error(self) -> float | None:
        """Error of their kernel values."""

    @property
    def provenance(self) -> Provenance:
        """Where it came from."""


def judged_rows(result: LearnerResult) -> str:
    """Return the rows that a result is judged on, such as "20 test rows"."""
    rows = result.n_train if result.judged_on == "train" else result.n_test
    return counted(rows, f"{PARTS[result.judged_on]} row")


def data_lines(result: LearnerResult, target: str | None) -> list[tuple[str, str]]:
    """Return what was read, how many rows of it are for what, and the target in words."""
    inputs = result.provenance.inputs
    lines = [("data", input_text(inputs[0]))]
    if len(inputs) > 1:
        lines.append(("test data", input_text(inputs[1])))
    elif result.n_test:
        lines.append(("", f"{result.n_train:,} to learn from, {result.n_test:,} held out to judge by"))
    if target is not None:
        lines.append(("target", target))
    return lines


def cluster_lines(cluster: str | None, n_clusters: int | None) -> list[tuple[str, str]]:
    """Return by which column rows stay together."""
    if cluster is None or n_clusters is None:
        return []
    return [("clusters", f"{visible(cluster)}: {n_clusters:,} among the training rows, none of them parted")]


def features_text(result: LearnerResult) -> str:
    """Return which explicit features stand for the kernel, and how well."""
    kind, _, count = (result.features or "").partition(":")
    name = {"nystroem": "Nystroem", "fourier": "random Fourier"}.get(kind, kind)
    error = "" if result.feature_error is None else f", kernel values off by {number(result.feature_error, 2)} (RMS)"
    return f"{count} {name} features{error}"


def learner_notes(result: LearnerResult, tie_rule: str | None) -> list[str]:
    """Return what was found out and chosen on the way to a model, one line each."""
    provenance = result.provenance
    notes = [*input_notes(provenance), f"columns used: {name_list(result.columns, shown=None)}"]
    if result.columns_left_out:
        notes.append(f"columns left out: {name_list(result.columns_left_out, shown=None)}")
    notes.append(f"kernel {provenance.kernel}, bandwidth: {provenance.bandwidth}, scale {provenance.scale}")
    notes.append(f"kernel as resolved: {result.kernel}")
    if tie_rule is not None:
        notes.append(f"of the grid was chosen {tie_rule}")
    notes += [f"seed {provenance.seed}", run_note(provenance)]
    return [visible(note) for note in notes]


def error_sentence(rows: str, rmse: float, r2: float | None) -> str:
    """Return how good predictions of numbers are, as a sentence."""
    explained = "" if r2 is None else f", r2 = {number(r2)}"
    return f"Predictions of {rows} are off by {number(rmse)} (root mean square{explained})."
