"""How a plan is told."""

import pytest

from kerntest.report.summaries.words import show_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "less than a second"),
        (1.0, "about 1 second"),
        (89.0, "about 89 seconds"),
        (90.0, "about 2 minutes"),
        (600.0, "about 10 minutes"),
        (5400.0, "about 2 hours"),
        (36_000.0, "about 10 hours"),
        (172_800.0, "about 2 days"),
    ],
)
def test_a_duration_is_said_in_its_unit(seconds, text):
    assert show_time(seconds) == text
