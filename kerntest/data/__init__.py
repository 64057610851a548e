"""Bytes, arrays and frames to typed columns, and typed columns to the arrays that a test or a learner takes."""

from __future__ import annotations

from kerntest.data.columns import match_tables, select_columns
from kerntest.data.missing import apply_missing, check_usable
from kerntest.data.pooling import Pooled, pool
from kerntest.data.read import read_table
from kerntest.data.scaling import standardize
from kerntest.data.table import Column, Problem, Table

__all__ = [
    "Column",
    "Pooled",
    "Problem",
    "Table",
    "apply_missing",
    "check_usable",
    "match_tables",
    "pool",
    "read_table",
    "select_columns",
    "standardize",
]
