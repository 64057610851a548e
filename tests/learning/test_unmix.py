"""Independent components: HSIC and its gradient by double loops, sources that are known, what is undetermined, and files."""

import json
import math
from itertools import permutations

import naive
import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import raises
from model_archives import archive, members_of
from scipy.optimize import minimize

from kerntest import KernelICA, inspect_model, train_unmix, transform_file
from kerntest.errors import DataError, KerntestWarning, ModelError, UndecidedError, UsageError
from kerntest.learning.solvers import rotations

DRAWS = {
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "laplace": lambda rng, n: rng.laplace(size=n),
    "student": lambda rng, n: rng.standard_t(3, n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "two peaks": lambda rng, n: rng.choice([-1.0, 1.0], n) + 0.3 * rng.normal(size=n),
    "three to one": lambda rng, n: rng.choice([-1.0, 0.33], n, p=[0.25, 0.75]) + 0.2 * rng.normal(size=n),
}
MIXING = np.array([[2.0, 1.0, -0.5], [0.5, 1.5, 1.0], [-1.0, 0.3, 2.0]])


def sources_of(names, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([DRAWS[name](rng, n) for name in names])


def amari(product):
    """The error of Amari: 0 where a matrix is a permutation with other signs and scales, at most 1."""
    sizes, m = np.abs(product), len(product)
    down, across = sizes / sizes.max(axis=0), sizes / sizes.max(axis=1, keepdims=True)
    return (down.sum() + across.sum() - 2 * m) / (2 * m * (m - 1))


def white(X):
    moved = X - X.mean(axis=0)
    left, _, right = np.linalg.svd(moved, full_matrices=False)
    return math.sqrt(len(X)) * left, right


def above_chance(x, y, bandwidth):
    """HSIC less its mean over all n! relabellings, from tr(K'L') by loops."""
    K, L = (
        naive.doubly_centred(naive.gram(lambda a, b: naive.gaussian(a, b, bandwidth), np.asarray(one)[:, None]))
        for one in (x, y)
    )
    n = len(K)
    found = sum(K[i][j] * L[i][j] for i in range(n) for j in range(n))
    return (found - sum(K[i][i] for i in range(n)) * sum(L[i][i] for i in range(n)) / (n - 1)) / n**2


@pytest.mark.parametrize("bandwidth", [0.5, 1.0])
def test_hsic_before_and_after_is_that_of_double_loops(bandwidth):
    X = sources_of(["uniform", "laplace", "exponential"], 30) @ MIXING.T
    result = train_unmix(X, bandwidth=bandwidth)
    found = KernelICA(bandwidth=bandwidth).fit(X).transform(X)
    for values, told in ((X, result.train.hsic_before), (found, result.train.hsic_after)):
        columns = (values - values.mean(axis=0)) / values.std(axis=0)
        pairs = [above_chance(columns[:, i], columns[:, j], bandwidth) for i, j in ((0, 1), (0, 2), (1, 2))]
        assert told == pytest.approx(np.mean(pairs), rel=1e-6, abs=1e-9)


def test_what_chance_gives_is_the_mean_over_all_relabellings():
    x, y = sources_of(["uniform", "laplace"], 6, seed=3).T
    every = [above_chance(x, y[list(order)], 1.0) for order in permutations(range(6))]
    assert np.mean(every) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("bandwidth", [0.4, 1.0])
def test_the_contrast_is_hsic_and_its_gradient_that_of_differences(bandwidth):
    rng = np.random.default_rng(2)
    Y = white(sources_of(["uniform", "laplace", "two peaks"], 40))[0]
    contrast = rotations.hsic_contrast(bandwidth, 5.0)
    value, gradient = contrast(Y)
    K = [naive.doubly_centred(naive.gram(lambda a, b: naive.gaussian(a, b, bandwidth), one[:, None])) for one in Y.T]
    by_hand = sum((np.array(K[i]) * np.array(K[j])).sum() for i, j in ((0, 1), (0, 2), (1, 2))) / 40**2
    # Landmarks leave so much out.
    assert value == pytest.approx(by_hand, rel=1e-3)
    for _ in range(3):
        way = rng.normal(size=Y.shape)
        slope = (contrast(Y + 1e-5 * way)[0] - contrast(Y - 1e-5 * way)[0]) / 2e-5
        assert (gradient * way).sum() == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("start", [0.1, 0.4])
def test_the_descent_ends_where_no_angle_is_better(start):
    Z = white(sources_of(["uniform", "two peaks"], 300))[0]
    contrast = rotations.hsic_contrast(1.0, 5.0)

    def turned(angle):
        return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])

    found = rotations.least(contrast, Z, turned(start))
    every = [contrast(Z @ turned(angle).T)[0] for angle in np.linspace(0, np.pi / 2, 721)]
    assert found.settled
    assert contrast(Z @ found.matrix.T)[0] <= min(every) * (1 + 1e-4)
    np.testing.assert_allclose(found.matrix @ found.matrix.T, np.eye(2), atol=1e-12)


