"""Names of columns on the Tab key: those in the header of the file that stands on the command line already."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from kerntest.cli.options import AnyParamType

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

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
    from kerntest.data.header import header_names  # noqa: PLC0415 - only a shell's Tab key needs it

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
