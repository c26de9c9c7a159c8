"""The loop, seeding and the two spaces."""

import itertools

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import kernels
from mercer.engine.threads import Threads
from mercer.gram import MemoryGram, PrecomputedGram
from mercer.solvers import EmbeddedSpace, GramSpace, hard_c_means, k_means_plus_plus, random_labels
from mercer.sources import content_hash


def gram_space(X, kernel, k, weight=None, n_jobs=1):
    pool = Threads(n_jobs)
    weight = np.ones(len(X)) if weight is None else weight
    return GramSpace(MemoryGram(kernel, kernel.rows(X), pool), weight, k, pool)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_loop_is_the_reference_from_the_same_start(data):
    n, k = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 5))
    seed = data.draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(n, 3)), rng.integers(1, 4, n).astype(float)
    labels = rng.permutation(np.arange(n) % k).astype(np.int32)
    K = reference.kernel("rbf", X, X, gamma=0.4)
    expected, history = reference.kernel_kmeans(K, labels, k, weight)
    if len(np.unique(expected)) == min(n, k):  # the reference does not refill empty clusters
        found = hard_c_means(gram_space(X, kernels.RBF(0.4), k, weight), labels)
        if all(np.bincount(expected, minlength=k)) and found.history[-1].moved == 0:
            np.testing.assert_allclose(found.objective, reference.kernel_objective(K, found.labels, weight), atol=1e-9)
            assert found.objective <= history[-1] * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("n", [40, 600, 2100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_and_objectives_of_every_iteration_are_the_reference(n, dtype):
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(c, 1.0, size=(n // 4, 4)) for c in (0, 2, 4, 6)]).astype(dtype)
    labels = rng.integers(4, size=n).astype(np.int32)
    weight = rng.uniform(0.5, 2.0, n)
    K = reference.kernel("rbf", X.astype(float), X.astype(float), gamma=0.1)
    expected, history = reference.kernel_kmeans(K, labels, 4, weight)
    found = hard_c_means(gram_space(X, kernels.RBF(0.1), 4, weight, n_jobs=2), labels)
    np.testing.assert_array_equal(found.labels, expected)
    assert found.converged
    assert found.history[-1].moved == 0
    np.testing.assert_allclose([i.objective for i in found.history[:-1]], history[1:], rtol=1e-6)


def test_the_embedded_space_is_the_gram_space_of_the_linear_kernel():
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(c, 1.0, size=(150, 6)) for c in (0, 3, 6)])
    weight, labels = rng.uniform(0.1, 3, 450), rng.integers(3, size=450).astype(np.int32)
    with Threads(2) as pool:
        embedded = EmbeddedSpace(X, weight, 3, pool)
        a, b = hard_c_means(embedded, labels), hard_c_means(gram_space(X, kernels.Linear(), 3, weight), labels)
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_allclose([i.objective for i in a.history], [i.objective for i in b.history], rtol=1e-10)
        some = np.array([0, 7])
        np.testing.assert_allclose(
            embedded.distances_to(some),
            gram_space(X, kernels.Linear(), 3).distances_to(some),
            rtol=1e-9,
            atol=1e-9,
        )


def test_a_residual_raises_the_objective_by_its_sum():
    X, labels = np.random.default_rng(5).normal(size=(50, 2)), (np.arange(50) % 3).astype(np.int32)
    residual = np.random.default_rng(6).random(50)
    with Threads(1) as pool:
        plain = EmbeddedSpace(X, np.ones(50), 3, pool)
        more = EmbeddedSpace(X, np.ones(50), 3, pool, residual=residual)
    gap = more.objective(more.centers(labels)) - plain.objective(plain.centers(labels))
    assert gap == pytest.approx(residual.sum())
    np.testing.assert_array_equal(
        more.assign(more.centers(labels), labels).labels, plain.assign(plain.centers(labels), labels).labels
    )


def test_empty_clusters_are_refilled_with_the_worst_placed_points():
    X = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [50.0]])
    found = hard_c_means(gram_space(X, kernels.Linear(), 3), np.zeros(6, dtype=np.int32))
    assert sorted(np.bincount(found.labels, minlength=3)) == [1, 2, 3]


def test_copies_move_together_when_a_cluster_is_refilled():
    X = np.array([[0.0], [0.1], [9.0]])
    weight = np.array([1.0, 1.0, 3.0])
    once = hard_c_means(gram_space(X, kernels.RBF(0.5), 2, weight), np.zeros(3, dtype=np.int32))
    copied = hard_c_means(gram_space(X[[0, 1, 2, 2, 2]], kernels.RBF(0.5), 2), np.zeros(5, dtype=np.int32))
    np.testing.assert_array_equal(copied.labels, once.labels[[0, 1, 2, 2, 2]])
    assert copied.objective == pytest.approx(once.objective)


