"""Options: values checked as they are read and completed at the Tab key, and those that commands share, in the same words."""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from kerntest.cli.manual import AnyCommand, option, stacked
from kerntest.errors import UsageError, suggest
from kerntest.report.write import check_writable

if TYPE_CHECKING:
    from collections.abc import Callable

    AnyParamType = click.ParamType[Any]
else:
    # click before 8.5 has no generic types.
    AnyParamType = click.ParamType

LARGEST_COUNT = 10**9
# Arguments that are files, in the order in which their columns are offered.
_FILES = ("file", "x", "y", "train", "test", "data", "other", "input")
_SPECIAL_IN_BASH = re.compile(r"[^\w,.:/@%+=-]")


def refusal(
    param: click.Parameter | None,
    ctx: click.Context | None,
    value: Any,
    form: str,
    *,
    code: str,
    words: tuple[str, ...] = (),
    hint: str = "",
) -> UsageError:
    """Return the error for a value that is not of a form, with the word that was meant."""
    close = suggest(str(value).casefold(), words)
    hint = hint or f"see `{ctx.command_path if ctx else 'kerntest'} --help`"
    return UsageError(
        f"{option_name(param)} must be {form}, not {str(value)!r}",
        hint=f"did you mean {close!r}?" if close else hint,
        code=code,
        where={"value": str(value)},
    )


def option_name(param: click.Parameter | None) -> str:
    """Return the longest name of an option, as messages call it."""
    return max(param.opts, key=len) if param is not None and param.opts else "the value"


# The name of a type stands for its values in the help.
class OneOf(AnyParamType):
    """One word of a few; a mistyped one is told which was meant."""

    name = "name"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, whatever its case was."""
        word = str(value).casefold()
        if word not in self.words:
            either = " or ".join(filter(None, (", ".join(self.words[:-1]), self.words[-1])))
            raise refusal(param, ctx, value, either, code="usage.choice", words=self.words)
        return word

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - the signature is click's
        """Complete the word."""
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete.casefold())]


class Quantity(AnyParamType):
    """A number for which something must hold."""

    def __init__(
        self, name: str, read: Callable[[str], float], holds: Callable[[float], bool], description: str
    ) -> None:
        self.name, self.read, self.holds, self.description = name, read, holds, description

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            if self.holds(number := self.read(value)):
                return number
        except (ValueError, OverflowError):
            pass
        raise refusal(param, ctx, value, self.description, code="usage.range")


PROBABILITY = Quantity("p", float, lambda value: 0 < value < 1, "a number between 0 and 1, both excluded")
COUNT = Quantity("n", int, lambda value: 1 <= value <= LARGEST_COUNT, "a whole number from 1 to 1000000000")
POSITIVE = Quantity("x", float, lambda value: 0 < value < math.inf, "a positive number")
SEED = Quantity("n", int, lambda value: value >= 0, "a whole number from 0 up")
FOLDS = Quantity("k", int, lambda value: 2 <= value <= 1000, "a whole number from 2 to 1000")


class Bandwidth(AnyParamType):
    """``auto``, ``median``, a positive number, or several with commas between them; or one number only."""

    name = "value"

    def __init__(self, *words: str, several: bool = True) -> None:
        self.words, self.several = words or ("auto", "median"), several

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | float | tuple[float, ...]:
        """Return the word, the number or the numbers."""
        if not isinstance(value, str):
            return tuple(value) if isinstance(value, (list, tuple)) else float(value)
        if value.strip().casefold() in self.words:
            return value.strip().casefold()
        try:
            numbers = tuple(float(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        right = numbers and all(math.isfinite(number) and number > 0 for number in numbers)
        if not right or (len(numbers) > 1 and not self.several):
            form = "positive numbers with commas between them" if self.several else "a positive number"
            form = f"{', '.join(self.words)}{',' if len(self.words) > 1 else ''} or {form}"
            raise refusal(param, ctx, value, form, code="usage.bandwidth", words=self.words)
        return numbers if len(numbers) > 1 else numbers[0]


class KernelText(click.types.StringParamType):
    """The text of a kernel: read later, by the kernels themselves; here only completed."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - the signature is click's
        """Complete the name that is being typed, which may stand in the middle of an expression."""
        from kerntest.kernels import NAMES, NORMALISE  # noqa: PLC0415 - only a shell's Tab key needs it

        word = re.search(r"[\w-]*$", incomplete)[0]  # type: ignore[index]  # the empty text matches
        before = incomplete.removesuffix(word)
        names = (*NAMES, NORMALISE) if before else ("auto", *NAMES, NORMALISE)
        return [CompletionItem(before + name) for name in names if name.startswith(word.casefold())]