def density_by_hand(column, reach, width, deviation):
    """The penalised maximum of the likelihood at the rows themselves, the density on a fine grid: log p' and log-evidence."""
    n = len(column)
    landmarks, projection = rotations._landmarks(min(reach, 5.0), width, 1.0)
    fine = np.linspace(-1.001 * reach, 1.001 * reach, 4001)

    def basis(y):
        kernels = np.exp(-0.5 * ((np.asarray(y)[:, None] - landmarks) / width) ** 2)
        return np.column_stack([y, np.square(y), np.log(2 * np.cosh(y)), kernels @ projection])

    rows, grid = basis(column), basis(fine)
    penalties = np.array([0.0] * 3 + [1 / (n * deviation**2)] * projection.shape[1])

    def lost(weights):
        heights = grid @ weights
        total = np.log(np.exp(heights - heights.max()).sum() * (fine[1] - fine[0])) + heights.max()
        return -(rows @ weights).mean() + total + 0.5 * (penalties * weights**2).sum()

    def slope(weights):
        density = np.exp(grid @ weights - (grid @ weights).max())
        return -rows.mean(axis=0) + density @ grid / density.sum() + penalties * weights

    found = minimize(lost, [0.0, -0.5] + [0.0] * (len(penalties) - 2), jac=slope, method="BFGS", options={"gtol": 1e-7})
    steps = 1e-4 * np.eye(len(penalties))
    bend = np.stack([(slope(found.x + one) - slope(found.x - one)) / 2e-4 for one in steps])
    evidence = -n * found.fun - 0.5 * np.linalg.slogdet(bend)[1]
    evidence -= 0.5 * projection.shape[1] * math.log(n * deviation**2)
    derivatives = (basis(column + 1e-5) - basis(column - 1e-5)) / 2e-5
    return -derivatives @ found.x, evidence


@pytest.mark.parametrize("name", ["three to one", "student", "uniform"])
@pytest.mark.parametrize(("width", "deviation"), [(1.0, 1.0), (0.4, 0.3)])
def test_the_density_is_the_maximum_of_the_penalised_likelihood(name, width, deviation, monkeypatch):
    column = white(sources_of([name], 200))[0][:, 0]
    reach = 1.5 * float(np.abs(column).max())
    expected, evidence = density_by_hand(column, reach, width, deviation)
    monkeypatch.setattr(rotations, "WIDTHS", (width,))
    monkeypatch.setattr(rotations, "DEVIATIONS", (deviation,))
    scores, _, found = rotations.Densities(reach, 200, 1).scores(column[None], choose=True)
    # The grid is that coarse.
    assert np.sqrt(np.mean((scores[0] - expected) ** 2)) < 0.05 * np.sqrt(np.mean(expected**2))
    assert found == pytest.approx(evidence, abs=0.5)


def test_the_score_of_a_gaussian_is_the_value_and_of_a_laplace_its_sign():
    rng = np.random.default_rng(0)
    columns = np.stack([white(one[:, None])[0][:, 0] for one in (rng.normal(size=3000), rng.laplace(size=3000))])
    gaussian, laplace = columns
    scores, slopes, _ = rotations.Densities(8.0, 3000, 2).scores(columns, choose=True)
    assert np.mean((scores[0] - gaussian) ** 2) < 0.02
    assert np.mean((scores[1] - math.sqrt(2) * np.sign(laplace)) ** 2) < 0.25
    # The mean slope of a score is its mean square, but for what is estimated.
    np.testing.assert_allclose(slopes, (scores**2).mean(axis=1), rtol=0.15)


