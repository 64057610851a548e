"""Sums over rows that are never held against the kernel matrices that the features stand for."""

import tracemalloc

import naive
import numpy as np
import pytest
from feature_pairs import Reader, explicit, features_of, mixed_rows, slices, summed
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.base import Engine
from kerntest.inference.nulls.moments import Invariants, permutation_moments
from kerntest.inference.relabelling.pairings import centred_matrix
from kerntest.inference.streamed import feature_sums
from kerntest.inference.streamed.feature_invariants import (
    SampledRows,
    feature_invariants,
    feature_spectrum,
    first_feature_invariants,
)
from kerntest.inference.streamed.feature_sums import pair_sums
from kerntest.kernels.base import Columns, Points

ENGINE = Engine(1)
KERNELS = [
    ("gaussian(1)", "gaussian(1) * hamming(1)"),
    ("linear", "laplacian(2) * delta"),
    ("matern(1)", "n2: gaussian(2); c0: delta"),
]
HOLLOW = pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])


@pytest.mark.parametrize(
    ("kernels", "text"), [*zip(KERNELS, ["nystroem:7", "nystroem:40", "nystroem:40"], strict=True)]
)
def test_every_number_is_that_of_the_explicit_matrices(text, kernels):
    rows = mixed_rows(40, strength=1.0)
    features = features_of(rows, kernels, text)
    found = summed(features, rows, ENGINE, height=7).centred().dependence()
    K, L = (explicit(side, rows)[1].tolist() for side in (features.x, features.y))
    assert_close(found.biased, naive.hsic_biased(K, L))
    assert_close(found.unbiased, naive.hsic_unbiased(K, L))
    assert_close(found.effect_size, naive.hsic_effect(K, L))


def test_random_waves_are_features_too():
    rows = mixed_rows(30, strength=1.0)
    numbers = Columns((0, 1), ()), Columns((2,), ())
    features = features_of(rows, ("gaussian(1)", "gaussian(2)"), "fourier:9", numbers)
    found = summed(features, rows, ENGINE).centred().dependence()
    K, L = (explicit(side, rows)[1].tolist() for side in (features.x, features.y))
    assert_close(found.unbiased, naive.hsic_unbiased(K, L))
    assert np.std(np.diagonal(np.array(K))) > 0.01


def test_a_far_origin_takes_no_digits():
    rows = mixed_rows(50, strength=1.0)
    far = Points(rows.numeric + 1e6, rows.codes)
    near, moved = (
        summed(features_of(some, ("linear", "laplacian(2) * delta")), some, ENGINE).centred().dependence()
        for some in (rows, far)
    )
    # 1e6 + x has ten digits after the point.
    assert_close(moved.unbiased, near.unbiased)


def test_neither_threads_nor_pieces_change_the_sums():
    rows = mixed_rows(3000, strength=0.3)
    features = features_of(rows)
    one = summed(features, rows, ENGINE, height=500)
    assert_close(summed(features, rows, Engine(3), height=500).gram, one.gram, share=SAME_MACHINE)
    other = summed(features, rows, ENGINE, height=137)
    assert_close(other.gram, one.gram, scale=3000)
    assert other.n == one.n == 3000
    found, again = one.centred().dependence(), other.centred().dependence()
    assert_close(again.unbiased, found.unbiased)


def test_sums_of_parts_add_up():
    rows = mixed_rows(200, strength=0.3)
    features = features_of(rows)
    parts = [
        pair_sums(features, [part], Reader(rows), ENGINE) for part in (slice(0, 90), slice(90, 90), slice(90, 200))
    ]
    assert_close(sum(parts[1:], parts[0]).gram, summed(features, rows, ENGINE).gram, scale=1.0)


