"""gamma chosen from the data, and the warning about a kernel matrix that says nothing."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn import datasets as sklearn_datasets
from sklearn.svm import SVC

from mercer import kernels
from mercer.kernels import KERNELS, KernelScaleWarning, bandwidth, choose_gamma, warn_if_uninformative

WITH_GAMMA = ["rbf", "laplacian", "polynomial", "sigmoid"]
kinds = pytest.mark.parametrize("kind", [KERNELS[name] for name in WITH_GAMMA], ids=WITH_GAMMA)
rules = pytest.mark.parametrize("rule", ["scale", "median", "auto"])


def numbers(n, d, seed=0, zeros=0.3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * (rng.random((n, d)) >= zeros)


# ---- the rules ----------------------------------------------------------------------------------------------------


@kinds
def test_scale_is_scikit_learns(kind):
    X = numbers(50, 4) + 3
    fitted = SVC(gamma="scale").fit(X, np.arange(50) % 2)
    assert choose_gamma("scale", X, kind) == pytest.approx(fitted._gamma, rel=1e-12)
    assert choose_gamma("scale", X, kind) == pytest.approx(1 / (4 * X.var()), rel=1e-12)


def test_scale_far_from_the_origin():
    X = numbers(500, 4) + 1e8
    assert choose_gamma("scale", X, kernels.Linear) == pytest.approx(1 / (4 * X.var()), rel=1e-6)


def test_median_of_few_rows_is_exact():
    """The lower median, so that it is one of the values."""
    X = numbers(30, 4)
    lower = {"method": "lower"}
    assert choose_gamma("median", X, kernels.RBF) == pytest.approx(
        1 / np.quantile(pdist(X, "sqeuclidean"), 0.5, **lower)
    )
    assert choose_gamma("median", X, kernels.Laplacian) == pytest.approx(
        1 / np.quantile(pdist(X, "cityblock"), 0.5, **lower)
    )
    for kind in (kernels.Polynomial, kernels.Sigmoid):
        assert choose_gamma("median", X, kind) == pytest.approx(1 / np.quantile((X * X).sum(axis=1), 0.5, **lower))


@kinds
def test_median_of_many_rows_is_near(kind):
    X = numbers(20_000, 6)
    assert choose_gamma("median", X, kind) == pytest.approx(choose_gamma("median", X[:200], kind), rel=0.25)


@kinds
def test_auto_follows_the_geometry(kind):
    X = numbers(50, 4)
    rule = {"distance": "median", "product": "scale"}[kind.geometry]
    assert choose_gamma("auto", X, kind) == choose_gamma(rule, X, kind)


@kinds
def test_a_number_is_itself(kind):
    assert choose_gamma(np.float32(0.5), numbers(5, 2), kind) == 0.5


@kinds
@pytest.mark.parametrize("gamma", ["Scale", "", 0, -1, np.nan, True])
def test_anything_else_is_an_error(kind, gamma):
    with pytest.raises((TypeError, ValueError), match="gamma"):
        choose_gamma(gamma, numbers(5, 2), kind)


@kinds
@rules
def test_it_scales_with_the_data(kind, rule):
    X, power = numbers(50, 4), 1 if kind is kernels.Laplacian and rule != "scale" else 2
    assert choose_gamma(rule, 8 * X, kind) == pytest.approx(choose_gamma(rule, X, kind) / 8**power, rel=1e-12)


# ---- what must not matter -----------------------------------------------------------------------------------------


@kinds
@rules
@settings(max_examples=20)
@given(n=st.integers(1, 60), d=st.integers(1, 10), seed=st.integers(0, 1000))
def test_a_weight_is_a_repetition_and_order_does_not_matter(kind, rule, n, d, seed):
    """Exactly the same number: the labels of a fit must not depend on the last bit of gamma."""
    rng = np.random.default_rng(seed)
    X, weight = numbers(n, d, seed), rng.integers(0, 4, n)
    weight[0] = 1
    repeated = np.repeat(X, weight, axis=0)
    gamma = choose_gamma(rule, X, kind, weight.astype(np.float64))
    assert gamma == choose_gamma(rule, repeated, kind)
    assert gamma == choose_gamma(rule, rng.permutation(repeated), kind)
    assert gamma == choose_gamma(rule, sparse.csr_array(X).toarray(), kind, weight.astype(np.float64))


@kinds
@rules
def test_a_weight_is_a_repetition_of_many_rows(kind, rule, monkeypatch):
    """More rows than the sample, most of them copies, in several blocks."""
    monkeypatch.setattr(bandwidth, "_SAMPLE", 32)
    X, weight = numbers(400, 3).astype(np.float32), np.random.default_rng(1).integers(0, 30, 400)
    repeated = np.random.default_rng(2).permutation(np.repeat(X, weight, axis=0))
    assert choose_gamma(rule, X, kind, weight.astype(np.float64)) == choose_gamma(rule, repeated, kind)


@kinds
@rules
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_agree(kind, rule, dtype):
    X = numbers(100, 5).astype(dtype)
    untidy = sparse.csr_array(X)
    untidy.data /= 2
    untidy = sparse.csr_array(
        (np.repeat(untidy.data, 2), np.repeat(untidy.indices, 2), untidy.indptr * 2), shape=X.shape
    )
    gamma = choose_gamma(rule, X, kind)
    for stored in (sparse.csr_array(X), sparse.csr_matrix(X), untidy):
        assert choose_gamma(rule, stored, kind) == pytest.approx(gamma, rel=1e-12)
    assert choose_gamma(rule, X.astype(np.float64), kind) == pytest.approx(gamma, rel=1e-12)


# ---- data without spread ------------------------------------------------------------------------------------------


@kinds
@rules
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8])
def test_data_without_spread_give_one(kind, rule, value):
    X = np.full((50, 3), value)
    gamma = choose_gamma(rule, X, kind)
    of_products = kind.geometry == "product" and rule == "median" and value
    assert gamma == pytest.approx(1 / (3 * value**2) if of_products else 1)


@kinds
@rules
def test_one_row(kind, rule):
    gamma = choose_gamma(rule, np.array([[2.0]]), kind)
    assert gamma == (0.25 if kind.geometry == "product" and rule == "median" else 1)


@pytest.mark.parametrize("kind", [kernels.RBF, kernels.Laplacian])
def test_median_ignores_copies_when_they_are_most_pairs(kind):
    X = np.array([[0.0]] * 90 + [[3.0]] * 5 + [[7.0]] * 5)  # 450 pairs are 3 and 450 are 7 apart, 25 are 4
    assert choose_gamma("median", X, kind) == pytest.approx(1 / {kernels.RBF: 16, kernels.Laplacian: 4}[kind])


@pytest.mark.parametrize("kind", [kernels.RBF, kernels.Laplacian])
def test_median_counts_copies_when_they_are_few(kind):
    X = np.array([[0.0], [0.0], [1.0], [5.0]])  # distances 0, 1, 1, 4, 5, 5
    assert choose_gamma("median", X, kind) == 1


# ---- the warning --------------------------------------------------------------------------------------------------

DATA = {
    "iris": sklearn_datasets.load_iris().data,
    "wine": sklearn_datasets.load_wine().data,
    "digits": sklearn_datasets.load_digits().data,
    "breast cancer": sklearn_datasets.load_breast_cancer().data,
    "moons": sklearn_datasets.make_moons(300, noise=0.1, random_state=0)[0],
    "blobs": sklearn_datasets.make_blobs(300, n_features=20, random_state=0)[0],
    "far away": sklearn_datasets.make_moons(300, random_state=0)[0] * 1e-3 + 100,
    "copies": np.repeat(numbers(10, 3), 30, axis=0),
    "sparse": sparse.random_array((300, 1000), density=0.02, format="csr", rng=0),
}
data = pytest.mark.parametrize("X", DATA.values(), ids=DATA)


def messages(kernel, X):
    """Warnings about this kernel on these points."""
    sample = np.arange(0, X.shape[0], 7)
    diagonal = kernel.diagonal(kernel.rows(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_uninformative(kernel, kernel(X, X[sample]), diagonal, sample, X)
    assert all(warning.category is KernelScaleWarning for warning in caught)
    return [str(warning.message) for warning in caught]


@data
@kinds
def test_no_warning_at_the_automatic_gamma(kind, X):
    assert messages(kind(gamma=choose_gamma("auto", X, kind)), X) == []


@data
@pytest.mark.parametrize("kind", [kernels.RBF, kernels.Laplacian])
@pytest.mark.parametrize(("factor", "problem", "remedy"), [(1e7, "identity", "smaller"), (1e-6, "constant", "larger")])
def test_warning_names_a_gamma_that_helps(kind, factor, problem, remedy, X):
    good = choose_gamma("auto", X, kind)
    found = messages(kind(gamma=good * factor), X)
    copies = problem == "identity" and X.shape[0] > len(np.unique(bandwidth.content_hash(X))) * 2
    assert len(found) == (0 if copies else 1)  # copies of a point are similar to it for any gamma
    for message in found:
        assert f"nearly {'the identity' if problem == 'identity' else 'constant'}" in message
        assert remedy in message
        suggested = float(re.search(r"gamma=(\S+) \(gamma='auto'\)", message)[1])
        assert suggested == pytest.approx(good, rel=0.01)
        assert messages(kind(gamma=suggested), X) == []


def test_warning_says_how_far_off_gamma_is():
    X = DATA["moons"]
    good = choose_gamma("auto", X, kernels.RBF)
    (message,) = messages(kernels.RBF(gamma=good * 1e6), X)
    assert "1,000,000 times smaller" in message


def test_kernels_without_gamma_are_given_other_advice():
    X = np.abs(numbers(100, 3, zeros=0)) * 1e-6 + 1
    (message,) = messages(kernels.Cosine(), X)
    assert "nearly constant" in message
    assert "another kernel" in message


def test_columns_are_left_as_they_were():
    X = DATA["moons"]
    columns = kernels.RBF(gamma=1.0)(X, X[:5])
    kept = columns.copy()
    warn_if_uninformative(kernels.RBF(gamma=1.0), columns, np.ones(len(X)), np.arange(5), X)
    assert np.array_equal(columns, kept)
