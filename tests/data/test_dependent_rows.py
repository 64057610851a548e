"""Rows of one case and rows of a series are told by every command, where they matter, and what only looks like them is not."""

import numpy as np
import pandas as pd
import pytest
from scipy import signal

from kerntest import (
    hsic_joint,
    hsic_pairs,
    hsic_select,
    hsic_test,
    inspect_table,
    mmd_test,
    read_table,
    train_cca,
    train_ridge,
    train_svm,
    train_unmix,
)
from kerntest.data.diagnostics.cases import ALIKE, case_column, case_columns
from kerntest.data.diagnostics.series import in_time
from kerntest.errors import DataError, UndecidedError


def panel(persons=30, years=8, seed=0, first=100):
    """Persons over some years, each with a level of wage and hours of its own."""
    rng = np.random.default_rng(seed)
    level = np.repeat(rng.normal(size=(persons, 2)), years, axis=0)
    wage, hours = (level + 0.5 * rng.normal(size=level.shape)).T
    return pd.DataFrame(
        {
            "person": np.repeat(first + 7 * np.arange(persons), years),
            "year": np.tile(np.arange(1980, 1980 + years), persons),
            "wage": wage,
            "hours": hours + wage,
        }
    )


def named(data, **groups):
    """Return the column that names cases in a table, of the groups of columns that are given, or of all."""
    table = read_table(data)
    if groups:
        found = case_column(table, *([table[name] for name in names] for names in groups.values()))
        return found and found.column.name
    named = case_columns(table, table.columns)
    return next((one.column.name for one in named if one.sure and max(one.alike.values()) > ALIKE), None)


def town(n=600, seed=1):
    """Houses in quarters that are unlike, in no order: no cases, although rows of a quarter are alike."""
    rng = np.random.default_rng(seed)
    quarter = rng.integers(0, 20, n)
    price = rng.normal(size=20)[quarter] + 0.5 * rng.normal(size=n)
    sold = rng.integers(2006, 2011, n)
    return pd.DataFrame({"quarter": [f"q{k}" for k in quarter], "sold": sold, "price": price.round(2)})


def test_a_panel_is_of_cases_in_numbers_or_in_words_with_a_year_or_in_order():
    table = panel()
    assert named(table) == "person"
    assert named(table.drop(columns="year")) == "person"
    words = table.assign(person=[f"p{k}" for k in table.person])
    assert named(words.sample(frac=1.0, random_state=0)) == "person"
    # Without a year, words may be kinds, of houses or of cars, unless there are as many rows of each.
    mixed = words.drop(columns="year").sample(frac=1.0, random_state=0)
    assert named(mixed) == "person"
    assert named(mixed[np.random.default_rng(0).random(240) < 0.6]) is None
    assert named(table.assign(person=table.person[::-1].to_numpy()).drop(columns="year")) == "person"


def test_numbers_in_no_order_name_cases_if_a_design_gives_them_and_their_order_says_nothing():
    rng = np.random.default_rng(7)
    table, order = panel().drop(columns="year"), rng.permutation(240)
    assert named(table.iloc[order]) == "person"
    assert named(table.iloc[order], x=["wage"], y=["hours"]) == "person"
    assert named(table.iloc[order[rng.random(240) < 0.6]]) is None
    told = "rows with the same 'person' are alike, and the test takes rows for independent: cluster='person' relabels"
    arm = np.repeat(rng.permutation(30) < 15, 8)[order]
    shuffled = table.iloc[order].assign(arm=np.where(arm, "a", "b"), wage=lambda rows: rows.wage + arm)
    for columns in (None, "wage", "wage,hours"):
        assert [one for one in mmd_test(shuffled, by="arm", columns=columns).warnings if told in one]
    # Doses and grids have as many rows each, too; but neighbouring ones are alike, or nothing follows them.
    dose = np.tile(np.arange(20), 12)
    for value in (0.2 * dose, np.sin(dose / 3.0), np.zeros(240)):
        assert named(pd.DataFrame({"dose": dose, "y": value + rng.normal(size=240)}).iloc[order]) is None
    year = np.tile(np.arange(1990, 2010), 12)
    shocks = pd.DataFrame({"year": year, "y": rng.normal(size=20)[dose] + 0.3 * rng.normal(size=240)})
    assert named(shocks) == named(shocks.assign(year=year - 1990)) == "year"
    # Answers to a question that is called like cases are none, for people give them unequally often.
    answer = np.minimum(rng.geometric(0.4, size=240), 5)
    asked = pd.DataFrame({"household": answer, "y": 2.0 * (answer == 2) + rng.normal(size=240)})
    assert named(asked) is None
    assert (
        named(asked.assign(household=np.tile(np.arange(6), 40), y=np.tile([3.0, 0, 0, 2, 0, 1], 40) + asked.y))
        == "household"
    )
    # Numbers with fractions are measured.
    assert named(table.iloc[order].assign(person=lambda rows: rows.person + 0.5)) is None


def test_what_only_looks_like_cases_is_none():
    rng = np.random.default_rng(2)
    assert named(town()) is None
    # Sorted ages, on which another number depends.
    age = np.sort(rng.integers(20, 60, 400))
    assert named(pd.DataFrame({"age": age, "pressure": 0.1 * age + rng.normal(size=400)})) is None
    # Rows of a case that are not alike.
    assert named(panel().assign(wage=rng.normal(size=240), hours=rng.normal(size=240))) is None
    # A running number is alike in rows that stand together.
    noise = panel().assign(wage=rng.normal(size=240), hours=np.arange(240))
    assert named(noise) is None
    # Alike on one side only does no harm to a test of dependence.
    one = panel().assign(hours=rng.normal(size=240))
    assert named(one, x=["wage"], y=["hours"]) is None
    assert named(panel(), x=["wage"], y=["hours"]) == "person"


@pytest.mark.parametrize("seed", range(20))
def test_independent_rows_name_no_cases(seed):
    rng = np.random.default_rng(seed)
    table = {"k": np.sort(rng.integers(0, 40, 200)), "t": rng.integers(0, 6, 200), "u": rng.normal(size=200)}
    assert named(pd.DataFrame(table)) is None