class ColumnNames(click.types.StringParamType):
    """Names of columns with commas between them: read later, by the library; here only completed."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - the signature is click's
        """Complete the name after the last comma or colon; without a readable file there is nothing to offer."""
        try:
            return [CompletionItem(word) for word in completed(incomplete, _names(ctx))]
        except Exception:  # noqa: BLE001 - a Tab key must never print an error, whatever is in the file
            return []


def _names(ctx: click.Context) -> list[str]:
    """Return the names in the headers of the files on the command line, each once."""
    from kerntest.data.formats.dialect import header_names  # noqa: PLC0415 - only a shell's Tab key needs it

    found: dict[str, None] = {}
    # The option that is being typed lacks its value: click then leaves the files where it found them, in `args`.
    for path in (*(ctx.params.get(argument) for argument in _FILES), *ctx.args):
        # A file that cannot be read must not hide the names of the other.
        with suppress(Exception):
            found |= dict.fromkeys(header_names(path) if isinstance(path, str) else ())
    return list(found)


def completed(incomplete: str, names: list[str]) -> list[str]:
    """Return what `incomplete` may become: its last name completed; names that stand in it are not offered again."""
    comma = incomplete.rfind(",") + 1
    before, word = incomplete[:comma], incomplete[comma:]
    taken = {name.strip() for name in before.split(",")}
    first, colon, last = word.rpartition(":")
    if colon and first in names and word not in names:
        before, word = f"{before}{first}:", last
    opened = word.startswith('"')
    word = word.removeprefix('"')
    found = [name for name in names if name.startswith(word) and name not in taken and name.isprintable()]
    answers = [f'{before}"{name}"' if "," in name or opened else before + name for name in found]
    if not os.environ.get("_KERNTEST_COMPLETE", "").startswith("bash"):
        return answers
    # zsh and fish quote by themselves, bash does not.
    return [_SPECIAL_IN_BASH.sub(lambda special: f"\\{special.group()}", answer) for answer in answers]


class OutputPath(click.Path):
    """A file to write, checked before the work begins; ``-`` is the standard output where it may be."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(allow_dash=allow_dash)
        self.name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or the DataError that writing it would raise."""
        path = os.fsdecode(super().convert(value, param, ctx))
        if not path:
            hint = f"see `{ctx.command_path if ctx else 'kerntest'} --help`"
            raise UsageError(f"{option_name(param)} needs the name of a file", hint=hint)
        if path == "-" and not self.allow_dash:
            raise UsageError(
                f"{option_name(param)} writes a file, not the standard output",
                hint="name a file, or leave the option out",
                code="usage.output_dash",
            )
        if path != "-" and not (ctx and ctx.resilient_parsing):
            check_writable(path)
        return path


ROWS, CSV, JUDGED = "Columns and rows", "How CSV is written", "Choosing and judging"
_rows, _csv, _test, _judged, _output, _computing = (
    partial(option, topic=topic) for topic in (ROWS, CSV, "Test", JUDGED, "Output", "Computing")
)


def columns_option(name: str, text: str, *, topic: str = ROWS) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for an option that names columns; given twice, the names add up."""
    return option(name, type=ColumnNames(), multiple=True, metavar="NAMES", topic=topic, help=text)


