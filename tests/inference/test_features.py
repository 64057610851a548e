"""Both tests by features: what the exact test says, at its level, refused or warned of where that is due."""

import numpy as np
import pandas as pd
import pytest
from records import assert_same, numbers
from tolerances import assert_close
from two_samples import arrays, frames
from two_variables import columns_of

from kerntest import compute_on, hsic_test, mmd_test
from kerntest.errors import DataError, UndecidedError, UsageError

FEATURES = {"method": "features", "features": "nystroem:30", "permutations": 200, "threads": 1}
GAUSSIAN = FEATURES | {"kernel": "gaussian(1.5)"}


def long_frame(n=3000, seed=0, strength=0.2):
    rng = np.random.default_rng(seed)
    x, other = rng.normal(size=(n, 2)), rng.normal(size=n)
    names = rng.choice(["u", "v", "w"], n)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": other + strength * x[:, 0] ** 2, "s": names})


def of_pair(n=500, seed=0, **options):
    """Return an independence test by features of two columns against a number and a text."""
    return hsic_test(long_frame(n, seed), x_columns="a,b", **FEATURES | options)


def said(result, words):
    return [text for text in result.warnings if words in text]


# Agreement


MIXED = "price: gaussian(1); weight: laplacian(2); city, new: hamming(1)"


@pytest.mark.parametrize(
    ("data", "kernel", "features", "rows_per_block", "shares"),
    [
        (frames(260, 240), MIXED, "nystroem:500", 1, (1e-4, 1e-4, 1e-4, 0.02)),
        # The spread of some 1,200 block means is known to a twentieth.
        (arrays(2500, 2300, shift=0.3), "gaussian(1.5)", None, 4, (1e-4, 0.01, 0.02, 0.15)),
    ],
)
def test_estimates_are_those_of_the_exact_test(data, kernel, features, rows_per_block, shares):
    exact, found = (
        mmd_test(*data, kernel=kernel, permutations=300, **more)
        for more in ({}, {"method": "features", "features": features})
    )
    assert found.approximation.rows_per_block == rows_per_block
    names = ("mmd2_biased", "mmd2_unbiased", "effect_size", "mmd_standard_error")
    for name, share in zip(names, shares, strict=True):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=share)
    np.testing.assert_allclose(found.null.standard_deviation, exact.null.standard_deviation, rtol=0.2)


def test_a_dependence_is_found_by_few_features():
    found = hsic_test(long_frame(2200, strength=0.5), x_columns="a,b", method="features")
    assert found.p_value < 1e-4
    assert 10 < found.approximation.number_x < 200
    assert found.approximation.matrix_error_y < 0.02


def test_neither_threads_nor_the_names_of_the_sides_change_the_result():
    one, more = (of_pair(900, y_columns="c,s", threads=threads) for threads in (1, 2))
    turned = hsic_test(long_frame(900), x_columns="c,s", y_columns="a,b", **FEATURES)
    assert_same(numbers(more), numbers(one))
    assert_close(turned.statistic, one.statistic)
    assert turned.p_value == pytest.approx(one.p_value, rel=1e-6)
    assert (turned.kernel_x, turned.kernel_y) == (one.kernel_y, one.kernel_x)


def test_paired_tables_are_one():
    data = long_frame(500)
    found = hsic_test(data[["a", "b"]].to_numpy(), data["c"].to_numpy(), **FEATURES)
    together = hsic_test(columns_of(data[["a", "b"]].to_numpy(), data[["c"]].to_numpy()), y_columns="y1", **FEATURES)
    assert_close(found.statistic, together.statistic)
    assert found.columns_x == ("x1", "x2")
    found = hsic_test(data[["a", "c"]], data[["c"]], **FEATURES)
    assert (found.columns, found.reject) == (("a", "c of x", "c of y"), True)


def test_a_smallest_effect():
    x, y = arrays(500, 500, shift=0.5)
    exact, found = (mmd_test(x, y, min_effect=0.05, method=method).minimum_effect for method in ("exact", "features"))
    assert found.reached
    assert found.kernel.startswith("gaussian(")
    np.testing.assert_allclose(found.mmd, exact.mmd, rtol=0.04)
    np.testing.assert_allclose(found.lower_bound, exact.lower_bound, rtol=0.1)
    assert not mmd_test(x, y, min_effect=1.0, **GAUSSIAN).reject


