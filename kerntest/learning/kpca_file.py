"""Kernel principal components on disk, see `modelfile` for the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.learning.encoding import Encoder
from kerntest.learning.expansion_file import Arrays, check_kind, expansion_parts, read_expansion
from kerntest.learning.fields import Fields, damaged
from kerntest.learning.kpca_model import ConstantColumn, KpcaModel
from kerntest.learning.modelfile import ModelFile, read_model, write_model

if TYPE_CHECKING:
    from os import PathLike

KIND = "kpca"
# By so much of itself a trace may lie below the sum of the eigenvalues.
ROUNDING = 1e-9


def save_kpca(path: str | PathLike[str], model: KpcaModel, *, force: bool) -> None:
    """Write a model.

    Raises
    ------
    DataError
        If the file is there and `force` is not given, or it cannot be written.
    """
    fields, arrays = expansion_parts(model.expansion, model.features)
    manifest: dict[str, Any] = {
        "kind": KIND,
        "n_train": model.n_train,
        "encoder": None if model.encoder is None else model.encoder.to_plain(),
        "trace": model.trace,
        "mean_square": model.mean_square,
        "constants": [{"name": one.name, "place": one.place, "value": one.value} for one in model.constants],
        **fields,
    }
    arrays["eigenvalues"] = model.eigenvalues
    arrays["mean"] = model.mean
    write_model(path, manifest, arrays, force=force)


def load_kpca(path: str | PathLike[str]) -> KpcaModel:
    """Return the model of a file.

    Raises
    ------
    ModelError
        If it is no such model, damaged, or of a newer version.
    DataError
        If it cannot be read.
    """
    return kpca_of(read_model(path))


def kpca_of(file: ModelFile) -> KpcaModel:
    """Return the model that a file holds.

    Raises
    ------
    ModelError
        If it is not one.
    """
    check_kind(file, KIND, "kernel principal components")
    name, manifest = file.name, file.manifest
    fields = Fields.of(manifest, name)
    n_train = fields.count("n_train", at_least=1)
    encoder = None if fields.get("encoder") is None else Encoder.from_plain(manifest["encoder"], name=name)
    expansion, features = read_expansion(file, encoder, n_train)
    arrays = Arrays(file)
    eigenvalues, mean = arrays.vector("eigenvalues"), arrays.vector("mean")
    if not len(eigenvalues) or len(eigenvalues) != len(expansion.intercepts):
        raise damaged(name, "its eigenvalues and components do not fit together")
    if (eigenvalues <= 0).any() or (np.diff(eigenvalues) > 0).any():
        raise damaged(name, "its eigenvalues are not positive and descending")
    if len(mean) != len(expansion.coefficients):
        raise damaged(name, "its mean and its centres do not fit together")
    trace = fields.number("trace", positive=True)
    if trace < (1.0 - ROUNDING) * float(eigenvalues.sum()):
        raise damaged(name, "its trace is less than the sum of its eigenvalues")
    return KpcaModel(
        encoder,
        expansion,
        mean,
        fields.number("mean_square"),
        np.array(eigenvalues),
        trace,
        n_train,
        features,
        _constants(fields, encoder),
    )


def _constants(fields: Fields, encoder: Encoder | None) -> tuple[ConstantColumn, ...]:
    """Return the columns that tell nothing, each in its place among the others."""
    found = []
    for index, plain in enumerate(fields.items("constants")):
        one = Fields.of(plain, fields.model, f"constants[{index}]", names=("name", "place", "value"))
        found.append(ConstantColumn(one.text("name"), one.whole("place", at_least=0), one.number("value")))
    names = [*(one.name for one in found), *(() if encoder is None else encoder.names)]
    places = [one.place for one in found]
    if len(set(names)) < len(names) or places != sorted(set(places)) or max(places, default=-1) >= len(names):
        raise fields.refuse("constants", "columns of their own, each in its place")
    return tuple(found)
