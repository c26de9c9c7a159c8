"""The feature space itself, reached through a kernel matrix: centres are implicit.

``|phi(x_i) - v_c|^2 = K_ii - 2 F_ci / w_c + G_c / w_c^2`` with ``F_ci = sum_{j in c} w_j K_ij`` and
``G_c = sum_{i in c} w_i F_ci``. F is kept and only updated for the points that moved, so an iteration late in a run
costs (moved x n) kernel values instead of n^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.threads import Threads, blocks
from mercer.gram import Gram, Moves
from mercer.solvers.objective import partition_objective, total_weights
from mercer.solvers.space import Assignment, Labels

_PARALLEL_FROM = 1 << 18  # entries of F: below, waking a thread costs more than the work
_STRIP = 8192


@dataclass(frozen=True)
class ImplicitCenters:
    """Centres as sums of kernel values: F (k, n), weights (k,) and squared norms of the sums (k,)."""

    sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    squared_sums: NDArray[np.float64]

    def affine(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scale and offset (k,) with distance = k(x, x) - 2 F scale + offset; empty clusters are infinitely far."""
        filled = self.totals > 0
        scale = np.divide(1.0, self.totals, out=np.zeros_like(self.totals), where=filled)
        return scale, np.where(filled, self.squared_sums * scale * scale, np.inf)


class GramSpace:
    """Space of the exact methods.

    Parameters
    ----------
    gram : Gram
    weight : array of shape (n,)
    n_clusters : int
    pool : Threads
    """

    def __init__(self, gram: Gram, weight: NDArray[np.float64], n_clusters: int, pool: Threads) -> None:
        self.gram = gram
        self.n = gram.n
        self.weight = weight
        self.n_clusters = n_clusters
        self.pool = pool
        self.keeps_best = True
        self.held = np.zeros(n_clusters, dtype=bool)
        self.constant = float(weight @ gram.diagonal)
        self.resolution = 32 * float(np.finfo(gram.dtype).eps) * float(np.abs(gram.diagonal).max(initial=0.0))

    def distances_to(self, indices: NDArray[np.intp]) -> NDArray[np.floating]:
        """Squared distances to some of the points, shape (len(indices), n)."""
        diagonal = self.gram.diagonal
        distances = diagonal - 2.0 * self.gram.columns(indices).T + diagonal[indices, None]
        return np.maximum(distances, 0.0, out=distances)

    def centers(self, labels: Labels) -> ImplicitCenters:
        """Sum the whole kernel matrix by cluster: one pass over the tiles."""
        sums = np.zeros((self.n_clusters, self.n))
        self.gram.add(sums, Moves.between(None, labels, self.weight), self.pool)
        return self._finish(sums, labels)

    def recentre(
        self, centers: ImplicitCenters, old: Labels, found: Assignment[ImplicitCenters], refilled: bool
    ) -> ImplicitCenters:
        """Update the sums in place with the points that moved, or start again if most did."""
        moves = Moves.between(old, found.labels, self.weight)
        if 2 * len(moves) > self.n:
            centers.sums[...] = 0.0
            moves = Moves.between(None, found.labels, self.weight)
        self.gram.add(centers.sums, moves, self.pool)
        return self._finish(centers.sums, found.labels)

    def _finish(self, sums: NDArray[np.float64], labels: Labels) -> ImplicitCenters:
        own = self.weight * sums[labels, np.arange(self.n)]
        totals = total_weights(labels, self.weight, self.n_clusters)
        return ImplicitCenters(sums, totals, total_weights(labels, own, self.n_clusters))

    def assign(self, centers: ImplicitCenters, labels: Labels) -> Assignment[ImplicitCenters]:
        """Nearest centre from the sums; ties go to the lower cluster."""
        scale, offset = centers.affine()
        new = labels.copy()
        strips = blocks(self.n, _STRIP if centers.sums.size >= _PARALLEL_FROM else self.n)
        diagonal = self.gram.diagonal
        self.pool.map(
            lambda s: _core.gram_assign(centers.sums[:, s], scale, offset, diagonal[s], new[s], None),
            strips,
        )
        return Assignment(new)

    def objective(self, centers: ImplicitCenters) -> float:
        """Kernel objective of the partition."""
        return partition_objective(self.constant, centers.squared_sums, centers.totals)

    def own_distances(self, centers: ImplicitCenters, labels: Labels) -> NDArray[np.float64]:
        """Squared distance of every point to the centre of its own cluster, shape (n,)."""
        scale, offset = centers.affine()
        own = centers.sums[labels, np.arange(self.n)]
        return np.asarray(self.gram.diagonal - 2 * own * scale[labels] + offset[labels])
