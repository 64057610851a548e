"""How a run that failed says so: click's errors in our own words, and every error as two lines or as JSON."""

from __future__ import annotations

import json
import re
import signal
import traceback
import unicodedata
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import click

from kerntest.cli.console import say
from kerntest.cli.manual import DocumentedGroup
from kerntest.errors import DataError, KerntestError, UndecidedError, UsageError, suggest
from kerntest.report.summaries.words import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

PICTURE_WIDTH = 72
# Quoted text of more than 200 characters, of which 60 are shown.
_LONG_QUOTE = re.compile(r"(['\"])((?:(?!\1).){60})(?:(?!\1).){141,}\1")
JSON_FORMATS = {"json", "jsonl"}


# What shells add to the number of the signal that ended a process.
SHELL_SIGNAL = 128


class InterruptionError(KerntestError):
    """Ctrl-C, or another signal that ends a run: exit code 128 and its number."""

    exit_code = SHELL_SIGNAL + signal.SIGINT
    default_code = "interrupted"


class EndedBySignal(KeyboardInterrupt):
    """What unwinds a run that a signal ends: its number, and the word that tells of it."""


def from_click(error: click.ClickException) -> KerntestError:
    """Return click's error as one of ours, with a hint."""
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "kerntest"
    see = f"see `{path} --help`"
    if isinstance(error, click.NoSuchOption) and ctx is not None:
        return _no_such_option(error.option_name, ctx)
    if isinstance(error, click.MissingParameter) and error.param is not None and ctx is not None:
        return UsageError(
            f"missing argument {error.param.human_readable_name}",
            hint=f"the usage is `{path} {' '.join(ctx.command.collect_usage_pieces(ctx))}`; {see}",
            code="usage.missing_argument",
        )
    message = error.format_message().strip()
    message = message[:1].lower() + message[1:].rstrip(".")
    message = message.replace("requires an argument", "needs a value")
    if message.startswith("got unexpected extra argument"):
        see = f"quote names that contain blanks, and globs; {see}"
    return UsageError(message, hint=see)


def _no_such_option(name: str, ctx: click.Context) -> UsageError:
    """Return the error for an option that is not there, with the one that was meant, or the command it stands after."""
    commands = ctx.command.documented() if isinstance(ctx.command, DocumentedGroup) else {}
    owners = [owner for owner, sub in commands.items() if name in _option_names(sub)]
    hint = f"see `{ctx.command_path} --help`"
    if owners:
        hint = f"it stands after the command: `{ctx.command_path} {owners[0]} ... {name}`"
    elif close := suggest(name, _option_names(ctx.command)):
        hint = f"did you mean {close}?"
    return UsageError(f"no such option: {name}", hint=hint, code="usage.unknown_option", where={"value": name})


def _option_names(command: click.Command) -> tuple[str, ...]:
    """Return the long names of the options of a command."""
    options = (param for param in command.params if isinstance(param, click.Option))
    return (*(name for option in options for name in option.opts if name.startswith("--")), "--help")


def from_exception(error: BaseException) -> KerntestError:
    """Return any exception as one of our errors: memory and files are the user's world, the rest is a bug."""
    if isinstance(error, KerntestError):
        return error
    if isinstance(error, click.ClickException):
        return from_click(error)
    if isinstance(error, EndedBySignal):
        number, told = error.args
        ended = InterruptionError(told, code=told.replace(" ", "_"))
        ended.exit_code = SHELL_SIGNAL + number
        return ended
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return InterruptionError("interrupted")
    if isinstance(error, MemoryError):
        return UndecidedError(
            "not enough memory",
            hint="use fewer rows, such as a random part of each file, or fewer columns",
            code="undecided.memory",
        )
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return DataError(
            f"{place}{(error.strerror or str(error)).lower()}",
            hint="check the name, the permissions and the free space",
            code="data.system",
            where={"file": str(error.filename)} if error.filename else None,
        )
    return KerntestError(
        f"internal error: {type(error).__name__}: {error}",
        hint="this is a bug in kerntest: please report it with the output of the same command with KERNTEST_DEBUG=1",
    )


def report(error: KerntestError, *, as_json: bool) -> None:
    """Write an error to stderr: a line, a picture of the place in a kernel text, and a hint; or one line of JSON."""
    if as_json:
        # ASCII, since stderr is in the locale's encoding; default, since an error must be told whatever is in it.
        say(json.dumps(error_document(error), default=str), whole=True)
        return
    say(visible(_brief(error.message)), label="" if isinstance(error, InterruptionError) else "error")
    text, position = error.where.get("text"), error.where.get("position")
    if isinstance(text, str) and text and isinstance(position, int):
        for line in picture(text, position):
            say(line, whole=True)
    if error.hint is not None:
        say(visible(_brief(error.hint)), label="hint")


def _brief(text: str) -> str:
    """Return a message, of what it quotes at length only the beginning: a kernel may be of any length."""
    return _LONG_QUOTE.sub(lambda found: f"{found[1]}{found[2]}{found[1]}...", text)


def error_document(error: KerntestError) -> dict[str, Any]:
    """Return an error as the JSON that programs read."""
    return {
        "schema": "kerntest.error/1",
        "error": {
            "code": error.code,
            "exit_code": error.exit_code,
            "message": _brief(error.message),
            "hint": error.hint,
            "where": error.where,
        },
    }


def picture(text: str, position: int) -> tuple[str, str]:
    """Return a text and, below it, a caret under the character at `position`, counted from 1.

    Of a long text only the surroundings of the character are shown. A position behind the end points there.
    """
    index = min(max(position - 1, 0), len(text))
    start = max(0, min(index - PICTURE_WIDTH // 2, len(text) - PICTURE_WIDTH))
    before, after = visible(text[start:index]), visible(text[index : start + PICTURE_WIDTH])
    lead = "  ..." if start else "  "
    trail = "..." if start + PICTURE_WIDTH < len(text) else ""
    # East Asian wide characters take two cells of the terminal.
    cells = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in before)
    return f"{lead}{before}{after}{trail}", f"{' ' * (len(lead) + cells)}^"


def show_traceback(error: BaseException) -> None:
    """Write where an exception came from, for whoever mends it."""
    say("".join(traceback.format_exception(error)).rstrip(), whole=True)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; it may be one that cannot be parsed."""
    # What stands behind -- is no option.
    options = list(takewhile(lambda argument: argument != "--", arguments))
    formats = re.findall(r"(?:^|\0)--format[=\0]([^\0]*)", "\0".join(options))
    return "--json" in options or (bool(formats) and formats[-1].casefold() in JSON_FORMATS)
