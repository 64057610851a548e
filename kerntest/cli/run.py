"""The one way of a command: what it reads and writes is checked, its engine is set, its function called, its result delivered."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.core import ParameterSource

from kerntest.cli.console import Messages, is_terminal, progress_bar, say
from kerntest.cli.delivery import Delivery
from kerntest.cli.documented import AnyCommand, DocumentedCommand, option, stacked
from kerntest.cli.options import COUNT, OneOf, chosen_format
from kerntest.errors import KerntestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import click

    from kerntest.engines.setting import Plan
    from kerntest.report.results.record import Record
    from kerntest.report.summaries.words import Summary


def check_stdin(sources: Mapping[str, str], example: str) -> None:
    """Refuse to read stdin twice, or a table from the keyboard."""
    from_stdin = [name for name, source in sources.items() if source == "-"]
    if len(from_stdin) > 1:
        raise UsageError(
            f"{' and '.join(from_stdin)} cannot both be read from stdin",
            hint="give one of them as a file",
            code="usage.stdin_twice",
        )
    if from_stdin and (sys.stdin is None or is_terminal(sys.stdin)):
        raise UsageError(
            f"- reads a table from stdin, but stdin is {'closed' if sys.stdin is None else 'a terminal'}",
            hint=f"send it a file: `{example}`",
            code="usage.stdin_terminal",
        )


def check_null(ctx: click.Context) -> None:
    """Refuse options about relabellings, or families, beside a null that has none, so that none is ignored in silence."""
    null = ctx.params["null"]
    # The Pearson curve finds its fourth moment from relabellings.
    unused = {"permutation": (), "pearson": ("resampling", "judge")}.get(null, ("permutations", "resampling", "judge"))
    for name in unused:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"--{name} does not go with --null {null}",
                hint="its p-value is read off a curve; --null permutation is the one that relabels rows",
                code="usage.contradiction",
            )


def check_outputs(sources: Sequence[str], outputs: Mapping[str, str | None], *, model: str | None = None) -> None:
    """Refuse outputs over each other or over what is read."""
    for (one, first), (other, second) in combinations(outputs.items(), 2):
        if first is not None and second is not None and os.path.realpath(first) == os.path.realpath(second):
            raise UsageError(
                f"{one} and {other} would both write {second}",
                hint="give each a file of its own",
                code="usage.output_twice",
                where={"file": second},
            )
    read = [(f"the data in {source}", source) for source in sources]
    read += [] if model is None else [(f"the model {model}", model)]
    for (called, source), (name, output) in product(read, outputs.items()):
        if output is not None and _same_file(source, output):
            raise UsageError(
                f"{name} {output} would replace {called}",
                hint="write the result to another file",
                code="usage.output_is_input",
                where={"file": output},
            )


def _same_file(source: str, output: str) -> bool:
    """Whether an output is, under whatever name, one of the files that a source means."""
    from kerntest.data.source import find_files  # noqa: PLC0415 - numerics are loaded only to compute

    try:
        if source == "-":
            return os.path.samestat(os.fstat(sys.stdin.fileno()), Path(output).stat())
        return Path(output).is_file() and any(file.samefile(output) for _, file in find_files(source, source).files)
    except (OSError, ValueError, KerntestError):
        return False


def join_names(options: dict[str, Any], *names: str) -> None:
    """Make one text of the lists of columns that were given, None where none was."""
    for name in names:
        if options[name] and not any(given.strip() for given in options[name]):
            shown = name.removesuffix("_columns").replace("_", "-")
            raise UsageError(f"--{shown} names no column", hint="leave it out, or name one", code="usage.no_columns")
        options[name] = ",".join(options[name]) or None
    if "categorical" in names:
        options["categorical"] = options["categorical"] or ()


def point_at(error: KerntestError, *texts: str | None) -> None:
    """Let an error about a place in a kernel's text show the text: that of `texts` which it speaks of, or the first."""
    if "position" not in error.where:
        return
    given = [text for text in texts if text is not None]
    quoted = [text for text in given if repr(text) in error.message]
    named = [text for text in given if str(error.where.get("value", "")) in text]
    found = [*quoted, *named, *given]
    if found:
        error.where.setdefault("text", found[0])
    error.hint = error.hint or "`kerntest kernels` shows how each kernel is written"


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
    words = {"local": "local (threads)", "gpu": "gpu (needs PyTorch)", "dask": "dask (a cluster)"}
    choice = option(
        "--engine",
        type=OneOf("auto", *engines),
        default="auto",
        metavar="NAME",
        topic=COMPUTING,
        help=f"Where to compute: {', '.join(words[name] for name in engines)}, or auto: dask where a --scheduler is "
        "named, else local. The same seed gives the same p-value on each.",
    )
    if not engines:
        return stacked(_threads("Threads to use"), _MEMORY, _DRY_RUN)
    return stacked(
        choice, _SCHEDULER, _threads("Threads, or processes of a cluster on this machine"), _MEMORY, _DRY_RUN
    )


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
            from kerntest.report.summaries.plan_summary import plan_notes, show_time  # noqa: PLC0415 - --help must start at once

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
            from kerntest.report.summaries.plan_summary import plan_summary  # noqa: PLC0415 - --help must start at once

            plan = stopped.args[0]
            shown_as = chosen_format(ctx.params.get("output_format"), as_json=bool(ctx.params.get("as_json")))
            told = plan.to_dict()
            Delivery(shown_as, None, Messages()).deliver(
                plan, plan_summary, [{**told, "work": "; ".join(told["work"])}]
            )
            return 0


# Parameters of the report: -o is the model.
REPORT = ("output_format", "as_json", "report", "fail_on", "quiet", "verbose")


def report_delivery(options: dict[str, Any]) -> Delivery:
    """Take out of the options what says where the report goes; `report` is its file."""
    return Delivery.asked_for(**{("output" if name == "report" else name): options.pop(name) for name in REPORT})


@dataclass(frozen=True, slots=True)
class LearnerRun:
    """A model to be fitted, with its report."""

    train: str
    options: dict[str, Any]
    delivery: Delivery

    @classmethod
    def asked_for(
        cls, sources: Mapping[str, str | None], options: dict[str, Any], example: str, record: type[Record]
    ) -> LearnerRun:
        """Return the run that the options ask for."""
        delivery = report_delivery(options)
        delivery.check_gates(record)
        given = {name: source for name, source in sources.items() if source is not None}
        check_stdin(given, example)
        outputs = {"-o": options["output"], "--plot": options["plot"], "--report": delivery.output}
        check_outputs(tuple(given.values()), outputs)
        return cls(next(iter(given.values())), options, delivery)

    def fitted(self, function: str) -> Any:
        """Fit the model by a function of kerntest, with a progress bar where somebody is looking."""
        import kerntest  # noqa: PLC0415 - numerics are loaded only to compute

        join_names(self.options, "columns", "exclude", "categorical")
        try:
            with progress_bar(quiet=self.delivery.messages.quiet, doing="fitting") as progress:
                return getattr(kerntest, function)(self.train, progress=progress, **self.options)
        except KerntestError as error:
            point_at(error, self.options["kernel"])
            raise

    def deliver(self, result: Any, notes: Sequence[str], summarise: Callable[[Any], Summary]) -> int:
        """Write the report, say on stderr what it does not, and return the exit code."""
        self.delivery.messages.explain(notes)
        self.delivery.deliver(result, summarise)
        self.delivery.messages.wrote(self.options["plot"], result.model)
        return self.delivery.code(result)
