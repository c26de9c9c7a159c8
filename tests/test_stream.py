"""KernelKMeans.partial_fit: batches of a stream."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from mercer import KernelKMeans, metrics
from mercer.features import Nystroem


def stream(n=2400, batch=800, dtype=np.float64, seed=0):
    X, y = make_blobs(n, centers=[[0, 0], [1, 1], [0, 1.5]], cluster_std=0.2, random_state=seed)
    return X.astype(dtype), y, [slice(start, start + batch) for start in range(0, n, batch)]


@pytest.mark.parametrize("method", ["auto", "nystroem", "fourier", "taylor", "sketch", "apnc", Nystroem(40, rank=6)])
def test_centres_and_objective_are_those_of_all_rows_with_the_labels_they_had(method):
    X, _, batches = stream()
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    model, labels = KernelKMeans(3, gamma=2.0, method=method, random_state=0), []
    for part in batches:
        labels.append(model.partial_fit(X[part], sample_weight=weight[part]).labels_)
    labels = np.concatenate(labels)
    assert model.n_samples_seen_ == len(labels) == len(X)
    Y = model.feature_map_.transform(X)
    Y = Y.toarray() if sparse.issparse(Y) else Y
    centers = np.stack([np.average(Y[labels == c], axis=0, weights=weight[labels == c]) for c in range(3)])
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-8)
    residual = model.feature_map_.residual(X)
    objective = weight @ (((Y - centers[labels]) ** 2).sum(axis=1) + residual)
    assert model.inertia_ == pytest.approx(objective, rel=1e-6)


def test_first_batch_is_a_fit():
    X, _, _ = stream()
    fitted = KernelKMeans(2, gamma=3.0, method="nystroem", random_state=0).fit(X)
    first = KernelKMeans(2, gamma=3.0, method="nystroem", random_state=0).partial_fit(X)
    np.testing.assert_array_equal(first.labels_, fitted.labels_)
    assert first.inertia_ == fitted.inertia_
    assert first.certificate_.lower_bound == fitted.certificate_.lower_bound


def test_a_stream_ends_near_a_fit_of_all_rows():
    X, y, batches = stream(8000, 500)
    model = KernelKMeans(3, gamma=3.0, random_state=0)
    for part in batches:
        model.partial_fit(X[part])
    assert metrics.normalized_mutual_info(y, model.predict(X)) > 0.95
    whole = KernelKMeans(3, gamma=3.0, method="nystroem", random_state=0).fit(X)
    assert metrics.adjusted_rand(whole.labels_, model.predict(X)) > 0.97
    assert -model.score(X) <= 1.01 * -whole.score(X)


def test_goes_on_from_a_fit_and_fit_starts_again():
    X, _, batches = stream()
    model = KernelKMeans(2, gamma=3.0, method="nystroem", random_state=0).fit(X[batches[0]])
    streamed = KernelKMeans(2, gamma=3.0, random_state=0).partial_fit(X[batches[0]])
    np.testing.assert_array_equal(
        model.partial_fit(X[batches[1]]).cluster_centers_, streamed.partial_fit(X[batches[1]]).cluster_centers_
    )
    assert model.n_samples_seen_ == 1600
    assert not hasattr(model, "medoid_indices_")
    model.fit(X[batches[0]])
    assert model.n_samples_seen_ == 800
    assert len(model.medoid_indices_) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads_and_through_a_pickle(dtype):
    X, _, batches = stream(60000, 20000, dtype)
    found = []
    for n_jobs in (1, 2, 4):
        model = KernelKMeans(4, gamma=3.0, n_jobs=n_jobs, random_state=0)
        for part in batches:
            model = pickle.loads(pickle.dumps(model.partial_fit(X[part])))
        found.append((model.labels_, model.cluster_centers_, model.inertia_))
    for other in found[1:]:
        np.testing.assert_array_equal(other[0], found[0][0])
        np.testing.assert_array_equal(other[1], found[0][1])
        assert other[2] == found[0][2]


def test_a_weight_is_a_repetition():
    X, _, batches = stream()
    weight = np.random.default_rng(2).integers(0, 3, len(X))
    weighted, repeated = (KernelKMeans(3, gamma=2.0, random_state=0) for _ in range(2))
    for part in batches:
        weighted.partial_fit(X[part], sample_weight=weight[part])
        repeated.partial_fit(np.repeat(X[part], weight[part], axis=0))
    np.testing.assert_allclose(repeated.cluster_centers_, weighted.cluster_centers_, atol=1e-9)
    assert repeated.inertia_ == pytest.approx(weighted.inertia_)


def test_small_later_batches_and_clusters_absent_from_one():
    X, y, _ = stream(1000)
    model = KernelKMeans(3, gamma=3.0, random_state=0).partial_fit(X)
    before = model.cluster_centers_.copy()
    lone = X[y == 0][:5]
    model.partial_fit(lone)  # two clusters have no row here, and must neither be refilled nor move
    absent = np.arange(3) != model.labels_[0]
    assert (model.labels_ == model.labels_[0]).all()
    np.testing.assert_array_equal(model.cluster_centers_[absent], before[absent])
    assert "stream" in model.certificate_.reason


def test_a_cluster_that_the_first_batch_could_not_fill_is_filled_later():
    few = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    more = np.concatenate([few, np.full((10, 2), 3.0)])
    with pytest.warns(UserWarning, match="distinct clusters"):
        model = KernelKMeans(3, gamma=1.0, method=Nystroem(landmarks=more[::10]), random_state=0).partial_fit(few)
    model.partial_fit(more)
    assert len(np.unique(model.predict(more))) == 3


def test_clear_errors():
    X, _, _ = stream()
    with pytest.raises(ValueError, match="use method='nystroem'"):
        KernelKMeans(2, method="exact").partial_fit(X)
    with pytest.raises(ValueError, match="precomputed"):
        KernelKMeans(2, kernel="precomputed", method="nystroem").partial_fit(np.eye(5))
    with pytest.raises(ValueError, match="n_clusters=3, but"):
        KernelKMeans(2, random_state=0).partial_fit(X).set_params(n_clusters=3).partial_fit(X)
    with pytest.raises(ValueError, match="features"):
        KernelKMeans(2, random_state=0).partial_fit(X).partial_fit(X[:, :1])
    with pytest.raises(ValueError, match="n_samples=1"):
        KernelKMeans(2).partial_fit(X[:1])
    failed = KernelKMeans(2)
    with pytest.raises(ValueError, match="NaN"):
        failed.partial_fit(np.full((5, 2), np.nan))
    with pytest.raises(NotFittedError):
        failed.predict(X)
