"""Coordinates in an embedding plus a residual: centres are explicit.

``|phi(x_i) - v|^2 = |y_i - v|^2 + r_i`` for a centre v in the span of the map. One pass assigns every point and sums
the clusters. Passes leave a trail: how much nearer each point was to its centre than to any other. By the triangle
inequality the next pass need not look at points whose lead is larger than what the centres have moved since (the bound
of Hamerly 2010, kept as one number for each point). Labels are those of a pass over all points.

Time: n k p for the first pass, then (points near a border) k p. Memory: O(k p) per block of points and n numbers beyond
the coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer import _core
from mercer.engine.memory import scratch
from mercer.engine.threads import Threads, blocks
from mercer.solvers.objective import partition_objective, total_weights
from mercer.solvers.rules import Rule
from mercer.solvers.soft import SoftStep
from mercer.solvers.space import Assignment, Labels
from mercer.sources import Matrix, Source, core_rows, is_sparse

_BLOCK_VALUES = 1 << 20
_ALL = slice(None)


def pass_blocks(n: int, p: int) -> list[slice]:
    """Blocks of points that a pass works on, for `p` coordinates."""
    return blocks(n, max(1024, _BLOCK_VALUES // max(1, p)))


@dataclass(frozen=True)
class Trail:
    """What a pass leaves for the next: its centres (k, p) with their offsets, and each point's lead (n,)."""

    means: NDArray[Any]
    offset: NDArray[Any]
    gaps: NDArray[Any]


@dataclass(frozen=True)
class ExplicitCenters:
    """Sums of coordinates (k, p) and weights (k,) of the clusters, and the trail of the pass that made them."""

    sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    trail: Trail | None = None

    @property
    def means(self) -> NDArray[np.float64]:
        """The centres, shape (k, p); zero where a cluster is empty."""
        return np.divide(self.sums, self.totals[:, None], out=np.zeros_like(self.sums), where=self.totals[:, None] > 0)


@dataclass(frozen=True)
class Past:
    """Rows seen before, of which only this is kept: the centres they made, and their sum of w |phi(x)|^2."""

    centers: ExplicitCenters
    constant: float


