"""What all named kernels share: checked arguments, their text, and a bandwidth that may be left to a rule."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar

from kerntest.errors import UsageError
from kerntest.kernels.algebra import Expression, Kind
from kerntest.kernels.arguments import POSITIVE, check_number, format_number

if TYPE_CHECKING:
    from kerntest.kernels.base import BandwidthRule, Columns, Metric


@dataclass(frozen=True, slots=True)
class Atom(Expression):
    """A kernel with a name and numbers as its only arguments: the dataclass fields, each with its domain.

    A subclass is a frozen dataclass whose fields carry a `Domain` in their metadata. A default of None means that
    the value may be left open.
    """

    kind: ClassVar[Kind]
    remark: ClassVar[str]

    def __post_init__(self) -> None:
        """Check every argument and keep it as a float."""
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None and each.default is None:
                continue
            number = check_number(value, self.name, each.name, each.metadata["domain"])
            object.__setattr__(self, each.name, number)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind of columns that this kernel compares."""
        return frozenset((self.kind,))

    def __str__(self) -> str:
        """Return name(arguments): a leading bandwidth without its name, other defaults left out."""
        shown = []
        for position, each in enumerate(fields(self)):
            value = getattr(self, each.name)
            if value == each.default:
                continue
            label = "" if position == 0 and each.name == "bandwidth" else f"{each.name}="
            shown.append(label + format_number(value))
        return f"{self.name}({', '.join(shown)})" if shown else self.name


@dataclass(frozen=True, slots=True)
class BandwidthAtom(Atom):
    """A kernel of distance / bandwidth, where the bandwidth may be left to a rule.

    Parameters
    ----------
    bandwidth : float or None
        Length in the units of the data; None until `resolve` has chosen one.
    """

    metric: ClassVar[Metric]

    bandwidth: float | None = field(default=None, metadata=POSITIVE)

    @property
    def free(self) -> bool:
        """Whether the bandwidth is still to be chosen."""
        return self.bandwidth is None

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> Expression:
        """Return this kernel with a missing bandwidth set to rule(metric, columns)."""
        return replace(self, bandwidth=rule(self.metric, columns)) if self.free else self

    @property
    def chosen_bandwidth(self) -> float:
        """The bandwidth.

        Raises
        ------
        UsageError
            If it is still open.
        """
        if self.bandwidth is None:
            raise UsageError(
                f"{self.name} has no bandwidth yet",
                hint=f"write {self.name}(1.5), or let resolve() choose one",
                code="usage.free_bandwidth",
            )
        return self.bandwidth
