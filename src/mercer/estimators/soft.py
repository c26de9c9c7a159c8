"""What the fuzzy and possibilistic estimators share: starts, the fit in a space, new points, warnings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer.engine.progress import Progress
from mercer.engine.threads import Threads
from mercer.engine.warn import warn_user
from mercer.estimators import checks
from mercer.estimators.base import KernelClusterer
from mercer.estimators.embedded import first_labels, images_of, learned_space
from mercer.estimators.exact import first_labels_exact, gram_of
from mercer.estimators.settings import Data, Fitted, Reporter, Settings
from mercer.features import CentroidEmbedding, FeatureMap
from mercer.kernels import Precomputed
from mercer.planner import Plan
from mercer.solvers import EmbeddedSpace, GramSpace
from mercer.solvers.embedded import EmbeddedModel
from mercer.solvers.embedded_space import ExplicitCenters
from mercer.solvers.gram_space import ImplicitCenters
from mercer.solvers.implicit import SoftImplicitModel
from mercer.solvers.restarts import Start, medoids
from mercer.solvers.rules import Rule
from mercer.solvers.seeding import random_points
from mercer.solvers.soft import SoftIteration, SoftPartition, best_soft_partition
from mercer.solvers.space import Centers, Labels, Space
from mercer.sources import Matrix, check_weights

_COINCIDENT = 1e-3  # squared distance of two centres over the mean one of points to theirs
_BLOCK = 1 << 16
_RUNS = 10
_ITERATIONS = 25  # of a run, from experience


class SoftClusteringWarning(UserWarning):
    """Memberships that say little: centres that coincide, or a cluster without typical points."""


@dataclass(frozen=True)
class Soft:
    """Where a soft fit ended, beyond what every fit has.

    Attributes
    ----------
    memberships : array of shape (n, k) or None
    rule : Rule
    peaks : array of shape (k,)
        Largest membership in each cluster.
    coincident : int
        Clusters whose centre coincides with that of another.
    closest : float
        Smallest squared distance between two centres, over the mean squared distance of points to their centres.
    """

    memberships: NDArray[np.floating] | None
    rule: Rule
    peaks: NDArray[np.float64]
    coincident: int
    closest: float


class SoftClusterer(KernelClusterer):
    """Base of the soft estimators."""

    m: float
    keep_memberships: bool
    objective_: float

    _theta: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        m = checks.number("m", self.m, 1.0)
        if m == 1:
            raise ValueError("m must be above 1; m close to 1 is nearly the hard rule, which KernelKMeans follows")
        if m * math.log(max(2, self.n_clusters)) >= 600:
            raise ValueError(f"m={m} is so large that all memberships are equal; useful values lie between 1 and 5")
        if self.metric == "l1" or self.method == "apnc" or isinstance(self.method, CentroidEmbedding):
            raise ValueError("soft memberships need squared distances, which APNC and metric='l1' do not give")

    def _membership_bytes(self, X: Matrix, *, exact: bool) -> int:
        """Memberships; in the feature space itself also distances, and what is given to the centres, old and new."""
        numbers = X.shape[0] * self.n_clusters
        return 7 * 8 * numbers if exact else int(X.dtype.itemsize * numbers * bool(self.keep_memberships))

    def _passes(self, settings: Settings, n: int) -> float:
        """Every iteration multiplies the whole matrix."""
        by_chance = isinstance(settings.init, str) and settings.init != "k-means++"
        runs = settings.n_init or (_RUNS if by_chance else 1)
        return float(runs * min(settings.max_iter, _ITERATIONS))

    def _fit_exact(self, data: Data, settings: Settings, plan: Plan, pool: Threads) -> Fitted:
        rows, gram = gram_of(data, settings, plan, pool)
        with gram:
            space = GramSpace(gram, data.weight, settings.n_clusters, pool)
            partition = self._run(space, _exact_starts(data, space, settings), settings)
            given = partition.centers.given
            assert given is not None
            kernel = None if isinstance(data.kernel, Precomputed) else data.kernel
            scale, offset = partition.centers.affine()
            model = SoftImplicitModel(kernel, rows, given, scale, offset, space.resolution)
            return self._fitted(space, partition, plan, kernel=data.kernel, model=model)

    def _fit_embedded(
        self, data: Data, settings: Settings, plan: Plan, feature_map: FeatureMap, metric: int, pool: Threads
    ) -> Fitted:
        space = learned_space(data, settings.n_clusters, feature_map, metric, plan, pool)
        partition = self._run(space, _embedded_starts(data, space, settings, feature_map), settings)
        return self._fitted(
            space,
            partition,
            plan,
            kernel=feature_map.kernel_,
            model=EmbeddedModel.of(feature_map, space, partition.centers),
            feature_map=feature_map,
            centers=partition.centers.means,
        )

    def _run(self, space: Any, first: Sequence[Callable[[], Any]], settings: Settings) -> SoftPartition[Any]:
        return best_soft_partition(
            space,
            first,
            float(self.m),
            theta=self._theta,
            report=settings.report,
            max_iter=settings.max_iter,
            tol=settings.tol,
            keep=bool(self.keep_memberships),
            checkpoint=settings.checkpoint,
        )

    def _fitted(self, space: Any, partition: SoftPartition[Any], plan: Plan, **parts: Any) -> Fitted:
        last = partition.last
        assert last.labels is not None
        assert last.own is not None
        between = space.center_distances(partition.centers) + np.diag(np.full(space.n_clusters, np.inf))
        spread = float(last.costs.sum() / last.totals.sum()) if last.totals.sum() > 0 else 0.0
        nearest = between.min(axis=1, initial=np.inf)
        soft = Soft(
            memberships=last.memberships if self.keep_memberships else None,
            rule=partition.rule,
            peaks=last.peaks,
            coincident=int((nearest <= _COINCIDENT * spread).sum()) if space.n_clusters > 1 else 0,
            closest=float(nearest.min() / spread) if spread > 0 else 0.0,
        )
        return Fitted(
            labels=last.labels,
            objective=last.objective,
            history=partition.history,
            converged=partition.converged,
            stopped=partition.stopped,
            filled=int(np.count_nonzero(last.totals)),
            medoids=medoids(space, last.labels, last.own),
            plan=plan,
            soft=soft,
            spread=spread,
            resolution=space.resolution,
            **parts,
        )

    def _reporter(self, progress: Progress) -> Reporter:
        def report(run: int, number: int, record: SoftIteration) -> bool:
            if self.verbose > 1 or (self.verbose == 1 and record.change <= self.tol):
                print(
                    f"run {run + 1}, iteration {number}: objective {record.objective:.6g}, memberships changed by up "
                    f"to {record.change:.2g}, {record.seconds:.3f} s"
                )
            return progress.iteration(run, number, self.max_iter)

        return report

    def _set_fitted(self, found: Fitted) -> None:
        assert found.soft is not None
        self._rule = found.soft.rule
        super()._set_fitted(found)
        self.objective_ = self.__dict__.pop("inertia_")
        if found.soft.memberships is not None:
            self.memberships_ = found.soft.memberships
        elif hasattr(self, "memberships_"):
            del self.memberships_

    def _warn_about(self, found: Fitted) -> None:
        assert found.soft is not None
        if not (found.converged or found.stopped):
            warn_user(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations (the last one changed "
                f"a membership by {found.history[-1].change:.2g}). Raise max_iter or tol.",
                ConvergenceWarning,
            )
        if found.filled < self.n_clusters:
            warn_user(
                f"{self.n_clusters - found.filled} of the {self.n_clusters} clusters have no members at all: the data "
                "have too few distinct points. Use fewer clusters.",
                SoftClusteringWarning,
            )
        elif found.soft.coincident:
            smaller = 1 + (self.m - 1) / 4
            warn_user(
                f"{found.soft.coincident} of the {self.n_clusters} centres coincide with another: their squared "
                f"distance is down to {found.soft.closest:.1e} of that of the points to their centres, so memberships "
                f"say little. Try a smaller m (m={smaller:.3g}), a larger gamma, or fewer clusters.",
                SoftClusteringWarning,
            )
        self._warn_about_peaks(found.soft)

    def _warn_about_peaks(self, soft: Soft) -> None:
        """Warn about clusters without typical points, where memberships do not add up to 1."""

    # ---- new points ----------------------------------------------------------------------------------------------

    def predict_memberships(self, X: ArrayLike) -> NDArray[np.floating]:
        """Memberships of the rows of `X` in the clusters, shape (n, n_clusters).

        Not for ``kernel="precomputed"``, where the new points' own k(x, x) are unknown.
        """
        data = self._new(X)
        self._need_distances()
        out = np.empty((data.shape[0], self.n_clusters), dtype=data.dtype)
        with Threads(self.n_jobs) as pool:
            for start in range(0, data.shape[0], _BLOCK):
                part = slice(start, start + _BLOCK)
                out[part] = self._rule.memberships(self._model.distances(data[part], pool))
        return out

    def predict(self, X: ArrayLike) -> Labels:
        """Cluster of largest membership of each row of `X`, shape (n,).

        For ``kernel="precomputed"``, `X` has the kernel values between the new and the training points, and the cluster
        is that of the nearest centre.
        """
        data = self._new(X)
        if not self._model.knows_distances:
            with Threads(self.n_jobs) as pool:
                return self._model.nearest(data, pool)[0]
        labels: Labels = self.predict_memberships(X).argmax(axis=1).astype(np.int32)
        return labels

    def score(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the objective of the rows of `X` for the centres found."""
        data = self._new(X)
        self._need_distances()
        weight = check_weights(sample_weight, data.shape[0])
        with Threads(self.n_jobs) as pool:
            squared = self._model.distances(data, pool)
        U = self._rule.memberships(squared)
        return -float(self._rule.costs(squared, U, weight).sum() + self._rule.spare(U, weight))


