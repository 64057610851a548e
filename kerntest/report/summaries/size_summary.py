"""How large a difference is, in words: an interval, a margin, the smallest effect that matters, and what would have been found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.errors import option
from kerntest.report.results.two_sample_record import ENOUGH_ERRORS, MOST_TIMES_ROWS
from kerntest.report.summaries.words import labelled, number, percent, shortened_kernel, visible

if TYPE_CHECKING:
    from kerntest.report.results import two_sample_record


def shift_clause(shift: two_sample_record.SmallestShift | None, where: str = "") -> str:
    """Return what a test that found nothing would have found; nothing where that is not known."""
    if shift is None:
        return ""
    found = f"with {percent(shift.power)} power{where}"
    by = f"about {number(shift.standard_deviations, 2)} standard deviations"
    least = visible(shift.column)
    shares = " (rows moving between the values that it has)" if shift.of_shares else ""
    return f" A shift of any one column ({least} is seen least) by {by}{shares} is found {found}."


def interval_lines(interval: two_sample_record.Interval, kernel: str) -> list[tuple[str, str]]:
    """Return the interval of MMD and of the effect size, or why there is none; that of the result is of `kernel`."""
    same = interval.kernel == kernel
    if interval.lower is None or interval.upper is None:
        under = "" if same else "under the kernel chosen for it beforehand "
        errors = interval.standard_errors
        why = "has no standard error" if errors is None else f"is {number(errors, 2)} standard errors"
        why += (
            ""
            if errors is None
            else ", and it takes 4"
            if errors <= ENOUGH_ERRORS
            else ", and the test finds no difference"
        )
        return labelled("interval", [f"none: {under}MMD^2 {why}; the p-value holds without one"])
    ends = f"{number(interval.lower)} to {number(interval.upper)}"
    sizes = f"{number(interval.effect_size_lower or 0.0)} to {number(interval.effect_size_upper or 0.0)}"
    level = percent(interval.level)
    if not same:
        # The numbers above need not lie between its ends.
        level = f"{level}, of another kernel than above"
        ends, sizes = f"{number(interval.mmd)} ({ends})", f"{number(interval.effect_size)} ({sizes})"
    other = [] if same else [f"under {visible(shortened_kernel(interval.kernel))}, chosen beforehand"]
    return labelled("interval", [f"{level}: MMD {ends}, effect size {sizes}", *other])


def _under(kernel: str, other: str, found: str) -> list[str]:
    """Return what was found of a size, and under which kernel, where it is not the one of the result."""
    under = f"under {visible(shortened_kernel(kernel))}"
    return (
        [found, under]
        if kernel == other
        else [f"under another kernel than above: {found}", f"{under}, chosen beforehand"]
    )


def margin_lines(margin: two_sample_record.Margin, kernel: str) -> list[tuple[str, str]]:
    """Return how MMD stands to a margin; that of the result is of `kernel`."""
    found = f"MMD {number(margin.mmd)}, at least {number(margin.lower_bound)} and at most {number(margin.upper_bound)}"
    return labelled(
        "margin",
        [
            f"MMD of {number(margin.margin)}{_as_shift(margin)}: {margin.verdict}",
            *_under(margin.kernel, kernel, found),
        ],
    )


def rows_to_decide_text(margin: two_sample_record.Margin) -> str:
    """Return how many rows would decide about a margin."""
    told = f"{_of_each(margin.rows_to_decide)} would decide if MMD stays as it is"
    if margin.rows_if_equal is None or margin.rows_if_equal == margin.rows_to_decide:
        return told
    return (
        f"{_of_each(margin.rows_if_equal)} would decide if there is no difference, {told.replace(' would decide', '')}"
    )


def _of_each(rows: tuple[int, int] | None) -> str:
    if rows is None:
        return f"not even {MOST_TIMES_ROWS} times as many rows"
    x, y = rows
    return f"some {x:,} rows of each" if x == y else f"some {x:,} and {y:,} rows"


def _is_shift(asked: str) -> bool:
    return asked.strip().casefold().endswith("sd")


def margin_text(margin: two_sample_record.Margin) -> str:
    """Return a margin as it was asked for, and what MMD that is."""
    mmd = number(margin.margin)
    return f"{margin.asked.strip()} (MMD {mmd})" if _is_shift(margin.asked) else f"an MMD of {mmd}"


def _as_shift(size: two_sample_record.Margin | two_sample_record.MinimumEffect) -> str:
    """Return which shift of one column has an MMD, to follow it."""
    if size.column is None:
        return ""
    if size.standard_deviations is None or size.shift is None:
        return ", more than any shift of one column makes"
    units = f"({number(size.shift, 2)})"
    if _is_shift(size.asked):
        return f", {size.asked.strip()} {units} of {visible(size.column)}"
    return f", as of a shift of {visible(size.column)} by {number(size.standard_deviations, 2)}sd {units}"


def margin_warnings(margin: two_sample_record.Margin | None) -> list[str]:
    """Return the warning about a margin within which nearly everything is the same."""
    if margin is None or margin.column is None or margin.standard_deviations is not None:
        return []
    least = f"no shift of one column, however far, has an MMD of {number(margin.margin)}"
    small = f"{option('margin', '0.2sd')} is that of a small shift"
    return [f"{least}: within it samples without anything in common may be the same; {small}"]


def minimum_clause(minimum: two_sample_record.MinimumEffect | None) -> str:
    """Return how a difference stands to the smallest one that matters; nothing where none was named."""
    if minimum is None:
        return ""
    bound, least = number(minimum.lower_bound), number(minimum.minimum)
    mmd = f"MMD under {visible(shortened_kernel(minimum.kernel))}"
    if minimum.reached:
        return f", and by enough to matter ({mmd} is at least {bound}, the minimum is {least})"
    return f", but not surely by enough to matter ({mmd} may be as small as {bound}, the minimum is {least})"


def minimum_text(minimum: two_sample_record.MinimumEffect, kernel: str) -> str:
    """Return how MMD stands to the smallest one that matters; that of the result is of `kernel`."""
    verdict = "reached" if minimum.reached else "not reached"
    found = "" if minimum.mmd is None or minimum.kernel == kernel else f"{number(minimum.mmd)}, and "
    other = "" if minimum.kernel == kernel else "another kernel than above, "
    return (
        f"MMD of {number(minimum.minimum)}{_as_shift(minimum)}, {verdict}: {found}at least {number(minimum.lower_bound)}, under {other}"
        f"{visible(shortened_kernel(minimum.kernel))}"
    )
