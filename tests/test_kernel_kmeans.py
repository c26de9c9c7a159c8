"""KernelKMeans: the contract users see."""

import multiprocessing
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from memory import peak_bytes
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelKMeans, datasets, kernels, metrics
from mercer.kernels import KernelScaleWarning

KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.3},
    "polynomial": {"gamma": 0.5, "degree": 2, "coef0": 0},
    "sigmoid": {"gamma": 0.01, "coef0": 0.2},
    "linear": {},
    "cosine": {},
}


def groups(n=120, d=4, k=3, seed=0, dtype=np.float64, spread=1.0):
    """Overlapping groups, so that runs take several iterations; some entries are zero, for sparse rows."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(2.5 * c, spread, size=(n // k, d)) for c in range(k)])
    X[rng.random(X.shape) < 0.2] = 0
    return X.astype(dtype), np.repeat(np.arange(k), n // k)


def start(n, k, seed=1):
    return np.random.default_rng(seed).permutation(np.arange(n) % k)


@parametrize_with_checks(
    [
        KernelKMeans(),
        KernelKMeans(n_clusters=3, kernel="polynomial", init="random"),
        KernelKMeans(n_clusters=2, kernel="laplacian", storage="recompute"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, KernelScaleWarning))
        check(estimator)


# ---- right ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["memory", "disk", "recompute", "precomputed"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_every_kernel_and_storage_is_the_reference(name, dtype, storage, form):
    X, _ = groups(n=600, dtype=dtype)
    weight, labels = np.random.default_rng(2).uniform(0.5, 2, len(X)), start(len(X), 3)
    K = reference.kernel(name, X, **KERNELS[name])
    expected, history = reference.kernel_kmeans(K, labels, 3, weight)
    if storage == "precomputed":
        model = KernelKMeans(3, kernel="precomputed", init=labels, tol=0)
        given = K.astype(dtype) if form == "dense" else sparse.csr_array(K.astype(dtype))
    else:
        model = KernelKMeans(3, kernel=name, init=labels, tol=0, storage=storage, **KERNELS[name])
        given = X if form == "dense" else sparse.csr_array(X)
    model.fit(given, sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, expected)
    assert model.inertia_ == pytest.approx(history[-1], rel=1e-5 if dtype == np.float32 else 1e-10)
    assert model.plan_.storage == storage
    np.testing.assert_array_equal(model.predict(given), expected)


def test_the_linear_kernel_is_k_means():
    X, _ = groups(n=300)
    labels = start(300, 3)
    centers = np.stack([X[labels == c].mean(axis=0) for c in range(3)])
    other = KMeans(3, init=centers, n_init=1, algorithm="lloyd", tol=0).fit(X)
    model = KernelKMeans(3, kernel="linear", init=labels, tol=0).fit(X)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    assert model.inertia_ == pytest.approx(other.inertia_)
    np.testing.assert_allclose(model.transform(X), other.transform(X), rtol=1e-6)
    assert model.score(X) == pytest.approx(other.score(X))


def test_it_separates_what_k_means_cannot():
    X, y = datasets.make_rings(600, noise=0.03, factor=0.3, random_state=0)
    model = KernelKMeans(2, gamma=3.0, n_init=10, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert adjusted_rand_score(y, KMeans(2, n_init=10, random_state=0).fit(X).labels_) < 0.1


@pytest.mark.parametrize("n", [90, 3000])
def test_same_bits_for_any_number_of_threads(n):
    X, _ = groups(n=n, dtype=np.float32)
    fits = [KernelKMeans(5, n_jobs=n_jobs, random_state=3, tol=0).fit(X) for n_jobs in (1, 2, 4)]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.labels_, fits[0].labels_)
        assert model.inertia_ == fits[0].inertia_
        assert [(i.objective, i.moved) for i in model.history_] == [(i.objective, i.moved) for i in fits[0].history_]
        np.testing.assert_array_equal(model.transform(X), fits[0].transform(X))


@pytest.mark.parametrize("init", ["k-means++", "random", "points"])
@pytest.mark.parametrize("gamma", ["auto", "scale"])
def test_a_weight_is_a_repetition_and_order_does_not_matter(init, gamma):
    X, _ = groups(n=90)
    weight, order = np.random.default_rng(4).integers(0, 4, 90), np.random.default_rng(5).permutation(90)
    settings = {"n_clusters": 6, "init": init, "gamma": gamma, "random_state": 0}
    weighted = KernelKMeans(**settings).fit(X, sample_weight=weight)
    shuffled = KernelKMeans(**settings).fit(X[order], sample_weight=weight[order])
    repeated = KernelKMeans(**settings).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_array_equal(shuffled.labels_, weighted.labels_[order])
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, weight))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-12)
    assert weighted.gamma_ == repeated.gamma_ == shuffled.gamma_ or gamma == "scale"
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-9, atol=1e-9)


def test_points_as_init_are_the_first_centres():
    X, _ = groups(n=150)
    points = X[[0, 60, 120]]
    D = reference.kernel("rbf", points, X, gamma=0.3)
    model = KernelKMeans(3, gamma=0.3, init=points, tol=0).fit(X)
    same = KernelKMeans(3, gamma=0.3, init=D.argmax(axis=0), tol=0).fit(X)
    np.testing.assert_array_equal(model.labels_, same.labels_)
    assert model.inertia_ == same.inertia_


def test_new_points_go_to_the_nearest_implicit_centre():
    X, _ = groups(n=300, dtype=np.float32)
    new, _ = groups(n=60, seed=9, dtype=np.float32)
    model = KernelKMeans(3, gamma=0.3, random_state=0, tol=0).fit(X)
    K, across = reference.kernel("rbf", X, gamma=0.3), reference.kernel("rbf", new, X, gamma=0.3)
    U = (model.labels_[:, None] == np.arange(3)) / np.bincount(model.labels_)
    D = 1 - 2 * across @ U + np.einsum("ic,ic->c", U, K @ U)
    np.testing.assert_allclose(model.transform(new), np.sqrt(D), rtol=1e-4)
    np.testing.assert_array_equal(model.predict(new), D.argmin(axis=1))
    weight = np.random.default_rng(0).random(60)
    assert model.score(new, sample_weight=weight) == pytest.approx(-weight @ D.min(axis=1), rel=1e-5)
    given = KernelKMeans(3, kernel="precomputed", init=model.labels_, tol=0).fit(K)
    np.testing.assert_array_equal(given.predict(across), D.argmin(axis=1))


def test_medoids_are_the_points_nearest_to_their_centres():
    X, _ = groups(n=150)
    model = KernelKMeans(4, gamma=0.3, random_state=0).fit(X)
    D = model.transform(X)
    for c, medoid in enumerate(model.medoid_indices_):
        assert model.labels_[medoid] == c
        assert D[medoid, c] == pytest.approx(D[model.labels_ == c, c].min())


def test_the_objective_falls_and_is_that_of_the_labels():
    X, _ = groups(n=600)
    model = KernelKMeans(7, gamma=0.3, n_init=1, init="random", random_state=0, tol=0).fit(X)
    objectives = np.array([i.objective for i in model.history_])
    assert len(objectives) == model.n_iter_ > 3
    assert (np.diff(objectives) <= 1e-9).all()
    K = reference.kernel("rbf", X, gamma=0.3)
    assert model.inertia_ == pytest.approx(reference.kernel_objective(K, model.labels_))


def test_published_accuracy_on_pendigits():
    if "pendigits" in datasets.available():
        X, y = datasets.load_pendigits(return_X_y=True, scale="minmax")
        fits = [
            KernelKMeans(10, gamma=1 / 16, init="random", n_init=1, tol=0, random_state=seed).fit(X)
            for seed in range(10)
        ]
        scores = [metrics.normalized_mutual_info(y, model.labels_) for model in fits]
        assert np.mean(scores) == pytest.approx(0.675, abs=0.012)  # Lin & Yang, table 2: .6775


# ---- kind -------------------------------------------------------------------------------------------------------


def test_a_callable_is_the_kernel_it_computes():
    X, _ = groups(n=700)

    def kernel(A, B, width):
        return np.exp(-((A[:, None] - B) ** 2).sum(-1) / width)

    ours = KernelKMeans(3, gamma=0.25, random_state=0).fit(X)
    theirs = KernelKMeans(3, kernel=kernel, kernel_params={"width": 4.0}, random_state=0).fit(X)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_array_equal(ours.predict(X[:9] + 0.1), theirs.predict(X[:9] + 0.1))
    assert theirs.gamma_ is None


def test_a_kernel_object_is_used_as_it_is():
    X, _ = groups()
    kernel = kernels.Laplacian(gamma=0.2)
    model = KernelKMeans(3, kernel=kernel, random_state=0).fit(X)
    assert model.kernel_ is kernel
    assert model.gamma_ == 0.2
    np.testing.assert_array_equal(
        model.labels_, KernelKMeans(3, kernel="laplacian", gamma=0.2, random_state=0).fit(X).labels_
    )


def test_data_frames_keep_their_names():
    X = pd.DataFrame(groups()[0], columns=list("abcd"))
    model = KernelKMeans(3, random_state=0).fit(X)
    assert list(model.feature_names_in_) == list("abcd")
    assert list(model.get_feature_names_out()) == ["kernelkmeans0", "kernelkmeans1", "kernelkmeans2"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "z"}))


def test_fitted_models_pickle_and_parameters_clone():
    X, _ = groups(dtype=np.float32)
    model = KernelKMeans(3, kernel="cosine", random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert clone(model).get_params() == model.get_params()


def _fit_in_child(queue):
    queue.put(KernelKMeans(3, n_jobs=2, random_state=0).fit(groups(n=1500)[0]).inertia_)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_it_works_in_a_forked_child_after_threads_have_run():
    expected = KernelKMeans(3, n_jobs=2, random_state=0).fit(groups(n=1500)[0]).inertia_
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_fit_in_child, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == expected


def test_verbose_says_what_happens(capsys):
    X, _ = groups()
    KernelKMeans(3, random_state=0, n_init=2, verbose=1).fit(X)
    assert capsys.readouterr().out.count("objective") == 2
    model = KernelKMeans(3, random_state=0, n_init=1, verbose=2).fit(X)
    assert capsys.readouterr().out.count("objective") == model.n_iter_


def test_the_plan_says_what_was_chosen_and_why():
    X, _ = groups(n=2100, dtype=np.float32)
    kept = KernelKMeans(3, gamma=0.3, method="exact", memory_limit="1GB", random_state=0).fit(X)
    small = KernelKMeans(3, gamma=0.3, method="exact", memory_limit="24MB", n_jobs=1, random_state=0).fit(X)
    assert (kept.plan_.storage, small.plan_.storage) == ("memory", "recompute")
    assert "10.9 MB" in str(small.plan_)
    assert "24.0 MB allowed" in str(small.plan_)
    np.testing.assert_array_equal(kept.labels_, small.labels_)
    assert kept.inertia_ == small.inertia_


@pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "k"), [(6000, 4, 3), (6000, 4, 40), (3000, 200, 5), (600, 3, 3)])
def test_no_more_memory_is_taken_than_planned(n, d, k, dtype, storage):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, d)) + 2 * rng.integers(4, size=(n, 1)) + 50).astype(dtype)
    model = KernelKMeans(k, storage=storage, n_init=2, random_state=0, n_jobs=2)
    assert peak_bytes(model.fit, X) <= model.plan_.total_bytes


# ---- every parameter is read ------------------------------------------------------------------------------------


def outcome(X=None, **parameters):
    X = groups(n=90, seed=3)[0] if X is None else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelKMeans(**{"n_clusters": 5, "random_state": 0, "n_init": 1, "gamma": 1.0} | parameters).fit(X)
    return (*model.labels_, model.inertia_, model.n_iter_, model.plan_.storage)


def scaled_product(A, B, scale=1.0):
    return scale * A @ B.T


READ = {
    "n_clusters": ({"n_clusters": 2}, {"n_clusters": 3}),
    "kernel": ({"kernel": "rbf"}, {"kernel": "laplacian"}),
    "gamma": ({"gamma": 0.01}, {"gamma": 1.0}),
    "degree": ({"kernel": "polynomial", "degree": 1}, {"kernel": "polynomial", "degree": 4}),
    "coef0": ({"kernel": "polynomial", "coef0": 0}, {"kernel": "polynomial", "coef0": 9}),
    "kernel_params": (
        {"kernel": scaled_product, "kernel_params": {"scale": 1.0}},
        {"kernel": scaled_product, "kernel_params": {"scale": 2.0}},
    ),
    "method": ({"method": "exact"}, {"method": "taylor"}),
    "n_components": ({"method": "nystroem", "n_components": 8}, {"method": "nystroem", "n_components": 40}),
    "metric": ({"method": "apnc", "metric": "l1"}, {"method": "apnc", "metric": "l2"}),
    "storage": ({"storage": "memory"}, {"storage": "disk"}),
    "init": ({"init": "random"}, {"init": "k-means++"}),
    "n_init": ({"n_init": 1}, {"n_init": 20}),
    "max_iter": ({"init": "random", "max_iter": 1}, {"init": "random", "max_iter": 50}),
    "tol": ({"init": "random", "tol": 0.5}, {"init": "random", "tol": 0.0}),
    "memory_limit": (
        {"method": "exact", "memory_limit": "1GB"},
        {"method": "exact", "memory_limit": "15MB", "n_jobs": 1},
    ),
    "random_state": ({"random_state": 0}, {"random_state": 1}),
}


@pytest.mark.parametrize("name", READ)
def test_parameter_changes_the_outcome(name):
    X = groups(n=1200, seed=3)[0] if name == "memory_limit" else None
    first, second = READ[name]
    assert outcome(X, **first) == outcome(X, **first)
    assert outcome(X, **first) != outcome(X, **second)


def test_every_parameter_is_proven_to_be_read():
    elsewhere = {
        "n_jobs": test_n_jobs_threads_are_started,
        "verbose": test_verbose_says_what_happens,
        "checkpoint": test_checkpoint_is_a_folder_that_is_gone_afterwards,
    }
    assert set(READ) | set(elsewhere) == set(KernelKMeans().get_params())


def test_checkpoint_is_a_folder_that_is_gone_afterwards(tmp_path, monkeypatch):
    from mercer.engine.checkpoint import Checkpoint

    saved = []
    original = Checkpoint.save
    monkeypatch.setattr(Checkpoint, "save", lambda self, state: (saved.append(self.path), original(self, state)))
    KernelKMeans(5, init="random", tol=0, checkpoint=tmp_path / "state", random_state=0).fit(groups(n=90)[0])
    assert saved[0] == tmp_path / "state" / "state.mercer"
    assert not (tmp_path / "state").exists()


def test_n_jobs_threads_are_started(monkeypatch):
    from mercer.engine import threads

    started = []
    original = threads.ThreadPoolExecutor

    def counting(count, **options):
        started.append(count)
        return original(count, **options)

    monkeypatch.setattr(threads, "ThreadPoolExecutor", counting)
    X, _ = groups(n=1200)
    KernelKMeans(3, n_jobs=3, random_state=0).fit(X)
    KernelKMeans(3, n_jobs=1, random_state=0).fit(X)
    assert started == [3]


# ---- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer"),
        ({"n_clusters": True}, TypeError, "n_clusters must be an integer"),
        ({"n_clusters": 200}, ValueError, "n_samples=120 should be >= n_clusters=200"),
        ({"kernel": "rbff"}, ValueError, "kernel='rbff' is not known; choose from"),
        ({"kernel": 3}, TypeError, "kernel must be a name"),
        ({"gamma": -1.0}, ValueError, "gamma must be positive and finite, got -1.0"),
        ({"gamma": 0}, ValueError, "gamma must be positive"),
        ({"gamma": np.nan}, ValueError, "gamma must be positive and finite"),
        ({"gamma": "best"}, ValueError, "gamma='best' is not known"),
        ({"kernel": "polynomial", "degree": 0}, ValueError, "degree must be between 1"),
        ({"kernel": "polynomial", "degree": 2.5}, TypeError, "degree must be an integer"),
        ({"kernel": "sigmoid", "coef0": np.inf}, ValueError, "coef0 must be finite"),
        ({"kernel_params": {"a": 1}}, ValueError, "keyword arguments of a callable"),
        ({"kernel": kernels.RBF(1.0), "gamma": 2.0}, ValueError, "owns its parameters"),
        ({"method": "nystrom"}, ValueError, "method='nystrom' is not known; choose from"),
        ({"storage": "tape"}, ValueError, "storage='tape' is not known; choose from"),
        ({"init": "k-means"}, ValueError, "init='k-means' is not known; choose from 'k-means\\+\\+', 'random'"),
        ({"init": np.zeros(5, int)}, ValueError, "init has 5 labels for 120 rows"),
        ({"init": np.full(120, 8)}, ValueError, "first labels must lie between 0 and 7"),
        ({"init": np.zeros(120)}, TypeError, "first labels must be integers"),
        ({"init": np.zeros((3, 4))}, ValueError, r"init has shape \(3, 4\); expected .* \(8, 4\)"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"tol": -1e-3}, ValueError, "tol must be finite and at least 0"),
        ({"memory_limit": "lots"}, ValueError, "memory_limit='lots' is not a size"),
        ({"memory_limit": -5}, ValueError, "memory_limit must be at least one byte"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0 has no meaning"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        KernelKMeans(**parameters).fit(groups()[0])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(120, -1.0), "sample_weight must not be negative; the weight of row 0"),
        (np.zeros(120), "sample_weight is zero for every row"),
        (np.where(np.arange(120) < 5, 1.0, 0.0), "only 5 rows have a positive weight, fewer than n_clusters=8"),
        (np.ones(7), r"sample_weight.shape == \(7,\), expected \(120,\)"),
        (np.full(120, np.nan), "sample_weight contains NaN"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        KernelKMeans().fit(groups()[0], sample_weight=weight)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_nan_and_infinity_are_refused(bad, form):
    X, _ = groups()
    X[7, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        KernelKMeans().fit(form(X))


def test_a_callable_that_returns_the_wrong_shape_is_named():
    def pairwise(x, z):
        return float(x[0] @ z[0])

    with pytest.raises(ValueError, match=r"pairwise returned shape \(\) .* it must return \(120, 120\)"):
        KernelKMeans(kernel=pairwise).fit(groups()[0])


def test_bad_kernel_matrices():
    K = reference.kernel("rbf", groups()[0])
    with pytest.raises(ValueError, match=r"must be square .* shape \(120, 80\)"):
        KernelKMeans(kernel="precomputed").fit(K[:, :80])
    with pytest.raises(ValueError, match="not symmetric"):
        KernelKMeans(kernel="precomputed").fit(np.triu(K))
    model = KernelKMeans(3, kernel="precomputed").fit(K)
    with pytest.raises(ValueError, match="80 features"):
        model.predict(K[:, :80])
    with pytest.raises(ValueError, match="distances need k"):
        model.transform(K)
    with pytest.raises(ValueError, match="distances need k"):
        model.score(K)
    with pytest.raises(ValueError, match="points as init need a kernel"):
        KernelKMeans(3, kernel="precomputed", init=K[:3]).fit(K)


def test_zero_variance_and_duplicates_are_answered_with_a_warning():
    with pytest.warns(ConvergenceWarning, match="Found 1 distinct clusters, fewer than n_clusters=3"):
        model = KernelKMeans(3, random_state=0).fit(np.ones((20, 2)))
    assert set(model.labels_) == {0}
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    X = np.repeat(np.eye(2), 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="Found 2 distinct clusters"):
        model = KernelKMeans(4, random_state=0).fit(X)
    assert adjusted_rand_score(np.repeat([0, 1], 10), model.labels_) == 1
    assert (model.medoid_indices_ >= -1).all()
    assert np.isfinite(model.transform(X)[:, np.unique(model.labels_)]).all()
    assert list(KernelKMeans(2, random_state=0).fit(X).predict(X[[0, 19]])) in ([0, 1], [1, 0])


def test_as_many_clusters_as_rows_and_one_cluster():
    X, _ = groups(n=12)
    assert KernelKMeans(12, random_state=0).fit(X).inertia_ == pytest.approx(0, abs=1e-12)
    one = KernelKMeans(1, gamma=0.3).fit(X)
    assert set(one.labels_) == {0}
    assert one.inertia_ == pytest.approx(reference.kernel_objective(reference.kernel("rbf", X, gamma=0.3), one.labels_))


def test_zero_weights_are_as_if_the_rows_were_absent_but_labelled():
    X, _ = groups(n=90)
    weight = np.ones(90)
    weight[::3] = 0
    model = KernelKMeans(3, gamma=0.3, random_state=0).fit(X, sample_weight=weight)
    without = KernelKMeans(3, gamma=0.3, random_state=0).fit(X[weight > 0])
    np.testing.assert_array_equal(model.labels_[weight > 0], without.labels_)
    np.testing.assert_array_equal(model.labels_[weight == 0], without.predict(X[weight == 0]))
    assert model.inertia_ == pytest.approx(without.inertia_)


def test_what_does_not_fit_is_refused_before_it_is_computed():
    def never(A, B):
        raise AssertionError("the kernel was evaluated")

    X = np.zeros((200_000, 2), dtype=np.float32)
    with pytest.raises(MemoryError, match=r"takes 80,\d{3},\d{3},\d{3} bytes.*Use storage='recompute' .*needs"):
        KernelKMeans(kernel=never, storage="memory", memory_limit="2GB").fit(X)
    with pytest.raises(MemoryError, match=r"does not fit in the 1.0 MB allowed.*Allow \d+"):
        KernelKMeans(kernel=never, method="exact", memory_limit="1MB").fit(X)


@pytest.mark.parametrize(("gamma", "problem"), [(1e6, "nearly the identity"), (1e-9, "nearly constant")])
def test_a_gamma_far_off_is_said(gamma, problem):
    X, _ = groups()
    with pytest.warns(KernelScaleWarning, match=rf"{problem}.*Try gamma=0\.\d+ \(gamma='auto'\)"):
        KernelKMeans(3, gamma=gamma, random_state=0).fit(X)


def test_no_convergence_is_said():
    X, _ = groups(n=600)
    with pytest.warns(ConvergenceWarning, match=r"did not converge in max_iter=1 iterations .*Raise max_iter or tol\."):
        KernelKMeans(7, init="random", n_init=1, max_iter=1, tol=0, random_state=0).fit(X)


def test_iris_is_quick():
    X = load_iris().data
    model = KernelKMeans(3, random_state=0).fit(X)
    assert metrics.normalized_mutual_info(load_iris().target, model.labels_) > 0.7


def test_warnings_point_at_the_users_line(tmp_path):
    X, _ = groups(n=600)
    with pytest.warns(ConvergenceWarning) as caught:
        KernelKMeans(7, init="random", n_init=1, max_iter=1, tol=0, random_state=0).fit(X)
    assert caught[0].filename == __file__
    with pytest.warns(KernelScaleWarning) as caught:
        KernelKMeans(3, gamma=1e6, random_state=0, checkpoint=tmp_path / "state").fit(X)
    assert caught[0].filename == __file__
