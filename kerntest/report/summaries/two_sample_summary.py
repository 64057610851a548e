"""Results of two-sample tests in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kerntest.report.summaries.words import (
    COLUMNS_SHOWN,
    NAME_SHOWN,
    Summary,
    clearest_lines,
    compared,
    family_notes,
    input_notes,
    input_text,
    name_list,
    null_text,
    number,
    p_value_meaning,
    p_value_text,
    percent,
    run_note,
    shortened_kernel,
    visible,
)

if TYPE_CHECKING:
    from kerntest.report.results.record import (
        Approximation,
        ColumnContents,
        Explanation,
        MinimumEffect,
        TwoSampleResult,
    )


def two_sample_summary(result: TwoSampleResult) -> Summary:
    """Return the result of a two-sample test in words."""
    first, second = result.provenance.inputs
    statistics = {"unbiased": result.mmd2_unbiased, "biased": result.mmd2_biased}
    other = "biased" if result.estimator == "unbiased" else "unbiased"
    lines = [
        ("X", input_text(first)),
        ("Y", input_text(second)),
        ("columns", name_list(result.columns)),
        ("kernel", visible(shortened_kernel(result.kernel))),
    ]
    if result.family is not None:
        lines += clearest_lines(result.family, "kernels", result.p_value, result.alpha)
    if result.approximation is not None:
        lines.append(("features", features_text(result.approximation)))
    lines += [
        (
            "statistic",
            f"MMD^2 = {number(result.statistic)} ({result.estimator}), {number(statistics[other])} ({other})",
        ),
        ("null", null_text(result.null)),
        ("p-value", p_value_text(result.p_value, result.null)),
        ("", p_value_meaning(result.p_value)),
        ("effect size", f"{number(result.effect_size)} on a scale from 0 (alike) to 1"),
        ("MMD", discrepancy_text(result)),
    ]
    if result.minimum_effect is not None:
        lines.append(("minimum", minimum_text(result.minimum_effect, result.kernel)))
    if result.explanation is not None:
        lines += explanation_lines(result.explanation)
    warnings = tuple(visible(warning) for warning in result.warnings)
    return Summary("Two-sample test (maximum mean discrepancy)", tuple(lines), visible(result.decision), warnings)


def two_sample_notes(result: TwoSampleResult) -> list[str]:
    """Return what was found out and chosen on the way to a result, one line each."""
    provenance = result.provenance
    notes = input_notes(provenance)
    notes.append(f"columns used: {name_list(result.columns, shown=None)}")
    if result.columns_left_out:
        notes.append(f"columns left out: {name_list(result.columns_left_out, shown=None)}")
    notes.append(f"kernel {provenance.kernel}, bandwidth {provenance.bandwidth}, scale {provenance.scale}")
    notes.append(f"kernel as resolved: {result.kernel}")
    notes += family_notes(result.family, "kernels")
    if result.explanation is not None:
        notes.append("columns alone, each by the kernel that shows it most clearly:")
        notes += [
            f"  {effect.column}: effect {number(effect.effect_size)}, z = {number(effect.z)}, p = {number(effect.p_value)}, "
            f"corrected {number(effect.p_adjusted)}: {shortened_kernel(effect.kernel)}"
            for effect in result.explanation.columns
        ]
    notes.append(f"null: {null_text(result.null)}, seed {provenance.seed}")
    notes.append(run_note(provenance))
    return [visible(note) for note in notes]


def decision_sentence(
    p_value: float, alpha: float, subject: str = "the two files", minimum: MinimumEffect | None = None
) -> str:
    """Return the answer of a two-sample test as a sentence, with the comparison that made it.

    The numbers get as many digits as it takes to see which one is larger.
    """
    p_text, sign, alpha_text = compared(p_value, alpha)
    if p_value <= alpha:
        answer = f"{subject[:1].upper()}{subject[1:]} differ (p = {p_text} {sign} alpha = {alpha_text})"
        return f"{answer}{_minimum_clause(minimum)}."
    return f"No difference found at alpha = {alpha_text} (p = {p_text}). That is not proof that there is none."


def _minimum_clause(minimum: MinimumEffect | None) -> str:
    """Return how a difference stands to the smallest one that matters; nothing where none was named."""
    if minimum is None:
        return ""
    bound, least = number(minimum.lower_bound), number(minimum.minimum)
    mmd = f"MMD under {visible(shortened_kernel(minimum.kernel))}"
    if minimum.reached:
        return f", and by enough to matter ({mmd} is at least {bound}, the minimum is {least})"
    return f", but not surely by enough to matter ({mmd} may be as small as {bound}, the minimum is {least})"


def features_text(approximation: Approximation) -> str:
    """Return which features stood for the kernel, and how far they are from it."""
    of = "Nystroem landmarks" if approximation.kind == "nystroem" else "random Fourier features"
    error = number(approximation.kernel_error, 2)
    return f"{approximation.number:,} {of}; kernel values off by {error} (root mean square)"


def discrepancy_text(result: TwoSampleResult) -> str:
    """Return MMD with its standard error, or why there is none."""
    error, null = result.mmd_standard_error, result.null
    if error is not None:
        return f"{number(result.mmd)} +- {number(error)} (standard error)"
    why = "too near 0"
    if null.p_floor is not None and null.p_floor > result.alpha:
        # No MMD, however large, could have been told from 0.
        why = f"too few {'rows' if null.complete else 'relabellings'}"
    return f"{number(result.mmd)} ({why} for a standard error)"


def minimum_text(minimum: MinimumEffect, kernel: str) -> str:
    """Return how MMD stands to the smallest one that matters; that of the result is of `kernel`."""
    verdict = "reached" if minimum.reached else "not reached"
    found = "" if minimum.mmd is None or minimum.kernel == kernel else f"{number(minimum.mmd)}, and "
    other = "" if minimum.kernel == kernel else "another kernel than above, "
    return (
        f"MMD of {number(minimum.minimum)} {verdict}: {found}at least {number(minimum.lower_bound)}, under {other}"
        f"{visible(shortened_kernel(minimum.kernel))}"
    )


def explanation_lines(explanation: Explanation) -> list[tuple[str, str]]:
    """Return the columns by how much each differs alone, what they were and are, and the most typical rows."""
    label = "each column"
    lines = []
    shown = explanation.columns[:COLUMNS_SHOWN]
    width = max(len(visible(effect.column)) for effect in shown)
    for effect in shown:
        name = f"{visible(effect.column):{min(width, NAME_SHOWN)}}"
        text = f"{name}  effect {number(effect.effect_size, 3):6}  alone p = {number(effect.p_adjusted):6}"
        if effect.p_without is not None:
            text += f"  without it p = {number(effect.p_without)}"
        lines.append((label, text.rstrip()))
        if effect.x is not None and effect.y is not None:
            lines += [("", f"  {line}") for line in contents_lines(effect.x, effect.y)]
        label = ""
    more = len(explanation.columns) - COLUMNS_SHOWN
    lines.append(
        (
            "",
            (f"and {more} more; " if more > 0 else "")
            + "largest effect first, X -> Y; p alone is corrected for all columns",
        )
    )
    untested = sum(effect.p_without is None for effect in explanation.columns)
    if untested and len(explanation.columns) > 1:
        which = "none" if untested == len(explanation.columns) else "the first only"
        lines.append(("", f"tests of all without one column: {which}, for so large tables; --exclude COLUMN makes one"))
    label = "typical rows"
    for sample in dict.fromkeys(row.sample for row in explanation.rows):
        rows = [row for row in explanation.rows if row.sample == sample]
        unit = "rows" if any(row.line is None for row in rows) else "lines"
        places = ", ".join(
            str(row.row if row.line is None else row.line) + ("" if row.file is None else f" of {visible(row.file)}")
            for row in rows
        )
        lines.append((label, f"{visible(sample)}: {unit} {places}"))
        label = ""
    return lines


def contents_lines(x: ColumnContents, y: ColumnContents) -> list[str]:
    """Return what a column was and what it is; quartiles on a line of their own."""
    parts, quartiles = [], []
    if x.standard_deviation is not None:
        spread = max(x.standard_deviation, y.standard_deviation or 0.0)

        def told(*values: float | str | None) -> str:
            return ", ".join(value if isinstance(value, str) else _to_spread(value, spread) for value in values)

        parts.append(f"mean {told(x.mean)} -> {told(y.mean)}")
        parts.append(f"sd {told(x.standard_deviation)} -> {told(y.standard_deviation)}")
        if x.value is None:
            of_x, of_y = (told(one.lower_quartile, one.median, one.upper_quartile) for one in (x, y))
            quartiles = [f"quartiles {of_x} -> {of_y}"]
    if x.value is not None:
        parts.append(f"{visible(x.value)}: {percent(x.share or 0.0)} -> {percent(y.share or 0.0)}")
    if x.missing or y.missing:
        parts.append(f"missing {percent(x.missing)} -> {percent(y.missing)}")
    return [", ".join(parts), *quartiles]


def _to_spread(value: float | None, spread: float) -> str:
    """Return a number to about a hundredth of the spread of what it belongs to."""
    if not value or not spread or not math.isfinite(value) or not math.isfinite(spread):
        return number(math.nan if value is None else value)
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(spread)) + 3
    return number(value, min(max(digits, 1), 15))