@pytest.mark.parametrize("kernel", ["linear", "x1, x2: linear"])
def test_a_linear_kernel_sees_columns_of_any_origin_spread_and_unit(kernel):
    # Of more rows than are sampled, whose mean the sample is off, too.
    for rows in ((500, 400), (2500, 2300)):
        x, y = arrays(*rows, shift=0.2)
        for scale, unit, origin in (("none", 1.0, [1e6, 0.0]), ("standardize", 1e-15, 0.0)):
            options = FEATURES | {"kernel": kernel, "scale": scale}
            near, far = mmd_test(x, y, **options), mmd_test(unit * x + origin, unit * y + origin, **options)
            np.testing.assert_allclose(far.statistic, near.statistic, rtol=1e-6)
            assert far.p_value == near.p_value
    np.testing.assert_allclose(near.mmd2_biased, mmd_test(x, y, kernel="linear").mmd2_biased, rtol=1e-6)
    near, far = (
        hsic_test(
            long_frame(500).assign(a=lambda frame, by=origin: frame["a"] + by), x_columns="a,b", **FEATURES | more
        )
        for more in ({"kernel_x": "linear", "scale": "none"},)
        for origin in (0.0, 1e6)
    )
    np.testing.assert_allclose(far.statistic, near.statistic, rtol=1e-6)


def kinds_of_tables(which):
    """Return tables under which several kernels see about as much, with and without rows that are equal."""
    rng = np.random.default_rng(3)
    if which == "counts":
        return [
            pd.DataFrame(rng.poisson(mean, size=(3000, 2)), columns=list("ab")).astype(float) for mean in (2.0, 2.3)
        ]
    waits = [pd.DataFrame(rng.gamma(shape, size=(4000, 3)), columns=list("abc")) for shape in (2.0, 2.15)]
    if which == "texts":
        return [frame.assign(city=rng.choice(list("uvw"), 4000)) for frame in waits]
    if which == "zeros":
        return [frame.mul(rng.random(4000) < 0.6, axis=0) for frame in waits]
    return waits


@pytest.mark.parametrize(
    ("which", "orders"),
    [
        ("waits", 2),
        ("counts", 2),
        *(pytest.param(which, 4, marks=pytest.mark.thorough) for which in ("waits", "counts", "zeros", "texts")),
    ],
)
def test_rows_and_columns_stand_in_any_order_and_units(which, orders):
    """What is shown moves by less than its error, and is of one kernel."""
    x, y = kinds_of_tables(which)
    expected = mmd_test(x, y, method="features", threads=1)
    error = 2 * expected.mmd * expected.mmd_standard_error
    for seed in range(orders):
        moved = [frame.sample(frac=1, random_state=seed + place)[x.columns[::-1]] for place, frame in enumerate((x, y))]
        # No power of two: all digits change.
        moved = [frame.assign(a=frame["a"] * 1000 + 7) for frame in moved][:: 1 if seed % 2 else -1]
        found = mmd_test(*moved, method="features", threads=1)
        np.testing.assert_allclose(found.statistic, expected.statistic, rtol=0, atol=0.2 * error)
        np.testing.assert_allclose(found.effect_size, expected.effect_size, rtol=0.05)
        assert found.kernel.count("laplacian") == expected.kernel.count("laplacian")


# The level


@pytest.mark.usefixtures("without_shifts")
@pytest.mark.parametrize(
    ("tests", "alpha", "sizes", "order", "most"),
    [
        (24, 0.25, (500, 400), np.sort, 14),
        pytest.param(100, 0.1, (3000, 2400), np.array, 22, marks=pytest.mark.thorough),
        pytest.param(100, 0.1, (3000, 2400), np.sort, 22, marks=pytest.mark.thorough),
        pytest.param(60, 0.1, (20_000, 205), np.array, 15, marks=pytest.mark.thorough),
    ],
)
def test_the_level_is_kept(tests, alpha, sizes, order, most):
    rng, found = np.random.default_rng(1), 0
    for seed in range(tests):
        data = [order(rng.normal(size=n)) for n in sizes]
        found += mmd_test(*data, **GAUSSIAN | {"features": "nystroem:20", "alpha": alpha, "seed": seed}).reject
    # Binomial(24, 0.25): outside of 1 to 14 twice in 1,000; (100, 0.1): of 1 to 22 once in 5,000; (60, 0.1): more than 15
    # once in 2,000.
    assert 1 <= found <= most


