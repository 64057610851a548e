"""Machines beside those of scikit-learn, solved far beyond its default tolerance: the same, or better."""

import numpy as np
import pytest
from learning.svm_cases import bundled, clouds, coefficients_of, cubic, gaussian, laplacian
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from kerntest import SVM

# LIBSVM keeps kernel values in single precision: its decisions are good to some 1e-6.
DECISIONS = 1e-4
KERNELS = {
    "gaussian(3)": lambda X, Z: gaussian(X, Z, 3.0),
    "laplacian(20)": lambda X, Z: laplacian(X, Z, 20.0),
    "polynomial(3, 0.1, 1)": cubic,
    "linear": lambda X, Z: X @ Z.T,
}


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=DECISIONS * np.abs(theirs).max())


def dual_of(K, signed, linear):
    """The dual objective of signed coefficients, `linear` times them minus half their norm."""
    return float(linear @ signed - 0.5 * signed @ K @ signed)


def spread_out(peer, n):
    found = np.zeros(n)
    found[peer.support_] = peer.dual_coef_[0]
    return found


def never_lower(K, ours, theirs, linear):
    mine, other = dual_of(K, ours, linear), dual_of(K, theirs, linear)
    assert mine >= other - 1e-9 * max(abs(mine), abs(other))


def same_support(ours, theirs, bound):
    """Rows of one and not of the other have coefficients that are nearly 0; at the bound likewise."""
    assert np.abs(np.abs(ours) - np.abs(theirs))[(ours == 0) != (theirs == 0)].max(initial=0) <= 1e-6 * bound
    full, other = np.abs(ours) >= bound * (1 - 1e-9), np.abs(theirs) >= bound * (1 - 1e-9)
    assert np.abs(np.abs(ours) - np.abs(theirs))[full != other].max(initial=0) <= 1e-6 * bound


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_two_classes_are_those_of_svc(name, C, kernel):
    X, y = bundled(name)
    y = (y > 0).astype(int) if name == "cancer" else (y == 1).astype(int)
    K = KERNELS[kernel](X, X)
    peer = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y)
    ours = SVM(C=C, kernel=kernel, scale="none", tolerance=1e-9).fit(X, y)
    theirs, mine = peer.decision_function(K), ours.decision_function(X)
    close(mine, theirs)
    clear = np.abs(theirs) > DECISIONS * np.abs(theirs).max()
    assert (ours.predict(X) == peer.predict(K))[clear].all()
    signs = np.where(y == 1, 1.0, -1.0)
    beta, other = coefficients_of(ours, len(y))[:, 0], spread_out(peer, len(y))
    never_lower(K, beta, other, signs)
    np.testing.assert_allclose(ours.fit_.dual_objective, dual_of(K, beta, signs), rtol=1e-9)
    if kernel != "linear" and kernel[:4] != "poly":
        # Their matrices have full rank: the coefficients are unique.
        same_support(beta, other, C)


