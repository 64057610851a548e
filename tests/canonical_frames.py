"""Frames with their rows in the order in which tests of independence take them."""

from kerntest.data.arranging import arrange
from kerntest.data.read import read_table
from kerntest.inference.variables import canonical_rows


def canonical_order(frame):
    """Return which row of the frame comes first, second, ..."""
    table = read_table(frame, name="data")
    return canonical_rows([arrange([column], table.n_rows) for column in table.columns])


def in_canonical_order(frame):
    return frame.iloc[canonical_order(frame)].reset_index(drop=True)
