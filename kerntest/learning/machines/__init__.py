"""Learners of a target: support vector machines and kernel ridge regressions."""
