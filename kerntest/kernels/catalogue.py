"""The one table of kernels, and what `kerntest kernels` says about each.

A new kernel is one class, one line in KERNELS and its name in `names`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from kerntest.kernels import ALIASES
from kerntest.kernels.additive import Additive
from kerntest.kernels.algebra import format_number
from kerntest.kernels.discrete import Delta, Hamming
from kerntest.kernels.dot import Exponential, Linear, Polynomial
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

KERNELS: dict[str, type[Atom | Additive]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "laplacian2": Laplacian2,
    "student-t": StudentT,
    "rational-quadratic": RationalQuadratic,
    "matern": Matern,
    "periodic": Periodic,
    "linear": Linear,
    "polynomial": Polynomial,
    "exponential": Exponential,
    "delta": Delta,
    "hamming": Hamming,
    "additive": Additive,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What there is to say about a kernel.

    Parameters
    ----------
    name : str
        As in the catalogue.
    usage : str
        How to write it, with the defaults of its arguments.
    formula : str
        k(x, y).
    characteristic : bool
        Whether MMD = 0 implies equal distributions.
    remark : str
        When to use it.
    aliases : tuple of str
        Other spellings.
    """

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
