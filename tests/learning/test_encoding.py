"""What learners keep of their columns: new rows become the same features, or one line says why they cannot."""

import json
import math
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerntest.data.read import read_table
from kerntest.data.rows import apply_missing
from kerntest.data.table import Column, Table
from kerntest.errors import DataError, ModelError, UsageError
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel
from kerntest.learning.model_file import from_plain, to_plain
from kerntest.learning.rows.encoding import ColumnSpec, Encoder

TRAINING = """age,city,member,joined,code
31,Bonn,true,2024-01-01,007
45,Ulm,false,2024-02-01,012
27,Bonn,true,2024-03-01,007
60,Köln,true,2024-03-09,012
"""


def encoder_of(plain):
    return from_plain(Encoder, plain, "m.model", "encoder")


@pytest.fixture
def table(tmp_path):
    """Return a function that reads text as a CSV file of this name."""

    def read(text, name="new.csv", **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_table(path, name=name, **options)

    return read


@pytest.fixture
def encoder(table):
    return Encoder.fit(table(TRAINING, "train.csv"), "standardize").encoder


def points_equal(first, second):
    """Say whether rows are scaled alike, value by value: no sums, so that only the last digit may differ."""
    return np.allclose(first.numeric, second.numeric, rtol=1e-15, atol=0) and np.array_equal(first.codes, second.codes)


# Fitting.


def test_columns_are_kept_in_the_order_of_the_table(table):
    fitted = Encoder.fit(table(TRAINING, "train.csv"), "standardize")
    encoder = fitted.encoder
    assert encoder.names == ("age", "city", "member", "joined", "code")
    assert encoder.numeric_names == ("age", "joined")
    assert encoder.category_names == ("city", "member", "code")
    age, city, member, joined, code = encoder.columns
    numbers = np.array([31.0, 45, 27, 60])
    np.testing.assert_allclose([age.centre, age.spread], [numbers.mean(), numbers.std()], rtol=1e-12, atol=0)
    assert (city.levels, member.levels, code.levels) == (("Bonn", "Köln", "Ulm"), ("false", "true"), ("007", "012"))
    assert (city.centre, city.spread, joined.kind) == (0.0, 1.0, "date")
    np.testing.assert_allclose(
        fitted.points.numeric[:, 0], (numbers - numbers.mean()) / numbers.std(), rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(fitted.points.codes, [[0, 1, 0], [2, 0, 1], [0, 1, 0], [1, 1, 1]])
    assert (fitted.left_out, fitted.warnings) == ((), ())


def test_without_scaling_numbers_stay_as_they_are(table):
    fitted = Encoder.fit(table(TRAINING), "none")
    np.testing.assert_array_equal(fitted.points.numeric[:, 0], [31, 45, 27, 60])
    assert [(column.centre, column.spread) for column in fitted.encoder.columns] == [(0.0, 1.0)] * 5


def test_columns_that_tell_nothing_are_left_out_with_a_warning(table):
    rows = "".join(f"{number % 7},x,name {number}\n" for number in range(30))
    fitted = Encoder.fit(table(f"a,b,c\n{rows}"), "standardize")
    assert fitted.encoder.names == ("a",)
    assert fitted.left_out == ("b", "c")
    assert "column 'b' has one value in all rows" in fitted.warnings[0]
    assert "it identifies rows" in fitted.warnings[1]
    with pytest.raises(DataError, match=r"no column is left to learn from among a, b of new\.csv: column 'a' has one"):
        Encoder.fit(table("a,b\n1,x\n1,x\n"), "standardize")


def test_what_cannot_be_learned_from_is_refused(table):
    with pytest.raises(DataError, match=r"1 missing value: a 1"):
        Encoder.fit(table("a,b\n1,2\n,3\n"), "standardize")
    with pytest.raises(DataError, match="not a finite number"):
        Encoder.fit(read_table(np.array([1.0, np.inf])), "standardize")
    with pytest.raises(DataError, match=r"holds 'x', which is not a number \(19 of 20 values are\)"):
        Encoder.fit(table("a\n" + "1\n2\n3\n" * 6 + "1\nx\n"), "standardize")
    with pytest.raises(UsageError, match="scale must be standardize or none, not 'standardise'"):
        Encoder.fit(table("a\n1\n2\n"), "standardise")


def test_levels_that_no_row_has_are_not_kept(table):
    some = table(TRAINING).take(np.array([0, 1, 2]))
    assert Encoder.fit(some, "none").encoder.categories[0].levels == ("Bonn", "Ulm")


# New rows.


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored(table, encoder):
    training = table(TRAINING)
    fitted = Encoder.fit(training, "standardize")
    turned = table(
        "x,code,joined,member,city,y,age\n1,012,2024-02-01,false,Ulm,z,45\n3,007,2024-01-01,true,Bonn,z,31\n"
    )
    encoded = encoder.transform(turned)
    assert points_equal(encoded.points, fitted.points.take(np.array([1, 0])))
    assert encoded.warnings == ()


numbers = st.floats(allow_nan=False, allow_infinity=False)
columns = st.integers(2, 8).flatmap(
    lambda n: st.lists(
        st.one_of(
            st.lists(numbers, min_size=n, max_size=n).map(lambda values: ("number", np.array(values))),
            st.lists(st.floats(1e15, 1e15 + 9), min_size=n, max_size=n).map(lambda v: ("date", np.array(v))),
            st.lists(st.text(max_size=3), min_size=n, max_size=n).map(lambda values: ("text", values)),
            st.lists(st.sampled_from(["false", "true"]), min_size=n, max_size=n).map(lambda v: ("boolean", v)),
        ),
        min_size=1,
        max_size=4,
    )
)


def any_table(described):
    made = []
    for place, (kind, values) in enumerate(described):
        levels = () if kind in {"number", "date"} else tuple(sorted(set(values)))
        stored = values if not levels else np.array([levels.index(value) for value in values])
        made.append(Column(f"c{place}", kind, stored, levels))
    return Table("any", tuple(made), len(made[0].values), "frame")


@given(described=columns, scale=st.sampled_from(["standardize", "none"]))
@settings(max_examples=50)
def test_what_is_kept_scales_alike_again_also_through_json(described, scale):
    training = any_table(described)
    try:
        fitted = Encoder.fit(training, scale)
    except DataError as error:
        assert error.code == "data.no_columns"  # noqa: PT017 - not every table raises
        return
    encoder = encoder_of(json.loads(json.dumps(to_plain(fitted.encoder), allow_nan=False)))
    assert encoder == fitted.encoder
    assert np.isfinite(fitted.points.numeric).all()
    assert points_equal(encoder.transform(training).points, fitted.points)
    rows = np.arange(training.n_rows)[::-2]
    assert points_equal(encoder.transform(training.take(rows)).points, fitted.points.take(rows))
    for place, spec in enumerate(encoder.numeric):
        for value, scaled in zip(training[spec.name].values, fitted.points.numeric[:, place], strict=True):
            exact = (Fraction(float(value)) - Fraction(spec.centre)) / Fraction(spec.spread)
            assert scaled == pytest.approx(float(exact), rel=1e-15, abs=1e-300)


def test_a_huge_offset_moves_new_rows_as_it_moved_the_training_rows():
    base = np.random.default_rng(0).integers(0, 2, size=50).astype(float) + 1e15
    fitted = Encoder.fit(read_table(base), "standardize")
    assert points_equal(fitted.encoder.transform(read_table(base)).points, fitted.points)
    assert np.ptp(fitted.points.numeric) == pytest.approx(1 / (base - 1e15).std(), rel=1e-12)


@pytest.mark.parametrize("values", [[0.0, 5e-324], [1.7e308, 1.7e308, -1.7e308], [-1e-310, 2e-310], [1e308, 1.5e308]])
def test_numbers_as_small_and_as_large_as_they_get_are_scaled(values):
    fitted = Encoder.fit(read_table(np.array(values)), "standardize")
    scaled = fitted.points.numeric[:, 0]
    assert np.isfinite(scaled).all()
    assert len(set(scaled)) == len(set(values))
    assert encoder_of(to_plain(fitted.encoder)) == fitted.encoder
    assert points_equal(fitted.encoder.transform(read_table(np.array(values))).points, fitted.points)


# Columns that are not there.


def test_a_missing_column_is_named_with_the_one_that_may_be_meant(table, encoder):
    with pytest.raises(DataError, match=r"new\.csv has no column 'city', which m\.model needs") as caught:
        encoder.transform(table("age,town,member,joined,code,cities\n1,Ulm,true,2024-01-01,007,x\n"), name="m.model")
    assert (caught.value.hint, caught.value.code) == ("did you mean 'cities'?", "data.columns_differ")
    assert caught.value.where == {"file": "new.csv", "column": "city"}
    with pytest.raises(DataError) as caught:
        encoder.transform(table("age,z,member,joined,code\n1,Ulm,true,2024-01-01,007\n"))
    assert caught.value.hint == "the columns are age, z, member, joined, code"


def test_all_missing_columns_are_listed(table, encoder):
    with pytest.raises(DataError, match=r"lacks 3 columns that the model needs: 'age', 'city', 'code'$") as caught:
        encoder.transform(table("Age,zip,member,joined,code_\n1,Ulm,true,2024-01-01,007\n"))
    assert caught.value.hint == "did you mean 'Age' for 'age', 'code_' for 'code'?"


# Columns of another kind.


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("old,Ulm,true,2024-01-01,007", r"new\.csv, line 3: column 'age' holds 'old', which is not a number \(1 of 2"),
        ("true,Ulm,true,2024-01-01,007", r"line 3: column 'age' holds 'true', which is not a number"),
        ("2024-01-01,Ulm,true,2024-01-01,007", r"line 3: column 'age' holds '2024-01-01'"),
        ("1,Ulm,true,soon,007", r"line 3: column 'joined' holds 'soon', which is not a date \(1 of 2"),
        (
            "1,Ulm,perhaps,2024-01-01,007",
            r"column 'member' of new\.csv holds 'perhaps', unknown to the model, in 1 row",
        ),
    ],
)
def test_one_value_of_another_kind_is_named_with_its_line(table, encoder, row, message):
    with pytest.raises(DataError, match=message) as caught:
        encoder.transform(table(f"age,city,member,joined,code\n31,Bonn,true,2024-01-01,007\n{row}\n"))
    assert caught.value.where["line"] == 3
    assert caught.value.hint


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "2024-01-01,Ulm,true,2024-01-01,007",
            "column 'age' is date in new.csv and number in the model (line 2: '2024",
        ),
        ("true,Ulm,true,2024-01-01,007", "column 'age' is boolean in new.csv and number in the model (line 2: 'true')"),
        ("1,17,true,2024-01-01,007", "column 'city' is number in new.csv and text in the model (line 2: '17')"),
        ("1,2024-01-01,true,2024-01-01,007", "column 'city' is date in new.csv and text in the model (line 2: '2024"),
        ("1,Ulm,1,2024-01-01,007", "column 'member' is number in new.csv and boolean in the model (line 2: '1')"),
        ("1,Ulm,true,19000,007", "column 'joined' is number in new.csv and date in the model (line 2: '19000')"),
    ],
)
def test_a_column_of_another_kind_is_refused(table, encoder, row, message):
    with pytest.raises(DataError) as caught:
        encoder.transform(table(f"age,city,member,joined,code\n{row}\n"))
    assert message in caught.value.message
    assert caught.value.code == "data.types_differ"
    assert "as in training" in caught.value.hint


