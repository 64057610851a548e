"""Learners without a target: kernel principal components."""
