"""What is checked of the files on a command line, and made of its lists of names, before the work begins."""

from __future__ import annotations

import os
import sys
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.core import ParameterSource

from kerntest.cli.console import is_terminal
from kerntest.errors import KerntestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click


def check_stdin(sources: Mapping[str, str], example: str) -> None:
    """Refuse to read stdin twice, or a table from the keyboard.

    Parameters
    ----------
    sources : mapping of str to str
        The name of each argument and the file it gives.
    example : str
        A command line that reads from stdin.

    Raises
    ------
    UsageError
        As above.
    """
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
    """Refuse options about relabellings, or families, beside a null that has none, so that none is ignored in silence.

    Parameters
    ----------
    ctx : click.Context
        Of a test; knows which parameters were typed.

    Raises
    ------
    UsageError
        As above.
    """
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
    """Refuse outputs over each other or over what is read.

    Parameters
    ----------
    sources : sequence of str
        The files to read.
    outputs : mapping of str to str or None
        The name of each option and the file it writes.
    model : str, optional
        A model that is read.

    Raises
    ------
    UsageError
        As above.
    """
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
    from kerntest.data.paths import find_files  # noqa: PLC0415 - numerics are loaded only to compute

    try:
        if source == "-":
            return os.path.samestat(os.fstat(sys.stdin.fileno()), Path(output).stat())
        return Path(output).is_file() and any(file.samefile(output) for _, file in find_files(source, source).files)
    except (OSError, ValueError, KerntestError):
        return False


def join_names(options: dict[str, Any], *names: str) -> None:
    """Make one text of the lists of columns that were given, None where none was.

    Raises
    ------
    UsageError
        If a list was given that names nothing, as an unset variable of the shell does.
    """
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
