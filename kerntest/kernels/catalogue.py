"""The one table of kernels, what `kerntest kernels` says about each, and what a kernel cannot see, in a sentence.

A new kernel is one class, one line in KERNELS and its name in `kernels/__init__`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from kerntest.kernels import ADDITIVE, ALIASES
from kerntest.kernels.algebra import Constant, Expression, Normalised, Power, Product, Sum, format_number
from kerntest.kernels.discrete import Delta, Hamming
from kerntest.kernels.dot import Exponential, Linear, Polynomial
from kerntest.kernels.groups import Additive, AdditiveSum, Group, GroupedKernel, OnColumns, is_additive
from kerntest.kernels.stationary import (
    Gaussian,
    Laplacian,
    Laplacian2,
    Matern,
    Periodic,
    RationalQuadratic,
    StudentT,
)

if TYPE_CHECKING:
    from kerntest.kernels.algebra import Atom
    from kerntest.kernels.base import Kernel

KERNELS: dict[str, type[Atom | Additive]] = {
    kernel.name: kernel
    for kernel in (
        Gaussian,
        Laplacian,
        Laplacian2,
        StudentT,
        RationalQuadratic,
        Matern,
        Periodic,
        Linear,
        Polynomial,
        Exponential,
        Delta,
        Hamming,
        Additive,
    )
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What there is to say about a kernel: how it is written and when to use it."""

    name: str
    usage: str
    formula: str
    characteristic: bool
    remark: str
    aliases: tuple[str, ...] = ()


def kernel_entries() -> tuple[Entry, ...]:
    """Return one entry per kernel, in the order of the catalogue."""
    return tuple(
        Entry(
            name=name,
            usage=usage(kernel),
            formula=kernel.formula,
            characteristic=kernel().characteristic,
            remark=kernel.remark,
            aliases=tuple(alias for alias, meant in ALIASES.items() if meant == name),
        )
        for name, kernel in KERNELS.items()
    )


def usage(kernel: type[Atom | Additive]) -> str:
    """Return how to write the kernel, e.g. "student-t(bandwidth, df=1)"."""
    if issubclass(kernel, Additive):
        return kernel.usage
    arguments = [
        f"{each.name}={format_number(each.default)}" if isinstance(each.default, float) else each.name
        for each in fields(kernel)
    ]
    return f"{kernel.name}({', '.join(arguments)})" if arguments else kernel.name


def why_not_characteristic(kernel: Kernel) -> str | None:
    """Return what any kernel, bound to columns or not, does not see, as one sentence; None for a characteristic one."""
    if kernel.characteristic:
        return None
    culprit: Kernel | Group = kernel
    part: Kernel = kernel
    if isinstance(kernel, GroupedKernel):
        culprit = next(group for group in kernel.groups if not group.kernel.characteristic)
        part = culprit.kernel
    limit = _limit(part) if isinstance(part, Expression) else None
    consequence = "a value of zero does not mean that the distributions are equal"
    # Its text has a number for each column.
    name = ADDITIVE if is_additive(part) else str(culprit)
    return f"'{name}' {limit or 'is not known to see every difference'}: {consequence}"


def _limit(kernel: Expression) -> str | None:
    """Return what the kernel sees only, as the end of a sentence."""
    if not kernel.positive_definite:
        return "is not positive definite"
    order = _moment_order(kernel)
    if order is not None:
        return _of_order(order)
    if isinstance(kernel, Periodic):
        return f"cannot tell values apart that differ by its period, {format_number(kernel.period)}"
    if isinstance(kernel, OnColumns):
        ties = "sees only values that occur more than once in a numeric column"
        return ties if kernel.only_sees_ties else _limit(kernel.kernel)
    if isinstance(kernel, (Additive, AdditiveSum)):
        return "sees each column alone, not how they hang together"
    if isinstance(kernel, Sum) and len(kernel.kinds) > 1:
        return "sees numeric columns and categories apart, not how they hang together"
    return _limit_of_only_part(kernel)


def _limit_of_only_part(kernel: Expression) -> str | None:
    if isinstance(kernel, Normalised) and _moment_order(kernel.kernel) is not None:
        # Moments of rows divided by their size: of neither the data nor any fixed order.
        return None
    if isinstance(kernel, Power | Normalised):
        return _limit(kernel.kernel)
    varying = [part for part in kernel.parts if not isinstance(part, Constant)]
    return _limit(varying[0]) if len(varying) == 1 else None


def _of_order(order: float) -> str:
    if order == 0:
        return "is constant and sees nothing"
    if order == 1:
        return "sees only differences of means"
    return f"sees only moments up to order {format_number(order)}"


def _moment_order(kernel: Expression) -> float | None:
    """Return p where the kernel is a polynomial of degree p in <x, y>, else None."""
    if not kernel.kinds:
        return 0.0
    if isinstance(kernel, Linear):
        return 1.0
    if isinstance(kernel, Polynomial):
        return kernel.degree if kernel.gain else 0.0
    if isinstance(kernel, Power):
        order = _moment_order(kernel.kernel)
        return None if order is None else order * kernel.exponent
    if isinstance(kernel, OnColumns) and not kernel.only_sees_ties:
        return _moment_order(kernel.kernel)
    if isinstance(kernel, Sum | Product):
        if isinstance(kernel, Product) and any(part == Constant(0) for part in kernel.parts):
            return 0.0
        orders = [order for order in map(_moment_order, kernel.parts) if order is not None]
        if len(orders) == len(kernel.parts):
            return max(orders) if isinstance(kernel, Sum) else sum(orders)
    return None
