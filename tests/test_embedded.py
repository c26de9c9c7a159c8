"""KernelKMeans through feature maps, and the restart recipe."""

import pickle

import numpy as np
import pytest
import reference
from memory import peak_bytes
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelKMeans, datasets, kernels, metrics
from mercer.engine.threads import Threads
from mercer.features import CentroidEmbedding, KernelEigen, Nystroem, RandomFourier, TaylorFeatures
from mercer.solvers.recipe import plant
from mercer.sources import Sample, content_hash

METHODS = ["nystroem", "fourier", "taylor", "sketch", "apnc"]
MAPS = [
    *METHODS,
    Nystroem(60, landmarks="pivoted-cholesky"),
    KernelEigen(8),
    RandomFourier(200, singular_vectors=True),
    RandomFourier(200, sampling="orthogonal"),
    CentroidEmbedding(50, 80),
]


def groups(n=600, k=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(c, 0.8, size=(n // k, 4)) for c in 2.0 * np.arange(k)])
    X[rng.random(X.shape) < 0.2] = 0
    return X.astype(dtype) / 6


@parametrize_with_checks([KernelKMeans(3, method="nystroem"), KernelKMeans(2, method="taylor", init="random")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::mercer.kernels.KernelScaleWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", MAPS, ids=str)
def test_every_map_clusters_and_predicts_what_it_fitted(method):
    X = groups()
    model = KernelKMeans(3, gamma=2.0, method=method, random_state=0, tol=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.cluster_centers_.shape == (3, model.feature_map_.transform(X[:2]).shape[1])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    distances = model.transform(X)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)
    for c, medoid in enumerate(model.medoid_indices_):
        assert model.labels_[medoid] == c
    exact = KernelKMeans(3, gamma=2.0, method="exact", random_state=0, tol=0).fit(X)
    close = method in ("nystroem", "fourier") or isinstance(method, (Nystroem, KernelEigen))
    assert metrics.adjusted_rand(exact.labels_, model.labels_) > (0.9 if close else 0.4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads(method, dtype):
    X = groups(9000, dtype=dtype)
    fits = [KernelKMeans(3, gamma=2.0, method=method, n_jobs=j, random_state=0).fit(X) for j in (1, 2, 4)]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.labels_, fits[0].labels_)
        assert model.inertia_ == fits[0].inertia_
        np.testing.assert_array_equal(model.cluster_centers_, fits[0].cluster_centers_)


@pytest.mark.parametrize("method", ["nystroem", "taylor", "sketch"])
@pytest.mark.parametrize(("init", "n_init"), [("k-means++", "auto"), ("k-means++", 4), ("points", 4)])
def test_a_weight_is_a_repetition_and_order_does_not_matter(method, init, n_init):
    X, rng = groups(300), np.random.default_rng(1)
    weight, order = rng.integers(0, 4, 300), rng.permutation(300)
    settings = {"n_clusters": 4, "gamma": 2.0, "method": method, "random_state": 0, "tol": 0}
    settings |= {"init": init, "n_init": n_init}
    weighted = KernelKMeans(**settings).fit(X, sample_weight=weight)
    shuffled = KernelKMeans(**settings).fit(X[order], sample_weight=weight[order])
    repeated = KernelKMeans(**settings).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_array_equal(shuffled.labels_, weighted.labels_[order])
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, weight))
    assert repeated.inertia_ == pytest.approx(weighted.inertia_, rel=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_give_the_same_labels(method):
    X = groups()
    dense = KernelKMeans(3, gamma=2.0, method=method, random_state=0).fit(X)
    csr = KernelKMeans(3, gamma=2.0, method=method, random_state=0).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(csr.labels_, dense.labels_)
    np.testing.assert_array_equal(csr.predict(sparse.csr_array(X[:50])), dense.labels_[:50])


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "linear", "cosine"])
def test_full_rank_nystroem_is_exact_from_the_same_start(kernel):
    X = groups() + 0.05
    start = np.random.default_rng(0).integers(3, size=600)
    exact = KernelKMeans(3, kernel=kernel, method="exact", init=start, tol=0).fit(X)
    full = KernelKMeans(3, kernel=kernel, method=Nystroem(1000), init=start, tol=0).fit(X)
    np.testing.assert_array_equal(full.labels_, exact.labels_)
    assert full.inertia_ == pytest.approx(exact.inertia_, rel=1e-6)


def test_the_objective_bounds_the_kernel_objective_from_above():
    X = groups()
    K = reference.kernel("rbf", X, gamma=2.0)
    for method in ("nystroem", KernelEigen(4), TaylorFeatures(2)):
        model = KernelKMeans(3, gamma=2.0, method=method, random_state=0).fit(X)
        assert model.inertia_ >= reference.kernel_objective(K, model.labels_) - 1e-9
        assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-3)


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_given_kernel_matrices_and_callables(method):
    X = groups()
    K = kernels.RBF(2.0)(X)
    model = KernelKMeans(3, kernel="precomputed", method=method, random_state=0).fit(K)
    np.testing.assert_array_equal(model.predict(K), model.labels_)
    called = KernelKMeans(3, kernel=lambda A, B: kernels.RBF(2.0)(A, B), method=method, random_state=0).fit(X)
    assert metrics.adjusted_rand(called.labels_, model.labels_) > 0.9


def test_parameters_of_a_map_nest_and_its_own_kernel_is_used():
    model = KernelKMeans(3, method=Nystroem(50), kernel="laplacian", gamma=0.5)
    model.set_params(method__rank=4)
    fitted = clone(model).fit(groups())
    assert fitted.feature_map_.rank_ == 4
    assert fitted.kernel_ == kernels.Laplacian(0.5)
    own = KernelKMeans(3, method=Nystroem(50, kernel="rbf", gamma=3.0), kernel="laplacian").fit(groups())
    assert own.kernel_ == kernels.RBF(3.0)


def test_points_and_labels_as_init():
    X = groups()
    points = X[[0, 300, 599]]
    by_points = KernelKMeans(3, gamma=2.0, method="nystroem", init=points, random_state=0, tol=0).fit(X)
    labels = kernels.RBF(2.0)(points, X).argmax(axis=0)
    by_labels = KernelKMeans(3, gamma=2.0, method="nystroem", init=labels, random_state=0, tol=0).fit(X)
    assert metrics.adjusted_rand(by_points.labels_, by_labels.labels_) > 0.95


def test_auto_is_exact_for_few_rows_and_nystroem_for_many_and_says_why():
    X = groups(600)
    assert KernelKMeans(3, random_state=0).fit(X).plan_.method == "exact"
    many = KernelKMeans(3, gamma=2.0, random_state=0).fit(groups(20_100, dtype=np.float32))
    assert many.plan_.method == "Nystroem"
    assert "would take time in proportion to their square" in str(many.plan_)
    tight = KernelKMeans(3, gamma=2.0, memory_limit="90MB", n_jobs=1, random_state=0).fit(groups(9000))
    assert "half the kernel matrix is" in str(tight.plan_)


def test_the_recipe_finds_better_optima_than_plain_restarts():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(12, 5)) * 2.2
    X = np.concatenate([rng.normal(c, 0.5, size=(60, 5)) for c in centers])
    recipe, plain = [], []
    for seed in range(6):
        recipe.append(KernelKMeans(12, gamma=0.1, random_state=seed, tol=0).fit(X).inertia_)
        plain.append(KernelKMeans(12, gamma=0.1, n_init=1, random_state=seed, tol=0).fit(X).inertia_)
    assert np.mean(recipe) < np.mean(plain)
    assert max(recipe) <= min(plain) * 1.02


