"""Commands that carry their own manual: the same words make ``--help`` and the man pages."""

from __future__ import annotations

import re
from dataclasses import field
from importlib import import_module
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kerntest import __version__
from kerntest.cli.options import Value
from kerntest.dataclass import dataclass
from kerntest.errors import UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

EXIT_CODES = {
    "0": "the command ran; a gate, if one was asked for, passed",
    "1": "only with --fail-on: the gate failed; the result is written in full",
    "2": "usage: an option, a value, a kernel text or a column that is not there",
    "3": "data: a file missing, malformed, with missing values or too short, or an output that cannot be written",
    "4": "could not decide: a kernel that sees nothing, not enough memory, a missing package, a gate on nothing tested",
    "5": "a model file that is damaged, of a newer version, not a model, or one for another command",
    "70": "a bug in kerntest",
    "130": "interrupted with Ctrl-C; 143 terminated, 129 hung up: all leave files as they were",
    "141": "the standard output was closed by its reader",
}
# A word that is no path.
_WORD = re.compile(r"\w[\w-]*")
_SENTENCE = re.compile(r"\.(?=\s|$)")
# What most commands read.
DATA = "CSV, Parquet or JSON lines, also compressed; a folder of Parquet; a quoted glob; or - for stdin."


@dataclass(frozen=True)
class Manual:
    """What a manual says beside the options: what to do and by which line, arguments, notes, and exit codes but for some."""

    examples: dict[str, str]
    arguments: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    never: tuple[str, ...] = ()

    @property
    def exit_codes(self) -> dict[str, str]:
        """What may come of the command."""
        return {code: text for code, text in EXIT_CODES.items() if code not in self.never}


