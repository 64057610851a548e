"""The constrained covariance as a test: the strongest pair of functions of x and y, over random relabellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UsageError
from kerntest.inference.coco import RELATIVE_ERROR, Coco, coco, relabelled_coco
from kerntest.inference.nulls.permutation import judge
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import dependence
from kerntest.inference.verdict import Verdict, degenerate_pair, permutation_null, relabelling_warning

if TYPE_CHECKING:
    from kerntest.inference.family import Family
    from kerntest.inference.relabelling.pairings import TwoVariables


def coco_verdict(test: TwoVariables, family: Family) -> Verdict:
    """Judge one pair of kernels by its constrained covariance.

    Each relabelling needs an eigenvalue of its own, so that the relabellings are ordinary random permutations.

    Raises
    ------
    UsageError
        If another null than the permutation null was asked for.
    UndecidedError
        If there are too many rows for these kernels, or no relabelling changes the statistic.
    """
    options, kernels = test.options, family.members[0]
    if options.null != "permutation":
        raise UsageError(
            f"the null {options.null!r} is one of HSIC; the constrained covariance has the permutation null",
            hint="leave out --null, or --statistic coco",
            code="usage.null",
        )
    x, y = test.points
    observed = coco(kernels[0], x, kernels[1], y)
    rng = np.random.default_rng((options.seed, ORDER_STREAM))
    permutations = [rng.permutation(len(x)) for _ in range(options.permutations - 1)]
    others = relabelled_coco(kernels[0], x, kernels[1], y, permutations, test.engine, test.progress)
    values = np.concatenate([[observed.value], others])
    judged = judge(values[None], np.array([RELATIVE_ERROR * float(values.max())]))
    if judged.degenerate.all() and len(values) > 1:
        raise degenerate_pair(*kernels)
    null = permutation_null(judged, len(values), options.permutations, resampling="random permutations")
    return Verdict(
        p_value=judged.p_value,
        kernels=kernels,
        found=dependence(kernels[0], x, kernels[1], y, test.engine),
        null=null,
        relabelled=values,
        warnings=relabelling_warning(judged.p_value, len(values), options.alpha),
        coco=observed.value,
        witness_correlation=_correlation(observed),
    )


def _correlation(observed: Coco) -> float | None:
    return observed.correlation if observed.value > 0 else None
