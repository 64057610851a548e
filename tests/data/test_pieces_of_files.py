"""Files as pieces for many workers: every row is in one of them, once, and tells its line."""

import gc
import io

import cloudpickle
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from kerntest.data.read import open_blocks


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=6), min_size=1, max_size=4),
    block=st.integers(1, 30),
    at_once=st.integers(2, 9),
)
def test_pieces_have_every_row_once_in_the_blocks_of_the_file_read_in_order(tmp_path_factory, sizes, block, at_once):
    path = tmp_path_factory.mktemp("layout")
    first = 0
    for place, groups in enumerate(sizes):
        with parquet.ParquetWriter(path / f"{place}.parquet", pa.schema([("value", pa.int64())])) as writer:
            for size in groups:
                writer.write_table(pa.table({"value": np.arange(first, first + size)}))
                first += size
    with open_blocks(path, block_bytes=block) as reader:
        found = []
        for workers in (1, at_once):
            pieces = reader.pieces({"value": "number"}, ["value"], workers)
            items = list(pieces.items)
            assert len(items) == pieces.count
            blocks = [list(item.blocks()) for item in items]
            ends = [some[-1].first_row + some[-1].table.n_rows for some in blocks]
            assert [item.done for item in items] == ends
            found.append([one.kept["value"].to_pylist() for some in blocks for one in some])
        assert found[0] == found[1]
        assert max(map(len, found[0])) <= block
        assert [value for one in found[0] for value in one] == list(range(first))
        assert reader.total == first


def test_blocks_of_csv_know_their_lines_wherever_they_are(tmp_path):
    (tmp_path / "rows.csv").write_text("size\n" + "12.25\n" * 2000)
    with open_blocks(tmp_path / "rows.csv", block_bytes=2000) as reader:
        pieces = reader.pieces({"size": "number"}).items
        _, second = next(pieces), next(pieces)
        block = next(iter(cloudpickle.loads(cloudpickle.dumps(second)).blocks()))
        assert block.table.place(0) == f"line {block.first_row + 2}"


def test_a_reader_that_is_left_keeps_no_file_open(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a\n" + "1\n" * 1000)
    with open_blocks(path, block_bytes=200) as reader:
        pieces = reader.pieces({"a": "number"}).items
        kept = [next(pieces) for _ in range(3)]
    # By type: to ask an object for its class may load a module.
    files = [one for one in gc.get_objects() if issubclass(type(one), io.FileIO)]
    still = [one for one in files if one.name == str(path) and not one.closed]
    assert kept
    assert not still
