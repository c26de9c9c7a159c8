"""CodebookClassifier: code books of classes, distances to them, and probabilities from the distances."""

import dataclasses
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from memory import peak_bytes
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import CodebookClassifier, Disk, KernelKMeans, kernels
from mercer.estimators import codebook
from mercer.estimators import representatives as parts
from mercer.kernels import KernelScaleWarning

KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.3},
    "polynomial": {"gamma": 0.5, "degree": 2, "coef0": 0},
    "sigmoid": {"gamma": 0.01, "coef0": 0.2},
    "linear": {},
    "cosine": {},
}
both = pytest.mark.parametrize("representatives", ["centroid", "medoid"])


def classes(n=120, d=4, k=3, seed=0, dtype=np.float64, apart=1.5):
    """Overlapping classes of two groups each; some entries are zero, for sparse rows."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = rng.normal(size=(n, d)) + apart * y[:, None] + 4 * rng.integers(2, size=(n, 1)) * (np.arange(d) == 0)
    X[rng.random(X.shape) < 0.2] = 0
    return X.astype(dtype), y


def fitted(X, y, sample_weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an indefinite kernel may not settle
        return CodebookClassifier(**{"codebook_size": 7, "random_state": 0} | parameters).fit(X, y, sample_weight)


def expected_distances(K, model, y, rows, new, n_neighbors, representatives, weight):
    """Distances to the classes by their definition, from all kernel values and the clusters of each class."""
    out = []
    for book in model.codebooks_:
        members = rows[book.rows]
        assert set(members) == {row for row in rows if y[row] == book.label and weight[row] > 0}
        U = weight[members, None] * (book.labels[:, None] == np.arange(book.size))
        M = U / U.sum(axis=0)
        D = K.diagonal()[:, None] - 2 * K[:, members] @ M + np.einsum("ic,ic->c", M, K[np.ix_(members, members)] @ M)
        if representatives == "medoid":
            points, least = rows[book.medoid_indices], np.where(U > 0, D[members], np.inf).min(axis=0)
            np.testing.assert_allclose(D[points, np.arange(book.size)], least, atol=1e-5)  # one of those equally near
            assert all(book.labels[members == point] == entry for entry, point in enumerate(points))
            D = K.diagonal()[:, None] - 2 * K[:, points] + K.diagonal()[points]
        out.append(np.sort(np.sqrt(np.maximum(D[new], 0)), axis=1)[:, :n_neighbors].mean(axis=1))
    return np.stack(out, axis=1)


@parametrize_with_checks(
    [
        CodebookClassifier(),
        CodebookClassifier(4, representatives="medoid", kernel="laplacian"),
        CodebookClassifier(8, n_neighbors=1, kernel="polynomial", storage="recompute"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- right ------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_distances_are_the_reference(name, dtype, form, representatives):
    X, y = classes(n=150, dtype=dtype)
    weight, rows, new = np.random.default_rng(2).integers(0, 3, 150) / 2, np.arange(90), np.arange(90, 150)
    K = reference.kernel(name, X, **KERNELS[name])
    model = fitted(form(X[rows]), y[rows], weight[rows], kernel=name, representatives=representatives, **KERNELS[name])
    assert [book.size for book in model.codebooks_] == [7, 7, 7]
    for n_neighbors in (1, 3, 99):
        model.set_params(n_neighbors=n_neighbors)
        expected = expected_distances(K, model, y, rows, new, n_neighbors, representatives, weight)
        tolerance = {"atol": 5e-3, "rtol": 1e-3} if dtype == np.float32 else {"atol": 1e-6, "rtol": 1e-9}
        np.testing.assert_allclose(-model.decision_function(form(X[new])), expected, **tolerance)
        np.testing.assert_array_equal(model.predict(form(X[new])), expected.argmin(axis=1))


def test_linear_centroids_are_means_of_rows():
    X, y = classes()
    model = fitted(X, y, kernel="linear", n_neighbors=2)
    for column, book in zip(-model.decision_function(X + 0.1).T, model.codebooks_, strict=True):
        means = np.stack([X[book.rows[book.labels == c]].mean(axis=0) for c in range(book.size)])
        lengths = np.sort(np.linalg.norm(X[:, None] + 0.1 - means, axis=2), axis=1)
        np.testing.assert_allclose(column, lengths[:, :2].mean(axis=1), rtol=1e-7)


def test_the_code_book_of_a_class_is_kernel_k_means_of_its_rows():
    X, y = classes(n=300)
    model = fitted(X, y, random_state=3, storage="recompute")
    seeds = np.random.RandomState(3).randint(np.iinfo(np.int32).max, size=4)[1:]
    for book, seed in zip(model.codebooks_, seeds, strict=True):
        np.testing.assert_array_equal(np.sort(book.rows), np.flatnonzero(y == book.label))
        clusters = KernelKMeans(7, kernel=model.kernel_, method="exact", random_state=int(seed)).fit(X[book.rows])
        np.testing.assert_array_equal(book.labels, clusters.labels_)
        np.testing.assert_array_equal(book.medoid_indices, book.rows[clusters.medoid_indices_])
        np.testing.assert_array_equal(book.weights, np.bincount(clusters.labels_))
        assert (book.inertia, book.n_iter) == (clusters.inertia_, clusters.n_iter_)
        assert book.plan.storage == "recompute"
    assert model.gamma_ == KernelKMeans(2).fit(X).gamma_  # of all rows, not of each class
    with pytest.raises(dataclasses.FrozenInstanceError):
        book.label = 9


@both
def test_a_weight_is_a_repetition_and_order_does_not_matter(representatives):
    X, y = classes(n=150)
    weight, order = np.random.default_rng(4).integers(0, 4, 150), np.random.default_rng(5).permutation(150)
    size = {"centroid": 7, "medoid": 3}[representatives]  # of two rows, which is nearer to their mean is rounding
    settings = {"representatives": representatives, "n_neighbors": 2, "codebook_size": size}
    weighted = fitted(X, y, weight, **settings)
    shuffled = fitted(X[order], y[order], weight[order], **settings)
    repeated = fitted(np.repeat(X, weight, axis=0), np.repeat(y, weight), **settings)
    without = fitted(X[weight > 0], y[weight > 0], weight[weight > 0], **settings)
    for other in (shuffled, repeated, without):
        np.testing.assert_allclose(other.predict_proba(X), weighted.predict_proba(X), rtol=1e-6)
        np.testing.assert_array_equal(other.predict(X), weighted.predict(X))
    np.testing.assert_array_equal(shuffled.predict_proba(X), weighted.predict_proba(X))
    np.testing.assert_array_equal(order[shuffled.codebooks_[1].medoid_indices], weighted.codebooks_[1].medoid_indices)


def test_sparse_and_float32_rows_are_classified_as_dense_and_float64_ones():
    X, y = classes(n=300, dtype=np.float32)
    X = X.astype(np.float64)  # the same values in both: draws go by them
    model = fitted(X, y)
    for form in (sparse.csr_array, sparse.csr_matrix, np.float32, pd.DataFrame):
        other = fitted(form(X), y)
        np.testing.assert_array_equal(other.predict(form(X)), model.predict(X))
        np.testing.assert_array_equal(model.predict(form(X)), model.predict(X))
        np.testing.assert_allclose(other.predict_proba(form(X)), model.predict_proba(X), atol=1e-3)


@both
def test_same_bits_for_any_number_of_threads(representatives, monkeypatch):
    monkeypatch.setattr(parts, "_AT_ONCE", 100_000)
    X, y = classes(n=2400, dtype=np.float32)
    fits = [fitted(X, y, codebook_size=80, representatives=representatives, n_jobs=n_jobs) for n_jobs in (1, 2, 4)]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.decision_function(X), fits[0].decision_function(X))
        np.testing.assert_array_equal(model.predict_proba(X), fits[0].predict_proba(X))
        np.testing.assert_array_equal(model.score_neighbors(X, y, [1, 9]), fits[0].score_neighbors(X, y, [1, 9]))


def test_a_class_of_few_distinct_rows_is_its_rows():
    X, y = classes(n=60)
    few = np.repeat(X[:4], 3, axis=0)
    model = fitted(np.concatenate([few, X[4:]]), np.r_[np.full(12, 7), y[4:]], codebook_size=10)
    assert [book.size for book in model.codebooks_] == [10, 10, 10, 4]
    np.testing.assert_array_equal(model.codebooks_[3].weights, np.full(4, 3.0))
    assert model.codebooks_[3].inertia == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(-model.set_params(n_neighbors=1).decision_function(X[:4])[:, 3], 0, atol=1e-6)
    same = fitted(
        np.repeat(X, 2, axis=0) * np.tile([[1], [2]], (60, 1)), np.repeat(y, 2), kernel="cosine", codebook_size=200
    )
    assert max(book.size for book in same.codebooks_) <= 20  # equal images of distinct rows


def test_two_classes_one_class_and_names():
    X, y = classes(k=2)
    model = fitted(X, np.array(["no", "yes"])[y])
    decision = model.decision_function(X)
    assert decision.shape == (120,)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    alone = fitted(X, np.full(120, "all"))
    assert set(alone.predict(X)) == {"all"}
    np.testing.assert_array_equal(alone.predict_proba(X), np.ones((120, 1)))
    assert alone.decision_function(X).shape == (120, 1)


def test_ties_go_to_the_first_class():
    X, y = np.array([[0.0], [1.0], [2.0], [1.0]]), np.array([5, 4, 4, 3])
    assert list(fitted(X, y, kernel="linear", n_neighbors=1).predict([[1.0], [0.5]])) == [3, 3]


# ---- neighbours without a new fit -----------------------------------------------------------------------------------


def never(*_, **__):
    raise AssertionError("fitted again")


def test_neighbours_and_representatives_change_predictions_without_a_fit(monkeypatch):
    X, y = classes(n=300)
    model = fitted(X, y, n_neighbors=1)
    before = model.predict(X), model.predict_proba(X)
    monkeypatch.setattr(KernelKMeans, "fit", never)
    monkeypatch.setattr(CodebookClassifier, "fit", never)
    for change in ({"n_neighbors": 6}, {"representatives": "medoid"}):
        model.set_params(**change)
        after = model.predict(X), model.predict_proba(X)
        assert all((one != other).any() for one, other in zip(before, after, strict=True))
        before = after
    model.set_params(n_neighbors=1, representatives="centroid")
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict_proba(X), fitted(X, y, n_neighbors=1).predict_proba(X))


@both
def test_score_neighbors_is_a_loop_over_set_params(representatives):
    X, y = classes(n=240)
    weight, numbers = np.random.default_rng(0).uniform(0.1, 2, 240), [5, 1, 3, 2, 200]
    names = np.array(["a", "b", "c"])[y]
    model = fitted(X[:120], names[:120], representatives=representatives)
    for given in (None, weight):
        scores = model.score_neighbors(X, names, numbers, given)
        looped = [model.set_params(n_neighbors=n).score(X, names, given) for n in numbers]
        np.testing.assert_allclose(scores, looped, rtol=1e-12)
    assert len(np.unique(scores)) > 2
    assert model.score_neighbors(X, names, 3).shape == (1,)


def test_predictions_work_in_blocks(monkeypatch):
    X, y = classes(n=6000, dtype=np.float32)
    model = fitted(X, y, codebook_size=200, n_jobs=2)
    whole = model.predict(X)
    monkeypatch.setattr(parts, "_AT_ONCE", 1 << 17)
    assert peak_bytes(model.predict, X) < 5 << 20  # one array of all distances to one class: 9.6 MB
    np.testing.assert_array_equal(model.predict(X), whole)


# ---- probabilities --------------------------------------------------------------------------------------------------


def scaled(probabilities, factor):
    powers = probabilities**factor
    return powers / powers.sum(axis=1, keepdims=True)


@both
@pytest.mark.parametrize("codebook_size", [7, 512])
@pytest.mark.parametrize("n_neighbors", [1, 4])
def test_probabilities_are_calibrated(representatives, codebook_size, n_neighbors):
    X, y = classes(n=2000, apart=0.8, seed=1)
    settings = {"codebook_size": codebook_size, "n_neighbors": n_neighbors, "representatives": representatives}
    model = fitted(X[:800], y[:800], **settings)
    probabilities = model.predict_proba(X[800:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(X[800:]))
    loss = log_loss(y[800:], probabilities)
    best = min(log_loss(y[800:], scaled(probabilities, factor)) for factor in np.geomspace(0.1, 10, 41))
    assert loss < 0.9 * np.log(3)
    assert loss < 1.03 * best


@both
def test_a_row_is_left_out_as_if_it_were_removed(representatives):
    X, y = classes(n=60, k=2)
    X = np.concatenate([X, X[:6]])  # rows 0 to 5 twice: both copies are left out
    y, weight = np.r_[y, y[:6]], np.random.default_rng(0).uniform(0.5, 2, 66)
    model = fitted(X, y, weight, codebook_size=9, representatives=representatives, n_neighbors=99, gamma=0.3)
    K, out = reference.kernel("rbf", X, gamma=0.3), model._left_out
    rows = np.array([np.flatnonzero((x == X).all(axis=1) & (y == of))[0] for x, of in zip(out.X, out.of, strict=True)])
    assert len(set(rows)) == 60
    for here, (row, of, entry) in enumerate(zip(rows, out.of, out.entry, strict=True)):
        book = model.codebooks_[of]
        cluster = book.rows[book.labels == entry]
        assert row in cluster
        rest = cluster[(X[cluster] != X[row]).any(axis=1)]
        squared = model._models[of].distances(X[[row]], codebook.Threads(1))
        out.leave_out(getattr(out, f"{representatives}s"), slice(here, here + 1), int(of), squared)
        if representatives == "centroid" and len(rest):
            w = weight[rest] / weight[rest].sum()
            expected = K[row, row] - 2 * K[row, rest] @ w + w @ K[np.ix_(rest, rest)] @ w
        else:
            medoid = book.medoid_indices[entry]
            gone = representatives == "centroid" or (X[medoid] == X[row]).all()
            expected = np.inf if gone else 2 - 2 * K[row, medoid]
        assert squared[0, entry] == pytest.approx(expected, rel=1e-9)
        assert np.isfinite(np.delete(squared, entry)).all()


@pytest.mark.parametrize(
    ("distances", "of"),
    [
        ([[0.1, 9.0], [9.0, 0.1]], [0, 1]),  # nothing to confuse
        ([[9.0, 0.1], [0.1, 9.0]], [0, 1]),  # own classes far away
        ([[np.inf, 2.0], [3.0, np.inf]], [0, 1]),  # every class is gone without its row
        ([[1.0, 1.0], [1.0, 1.0]], [0, 1]),
        ([[0.0], [0.0]], [0, 0]),
        ([[np.inf], [np.inf]], [0, 0]),
        ([[1e-200, 1e-190], [1e-190, 1e-200]], [0, 1]),
    ],
)
def test_the_scale_is_positive_and_finite(distances, of):
    scale = parts.likeliest_scale(np.array(distances), np.array(of), np.array([1.0, 2.0]))
    assert 0 < scale < np.inf


def test_the_scale_does_not_depend_on_units():
    distances, of = np.random.default_rng(0).uniform(1, 2, (50, 3)), np.arange(50) % 3
    distances[np.arange(50), of] -= 0.3
    scale = parts.likeliest_scale(distances, of, np.ones(50))
    assert parts.likeliest_scale(1e6 * distances, of, np.ones(50)) == pytest.approx(scale / 1e6)
    losses = [log_loss(of, parts.softmax(distances, factor * scale)) for factor in (0.8, 1.0, 1.25)]
    assert losses[1] < min(losses[0], losses[2])


def test_classes_of_single_rows_have_probabilities():
    model = fitted(np.eye(3), [0, 1, 2])
    assert list(model.predict_proba(np.eye(3)).argmax(axis=1)) == [0, 1, 2]


# ---- kind -------------------------------------------------------------------------------------------------------


def test_a_callable_or_an_object_is_the_kernel_it_computes():
    X, y = classes(n=240)

    def kernel(A, B, width):
        return np.exp(-((A[:, None] - B) ** 2).sum(-1) / width)

    ours = fitted(X, y, gamma=0.25)
    theirs = fitted(X, y, kernel=kernel, kernel_params={"width": 4.0})
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-6)
    rbf = kernels.RBF(gamma=0.25)
    given = fitted(X, y, kernel=rbf)
    assert given.kernel_ is rbf
    assert (ours.gamma_, theirs.gamma_, given.gamma_) == (0.25, None, 0.25)
    np.testing.assert_array_equal(given.decision_function(X), ours.decision_function(X))


def test_data_frames_keep_their_names():
    X, y = classes()
    X = pd.DataFrame(X, columns=list("abcd"))
    model = fitted(X, pd.Series(y))
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "z"}))


@both
def test_fitted_models_pickle_and_parameters_clone(representatives):
    X, y = classes(dtype=np.float32)
    model = fitted(X, y, kernel="cosine", representatives=representatives)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_large_code_books_are_not_searched_for(monkeypatch):
    runs = []
    original = KernelKMeans.fit

    def fit(self, X, y=None, sample_weight=None):
        runs.append(self.n_init)
        return original(self, X, y, sample_weight)

    monkeypatch.setattr(KernelKMeans, "fit", fit)
    X, y = classes(n=300)
    for parameters in ({}, {"codebook_size": 70}, {"codebook_size": 70, "n_init": 2}):
        fitted(X, y, **parameters)
    assert runs == ["auto"] * 3 + [1] * 3 + [2] * 3


def test_verbose_says_what_happens(capsys):
    X, y = classes()
    fitted(X, y, verbose=1, n_init=1)
    said = capsys.readouterr().out
    assert "class 2: 7 representatives of 40 rows" in said
    assert said.count("objective") == 3


def test_a_kernel_that_says_nothing_is_warned_of_once():
    X, y = classes(n=90)
    far = {"kernel": "linear"}, X.astype(np.float32) + 1e4  # the rounding of one class is not spoken of besides
    for parameters, rows in (({"gamma": 1e6}, X), ({"gamma": 1e-9}, X), far):
        with pytest.warns(KernelScaleWarning, match="nearly") as said:
            CodebookClassifier(7, **parameters).fit(rows, y)
        assert len(said) == 1
        assert said[0].filename == __file__


def test_fits_that_do_not_converge_are_warned_of_with_their_classes():
    X, y = classes(n=600)
    with pytest.warns(ConvergenceWarning, match=r"Code books of 0, 1, 2: .* max_iter=1 ") as said:
        CodebookClassifier(20, init="random", max_iter=1, n_init=1, random_state=0).fit(X, y)
    assert len(said) == 1
    assert said[0].filename == __file__


def test_classes_of_any_size_raise_no_warning():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(9), [1, 1, 2, 3, 5, 8, 13, 80, 200])
    X = rng.normal(scale=0.01, size=(len(y), 3)) + y[:, None]
    for dtype in (np.float32, np.float64):
        for kernel in ("rbf", "polynomial", "linear"):
            model = CodebookClassifier(12, kernel=kernel, random_state=0).fit(X.astype(dtype), y)
            assert model.score(X, y) == 1.0
            assert np.isfinite(model.predict_proba(X)).all()


# ---- every parameter is read ------------------------------------------------------------------------------------


def outcome(**parameters):
    X, y = classes(n=150, seed=3)
    model = fitted(X, y, **{"gamma": 1.0, "n_init": 1} | parameters)
    plans = [book.plan.storage for book in model.codebooks_]
    return (*model.predict_proba(X + 0.1).ravel(), *plans, model.n_iter_)


def scaled_product(A, B, scale=1.0):
    return scale * A @ B.T


READ = {
    "codebook_size": ({"codebook_size": 4}, {"codebook_size": 5}),
    "n_neighbors": ({"n_neighbors": 1}, {"n_neighbors": 2}),
    "representatives": ({"representatives": "centroid"}, {"representatives": "medoid"}),
    "kernel": ({"kernel": "rbf"}, {"kernel": "laplacian"}),
    "gamma": ({"gamma": 0.01}, {"gamma": 1.0}),
    "degree": ({"kernel": "polynomial", "degree": 1}, {"kernel": "polynomial", "degree": 4}),
    "coef0": ({"kernel": "polynomial", "coef0": 0}, {"kernel": "polynomial", "coef0": 9}),
    "kernel_params": (
        {"kernel": scaled_product, "kernel_params": {"scale": 1.0}},
        {"kernel": scaled_product, "kernel_params": {"scale": 2.0}},
    ),
    "storage": ({"storage": "memory"}, {"storage": "recompute"}),
    "init": ({"init": "random"}, {"init": "k-means++"}),
    "n_init": ({"n_init": 1}, {"n_init": 20}),
    "max_iter": ({"init": "random", "max_iter": 1}, {"init": "random", "max_iter": 50}),
    "tol": ({"init": "random", "tol": 0.5}, {"init": "random", "tol": 0.0}),
    "random_state": ({"random_state": 0}, {"random_state": 1}),
}


@pytest.mark.parametrize("name", READ)
def test_parameter_changes_the_outcome(name):
    first, second = READ[name]
    assert outcome(**first) == outcome(**first)
    assert outcome(**first) != outcome(**second)


def test_every_parameter_is_proven_to_be_read():
    elsewhere = {
        "memory_limit": test_the_memory_limit_is_kept_to_or_refused,
        "n_jobs": test_n_jobs_threads_are_started,
        "verbose": test_verbose_says_what_happens,
    }
    assert set(READ) | set(elsewhere) == set(CodebookClassifier().get_params())


def test_n_jobs_threads_are_started(monkeypatch):
    from mercer.engine import threads

    started = []
    original = threads.ThreadPoolExecutor

    def counting(count, **options):
        started.append(count)
        return original(count, **options)

    X, y = classes(n=1200)
    model = fitted(X, y, n_jobs=3)
    monkeypatch.setattr(threads, "ThreadPoolExecutor", counting)
    model.predict(X)
    assert started == [3]


def test_the_memory_limit_is_kept_to_or_refused():
    X, y = classes(n=6000, d=20)
    model = CodebookClassifier(20, gamma=0.05, memory_limit="60MB", n_jobs=1, random_state=0)
    assert peak_bytes(model.fit, X, y) <= 60e6
    with pytest.raises(
        MemoryError, match=r"Code books keep the training rows, .*: 1.3 MB, and memory_limit allows 1.2 M"
    ):
        model.set_params(memory_limit="1.2MB").fit(X, y)
    with pytest.raises(MemoryError, match=r"Code book of class 0, beside the rows .* does not fit in the 710 kB"):
        model.set_params(memory_limit="2MB").fit(X, y)


# ---- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"codebook_size": 0}, ValueError, "codebook_size must be at least 1, got 0"),
        ({"codebook_size": 2.5}, TypeError, "codebook_size must be an integer"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1"),
        ({"representatives": "mean"}, ValueError, "representatives='mean' is not known; choose from 'centroid', 'me"),
        ({"kernel": "precomputed"}, ValueError, "gives no k.* of new rows, which distances to code books need"),
        ({"kernel": kernels.Precomputed()}, ValueError, "gives no k"),
        ({"kernel": "rbff"}, ValueError, "kernel='rbff' is not known; choose from"),
        ({"kernel": kernels.RBF(1.0), "gamma": 2.0}, ValueError, "owns its parameters"),
        ({"gamma": -1.0}, ValueError, "gamma must be positive and finite, got -1.0"),
        ({"storage": "tape"}, ValueError, "storage='tape' is not known; choose from"),
        (
            {"init": np.zeros(120, int)},
            TypeError,
            "init must be one of .*, since each class",
        ),
        ({"init": "k-means"}, ValueError, "init='k-means' is not known"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"tol": -1e-3}, ValueError, "tol must be finite and at least 0"),
        ({"memory_limit": "lots"}, ValueError, "memory_limit='lots' is not a size"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0 has no meaning"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, error, message):
    model = CodebookClassifier(**parameters)
    with pytest.raises(error, match=message):
        model.fit(*classes())
    with pytest.raises(NotFittedError):
        model.predict(classes()[0])


def test_parameters_are_checked_again_when_predicting():
    X, y = classes()
    model = fitted(X, y)
    for change, message in (
        ({"n_neighbors": 0}, "n_neighbors must"),
        ({"representatives": "x"}, "representatives='x'"),
    ):
        with pytest.raises(ValueError, match=message):
            clone_of_fit(model).set_params(**change).predict(X)
    with pytest.raises(ValueError, match="n_neighbors must be at least 1, got 0"):
        model.score_neighbors(X, y, [1, 0])
    with pytest.raises(TypeError, match="n_neighbors must be an integer"):
        model.score_neighbors(X, y, [1, 2.5])
    with pytest.raises(ValueError, match="n_neighbors is empty"):
        model.score_neighbors(X, y, [])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score_neighbors(X, y[:9], [1])


def clone_of_fit(model):
    return pickle.loads(pickle.dumps(model))


def test_bad_data():
    X, y = classes()
    with pytest.raises(ValueError, match="Unknown label type"):
        CodebookClassifier().fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(7,\), expected \(120,\)"):
        CodebookClassifier().fit(X, y, np.ones(7))
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        CodebookClassifier().fit(X, y, -np.ones(120))
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        CodebookClassifier().fit(X, y)


def test_a_class_without_weight_is_not_there():
    X, y = classes()
    model = fitted(X, y, (y != 1).astype(float))
    assert list(model.classes_) == [0, 2]
    assert set(model.predict(X)) == {0, 2}


def test_each_class_has_tiles_in_a_folder_of_its_own(tmp_path):
    X, y = classes(n=300)
    model = fitted(X, y, codebook_size=5, storage=Disk(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"class-{c}" for c in range(len(model.classes_))]
    np.testing.assert_array_equal(model.predict(X), fitted(X, y, codebook_size=5).predict(X))
    np.testing.assert_array_equal(model.predict(X), fitted(X, y, codebook_size=5, storage=Disk(tmp_path)).predict(X))
