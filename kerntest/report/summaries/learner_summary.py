"""What the summaries of all learners say in the same words, and principal components in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kerntest.report.summaries.words import (
    ResultTable,
    Summary,
    counted,
    input_notes,
    input_text,
    name_list,
    number,
    percent,
    run_note,
    shortened_kernel,
    visible,
)

if TYPE_CHECKING:
    from kerntest.report.results.learning_record import KpcaResult
    from kerntest.report.results.record import Provenance

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


# How sure a column must go with a component to be named, and how many are.
CLEAR, NAMED = 0.3, 3
# More components than this are left to --json.
SHOWN = 12
SOLVERS = {
    "lanczos": "Lanczos",
    "dense": "dense eigendecomposition",
    "covariance": "eigendecomposition of the covariance matrix",
}


def kpca_summary(result: KpcaResult) -> Summary:
    """Return components in words."""
    lines = [
        *data_lines(result, None),
        ("columns", name_list(result.columns)),
        ("kernel", visible(shortened_kernel(result.kernel))),
    ]
    if result.features is not None:
        lines.append(("features", features_text(result)))
    lines.append(("solver", SOLVERS[result.solver]))
    if result.test is not None:
        lines.append(("test rows", f"{percent(result.test.explained)} of their variance"))
    if result.model is not None:
        lines.append(("model", visible(result.model)))
    warnings = tuple(visible(warning) for warning in result.warnings)
    title = "Principal components" if result.kernel == "linear" else "Kernel principal components"
    return Summary(title, tuple(lines), kpca_sentence(result), warnings, (_components(result),), "Result")


def _components(result: KpcaResult) -> ResultTable:
    """Return eigenvalues, shares of the variance, and the columns that each component goes with."""
    rows = []
    together = 0.0
    for place, (value, ratio) in enumerate(zip(result.eigenvalues, result.explained_variance_ratio, strict=True)):
        together += ratio
        shares = (f"{100 * ratio:.1f}", f"{100 * together:.1f}")
        rows.append((f"pc{place + 1}", number(value), *shares, goes_with(result, place)))
    more = len(rows) - SHOWN
    numbers = ("eigenvalue", "% of variance", "together")
    return ResultTable(
        (("component", "word"), *((name, "number") for name in numbers), ("goes with (correlation)", "text")),
        tuple(rows[:SHOWN]),
        "Components:",
        (f"and {more:,} more, in all {100 * together:.1f} %: --json has them",) if more > 0 else (),
    )


def kpca_sentence(result: KpcaResult) -> str:
    """Return how much of the variance the components explain, as a sentence."""
    where = "" if result.kernel == "linear" else " in feature space"
    verb = "explains" if result.components == 1 else "explain"
    return f"{counted(result.components, 'component')} {verb} {percent(result.explained)} of the variance{where}."


def kpca_notes(result: KpcaResult) -> list[str]:
    """Return what was found out and chosen on the way to the components, one line each."""
    return [*learner_notes(result, None), f"trace of HKH: {number(result.trace)}"]


def goes_with(result: KpcaResult, component: int) -> str:
    """Return the columns that go clearly with a component, the clearest first, with their correlation."""
    found = [
        (value, association)
        for association in result.associations
        if (value := association.values[component]) is not None and abs(value) >= CLEAR
    ]
    found.sort(key=lambda pair: -abs(pair[0]))
    told = [f"{visible(one.column)} ({value:.2f})" for value, one in found[:NAMED]]
    return ", ".join(told) or "-"
