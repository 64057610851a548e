"""What columns are worth: by shuffling them among rows held out, with an error, kept in the model."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import clouds, raises
from model_archives import rewritten
from pictures import drawn_by, panel, panels, tick_labels
from sklearn.inspection import permutation_importance as peer
from tolerances import assert_close

from kerntest import SVM, KernelRidge, inspect_model, train_ridge, train_svm
from kerntest.errors import DataError, ModelError, UsageError
from kerntest.learning import importance
from kerntest.learning.importance import affordable


def table(n=400, seed=0):
    """A wave of `a`, a step of `colour`, a little of `b`, nothing of `c`; and two classes of it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")).assign(colour=rng.choice(["red", "blue"], n))
    y = 2.0 * np.sin(frame.a) + (frame.colour == "red") + 0.3 * frame.b + 0.2 * rng.normal(size=n)
    return frame.assign(y=y, kind=np.where(y > 0.5, "high", "low"))


def means(found):
    return {one.name: one.mean for one in found.columns}


def errors(found):
    return {one.name: one.standard_error for one in found.columns}


def test_it_is_what_shuffled_predictions_lose():
    """Of numbers the rise of the RMSE, the shuffles those of the generator, in the order of the columns."""
    frame = table()
    fitted = KernelRidge(bandwidth=2.0, lambda_=0.1, seed=5).fit(frame[:300][["a", "b", "c"]], frame.y[:300])
    X, y = frame[300:][["a", "b", "c"]], frame.y[300:].to_numpy()
    found, rng = fitted.importance(X, y), np.random.default_rng((5, 3))
    assert (found.score, found.rows, found.shuffles) == ("RMSE", 100, 5)
    before = (fitted.predict(X) - y) ** 2
    for name in "abc":
        after = np.zeros(100)
        for _ in range(5):
            after += (fitted.predict(X.assign(**{name: rng.permutation(X[name].to_numpy())})) - y) ** 2 / 5
        rise = np.sqrt(after.mean()) - np.sqrt(before.mean())
        slopes = after / (2 * np.sqrt(after.mean())) - before / (2 * np.sqrt(before.mean()))
        assert_close(means(found)[name], rise, scale=1.0)
        assert_close(errors(found)[name], np.std(slopes, ddof=1) / 10, scale=1.0)
    assert [one.name for one in found.columns] == ["a", "b", "c"]


def test_it_is_that_of_scikit_learn_but_for_its_shuffles():
    X, y = clouds(400, 4, classes=3)
    machine = SVM(C=3.0).fit(X[:200], y[:200])
    found, theirs = machine.importance(X[200:], y[200:]), peer(machine, X[200:], y[200:], n_repeats=40, random_state=0)
    assert found.score == "accuracy"
    for place, name in enumerate(("x1", "x2", "x3", "x4")):
        assert abs(means(found)[name] - theirs.importances_mean[place]) < 3 * errors(found)[name]
    assert found.columns[0].name == "x1"
    assert found.columns[0].mean > 20 * found.columns[0].standard_error / 3


def test_its_error_is_how_far_it_varies_from_rows_to_rows():
    frame = table(12_000, seed=3)
    own = ["a", "b", "colour"]
    machine = SVM().fit(frame[:200][own], frame.kind[:200])
    found = [machine.importance(frame[at : at + 100][own], frame.kind[at : at + 100]) for at in range(200, 12_000, 100)]
    for name in own:
        told = np.sqrt(np.mean([errors(one)[name] ** 2 for one in found]))
        assert 0.75 < np.std([means(one)[name] for one in found]) / told < 1.33


