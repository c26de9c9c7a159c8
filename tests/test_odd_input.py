"""Legal input in unusual form gives the usual result; what cannot work says so."""

import pickle
import warnings

import numpy as np
import pytest
from memory import peak_bytes
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    CentroidEmbedding,
    KernelEigen,
    KernelFuzzyCMeans,
    KernelKMeans,
    KernelPossibilisticCMeans,
    Nystroem,
    OnePassSketch,
    RandomFourier,
    TaylorFeatures,
    kernels,
    metrics,
)
from mercer.estimators import KernelPrecisionWarning

pytestmark = pytest.mark.filterwarnings("ignore::mercer.estimators.SoftClusteringWarning")

ALL = [KernelKMeans, KernelFuzzyCMeans, KernelPossibilisticCMeans]
MAPS = [Nystroem(20), CentroidEmbedding(20, 30), OnePassSketch(4), KernelEigen(4), RandomFourier(20), TaylorFeatures(2)]
named = {"ids": lambda value: type(value).__name__}


def groups(n=90, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(3 * c, 0.5, size=(n // 3, 4)) for c in range(3)])
    X[rng.random(X.shape) < 0.2] = 0
    return X.astype(dtype)


def disordered(X):
    """Same rows as CSR, the columns of each in descending order and one entry in two parts."""
    reverse = sparse.csr_array(X[:, ::-1])
    indices = X.shape[1] - 1 - reverse.indices
    data, indptr = reverse.data.copy(), reverse.indptr.copy()
    data[0] /= 2
    indptr[1:] += 1
    made = sparse.csr_array((np.r_[data[0], data], np.r_[indices[0], indices], indptr), shape=X.shape)
    assert not made.has_canonical_format
    return made


@pytest.mark.parametrize("feature_map", MAPS, **named)
def test_csr_need_not_be_in_order(feature_map):
    X = groups()
    Y = feature_map.set_params(random_state=0) if "random_state" in feature_map.get_params() else feature_map
    expected, found = Y.fit_transform(X), Y.fit_transform(disordered(X))
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("method", ["exact", "taylor", "nystroem"])
@pytest.mark.parametrize("estimator", ALL)
def test_estimators_take_csr_in_any_order(estimator, method):
    X = groups()
    model, other = (estimator(3, gamma=0.2, method=method, random_state=0).fit(rows) for rows in (X, disordered(X)))
    np.testing.assert_array_equal(model.labels_, other.labels_)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, np.asarray, list])
def test_landmarks_and_first_centres_in_any_form(form):
    X = groups()
    few = X[[1, 35, 70, 80]]
    given = form(few)
    expected = Nystroem(landmarks=few, gamma=0.2).fit(X).transform(X)
    np.testing.assert_allclose(Nystroem(landmarks=given, gamma=0.2).fit(X).transform(X), expected, atol=1e-10)
    model = KernelKMeans(3, gamma=0.2, method=Nystroem(landmarks=given), random_state=0).fit(X)
    assert model.feature_map_.n_landmarks_ == 4
    for estimator in ALL:
        for method in ("exact", "nystroem"):
            settings = {"gamma": 0.2, "method": method, "random_state": 0}
            expected = estimator(3, init=few[:3], **settings).fit(X).labels_
            np.testing.assert_array_equal(estimator(3, init=form(few[:3]), **settings).fit(X).labels_, expected)


def test_l1_distances_of_sparse_coordinates():
    X = groups()
    settings = {"gamma": 0.2, "method": "taylor", "metric": "l1", "random_state": 0}
    dense, csr = KernelKMeans(3, **settings).fit(X), KernelKMeans(3, **settings).fit(sparse.csr_array(X))
    np.testing.assert_allclose(csr.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-10)


@pytest.mark.parametrize("estimator", ALL)
def test_a_pickle_does_not_have_the_training_data(estimator):
    X = np.random.default_rng(0).normal(size=(5000, 30))
    model = estimator(3, gamma=0.02, method=Nystroem(20), random_state=0).fit(X)
    if estimator is not KernelKMeans:
        del model.memberships_
        assert not hasattr(model, "_training")
    assert len(pickle.dumps(model)) < X.nbytes / 5


@pytest.mark.parametrize(
    "feature_map", [m for m in MAPS if not isinstance(m, (RandomFourier, TaylorFeatures))], **named
)
def test_a_kernel_matrix_is_square_and_symmetric(feature_map):
    K = kernels.RBF(0.2)(groups())
    given = feature_map.set_params(kernel="precomputed")
    try:
        for wrong, message in (
            (K[:, :50], "must be square"),
            (K[:50], "must be square"),
            (np.triu(K), "not symmetric"),
        ):
            with pytest.raises(ValueError, match=message):
                given.fit(wrong)
    finally:
        feature_map.set_params(kernel=None)
    for estimator in ALL:
        if not (isinstance(feature_map, CentroidEmbedding) and estimator is not KernelKMeans):
            with pytest.raises(ValueError, match="must be square"):
                estimator(3, kernel="precomputed", method=feature_map).fit(K[:, :50])


@pytest.mark.parametrize("method", ["exact", "nystroem", "sketch"])
@pytest.mark.parametrize("estimator", ALL)
def test_kernel_values_that_overflow_are_said(estimator, method):
    X = groups(dtype=np.float32) * 1e4
    with pytest.raises(ValueError, match=r"overflow float32: k\(x, x\) is up to .*Scale the data"):
        estimator(3, kernel="polynomial", degree=9, gamma=1.0, method=method).fit(X)


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("weight", [1e39, 1e-30])
def test_weights_out_of_range_are_said(estimator, weight):
    with pytest.raises(ValueError, match="scale the weights"):
        estimator(3, gamma=0.2).fit(groups(), sample_weight=np.r_[weight, np.ones(89)])


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (TaylorFeatures(2.5), "degree must be an integer"),
        (TaylorFeatures(-1), "degree must be at least 1"),
        (OnePassSketch("a"), "rank must be an integer"),
        (KernelEigen("a"), "rank must be an integer"),
        (CentroidEmbedding("a"), "n_landmarks must be an integer"),
        (RandomFourier("a"), "n_components must be an integer"),
        (Nystroem("a"), "n_components must be an integer"),
        (CentroidEmbedding(fraction="a"), "fraction must lie"),
    ],
    ids=str,
)
def test_bad_parameters_of_a_map_inside_an_estimator(method, message):
    with pytest.raises((TypeError, ValueError), match=message):
        KernelKMeans(3, gamma=0.2, method=method).fit(groups())


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"verbose": "a"}, TypeError, "verbose must be an integer"),
        ({"verbose": None}, TypeError, "verbose must be an integer"),
        ({"n_clusters": 10**20}, ValueError, "n_clusters"),
    ],
    ids=str,
)
@pytest.mark.parametrize("estimator", ALL)
def test_bad_parameters(estimator, parameters, error, message):
    with pytest.raises(error, match=message):
        estimator(**{"n_clusters": 3, "gamma": 0.2} | parameters).fit(groups())