def test_numbers_with_a_stray_value_name_it_and_the_way_out(table):
    encoder = Encoder.fit(table("a\n1\n2\n"), "none").encoder
    with pytest.raises(DataError, match=r"line 4: column 'a' holds 'x', which is not a number \(19 of 20") as caught:
        encoder.transform(table("a\n1\n2\nx\n" + "3\n" * 17))
    assert caught.value.hint == "--na x reads it as missing; correct the value, or leave its row out"
    with pytest.raises(DataError, match="holds '1,5', which is not a number") as caught:
        encoder.transform(table('a,b\n1,x\n2,x\n"1,5",x\n' + "3,x\n" * 17))
    assert caught.value.hint.startswith("--decimal ',' or --decimal '.'")


def test_texts_that_are_all_numbers_are_numbers(table):
    encoder = Encoder.fit(table("a\n1\n2\n"), "none").encoder
    frame = pd.DataFrame({"a": ["1.5", " 2 ", "-3e2"]})
    np.testing.assert_array_equal(encoder.transform(read_table(frame)).points.numeric, [[1.5], [2.0], [-300.0]])
    with pytest.raises(DataError, match=r"row 2: column 'a' holds '007', which is not a number \(1 of 2"):
        encoder.transform(read_table(pd.DataFrame({"a": ["1.5", "007"]})))


