"""What a learner must not know: copies and clusters stay on one side of every split, and columns that tell are named."""

import numpy as np
import pandas as pd
import pytest

from kerntest import train_ridge, train_svm
from kerntest.errors import UsageError

r = np.random.default_rng(3)


def noise(n=60):
    """Columns that say nothing of the class or of the number."""
    drawn = np.random.default_rng(3)
    table = pd.DataFrame(drawn.normal(size=(n, 3)), columns=list("abc"))
    return table.assign(cls=drawn.choice(["u", "v"], n), y=drawn.normal(size=n))


def copied(times=4):
    return pd.concat([noise()] * times, ignore_index=True)


def patients(count=40, visits=10):
    """Patients whose visits are alike, with a class and a number of their own by chance."""
    drawn = np.random.default_rng(4)
    middle = np.repeat(drawn.normal(size=(count, 3)), visits, axis=0)
    table = pd.DataFrame(middle + 0.2 * drawn.normal(size=middle.shape), columns=list("abc"))
    return table.assign(
        patient=np.repeat([f"p{k}" for k in range(count)], visits),
        cls=np.repeat(drawn.choice(["u", "v"], count), visits),
        y=np.repeat(drawn.normal(size=count), visits) + 0.1 * drawn.normal(size=count * visits),
    )


SAID = "180 rows of 240 repeat another row: a row and its copies stay together in test parts and folds"


def test_copies_teach_nothing_of_noise():
    for options in ({"test_fraction": 0.3}, {"test_fraction": 0.3, "C": 100.0, "bandwidth": 0.3}):
        result = train_svm(copied(), "cls", exclude="y", **options)
        assert result.accuracy < 0.75
        assert result.warnings.count(SAID) == 1
        assert result.n_clusters < 60
        assert result.cluster is None
    assert train_svm(copied(), "cls", exclude="y", cv=5).grid.cells[0].mean < 0.7
    result = train_ridge(copied(), "y", exclude="cls", test_fraction=0.3)
    assert result.r2 < 0.1
    assert result.loo_r2 < 0.3
    assert result.warnings.count(SAID) == 1
    # A number of the rows tells copies apart, and must not.
    numbered = copied().assign(id=np.arange(100, 340))
    result = train_ridge(numbered, "y", exclude="cls", test_fraction=0.3)
    assert result.r2 < 0.1
    assert SAID.replace("row: a", "row but for 'id': a") in result.warnings


def test_patients_stay_together():
    table = patients()
    loose = train_svm(table, "cls", exclude="y,patient", test_fraction=0.3, C=100.0)
    whole = train_svm(table, "cls", exclude="y", cluster="patient", test_fraction=0.3, C=100.0)
    assert loose.accuracy > 0.8
    assert whole.accuracy < 0.75
    assert whole.columns == ("a", "b", "c")
    assert (whole.cluster, whole.n_clusters, whole.n_test) == ("patient", 29, 110)
    assert any(
        "rows with the same 'patient' are alike (40 different values): cluster='patient'" in t for t in loose.warnings
    )
    assert not any("patient" in text for text in whole.warnings)
    loose, whole = (
        train_ridge(table, "y", exclude=f"cls{left_out}", test_fraction=0.3, cluster=cluster)
        for left_out, cluster in ((",patient", None), ("", "patient"))
    )
    assert loose.r2 > 0.5
    assert whole.r2 < 0.2
    assert whole.loo_r2 < loose.loo_r2 - 0.3


def test_where_nothing_is_predicted_no_rows_need_be_kept_together():
    assert not any("are alike" in text for text in train_svm(patients(), exclude="cls,y", task="one-class").warnings)


def test_one_cluster_to_learn_from_is_not_left_out():
    result = train_ridge(patients(2, 40), "y", exclude="cls", cluster="patient", test_fraction=0.5)
    assert any("all rows that are learned from are in one cluster" in text for text in result.warnings)
    assert result.n_clusters is None
    assert result.cluster == "patient"
    assert 0 < result.loo_rmse < 0.2
    assert train_ridge(patients(2, 40), "y", exclude="cls", cluster="patient").n_clusters == 2


