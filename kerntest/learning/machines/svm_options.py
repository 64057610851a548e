"""The options of a support vector machine, checked in one place before anything is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from kerntest.data.kinds import number_text
from kerntest.data.messages import one_of, positive
from kerntest.errors import UsageError, suggest
from kerntest.learning.learner import LearnerOptions
from kerntest.learning.machines.svm_model import Method, Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

ClassWeights: TypeAlias = str | Mapping[Any, float] | None
BALANCED = "balanced"
# Costs and their factors: the objective squares their products.
SMALLEST_COST, LARGEST_COST = 1e-75, 1e75


@dataclass(frozen=True, kw_only=True)
class SvmOptions(LearnerOptions):
    """What kind of machine; each as in `SVM`."""

    C: float = 1.0
    task: Task = "classify"
    nu: float | None = None
    hard_margin: bool = False
    epsilon: float = 0.1
    class_weight: ClassWeights = None
    method: Method = "svm"
    probability: bool = False
    tolerance: float = 1e-6
    ADVICE = "--grid tries several"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        one_of("task", self.task, get_args(Task))
        one_of("method", self.method, get_args(Method))
        super().__post_init__()
        positive("C", self.C)
        _check_size("C", self.C, "usage.C")
        positive("tolerance", self.tolerance)
        if not (isinstance(self.epsilon, (int, float, np.number)) and 0 <= self.epsilon < math.inf):
            raise UsageError(
                f"epsilon must be 0 or more and finite, not {self.epsilon!r}", hint="0.1 is usual", code="usage.epsilon"
            )
        if self.nu is not None:
            positive("nu", self.nu)
        if self.nu is not None and self.nu > 1:
            raise UsageError(f"nu must be above 0 and at most 1, not {self.nu:g}", hint="0.1 is usual", code="usage.nu")
        if self.class_weight is not None and not _is_balanced(self.class_weight):
            _named_weights(self.class_weight)
        nu, hard, weighted = self.nu is not None, self.hard_margin, self.class_weight is not None
        task, no_classes = f"--task {self.task}", self.task != "classify"
        mean, method = self.method == "mean", f"--method {self.method}"
        other = self.method != "svm"
        self.refuse(
            (nu and hard, "--nu and --hard-margin", "give one of them"),
            (nu and weighted, "--nu and --class-weight", "use --C with weights"),
            (nu and self.task == "regress", "--nu and --task regress", "use --C and --epsilon"),
            (no_classes and hard, f"--hard-margin and {task}", "it is for classes"),
            (no_classes and weighted, f"--class-weight and {task}", "it is for classes"),
            (no_classes and self.probability, f"--probability and {task}", "it is for classes"),
            (no_classes and other, f"{method} and {task}", "it is for classes"),
            (
                other and (nu or hard or weighted),
                f"{method} and --nu, --hard-margin or --class-weight",
                "they belong to --method svm",
            ),
            (mean and self.features is not None, "--method mean and --features", "give one of them"),
            (mean and self.probability, "--method mean and --probability", "give one of them"),
        )

    def weights(self, classes: tuple[str, ...], codes: NDArray[Any]) -> Array | None:
        """Return the factor of C for each class.

        Raises
        ------
        UsageError
            If a class is not there or a weight not positive.
        """
        given = self.class_weight
        if given is None:
            return None
        counts = np.bincount(codes, minlength=len(classes))
        if _is_balanced(given):
            return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)), dtype=np.float64)
        weights = np.ones(len(classes))
        for name, weight in _named_weights(given).items():
            if name not in classes:
                meant = suggest(name, classes)
                raise UsageError(
                    f"no row has the class {name!r} of --class-weight",
                    hint=f"did you mean {meant!r}?" if meant else f"the classes are {', '.join(classes[:10])}",
                    code="usage.class_weight",
                )
            weights[classes.index(name)] = weight
        return weights


def _check_size(name: str, value: float, code: str) -> None:
    """Refuse costs of which the solver could not square the products."""
    if not SMALLEST_COST <= value <= LARGEST_COST:
        raise UsageError(
            f"{name} must be between {SMALLEST_COST:g} and {LARGEST_COST:g} in size, not {value:g}",
            hint="--hard-margin allows no errors at all" if value > 1 else None,
            code=code,
        )


def _is_balanced(given: ClassWeights) -> bool:
    return isinstance(given, str) and given == BALANCED


def _named_weights(given: str | Mapping[Any, float]) -> dict[str, float]:
    """Return weights by the name of their class, from a mapping or from a text like 'good:1,bad:5'.

    Raises
    ------
    UsageError
        If it is neither, or a weight is not positive.
    """
    if isinstance(given, str):
        weights = _written_weights(given)
    elif isinstance(given, Mapping):
        weights = {_class_name(label): weight for label, weight in given.items()}
    else:
        raise UsageError(
            f"class_weight is 'balanced' or a mapping of classes to weights, not a {type(given).__name__}",
            hint="such as {'good': 1, 'bad': 5}",
            code="usage.class_weight",
        )
    for name, weight in weights.items():
        positive(f"the weight of {name!r}", weight, code="usage.class_weight")
        _check_size(f"the weight of {name!r}", weight, "usage.class_weight")
    return {name: float(weight) for name, weight in weights.items()}


def _written_weights(text: str) -> dict[str, float]:
    """Return weights by the name of their class, from a text like 'good:1,bad:5'."""
    weights: dict[str, float] = {}
    for name, weight in map(_written_weight, text.split(",")):
        if name in weights:
            raise UsageError(
                f"--class-weight has {name!r} twice", hint="give each class one weight", code="usage.class_weight"
            )
        weights[name] = weight
    return weights


def _written_weight(part: str) -> tuple[str, float]:
    """Return a class and its weight, from a text like 'bad:5'."""
    name, _, number = part.rpartition(":")
    try:
        weight = float(number)
    except ValueError:
        name = ""
    if not name:
        raise UsageError(
            f"{part.strip()!r} is no class with a weight",
            hint="write --class-weight balanced, or --class-weight 'good:1,bad:5'",
            code="usage.class_weight",
        )
    return name.strip(), weight


def _class_name(label: object) -> str:
    """Return what a class is called that holds a label: true, 1 and 1.0 as 1, 0.5, or a text or date as it is."""
    if isinstance(label, (bool, np.bool_)):
        return str(bool(label)).lower()
    return number_text(float(label)) if isinstance(label, (int, float, np.number)) else str(label)
