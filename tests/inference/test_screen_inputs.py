"""What goes into a screen of pairs and what comes out: columns, missing values, warnings, records and pictures."""

import numpy as np
import pandas as pd
import pytest

from kerntest import hsic_pairs
from kerntest.errors import DataError


def frame_of(n=40, columns="abcd", seed=0):
    return pd.DataFrame(np.random.default_rng((seed, n)).normal(size=(n, len(columns))), columns=list(columns))


def names_of(found):
    """Return the pairs as sets of names."""
    return {frozenset((pair.x, pair.y)) for pair in found.pairs}


def pair_of(found, x, y):
    (pair,) = (one for one in found.pairs if {one.x, one.y} == {x, y})
    return pair


def sets(*texts):
    return {frozenset(text) for text in texts}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, sets("ab", "ac", "ad", "bc", "bd", "cd")),
        ({"columns": "a,c:d"}, sets("ac", "ad", "cd")),
        ({"exclude": "b"}, sets("ac", "ad", "cd")),
        ({"columns": ["a", "b", "c"], "exclude": "a"}, sets("bc")),
        ({"x_columns": "a", "y_columns": "b,c"}, sets("ab", "ac")),
        ({"x_columns": "a,b", "y_columns": "a:c"}, sets("ab", "ac", "bc")),
        ({"x_columns": "d"}, sets("da", "db", "dc")),
        ({"y_columns": "a,b", "exclude": "d"}, sets("ab", "ac", "bc")),
        ({"target": "c"}, sets("ac", "bc", "dc")),
        ({"target": "c*", "columns": "a"}, sets("ac")),
        ({"target": "c", "columns": "a,c"}, sets("ac")),
        ({"target": "c", "exclude": "a"}, sets("bc", "dc")),
        ({"target": "c", "x_columns": "a:c"}, sets("ac", "bc")),
    ],
)
def test_which_pairs_are_tested(options, expected):
    found = hsic_pairs(frame_of(), permutations=20, **options)
    assert names_of(found) == expected
    assert found.tests == len(found.pairs) == len(expected)
    assert set(found.columns) == set().union(*expected)
    if "target" in options:
        assert {pair.y for pair in found.pairs} == {"c"}
        assert found.target == "c"


def unlucky_frame():
    """Return columns of which some pairs have too few common rows, or one value in them."""
    frame = frame_of(24, "abcde")
    frame.loc[:20, "b"] = np.nan
    frame.loc[2:, "c"] = np.nan
    frame["d"] = np.where(np.arange(24) < 4, frame["d"], 7.0)
    return frame


def test_pairs_that_cannot_be_tested_are_listed_last_with_a_note_and_not_counted():
    found = hsic_pairs(unlucky_frame(), permutations=50)
    notes = {frozenset((pair.x, pair.y)): pair.note for pair in found.pairs}
    assert len(found.pairs) == 10
    for names, rows in (("bc", 0), ("ab", 3), ("ac", 2)):
        assert notes[frozenset(names)] == f"{rows} rows without missing values; the test needs at least 4"
    assert notes[frozenset("ad")] is None
    tested = [pair for pair in found.pairs if pair.note is None]
    assert found.pairs[: len(tested)] == tuple(tested)
    assert found.tests == len(tested) == 3
    # In the order of the table.
    assert [(pair.x, pair.y) for pair in found.pairs[3:]] == sorted((pair.x, pair.y) for pair in found.pairs[3:])
    known = {"x", "y", "n", "note", "reject", "pearson", "spearman", "kendall"}
    for pair in found.pairs[len(tested) :]:
        assert {value for name, value in pair.to_dict().items() if name not in known} == {None}
        assert not pair.reject


def test_one_common_row_one_common_value_and_a_text_that_identifies_the_rows_of_one_pair():
    frame = frame_of(44, "abd").assign(c=np.where(np.arange(44) < 5, np.nan, 1.0))
    frame.loc[:1, "c"] = 2.0
    frame.loc[:1, "a"] = np.nan
    # Row 43 is the one that a and d share; where "half" is there, every city is another.
    frame.loc[2:42, "d"] = np.nan
    frame["city"] = [f"id {k}" for k in range(22)] + ["Bern"] * 22
    frame["half"] = np.where(np.arange(44) < 22, frame["b"] ** 2, np.nan)
    found = hsic_pairs(frame, permutations=50)
    assert pair_of(found, "a", "d").note == "1 row without missing values; the test needs at least 4"
    assert pair_of(found, "a", "c").note == "'c' has one value in the rows without missing values"
    assert "'city'" in pair_of(found, "city", "half").note
    for x, y in ("bc", ("city", "b"), ("half", "b")):
        assert pair_of(found, x, y).note is None


