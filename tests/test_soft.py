"""Fuzzy and possibilistic kernel c-means."""

import pickle
import warnings

import numpy as np
import pytest
import reference
from memory import peak_bytes
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelFuzzyCMeans, KernelKMeans, KernelPossibilisticCMeans, Nystroem, kernels, metrics
from mercer.engine.checkpoint import Checkpoint
from mercer.engine.threads import Threads
from mercer.estimators import SoftClusteringWarning
from mercer.gram import MemoryGram
from mercer.kernels import KernelScaleWarning
from mercer.solvers import EmbeddedSpace, GramSpace, hard_c_means
from mercer.solvers.rules import Rule
from mercer.solvers.soft import soft_c_means

ESTIMATORS = [KernelFuzzyCMeans, KernelPossibilisticCMeans]
METHODS = ["exact", "nystroem", "fourier", "taylor", "sketch"]
both = pytest.mark.parametrize("estimator", ESTIMATORS)
GAMMA = 0.3


def groups(n=240, d=3, k=3, seed=0, dtype=np.float64, spread=0.8):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(2.0 * c, spread, size=(n // k, d)) for c in range(k)])
    X[rng.random(X.shape) < 0.1] = 0
    return X.astype(dtype)


def start(n, k=3, seed=1):
    return np.random.default_rng(seed).permutation(np.arange(n) % k)


def one_hot(labels, k=3):
    return (labels[:, None] == np.arange(k)).astype(float)


def fitted(estimator, X, sample_weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, SoftClusteringWarning))
        return estimator(**{"n_clusters": 3, "gamma": GAMMA, "random_state": 0} | parameters).fit(
            X, None, sample_weight
        )


@parametrize_with_checks(
    [KernelFuzzyCMeans(), KernelPossibilisticCMeans(), KernelFuzzyCMeans(n_clusters=3, method="nystroem", m=1.5)]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, KernelScaleWarning, SoftClusteringWarning))
        check(estimator)