def test_levels_that_no_row_has_do_not_matter():
    encoder = Encoder.fit(read_table(pd.DataFrame({"a": [1.0, 2.0]})), "none").encoder
    both = read_table(pd.DataFrame({"a": ["7", "x"]}))
    np.testing.assert_array_equal(encoder.transform(both.take(np.array([0]))).points.numeric, [[7.0]])
    assert encoder.transform(both.take(np.array([], dtype=np.intp))).points.numeric.shape == (0, 1)


# Categories.


def test_categories_that_arrive_as_numbers_are_compared_by_value(table):
    encoder = Encoder.fit(table("a\n1\n2.0\n1e1\nx\n", categorical="a"), "none").encoder
    assert encoder.categories[0].levels == ("1", "1e1", "2.0", "x")
    encoded = encoder.transform(table("a\n2\n1.0\n10\n"))
    np.testing.assert_array_equal(encoded.points.codes, [[2], [0], [1]])
    with pytest.raises(DataError, match=r"column 'a' of new\.csv holds '3', unknown to the model, in 1 row .*line 3"):
        encoder.transform(table("a\n2\n3\n"))


def test_the_same_text_wins_over_the_same_value_and_two_of_one_value_are_told_apart(table):
    encoder = Encoder.fit(table("a\n1\n1.0\n2.0\n2.00\n", categorical="a"), "none").encoder
    np.testing.assert_array_equal(encoder.transform(table("a\n1\n")).points.codes, [[0]])
    with pytest.raises(DataError, match="holds '2', unknown"):
        encoder.transform(table("a\n2\n"))


