"""Numbers, names, p-values and plans as people read them."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from kerntest.dataclass import dataclass
from kerntest.errors import counted, in_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.plan import Plan
    from kerntest.report.results.record import FamilyRecord, InputRecord, Null, Provenance

COLUMNS_SHOWN = 12
NAME_SHOWN = 40
# Of a kernel that has one for each column.
BANDWIDTHS_SHOWN = 4
# Two numbers of which the smaller is more than this share of the larger are told as one.
CLOSE = 0.7
# p-values below it are at the end of the range of numbers, and say no more.
LEAST_P = 1e-300
CURVES = {
    "moments": "Pearson III curve through three moments of the permutation distribution",
    "gamma": "Gamma curve through two moments of the biased estimate",
    "spectral": "weighted sum of chi-squares, weights from the eigenvalues",
    "pearson": "Pearson curve through four moments of the permutation distribution",
}
# Quoted column names are matched first, so that what looks like an argument inside them stays.
_QUOTED_OR_ARGUMENTS = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|(\([^()'"`:]*\))""")
# The columns of a group, as a kernel text names them, more than a list shows.
_COLUMN = r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^,:;'"`\s][^,:;]*)"""
_MANY_COLUMNS = re.compile(rf"(?:^|(?<=; ))((?:{_COLUMN}, ){{{COLUMNS_SHOWN}}})((?:{_COLUMN}, )+){_COLUMN}(?=: )")
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:[eE][-+]?\d+)?(?![\w.])")


class Cell(NamedTuple):
    """A text in a table that stands out."""

    text: str
    role: Literal["", "chosen", "right", "doubtful", "wrong"] = ""


