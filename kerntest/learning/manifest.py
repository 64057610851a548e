"""The manifest of a model: JSON from strangers, and the fields that every model has."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from kerntest.data.wording import one_line
from kerntest.errors import ModelError
from kerntest.learning.fields import Fields, damaged
from kerntest.learning.npy import Described

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 64 * 2**20
LONGEST_WORD = 40
ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as strict JSON in ASCII, the same for equal content.

    Raises
    ------
    TypeError, ValueError
        If it is none: a number is not finite, or a value is not of JSON.
    """
    text = json.dumps(manifest, allow_nan=False, ensure_ascii=True, indent=1, sort_keys=True)
    return text.encode("ascii") + b"\n"


def read_manifest(content: bytes, model: str) -> tuple[dict[str, Any], dict[str, Described]]:
    """Return a manifest, and its descriptions of arrays by name.

    Raises
    ------
    ModelError
        If it is not strict JSON, of a newer format, or lacks what every model has.
    """
    manifest = _parsed(content, model)
    fields = Fields.of(manifest, model)
    version = fields.whole("format_version", at_least=1)
    if version > FORMAT_VERSION:
        raise _newer(version, manifest.get("kerntest_version"), model)
    for name in ("kind", "kerntest_version"):
        if not 0 < len(fields.text(name)) <= LONGEST_WORD or not fields.text(name).isprintable():
            raise fields.refuse(name, "a short text")
    members = Fields.of(fields.get("members"), model, "members")
    described = {}
    for name in members.plain:
        if not ARRAY_NAME.fullmatch(name):
            raise damaged(model, f"no array of a model can be named {name!r}", code="model.unsafe")
        described[name] = Described.from_plain(members.get(name), model, f"members.{name}")
    return manifest, described


def _newer(version: int, writer: object, model: str) -> ModelError:
    """Return the error for a format that this version does not know."""
    known = isinstance(writer, str) and len(writer) <= LONGEST_WORD and writer.isprintable()
    shown = str(version) if version < 10**6 else "of a huge number"
    return ModelError(
        f"{model} was written by a newer kerntest (format {shown}; this one reads up to {FORMAT_VERSION}): upgrade",
        hint=f"kerntest {writer} can read it" if known else "a newer kerntest can read it",
        code="model.newer_format",
        where={"file": model},
    )


def _parsed(content: bytes, model: str) -> Any:
    """Return what strict JSON says."""
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_without_repeats,
        )
    except RecursionError as error:
        raise damaged(model, f"{MANIFEST} is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise damaged(model, f"{MANIFEST} is not UTF-8 at byte {error.start + 1:,}") from error
    except ValueError as error:
        raise damaged(model, f"{MANIFEST} is not strict JSON: {one_line(str(error))}") from error


def _no_constant(text: str) -> float:
    """Refuse NaN and infinities, which JSON does not have."""
    message = f"it holds {text}"
    raise ValueError(message)


def _finite(text: str) -> float:
    """Return a number; refuse one that no float can hold."""
    number = float(text)
    if not math.isfinite(number):
        message = "it holds a number that is too large"
        raise ValueError(message)
    return number


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse one that says two things under one key, of which readers would believe either."""
    plain = dict(pairs)
    if len(plain) < len(pairs):
        message = "an object has the same key twice"
        raise ValueError(message)
    return plain
