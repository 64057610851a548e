"""Strata, pairs and clusters whose rows are not independent are told, with the way that is."""

import numpy as np
import pandas as pd

from kerntest import mmd_test


def crossed(own, seed=4, subjects=20, trials=40, order=None):
    """Subjects under two conditions, whose difference varies from subject to subject by so much."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(1, subjects + 1), 2 * trials)
    condition = np.tile(np.repeat([0, 1], trials), subjects)
    level = 0.7 * rng.normal(size=subjects)[subject - 1] + own * rng.normal(size=(subjects, 2))[subject - 1, condition]
    time = level + 0.3 * condition + rng.normal(size=len(level))
    table = pd.DataFrame({"subject": subject, "condition": np.where(condition, "B", "A"), "time": time})
    return table if order is None else table.sample(frac=1.0, random_state=order)


def test_cases_of_which_each_differs_in_its_own_way_are_to_be_paired():
    told = "rows with the same 'subject' are alike, and the test takes rows for independent: paired='subject' compares"
    varies = "the difference varies from one 'subject' to another more than rows by chance"
    for table in (crossed(0.5), crossed(0.5, order=0)):
        found = mmd_test(table, by="condition", columns="time")
        assert found.reject
        (text,) = found.warnings
        assert text.startswith(told)
        found = mmd_test(table, by="condition", columns="time", strata="subject")
        assert found.reject
        (text,) = found.warnings
        assert text.startswith(varies)
        assert "paired='subject'" in text
        # Which of the two conditions a row is of says nothing of others.
        (text,) = mmd_test(table, by="condition", columns="time", paired="subject").warnings
        assert "strata" not in text
        files = [table[table.condition == one].drop(columns="condition") for one in "AB"]
        assert any(text.startswith(told) for text in mmd_test(*files, columns="time").warnings)
    # All differ by as much.
    for options in ({}, {"strata": "subject"}):
        found = mmd_test(crossed(0.0), by="condition", columns="time", **options)
        assert found.reject
        assert not [text for text in found.warnings if "paired" in text]
