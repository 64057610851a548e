"""Options: values checked as they are read, and those that commands share, in the same words."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from kerntest.cli.completion import columns_named, kernels_named
from kerntest.errors import UsageError, suggest
from kerntest.report.write import check_writable

if TYPE_CHECKING:
    AnyParamType = click.ParamType[Any]
else:
    # click before 8.5 has no generic types.
    AnyParamType = click.ParamType

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])

LARGEST_COUNT = 10**9


class TopicOption(click.Option):
    """An option that belongs under a heading of the help."""

    def __init__(self, *arguments: Any, topic: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.topic = topic


def option(
    *declarations: str, topic: str, of: tuple[str, ...] = (), **attributes: Any
) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that gives a command an option under a topic; one word `of` a few, the first by default."""
    words = {"type": one_of(*of), "default": of[0]} if of else {}
    return click.option(*declarations, cls=TopicOption, topic=topic, **({"show_default": True} | words | attributes))


def stacked(*decorators: Callable[[Any], Any]) -> Callable[[AnyCommand], AnyCommand]:
    """Return several decorators as one; the options come in this order."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def contradiction(message: str, hint: str = "give one of them") -> UsageError:
    """Return the error for options that do not go together."""
    return UsageError(message, hint=hint, code="usage.contradiction")


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether a parameter stands on the command line."""
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def option_name(param: click.Parameter | None) -> str:
    """Return the longest name of an option, as messages call it."""
    return max(param.opts, key=len) if param is not None and param.opts else "the value"


def see_help(ctx: click.Context | None) -> str:
    """Return where the options of a command are told."""
    return f"see `{ctx.command_path if ctx else 'kerntest'} --help`"