def test_whole_numbers_that_cannot_be_told_apart_are_no_known_category(table):
    encoder = Encoder.fit(table("a\n9007199254740992\n12\n", categorical="a"), "none").encoder
    with pytest.raises(DataError, match="unknown to the model"):
        encoder.transform(table("a\n9007199254740993\n"))
    typed = table("a\n9007199254740992\n12\n", categorical="a")
    np.testing.assert_array_equal(encoder.transform(typed).points.codes, [[1], [0]])


def test_text_and_booleans_find_each_other(table):
    mixed = Encoder.fit(table("a\nTrue\nFalse\nunsure\n"), "none").encoder
    assert mixed.categories[0].levels == ("False", "True", "unsure")
    np.testing.assert_array_equal(mixed.transform(table("a\nTrue\nFalse\n")).points.codes, [[1], [0]])
    plain = Encoder.fit(table("a\ntrue\nfalse\n"), "none").encoder
    encoded = plain.transform(table("a\nTRUE\nunsure\n"), unknown="ignore")
    np.testing.assert_array_equal(encoded.points.codes, [[1], [-1]])


def test_dates_among_texts_are_compared_as_iso_dates(table):
    encoder = Encoder.fit(table("a\n2024-01-01\nnever\n2024-05-01\nsoon\n"), "none").encoder
    np.testing.assert_array_equal(encoder.transform(table("a\n2024-05-01\n")).points.codes, [[1]])


def test_unknown_categories_are_named_counted_and_located(table, encoder):
    rows = ["1,Ulm,true,2024-01-01,007", "1,Trier,true,2024-01-01,013", "1,Berlin,true,2024-01-01,007"]
    with pytest.raises(DataError) as caught:
        encoder.transform(table("age,city,member,joined,code\n" + "\n".join(rows) + "\n"), name="m.model")
    error = caught.value
    assert error.message == (
        "column 'city' of new.csv holds 'Trier', 'Berlin', unknown to m.model, in 2 rows (the first in line 3); so does "
        "'code'"
    )
    assert error.hint == "correct the value, or leave those rows out; 'Bonn', 'Köln', 'Ulm' are known"
    assert (error.code, error.exit_code) == ("data.unknown_level", 3)
    assert error.where == {"file": "new.csv", "line": 3, "column": "city", "value": "Trier"}
    with pytest.raises(DataError) as caught:
        encoder.transform(table("age,city,member,joined,code\n1,bonn,true,2024-01-01,007\n"))
    assert caught.value.hint == "did you mean 'Bonn'? Correct the value, or leave those rows out"