@pytest.mark.parametrize("C", [1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("n", [20, 100])
def test_classes_far_apart_are_no_worse_than_those_of_svc(n, C):
    for seed in range(4):
        X, y = clouds(n, separation=8.0, seed=seed)
        K, signs = X @ X.T, np.where(y == 1, 1.0, -1.0)
        peer = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
        ours = SVM(C=C, kernel="linear", scale="none").fit(X, y)
        assert ours.fit_.converged
        theirs = dual_of(K, spread_out(peer, n), signs)
        assert dual_of(K, coefficients_of(ours, n)[:, 0], signs) >= theirs * (1 - 1e-6)


@pytest.mark.parametrize("s", [1.0, 4.0])
def test_gamma_is_one_over_two_bandwidths_squared(s):
    X, y = bundled("wine")
    peer = SVC(C=5.0, gamma=1 / (2 * s**2), tol=1e-9, decision_function_shape="ovo").fit(X, y)
    ours = SVM(C=5.0, bandwidth=s, scale="none", tolerance=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.model.expansion.kernel.gamma, 1 / (2 * s**2), rtol=1e-15)
    # Pairs of theirs are above 0 for the first class.
    close(ours.decision_function(X), -peer.decision_function(X))
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_several_classes_are_those_of_svc(name, C):
    X, y = bundled(name)
    s = (X.shape[1] / 2) ** 0.5
    peer = SVC(C=C, gamma=1 / (2 * s**2), tol=1e-9, decision_function_shape="ovo").fit(X, y)
    ours = SVM(C=C, bandwidth=s, scale="none", tolerance=1e-9).fit(X, y)
    rng = np.random.default_rng(0)
    new = X + 0.2 * rng.normal(size=X.shape)
    theirs = -peer.decision_function(new)
    close(ours.decision_function(new), theirs)
    clear = (np.abs(theirs) > DECISIONS * np.abs(theirs).max()).all(axis=1)
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(ours.predict(new)[clear], peer.predict(new)[clear])
    assert abs(len(ours.fit_.support) - len(peer.support_)) <= 2


@pytest.mark.parametrize("weights", ["balanced", "0:3,1:1,2:0.2"])
def test_class_weights_are_those_of_svc(weights):
    X, y = bundled("wine")
    X, y = X[::2], np.where(np.arange(len(y)) % 3 == 0, 0, y)[::2]
    theirs = "balanced" if weights == "balanced" else {0: 3.0, 1: 1.0, 2: 0.2}
    peer = SVC(C=0.7, gamma=0.1, tol=1e-9, class_weight=theirs, decision_function_shape="ovo").fit(X, y)
    ours = SVM(C=0.7, bandwidth=5**0.5, scale="none", tolerance=1e-9, class_weight=weights).fit(X, y)
    close(ours.decision_function(X), -peer.decision_function(X))
    plain = SVM(C=0.7, bandwidth=5**0.5, scale="none").fit(X, y).decision_function(X)
    assert np.abs(plain - ours.decision_function(X)).max() > 0.1


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_nu_machines_are_those_of_nusvc(nu):
    X, y = bundled("cancer")
    peer = NuSVC(nu=nu, gamma=0.02, tol=1e-10).fit(X, y)
    ours = SVM(nu=nu, bandwidth=5.0, scale="none", tolerance=1e-9).fit(X, y)
    close(ours.decision_function(X), peer.decision_function(X))
    # The cost at which the two problems have the same solution.
    np.testing.assert_allclose(ours.fit_.C, np.abs(peer.dual_coef_).max(), rtol=1e-4)


def test_nu_machines_of_several_classes_are_those_of_nusvc():
    X, y = bundled("iris")
    peer = NuSVC(nu=0.2, gamma=0.125, tol=1e-10, decision_function_shape="ovo").fit(X, y)
    ours = SVM(nu=0.2, bandwidth=2.0, scale="none", tolerance=1e-9).fit(X, y)
    close(ours.decision_function(X), -peer.decision_function(X))


@pytest.mark.parametrize("kernel", ["gaussian(3)", "laplacian(20)", "polynomial(3, 0.1, 1)"])
@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.1), (50.0, 20.0), (300.0, 0.0)])
def test_regressions_are_those_of_svr(C, epsilon, kernel):
    X, y = bundled("diabetes")
    X, y = X[::2], y[::2]
    K = KERNELS[kernel](X, X)
    peer = SVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-6).fit(K, y)
    ours = SVM(C=C, epsilon=epsilon, kernel=kernel, scale="none", task="regress", tolerance=1e-9).fit(X, y)
    close(ours.predict(X), peer.predict(K))
    beta, other = coefficients_of(ours, len(y))[:, 0], spread_out(peer, len(y))

    def dual(signed):
        return dual_of(K, signed, y) - epsilon * np.abs(signed).sum()

    assert dual(beta) >= dual(other) - 1e-9 * abs(dual(other))
    assert np.abs(beta).max() <= C * (1 + 1e-12)
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    # The solver moves the target's mean to 0, which the sum of the coefficients cancels.
    np.testing.assert_allclose(ours.fit_.dual_objective, dual(beta), rtol=1e-7)


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5, 0.95])
def test_one_class_machines_are_those_of_oneclasssvm(nu):
    X, _ = bundled("wine")
    peer = OneClassSVM(nu=nu, gamma=0.05, tol=1e-9).fit(X)
    ours = SVM(task="one-class", nu=nu, bandwidth=10**0.5, scale="none", tolerance=1e-9).fit(X)
    theirs, mine = peer.decision_function(X), ours.decision_function(X)
    # Differences of sums of nu n kernel values: that is their scale.
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * nu * len(X))
    clear = np.abs(theirs) > 1e-5 * nu * len(X)
    np.testing.assert_array_equal(ours.predict(X)[clear], peer.predict(X)[clear] == 1)
    beta, other = coefficients_of(ours, len(X))[:, 0], spread_out(peer, len(X))
    np.testing.assert_allclose(beta.sum(), nu * len(X), rtol=1e-12)
    never_lower(gaussian(X, X, 10**0.5), beta, other, np.zeros(len(X)))