# ---- right ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["memory", "disk", "recompute", "precomputed"])
@pytest.mark.parametrize("name", ["rbf", "polynomial", "linear"])
@pytest.mark.parametrize("m", [1.2, 2.0, 3.5])
def test_the_full_kernel_is_the_reference(storage, name, m):
    X, weight = groups(600), np.random.default_rng(2).uniform(0.5, 2, 600)
    parameters = {"rbf": {"gamma": GAMMA}, "polynomial": {"gamma": 0.2, "degree": 2}, "linear": {}}[name]
    K = reference.kernel(name, X, **parameters)
    given = weight[:, None] * one_hot(start(600))
    expected, D, objectives = reference.soft_kernel_cmeans(K, given, 13, m, weight)
    settings = {"m": m, "init": start(600), "max_iter": 12, "tol": 0}
    if storage == "precomputed":
        settings |= {"kernel": "precomputed", "gamma": "auto"}
    else:
        settings |= {"kernel": name, "storage": storage, "gamma": "auto"} | parameters
    fuzzy = fitted(KernelFuzzyCMeans, K if storage == "precomputed" else X, weight, **settings)
    np.testing.assert_allclose(fuzzy.memberships_, expected, atol=1e-5)
    np.testing.assert_allclose([i.objective for i in fuzzy.history_], objectives[:-1], rtol=1e-5)
    assert fuzzy.objective_ == pytest.approx(objectives[-1], rel=1e-5)
    np.testing.assert_array_equal(fuzzy.labels_, expected.argmax(axis=1))
    nu = (weight[:, None] * expected**m * D).sum(axis=0) / (weight[:, None] * expected**m).sum(axis=0) * 0.7
    again = weight[:, None] * reference.soft_kernel_cmeans(K, given, 12, m, weight)[0] ** m  # gives the same centres
    typical, _, _ = reference.soft_kernel_cmeans(K, again, 13, m, weight, nu)
    settings |= {"theta": 0.7}
    model = fitted(KernelPossibilisticCMeans, K if storage == "precomputed" else X, weight, **settings)
    np.testing.assert_allclose(model.nu_, nu, rtol=1e-5)
    np.testing.assert_allclose(model.typicalities_, typical, atol=1e-5)


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_rows_as_landmarks_match_the_full_kernel(estimator, dtype):
    X = groups(dtype=dtype)
    full = fitted(estimator, X, method="exact", init=start(240), m=1.7)
    approximate = fitted(estimator, X, method=Nystroem(240), init=start(240), m=1.7)
    np.testing.assert_allclose(approximate.memberships_, full.memberships_, atol=1e-8 if dtype == np.float64 else 5e-3)
    assert approximate.objective_ == pytest.approx(full.objective_, rel=1e-8 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_a_fuzzifier_near_one_gives_the_hard_labels(method):
    X = np.concatenate([np.random.default_rng(c).normal(1.5 * c, 0.3, size=(80, 3)) for c in range(3)])
    first = np.where(np.arange(240) % 4, np.repeat(np.arange(3), 80), start(240))
    hard = KernelKMeans(3, gamma=GAMMA, method=method, init=first, tol=0, random_state=0).fit(X)
    soft = fitted(KernelFuzzyCMeans, X, m=1.01, method=method, init=first)
    np.testing.assert_array_equal(soft.labels_, hard.labels_)
    assert soft.memberships_.max(axis=1).mean() > 0.99


def test_the_hard_rule_through_the_soft_loop_is_kernel_k_means():
    X, weight = groups(), np.random.default_rng(0).uniform(0.5, 2, 240)
    kernel, first = kernels.RBF(GAMMA), start(240).astype(np.int32)
    pool = Threads(1)
    for space in (
        GramSpace(MemoryGram(kernel, kernel.rows(X), pool), weight, 3, pool),
        EmbeddedSpace(X, weight, 3, pool),
    ):
        hard = hard_c_means(space, first)
        soft = soft_c_means(space, Rule(1.0), space.centers(first), max_iter=100, tol=0.0)
        assert soft.converged
        np.testing.assert_array_equal(soft.last.labels, hard.labels)
        assert soft.last.objective == pytest.approx(hard.objective)


@both
@pytest.mark.parametrize("method", METHODS)
def test_the_objective_falls_at_every_iteration(estimator, method):
    """It does not with the printed formulas: distances from -alpha, the exponent 2 / (m - 1), sum u^2m below."""
    X = groups(spread=1.5)
    model = fitted(estimator, X, method=method, init="points", n_init=1, tol=1e-6, m=1.5)
    objectives = np.array([i.objective for i in model.history_])
    assert len(objectives) > 5
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    assert model.objective_ <= objectives[-1] * (1 + 1e-9)


def test_the_printed_formulas_do_not_lower_the_objective():
    K, m = reference.kernel("rbf", groups(), gamma=GAMMA), 1.5
    best, _, falling = reference.soft_kernel_cmeans(K, one_hot(start(240)), 300, m)

    def rises(exponent, below):
        U, objectives = best, falling[-1:]
        for _ in range(5):
            W = U**m / (U**m).sum(axis=0)
            norms = np.einsum("ic,ic->c", U**m, K @ U**m) / (below(U) if below else (U**m).sum(axis=0) ** 2)
            D = np.maximum(K.diagonal()[:, None] - 2 * K @ W + norms, 1e-12)
            U = (D.min(axis=1, keepdims=True) / D) ** exponent
            U /= U.sum(axis=1, keepdims=True)
            true = K.diagonal()[:, None] - 2 * K @ W + np.einsum("ic,ic->c", W, K @ W)
            objectives.append((U**m * true).sum())
        return bool((np.diff(objectives) > 1e-9).any())

    assert not rises(1 / (m - 1), None)
    assert rises(2 / (m - 1), None)  # (6) and (7) as printed
    assert rises(1 / (m - 1), lambda U: (U ** (2 * m)).sum(axis=0))  # (10) as printed


@both
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads(estimator, method, dtype):
    X = groups(2100, dtype=dtype)
    fits = [fitted(estimator, X, method=method, n_jobs=n_jobs) for n_jobs in (1, 2, 4)]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.memberships_, fits[0].memberships_)
        assert model.objective_ == fits[0].objective_
        assert [i.objective for i in model.history_] == [i.objective for i in fits[0].history_]


