"""What a null says of features summed over blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.inference.family import Family
from kerntest.inference.nulls.permutation import judge
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import Sample
from kerntest.inference.verdict import (
    curve_verdict,
    degenerate_kernel,
    judged_together,
    permutation_null,
    refuse_overflow,
    relabelling_warning,
)
from kerntest.kernels.base import Points
from kerntest.kernels.dot import Linear
from kerntest.report import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.base import Engine
    from kerntest.inference.sides import Options
    from kerntest.inference.streamed.blocked import Blocked
    from kerntest.kernels.base import Array, Kernel

# Random relabellings that show whether a kernel can tell any two apart, where those of the test cannot.
OTHER_RELABELLINGS = 100
RESAMPLING = "permuted blocks of random rows"
# The features leave out so much of a kernel matrix that this should be known, and how it is said.
LARGE_ERROR = 0.1
LEFT_OUT = "of what the kernel sees; the test is valid, but sees less: ask for more --features, or a larger bandwidth"


@dataclass(frozen=True, slots=True, eq=False)
class FeaturesVerdict:
    """What a null says, and what the features of the reported kernel measure.

    Parameters
    ----------
    p_value : float
    kernel : Kernel
        The kernel it is reported for.
    unbiased, biased : float
        Estimates of MMD^2 over all rows.
    standard_error : float
        Of sqrt(unbiased); nan where it is not positive.
    null : record.Null
    family : record.Family or None
    warnings : tuple of str
    """

    p_value: float
    kernel: Kernel
    unbiased: float
    biased: float
    standard_error: float
    null: record.Null
    family: record.Family | None
    warnings: tuple[str, ...]


def features_verdict(family: Family, blocked: Sequence[Blocked], options: Options, engine: Engine) -> FeaturesVerdict:
    """Judge features summed over blocks.

    Parameters
    ----------
    family : Family
        F kernels.
    blocked : sequence of F Blocked
    options : Options
    engine : Engine

    Raises
    ------
    UndecidedError
        If a kernel overflows, or cannot tell any two relabellings apart.
    """
    if options.null == "permutation":
        return _permuted(family, blocked, options, engine)
    return _by_curve(family, blocked[0], options, engine)


def _permuted(family: Family, blocked: Sequence[Blocked], options: Options, engine: Engine) -> FeaturesVerdict:
    """Judge the family over random permutations of the blocks together."""

    def relabelled(relabellings: int) -> Array:
        def of(member: Blocked) -> Array:
            return member.relabelled(options.estimator, relabellings, options.seed)

        return np.stack(list(engine.here.map(of, blocked)))

    values = relabelled(options.permutations)
    refuse_overflow(family.kernels, values)
    tolerances = np.array([member.tolerance(options.estimator) for member in blocked])
    judged = judge(values, tolerances, options.judge, family.halvings)
    # A few relabellings can all give one value: only others tell what the kernel sees.
    if judged.degenerate.all() and judge(relabelled(OTHER_RELABELLINGS), tolerances).degenerate.all():
        raise degenerate_kernel(family.kernels[0])
    chosen, used = judged.selected, values.shape[1]
    null = permutation_null(judged, used, options.permutations, resampling=RESAMPLING)
    together = judged_together(family, judged, options.judge, record.Family, record.FamilyMember)
    warnings = relabelling_warning(judged.p_value, used, options.alpha)
    return _of(judged.p_value, family.kernels[chosen], blocked[chosen], null, family=together, warnings=warnings)


def _by_curve(family: Family, blocked: Blocked, options: Options, engine: Engine) -> FeaturesVerdict:
    """Judge one kernel by a curve: the mean features of the blocks are rows, all of one weight, of a linear kernel."""
    free = blocked.free
    refuse_overflow(family.kernels, blocked.sums.reshape(1, -1))
    means = Points.of(blocked.means[free])
    none: tuple[str, ...] = ()
    rows = Sample(
        points=means,
        labels=blocked.in_x[free].astype(np.uint8),
        origin=np.arange(len(means)),
        centre=np.zeros(means.numeric.shape[1]),
        spread=np.ones(means.numeric.shape[1]),
        numeric_names=none,
        category_names=none,
    )
    try:
        found = curve_verdict(TwoSamples(options, engine.here, None, rows), Family(((Linear(),),)))
    except UndecidedError as error:
        if error.code == "undecided.degenerate_kernel":
            raise degenerate_kernel(family.kernels[0]) from None
        raise
    fixed = int(blocked.sizes[~free].sum())
    warnings = list(found.warnings)
    if fixed:
        warnings.append(
            f"the {options.null} null looks at whole blocks: {fixed:,} rows beyond them enter the estimates and not the "
            "p-value"
        )
    null = replace(found.null, resampling=None)
    return _of(found.p_value, family.kernels[0], blocked, null, family=None, warnings=tuple(warnings))


def _of(
    p_value: float,
    kernel: Kernel,
    blocked: Blocked,
    null: record.Null,
    *,
    family: record.Family | None,
    warnings: tuple[str, ...],
) -> FeaturesVerdict:
    unbiased = blocked.observed("unbiased")
    return FeaturesVerdict(
        p_value=p_value,
        kernel=kernel,
        unbiased=unbiased,
        biased=blocked.observed("biased"),
        standard_error=blocked.standard_error(unbiased),
        null=null,
        family=family,
        warnings=warnings,
    )
