"""Kernels with a name and numbers as their only arguments: of the difference x - y, of the product <x, y>, of equality.

Kernels of the difference fall from k(x, x) = 1 the further apart two rows are. Each is the characteristic function of an
infinitely divisible distribution, so that any positive power of it is positive definite.

Kernels of the inner product depend on where the origin is, hence on the scaling of the columns.

Kernels of equality ask in which columns two rows agree, numeric ones included; `bind` gives them the category columns
where there are any. On categories they are characteristic: strictly positive definite on finitely many levels. On numeric
columns they see only values that occur more than once: to them two continuous distributions, however different, look
alike. `OnColumns` knows which case it is.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.errors import UndecidedError, UsageError
from kerntest.kernels import ADDITIVE, MAHALANOBIS, algebra
from kerntest.kernels.algebra import (
    NOT_NEGATIVE,
    POSITIVE,
    Domain,
    Expression,
    Kind,
    check_number,
    format_number,
    refuse_overflow,
)
from kerntest.kernels.base import Array, Columns, Metric, Pairs, Points, raised, refused
from kerntest.kernels.exponential import exponential

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.kernels.base import BandwidthRule, Kernel, MomentsRule

FINITE: Domain = ("finite", lambda _: True)
WHOLE: Domain = ("a whole number from 1 to 1000", lambda value: value.is_integer() and 1 <= value <= 1000)
# Beyond 100 the kernel differs from a gaussian by less than 1 % and the Bessel function overflows.
SMOOTHNESS: Domain = ("positive and at most 100", lambda value: 0 < value <= 100)


def argument(domain: Domain, default: float | None) -> Any:
    """Return the field of an argument of a kernel; a default of None means that it may be left open."""
    return field(default=default, metadata={"domain": domain})


@dataclass(frozen=True)
class Atom(Expression):
    """A kernel whose fields are each made by `argument`."""

    kind: ClassVar[Kind] = "numeric"
    remark: ClassVar[str]
    # An argument that is written without its name.
    bare: ClassVar[str] = ""
    # All that have a name, by it.
    NAMED: ClassVar[dict[str, type[Atom]]] = {}

    def __init_subclass__(cls) -> None:
        """Keep the class under its name."""
        if "name" in vars(cls):
            Atom.NAMED[cls.name] = cls

    def __post_init__(self) -> None:
        """Check every argument and keep it as a float."""
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None or each.default is not None:
                number = check_number(value, self.name, each.name, each.metadata["domain"])
                object.__setattr__(self, each.name, number)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind of columns that this kernel compares."""
        return frozenset((self.kind,))

    @classmethod
    def usage(cls) -> str:
        """Return how to write the kernel, such as "student-t(bandwidth, df=1)"."""
        return _call(cls.name, [each.name + (f"={each.default:g}" if each.default else "") for each in fields(cls)])

    def __str__(self) -> str:
        """Return name(arguments): a leading bandwidth without its name, other defaults left out."""
        given = [(one.name, getattr(self, one.name)) for one in fields(self) if getattr(self, one.name) != one.default]
        return _call(self.name, [f"{name}={format_number(value)}".removeprefix(self.bare) for name, value in given])


def _call(name: str, arguments: Sequence[str]) -> str:
    return f"{name}({', '.join(arguments)})" if arguments else name


