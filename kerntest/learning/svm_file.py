"""A support vector machine on disk, see `modelfile` for the format."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, get_args

import kerntest
from kerntest.data.categories import number_text
from kerntest.learning.calibration import Sigmoid
from kerntest.learning.encoding import Encoder
from kerntest.learning.expansion_file import check_kind, expansion_parts, read_expansion
from kerntest.learning.fields import Fields, damaged
from kerntest.learning.modelfile import ModelFile, read_model, write_model
from kerntest.learning.svm_model import Method, SvmModel, Task
from kerntest.learning.training import Classes

if TYPE_CHECKING:
    from os import PathLike

KIND = "svm"
TASKS: tuple[Task, ...] = get_args(Task)
METHODS: tuple[Method, ...] = get_args(Method)
BOOLEAN_NAMES = ("false", "true")


def save_svm(path: str | PathLike[str], model: SvmModel, *, force: bool) -> None:
    """Write a model.

    Raises
    ------
    DataError
        If the file is there and `force` is not given, or it cannot be written.
    """
    fields, arrays = expansion_parts(model.expansion, model.features)
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
        **fields,
    }
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
    check_kind(file, KIND, "a support vector machine")
    name, manifest = file.name, file.manifest
    fields = Fields.of(manifest, name)
    task = fields.one_of("task", TASKS)
    method = fields.one_of("method", METHODS)
    encoder = None if manifest.get("encoder") is None else Encoder.from_plain(manifest["encoder"], name=name)
    classes = _classes(manifest.get("classes"), name)
    n_train = fields.count("n_train", at_least=1)
    expansion, features = read_expansion(file, encoder, n_train)
    target = manifest.get("target")
    pairs = _pairs(manifest.get("pairs"), classes, name)
    sigmoids = tuple(_sigmoid(one, name) for one in _list(manifest.get("sigmoids"), "sigmoids", name))
    _check_scores((task, method), classes, pairs, len(expansion.intercepts), name)
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