class DocumentedCommand(click.Command):
    """A command whose help begins and ends with examples and groups its options by topic.

    `homes` says of each command of a group which module and name it lives in, and what it does in a few words.
    """

    def __init__(
        self, *arguments: Any, manual: Manual, homes: dict[str, tuple[str, str, str]] | None = None, **attributes: Any
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.manual, self.homes = manual, homes or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; every error knows of which command it is, which click's do not all."""
        try:
            self._check_values(ctx, args)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def _check_values(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Refuse another option in the place of a value, and a word behind a flag that is none of its files."""
        options = {name: one for one in self.params if isinstance(one, click.Option) for name in one.opts}
        for word, after in pairwise(takewhile("--".__ne__, args)):
            if after in options and word in options and not options[word].is_flag and not options[word].count:
                raise click.BadOptionUsage(word, f"Option {word!r} requires an argument.", ctx=ctx)
            flag = word in options and options[word].is_flag and not isinstance(self, click.Group)
            if flag and _WORD.fullmatch(after) and not Path(after).exists():
                told = f"Option {word!r} does not take a value, and there is no file {after!r}."
                raise click.BadOptionUsage(word, told, ctx=ctx)

    def about(self, ctx: click.Context, name: str) -> str:
        """Return how an option is written and what it is for, in a sentence."""
        param = next(one for one in self.params if name in one.opts)
        written, told = (isinstance(param, click.Option) and param.get_help_record(ctx)) or (name, "")
        form = f" takes {param.type.form}" if isinstance(param.type, Value) else ""
        return f"`{written}`{form}: {_SENTENCE.split(told)[0]}"

    def subcommands(self) -> dict[str, str]:
        """Return the names of the commands in a group and what each does, without loading them."""
        return {name: short_help for name, (_, _, short_help) in self.homes.items()}

    def topics(self, ctx: click.Context) -> dict[str, dict[str, str]]:
        """Return the help of all visible options, by topic; topics in the order in which they first occur."""
        topics: dict[str, dict[str, str]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                topics.setdefault(getattr(parameter, "topic", "Other"), {}).update([record])
        return topics

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, description, the first example, arguments or commands, options, exit codes and all examples."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        _write_examples(formatter, "Example", [*self.manual.examples.items()][:1])
        _write_list(formatter, "Arguments", self.manual.arguments)
        _write_list(formatter, "Commands", self.subcommands())
        for topic, records in self.topics(ctx).items():
            _write_list(formatter, topic, records)
        for heading, text in self.manual.notes.items():
            with formatter.section(heading):
                formatter.write_text(text)
        _write_list(formatter, "Exit codes", self.manual.exit_codes)
        _write_examples(formatter, "Examples", self.manual.examples.items())


class DocumentedGroup(DocumentedCommand, click.Group):
    """A group that knows what a mistyped command was meant to be, and loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names of the commands in the order of the table."""
        return list(self.homes)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the signature is click's
        """Return a command, loaded."""
        if cmd_name in self.homes and cmd_name not in self.commands:
            module, name, short_help = self.homes[cmd_name]
            self.commands[cmd_name] = getattr(import_module(f"kerntest.cli.commands.{module}"), name)
            self.commands[cmd_name].short_help = short_help
        return self.commands.get(cmd_name)

    def documented(self) -> dict[str, DocumentedCommand]:
        """Return all commands, loaded."""
        found = ((name, self.get_command(None, name)) for name in self.homes)
        return {name: command for name, command in found if isinstance(command, DocumentedCommand)}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a name that is not there is our own usage error, with the name that was meant."""
        name = args[0]
        if name not in self.homes and not ctx.resilient_parsing and not name.startswith("-"):
            close = suggest(name, tuple(self.homes))
            hint = f"did you mean `kerntest {close}`?" if close else f"the commands are {', '.join(self.homes)}"
            raise UsageError(f"no such command: {name!r}", hint=hint, code="usage.unknown_command")
        return super().resolve_command(ctx, args)


def _write_examples(formatter: click.HelpFormatter, heading: str, examples: Iterable[tuple[str, str]]) -> None:
    """Write commands to copy, each below what it does."""
    with formatter.section(heading):
        indent = " " * formatter.current_indent
        for meaning, command in examples:
            formatter.write(f"{indent}# {meaning}\n{indent}{command}\n")


def _write_list(formatter: click.HelpFormatter, heading: str, records: dict[str, str]) -> None:
    """Write a section of terms and what they mean, or nothing if there are none."""
    if records:
        with formatter.section(heading):
            formatter.write_dl([*records.items()], col_max=24)


# Of the version; not today's date, which would change the pages without a change.
RELEASE_DATE = "2026-11-20"
ENVIRONMENT = (
    ("NO_COLOR", "If set and not empty: no colours."),
    ("TERM", "If dumb: no colours and no progress bar."),
    ("COLUMNS", "Width of tables and help; otherwise that of the terminal, also behind a pipe, 100 without one."),
    ("KERNTEST_DEBUG", "If 1: errors come with a traceback."),
)
FILES = (
    "kerntest has no configuration files and no network access. It reads the files it is given; a file written with "
    "-o is complete under a temporary name in the same folder (.kerntest-*.tmp) before it takes its own name."
)
# Pages that are written by hand, in the same folder.
FURTHER = {"tests": 7, "kernels": 7, "learning": 7, "files": 5, "json": 5}
_ROFF = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"})


def pages(group: DocumentedGroup) -> dict[str, str]:
    """Return every man page that is made from the commands: file name to text."""
    program = group.name or ""
    parent = click.Context(group, info_name=program, **group.context_settings)
    found = {program: _page(group, parent, program, group)}
    for name, command in group.documented().items():
        ctx = click.Context(command, info_name=command.name, parent=parent)
        found[f"{program}-{name}"] = _page(command, ctx, f"{program} {name}", group)
    return {f"{title}.1": text for title, text in found.items()}


def _page(command: DocumentedCommand, ctx: click.Context, path: str, group: DocumentedGroup) -> str:
    """Return the page of one command, as roff."""
    program, manual, title = path.split(maxsplit=1)[0], command.manual, path.replace(" ", "-")
    short = command.get_short_help_str(200).rstrip(".")
    topics = command.topics(ctx)
    own = [name for name in (program, *(f"{program}-{name}" for name in group.homes)) if name != title]
    others = [(name, 1) for name in own] + [(f"{program}-{name}", section) for name, section in FURTHER.items()]
    pieces = [f"\\fI{_escaped(piece)}\\fR" for piece in command.collect_usage_pieces(ctx)]
    commands = [(f"{_bold(f'{program}-{name}')}(1)", text) for name, text in command.subcommands().items()]
    lines = [
        f'.TH "{_escaped(title.upper())}" "1" "{RELEASE_DATE}" "{program} {__version__}" "User Commands"',
        # No hyphens at the ends of lines: they would be copied with a command.
        ".nh",
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(short[:1].lower() + short[1:])}",
        ".SH SYNOPSIS",
        " ".join([_bold(path), *pieces]),
        ".SH DESCRIPTION",
        *_apart([_line(text)] for text in (command.help or "").split("\n\n")),
        *_terms((f"\\fI{_escaped(term)}\\fR", text) for term, text in manual.arguments.items()),
        *([".SH COMMANDS", *_terms(commands)] if commands else []),
        ".SH OPTIONS",
    ]
    for topic, records in topics.items():
        lines += [f'.SS "{_escaped(topic)}"'] if len(topics) > 1 else []
        lines += _terms((_declaration(names), text) for names, text in records.items())
    for heading, text in manual.notes.items():
        lines += [f'.SH "{_escaped(heading.upper())}"', _line(text)]
    examples = (
        [_line(f"{meaning}:"), ".RS 4", ".nf", _line(line), ".fi", ".RE"] for meaning, line in manual.examples.items()
    )
    lines += [
        ".SH EXIT STATUS",
        *_terms((_bold(code), text) for code, text in manual.exit_codes.items()),
        ".SH ENVIRONMENT",
        *_terms((_bold(name), text) for name, text in ENVIRONMENT),
        ".SH FILES",
        _line(FILES),
        ".SH EXAMPLES",
        *_apart(examples),
        ".SH SEE ALSO",
        ", ".join(f"{_bold(name)}({section})" for name, section in others),
    ]
    return "\n".join(lines) + "\n"


def _declaration(names: str) -> str:
    """Return ``-o, --output FILE`` with the options in bold and the value in italics."""
    return "".join(
        word if not word.strip(", ") else _bold(word) if word.startswith("-") else f"\\fI{_escaped(word)}\\fR"
        for word in re.split(r"([,\s]+)", names)
    )


def _terms(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Give a list of terms, already roff, and their meanings, plain text."""
    for term, meaning in pairs:
        yield from (".TP", term, _line(meaning))


def _apart(paragraphs: Iterable[list[str]]) -> Iterator[str]:
    """Give paragraphs; the first one follows its heading."""
    for index, lines in enumerate(paragraphs):
        yield from [".PP", *lines] if index else lines


def _line(text: str) -> str:
    """Return plain text as a line of roff, which must not look like a request."""
    escaped = _escaped(" ".join(text.split()))
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped


def _bold(text: str) -> str:
    return f"\\fB{_escaped(text)}\\fR"


def _escaped(text: str) -> str:
    """Return plain text as roff that prints as it is, so that it can be copied into a shell."""
    return text.translate(_ROFF)