def test_every_command_tells_cases():
    table, told = panel(), "rows with the same 'person' are alike"
    x, y = table[:120], table[120:].assign(wage=lambda some: some.wage + 0.5)
    by_cluster = f"{told}, and the test takes rows for independent: cluster='person' relabels them together"
    for columns in (None, "wage,hours"):
        assert by_cluster in mmd_test(x, y, columns=columns).warnings
    many = panel(100), panel(100, seed=1, first=5000).assign(wage=lambda some: some.wage + 0.5)
    assert by_cluster in mmd_test(*many, columns="wage,hours", method="features").warnings
    tested = hsic_test(table, x_columns="wage", y_columns="hours")
    assert by_cluster in tested.warnings
    assert not [text for text in tested.warnings if "neighbouring" in text]
    for given, without in (({"statistic": "kcc"}, "statistic='kcc'"), ({"null": "moments"}, "null='moments'")):
        (text,) = (
            one for one in hsic_test(table, x_columns="wage", y_columns="hours", **given).warnings if told in one
        )
        assert f"cluster='person', without {without}, relabels them together" in text
    assert not hsic_test(table, x_columns="wage", y_columns="hours", cluster="person").warnings
    (text,) = [text for text in hsic_pairs(table, exclude="year").warnings if told in text]
    assert "hsic_test with x_columns='wage', y_columns='hours', cluster='person'" in text
    (text,) = [text for text in hsic_joint(table, ["wage", "hours"]).warnings if told in text]
    assert "hsic_test with x_columns='wage', y_columns='hours', cluster='person' relabels them together" in text
    (text,) = [text for text in train_ridge(table, "wage").warnings if told in text]
    assert "it is learned from, so that scores are of cases that the model knows: cluster='person'" in text
    (text,) = [text for text in train_ridge(table, "wage", exclude="person").warnings if told in text]
    assert "(30 different values): cluster='person' keeps them together" in text
    notes = {column.name: column.note for column in inspect_table(table).columns}
    assert notes["person"] == "rows with the same value are alike: consider cluster='person'"
    assert notes["wage"] is None


def test_cases_of_two_rows_of_which_some_are_lost_are_told_where_texts_name_them():
    rng = np.random.default_rng(3)
    person = np.repeat([f"p{k}" for k in rng.permutation(200)], 2)
    level = np.repeat(rng.normal(size=200), 2)
    table = pd.DataFrame(
        {"person": person, "a": level + 0.5 * rng.normal(size=400), "b": level + 0.5 * rng.normal(size=400)}
    )
    for lost in (0, 1, 60):
        some = table.drop(index=rng.choice(400, lost, replace=False))
        assert any("cluster='person'" in text for text in hsic_test(some, x_columns="a", y_columns="b").warnings)


def test_a_column_of_time_by_its_name_may_count_the_rows():
    table = prices(0, n=200)
    for name, told in (("ordinal_date", True), ("Week", True), ("t", True), ("rank", False)):
        assert bool(in_time(read_table(table.assign(day=range(700, 900)).rename(columns={"day": name})))) == told


def test_a_screen_tells_a_column_that_counts_the_rows():
    rng = np.random.default_rng(0)
    a, b = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], 200).T
    table = pd.DataFrame({"Subject": range(1, 201), "a": a, "b": b})
    found = hsic_pairs(table)
    assert [(one.x, one.y) for one in found.pairs if one.reject] == [("a", "b")]
    assert any("column 'Subject' counts the rows" in one for one in found.warnings)
    assert any("column 'Subject' counts the rows" in one for one in hsic_select(table, "a", 1).warnings)
    # A series with its time is told once.
    walks = prices(0).assign(step=range(200), day=np.arange(200) % 7)
    found = hsic_pairs(walks)
    assert any("neighbouring rows are alike in 'close', 'step'" in one for one in found.warnings)
    assert not any("counts the rows" in one for one in found.warnings)