@both
@pytest.mark.parametrize("method", ["exact", "nystroem", "taylor"])
@pytest.mark.parametrize("init", ["k-means++", "random", "points"])
def test_a_weight_is_a_repetition_and_order_does_not_matter(estimator, method, init):
    X = groups(120)
    weight, order = np.random.default_rng(4).integers(0, 4, 120), np.random.default_rng(5).permutation(120)
    settings = {"method": method, "init": init, "m": 1.5, "tol": 1e-9}
    weighted = fitted(estimator, X, weight, **settings)
    shuffled = fitted(estimator, X[order], weight[order], **settings)
    repeated = fitted(estimator, np.repeat(X, weight, axis=0), **settings)
    np.testing.assert_allclose(shuffled.memberships_, weighted.memberships_[order], atol=1e-6)
    np.testing.assert_allclose(repeated.memberships_, np.repeat(weighted.memberships_, weight, axis=0), atol=1e-6)
    assert repeated.objective_ == pytest.approx(weighted.objective_, rel=1e-8)


@both
@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_and_precisions_agree(estimator, method):
    X = groups().astype(np.float32).astype(float)
    settings = {"method": method, "m": 1.5, "init": start(240)}
    dense = fitted(estimator, X, **settings)
    np.testing.assert_allclose(
        fitted(estimator, sparse.csr_array(X), **settings).memberships_, dense.memberships_, atol=1e-7
    )
    single = fitted(estimator, X.astype(np.float32), **settings)
    np.testing.assert_allclose(single.memberships_, dense.memberships_, atol=2e-2)


@both
@pytest.mark.parametrize("method", METHODS)
def test_new_points_have_the_memberships_of_the_training_points(estimator, method):
    X = groups()
    model = fitted(estimator, X, method=method, m=1.5)
    np.testing.assert_allclose(model.predict_memberships(X), model.memberships_, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.objective_, rel=1e-6)
    assert model.transform(X[:5]).shape == (5, 3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_memberships(X), model.predict_memberships(X))
    for cluster, medoid in enumerate(model.medoid_indices_):
        assert model.labels_[medoid] == cluster if cluster in model.labels_ else medoid == -1


@both
def test_a_given_matrix_predicts_by_the_nearest_centre(estimator):
    X = groups()
    K = kernels.RBF(GAMMA)(X)
    rows = fitted(estimator, X, method="exact", init=start(240))
    given = fitted(estimator, K, kernel="precomputed", gamma="auto", init=start(240))
    np.testing.assert_allclose(given.memberships_, rows.memberships_, atol=1e-7)
    np.testing.assert_array_equal(given.predict(K), rows.transform(X).argmin(axis=1))
    with pytest.raises(ValueError, match="kernel='precomputed' does not give"):
        given.predict_memberships(K)


@both
@pytest.mark.parametrize("method", ["nystroem", "exact"])
def test_memberships_need_not_be_kept(estimator, method):
    X = groups(2100, dtype=np.float32)
    kept = fitted(estimator, X, method=method)
    bare = fitted(estimator, X, method=method, keep_memberships=False)
    assert not hasattr(bare, "memberships_")
    np.testing.assert_array_equal(bare.labels_, kept.labels_)
    assert [i.change for i in bare.history_] == [i.change for i in kept.history_]
    np.testing.assert_array_equal(bare.predict_memberships(X[:50]), kept.predict_memberships(X[:50]))


