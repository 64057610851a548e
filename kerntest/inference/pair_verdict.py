"""A verdict on two variables: what a null says of a family of pairs of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.inference.curves import curve_p_value
from kerntest.inference.invariants import centre, first_invariants, kernel_invariants, kernel_spectrum
from kerntest.inference.nulls.moments import permutation_moments
from kerntest.inference.nulls.permutation import Judged, judge, tie_tolerance
from kerntest.inference.relabelling import Factors, Relabelled, Source, relabelled_sums
from kerntest.inference.statistic import Effect, dependence, factor, pair_sums
from kerntest.inference.verdict import MORE, MORE_ROWS, overflow, relabelling_warning
from kerntest.kernels.base import Points
from kerntest.kernels.columns import is_additive, plain
from kerntest.kernels.dot import Linear
from kerntest.kernels.stationary import Gaussian
from kerntest.matrices.factor import FEW_ROWS, LEFT_OUT, centred_factor, low_rank_factor
from kerntest.report import record

if TYPE_CHECKING:
    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.nulls.moments import Invariants
    from kerntest.inference.nulls.spectral import Spectrum
    from kerntest.inference.pair_family import PairFamily
    from kerntest.inference.sides import Options, Variable
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import Factor, LowRank
    from kerntest.report.independence_record import Lags

Variables = tuple["Variable", "Variable"]
Member = tuple["Kernel", "Kernel", float, float, float | None]
# Fewer rows have fewer than some thousand pairings.
FEWEST_FOR_CURVES = 8


@dataclass(frozen=True, slots=True, eq=False)
class PairVerdict:
    """What a null says of two variables.

    Parameters
    ----------
    p_value : float
    kernels : (Kernel, Kernel)
        The pair it is reported for.
    found : Effect
        What that pair measures.
    null : record.Null
        How the p-value was found.
    members : tuple of (Kernel, Kernel, float, float, float or None)
        All pairs that were judged together, with z, the p-value of each by itself and its excess; empty for one pair.
    relabelled : ndarray, shape (R,), or None
        The statistic of the reported pair under every relabelling, the observed first.
    warnings : tuple of str
    coco, witness_correlation : float or None
        Where the constrained covariance was tested.
    lags : Lags or None
        Where the rows are time series.
    p_clearest : float or None
        Of several pairs: the p-value of the largest z, corrected.
    """

    p_value: float
    kernels: tuple[Kernel, Kernel]
    found: Effect
    null: record.Null
    members: tuple[Member, ...]
    relabelled: Array | None
    warnings: tuple[str, ...]
    coco: float | None = None
    witness_correlation: float | None = None
    lags: Lags | None = None
    p_clearest: float | None = None


def pair_permutation_verdict(
    family: PairFamily, variables: Variables, options: Options, engine: Engine, progress: Progress | None
) -> PairVerdict:
    """Judge all pairs of kernels over shared relabellings.

    Raises
    ------
    UndecidedError
        If a kernel overflows or no pair can tell any two relabellings apart.
    """
    relabelled = _relabelled(family, variables, options, engine, progress)
    values, tolerances = _of_pairs(relabelled, family)
    judged = judge(values, tolerances, options.judge, family.halvings)
    # A few shifts of a few rows can all give one value (p = 1): all permutations tell what the kernels see.
    if judged.degenerate.all() and _never_varies(family, variables, options, engine):
        raise _two_kernels(family, 0, variables, options, engine).degenerate()
    chosen, used, scale = judged.selected, values.shape[1], relabelled.factor
    different = different_pairings(used, len(variables[0].points))
    null = record.Null(
        method="permutation",
        permutations=used,
        requested=options.permutations,
        p_floor=1.0 / different,
        exact=True,
        resampling=relabelled.resampling,
        orders=relabelled.orders,
        mean=float(scale * judged.mean[chosen]),
        standard_deviation=float(scale * judged.standard_deviation[chosen]),
        skewness=float(judged.skewness[chosen]),
        trace=None,
    )
    members = judged_pairs(family, judged)
    kernels = family.kernels(chosen)
    f, g = family.pairs[chosen]
    measured = None if relabelled.dependences is None else relabelled.dependences[f][g]
    found = _dependence(kernels, variables, engine) if measured is None else measured
    return PairVerdict(
        judged.p_value,
        kernels,
        found,
        null,
        members,
        scale * values[chosen],
        relabelling_warning(judged.p_value, different, options.alpha, MORE if different == used else MORE_ROWS),
        p_clearest=judged.p_clearest,
    )


def judged_pairs(family: PairFamily, judged: Judged) -> tuple[Member, ...]:
    """Return the pairs of a family with their z, p-value and excess; none of a single pair."""
    if len(family.pairs) < 2:
        return ()
    excess = [None] * len(judged.z) if judged.excess is None else judged.excess.tolist()
    return tuple(
        (*family.kernels(place), float(judged.z[place]), float(judged.p_values[place]), excess[place])
        for place in range(len(family.pairs))
    )


def pair_curve_verdict(
    family: PairFamily, variables: Variables, options: Options, engine: Engine, progress: Progress | None
) -> PairVerdict:
    """Judge one pair of kernels by the curve that the null names.

    Raises
    ------
    UndecidedError
        If no relabelling changes the statistic, a kernel overflows, or there are too few rows for the curve.
    """
    kernels = family.kernels(0)
    found = _dependence(kernels, variables, engine)
    observed = found.unbiased if options.estimator == "unbiased" else found.biased
    pair = _TwoKernels(kernels, variables, options, engine=engine, progress=progress, observed=observed)
    try:
        p_value, null = curve_p_value(options.null, pair, permutations=options.permutations)
    except OverflowError as error:
        raise overflow(kernels[0]) from error
    warnings: tuple[str, ...] = ()
    if pair.n < FEWEST_FOR_CURVES:
        warnings = (f"of {pair.n} rows no curve follows the few possible values: --null permutation is exact",)
    return PairVerdict(p_value, kernels, found, null, (), None, warnings)


def different_pairings(used: int, n: int) -> int:
    """Return how many of the relabellings of n rows can be different."""
    return min(used, math.factorial(n)) if n < FEWEST_FOR_CURVES else used


def _dependence(kernels: tuple[Kernel, Kernel], variables: Variables, engine: Engine) -> Effect:
    found = dependence(kernels[0], variables[0].points, kernels[1], variables[1].points, engine)
    if not (math.isfinite(found.unbiased) and math.isfinite(found.biased)):
        raise _overflowing(kernels, variables)
    return found


def _overflowing(kernels: tuple[Kernel, Kernel], variables: Variables) -> UndecidedError:
    """Return the error that names the kernel whose values overflow, as far as its diagonal tells."""
    for kernel, variable in zip(kernels, variables, strict=True):
        if not np.isfinite(kernel.diagonal(variable.points)).all():
            return overflow(kernel)
    return overflow(kernels[0])


def _relabelled(
    family: PairFamily,
    variables: Variables,
    options: Options,
    engine: Engine,
    progress: Progress | None,
) -> Relabelled:
    """Return the sums of all kernels of both sides."""
    first, second = family.first.kernels, family.second.kernels
    with np.errstate(over="ignore", invalid="ignore"):
        found, factors = _sources(family, variables, engine)
        relabelled = relabelled_sums(
            *found,
            estimator=options.estimator,
            relabellings=options.permutations,
            seed=options.seed,
            engine=engine,
            resampling=options.resampling,
            progress=progress,
            pairs=family.pairs,
            factors=factors,
        )
    finite = np.isfinite(relabelled.sums).all(axis=2)
    if not finite.all():
        f, g = (int(place) for place in np.argwhere(~finite)[0])
        raise _overflowing((first[f], second[g]), variables)
    return relabelled


def _sources(
    family: PairFamily, variables: Variables, engine: Engine
) -> tuple[tuple[list[Source], list[Source]], Factors | None]:
    """Return the kernels of both sides with their rows, and which matrices are known as products of few columns.

    Of many rows, additive kernels are linear kernels of their factors: a product of two takes fewer steps than an
    exponential for every column. Those on one column have factors too, for correlations with other factors.
    """
    sides = [(one.points, side.kernels) for one, side in zip(variables, (family.first, family.second), strict=True)]
    if len(sides[0][0]) <= FEW_ROWS:
        (x, on_x), (y, on_y) = sides
        return ([(x, on_x)], [(y, on_y)]), None
    asked = [(kernel, points) for points, kernels in sides for kernel in kernels]

    def factored(one: tuple[Kernel, Points]) -> Factor | None:
        kernel, points = one
        smooth = len(family.pairs) > 1 and points.numeric.shape[1] == 1 and isinstance(plain(kernel), Gaussian)
        return low_rank_factor(kernel, points, LEFT_OUT) if smooth or is_additive(kernel) else None

    def low(known: Factor | None) -> LowRank | None:
        return None if known is None else centred_factor(known)

    factors = list(engine.here.map(factored, asked))
    centred = list(engine.here.map(low, factors))
    count = len(sides[0][1])
    found: list[list[Source]] = []
    for (points, kernels), of_side in zip(sides, (factors[:count], factors[count:]), strict=True):
        found.append([])
        for kernel, known in zip(kernels, of_side, strict=True):
            if known is not None and is_additive(kernel):
                found[-1].append((Points.of(known.columns), [Linear()]))
            elif found[-1] and found[-1][-1][0] is points:
                found[-1][-1] = (points, [*found[-1][-1][1], kernel])
            else:
                found[-1].append((points, [kernel]))
    return (found[0], found[1]), (centred[:count], centred[count:])


def _never_varies(family: PairFamily, variables: Variables, options: Options, engine: Engine) -> bool:
    """Say whether no pairing of rows changes the statistic of any pair, by its exact variance over all of them."""
    return not any(
        _two_kernels(family, place, variables, options, engine).varies() for place in range(len(family.pairs))
    )


def _two_kernels(family: PairFamily, place: int, variables: Variables, options: Options, engine: Engine) -> _TwoKernels:
    return _TwoKernels(family.kernels(place), variables, options, engine=engine, progress=None, observed=0.0)


def _of_pairs(relabelled: Relabelled, family: PairFamily) -> tuple[Array, Array]:
    """Return the sums and tolerances of the pairs that are judged together, shapes (P, R) and (P,)."""
    f, g = np.array(family.pairs).T
    return relabelled.sums[f, g], relabelled.tolerances[f, g]


def degenerate_pair(kernel_x: Kernel, kernel_y: Kernel) -> UndecidedError:
    """Return the error for kernels that find all pairs of rows equally similar on one of the sides."""
    return UndecidedError(
        f"the kernels '{kernel_x}' and '{kernel_y}' give one value of the statistic only, whichever rows are paired: "
        "nothing can be tested",
        hint="try --kernel gaussian --bandwidth median: a bandwidth far too small or too large, delta on numbers, or too few "
        "different rows do this",
        code="undecided.degenerate_kernel",
    )


class _TwoKernels:
    """Two kernel matrices over the same rows: a `MatrixPair`."""

    def __init__(
        self,
        kernels: tuple[Kernel, Kernel],
        variables: Variables,
        options: Options,
        *,
        engine: Engine,
        progress: Progress | None,
        observed: float,
    ) -> None:
        self.kernels = kernels
        self.variables = variables
        self.points = (variables[0].points, variables[1].points)
        self.options = options
        self.engine = engine
        self.progress = progress
        self.n = len(self.points[0])
        self.hollow = options.estimator == "unbiased"
        self.factor = factor(self.n, options.estimator)
        self.value = observed / self.factor

    @cached_property
    def rounding(self) -> float:
        """How far rounding can move <A, B>."""
        largest = [
            float(np.abs(kernel.diagonal(points)).max())
            for kernel, points in zip(self.kernels, self.points, strict=True)
        ]
        return tie_tolerance(largest[0], self.n, largest[1] * self.n)

    def invariants(self) -> tuple[Invariants, Invariants, bool]:
        """Return the invariants of both matrices, and whether both cubic traces are exact."""
        (a, exact_a), (b, exact_b) = (
            kernel_invariants(
                kernel, points, self.engine, hollow=self.hollow, seed=self.options.seed, progress=self.progress
            )
            for kernel, points in zip(self.kernels, self.points, strict=True)
        )
        return a, b, exact_a and exact_b

    def first_invariants(self) -> tuple[Invariants, Invariants]:
        """Return the invariants up to second order."""
        a, b = (
            first_invariants(kernel, points, self.engine, hollow=self.hollow)
            for kernel, points in zip(self.kernels, self.points, strict=True)
        )
        return a, b

    def spectra(self) -> tuple[Spectrum, Spectrum, bool]:
        """Return the eigenvalues of both matrices, and whether all are exact."""
        (a, exact_a), (b, exact_b) = (
            kernel_spectrum(
                kernel, points, self.engine, hollow=self.hollow, seed=self.options.seed, progress=self.progress
            )
            for kernel, points in zip(self.kernels, self.points, strict=True)
        )
        return a, b, exact_a and exact_b

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2."""
        (a, _), (b, _) = (
            centre(kernel, points, self.engine, hollow=self.hollow)
            for kernel, points in zip(self.kernels, self.points, strict=True)
        )
        sums = pair_sums(
            self.kernels[0],
            self.points[0],
            self.kernels[1],
            self.points[1],
            self.engine,
            centrings=(a, b),
            progress=self.progress,
        )
        return sums.mixed_square

    def relabelled(self, at_least: int) -> Array:
        """Return <A, B> under at least so many cyclic relabellings."""
        found = relabelled_sums(
            [(self.points[0], self.kernels[:1])],
            [(self.points[1], self.kernels[1:])],
            estimator=self.options.estimator,
            relabellings=at_least,
            seed=self.options.seed,
            engine=self.engine,
        )
        sums: Array = found.sums[0, 0]
        return sums

    def varies(self) -> bool:
        """Whether some pairing of rows changes the statistic, by its exact variance over all of them."""
        a, b = self.first_invariants()
        return permutation_moments(a, b, self.n).standard_deviation > self.rounding

    def degenerate(self) -> UndecidedError:
        """Return the error for kernels under which no pairing changes the statistic, with what works if something does."""
        error = degenerate_pair(*self.kernels)
        if self.hollow:
            biased = replace(self.options, estimator="biased")
            if _TwoKernels(
                self.kernels, self.variables, biased, engine=self.engine, progress=None, observed=0.0
            ).varies():
                error.hint = (
                    "--estimator biased can test them: where a single row differs from all others, the unbiased estimate "
                    "is 0 for every pairing"
                )
        return error