def test_copies_of_a_row_in_two_clusters_join_them():
    once = patients(12, 5)
    table = pd.concat([once, once.assign(patient="q" + once["patient"])], ignore_index=True)
    result = train_ridge(table, "y", exclude="cls", cluster="patient")
    assert result.n_clusters == 12


def test_a_cluster_must_be_a_column_of_its_own():
    for wrong, message in (("cls", "cannot be target or weight and cluster="), ("patiend", "'patiend' is not in")):
        with pytest.raises(UsageError, match=message):
            train_svm(patients(), "cls", exclude="y", test_fraction=0.3, cluster=wrong)


def test_test_rows_that_are_learned_from_are_told(tmp_path):
    table = noise(120).assign(kind=np.tile(["x", "y", "z"], 40))
    path = tmp_path / "new.csv"
    table[60:].to_csv(path, index=False)
    for train, shared in ((table[:60], 0), (pd.concat([table[:80]] * 2), 20), (table, 60)):
        for done in (
            train_svm(train, "cls", exclude="y", test=path),
            train_ridge(train, "y", exclude="cls", test=path),
        ):
            told = [text for text in done.warnings if "learned from: what is known by heart" in text]
            assert len(told) == (shared > 0)
            assert all(text.startswith(f"{shared} rows of 60 of {path} are among those") for text in told)


def test_columns_that_are_not_used_tell_other_cases_from_copies():
    """Orders of one product at one price are no copies; what names the tables tells nothing apart."""
    drawn = np.random.default_rng(5)
    product = drawn.integers(0, 60, 400)
    orders = pd.DataFrame(
        {"price": np.linspace(1.0, 99.0, 60)[product], "weight": (product * 7.3) % 11, "y": product / 7.0}
    )
    orders = orders.assign(city=drawn.choice(list("abcdefgh"), 400), paid=drawn.normal(size=400), part="learned")
    held = orders[200:].assign(part="held")
    again = pd.concat([held, orders[:30].assign(part="held")])
    for test, shared in ((held, 0), (again, 30)):
        done = train_ridge(orders[:200], "y", columns=["price", "weight"], test=test)
        told = [text for text in done.warnings if "learned from: what is known by heart" in text]
        assert len(told) == (shared > 0)
        assert all(text.startswith(f"{shared} rows of {len(test)}") for text in told)
        (kept,) = [text for text in done.warnings if "repeat another row" in text]
        assert "repeat another row in the columns that are used: a row and its copies stay together" in kept


# Columns that tell


def warnings_of(table, target="y", **options):
    train = train_ridge if target == "y" else train_svm
    return " | ".join(train(table, target, exclude=[n for n in ("y", "cls") if n != target], **options).warnings)


def test_a_running_number_is_told():
    table = noise().assign(id=np.arange(100, 160))
    told = "column 'id' counts the rows: a running number tells where a row stands, not what it is; leave it out with"
    assert told in warnings_of(table)
    assert told in warnings_of(table, "cls")
    assert told in warnings_of(table.sample(frac=1, random_state=0))
    assert "counts" not in warnings_of(noise())
    # The only column is what the regression is about.
    assert "counts" not in warnings_of(table, columns="id")