@pytest.mark.parametrize("tests", [25, pytest.param(100, marks=pytest.mark.thorough)])
def test_the_level_of_independence_holds_in_sorted_files_too(tests):
    """Rows are sorted by a mixture of both sides."""
    p = []
    for seed in range(tests):
        x, y = np.random.default_rng((7, seed)).normal(size=(2, 200))
        order = np.argsort(x + y)
        options = FEATURES | {"features": "nystroem:8", "alpha": 0.1, "seed": seed}
        p.append(hsic_test(columns_of(x[order, None], y[order, None]), **options).p_value)
    # Five standard errors of a share, and of a mean of uniform numbers.
    assert np.mean(np.array(p) <= 0.1) <= 0.1 + 5 * np.sqrt(0.09 / tests)
    assert abs(np.mean(p) - 0.5) < 5 * np.sqrt(1 / 12 / tests)
    assert min(p) > 1e-6


# Features


def test_rows_of_the_longer_file_beyond_the_blocks_stay_in_it():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(20_000, 1)), rng.normal(size=(205, 1))
    permuted, by_curve = (mmd_test(x, y, **GAUSSIAN, null=null) for null in ("permutation", "moments"))
    found = permuted.approximation
    assert (found.rows_per_block, found.blocks, found.fixed_rows) == (4, 2051, 12_001)
    assert said(by_curve, "the moments null looks at whole blocks: 12,001 rows")


def test_there_are_as_many_features_as_were_asked_for_and_no_row_is_a_landmark_twice():
    found = mmd_test(*arrays(1200, 1200), **GAUSSIAN | {"features": "nystroem:1300"}).approximation
    assert (found.number, found.rows_sampled) == (1300, 2100)
    for asked, number in {"nystroem:1000": 600, " Fourier:9": 8}.items():
        found = mmd_test(*arrays(300, 300), **GAUSSIAN | {"features": asked}).approximation
        assert (found.number, found.features) == (number, asked.strip().lower())
    rng, options = np.random.default_rng(0), FEATURES | {"features": "nystroem:100"}
    x, y = (pd.DataFrame({"level": rng.integers(0, 60, 2000).astype(str)}) for _ in "xy")
    pair = hsic_test(x.assign(other=rng.normal(size=2000)), x_columns="level", kernel_x="delta", **options)
    x.loc[::100, "level"] = "rare"
    found = mmd_test(x, y, **options | {"kernel": "delta"}).approximation
    assert (pair.approximation.number_x, found.number) == (60, 61)
    assert max(found.matrix_error, pair.approximation.matrix_error_x) < 1e-9


@pytest.mark.parametrize(
    "kernel",
    ["gaussian(1.5)", "laplacian(2)", "laplacian2(2)", "matern(1.5)", "student-t(2)", "rational-quadratic(1, alpha=2)"],
)
def test_random_waves_average_to_the_kernel(kernel):
    x, y = arrays(300, 300, p=3)
    found = mmd_test(x, y, **FEATURES | {"kernel": kernel, "features": "fourier:2000", "permutations": 1})
    # 1,000 frequencies: a standard error of at most 1 / sqrt(2,000) for each pair.
    assert found.approximation.kernel_error < 0.03
    np.testing.assert_allclose(found.mmd2_unbiased, mmd_test(x, y, kernel=kernel).mmd2_unbiased, rtol=0.2)


def test_errors_are_those_of_rows_that_had_no_say_in_the_features():
    """On landmarks the features lack nothing."""
    narrow = {"kernel": "gaussian(0.05)", "features": "nystroem:900", "permutations": 1}
    found = mmd_test(*arrays(1200, 1200), **FEATURES | narrow).approximation
    assert found.rows_sampled >= 1700
    assert found.matrix_error > 0.2
    narrow = {"kernel_x": "gaussian(0.05)", "kernel_y": "linear", "features": "nystroem:1000", "y_columns": "c"}
    found = of_pair(2600, **narrow).approximation
    assert found.rows_sampled == 2000
    assert found.matrix_error_x > 0.2


