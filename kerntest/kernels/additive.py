"""The additive kernel: each column alone, summed up. It sees a few columns that differ among many that do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kerntest.errors import UsageError
from kerntest.kernels import ADDITIVE
from kerntest.kernels.algebra import ATOMIC, POSITIVE, Expression, Kind, Sum, check_number, format_number
from kerntest.kernels.base import Columns
from kerntest.kernels.columns import BoundGroups, OnColumns, Unbound
from kerntest.kernels.discrete import Delta
from kerntest.kernels.stationary import Gaussian

if TYPE_CHECKING:
    from kerntest.kernels.base import Kernel


@dataclass(frozen=True, slots=True)
class Additive(Unbound, Expression):
    """k(x, y) = sum_c exp(-(x_c - y_c)^2 / (2 s_c^2)) + (number of category columns in which x and y agree).

    As it is written, before its columns are known: `bind` makes it an `AdditiveSum`.

    Parameters
    ----------
    bandwidths : tuple of float
        One for all numeric columns, or one for each; none where they are to be chosen, each for its own column.

    Raises
    ------
    UsageError
        If one of them is not positive.
    """

    name: ClassVar[str] = ADDITIVE
    formula: ClassVar[str] = "sum_c exp(-(x_c-y_c)^2 / (2 bandwidth_c^2))"
    remark: ClassVar[str] = "each column alone, summed up: sees a few columns that differ among many that do not"
    usage: ClassVar[str] = "additive(bandwidth, ...)"
    wanting: ClassVar[str] = "is a sum over columns"

    bandwidths: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the bandwidths and keep them as floats."""
        checked = tuple(check_number(one, self.name, "bandwidth", POSITIVE) for one in self.bandwidths)
        object.__setattr__(self, "bandwidths", checked)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Numbers, and categories where there are any."""
        return frozenset[Kind](("numeric", "discrete"))

    @property
    def positive_definite(self) -> bool:
        """Always: a sum of positive definite kernels."""
        return True

    @property
    def characteristic(self) -> bool:
        """Never: it does not see how columns hang together."""
        return False

    @property
    def free(self) -> bool:
        """Whether the bandwidths are still to be chosen."""
        return not self.bandwidths

    def over(self, columns: Columns) -> Expression:
        """Return the sum over these columns, at least one of them numeric.

        Raises
        ------
        UsageError
            If there are several bandwidths, but not one for each numeric column.
        """
        p = len(columns.numeric)
        if len(self.bandwidths) not in (0, 1, p):
            raise UsageError(
                f"the kernel '{self}' has {len(self.bandwidths)} bandwidths for {p} numeric columns",
                hint="give one for all, or one for each",
                code="usage.kernel_argument",
                where={"argument": "bandwidth", "value": str(self)},
            )
        given = self.bandwidths * p if len(self.bandwidths) == 1 else self.bandwidths or (None,) * p
        numeric = [OnColumns(Gaussian(one), Columns((place,), ())) for place, one in enumerate(given)]
        categories = [OnColumns(Delta(), Columns((), (place,))) for place in range(len(columns.categories))]
        terms = (*numeric, *categories)
        return AdditiveSum(terms) if len(terms) > 1 else terms[0]

    def __str__(self) -> str:
        """Return additive(bandwidths)."""
        return _text(self.bandwidths)


class AdditiveSum(Sum):
    """An additive kernel over known columns: its operands are each an `OnColumns` of one column."""

    __slots__ = ()

    precedence = ATOMIC

    @property
    def characteristic(self) -> bool:
        """Never: it does not see how columns hang together."""
        return False

    def __str__(self) -> str:
        """Return additive(bandwidths), with one for all where they are equal."""
        kernels = [term.parts[0] for term in self.operands]
        bandwidths = [kernel.bandwidth for kernel in kernels if isinstance(kernel, Gaussian)]
        if len(set(bandwidths)) == 1:
            bandwidths = bandwidths[:1]
        return _text(tuple(one for one in bandwidths if one is not None))


def plain(kernel: Kernel) -> Kernel:
    """Return the kernel of the first group of columns, without its columns."""
    if isinstance(kernel, BoundGroups):
        kernel = kernel.groups[0].kernel
    return kernel.kernel if isinstance(kernel, OnColumns) else kernel


def is_additive(kernel: Kernel) -> bool:
    """Whether a kernel is an additive one over the columns of a table."""
    return isinstance(plain(kernel), AdditiveSum)


def _text(bandwidths: tuple[float, ...]) -> str:
    return f"{ADDITIVE}({', '.join(map(format_number, bandwidths))})" if bandwidths else ADDITIVE
