"""Columns that name rows or count cases, which say nothing of a difference."""

import numpy as np
import pandas as pd
import pytest

from kerntest import hsic_test, mmd_test

pytestmark = pytest.mark.usefixtures("without_shifts")


def test_numbers_that_identify_rows_by_their_name_are_told():
    rng = np.random.default_rng(4)
    names = rng.permutation(600)[:120]
    x, y = (pd.DataFrame({"rownames": np.sort(some), "v": rng.normal(size=60)}) for some in np.split(names, 2))
    x, y = (one.sample(frac=1.0, random_state=1) for one in (x, y))
    told = "column 'rownames' is called like one that identifies the rows, and its whole numbers are all different"
    assert [one for one in mmd_test(x, y).warnings if one.startswith(told)]
    assert [one for one in hsic_test(x, x_columns="rownames", y_columns="v").warnings if one.startswith(told)]
    other = [one.rename(columns={"rownames": "salary"}) for one in (x, y)]
    assert not [one for one in mmd_test(*other).warnings if "identifies" in one]
    few = pd.DataFrame(
        {"rownames": range(1, 17), "pair": [*range(8)] * 2, "group": [1] * 8 + [2] * 8, "v": rng.normal(size=16)}
    )
    assert any(one.startswith(told) for one in mmd_test(few, by="group", paired="pair").warnings)


@pytest.mark.parametrize("stored", [False, True])
def test_numbers_that_identify_rows_are_told_by_features(stored, tmp_path):
    """In files from the first rows; not where there are more rows than whole numbers between the ends, as of persons by year."""
    rng, told = np.random.default_rng(4), "column 'id' is called like one that identifies the rows"

    def warned(x, y):
        tables = [one.assign(v=rng.normal(size=len(one))).sample(frac=1.0, random_state=1) for one in (x, y)]
        if stored:
            for place, one in enumerate(tables):
                one.to_parquet(tmp_path / f"{place}.parquet", row_group_size=500)
            tables = [tmp_path / f"{place}.parquet" for place in (0, 1)]
        found = mmd_test(*tables, method="features", features="nystroem:20", permutations=100)
        return any(text.startswith(told) for text in found.warnings)

    names = rng.permutation(9000)[:4000]
    x, y = (pd.DataFrame({"id": some}) for some in np.split(names, 2))
    assert warned(x, y)
    assert not warned(x + 0.5, y)
    assert not warned(pd.concat([x, x, x, x, x]), y)


CELLS = pd.MultiIndex.from_product([["1st", "2nd", "crew"], ["f", "m"], ["no", "yes"]], names=["class", "sex", "lived"])


@pytest.mark.parametrize("exclude", [None, "cases"])
@pytest.mark.parametrize("cases", [[0, 4, 1, 17, 0, 93, 13, 80, 670, 192, 3, 20], range(7, 607, 50)])
def test_a_table_of_counts_is_told(cases, exclude):
    table = CELLS.to_frame(index=False).assign(cases=list(cases))

    def warned(some, by="lived"):
        texts = mmd_test(some, by=by, exclude=exclude).warnings
        return [text for text in texts if "in all combinations, once each" in text]

    (text,) = warned(table)
    assert text.startswith("both samples have 'class', 'sex' in all combinations, once each")
    assert text.endswith("if 'cases' counts cases, repeat each row so often")
    # Nothing that may count, rows that are not there, and cases themselves.
    assert not warned(table.assign(cases=np.array(cases) / 7))
    assert not warned(table[table["cases"] != 93][1:])
    assert not warned(pd.concat([table, table]))
