"""Man pages made from the commands: ``python -m kerntest.cli.manpages [--check] [DIR]``, DIR being ``man`` by default.

A page depends on the version and the commands only, so the committed pages can be compared with fresh ones.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerntest import __version__
from kerntest.cli.documented import DocumentedCommand, DocumentedGroup, options_by_topic
from kerntest.cli.main import PROGRAM, group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Of the version; not today's date, which would change the pages without a change.
RELEASE_DATE = "2026-11-20"

ENVIRONMENT = (
    ("NO_COLOR", "If set and not empty: no colours."),
    ("TERM", "If dumb: no colours and no progress bar."),
    ("COLUMNS", "Width of tables and help; otherwise that of the terminal, 100 without one."),
    ("KERNTEST_DEBUG", "If 1: errors come with a traceback."),
)
FILES = (
    "kerntest has no configuration files and no network access. It reads the files it is given; a file written with "
    "-o is complete under a temporary name in the same folder (.kerntest-*.tmp) before it takes its own name."
)
# Pages that are written by hand, in the same folder.
FURTHER = (
    ("kerntest-tests", 7),
    ("kerntest-kernels", 7),
    ("kerntest-learning", 7),
    ("kerntest-files", 5),
    ("kerntest-json", 5),
)
_ROFF = {
    "\\": "\\e",
    "-": "\\-",
    "'": "\\(aq",
    "`": "\\(ga",
    "^": "\\(ha",
    "~": "\\(ti",
}

Documented = DocumentedCommand | DocumentedGroup


def pages() -> dict[str, str]:
    """Return every page: file name to text."""
    names = [PROGRAM, *(f"{PROGRAM}-{name}" for name in group.homes)]
    found: dict[str, str] = {f"{PROGRAM}.1": page(group, PROGRAM, names)}
    for name, command in group.documented().items():
        found[f"{PROGRAM}-{name}.1"] = page(command, f"{PROGRAM} {name}", names)
    return found


def page(command: Documented, path: str, all_pages: list[str]) -> str:
    """Return the page of one command, as roff."""
    parent = click.Context(group, info_name=PROGRAM, **group.context_settings)
    ctx = parent if command is group else click.Context(command, info_name=command.name, parent=parent)
    title = path.replace(" ", "-")
    others = [*((name, 1) for name in all_pages if name != title), *FURTHER]
    see_also = ", ".join(f"\\fB{_escaped(name)}\\fR({section})" for name, section in others)
    lines = [
        f'.TH "{_escaped(title.upper())}" "1" "{RELEASE_DATE}" "{PROGRAM} {__version__}" "User Commands"',
        # No hyphens at the ends of lines: they would be copied with a command.
        ".nh",
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(_summary(command))}",
        ".SH SYNOPSIS",
        f"\\fB{_escaped(path)}\\fR {_synopsis(command, ctx)}",
        ".SH DESCRIPTION",
        *_paragraphs((command.help or "").split("\n\n")),
        *_terms((f"\\fI{_escaped(term)}\\fR", text) for term, text in command.manual.arguments),
        *_commands(command),
        ".SH OPTIONS",
        *_options(command, ctx),
    ]
    for heading, text in command.manual.notes:
        lines += [f'.SH "{_escaped(heading.upper())}"', *_paragraphs([text])]
    lines += [
        ".SH EXIT STATUS",
        *_terms((f"\\fB{code}\\fR", text) for code, text in command.manual.exit_codes),
        ".SH ENVIRONMENT",
        *_terms((f"\\fB{_escaped(name)}\\fR", text) for name, text in ENVIRONMENT),
        ".SH FILES",
        *_paragraphs([FILES]),
        ".SH EXAMPLES",
        *_examples(command.manual.examples),
        ".SH SEE ALSO",
        see_also,
    ]
    return "\n".join(lines) + "\n"


def _summary(command: Documented) -> str:
    """Return the command in a few words, as NAME wants it: no capital, no full stop."""
    text = command.get_short_help_str(200).rstrip(".")
    return text[:1].lower() + text[1:]


def _synopsis(command: Documented, ctx: click.Context) -> str:
    """Return what follows the name of the command."""
    return " ".join(f"\\fI{_escaped(piece)}\\fR" for piece in command.collect_usage_pieces(ctx))


def _commands(command: Documented) -> Iterator[str]:
    """Give the list of commands of a group."""
    if isinstance(command, DocumentedGroup):
        yield ".SH COMMANDS"
        yield from _terms(
            (f"\\fB{_escaped(f'{PROGRAM}-{name}')}\\fR(1)", found.get_short_help_str(200))
            for name, found in command.documented().items()
        )


def _options(command: Documented, ctx: click.Context) -> Iterator[str]:
    """Give the options, a subsection for each topic where there are several."""
    topics = options_by_topic(command, ctx)
    for topic, records in topics.items():
        if len(topics) > 1:
            yield f'.SS "{_escaped(topic)}"'
        yield from _terms((_declaration(names), text) for names, text in records)


def _declaration(names: str) -> str:
    """Return ``-o, --output FILE`` with the options in bold and the value in italics."""
    words = re.split(r"([,\s]+)", names)
    return "".join(
        word if not word.strip(", ") else f"\\f{'B' if word.startswith('-') else 'I'}{_escaped(word)}\\fR"
        for word in words
    )


def _terms(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Give a list of terms, already roff, and their meanings, plain text."""
    for term, meaning in pairs:
        yield from (".TP", term, _line(" ".join(meaning.split())))


def _paragraphs(texts: Iterable[str]) -> Iterator[str]:
    """Give paragraphs of plain text; the first one follows its heading."""
    for index, text in enumerate(texts):
        if index:
            yield ".PP"
        yield _line(" ".join(text.split()))


def _examples(examples: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Give examples, each below what it does."""
    for index, (meaning, line) in enumerate(examples):
        if index:
            yield ".PP"
        yield from (_line(f"{meaning}:"), ".RS 4", ".nf", _line(line), ".fi", ".RE")


def _line(text: str) -> str:
    """Return plain text as a line of roff, which must not look like a request."""
    escaped = _escaped(text)
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped


def _escaped(text: str) -> str:
    """Return plain text as roff that prints as it is, so that it can be copied into a shell."""
    return "".join(_ROFF.get(character, character) for character in text)


def differences(folder: Path) -> list[str]:
    """Return the names of the pages in `folder` that are missing, different or of no command."""
    fresh = pages()
    there = {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.1")}
    return sorted(name for name in fresh.keys() | there.keys() if fresh.get(name) != there.get(name))


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail if the pages in DIR are not those of the commands.")
@click.argument("folder", metavar="[DIR]", default="man", type=click.Path(path_type=Path))
def write_pages(*, check: bool, folder: Path) -> int:
    """Write the man pages of all commands to DIR."""
    if check:
        stale = differences(folder)
        if stale:
            click.echo(f"stale: {', '.join(stale)}; run `python -m kerntest.cli.manpages`", err=True)
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(write_pages(standalone_mode=False))
