"""Which kernels a test uses."""

import numpy as np
import pytest
from tolerances import assert_close

from kerntest.errors import UsageError
from kerntest.inference import family as families
from kerntest.inference.family import check_bandwidth, choose_kernels
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Points
from kerntest.kernels.stationary import Gaussian, Laplacian

NUMERIC, CATEGORIES = ("price", "weight"), ("city", "shop")


def points_of(p=2, q=0, n=80):
    rng = np.random.default_rng(0)
    return Points(rng.normal(size=(n, p)), rng.integers(0, 3, size=(n, q)))


def choose(kernel, bandwidth="auto", *, p=2, q=0, single=False, most=None):
    chooser = BandwidthChooser(points_of(p, q), 0)
    return choose_kernels(
        kernel,
        bandwidth,
        numeric_names=NUMERIC[:p],
        category_names=CATEGORIES[:q],
        chooser=chooser,
        single=single,
        most=most,
    )


def median(p=2, q=0, metric="euclidean"):
    return BandwidthChooser(points_of(p, q), 0).median(metric, None)


def test_auto_is_gaussian_and_laplacian_on_a_grid_by_factors_of_two():
    family = choose("auto")
    assert {type(kernel) for kernel in family.kernels} == {Gaussian, Laplacian}
    for kind, metric in ((Gaussian, "euclidean"), (Laplacian, "manhattan")):
        found = np.array([kernel.bandwidth for kernel in family.kernels if isinstance(kernel, kind)])
        exponents = np.log2(found / median(metric=metric))
        assert_close(exponents, np.arange(len(found)) + round(exponents[0]), scale=1.0)
        assert exponents[0] < 0 < exponents[-1]
    assert family.rule == "geometric grid by factors of 2 around the median"
    assert family.thinning.startswith("80 rows: every bandwidth of the grid")


def test_auto_gives_categories_a_bandwidth_of_their_own():
    family = choose("auto", q=2)
    texts = [str(kernel) for kernel in family.kernels]
    assert all(text.startswith("price, weight: ") and "; city, shop: hamming(" in text for text in texts)
    assert len(set(texts)) == len(texts) > 3
    only = choose("auto", p=0, q=2)
    assert all(str(kernel).startswith("hamming(") for kernel in only.kernels)


def test_auto_with_a_null_for_one_kernel_is_the_gaussian_at_the_median():
    family = choose("auto", single=True)
    assert family.kernels == (Gaussian(median()),)
    assert family.rule == "median heuristic"
    assert family.thinning == ""


def test_the_median_of_each_kernel_is_in_its_own_distance():
    assert choose("laplacian", "median").kernels == (Laplacian(median(metric="manhattan")),)
    both = choose("gaussian + laplacian", "median").kernels[0]
    assert both == Gaussian(median()) + Laplacian(median(metric="manhattan"))


def test_a_family_name_gets_a_grid():
    assert {type(kernel) for kernel in choose("laplacian").kernels} == {Laplacian}
    assert len(choose("laplacian").kernels) > 2
    assert choose(Laplacian()).kernels == choose("laplacian").kernels


@pytest.mark.parametrize("numbers", [(0.5, 1, 2), [0.5, 1, 2], np.array([0.5, 1.0, 2.0])])
def test_several_numbers(numbers):
    family = choose("gaussian", numbers)
    assert family.kernels == (Gaussian(0.5), Gaussian(1), Gaussian(2))
    assert family.rule == "as given: 0.5, 1, 2"


@pytest.mark.parametrize("number", [2, 2.0, np.float64(2), np.int64(2), [2.0]])
def test_one_number(number):
    assert choose("gaussian", number).kernels == (Gaussian(2),)
    assert choose("gaussian", number, single=True).kernels == (Gaussian(2),)


def test_a_number_is_for_the_numeric_columns_where_there_are_any():
    (kernel,) = choose("gaussian", 2.0, q=2).kernels
    hamming = BandwidthChooser(points_of(2, 2), 0)
    groups = dict(zip(("numbers", "categories"), kernel.groups, strict=True))
    assert str(groups["numbers"]) == "price, weight: gaussian(2)"
    columns = groups["categories"].kernel.columns
    assert groups["categories"].kernel.kernel.bandwidth == hamming.median("mismatches", columns)
    (alone,) = choose("hamming", 2.0, p=0, q=2).kernels
    assert str(alone) == "hamming(2)"


