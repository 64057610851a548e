"""What a model file holds: `inspect_model`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kerntest.learning.expansion import Expansion
from kerntest.learning.modelfile import read_model
from kerntest.learning.svm_file import KIND, svm_of
from kerntest.report.model_report import ModelColumn, ModelReport

if TYPE_CHECKING:
    from os import PathLike

    from kerntest.learning.encoding import ColumnSpec
    from kerntest.learning.modelfile import ModelFile
    from kerntest.learning.svm_model import SvmModel

_CHUNK = 1 << 20


def inspect_model(path: str | PathLike[str]) -> ModelReport:
    """Read a model file, all of it, and say what it holds.

    Parameters
    ----------
    path : path
        A file that `train_svm` or `SVM.save` wrote.

    Raises
    ------
    ModelError
        If it is damaged, of a newer version, or no model.
    DataError
        If it cannot be read.
    """
    file = read_model(path)
    # A kind that a later version of this format adds is still told by name.
    model = svm_of(file) if file.kind == KIND else None
    location = Path(path)
    digest = hashlib.sha256()
    with location.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return ModelReport(
        schema="kerntest.model/1",
        command="inspect",
        name=os.fspath(path),
        kind=file.kind,
        format_version=int(file.manifest["format_version"]),
        kerntest_version=str(file.manifest["kerntest_version"]),
        task=None if model is None else model.task,
        method=None if model is None else model.method,
        target=None if model is None else model.target,
        classes=() if model is None or model.classes is None else model.classes.names,
        columns=() if model is None or model.encoder is None else tuple(map(_column, model.encoder.columns)),
        scale=None if model is None or model.encoder is None else model.encoder.scale,
        kernel=_kernel(file, model),
        features=None if model is None or model.features is None else f"{model.features.kind}:{model.features.size}",
        n_support=_support(model),
        intercepts=() if model is None else tuple(float(b) for b in model.expansion.intercepts),
        probability=model is not None and bool(model.sigmoids),
        bytes=location.stat().st_size,
        sha256=digest.hexdigest(),
    )


def _column(spec: ColumnSpec) -> ModelColumn:
    if spec.is_category:
        return ModelColumn(spec.name, spec.kind, spec.levels, None, None)
    return ModelColumn(spec.name, spec.kind, None, spec.centre, spec.spread)


def _kernel(file: ModelFile, model: SvmModel | None) -> str | None:
    if model is not None and model.encoder is None:
        return "precomputed"
    kernel = file.manifest.get("kernel")
    return kernel if isinstance(kernel, str) else None


def _support(model: SvmModel | None) -> int | None:
    """Return the number of training rows that a model keeps."""
    if model is None or model.features is not None:
        return None
    expansion = model.expansion
    return len(expansion.centres) if isinstance(expansion, Expansion) else len(expansion.columns)
