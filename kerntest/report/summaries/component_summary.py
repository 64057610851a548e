"""Fitted components, canonical correlations and sources in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.errors import counted, either
from kerntest.report.summaries.learner_summary import learner_summary, number_columns, part_rows
from kerntest.report.summaries.words import ResultTable, name_list, number, p_is, percent, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.report.results.component_record import CcaResult, ComponentAssociation, KpcaResult, UnmixResult
    from kerntest.report.summaries import words

# How sure a column must go with a component to be named, and how many are.
CLEAR, NAMED = 0.3, 3
# More components than this are left to --json.
SHOWN = 12


def kpca_summary(result: KpcaResult) -> words.Summary:
    """Return components in words: eigenvalues, shares of the variance, and the columns that each component goes with."""
    # 100 only where it is so, as in the sentence.
    rows, together, most = [], 0.0, 100.0 if result.explained == 1.0 else 99.9
    for place, (value, ratio) in enumerate(zip(result.eigenvalues, result.explained_variance_ratio, strict=True)):
        together += ratio
        shares = [f"{min(100 * share, most):.1f}" for share in (ratio, together)]
        rows.append((f"pc{place + 1}", number(value), *shares, _goes_with(result.associations, place)))
    more, numbers = len(rows) - SHOWN, number_columns(("eigenvalue", "% of variance", "together"))
    left = (
        (f"and {more:,} more, in all {percent(result.explained)}: {either('--json', 'to_dict()')} has them",)
        if more > 0
        else ()
    )
    table = ResultTable(
        (("component", "word"), *numbers, ("goes with (correlation)", "text")), tuple(rows[:SHOWN]), "Components:", left
    )
    title = "Principal components" if result.kernel == "linear" else "Kernel principal components"
    return learner_summary(result, title, [("solver", result.solver)], kpca_sentence(result), tables=(table,))


def kpca_sentence(result: KpcaResult) -> str:
    """Return how much of the variance the components explain, as a sentence."""
    where = "" if result.kernel == "linear" else " in feature space"
    verb = "explains" if result.components == 1 else "explain"
    return f"{counted(result.components, 'component')} {verb} {percent(result.explained)} of the variance{where}."


def _goes_with(associations: Sequence[ComponentAssociation], component: int) -> str:
    """Return the columns that go clearly with a component, the clearest first, with their correlation."""
    values = [(one.values[component] or 0.0, one.column) for one in associations]
    clear = sorted((one for one in values if abs(one[0]) >= CLEAR), key=lambda one: -abs(one[0]))
    return ", ".join(f"{visible(column)} ({value:.2f})" for value, column in clear[:NAMED]) or "-"


def cca_summary(result: CcaResult) -> words.Summary:
    """Return canonical correlations in words: on rows held out beside the training rows, and the columns of each function."""
    tested, number_of = result.n_test > 0, ("left out", "training")
    headings = number_columns(("test", *number_of) if tested else number_of)
    rows = []
    for place, pair in enumerate(result.pairs):
        values = [*([pair.test] if tested else []), pair.left_out, pair.train]
        goes = [_goes_with(one, place) for one in (result.associations_x, result.associations_y)]
        told = f"x: {goes[0]}; y: {goes[1]}"
        rows.append((str(place + 1), *("-" if one is None else f"{one:.3f}" for one in values), told))
    more = len(rows) - SHOWN
    left = (f"and {more:,} more: {either('--json', 'to_dict()')} has them",) if more > 0 else ()
    table = ResultTable(
        (("pair", "word"), *headings, ("goes with (correlation)", "text")), tuple(rows[:SHOWN]), "Correlations:", left
    )
    how = f", chosen from {len(result.lambdas):,} by {result.folds} folds" if result.lambdas else ", as given"
    if result.folds and result.pairs[0].left_out is None:
        # None was chosen: without some fold there was no pair.
        how = ""
    lines = [
        ("x", name_list(result.columns_x)),
        ("y", name_list(result.columns_y)),
        ("lambda", f"{number(result.lambda_)} of the variance of each side{how}"),
    ]
    title = "Canonical correlations" if result.kernel_x.endswith("linear") else "Kernel canonical correlations"
    return learner_summary(result, title, lines, cca_sentence(result), tables=(table,))


def cca_sentence(result: CcaResult) -> str:
    """Return how the first pair goes together on rows that it was not fitted to, as a sentence."""
    if result.correlation is None:
        why = "without those of a fold there is no pair" if result.folds else "there are too few to hold out"
        told = f"{number(result.pairs[0].train)} on the training rows, which says nothing: {why}"
        return f"Functions of x and of y have correlation {told}."
    p_value = "" if result.p_value is None else f" ({p_is(result.p_value, 2)})"
    rows = part_rows(result) if result.n_test else f"rows left out in {result.folds} folds"
    if result.correlation <= 0:
        return f"No function of x goes with one of y on {rows}{p_value}."
    return f"A function of x and one of y have correlation {number(result.correlation, 3)} on {rows}{p_value}."


def unmix_summary(result: UnmixResult) -> words.Summary:
    """Return sources in words: their shares of the variance, their shapes, and the columns that each goes with."""
    rows = [
        (
            one.name,
            f"{100 * one.variance_ratio:.1f}",
            f"{one.skewness:.2f}",
            f"{one.kurtosis:.2f}",
            _goes_with(result.associations, place),
        )
        for place, one in enumerate(result.sources)
    ]
    more, numbers = len(rows) - SHOWN, number_columns(("% of variance", "skewness", "kurtosis"))
    left = (f"and {more:,} more: {either('--json', 'to_dict()')} has them",) if more > 0 else ()
    table = ResultTable(
        (("source", "word"), *numbers, ("goes with (correlation)", "text")), tuple(rows[:SHOWN]), "Sources:", left
    )
    state, contrast = "" if result.converged else "NOT ", "HSIC" if result.contrast == "hsic" else "likelihood"
    starts = f", the best of {result.restarts + 1:,} searches" if result.restarts else ""
    lines: list[tuple[str, str | None]] = [
        ("solver", f"{contrast}, {state}converged after {counted(result.iterations, 'step')}{starts}"),
    ]
    for part, name in ((result.train, "training rows"), (result.test, "test rows")):
        if part is not None:
            p_value = "" if part.p_value is None else f", {p_is(part.p_value, 2)}"
            after = f"{number(part.hsic_before)} of columns, {number(part.hsic_after)} of sources{p_value}"
            lines.append(("HSIC" if part is result.train else "", f"{after} (mean over pairs, {part.n:,} {name})"))
    return learner_summary(result, "Independent components", lines, unmix_sentence(result), tables=(table,))


def unmix_sentence(result: UnmixResult) -> str:
    """Return how independent sources are, as a sentence."""
    judged = result.test or result.train
    before, after, rows = judged.hsic_before, max(judged.hsic_after, 0.0), part_rows(result)
    less = (
        f"{percent(after / before)} of the HSIC of the columns is left"
        if before > 0
        else "the columns were independent"
    )
    if judged.p_value is None:
        where = rows if result.test is not None else "the rows that they were fitted to"
        return f"{result.components:,} sources: {less}, on {where}."
    p_value = f"({p_is(judged.p_value, 2)})"
    if judged.p_value > 0.05:
        return f"{result.components:,} sources could be independent on {rows} {p_value}."
    return f"{result.components:,} sources still depend on each other on {rows} {p_value}: {less}."
