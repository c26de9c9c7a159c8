from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from mercer import KernelKMeans, kernels, metrics

WEIGHTED = [metrics.normalized_mutual_info, metrics.purity, metrics.clustering_accuracy]
ALL = [*WEIGHTED, metrics.adjusted_rand]


@st.composite
def partitions(draw, max_label=4):
    """Two partitions of the same 1 to 30 samples, and a weight from 0 to 3 for each sample, not all 0."""
    n = draw(st.integers(1, 30))
    labels = st.lists(st.integers(-1, max_label), min_size=n, max_size=n)
    weight = st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)
    return tuple(np.array(draw(part)) for part in (labels, labels, weight))


def accuracy_by_permutation(labels_true, labels_pred):
    """Try every one-to-one naming of clusters by classes; names beyond the classes match nothing."""
    classes, clusters = np.unique(labels_true), np.unique(labels_pred)
    names = [*classes, *(f"unmatched {i}" for i in range(len(clusters)))]
    hits = (
        sum(
            true == naming[np.searchsorted(clusters, pred)] for true, pred in zip(labels_true, labels_pred, strict=True)
        )
        for naming in set(permutations(names[: max(len(classes), len(clusters))], len(clusters)))
    )
    return max(hits) / len(labels_true)


def purity_by_definition(labels_true, labels_pred):
    of_cluster = (labels_true[labels_pred == cluster] for cluster in np.unique(labels_pred))
    return sum(np.unique(members, return_counts=True)[1].max() for members in of_cluster) / len(labels_true)


@given(partitions())
def test_normalized_mutual_info_is_the_geometric_form(case):
    true, pred, _ = case
    expected = normalized_mutual_info_score(true, pred, average_method="geometric")
    assert metrics.normalized_mutual_info(true, pred) == pytest.approx(expected, abs=1e-12)


def test_normalized_mutual_info_by_hand():
    # Entropies log 2 and log(8) / 2, information log 2: log 2 / sqrt(log 2 * 1.5 log 2).
    assert metrics.normalized_mutual_info([0, 0, 1, 1], [0, 0, 1, 2]) == pytest.approx(1 / np.sqrt(1.5))


@given(partitions())
def test_adjusted_rand_is_scikit_learns(case):
    true, pred, _ = case
    assert metrics.adjusted_rand(true, pred) == pytest.approx(adjusted_rand_score(true, pred))


@given(partitions(max_label=3))
def test_clustering_accuracy_is_the_best_of_all_namings(case):
    true, pred, _ = case
    assert metrics.clustering_accuracy(true, pred) == pytest.approx(accuracy_by_permutation(true, pred))


@given(partitions())
def test_purity_is_the_share_of_majorities(case):
    true, pred, _ = case
    assert metrics.purity(true, pred) == pytest.approx(purity_by_definition(true, pred))


@pytest.mark.parametrize("score", WEIGHTED)
@given(case=partitions())
def test_weight_is_repetition(score, case):
    true, pred, weight = case
    repeated = score(np.repeat(true, weight), np.repeat(pred, weight))
    assert score(true, pred, sample_weight=weight) == pytest.approx(repeated)
    assert score(true, pred, sample_weight=weight * 0.125) == pytest.approx(repeated)


@pytest.mark.parametrize("score", ALL)
@given(case=partitions())
def test_names_of_labels_do_not_matter(score, case):
    true, pred, _ = case
    renamed = np.array(["f", "e", "d", "c", "b", "a"])
    assert score(renamed[true], 7 - 3 * pred) == pytest.approx(score(true, pred), abs=1e-12)
    assert score(list(true), list(pred)) == score(true, pred)


@pytest.mark.parametrize("score", ALL)
@given(case=partitions())
def test_one_partition_agrees_with_itself_and_no_score_exceeds_one(score, case):
    true, pred, _ = case
    assert score(true, true) == pytest.approx(1)
    assert score(true, pred) <= 1


@pytest.mark.parametrize("score", [metrics.normalized_mutual_info, metrics.clustering_accuracy, metrics.adjusted_rand])
@given(case=partitions())
def test_symmetric(score, case):
    true, pred, _ = case
    assert score(true, pred) == pytest.approx(score(pred, true), abs=1e-12)


def test_one_cluster_tells_nothing():
    true = [0, 0, 1, 1, 1]
    assert metrics.normalized_mutual_info(true, [4] * 5) == 0
    assert metrics.adjusted_rand(true, [4] * 5) == 0
    assert metrics.purity(true, [4] * 5) == metrics.clustering_accuracy(true, [4] * 5) == 0.6


def test_more_clusters_than_classes_and_fewer():
    true, split = np.repeat([0, 1], 50), np.repeat([0, 1, 2, 3], 25)
    assert metrics.clustering_accuracy(true, split) == metrics.clustering_accuracy(split, true) == 0.5
    assert metrics.purity(true, split) == 1


def test_as_many_clusters_as_samples():
    every = np.arange(1000)
    for score in ALL:
        assert score(every, every[::-1]) == pytest.approx(1)


@pytest.mark.parametrize("score", ALL)
@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([0, 1, 1], [0, 1], "inconsistent numbers of samples"),
        ([], [], "0 sample"),
        ([[0, 1], [1, 1]], [0, 1], "1d array"),
        ([0.0, np.nan], [0, 1], "labels_true contains NaN"),
    ],
)
def test_labels_that_are_refused(score, true, pred, message):
    with pytest.raises(ValueError, match=message):
        score(true, pred)


