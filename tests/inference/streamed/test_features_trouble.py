"""Tests by features where tables, kernels or options are unusual: right, or refused, or warned of."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from two_samples import arrays, frames

from kerntest import compute_on, hsic_test, mmd_test
from kerntest.engines.base import Engine
from kerntest.errors import UndecidedError, UsageError
from kerntest.inference.sides import Reading
from kerntest.inference.streamed import rows, two_sample
from kerntest.inference.streamed.survey import survey

QUICK = {"method": "features", "kernel": "gaussian(1.5)", "features": "nystroem:30", "permutations": 100}


@pytest.mark.parametrize("stored", [True, False])
def test_rows_of_many_columns_are_read_fewer_at_a_time(tmp_path, monkeypatch, stored):
    monkeypatch.setattr(rows, "BATCH_VALUES", 400)
    x, y = frames(450, 320)
    x.to_parquet(tmp_path / "x.parquet", index=False)
    with survey((tmp_path / "x.parquet" if stored else x, y), Reading(), "standardize", 0, Engine(1)) as found:
        sizes = [len(points) for piece in found.pieces() for points in found.read(piece)]
    assert sizes == [100] * 4 + [50] + [100] * 3 + [20]


def test_the_pages_of_many_columns_count_as_memory():
    x, y = arrays(300, 300, p=60)
    with compute_on(memory="350MB"), pytest.raises(UndecidedError, match="the sums over blocks take"):
        mmd_test(x, y, **QUICK)
    with compute_on(memory="350MB"):
        assert mmd_test(x[:, :2], y[:, :2], **QUICK).n_x == 300


def test_one_relabelling_gives_one():
    x, y = arrays(300, 300)
    two = mmd_test(x, y, **QUICK | {"permutations": 1})
    assert two.p_value == 1.0
    assert any("the smallest p-value that 1 relabelling can give is 1" in text for text in two.warnings)
    with pytest.raises(UndecidedError, match="give one value of the statistic only"):
        hsic_test(x[:, 0], x[:, 1], kernel_x="gaussian(1e9)", method="features", features="nystroem:20")


def test_there_are_as_many_landmarks_as_were_asked_for(monkeypatch):
    monkeypatch.setattr(two_sample, "SAMPLED_ROWS", 60)
    monkeypatch.setattr(two_sample, "ERROR_ROWS", 100)
    found = mmd_test(*arrays(300, 300), **QUICK | {"features": "nystroem:150"}).approximation
    assert (found.number, found.rows_sampled) == (150, 250)
    assert mmd_test(*arrays(300, 300), **QUICK | {"features": "nystroem:1000"}).approximation.number == 600


def test_the_record_counts_the_waves_that_there_are():
    assert mmd_test(*arrays(300, 300), **QUICK | {"features": "fourier:9"}).approximation.number == 8


def test_features_that_see_little_are_warned_of():
    found = mmd_test(*arrays(500, 500), **QUICK | {"kernel": "gaussian(0.05)"})
    assert any(text.startswith("the nystroem:30 features leave out ") for text in found.warnings)
    assert not mmd_test(*arrays(500, 500), **QUICK).warnings


@pytest.mark.parametrize("kernel", ["linear", "x1, x2: linear"])
def test_a_linear_kernel_sees_columns_of_any_origin_and_unlike_spread(kernel):
    x, y = arrays(500, 400, shift=0.2)
    options = QUICK | {"kernel": kernel, "scale": "none"}
    near = mmd_test(x, y, **options)
    origin = np.array([1e6, 0.0])
    far = mmd_test(x + origin, y + origin, **options)
    np.testing.assert_allclose(far.statistic, near.statistic, rtol=1e-6)
    np.testing.assert_allclose(far.statistic, mmd_test(x, y, kernel="linear", scale="none").statistic, rtol=1e-6)
    assert far.p_value == near.p_value


def test_a_kernel_that_is_not_positive_definite_has_no_features():
    with pytest.raises(UsageError, match="is not positive definite: no features stand for it") as caught:
        mmd_test(*arrays(300, 300), **QUICK | {"kernel": "polynomial(3, 1, -2)"})
    assert caught.value.code == "usage.features"


def test_repeated_and_shared_rows_are_warned_of():
    x, y = arrays(400, 500)
    for first, second in ((np.repeat(x[:100], 4, axis=0), y), (x, np.concatenate([x[:300], y[:200]]))):
        warnings = mmd_test(first, second, **QUICK).warnings
        assert len(warnings) == 1
        assert warnings == mmd_test(first, second, kernel="gaussian(1.5)").warnings
    rng = np.random.default_rng(0)
    few, many = np.repeat(rng.normal(size=100), 40), rng.normal(size=4000)
    (warning,) = mmd_test(few, many, **QUICK).warnings
    assert warning.startswith(
        "x: 1,900 rows of 2,000 sampled ones repeat another row, so that a row is there 40 times on "
    )
    same = many[:2500]
    (warning,) = mmd_test(same, same, **QUICK).warnings
    assert warning.startswith("the files share rows: ")
    assert "% of 2,000 sampled rows of x are also among 2,000 of y; the samples are not independent" in warning
    coarse = np.random.default_rng(1).integers(0, 50, (2, 3000))
    assert not mmd_test(*coarse, **QUICK).warnings


def test_repeated_pairs_are_warned_of():
    rng = np.random.default_rng(0)
    options = {"method": "features", "features": "nystroem:40"}
    x, y = np.repeat(rng.normal(size=(2, 150)), 20, axis=1)
    order = rng.permutation(3000)
    found = hsic_test(x[order], y[order], **options)
    assert any("of 2,000 sampled ones repeat another row" in text for text in found.warnings)
    # Of so many rows a sample holds few copies, and they tell how many there are of each.
    x, y = np.tile(rng.normal(size=(2, 3000)), (1, 36))
    (found,) = [text for text in hsic_test(x, y, **options).warnings if "sampled ones repeat another row" in text]
    assert 25 < float(found.split("is there ")[1].split(" times")[0]) < 50
    few = hsic_test(x[order[:600]], y[order[:600]], **options).warnings
    expected = hsic_test(x[order[:600]], y[order[:600]]).warnings
    assert [text for text in few if "repeat another row" in text] == [
        text for text in expected if "repeat another row" in text
    ]
    assert not hsic_test(*rng.normal(size=(2, 3000)), **options).warnings


def test_no_row_is_a_landmark_twice():
    rng = np.random.default_rng(0)
    x, y = (
        pd.DataFrame({"level": rng.integers(0, 60, 2000).astype(str), "other": rng.normal(size=2000)}) for _ in "xy"
    )
    x.loc[::100, "level"] = "rare"
    found = mmd_test(x[["level"]], y[["level"]], method="features", features="nystroem:100", kernel="delta")
    assert found.approximation.number == 61
    assert found.approximation.matrix_error < 1e-9
    pair = hsic_test(x, x_columns="level", method="features", features="nystroem:100", kernel_x="delta")
    assert pair.approximation.number_x == 61
    assert pair.approximation.matrix_error_x < 1e-9


def test_a_column_that_is_rare_or_large_says_the_same_as_the_exact_test():
    rng = np.random.default_rng(5)
    tables = [
        pd.DataFrame({"rare": np.where(rng.random(n) < share, "b", "a"), "far": 1e8 + rng.normal(size=n)})
        for n, share in ((400, 0.01), (600, 0.06))
    ]
    options = {"kernel": "rare: hamming(1); far: gaussian(1)", "null": "moments"}
    exact, found = (mmd_test(*tables, method=method, **options) for method in ("exact", "features"))
    tolerance = 0.02 * exact.null.standard_deviation
    np.testing.assert_allclose(found.statistic, exact.statistic, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(found.p_value, exact.p_value, rtol=0.05)


RUN = """
import sys
from pathlib import Path
from kerntest import mmd_test
options = {"method": "features", "kernel": "gaussian(1)", "features": "nystroem:10", "threads": 1}
for path, n in zip(sys.argv[1::2], sys.argv[2::2]):
    assert mmd_test(path, path, **options).n_x == int(n)
    # The peak of this program: that of getrusage begins with the size of the process that started it.
    print(*(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    arguments = []
    for n in (50_000, 400_000):
        path = tmp_path / f"{n}.parquet"
        rng = np.random.default_rng(0)
        pd.DataFrame({name: rng.normal(size=n) for name in "abcd"}).to_parquet(path, row_group_size=50_000, index=False)
        arguments += [path, str(n)]
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    # The first peak is that of few rows, the second that of both.
    peaks = [int(peak) * 1024 for peak in done.stdout.split()]
    # Held, 2 x 400,000 rows of four numbers would take 26 MB, and some times that on the way.
    assert peaks[1] - peaks[0] < 20e6