# ---- first centres -------------------------------------------------------------------------------------------------


def _embedded_starts(
    data: Data, space: EmbeddedSpace, settings: Settings, feature_map: FeatureMap
) -> list[Callable[[], ExplicitCenters]]:
    if not isinstance(settings.init, str) and np.ndim(settings.init) == 2:
        points = checks.given_start(settings.init, data, space.n_clusters)
        return [lambda: space.centers_at(images_of(points, space, feature_map))]
    if isinstance(settings.init, str) and settings.init == "points":
        return [partial(lambda draw: space.centers_at(space.Y[draw()]), draw) for draw in _draws(data, settings)]
    return [partial(_means, space, start) for start in first_labels(data, space, settings, feature_map)]


def _exact_starts(data: Data, space: GramSpace, settings: Settings) -> list[Callable[[], ImplicitCenters]]:
    if not isinstance(settings.init, str) and np.ndim(settings.init) == 2:
        return [lambda: _images(checks.given_start(settings.init, data, space.n_clusters), data)]
    if isinstance(settings.init, str) and settings.init == "points":
        return [partial(lambda draw: space.centers_at(draw()), draw) for draw in _draws(data, settings)]
    return [partial(_means, space, start) for start in first_labels_exact(data, space, settings)]


def _means(space: Space[Centers], start: Start) -> Centers:
    return space.centers(start())


def _images(points: NDArray[Any], data: Data) -> ImplicitCenters:
    """Centres at the images of points that need not be rows."""
    sums = data.kernel(points, data.X).astype(np.float64)
    return ImplicitCenters(sums, np.ones(len(points)), data.kernel.diagonal(data.kernel.rows(points)))


def _draws(data: Data, settings: Settings) -> list[Callable[[], NDArray[np.intp]]]:
    seeds = settings.seeds(_RUNS if settings.n_init is None else settings.n_init)
    return [partial(_drawn, data, settings, int(seed)) for seed in seeds]


def _drawn(data: Data, settings: Settings, seed: int) -> NDArray[np.intp]:
    chosen = random_points(data.keys, data.weight, settings.n_clusters, np.random.default_rng(seed))
    return np.resize(chosen, settings.n_clusters)  # some twice, if there are fewer distinct rows
