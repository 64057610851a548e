"""The one table of kernels, what `kerntest kernels` says about each, and what a kernel cannot see, in a sentence.

A new kernel is one class, one line in KERNELS and its name in `kernels/__init__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kerntest.kernels import ADDITIVE, ALIASES
from kerntest.kernels.algebra import Constant, Expression, Normalised, Power, Product, Sum, format_number
from kerntest.kernels.elementary import (
    Atom,
    Delta,
    Exponential,
    Gaussian,
    Hamming,
    Laplacian,
    Laplacian2,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    StudentT,
)
from kerntest.kernels.groups import Additive, AdditiveSum, Group, GroupedKernel, OnColumns, is_additive

if TYPE_CHECKING:
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


def kernel_entries() -> list[dict[str, Any]]:
    """Return what there is to say about each kernel, in the order of the catalogue."""
    return [
        {
            "name": name,
            "usage": kernel.usage(),
            "formula": kernel.formula,
            "positive_definite": kernel().positive_definite,
            "characteristic": kernel().characteristic,
            "remark": kernel.remark,
            "aliases": [alias for alias, meant in ALIASES.items() if meant == name],
        }
        for name, kernel in KERNELS.items()
    ]


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
        few = {0: "is constant and sees nothing", 1: "sees only differences of means"}
        return few.get(int(order), f"sees only moments up to order {format_number(order)}")
    if isinstance(kernel, Periodic):
        return f"cannot tell values apart that differ by its period, {format_number(kernel.period)}"
    if isinstance(kernel, OnColumns) and kernel.only_sees_ties:
        return "sees only values that occur more than once in a numeric column"
    if isinstance(kernel, (Additive, AdditiveSum)):
        return "sees each column alone, not how they hang together"
    if isinstance(kernel, Sum) and len(kernel.kinds) > 1:
        return "sees numeric columns and categories apart, not how they hang together"
    # Moments of rows divided by their size: of neither the data nor any fixed order.
    if isinstance(kernel, Normalised) and _moment_order(kernel.kernel) is not None:
        return None
    varying = [part for part in kernel.parts if not isinstance(part, Constant)]
    return _limit(varying[0]) if len(varying) == 1 else None


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
