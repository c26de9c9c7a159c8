"""The approximate methods: coordinates by a feature map, then c-means on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer.engine.threads import Threads
from mercer.estimators import checks
from mercer.estimators.settings import Data, Fitted, Settings
from mercer.features import (
    CentroidEmbedding,
    FeatureMap,
    Nystroem,
    OnePassSketch,
    RandomFourier,
    TaylorFeatures,
)
from mercer.planner import Plan, temporary_folder
from mercer.solvers import EmbeddedSpace
from mercer.solvers.cmeans import Partition
from mercer.solvers.coordinates import coordinates
from mercer.solvers.embedded import EmbeddedModel, grow
from mercer.solvers.embedded_space import ExplicitCenters, Past
from mercer.solvers.recipe import plant
from mercer.solvers.restarts import Start, best_partition, medoids, starts
from mercer.solvers.space import Labels
from mercer.sources import Matrix, open_source

METHODS = ("nystroem", "fourier", "taylor", "sketch", "apnc")
_METRICS = {"l2": 0, "l1": 1}
_RUNS = {"random": 10, "points": 10}


def named_map(method: str, n_components: int | None, n_clusters: int) -> FeatureMap:
    """Return the feature map that a method's name stands for."""
    if method == "nystroem":
        return Nystroem(n_components or max(300, 20 * n_clusters), rank=3 * n_clusters)
    if method == "fourier":
        return RandomFourier(n_components or 1000)
    if method == "taylor":
        return TaylorFeatures(degree=2)
    if method == "sketch":
        return OnePassSketch(rank=n_components or 2 * n_clusters)
    return CentroidEmbedding(n_components or 300)


def prepared_map(given: FeatureMap, seed: int, n_clusters: int) -> FeatureMap:
    """Return a copy of a user's map with what it leaves to the estimator filled in."""
    copy: FeatureMap = clone(given)
    parameters = copy.get_params(deep=False)
    if "random_state" in parameters and parameters["random_state"] is None:
        copy.set_params(random_state=seed)
    if parameters.get("singular_vectors") is True:
        copy.set_params(singular_vectors=n_clusters)
    return copy


def metric_code(metric: str, feature_map: FeatureMap | None) -> int:
    """0 for l2, 1 for l1; "auto" is what the map is made for. Without a map, l2."""
    checks.choice("metric", metric, ("auto", "l2") if feature_map is None else ("auto", *_METRICS))
    if metric == "auto":
        return 1 if isinstance(feature_map, CentroidEmbedding) else 0
    return _METRICS[metric]


def learned_space(
    data: Data, n_clusters: int, feature_map: FeatureMap, metric: int, plan: Plan, pool: Threads
) -> EmbeddedSpace:
    """Learn the map and embed all rows."""
    feature_map.learn(data, data.kernel, pool)
    where = plan.storage.partition(", ")[2] or "memory"
    X = data.X if where == "memory" else open_source(data.X)
    Y, residual = coordinates(X, feature_map, where, pool, temporary_folder())
    return EmbeddedSpace(Y, data.weight, n_clusters, pool, residual, metric)


def fit_embedded(
    data: Data, settings: Settings, plan: Plan, feature_map: FeatureMap, metric: int, pool: Threads
) -> Fitted:
    """Learn the map, embed all rows, cluster the coordinates."""
    space = learned_space(data, settings.n_clusters, feature_map, metric, plan, pool)
    partition = best_partition(
        space,
        first_labels(data, space, settings, feature_map),
        max_iter=settings.max_iter,
        tol=settings.tol,
        report=settings.report,
        checkpoint=settings.checkpoint,
    )
    distances = space.own_distances(partition.centers, partition.labels)
    return _fitted(space, partition, feature_map, plan, medoids(space, partition.labels, distances))


def fit_more(
    model: EmbeddedModel, X: Matrix, weight: NDArray[np.float64], settings: Settings, plan: Plan, pool: Threads
) -> Fitted:
    """Go on from a model with a batch of new rows; those it was made from stay in their clusters."""
    feature_map, past = model.feature_map, Past(model.centers, model.constant)
    Y = feature_map.embed(X, pool)
    space = EmbeddedSpace(Y, weight, settings.n_clusters, pool, feature_map.leave(X, Y, pool), model.metric, past)
    first = [lambda: space.nearest(model.centers)[0]]
    partition = best_partition(space, first, max_iter=settings.max_iter, tol=settings.tol, report=settings.report)
    return _fitted(space, partition, feature_map, plan, None)


def _fitted(
    space: EmbeddedSpace,
    partition: Partition[ExplicitCenters],
    feature_map: FeatureMap,
    plan: Plan,
    medoids: NDArray[np.intp] | None,
) -> Fitted:
    return Fitted(
        labels=partition.labels,
        objective=partition.objective,
        history=partition.history,
        converged=partition.converged,
        stopped=partition.stopped,
        filled=int(np.count_nonzero(partition.centers.totals)),
        medoids=medoids,
        plan=plan,
        spread=partition.objective / float(space.weight.sum()) if space.past is None else 0.0,
        resolution=space.resolution,
        kernel=feature_map.kernel_,
        model=EmbeddedModel.of(feature_map, space, partition.centers),
        feature_map=feature_map,
        centers=partition.centers.means,
    )


def first_labels(data: Data, space: EmbeddedSpace, settings: Settings, feature_map: FeatureMap) -> list[Start]:
    """Ways to the first labels of the runs."""
    init, runs = settings.init, settings.n_init
    if not isinstance(init, str):
        return [partial(_given, init, data, space, feature_map)]
    if runs is None and init == "k-means++":
        return [partial(_grown, data, space, settings.seed, feature_map)]
    return starts(space, init, data.keys, settings.seeds(_RUNS[init] if runs is None else runs))


def _grown(data: Data, space: EmbeddedSpace, seed: int, feature_map: FeatureMap) -> Labels:
    leading = space.Y if feature_map.leading_first else None
    return grow(space, plant(data.kernel, data, space.n_clusters, seed, space.pool, leading))


def _given(init: Any, data: Data, space: EmbeddedSpace, feature_map: FeatureMap) -> Labels:
    checked = checks.given_start(init, data, space.n_clusters)
    if checked.ndim == 1:
        return checked
    return space.assign(space.centers_at(images_of(checked, space, feature_map)), np.zeros(space.n, np.int32)).labels


def images_of(points: NDArray[Any], space: EmbeddedSpace, feature_map: FeatureMap) -> Matrix:
    """Coordinates of points to start from."""
    return feature_map.embed(points, space.pool)
