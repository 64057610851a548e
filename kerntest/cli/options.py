"""Values that options take, checked as they are read; names of columns are completed from the files on the command line."""

from __future__ import annotations

import math
import os
import re
from typing import TYPE_CHECKING, Any

import click

from kerntest.cli.documented import AnyCommand, option, stacked
from kerntest.errors import UsageError, suggest
from kerntest.report.write import check_writable

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    AnyParamType = click.ParamType[Any]
else:
    # click before 8.5 has no generic types.
    AnyParamType = click.ParamType

LARGEST_COUNT = 10**9


class OneOf(AnyParamType):
    """One word of a few; a mistyped one is told which was meant."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, whatever its case was."""
        word = str(value).casefold()
        if word in self.words:
            return word
        close = suggest(word, self.words)
        raise UsageError(
            f"{option_name(param)} must be {_either(self.words)}, not {str(value)!r}",
            hint=f"did you mean {close!r}?" if close else _help_hint(ctx),
            code="usage.choice",
            where={"value": str(value)},
        )

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - the signature is click's
        """Complete the word."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell's Tab key needs it

        return [CompletionItem(word) for word in self.words if word.startswith(incomplete.casefold())]


class Quantity(AnyParamType):
    """A number for which something must hold."""

    name = "number"

    def __init__(self, read: Callable[[str], float], holds: Callable[[float], bool], description: str) -> None:
        self.read = read
        self.holds = holds
        self.description = description

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            number = self.read(value)
            allowed = self.holds(number)
        except (ValueError, OverflowError):
            allowed = False
        if not allowed:
            raise UsageError(
                f"{option_name(param)} must be {self.description}, not {str(value)!r}",
                hint=_help_hint(ctx),
                code="usage.range",
                where={"value": str(value)},
            )
        return number


PROBABILITY = Quantity(float, lambda value: 0 < value < 1, "a number between 0 and 1, both excluded")
COUNT = Quantity(int, lambda value: 1 <= value <= LARGEST_COUNT, "a whole number from 1 to 1000000000")
POSITIVE = Quantity(float, lambda value: 0 < value < math.inf, "a positive number")
SEED = Quantity(int, lambda value: value >= 0, "a whole number from 0 up")


class Bandwidth(AnyParamType):
    """``auto``, ``median``, a positive number, or several with commas between them; or one number only."""

    name = "bandwidth"

    def __init__(self, *words: str, several: bool = True) -> None:
        self.words = words or ("auto", "median")
        self.several = several

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
        right = bool(numbers) and all(math.isfinite(number) and number > 0 for number in numbers)
        if not right or (len(numbers) > 1 and not self.several):
            close = suggest(value, self.words)
            form = "positive numbers with commas between them" if self.several else "a positive number"
            raise UsageError(
                f"{option_name(param)} must be {', '.join(self.words)}{',' if len(self.words) > 1 else ''} or {form}, "
                f"not {value!r}",
                hint=f"did you mean {close!r}?" if close else _help_hint(ctx),
                code="usage.bandwidth",
                where={"value": value},
            )
        return numbers if len(numbers) > 1 else numbers[0]


class KernelText(AnyParamType):
    """The text of a kernel: read later, by the kernels themselves; here only completed."""

    name = "kernel"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 - the signature is click's
        """Return the text."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - the signature is click's
        """Complete the name that is being typed, which may stand in the middle of an expression."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell's Tab key needs it

        from kerntest.kernels import NAMES, NORMALISE  # noqa: PLC0415 - as above

        start = len(incomplete)
        while start and (incomplete[start - 1].isalnum() or incomplete[start - 1] in "-_"):
            start -= 1
        before, word = incomplete[:start], incomplete[start:].casefold()
        names = (*NAMES, NORMALISE) if before else ("auto", *NAMES, NORMALISE)
        return [CompletionItem(before + name) for name in names if name.startswith(word)]


class OutputPath(click.Path):
    """A file to write, checked before the work begins; ``-`` is the standard output where it may be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or the DataError that writing it would raise."""
        path = os.fsdecode(super().convert(value, param, ctx))
        if not path:
            raise UsageError(f"{option_name(param)} needs the name of a file", hint=_help_hint(ctx))
        if path == "-" and not self.allow_dash:
            raise UsageError(
                f"{option_name(param)} writes a file, not the standard output",
                hint="name a file, or leave the option out",
                code="usage.output_dash",
            )
        if path != "-" and not (ctx and ctx.resilient_parsing):
            check_writable(path)
        return path


def option_name(param: click.Parameter | None) -> str:
    """Return the longest name of an option, as messages call it."""
    return max(param.opts, key=len) if param is not None and param.opts else "the value"


def _help_hint(ctx: click.Context | None) -> str:
    """Return where to read on."""
    return f"see `{ctx.command_path if ctx else 'kerntest'} --help`"


def _either(words: tuple[str, ...]) -> str:
    """Return words as "a, b or c"."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