def test_points_as_first_centres():
    X = groups()
    by_points = fitted(KernelFuzzyCMeans, X, method="exact", init=X[[0, 100, 200]], m=1.5)
    embedded = fitted(KernelFuzzyCMeans, X, method=Nystroem(240), init=X[[0, 100, 200]], m=1.5)
    np.testing.assert_allclose(embedded.memberships_, by_points.memberships_, atol=1e-6)
    D = kernels.RBF(GAMMA)(X, X[[0, 100, 200]])
    once = fitted(KernelFuzzyCMeans, X, method="exact", init=X[[0, 100, 200]], m=1.5, max_iter=1)
    assert once.history_[0].objective == pytest.approx((Rule(1.5).memberships(2 - 2 * D) ** 1.5 * (2 - 2 * D)).sum())


# ---- numerics ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "nystroem"])
@pytest.mark.parametrize("m", [1.0001, 1.5, 30.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_fuzzifier_and_hundreds_of_clusters_give_no_nan(method, m, dtype):
    X = groups(600, dtype=dtype)
    for k in (2, 200):
        if m * np.log(k) < 600:
            model = fitted(KernelFuzzyCMeans, X, n_clusters=k, m=m, method=method, max_iter=5)
            assert np.isfinite(model.memberships_).all()
            np.testing.assert_allclose(model.memberships_.sum(axis=1), 1, rtol=1e-4)


@both
@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_all_points_identical(estimator, method):
    with pytest.warns((SoftClusteringWarning, KernelScaleWarning)):
        model = estimator(3, gamma=1.0, method=method, random_state=0).fit(np.ones((30, 2)))
    assert np.isfinite(model.memberships_).all()
    assert model.objective_ == pytest.approx(0, abs=1e-6)


def test_a_point_on_a_centre_belongs_to_it():
    D = np.array([[0.0, 1.0, 4.0], [0.0, 0.0, 1.0], [2.0, np.inf, 2.0]])
    np.testing.assert_array_equal(Rule(1.5).memberships(D), [[1, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5]])
    typical = Rule(3.0, np.array([1.0, 1.0, 0.0])).memberships(D)
    np.testing.assert_allclose(typical[0], [1, 0.5, 0], atol=1e-300)
    np.testing.assert_allclose(typical[2], [1 / (1 + np.sqrt(2)), 0, 0], atol=1e-300)


@pytest.mark.parametrize("m", [1.001, 1.3, 2.0, 5.0, 50.0])
def test_rules_are_the_reference(m):
    D = np.random.default_rng(0).uniform(0.01, 100, size=(50, 6))
    nu = np.linspace(0.1, 50, 6)
    np.testing.assert_allclose(Rule(m).memberships(D), reference.fuzzy_memberships(D, m), atol=1e-12)
    np.testing.assert_allclose(Rule(m, nu).memberships(D), reference.typicalities(D, nu, m), atol=1e-12)


# ---- kind -------------------------------------------------------------------------------------------------------


def test_coincident_centres_are_said_and_a_smaller_m_helps():
    X = np.random.default_rng(0).normal(size=(600, 20))
    settings = {"n_clusters": 4, "gamma": 0.02, "random_state": 0}
    with pytest.warns(SoftClusteringWarning, match=r"4 of the 4 centres coincide .*smaller m \(m=1.25\)"):
        KernelFuzzyCMeans(m=2.0, **settings).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SoftClusteringWarning)
        KernelFuzzyCMeans(m=1.05, **settings).fit(X)


def test_a_cluster_without_typical_points_is_said():
    X = np.random.default_rng(0).normal(size=(300, 30))
    model = KernelPossibilisticCMeans(2, theta=0.1, m=2.0, gamma=0.01, random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X)
    assert any(
        "No point is typical of cluster 0, 1" in str(w.message) and "larger theta" in str(w.message) for w in said
    )


def test_outliers_are_typical_of_nothing():
    X = np.concatenate([groups(), [[40.0, -30.0, 20.0]]])
    model = fitted(KernelPossibilisticCMeans, X, m=1.5)
    highest = model.typicalities_.max(axis=1)
    assert highest[-1] < 0.4
    assert (highest[:-1] > highest[-1]).mean() > 0.9


@both
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"m": 1.0}, ValueError, "m must be above 1"),
        ({"m": 0.5}, ValueError, "m must be finite and at least 1"),
        ({"m": np.nan}, ValueError, "m must be finite"),
        ({"m": "2"}, TypeError, "m must be a number"),
        ({"m": 1e6}, ValueError, "all memberships are equal"),
        ({"method": "apnc"}, ValueError, "squared distances"),
        ({"metric": "l1"}, ValueError, "squared distances"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1"),
        ({"n_clusters": 1000}, ValueError, "n_samples=240 should be >= n_clusters=1000"),
        ({"init": np.zeros(3, int)}, ValueError, "init has 3 labels"),
    ],
    ids=str,
)
def test_bad_parameters(estimator, parameters, error, message):
    with pytest.raises(error, match=message):
        estimator(**{"n_clusters": 3, "gamma": GAMMA} | parameters).fit(groups())


