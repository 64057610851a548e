"""The options of a test, checked in one place before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kerntest.data.checks import one_of, whole_number
from kerntest.errors import UsageError

if TYPE_CHECKING:
    from kerntest.inference.labels import Estimator
    from kerntest.inference.nulls.permutation import Judge

NullMethod: TypeAlias = Literal["permutation", "moments", "gamma", "spectral", "pearson"]
Method: TypeAlias = Literal["exact", "features"]
Resampling: TypeAlias = Literal["blocks", "shifts", "random"]
Scale: TypeAlias = Literal["standardize", "none"]
MissingPolicy: TypeAlias = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a two-sample test that are not about reading tables, checked."""

    estimator: Estimator
    null: NullMethod
    permutations: int
    alpha: float
    scale: Scale
    seed: int
    resampling: Resampling = "shifts"
    judge: Judge = "together"

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises
        ------
        UsageError
            If a name is unknown or a number out of range.
        """
        one_of("estimator", self.estimator, ("unbiased", "biased"))
        one_of("null", self.null, ("permutation", "moments", "gamma", "spectral", "pearson"))
        one_of("judge", self.judge, ("together", "smallest"))
        one_of("scale", self.scale, ("standardize", "none"))
        is_number = isinstance(self.alpha, (int, float, np.number))
        if not is_number or not 0 < self.alpha < 1:
            shown = f"{self.alpha:g}" if is_number else repr(self.alpha)
            raise UsageError(f"alpha must be between 0 and 1, not {shown}", hint="0.05 is usual", code="usage.alpha")
        whole_number("permutations", self.permutations, at_least=1)
        whole_number("seed", self.seed, at_least=0)