@dataclass(frozen=True)
class ResultTable:
    """A table for people, as columns of (heading, kind) and rows of cells.

    Names are broken where they must be, numbers, words and marks never, texts anywhere. On a narrow page, of the numbers
    those around the one with the heading `keep` stay, and of notes what begins with a heading that stays: "p: corrected; r, tau: coefficients". Where `lettered` headings, which are the first cells of the rows, do not fit, letters stand for them.
    """

    columns: tuple[tuple[str, Literal["mark", "name", "word", "number", "text"]], ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    keep: str = ""
    lettered: bool = False


@dataclass(frozen=True)
class Summary:
    """A result in words: labelled lines (no label where a text goes on), tables, and after `answer` the decision."""

    title: str
    lines: tuple[tuple[str, str], ...]
    decision: str
    warnings: tuple[str, ...]
    tables: tuple[ResultTable, ...] = ()
    answer: str = "Decision"


def input_notes(provenance: Provenance) -> list[str]:
    """Return what was found in each input, one line each."""
    return [_input_note(record) for record in provenance.inputs]


def run_note(provenance: Provenance) -> str:
    """Return how it was computed, and how long it took."""
    threads = counted(provenance.threads, "thread")
    where = threads if provenance.device is None else f"{visible(provenance.device)}, {threads}"
    return f"{where}, {provenance.dtype}, {number(provenance.seconds)} seconds"


def compared(p_value: float, alpha: float) -> tuple[str, str, str]:
    """Return p, the sign between them and alpha, with as many digits as it takes to see which one is larger."""
    digits = 4
    while digits < 17 and p_value != alpha and number(p_value, digits) == number(alpha, digits):
        digits += 1
    p_text, alpha_text = p_number(p_value, digits), number(alpha, digits)
    sign = ">" if p_value > alpha else "=" if p_text == alpha_text else "<="
    return p_text, sign, alpha_text


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


def p_number(p_value: float, digits: int = 4) -> str:
    """Return a p-value; of the last digits of floating-point numbers only that it is below them."""
    return f"< {LEAST_P:g}" if p_value < LEAST_P else number(p_value, digits)


def p_is(p_value: float, digits: int = 4) -> str:
    """Return what p is, or below what."""
    return f"p {'' if p_value < LEAST_P else '= '}{p_number(p_value, digits)}"


def p_value_text(p_value: float, null: Null) -> str:
    """Return a p-value, saying so where the null could not have given a smaller one."""
    text = p_number(p_value)
    if null.p_floor is not None and null.permutations is not None and p_value <= null.p_floor * (1 + 1e-9):
        return f"{text} (the smallest that {counted(null.permutations, 'relabelling')} can give)"
    return text


def p_value_meaning(p_value: float, nothing: str) -> str:
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


def clearest_lines(family: FamilyRecord | None, noun: str, p_value: float, alpha: float) -> list[tuple[str, str]]:
    """Return that the kernel shown is one of several, how these came to one p-value, and if none shows it alone."""
    if family is None:
        return []
    together = family.judge == "together"
    how = "that the test judged together" if together else "of which the smallest p-value counts, corrected"
    lines = [("", f"the clearest of {len(family.members):,} {noun} {how}")]
    if together and family.p_clearest is not None and p_value <= alpha < family.p_clearest:
        alone = f"by itself it shows nothing ({p_is(family.p_clearest)}, corrected), only all {noun} together do"
        lines.append(("", f"{alone}: it is no guide to what was found, which other rows should confirm"))
    if together and p_value >= 1 and all(member.z <= 0 for member in family.members):
        one = noun.removesuffix("s")
        lines.append(("", f"no {one} shows an excess: no statistic lies above its mean, so p = 1"))
    return lines


def family_notes(family: FamilyRecord | None, noun: str) -> list[str]:
    """Return what each kernel, or pair of them, says by itself, and what it adds to those that are judged together."""
    if family is None:
        return []
    notes = [f"{noun} tried: {len(family.members)}, combined by {family.combination}; each by itself:"]
    for one in sorted(family.members, key=lambda member: -member.z):
        excess = "" if one.excess is None else f", excess = {number(one.excess)}"
        notes.append(f"  z = {number(one.z)}, {p_is(one.p_value)}{excess}: {shortened_kernel(one.kernel)}")
    return notes


def null_text(null: Null) -> str:
    """Return how the p-value was found."""
    if null.method == "shift":
        relabellings = null.permutations or 1
        shifts = f"{counted(relabellings - 1, 'shift')} of one series"
        return f"shift test: {shifts} ({relabellings:,} relabellings with none), asymptotic"
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


def input_text(record: InputRecord) -> str:
    """Return an input's name and its number of rows."""
    rows = counted(record.rows, "row")
    used = rows if record.rows_used == record.rows else f"{record.rows_used:,} of {rows} used"
    return f"{visible(record.name)}: {used}{chosen_text(record.chosen_from, record.chosen_by)}"


def chosen_text(chosen_from: int | None, chosen_by: str | None) -> str:
    """Return how rows were chosen, and from how many, where they were."""
    return (
        "" if chosen_by is None else f"{'' if chosen_from is None else f' of {chosen_from:,}'} ({visible(chosen_by)})"
    )


def _input_note(record: InputRecord) -> str:
    """Return what was found in one input."""
    delimiter = "" if record.delimiter is None else f" with delimiter {record.delimiter!r}"
    checksum = "" if record.sha256 is None else f", sha256 {record.sha256[:12]}..."
    used = f"{counted(record.rows, 'row')} read, {record.rows_used:,} used"
    compression = "" if record.compression is None else f", compressed with {record.compression}"
    files = "" if record.files is None or record.files == 1 else f", {record.files:,} files"
    return f"{record.name}: {record.format}{delimiter}{compression}{files}, {used}{checksum}"


def natural_order(names: Sequence[str]) -> list[int]:
    """Return the places of names as people count: numbers by their value, class 9 before class 10."""

    def key(place: int) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", names[place], flags=re.ASCII)
        # Of digits the longer number is the larger one; long texts are no longer ones.
        return [(len(one.lstrip("0")) if odd % 2 else 0, one) for odd, one in enumerate(parts)]

    with suppress(ValueError):
        values = [float(name) for name in names]
        if not any(map(math.isnan, values)):
            return sorted(range(len(names)), key=values.__getitem__)
    return sorted(range(len(names)), key=key)


def name_list(names: Sequence[str], shown: int | None = COLUMNS_SHOWN) -> str:
    """Return names joined by commas, as options take them, the end of a long list as a number; None shows them all."""
    few = names if shown is None or len(names) <= shown + 1 else names[:shown]
    more = f" and {len(names) - len(few):,} more" if len(few) < len(names) else ""
    return ", ".join(in_list(visible(name)) for name in few) + more


def labelled(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return a label beside the first of several lines."""
    return [("" if place else label, text) for place, text in enumerate(texts)]


def shortened_kernel(kernel: str) -> str:
    """Return a kernel text with the numbers in its parentheses cut to four digits, and of many of these and of columns the first.

    The JSON keeps all of them.
    """

    def fewer(found: re.Match[str]) -> str:
        return f"{found.group(1).removesuffix(', ')} and {len(re.findall(f'{_COLUMN}, ', found.group(2))) + 1:,} more"

    def shorten(found: re.Match[str]) -> str:
        if found.group(1) is None:
            return found.group()
        numbers = _NUMBER.sub(lambda digits: number(float(digits.group())), found.group(1)[1:-1]).split(", ")
        return f"({name_list(numbers, BANDWIDTHS_SHOWN)})"

    return _QUOTED_OR_ARGUMENTS.sub(shorten, _MANY_COLUMNS.sub(fewer, kernel))


def visible(text: str) -> str:
    """Return text with what is not printable written out, so that no name can move the cursor or add lines."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def plan_summary(plan: Plan) -> Summary:
    """Return what is about to be computed in words: where, in how much memory, and about how long."""
    from kerntest.engines.engine import show_memory  # noqa: PLC0415 - --help must start at once

    # Rows of a file that is not read beforehand are a guess, and the work says so.
    about = "about " * any(f"about {plan.rows:,} rows" in step for step in plan.work)
    lines = [("data", f"{about}{plan.rows:,} rows, {counted(plan.columns, 'column')}")]
    lines += labelled("work", [visible(step) for step in plan.work])
    lines.append(("where", f"{visible(plan.where)}, {plan.dtype}"))
    allowed = "" if plan.memory_limit is None else f" of the {show_memory(plan.memory_limit)} allowed"
    least, most = map(show_memory, plan.memory_range)
    held = f"about {most}" if plan.memory_range[0] > CLOSE * plan.memory_range[1] else f"{least} to {most}"
    lines.append(("memory", f"{held}{allowed}"))
    # Of the clock: so many threads share it.
    threads, of_threads, _ = plan.where.partition(" of ")
    lines.append(("time", show_times(*plan.seconds_range) + f" on {threads}" * bool(of_threads)))
    return Summary(f"Plan of kerntest {plan.command}", tuple(lines), "nothing was computed", (), answer="Dry run")


def plan_notes(plan: Plan) -> list[str]:
    """Return a plan as one line each, for -v."""
    found = plan_summary(plan)
    return [f"plan: {label or '    '}: {text}" if label else f"plan: {text}" for label, text in found.lines]


def told_of_work(matrices: str, times: float, insisting: str) -> str:
    """Return why features were taken for so many times the work that is done unasked, and which option insists on kernel matrices of what."""
    return (
        f"features stand for the kernel matrices of {matrices} are {beyond_bound(times)}; {insisting} insists on these"
    )


def beyond_bound(times: float) -> str:
    """Return by how much work is beyond what is done unasked: no time, which hangs on the machine, as a plan says it."""
    return f"more work than is done unasked ({f'{times:.1f}' if times < 10 else f'{times:,.0f}'} times as much)"


def show_times(least: float, most: float) -> str:
    """Return a duration, or between which two it lies, as people say it."""
    low, high = _duration(least), _duration(most)
    if least > CLOSE * most or low == high:
        return high if most < 1 else f"about {high}"
    (number, unit), same = low.rsplit(" ", 1), low.rsplit(" ", 1)[1].rstrip("s") == high.rsplit(" ", 1)[1].rstrip("s")
    return f"{number if same and least >= 1 else f'{number} {unit}'} to {high}"


def _duration(seconds: float) -> str:
    """Return a duration in its largest unit."""
    if seconds < 1:
        return "less than a second"
    units = ((90, 1, "second"), (5400, 60, "minute"), (172_800, 3600, "hour"), (math.inf, 86_400, "day"))
    size, unit = next((size, unit) for limit, size, unit in units if seconds < limit)
    return counted(round(seconds / size), unit)
