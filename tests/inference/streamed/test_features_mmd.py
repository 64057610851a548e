"""The two-sample test by features: the same from everywhere, at its level, and with the power of the exact test."""

import json
import re

import numpy as np
import pytest
from tolerances import SAME_MACHINE, assert_close
from two_samples import arrays, frames

from kerntest import compute_on, mmd_test, parse_kernel
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.inference.streamed import block_sums, sources
from kerntest.report.summary import two_sample_notes, two_sample_summary

GAUSSIAN = {"kernel": "gaussian(1.5)", "features": "nystroem:30", "permutations": 200, "method": "features"}


def outcome(result):
    kernel = re.sub(r"[0-9.]+", lambda digits: f"{float(digits[0]):.10g}", result.kernel)
    return result.p_value, kernel, result.n_x, result.n_y, result.columns


@pytest.fixture
def large_blocks(monkeypatch):
    monkeypatch.setattr(block_sums, "BLOCKS", 50)
    monkeypatch.setattr(block_sums, "FEWEST_BLOCKS", 20)


@pytest.mark.usefixtures("large_blocks")
def test_the_same_result_from_everywhere(tmp_path, monkeypatch):
    x, y = frames(450, 400)
    x.to_csv(tmp_path / "x.csv", index=False)
    y.to_csv(tmp_path / "y.csv", index=False)
    x.to_parquet(tmp_path / "x.parquet", index=False, row_group_size=130)
    (tmp_path / "y").mkdir()
    y[:150].to_parquet(tmp_path / "y" / "a.parquet", index=False)
    y[150:].to_parquet(tmp_path / "y" / "b.parquet", index=False, row_group_size=90)
    options = {"method": "features", "features": "nystroem:40", "permutations": 200}
    expected = mmd_test(x, y, **options)
    assert expected.approximation.rows_per_block > 1
    monkeypatch.setattr(sources, "SMALL_BYTES", 0)
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", 4000)
    monkeypatch.setattr(sources, "PIECE_ROWS", 100)
    stored = tmp_path / "x.parquet", tmp_path / "y"
    results = [
        mmd_test(*inputs, threads=threads, **options)
        for inputs, threads in (((x, y), 3), ((tmp_path / "x.csv", tmp_path / "y.csv"), 3), (stored, 1), (stored, 3))
    ]
    assert_close(results[2].statistic, results[3].statistic, share=SAME_MACHINE)
    for result in results:
        assert outcome(result) == outcome(expected)
        for name in ("mmd2_unbiased", "mmd2_biased", "effect_size", "mmd_standard_error"):
            assert_close(getattr(result, name), getattr(expected, name))


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


def test_the_effect_and_its_error_do_not_depend_on_the_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)) + 0.3
    fine = mmd_test(x, y, **GAUSSIAN)
    monkeypatch.setattr(block_sums, "BLOCKS", 100)
    coarse = mmd_test(x, y, **GAUSSIAN)
    assert coarse.approximation.rows_per_block == 10 * fine.approximation.rows_per_block
    assert_close(coarse.mmd2_biased, fine.mmd2_biased)
    np.testing.assert_allclose(coarse.mmd2_unbiased, fine.mmd2_unbiased, rtol=0.02)
    np.testing.assert_allclose(coarse.effect_size, fine.effect_size, rtol=0.02)
    # The spread of 100 block means is known to a seventh.
    np.testing.assert_allclose(coarse.mmd_standard_error, fine.mmd_standard_error, rtol=0.3)


@pytest.mark.parametrize("null", ["moments", "gamma", "spectral", "pearson"])
@pytest.mark.usefixtures("large_blocks")
def test_curves_agree_with_many_permutations(null):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(1500, 2)), rng.normal(size=(1500, 2)) + 0.04
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


def test_rows_with_missing_values_can_be_dropped():
    x, y = arrays(400, 300)
    holed = np.concatenate([x, [[np.nan, 1.0]]])
    result = mmd_test(holed, y, missing="drop", **GAUSSIAN)
    assert outcome(result) == outcome(mmd_test(x, y, **GAUSSIAN))
    assert_close(result.statistic, mmd_test(x, y, **GAUSSIAN).statistic)
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
    lines = dict(two_sample_summary(result).lines)
    assert lines["features"].startswith("50 Nystroem landmarks; kernel values off by 0.0")
    assert two_sample_notes(result)
    exact = mmd_test(*arrays())
    assert (exact.method, exact.approximation) == ("exact", None)
    assert "features" not in dict(two_sample_summary(exact).lines)


def test_more_features_are_nearer_to_the_kernel():
    x, y = arrays(700, 700, p=3)
    for kind, sizes in (("nystroem", (10, 40, 160)), ("fourier", (50, 1600))):
        errors = [
            mmd_test(x, y, **GAUSSIAN | {"features": f"{kind}:{size}"}).approximation.kernel_error for size in sizes
        ]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < errors[0] / 4


def refused(error, message, code, *data, **options):
    with pytest.raises(error, match=message) as caught:
        mmd_test(*(data or arrays(300, 300)), method=options.pop("method", "features"), **options)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize(("option", "value"), [("explain", True), ("witness", "w.csv"), ("plot", "p.png")])
def test_what_needs_every_pair_is_refused(option, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(UsageError, f"^--{option} needs --method exact$", "usage.method", **{option: value})


def test_other_refusals():
    refused(UsageError, "^method must be exact or features, not 'feature'$", "usage.method", method="feature")
    refused(UsageError, "need method features", "usage.method", method="exact", features="nystroem:9")
    refused(UsageError, "^--resampling random needs --method exact$", "usage.method", resampling="random")
    refused(UsageError, "are no features", "usage.features", features="nystroem")
    refused(
        UsageError,
        "Fourier features are for kernels of differences",
        "usage.features",
        features="fourier:9",
        kernel="linear",
    )
    refused(DataError, "^y has 199 rows; .* at least 200", "data.too_few_rows", np.arange(300.0), np.arange(199.0))
    refused(UsageError, "one bandwidth", "usage.bandwidth_family", null="moments", bandwidth=[1, 2])
    refused(UsageError, "^min_effect must be positive", "usage.min_effect", min_effect=-1)
    refused(UndecidedError, "finds all pairs of different rows", "undecided.degenerate_kernel", kernel="gaussian(1e9)")
    refused(
        UndecidedError,
        "finds all pairs of different rows",
        "undecided.degenerate_kernel",
        kernel="gaussian(1e9)",
        null="moments",
    )
    refused(DataError, "no column of x and y is left", "data.no_columns", np.zeros(300), np.zeros(300))
    with compute_on(memory="230MB"):
        refused(UndecidedError, "the sums over blocks take", "undecided.memory", features="nystroem:600")
    with compute_on(memory="260MB", threads=2):
        assert mmd_test(*arrays(300, 300), **GAUSSIAN).provenance.threads == 1


def test_a_warning_where_rows_beyond_blocks_do_not_count(monkeypatch):
    monkeypatch.setattr(block_sums, "MOST_BLOCKS", 100)
    x, y = arrays(5000, 220)
    result = mmd_test(x, y, **GAUSSIAN | {"null": "moments"})
    assert any("the moments null looks at whole blocks" in text for text in result.warnings)


def test_a_kernel_object_is_as_good_as_its_text():
    data = arrays(300, 300)
    assert outcome(mmd_test(*data, **GAUSSIAN | {"kernel": parse_kernel("gaussian(1.5)")})) == outcome(
        mmd_test(*data, **GAUSSIAN)
    )