def test_unknown_categories_can_be_taken_as_different_from_all_known_ones(table):
    fitted = Encoder.fit(table("city\nBonn\nUlm\nBonn\n"), "none")
    encoded = fitted.encoder.transform(table("city\nTrier\nUlm\n"), name="m.model", unknown="ignore")
    np.testing.assert_array_equal(encoded.points.codes, [[-1], [1]])
    assert encoded.warnings == (
        "new.csv: column 'city' holds 'Trier', unknown to m.model, in 1 row: taken as different from every known value",
    )
    kernel = parse_kernel("delta")
    np.testing.assert_array_equal(kernel(encoded.points, fitted.points), [[0, 0, 0], [0, 1, 0]])
    # A column of numbers that may all be unknown levels is no column of another kind, where levels are numbers.
    coded = Encoder.fit(table("shop\n1\n2\n", categorical="shop"), "none").encoder
    np.testing.assert_array_equal(coded.transform(table("shop\n7\n"), unknown="ignore").points.codes, [[-1]])


# Values that are not there, or no numbers.


def test_missing_values_are_refused_and_can_be_dropped_before(table, encoder):
    new = table("age,city,member,joined,code,note\n1,Ulm,true,2024-01-01,007,\n,Ulm,true,2024-01-01,007,x\n")
    with pytest.raises(DataError, match=r"new\.csv has 1 missing value: age 1 \(the first in line 3\)"):
        encoder.transform(new)
    kept, dropped = apply_missing(encoder.select(new), "drop")
    assert dropped == 1
    assert len(encoder.transform(kept).points) == 1
    empty = table("age,city,member,joined,code\n1,,true,2024-01-01,007\n2,,true,2024-01-01,007\n")
    with pytest.raises(DataError, match="2 missing values: city 2"):
        encoder.transform(empty)


def test_numbers_that_are_not_finite_are_refused_before_and_after_scaling(table):
    encoder = Encoder.fit(table("a,b\n1,0\n2,1e-300\n"), "standardize").encoder
    with pytest.raises(DataError, match=r"new\.csv, line 3: column 'a' holds 'inf', which is not a finite number"):
        encoder.transform(table("a,b\n1,0\ninf,0\n"))
    with pytest.raises(
        DataError, match=r"line 2: column 'b' holds '1e\+30', too far from the training rows of m"
    ) as caught:
        encoder.transform(table("a,b\n1,1e30\n"), name="m")
    assert caught.value.code == "data.infinite_values"


def test_columns_that_cannot_be_used_are_refused_only_where_the_model_needs_them():
    encoder = Encoder.fit(read_table(pa.table({"a": [1.0, 2.0]})), "none").encoder
    nested = pa.table({"a": [1.0], "b": [[1, 2]]})
    np.testing.assert_array_equal(encoder.transform(read_table(nested)).points.numeric, [[1.0]])
    with pytest.raises(DataError, match="column 'a' is of type list") as caught:
        encoder.transform(read_table(nested.rename_columns(["b", "a"])), name="m.model")
    assert caught.value.hint == "m.model was fitted to number there"


# What strangers may have written.


def test_the_plain_form_is_short_and_stable(table):
    encoder = Encoder.fit(table("a,b\n1,x\n3,y\n"), "standardize").encoder
    assert to_plain(encoder) == {
        "scale": "standardize",
        "columns": [
            {"name": "a", "kind": "number", "centre": 2.0, "spread": 1.0},
            {"name": "b", "kind": "text", "levels": ["x", "y"]},
        ],
    }


def test_whole_numbers_are_numbers_as_other_writers_of_json_write_them():
    plain = {"scale": "standardize", "columns": [{"name": "a", "kind": "number", "centre": 2, "spread": 1}]}
    assert encoder_of(plain).columns == (ColumnSpec("a", "number", centre=2.0, spread=1.0),)


def test_words_for_missing_values_are_kept(table):
    usual = Encoder.fit(table("a,b\n1,x\n3,y\n"), "none").encoder
    assert encoder_of({**to_plain(usual), "na": list(usual.na)}) == usual
    assert to_plain(encoder_of({**to_plain(usual), "na": []}))["na"] == []


