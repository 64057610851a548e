"""The options of a ridge regression, checked in one place before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from kerntest.data.checks import one_of, positive, whole_number
from kerntest.errors import UsageError
from kerntest.learning.kernel_choice import check_bandwidth, is_precomputed
from kerntest.matrices.factor import parse_features

if TYPE_CHECKING:
    from kerntest.kernels.base import Kernel
    from kerntest.learning.encoding import Scale

Criterion: TypeAlias = Literal["loo", "gcv", "cv", "evidence"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
RidgeBandwidth: TypeAlias = Literal["auto", "median"] | float
AUTO: Final = "auto"
FOLDS = 5
# What is smaller or larger is lost beside eigenvalues, which are squared and divided by.
SMALLEST_LAMBDA, LARGEST_LAMBDA = 1e-75, 1e75


@dataclass(frozen=True, slots=True)
class RidgeOptions:
    """What kind of regression; each as in `KernelRidge`."""

    lambda_: float | None = None
    kernel: Kernel | str = "gaussian"
    bandwidth: RidgeBandwidth = AUTO
    criterion: Criterion = "loo"
    cv: int | None = None
    features: str | None = None
    intervals: bool = True
    scale: Scale = "standardize"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises
        ------
        UsageError
            If a name is unknown, a number out of range, or two options contradict one another.
        """
        one_of("criterion", self.criterion, CRITERIA)
        one_of("scale", self.scale, ("standardize", "none"))
        whole_number("seed", self.seed, at_least=0)
        if self.lambda_ is not None:
            positive("lambda", self.lambda_)
            _check_size(self.lambda_)
        if self.bandwidth != AUTO:
            check_bandwidth(self.bandwidth, (AUTO, "median"))
        if self.cv is not None:
            whole_number("cv", self.cv, at_least=2)
            if self.criterion == CRITERIA[0]:
                object.__setattr__(self, "criterion", "cv")
        if self.features is not None:
            parse_features(self.features)
        contradictions = (
            (
                self.cv is not None and self.criterion != "cv",
                f"--cv {self.cv} and --criterion {self.criterion}",
                "--criterion cv chooses by folds",
            ),
            (self.precomputed and self.features is not None, "a precomputed kernel and features", "give one of them"),
            (
                self.precomputed and self.bandwidth != AUTO,
                "a precomputed kernel and a bandwidth",
                "give one of them",
            ),
        )
        for wrong, what, hint in contradictions:
            if wrong:
                raise UsageError(f"{what} contradict each other", hint=hint, code="usage.contradiction")

    @property
    def precomputed(self) -> bool:
        """Whether rows are rows of a matrix of kernel values."""
        return is_precomputed(self.kernel)

    @property
    def folds(self) -> int:
        """How many folds, where there are any."""
        return FOLDS if self.cv is None else self.cv


def _check_size(lambda_: float) -> None:
    """Refuse a lambda whose quotients with eigenvalues are no numbers."""
    if not SMALLEST_LAMBDA <= lambda_ <= LARGEST_LAMBDA:
        raise UsageError(
            f"lambda must be between {SMALLEST_LAMBDA:g} and {LARGEST_LAMBDA:g} in size, not {lambda_:g}",
            hint="values far above those of the kernel give the mean, far below a function through all rows",
            code="usage.lambda",
        )