@dataclass(frozen=True)
class BandwidthAtom(Atom):
    """A kernel of distance / bandwidth, in the units of the data; None until `resolve` has chosen one. k(x, x) = 1."""

    bare = "bandwidth="
    metric: ClassVar[Metric] = "euclidean"
    # How many squarings give the values at half the bandwidth; 0 where no power does.
    squarings: ClassVar[int] = 0
    characteristic = True
    infinitely_divisible = True

    bandwidth: float | None = argument(POSITIVE, None)

    @property
    def free(self) -> bool:
        """Whether the bandwidth is still to be chosen."""
        return self.bandwidth is None

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> Expression:
        """Return this kernel with a missing bandwidth set to rule(metric, columns)."""
        return replace(self, bandwidth=rule(self.metric, columns)) if self.free else self

    @property
    def chosen_bandwidth(self) -> float:
        """The bandwidth, which must not be open any more."""
        if self.bandwidth is None:
            hint = f"write {self.name}(1.5), or let resolve() choose one"
            raise refused(f"{self.name} has no bandwidth yet", hint, "free_bandwidth")
        return self.bandwidth

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair; a distance too large for a float is as good as infinite."""
        bandwidth = self.chosen_bandwidth

        def compute() -> Array:
            with np.errstate(over="ignore"):
                return self.values(pairs, bandwidth)

        return pairs.values_of(type(self), bandwidth, self.squarings, compute)

    def diagonal(self, points: Points) -> Array:
        """Return 1 for every row."""
        return np.ones(len(points))

    @abstractmethod
    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""


class Gaussian(BandwidthAtom):
    """k(x, y) = exp(-|x - y|^2 / (2 s^2))."""

    name = "gaussian"
    formula = "exp(-|x-y|^2 / (2 bandwidth^2))"
    remark = "smooth; sees all differences, best those at the scale of the bandwidth"
    squarings = 2

    @property
    def gamma(self) -> float | None:
        """The same bandwidth as other libraries write it, 1/(2 s^2); None while it is open."""
        return None if self.bandwidth is None else 1 / (2 * self.bandwidth**2)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        return exponential(pairs.squared_over(2 * bandwidth**2), -1 / (2 * bandwidth**2))


class Laplacian(BandwidthAtom):
    """k(x, y) = exp(-|x - y|_1 / s), with the sum of the absolute differences as distance."""

    name = "laplacian"
    formula = "exp(-|x-y|_1 / bandwidth)"
    remark = "rougher than the gaussian: better at narrow differences; sum of absolute differences"
    metric = "manhattan"
    squarings = 1

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        return pairs.exponential_manhattan(bandwidth)


class Laplacian2(BandwidthAtom):
    """k(x, y) = exp(-|x - y|_2 / s), with the Euclidean distance."""

    name = "laplacian2"
    formula = "exp(-|x-y|_2 / bandwidth)"
    remark = "the laplacian with the Euclidean distance; matern with nu=0.5"
    squarings = 1

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        distances = pairs.distance()
        return exponential(distances, -1 / bandwidth, out=distances)


@dataclass(frozen=True)
class StudentT(BandwidthAtom):
    """k(x, y) = (1 + |x - y|^2 / (df s^2))^(-(df + 1)/2): a gaussian with heavy tails; towards infinite df the gaussian."""

    name = "student-t"
    formula = "(1 + |x-y|^2 / (df bandwidth^2))^(-(df+1)/2)"
    remark = "heavy tails: sees near and far differences together"

    df: float = argument(POSITIVE, 1.0)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        return _inverse_power(pairs, self.df * bandwidth**2, (self.df + 1) / 2)


@dataclass(frozen=True)
class RationalQuadratic(BandwidthAtom):
    """k(x, y) = (1 + |x - y|^2 / (2 alpha s^2))^(-alpha): gaussians of all bandwidths; the smaller alpha, the wider the mix."""

    name = "rational-quadratic"
    formula = "(1 + |x-y|^2 / (2 alpha bandwidth^2))^(-alpha)"
    remark = "a mixture of gaussians of many bandwidths"

    alpha: float = argument(POSITIVE, 1.0)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        return _inverse_power(pairs, 2 * self.alpha * bandwidth**2, self.alpha)


def _inverse_power(pairs: Pairs, scale: float, exponent: float) -> Array:
    """Return (1 + |x - y|^2 / scale)^(-exponent); by logarithms, which keep the digits of small values."""
    values = np.multiply(pairs.squared_over(scale), 1 / scale)
    if exponent == 1:
        values += 1
        return np.divide(1, values, out=values)
    return exponential(np.log1p(values, out=values), -exponent, out=values)


@dataclass(frozen=True)
class Matern(BandwidthAtom):
    """k(x, y) = 2^(1-nu) / Gamma(nu) z^nu K_nu(z) with z = sqrt(2 nu) |x - y| / s.

    Closed forms for nu = 0.5, 1.5 and 2.5 (Rasmussen and Williams 2006, eqs. 4.16 and 4.17); the Bessel function K_nu
    otherwise, at some hundred times the cost.
    """

    name = "matern"
    formula = "2^(1-nu)/Gamma(nu) z^nu K_nu(z), z = sqrt(2 nu) |x-y| / bandwidth"
    remark = "between laplacian2 (nu=0.5) and gaussian (nu large); fast for nu = 0.5, 1.5, 2.5"

    nu: float = argument(SMOOTHNESS, 1.5)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        z = pairs.distance()
        np.multiply(z, math.sqrt(2 * self.nu) / bandwidth, out=z)
        # exp(-1000) is zero in float64 and so is the kernel; beyond, the polynomial in front of it could overflow.
        np.minimum(z, 1000.0, out=z)
        polynomials = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1 / 3, 1.0, 1.0)}
        if self.nu not in polynomials:
            return _bessel_matern(z, self.nu)
        highest, *others = polynomials[self.nu]
        polynomial = highest * np.ones_like(z)
        for coefficient in others:
            polynomial *= z
            polynomial += coefficient
        return np.multiply(exponential(z, -1.0, out=z), polynomial, out=z)


def _bessel_matern(z: Array, nu: float) -> Array:
    """Return 2^(1-nu) / Gamma(nu) z^nu K_nu(z), in logarithms so that no factor overflows alone.

    Where K_nu itself overflows, z is zero or small against nu and the series 1 - q/(nu-1) + q^2/(2 (nu-1) (nu-2)) - ... with
    q = z^2/4 has converged after a few terms.
    """
    from scipy.special import gammaln, kve  # noqa: PLC0415  # 0.2 s of import that only this branch needs

    values = np.ones_like(z)
    # On all of z, zeros included: scipy 1.17 crashes when this function is given a mask.
    bessel = kve(nu, z)
    usual = np.isfinite(bessel)
    logarithm = (1 - nu) * math.log(2) - float(gammaln(nu)) - z[usual]
    values[usual] = np.exp(logarithm + nu * np.log(z[usual]) + np.log(bessel[usual]))
    q = z[~usual] ** 2 / 4
    term = np.ones_like(q)
    for order in range(1, min(20, math.ceil(nu))):
        term *= -q / (order * (nu - order))
        values[~usual] += term
    return values


@dataclass(frozen=True)
class Periodic(Atom):
    """k(x, y) = exp(-2 sum_c sin^2(pi (x_c - y_c) / period) / s^2).

    A product over the columns c of exp-sine-squared kernels, each positive definite on the line, hence positive
    definite in any dimension. It cannot tell x from x + period, so it is not characteristic. Each factor is
    exp((cos - 1) / s^2) with a positive definite cosine, hence infinitely divisible. Its bandwidth has no unit: it measures
    the sine, not the data, and is never chosen from the data.
    """

    name = "periodic"
    formula = "exp(-2 sum_c sin^2(pi (x_c-y_c) / period) / bandwidth^2)"
    remark = "for seasons and angles; blind to shifts by whole periods, so not characteristic"
    infinitely_divisible = True

    period: float = argument(POSITIVE, 1.0)
    bandwidth: float = argument(POSITIVE, 1.0)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair."""
        total = pairs.summed(self._squared_sine)
        return exponential(total, -2 / self.bandwidth**2, out=total)

    def _squared_sine(self, difference: Array, out: Array) -> None:
        # The sine of a large multiple of pi has lost its digits; the size first keeps k(x, y) = k(y, x) exactly.
        np.remainder(np.abs(difference, out=out), self.period, out=out)
        np.multiply(out, math.pi / self.period, out=out)
        np.square(np.sin(out, out=out), out=out)