@pytest.mark.parametrize("theta", [0, -1.0, np.inf])
def test_widths_must_be_positive(theta):
    with pytest.raises(ValueError, match="theta must be"):
        KernelPossibilisticCMeans(3, theta=theta).fit(groups())


@both
def test_verbose_says_what_happens(estimator, capsys):
    estimator(3, gamma=GAMMA, m=1.3, random_state=0, n_init=1, verbose=1).fit(groups())
    assert capsys.readouterr().out.count("memberships changed by up to") == (2 if estimator is ESTIMATORS[1] else 1)


def outcome(estimator, **parameters):
    model = fitted(estimator, groups(spread=1.5), **{"m": 1.5, "n_init": 1, "max_iter": 20} | parameters)
    kept = getattr(model, "memberships_", np.zeros(0))
    return (*kept.ravel(), model.objective_, model.n_iter_, model.plan_.storage)


def scaled_product(A, B, scale=1.0):
    return scale * A @ B.T


READ = {
    "n_clusters": ({"n_clusters": 2}, {"n_clusters": 3}),
    "m": ({"m": 1.5}, {"m": 2.0}),
    "theta": ({"theta": 1.0}, {"theta": 2.0}),
    "kernel": ({"kernel": "rbf"}, {"kernel": "laplacian"}),
    "gamma": ({"gamma": 0.01}, {"gamma": 1.0}),
    "degree": ({"kernel": "polynomial", "degree": 1}, {"kernel": "polynomial", "degree": 2}),
    "coef0": ({"kernel": "polynomial", "coef0": 0}, {"kernel": "polynomial", "coef0": 9}),
    "kernel_params": (
        {"kernel": scaled_product, "kernel_params": {"scale": 1.0}, "gamma": "auto"},
        {"kernel": scaled_product, "kernel_params": {"scale": 2.0}, "gamma": "auto"},
    ),
    "method": ({"method": "exact"}, {"method": "taylor"}),
    "n_components": ({"method": "nystroem", "n_components": 8}, {"method": "nystroem", "n_components": 40}),
    "storage": ({"storage": "memory"}, {"storage": "recompute"}),
    "init": ({"init": "random"}, {"init": "points"}),
    "n_init": ({"init": "points", "n_init": 1}, {"init": "points", "n_init": 9, "n_clusters": 9}),
    "max_iter": ({"max_iter": 1}, {"max_iter": 9}),
    "tol": ({"tol": 0.5}, {"tol": 1e-9}),
    "keep_memberships": ({"keep_memberships": True}, {"keep_memberships": False}),
    "random_state": ({"init": "points", "random_state": 0}, {"init": "points", "random_state": 1}),
}


