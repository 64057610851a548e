"""Where a command computes: options about the engine, and commands that run under it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kerntest.cli.console import Messages, is_terminal, say
from kerntest.cli.delivery import Delivery
from kerntest.cli.documented import AnyCommand, DocumentedCommand, option
from kerntest.cli.options import COUNT, OneOf, chosen_format
from kerntest.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import click

    from kerntest.engines.plan import Plan

COMPUTING = "Computing"
# A computation of so many rows that takes so many seconds is announced unasked, a shorter one where somebody waits for it.
MANY_ROWS, LONG = 50_000, 300.0
ROWS_TO_WAIT_FOR, SECONDS_TO_WAIT = 15_000, 10.0
# Parameters that the engine takes before a command runs.
ENGINE_PARAMETERS = ("engine", "scheduler", "memory", "dry_run")


def _threads(what: str) -> Callable[[AnyCommand], AnyCommand]:
    return option(
        "--threads",
        type=COUNT,
        metavar="N",
        topic=COMPUTING,
        help=f"{what}; the result depends on it by rounding at most.  [default: all cores]",
    )


_MEMORY = option(
    "--memory",
    metavar="SIZE",
    topic=COMPUTING,
    help="Memory to stay below, such as 4GB; what cannot is refused (exit 4).",
)
_DRY_RUN = option(
    "--dry-run",
    is_flag=True,
    topic=COMPUTING,
    help="Print only the plan: what would be computed where, the memory it takes and about how long. -v prints it "
    "before the result.",
)
_SCHEDULER = option(
    "--scheduler",
    metavar="ADDRESS",
    topic=COMPUTING,
    help="Dask scheduler, such as tcp://10.0.0.1:8786.  [default: a cluster of processes on this machine]",
)


def engine_options(*engines: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds the options about the engine; without names the command has only the local one."""
    words = {
        "local": "local (threads)",
        "gpu": "gpu (needs PyTorch)",
        "dask": "dask (a cluster)",
    }
    choice = option(
        "--engine",
        type=OneOf("auto", *engines),
        default="auto",
        metavar="NAME",
        topic=COMPUTING,
        help=f"Where to compute: {', '.join(words[name] for name in engines)}, or auto: dask where a --scheduler is "
        "named, else local. The same seed gives the same p-value on each.",
    )
    decorators = (
        (_DRY_RUN, _MEMORY, _threads("Threads, or processes of a cluster on this machine"), _SCHEDULER, choice)
        if engines
        else (_DRY_RUN, _MEMORY, _threads("Threads to use"))
    )

    def decorate(function: AnyCommand) -> AnyCommand:
        for decorator in decorators:
            function = decorator(function)
        return function

    return decorate


class _PlanOnlyError(Exception):
    """Ends a command with its plan."""


class ComputingCommand(DocumentedCommand):
    """A command that runs on the engine that its options name, and can tell its plan instead."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command on its engine."""
        from kerntest.engines.setting import compute_on  # noqa: PLC0415 - --help must start at once

        asked = {name: ctx.params.pop(name, None) for name in ENGINE_PARAMETERS}
        only_plan, verbose = bool(asked.pop("dry_run")), bool(ctx.params.get("verbose"))
        if only_plan and ctx.params.get("quiet"):
            raise UsageError(
                "--dry-run and -q contradict each other", hint="give one of them", code="usage.contradiction"
            )

        rows, seconds = (ROWS_TO_WAIT_FOR, SECONDS_TO_WAIT) if is_terminal(sys.stderr) else (MANY_ROWS, LONG)

        def planned(plan: Plan) -> None:
            if only_plan:
                raise _PlanOnlyError(plan)
            from kerntest.report.plan import plan_notes, show_time  # noqa: PLC0415 - --help must start at once

            if verbose:
                for note in plan_notes(plan):
                    say(note)
            elif (plan.seconds or 0.0) > seconds:
                # Nobody should find out by waiting.
                tests = plan.method == "exact" and plan.command in {"mmd", "hsic"} and (plan.seconds or 0.0) > LONG
                others = "; --method features takes any number of rows" if tests else ""
                say(
                    f"this takes {show_time(plan.seconds)} ({plan.where}); --dry-run shows the plan{others}",
                    label="note",
                )

        heard = only_plan or verbose or not ctx.params.get("quiet")
        engine: Any = asked.pop("engine") or "auto"
        try:
            with compute_on(
                engine,
                **asked,
                threads=ctx.params.get("threads"),
                planned=planned if heard else None,
                planned_from=0 if only_plan or verbose else rows,
            ):
                return super().invoke(ctx)
        except _PlanOnlyError as stopped:
            from kerntest.report.plan import plan_summary  # noqa: PLC0415 - --help must start at once

            plan = stopped.args[0]
            shown_as = chosen_format(ctx.params.get("output_format"), as_json=bool(ctx.params.get("as_json")))
            told = plan.to_dict()
            Delivery(shown_as, None, Messages()).deliver(
                plan, plan_summary, [{**told, "work": "; ".join(told["work"])}]
            )
            return 0