def test_an_indefinite_kernel_returns_the_best_partition_seen():
    rng = np.random.default_rng(0)
    worse = 0
    for _ in range(30):
        A = rng.normal(size=(40, 40))
        K = A + A.T
        with Threads(1) as pool:
            space = GramSpace(PrecomputedGram(K, pool), np.ones(40), 3, pool)
        found = hard_c_means(space, rng.integers(3, size=40).astype(np.int32), max_iter=30)
        seen = [i.objective for i in found.history]
        worse += seen[-1] > min(seen)
        assert found.objective <= min(seen) + 1e-9
        assert found.objective == pytest.approx(reference.kernel_objective(K, found.labels), rel=1e-9)
    assert worse  # some runs do end above their best


def test_tol_stops_early_and_max_iter_caps():
    X = np.random.default_rng(7).normal(size=(400, 4))
    labels = np.random.default_rng(8).integers(5, size=400).astype(np.int32)
    space = gram_space(X, kernels.RBF(0.2), 5)
    full, early, capped = (hard_c_means(space, labels, tol=t, max_iter=m) for t, m in ((0, 300), (0.01, 300), (0, 2)))
    assert len(capped.history) == 2 < len(early.history) < len(full.history)
    assert (full.converged, early.converged, capped.converged) == (True, True, False)
    objectives = [i.objective for i in full.history]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(objectives))


# ---- seeding ----------------------------------------------------------------------------------------------------


def test_random_labels_are_uniform_differ_by_seed_and_follow_content():
    keys = content_hash(np.random.default_rng(0).normal(size=(30_000, 2)))
    a, b = random_labels(keys, 5, seed=1), random_labels(keys, 5, seed=2)
    for labels in (a, b):
        assert np.abs(np.bincount(labels) / 30_000 - 0.2).max() < 0.01
    assert np.mean(a == b) == pytest.approx(0.2, abs=0.02)
    order = np.random.default_rng(1).permutation(30_000)
    np.testing.assert_array_equal(random_labels(keys[order], 5, seed=1), a[order])


def seeded(X, k, seed, weight=None):
    space = gram_space(X, kernels.RBF(0.5), k, weight)
    order = np.argsort(content_hash(X), kind="stable")
    return k_means_plus_plus(space, order, np.random.default_rng(seed))


def test_seeding_draws_in_proportion_to_weight_times_distance():
    X = np.array([[0.0], [3.0], [-3.0]])
    weight = np.array([0.0, 1.0, 3.0])
    first = [int(seeded(X, 1, seed, weight)[1][0]) for seed in range(2000)]
    counts = np.bincount(first, minlength=3)
    assert counts[0] == 0
    assert counts[2] / 2000 == pytest.approx(0.75, abs=0.03)


def test_seeding_finds_far_groups_and_labels_by_the_nearest():
    rng = np.random.default_rng(9)
    X = np.concatenate([rng.normal(c, 0.05, size=(30, 2)) for c in (0, 5, 10, 15)])
    for seed in range(20):
        labels, chosen = seeded(X, 4, seed)
        assert sorted(chosen // 30) == [0, 1, 2, 3]
        D = ((X[:, None] - X[chosen]) ** 2).sum(-1)
        np.testing.assert_array_equal(labels, D.argmin(1))


def test_seeding_does_not_depend_on_order_and_a_weight_is_a_repetition():
    rng = np.random.default_rng(10)
    X, weight = rng.normal(size=(80, 3)), rng.integers(0, 4, 80)
    order, copies = rng.permutation(80), np.repeat(np.arange(80), weight)
    for seed in range(10):
        labels, chosen = seeded(X, 6, seed, weight.astype(float))
        shuffled = seeded(X[order], 6, seed, weight[order].astype(float))
        repeated = seeded(X[copies], 6, seed)
        np.testing.assert_array_equal(X[order][shuffled[1]], X[chosen])
        np.testing.assert_array_equal(X[copies][repeated[1]], X[chosen])
        np.testing.assert_array_equal(repeated[0], labels[copies])


def test_seeding_stops_at_the_number_of_distinct_points():
    X = np.repeat(np.array([[0.0], [1.0]], dtype=np.float32), 40, axis=0) + np.float32(1e3)
    labels, chosen = seeded(X, 5, 0)
    assert len(chosen) == 2
    assert len(np.unique(labels)) == 2