def test_the_choice_of_a_density_is_that_of_the_largest_evidence():
    column = white(sources_of(["two peaks"], 150))[0][:, 0]
    reach, every = 1.5 * float(np.abs(column).max()), {}
    for width in rotations.WIDTHS:
        for place, deviation in enumerate(rotations.DEVIATIONS):
            every[width, deviation] = density_by_hand(column, reach, width, deviation)[1] - place * rotations.DOUBT
    densities = rotations.Densities(reach, 150, 1)
    *_, found = densities.scores(column[None], choose=True)
    best = max(every, key=every.get)
    at = list(every).index(best)
    assert list(densities.chosen) == [at]
    assert found == pytest.approx(every[best], abs=0.5)
    # Chosen once, it stays.
    other = white(sources_of(["uniform"], 150)[:, [0]])[0].T
    densities.scores(other, choose=False)
    assert list(densities.chosen) == [at]


def test_negentropies_are_those_of_the_densities():
    rng = np.random.default_rng(1)
    shapes = {"normal": rng.normal(size=20000), "uniform": rng.uniform(size=20000), "laplace": rng.laplace(size=20000)}
    columns = np.stack([(one - one.mean()) / one.std() for one in shapes.values()])
    gaussian, uniform, laplace = rotations.negentropies(columns)
    # A kernel density estimate of bandwidth 0.4 has the entropy of a wider density.
    assert abs(gaussian) < 0.02
    assert 0.1 < laplace < 0.4
    assert 0.05 < uniform < 0.4
    np.testing.assert_allclose(rotations.negentropies(-columns), [gaussian, uniform, laplace], atol=1e-3)


@pytest.mark.parametrize("contrast", ["likelihood", "hsic"])
@pytest.mark.parametrize("names", [["uniform", "laplace", "two peaks"], ["exponential", "three to one", "student"]])
def test_sources_are_found(names, contrast):
    sources = sources_of(names, 1000)
    ica = KernelICA(contrast=contrast).fit(sources @ MIXING.T)
    assert amari(ica.components_ @ MIXING) < (0.05 if contrast == "likelihood" else 0.12)
    assert ica.fit_.undetermined == ()


def test_sources_do_not_depend_on_the_mixture_the_units_or_the_order_of_columns():
    sources = sources_of(["uniform", "laplace", "two peaks"], 400)
    found = [
        KernelICA().fit(sources @ mixing.T).components_ @ mixing
        for mixing in (np.eye(3), MIXING, MIXING[::-1], 1e6 * MIXING, np.diag([1e-3, 1.0, 1e3]) @ MIXING)
    ]
    for product in found:
        places = np.argmax(np.abs(product), axis=1)
        lined = product[np.argsort(places)]
        lined = lined * np.sign(np.diag(lined))[:, None]
        first = found[0][np.argsort(np.argmax(np.abs(found[0]), axis=1))]
        first = first * np.sign(np.diag(first))[:, None]
        np.testing.assert_allclose(lined, first, atol=0.01 * np.abs(first).max())


