"""What a model file holds: `inspect_model`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerntest.learning.expansion import Expansion, GivenExpansion
from kerntest.learning.kpca_model import KpcaModel
from kerntest.learning.model_file import ModelFile, read_model
from kerntest.learning.ridge_model import RidgeModel
from kerntest.learning.saved_models import model_of
from kerntest.learning.svm_model import SvmModel
from kerntest.report.model_report import ModelColumn, ModelReport

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from kerntest.learning.encoding import ColumnSpec, Encoder
    from kerntest.matrices.factor import FeatureMap

_CHUNK = 1 << 20


def inspect_model(path: str | PathLike[str]) -> ModelReport:
    """Read a model file, all of it, and say what it holds.

    Parameters
    ----------
    path : path
        A file that a learner wrote.

    Raises
    ------
    ModelError
        If it is damaged, of a newer version, or no model.
    DataError
        If it cannot be read.
    """
    file = read_model(path)
    location = Path(path)
    digest = hashlib.sha256()
    with location.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    # A kind that a later version of this format adds is still told by name.
    of_kind = _OF_KIND.get(file.kind)
    kernel = file.manifest.get("kernel")
    fields = _UNKNOWN | {"kernel": kernel if isinstance(kernel, str) else None}
    return ModelReport(
        schema="kerntest.model/1",
        command="inspect",
        name=os.fspath(path),
        kind=file.kind,
        format_version=int(file.manifest["format_version"]),
        kerntest_version=str(file.manifest["kerntest_version"]),
        bytes=location.stat().st_size,
        sha256=digest.hexdigest(),
        **(fields if of_kind is None else fields | of_kind(file)),
    )


# What is told of a model whose learner is not known.
_UNKNOWN: dict[str, Any] = {
    "task": None,
    "method": None,
    "target": None,
    "classes": (),
    "columns": (),
    "scale": None,
    "features": None,
    "n_support": None,
    "intercepts": (),
    "probability": False,
    "lambda_": None,
    "intervals": False,
    "eigenvalues": (),
    "explained_variance_ratio": (),
}


def _of_svm(file: ModelFile) -> dict[str, Any]:
    """Return what is told of a support vector machine."""
    model = model_of(file, SvmModel)
    return _of_expansion(model.encoder, model.expansion, model.features) | {
        "task": model.task,
        "method": model.method,
        "target": model.target,
        "classes": () if model.classes is None else model.classes.names,
        "probability": bool(model.sigmoids),
    }


def _of_ridge(file: ModelFile) -> dict[str, Any]:
    """Return what is told of a ridge regression."""
    model = model_of(file, RidgeModel)
    return _of_expansion(model.encoder, model.expansion, model.features) | {
        "task": "regress",
        "target": ", ".join(model.targets),
        "lambda_": model.lambda_,
        "intervals": model.spread is not None,
    }


def _of_kpca(file: ModelFile) -> dict[str, Any]:
    """Return what is told of principal components, whose intercepts are only their centring."""
    model = model_of(file, KpcaModel)
    told = _of_expansion(model.encoder, model.expansion, model.features)
    return told | {
        "n_support": None if model.features is not None or model.by_axes else model.n_train,
        "intercepts": (),
        "eigenvalues": tuple(model.eigenvalues.tolist()),
        "explained_variance_ratio": tuple(model.ratios.tolist()),
    }


_OF_KIND: dict[str, Callable[[ModelFile], dict[str, Any]]] = {"svm": _of_svm, "ridge": _of_ridge, "kpca": _of_kpca}


def _of_expansion(
    encoder: Encoder | None, expansion: Expansion | GivenExpansion, features: FeatureMap | None
) -> dict[str, Any]:
    """Return what is told of the columns and the functions of a model."""
    support = None
    if features is None:
        support = len(expansion.centres if isinstance(expansion, Expansion) else expansion.columns)
    told: dict[str, Any] = {
        "columns": () if encoder is None else tuple(map(_column, encoder.columns)),
        "scale": None if encoder is None else encoder.scale,
        "features": None if features is None else f"{features.kind}:{features.size}",
        "n_support": support,
        "intercepts": tuple(float(b) for b in expansion.intercepts),
    }
    return told if encoder is not None else told | {"kernel": "precomputed"}


def _column(spec: ColumnSpec) -> ModelColumn:
    if spec.is_category:
        return ModelColumn(spec.name, spec.kind, spec.levels, None, None)
    return ModelColumn(spec.name, spec.kind, None, spec.centre, spec.spread, spec.written or None)