class Value(AnyParamType):
    """A value of a form, which `read` returns or refuses with a ValueError; a mistyped word is told which was meant."""

    def __init__(
        self, name: str, form: str, read: Callable[[Any], Any], code: str, *, words: Iterable[str] = ()
    ) -> None:
        self.name, self.form, self.read, self.code, self.words = name, form, read, code, tuple(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value as it was read."""
        try:
            return self.read(value)
        except (ValueError, OverflowError):
            raise UsageError(
                f"{option_name(param)} must be {self.form}, not {str(value)!r}",
                hint=self.nearest(str(value)) or see_help(ctx),
                code=self.code,
                where={"value": str(value)},
            ) from None

    def nearest(self, text: str) -> str:
        """Return the hint for a text that is refused, if it comes near to anything."""
        close = suggest(text.casefold(), self.words)
        return f"did you mean {close!r}?" if close else ""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - the signature is click's
        """Complete a word."""
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete.casefold())]


def one_of(*words: str, **short: str) -> Value:
    """Return the type of one word of a few, in any case, or short for one; its name stands for the values in the help."""
    either = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    return Value(
        "name",
        either,
        lambda text: words[words.index(short.get(word := str(text).casefold(), word))],
        "usage.choice",
        words=words,
    )


def quantity(name: str, read: Callable[[str], float], holds: Callable[[float], bool], form: str) -> Value:
    """Return the type of a number for which something must hold."""

    def number(text: str) -> float:
        if holds(found := read(text)):
            return found
        raise ValueError

    return Value(name, form, number, "usage.range")


class Share(Value):
    """A number between 0 and 1, also as percents."""

    def __init__(self, name: str) -> None:
        def share(text: Any) -> float:
            found = float(str(text).removesuffix("%")) / (100.0 if str(text).endswith("%") else 1.0)
            if 0 < found < 1:
                return found
            raise ValueError

        super().__init__(name, "a number between 0 and 1, both excluded", share, "usage.range")

    def nearest(self, text: str) -> str:
        """Return the hint for a whole number, which may be meant as percents."""
        return f"did you mean {int(text) / 100:g}?" if text.isdecimal() and 1 < int(text) < 100 else ""


PROBABILITY = Share("p")
COUNT = quantity("n", int, lambda value: 1 <= value <= LARGEST_COUNT, "a whole number from 1 to 1000000000")
POSITIVE = quantity("x", float, lambda value: 0 < value < math.inf, "a positive number")
SEED = quantity("n", int, lambda value: value >= 0, "a whole number from 0 up")
FOLDS = quantity("k", int, lambda value: 2 <= value <= 1000, "a whole number from 2 to 1000")


def bandwidth(*words: str) -> Value:
    """Return the type of one of some words or a positive number; where there is `auto`, of several with commas between."""
    several = "auto" in words
    form = "positive numbers with commas between them" if several else "a positive number"

    def read(text: str) -> str | float | tuple[float, ...]:
        if (word := text.strip().casefold()) in words:
            return word
        numbers = tuple(map(float, text.split(",")))
        if not all(0 < number < math.inf for number in numbers) or (len(numbers) > 1 and not several):
            raise ValueError
        return numbers if len(numbers) > 1 else numbers[0]

    either = f"{', '.join(words)}{',' if len(words) > 1 else ''} or {form}"
    return Value("value", either, read, "usage.bandwidth", words=words)


class OutputPath(click.Path):
    """A file to write, checked before the work begins; ``-`` is the standard output where it may be."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(allow_dash=allow_dash)
        self.name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or the DataError that writing it would raise."""
        path = os.fsdecode(super().convert(value, param, ctx))
        if not path:
            raise UsageError(f"{option_name(param)} needs the name of a file", hint=see_help(ctx))
        if path == "-" and not self.allow_dash:
            raise UsageError(
                f"{option_name(param)} writes a file, not the standard output",
                hint="name a file, or leave the option out",
                code="usage.output_dash",
            )
        if path != "-" and not (ctx and ctx.resilient_parsing):
            check_writable(path)
        return path


def data_argument(name: str, **attributes: Any) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for a table to read, a path or ``-``."""
    return click.argument(name, type=click.Path(allow_dash=True, readable=False), **attributes)


def _joined(ctx: click.Context, param: click.Parameter, lists: tuple[str, ...]) -> str | None:  # noqa: ARG001 - the signature is click's
    """Make one text of the lists of columns that were given, None where none was."""
    if lists and not any(names.strip() for names in lists):
        hint = "leave it out, or name one"
        raise UsageError(f"{option_name(param)} names no column", hint=hint, code="usage.no_columns")
    return ",".join(lists) or None


ROWS, JUDGED = "Columns and rows", "Choosing and judging"
_rows, _judged, _csv, _test, _output, _computing = (
    partial(option, topic=topic) for topic in (ROWS, JUDGED, "How CSV is written", "Test", "Output", "Computing")
)
column = partial(option, topic=ROWS, shell_complete=columns_named, metavar="NAME")
columns = partial(column, multiple=True, callback=_joined, metavar="NAMES")
kernel = partial(option, shell_complete=kernels_named)

SCALE = _rows(
    "--scale",
    of=("standardize", "none"),
    help="standardize brings every numeric column to mean 0 and standard deviation 1; none leaves the units.",
)
MISSING = _rows(
    "--missing",
    of=("error", "drop", "indicator"),
    help="Missing values: error (stop and count them), drop (leave out their rows) or indicator (take them as information: "
    "beside a number, its gaps filled with the mean, stands whether it is there; a category has one more).",
)
COLUMNS = stacked(
    columns("--columns", help="Columns that take part, such as 'price,size:weight,temp_*' (a:b is a range)."),
    columns("--exclude", help="Columns to leave out, written the same way."),
    columns("--categorical", help="Columns of numbers that are codes for categories."),
)

CSV_WORDS = frozenset({"decimal", "na", "delimiter", "encoding", "header", "comment", "dayfirst", "where", "sample"})
csv_options = stacked(
    _rows(
        "--where",
        metavar="CONDITION",
        shell_complete=columns_named,
        help="Only rows for which this holds, such as 'year == 2009 and price > 0'; see kerntest-files(5). They keep their "
        "numbers.",
    ),
    _rows("--sample", type=COUNT, help="Only so many rows of each file, at random by --seed; of those of --where."),
    _csv(
        "--decimal",
        of=("auto", ".", ","),
        help="Decimal mark: auto, '.' or ','; auto warns where it found a comma.",
    ),
    _csv(
        "--na",
        metavar="VALUES",
        help="Words that are missing values, such as '?,unknown'; '' for none. An empty field always is one; between "
        "quotes a word is text in a column of text.  [default: NA, N/A, #N/A, NaN, nan, null, NULL, None, n/a]",
    ),
    _csv(
        "--delimiter",
        metavar="CHAR",
        help="What stands between fields: one character, or tab, space (one or more), comma, semicolon or bar.  [default: found]",
    ),
    _csv("--encoding", metavar="NAME", help="Such as latin-1 or utf-16.  [default: utf-8]"),
    _csv(
        "--no-header",
        "header",
        is_flag=True,
        flag_value=False,
        default=True,
        show_default=False,
        help="The first line is a row; the columns are called x1, x2 and so on.",
    ),
    _csv("--comment", metavar="TEXT", help="Lines that begin so, such as '#', are no rows."),
    _csv(
        "--dayfirst/--no-dayfirst",
        default=None,
        show_default=False,
        help="Dates such as 03/04/2020 have the day first, or the month, where no value of their column tells.",
    ),
)
TABLE = stacked(COLUMNS, SCALE, csv_options, MISSING)
LEARNED_TABLE = stacked(
    COLUMNS,
    _rows(
        "--scale",
        of=("standardize", "together", "none"),
        help="standardize brings every numeric column to mean 0 and standard deviation 1; together divides all by one "
        "number, for columns of one unit such as pixels or channels; none leaves the units.",
    ),
    csv_options,
    MISSING,
)


def test_options(features: str, usual: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds what both tests have, with the usual features and the usual resampling of each."""
    return stacked(
        _test(
            "--method",
            type=one_of("auto", "exact", "features"),
            help="exact compares all pairs of rows. features, for any number of rows, stands for the kernel by a few hundred "
            "columns, reads files piece by piece and never holds them, and takes another null (see below). The error is told. "
            "auto is exact where that is at most some two minutes of work, else features, and says so.  [default: auto]",
        ),
        _test(
            "--features",
            metavar="KIND:M",
            help="Features of --method features: nystroem:M (kernel values at M random rows) or fourier:M (random waves, for "
            f"numbers). More take longer and come nearer to the kernel.  [default: {features}]",
        ),
        _test(
            "--estimator",
            of=("unbiased", "biased"),
            help="Estimate that is tested: unbiased (may be negative) or biased. Both are reported.",
        ),
        _test(
            "--null",
            of=("permutation", "moments", "gamma", "spectral", "pearson"),
            help="Where the p-value comes from: permutation (exact); or, approximately and of one kernel, or one pair, moments, "
            "gamma, spectral or pearson (see below).",
        ),
        _test(
            "--permutations",
            type=COUNT,
            default=1000,
            help="Relabellings to use at least; the smallest possible p-value is 1/N.",
        ),
        _test(
            "--resampling",
            of=(usual, "random"),
            help=f"Relabellings of the permutation null: {usual} (see below), or ordinary random permutations (much slower).",
        ),
        _test(
            "--judge",
            of=("together", "smallest"),
            help="How several kernels come to one p-value: together (how unusual their statistics are as a whole, given how "
            "they vary together: sees what no kernel shows alone) or smallest (the smallest p-value of any of them, corrected).",
        ),
        _test("--alpha", type=PROBABILITY, default=0.05, help="Level of the test."),
        _test("--seed", type=SEED, default=0, help="Seed; the same seed gives the same p-value."),
    )


def choose_test(ctx: click.Context, options: dict[str, Any], by_features: str = "permutation") -> None:
    """Make --method and --null of what was given, and refuse what they leave without effect.

    --features alone asks for the method of that name, whose null this is by default.
    """
    if options["features"] is None:
        del options["features"]
    elif options["method"] == "exact":
        raise contradiction(
            "--features does not go with --method exact",
            "leave out one of the two: --features alone asks for --method features",
        )
    options["method"] = options["method"] or ("features" if "features" in options else "auto")
    null = options["null"]
    if options["method"] == "features" and not is_given(ctx, "null"):
        null = options["null"] = by_features
    elif options["method"] == "auto" and by_features != null and not is_given(ctx, "null"):
        # It is that of the method.
        options["null"] = None
    # The Pearson curve finds its fourth moment from relabellings.
    unused = {"permutation": (), "pearson": ("resampling", "judge")}.get(null, ("permutations", "resampling", "judge"))
    for name in unused:
        if is_given(ctx, name):
            hint = "its p-value is read off a curve; --null permutation is the one that relabels rows"
            raise contradiction(f"--{name} does not go with --null {null}", hint)


def learner_options(topic: str, *bandwidths: str, features: str = "") -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --kernel, --bandwidth, one of these words by default, --features and --seed."""
    own, chosen = partial(option, topic=topic), "auto (chosen), " if bandwidths[0] == "auto" else ""
    return stacked(
        own(
            "--kernel",
            default="gaussian",
            shell_complete=kernels_named,
            help="Kernel, such as 'laplacian' or 'gaussian(1.5) + 0.5*linear'; `kerntest kernels` lists them.",
        ),
        own(
            "--bandwidth",
            type=bandwidth(*bandwidths),
            default=bandwidths[0],
            help=f"Bandwidth of a kernel that names none: {chosen}median (of the distances of training rows) or a number.",
        ),
        own(
            "--features",
            metavar="KIND:M",
            help=features
            or "For very many rows: nystroem:M or fourier:M, M explicit features instead of the kernel; the error is told. "
            "none insists on the kernel.  [default: none up to some two minutes of work, nystroem beyond it]",
        ),
        own("--seed", type=SEED, default=0, help="Seed of all that is drawn at random: parts, folds, features."),
    )


HELD_OUT = stacked(
    column(
        "--cluster",
        help="Column, such as a patient or a shop, whose rows of one value stay together in test parts and folds, and "
        "over which errors and intervals are; not learned from.",
    ),
    _judged("--test", type=click.Path(readable=False), metavar="FILE", help="Rows to judge by, in a file."),
    _judged(
        "--test-fraction",
        type=PROBABILITY,
        metavar="SHARE",
        help="Share of the rows of TRAIN to hold out and judge by, drawn at random, of each class as many.",
    ),
)
# Of learners of categories.
UNKNOWN = _judged(
    "--unknown",
    of=("error", "ignore"),
    help="Categories of --test that no training row had: error (stop) or ignore (different from every known one).",
)


def _as_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - the signature is click's
    """Make --json a format."""
    if value:
        if (asked := ctx.params.get("output_format")) not in {None, "json"}:
            raise contradiction(f"--json and --format {asked} contradict each other")
        ctx.params["output_format"] = "json"


# --format knows what --json, short for one of them, makes of it.
format_options = stacked(
    _output(
        "--format",
        "output_format",
        type=one_of("table", "json", "jsonl", "csv", "markdown", "html", "parquet", md="markdown"),
        # Read before --json, wherever that stands.
        is_eager=True,
        help="table, markdown or html for people, json for programs, jsonl: one JSON object a line, csv or parquet: a header "
        "and the values. The ending of a file says it too.  [default: table]",
    ),
    _output("--json", is_flag=True, expose_value=False, callback=_as_json, help="Short for --format json."),
)

# Of commands in which nothing else is drawn at random.
SAMPLE_SEED = _rows("--seed", type=SEED, default=0, help="Seed of --sample.")

# --quiet and --verbose of every command that reports.
QUIET = _output("-q", "--quiet", is_flag=True, help="Nothing on stderr but errors: no warnings, no progress.")
VERBOSITY = stacked(
    QUIET,
    _output(
        "-v", "--verbose", is_flag=True, help="Explain on stderr what was found in the files and chosen automatically."
    ),
)


_ENDINGS = "as its name ends: .txt, .md, .html, .json, .jsonl, .csv or .parquet"
result_options = stacked(
    format_options,
    _output(
        "-o",
        "--output",
        type=OutputPath(allow_dash=True),
        help=f"Write the result to FILE instead of stdout (-), {_ENDINGS}; on failure an old FILE stays as it was.",
    ),
    VERBOSITY,
)


def model_options(purpose: str, drawing: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --plot, --output for the model, and --force."""
    return stacked(
        _output("--plot", type=OutputPath(allow_dash=True), help=f"Draw {drawing}."),
        _output("-o", "--output", type=OutputPath(), metavar="MODEL", help=f"Keep the model in a file, {purpose}."),
        _output(
            "--force",
            is_flag=True,
            help="Replace a model file that is there already; any other output replaces its file without being told to.",
        ),
    )


report_options = stacked(
    _output(
        "--report",
        type=OutputPath(allow_dash=True),
        help=f"Write the report to FILE instead of stdout (-), {_ENDINGS}.",
    ),
    format_options,
    VERBOSITY,
)


def engine_options(*engines: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds the options about the engine; without names the command has only the local one."""
    words = {"local": "local (threads)", "gpu": "gpu (needs PyTorch)", "dask": "dask (a cluster)"}
    chosen = (
        _computing(
            "--engine",
            of=("auto", *engines),
            help=f"Where to compute: {', '.join(words[name] for name in engines)}, or auto: dask where a --scheduler is "
            "named, else local. The same seed gives the same numbers on each.",
        ),
        _computing(
            "--scheduler",
            metavar="ADDRESS",
            help="Dask scheduler, such as tcp://10.0.0.1:8786.  [default: a cluster of processes on this machine]",
        ),
    )
    return stacked(
        *(chosen if engines else ()),
        _computing(
            "--threads",
            type=COUNT,
            help="Threads, or processes of a cluster; the result depends on it by rounding at most.  [default: all cores]",
        ),
        _computing(
            "--memory", metavar="SIZE", help="Memory to stay below, such as 4GB; what cannot is refused (exit 4)."
        ),
        _computing(
            "--dry-run",
            is_flag=True,
            help="Print only the plan: what would be computed where, the memory it takes and how long, from least to most where "
            "the values decide. -v prints it before the result.",
        ),
    )
