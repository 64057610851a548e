"""The two-sample test by features: what the exact test says, at its level, refused or warned of where that is due."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from tolerances import assert_close
from two_samples import arrays, frames

from kerntest import compute_on, mmd_test, parse_kernel
from kerntest.errors import DataError, UndecidedError, UsageError

FEATURES = {"method": "features", "features": "nystroem:30", "permutations": 200}
GAUSSIAN = FEATURES | {"kernel": "gaussian(1.5)"}


def test_many_landmarks_give_the_estimates_of_the_exact_test():
    x, y = frames(260, 240)
    kernel = "price: gaussian(1); weight: laplacian(2); city, new: hamming(1)"
    options = {"kernel": kernel, "permutations": 300}
    exact = mmd_test(x, y, **options)
    result = mmd_test(x, y, method="features", features="nystroem:500", **options)
    assert result.approximation.rows_per_block == 1
    np.testing.assert_allclose(result.mmd2_unbiased, exact.mmd2_unbiased, rtol=1e-4)
    np.testing.assert_allclose(result.mmd2_biased, exact.mmd2_biased, rtol=1e-4)
    np.testing.assert_allclose(result.effect_size, exact.effect_size, rtol=1e-4)
    np.testing.assert_allclose(result.mmd_standard_error, exact.mmd_standard_error, rtol=0.02)
    np.testing.assert_allclose(result.null.standard_deviation, exact.null.standard_deviation, rtol=0.2)


def test_blocks_of_several_rows_give_nearly_the_same():
    x, y = arrays(2500, 2300, shift=0.3)
    options = {"kernel": "gaussian(1.5)", "permutations": 200}
    exact, found = (mmd_test(x, y, **options, method=method) for method in ("exact", "features"))
    assert found.approximation.rows_per_block == 4
    np.testing.assert_allclose(found.mmd2_biased, exact.mmd2_biased, rtol=1e-4)
    np.testing.assert_allclose(found.mmd2_unbiased, exact.mmd2_unbiased, rtol=0.01)
    np.testing.assert_allclose(found.effect_size, exact.effect_size, rtol=0.02)
    # The spread of some 1,200 block means is known to a twentieth.
    np.testing.assert_allclose(found.mmd_standard_error, exact.mmd_standard_error, rtol=0.15)


@pytest.mark.parametrize("null", ["moments", "gamma", "spectral", "pearson"])
def test_curves_agree_with_many_permutations(null):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(1500, 2)), rng.normal(size=(1500, 2)) + 0.05
    options = GAUSSIAN | {"estimator": "biased"}
    by_curve = mmd_test(x, y, **options | {"null": null})
    permuted = mmd_test(x, y, **options | {"permutations": 4000})
    assert by_curve.null.method == null
    assert_close(by_curve.statistic, permuted.statistic)
    assert by_curve.null.p_floor is None
    assert 0.01 < permuted.p_value < 0.9
    np.testing.assert_allclose(by_curve.p_value, permuted.p_value, rtol=0.25)
    if null == "moments":
        np.testing.assert_allclose(by_curve.null.mean, permuted.null.mean, rtol=0.05)
        np.testing.assert_allclose(by_curve.null.standard_deviation, permuted.null.standard_deviation, rtol=0.1)


def rejections(tests, draw, alpha, **options):
    options = GAUSSIAN | {"features": "nystroem:20", "alpha": alpha, "threads": 1} | options
    return sum(mmd_test(*draw(), seed=seed, **options).reject for seed in range(tests))


def test_sorted_files_keep_the_level_in_a_few_tests():
    rng = np.random.default_rng(1)
    found = rejections(24, lambda: (np.sort(rng.normal(size=500)), np.sort(rng.normal(size=400))), 0.25)
    # Binomial(24, 0.25): outside of 1 to 14 twice in 1,000.
    assert 1 <= found <= 14


@pytest.mark.thorough
@pytest.mark.parametrize("order", [np.array, np.sort], ids=["random", "sorted"])
def test_the_level_is_kept(order):
    rng = np.random.default_rng(0)
    found = rejections(100, lambda: (order(rng.normal(size=3000)), order(rng.normal(size=2400))), 0.1)
    # Binomial(100, 0.1): outside of 1 to 22 once in 5,000.
    assert 1 <= found <= 22


@pytest.mark.thorough
def test_the_level_is_kept_by_very_unequal_files():
    rng = np.random.default_rng(2)
    found = rejections(60, lambda: (rng.normal(size=20_000), rng.normal(size=205)), 0.1)
    # Binomial(60, 0.1): more than 15 once in 2,000.
    assert found <= 15


@pytest.mark.thorough
def test_what_the_exact_test_sees_features_see():
    rng = np.random.default_rng(4)
    exact = features = 0
    for seed in range(15):
        x, y = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
        y[:, 0] *= 1.35
        exact += mmd_test(x, y, seed=seed, permutations=200).reject
        features += mmd_test(x, y, seed=seed, permutations=200, method="features", features="nystroem:60").reject
    assert exact >= 4
    assert abs(features - exact) <= 6


def test_rows_of_the_longer_file_beyond_the_blocks_stay_in_it():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(20_000, 1)), rng.normal(size=(205, 1))
    permuted, by_curve = (mmd_test(x, y, **GAUSSIAN, null=null) for null in ("permutation", "moments"))
    found = permuted.approximation
    assert (found.rows_per_block, found.blocks, found.fixed_rows) == (4, 2051, 12_001)
    assert any("the moments null looks at whole blocks: 12,001 rows" in text for text in by_curve.warnings)


def test_rows_with_missing_values_can_be_dropped():
    x, y = arrays(400, 300)
    holed = np.concatenate([x, [[np.nan, 1.0]]])
    result, whole = mmd_test(holed, y, missing="drop", **GAUSSIAN), mmd_test(x, y, **GAUSSIAN)
    assert (result.n_x, result.p_value) == (400, whole.p_value)
    assert_close(result.statistic, whole.statistic)
    assert result.warnings[0] == "x: 1 row of 401 with missing values left out"


def test_categories_alone_and_beside_numbers():
    x, y = frames(400, 400)
    alone = mmd_test(x[["city", "new"]], y[["city", "new"]], method="features")
    assert alone.kernel.startswith("hamming")
    assert alone.approximation.kernel_error < 1e-6
    assert "city, new: hamming" in mmd_test(x, y, method="features", features="nystroem:50").kernel


def test_a_smallest_effect():
    x, y = arrays(500, 500, shift=0.5)
    found = mmd_test(x, y, min_effect=0.05, method="features").minimum_effect
    exact = mmd_test(x, y, min_effect=0.05).minimum_effect
    assert found.reached
    assert found.kernel.startswith("gaussian(")
    np.testing.assert_allclose(found.mmd, exact.mmd, rtol=0.04)
    np.testing.assert_allclose(found.lower_bound, exact.lower_bound, rtol=0.1)
    assert not mmd_test(x, y, min_effect=1.0, **GAUSSIAN).reject


def test_the_record_says_what_was_done():
    x, y = arrays(1050, 1300)
    result = mmd_test(x, y, method="features", features="Nystroem:50")
    found = result.approximation
    assert result.method == "features"
    assert (found.features, found.kind, found.number) == ("nystroem:50", "nystroem", 50)
    assert (found.rows_sampled, found.rows_per_block) == (2000, 2)
    assert found.blocks * 2 + found.fixed_rows == 2350
    assert 0 < found.kernel_error < 0.05
    assert result.null.resampling == "permuted blocks of random rows"
    assert result.null.exact
    assert json.loads(json.dumps(result.to_dict()))["approximation"]["blocks"] == found.blocks
    exact = mmd_test(*arrays())
    assert (exact.method, exact.approximation) == ("exact", None)


def test_there_are_as_many_features_as_were_asked_for():
    few, many = arrays(300, 300), arrays(1200, 1200)
    found = mmd_test(*many, **GAUSSIAN | {"features": "nystroem:1300"}).approximation
    assert (found.number, found.rows_sampled) == (1300, 2100)
    assert mmd_test(*few, **GAUSSIAN | {"features": "nystroem:1000"}).approximation.number == 600
    assert mmd_test(*few, **GAUSSIAN | {"features": "fourier:9"}).approximation.number == 8
    rng = np.random.default_rng(0)
    x, y = (pd.DataFrame({"level": rng.integers(0, 60, 2000).astype(str)}) for _ in "xy")
    x.loc[::100, "level"] = "rare"
    found = mmd_test(x, y, method="features", features="nystroem:100", kernel="delta")
    # No row is a landmark twice.
    assert found.approximation.number == 61
    assert found.approximation.matrix_error < 1e-9


def test_more_features_are_nearer_to_the_kernel():
    x, y = arrays(700, 700, p=3)
    for kind, sizes in (("nystroem", (10, 40, 160)), ("fourier", (50, 1600))):
        errors = [
            mmd_test(x, y, **GAUSSIAN | {"features": f"{kind}:{size}"}).approximation.kernel_error for size in sizes
        ]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < errors[0] / 4


@pytest.mark.parametrize(
    "kernel",
    ["gaussian(1.5)", "laplacian(2)", "laplacian2(2)", "matern(1.5)", "student-t(2)", "rational-quadratic(1, alpha=2)"],
)
def test_random_waves_average_to_the_kernel(kernel):
    x, y = arrays(300, 300, p=3)
    found = mmd_test(x, y, kernel=kernel, method="features", features="fourier:2000", permutations=1)
    # 1,000 frequencies: a standard error of at most 1 / sqrt(2,000) for each pair.
    assert found.approximation.kernel_error < 0.03
    np.testing.assert_allclose(found.mmd2_unbiased, mmd_test(x, y, kernel=kernel).mmd2_unbiased, rtol=0.2)


def refused(error, message, code, *data, **options):
    with pytest.raises(error, match=message) as caught:
        mmd_test(*(data or arrays(300, 300)), method=options.pop("method", "features"), **options)
    assert caught.value.code == code
    assert caught.value.hint


def test_what_cannot_be_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for option, value in (("explain", True), ("witness", "w.csv"), ("plot", "p.png")):
        refused(UsageError, f"^--{option} needs --method exact$", "usage.method", **{option: value})
    refused(UsageError, "^method must be exact or features, not 'feature'$", "usage.method", method="feature")
    refused(UsageError, "need method features", "usage.method", method="exact", features="nystroem:9")
    refused(UsageError, "^--resampling random needs --method exact$", "usage.method", resampling="random")
    refused(UsageError, "are no features", "usage.features", features="nystroem")
    waves = {"features": "fourier:9", "kernel": "linear"}
    refused(UsageError, "Fourier features are for kernels of differences", "usage.features", **waves)
    indefinite = {"kernel": "polynomial(3, 1, -2)"}
    refused(UsageError, "is not positive definite: no features stand for it", "usage.features", **indefinite)
    refused(DataError, "^y has 199 rows; .* at least 200", "data.too_few_rows", np.arange(300.0), np.arange(199.0))
    refused(UsageError, "one bandwidth", "usage.bandwidth_family", null="moments", bandwidth=[1, 2])
    refused(UsageError, "^min_effect must be positive", "usage.min_effect", min_effect=-1)
    for null in ("permutation", "moments"):
        degenerate = {"kernel": "gaussian(1e9)", "null": null}
        refused(UndecidedError, "finds all pairs of different rows", "undecided.degenerate_kernel", **degenerate)
    refused(DataError, "no column of x and y is left", "data.no_columns", np.zeros(300), np.zeros(300))


def test_what_takes_too_much_memory_is_refused():
    with compute_on(memory="230MB"):
        refused(UndecidedError, "the sums over blocks take", "undecided.memory", features="nystroem:600")
    with compute_on(memory="260MB", threads=2):
        assert mmd_test(*arrays(300, 300), **GAUSSIAN).provenance.threads == 1
    x, y = arrays(300, 300, p=60)
    with compute_on(memory="350MB"):
        refused(UndecidedError, "the sums over blocks take", "undecided.memory", x, y, kernel="gaussian(1.5)")
        assert mmd_test(x[:, :2], y[:, :2], **GAUSSIAN).n_x == 300


def test_one_relabelling_gives_one():
    found = mmd_test(*arrays(300, 300), **GAUSSIAN | {"permutations": 1})
    assert found.p_value == 1.0
    assert any("the smallest p-value that 1 relabelling can give is 1" in text for text in found.warnings)


def test_features_that_see_little_are_warned_of():
    found = mmd_test(*arrays(500, 500), **GAUSSIAN | {"kernel": "gaussian(0.05)"})
    assert any(text.startswith("the nystroem:30 features leave out ") for text in found.warnings)
    assert not mmd_test(*arrays(500, 500), **GAUSSIAN).warnings


def test_errors_are_those_of_rows_that_are_no_landmarks():
    options = GAUSSIAN | {"kernel": "gaussian(0.05)", "features": "nystroem:900", "permutations": 1}
    found = mmd_test(*arrays(1200, 1200), **options).approximation
    assert found.rows_sampled >= 1700
    assert found.matrix_error > 0.2


@pytest.mark.parametrize("kernel", ["linear", "x1, x2: linear"])
def test_a_linear_kernel_sees_columns_of_any_origin_and_unlike_spread(kernel):
    x, y = arrays(500, 400, shift=0.2)
    options = FEATURES | {"kernel": kernel, "scale": "none"}
    near = mmd_test(x, y, **options)
    origin = np.array([1e6, 0.0])
    far = mmd_test(x + origin, y + origin, **options)
    np.testing.assert_allclose(far.statistic, near.statistic, rtol=1e-6)
    np.testing.assert_allclose(far.statistic, mmd_test(x, y, kernel="linear", scale="none").statistic, rtol=1e-6)
    assert far.p_value == near.p_value


def test_a_linear_kernel_sees_columns_of_any_unit_where_the_sample_is_off_the_mean():
    x, y = arrays(2500, 2300, shift=0.2)
    found, tiny = (mmd_test(unit * x, unit * y, **FEATURES | {"kernel": "linear"}) for unit in (1.0, 1e-15))
    assert found.approximation.rows_sampled < 4800
    np.testing.assert_allclose(tiny.statistic, found.statistic, rtol=1e-6)
    assert tiny.p_value == found.p_value


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


def test_repeated_and_shared_rows_are_warned_of():
    x, y = arrays(400, 500)
    for first, second in ((np.repeat(x[:100], 4, axis=0), y), (x, np.concatenate([x[:300], y[:200]]))):
        warnings = mmd_test(first, second, **GAUSSIAN).warnings
        assert len(warnings) == 1
        assert warnings == mmd_test(first, second, kernel="gaussian(1.5)").warnings
    rng = np.random.default_rng(0)
    few, many = np.repeat(rng.normal(size=100), 40), rng.normal(size=4000)
    (warning,) = mmd_test(few, many, **GAUSSIAN).warnings
    assert warning.startswith(
        "x: 1,900 rows of 2,000 sampled ones repeat another row, so that a row is there 40 times on "
    )
    same = many[:2500]
    (warning,) = mmd_test(same, same, **GAUSSIAN).warnings
    assert warning.startswith("the files share rows: ")
    assert "% of 2,000 sampled rows of x are also among 2,000 of y; the samples are not independent" in warning
    coarse = np.random.default_rng(1).integers(0, 50, (2, 3000))
    assert not mmd_test(*coarse, **GAUSSIAN).warnings


def test_a_kernel_object_is_as_good_as_its_text():
    found, expected = (
        mmd_test(*arrays(300, 300), **GAUSSIAN | {"kernel": kernel})
        for kernel in (parse_kernel("gaussian(1.5)"), "gaussian(1.5)")
    )
    assert re.sub(r"0+\b", "", found.kernel) == re.sub(r"0+\b", "", expected.kernel)
    assert (found.statistic, found.p_value) == (expected.statistic, expected.p_value)
