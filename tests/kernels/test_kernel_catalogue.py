"""The table of kernels, and what is said of them."""

import subprocess
import sys
from dataclasses import fields

import pytest

from kerntest import kernels as names
from kerntest.kernels.catalogue import KERNELS, kernel_entries, usage, why_not_characteristic
from kerntest.kernels.columns import bind
from kerntest.kernels.text import parse_kernel


def test_names_are_those_of_the_catalogue():
    assert tuple(KERNELS) == names.NAMES
    assert all(kernel.name == name for name, kernel in KERNELS.items())
    assert set(names.ALIASES.values()) <= {*KERNELS, names.NORMALISE}
    assert not set(names.ALIASES) & set(KERNELS)


def test_names_need_no_numpy():
    code = "import sys; import kerntest.kernels; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_entries_are_complete():
    entries = kernel_entries()
    assert [entry.name for entry in entries] == list(KERNELS)
    for entry in entries:
        assert entry.formula
        assert entry.remark
        assert all(each.name.removesuffix("s") in entry.usage for each in fields(KERNELS[entry.name]))
    assert entries[0].aliases == ("rbf",)


@pytest.mark.parametrize(
    ("name", "text"),
    [("student-t", "student-t(bandwidth, df=1)"), ("delta", "delta"), ("periodic", "periodic(period=1, bandwidth=1)")],
)
def test_usage(name, text):
    assert usage(KERNELS[name]) == text


NOT = "a value of zero does not mean that the distributions are equal"
REASONS = [
    ("gaussian(1) + linear", None),
    ("0.5*laplacian", None),
    ("gaussian(1)*student-t(1)", None),
    ("gaussian*delta", None),
    ("price: gaussian; city: delta", None),
    ("normalise(exponential)^2", None),
    ("2^2*gaussian", None),
    ("linear", "'linear' sees only differences of means: " + NOT),
    ("polynomial(2)", "'polynomial(degree=2)' sees only moments up to order 2: " + NOT),
    ("linear^2 + 0.5*linear*polynomial", "'linear^2 + 0.5*linear*polynomial' sees only moments up to order 4: " + NOT),
    ("0*gaussian", "'0*gaussian' is constant and sees nothing: " + NOT),
    ("2", "'2' is constant and sees nothing: " + NOT),
    ("polynomial(2, gain=0)", "'polynomial(degree=2, gain=0)' is constant and sees nothing: " + NOT),
    ("1 + periodic(2)", "'1 + periodic(period=2)' cannot tell values apart that differ by its period, 2: " + NOT),
    ("normalise(linear)", "'normalise(linear)' is not known to see every difference: " + NOT),
    ("gaussian*linear", "'gaussian*linear' is not known to see every difference: " + NOT),
    ("gaussian + delta", "'gaussian + delta' sees numeric columns and categories apart, not how they hang together: " + NOT),
    ("polynomial(2, offset=-1)", "'polynomial(degree=2, offset=-1)' is not positive definite: " + NOT),
    ("gaussian + polynomial(offset=-1)", "'gaussian + polynomial(offset=-1)' is not positive definite: " + NOT),
    ("price: linear; city: delta", "'price: linear' sees only differences of means: " + NOT),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REASONS, ids=[case[0] for case in REASONS])
def test_why_not_characteristic(text, reason):
    kernel = parse_kernel(text)
    assert kernel.characteristic is (reason is None)
    assert why_not_characteristic(kernel) == reason


@pytest.mark.parametrize(
    ("text", "numeric", "categories", "reason"),
    [
        ("gaussian", ["a"], ["b"], None),
        ("delta", [], ["b"], None),
        ("gaussian + delta", ["a"], [], None),
        ("delta", ["a"], [], "'delta' sees only values that occur more than once in a numeric column: " + NOT),
        ("hamming^2", ["a"], [], "'hamming^2' sees only values that occur more than once in a numeric column: " + NOT),
        ("gaussian*delta", ["a"], [], "'gaussian*delta' is not known to see every difference: " + NOT),
        ("linear", ["a"], ["b"], "'a: linear' sees only differences of means: " + NOT),
        ("a: delta; *: delta", ["a"], ["b"], "'a: delta' sees only values that occur more than once in a numeric column: " + NOT),
    ],
)  # fmt: skip
def test_bound_kernels_know_what_kind_of_columns_they_compare(text, numeric, categories, reason):
    kernel = bind(parse_kernel(text), numeric, categories).kernel
    assert kernel.characteristic is (reason is None)
    assert why_not_characteristic(kernel) == reason
