"""The options of kernel principal components, checked in one place before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.checks import one_of, whole_number
from kerntest.errors import UsageError
from kerntest.learning.given_matrix import is_precomputed
from kerntest.learning.kernel_choice import check_bandwidth, check_kernel
from kerntest.matrices.eigen import SOLVERS
from kerntest.matrices.factor import parse_features

if TYPE_CHECKING:
    from kerntest.kernels.base import Kernel
    from kerntest.learning.encoding import Scale
    from kerntest.learning.kernel_choice import Bandwidth
    from kerntest.matrices.eigen import EigenSolver


@dataclass(frozen=True, slots=True)
class KpcaOptions:
    """Which components; each as in `KernelPCA`."""

    components: int = 2
    kernel: Kernel | str = "gaussian"
    bandwidth: Bandwidth = "median"
    features: str | None = None
    solver: EigenSolver = "auto"
    scale: Scale = "standardize"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises
        ------
        UsageError
            If a name is unknown, a number out of range, or two options contradict one another.
        """
        whole = isinstance(self.components, (int, np.integer)) and not isinstance(self.components, bool)
        if not whole or self.components < 1:
            raise UsageError(
                f"components must be a whole number of at least 1, not {self.components!r}",
                hint="2 can be drawn",
                code="usage.components",
            )
        one_of("solver", self.solver, SOLVERS)
        one_of("scale", self.scale, ("standardize", "none"))
        whole_number("seed", self.seed, at_least=0)
        check_kernel(self.kernel)
        check_bandwidth(self.bandwidth)
        if self.features is not None:
            parse_features(self.features)
        for wrong, what in (
            (self.precomputed and self.features is not None, "a precomputed kernel and features"),
            (self.precomputed and self.bandwidth != "median", "a precomputed kernel and a bandwidth"),
            (self.features is not None and self.solver != "auto", f"features and the solver {self.solver}"),
        ):
            if wrong:
                raise UsageError(f"{what} contradict each other", hint="give one of them", code="usage.contradiction")

    @property
    def precomputed(self) -> bool:
        """Whether rows are rows of a matrix of kernel values."""
        return is_precomputed(self.kernel)
