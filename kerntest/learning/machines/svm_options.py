"""Which machine is asked for: the options of support vector machines, and what contradicts what among them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from kerntest.data.column_types import number_text
from kerntest.errors import UsageError, one_of, option, positive, shown_argument, suggest
from kerntest.learning.learner import LearnerOptions, sized
from kerntest.learning.machines.svm_model import Method, Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.training_rows import TrainingRows

ClassWeights: TypeAlias = str | Mapping[Any, float] | None
BALANCED = "balanced"
# Costs and their factors: the objective squares their products.
COSTS = 1e-75, 1e75
# How far a nu stays below the largest one, where rounding decides.
BELOW_LARGEST = 1e-9


@dataclass(eq=False, repr=False)
class SvmOptions(LearnerOptions):
    """What kind of machine; each as in `SVM`."""

    C: float = 1.0
    kernel: Kernel | str = "gaussian"
    _: KW_ONLY
    task: Task = "classify"
    nu: float | None = None
    hard_margin: bool = False
    epsilon: float = 0.1
    class_weight: ClassWeights = None
    method: Method = "svm"
    probability: bool = False
    tolerance: float = 1e-6
    SEARCH = "grid"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        one_of("task", self.task, get_args(Task))
        one_of("method", self.method, get_args(Method))
        super().__post_init__()
        sized("C", self.C, COSTS, f"{option('hard-margin', True)} allows no errors at all")
        positive("tolerance", self.tolerance)
        if not isinstance(self.epsilon, int | float) or self.epsilon != 0:
            positive("epsilon", self.epsilon)
        if self.nu is not None:
            sized("nu", self.nu, (0.0, 1.0), "0.1 is usual")
        task, method, classes = (
            option("task", self.task),
            option("method", self.method),
            "it is for classes",
        )
        given = {
            option("nu"): self.nu is not None,
            option("hard-margin", True): self.hard_margin,
            option("class-weight"): self.weights is not None,
            option("probability", True): self.probability,
            option("features"): self.asked_features is not None,
            task: self.task != "classify",
            method: self.method != "svm",
        }
        for one, other, hint in (
            (option("nu"), option("hard-margin", True), "give one of them"),
            (option("nu"), option("class-weight"), f"use {option('C')} with weights"),
            (option("nu"), option("task", "regress"), f"use {option('C')} and {option('epsilon')}"),
            *(
                (name, task, classes)
                for name in (option("hard-margin", True), option("class-weight"), option("probability", True), method)
            ),
            *(
                (method, name, f"it belongs to {option('method', 'svm')}")
                for name in (option("nu"), option("hard-margin", True), option("class-weight"))
            ),
            *(
                (option("method", "mean"), name, "give one of them")
                for name in (option("features"), option("probability", True))
            ),
        ):
            self.refuse(given.get(one) and given.get(other), f"{one} and {other}", hint)

    @property
    def weights(self) -> str | dict[str, float] | None:
        """The factors of C by the names of their classes, or how they are found."""
        return _named_weights(self.class_weight)

    def stored(self) -> dict[str, Any]:
        """Return the options as a model file keeps them, weights by the names of their classes."""
        return super().stored() | {"class_weight": self.weights}

    def feasible(self, rows: TrainingRows, *, whole: bool = False) -> SvmOptions:
        """Return the options for a part of the rows; refuse a nu that the sizes of all classes, or weights, do not allow.

        Every pair of classes must allow it: 2 min(n_i, n_j) / (n_i + n_j) is the largest (Chang and Lin 2001).
        """
        without = {
            option("nu"): self.nu is not None and rows.classes is not None,
            option("hard-margin", True): self.hard_margin,
            option("method", self.method): self.method != "svm",
        }
        for name, given in without.items() if rows.weights is not None else ():
            self.refuse(given, f"sample_weight and {name}", f"weights are factors of {option('C')}")
        if self.nu is None or rows.classes is None:
            return self
        counts, names = np.bincount(rows.codes), rows.classes.names
        few, many = int(np.argmin(counts)), int(np.argmax(counts))
        largest = 2.0 * float(counts[few]) / float(counts[few] + counts[many])
        if self.nu <= largest * (1.0 + 1e-12):
            return self
        # A part may have a row less of a class.
        if largest > 0 and not whole:
            return replace(self, nu=largest * (1.0 - BELOW_LARGEST))
        both = " and ".join(repr(names[place]) for place in sorted((few, many)))
        hint = f"{option('nu', math.floor(largest * 1000) / 1000)}, or class weights with {option('C')}"
        told = f"nu = {self.nu:g} is infeasible: {both} allow at most {largest:.4g}"
        raise UsageError(told, hint=hint, code="usage.nu")

    def class_factors(self, classes: tuple[str, ...], codes: NDArray[Any]) -> Array:
        """Return the factor of C for each class; refuse weights of classes that are not there."""
        if isinstance(self.weights, str):
            counts = np.bincount(codes, minlength=len(classes))
            return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)), dtype=np.float64)
        weights = self.weights or {}
        for name in [one for one in weights if one not in classes]:
            meant = suggest(name, classes)
            hint = f"did you mean {meant!r}?" if meant else f"the classes are {', '.join(classes[:10])}"
            raise UsageError(
                f"no row has the class {name!r} of {option('class-weight')}", hint=hint, code="usage.class_weight"
            )
        return np.array([weights.get(name, 1.0) for name in classes])


def _named_weights(given: ClassWeights) -> str | dict[str, float] | None:
    """Return weights by the name of their class, from a mapping or from a text like 'good:1,bad:5'; balanced as it is."""
    if given is None or (isinstance(given, str) and given == BALANCED):
        return given
    code, example = "usage.class_weight", option("class-weight", "good:1,bad:5")
    hint = f"write {option('class-weight', BALANCED)}, or a number for each class of the target, as {example} for good and bad"
    if isinstance(given, str) and suggest(given, [BALANCED]):
        hint = f"did you mean {BALANCED!r}?"
    if isinstance(given, Mapping):
        pairs = [(_class_name(label), weight) for label, weight in given.items()]
    else:
        try:
            parts = [part.rpartition(":") for part in given.split(",")]
            pairs = [(name.strip(), float(weight)) for name, _, weight in parts]
        except (AttributeError, TypeError, ValueError) as error:
            raise UsageError(f"{shown_argument(given)} are no weights of classes", hint=hint, code=code) from error
    weights = dict(pairs)
    if len(weights) < len(pairs):
        raise UsageError(f"{given!r} has a class twice", hint="give each class one weight", code=code)
    for name, weight in weights.items():
        sized(f"the weight of {name!r}", weight, COSTS, code=code)
    return {name: float(weight) for name, weight in weights.items()}


def _class_name(label: object) -> str:
    """Return what a class is called that holds a label: true, 1 and 1.0 as 1, 0.5, or a text or date as it is."""
    if isinstance(label, (bool, np.bool_)):
        return str(bool(label)).lower()
    return number_text(float(label)) if isinstance(label, (int, float, np.number)) else str(label)
