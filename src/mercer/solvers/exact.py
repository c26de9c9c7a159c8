"""Exact kernel k-means: restarts in the feature space, the best kept, and a model that predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.threads import Threads
from mercer.gram import Moves, sums_across, sums_of_matrix
from mercer.kernels import Kernel, KernelRows
from mercer.solvers.cmeans import Iteration, Partition, hard_c_means
from mercer.solvers.gram_space import GramSpace, ImplicitCenters
from mercer.solvers.seeding import k_means_plus_plus, random_labels
from mercer.solvers.space import Labels
from mercer.sources import Matrix

Reporter = Callable[[int, int, Iteration], None]


def starts(
    space: GramSpace, init: str | Labels, n_init: int, keys: NDArray[np.uint64], seeds: NDArray[np.integer]
) -> Iterator[Labels]:
    """First labels of each run: as given, random, or by k-means++."""
    if not isinstance(init, str):
        yield init
        return
    order = np.argsort(keys, kind="stable")
    for seed in seeds[:n_init]:
        if init == "random":
            yield random_labels(keys, space.n_clusters, int(seed))
        else:
            yield k_means_plus_plus(space, order, np.random.default_rng(int(seed)))[0]


def best_partition(
    space: GramSpace, first: Iterator[Labels], *, max_iter: int, tol: float, report: Reporter
) -> Partition[ImplicitCenters]:
    """Run from every start and keep the lowest objective."""
    best: Partition[ImplicitCenters] | None = None
    for run, labels in enumerate(first):
        found = hard_c_means(
            space,
            labels,
            max_iter=max_iter,
            tol=tol,
            on_iteration=lambda number, record, run=run: report(run, number, record),  # type: ignore[misc]
        )
        if best is None or found.objective < best.objective:
            best = found
    assert best is not None
    return best


def medoids(space: GramSpace, partition: Partition[ImplicitCenters]) -> NDArray[np.intp]:
    """Return the point nearest to each centre among the cluster's own (the papers' pseudo-centre), shape (k,).

    An empty cluster has -1.
    """
    distances = np.where(space.weight > 0, space.own_distances(partition.centers, partition.labels), np.inf)
    order = np.lexsort((distances, partition.labels))
    owners, first = np.unique(partition.labels[order], return_index=True)
    out = np.full(space.n_clusters, -1, dtype=np.intp)
    out[owners] = order[first]
    out[partition.centers.totals <= 0] = -1
    return out


@dataclass(frozen=True)
class ImplicitModel:
    """Implicit centres that can be compared with new points.

    Attributes
    ----------
    kernel : Kernel or None
        None if kernel matrices are given.
    rows : KernelRows or None
        The training points.
    members : Moves
        Which training points make up which centre, with their weights.
    scale, offset : array of shape (k,)
        distance = k(x, x) - 2 scale F + offset.
    resolution : float
        Squared distances below it are rounding, and zero.
    """

    kernel: Kernel | None
    rows: KernelRows | None
    members: Moves
    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    resolution: float = 0.0

    def prepare(self, X: Matrix) -> KernelRows:
        """Prepare new rows as the training rows were (a matrix of kernel values is left as it is)."""
        if self.kernel is None or self.rows is None:
            return KernelRows(X)
        return self.kernel.rows(X.astype(self.rows.dtype, copy=False), like=self.rows)

    def distances(self, new: KernelRows, pool: Threads) -> NDArray[np.float64]:
        """Squared distances of new rows to the centres, shape (m, k); infinite for an empty cluster."""
        diagonal, sums = self._sums(new, pool)
        squared = diagonal[:, None] - 2 * sums.T * self.scale + self.offset
        squared[squared <= self.resolution] = 0.0
        return squared

    def nearest(self, new: KernelRows, pool: Threads) -> tuple[Labels, NDArray[np.float64]]:
        """Nearest centre of new rows and the squared distance to it, both of shape (m,).

        With given kernel values the new points' own k(x, x) are unknown, and so are the distances.
        """
        diagonal, sums = self._sums(new, pool)
        labels, distances = np.zeros(new.n, dtype=np.int32), np.empty(new.n)
        _core.gram_assign(sums, self.scale, self.offset, diagonal, labels, distances)
        return labels, distances

    def _sums(self, new: KernelRows, pool: Threads) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        k = len(self.scale)
        if self.kernel is None or self.rows is None:
            return np.zeros(new.n), sums_of_matrix(new.X, self.members, k, pool)
        return self.kernel.diagonal(new), sums_across(self.kernel, self.rows, self.members, new, k, pool)