NUMBER = {"name": "a", "kind": "number", "centre": 0.5, "spread": 2.0}
TEXT = {"name": "b", "kind": "text", "levels": ["x", "y"]}


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (None, "encoder must be an object, not null"),
        ({"columns": [NUMBER]}, "encoder.scale is missing"),
        ({"scale": "log", "columns": [NUMBER]}, "encoder.scale must be 'standardize' or 'none', not 'log'"),
        ({"scale": "none", "columns": [NUMBER]}, "encoder.scale must be 'standardize' where"),
        ({"scale": "standardize", "columns": NUMBER}, "encoder.columns must be a list, not an object of 4"),
        ({"scale": "standardize", "columns": []}, "encoder.columns must be one column or more"),
        ({"scale": "standardize", "columns": [TEXT, TEXT]}, "each with a name of its own"),
        ({"scale": "standardize", "columns": [TEXT], "units": 1}, "unknown fields: units"),
        ({"scale": "none", "columns": [{"name": "a", "kind": "number", "spread": 1}]}, "columns[0].centre is missing"),
        ({"scale": "none", "columns": [{"name": "a", "kind": "text"}]}, "columns[0].levels "),
        ({"scale": "standardize", "columns": [{**NUMBER, "written": "by hand"}]}, "a way to write a number"),
        ({"scale": "standardize", "columns": [7]}, "encoder.columns[0] must be an object, not 7"),
        *(
            ({"scale": "standardize", "columns": [{**NUMBER, **wrong}]}, message)
            for wrong, message in [
                ({"name": 3}, "columns[0].name must be a text, not 3"),
                ({"kind": "complex"}, "kind must be 'number' or 'boolean' or 'text' or 'date', not 'complex'"),
                ({"kind": ["number"]}, "not a list of 1"),
                ({"centre": "0"}, "centre must be a finite number, not '0'"),
                ({"centre": True}, "centre must be a finite number, not true"),
                ({"centre": math.inf}, "centre must be a finite number, not Infinity"),
                ({"centre": 10**400}, "centre must be a finite number, not a huge number"),
                ({"spread": 0}, "spread must be a positive number, not 0"),
                ({"spread": -1.0}, "spread must be a positive number, not -1"),
                ({"spread": math.nan}, "spread must be a finite number, not NaN"),
                ({"levels": []}, "unknown fields: levels"),
            ]
        ),
        *(
            ({"scale": "none", "columns": [{**TEXT, "levels": levels}]}, message)
            for levels, message in [
                ([], "levels must be texts in ascending order, all different"),
                (["y", "x"], "in ascending order"),
                (["x", "x"], "all different"),
                (["x", 1], "levels[1] must be a text, not 1"),
                ("xy", "levels must be a list, not 'xy'"),
            ]
        ),
    ],
)
def test_nonsense_is_refused_with_its_place(plain, message):
    with pytest.raises(ModelError) as caught:
        encoder_of(plain)
    assert caught.value.message.startswith("m.model is damaged: encoder")
    assert message in caught.value.message
    assert caught.value.exit_code == 5


def replaced(plain, dice, junk):
    """Return JSON with one of its values replaced by junk."""
    if isinstance(plain, dict) and dice.random() < 0.9:
        key = dice.choice(list(plain))
        return plain | {key: replaced(plain[key], dice, junk)}
    if isinstance(plain, list) and dice.random() < 0.9:
        place = dice.randrange(len(plain))
        return [*plain[:place], replaced(plain[place], dice, junk), *plain[place + 1 :]]
    return dice.choice(junk)


def test_whatever_stands_in_a_model_there_is_an_encoder_that_works_or_an_error_of_ours(table, encoder):
    junk = [
        None,
        True,
        -1,
        0,
        1,
        2**70,
        0.5,
        1e308,
        5e-324,
        "",
        "x",
        [],
        [[]],
        {},
        {"a": 1},
        "number",
        "date",
        ["x", "y"],
    ]
    dice = random.Random(0)
    new = table(TRAINING)
    accepted = 0
    for _ in range(1000):
        try:
            found = encoder_of(replaced(to_plain(encoder), dice, junk))
        except ModelError:
            continue
        assert encoder_of(to_plain(found)) == found
        accepted += 1
        try:
            points = found.transform(new, unknown="ignore").points
        except DataError:
            continue
        assert isinstance(points, Points)
        assert np.isfinite(points.numeric).all()
    assert 0 < accepted < 500
