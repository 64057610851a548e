"""Kernel principal components in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.report.learner_summary import data_lines, features_text, learner_notes
from kerntest.report.summary import ResultTable, Summary, counted, name_list, number, percent, shortened_kernel, visible

if TYPE_CHECKING:
    from kerntest.report.kpca_record import KpcaResult

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