class Dot(Atom):
    """A function of <x, y> alone: positive definite where its power series has no negative coefficient."""

    __slots__ = ()

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair."""
        with refuse_overflow(self):
            return self._of_inner_product(pairs.inner_product().copy())

    @abstractmethod
    def _of_inner_product(self, inner: Array) -> Array:
        """Return the kernel's values; may be written over `inner`."""


class Linear(Dot):
    """k(x, y) = <x, y>. The test with it compares the means and nothing else."""

    name = "linear"
    formula = "<x,y>"
    remark = "compares means only"

    def _of_inner_product(self, inner: Array) -> Array:
        return inner


@dataclass(frozen=True)
class Polynomial(Dot):
    """k(x, y) = (gain <x, y> + offset)^degree. The test with it compares moments up to order `degree`."""

    name = "polynomial"
    formula = "(gain <x,y> + offset)^degree"
    remark = "compares moments up to the degree only"

    degree: float = argument(WHOLE, 3.0)
    gain: float = argument(FINITE, 1.0)
    offset: float = argument(FINITE, 1.0)

    @property
    def positive_definite(self) -> bool:
        """Whether neither gain nor offset is negative."""
        return self.gain >= 0 and self.offset >= 0

    def _of_inner_product(self, inner: Array) -> Array:
        np.multiply(inner, self.gain, out=inner)
        return raised(np.add(inner, self.offset, out=inner), self.degree)