def test_the_record_says_how_rows_and_sources_go_together():
    table = pd.DataFrame(sources_of(["uniform", "laplace", "two peaks"], 200) @ MIXING.T + 5.0, columns=list("abc"))
    result = train_unmix(table.assign(kind=["x", "y"] * 100), scale="together")
    S = KernelICA(scale="together").fit(table).transform(table)
    unmixing = np.array([one.unmixing for one in result.sources])
    mixing = np.array([one.mixing for one in result.sources]).T
    np.testing.assert_allclose(unmixing @ mixing, np.eye(3), atol=1e-10)
    np.testing.assert_allclose((table.to_numpy() - result.mean) @ unmixing.T, S, atol=1e-10)
    np.testing.assert_allclose(np.array(result.mean) + S @ mixing.T, table, atol=1e-10)
    np.testing.assert_allclose(S.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(S.T @ S / 200, np.eye(3), atol=1e-10)
    shares = [one.variance_ratio for one in result.sources]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    np.testing.assert_allclose(shares, (mixing**2).sum(axis=0) / table.var(ddof=0).sum(), rtol=1e-10)
    assert (S[np.abs(S).argmax(axis=0), range(3)] > 0).all()
    for place, one in enumerate(result.sources):
        assert one.name == f"s{place + 1}"
        assert one.skewness == pytest.approx(np.mean(S[:, place] ** 3))
        assert one.kurtosis == pytest.approx(np.mean(S[:, place] ** 4) - 3.0)
    for one in result.associations:
        expected = [np.corrcoef(table[one.column], source)[0, 1] for source in S.T]
        np.testing.assert_allclose(one.values, expected, atol=1e-10)
    assert (result.columns, result.columns_left_out) == (("a", "b", "c"), ("kind",))
    assert (result.kernel, result.bandwidth) == ("gaussian(1)", 1.0)


def test_fewer_sources_are_those_of_the_leading_principal_components():
    sources = sources_of(["uniform", "two peaks"], 500)
    noisy = np.column_stack([sources @ np.array([[3.0, 1.0], [1.0, 2.0]]).T, 0.01 * np.ones(500)])
    noisy = noisy + 0.01 * np.random.default_rng(1).normal(size=noisy.shape)
    ica = KernelICA(components=2, scale="none").fit(noisy)
    found = ica.transform(noisy)
    correlations = np.abs(np.corrcoef(sources.T, found.T)[:2, 2:])
    assert correlations.max(axis=0).min() > 0.99
    back = ica.inverse_transform(found)
    assert np.sqrt(np.mean((back - noisy) ** 2)) < 0.02
    _, residuals = ica.model.residuals(ica._points(noisy), ica.engine)
    np.testing.assert_allclose(residuals, ((back - noisy) ** 2).sum(axis=1), atol=1e-12)


def test_gaussian_sources_are_undetermined_and_others_are_not():
    rng = np.random.default_rng(5)
    sources = np.column_stack([rng.normal(size=(600, 2)), rng.uniform(-1, 1, 600)])
    result = train_unmix(sources @ MIXING.T)
    ((first, second),) = result.undetermined
    (told,) = [one for one in result.warnings if "undetermined" in one]
    assert told.startswith(f"{first} and {second} are undetermined")
    kinds = {one.name: one.kurtosis for one in result.sources}
    assert all(abs(kinds[name]) < 0.6 for name in (first, second))


def test_two_gaussian_columns_are_told_to_be_undetermined():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="s1 and s2 are undetermined"):
        KernelICA().fit(rng.normal(size=(500, 2)) @ np.array([[2.0, 1.0], [0.0, 1.0]]))


def test_most_pairs_of_gaussian_columns_are_told():
    found = []
    for seed in range(6):
        rows = np.random.default_rng(seed).normal(size=(200, 2))
        found.append(len(train_unmix(rows).undetermined))
    # Each is missed with probability 0.05, or a little more, as the rows are turned to look least Gaussian.
    assert sum(found) >= 4


def test_dependence_that_is_left_shows_in_rows_held_out():
    rng = np.random.default_rng(1)
    angle, radius = rng.uniform(0, 2 * np.pi, 600), 1 + 0.1 * rng.normal(size=600)
    ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    result = train_unmix(ring, test_fraction=0.5)
    assert (result.n_train, result.n_test, result.test.n) == (300, 300, 300)
    assert result.test.p_value == pytest.approx(0.001)
    assert result.test.hsic_after > 0.5 * result.test.hsic_before > 0
    assert any("depend on each other" in one for one in result.warnings)
    assert "still depend on each other on 300 test rows" in str(result)
    sources = sources_of(["uniform", "two peaks"], 600)
    result = train_unmix(sources @ MIXING[:2, :2].T, test_fraction=0.5)
    assert result.test.p_value > 0.05
    assert "could be independent on 300 test rows" in str(result)
    assert not result.warnings


def test_fitted_sources_that_clearly_depend_on_each_other_are_told():
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 400)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(400, 2))
    (told,) = train_unmix(ring).warnings
    assert told.startswith("s1 and s2 still depend on each other, on the rows that they were fitted to: their HSIC is ")
    assert (
        "sources s2 are not the columns of that name" in train_unmix(pd.DataFrame(ring, columns=["s2", "s7"])).warnings
    )
    features = rotations.centred_features(KernelICA().fit_transform(ring), 1.0, 1e-12)
    K, L = (one @ one.T for one in features)
    times = np.sum(K * L) * 399 / (np.trace(K) * np.trace(L)) - 1
    assert f"is {times:,.0f} times what chance leaves" in told
    angle = np.cumsum(rng.normal(scale=0.5, size=400))
    _, of_series = train_unmix(np.column_stack([np.cos(angle), np.sin(angle)])).warnings
    assert "neighbouring rows are alike" in of_series
    assert "independent series look dependent, too" in of_series
    assert not train_unmix(sources_of(["uniform", "laplace"], 400) @ MIXING[:2, :2].T).warnings