def dense_invariants(A):
    """Return the sums that `Invariants` names, from the matrix."""
    d, squared = np.diagonal(A), A @ A
    return Invariants(
        trace=d.sum(),
        trace_square=(A**2).sum(),
        diagonal_square=(d**2).sum(),
        diagonal_cube=(d**3).sum(),
        diagonal_with_square=d @ np.diagonal(squared),
        diagonal_form=d @ A @ d,
        trace_cube=np.trace(squared @ A),
        entry_cubes=(A**3).sum(),
    )


def centred_kernel(side, rows, hollow):
    return centred_matrix(explicit(side, rows)[1], "unbiased" if hollow else "biased")


@HOLLOW
@pytest.mark.parametrize("kernels", KERNELS, ids=str)
def test_invariants_of_all_rows_are_exact(kernels, hollow):
    rows = mixed_rows(120, strength=0.5)
    features = features_of(rows, kernels)
    sums = summed(features, rows, ENGINE).centred()
    for side, own in ((features.x, sums.x), (features.y, sums.y)):
        found = feature_invariants(own, SampledRows.of(side, own, rows), hollow=hollow)
        expected = dense_invariants(centred_kernel(side, rows, hollow))
        for name in type(found).__slots__:
            assert_close(getattr(found, name), getattr(expected, name))
        first = first_feature_invariants(own, hollow=hollow)
        assert_close([first.trace, first.trace_square], [found.trace, found.trace_square])


@HOLLOW
def test_a_sample_of_the_rows_moves_the_skewness_by_less_than_one_over_n(hollow):
    n = 700
    rows = mixed_rows(n)
    features = features_of(rows)
    sums = summed(features, rows, ENGINE).centred()
    few = Points(rows.numeric[::5], rows.codes[::5])
    sampled, exact = (
        permutation_moments(*invariants, n)
        for invariants in (
            [
                feature_invariants(own, SampledRows.of(side, own, few), hollow=hollow)
                for side, own in sides(features, sums)
            ],
            [dense_invariants(centred_kernel(side, rows, hollow)) for side, _ in sides(features, sums)],
        )
    )
    assert_close(sampled.mean, exact.mean)
    assert_close(sampled.standard_deviation, exact.standard_deviation)
    assert exact.skewness > 0.3
    assert sampled.skewness == pytest.approx(exact.skewness, abs=1.0 / n)
    assert sampled.skewness != exact.skewness


def sides(features, sums):
    return (features.x, sums.x), (features.y, sums.y)


@HOLLOW
def test_eigenvalues_are_those_of_the_matrix(hollow):
    rows = mixed_rows(150)
    features = features_of(rows)
    sums = summed(features, rows, ENGINE).centred()
    A = centred_kernel(features.x, rows, hollow)
    found = feature_spectrum(sums.x, hollow=hollow)
    values = np.repeat(found.values, found.multiplicities.astype(int))
    exact = np.linalg.eigvalsh(A)
    assert values.sum() == pytest.approx(np.trace(A), abs=1e-8)
    # The diagonal of U(K) is taken for constant: off by a part of one row's share.
    largest = np.sort(values)[::-1][:10]
    np.testing.assert_allclose(largest, exact[::-1][:10], rtol=0, atol=1.0 if hollow else 1e-9)


def peak_memory(n):
    """Return the peak of a pass over n rows that are made as they are asked for."""
    features = features_of(mixed_rows(200))

    def read(piece):
        yield mixed_rows(2000, seed=piece.start)

    tracemalloc.start()
    pair_sums(features, slices(n, 2000), read, ENGINE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_rows():
    peak_memory(2000)
    assert peak_memory(30_000) < 1.2 * peak_memory(6000)


def test_blocks_are_of_a_size_that_stays_in_the_cache(monkeypatch):
    rows = mixed_rows(500)
    features = features_of(rows)
    whole = summed(features, rows, ENGINE)
    monkeypatch.setattr(feature_sums, "HELD_ENTRIES", 1)
    assert features.height == feature_sums.FEWEST_TOGETHER
    assert_close(summed(features, rows, ENGINE).gram, whole.gram, scale=1.0)
