"""What the Tab key completes: names of kernels and, from the headers of the files on the line, of columns."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

# Arguments that are files, in the order in which their columns are offered.
_FILES = ("file", "x", "y", "train", "test", "data", "other", "input")
_SPECIAL_IN_BASH = re.compile(r"[^\w,.:/@%+=-]")


def kernels_named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a kernel that is being typed, which may stand in the middle of an expression."""
    del ctx, param
    from kerntest.kernels import AROUND, NAMES  # noqa: PLC0415 - only a shell's Tab key needs it

    word = re.search(r"[\w-]*$", incomplete)[0]  # type: ignore[index]  # the empty text matches
    before = incomplete.removesuffix(word)
    names = (*NAMES, *AROUND) if before else ("auto", *NAMES, *AROUND)
    return [before + name for name in names if name.startswith(word.casefold())]


def columns_named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a column after the last comma or colon, or at the end of a condition.

    Without a readable file there is nothing to offer.
    """
    try:
        return (in_condition if param.name == "where" else completed)(incomplete, _names(ctx))
    except Exception:  # noqa: BLE001 - a Tab key must never print an error, whatever is in the file
        return []


def _names(ctx: click.Context) -> list[str]:
    """Return the names in the headers of the files on the command line, each once."""
    from kerntest.data.formats.dialect import header_names  # noqa: PLC0415 - only a shell's Tab key needs it

    found: dict[str, None] = {}
    # The option that is being typed lacks its value: click then leaves the files where it found them, in `args`.
    given = (ctx.params.get(argument) for argument in _FILES)
    for path in (*chain.from_iterable(one if isinstance(one, tuple) else (one,) for one in given), *ctx.args):
        # A file that cannot be read must not hide the names of the other.
        with suppress(Exception):
            found |= dict.fromkeys(header_names(path) if isinstance(path, str) else ())
    return list(found)


def in_condition(incomplete: str, names: list[str]) -> list[str]:
    """Return what the condition `incomplete` may become: the name at its end completed."""
    word = re.findall(r"\w*$", incomplete)[0]
    before = incomplete.removesuffix(word)
    return [before + name for name in names if name.startswith(word) and name.isidentifier()]


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
