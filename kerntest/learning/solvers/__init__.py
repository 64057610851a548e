"""Solvers: they see matrices and vectors, and know no data."""