# Warnings and refusals


def test_rows_with_missing_values_can_be_dropped():
    x, y = arrays(400, 300)
    holed = np.concatenate([x, [[np.nan, 1.0]]])
    result, whole = (mmd_test(holed, y, missing="drop", **GAUSSIAN), mmd_test(x, y, **GAUSSIAN))
    assert (result.n_x, result.p_value) == (400, whole.p_value)
    assert not any("missing" in text for text in result.warnings)
    lost = mmd_test(np.concatenate([x, np.full((60, 2), np.nan)]), y, missing="drop", **GAUSSIAN).warnings[0]
    assert lost == "x: 60 rows of 460 with missing values left out; exclude='x1' keeps more of them"
    # All rows are landmarks, in another order.
    options = FEATURES | {"x_columns": "a,b", "features": "nystroem:400", "missing": "drop"}
    holes = long_frame(450)
    holes.loc[::9, "a"] = np.nan
    found, fewer = hsic_test(holes, **options), hsic_test(holes.dropna(), **options)
    assert found.n == fewer.n == 400
    assert found.hsic_biased == pytest.approx(fewer.hsic_biased, rel=1e-4)
    assert said(found, "50 rows of 450")
    with pytest.raises(DataError, match="missing"):
        hsic_test(holes, **options | {"missing": "error"})


def test_what_misleads_is_warned_of():
    one, narrow, plain = (
        mmd_test(*arrays(500, 500), **GAUSSIAN | more)
        for more in ({"permutations": 1}, {"kernel": "gaussian(0.05)"}, {})
    )
    assert (one.p_value, plain.warnings) == (1.0, ())
    assert said(one, "the smallest p-value that 1 relabelling can give is 1")
    assert said(narrow, "the nystroem:30 features leave out ")
    assert said(of_pair(kernel_x="gaussian(0.05)"), "x: the features leave out ")
    walk = np.cumsum(np.random.default_rng(0).normal(size=(500, 2)), axis=0)
    assert said(hsic_test(walk, **FEATURES), "neighbouring rows are alike")


def test_repeated_and_shared_rows_are_warned_of():
    x, y = arrays(400, 500)
    for first, second in ((np.repeat(x[:100], 4, axis=0), y), (x, np.concatenate([x[:300], y[:200]]))):
        (warning,) = mmd_test(first, second, **GAUSSIAN).warnings
        assert warning in mmd_test(first, second, kernel="gaussian(1.5)").warnings
    rng = np.random.default_rng(0)
    few, many = np.repeat(rng.normal(size=100), 40), rng.normal(size=4000)
    (warning,) = mmd_test(few, many, **GAUSSIAN).warnings
    told = "x: 1,900 rows of 2,000 sampled ones repeat another row, so that a row is there 40 times on "
    assert warning.startswith(told)
    (warning,) = mmd_test(many[:2500], many[:2500], **GAUSSIAN).warnings
    assert warning.startswith("the files share rows: ")
    assert "% of 2,000 sampled rows of x are also among 2,000 of y; the samples are not independent" in warning
    assert not mmd_test(*rng.integers(0, 50, (2, 3000)), **GAUSSIAN).warnings
    x, y = np.repeat(rng.normal(size=(2, 150)), 20, axis=1)[:, rng.permutation(3000)]
    assert said(hsic_test(x[:600], y[:600], **FEATURES), "repeat") == said(hsic_test(x[:600], y[:600]), "repeat")
    # Of so many rows a sample holds few copies, and they tell how many there are of each.
    (found,) = said(hsic_test(*np.tile(rng.normal(size=(2, 3000)), (1, 36)), **FEATURES), "repeat another row")
    assert 25 < float(found.split("is there ")[1].split(" times")[0]) < 50
    assert not hsic_test(*rng.normal(size=(2, 3000)), **FEATURES).warnings


