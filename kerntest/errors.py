"""The one tree of errors: what went wrong, the way out, and the exit code the shell sees.

Every error that a user can cause is one of these. A message says what and where, naming the file, the line,
the column and the value; a hint says what to do next. Where they name an option, `option` gives it as whoever reads it
writes it: `--missing drop` in a shell, `missing='drop'` in Python.
"""

from __future__ import annotations

import inspect
import math
import os
import warnings
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial, wraps
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_Function = TypeVar("_Function", bound="Callable[..., Any]")


class KerntestError(Exception):
    """Base of all errors that kerntest raises on purpose.

    Parameters
    ----------
    message : str
        One line: what went wrong, where, and the value that did it.
    hint : str, optional
        One line: the way out.
    code : str, optional
        Stable dotted name for programs, e.g. ``"data.missing_file"``; each class has a default.
    where : mapping of str to str or int, optional
        Machine-readable place: ``file``, ``line``, ``column``, ``value``, ``position``.
    """

    exit_code: int = 70
    default_code: ClassVar[str] = "internal"
    # Whether texts are for who typed a command: they name options, and arguments for a call from Python.
    typed: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        where: Mapping[str, str | int] | None = None,
    ) -> None:
        # What a caller hands over may print on several lines.
        message = " ".join(message.splitlines())
        super().__init__(message)
        self.message, self.hint = message, hint
        self.code = code or self.default_code
        self.where = dict(where or {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors come back from other processes: an exception is made again from its message alone by default."""
        return partial(type(self), hint=self.hint, code=self.code, where=self.where), (self.message,)


class UsageError(KerntestError, ValueError):
    """An option, a value, a kernel text or a column named that is not there: exit code 2."""

    exit_code = 2
    default_code = "usage"


class UnknownArgumentError(UsageError, TypeError):
    """An argument that a function does not have, or has already, which from Python is a TypeError too: exit code 2."""

    default_code = "usage.argument"


class DataError(KerntestError, ValueError):
    """A file or table that cannot be used, or an output that cannot be written: exit code 3."""

    exit_code = 3
    default_code = "data"


class UndecidedError(KerntestError, RuntimeError):
    """The computation could not decide (degenerate kernel, memory budget, no convergence): exit code 4."""

    exit_code = 4
    default_code = "undecided"


class MissingExtraError(UndecidedError):
    """An optional dependency is not installed: exit code 4."""

    default_code = "undecided.missing_extra"


class ModelError(KerntestError):
    """A model file is truncated, corrupted, too new, or does not fit the data: exit code 5."""

    exit_code = 5
    default_code = "model"


# Arguments whose options are called otherwise.
_ARGUMENTS = {"lambda": "lambda_", "x": "x_columns", "y": "y_columns", "denoise": "reconstruct", "o": "output"}


@contextmanager
def as_typed(*, typed: bool = True) -> Iterator[None]:
    """Let texts that are made meanwhile speak of options, for who typed a command."""
    before, KerntestError.typed = KerntestError.typed, typed
    try:
        yield
    finally:
        KerntestError.typed = before


def either(typed: str, called: str) -> str:
    """Return the one text for who typed a command, the other for who called from Python."""
    return typed if KerntestError.typed else called


def option(name: str, value: object = None, *, most: int | None = 40) -> str:
    """Return an option as it is typed, `--missing drop`, or as an argument of a call, `missing='drop'`.

    True and False are those of an option without a value. A list of names is one value, of which `most` are shown.
    """
    if isinstance(value, list | tuple):
        shown = value[:most]
        more = f" and {len(value) - len(shown):,} more" if len(value) > len(shown) else ""
        return option(name, ",".join(map(in_list, shown))) + more
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not KerntestError.typed:
        called = _ARGUMENTS.get(name, name.replace("-", "_"))
        return f"{called}=" if value is None else f"{called}={value!r}"
    word = "-o" if name == "o" else f"--no-{name}" if value is False else f"--{name}"
    return word if value is None or isinstance(value, bool) else f"{word} {shell_word(str(value))}"


def in_list(name: str) -> str:
    """Return a name as it stands among others, between commas."""
    odd = not name or name != name.strip() or {*name} & {*',"\r\n'}
    return '"' + name.replace('"', '""') + '"' if odd else name


def shell_word(text: str) -> str:
    """Return a text as one word of a command, in quotes where the shell needs them."""
    if not text.isprintable():
        escaped = text.encode("unicode_escape").decode().replace("'", "\\'")
        return f"$'{escaped}'"
    plain = any(map(str.isalnum, text)) and all(one.isalnum() or one in "_-.,:/" for one in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"


class KerntestWarning(UserWarning):
    """What to read before believing a result; it is also in the `warnings` of the result."""


# The name of before.
DataWarning = KerntestWarning


def warn_of(texts: Iterable[str]) -> None:
    """Emit each text once as a `KerntestWarning`, at the line that called kerntest, and with its arguments."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "kerntest":
        level, frame = level + 1, frame.f_back
    for text in dict.fromkeys(texts):
        warnings.warn(text, KerntestWarning, stacklevel=level)


def explained(function: _Function) -> _Function:
    """Let a function name the argument that it cannot take, and say what was meant by one that it does not have."""

    @wraps(function)
    def told(*args: Any, **options: Any) -> Any:
        with arguments_of(function, args, options):
            return function(*args, **options)

    return cast("_Function", told)


def telling(function: _Function) -> _Function:
    """Let a function, `explained`, also emit the warnings of its result as `KerntestWarning`."""

    @wraps(function)
    def told(*args: Any, **options: Any) -> Any:
        with arguments_of(function, args, options):
            result = function(*args, **options)
        warn_of(result.warnings)
        return result

    return cast("_Function", told)


def suggest(word: str, candidates: list[str] | tuple[str, ...]) -> str | None:
    """Return the candidate most like `word`, or the first of which it is a word, or None when nothing is close."""
    folded, own = {candidate.casefold(): candidate for candidate in candidates}, str(word).casefold()
    matches = get_close_matches(own, list(folded), n=5, cutoff=0.6)
    # Who mistypes a word begins it as it begins, mostly; others share some letters by chance, as carrier and arr_time.
    close = get_close_matches(own, matches, cutoff=0.75)
    matches = [one for one in matches if one in close or one[:1] == own[:1]]
    # Of a short word nothing is close that is much longer: p of p_value.
    matches = matches or [one for one in folded if own in one.replace("_", " ").split()]
    return folded[matches[0]] if matches else None


def bad_file(name: str, said: str, *, hint: str, code: str, **where: str | int) -> DataError:
    """Return the error for a file that cannot be used as it is, which names it, and the `line` where there is one."""
    place = f"{name}, line {where['line']}:" if "line" in where else name
    return DataError(f"{place} {said}", hint=hint, code=code, where={"file": name, **where})


# Checks of arguments, and words of messages.


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        meant = suggest(str(value), allowed)
        raise UsageError(
            f"{name} must be {' or '.join(allowed)}, not {shown_argument(value)}",
            hint=f"did you mean '{meant}'?" if meant else None,
            code=f"usage.{name}",
        )


# What annotations take, and how it is called; of others, names of a few texts but for these, which take more.
_TYPES: dict[str, tuple[type, str]] = {
    "bool": (bool, "True or False"),
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "str": (str, "text"),
    "PathLike[str]": (os.PathLike, "a path"),
    "None": (type(None), ""),
}
_OPEN = ("Any", "Patterns", "Option", "Weights", "Kernel", "Sequence", "Progress", "Callable", "InitVar", "IO")


@contextmanager
def arguments_of(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> Iterator[None]:
    """Explain what fails inside for an argument that the function does not have, or has twice, or that its signature does not allow."""
    try:
        yield
    except KerntestError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        parameters = inspect.signature(function).parameters
        about = f"help(kerntest.{function.__name__}) says what it takes"
        odd = ("got an unexpected keyword argument", "got multiple values for argument")
        for name, said in [(one, said) for one in options for said in odd if f"{said} {one!r}" in str(error)]:
            close = suggest(name, [one for one in parameters if one != name])
            meant = [one for one in parameters if one.startswith(f"{name}_")] or ([close] if close else [])
            told, elsewhere = (
                f"{function.__name__}() {said} {name!r}",
                called_elsewhere(name, options[name], parameters),
            )
            hint = elsewhere or (f"did you mean {' or '.join(meant)}?" if meant else about)
            raise UnknownArgumentError(told, hint=hint) from None
        for name, value in [*zip(parameters, args, strict=False), *options.items()]:
            annotation = str(parameters[name].annotation) if name in parameters else "Any"
            known = [_TYPES.get(kind, _TYPES["str"]) for kind in annotation.split(" | ")]
            if any(word in annotation for word in _OPEN) or isinstance(value, tuple(kind for kind, _ in known)):
                continue
            wanted = " or ".join(dict.fromkeys(words for _, words in known if words))
            message = f"{name} must be {wanted}, not {shown_argument(value)}"
            raise UsageError(message, hint=about, code=f"usage.{name}") from error
        raise


def called_elsewhere(name: str, value: object, known: Iterable[str]) -> str:
    """Return what an option of other libraries is called here, if it is among those that are known."""
    number = float(value) if isinstance(value, Real) and float(value) > 0 else None
    width = option("bandwidth", None if number is None else float(f"{1 / math.sqrt(2 * number):.6g}"))
    names = {
        "gamma": ("bandwidth", f"a Gaussian kernel has the bandwidth 1 / sqrt(2 gamma) here: {width}"),
        "alpha": ("lambda", f"it is {option('lambda', value)} here"),
        **dict.fromkeys(("sigma", "length_scale"), ("bandwidth", f"it is {option('bandwidth', value)} here")),
        **dict.fromkeys(
            ("degree", "coef0"), ("kernel", f"it is part of the kernel: {option('kernel', 'polynomial(3)')}")
        ),
        **dict.fromkeys(
            ("inverse", "inverse_transform", "inverse-transform"),
            ("reconstruct", f"it is {option('reconstruct', True)} here"),
        ),
    }
    ours, told = names.get(name, ("", ""))
    return told if ours in {one.strip("-_") for one in known} else ""


def shown_argument(value: object) -> str:
    """Return an argument for a message, on one line; of long ones their type."""
    shown = repr(value)
    return shown if len(shown) <= 60 and shown.isprintable() else f"a {type(value).__name__}"


def positive(name: str, value: object, *, below: float = math.inf, code: str | None = None) -> None:
    """Refuse what is not a number above 0 and below another one; the code is usage.NAME if not given."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < below:
        shown = f"{float(value):g}" if isinstance(value, Real) else shown_argument(value)
        allowed = "positive and finite" if below == math.inf else f"between 0 and {below:g}"
        raise UsageError(
            f"{name} must be {allowed}, not {shown}",
            hint="give a number above 0" if below == math.inf else f"{'0.05' if name == 'alpha' else '0.9'} is usual",
            code=code or f"usage.{name}",
        )


def whole_number(name: str, value: object, *, at_least: int, code: str | None = None) -> None:
    """Refuse a value that is not a whole number from `at_least` on; the code is usage.NAME if not given."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise UsageError(
            f"{name} must be a whole number of at least {at_least}, not {shown_argument(value)}",
            hint=f"such as {max(at_least, 1)}" if isinstance(value, Integral) else "give it without a decimal point",
            code=code or f"usage.{name}",
        )


def rows_alike(name: str) -> str:
    """Return the beginning of every warning about a column whose rows of one value are alike, by which others know it."""
    return f"rows with the same {name!r} are alike"


def none_in_common(name: str) -> str:
    """Return the beginning of the warning about a column whose values in two tables differ, by which others know it."""
    return f"column {name!r} has no value in common"


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural where due: ``"1 row"``, ``"1,200 rows"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def one_line(text: str) -> str:
    """Return the text as it is if it prints on one line, else with its odd characters escaped."""
    return text if text.isprintable() else repr(text)


def listed(words: Sequence[str], limit: int = 10) -> str:
    """Return the words joined by commas, the first `limit` of them and a count of the others."""
    shown = ", ".join(one_line(word) for word in words[:limit])
    return shown if len(words) <= limit else f"{shown} and {len(words) - limit:,} more"


def shown_value(text: str) -> str:
    """Return a cell's text in quotes, on one line and cut to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def taken_as_value(word: str, na: Sequence[str]) -> str:
    """Return the hint how a word for a missing value is taken as a value, and the other words are not."""
    return f"{option('na', [other for other in na if other != word], most=None)} takes it as such"