def prices(seed, start="2020-01-01", n=200):
    """Prices on working days, a random walk."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"day": pd.bdate_range(start, periods=n), "close": np.cumsum(rng.normal(size=n))})


def test_a_series_with_its_time_is_told_by_tests_of_two_tables_and_by_learners():
    x, y = prices(0), prices(1)
    assert in_time(read_table(x))
    told = "neighbouring rows are alike in 'close' of x, y: if the rows are a series in time"
    (text,) = [text for text in mmd_test(x, y, columns="close").warnings if told in text]
    assert "cluster='stretch' relabels them together" in text
    # Nothing tells the time, but most follow it in both, or nothing does.
    y["noise"], x["noise"] = np.random.default_rng(3).normal(size=(2, 200))
    for names in (["close"], ["close", "noise"]):
        (text,) = mmd_test(x[names], y[names]).warnings
        assert told in text
        assert "number stretches of rows, differently in each file, in a column 'stretch'" in text
    assert not mmd_test(x[["close"]], y[["close"]].sort_values("close")).warnings
    assert not mmd_test(x[["close"]], y[["close"]].sample(frac=1.0, random_state=0)).warnings
    mixed = [one.assign(close=one.close.sample(frac=1.0, random_state=0).to_numpy()) for one in (x, y)]
    assert not mmd_test(*mixed, columns="close").warnings
    lagged = x.assign(before=x.close + np.random.default_rng(2).normal(size=200))
    (text,) = [text for text in train_ridge(lagged, "close", exclude="day").warnings if "neighbouring" in text]
    assert "the rows to judge by lie among those that are learned from" in text
    rest = np.random.default_rng(5).normal(size=(len(lagged), 3))
    rest = pd.DataFrame(rest, columns=list("abc"), index=lagged.index).join(lagged[["close"]])
    assert not [text for text in train_ridge(rest, "close").warnings if "neighbouring" in text]


def test_cases_that_cannot_change_places_are_told_without_a_way_that_leads_nowhere():
    # Twelve stores of as many sizes.
    rng, sizes = np.random.default_rng(4), range(10, 22)
    place = np.repeat(np.arange(12), sizes)
    level = (rng.permutation(12) % 4)[place]
    table = pd.DataFrame({"store": [f"s{k}" for k in place], "visit": np.concatenate([np.arange(k) for k in sizes])})
    table = table.assign(a=level + 0.3 * rng.normal(size=len(place)), b=level + 0.3 * rng.normal(size=len(place)))
    told = "'store' are alike, and the test takes rows for independent: they are too few, or of too different sizes"
    for found in (hsic_test(table, x_columns="a", y_columns="b"), hsic_pairs(table, exclude="visit")):
        assert any(told in text for text in found.warnings)


def test_stretches_of_time_hold_several_steps_and_a_cluster_of_one_row_is_none():
    months = pd.DataFrame({"month": pd.date_range("1990-01-01", periods=120, freq="MS"), "x": prices(0, n=120).close})
    months = months.assign(late=["no"] * 90 + ["yes"] * 30, stretch=range(120))
    (text,) = [text for text in mmd_test(months, by="late", columns="x").warnings if "neighbouring" in text]
    assert "number stretches of rows, as years of 'month', in a column 'stretch'" in text
    found = hsic_test(months, x_columns="late", y_columns="x", cluster="stretch")
    assert (
        "each 'stretch' has one row: what relabels clusters relabels rows, and takes them for independent"
        in found.warnings
    )


def test_series_that_are_learned_from_each_other_are_told_without_a_column_of_time():
    x, y = (np.cumsum(np.random.default_rng(seed).normal(size=300)) for seed in (0, 1))
    for series, train in (
        (pd.DataFrame({"x": x, "y": y}), train_ridge),
        (pd.DataFrame({"x": x, "y": np.where(y > np.median(y), "up", "down")}), train_svm),
    ):
        told = [
            any("neighbouring rows are alike in 'y'" in text for text in train(one, "y").warnings)
            for one in (series, series.sample(frac=1.0, random_state=0), series.sort_values("y"))
        ]
        assert told == [True, False, False]


def test_groups_of_one_table_are_told_of_cases_that_are_not_tested_and_of_those_that_change_within_some():
    rng = np.random.default_rng(3)
    table = panel(40)
    side = np.repeat(rng.permutation(40) < 20, 8)
    apart = table.assign(side=np.where(side, "u", "v"), wage=table.wage + side)
    told = "rows with the same 'person' are alike, and the test takes rows for independent: "
    (text,) = [one for one in mmd_test(apart, by="side", columns="wage,hours").warnings if told in one]
    assert text == f"{told}cluster='person' relabels them together"
    # A few persons change sides: what is alike within them still is.
    changing = apart.assign(side=np.where((np.arange(320) < 40) & (np.arange(320) % 8 < 2), "u", apart.side))
    (text,) = [one for one in mmd_test(changing, by="side", columns="wage,hours").warnings if told in one]
    whole = "hsic_test(data, x_columns='side', y_columns='wage,hours', cluster='person') exchanges whole cases"
    assert text == f"{told}{whole}; strata='person' asks what differs within one case, if its rows follow no time"
    with pytest.raises(DataError, match="rows in both tables") as caught:
        mmd_test(changing, by="side", columns="wage,hours", cluster="person")
    assert whole in str(caught.value.hint)
    tested = hsic_test(changing, x_columns="side", y_columns="wage,hours", cluster="person")
    assert not [one for one in tested.warnings if told in one]
    files = [changing[changing.side == one].drop(columns="side") for one in "uv"]
    (text,) = [one for one in mmd_test(*files, columns="wage,hours").warnings if told in one]
    assert "hsic_test with x_columns='file' and cluster='person', of one file with a column 'file'," in text
    # Rows that are on either side by chance, whoever they are of, are exchangeable.
    drawn = rng.random(320) < 0.5
    by_chance = table.assign(side=np.where(drawn, "u", "v"), wage=table.wage + 2.0 * drawn)
    found = mmd_test(by_chance, by="side", columns="wage,hours")
    assert found.reject
    assert not [one for one in found.warnings if told in one]
    # A side in words is as alike within persons as numbers are.
    (text,) = [one for one in hsic_test(apart, x_columns="side", y_columns="wage").warnings if told in one]
    assert text == f"{told}cluster='person' relabels them together"
    assert not [one for one in hsic_test(by_chance, x_columns="side", y_columns="wage").warnings if told in one]


def test_two_walks_are_no_series_to_shift_and_the_hint_of_a_screen_leaves_the_time_out():
    rng = np.random.default_rng(4)
    steps = rng.normal(size=(200, 3))
    walks = pd.DataFrame(np.cumsum(steps, axis=0), columns=list("abc")).assign(day=np.arange(5, 405, 2))
    told = "wander like random walks"
    found = hsic_test(walks, x_columns="a", y_columns="b", time_series=True, alpha=0.999)
    assert [one for one in found.warnings if f"'a' and 'b' {told}" in one]
    changes = pd.DataFrame(steps, columns=list("abc"))
    for x, y, table in (("a", "b", changes), ("a", "step", walks.assign(step=steps[:, 2]))):
        found = hsic_test(table, x_columns=x, y_columns=y, time_series=True, alpha=0.999)
        assert not [one for one in found.warnings if told in one]
    (text,) = [one for one in hsic_pairs(walks, alpha=0.5).warnings if "neighbouring rows are alike" in one]
    assert "time_series=True tests series" in text
    assert "='day'" not in text


def test_learners_tell_classes_that_follow_time_and_pairs_of_series_and_rows_to_come_are_a_fair_test(tmp_path):
    x, other = prices(5, n=300), prices(6, n=300)
    table = x.assign(other=other.close, level=np.where(x.close > x.close.median(), "high", "low"))
    told = "rows to judge by lie among those that are learned from"
    (text,) = [one for one in train_svm(table, "level", columns="other", test_fraction=0.3).warnings if told in one]
    assert "alike in 'level'" in text
    rng = np.random.default_rng(0)
    drawn = table.assign(level=rng.permutation(table.level))
    assert not [one for one in train_svm(drawn, "level", columns="other", test_fraction=0.3).warnings if told in one]
    path = tmp_path / "later.csv"
    table[200:].to_csv(path, index=False)
    options = {"columns": "other", "test": path}
    assert not [one for one in train_ridge(table[:200], "close", **options).warnings if told in one]
    assert [one for one in train_ridge(table[::2], "close", **options).warnings if told in one]
    series = "alike in 'close', 'other': if the rows are a series in time, "
    for found in (
        train_cca(table, x_columns="close", y_columns="other", test_fraction=0.3),
        train_unmix(table, columns="close,other", test_fraction=0.3, seed=1),
    ):
        depends = found.command == "cca" or any("depend on each other" in one for one in found.warnings)
        assert any(series in one for one in found.warnings) == depends
    apart = table.assign(other=rng.permutation(table.other))
    assert not [
        one
        for one in train_cca(apart, x_columns="close", y_columns="other", test_fraction=0.3).warnings
        if "series" in one
    ]


def test_replicates_of_a_case_in_words_are_told_where_the_groups_are_of_cases():
    rng = np.random.default_rng(7)
    case = np.repeat(np.arange(50), 4)
    table = pd.DataFrame({"id": [f"p{k}" for k in case], "y": rng.normal(size=50)[case] + 0.5 * rng.normal(size=200)})
    table["arm"] = np.where(rng.permutation(50)[case] < 25, "u", "v")
    told = "rows with the same 'id' are alike"
    assert [
        one
        for one in train_svm(table, "arm", test_fraction=0.3).warnings
        if f"{told} (50 different values), and it" in one
    ]
    assert [one for one in mmd_test(table, by="arm").warnings if told in one]
    # What says nothing of the case is alike in its name alone, which is tested.
    noise = table.assign(y=rng.normal(size=200))
    assert [one for one in mmd_test(noise, by="arm").warnings if told in one]
    assert not [one for one in mmd_test(noise, by="arm", columns="y").warnings if told in one]


def test_periods_of_one_series_are_told_by_the_order_of_the_whole():
    level = pd.DataFrame({"year": np.arange(1900, 1960), "level": np.cumsum(np.random.default_rng(8).normal(size=60))})
    level["decade"] = level.year // 10 * 10
    told, two = "neighbouring rows are alike in 'level' of ", "decade == 1900 or decade == 1950"
    found = mmd_test(level, by="decade", columns="level", where=two)
    assert found.reject
    assert [one for one in found.warnings if told in one]
    # Of so few rows even steps may be those of a dose.
    doses = mmd_test(level.assign(year=np.arange(0.0, 30.0, 0.5)), by="decade", columns="level", where=two)
    assert doses.reject
    assert not [one for one in doses.warnings if told in one]
    found = mmd_test(level.assign(half=level.year >= 1930), by="half", columns="level")
    assert found.reject
    (text,) = [one for one in found.warnings if "neighbouring rows are alike" in one]
    assert "in 'level' of " in text
    assert "column 'stretch': cluster='stretch' relabels" in text
    # Where groups change from row to row no stretch is of one.
    level["odd"], level["level"] = level.year % 2, level.level + 3.0 * (level.year % 2)
    rising = np.cumsum(1.0 + 0.2 * np.random.default_rng(9).normal(size=60))
    found = mmd_test(level.assign(level=rising + 30.0 * level.odd), by="odd", columns="level")
    (text,) = [one for one in found.warnings if "neighbouring rows are alike" in one]
    assert "hsic_test(data, x_columns='odd', y_columns='level', time_series=True) tests two series" in text


def test_groups_of_a_series_that_nothing_dates_are_told_where_their_rows_stand_together():
    rng = np.random.default_rng(5)
    level = signal.lfilter([1.0], [1.0, -0.85], rng.normal(size=800))
    event = (np.arange(800) >= 300) & (np.arange(800) < 420)
    table = pd.DataFrame({"level": level + 2.0 * event, "event": np.where(event, "yes", "no")})
    told = "neighbouring rows are alike in 'level' of "
    for some, known in (
        (table, True),
        (table.assign(event=rng.permutation(table.event), level=level + 2.0 * (table.event == "yes")), False),
        (table.sort_values(["event", "level"]), False),
        # Levels of a design, over and over, or in an order with ties.
        (table.assign(level=np.tile(np.repeat(np.arange(25.0), 4), 8) + 9.0 * event), False),
        (table.assign(level=level.round(0) + 2.0 * event).sort_values(["event", "level"]), False),
    ):
        found = mmd_test(some, by="event", columns="level")
        assert any(told in text for text in found.warnings) == known


def test_classes_that_stand_in_long_stretches_of_a_series_are_told_but_not_in_a_sorted_table():
    rng = np.random.default_rng(6)
    level = signal.lfilter([1.0], [1.0, -0.9], rng.normal(size=800))
    table = pd.DataFrame({"level": level, "event": np.where((np.arange(800) // 200) == 1, "yes", "no")})
    for some, known in (
        (table, True),
        (table.assign(event=1 * (table.event == "yes")), True),
        (shuffled(table).sort_values("event", kind="stable"), False),
        (table.sort_values("event", kind="stable"), False),
        (table.sort_values(["event", "level"]), False),
        (table.assign(level=np.tile(np.repeat(np.arange(25.0), 4), 8)), False),
    ):
        told = train_svm(some, "event", test_fraction=0.3).warnings
        assert any("neighbouring rows are alike in 'event'" in text for text in told) == known


def shuffled(table, seed=0):
    """The same rows in no order."""
    return table.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def test_names_of_cases_are_understood_in_any_order_and_of_few_cases():
    # As many rows as chance gives, in no order, and nothing else that tells.
    some = shuffled(panel(30)).drop(columns="year")[np.random.default_rng(0).random(240) < 0.6]
    assert named(some.rename(columns={"person": "quarter"})) is None
    for name in ("id", "ID", "Subject", "patient_id", "patientId", "study.id", "Participant", "hh_id"):
        assert named(some.rename(columns={"person": name})) == name
    for name in ("idea", "valid", "width", "personality", "subjective"):
        assert named(some.rename(columns={"person": name})) is None
    few = panel(8, 6, seed=2)
    assert named(few.rename(columns={"person": "Subject"}), x=["wage"], y=["hours"]) == "Subject"
    assert named(few, x=["wage"], y=["hours"]) is None
    # The order of numbers may say something if they are called so, and else not.
    k = np.random.default_rng(1).integers(0, 30, 400)
    for name, told in (("id", "id"), ("grade", None)):
        assert named(pd.DataFrame({name: k, "y": k + np.random.default_rng(2).normal(size=400)})) == told


def schools(rng, sizes=(3, 12), columns=1):
    """Pupils of forty schools, public or private, in no order; nothing depends on which."""
    school = np.repeat(rng.permutation(40), rng.integers(*sizes, 40))
    private = rng.permutation(40) < 15
    score = rng.normal(size=(40, columns))[school] + rng.normal(size=(len(school), columns))
    table = pd.DataFrame(score, columns=[f"score{k}" for k in range(columns)])
    return shuffled(table.assign(code=school, kind=np.where(private[school], "private", "public")))


def test_what_never_changes_within_numbers_tells_that_they_are_cases():
    told = "rows with the same 'code' are alike"
    for seed in range(5):
        table = schools(np.random.default_rng(seed))
        assert named(table) is None
        assert named(table, x=["kind"], y=["score0"]) == "code"
        shifted = table.assign(score0=table.score0 + (table.kind == "private"))
        assert [one for one in mmd_test(shifted, by="kind", columns="score0").warnings if told in one]
        assert [one for one in train_svm(table, "kind", exclude="code").warnings if told in one]
    # A limit of ages, and what is drawn row by row.
    rng = np.random.default_rng(1)
    age = rng.integers(20, 70, 400)
    grown = pd.DataFrame({"age": age, "old": np.where(age > 50, "yes", "no"), "y": 0.05 * age + rng.normal(size=400)})
    assert named(grown, x=["old"], y=["y"]) is None
    assert not [one for one in mmd_test(grown, by="old", columns="y").warnings if "the same 'age'" in one]
    assert named(table.assign(kind=rng.permutation(table.kind)), x=["kind"], y=["score0"]) is None


def test_a_warning_of_cases_hangs_on_how_far_they_inflate_the_variance():
    rng = np.random.default_rng(3)
    case = np.repeat(np.arange(40), 50)
    fixed = rng.normal(size=40)[case]
    for between, is_told in ((0.5, True), (0.02, False)):
        y = between * rng.normal(size=40)[case] + rng.normal(size=2000)
        table = shuffled(pd.DataFrame({"patient": case, "x": fixed, "y": y}))
        assert (named(table, x=["x"], y=["y"]) == "patient") == is_told


def test_years_of_a_series_are_no_cases_and_as_clusters_follow_each_other():
    rng = np.random.default_rng(4)
    year = np.repeat(np.arange(1950, 2000), 4)
    walks = pd.DataFrame({"year": year, "u": np.cumsum(rng.normal(size=200)), "v": np.cumsum(rng.normal(size=200))})
    cases, series = "rows with the same 'year'", "time_series=True"
    tested = {"x_columns": "u", "y_columns": "v", "alpha": 0.99}
    half = walks.assign(late=np.where(year < 1975, "no", "yes"))
    for found in (
        hsic_test(walks, **tested),
        hsic_test(walks, **tested, cluster="year"),
        hsic_pairs(walks, exclude="year", alpha=0.99),
        mmd_test(half, by="late", columns="u", cluster="year"),
    ):
        assert [one for one in found.warnings if series in one]
        assert not [one for one in found.warnings if cases in one]
    found = mmd_test(half, by="late", columns="u")
    (text,) = [one for one in found.warnings if "neighbouring rows are alike" in one]
    assert "number stretches of rows in a column 'stretch'" in text
    # Of dates it is told what a stretch may be.
    dated = half.assign(year=pd.Timestamp("1950-01-01") + pd.to_timedelta(np.arange(200), "D"))
    (text,) = [one for one in mmd_test(dated, by="late", columns="u").warnings if "neighbouring rows are alike" in one]
    assert "number stretches of rows, as months of 'year', in a column 'stretch'" in text
    # Years that do not follow each other are clusters as others are.
    odd = walks.assign(odd=year % 2, u=rng.normal(size=50)[year - 1950] + 2.0 * (year % 2) + rng.normal(size=200))
    found = mmd_test(odd, by="odd", columns="u", cluster="year")
    assert found.reject
    assert not found.warnings


def test_a_text_of_many_values_that_is_learned_from_may_name_cases_and_a_value_of_most_rows_names_none():
    rng = np.random.default_rng(6)
    model = rng.integers(0, 40, 240)
    rows = {"model": [f"m{k}" for k in model], "weight": rng.normal(size=40)[model] + 0.2 * rng.normal(size=240)}
    cars = pd.DataFrame(rows | {"mileage": rng.normal(size=40)[model] + 0.3 * rng.normal(size=240)})
    told = "rows with the same 'model' are alike (40 different values), and it is learned from"
    assert [one for one in train_ridge(cars, "mileage", test_fraction=0.3).warnings if told in one]
    classes = cars.assign(mileage=np.where(rng.normal(size=40)[model] > 0, "high", "low"))
    assert [one for one in train_svm(classes, "mileage", test_fraction=0.3).warnings if told in one]
    # Many rows of each are kinds, as quarters of a town are.
    quarter = rng.integers(0, 25, 1000)
    price = rng.normal(size=25)[quarter] + 0.5 * rng.normal(size=1000)
    houses = pd.DataFrame({"quarter": [f"q{k}" for k in quarter], "area": rng.normal(size=1000), "price": price})
    assert not [one for one in train_ridge(houses, "price").warnings if "cases" in one]
    # The causes of death of those who died.
    dead = rng.random(600) < 0.3
    cause = np.where(dead, rng.integers(1, 25, 600), 0)
    table = pd.DataFrame({"cause": cause, "dead": np.where(dead, "yes", "no"), "y": dead + rng.normal(size=600)})
    assert named(table, x=["dead"], y=["y"]) is None
    assert not [one for one in mmd_test(table, by="dead", columns="y").warnings if "cause" in one]


def test_strata_whose_rows_follow_each_other_in_time_are_told():
    rng = np.random.default_rng(8)
    table = panel(60, 10)
    # A side that persons keep for some years, of levels that they keep, too.
    stays = rng.random((60, 10)) < 0.8
    drawn = rng.integers(0, 2, (60, 10))
    for year in range(1, 10):
        drawn[:, year] = np.where(stays[:, year], drawn[:, year - 1], drawn[:, year])
    walk = np.cumsum(rng.normal(size=(60, 10)), axis=1).ravel()
    told = "within 'person' neighbouring rows are of one group and alike in 'walk'"
    moved = table.assign(side=drawn.ravel(), walk=walk + 2.0 * drawn.ravel())
    options = {"by": "side", "columns": "walk,hours", "strata": "person"}
    (text,) = [one for one in mmd_test(moved, **options).warnings if told in one]
    assert "cluster='person'" in text
    assert [one for one in mmd_test(moved.iloc[rng.permutation(600)], **options).warnings if "rows are" in one] == []
    # What differs is no order, in a table that is sorted by its groups, nor is a side that is drawn row by row.
    noise = table.assign(side=np.tile([0] * 5 + [1] * 5, 60), walk=rng.normal(size=600))
    noise["walk"] += noise.side
    by_row = table.assign(side=rng.integers(0, 2, 600))
    by_row["walk"] = walk + 2.0 * by_row.side
    for some in (noise, noise.sort_values("side", kind="stable"), by_row):
        found = mmd_test(some, **options)
        assert found.reject
        assert not [one for one in found.warnings if told in one]


def test_numbers_that_follow_from_others_name_no_cases():
    rng = np.random.default_rng(9)
    years = rng.integers(0, 40, 700)
    works = rng.random(700) < 1.0 / (1.0 + np.exp(2.0 - 0.1 * years))
    table = pd.DataFrame({"years": years, "squared": years**2, "works": np.where(works, "yes", "no")})
    table["u"], table["hours"] = rng.normal(size=700), np.where(works, rng.integers(1, 300, 700), 0)
    for columns in ("years,u", "squared,u", "u"):
        for found in (
            train_svm(table, "works", columns=columns, test_fraction=0.3),
            mmd_test(table, by="works", columns=columns, alpha=0.9),
        ):
            assert not [one for one in found.warnings if "rows with the same" in one]


def test_a_sample_with_one_value_of_a_quantity_is_no_case_of_many_rows():
    rng = np.random.default_rng(14)
    wait = np.concatenate([np.zeros(400), rng.permutation(np.repeat(np.arange(1, 81), 5))])
    cost = np.concatenate(
        [rng.normal(size=400), rng.normal(size=80)[wait[400:].astype(int) - 1] + rng.normal(size=400)]
    )
    table = pd.DataFrame({"mode": np.repeat(["car", "air"], 400), "wait": wait, "cost": cost + (wait == 0)})
    assert not [one for one in mmd_test(table, by="mode").warnings if "cluster" in one]


def test_numbers_of_rows_of_the_second_half_of_a_table_are_no_time():
    rng = np.random.default_rng(15)
    table = pd.DataFrame({"row": np.arange(1, 401), "y": np.sort(5.0 * rng.normal(size=400)) + rng.normal(size=400)})
    assert not [one for one in mmd_test(table[:200], table[200:]).warnings if "neighbouring rows" in one]
    dated = table.assign(row=pd.date_range("2020-01-01", periods=400))
    (warning,) = [one for one in mmd_test(dated[:200], dated[200:]).warnings if "neighbouring rows" in one]
    assert "alike in 'y' of" in warning


def test_cases_that_are_numbered_by_treatment_are_cases_and_the_time_of_each_is_none():
    rng = np.random.default_rng(16)
    day, hen = np.repeat(np.arange(0, 24, 2), 40), np.tile(np.arange(1, 41), 12)
    growth = 8.0 * rng.normal(size=40)[hen - 1] + day
    table = pd.DataFrame({"day": day, "hen": hen, "diet": (hen - 1) // 10, "weight": growth + rng.normal(size=480)})
    assert named(table) == "hen"
    assert named(table, x=["diet"], y=["weight"]) == "hen"
    assert any("cluster='hen' learns without it" in one for one in train_ridge(table, "weight").warnings)


def test_days_of_months_by_which_a_table_is_sorted_follow_time_where_the_other_side_does():
    rng = np.random.default_rng(20)
    table = pd.DataFrame({"month": np.repeat(np.arange(5), 30), "day": np.tile(np.arange(1, 31), 5)})
    table["heat"] = signal.lfilter([1.0], [1.0, -0.8], rng.normal(size=150))
    asked = {"x_columns": "day", "y_columns": "heat"}
    assert [one for one in hsic_test(table, **asked).warnings if "alike in 'day', 'heat'" in one]
    drawn = table.assign(heat=rng.normal(size=150) + table.day / 10)
    assert not [one for one in hsic_test(drawn, **asked).warnings if "alike" in one]


def test_cases_that_no_column_names_are_told_by_what_stays_the_same_in_them():
    rng = np.random.default_rng(12)
    plan, level = (np.repeat(one, 5) for one in (rng.integers(0, 6, 200), rng.normal(size=200)))
    table = pd.DataFrame({"plan": plan, "visits": level + rng.normal(size=1000)})
    told = (
        "neighbouring rows are alike in 'plan', 'visits': if the rows are a series in time, or several are of one case"
    )

    def warned(data, **options):
        return [one for one in hsic_test(data, x_columns="plan", y_columns="visits", **options).warnings if told in one]

    (warning,) = warned(table)
    assert "number the cases in a column 'case': cluster='case' relabels them together" in warning
    numbered = table.assign(case=np.repeat(np.arange(200), 5))
    assert hsic_test(table, x_columns="plan", y_columns="visits").reject
    assert not hsic_test(numbered, x_columns="plan", y_columns="visits", cluster="case").reject
    # Rows in no order tell nothing, and in a sorted table groups of rows that are alike say nothing of cases.
    assert not warned(table.sample(frac=1.0, random_state=0))
    dependent = table.assign(visits=plan + rng.normal(size=1000))
    for order in (["plan"], ["visits"], ["plan", "visits"]):
        assert not warned(dependent.sort_values(order))
        assert hsic_test(dependent.sort_values(order), x_columns="plan", y_columns="visits").reject


def test_what_neither_side_holds_tells_cases_too_and_groups_pairs_and_learners_say_so():
    rng = np.random.default_rng(12)
    plan, level = (np.repeat(one, 5, axis=0) for one in (rng.integers(0, 6, 200), rng.normal(size=(200, 2))))
    wage, visits = (level + 0.7 * rng.normal(size=level.shape)).T
    arm = np.where(np.repeat(rng.random(200) < 0.5, 5), "a", "b")
    table = pd.DataFrame({"plan": plan, "arm": arm, "wage": wage, "visits": visits + wage + 0.5 * (arm == "a")})
    stays = "neighbouring rows are alike in 'wage', 'visits' where 'plan' stays the same"
    assert any(stays in one for one in hsic_test(table, x_columns="wage", y_columns="visits").warnings)
    assert any(stays in one for one in hsic_pairs(table, columns="wage,visits").warnings)
    grouped = mmd_test(table, by="arm", columns="visits").warnings
    assert any("alike in 'visits' where 'plan' stays the same" in one and "cluster='case'" in one for one in grouped)
    learned = "if several are of one case, number the cases in a column 'case': cluster='case' keeps them together"
    model = train_ridge(table, target="visits", columns=["wage"])
    assert any(learned in one for one in model.warnings)
    assert not any(
        "neighbouring" in one
        for one in train_ridge(table.sample(frac=1.0, random_state=0), target="visits", columns=["wage"]).warnings
    )


def test_numbers_in_no_order_that_stand_together_name_cases_in_the_order_of_the_file():
    rng = np.random.default_rng(13)
    sizes = rng.integers(4, 30, 60)
    code, level = np.repeat(rng.permutation(9000)[:60], sizes), np.repeat(rng.normal(size=(60, 2)), sizes, axis=0)
    x, y = (level + 1.5 * rng.normal(size=level.shape)).T
    table = pd.DataFrame({"class": code, "x": x, "y": y + 0.5 * x})
    told = "rows with the same 'class' are alike, and the test takes rows for independent: cluster='class' relabels"
    assert any(told in one for one in hsic_test(table, x_columns="x", y_columns="y").warnings)
    assert any(
        "x_columns='x', y_columns='y', cluster='class'" in one for one in hsic_pairs(table, columns="x,y").warnings
    )
    # Ages of which equal ones stand together are no names where neighbouring ones are as alike.
    grown = pd.DataFrame({"age": code, "x": code / 2000 + rng.normal(size=len(code)), "y": code / 2000 + x})
    grown = grown.sort_values("age", ascending=False)
    assert not any("the same 'age'" in one for one in hsic_test(grown, x_columns="x", y_columns="y").warnings)


def test_lines_of_an_order_are_told_by_what_they_have_in_common():
    """Equal rows of two texts stand together in places where both change: one that follows from the other says nothing."""
    rng = np.random.default_rng(7)
    orders = pd.DataFrame({"city": rng.integers(0, 150, 700), "mode": rng.choice(["air", "rail", "road"], 700)})
    orders["state"] = orders["city"] // 10
    lines = orders.loc[np.repeat(np.arange(700), rng.integers(1, 4, 700))].astype(str).reset_index(drop=True)

    def told(table):
        return [
            one
            for one in hsic_test(table, x_columns="mode", y_columns="city").warnings
            if "several are of one case" in one
        ]

    assert "'mode', 'city'" in told(lines)[0]
    assert not told(lines.sample(frac=1.0, random_state=1))
    assert not told(lines.sort_values(["city", "mode"]))
    nested = lines.sort_values("state", kind="stable").drop(columns="mode").rename(columns={"state": "mode"})
    assert not told(nested)


def test_a_table_of_counts_is_told():
    cells = pd.MultiIndex.from_product([["a", "b"], ["u", "v", "w"], range(20)], names=["x", "y", "z"]).to_frame(
        index=False
    )
    cells["cases"] = np.random.default_rng(5).poisson(4.0, len(cells))
    (told,) = hsic_test(cells, x_columns="x", y_columns="y").warnings
    assert told == (
        "'x' and 'y' are in all combinations equally often, by a design or in a table of counts: they say nothing of "
        "dependence; if 'cases' counts cases, repeat each row so often"
    )
    whole = cells.loc[cells.index.repeat(cells["cases"])]
    assert not [one for one in hsic_test(whole, x_columns="x", y_columns="y").warnings if "combinations" in one]


def test_pairs_and_strata_of_series_and_of_cases_are_told():
    rng = np.random.default_rng(3)
    x, y = (signal.lfilter([1.0], [1.0, -0.95], rng.normal(size=300))[100:200] for _ in range(2))
    months = pd.date_range("2000-01-01", periods=100, freq="MS")
    series = [
        pd.DataFrame({"month": months, "year": months.year, "price": one + 2 * k}) for k, one in enumerate((x, y))
    ]
    (told,) = mmd_test(*series, paired="month").warnings
    assert told.startswith(
        "differences within neighbouring pairs are alike in 'price': if the rows are a series in time"
    )
    days = [
        one.loc[one.index.repeat(3)].assign(price=lambda one: one["price"] + rng.normal(size=300)) for one in series
    ]
    told = " | ".join(mmd_test(*days, paired="month", columns="price").warnings)
    assert "number longer stretches of rows than those of 'month' in a column 'stretch'" in told
    told = mmd_test(*series, strata="year", columns="price").warnings
    assert any(one.startswith("within 'year' neighbouring rows are alike in 'price'") for one in told)
    visits = pd.DataFrame(
        {"patient": np.repeat([f"p{k}" for k in range(15)], 10), "visit": [f"v{k}" for k in range(150)]}
    )
    effect = np.repeat(rng.normal(1.0, 1.0, 15), 10)
    cases = [visits.assign(pressure=sign * effect + rng.normal(size=150)) for sign in (0.5, -0.5)]
    (told,) = mmd_test(*cases, paired="visit", columns="pressure").warnings
    assert "paired='patient' swaps them together" in told
    assert not [one for one in mmd_test(*cases, paired="patient", columns="pressure").warnings if "alike" in one]
    # Independent pairs are not.
    alone = [one.assign(price=rng.normal(k, size=100)) for k, one in enumerate(series)]
    assert mmd_test(*alone, paired="month").reject
    assert not mmd_test(*alone, paired="month").warnings


def test_rats_in_the_order_of_their_diets_are_cases():
    """Only the weight is measured, and neighbouring rats are as alike as weighings of one: not so within a diet."""
    rng = np.random.default_rng(2)
    diet, rat = np.repeat([1, 2, 3], [40, 20, 20]), np.repeat(np.arange(16), 5)
    weight = np.repeat([250.0, 450.0, 520.0], [40, 20, 20]) + rng.normal(0, 12, 16)[rat] + rng.normal(0, 3, 80)
    table = pd.DataFrame({"rat": rat + 1, "time": np.tile([1, 8, 15, 22, 29], 16), "diet": diet, "weight": weight})
    told = "rows with the same 'rat' are alike"
    assert any(one.startswith(told) for one in train_ridge(table, "weight", test_fraction=0.3).warnings)
    # Numbers of doses, in whose order the weights are, name none.
    doses = table.assign(weight=10.0 * rat + rng.normal(0, 3, 80))
    assert not any(one.startswith(told) for one in train_ridge(doses, "weight", test_fraction=0.3).warnings)


def test_strata_hide_neither_cases_nor_time_and_are_no_cases_themselves():
    rng = np.random.default_rng(6)
    patients = pd.DataFrame({"patient": np.repeat(np.arange(101, 131), 6), "visit": np.tile(np.arange(6), 30)})
    patients["arm"] = np.repeat(rng.permutation(["drug", "placebo"] * 15), 6)
    patients["pressure"] = 2.0 * np.repeat(rng.normal(size=30), 6) + rng.normal(size=180) + (patients["arm"] == "drug")
    told = "rows with the same 'patient' are alike"
    found = mmd_test(patients, by="arm", columns="pressure", strata="visit")
    assert found.reject
    assert any(one.startswith(told) for one in found.warnings)
    within = patients.assign(arm=np.tile(["drug", "placebo"], 90))
    within["pressure"] += within["arm"] == "drug"
    within = within.sample(frac=1.0, random_state=1)
    assert mmd_test(within, by="arm", columns="pressure", strata="patient").reject
    assert not mmd_test(within, by="arm", columns="pressure", strata="patient").warnings
    level = signal.lfilter([1.0], [1.0, -0.8], rng.normal(size=120))
    months = pd.DataFrame(
        {"month": pd.date_range("2010-01-01", periods=120, freq="MS"), "period": np.repeat(["a", "b"], 60)}
    )
    months["season"], months["sales"] = months["month"].dt.month, level + 2.0 * (months["period"] == "b")
    (told,) = mmd_test(months, by="period", columns="sales", strata="season").warnings
    assert told.startswith("neighbouring rows are alike in 'sales'")


def test_strata_are_offered_only_where_the_rows_that_are_used_can_reject():
    rng = np.random.default_rng(3)
    table = panel(40)
    side = np.where(np.repeat(rng.permutation(40) < 20, 8), "u", "v")
    # Of those who change sides only one row of each side has all values.
    moved = (np.arange(320) < 40) & (np.arange(320) % 8 < 2)
    table = table.assign(side=np.where(moved, "u", side), wage=table.wage + (side == "u"), age=rng.normal(size=320))
    few = table.assign(age=np.where((np.arange(320) < 40) & (np.arange(320) > 7), np.nan, table.age))
    few = few.drop(index=few.index[:8][few.side[:8] == "u"][1:])
    asked = {"by": "side", "columns": "wage,hours,age", "missing": "drop"}
    for rows, offered in ((table, True), (few, False)):
        (text,) = [one for one in mmd_test(rows, **asked).warnings if "takes rows for independent" in one]
        with pytest.raises(DataError, match="rows in both tables") as caught:
            mmd_test(rows, **asked, cluster="person")
        for told in (text, str(caught.value.hint)):
            assert ("strata='person'" in told) == offered
            assert "exchanges whole cases" in told
        files = [rows[rows.side == one].drop(columns="side") for one in "uv"]
        told = [
            one for one in mmd_test(*files, columns=asked["columns"], missing="drop").warnings if "whole cases" in one
        ]
        assert [("strata='person' asks" in one) for one in told] == [offered]
    assert mmd_test(table, **asked, strata="person").null.p_floor <= 0.05
    with pytest.raises((DataError, UndecidedError)):
        mmd_test(few, **asked, strata="person")


def test_selection_tells_cases_too():
    draws = np.random.default_rng(8)
    one, other = np.repeat(draws.normal(size=(2, 40)), 6, axis=1)
    table = pd.DataFrame({"patient": np.repeat(np.arange(101, 141), 6), "x": 3 * one, "y": 3 * other + one})
    table[["x", "y"]] += draws.normal(size=(240, 2))
    found = hsic_select(table, target="y", columns="x", k=1)
    assert found.reject
    assert any(text.startswith("rows with the same 'patient' are alike") for text in found.warnings)


def test_a_sample_of_one_case_is_not_to_be_compared_within_cases():
    table = panel(40)
    one = table.assign(person=table.person.where(np.arange(len(table)) >= 8, "p0"))
    x, y = one[:8], one[8:].assign(wage=lambda some: some.wage + 3.0)
    assert not [text for text in mmd_test(x, y, columns="wage,hours").warnings if "strata" in text]


def test_strata_of_one_kind_are_no_way_to_strata_of_another():
    rng = np.random.default_rng(2)
    home, away = (
        np.tile(names, 40) for names in (np.repeat(list("abcdefghijkl"), 12), np.tile(list("mnopqrstuvwx"), 12))
    )
    levels = dict(zip("abcdefghijklmnopqrstuvwx", 3.0 * rng.normal(size=24), strict=True))
    goals = np.array([levels[x] + levels[y] for x, y in zip(home, away, strict=True)]) + rng.normal(size=len(home))
    table = pd.DataFrame({"home": home, "away": away, "goals": goals, "year": np.repeat([1, 2], len(home) // 2)})
    told = mmd_test(table.assign(goals=table.goals + table.year), by="year", columns="goals", strata="home").warnings
    assert not [text for text in told if "strata=" in text]


def test_numbers_that_name_other_cases_in_each_file_are_told():
    rng = np.random.default_rng(6)

    def month(level):
        return pd.DataFrame(
            {"day": np.repeat(np.arange(1, 31), 20), "delay": np.repeat(level, 20) + rng.normal(size=600)}
        )

    level = 0.7 * rng.normal(size=30)
    for other, told in ((0.7 * rng.normal(size=30), True), (level, False)):
        x, y = month(level), month(other).assign(delay=lambda one: one.delay + 0.5)
        found = mmd_test(x, y, columns="delay")
        assert found.reject
        assert any("if those of each file have values of their own" in text for text in found.warnings) == told


def test_few_cases_of_each_group_are_told_and_those_in_one_group_before_those_in_both():
    """Of 16 rats in groups of 8, 4 and 4 each pair differed, and of persons and items the items alone were named."""
    rng, rat = np.random.default_rng(9), np.repeat(np.arange(1, 17), 11)
    diet = np.repeat(["a", "b", "c"], [88, 44, 44])
    weight = 3.0 * rng.normal(size=17)[rat] + 5.0 * (rat > 8) + rng.normal(size=176)
    result = mmd_test(pd.DataFrame({"Rat": rat, "Diet": diet, "weight": weight}), by="Diet", columns="weight")
    assert [one for one in result.warnings if "rows with the same 'Rat' are alike" in one]
    person, item = np.repeat(np.arange(60), 12), np.tile(np.arange(12), 60)
    effect = rng.normal(size=(2, 12)) * 2.0
    sex, answer = (
        (person % 2).astype(str),
        effect[person % 2, item] + (2.0 * rng.normal(size=60) + np.arange(60) % 2)[person],
    )
    table = pd.DataFrame({"item": item, "sex": sex, "answer": answer + rng.normal(size=720), "id": person})
    named = table.assign(item=table["item"].map("item {}".format), id=table["id"].map("p{}".format))
    (told,) = [one for one in mmd_test(named, by="sex", columns="answer").warnings if "rows with the same" in one]
    assert "'id' are alike" in told
