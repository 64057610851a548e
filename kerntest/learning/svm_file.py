"""A support vector machine on disk, see `modelfile` for the format."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

import kerntest
from kerntest.data.categories import number_text
from kerntest.errors import ModelError, UsageError
from kerntest.kernels.base import Kernel, Points
from kerntest.kernels.binding import bind
from kerntest.kernels.text import parse_kernel
from kerntest.learning.calibration import Sigmoid
from kerntest.learning.encoding import Encoder
from kerntest.learning.expansion import Expansion, GivenExpansion
from kerntest.learning.features import FeatureKind, FeatureMap
from kerntest.learning.fields import Fields, damaged
from kerntest.learning.modelfile import ModelFile, read_model, write_model
from kerntest.learning.svm_model import Method, SvmModel, Task
from kerntest.learning.training import Classes

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

KIND = "svm"
TASKS: tuple[Task, ...] = get_args(Task)
METHODS: tuple[Method, ...] = get_args(Method)
FEATURES: tuple[FeatureKind, ...] = get_args(FeatureKind)
BOOLEAN_NAMES = ("false", "true")


def save_svm(path: str | PathLike[str], model: SvmModel, *, force: bool) -> None:
    """Write a model.

    Raises
    ------
    DataError
        If the file is there and `force` is not given, or it cannot be written.
    """
    manifest: dict[str, Any] = {
        "kind": KIND,
        "kerntest_version": kerntest.__version__,
        "task": model.task,
        "method": model.method,
        "target": model.target,
        "n_train": model.n_train,
        "encoder": None if model.encoder is None else model.encoder.to_plain(),
        "classes": None if model.classes is None else {"names": list(model.classes.names), "kind": model.classes.kind},
        "pairs": [list(pair) for pair in model.pairs],
        "sigmoids": [{"slope": one.slope, "offset": one.offset} for one in model.sigmoids],
        "kernel": None,
        "features": None,
    }
    arrays: dict[str, NDArray[Any]] = {
        "coefficients": model.expansion.coefficients,
        "intercepts": model.expansion.intercepts,
    }
    if isinstance(model.expansion, Expansion):
        manifest["kernel"] = str(model.expansion.kernel)
        arrays["centres_numeric"] = model.expansion.centres.numeric
        arrays["centres_codes"] = model.expansion.centres.codes
    else:
        arrays["centres"] = np.asarray(model.expansion.columns, dtype=np.int64)
    if model.features is not None:
        manifest["kernel"] = str(model.features.kernel)
        manifest["features"] = model.features.kind
        arrays["landmarks_numeric"] = model.features.landmarks.numeric
        arrays["landmarks_codes"] = model.features.landmarks.codes
        arrays["projection"] = model.features.projection
        arrays["offsets"] = model.features.offsets
    write_model(path, manifest, arrays, force=force)


def load_svm(path: str | PathLike[str]) -> SvmModel:
    """Return the model of a file.

    Raises
    ------
    ModelError
        If it is no such model, damaged, or of a newer version.
    DataError
        If it cannot be read.
    """
    return svm_of(read_model(path))


def svm_of(file: ModelFile) -> SvmModel:
    """Return the model that a file holds.

    Raises
    ------
    ModelError
        If it is not one.
    """
    name = file.name
    manifest = file.manifest
    if manifest.get("kind") != KIND:
        raise ModelError(
            f"{name} holds a {manifest.get('kind')!r} model, not a support vector machine",
            hint="`kerntest inspect` says what a model holds",
            code="model.kind",
            where={"file": name},
        )
    fields = Fields.of(manifest, name)
    task = fields.one_of("task", TASKS)
    method = fields.one_of("method", METHODS)
    encoder = None if manifest.get("encoder") is None else Encoder.from_plain(manifest["encoder"], name=name)
    classes = _classes(manifest.get("classes"), name)
    arrays = _Arrays(file, name)
    coefficients, intercepts = arrays.matrix("coefficients"), arrays.vector("intercepts")
    if coefficients.shape[1] != len(intercepts):
        raise damaged(name, "its coefficients and intercepts do not fit together")
    n_train = fields.whole("n_train", at_least=1)
    expansion, features = _expansion(manifest, arrays, encoder, coefficients, intercepts)
    if encoder is None and isinstance(expansion, GivenExpansion) and expansion.columns.max(initial=-1) >= n_train:
        raise damaged(name, "its centres are no training rows")
    target = manifest.get("target")
    pairs = _pairs(manifest.get("pairs"), classes, name)
    sigmoids = tuple(_sigmoid(one, name) for one in _list(manifest.get("sigmoids"), "sigmoids", name))
    _check_scores((task, method), classes, pairs, len(intercepts), name)
    if sigmoids and len(sigmoids) != len(pairs):
        raise damaged(name, "its sigmoids and pairs do not fit together")
    return SvmModel(
        task,
        method,
        encoder,
        expansion,
        pairs,
        target if isinstance(target, str) else None,
        classes,
        sigmoids,
        features,
        n_train,
    )


def _check_scores(
    kind: tuple[Task, Method], classes: Classes | None, pairs: tuple[tuple[int, int], ...], scores: int, name: str
) -> None:
    """Refuse scores that are not those of the task and the method: one for each pair, class, or one in all."""
    task, method = kind
    if task != "classify":
        if method != "svm" or classes is not None or pairs or scores != 1:
            raise damaged(name, f"a model for {task} has method 'svm', one score, no classes and no pairs")
        return
    if classes is None:
        raise damaged(name, "a classifier has classes")
    count = len(classes.names)
    expected = () if method == "mean" else tuple(combinations(range(count), 2))
    if tuple(sorted(pairs)) != expected:
        raise damaged(name, f"its pairs are not those of {count:,} classes, each once")
    if scores != (count if method == "mean" else len(pairs)):
        raise damaged(name, f"its {scores:,} scores are not those of {count:,} classes")


def _expansion(
    manifest: dict[str, Any],
    arrays: _Arrays,
    encoder: Encoder | None,
    coefficients: NDArray[np.float64],
    intercepts: NDArray[np.float64],
) -> tuple[Expansion | GivenExpansion, FeatureMap | None]:
    """Return the scores, and the features that they are linear in, if they are."""
    name = arrays.name
    kernel = None if encoder is None else _kernel(manifest.get("kernel"), encoder, name)
    if manifest.get("features") is None and kernel is not None:
        centres = arrays.points("centres", encoder)
        if len(centres) != len(coefficients):
            raise damaged(name, "its centres and coefficients do not fit together")
        return Expansion(kernel, centres, coefficients, intercepts), None
    columns = arrays.whole("centres")
    if len(columns) != len(coefficients) or (len(columns) and columns.min() < 0):
        raise damaged(name, "its centres and coefficients do not fit together")
    given = GivenExpansion(columns, coefficients, intercepts)
    if manifest.get("features") is None or kernel is None:
        return given, None
    kind = Fields.of(manifest, name).one_of("features", FEATURES)
    features = FeatureMap(
        kind, kernel, arrays.points("landmarks", encoder), arrays.matrix("projection"), arrays.vector("offsets")
    )
    inputs = len(features.landmarks) if kind == "nystroem" else features.landmarks.numeric.shape[1]
    if features.size != len(coefficients) or features.projection.shape[0] != inputs:
        raise damaged(name, "its features and coefficients do not fit together")
    return given, features


def _kernel(text: Any, encoder: Encoder, name: str) -> Kernel:
    if not isinstance(text, str):
        raise damaged(name, "it names no kernel")
    try:
        kernel = bind(parse_kernel(text), encoder.numeric_names, encoder.category_names).kernel
    except UsageError as error:
        raise damaged(name, f"its kernel {text!r} cannot be read: {error.message}") from error
    if kernel.free:
        raise damaged(name, f"its kernel {text!r} has no bandwidth")
    return kernel


def _classes(plain: Any, name: str) -> Classes | None:
    if plain is None:
        return None
    fields = Fields.of(plain, name, "classes", names=("names", "kind"))
    names = fields.texts("names")
    if len(names) < 2 or len(set(names)) < len(names):
        raise fields.refuse("names", "two classes or more, all different")
    kind = fields.one_of("kind", ("number", "boolean", "text", "date"))
    if kind == "number" and not all(map(_is_number, names)):
        raise fields.refuse("names", "numbers in their shortest form")
    if kind == "boolean" and tuple(names) != BOOLEAN_NAMES:
        raise fields.refuse("names", "'false' and 'true'")
    return Classes(tuple(names), kind)


def _is_number(text: str) -> bool:
    """Say whether a text is what we write for a finite number."""
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and number_text(number) == text


def _pairs(plain: Any, classes: Classes | None, name: str) -> tuple[tuple[int, int], ...]:
    pairs = tuple(tuple(pair) if isinstance(pair, list) else () for pair in _list(plain, "pairs", name))
    count = 0 if classes is None else len(classes.names)
    for pair in pairs:
        whole = len(pair) == 2 and all(isinstance(k, int) and not isinstance(k, bool) for k in pair)
        if not whole or not 0 <= pair[0] < pair[1] < count:
            raise damaged(name, f"pairs: {list(pair)!r} are no two classes")
    return tuple((int(pair[0]), int(pair[1])) for pair in pairs)


def _sigmoid(plain: Any, name: str) -> Sigmoid:
    fields = Fields.of(plain, name, "sigmoids", names=("slope", "offset"))
    return Sigmoid(fields.number("slope"), fields.number("offset"))


def _list(plain: Any, field: str, name: str) -> list[Any]:
    if not isinstance(plain, list):
        raise damaged(name, f"{field} is no list")
    return plain


class _Arrays:
    """The arrays of a model file, asked for by shape and type."""

    def __init__(self, file: ModelFile, name: str) -> None:
        self.arrays, self.name = file.arrays, name

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
        return Points(np.array(numeric), np.array(codes))