@both
@pytest.mark.parametrize("name", READ)
def test_parameter_changes_the_outcome(estimator, name):
    first, second = READ[name]
    if name == "theta" and estimator is KernelFuzzyCMeans:
        assert "theta" not in clone(estimator(3)).get_params()
        return
    assert outcome(estimator, **first) != outcome(estimator, **second)


@both
def test_a_checkpoint_is_gone_after_the_fit(estimator, tmp_path, monkeypatch):
    """`tests/test_checkpoint.py` goes on from one."""
    saved = []
    original = Checkpoint.save
    monkeypatch.setattr(Checkpoint, "save", lambda self, state: (saved.append(self.path), original(self, state)))
    outcome(estimator, checkpoint=tmp_path / "state")
    assert saved[0] == tmp_path / "state" / "state.mercer"
    assert not (tmp_path / "state").exists()


@both
def test_every_parameter_is_proven_to_be_read(estimator):
    elsewhere = {
        "n_jobs": test_same_bits_for_any_number_of_threads,
        "verbose": test_verbose_says_what_happens,
        "memory_limit": test_a_memory_limit_is_kept,
        "metric": test_bad_parameters,
        "checkpoint": test_a_checkpoint_is_gone_after_the_fit,
    }
    assert set(READ) | set(elsewhere) >= set(estimator().get_params())


@both
@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_a_memory_limit_is_kept(estimator, method):
    X = groups(6000, dtype=np.float32)
    model = estimator(20, gamma=GAMMA, m=1.2, method=method, random_state=0, n_jobs=2, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, SoftClusteringWarning))
        peak = peak_bytes(model.fit, X)
    assert peak <= model.plan_.total_bytes
    with pytest.raises(MemoryError, match="Allow"):
        clone(model).set_params(memory_limit="1MB").fit(X)


# ---- validity ---------------------------------------------------------------------------------------------------


def test_xie_beni_is_its_definition():
    X, weight = groups(), np.random.default_rng(0).uniform(0.5, 2, 240)
    model = fitted(KernelFuzzyCMeans, X, weight, m=1.5)
    U, K = model.memberships_, reference.kernel("rbf", X, gamma=GAMMA)
    W = weight[:, None] * U**1.5
    W /= W.sum(axis=0)
    D = K.diagonal()[:, None] - 2 * K @ W + np.einsum("ic,ic->c", W, K @ W)
    between = [(a - b) @ K @ (a - b) for i, a in enumerate(W.T) for b in W.T[:i]]
    expected = (weight[:, None] * U**1.5 * D).sum() / weight.sum() / min(between)
    found = metrics.xie_beni(X, U, m=1.5, gamma=GAMMA, sample_weight=weight)
    assert found == pytest.approx(expected)
    assert metrics.xie_beni(K, U, m=1.5, kernel="precomputed", sample_weight=weight) == pytest.approx(expected)
    assert metrics.xie_beni(X, np.full((240, 2), 0.5), gamma=GAMMA) == float("inf")


def test_partition_coefficient_and_entropy():
    U = np.array([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]])
    assert metrics.partition_coefficient(U) == pytest.approx((0.68 + 1 + 0.5) / 3)
    entropy = -(0.2 * np.log(0.2) + 0.8 * np.log(0.8) - np.log(0.5)) / 3
    assert metrics.partition_entropy(U) == pytest.approx(-(0.2 * np.log(0.2) + 0.8 * np.log(0.8) + np.log(0.5)) / 3)
    assert entropy < metrics.partition_entropy(U)
    weight = [1, 2, 0]
    assert metrics.partition_coefficient(U, sample_weight=weight) == pytest.approx((0.68 + 2) / 3)
    assert metrics.partition_entropy(np.eye(3)) == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        metrics.partition_coefficient([[1.5, 0.0]])
    with pytest.raises(ValueError, match="two clusters"):
        metrics.xie_beni(U, np.ones((3, 1)))
