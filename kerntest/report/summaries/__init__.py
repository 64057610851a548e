"""Summaries of tests and learners."""