def test_time_among_the_columns_is_told():
    days = pd.date_range("2012-01-01", periods=60)
    told = "column 'when' tells the time: the rows to judge by lie in time among those that are learned from"
    for when in (days, days[::-1], 1960 + np.arange(60), 1960 + np.arange(60) // 4):
        table = noise().assign(when=when)
        for target in ("y", "cls"):
            assert told in warnings_of(table, target)
            assert told in warnings_of(table, target, columns="when", test_fraction=0.3)
            assert "counts" not in warnings_of(table, target)
    for when in (np.linspace(1960, 1970, 60), 1960.0 + r.permutation(60), 1000 + np.arange(60)):
        assert "tells the time" not in warnings_of(noise().assign(when=when))
    # Rows that are later than all others stand for those to come.
    table = noise().assign(when=days)
    later = warnings_of(table[:40], test=table[40:])
    assert "column 'when' of test lies beyond all that is learned from" in later
    assert "tells the time" not in later
    assert told in warnings_of(table[:40], test=table[30:])
    assert "when" not in warnings_of(table[:40], test=table[30:], columns="a,b,c")


def test_a_column_that_alone_predicts_is_told():
    table = noise()
    told = "alone predicts 'y'"
    for column in (3 * table["y"] - 1, table["y"].rank(), np.exp(table["y"])):
        assert f"column 'z' {told}" in warnings_of(table.assign(z=column))
    assert "alone" not in warnings_of(table.assign(z=table["y"] + 0.3 * r.normal(size=60)))
    assert "alone" not in warnings_of(table.assign(z=3 * table["y"]), columns="z")
    codes = (table["cls"] == "v").astype(int)
    for column in (codes, codes.map({0: "no", 1: "yes"}), codes + r.random(60) / 2):
        told = warnings_of(table.assign(z=column), "cls")
        assert "column 'z' alone predicts 'cls'" in told
        assert "cluster=" not in told
    # Marks that follow from the target are no cases.
    marks = table.assign(z=[f"mark {place % 6} {name}" for place, name in enumerate(table["cls"])])
    told = warnings_of(marks, "cls")
    assert "column 'z' alone predicts 'cls'" in told
    assert "cluster='z'" not in told
    # Of cases that are seen to be alike, what to do with them is told once.
    own, case = np.random.default_rng(0), np.repeat(np.arange(12), 5)
    level = own.normal(size=12)[case] + 0.2 * own.normal(size=60)
    rows = {"z": [f"p{k}" for k in case], "cls": [*"uv"] * 6, "day": np.tile(np.arange(5), 12)}
    alike = table.assign(a=level, **(rows | {"cls": np.repeat(rows["cls"], 5)}))
    assert "cluster='z' learns without it" in warnings_of(alike, "cls")
    assert "alone predicts" not in warnings_of(alike, "cls")
    assert "columns 'z', 'w' each alone predict 'cls'" in warnings_of(table.assign(z=codes, w=-codes), "cls")
    assert "alone" not in warnings_of(table.assign(z=codes + r.random(60) * 1.2), "cls")
    assert "alone" not in warnings_of(table, "cls")


def test_no_cluster_is_seen_where_there_is_none():
    table = noise(200)
    for column in (r.integers(0, 20, 200), r.choice([f"s{k}" for k in range(20)], 200), np.repeat(np.arange(20), 10)):
        assert "cluster=" not in warnings_of(table.assign(shop=column), columns="a,b,c")
    # Of few rows chance explains much.
    for seed in range(5):
        few = pd.DataFrame(np.random.default_rng(seed).normal(size=(24, 4)), columns=list("abcy"))
        assert "cluster=" not in warnings_of(few.assign(cls="u", shop=np.repeat(np.arange(12), 2)), columns="a,b,c")


def test_test_rows_in_another_unit_are_told(tmp_path):
    table, percents = noise().round(3), noise().round(3)
    percents["a"] = [f"{100 * value:.1f}%" for value in percents["a"]]
    table.to_csv(tmp_path / "a.csv", index=False)
    percents.to_csv(tmp_path / "b.csv", index=False)
    found = train_ridge(str(tmp_path / "a.csv"), target="y", columns="a,b", test=str(tmp_path / "b.csv"))
    assert any("column 'a' is written as plain number in " in warning for warning in found.warnings)


def test_a_seed_draws_the_same_parts_of_copied_rows_in_every_version():
    drawn = np.random.default_rng(5).normal(size=(30, 3)).round(6)
    table = pd.DataFrame(np.vstack([drawn, drawn[:15]]), columns=list("abc"))
    result = train_ridge(
        table.assign(y=np.sin(table["a"]) + table["b"]), "y", test_fraction=0.3, lambda_=1, bandwidth=2
    )
    assert (result.n_train, result.n_test) == (31, 14)
    assert result.test.rmse == pytest.approx(0.264230546538, abs=1e-9)