@dataclass(frozen=True)
class Exponential(Dot):
    """k(x, y) = exp(gain <x, y>), with one over the square of a length as gain.

    Its power series has only positive coefficients: universal on bounded data, hence characteristic (Steinwart and
    Christmann 2008, cor. 4.57). Its power p is the same kernel with p times the gain.
    """

    name = "exponential"
    formula = "exp(gain <x,y>)"
    remark = "compares all moments; grows fast, so scale the columns"
    characteristic = True
    infinitely_divisible = True

    gain: float = argument(POSITIVE, 1.0)

    def _of_inner_product(self, inner: Array) -> Array:
        return exponential(inner, self.gain, out=inner)


def moved_to_origin(points: Points, kernels: Sequence[Kernel]) -> Points:
    """Return rows with their mean at the origin where every kernel is the linear one, which centring makes blind to it.

    A common offset would only take digits away from all that is computed.
    """
    if not all(isinstance(kernel, Linear) for kernel in kernels):
        return points
    return Points(points.numeric - points.numeric.mean(axis=0), points.codes)


class Delta(Atom):
    """k(x, y) = 1 where x and y agree in every column, else 0."""

    name = "delta"
    formula = "1 if x = y, else 0"
    remark = "for one or two category columns; over many columns hardly any two rows agree"
    kind = "discrete"
    characteristic = True
    infinitely_divisible = True

    def evaluate(self, pairs: Pairs) -> Array:
        """Return 1.0 where x and y agree, else 0.0."""
        agree: Array = (pairs.all_mismatches() == 0).astype(np.float64)
        return agree


class Hamming(BandwidthAtom):
    """k(x, y) = exp(-(number of columns in which x and y differ) / h), with h in columns."""

    name = "hamming"
    formula = "exp(-(number of columns that differ) / bandwidth)"
    remark = "for category columns, any number of them"
    kind = "discrete"
    metric = "mismatches"
    squarings = 1

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        return exponential(pairs.all_mismatches(), -1 / bandwidth)


@dataclass(frozen=True)
class Additive(Expression):
    """k(x, y) = sum_c exp(-(x_c - y_c)^2 / (2 s_c^2)) + (number of category columns in which x and y agree).

    One bandwidth for all numeric columns, or one for each; none where they are to be chosen, each for its own column. It sees
    a few columns that differ among many that do not.
    """

    name = ADDITIVE
    formula = "sum_c exp(-(x_c-y_c)^2 / (2 bandwidth_c^2))"
    remark = "each column alone, summed up: sees a few columns that differ among many that do not"

    bandwidths: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the bandwidths and keep them as floats."""
        checked = tuple(check_number(one, self.name, "bandwidth", POSITIVE) for one in self.bandwidths)
        object.__setattr__(self, "bandwidths", checked)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Numbers, and categories where there are any."""
        return frozenset(("numeric", "discrete"))

    @property
    def free(self) -> bool:
        """Whether the bandwidths are still to be chosen."""
        return not self.bandwidths

    @classmethod
    def usage(cls) -> str:
        """Return how to write the kernel."""
        return "additive(bandwidth, ...)"

    def over(self, columns: Columns) -> Expression:
        """Return the sum over these columns, at least one of them numeric."""
        p = len(columns.numeric)
        if len(self.bandwidths) not in (0, 1, p):
            message = f"the kernel '{self}' has {len(self.bandwidths)} bandwidths for {p} numeric columns"
            hint = "give one for all, or one for each"
            raise refused(message, hint, "kernel_argument", argument="bandwidth", value=str(self))
        given = self.bandwidths if len(self.bandwidths) == p else (self.bandwidths or (None,)) * p
        numeric = [algebra.OnColumns(Gaussian(one), Columns((place,), ())) for place, one in enumerate(given)]
        categories = [algebra.OnColumns(Delta(), Columns((), (place,))) for place in range(len(columns.categories))]
        terms = (*numeric, *categories)
        return algebra.AdditiveSum(terms) if len(terms) > 1 else terms[0]

    def __str__(self) -> str:
        """Return additive(bandwidths)."""
        return _call(self.name, list(map(format_number, self.bandwidths)))