def test_a_category_is_one_column_and_what_is_not_looked_at_is_worth_nothing():
    frame = table()
    result = train_svm(frame.drop(columns="y"), "kind", test_fraction=0.4, kernel="a: gaussian; colour: delta")
    assert set(means(result.importance)) == {"a", "colour"}
    assert means(result.importance)["colour"] > 3 * errors(result.importance)["colour"]
    assert result.importance.rows == result.n_test == 160
    assert result.to_dict()["importance"]["columns"][0]["name"] == "a"
    same = (
        KernelRidge(bandwidth=1.0)
        .fit(frame[["a"]].assign(z=0.0), frame.y)
        .importance(frame[["a"]].assign(z=0.0), frame.y)
    )
    assert means(same).get("z", 0.0) == 0.0


def test_several_targets_and_numbers_of_a_machine():
    frame = table()
    both = train_ridge(frame.assign(half=frame.y / 2).drop(columns="kind"), ["y", "half"], test_fraction=0.3)
    alone = train_ridge(frame.drop(columns="kind"), "y", test_fraction=0.3)
    assert means(both.importance)["a"] < means(alone.importance)["a"] < 3.0
    numbers = train_svm(frame.drop(columns="kind"), "y", task="regress", test_fraction=0.3)
    assert abs(means(numbers.importance)["a"] - means(alone.importance)["a"]) < 0.2
    fitted = KernelRidge().fit(frame[["a", "b"]], np.column_stack([frame.y, frame.y]))
    raises(DataError, "data.wrong_shape", lambda: fitted.importance(frame[["a", "b"]], frame.y))


def test_without_rows_held_out_or_a_truth_there_is_none(tmp_path):
    frame = table()
    assert train_svm(frame.drop(columns="y"), "kind").importance is None
    assert train_svm(frame[["a", "b"]], task="one-class", test_fraction=0.3).importance is None
    assert not hasattr(SVM(task="one-class").fit(frame[["a", "b"]]), "importance")
    SVM().fit(frame[["a", "b"]], frame.kind).save(tmp_path / "m.kt")
    assert inspect_model(tmp_path / "m.kt").importance is None
    assert "lost" not in inspect_model(tmp_path / "m.kt").summary()
    matrix = SVM(kernel="precomputed").fit(np.eye(6), [0, 1] * 3)
    raises(UsageError, "usage.precomputed", lambda: matrix.importance(np.eye(6), [0, 1] * 3))


def test_the_work_is_bounded_by_its_count(monkeypatch):
    assert affordable(200, 10, 1000.0) == (200, 5)
    assert affordable(5000, 10, 1000.0) == (5000, 2)
    assert affordable(50_000, 10, 1000.0) == (10_000, 1)
    assert affordable(50_000, 2000, 1000.0) == (50, 1)
    assert affordable(50_000, 2001, 1000.0) == (0, 0)
    assert affordable(20, 5000, 1000.0) == (20, 1)
    assert affordable(1, 1, 1.0) == (0, 0)
    # A fit to so many rows has taken five times as much.
    assert affordable(10_000, 9, 200_000.0) == (55, 1)
    assert affordable(10_000, 9, 200_000.0, 45_000) == (1000, 1)
    frame = table()
    machine = SVM().fit(frame[:100][["a", "b"]], frame.kind[:100])
    centres = len(machine.model.expansion.coefficients)
    monkeypatch.setattr(importance, "WORK", 2 * 60 * centres * (1 + 2 / 20 + 1 / 20))
    found = machine.importance(frame[100:][["a", "b"]], frame.kind[100:])
    assert (found.rows, found.shuffles) == (60, 1)
    monkeypatch.setattr(importance, "WORK", 1)
    assert machine.importance(frame[100:][["a", "b"]], frame.kind[100:]) is None


def test_fewer_rows_than_are_held_out_are_told(monkeypatch):
    frame = table()[["a", "b", "kind"]]
    assert "of 120 test rows:" in train_svm(frame, "kind", test_fraction=0.3).summary(width=200)
    monkeypatch.setattr(importance, "WORK", 20_000)
    found = train_svm(frame, "kind", test_fraction=0.3)
    assert 50 <= found.importance.rows < 120
    assert f"of {found.importance.rows} test rows drawn from 120, by a bound on the work:" in found.summary(width=200)


