"""What is suggested for a file that is not there."""

import pytest

from kerntest import read_table
from kerntest.errors import DataError


@pytest.mark.parametrize(
    ("asked", "there", "meant"),
    [
        ("sales.csv", ["sale.csv", "after.csv"], "sale.csv"),
        ("sales.csv", ["sales.kt", "sales.parquet"], "sales."),
        ("sales.csv", ["sale.kt", "sale.csv"], "sale.csv"),
        ("nothere.csv", ["after.csv", "before.csv"], None),
    ],
)
def test_names_are_compared_without_their_endings(tmp_path, asked, there, meant):
    for name in there:
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(DataError) as caught:
        read_table(str(tmp_path / asked))
    hint = str(caught.value.hint)
    assert f"did you mean '{tmp_path / meant}" in hint if meant else "looked in" in hint
