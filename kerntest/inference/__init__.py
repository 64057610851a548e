"""Tests: a statistic, a null and a rule for bandwidths make a record."""
