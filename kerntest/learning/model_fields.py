"""Fitted models to and from model files, field by field of their dataclasses; what types do not say, `flaw()` does."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kerntest.errors import ModelError, UsageError
from kerntest.kernels.base import Array, Kernel, Points
from kerntest.kernels.column_groups import bind
from kerntest.kernels.text import parse_kernel
from kerntest.learning.model_file import ModelFile, damaged, read_model, to_plain, write_model
from kerntest.learning.rows.encoding import Encoder
from kerntest.learning.rows.targets import Classes
from kerntest.learning.rows.training_rows import ConstantColumn
from kerntest.matrices.factor import Expansion, FeatureKind, FeatureMap, GivenExpansion

if TYPE_CHECKING:
    from os import PathLike

    from kerntest.learning.components.kpca_fit import KpcaModel
    from kerntest.learning.machines.ridge_fit import RidgeModel
    from kerntest.learning.machines.svm_fit import SvmModel

Model = TypeVar("Model", "SvmModel", "RidgeModel", "KpcaModel")
# Where the name in the file is another one.
NAMES = {"columns": "centres", "kind": "features", "lambda_": "lambda"}
# The field whose null says that a part is not there.
ABSENT = {"spread": "spread_floor"}
# What annotations of models name that their modules import for types only.
_TYPES = {
    one.__name__: one
    for one in (Classes, ConstantColumn, Encoder, Expansion, FeatureMap, GivenExpansion, Kernel, Points)
}


def save_model(
    path: str | PathLike[str], model: SvmModel | RidgeModel | KpcaModel, parameters: dict[str, Any], *, force: bool
) -> None:
    """Write a model, and what it was asked for with, to a new file, or with `force` to one that is there."""
    manifest: dict[str, Any] = {"kind": model.KIND, "kernel": None, "parameters": parameters}
    arrays: dict[str, NDArray[Any]] = {}
    _put(model, "", manifest, arrays)
    write_model(path, manifest, arrays, force=force)


def _put(part: Any, prefix: str, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Put each field of a dataclass where it is stored: numbers of `Points` and parts with arrays one by one."""
    for name in _hints(type(part)):
        stored, value = prefix + NAMES.get(name, name), getattr(part, name)
        if isinstance(value, np.ndarray):
            arrays[stored] = value
        elif isinstance(value, Points):
            arrays[f"{stored}_numeric"], arrays[f"{stored}_codes"] = value.numeric, value.codes
        elif isinstance(value, (Expansion, GivenExpansion, FeatureMap)):
            _put(value, "", manifest, arrays)
        elif name in ABSENT and value is not None:
            _put(value, f"{name}_", manifest, arrays)
        else:
            manifest[ABSENT.get(stored, stored)] = str(value) if isinstance(value, Kernel) else to_plain(value)


def load_model(path: str | PathLike[str], kind: type[Model]) -> Model:
    """Return the model of a file; DataError if it cannot be read, ModelError if it is not a whole model of this kind."""
    return model_of(read_model(path), kind)


def model_of(file: ModelFile, kind: type[Model]) -> Model:
    """Return the model that a file holds; ModelError if it is not a whole one of this kind."""
    if file.kind != kind.KIND:
        raise ModelError(
            f"{file.name} holds a {file.kind!r} model, not {kind.CALLED}",
            hint="`kerntest inspect` says what a model holds",
            code="model.kind",
            where={"file": file.name},
        )
    encoder, n_train = file.field("encoder", Encoder | None), file.field("n_train", int)
    if not n_train:
        raise damaged(file.name, "n_train must be at least 1")
    expansion, features = _functions(file, encoder, n_train)
    made: Model = _part(file, kind, encoder=encoder, n_train=n_train, expansion=expansion, features=features)
    return made


def _hints(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a dataclass."""
    hints = get_type_hints(kind, localns={**_TYPES, "Array": Array, "NDArray": NDArray}, include_extras=True)
    return {one.name: hints[one.name] for one in fields(kind)}


def _part(file: ModelFile, kind: Any, prefix: str = "", /, **made: Any) -> Any:
    """Return a dataclass of what `_put` stored, and of what is made of it already."""
    for name, hint in _hints(kind).items():
        stored = prefix + NAMES.get(name, name)
        if name in made:
            continue
        if get_origin(hint) is Annotated:
            made[name] = file.array(stored, "float64", hint.__metadata__[0])
        elif hint is Points:
            made[name] = Points(
                file.array(f"{stored}_numeric", "float64", 2), file.array(f"{stored}_codes", "int64", 2)
            )
        elif name in ABSENT:
            there = file.field(ABSENT[name], float | None) is not None
            made[name] = _part(file, get_args(hint)[0], f"{name}_") if there else None
        else:
            made[name] = file.field(stored, hint)
    part = kind(**made)
    if flaw := part.flaw():
        raise damaged(file.name, flaw)
    return part


def _functions(
    file: ModelFile, encoder: Encoder | None, n_train: int
) -> tuple[Expansion | GivenExpansion, FeatureMap | None]:
    """Return the functions of rows of a model, and the features that they are linear in, if they are."""
    kind = file.field("features", FeatureKind | None)
    if encoder is not None and kind is None:
        expansion = _part(file, Expansion, kernel=_kernel(file, encoder))
        _check_points(expansion.centres, encoder, file.name)
        return expansion, None
    given = _part(file, GivenExpansion, columns=file.array("centres", "int64", 1).astype(np.intp, copy=False))
    features = None
    if encoder is not None:
        features = _part(file, FeatureMap, kind=kind, kernel=_kernel(file, encoder))
        _check_points(features.landmarks, encoder, file.name)
        if features.size != len(given.coefficients):
            raise damaged(file.name, "its features and coefficients do not fit together")
    if given.columns.max(initial=-1) >= (n_train if features is None else features.size):
        raise damaged(file.name, "its centres and its training rows or features do not fit together")
    return given, features


def _kernel(file: ModelFile, encoder: Encoder) -> Kernel:
    """Return the kernel of a model, bound to its columns; ModelError if it cannot be read, or leaves a bandwidth open."""
    text = file.field("kernel", str)
    try:
        kernel = bind(parse_kernel(text), encoder.numeric_names, encoder.category_names).kernel
    except UsageError as error:
        raise damaged(file.name, f"its kernel {text!r} cannot be read: {error.message}") from error
    if kernel.free:
        raise damaged(file.name, f"its kernel {text!r} has no bandwidth")
    return kernel


def _check_points(points: Points, encoder: Encoder, model: str) -> None:
    """Refuse rows that are not those of the columns of a model."""
    widths = len(encoder.numeric_names), len(encoder.category_names)
    if len(points) != len(points.codes) or (len(points) and (points.numeric.shape[1], points.codes.shape[1]) != widths):
        raise damaged(model, "its centres and its columns do not fit together")
    levels = [len(column.levels) for column in encoder.categories]
    if len(points) and ((points.codes < 0) | (points.codes >= levels)).any():
        raise damaged(model, "its centres hold categories that its columns do not have")