# Eigenvalues of a correlation matrix below this share of the largest are rounding.
SINGULAR, SMALLEST = 1e-12, float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Mahalanobis(algebra.OnColumns):
    """k(W x, W y) of numeric columns with W'W = A, the inverse of their covariance S: x'Ay for the linear kernel, from their means.

    A = (S + share diag(S))^-1, so that the kernel is that of the Mahalanobis distance or product, and the same whatever the
    units of the columns; without a share whatever their linear combinations. S is that of the pooled or training rows.
    """

    name = MAHALANOBIS
    formula = "<Wx,Wy> or k(Wx,Wy), W'W = (S + share diag(S))^-1, S the covariance of the columns"
    remark = "compares means as Hotelling's test does; around a kernel of distances all that it sees"

    kernel: Expression = Linear()
    share: float = 0.01

    def __post_init__(self) -> None:
        """Check the kernel and the share."""
        object.__setattr__(self, "share", check_number(self.share, self.name, "share", NOT_NEGATIVE))
        if self.kernel.kinds != {"numeric"} or any(isinstance(leaf, algebra.OnColumns) for leaf in self.kernel.leaves):
            hint = "a kernel of numbers, such as mahalanobis(gaussian), and each once"
            raise refused(
                f"'{self.kernel}' cannot stand in {self.name}", hint, "kernel_argument", value=str(self.kernel)
            )

    @property
    def leaves(self) -> list[Expression]:
        """Itself: what it is made of sees other columns."""
        return [self]

    @classmethod
    def usage(cls) -> str:
        """Return how to write the kernel."""
        return f"{cls.name}(kernel=linear, share={cls.share:g})"

    def unbound(self) -> UsageError:
        """Return the error of a kernel that is asked for values before it knows the rows."""
        hint = "mmd_test, hsic_test, SVM, KernelRidge and KernelPCA find it from their rows"
        return refused(f"the kernel '{self}' has no covariance yet", hint, "unbound_kernel")

    def whitened(self, rule: MomentsRule, columns: Columns | None = None) -> Expression:
        """Return the kernel with W, the symmetric root of A: D^-1/2 (R + share I)^-1/2 for S = D^1/2 R D^1/2."""
        means, *covariance = rule(columns)
        spread = np.sqrt(np.diagonal(covariance))
        # A constant column leaves a row of zeros.
        values, vectors = np.linalg.eigh(covariance / np.maximum(np.outer(spread, spread), SMALLEST))
        values += self.share
        if not (values[0] > SINGULAR * values[-1] and spread.all()):
            raise UndecidedError(
                f"the kernel '{self}' has no matrix: the covariance of the {len(values):,} numeric columns is singular",
                hint=f"{replace(self, share=0.01)} adds a share of the variances, or leave out columns that follow from others",
                code="undecided.singular_covariance",
            )
        root = np.vstack([(vectors / np.sqrt(values)) @ vectors.T / spread[:, None], means])
        return replace(self, columns=Columns(tuple(range(len(means))), (), root.tobytes()))

    def enclosed(self, at_least: int) -> str:
        """Return the text, which needs no parentheses."""
        del at_least
        return str(self)

    def __str__(self) -> str:
        """Return mahalanobis(kernel, share)."""
        inner = [] if self.kernel == Linear() else [str(self.kernel)]
        return _call(self.name, [*inner, format_number(self.share)])


def by_covariance(kernel: Kernel) -> bool:
    """Say whether some part of a kernel takes its matrix from a covariance."""
    return isinstance(kernel, Mahalanobis) or any(map(by_covariance, kernel.parts))