def test_the_p_value_is_that_of_relabellings_by_hand():
    Y = white(sources_of(["uniform", "laplace", "two peaks"], 25))[0]
    features = rotations.centred_features(Y, 1.0, 1e-12)
    K = [one @ one.T for one in features]
    rng = np.random.default_rng(7)
    orders = [[np.arange(25), rng.permutation(25), rng.permutation(25)] for _ in range(39)]

    def total(order):
        k = [own[np.ix_(place, place)] for own, place in zip(K, order, strict=True)]
        return sum((k[i] * k[j]).sum() for i, j in ((0, 1), (0, 2), (1, 2)))

    observed = total([np.arange(25)] * 3)
    at_least = sum(total(order) >= observed * (1 - 1e-10) for order in orders)
    assert rotations.independence_p_value(features, 39, 7) == pytest.approx((1 + at_least) / 40)


def test_p_values_are_uniform_where_sources_are_independent():
    found = [
        rotations.independence_p_value(
            rotations.centred_features(sources_of(["uniform", "laplace"], 40, seed), 1.0, 1e-4), 39, seed
        )
        for seed in range(200)
    ]
    # Within four standard errors.
    assert np.mean(np.array(found) <= 0.25) == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / 200))


def test_rotations_are_rotations():
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(4, 4))
    R = rotations.rotation_by(turn - turn.T)
    np.testing.assert_allclose(R @ R.T, np.eye(4), atol=1e-12)
    small = 1e-4 * (turn - turn.T)
    np.testing.assert_allclose(rotations.rotation_by(small), np.eye(4) + small + small @ small / 2, atol=1e-10)
    Z = white(sources_of(["uniform", "laplace", "two peaks", "exponential"], 300))[0]
    starts = rotations.good_starts(Z, 2, 0)
    for W in starts:
        np.testing.assert_allclose(W @ W.T, np.eye(4), atol=1e-12)
    found = rotations.likeliest(Z, starts)
    np.testing.assert_allclose(found.matrix @ found.matrix.T, np.eye(4), atol=1e-12)
    assert found.settled
    # At the end, the equations of the likelihood hold.
    Y = found.matrix @ Z.T
    scores, *_ = rotations.Densities(10.0, 300, 4).scores(Y, choose=True)
    products = scores @ Y.T / 300
    assert np.abs(products - products.T).max() < 0.1


def test_of_several_starts_the_likeliest_end_is_taken():
    Z = white(sources_of(["two peaks", "three to one", "exponential", "two peaks"], 250))[0]
    rng = np.random.default_rng(0)
    starts = [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(4)]
    ends = [rotations.likeliest(Z, [start]) for start in starts]
    values = [one.value for one in ends]
    assert max(values) - min(values) > 1
    for order in (starts, starts[::-1]):
        found = rotations.likeliest(Z, order)
        assert found.value == max(values)
        np.testing.assert_array_equal(found.matrix, ends[int(np.argmax(values))].matrix)


def test_searches_that_find_the_same_count_once():
    Z = white(sources_of(["two peaks", "exponential"], 500))[0]
    assert len(rotations.good_starts(Z, 0, 0)) == 1
    assert len(rotations.good_starts(Z, 5, 0)) == 1


def test_relabellings_end_when_the_p_value_is_sure_to_be_large():
    Y = white(sources_of(["uniform", "laplace"], 60))[0]
    features = rotations.centred_features(Y, 1.0, 1e-6)
    every = rotations.independence_p_value(features, 199, 0)
    assert every > 0.05
    assert rotations.independence_p_value(features, 199, 0, 0.05) == pytest.approx(11 / 200)
    turned = Y @ np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2)
    small = [
        rotations.independence_p_value(rotations.centred_features(turned, 1.0, 1e-6), 199, 0, *enough)
        for enough in ((), (0.9,))
    ]
    assert small[0] == small[1]