def test_texts_that_are_all_different_are_told_to_be_so():
    frame = frame_of(8, "ab").assign(name=list("qwertzui"))
    assert pair_of(hsic_pairs(frame, permutations=50), "a", "name").note == "all values of 'name' are different"


def test_a_statistic_that_no_relabelling_changes_has_no_p_value():
    found = hsic_pairs(frame_of(columns="abc"), bandwidth=1e-9, permutations=50)
    for pair in found.pairs:
        assert pair.note == "no pairing of the rows changes the statistic"
        assert (pair.p_value, pair.p_adjusted, pair.p_permutation, pair.reject) == (None, None, None, False)
    assert (found.tests, found.rejected, found.reject) == (0, 0, False)
    # One row that differs from all others has a U-centring of zeros.
    lone = frame_of(columns="ab").assign(b=np.arange(40) == 7)
    found = hsic_pairs(lone, permutations=50)
    assert found.pairs[0].note == "no pairing of the rows changes the statistic"
    assert hsic_pairs(lone, estimator="biased", permutations=50).pairs[0].p_value is not None


def test_shared_relabellings_only_where_the_rows_are_the_same():
    """With a and b missing in one row each, but not in the same one, n is equal and the rows are not."""
    frame = frame_of(60, "aby")
    frame["a"] += frame["y"]
    frame.loc[3, "a"] = frame.loc[7, "b"] = np.nan
    a, b = sorted(hsic_pairs(frame, target="y", permutations=60).pairs, key=lambda pair: pair.x)
    assert a.n == b.n == 59
    assert a.p_step_down is None or b.p_step_down is None
    both = hsic_pairs(frame.drop(index=[3, 7]), target="y", permutations=60)
    assert all(pair.p_step_down is not None for pair in both.pairs)


@pytest.mark.parametrize("offset", [-20, -100])
def test_the_observed_pairing_is_always_counted(offset):
    """Also where a kernel that is not positive definite has a negative diagonal."""
    x = np.random.default_rng(0).normal(size=40)
    frame = pd.DataFrame({"x": x, "city": np.where(x > 0, "Bern", "Oslo")})
    (pair,) = hsic_pairs(frame, kernel=f"polynomial(3, 1, {offset})", bandwidth="auto", permutations=40).pairs
    assert pair.p_permutation >= 1 / 40


def test_series_are_warned_of():
    walks = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0), columns=list("abc"))
    found = hsic_pairs(walks.assign(d=frame_of(200)["d"]), permutations=20)
    (warning,) = (text for text in found.warnings if "neighbouring rows" in text)
    assert all(f"'{name}'" in warning.partition(":")[0] for name in "abc")
    assert "'d'" not in warning
    assert "; hsic_test with x_columns='b', y_columns='c', time_series=True tests series; " in warning
    assert any("'a', 'b'" in text for text in hsic_pairs(walks[["a", "b"]], permutations=20).warnings)
    # Where nothing is rejected, nothing is too small.
    assert not hsic_pairs(walks, permutations=20, alpha=1e-30).warnings
    # One alone depends on nothing that runs along with it.
    assert not hsic_pairs(walks[["a"]].assign(d=frame_of(200)["d"]), permutations=20).warnings


def test_a_table_of_words_says_how_they_are_read_as_columns(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("Chins Situps Jumps\n" + "\n".join(f"{k} {k * k} {7 * k % 20}" for k in range(20)))
    with pytest.raises(DataError, match="fewer than two columns") as refused:
        hsic_pairs(path)
    assert refused.value.hint.endswith("delimiter='space' reads its words as 3 columns")
    assert len(hsic_pairs(path, delimiter="space").columns) == 3


def test_columns_that_have_no_row_in_common_are_not_tested():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20_000))
    a[:10_000], b[10_000:] = np.nan, np.nan
    (pair,) = hsic_pairs(pd.DataFrame({"a": a, "b": b})).pairs
    assert pair.p_value is None
    assert pair.note.startswith("0 rows without missing values")