SCALE = _rows(
    "--scale",
    type=OneOf("standardize", "none"),
    default="standardize",
    metavar="RULE",
    help="standardize brings every numeric column to mean 0 and standard deviation 1; none leaves the units.",
)
MISSING = _rows(
    "--missing",
    type=OneOf("error", "drop"),
    default="error",
    metavar="RULE",
    help="Missing values: error (stop and count them) or drop (leave out their rows).",
)
CATEGORICAL = columns_option("--categorical", "Columns of numbers that are codes for categories.")
CLUSTER = _rows(
    "--cluster",
    type=ColumnNames(),
    metavar="NAME",
    help="Column, such as a patient or a shop, whose rows of one value stay together in test parts and folds; not learned "
    "from.",
)

CSV_WORDS = frozenset({"decimal", "na", "delimiter", "encoding", "header", "comment"})
csv_options = stacked(
    _csv(
        "--decimal",
        type=OneOf("auto", ".", ","),
        default="auto",
        metavar="MARK",
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
        help="What stands between fields: one character, or tab, space, comma, semicolon or bar.  [default: found]",
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
)
# What learners read their rows with.
TABLE = stacked(CATEGORICAL, SCALE, csv_options, MISSING)


def estimator_option(estimated: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --estimator."""
    text = f"Estimate of {estimated} that is tested: unbiased (may be negative) or biased. Both are reported."
    return _test("--estimator", type=OneOf("unbiased", "biased"), default="unbiased", help=text)


def null_option(one_kernel: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --null; `one_kernel` is what the approximate ones are for."""
    return _test(
        "--null",
        type=OneOf("permutation", "moments", "gamma", "spectral", "pearson"),
        default="permutation",
        help=f"Where the p-value comes from: permutation (exact); or, approximately and for {one_kernel}, moments, gamma, "
        "spectral or pearson (see below).",
    )


def permutations_option(number: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --permutations; `number` says what N is of those that are used."""
    text = f"Relabellings to use{number}; the smallest possible p-value is 1/N."
    return _test("--permutations", type=COUNT, default=1000, help=text)


def resampling_option(usual: str, meaning: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --resampling; `usual` names the default, and `meaning` says what it is."""
    text = f"Relabellings of the permutation null: {meaning}, or ordinary random permutations (much slower)."
    return _test("--resampling", type=OneOf(usual, "random"), default=usual, help=text)


JUDGE = _test(
    "--judge",
    type=OneOf("together", "smallest"),
    default="together",
    help="How several kernels come to one p-value: together (how unusual their statistics are as a whole, given how they "
    "vary together: sees what no kernel shows alone) or smallest (the smallest p-value of any of them, corrected).",
)
ALPHA = _test("--alpha", type=PROBABILITY, default=0.05, help="Level of the test.")
SEED_OPTION = _test("--seed", type=SEED, default=0, help="Seed; the same seed gives the same p-value.")


def method_options(kinds: str, usual: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --method and --features; `kinds` says what null goes with features, `usual` which."""
    return stacked(
        _test(
            "--method",
            type=OneOf("exact", "features"),
            help="exact compares all pairs of rows. features, for any number of rows, stands for the kernel by a few "
            f"hundred columns, reads files piece by piece and never holds them; {kinds}. The error is told.  [default: exact]",
        ),
        _test(
            "--features",
            metavar="KIND:M",
            help="Features of --method features: nystroem:M (kernel values at M random rows) or fourier:M (random waves, for "
            f"numbers). More take longer and come nearer to the kernel.  [default: {usual}]",
        ),
    )


def chosen_method(options: dict[str, Any]) -> None:
    """Make --method of what was given: --features alone asks for it; neither leaves the test as it is."""
    if options["features"] is not None and options["method"] == "exact":
        raise UsageError(
            "--features does not go with --method exact",
            hint="leave out one of the two: --features alone asks for --method features",
            code="usage.contradiction",
        )
    options["method"] = options["method"] or ("exact" if options["features"] is None else "features")
    if options["features"] is None:
        del options["features"]


def kernel_option(topic: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --kernel."""
    text = "Kernel, such as 'laplacian' or 'gaussian(1.5) + 0.5*linear'; `kerntest kernels` lists them."
    return option("--kernel", type=KernelText(), default="gaussian", topic=topic, help=text)


def features_option(topic: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --features."""
    text = "For very many rows: nystroem:M or fourier:M, M explicit features instead of the kernel; the error is told."
    return option("--features", metavar="KIND:M", topic=topic, help=text)


def seed_option(topic: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --seed."""
    text = "Seed of all that is drawn at random: parts, folds, features."
    return option("--seed", type=SEED, default=0, topic=topic, help=text)


TEST = _judged("--test", type=click.Path(readable=False), metavar="FILE", help="Rows to judge by, in a file.")


def test_fraction_option(drawn: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --test-fraction; `drawn` says how, such as "drawn by class"."""
    text = f"Share of the rows of TRAIN to hold out and judge by, {drawn}."
    return _judged("--test-fraction", type=PROBABILITY, metavar="SHARE", help=text)


FORMATS = {
    "table": "table for people",
    "json": "json for programs",
    "csv": "csv: a header and the values",
    "jsonl": "jsonl: one JSON object a line",
}


def format_options(*, lines: bool = False) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --format and --json; both arrive as `output_format` through `chosen_format`."""
    formats = [name for name in FORMATS if lines or name != "jsonl"]
    text = f"{', '.join(FORMATS[name] for name in formats)}.  [default: table]"
    return stacked(
        _output("--format", "output_format", type=OneOf(*formats), metavar="FORMAT", help=text),
        _output("--json", "as_json", is_flag=True, help="Short for --format json."),
    )


def chosen_format(output_format: str | None, *, as_json: bool) -> str:
    """Return the format that --format and --json ask for together."""
    if as_json and output_format not in {None, "json"}:
        raise UsageError(
            f"--json and --format {output_format} contradict each other",
            hint="give one of them",
            code="usage.contradiction",
        )
    return "json" if as_json else output_format or "table"


# --quiet and --verbose of every command that reports.
VERBOSITY = stacked(
    _output("-q", "--quiet", is_flag=True, help="Nothing on stderr but errors: no warnings, no progress."),
    _output(
        "-v",
        "--verbose",
        is_flag=True,
        help="Explain on stderr what was found in the files and chosen automatically.",
    ),
)


def result_options(*, lines: bool = False) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --format, --json, --output, --quiet and --verbose, in this order."""
    return stacked(
        format_options(lines=lines),
        _output(
            "-o",
            "--output",
            type=OutputPath(allow_dash=True),
            help="Write the result to FILE instead of stdout, as JSON or CSV where its name ends so; on failure an old FILE "
            "stays as it was.",
        ),
        VERBOSITY,
    )


def model_options(purpose: str, drawing: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --plot, --output for the model, and --force."""
    return stacked(
        _output("--plot", type=OutputPath(), help=f"Draw {drawing}."),
        _output("-o", "--output", type=OutputPath(), metavar="MODEL", help=f"Keep the model in a file, {purpose}."),
        _output(
            "--force",
            is_flag=True,
            help="Replace a model file that is there already; any other output replaces its file without being told to.",
        ),
    )


report_options = stacked(
    _output("--report", type=OutputPath(allow_dash=True), help="Write the report to FILE instead of stdout."),
    format_options(),
    VERBOSITY,
)


def engine_options(*engines: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds the options about the engine; without names the command has only the local one."""
    words = {"local": "local (threads)", "gpu": "gpu (needs PyTorch)", "dask": "dask (a cluster)"}
    threads = "Threads, or processes of a cluster on this machine" if engines else "Threads to use"
    chosen = (
        _computing(
            "--engine",
            type=OneOf("auto", *engines),
            default="auto",
            help=f"Where to compute: {', '.join(words[name] for name in engines)}, or auto: dask where a --scheduler is "
            "named, else local. The same seed gives the same p-value on each.",
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
            help=f"{threads}; the result depends on it by rounding at most.  [default: all cores]",
        ),
        _computing(
            "--memory",
            metavar="SIZE",
            help="Memory to stay below, such as 4GB; what cannot is refused (exit 4).",
        ),
        _computing(
            "--dry-run",
            is_flag=True,
            help="Print only the plan: what would be computed where, the memory it takes and about how long. -v prints it "
            "before the result.",
        ),
    )