def test_the_recipe_s_partition_is_nearly_the_best_of_many_exact_runs():
    X = groups(1800)
    kernel, K = kernels.RBF(2.0), reference.kernel("rbf", X, gamma=2.0)
    with Threads(2) as pool:
        seedling = plant(kernel, Sample(X, np.ones(1800), content_hash(X)), 6, 0, pool)
    assert sorted(seedling.rows) == list(range(1800))
    starts = np.random.default_rng(0).integers(6, size=(20, 1800))
    best = min(reference.kernel_kmeans(K, start, 6)[1][-1] for start in starts)
    labels = np.empty(1800, dtype=int)
    labels[seedling.rows] = seedling.labels
    assert reference.kernel_objective(K, labels) < 1.01 * best
    part = seedling.head()
    assert len(part.rows) == len(part.labels) == len(part.weight) == 1800


@pytest.mark.parametrize("method", ["nystroem", "fourier", "taylor"])
def test_no_more_memory_is_taken_than_planned(method):
    X = groups(30_000, dtype=np.float32)
    model = KernelKMeans(3, gamma=2.0, method=method, random_state=0, n_jobs=2)
    assert peak_bytes(model.fit, X) <= model.plan_.total_bytes


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"metric": "l3"}, ValueError, "metric='l3' is not known"),
        ({"method": "exact", "metric": "l1"}, ValueError, "metric='l1' is not known; choose from 'auto', 'l2'"),
        ({"method": "nystroem", "n_components": 0}, ValueError, "n_components must be at least 1"),
        ({"method": "fourier", "kernel": "polynomial"}, ValueError, "rbf or laplacian"),
        ({"method": "taylor", "kernel": "laplacian"}, ValueError, "rbf kernel"),
        ({"method": "nystroem", "memory_limit": "1MB"}, MemoryError, "Allow .*fewer coordinates"),
        ({"method": "nystroem", "init": np.zeros(3, int)}, ValueError, "init has 3 labels"),
        ({"kernel": kernels.RBF}, TypeError, "an object, not the class"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        KernelKMeans(3, **parameters).fit(groups())


def test_published_accuracies_on_pendigits():
    """Lin & Yang, table 2: .6773 for Taylor features against .6775 exact."""
    if "pendigits" in datasets.available():
        X, y = datasets.load_pendigits(return_X_y=True, scale="minmax")
        scores = [
            metrics.normalized_mutual_info(
                y,
                KernelKMeans(10, gamma=1 / 16, method="taylor", init="random", n_init=1, random_state=s).fit(X).labels_,
            )
            for s in range(10)
        ]
        assert np.mean(scores) == pytest.approx(0.6773, abs=0.012)
