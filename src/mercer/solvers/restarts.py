"""Runs from several starts, the best kept, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.checkpoint import Checkpoint
from mercer.engine.threads import blocks
from mercer.solvers.cmeans import Iteration, Partition, Unfinished, hard_c_means, rounded
from mercer.solvers.seeding import k_means_plus_plus, random_labels, random_points
from mercer.solvers.space import Centers, Labels, Space

Reporter = Callable[[int, int, Iteration], object]
Start = Callable[[], Labels]
_BLOCK = 1 << 16


def starts(space: Space[Centers], init: str, keys: NDArray[np.uint64], seeds: NDArray[np.integer]) -> list[Start]:
    """Ways to the first labels of a run, one for each seed: random, around random points, or by k-means++."""
    order = np.argsort(keys, kind="stable")

    def start(seed: int) -> Labels:
        if init == "random":
            return random_labels(keys, space.n_clusters, seed)
        if init == "points":
            points = random_points(keys, space.weight, space.n_clusters, np.random.default_rng(seed))
            return np.asarray(space.distances_to(points).argmin(axis=0), dtype=np.int32)
        return k_means_plus_plus(space, order, np.random.default_rng(seed))[0]

    return [partial(start, int(seed)) for seed in seeds]


def best_partition(
    space: Space[Centers],
    first: Sequence[Start],
    *,
    max_iter: int,
    tol: float,
    report: Reporter,
    checkpoint: Checkpoint | None = None,
) -> Partition[Centers]:
    """Run from every start and keep the lowest objective; go on where a checkpoint left off."""
    checkpoint = checkpoint or Checkpoint()
    state = checkpoint.load((Partition, Unfinished, Iteration, *space.kept)) or {
        "run": 0,
        "best": None,
        "current": None,
    }
    best: Partition[Centers] | None = state["best"]

    def keep(unfinished: Unfinished[Centers] | None, run: int) -> None:
        if checkpoint.due:
            checkpoint.save({"run": run, "best": best, "current": unfinished})

    for run in range(state["run"], len(first)):
        current = state["current"] if run == state["run"] else None
        found = hard_c_means(
            space,
            first[run]() if current is None else current,
            max_iter=max_iter,
            tol=tol,
            on_iteration=partial(report, run),
            keep=partial(keep, run=run),
        )
        if best is None or rounded(found.objective) < rounded(best.objective):
            best = found
        keep(None, run + 1)
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
