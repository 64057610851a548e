"""How a test is made: by the kernel matrices, or by features where these would be too much work."""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from kerntest.data.read import is_large
from kerntest.dataclass import dataclass
from kerntest.errors import UndecidedError, UsageError, one_of, option
from kerntest.kernels.base import Kernel
from kerntest.kernels.text import parse_kernel
from kerntest.matrices.factor import MOST_WORK
from kerntest.report.summaries.words import beyond_bound, told_of_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Groups, Method, Reading
    from kerntest.inference.work_of_tests import Step

    Kernels: TypeAlias = Sequence[Kernel | str]

# Work of a pair of rows, in nanoseconds on one processor: what each side takes, each column, and each kernel matrix, which
# is summed over blocks of rows, has its lags transformed, or is multiplied with vectors for a curve.
OF_A_SIDE, OF_A_COLUMN, OF_A_SUM, OF_LAGS, OF_A_CURVE = 5.0, 0.1, 1.5, 5.5, 40.0
# Kernels that auto stands for in a two-sample test, and bandwidths of a kernel that leaves its own open. On each side of
# an independence test a kernel has one beyond 50,000 rows: three kernels for auto.
FAMILY, BANDWIDTHS, KINDS = 15, 8, 3
# What has no form by features may take so many times the work before it is refused.
PATIENCE = 10.0
# Blocks of random rows need so many rows of each of two tables.
FEWEST_IN_BLOCKS = 200


class ByFeatures(NamedTuple):
    """What a test by features starts from, and why it is made so where nobody asked for it."""

    x: Any
    y: Any
    why: tuple[str, ...] = ()


class OneOfTests(NamedTuple):
    """A test by features among several of the same columns: the first tells the plan of all, of so many rows."""

    tests: int
    rows: int
    # The work of all by that of this one; 0 where another one has told the plan.
    times: float
    # What is made exactly beside them.
    beside: Sequence[Step] = ()