def test_a_fixed_kernel_stays_as_it_is():
    family = choose("price: gaussian(3)")
    assert [str(kernel) for kernel in family.kernels] == ["price: gaussian(3)"]
    assert family.unused == ("weight",)
    assert family.rule == "in the kernel"


@pytest.mark.parametrize("kernel", ["gaussian(1.5)", "linear", "polynomial(2) + delta", Gaussian(2)])
@pytest.mark.parametrize("bandwidth", [1.0, "median", [1.0, 2.0]])
def test_a_bandwidth_beside_a_fixed_kernel_is_refused(kernel, bandwidth):
    with pytest.raises(UsageError, match=r"--bandwidth has nothing to set$") as caught:
        choose(kernel, bandwidth)
    assert caught.value.code == "usage.bandwidth_twice"
    assert caught.value.exit_code == 2


def test_several_bandwidths_need_a_null_that_judges_families():
    with pytest.raises(UsageError, match=r"^this null judges one kernel: give one bandwidth$") as caught:
        choose("gaussian", [1.0, 2.0], single=True)
    assert caught.value.code == "usage.bandwidth_family"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("bandwidth", "message"),
    [
        ("medain", "'medain' is no bandwidth"),
        ("3", "'3' is no bandwidth"),
        (0, "a bandwidth must be positive and finite, not 0"),
        (-1.5, "a bandwidth must be positive and finite, not -1.5"),
        (float("nan"), "a bandwidth must be positive and finite, not nan"),
        (float("inf"), "a bandwidth must be positive and finite, not inf"),
        ([1.0, -2.0], "a bandwidth must be positive and finite, not -2.0"),
        ([1.0, "x"], "a bandwidth must be positive and finite, not x"),
        (None, "a bandwidth must be positive and finite, not None"),
        ([], "no bandwidth was given"),
        (np.array([]), "no bandwidth was given"),
    ],
)
def test_what_is_no_bandwidth(bandwidth, message):
    with pytest.raises(UsageError, match=f"^{message}$") as caught:
        check_bandwidth(bandwidth)
    assert caught.value.code == "usage.bandwidth"
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_a_mistyped_rule_has_a_suggestion():
    with pytest.raises(UsageError, match="no bandwidth") as caught:
        check_bandwidth("medain")
    assert caught.value.hint == "did you mean 'median'?"


def test_equal_members_are_one():
    chooser = BandwidthChooser(Points.of(np.repeat([0.0, 1.0], 10)), 0)
    kernels = choose_kernels(
        "auto", "auto", numeric_names=("a",), category_names=(), chooser=chooser, single=False
    ).kernels
    assert len(set(kernels)) == len(kernels)


@pytest.mark.parametrize(
    ("limit", "most", "expected"), [(4, None, 4), (2, None, 2), (None, 2, 2), (4, 2, 2), (2, 4, 2)]
)
def test_large_data_thin_the_grid(limit, most, expected, monkeypatch):
    monkeypatch.setattr(families, "THINNING", ((10, None), (None, limit)))
    family = choose("auto", most=most)
    for kind in (Gaussian, Laplacian):
        assert sum(isinstance(kernel, kind) for kernel in family.kernels) == expected
    assert family.rule.endswith(f"thinned to {expected} a kernel")
    assert family.thinning.startswith(f"80 rows: at most {expected} bandwidths a kernel")


def test_a_thinned_grid_leaves_out_its_ends():
    assert families._thinned([-3, -2, -1, 0, 1, 2, 3], 2) == [-2, 2]
    assert families._thinned([-3, -2, -1, 0, 1, 2, 3], 4) == [-3, -1, 1, 3]
    assert families._thinned([-1, 0, 1], None) == [-1, 0, 1]
    assert families._thinned([-1, 0, 1], 4) == [-1, 0, 1]
