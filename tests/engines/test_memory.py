"""Amounts of memory, as people write and read them."""

import pytest

from kerntest.engines.memory import parse_memory, refuse_beyond, show_memory
from kerntest.errors import UndecidedError, UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("4 gb", 4 * 10**9),
        ("4g", 4 * 10**9),
        ("1.5G", 1_500_000_000),
        (".5GB", 500_000_000),
        ("500MB", 500_000_000),
        ("2GiB", 2 * 2**30),
        ("700MiB", 700 * 2**20),
        ("1TB", 10**12),
        ("300000kB", 300_000_000),
        ("250000000", 250_000_000),
        (3 * 10**9, 3 * 10**9),
    ],
)
def test_amounts_are_read(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "four GB", "-4GB", "4 XB", "4GB and more", "nan", "inf", None, 1.5])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(UsageError, match="no amount of memory") as caught:
        parse_memory(text)
    assert caught.value.code == "usage.memory"


@pytest.mark.parametrize("text", ["0", "1", "100MB", "0GB", 10**6])
def test_too_little_for_the_program_is_refused(text):
    with pytest.raises(UsageError, match="too few"):
        parse_memory(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (5, "5 bytes"),
        (1500, "1.5 kB"),
        (2_340_000, "2.34 MB"),
        (4 * 10**9, "4 GB"),
        (1.2e13, "12 TB"),
        (999_999, "1 MB"),
    ],
)
def test_amounts_are_shown(size, text):
    assert show_memory(size) == text


def test_work_that_fits_is_not_refused():
    refuse_beyond(10**9, None, "it takes", "hint")
    refuse_beyond(10**9, 10**9, "it takes", "hint")


def test_work_that_does_not_fit_is_refused_with_both_numbers():
    with pytest.raises(UndecidedError, match="it takes 2 GB, and --memory allows 1 GB") as caught:
        refuse_beyond(2 * 10**9, 10**9, "it takes", "use less")
    assert (caught.value.exit_code, caught.value.hint, caught.value.code) == (4, "use less", "undecided.memory")