def of_samples(**options):
    return mmd_test(**{"x": np.arange(300.0), "y": np.arange(300.0) + 0.5} | FEATURES | options)


INDEFINITE = "polynomial(3, 1, -2)"
ONE_VALUE = (UndecidedError, "finds all pairs of different rows", "undecided.degenerate_kernel")


@pytest.mark.parametrize(
    ("test", "options", "kind", "message", "code"),
    [
        (
            of_samples,
            {"method": "feature"},
            UsageError,
            "^method must be auto or exact or features, not",
            "usage.method",
        ),
        (of_samples, {"method": "exact"}, UsageError, "^features 'nystroem:30' need method features$", "usage.method"),
        (of_samples, {"features": "nystroem"}, UsageError, "are no features", "usage.features"),
        (of_samples, {"features": "fourier:9", "kernel": "linear"}, UsageError, "of differences", "usage.features"),
        (of_samples, {"kernel": INDEFINITE}, UsageError, "is not positive definite: no features", "usage.features"),
        (of_samples, {"y": np.arange(199.0)}, DataError, "^y has 199 rows; .* at least 200", "data.too_few_rows"),
        (of_samples, {"null": "moments", "bandwidth": [1, 2]}, UsageError, "one bandwidth", "usage.bandwidth_family"),
        (of_samples, {"min_effect": -1}, UsageError, "^min_effect must be positive", "usage.min_effect"),
        (of_samples, {"kernel": "gaussian(1e9)"}, *ONE_VALUE),
        (of_samples, {"kernel": "gaussian(1e9)", "permutations": 1}, *ONE_VALUE),
        (of_samples, {"kernel": "gaussian(1e9)", "null": "moments"}, *ONE_VALUE),
        (of_samples, {"x": np.zeros(300), "y": np.zeros(300)}, DataError, "x and y is left", "data.no_columns"),
        (of_pair, {"kernel_y": INDEFINITE, "y_columns": "c"}, UsageError, "positive definite", "usage.features"),
        (of_pair, {"n": 3}, DataError, "needs at least 4", "data.too_few_rows"),
        (of_pair, {"kernel_x": "gaussian(1e9)"}, UndecidedError, "one value", "undecided.degenerate_kernel"),
    ],
)
def test_what_cannot_be_is_refused(test, options, kind, message, code):
    with pytest.raises(kind, match=message) as caught:
        test(**options)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    ("test", "option", "value"),
    [
        *(
            (test, option, f"a.{kind}")
            for test in (of_samples, of_pair)
            for option, kind in (("plot=", "png"), ("witness=", "csv"))
        ),
        *((test, "resampling='random'", "random") for test in (of_samples, of_pair)),
        (of_samples, "explain=True", True),
        (of_pair, "time_series=True", True),
        (of_pair, "statistic='coco'", "coco"),
        (of_pair, "min_lag=", 3),
        (of_pair, "null='pearson'", "pearson"),
        (of_pair, "null='permutation'", "permutation"),
        (of_pair, "bandwidth= of several values", (1.0, 2.0)),
    ],
)
def test_what_features_do_not_have_is_refused(test, option, value):
    with pytest.raises(UsageError, match=f"^{option} needs method='exact'$") as caught:
        test(**{option.partition("=")[0]: value})
    assert "null" not in option or caught.value.hint.endswith("moments, gamma, spectral")


def test_two_files_of_one_pair_are_refused(tmp_path):
    long_frame(100).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(UsageError, match=r"^method='features' reads one file with the columns of both sides$"):
        hsic_test(tmp_path / "a.csv", tmp_path / "a.csv", **FEATURES)


def test_what_takes_too_much_memory_is_refused():
    wide = arrays(300, 300, p=60)
    for limit, data, options in (("200MB", arrays(300, 300), {"features": "nystroem:600"}), ("330MB", wide, {})):
        with compute_on(memory=limit), pytest.raises(UndecidedError, match="the sums of features take") as caught:
            mmd_test(*data, **{"method": "features", "kernel": "gaussian(1.5)"} | options)
        assert caught.value.code == "undecided.memory"
    with compute_on(memory="240MB", threads=2):
        assert mmd_test(*arrays(300, 300), **GAUSSIAN | {"threads": None}).provenance.threads == 1
