"""What is about to be computed: where, in how much memory, and about how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.engines.engine import show_memory
from kerntest.report.summaries.words import Summary, visible

if TYPE_CHECKING:
    from kerntest.engines.engine import Plan


def plan_summary(plan: Plan) -> Summary:
    """Return a plan in words."""
    # Rows of a file that is not read beforehand are a guess, and the work says so.
    about = "about " * any(f"about {plan.rows:,} rows" in step for step in plan.work)
    lines = [("data", f"{about}{plan.rows:,} rows, {plan.columns} column{'' if plan.columns == 1 else 's'}")]
    lines += [("" if number else "work", visible(step)) for number, step in enumerate(plan.work)]
    lines.append(("where", f"{visible(plan.where)}, {plan.dtype}"))
    allowed = "" if plan.memory_limit is None else f" of the {show_memory(plan.memory_limit)} allowed"
    lines.append(("memory", f"about {show_memory(plan.memory_bytes)}{allowed}"))
    lines.append(("time", show_time(plan.seconds)))
    return Summary(f"Plan of kerntest {plan.command}", tuple(lines), "nothing was computed", (), answer="Dry run")


def plan_notes(plan: Plan) -> list[str]:
    """Return a plan as one line each, for -v."""
    found = plan_summary(plan)
    return [f"plan: {label or '    '}: {text}" if label else f"plan: {text}" for label, text in found.lines]


def show_time(seconds: float | None) -> str:
    """Return a duration as people say it."""
    if seconds is None:
        return "cannot be said beforehand"
    if seconds < 1:
        return "less than a second"
    for limit, size, unit in ((90, 1, "second"), (5400, 60, "minute"), (172_800, 3600, "hour")):
        if seconds < limit:
            count = max(1, round(seconds / size))
            return f"about {count} {unit}{'' if count == 1 else 's'}"
    return f"about {round(seconds / 86_400):,} days"
