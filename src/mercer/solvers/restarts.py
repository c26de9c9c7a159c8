"""Runs from several starts, the best kept, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import blocks
from mercer.solvers.cmeans import Iteration, Partition, hard_c_means, rounded
from mercer.solvers.seeding import k_means_plus_plus, random_labels, random_points
from mercer.solvers.space import Centers, Labels, Space

Reporter = Callable[[int, int, Iteration], None]
_BLOCK = 1 << 16


def starts(space: Space[Centers], init: str, keys: NDArray[np.uint64], seeds: NDArray[np.integer]) -> Iterator[Labels]:
    """First labels of a run for each seed: random, around random points, or by k-means++."""
    order = np.argsort(keys, kind="stable")
    for seed in seeds:
        if init == "random":
            yield random_labels(keys, space.n_clusters, int(seed))
        elif init == "points":
            points = random_points(keys, space.weight, space.n_clusters, np.random.default_rng(int(seed)))
            yield space.distances_to(points).argmin(axis=0).astype(np.int32)
        else:
            yield k_means_plus_plus(space, order, np.random.default_rng(int(seed)))[0]


def best_partition(
    space: Space[Centers], first: Iterable[Labels], *, max_iter: int, tol: float, report: Reporter
) -> Partition[Centers]:
    """Run from every start and keep the lowest objective."""
    best: Partition[Centers] | None = None
    for run, labels in enumerate(first):
        found = hard_c_means(
            space,
            labels,
            max_iter=max_iter,
            tol=tol,
            on_iteration=lambda number, record, run=run: report(run, number, record),  # type: ignore[misc]
        )
        if best is None or rounded(found.objective) < rounded(best.objective):
            best = found
    assert best is not None
    return best


def medoids(space: Space[Any], labels: Labels, distances: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the point nearest to each centre among the cluster's own (the papers' pseudo-centre), shape (k,).

    An empty cluster has -1.
    """
    k = space.n_clusters

    def of_block(part: slice) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
        """Least distance to each centre in a block, and the first point that has it."""
        least, where = np.full(k, np.inf), np.full(k, -1, dtype=np.intp)
        heavy = np.flatnonzero(space.weight[part] > 0)
        own, away = labels[part][heavy].astype(np.min_scalar_type(k)), distances[part][heavy]
        order = np.argsort(own, kind="stable")  # in time n for few clusters
        owners, starts = np.unique(own[order], return_index=True)
        if len(owners):
            least[owners] = np.minimum.reduceat(away[order], starts)
            nearest = np.flatnonzero(away == least[own])[::-1]
            where[own[nearest]] = heavy[nearest] + part.start
        return least, where

    found = space.pool.map(of_block, blocks(len(labels), _BLOCK))
    best = np.argmin([least for least, _ in found], axis=0)
    chosen: NDArray[np.intp] = np.array([where for _, where in found])[best, np.arange(k)]
    return chosen
