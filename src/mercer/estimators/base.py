"""What all kernel clustering estimators share: checks, the plan, the fit in a space, and work on new points."""

from __future__ import annotations

import numbers
import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.engine.checkpoint import Checkpoint
from mercer.engine.memory import parse_bytes
from mercer.engine.progress import Progress
from mercer.engine.threads import Threads
from mercer.engine.warn import warn_user
from mercer.estimators import checks
from mercer.estimators.embedded import METHODS, fit_embedded, metric_code, named_map, prepared_map
from mercer.estimators.exact import fit_exact, passes, speeds
from mercer.estimators.identity import fit_identity
from mercer.estimators.lazy import checked_source, is_lazy, reading_bytes, rows_in_memory
from mercer.estimators.listening import CallbackSupport, fit_progress, with_callbacks
from mercer.estimators.settings import Data, Fitted, Reporter, Settings, kernel_of
from mercer.features import FeatureMap
from mercer.gram import Disk, discard_tiles
from mercer.kernels import Precomputed
from mercer.planner import STORAGES, Plan, plan_embedded, plan_exact, prefers_exact
from mercer.solvers import Iteration
from mercer.solvers.space import Labels
from mercer.sources import (
    Matrix,
    Source,
    canonical,
    check_weights,
    content_hash,
    in_memory,
    is_sparse,
    open_source,
    require_finite,
)

_METHODS = ("auto", "exact", *METHODS)
_INITS = ("k-means++", "random", "points")


_WORTH_MEASURING = 4096  # rows; a fit of fewer is done before one has measured what it would take
_NOT_COPIES = 0.03  # share of the resolution: below it, points may be copies of their centres


class KernelPrecisionWarning(UserWarning):
    """Distances are lost in the rounding of the kernel values."""


