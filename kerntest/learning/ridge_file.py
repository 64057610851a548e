"""A ridge regression on disk, see `modelfile` for the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.learning.encoding import Encoder
from kerntest.learning.expansion_file import Arrays, check_kind, expansion_parts, read_expansion
from kerntest.learning.fields import Fields, damaged
from kerntest.learning.modelfile import ModelFile, read_model, write_model
from kerntest.learning.ridge_model import RidgeModel, Spread

if TYPE_CHECKING:
    from os import PathLike

KIND = "ridge"


def save_ridge(path: str | PathLike[str], model: RidgeModel, *, force: bool) -> None:
    """Write a model.

    Raises
    ------
    DataError
        If the file is there and `force` is not given, or it cannot be written.
    """
    fields, arrays = expansion_parts(model.expansion, model.features)
    manifest: dict[str, Any] = {
        "kind": KIND,
        "targets": list(model.targets),
        "lambda": model.lambda_,
        "n_train": model.n_train,
        "encoder": None if model.encoder is None else model.encoder.to_plain(),
        "spread_floor": None if model.spread is None else model.spread.floor,
        **fields,
    }
    arrays["scales"] = model.scales
    if model.spread is not None:
        arrays["spread_coefficients"] = model.spread.coefficients
        arrays["spread_intercepts"] = model.spread.intercepts
    write_model(path, manifest, arrays, force=force)


def load_ridge(path: str | PathLike[str]) -> RidgeModel:
    """Return the model of a file.

    Raises
    ------
    ModelError
        If it is no such model, damaged, or of a newer version.
    DataError
        If it cannot be read.
    """
    return ridge_of(read_model(path))


def ridge_of(file: ModelFile) -> RidgeModel:
    """Return the model that a file holds.

    Raises
    ------
    ModelError
        If it is not one.
    """
    check_kind(file, KIND, "a ridge regression")
    name, manifest = file.name, file.manifest
    fields = Fields.of(manifest, name)
    n_train = fields.count("n_train", at_least=1)
    encoder = None if fields.get("encoder") is None else Encoder.from_plain(manifest["encoder"], name=name)
    expansion, features = read_expansion(file, encoder, n_train)
    targets = fields.texts("targets")
    scales = Arrays(file).vector("scales")
    if not targets or len(set(targets)) < len(targets) or len(targets) != len(expansion.intercepts):
        raise fields.refuse("targets", "the names of its predictions, all different")
    if len(scales) != len(targets) or (scales < 0).any():
        raise damaged(name, "its scales and targets do not fit together")
    spread = _spread(file, fields, len(expansion.coefficients))
    lambda_ = fields.number("lambda", positive=True)
    return RidgeModel(encoder, expansion, targets, lambda_, scales, n_train, spread, features)


def _spread(file: ModelFile, fields: Fields, centres: int) -> Spread | None:
    """Return what intervals follow from, if the file has it."""
    if fields.get("spread_floor") is None:
        return None
    arrays = Arrays(file)
    coefficients, intercepts = arrays.matrix("spread_coefficients"), arrays.vector("spread_intercepts")
    if coefficients.shape != (centres, len(intercepts)) or not len(intercepts):
        raise damaged(file.name, "what its intervals follow from does not fit its centres")
    return Spread(np.asarray(coefficients), intercepts, fields.number("spread_floor"))
