"""Random kernel expressions for hypothesis."""

from hypothesis import strategies as st

from kerntest.kernels.algebra import Constant, Normalised, Power, Product, Sum
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

positive = st.floats(1e-75, 1e75)
bandwidths = st.none() | positive

numeric_atoms = st.one_of(
    *(st.builds(kernel, bandwidths) for kernel in (Gaussian, Laplacian, Laplacian2)),
    *(st.builds(kernel, bandwidths, positive) for kernel in (StudentT, RationalQuadratic)),
    st.builds(Matern, bandwidths, st.floats(1e-75, 100)),
    st.builds(Periodic, positive, positive),
    st.builds(Linear),
    st.builds(Polynomial, st.integers(1, 1000), positive, st.floats(-1e75, -1e-75) | positive | st.just(0)),
    st.builds(Exponential, positive),
)
discrete_atoms = st.builds(Delta) | st.builds(Hamming, bandwidths)
weights = st.builds(Constant, positive | st.just(0) | st.integers(1, 9))
atoms = numeric_atoms | discrete_atoms | weights


def power(kernel, whole, broken):
    return Power(kernel, broken if kernel.infinitely_divisible else whole)


def extend(inner):
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Sum, several),
        st.builds(Product, several),
        st.builds(power, inner, st.integers(1, 1000), positive),
        st.builds(Normalised, inner),
    )


expressions = st.recursive(atoms, extend, max_leaves=8)
