"""Functions of rows on disk, for every learner: their arrays and fields in a model file, see `modelfile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from kerntest.errors import ModelError, UsageError
from kerntest.kernels.base import Kernel, Points
from kerntest.kernels.binding import bind
from kerntest.kernels.features import FeatureKind, FeatureMap
from kerntest.kernels.text import parse_kernel
from kerntest.learning.expansion import Expansion, GivenExpansion
from kerntest.learning.fields import Fields, damaged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.learning.encoding import Encoder
    from kerntest.learning.modelfile import ModelFile

FEATURES: tuple[FeatureKind, ...] = get_args(FeatureKind)


def expansion_parts(
    expansion: Expansion | GivenExpansion, features: FeatureMap | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the fields `kernel` and `features` of a manifest, and the arrays of an expansion."""
    fields: dict[str, Any] = {"kernel": None, "features": None}
    arrays: dict[str, NDArray[Any]] = {
        "coefficients": expansion.coefficients,
        "intercepts": expansion.intercepts,
    }
    if isinstance(expansion, Expansion):
        fields["kernel"] = str(expansion.kernel)
        arrays["centres_numeric"] = expansion.centres.numeric
        arrays["centres_codes"] = expansion.centres.codes
    else:
        arrays["centres"] = np.asarray(expansion.columns, dtype=np.int64)
    if features is not None:
        fields["kernel"] = str(features.kernel)
        fields["features"] = features.kind
        arrays["landmarks_numeric"] = features.landmarks.numeric
        arrays["landmarks_codes"] = features.landmarks.codes
        arrays["projection"] = features.projection
        arrays["offsets"] = features.offsets
    return fields, arrays


def read_expansion(
    file: ModelFile, encoder: Encoder | None, n_train: int
) -> tuple[Expansion | GivenExpansion, FeatureMap | None]:
    """Return the functions that a file holds, and the features that they are linear in, if they are.

    Raises
    ------
    ModelError
        If arrays are missing, or do not fit one another or the columns.
    """
    name, manifest = file.name, file.manifest
    arrays = Arrays(file)
    coefficients, intercepts = arrays.matrix("coefficients"), arrays.vector("intercepts")
    if coefficients.shape[1] != len(intercepts):
        raise damaged(name, "its coefficients and intercepts do not fit together")
    kernel = None if encoder is None else read_kernel(manifest.get("kernel"), encoder, name)
    if manifest.get("features") is None and kernel is not None:
        centres = arrays.points("centres", encoder)
        if len(centres) != len(coefficients):
            raise damaged(name, "its centres and coefficients do not fit together")
        return Expansion(kernel, centres, coefficients, intercepts), None
    columns = arrays.whole("centres")
    if len(columns) != len(coefficients) or (len(columns) and columns.min() < 0):
        raise damaged(name, "its centres and coefficients do not fit together")
    if encoder is None and columns.max(initial=-1) >= n_train:
        raise damaged(name, "its centres are no training rows")
    given = GivenExpansion(columns, coefficients, intercepts)
    if manifest.get("features") is None or kernel is None:
        return given, None
    kind = Fields.of(manifest, name).one_of("features", FEATURES)
    features = FeatureMap(
        kind, kernel, arrays.points("landmarks", encoder), arrays.matrix("projection"), arrays.vector("offsets")
    )
    inputs = len(features.landmarks) if kind == "nystroem" else features.landmarks.numeric.shape[1]
    offsets = features.size if kind == "fourier" else 0
    known = features.size == len(coefficients) and columns.max(initial=-1) < features.size
    if not known or features.projection.shape[0] != inputs or len(features.offsets) != offsets:
        raise damaged(name, "its features and coefficients do not fit together")
    return given, features


def read_kernel(text: Any, encoder: Encoder, name: str) -> Kernel:
    """Return the kernel that a text names, bound to the columns of a model.

    Raises
    ------
    ModelError
        If it is none, or leaves a bandwidth open.
    """
    if not isinstance(text, str):
        raise damaged(name, "it names no kernel")
    try:
        kernel = bind(parse_kernel(text), encoder.numeric_names, encoder.category_names).kernel
    except UsageError as error:
        raise damaged(name, f"its kernel {text!r} cannot be read: {error.message}") from error
    if kernel.free:
        raise damaged(name, f"its kernel {text!r} has no bandwidth")
    return kernel


def check_kind(file: ModelFile, kind: str, learner: str) -> None:
    """Refuse the model of another learner.

    Raises
    ------
    ModelError
        As above.
    """
    if file.kind != kind:
        raise ModelError(
            f"{file.name} holds a {file.kind!r} model, not {learner}",
            hint="`kerntest inspect` says what a model holds",
            code="model.kind",
            where={"file": file.name},
        )


class Arrays:
    """The arrays of a model file, asked for by shape and type."""

    def __init__(self, file: ModelFile) -> None:
        self.arrays, self.name = file.arrays, file.name

    def _get(self, name: str, ndim: int, kind: str) -> NDArray[Any]:
        array = self.arrays.get(name)
        if array is None or array.ndim != ndim or array.dtype.kind != kind:
            raise damaged(self.name, f"its array {name!r} is missing or of another shape")
        if kind == "f" and not np.isfinite(array).all():
            raise damaged(self.name, f"its array {name!r} is not finite")
        return array

    def matrix(self, name: str) -> NDArray[np.float64]:
        """Return numbers, shape (m, n)."""
        return self._get(name, 2, "f").astype(np.float64, copy=False)

    def vector(self, name: str) -> NDArray[np.float64]:
        """Return numbers, shape (n,)."""
        return self._get(name, 1, "f").astype(np.float64, copy=False)

    def whole(self, name: str) -> NDArray[np.intp]:
        """Return whole numbers, shape (n,)."""
        return self._get(name, 1, "i").astype(np.intp, copy=False)

    def points(self, name: str, encoder: Encoder | None) -> Points:
        """Return rows of the columns of an encoder."""
        numeric = self.matrix(f"{name}_numeric")
        codes = self._get(f"{name}_codes", 2, "i").astype(np.int64, copy=False)
        widths = (0, 0) if encoder is None else (len(encoder.numeric_names), len(encoder.category_names))
        if len(numeric) != len(codes) or (len(numeric) and (numeric.shape[1], codes.shape[1]) != widths):
            raise damaged(self.name, f"its {name} do not fit its columns")
        levels = [] if encoder is None else [len(column.levels) for column in encoder.categories]
        if len(codes) and levels and ((codes < 0) | (codes >= levels)).any():
            raise damaged(self.name, f"its {name} hold categories that its columns do not have")
        return Points(np.array(numeric), np.array(codes))
