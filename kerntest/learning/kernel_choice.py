"""The kernel of a learner: bound to its columns, with every bandwidth chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kerntest.data.messages import listed
from kerntest.errors import UsageError, suggest
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Kernel
from kerntest.kernels.columns import bind
from kerntest.kernels.discrete import Hamming
from kerntest.kernels.text import parse_kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kerntest.kernels.base import Columns, Metric, Points
    from kerntest.learning.encoding import Encoder

Bandwidth: TypeAlias = Literal["median"] | float


@dataclass(frozen=True, slots=True)
class ChosenKernel:
    """A kernel for the columns of a table, before (`free`) and after its bandwidths were chosen by a `rule` in words.

    It does not see the columns `unused`; the chooser of the rows knows their medians by then.
    """

    kernel: Kernel
    free: Kernel
    unused: tuple[str, ...]
    rule: str
    chooser: BandwidthChooser | None = field(default=None, compare=False, repr=False)


def choose_kernel(
    kernel: Kernel | str,
    bandwidth: str | float,
    encoder: Encoder,
    points: Points,
    seed: int,
    *,
    left_out: Mapping[str, str],
) -> ChosenKernel:
    """Return a kernel for some rows, every bandwidth that it leaves open the median of their distances, or a number.

    A plain "gaussian" where there are categories only becomes the hamming kernel. `left_out` says why columns of the
    table are not among those of the encoder.
    """
    if isinstance(kernel, str):
        plain = kernel.strip().lower() == "gaussian"
        kernel = Hamming() if plain and not encoder.numeric_names else parse_kernel(kernel)
    check_kernel(kernel)
    try:
        bound = bind(kernel, encoder.numeric_names, encoder.category_names)
    except UsageError as error:
        wanted = str(error.where.get("value", ""))
        reason = next((left_out[name] for name in left_out if name == wanted or fnmatchcase(name, wanted)), None)
        if error.code != "usage.unknown_column" or reason is None:
            raise
        raise UsageError(
            f"the kernel sees no {wanted!r}: {reason}",
            hint="leave the column out of the kernel",
            code=error.code,
            where=error.where,
        ) from error
    if not bound.kernel.free:
        if bandwidth != "median":
            raise UsageError(
                f"the kernel '{kernel}' leaves no bandwidth open: --bandwidth has nothing to set",
                hint="leave out one of the two",
                code="usage.bandwidth_twice",
            )
        return ChosenKernel(bound.kernel, bound.kernel, bound.unused, "in the kernel")
    factor = check_bandwidth(bandwidth)
    chooser = BandwidthChooser(points, seed)
    if factor is None:
        return ChosenKernel(
            bound.kernel.resolve(chooser.median), bound.kernel, bound.unused, "median heuristic", chooser
        )

    def rule(metric: Metric, columns: Columns | None) -> float:
        return chooser.median(metric, columns) if encoder.numeric_names and metric == "mismatches" else factor

    return ChosenKernel(bound.kernel.resolve(rule), bound.kernel, bound.unused, f"as given: {factor:g}")


def is_precomputed(kernel: Kernel | str) -> bool:
    """Say whether rows are rows of a matrix of kernel values."""
    return isinstance(kernel, str) and kernel.strip().lower() == "precomputed"


def check_kernel(kernel: Kernel | str) -> None:
    """Refuse what is neither a kernel nor text."""
    if not isinstance(kernel, (str, Kernel)):
        raise UsageError(
            f"a kernel is a text or a Kernel, not {kernel!r}",
            hint="such as kernel='gaussian(1.5)'; `kerntest kernels` lists them",
            code="usage.kernel",
        )


def at_multiples(chosen: ChosenKernel, factors: Sequence[float], points: Points, seed: int) -> list[Kernel]:
    """Return for each factor the kernel with every open bandwidth at so many times its median."""
    chooser = chosen.chooser or BandwidthChooser(points, seed)

    def scaled(factor: float) -> Kernel:
        return chosen.free.resolve(lambda metric, columns: factor * chooser.median(metric, columns))

    return [scaled(factor) for factor in factors]


def check_bandwidth(bandwidth: str | float, words: tuple[str, ...] = ("median",), advice: str = "") -> float | None:
    """Return a bandwidth given as a number; None for the median. `words` and `advice` say what else there is, for messages."""
    if isinstance(bandwidth, str):
        if bandwidth != "median":
            meant = suggest(bandwidth, words)
            raise UsageError(
                f"{bandwidth!r} is no bandwidth of a learner",
                hint=f"did you mean '{meant}'?"
                if meant
                else f"use {', '.join(words)} or a number{advice and '; '}{advice}",
                code="usage.bandwidth",
            )
        return None
    if isinstance(bandwidth, (tuple, list)):
        raise UsageError(
            f"a learner has one bandwidth, not {listed([f'{one}' for one in bandwidth])}",
            hint=advice or f"use {', '.join(words)} or a number",
            code="usage.bandwidth",
        )
    number = isinstance(bandwidth, (int, float, np.number)) and not isinstance(bandwidth, bool)
    if not number or not (math.isfinite(bandwidth) and bandwidth > 0):
        raise UsageError(
            f"a bandwidth must be positive and finite, not {bandwidth}",
            hint="bandwidths are in the units of the scaled columns: 1 is one standard deviation",
            code="usage.bandwidth",
        )
    return float(bandwidth)