class EmbeddedSpace:
    """Space of the approximate methods, and of kernels whose feature space is small enough to write down.

    Parameters
    ----------
    Y : array or CSR matrix of shape (n, p)
        Coordinates.
    weight : array of shape (n,)
    n_clusters : int
    pool : Threads
    residual : array of shape (n,), optional
        What the coordinates leave of k(x, x).
    metric : {0, 1}
        Nearest in l2 or in l1; centres are means either way.
    past : Past, optional
        Rows of a stream seen before these: they pull at the centres and count in the objective, and do not move.
    """

    kept: tuple[type, ...] = (ExplicitCenters, Trail)

    def __init__(
        self,
        Y: Matrix,
        weight: NDArray[np.float64],
        n_clusters: int,
        pool: Threads,
        residual: NDArray[np.floating] | None = None,
        metric: int = 0,
        past: Past | None = None,
    ) -> None:
        self.Y = Y
        self._all = None if isinstance(Y, Source) else core_rows(Y)
        self.n, self.p = Y.shape
        self.weight = weight
        self.n_clusters = n_clusters
        self.pool = pool
        self.metric = metric
        self.keeps_best = metric == 0
        self.weights = None if (weight == 1).all() else weight.astype(Y.dtype)
        self.norms = np.empty(self.n, dtype=Y.dtype)
        self.blocks = pass_blocks(self.n, self.p)
        pool.map(lambda p: _core.norms(self._points(p), 2, self.norms[p]), self.blocks)
        self.residual = residual
        self.constant = float(weight @ self.norms.astype(np.float64))
        if residual is not None:
            self.constant += float(weight @ residual)
        self.past = past
        self.held = np.zeros(n_clusters, dtype=bool)
        if past is not None:
            self.constant += past.constant
            self.held = past.centers.totals > 0
        self.resolution = 32 * float(np.finfo(Y.dtype).eps) * float(self.norms.max(initial=0.0))

    def _points(self, part: slice) -> _core.Rows:
        """Coordinates of some points, as the core sees them."""
        return core_rows(self.Y[part]) if self._all is None else self._all.slice(part.start, part.stop)

    def distances_to(self, indices: NDArray[np.intp]) -> NDArray[np.floating]:
        """Squared distances to some of the points, residuals left out, shape (len(indices), n)."""
        chosen = self.Y[indices]
        parts = self.pool.map(
            lambda part: _dense(chosen @ self.Y[part].T), self.blocks if self._all is None else [_ALL]
        )
        products = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        distances = self.norms - 2.0 * products.astype(np.float64) + self.norms[indices, None]
        clipped: NDArray[np.floating] = np.maximum(distances, 0.0)
        return clipped

    def centers(self, labels: Labels) -> ExplicitCenters:
        """Weighted sums of the clusters' coordinates, block by block."""
        parts = self.pool.map(lambda part: self._sums(part, labels), self.blocks)
        return _add_up(self._before() + parts)

    def _before(self) -> list[ExplicitCenters]:
        """Sums of the rows seen before, if there are any."""
        return [] if self.past is None else [self.past.centers]

    def recentre(
        self, centers: ExplicitCenters, old: Labels, found: Assignment[ExplicitCenters], refilled: bool
    ) -> ExplicitCenters:
        """Take the sums of the same pass, unless labels were changed after it."""
        return self.centers(found.labels) if refilled or found.centers is None else found.centers

    def _sums(self, part: slice, labels: Labels) -> ExplicitCenters:
        own, weight = labels[part], self.weight[part]
        members = sparse.csr_array(
            (weight, (own, np.arange(len(own)))), shape=(self.n_clusters, len(own)), dtype=np.float64
        )
        sums = members @ self.Y[part]
        return ExplicitCenters(
            np.asarray(sums.toarray() if is_sparse(sums) else sums), total_weights(own, weight, self.n_clusters)
        )

    def assign(self, centers: ExplicitCenters, labels: Labels) -> Assignment[ExplicitCenters]:
        """Nearest centre by the core, with the sums of the new clusters; ties go to the lower cluster.

        The trail of `centers`, if there is one, is used up.
        """
        means, new = centers.means.astype(self.Y.dtype), labels.copy()
        offset, slack = self._offset(means, centers.totals), self._slack(means)
        if centers.trail is None:
            trail, shifts = Trail(means, offset, np.empty(self.n, dtype=self.Y.dtype)), None
        else:
            trail = Trail(means, offset, centers.trail.gaps)
            shifts = self._shifts(centers.trail, trail)

        def run(part: slice) -> ExplicitCenters:
            change = ExplicitCenters(np.zeros((self.n_clusters, self.p)), np.zeros(self.n_clusters))
            rows, gaps = self._points(part), trail.gaps[part]
            weight = None if self.weights is None else self.weights[part]
            sums, totals, buffer = change.sums, change.totals, self._scratch()
            found = (rows, means, offset, self.metric, weight, self.norms[part], new[part], None, sums, totals, buffer)
            _core.assign(*found, gaps, shifts, slack)
            return change

        parts = self.pool.map(run, self.blocks)
        total = _add_up((self._before() if shifts is None else [centers]) + parts)
        return Assignment(new, ExplicitCenters(total.sums, total.totals, trail))

    def nearest(self, centers: ExplicitCenters) -> tuple[Labels, NDArray[np.float64]]:
        """Nearest centre of every point and the squared distance (l1 distance) to it, both of shape (n,)."""
        means = centers.means.astype(self.Y.dtype)
        labels, distances = np.zeros(self.n, dtype=np.int32), np.empty(self.n, dtype=self.Y.dtype)
        offset = self._offset(means, centers.totals)

        def run(part: slice) -> None:
            rows, norms, buffer = self._points(part), self.norms[part], self._scratch()
            out = labels[part], distances[part]
            _core.assign(rows, means, offset, self.metric, None, norms, *out, None, None, buffer)

        self.pool.map(run, self.blocks)
        exact = distances.astype(np.float64)
        return labels, exact if self.residual is None or self.metric == 1 else np.maximum(exact + self.residual, 0.0)

    def _scratch(self) -> NDArray[Any]:
        return scratch(_core.assign_scratch(self.p, self.Y.dtype.itemsize), self.Y.dtype)

    def _offset(self, means: NDArray[Any], totals: NDArray[np.float64]) -> NDArray[Any]:
        """What the core takes off the score of each centre; infinite for an empty cluster, which is no centre."""
        if self.metric == 0:
            offset = np.einsum("ij,ij->i", means, means, dtype=np.float64) / 2
        else:
            offset = -means.sum(axis=1, dtype=np.float64) / 2
        return np.where(totals > 0, offset, np.inf).astype(self.Y.dtype)

    def _shifts(self, before: Trail, now: Trail) -> NDArray[Any]:
        """How far each centre has moved at most, shape (k,); a cluster that became empty is infinitely far."""
        moved = np.linalg.norm(now.means.astype(np.float64) - before.means, axis=1, ord=2 - self.metric)
        moved[np.isinf(before.offset) != np.isinf(now.offset)] = np.inf
        return np.asarray(np.nextafter(moved.astype(self.Y.dtype), self.Y.dtype.type(np.inf)))

    def _slack(self, means: NDArray[Any]) -> float:
        """Bound on the rounding of the difference of two scores."""
        point, center = np.sqrt(float(self.norms.max(initial=0.0))), float(np.linalg.norm(means, axis=1).max())
        size = (point + center) * (np.sqrt(self.p) if self.metric == 1 else center)
        return float(2 * (self.p + 8) * np.finfo(self.Y.dtype).eps * size)

    def own_distances(self, centers: ExplicitCenters, labels: Labels) -> NDArray[np.floating]:
        """Squared distance of every point to the centre of its own cluster, shape (n,)."""
        means, out = centers.means.astype(self.Y.dtype), np.empty(self.n, dtype=self.Y.dtype)
        squares = np.einsum("ij,ij->i", means, means)

        def run(part: slice) -> None:
            own, Y = labels[part], self.Y[part]
            if is_sparse(Y):
                cross = np.asarray(Y.multiply(means[own]).sum(axis=1)).ravel()
            elif len(means) < self.p:  # products with all centres, in less time than a copy of each point's own
                cross = (Y @ means.T)[np.arange(len(own)), own]
            else:
                cross = np.einsum("ij,ij->i", Y, means[own])
            out[part] = self.norms[part] - 2 * cross + squares[own]

        self.pool.map(run, self.blocks)
        return out if self.residual is None else out + self.residual

    def distances_to_centers(self, centers: ExplicitCenters) -> NDArray[np.float64]:
        """Squared distances (l1 distances) of all points to all centres, shape (n, k); infinite where empty."""
        means = centers.means
        if self.metric == 1:
            return _where_filled(cdist(self.Y.toarray() if is_sparse(self.Y) else self.Y, means, "cityblock"), centers)
        cross = np.asarray(self.Y @ means.T)
        squared = self.norms[:, None] - 2 * cross + np.einsum("ij,ij->i", means, means)
        squared[squared <= self.resolution] = 0.0
        if self.residual is not None:
            squared = np.maximum(squared + self.residual[:, None], 0.0)
        return _where_filled(squared, centers)

    # ---- soft rules ---------------------------------------------------------------------------------------------

    def centers_at(self, Y: Matrix) -> ExplicitCenters:
        """Centres at given coordinates, shape (k, p)."""
        return ExplicitCenters(np.asarray(Y.toarray() if is_sparse(Y) else Y, dtype=np.float64), np.ones(Y.shape[0]))

    def soft_step(
        self,
        centers: ExplicitCenters,
        rule: Rule,
        before: tuple[ExplicitCenters, SoftStep[ExplicitCenters]] | None,
        *,
        keep: bool,
        final: bool = False,
    ) -> SoftStep[ExplicitCenters]:
        """Memberships by the core, with the new centres in the same pass; kept ones are overwritten in place."""
        k, dtype = self.n_clusters, self.Y.dtype
        means, half = self._soft_centers(centers)
        nu = None if rule.nu is None else rule.nu.astype(dtype)
        old: tuple[Any, Any, Any] = (None, None, None)
        U = before[1].memberships if before is not None else np.empty((k, self.n), dtype).T if keep else None
        if before is not None and U is None:
            old = (*self._soft_centers(before[0]), nu)
        size, tasks = self._soft_scratch, len(self.blocks)
        labels = np.empty(self.n, dtype=np.int32) if final else None
        own = np.empty(self.n, dtype=dtype) if final else None
        sums, totals, costs = np.zeros((tasks, k, self.p)), np.zeros((tasks, k)), np.zeros((tasks, k))
        peaks = np.zeros((tasks, k), dtype)

        def run(task: int) -> tuple[float, float]:
            part, rows, norms, weight = self._soft_part(task)
            kept, out = None if U is None else U.T[:, part], (sums[task], totals[task], scratch(size, dtype))
            points = rows, norms, means, half, nu, rule.m, weight
            named = None if labels is None else labels[part]
            away = None if own is None else own[part]
            return _core.soft_step(*points, kept, named, *out, costs[task], peaks[task], *old, own=away)

        found = self.pool.map(run, range(tasks))
        objective = sum(part[0] for part in found)
        change = max(part[1] for part in found) if before is not None else np.inf
        new = ExplicitCenters(sums.sum(axis=0), totals.sum(axis=0))
        highest = peaks.max(axis=0).astype(np.float64)
        return SoftStep(float(objective), float(change), labels, own, U, costs.sum(axis=0), new.totals, highest, new)

    @cached_property
    def _soft_scratch(self) -> int:
        return _core.soft_scratch(self.n_clusters, self.p, self.Y.dtype.itemsize)

    @cached_property
    def _soft_norms(self) -> NDArray[Any]:
        return self.norms if self.residual is None else (self.norms + self.residual).astype(self.Y.dtype)

    @cached_property
    def _soft_rows(self) -> list[_core.Rows]:
        """Points of each task of a soft step, where they are in memory."""
        return [] if self._all is None else [self._points(part) for part in self.blocks]

    def _soft_part(self, task: int) -> tuple[slice, _core.Rows, NDArray[Any], NDArray[Any] | None]:
        """What a task of a soft step looks at: where it is, its points, their norms with residual, their weights."""
        part = self.blocks[task]
        rows = self._soft_rows[task] if self._soft_rows else self._points(part)
        return part, rows, self._soft_norms[part], None if self.weights is None else self.weights[part]

    def soft_centers(self, step: SoftStep[ExplicitCenters], rule: Rule) -> ExplicitCenters:
        """Return the centres of the step."""
        assert step.centers is not None
        return step.centers

    def _soft_centers(self, centers: ExplicitCenters) -> tuple[NDArray[Any], NDArray[Any]]:
        """Means and half their squared norms; a cluster of no weight is as far away as numbers go."""
        means = centers.means.astype(self.Y.dtype)
        half = np.einsum("ij,ij->i", means, means, dtype=np.float64) / 2
        return means, np.where(centers.totals > 0, half, np.finfo(self.Y.dtype).max / 16).astype(self.Y.dtype)

    def center_distances(self, centers: ExplicitCenters) -> NDArray[np.float64]:
        """Squared distances between centres, shape (k, k)."""
        return np.asarray(cdist(centers.means, centers.means, "sqeuclidean"))

    # ---- the objective ------------------------------------------------------------------------------------------

    def objective(self, centers: ExplicitCenters) -> float:
        """Objective of the partition in the embedding, residuals included."""
        squared = np.einsum("ij,ij->i", centers.sums, centers.sums)
        return partition_objective(self.constant, squared, centers.totals)


def _dense(products: Any) -> NDArray[Any]:
    return np.asarray(products.toarray() if is_sparse(products) else products)


def _where_filled(distances: NDArray[np.float64], centers: ExplicitCenters) -> NDArray[np.float64]:
    distances[:, centers.totals <= 0] = np.inf
    return distances


def _add_up(parts: list[ExplicitCenters]) -> ExplicitCenters:
    """Add sums in the order of the parts."""
    sums, totals = np.zeros_like(parts[0].sums), np.zeros_like(parts[0].totals)
    for part in parts:
        sums += part.sums
        totals += part.totals
    return ExplicitCenters(sums, totals)
