"""Exchanges of centres, against all exchanges tried one by one."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer.engine.threads import Threads
from mercer.solvers import EmbeddedSpace, hard_c_means, k_means_plus_plus
from mercer.solvers.seeding import draw
from mercer.solvers.swaps import best_exchange, search_swaps

SERIAL = Threads(1)


def grid(side=5, each=40, seed=0):
    rng = np.random.default_rng(seed)
    corners = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    return np.concatenate([rng.normal(corner, 0.08, size=(each, 2)) for corner in corners])


def converged(space, seed):
    order = np.arange(space.n)
    return hard_c_means(space, k_means_plus_plus(space, order, np.random.default_rng(seed))[0])


@pytest.mark.parametrize("seed", range(10))
def test_the_exchange_is_the_best_of_all(seed):
    X = grid(3, 20, seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(X))
    space = EmbeddedSpace(X, weight, 6, SERIAL)
    partition, order = converged(space, seed), np.arange(len(X))
    labels = best_exchange(space, partition, order, np.random.default_rng(seed))
    means = partition.centers.means
    mass = weight * space.own_distances(partition.centers, partition.labels)
    candidates = draw(mass, order, np.random.default_rng(seed).random(8))

    def cost(centers):
        return weight @ cdist(X, centers, "sqeuclidean").min(axis=1)

    tried = {(q, c): cost(np.vstack([np.delete(means, c, axis=0), X[q]])) for q in candidates for c in range(6)}
    candidate, leaving = min(tried, key=tried.get)
    centers = means.copy()
    centers[leaving] = X[candidate]
    np.testing.assert_array_equal(labels, cdist(X, centers, "sqeuclidean").argmin(axis=1))


def test_swaps_reach_the_optimum_where_the_iteration_is_stuck():
    X = grid()
    space, order = EmbeddedSpace(X, np.ones(len(X)), 25, SERIAL), np.arange(len(X))
    optimum = hard_c_means(space, np.repeat(np.arange(25), 40).astype(np.int32)).objective
    labels = np.random.default_rng(0).integers(25, size=(8, len(X)), dtype=np.int32)
    starts = [hard_c_means(space, first) for first in labels]
    assert np.mean([start.objective for start in starts]) > 1.5 * optimum
    for seed, start in enumerate(starts):
        found = search_swaps(space, start, order, np.random.default_rng(seed), patience=4, rounds=75, tol=1e-4)
        assert found.objective == pytest.approx(optimum, rel=1e-6)


def test_points_on_their_centres_and_a_single_cluster_are_left_alone():
    X = np.repeat(np.eye(3), 5, axis=0)
    for k in (1, 3):
        space = EmbeddedSpace(X, np.ones(15), k, SERIAL)
        start = converged(space, 0)
        found = search_swaps(space, start, np.arange(15), np.random.default_rng(0), patience=2, rounds=5, tol=1e-4)
        assert found is start