def test_a_model_keeps_it_and_inspect_tells_it(kerntest, tmp_path):
    path, data = tmp_path / "m.kt", tmp_path / "data.csv"
    table().drop(columns="kind").to_csv(data, index=False)
    ran = kerntest("ridge", data, "--target", "y", "--test-fraction", "0.3", "-o", path)
    assert "Columns: rise of the RMSE where one is shuffled, of 120 test rows:" in ran.out
    shown = json.loads(kerntest("inspect", path, "--json").out)["importance"]
    fitted = json.loads(kerntest("ridge", data, "--target", "y", "--test-fraction", "0.3", "--json").out)["importance"]
    assert shown == fitted
    told = kerntest("inspect", path).out
    assert "Columns, the rise of the RMSE where one is shuffled, of 120 rows held out:" in told
    lines = [line.split()[:4] for line in told[told.index("Columns, the") :].splitlines()[2:6]]
    assert [line[0] for line in lines] == [one["name"] for one in fitted["columns"]] == ["a", "colour", "b", "c"]
    # As many digits as the largest error has to tell.
    assert lines[0][2:] == [f"{fitted['columns'][0][name]:.3f}" for name in ("mean", "standard_error")]
    assert KernelRidge.load(path).model.importance is not None
    for strange in ("z", "a"):
        broken = {**shown, "columns": [*shown["columns"], {"name": strange, "mean": 1.0, "standard_error": 1.0}]}
        (tmp_path / "n.kt").write_bytes(rewritten(path.read_bytes(), {"importance": broken}))
        with pytest.raises(ModelError, match="importance is not of its columns"):
            inspect_model(tmp_path / "n.kt")


def test_many_columns_are_cut_and_drawn():
    X, y = clouds(120, 30)
    frame = pd.DataFrame(X, columns=[f"c{place}" for place in range(30)]).assign(kind=y)
    result, made = drawn_by(train_svm, frame, "kind", test_fraction=0.4, render=True)
    assert "and 20 more: to_dict() has them" in result.summary()
    axis = panel(made, "Columns shuffled, one at a time")
    assert "the first 20 of 30" in axis.get_title()
    assert tick_labels(axis, "y")[-1] == result.importance.columns[0].name == "c0"
    assert_close(axis.patches[-1].get_width(), 100 * result.importance.columns[0].mean)
    low, high = axis.collections[0].get_segments()[-1][:, 0]
    assert_close((high - low) / 4, 100 * result.importance.columns[0].standard_error)
    one = train_svm(frame[["c0", "kind"]], "kind", test_fraction=0.4)
    assert "shuffled" not in one.summary()


def test_importance_says_where_it_is_not_by_the_score_that_chose():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    told = "in accuracy, not in ROC AUC, by which options were chosen"
    for share in (1.5, 0.5):
        table["y"] = np.where(table.a + rng.normal(size=120) > share, "rare", "common")
        by_auc = train_svm(table, "y", grid=True, select_by="auc", test_fraction=0.4)
        assert told in " ".join(by_auc.summary(width=200).split())
    assert told not in train_svm(table, "y", grid=True, test_fraction=0.4).summary()


def test_where_classes_have_weights_columns_are_worth_balanced_accuracy(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(900, 2)), columns=["x", "noise"])
    table["y"] = np.where(table.x + 0.7 * rng.normal(size=900) > 2.0, "rare", "usual")
    result = train_svm(table, "y", class_weight="balanced", test_fraction=0.4, output=tmp_path / "m.kt")
    decision = " ".join(result.summary().split("Decision: ")[1].split())
    told = r"8\d.* % of 360 test rows are classified correctly \(largest class: 96.1 %\), balanced [89]\d.* % \(50 %\)"
    assert re.match(told, decision)
    found = result.importance
    worth = {one.name: one.mean for one in found.columns}
    assert found.score == "balanced accuracy"
    # In accuracy, where nearly all rows are of one class, both would lose a few hundredths.
    assert worth["x"] > 0.2
    assert abs(worth["noise"]) < 0.05
    assert inspect_model(tmp_path / "m.kt").importance.score == "balanced accuracy"


