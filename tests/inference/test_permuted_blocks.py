"""The two-sample statistic under permutations of blocks of rows, against double loops over dense matrices."""

import math
from itertools import combinations

import numpy as np
import pytest

from kerntest import mmd_test
from kerntest.inference.relabelling.permuted_blocks import MOST, BlockedRows


def labels_of(n_x, n_y):
    return np.random.default_rng(n_x).permutation(np.repeat([1, 0], [n_x, n_y])).astype(np.uint8)


def test_a_file_of_few_rows_moves_every_one_of_them():
    blocks = BlockedRows.of(labels_of(5, 4000), 0)
    assert sorted(blocks.order) == list(range(4005))
    assert blocks.in_x[: blocks.free].sum() == 5
    assert (~blocks.in_x[: blocks.free]).sum() == MOST
    assert np.diff(blocks.starts)[-1] == 4000 - MOST


def test_few_rows_have_all_relabellings_each_once():
    blocks = BlockedRows.of(labels_of(3, 4), 0)
    moved = blocks.relabellings(1000, 0)
    assert len(moved) == math.comb(7, 3) == len({tuple(row) for row in moved})
    assert (moved[0] == blocks.in_x[: blocks.free]).all()
    assert (moved.sum(axis=1) == 3).all()
    # Few are all used however few were asked for; of many rows there are as many as were asked for.
    assert len(blocks.relabellings(20, 0)) == len(moved)
    many = BlockedRows.of(labels_of(10, 12), 0)
    random = many.relabellings(20, 0)
    assert random.shape == (20, 22)
    assert (random[0] == many.in_x[: many.free]).all()
    assert (random.sum(axis=1) == 10).all()


@pytest.mark.parametrize("judge", ["together", "smallest"])
def test_over_all_relabellings_the_p_values_are_uniform(judge):
    """The rank of every split of eight rows among all splits: exactness, the hard way."""
    rows = np.random.default_rng(6).normal(size=(8, 2))
    options = {"kernel": "gaussian + 0.1*laplacian", "bandwidth": (0.3, 1, 3), "judge": judge, "scale": "none"}
    p = []
    for chosen in combinations(range(8), 3):
        y = rows[[row for row in range(8) if row not in chosen]]
        p.append(mmd_test(rows[list(chosen)], y, **options).p_value)
    splits = math.comb(8, 3)
    ranks = sorted(np.rint(np.array(p) * splits).astype(int).tolist())
    # Splits of which no kernel sees more than on average are all alike to the family, and the last.
    told = splits if judge == "smallest" else ranks.index(splits)
    assert told >= splits // 2 - 1
    assert ranks == [*range(1, told + 1), *[splits] * (splits - told)]
