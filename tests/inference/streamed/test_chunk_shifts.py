"""Shifts inside chunks of rows in random order against every relabelling written out."""

from itertools import pairwise

import numpy as np
import pytest
from feature_pairs import explicit, features_of, mixed_rows, slices, summed
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.local import LocalEngine
from kerntest.errors import DataError
from kerntest.inference.relabelling import centred_matrix
from kerntest.inference.streamed import chunk_shifts
from kerntest.inference.streamed import shuffled as shuffled_module
from kerntest.inference.streamed.chunk_shifts import Chunks, regrouped, shifted_inner
from kerntest.inference.streamed.pair_features import split_sample, without_small
from kerntest.inference.streamed.shuffled import shuffled
from kerntest.kernels.base import Points
from kerntest.kernels.stationary import Gaussian
from kerntest.matrices.factor import make_features

ENGINE = LocalEngine(1)
HOLLOW = pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])


def parts(rows, height):
    return [Points(rows.numeric[some], rows.codes[some]) for some in slices(len(rows), height)]


def shifted_by_hand(features, rows, chunks, hollow):
    """Return <A, B> of the explicit matrices with the rows of y moved by t inside every chunk."""
    A, B = (
        centred_matrix(explicit(side, rows)[1], "unbiased" if hollow else "biased") for side in (features.x, features.y)
    )
    values = []
    for t in range(chunks.length):
        moved = np.arange(chunks.n)
        for chunk in range(chunks.count):
            start = chunk * chunks.length
            moved[start : start + chunks.length] = start + (np.arange(chunks.length) + t) % chunks.length
        values.append(np.vdot(A, B[np.ix_(moved, moved)]))
    return np.array(values)


@HOLLOW
@pytest.mark.parametrize(("n", "permutations"), [(96, 24), (101, 24), (60, 59), (50, 1000)])
def test_every_shift_is_that_of_the_explicit_matrices(n, permutations, hollow, monkeypatch):
    monkeypatch.setattr(chunk_shifts, "HELD_ENTRIES", 1)
    monkeypatch.setattr(chunk_shifts, "FEWEST_CHUNKS", 2)
    rows = mixed_rows(n, strength=1.0)
    features = features_of(rows)
    sums = summed(features, rows, ENGINE).centred()
    chunks = Chunks.of(n, permutations)
    assert chunks.length >= min(permutations, n)
    found = shifted_inner(features, sums, parts(rows, 17), chunks, engine=ENGINE, hollow_matrices=hollow)
    expected = shifted_by_hand(features, rows, chunks, hollow)
    assert_close(found, expected, scale=np.abs(expected).max())
    assert_close(found[0], sums.inner(hollow_matrices=hollow))


def test_threads_change_nothing():
    rows = mixed_rows(2000)
    features = features_of(rows)
    sums = summed(features, rows, ENGINE).centred()
    one, three = (
        shifted_inner(features, sums, parts(rows, 300), Chunks.of(2000, 100), engine=engine, hollow_matrices=True)
        for engine in (ENGINE, LocalEngine(3))
    )
    assert_close(one, three, share=SAME_MACHINE)


@given(st.integers(4, 10**7), st.integers(1, 5000))
@settings(max_examples=60, deadline=None)
def test_chunks_cover_all_rows_but_fewer_than_one_chunk(n, permutations):
    chunks = Chunks.of(n, permutations)
    assert 0 <= chunks.fixed < chunks.length <= n
    assert chunks.count >= 1
    # Lengths that the transform is fast at are never far.
    assert chunks.length >= min(permutations, 0.95 * n)
    assert chunks.length <= 1.05 * permutations + 1


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_regrouped_rows_are_the_same_in_the_same_order(sizes, height):
    whole = Points.of(np.arange(sum(sizes), dtype=float))
    ends = np.cumsum([0, *sizes])
    blocks = [Points.of(whole.numeric[start:stop]) for start, stop in pairwise(ends)]
    found = list(regrouped(blocks, height))
    assert [len(one) for one in found[:-1]] == [height] * max(len(found) - 1, 0)
    np.testing.assert_array_equal(np.concatenate([np.empty((0, 1)), *(one.numeric for one in found)]), whole.numeric)


def order_of(rows, height, seed=0, engine=ENGINE):
    def numbered(piece):
        middle = piece.start + height // 2
        for some in (slice(piece.start, middle), slice(middle, piece.stop)):
            yield some.start, Points(rows.numeric[some], rows.codes[some])

    with shuffled(len(rows), slices(len(rows), height), numbered, seed=seed, engine=engine) as found:
        folder = found.folder
        whole = list(found)
        assert folder.is_dir()
    assert not folder.exists()
    return np.hstack([np.concatenate([one.numeric for one in whole]), np.concatenate([one.codes for one in whole])])


@pytest.mark.parametrize("entries", [2**22, 500])
def test_shuffled_rows_are_all_rows_in_an_order_of_the_seed(entries, monkeypatch):
    monkeypatch.setattr(shuffled_module, "STRETCH_ENTRIES", entries)
    rows = mixed_rows(1000)
    rows.numeric[:, 0] = np.arange(1000)
    found = order_of(rows, 130)
    order = found[:, 0].astype(int)
    assert sorted(order) == list(range(1000))
    np.testing.assert_array_equal(found, np.hstack([rows.numeric, rows.codes])[order])
    # Neither the pieces nor the threads move a row; the seed does.
    np.testing.assert_array_equal(order_of(rows, 333, engine=LocalEngine(2)), found)
    assert np.count_nonzero(order_of(rows, 130, seed=1)[:, 0] == found[:, 0]) < 10
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.15


def test_rows_that_are_lost_meanwhile_are_noticed_and_no_file_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with shuffled(20, [0], ten_rows, seed=0, engine=ENGINE) as rows:
        assert len(list(tmp_path.iterdir())) == 1
        with pytest.raises(DataError, match=r"^the rows of the file changed while it was read$"):
            list(rows)
    assert not list(tmp_path.iterdir())


def ten_rows(piece):
    yield piece, mixed_rows(10)


def test_a_full_disk_is_an_error_with_a_way_out(monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with (
        pytest.raises(DataError, match=r"cannot be written: No space left on device$") as caught,
        shuffled(10, [0], ten_rows, seed=0, engine=ENGINE),
    ):
        pass
    assert "TMPDIR" in caught.value.hint


@pytest.mark.parametrize(("n", "sampled"), [(40, 40), (45, 40), (10**6, 40), (10**11, 40)])
def test_the_rows_of_each_side_are_as_if_drawn_apart(n, sampled):
    shared = []
    for seed in range(400):
        x, y = split_sample(n, sampled, seed)
        assert len(set(x)) == len(x) == len(y) == len(set(y)) == (n if sampled >= n else sampled // 2)
        assert max(*x, *y) < sampled
        shared.append(len(set(x) & set(y)))
    expected = len(x) ** 2 / n
    assert np.mean(shared) == pytest.approx(expected, abs=5 * np.sqrt(expected / 400) + 0.02)


def test_small_features_change_no_kernel_value():
    rows = Points.of(np.random.default_rng(0).normal(size=(500, 1)))
    whole = make_features("nystroem:300", Gaussian(1.0), rows, 0)
    fewer = without_small(whole)
    assert 5 < fewer.size < whole.size
    Z, few = whole(rows, ENGINE), fewer(rows, ENGINE)
    assert np.sqrt(np.mean((few @ few.T - Z @ Z.T) ** 2)) < 1e-5
    waves = make_features("fourier:300", Gaussian(1.0), rows, 0)
    assert without_small(waves) is waves