@pytest.mark.parametrize(("share", "balanced", "rows"), [(0.06, True, 200), (0.06, False, 800), (0.4, True, 200)])
def test_its_error_holds_the_rows_that_were_drawn_and_the_shuffles(monkeypatch, share, balanced, rows):
    """What all rows and many shuffles tell, some rows tell within the errors; where classes count alike also of a rare one."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(5000, 3)), columns=list("abc"))
    latent = X.a + 0.5 * X.b + 0.7 * rng.normal(size=5000)
    y = np.where(latent > np.quantile(latent, 1.0 - share), "rare", "usual")
    machine = SVM(C=10.0, class_weight="balanced" if balanced else None).fit(X[:800], y[:800])
    with monkeypatch.context() as all_rows:
        all_rows.setattr(importance, "WORK", 10**12)
        all_rows.setattr(importance, "SHUFFLES", 8)
        truth = means(machine.importance(X[800:], y[800:]))
    centres = len(machine.model.expansion.coefficients)
    monkeypatch.setattr(importance, "WORK", 3 * (rows + 1) * centres * (1 + 3 / 20 + 1 / 20))
    drawn = []
    for machine.seed in range(30):
        drawn.append(machine.importance(X[800:], y[800:]))
    assert {(one.rows, one.shuffles) for one in drawn} <= {(rows, 1), (rows + 1, 1)}
    for name in "ab":
        off = np.array([(means(one)[name] - truth[name]) / errors(one)[name] for one in drawn])
        # Of 30 numbers of spread 1, which a finite number of rows makes a little smaller.
        assert 0.6 < np.sqrt(np.mean(off**2)) < 1.45
        assert abs(off.mean()) < 3.0 / np.sqrt(30)
    if balanced:
        # 12 rows of a class leave 0.07 and more.
        assert np.mean([errors(one)["a"] for one in drawn]) < 0.05


def test_of_more_classes_than_rows_some_are_drawn(monkeypatch):
    X, y = clouds(800, 2, classes=80, separation=3.0)
    machine = SVM(C=100.0, bandwidth=0.1, class_weight="balanced").fit(X[:400], y[:400])
    size = len(machine.model.expansion.coefficients) * (1 + 2 / 20 + 3160 / 20)
    monkeypatch.setattr(importance, "WORK", 2 * 60 * size)
    found = machine.importance(X[400:], y[400:])
    assert (found.score, found.rows) == ("balanced accuracy", 60)
    # Each class is told by its place along x1 alone.
    assert means(found)["x1"] > 3 * errors(found)["x1"] > 0
    assert abs(means(found)["x2"]) < 4 * errors(found)["x2"]


def test_where_no_column_counts_one_line_says_it(kerntest, tmp_path):
    """As where every row is predicted as one class: no table of zeros, and no empty panel."""
    rng = np.random.default_rng(0)
    table, told = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd")), "no column counts: no accuracy is lost"
    table["y"] = np.where(np.arange(300) % 20, "usual", "rare")
    table.to_csv(tmp_path / "rows.csv", index=False)
    ran = kerntest(
        "svm", tmp_path / "rows.csv", "--target", "y", "--C", "0.01", "--test-fraction", "0.4", "-o", tmp_path / "m.kt"
    )
    assert "every row is predicted as 'usual'" in ran.out
    assert f"  worth      {told} where one is shuffled, of 120 rows held out\n" in ran.out
    assert "Columns: " not in ran.out
    assert "0.0  0.0" not in ran.out
    shown = kerntest("inspect", tmp_path / "m.kt").out
    assert told in shown
    assert "lost" not in shown.partition(told)[2].partition("\n")[2]
    result, made = drawn_by(train_svm, table, "y", C=0.01, test_fraction=0.4, render=True)
    assert result.importance.none
    assert not [axis for axis in panels(made) if axis.get_title().startswith("Columns shuffled")]