@pytest.mark.parametrize("score", WEIGHTED)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1], "3 entries for 2 samples"),
        ([1, -1], "non-negative"),
        ([0, 0], "positive entry"),
        ([1, np.inf], "sample_weight contains infinity"),
    ],
)
def test_weights_that_are_refused(score, weight, message):
    with pytest.raises(ValueError, match=message):
        score([0, 1], [0, 1], sample_weight=weight)


# ---- in the feature space of a kernel ----------------------------------------------------------------------

# Name, parameters of the metric, and the kernel in NumPy.
KERNELS = {
    "linear": ({}, lambda X: X @ X.T),
    "rbf": ({"gamma": 0.3}, lambda X: np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))),
    "polynomial": ({"gamma": 0.2, "degree": 2, "coef0": 0.5}, lambda X: (0.2 * X @ X.T + 0.5) ** 2),
    "sigmoid": ({"gamma": 0.1, "coef0": 0.2}, lambda X: np.tanh(0.1 * X @ X.T + 0.2)),
}
ROWS = 600  # three tiles in a row


@pytest.fixture(scope="module")
def sample():
    """Rows with zeros among them, labels with gaps between their numbers, and weights of which some are 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4)) * (rng.random((ROWS, 4)) < 0.7)
    return X, rng.choice([-1, 4, 7], ROWS), rng.integers(0, 4, ROWS)


def objective_by_definition(K, labels, weight):
    """Twice the weight of a cluster times its cost is the sum of all weighted squared distances within it."""
    D = K.diagonal()[:, None] - 2 * K + K.diagonal()
    members = (labels == cluster for cluster in np.unique(labels[weight > 0]))
    return sum(weight[m] @ D[np.ix_(m, m)] @ weight[m] / (2 * weight[m].sum()) for m in members)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_objective_is_its_definition(sample, name, dtype):
    X, labels, weight = sample
    parameters, kernel = KERNELS[name]
    for w in (np.ones(ROWS), weight):
        expected = objective_by_definition(kernel(X), labels, w)
        found = metrics.kernel_objective(X.astype(dtype), labels, kernel=name, sample_weight=w, **parameters)
        assert found == pytest.approx(expected, rel=1e-5 if dtype == np.float32 else 1e-12)


def test_kernel_objective_is_the_same_however_the_kernel_is_given(sample):
    X, labels, weight = sample
    expected = metrics.kernel_objective(X, labels, gamma=0.3, sample_weight=weight)

    def scaled(A, B, scale):
        return scale * kernels.RBF(0.3)(A, B)

    for rows, parameters in [
        (sparse.csr_array(X), {"gamma": 0.3}),
        (X, {"kernel": kernels.RBF(gamma=0.3)}),
        (X, {"kernel": scaled, "kernel_params": {"scale": 1.0}}),
        (kernels.RBF(gamma=0.3)(X), {"kernel": "precomputed"}),
    ]:
        found = metrics.kernel_objective(rows, labels, sample_weight=weight, **parameters)
        assert found == pytest.approx(expected, rel=1e-12)


def test_kernel_objective_of_a_fit_is_its_inertia(sample):
    X, _, weight = sample
    model = KernelKMeans(3, random_state=0).fit(X, sample_weight=weight)
    assert metrics.kernel_objective(X, model.labels_, sample_weight=weight) == pytest.approx(model.inertia_, rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_kernel_approximation_error_is_its_definition(sample, name, dtype, form):
    X, _, _ = sample
    parameters, kernel = KERNELS[name]
    Y = np.column_stack([X[:, :3], np.ones(ROWS)]) / 2
    K = kernel(X)
    found = metrics.kernel_approximation_error(form(X.astype(dtype)), form(Y.astype(dtype)), kernel=name, **parameters)
    assert found == pytest.approx(np.linalg.norm(K - Y @ Y.T) / np.linalg.norm(K), rel=1e-5)


def test_kernel_approximation_error_of_exact_and_of_empty_features(sample):
    X, _, _ = sample
    K = kernels.RBF(gamma=0.3)(X)
    values, vectors = np.linalg.eigh(K)
    exact = vectors * np.sqrt(np.maximum(values, 0))
    assert metrics.kernel_approximation_error(X, exact, gamma=0.3) < 1e-12
    assert metrics.kernel_approximation_error(K, exact, kernel="precomputed") < 1e-12
    assert metrics.kernel_approximation_error(X, np.zeros((ROWS, 1)), gamma=0.3) == 1
    zeros = np.zeros((3, 2))
    assert metrics.kernel_approximation_error(zeros, zeros, kernel="linear") == 0
    assert metrics.kernel_approximation_error(zeros, zeros + 1, kernel="linear") == np.inf


def test_kernel_metrics_are_the_same_bits_for_any_number_of_threads(sample):
    X, labels, weight = sample
    scores = [
        (
            metrics.kernel_objective(X, labels, sample_weight=weight, n_jobs=n_jobs),
            metrics.kernel_approximation_error(X, X, n_jobs=n_jobs),
        )
        for n_jobs in (1, 2, 3)
    ]
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.parametrize("score", [metrics.kernel_objective, metrics.kernel_approximation_error])
def test_kernel_metrics_refuse_what_does_not_fit(score):
    X, other = np.ones((3, 2)), np.ones(3)
    other = other if score is metrics.kernel_objective else other[:, None]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        score(X, other[:2])
    with pytest.raises(ValueError, match="must be square"):
        score(X, other, kernel="precomputed")
    with pytest.raises(ValueError, match="kernel='cubic' is not known"):
        score(X, other, kernel="cubic")
    with pytest.raises(ValueError, match="X contains NaN"):
        score(X * np.nan, other)
