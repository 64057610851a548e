"""A result in words: what a statistician wants to see and a newcomer can read, as labelled lines of plain text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.report.independence_record import KernelPair, KernelPairs
    from kerntest.report.record import (
        Approximation,
        ColumnContents,
        Explanation,
        Family,
        FamilyMember,
        InputRecord,
        MinimumEffect,
        Null,
        Provenance,
        TwoSampleResult,
    )

COLUMNS_SHOWN = 12
NAME_SHOWN = 40
# Of a kernel that has one for each column.
BANDWIDTHS_SHOWN = 4
CURVES = {
    "moments": "Pearson III curve through three moments of the permutation distribution",
    "gamma": "Gamma curve through two moments of the biased estimate",
    "spectral": "weighted sum of chi-squares, weights from the eigenvalues",
    "pearson": "Pearson curve through four moments of the permutation distribution",
}
# Quoted column names are matched first, so that what looks like an argument inside them stays.
_QUOTED_OR_ARGUMENTS = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|(\([^()'"`:]*\))""")
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:[eE][-+]?\d+)?(?![\w.])")


class Cell(NamedTuple):
    """A text in a table that stands out."""

    text: str
    role: Literal["", "chosen", "right", "doubtful", "wrong"] = ""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table for people, as columns of (heading, kind) and rows of cells.

    Names are broken where they must be, numbers, words and marks never, texts anywhere. On a narrow page the columns
    around the one with the heading `keep` stay. Where `lettered` headings, which are the first cells of the rows, do not fit, letters stand for them.
    """

    columns: tuple[tuple[str, Literal["mark", "name", "word", "number", "text"]], ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    keep: str = ""
    lettered: bool = False
    narrowest: int = 40


@dataclass(frozen=True, slots=True)
class Summary:
    """A result in words: labelled lines (no label where a text goes on), tables, and after `answer` the decision."""

    title: str
    lines: tuple[tuple[str, str], ...]
    decision: str
    warnings: tuple[str, ...]
    tables: tuple[ResultTable, ...] = ()
    answer: str = "Decision"


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
    if result.family is not None:
        members = sorted(result.family.members, key=lambda member: -member.z)
        notes.append(f"kernels tried: {len(members)}, combined by {result.family.combination}; each by itself:")
        notes += [f"  {member_text(member)}: {shortened_kernel(member.kernel)}" for member in members]
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


def input_notes(provenance: Provenance) -> list[str]:
    """Return what was found in each input, one line each."""
    return [_input_note(record) for record in provenance.inputs]


def run_note(provenance: Provenance) -> str:
    """Return how it was computed, and how long it took."""
    threads = "1 thread" if provenance.threads == 1 else f"{provenance.threads} threads"
    where = threads if provenance.device is None else f"{visible(provenance.device)}, {threads}"
    return f"{where}, {provenance.dtype}, {number(provenance.seconds)} seconds"


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


def compared(p_value: float, alpha: float) -> tuple[str, str, str]:
    """Return p, the sign between them and alpha, with as many digits as it takes to see which one is larger."""
    digits = 4
    while digits < 17 and p_value != alpha and number(p_value, digits) == number(alpha, digits):
        digits += 1
    p_text, alpha_text = number(p_value, digits), number(alpha, digits)
    sign = ">" if p_value > alpha else "=" if p_text == alpha_text else "<="
    return p_text, sign, alpha_text


def _minimum_clause(minimum: MinimumEffect | None) -> str:
    """Return how a difference stands to the smallest one that matters; nothing where none was named."""
    if minimum is None:
        return ""
    bound, least = number(minimum.lower_bound), number(minimum.minimum)
    mmd = f"MMD under {visible(shortened_kernel(minimum.kernel))}"
    if minimum.reached:
        return f", and by enough to matter ({mmd} is at least {bound}, the minimum is {least})"
    return f", but not surely by enough to matter ({mmd} may be as small as {bound}, the minimum is {least})"


def number(value: float, digits: int = 4) -> str:
    """Return a number to `digits` significant digits, without trailing zeros; only 0 is shown as 0."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = f"{value:.{digits}g}"
    if 1e-5 <= abs(value) < 1e15 and "e" in rounded:
        # %g turns to exponents at 1e-4 and at 10**digits; people read 0.00001234 and 123456 better.
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        rounded = f"{value:.{decimals}f}"
        rounded = rounded.rstrip("0").rstrip(".") if "." in rounded else rounded
    return rounded


def percent(share: float) -> str:
    """Return a share as "98.1 %": 0 and 100 only where it is exactly so."""
    rounded = round(100 * share, 1)
    if share > 0:
        rounded = max(rounded, 0.1)
    if share < 1:
        rounded = min(rounded, 99.9)
    return f"{rounded:.1f}".removesuffix(".0") + " %"