def test_a_precomputed_matrix_gives_the_machine_of_its_kernel():
    X, y = bundled("wine")
    train, test = np.arange(0, 178, 2), np.arange(1, 178, 2)
    K = laplacian(X, X, 13.0)
    given = SVM(C=3.0, kernel="precomputed", tolerance=1e-10).fit(K[np.ix_(train, train)], y[train])
    named = SVM(C=3.0, kernel="laplacian(13)", scale="none", tolerance=1e-10).fit(X[train], y[train])
    peer = SVC(C=3.0, kernel="precomputed", tol=1e-9, decision_function_shape="ovo").fit(
        K[np.ix_(train, train)], y[train]
    )
    scores = given.decision_function(K[np.ix_(test, train)])
    np.testing.assert_allclose(scores, named.decision_function(X[test]), rtol=0, atol=1e-6)
    close(scores, -peer.decision_function(K[np.ix_(test, train)]))
    np.testing.assert_array_equal(given.predict(K[np.ix_(test, train)]), named.predict(X[test]))


@pytest.mark.parametrize("task", ["regress", "one-class"])
def test_precomputed_matrices_are_for_the_other_tasks_too(task):
    X, y = bundled("diabetes")
    X, y = X[::3], y[::3]
    K = gaussian(X, X, 3.0)
    given = SVM(C=30.0, kernel="precomputed", task=task, tolerance=1e-9).fit(K, y)
    named = SVM(C=30.0, kernel="gaussian(3)", scale="none", task=task, tolerance=1e-9).fit(X, y)
    found = named.decision_function(X)
    np.testing.assert_allclose(given.decision_function(K), found, rtol=0, atol=1e-5 * np.abs(found).max())


def test_standardised_columns_are_those_of_the_training_rows():
    X, y = bundled("cancer")
    raw = X * np.linspace(1, 1000, X.shape[1]) + 7
    train, test = np.arange(0, 200), np.arange(200, len(X))
    centre, spread = raw[train].mean(axis=0), raw[train].std(axis=0)
    peer = SVC(C=2.0, gamma=0.02, tol=1e-9).fit((raw[train] - centre) / spread, y[train])
    ours = SVM(C=2.0, bandwidth=5.0, tolerance=1e-9).fit(raw[train], y[train])
    close(ours.decision_function(raw[test]), peer.decision_function((raw[test] - centre) / spread))


def test_probabilities_of_two_classes_are_near_those_of_a_calibrated_svc():
    X, y = bundled("cancer")
    train, test = np.arange(0, 200), np.arange(200, len(X))
    ours = SVM(C=1.0, bandwidth=5.0, scale="none", probability=True).fit(X[train], y[train])
    peer = SVC(C=1.0, gamma=0.02, tol=1e-9).fit(X[train], y[train])
    found = ours.predict_proba(X[test])
    # Both come from the same scores; only the sigmoid is fitted.
    order = np.argsort(peer.decision_function(X[test]), kind="stable")
    assert (np.diff(found[order, 1]) > -1e-5).all()
    likelihood = np.log(found[np.arange(len(test)), y[test]]).mean()
    assert likelihood > -0.25
