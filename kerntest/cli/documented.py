"""Commands that carry their own manual: the same words make ``--help`` and the man page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import click

from kerntest.errors import UsageError, suggest

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])

EXIT_CODES: tuple[tuple[str, str], ...] = (
    ("0", "the command ran; a gate, if one was asked for, passed"),
    ("1", "only with --fail-on: the gate failed; the result is written in full"),
    ("2", "usage: an option, a value, a kernel text or a column that is not there"),
    ("3", "data: a file missing, malformed, with missing values or too short, or an output that cannot be written"),
    (
        "4",
        "could not decide: a kernel that sees nothing, not enough memory, a missing package, a gate on nothing tested",
    ),
    ("5", "a model file that is damaged, of a newer version, or not a model"),
    ("70", "a bug in kerntest"),
    ("130", "interrupted with Ctrl-C; 143 terminated, 129 hung up: all leave files as they were"),
    ("141", "the standard output was closed by its reader"),
)


@dataclass(frozen=True, slots=True)
class Manual:
    """What a manual says beside the options."""

    examples: tuple[tuple[str, str], ...]
    arguments: tuple[tuple[str, str], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    exit_codes: tuple[tuple[str, str], ...] = ()


class TopicOption(click.Option):
    """An option that belongs under a heading of the help."""

    def __init__(self, *arguments: Any, topic: str = "Other", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.topic = topic


def option(*declarations: str, topic: str, **attributes: Any) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that gives a command an option under a topic."""
    attributes.setdefault("show_default", True)
    return click.option(*declarations, cls=TopicOption, topic=topic, **attributes)


def stacked(*decorators: Callable[[Any], Any]) -> Callable[[AnyCommand], AnyCommand]:
    """Return several decorators as one; the options come in this order."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def options_by_topic(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the help of all visible options, by topic; topics in the order in which they first occur."""
    topics: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if isinstance(parameter, click.Option) and record is not None:
            topic = getattr(parameter, "topic", "Other")
            topics.setdefault(topic, []).append(record)
    return topics


class DocumentedCommand(click.Command):
    """A command whose help begins and ends with examples and groups its options by topic."""

    def __init__(self, *arguments: Any, manual: Manual, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.manual = manual

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; every error knows of which command it is, which click's do not all."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, description, the first example, arguments, options, exit codes and all examples."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        write_examples(formatter, "Example", self.manual.examples[:1])
        _write_list(formatter, "Arguments", self.manual.arguments)
        for topic, records in options_by_topic(self, ctx).items():
            _write_list(formatter, topic, records)
        write_notes_and_codes(formatter, self.manual)
        write_examples(formatter, "Examples", self.manual.examples)


class DocumentedGroup(click.Group):
    """A group whose help begins and ends with examples, and which knows what a mistyped command was meant to be.

    `homes` says of each command which module and name it lives in, and what it does in a few words: a command is loaded when it is asked for.
    """

    def __init__(
        self, *arguments: Any, manual: Manual, homes: dict[str, tuple[str, str, str]], **attributes: Any
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.manual = manual
        self.homes = homes

    def list_commands(self, ctx: click.Context | None) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names of the commands in the order of the table."""
        return list(self.homes)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the signature is click's
        """Return a command, loaded."""
        if cmd_name in self.homes and cmd_name not in self.commands:
            module, name, short_help = self.homes[cmd_name]
            self.commands[cmd_name] = getattr(import_module(module), name)
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

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, description, the first example, commands, options, exit codes and all examples."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        write_examples(formatter, "Example", self.manual.examples[:1])
        _write_list(formatter, "Commands", [(name, short_help) for name, (_, _, short_help) in self.homes.items()])
        for topic, records in options_by_topic(self, ctx).items():
            _write_list(formatter, topic, records)
        write_notes_and_codes(formatter, self.manual)
        write_examples(formatter, "Examples", self.manual.examples)


def write_notes_and_codes(formatter: click.HelpFormatter, manual: Manual) -> None:
    """Write the further sections and the exit codes."""
    for heading, text in manual.notes:
        with formatter.section(heading):
            formatter.write_text(text)
    _write_list(formatter, "Exit codes", manual.exit_codes)


def write_examples(formatter: click.HelpFormatter, heading: str, examples: Sequence[tuple[str, str]]) -> None:
    """Write commands to copy, each below what it does."""
    with formatter.section(heading):
        indent = " " * formatter.current_indent
        for meaning, command in examples:
            formatter.write(f"{indent}# {meaning}\n{indent}{command}\n")


def _write_list(formatter: click.HelpFormatter, heading: str, records: Sequence[tuple[str, str]]) -> None:
    """Write a section of terms and what they mean, or nothing if there are none."""
    if records:
        with formatter.section(heading):
            formatter.write_dl(list(records), col_max=24)
