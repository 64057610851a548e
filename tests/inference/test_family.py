"""Which kernels a test uses."""

import numpy as np
import pytest
from tolerances import assert_close

from kerntest import hsic_test
from kerntest.errors import UsageError
from kerntest.inference import family as module
from kerntest.inference.family import KernelChooser
from kerntest.inference.sides import Variable
from kerntest.kernels.algebra import AdditiveSum
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Additive, Gaussian, Laplacian
from kerntest.kernels.text import bind, is_additive

NUMERIC, CATEGORIES = ("price", "weight", "size"), ("city", "shop")


def points_of(p=2, q=0, n=80):
    rng = np.random.default_rng(0)
    return Points(rng.normal(size=(n, p)), rng.integers(0, 3, size=(n, q)))


def choose(kernel, bandwidth="auto", *, p=2, q=0, single=False, **options):
    chooser = KernelChooser(variable_of(points_of(p, q), NUMERIC[:p], CATEGORIES[:q]), 0, **options)
    return chooser.family(kernel, bandwidth, single=single)


def variable_of(points, numeric_names, category_names=()):
    return Variable(points, np.empty(0), np.empty(0), numeric_names, category_names)


def median(p=2, q=0, metric="euclidean"):
    return BandwidthChooser(points_of(p, q), 0).median(metric, None)


def exponents_of(family, kind, metric="euclidean"):
    found = np.array([kernel.bandwidth for kernel in family.kernels if isinstance(kernel, kind)])
    return np.log2(found / median(metric=metric))


def test_auto_of_two_columns_is_gaussian_and_laplacian_from_wide_to_half_the_5_percent_quantile():
    family = choose("auto")
    assert {type(kernel) for kernel in family.kernels} == {Gaussian, Laplacian}
    for kind, metric in ((Gaussian, "euclidean"), (Laplacian, "manhattan")):
        found = exponents_of(family, kind, metric)
        assert_close(found, 1 - np.arange(len(found)), scale=1.0)
        low = BandwidthChooser(points_of(), 0).distances(metric, None).low
        finest = median(metric=metric) * 2.0 ** found[-1]
        assert low / 4 < finest <= low / 2
    assert family.rule == "geometric grid by factors of 2 around the median"
    assert family.thinning == "every bandwidth, however many rows"


def test_auto_of_three_columns_reaches_wider_and_has_additive_members_in_units_of_each_column():
    family = choose("auto", p=3)
    texts = [str(kernel) for kernel in family.kernels]
    widest = median(p=3) * 8
    assert_close(family.kernels[0].bandwidth, widest)
    assert [type(kernel) for kernel in family.kernels].count(AdditiveSum) == 4
    assert is_additive(family.kernels[-1])
    chooser = BandwidthChooser(points_of(3), 0)
    medians = [chooser.median("euclidean", Columns((place,), ())) for place in range(3)]
    for kernel, exponent in zip(family.kernels[-4:], (3, 2, 0, -2), strict=True):
        assert_close([term.kernel.bandwidth for term in kernel.operands], 2.0**exponent * np.array(medians))
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(("relabellings", "members"), [(6, 1), (20, 2), (70, 7), (1000, None)])
def test_a_family_has_no_more_members_than_its_relabellings_carry(relabellings, members):
    family, whole = choose("auto", p=3, relabellings=relabellings), choose("auto", p=3)
    assert len(family.kernels) == (members or len(whole.kernels))
    assert set(family.kernels) <= set(whole.kernels)
    if members:
        assert Gaussian(median(p=3)) in family.kernels
        assert f"at most {members}: one for each ten relabellings" in family.thinning


@pytest.mark.parametrize(("permutations", "members"), [(20, 2), (59, 5)])
def test_pairs_are_no_more_than_their_relabellings_carry(permutations, members):
    x, y = np.random.default_rng(0).normal(size=(2, 20))
    found = hsic_test(x, y, permutations=permutations).family
    assert len(found.members) == members
    assert f"at most {members}: one for each ten relabellings" in found.thinning


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("number", [2, 2.0, np.float64(2), np.int64(2), [2.0]])
def test_one_number(number, single):
    assert choose("gaussian", number, single=single).kernels == (Gaussian(2),)


@pytest.mark.parametrize("numbers", [(0.5, 1, 2), [0.5, 1, 2], np.array([0.5, 1.0, 2.0])])
def test_several_numbers_need_a_null_that_judges_families(numbers):
    family = choose("gaussian", numbers)
    assert family.kernels == (Gaussian(0.5), Gaussian(1), Gaussian(2))
    assert family.rule == "as given: 0.5, 1, 2"
    with pytest.raises(UsageError, match=r"^this null judges one kernel: give one bandwidth$") as caught:
        choose("gaussian", numbers, single=True)
    assert (caught.value.code, caught.value.exit_code) == ("usage.bandwidth_family", 2)


def test_a_number_is_for_the_numeric_columns_where_there_are_any():
    (kernel,) = choose("gaussian", 2.0, q=2).kernels
    hamming = BandwidthChooser(points_of(2, 2), 0)
    groups = dict(zip(("numbers", "categories"), kernel.parts, strict=True))
    assert str(groups["numbers"]) == "price, weight: gaussian(2)"
    columns = groups["categories"].columns
    assert groups["categories"].kernel.bandwidth == hamming.median("mismatches", columns)
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
    with pytest.raises(UsageError, match=r"bandwidth= has nothing to set$") as caught:
        choose(kernel, bandwidth)
    assert caught.value.code == "usage.bandwidth_twice"
    assert caught.value.exit_code == 2


def test_pairs_have_three_bandwidths_a_kernel_and_fewer_of_many_rows(monkeypatch):
    chooser = BandwidthChooser(points_of(1), 0)
    assert module.independence_exponents(Gaussian(), chooser) == [1, -1, -3]
    assert module.independence_exponents(Laplacian(), chooser)[0] == 1
    assert len(module.independence_exponents(Laplacian(), chooser)) == 3
    monkeypatch.setattr(module, "THINNING", ((10, (3, 3, 3)), (np.inf, (2, 1, 1))))
    assert module.independence_exponents(Gaussian(), chooser) == [1, -3]
    assert len(module.independence_exponents(Laplacian(), chooser)) == 1
    many = BandwidthChooser(points_of(3), 0)
    bound = bind(Additive(), NUMERIC, ()).kernel
    assert module.independence_exponents(bound, many) == [0]
