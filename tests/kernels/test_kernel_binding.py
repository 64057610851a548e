"""Which columns the parts of a kernel see."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerntest.errors import UsageError
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.columns import BoundGroups, bind
from kerntest.kernels.discrete import Delta, Hamming
from kerntest.kernels.stationary import Gaussian
from kerntest.kernels.text import parse_kernel

NUMERIC, CATEGORIES = ["price", "weight", "temp_in", "temp_out"], ["city", "shop"]


def bound(text, numeric=NUMERIC, categories=CATEGORIES):
    return bind(parse_kernel(text), numeric, categories)


MIXED = [
    ("gaussian(2)", "price, weight, temp_in, temp_out: gaussian(2); city, shop: hamming", ()),
    ("delta", "price, weight, temp_in, temp_out: gaussian; city, shop: delta", ()),
    ("gaussian(2)*delta", "price, weight, temp_in, temp_out, city, shop: gaussian(2)*delta", ()),
    ("price, weight: gaussian(1.5); city: hamming(0.8)", None, ("temp_in", "temp_out", "shop")),
    ("shop: delta; weight, price: linear", "shop: delta; price, weight: linear", ("temp_in", "temp_out", "city")),
    ("temp_*: laplacian; price: linear", "temp_in, temp_out: laplacian; price: linear", ("weight", "city", "shop")),
    ("price: linear; *: laplacian", "price: linear; weight, temp_in, temp_out: laplacian; city, shop: hamming", ()),
    ("price, city: linear", "price: linear; city: hamming", ("weight", "temp_in", "temp_out", "shop")),
    ("price, city: delta", "price: gaussian; city: delta", ("weight", "temp_in", "temp_out", "shop")),
    ("price: delta", None, ("weight", "temp_in", "temp_out", "city", "shop")),
    ("price, price: linear", "price: linear", ("weight", "temp_in", "temp_out", "city", "shop")),
    ("*out: linear; p*e, 'city': linear + delta", "temp_out: linear; price, city: linear + delta", ("weight", "temp_in", "shop")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "printed", "unused"), MIXED, ids=[case[0] for case in MIXED])
def test_mixed_tables(text, printed, unused):
    result = bound(text)
    assert isinstance(result.kernel, BoundGroups)
    assert str(result.kernel) == (printed or text)
    assert result.unused == unused
    assert bound(str(result.kernel)) == result


@pytest.mark.parametrize(
    ("text", "numeric", "categories", "printed"),
    [
        ("gaussian(1.5)", ["a", "b"], [], "gaussian(1.5)"),
        ("b, a: gaussian(1.5)", ["a", "b"], [], "gaussian(1.5)"),
        ("*: gaussian(1.5)", ["a", "b"], [], "gaussian(1.5)"),
        ("a: gaussian(1.5)", ["a", "b"], [], "a: gaussian(1.5)"),
        ("gaussian(1.5) + delta", ["a", "b"], [], "gaussian(1.5) + delta"),
        ("delta", ["a", "b"], [], "delta"),
        ("hamming(2)", [], ["a", "b"], "hamming(2)"),
        ("a, b: delta", [], ["a", "b"], "delta"),
        ("a: delta; *: hamming", [], ["a"], "delta"),
        ("1", ["a"], ["b"], "a, b: 1"),
    ],
)
def test_tables_of_one_kind(text, numeric, categories, printed):
    result = bound(text, numeric, categories)
    assert str(result.kernel) == printed
    assert bound(printed, numeric, categories) == result


rng = np.random.default_rng(5)
ROWS = Points(np.round(rng.normal(size=(20, 4)), 0), rng.integers(0, 3, size=(20, 2)))


def on(numeric, categories):
    return ROWS.select(Columns(numeric, categories))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gaussian(2)*delta", lambda: Gaussian(2)(ROWS) * Delta()(on((), (0, 1)))),
        ("gaussian(2) + hamming(3)", lambda: Gaussian(2)(ROWS) + Hamming(3)(on((), (0, 1)))),
        ("weight: gaussian(2); shop: delta", lambda: Gaussian(2)(on((1,), ())) * Delta()(on((), (1,)))),
        ("weight: delta; shop: hamming(2)", lambda: Delta()(on((1,), ())) * Hamming(2)(on((), (1,)))),
        ("weight, shop: gaussian(2) + delta", lambda: Gaussian(2)(on((1,), ())) + Delta()(on((), (1,)))),
        ("weight, temp_in: hamming(2)", lambda: Hamming(2)(on((1, 2), ()))),
        ("shop: (delta + 1)^2", lambda: (Delta()(on((), (1,))) + 1) ** 2),
    ],
)
def test_values_are_those_of_the_columns(text, expected):
    kernel = bound(text).kernel
    np.testing.assert_allclose(kernel(ROWS), expected(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(ROWS), np.diag(kernel(ROWS)), rtol=1e-12, atol=0)


def test_resolve_tells_the_rule_the_columns():
    asked = []

    def rule(metric, columns):
        asked.append((metric, columns))
        return float(len(asked))

    kernel = bound("weight, shop: laplacian + hamming; *: gaussian").kernel
    assert kernel.free
    done = kernel.resolve(rule)
    assert str(done) == (
        "weight, shop: laplacian(1) + hamming(2); price, temp_in, temp_out: gaussian(3); city: hamming(4)"
    )
    assert asked == [
        ("manhattan", Columns((1,), (1,))),
        ("mismatches", Columns((), (1,))),
        ("euclidean", Columns((0, 2, 3), ())),
        ("mismatches", Columns((), (0,))),
    ]
    assert bound(str(done)).kernel == done


ERRORS = [
    ("price, wieght: linear", "there is no column 'wieght' .character 8", "did you mean 'weight'", "usage.unknown_column", 8),
    ("zzz: linear", "there is no column 'zzz'", "the columns are 'price', 'weight'", "usage.unknown_column", 1),
    ("zz*: linear", r"no column matches 'zz\*'", "the columns are", "usage.unknown_column", 1),
    ("'temp_*': linear", r"there is no column 'temp_\*'", "did you mean", "usage.unknown_column", 1),
    ("price: linear; price: delta", "column 'price' is in two groups", "once", "usage.kernel_columns", 16),
    ("temp_*: linear; temp_in: delta", "column 'temp_in' is in two groups", "once", "usage.kernel_columns", 17),
    ("city: gaussian", "gaussian needs a numeric column; 'city' holds text", "delta or hamming", "usage.kernel_columns", None),
    ("city, shop: delta + linear", "linear needs a numeric column; 'city', 'shop' hold text", "delta or hamming", "usage.kernel_columns", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "hint", "code", "position"), ERRORS, ids=[case[0] for case in ERRORS])
def test_errors(text, message, hint, code, position):
    with pytest.raises(UsageError, match=message) as caught:
        bound(text)
    assert caught.value.exit_code == 2
    assert caught.value.code == code
    assert hint in caught.value.hint
    assert caught.value.where.get("position") == position


def test_a_table_of_text_needs_a_kernel_for_text():
    with pytest.raises(UsageError, match="gaussian needs a numeric column; 'a' holds text"):
        bound("gaussian", [], ["a"])


def test_no_columns_at_all():
    with pytest.raises(UsageError, match="the kernel 'gaussian' has no column to see"):
        bound("gaussian", [], [])


def test_long_lists_of_columns_are_cut():
    with pytest.raises(UsageError, match="no column") as caught:
        bound("zzz: linear", [f"c{number}" for number in range(100)], [])
    assert caught.value.hint.endswith("and 92 more")


def test_bound_kernels_are_not_bound_again():
    for text, numeric in (("price: linear", ["price", "weight"]), ("delta", ["price"])):
        kernel = bound(text, numeric, []).kernel
        with pytest.raises(UsageError, match="is bound to columns already") as caught:
            bind(kernel, numeric, [])
        assert "parse_kernel" in caught.value.hint


def test_unbound_groups_have_no_values():
    kernel = parse_kernel("price: gaussian")
    assert kernel.free
    for use in (kernel, kernel.diagonal):
        with pytest.raises(UsageError, match="names columns, but not of which table"):
            use(ROWS)
    with pytest.raises(UsageError, match="names columns, but not of which table"):
        kernel.resolve(lambda _metric, _columns: 1.0)


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
texts = st.sampled_from(
    ["gaussian", "delta", "0.5*linear + hamming(2)", "gaussian(2)^2*delta", "1", "normalise(linear)"]
)


@given(st.lists(names, unique=True, min_size=1, max_size=6), st.integers(0, 6), texts)
def test_whatever_the_columns_are_called_the_text_reads_back(columns, split, text):
    numeric, categories = columns[:split], columns[split:]
    if not numeric and ("gaussian" in text or "linear" in text):
        return
    result = bound(text, numeric, categories)
    assert bound(str(result.kernel), numeric, categories) == result
    assert result.unused == ()