def test_a_model_goes_through_its_file(tmp_path):
    table = pd.DataFrame(sources_of(["uniform", "laplace", "two peaks"], 200) @ MIXING.T, columns=list("abc"))
    table.assign(kind="x").to_csv(tmp_path / "rows.csv", index=False)
    told = train_unmix(tmp_path / "rows.csv", exclude="kind", output=tmp_path / "m.kt")
    ica = KernelICA.load(tmp_path / "m.kt")
    read = pd.read_csv(tmp_path / "rows.csv")
    expected = (read[["a", "b", "c"]].to_numpy() - told.mean) @ np.array([one.unmixing for one in told.sources]).T
    np.testing.assert_allclose(ica.transform(read), expected, atol=1e-9)
    np.testing.assert_allclose(ica.mixing_, np.array([one.mixing for one in told.sources]).T, rtol=1e-12)
    np.testing.assert_allclose(ica.mean_, told.mean, rtol=1e-9, atol=1e-12)
    assert ica.get_params() == KernelICA().get_params()
    for options, columns in (
        ({}, ["row", "s1", "s2", "s3"]),
        ({"components": 2}, ["row", "s1", "s2"]),
        ({"reconstruct": True, "residual": True}, ["row", "a", "b", "c", "reconstruction_error", "residual"]),
    ):
        report = transform_file(tmp_path / "m.kt", tmp_path / "rows.csv", output=tmp_path / "out.csv", **options)
        written = pd.read_csv(tmp_path / "out.csv")
        assert (list(written), report.kind) == (columns, "unmix")
        if "reconstruct" in options:
            np.testing.assert_allclose(written[["a", "b", "c"]], read[["a", "b", "c"]], atol=1e-8)
        else:
            np.testing.assert_allclose(written.iloc[:, 1:], expected[:, : len(columns) - 1], atol=1e-9)
    report = inspect_model(tmp_path / "m.kt")
    np.testing.assert_allclose(report.mixing, ica.mixing_, rtol=1e-12)
    # A long path breaks the line.
    assert "Independent components" in " ".join(str(report).split())
    raises(
        UsageError, "usage.components", lambda: transform_file(tmp_path / "m.kt", tmp_path / "rows.csv", components=4)
    )


def damaged_fields(manifest):
    """Yield manifests and changes of arrays that no fit writes."""
    yield {**manifest, "bandwidth": 1e9}, {}
    yield {**manifest, "bandwidth": "wide"}, {}
    yield {**manifest, "constants": [{"name": "x1", "place": 0, "value": 1.0}]}, {}
    yield manifest, {"mixing": np.ones((2, 3))}
    yield manifest, {"mean": np.zeros(3)}
    yield manifest, {"coefficients": np.ones((2, 1)), "intercepts": np.zeros(1)}
    yield {**manifest, "encoder": None}, {}


def test_damaged_models_are_refused(tmp_path):
    X = sources_of(["uniform", "laplace"], 100) @ MIXING[:2, :2].T
    KernelICA().fit(X).save(tmp_path / "m")
    manifest, members = members_of((tmp_path / "m").read_bytes())
    assert (manifest["kind"], "kernel" in manifest["parameters"]) == ("unmix", False)
    for changed, arrays in damaged_fields(manifest):
        (tmp_path / "m").write_bytes(archive(changed, {**members, **arrays}))
        with pytest.raises(ModelError):
            KernelICA.load(tmp_path / "m")


REFUSED = [
    ("usage.components", {"components": 1}),
    ("usage.components", {"components": 2.5}),
    ("usage.contrast", {"contrast": "kurtosis"}),
    ("usage.restarts", {"restarts": -1}),
    ("usage.bandwidth", {"bandwidth": 0.0}),
    ("usage.bandwidth", {"bandwidth": "median"}),
    ("usage.bandwidth", {"bandwidth": 100.0}),
    ("usage.scale", {"scale": "minmax"}),
    ("usage.seed", {"seed": -1}),
]


@pytest.mark.parametrize(("code", "options"), REFUSED)
def test_options_that_cannot_be_are_refused(code, options):
    raises(UsageError, code, lambda: KernelICA(**options))


def test_rows_that_cannot_be_unmixed_are_refused():
    rng = np.random.default_rng(0)
    column = rng.normal(size=(50, 1))
    raises(DataError, "data.too_few_columns", lambda: KernelICA().fit(column))
    raises(DataError, "data.too_few_columns", lambda: KernelICA().fit(np.column_stack([column, 2 * column])))
    raises(UndecidedError, "undecided.too_few_rows", lambda: KernelICA().fit(rng.normal(size=(8, 4))))
    raises(
        DataError, "data.no_columns", lambda: train_unmix(pd.DataFrame({"a": list("xyz") * 9, "b": list("uvw") * 9}))
    )
    raises(UndecidedError, "undecided.overflow", lambda: KernelICA(scale="none").fit(1e200 * rng.normal(size=(50, 2))))
    one = rng.normal(size=(50, 3)) * [1.0, 1e300, 1.0]
    raises(UndecidedError, "undecided.overflow", lambda: KernelICA(scale="none").fit(one))
    for few in (KernelICA(), KernelICA(components=3)):
        with pytest.warns(KerntestWarning) as caught:
            few.fit(rng.laplace(size=(18, 2)))
        assert any("18 rows are few for 2 sources" in str(one.message) for one in caught)
        assert any("3 sources were asked for" in str(one.message) for one in caught) == (few.components == 3)