@dataclass(frozen=True)
class Way:
    """How a test is made, as far as its options tell; `work` is that of a pair of rows, without columns.

    Of a test of one of several `pairs` of samples, which have so many rows each, all of these together are bound. `sides` have kernels: one of them where the other is the label of a table. `needs_matrices` names options that are given
    and have no form by features.
    """

    method: Method
    sides: int
    work: float
    needs_matrices: Sequence[str]
    definite: bool
    pairs: Sequence[tuple[int, int]] = ()

    @classmethod
    def of(
        cls,
        method: Method,
        features: str | None,
        exact_only: Mapping[str, bool],
        *,
        kernels: Kernels,
        bandwidth: BandwidthOption,
        single: bool,
        beside: Mapping[str, bool] | None = None,
    ) -> Way:
        """Return the way of a test of as many sides as there are kernels; refuse options that contradict each other.

        Options `beside` those that are only for kernel matrices have no effect on features: who gives them wants matrices.
        """
        one_of("method", method, ("auto", "exact", "features"))
        if method == "exact" and features is not None:
            raise UsageError(
                f"features {features!r} need method features",
                hint=f"add {option('method', 'features')}, or leave out {option('features')}",
                code="usage.method",
            )
        given = [one for one, there in exact_only.items() if there]
        if features is not None:
            method = "features"
        if given and method == "features":
            hint = f"leave out {given[0]}, or {option('method', 'features')}"
            raise UsageError(f"{given[0]} needs {option('method', 'exact')}", hint=hint, code="usage.method")
        given += [one for one, there in (beside or {}).items() if there]
        each = OF_A_CURVE if single else OF_A_SUM if len(kernels) == 1 else OF_LAGS
        count = sum(_count(kernel, bandwidth, single=single, paired=len(kernels) > 1) for kernel in kernels)
        definite = all(one.positive_definite for one in map(_parsed, kernels) if one is not None)
        return cls(method, len(kernels), OF_A_SIDE * len(kernels) + each * count, given, definite)

    @contextmanager
    def tables(
        self, read: Callable[[Any, Any, Reading], Groups], x: Any, y: Any, reading: Reading
    ) -> Iterator[Groups | ByFeatures]:
        """Read the tables of a test by kernel matrices; or give what one by features starts from, files perhaps open."""
        data = [x] if y is None else [x, y]
        if self.method == "features":
            yield ByFeatures(x, y)
            return
        # Rows of large files are counted before they are read. By features, two files are read whole where their rows pair.
        if self.method == "auto" and len(data) != self.sides and any(map(is_large, data)):
            from kerntest.inference.features.inputs import open_input  # noqa: PLC0415 - few need it

            with ExitStack() as stack:
                names = ("x", "y") if len(data) > 1 else ("data",)
                inputs = [stack.enter_context(open_input(*one, reading)) for one in zip(data, names, strict=True)]
                first, second = (*(one.head for one in inputs), None)[:2]
                every_row = replace(reading, categorical=(), csv=replace(reading.csv, where=None, sample=None))
                if why := self.goes_by_features(
                    read(first, second, every_row), [one.count() for one in inputs], reading
                ):
                    yield ByFeatures(inputs[0], inputs[-1] if len(inputs) > 1 else None, why)
                    return
        # Features of files that are read in pieces.
        in_pieces = len(data) != self.sides and not self.needs_matrices
        features = f"{option('method', 'features')} reads files of any size"
        with told_of_pieces(features if in_pieces else None):
            groups = read(x, y, reading)
        why = self.goes_by_features(groups, [one.n_rows for one in groups.read], reading)
        yield ByFeatures(groups.read[0], groups.read[-1] if len(data) > 1 else None, why) if why else groups

    def goes_by_features(self, groups: Groups, rows: Sequence[int], reading: Reading) -> tuple[str, ...]:
        """Return why a test of tables with so many rows goes by features, if it does though nobody asked for them.

        Refuse what would take very long and has no form by features.
        """
        n, columns = (sum(rows), groups.tables[:1]) if self.sides == 1 else (rows[0], groups.tables)
        if self.method != "auto" or not self.definite or (self.sides == 1 and min(rows) < FEWEST_IN_BLOCKS):
            return ()
        each = self.work + OF_A_COLUMN * sum(len(one.names) for one in columns)
        several: Sequence[Sequence[int]] = self.pairs or [(n,)]
        work, most = each * sum(float(sum(one)) ** 2 for one in several), max(map(sum, several))
        # Rows that miss a value are not known yet.
        of_rows = f"{'up to ' if self.pairs or reading.missing == 'drop' else ''}{most:,} rows"
        if work > MOST_WORK and not self.needs_matrices:
            # Of several pairs those that are less than their share of what is done unasked stay exact.
            least = math.sqrt(MOST_WORK / each / len(several))
            large = sum(sum(one) > least and min(one) >= FEWEST_IN_BLOCKS for one in self.pairs)
            told = (
                f"{large:,} of {len(several):,} pairs, of {of_rows}: all pairs" if self.pairs else f"{of_rows}, which"
            )
            return (told_of_work(told, work / MOST_WORK, option("method", "exact")),) if n > least else ()
        if work > PATIENCE * MOST_WORK:
            of_pairs = f"{len(several):,} pairs, each of " if self.pairs else ""
            # Of each of the tables.
            few = int(float(f"{math.sqrt(MOST_WORK / work) * most * self.sides / 2:.1g}"))
            part = f"{option('where')} or {option('sample', few)} takes a part of the rows"
            if option("time-series", True) in self.needs_matrices:
                part = f"{option('where')} takes a stretch of some {few:,} rows, by a column of the time"
            raise UndecidedError(
                f"the exact test of {of_pairs}{of_rows} is {beyond_bound(work / MOST_WORK)}, and "
                f"{self.needs_matrices[0]} has no other",
                hint=f"{part}; {option('method', 'exact')} insists",
                code="undecided.work",
            )
        return ()


@contextmanager
def told_of_pieces(way_out: str | None) -> Iterator[None]:
    """Let a refusal to read files whole say what reads them in pieces."""
    try:
        yield
    except UndecidedError as error:
        if way_out and error.code == "undecided.memory":
            error.hint = f"{error.hint}; {way_out}"
        raise


def _parsed(kernel: Kernel | str) -> Kernel | None:
    """Return a kernel; None for auto."""
    if isinstance(kernel, Kernel):
        return kernel
    return None if not isinstance(kernel, str) or kernel.strip().lower() == "auto" else parse_kernel(kernel)


def _count(kernel: Kernel | str, bandwidth: BandwidthOption, *, single: bool, paired: bool) -> int:
    """Return how many kernels are counted for one side."""
    named = _parsed(kernel)
    if single or (named is not None and not named.free):
        return 1
    kinds = KINDS if named is None else 1
    if not isinstance(bandwidth, str):
        return kinds * np.size(bandwidth)
    if paired or bandwidth != "auto":
        return kinds
    return FAMILY if named is None else BANDWIDTHS