def p_value_text(p_value: float, null: Null) -> str:
    """Return a p-value, saying so where the null could not have given a smaller one; never 0."""
    if p_value <= 0:
        return "less than 1e-300"
    text = number(p_value)
    if null.p_floor is not None and null.permutations is not None and p_value <= null.p_floor * (1 + 1e-9):
        return f"{text} (the smallest that {counted(null.permutations, 'relabelling')} can give)"
    return text


def p_value_meaning(p_value: float, nothing: str = "there is no difference") -> str:
    """Return what a p-value says, in a line for those who have not met one before."""
    if p_value >= 1:
        share = "every test shows"
    elif p_value >= 0.01:
        share = f"{number(100 * p_value, 2)} % of tests show"
    elif p_value >= 1e-6:
        odds = 1 / p_value
        # A p-value that is no share of whole relabellings is not known to the last test in so many.
        counted_out = math.isclose(odds, round(odds), rel_tol=1e-9)
        share = (
            f"1 in {odds:,.0f} tests shows" if counted_out else f"about 1 in {float(f'{odds:.2g}'):,.0f} tests shows"
        )
    else:
        share = "fewer than 1 in a million tests show"
    return f"{share} as much where {nothing}"


def clearest_lines(family: Family | KernelPairs, noun: str, p_value: float, alpha: float) -> list[tuple[str, str]]:
    """Return that the kernel shown is one of several, how these came to one p-value, and if none shows it alone."""
    together = family.judge == "together"
    how = "that the test judged together" if together else "of which the smallest p-value counts, corrected"
    lines = [("", f"the clearest of {len(family.members):,} {noun} {how}")]
    if together and family.p_clearest is not None and p_value <= alpha < family.p_clearest:
        alone = f"alone it shows nothing (p = {number(family.p_clearest)}, corrected): a contrast between {noun} does"
        lines.append(("", alone))
    if together and p_value >= 1 and all(member.z <= 0 for member in family.members):
        one = noun.removesuffix("s")
        lines.append(("", f"no {one} shows an excess: no statistic lies above its mean, so p = 1"))
    return lines


def member_text(member: FamilyMember | KernelPair) -> str:
    """Return what one kernel, or pair of them, says by itself, and what it adds to those that are judged together."""
    excess = "" if member.excess is None else f", excess = {number(member.excess)}"
    return f"z = {number(member.z)}, p = {number(member.p_value)}{excess}"


def null_text(null: Null) -> str:
    """Return how the p-value was found."""
    if null.method == "shift":
        return (
            f"shift test: {counted((null.permutations or 1) - 1, 'shift')} of one series against the other, asymptotic"
        )
    if null.permutations is None:
        trace = ", its skewness estimated" if null.trace == "stochastic" else ""
        return f"{null.method}: {CURVES[null.method]}{trace}, approximate"
    parts = [f"{null.method}: {counted(null.permutations, 'relabelling')}"]
    if null.resampling is not None:
        parts[0] += f" by {null.resampling}"
    if null.orders is not None and null.orders > 1:
        parts.append(f"in {null.orders:,} random orders")
    parts.append("exact" if null.exact else "approximate")
    return ", ".join(parts)


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


def input_text(record: InputRecord) -> str:
    """Return an input's name and its number of rows."""
    if record.rows_used == record.rows:
        return f"{visible(record.name)}: {counted(record.rows, 'row')}"
    return f"{visible(record.name)}: {record.rows_used:,} of {counted(record.rows, 'row')} used"


def _input_note(record: InputRecord) -> str:
    """Return what was found in one input."""
    delimiter = "" if record.delimiter is None else f" with delimiter {record.delimiter!r}"
    checksum = "" if record.sha256 is None else f", sha256 {record.sha256[:12]}..."
    used = f"{counted(record.rows, 'row')} read, {record.rows_used:,} used"
    compression = "" if record.compression is None else f", compressed with {record.compression}"
    files = "" if record.files is None or record.files == 1 else f", {record.files:,} files"
    return f"{record.name}: {record.format}{delimiter}{compression}{files}, {used}{checksum}"


def name_list(names: Sequence[str], shown: int | None = COLUMNS_SHOWN) -> str:
    """Return names joined by commas, the end of a long list as a number; None shows them all."""
    if shown is None or len(names) <= shown + 1:
        return ", ".join(visible(name) for name in names)
    return f"{', '.join(visible(name) for name in names[:shown])} and {len(names) - shown:,} more"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 row", "1,000 rows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shortened_kernel(kernel: str) -> str:
    """Return a kernel text with the numbers in its parentheses cut to four digits, and the end of many to how many there are.

    The JSON keeps all of them.
    """

    def shorten(found: re.Match[str]) -> str:
        if found.group(1) is None:
            return found.group()
        numbers = _NUMBER.sub(lambda digits: number(float(digits.group())), found.group(1)[1:-1]).split(", ")
        return f"({name_list(numbers, BANDWIDTHS_SHOWN)})"

    return _QUOTED_OR_ARGUMENTS.sub(shorten, kernel)


def visible(text: str) -> str:
    """Return text with what is not printable written out, so that no name can move the cursor or add lines."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