class KernelClusterer(CallbackSupport, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators, which supply their parameters and what is special to them."""

    n_clusters: int
    kernel: Any
    gamma: float | str
    degree: int
    coef0: float
    kernel_params: Any
    method: str | FeatureMap
    n_components: int | None
    storage: str | Disk
    metric: str
    init: Any
    n_init: int | str
    max_iter: int
    tol: float
    memory_limit: int | str | None
    checkpoint: str | os.PathLike[str] | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    labels_: Labels

    # ---- fitting ------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            Or the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            A weight of 3 counts as three copies of the row, a weight of 0 as none.

        Returns
        -------
        self
        """
        data = self._validate(X, reset=True)
        self._check_parameters()
        weight = check_weights(sample_weight, data.shape[0])
        checks.enough_rows(weight, self.n_clusters)
        with Checkpoint(self.checkpoint) as checkpoint:
            with fit_progress(self, self.verbose) as progress, Threads(self.n_jobs, progress) as pool:
                found = self._fit(data, weight, pool, checkpoint)
            self.n_samples_seen_ = data.shape[0]
            self._set_fitted(found)
            checkpoint.remove()
        return self

    def _validate(self, X: ArrayLike, *, reset: bool) -> Matrix:
        if is_lazy(X):
            return checked_source(self, open_source(X), self.memory_limit, reset=reset)
        kinds = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        data = validate_data(self, X, reset=reset, ensure_all_finite=False, **kinds)
        require_finite(data, self.n_jobs, type(self).__name__)
        return canonical(data)

    def _check_parameters(self) -> None:
        checks.integer("n_clusters", self.n_clusters, 1)
        if not isinstance(self.method, FeatureMap):
            checks.choice("method", self.method, _METHODS)
        if not isinstance(self.storage, Disk):
            checks.choice("storage", self.storage, STORAGES)
        checks.integer("max_iter", self.max_iter, 1)
        checks.number("tol", self.tol, 0.0)
        checks.integer("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, 0)
        if self.n_init != "auto":
            checks.integer("n_init", self.n_init, 1)
        if self.n_components is not None:
            checks.integer("n_components", self.n_components, 1)
        if isinstance(self.init, str):
            checks.choice("init", self.init, _INITS)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _fit(
        self,
        X: Matrix,
        weight: NDArray[np.float64],
        pool: Threads,
        checkpoint: Checkpoint,
        *,
        in_batches: bool = False,
    ) -> Fitted:
        """Plan, then call the method's function."""
        seed = self._seed(checkpoint)
        feature_map, reasons = self._feature_map(X, seed, checkpoint.known("method in use"), in_batches)
        metric = metric_code(self.metric, feature_map)
        settings = self._settings(seed, pool.progress, checkpoint)
        if feature_map is None and isinstance(X, Source):
            X, left = rows_in_memory(X, settings.memory_limit)
            settings = replace(settings, memory_limit=left)
        data = self._data(X, weight, pool, feature_map)
        if feature_map is None:
            plan = self._exact_plan(data, settings, pool, reasons)
        else:
            plan = self._embedded_plan(feature_map, X, pool, reasons)
        if checkpoint.folder is not None:
            held = settings.disk.held(X.dtype) if plan.storage == "disk" else X.dtype
            method = "exact" if feature_map is None else type(feature_map).__name__
            checkpoint.require(fit_identity(self, data, seed, method, str(held), pool))
        data.kernel.check(data.X)
        self._keep_training(data, seed)
        if feature_map is None:
            return self._fit_exact(data, settings, plan, pool)
        return self._fit_embedded(data, settings, plan, feature_map, metric, pool)

    def _seed(self, checkpoint: Checkpoint) -> int:
        """The seed of all draws; that of the fit to go on with, unless `random_state` says which."""
        if not isinstance(self.random_state, numbers.Integral) and checkpoint.known("seed") is not None:
            return int(checkpoint.known("seed"))
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _keep_training(self, data: Data, seed: int) -> None:
        """Keep what is needed of the training data after the fit: nothing."""

    def _fit_exact(self, data: Data, settings: Settings, plan: Plan, pool: Threads) -> Fitted:
        return fit_exact(data, settings, plan, pool)

    def _fit_embedded(
        self, data: Data, settings: Settings, plan: Plan, feature_map: FeatureMap, metric: int, pool: Threads
    ) -> Fitted:
        return fit_embedded(data, settings, plan, feature_map, metric, pool)

    def _feature_map(
        self, X: Matrix, seed: int, before: str | None = None, in_batches: bool = False
    ) -> tuple[FeatureMap | None, tuple[str, ...]]:
        """Return the map of an approximate method, None for the exact one, and why; `before` an interruption it was."""
        if isinstance(self.method, FeatureMap):
            return prepared_map(self.method, seed, self.n_clusters), ()
        name, reasons = self.method, tuple[str, ...]()
        if name == "auto" and in_batches:
            name, reasons = "nystroem", ("approximate: more rows are to come",)
        elif name == "auto" and before is not None:
            name, reasons = "exact" if before == "exact" else "nystroem", ("as before the fit was interrupted",)
        elif name == "auto":
            exact, reason = prefers_exact(X.shape[0], X.dtype.itemsize, parse_bytes(self.memory_limit))
            exact = exact or self._is_precomputed or self.storage != "auto"
            name, reasons = "exact" if exact else "nystroem", (reason,)
        if name == "exact":
            return None, reasons
        named = named_map(name, self.n_components, self.n_clusters)
        return prepared_map(named, seed, self.n_clusters), reasons

    def _data(
        self, X: Matrix, weight: NDArray[np.float64], pool: Threads, feature_map: FeatureMap | None = None
    ) -> Data:
        """Rows with their hashes and the kernel: the map's own if it has one."""
        if feature_map is not None and feature_map.has_own_kernel:
            kernel = feature_map.own_kernel(X, weight)
            return Data(X, weight, kernel.keys(X), kernel)
        if self._is_precomputed:
            return Data(X, weight, Precomputed().keys(X), Precomputed())
        keys = content_hash(X, pool)
        return Data(X, weight, keys, kernel_of(self, X, weight, keys))

    def _settings(self, seed: int, progress: Progress, checkpoint: Checkpoint) -> Settings:
        disk, own_tiles = self.storage if isinstance(self.storage, Disk) else Disk(), None
        if disk.folder is None and checkpoint.folder is not None:
            own_tiles = checkpoint.folder / "kernel-tiles"
            disk = Disk(own_tiles, disk.dtype)
            checkpoint.on_remove.append(lambda: discard_tiles(own_tiles))
        return Settings(
            n_clusters=self.n_clusters,
            init=self.init.toarray() if is_sparse(self.init) else self.init,
            n_init=None if self.n_init == "auto" else int(self.n_init),
            max_iter=self.max_iter,
            tol=self.tol,
            memory_limit=parse_bytes(self.memory_limit),
            disk=disk,
            own_tiles=own_tiles,
            seed=seed,
            report=self._reporter(progress),
            checkpoint=checkpoint,
        )

    def _exact_plan(self, data: Data, settings: Settings, pool: Threads, reasons: tuple[str, ...]) -> Plan:
        n, d = data.X.shape
        return plan_exact(
            n,
            d,
            self.n_clusters,
            dtype=data.X.dtype,
            storage=self.storage,
            precomputed=self._is_precomputed,
            memory_limit=settings.memory_limit,
            n_jobs=pool.n_jobs,
            memberships=self._membership_bytes(data.X, exact=True),
            passes=self._passes(settings, n),
            measure=(lambda with_disk: speeds(data, settings, pool, with_disk)) if n > _WORTH_MEASURING else None,
            reasons=reasons,
        )

    def _passes(self, settings: Settings, n: int) -> float:
        return passes(settings, n)

    def _embedded_plan(self, feature_map: FeatureMap, X: Matrix, pool: Threads, reasons: tuple[str, ...]) -> Plan:
        columns, landmarks = feature_map.size(X.shape)
        return plan_embedded(
            self.method if isinstance(self.method, str) and self.method != "auto" else type(feature_map).__name__,
            X.shape[0],
            X.shape[1],
            self.n_clusters,
            columns=columns,
            landmarks=landmarks,
            dtype=X.dtype,
            memory_limit=parse_bytes(self.memory_limit),
            n_jobs=pool.n_jobs,
            memberships=self._membership_bytes(X, exact=False),
            reading=reading_bytes(X, precomputed=self._is_precomputed),
            reasons=reasons,
        )

    def _membership_bytes(self, X: Matrix, *, exact: bool) -> int:
        """What the rule keeps of every point and cluster: nothing but labels, for the hard one."""
        return 0

    def _reporter(self, progress: Progress) -> Reporter:
        def report(run: int, number: int, record: Iteration) -> bool:
            if self.verbose > 1 or (self.verbose == 1 and record.moved == 0):
                print(
                    f"run {run + 1}, iteration {number}: objective {record.objective:.6g}, {record.moved} moved, "
                    f"{record.seconds:.3f} s"
                )
            return progress.iteration(run, number, self.max_iter)

        return report

    def _set_fitted(self, found: Fitted) -> None:
        self._model = found.model
        self.__dict__.pop("_certificate", None)
        self.labels_ = found.labels
        self.inertia_ = found.objective
        self.n_iter_ = len(found.history)
        self.history_ = found.history
        self.plan_ = found.plan
        self.kernel_ = found.kernel
        self.gamma_ = getattr(found.kernel, "gamma", None)
        self._n_features_out = self.n_clusters
        for name, value in (
            ("medoid_indices_", found.medoids),
            ("feature_map_", found.feature_map),
            ("cluster_centers_", found.centers),
        ):
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)
        self._warn_about(found)
        lost = found.spread / found.resolution if found.resolution > 0 else 1.0
        if _NOT_COPIES < lost < 1:
            warn_user(
                f"The points are about as far from their centres (squared distance {found.spread:.2g} on average) as "
                f"kernel values of their size are rounded ({found.resolution:.2g}). Give float64, or centre the data.",
                KernelPrecisionWarning,
            )

    def _warn_about(self, found: Fitted) -> None:
        if found.filled < self.n_clusters:
            warn_user(
                f"Found {found.filled} distinct clusters, fewer than n_clusters={self.n_clusters}: the data have too "
                "few distinct points. Use fewer clusters.",
                ConvergenceWarning,
            )
        elif not (found.converged or found.stopped):
            indefinite = found.kernel is not None and found.kernel.positive_semidefinite is False
            warn_user(
                f"Kernel k-means did not converge in max_iter={self.max_iter} iterations (the last one moved "
                f"{found.history[-1].moved} points). Raise max_iter or tol"
                + ("; an indefinite kernel such as this one may never settle." if indefinite else "."),
                ConvergenceWarning,
            )

    def fit_predict(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Labels:
        """Cluster the rows of `X` and return `labels_`, shape (n_samples,)."""
        return self.fit(X, sample_weight=sample_weight).labels_

    # ---- new points ----------------------------------------------------------------------------------------------

    def _new(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        return self._validate(X, reset=False)

    def _need_distances(self) -> None:
        if not self._model.knows_distances:
            raise ValueError(
                "distances need k(x, x) of the new points, which kernel='precomputed' does not give; predict works"
            )

    def predict(self, X: ArrayLike) -> Labels:
        """Nearest centre of each row of `X`.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, n_features)
            For ``kernel="precomputed"``: kernel values between the new and the training points, (n, n_samples).

        Returns
        -------
        labels : array of shape (n,)
        """
        data = self._new(X)
        with Threads(self.n_jobs) as pool:
            return np.concatenate([self._model.nearest(rows, pool)[0] for rows in in_memory(data)])

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Distances in feature space (not squared) from each row of `X` to the centres, shape (n, n_clusters).

        Infinite to a cluster that is empty. With ``metric="l1"``, the square roots of l1 distances between coordinates.
        Not for ``kernel="precomputed"``, where the new points' own k(x, x) are unknown.
        """
        data = self._new(X)
        self._need_distances()
        with Threads(self.n_jobs) as pool:
            distances = np.sqrt(np.concatenate([self._model.distances(rows, pool) for rows in in_memory(data)]))
        return np.asarray(distances, dtype=data.dtype)

    def fit_transform(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.floating]:
        """Cluster the rows of `X` and return their distances to the centres, shape (n_samples, n_clusters)."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the weighted sum of squared (or l1) distances of the rows of `X` to their nearest centres."""
        data = self._new(X)
        self._need_distances()
        weight = check_weights(sample_weight, data.shape[0])
        with Threads(self.n_jobs) as pool:
            return -float(weight @ np.concatenate([self._model.nearest(rows, pool)[1] for rows in in_memory(data)]))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there are centres: a fit that was refused leaves none."""
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