def test_far_off_rows_keep_their_digits():
    X = sources_of(["uniform", "laplace", "two peaks"], 300) @ MIXING.T
    near, far = (KernelICA(scale="none").fit(X + off) for off in (0.0, 1e8))
    np.testing.assert_allclose(far.transform(X + 1e8), near.transform(X), atol=1e-5)


def test_outliers_do_not_stop_it():
    X = sources_of(["uniform", "laplace"], 300) @ MIXING[:2, :2].T
    X[0] = 1e6
    for contrast in ("likelihood", "hsic"):
        found = KernelICA(contrast=contrast).fit(X).transform(X)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("color", [None, "kind", "size"])
def test_the_picture_shows_columns_sources_and_the_mixture(color, tmp_path):
    table = pd.DataFrame(sources_of(["uniform", "laplace", "two peaks"], 100) @ MIXING.T, columns=list("abc"))
    table = table.assign(kind=["x", "y"] * 50, size=np.arange(100.0) % 7)
    train_unmix(table, columns="a,b,c", color=color, plot=tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for word in ("s1 (sd)", "Columns that depend most", "Sources that make most", "What the sources make"):
        assert word in text
    assert ("size" in text, ">kind<" in text or "kind" in text) == (color == "size", color == "kind")


def test_the_command_prints_what_the_record_says(kerntest, tmp_path):
    path = tmp_path / "x.csv"
    pd.DataFrame(sources_of(["uniform", "laplace"], 100) @ MIXING[:2, :2].T, columns=["a", "b"]).to_csv(
        path, index=False
    )
    document = json.loads(kerntest("unmix", path, "--json", "-q").out)
    assert (document["schema"], document["components"], document["test"]) == ("kerntest.unmix/1", 2, None)
    outcome = kerntest("unmix", path, "-q")
    assert outcome.code == 0
    for word in ("Independent components", "kurtosis", "mean over pairs, 100 training rows"):
        assert word in outcome.out
    assert kerntest("unmix", path, "-q", "--fail-on", "train.hsic_after<1").code == 1
    assert kerntest("unmix", path, "--bandwidth", "0").code == 2
    assert kerntest("unmix", path, "--components", "1").code == 2
    assert kerntest("unmix", path, "--columns", "a").code == 3


def test_what_is_missing_in_columns_that_take_no_part_costs_no_row(tmp_path):
    X = sources_of(["uniform", "laplace"], 200) @ MIXING[:2, :2]
    frame = pd.DataFrame(X, columns=["a", "b"])
    noted = frame.assign(note=[None if k % 3 else "ab"[k % 2] for k in range(200)])
    found, plain = (
        train_unmix(noted, output=tmp_path / "m.kt", test_fraction=0.3),
        train_unmix(frame, test_fraction=0.3),
    )
    assert (found.n_train, found.n_test, found.columns_left_out) == (140, 60, ("note",))
    np.testing.assert_allclose(found.sources[0].mixing, plain.sources[0].mixing, rtol=1e-6)
    assert train_unmix(noted, missing="indicator").n_train == 200
    assert KernelICA().fit(noted).model.n_train == 200
    assert inspect_model(tmp_path / "m.kt").kernel == found.kernel == "gaussian(1)"
    noted.loc[3, "a"] = np.nan
    assert train_unmix(noted, missing="drop").n_train == 199
    raises(DataError, "data.missing_values", lambda: train_unmix(noted))


def test_dates_that_nobody_named_are_left_out():
    table = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 2)), columns=["a", "b"])
    table["day"] = pd.date_range("2024-01-01", periods=60)
    found = train_unmix(table)
    assert found.columns == ("a", "b")
    told = "column 'day' is a date and left out: time is no mixture of sources; columns='day' takes them"
    assert told in found.warnings
    assert train_unmix(table, columns=["a", "day"]).columns == ("a", "day")
