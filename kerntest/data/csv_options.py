"""What a caller can say about how CSV is written, where the text alone does not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

from kerntest.data.selection import Patterns, split_patterns
from kerntest.data.table import MISSING
from kerntest.errors import UsageError, suggest

if TYPE_CHECKING:
    from typing import Unpack

Decimal = Literal["auto", ".", ","]
DECIMALS: tuple[Decimal, ...] = ("auto", ".", ",")
_WORDS = ("tab", "space", "comma", "semicolon", "bar")
_NAMED = dict(zip((*_WORDS, "\\t"), "\t ,;|\t", strict=True))
_ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16", "iso-8859-15", "shift-jis", "gb18030")


class CsvWords(TypedDict, total=False):
    """The options of `CsvOptions` as keyword arguments."""

    decimal: Decimal
    na: Patterns
    delimiter: str | None
    encoding: str | None
    header: bool
    comment: str | None


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV is written.

    Parameters
    ----------
    decimal : {"auto", ".", ","}
        The decimal mark, as in `read_table`.
    na : tuple of str
        Words that stand for a missing value.
    delimiter : str or None
        One character between fields; None finds it.
    encoding : str or None
        Name of the encoding of the text; None is UTF-8.
    header : bool
        Whether the first record names the columns.
    comment : str or None
        What lines that are no rows begin with.
    """

    decimal: Decimal = "auto"
    na: tuple[str, ...] = MISSING
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    comment: str | None = None

    @property
    def transcodes(self) -> bool:
        """Whether the bytes are not the text in UTF-8 without comments."""
        return self.encoding is not None or self.comment is not None

    @classmethod
    def of(cls, **words: Unpack[CsvWords]) -> CsvOptions:
        """Return the options that keyword arguments mean.

        Raises
        ------
        UsageError
            If one of them has no meaning.
        TypeError
            If there is no such argument, of the function that hands its own on.
        """
        for name in words.keys() - CsvWords.__optional_keys__:
            raise TypeError(f"unexpected keyword argument {name!r}")
        decimal = words.get("decimal", "auto")
        if decimal not in DECIMALS:
            close = suggest(str(decimal), DECIMALS)
            raise _refused(
                f"decimal must be auto, '.' or ',', not {decimal!r}",
                f"did you mean {close!r}?" if close else "auto tells it from the values",
                decimal,
            )
        na, comment = words.get("na"), words.get("comment") or None
        if comment is not None and ("\n" in comment or "\r" in comment or '"' in comment):
            raise _refused(f"comment must be a few characters such as #, not {comment!r}", "# is usual", comment)
        return cls(
            decimal,
            MISSING if na is None else tuple(dict.fromkeys(split_patterns(na))),
            _delimiter(words.get("delimiter")),
            _encoding(words.get("encoding")),
            words.get("header", True),
            comment,
        )

    def words(self) -> CsvWords:
        """Return the keyword arguments that mean these options."""
        return {
            "decimal": self.decimal,
            "na": self.na,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "header": self.header,
            "comment": self.comment,
        }


def _delimiter(text: str | None) -> str | None:
    """Return the character that --delimiter means."""
    if text is None:
        return None
    character = _NAMED.get(text.casefold(), text)
    if len(character) != 1 or not character.isascii() or character.isalnum() or character in '"\n\r\0.+-_':
        raise _refused(
            f"delimiter must be one character such as ; or one of {', '.join(_WORDS)}, not {text!r}",
            "leave it out, and it is found by looking at the first rows",
            text,
        )
    return character


def _encoding(name: str | None) -> str | None:
    """Return the name of an encoding that Python knows."""
    if name is None:
        return None
    try:
        # Of the codecs some are no encodings: only text becomes bytes.
        "a".encode(name)
    except (LookupError, ValueError, TypeError):
        close = suggest(name.casefold(), _ENCODINGS)
        raise _refused(
            f"no encoding is called {name!r}",
            f"did you mean {close!r}?" if close else f"known are, among others, {', '.join(_ENCODINGS)}",
            name,
        ) from None
    return name


def _refused(message: str, hint: str, value: object) -> UsageError:
    """Return the error for an option that has no meaning."""
    return UsageError(message, hint=hint, code="usage.choice", where={"value": str(value)})


AS_USUAL = CsvOptions()
