"""Small files in an empty folder, and what every refusal of one has."""

import numpy as np
import pytest

from kerntest import read_table
from kerntest.data.columns import check_usable
from kerntest.data.read import open_blocks
from kerntest.errors import DataError, UsageError


@pytest.fixture
def csv(tmp_path, monkeypatch):
    """Return what writes a file, a.csv by default, into the working folder, and gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(content, name="a.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


@pytest.fixture(scope="session")
def refused():
    """Return what checks that using all columns of a source, or calling a function, is refused, and returns the error."""

    def check(source, match, code, **options):
        kind = UsageError if code.startswith("usage.") else DataError
        with pytest.raises(kind, match=match) as caught:
            source() if callable(source) else check_usable(read_table(source, **options))
        error = caught.value
        assert (error.exit_code, error.code) == (2 if kind is UsageError else 3, code)
        assert error.hint
        assert "\n" not in error.message + error.hint
        return error

    return check


@pytest.fixture
def streamed():
    """Return what reads columns, of numbers by default, in small blocks."""

    def read(path, names, kind="number", **csv):
        with open_blocks(path, block_bytes=64, **csv) as reader:
            assert reader.names == tuple(names)
            pieces = reader.pieces(dict.fromkeys(names, kind)).items
            blocks = [block.table for piece in pieces for block in piece.blocks()]
        return {name: np.concatenate([table[name].values for table in blocks]).tolist() for name in names}

    return read
