"""The feature space itself, reached through a kernel matrix: centres are implicit.

``|phi(x_i) - v_c|^2 = K_ii - 2 F_ci / w_c + G_c / w_c^2`` with ``F_ci = sum_{j in c} w_j K_ij`` and
``G_c = sum_{i in c} w_i F_ci``. F is kept and only updated for the points that moved, so an iteration late in a run
costs (moved x n) kernel values instead of n^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.threads import Threads, blocks
from mercer.gram import Gram, Moves
from mercer.solvers.objective import partition_objective, total_weights
from mercer.solvers.rules import Rule
from mercer.solvers.soft import SoftStep
from mercer.solvers.space import Assignment, Labels

_PARALLEL_FROM = 1 << 18  # entries of F: below, waking a thread costs more than the work
_STRIP = 8192


@dataclass(frozen=True)
class ImplicitCenters:
    """Centres as sums of kernel values: F (k, n), weights (k,) and squared norms of the sums (k,).

    Soft centres also have what each point gives to each centre, shape (k, n).
    """

    sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    squared_sums: NDArray[np.float64]
    given: NDArray[np.float64] | None = None

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

    kept: tuple[type, ...] = (ImplicitCenters,)

    def __init__(self, gram: Gram, weight: NDArray[np.float64], n_clusters: int, pool: Threads) -> None:
        self.gram = gram
        self.n = gram.n
        self.weight = weight
        self.n_clusters = n_clusters
        self.pool = pool
        self.keeps_best = True
        self.held = np.zeros(n_clusters, dtype=bool)
        self.constant = float(weight @ gram.diagonal)
        self.resolution = 32 * gram.eps * float(np.abs(gram.diagonal).max(initial=0.0))

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

    # ---- soft rules ---------------------------------------------------------------------------------------------

    def weighted_centers(self, given: NDArray[np.float64]) -> ImplicitCenters:
        """Means weighted by what each point gives, shape (k, n): one product with the kernel matrix."""
        sums = self.gram.multiply(given, self.pool)
        return ImplicitCenters(sums, given.sum(axis=1), np.einsum("ij,ij->i", sums, given), given)

    def centers_at(self, indices: NDArray[np.intp]) -> ImplicitCenters:
        """Centres at some of the points."""
        given = np.zeros((len(indices), self.n))
        given[np.arange(len(indices)), indices] = 1.0
        sums = self.gram.columns(indices).T.astype(np.float64)
        return ImplicitCenters(sums, np.ones(len(indices)), self.gram.diagonal[indices], given)

    def soft_step(
        self,
        centers: ImplicitCenters,
        rule: Rule,
        before: tuple[ImplicitCenters, SoftStep[ImplicitCenters]] | None,
        *,
        keep: bool,
        final: bool = False,
    ) -> SoftStep[ImplicitCenters]:
        """Memberships from the sums, which are as large as they are: they are kept in any case."""
        scale, offset = centers.affine()
        labels, own, U = np.empty(self.n, np.int32), np.empty(self.n), np.empty((self.n, self.n_clusters))

        def run(strip: slice) -> tuple[Any, ...]:
            squared = self.gram.diagonal[strip, None] - 2 * centers.sums[:, strip].T * scale + offset
            squared[squared <= self.resolution] = 0.0
            u, w = rule.memberships(squared), self.weight[strip]
            U[strip], labels[strip] = u, u.argmax(axis=1)
            own[strip] = squared[np.arange(len(u)), labels[strip]]
            change = np.inf if before is None or before[1].memberships is None else before[1].memberships[strip] - u
            costs, totals = rule.costs(squared, u, w), rule.weights(u, w).sum(axis=0)
            return float(np.abs(change).max()), rule.spare(u, w), costs, totals, u[w > 0].max(axis=0, initial=0.0)

        found = self.pool.map(run, blocks(self.n, _STRIP))
        costs, totals = (np.sum([part[i] for part in found], axis=0) for i in (2, 3))
        objective = float(costs.sum()) + sum(part[1] for part in found)
        peaks = np.max([part[4] for part in found], axis=0)
        return SoftStep(objective, max(part[0] for part in found), labels, own, U, costs, totals, peaks)

    def soft_centers(self, step: SoftStep[ImplicitCenters], rule: Rule) -> ImplicitCenters:
        """Means weighted by w u^m."""
        assert step.memberships is not None
        given = np.ascontiguousarray(rule.weights(step.memberships, self.weight).T)
        largest = given.max(axis=1, keepdims=True)  # with a large m, u^m is below what float32 can hold
        return self.weighted_centers(np.divide(given, largest, out=given, where=largest > 0))

    def center_distances(self, centers: ImplicitCenters) -> NDArray[np.float64]:
        """Squared distances between soft centres, shape (k, k)."""
        assert centers.given is not None
        scale, _ = centers.affine()
        cross = (centers.sums @ centers.given.T) * scale * scale[:, None]
        own = cross.diagonal()
        return np.maximum(own + own[:, None] - cross - cross.T, 0.0)

    # ---- the objective ------------------------------------------------------------------------------------------

    def objective(self, centers: ImplicitCenters) -> float:
        """Kernel objective of the partition."""
        return partition_objective(self.constant, centers.squared_sums, centers.totals)

    def own_distances(self, centers: ImplicitCenters, labels: Labels) -> NDArray[np.float64]:
        """Squared distance of every point to the centre of its own cluster, shape (n,)."""
        scale, offset = centers.affine()
        own = centers.sums[labels, np.arange(self.n)]
        return np.asarray(self.gram.diagonal - 2 * own * scale[labels] + offset[labels])
