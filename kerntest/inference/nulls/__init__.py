"""Null distributions: each turns a statistic into a p-value."""