def test_theta_so_large_that_it_overflows():
    with pytest.raises(ValueError, match="theta must be at most"):
        KernelPossibilisticCMeans(3, theta=1e39).fit(groups())


def test_an_empty_cluster_does_not_count_in_xie_beni():
    X, U = groups(), np.zeros((90, 4))
    U[np.arange(90), np.repeat([0, 1, 3], 30)] = 1
    expected = metrics.xie_beni(X, U[:, [0, 1, 3]], kernel="linear")
    assert metrics.xie_beni(X, U, kernel="linear") == pytest.approx(expected)
    assert metrics.xie_beni(X + 10, U, kernel="linear") == pytest.approx(expected)


@pytest.mark.parametrize(("k", "m"), [(100, 25.0), (10, 50.0)])
def test_a_large_fuzzifier_on_the_full_kernel_in_float32(k, m):
    X = np.random.default_rng(0).normal(size=(800, 4))
    settings = {"m": m, "gamma": 0.3, "method": "exact", "init": X[:k], "max_iter": 1}
    with pytest.warns(ConvergenceWarning):
        single = KernelFuzzyCMeans(k, **settings).fit(X.astype(np.float32))
    with pytest.warns(ConvergenceWarning):
        double = KernelFuzzyCMeans(k, **settings).fit(X)
    np.testing.assert_allclose(single.memberships_, double.memberships_, rtol=1e-3)


@pytest.mark.parametrize(
    "method",
    [KernelEigen(200), Nystroem(300, landmarks="leverage"), RandomFourier(400, singular_vectors=5), OnePassSketch(5)],
    **named,
)
def test_maps_keep_to_the_plan(method):
    X = np.random.default_rng(0).normal(size=(3000, 10)).astype(np.float32)
    model = KernelKMeans(3, gamma=0.1, method=method, random_state=0, n_jobs=1)
    assert peak_bytes(model.fit, X) <= model.plan_.total_bytes


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_distances_lost_in_rounding_are_said(method):
    X = np.random.default_rng(0).normal(size=(200, 3)) + 1000
    model = KernelKMeans(2, kernel="linear", method=method, random_state=0)

    def said(rows):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(rows)
        return any(issubclass(w.category, KernelPrecisionWarning) for w in caught)

    assert said(X.astype(np.float32))
    assert not said(X)
    assert not said((X - 1000).astype(np.float32))
    assert not said(np.repeat(X[:2] - 1000, 20, axis=0).astype(np.float32))  # copies are no loss
