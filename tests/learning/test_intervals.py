"""How surely means over rows are known where rows come in clusters: of new clusters, not of new rows of these."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from scipy.stats import t as student
from tolerances import assert_close

from kerntest import KernelRidge, train_ridge, train_svm, train_unmix
from kerntest.learning.intervals import (
    effective_clusters,
    effective_rows,
    interval_of_share,
    standard_error,
    told_of_coverage,
    uneven_coverage,
    wilson_interval,
)
from kerntest.learning.scores import classification_metrics, error_of_score, log_losses, placements


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 10), (10, 10), (7, 10), (1, 1000), (999_999, 1_000_000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_wilson_intervals_are_those_of_scipy_with_exact_ends(hits, n, confidence):
    expected = binomtest(hits, n).proportion_ci(confidence, method="wilson")
    found = wilson_interval(hits / n, n, confidence)
    np.testing.assert_allclose(found, (expected.low, expected.high), rtol=1e-9, atol=1e-15)
    assert (hits > 0 or found[0] == 0.0) and (hits < n or found[1] == 1.0)  # noqa: PT018 - an end each


def test_the_error_of_a_mean_is_that_of_the_means_of_equal_clusters():
    values = np.random.default_rng(0).normal(size=(12, 5)) + np.arange(12)[:, None]
    clusters = np.repeat(np.arange(12), 5)
    alone = values.std(ddof=1) / 60**0.5
    assert_close(standard_error(values.ravel()), alone)
    assert_close(standard_error(values.ravel(), np.arange(60)), alone)
    order = np.random.default_rng(1).permutation(60)
    found = standard_error(values.ravel()[order], 7 * clusters[order])
    assert_close(found, values.mean(axis=1).std(ddof=1) / 12**0.5)
    assert_close(effective_clusters(np.repeat([0, 1, 2], [5, 5, 10])), 400 / 150)


def drawn(rng, m, mean, alike, sizes):
    """Which rows of m clusters are right, whose shares have this mean and correlation, and the clusters."""
    sizes = rng.choice(sizes, m)
    share = rng.beta(mean * (1 / alike - 1), (1 - mean) * (1 / alike - 1), m)
    return rng.random(sizes.sum()) < np.repeat(share, sizes), np.repeat(np.arange(m), sizes)


@pytest.mark.parametrize(("m", "sizes"), [(8, [11]), (15, [11]), (15, [2, 5, 30]), (60, [2, 5, 30])])
def test_intervals_of_shares_hold_those_of_new_clusters(m, sizes):
    rng, held, plain = np.random.default_rng(m), 0, 0
    for _ in range(400):
        right, clusters = drawn(rng, m, 0.75, 0.3, sizes)
        (low, high), (inner, outer) = interval_of_share(right, clusters), interval_of_share(right)
        held, plain = held + (low <= 0.75 <= high), plain + (inner <= 0.75 <= outer)
    # 0.95 less, and more, than three binomial standard errors and what the approximation has been seen to lack.
    assert 0.89 < held / 400 < 0.985
    assert plain / 400 < 0.75


def test_intervals_of_independent_rows_in_clusters_are_hardly_wider_and_those_of_copies_as_if_once():
    rng = np.random.default_rng(0)
    right = rng.random(600) < 0.8
    alone, low_high = interval_of_share(right), interval_of_share(right, np.repeat(np.arange(100), 6))
    assert 1.0 <= np.ptp(low_high) / np.ptp(alone) < 1.15
    once, copied = (
        interval_of_share(right[:100]),
        interval_of_share(np.repeat(right[:100], 3), np.repeat(np.arange(100), 3)),
    )
    np.testing.assert_allclose(copied, once, atol=0.003)
    # Clusters that are all alike are at most that many rows, and one cluster is one row.
    assert effective_rows(np.tile([True, False], 50), np.repeat(np.arange(10), 10)) == 100
    assert effective_rows(np.tile([True, False], 50), np.zeros(100, dtype=int)) == 1
    # All rows right: as many as clusters say so.
    assert interval_of_share(np.ones(165, dtype=bool), np.repeat(np.arange(15), 11))[0] < 0.8
    assert interval_of_share(np.ones(165, dtype=bool), np.repeat(np.arange(7), [30, 30, 30, 30, 30, 10, 5])) is None


def patients(n=40, each=8, seed=0):
    """Classes and numbers that go with columns of the patient, and little with those of a row."""
    rng = np.random.default_rng(seed)
    own, k = rng.normal(size=(n, 3)), np.repeat(np.arange(n), each)
    x = 0.8 * own[k] + 0.6 * rng.normal(size=(n * each, 3))
    level = (own[:, 0] + rng.normal(size=n))[k]
    frame = pd.DataFrame(x, columns=list("abc")).assign(patient=k, cls=np.where(level > 0, "p", "q"))
    return frame.assign(y=level + 0.2 * rng.normal(size=n * each))


def test_a_machine_is_judged_over_the_clusters_of_its_test_rows():
    table = patients()
    found = train_svm(table, "cls", exclude="y", cluster="patient", test_fraction=0.3)
    assert found.n_clusters + found.n_test_clusters == 40
    text = " ".join(found.summary().split())
    low, high = found.test.accuracy_interval
    assert f"% over {found.n_test_clusters} clusters" in text
    assert f"and {found.n_test_clusters} among the test rows" in text
    assert high - low > 1.5 * np.ptp(wilson_interval(found.accuracy, found.n_test))
    loose = train_svm(table, "cls", exclude="y,patient", test_fraction=0.3)
    assert (loose.n_test_clusters, " clusters" in loose.summary()) == (None, False)
    # A file to judge by has clusters if it has the column.
    train, test = table[table.patient < 30], table[table.patient >= 30]
    given = train_svm(train, "cls", exclude="y", cluster="patient", test=test)
    assert given.n_test_clusters == 10
    assert np.ptp(given.test.accuracy_interval) > 1.3 * np.ptp(wilson_interval(given.accuracy, 80))
    without = train_svm(train, "cls", exclude="y", cluster="patient", test=test.drop(columns="patient"))
    assert without.accuracy == given.accuracy
    assert any("test has no column 'patient': its rows are taken for independent" in one for one in without.warnings)
    again = train_svm(train, "cls", exclude="y", cluster="patient", test=table[table.patient >= 25])
    assert any("5 of 15 clusters of test are among those that are learned from" in one for one in again.warnings)


def test_too_few_clusters_have_neither_intervals_nor_errors_and_it_is_said():
    found = train_svm(patients(20), "cls", exclude="y", cluster="patient", test_fraction=0.3)
    assert found.n_test_clusters < 8
    assert found.test.accuracy_interval is None
    assert {one.standard_error for one in found.importance.columns} == {None}
    told = (
        f"the {found.n_test} test rows are in {found.n_test_clusters} clusters of rows that stay together, too few for"
    )
    assert any(told in one for one in found.warnings)
    assert "95 % interval" not in found.summary()
    assert found.to_dict()["test"]["accuracy_interval"] is None


def test_errors_of_cross_validated_scores_are_over_clusters():
    """Over draws of patients the score varies as it says; folds that are even in classes hide a part of that."""
    for target, options in (("cls", {}), ("y", {"task": "regress"})):
        left_out = {"cls": "y", "y": "cls"}[target]
        found = [
            train_svm(patients(30, seed=seed), target, exclude=left_out, cluster="patient", cv=5, **options).grid
            for seed in range(40)
        ]
        told = np.sqrt(np.mean([one.best.standard_error**2 for one in found]))
        # The standard deviation of 40 values is off by a ninth; three of these, and the training rows vary too.
        assert 0.65 < told / np.std([one.mean for one in found], ddof=1) < 1.4


def test_errors_of_cross_validated_scores_are_over_rows():
    """Of a rare class folds are all alike, and the score is not."""
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        X, rare = rng.normal(size=(100, 2)), rng.random(100) < 0.2
        found.append(train_svm(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": rare}), "y", cv=5).grid)
    spread = np.std([one.mean for one in found], ddof=1)
    assert 0.7 < np.mean([one.best.standard_error for one in found]) / spread < 1.4


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("score", ["accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "log_loss"])
def test_the_error_of_a_score_is_that_of_leaving_out_rows_or_clusters(score, classes, clustered):
    rng, n = np.random.default_rng(1), 400
    groups = rng.permutation(np.repeat(np.arange(n // 5), 5)) if clustered else np.arange(n)
    true = np.minimum(rng.integers(0, 6, n), classes - 1)
    # Whole clusters are harder, or easier.
    scores = np.eye(classes)[true] + rng.normal(size=(n, classes)) + rng.normal(size=(n, classes))[groups] * clustered
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    ranks = scores[:, 1] - scores[:, 0] if classes == 2 else scores
    predicted = scores.argmax(axis=1)

    def judged(kept):
        names = tuple("abc"[:classes])
        given = classification_metrics(
            true[kept], predicted[kept], ranks[kept], names, probabilities=probabilities[kept]
        )
        return getattr(given, score)

    without = np.array([judged(groups != one) for one in np.unique(groups)])
    expected = np.sqrt((len(without) - 1) / len(without) * np.sum(np.square(without - without.mean())))
    values = {"roc_auc": placements(true, ranks, classes), "log_loss": log_losses(true, probabilities)}.get(
        score, predicted
    )
    found = error_of_score(score, values, true, groups if clustered else None)
    assert found == pytest.approx(expected, rel=0.03)


def test_columns_of_a_regression_are_worth_something_over_clusters():
    table = patients()
    loose, whole = (train_ridge(table, "y", exclude="cls,patient", test_fraction=0.3) for _ in range(2))
    whole = train_ridge(table, "y", exclude="cls", cluster="patient", test_fraction=0.3)
    assert whole.n_test_clusters == 12
    few = train_ridge(table[table.patient < 3], "y", exclude="cls", cluster="patient", test_fraction=0.3)
    assert (few.n_test_clusters, {one.standard_error for one in few.importance.columns}) == (1, {None})
    assert max(one.standard_error for one in whole.importance.columns) > 1.3 * max(
        one.standard_error for one in loose.importance.columns
    )


def test_intervals_of_a_regression_are_for_rows_of_new_clusters(tmp_path):
    """They are kept so in the model, and hold about what they say where rows of a cluster err alike."""

    def places(rng, m):
        k, own = np.repeat(np.arange(m), 11), rng.normal(size=(m, 2))
        x = rng.normal(size=(11 * m, 2))
        y = np.sin(x[:, 0]) + 0.8 * own[k, 0] + 0.6 * rng.normal(size=11 * m)
        return pd.DataFrame(x, columns=["a", "b"]).assign(place=k, y=y)

    held, alone = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        few, many = places(rng, 10), places(rng, 200).assign(place=lambda one: one.place + 1000)
        found = train_ridge(few, "y", cluster="place", test=many, output=tmp_path / "m.kt", force=True)
        held.append(found.test.coverage)
        alone.append(train_ridge(few.drop(columns="place"), "y", test=many.drop(columns="place")).test.coverage)
    assert np.mean(alone) < 0.86 < np.mean(held) < 0.95
    model = KernelRidge.load(tmp_path / "m.kt")
    low, high = model.predict_interval(many[["a", "b"]], 0.9)
    assert np.mean((low <= many.y) & (many.y <= high)) == found.test.coverage
    factor, (_, deviation) = model.model.clustered.factors[0], model.predict(many[["a", "b"]], return_std=True)
    assert factor >= 1.0
    assert_close((high - low) / 2 / deviation, np.full(len(many), student.ppf(0.95, 9)))


def test_intervals_of_a_regression_that_miss_whole_clusters_are_not_told_for_chance():
    held, clusters = np.ones(200, dtype=bool), np.repeat(np.arange(10), 20)
    held[:40] = False
    assert told_of_coverage("y", held, 0.9, "200 test rows")
    assert not told_of_coverage("y", held, 0.9, "200 test rows", clusters)
    held[:120] = False
    assert told_of_coverage("y", held, 0.9, "200 test rows", clusters)
    # Of one noise, twenty rows of a cluster alike: what differs between the thirds is chance.
    rng, told = np.random.default_rng(0), np.zeros(2, dtype=int)
    predicted, clusters = np.repeat(np.arange(60.0), 20), np.repeat(np.arange(60), 20)
    for _ in range(60):
        errors = np.repeat(rng.normal(size=60), 20)
        given = ("y", predicted, errors, np.full(1200, 1.64))
        told += [len(uneven_coverage(*given, interval=0.9, clusters=own)) for own in (None, clusters)]
    assert told[0] > 15
    assert told[1] < 3
    grown = errors * predicted
    assert uneven_coverage("y", predicted, grown, np.full(1200, 1.64 * grown.std()), interval=0.9, clusters=clusters)


def test_sources_of_rows_in_clusters_are_not_tested():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.laplace(size=(400, 2)) @ [[2.0, 1.0], [1.0, 3.0]], columns=["u", "v"])
    found = train_unmix(table.assign(g=np.arange(400) // 10), cluster="g", test_fraction=0.3)
    assert found.test.p_value is None
    assert "on 120 test rows" in found.summary()
    assert found.warnings == ("there is no p-value, which would take the test rows of a cluster for independent",)


@pytest.mark.parametrize("fraction", [None, 0.4])
def test_intervals_below_0_of_what_never_is_are_told(fraction):
    rng = np.random.default_rng(0)
    x, noise = rng.uniform(0, 1, 200), rng.exponential(size=200) - 1.0

    def told(y):
        result = train_ridge(pd.DataFrame({"x": x, "y": y}), "y", test_fraction=fraction, kernel="linear")
        return [one for one in result.warnings if "below 0" in one]

    (text,) = told(1.05 + noise)
    rows = "rows left out, one at a time" if fraction is None else "test rows"
    assert text.startswith("intervals of 90 % reach below 0 in ")
    assert text.endswith(
        f" of {rows}, and 'y' never does: the logarithm of 'y', predicted in its place, keeps them above"
    )
    (text,) = told(np.round(1.05 + noise))
    assert text.endswith("and 'y' never does: ends below 0 can be set to 0, and hold as many rows")
    # Far from 0, below it, a share of two values, and where intervals of one width are told to be wrong.
    assert told(9.0 + noise) == told(noise) == told((noise > 0).astype(float)) == []
    grows = train_ridge(pd.DataFrame({"x": x, "y": x**3 * (1.05 + noise)}), "y", test_fraction=fraction).warnings
    assert [one for one in grows if "errors of one size" in one]
    assert not [one for one in grows if "below 0" in one]


def test_intervals_do_not_hang_on_the_unit_of_weights():
    rng = np.random.default_rng(0)
    x, new = rng.uniform(-3, 3, (200, 1)), rng.uniform(-3, 3, (50, 1))
    y, weights = np.sin(x[:, 0]) + 0.3 * rng.normal(size=200), rng.uniform(1, 3, 200)
    fits = [
        KernelRidge(kernel="gaussian", bandwidth=1.0).fit(x, y, sample_weight=unit * weights)
        for unit in (1e-3, 1.0, 1e3)
    ]
    deviations = [fit.predict(new, return_std=True)[1] for fit in fits]
    for fit, found in zip(fits, deviations, strict=True):
        assert_close(fit.noise_, fits[1].noise_, condition=1e6)
        assert_close(found, deviations[1], condition=1e6)
    constant = KernelRidge(kernel="gaussian", bandwidth=1.0).fit(x, y, sample_weight=np.full(200, 7.0))
    assert_close(constant.noise_, KernelRidge(kernel="gaussian", bandwidth=1.0).fit(x, y).noise_, condition=1e6)