FORMATS = {
    "table": "table for people",
    "json": "json for programs",
    "csv": "csv: a header and the values",
    "jsonl": "jsonl: one JSON object a line",
}


def format_options(*, lines: bool = False) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --format and --json; both arrive as `output_format` through `chosen_format`."""
    formats = [name for name in FORMATS if lines or name != "jsonl"]

    return stacked(
        option(
            "--format",
            "output_format",
            type=OneOf(*formats),
            metavar="FORMAT",
            topic="Output",
            help=f"{', '.join(FORMATS[name] for name in formats)}.  [default: table]",
        ),
        option("--json", "as_json", is_flag=True, topic="Output", help="Short for --format json."),
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
    option(
        "-q",
        "--quiet",
        is_flag=True,
        topic="Output",
        help="Nothing on stderr but errors: no warnings, no progress.",
    ),
    option(
        "-v",
        "--verbose",
        is_flag=True,
        topic="Output",
        help="Explain on stderr what was found in the files and chosen automatically.",
    ),
)


def result_options(*, lines: bool = False) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --format, --json, --output, --quiet and --verbose, in this order."""
    return stacked(
        format_options(lines=lines),
        option(
            "-o",
            "--output",
            type=OutputPath(allow_dash=True),
            metavar="FILE",
            topic="Output",
            help="Write the result to FILE instead of stdout, as JSON or CSV where its name ends so; on failure an old FILE "
            "stays as it was.",
        ),
        VERBOSITY,
    )


# Arguments that are files, in the order in which their columns are offered.
_FILES = ("file", "x", "y", "train", "test", "data", "other", "input")
_SPECIAL_IN_BASH = re.compile(r"[^\w,.:/@%+=-]")


class ColumnNames(AnyParamType):
    """Names of columns with commas between them: read later, by the library; here only completed."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 - the signature is click's
        """Return the text."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - the signature is click's
        """Complete the name after the last comma or colon; without a readable file there is nothing to offer."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell's Tab key needs it

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
        if isinstance(path, str):
            found |= dict.fromkeys(_names_or_none(header_names, path))
    return list(found)


def _names_or_none(read: Any, path: Any) -> tuple[str, ...]:
    """Return the names in one file; a file that cannot be read must not hide those of the other."""
    try:
        names: tuple[str, ...] = read(path)
    except Exception:  # noqa: BLE001 - as above
        return ()
    return names


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
    answers = []
    for name in names:
        if name.startswith(word) and name not in taken and name.isprintable():
            quoted = f'"{name}"' if "," in name or opened else name
            answers.append(_for_shell(f"{before}{quoted}"))
    return answers


def _for_shell(word: str) -> str:
    """Return a word as the shell wants it: zsh and fish quote by themselves, bash does not."""
    if not os.environ.get("_KERNTEST_COMPLETE", "").startswith("bash"):
        return word
    return _SPECIAL_IN_BASH.sub(lambda found: f"\\{found.group()}", word)
