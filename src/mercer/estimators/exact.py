"""The exact method: the feature space itself, through the kernel matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer.engine.threads import Threads
from mercer.estimators import checks
from mercer.estimators.settings import Data, Fitted, Settings
from mercer.gram import (
    DiskGram,
    MemoryGram,
    Moves,
    OtherTilesError,
    PrecomputedGram,
    RecomputedGram,
    TiledGram,
    discard_tiles,
    sums_across,
    sums_of_matrix,
)
from mercer.kernels import KernelRows, Precomputed, warn_if_uninformative
from mercer.planner import Plan, Speeds, measure_disk, measure_kernel, temporary_folder
from mercer.solvers import GramSpace, ImplicitCenters
from mercer.solvers.implicit import ImplicitModel
from mercer.solvers.objective import total_weights
from mercer.solvers.recipe import plant
from mercer.solvers.restarts import Start, best_partition, medoids, starts
from mercer.solvers.space import Labels

_RUNS = {"k-means++": 5, "random": 10, "points": 10}
_RECIPE_FROM = 512  # rows: below, runs in the space itself cost nothing
_LOOKED_AT = 16  # kernel columns, to see whether the matrix says anything


def passes(settings: Settings, n: int) -> float:
    """How often a fit by the hard rule needs the whole kernel matrix, from experience with the papers' data."""
    init, runs = settings.init, settings.n_init
    if not isinstance(init, str) or (runs is None and init == "k-means++" and n > _RECIPE_FROM):
        return 1.2  # from a good start few points move
    return 4.0 * (_RUNS[init] if runs is None else runs)


def speeds(data: Data, settings: Settings, pool: Threads, with_disk: bool) -> Speeds:
    """Measure what an exact fit depends on."""
    value = measure_kernel(data.kernel, data.X, pool)  # first: the system is busy for a while with what was written
    return Speeds(value, *(measure_disk(settings.disk.folder) if with_disk else (0.0, 0.0)))


def fit_exact(data: Data, settings: Settings, plan: Plan, pool: Threads) -> Fitted:
    """Cluster in the feature space itself."""
    rows, gram = gram_of(data, settings, plan, pool)
    with gram:
        return _fit(data, settings, plan, rows, GramSpace(gram, data.weight, settings.n_clusters, pool))


def _fit(data: Data, settings: Settings, plan: Plan, rows: KernelRows | None, space: GramSpace) -> Fitted:
    partition = best_partition(
        space,
        first_labels_exact(data, space, settings),
        max_iter=settings.max_iter,
        tol=settings.tol,
        report=settings.report,
        checkpoint=settings.checkpoint,
    )
    members = Moves.between(None, partition.labels, space.weight)
    kernel = None if isinstance(data.kernel, Precomputed) else data.kernel
    return Fitted(
        labels=partition.labels,
        objective=partition.objective,
        history=partition.history,
        converged=partition.converged,
        stopped=partition.stopped,
        filled=int(np.count_nonzero(partition.centers.totals)),
        medoids=medoids(space, partition.labels, space.own_distances(partition.centers, partition.labels)),
        plan=plan,
        spread=partition.objective / float(space.weight.sum()),
        resolution=space.resolution,
        kernel=data.kernel,
        model=ImplicitModel(kernel, rows, members, *partition.centers.affine(), space.resolution),
    )


def gram_of(data: Data, settings: Settings, plan: Plan, pool: Threads) -> tuple[KernelRows | None, TiledGram]:
    """Prepared rows (none if kernel values are given) and the kernel matrix, where the plan puts it."""
    if isinstance(data.kernel, Precomputed):
        return None, PrecomputedGram(data.X, pool)
    rows = data.kernel.rows(data.X)
    gram = _gram(data, rows, settings, plan, pool)
    try:
        if gram.n > 1:
            sample = np.linspace(0, gram.n - 1, min(gram.n, _LOOKED_AT)).astype(np.intp)
            warn_if_uninformative(data.kernel, gram.columns(sample), gram.diagonal, sample, data.X)
    except BaseException:
        gram.close()
        raise
    return rows, gram


def _gram(data: Data, rows: KernelRows, settings: Settings, plan: Plan, pool: Threads) -> TiledGram:
    if plan.storage == "memory":
        return MemoryGram(data.kernel, rows, pool)
    if plan.storage == "recompute":
        return RecomputedGram(data.kernel, rows)
    disk, costs = settings.disk, {}
    if plan.speeds is not None and plan.speeds.read:
        costs["row_cost"] = plan.speeds.kernel_value * plan.speeds.read / disk.held(rows.dtype).itemsize

    def on_disk() -> DiskGram:
        return DiskGram(data.kernel, rows, data.keys, disk, pool, spare=temporary_folder(), **costs)

    if settings.own_tiles is None:
        return on_disk()
    try:
        return on_disk()
    except OtherTilesError:  # left behind by a fit that was killed as it cleaned up
        discard_tiles(settings.own_tiles)
        return on_disk()


def first_labels_exact(data: Data, space: GramSpace, settings: Settings) -> list[Start]:
    """Ways to the first labels of the runs."""
    init, runs = settings.init, settings.n_init
    if not isinstance(init, str):
        return [partial(_given, init, data, space)]
    if runs is None and init == "k-means++" and space.n > _RECIPE_FROM:
        return [partial(_grown, data, space, settings.seed)]
    return starts(space, init, data.keys, settings.seeds(_RUNS[init] if runs is None else runs))


def _given(init: Any, data: Data, space: GramSpace) -> Labels:
    points = checks.given_start(init, data, space.n_clusters)
    if points.ndim == 1:
        return points
    kernel = data.kernel
    images = kernel.rows(points)
    members = Moves.between(None, np.arange(len(points), dtype=np.int32), np.ones(len(points)))
    model = ImplicitModel(kernel, images, members, np.ones(len(points)), kernel.diagonal(images))
    return model.nearest(data.X, space.pool)[0]


def _grown(data: Data, space: GramSpace, seed: int) -> Labels:
    """All points to the nearest centre of a partition of some of them."""
    seedling = plant(data.kernel, data, space.n_clusters, seed, space.pool).head()
    k, pool, few = space.n_clusters, space.pool, seedling.rows
    members = Moves.between(None, seedling.labels, seedling.weight)
    if isinstance(data.kernel, Precomputed):
        kernel, rows, X = None, None, data.X[:, few]
        sums = sums_of_matrix(X[few], members, k, pool)
    else:
        kernel, rows, X = data.kernel, data.kernel.rows(data.X[few]), data.X
        sums = sums_across(data.kernel, rows, members, rows, k, pool)
    own = seedling.weight * sums[seedling.labels, np.arange(len(few))]
    totals = total_weights(seedling.labels, seedling.weight, k)
    centers = ImplicitCenters(sums, totals, total_weights(seedling.labels, own, k))
    return ImplicitModel(kernel, rows, members, *centers.affine()).nearest(X, pool)[0]
