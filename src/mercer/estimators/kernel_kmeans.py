"""Kernel k-means as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.engine.memory import parse_bytes
from mercer.engine.threads import Threads
from mercer.estimators import checks
from mercer.estimators.embedded import METHODS, fit_embedded, fit_more, metric_code, named_map, prepared_map
from mercer.estimators.exact import fit_exact
from mercer.estimators.settings import Data, Fitted, Reporter, Settings
from mercer.features import FeatureMap
from mercer.kernels import Kernel, Precomputed, make_kernel
from mercer.planner import Plan, plan_embedded, plan_exact, prefers_exact
from mercer.solvers import Iteration
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.embedded import EmbeddedModel
from mercer.solvers.space import Labels
from mercer.sources import Matrix, check_weights, content_hash

_METHODS = ("auto", "exact", *METHODS)
_INITS = ("k-means++", "random")


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel k-means: k-means in the feature space of a kernel.

    Finds clusters that k-means cannot separate, by minimising the weighted sum of squared distances
    ``|phi(x_i) - v_c|^2`` between points and the means of their clusters in the feature space.

    Parameters
    ----------
    n_clusters : int, default=8
    kernel : str, kernel object or callable, default="rbf"
        "rbf" exp(-gamma |x-y|^2), "laplacian", "polynomial" (gamma x.y + coef0)^degree, "sigmoid" tanh(gamma x.y +
        coef0), "linear", "cosine", "precomputed" (X is then the kernel matrix), an object of `mercer.kernels`, or a
        function of two blocks of rows that returns the matrix between them.
    gamma : float or {"auto", "scale", "median"}, default="auto"
        "scale" is 1 / (n_features var(X)); "median" is one over the median squared distance (l1 distance for the
        laplacian); "auto" is "median" for rbf and laplacian and "scale" for polynomial and sigmoid. `gamma_` says
        which number it was.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1
        Of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        Keyword arguments for a callable kernel.
    method : str or feature map, default="auto"
        "exact" works with the kernel matrix itself. The others embed the rows first: "nystroem" (landmarks, cut to
        three times as many coordinates as clusters), "fourier" (rbf, laplacian), "taylor" (rbf), "sketch" (one pass
        over the kernel matrix), "apnc" (for the nearest centroid in l1), or an object of `mercer.features`, whose
        parameters then nest (``method__rank``). "auto" is "exact" up to 20,000 rows if their kernel matrix fits, else
        "nystroem".
    n_components : int, optional
        Landmarks for "nystroem" (300 or 20 per cluster) and "apnc" (300), random features for "fourier" (1000), rank
        for "sketch" (2 per cluster). Not for the other methods.
    storage : {"auto", "memory", "recompute"}, default="auto"
        Where the exact method has its kernel matrix. "memory" keeps half of it (it is symmetric); "recompute" evaluates
        it whenever needed; "auto" takes the first that fits. Results are the same. `plan_` says what was chosen.
    metric : {"auto", "l2", "l1"}, default="auto"
        Nearest centre by which distance between coordinates: l1 for "apnc", l2 for all else. The exact method has l2
        only.
    init : {"k-means++", "random"} or array, default="k-means++"
        First partition: greedy k-means++ in the feature space; random memberships; an integer array of n_samples
        labels; or an array (n_clusters, n_features) of points whose images are the first centres.
    n_init : int or "auto", default="auto"
        Runs from different starts, the best of which is kept. "auto" with "k-means++" makes 16 runs where they are
        cheapest, in a few coordinates of a sample of the rows, scores them by the exact objective there, and goes on
        from the best (for up to 512 rows and the exact method, 5 runs in full). It is 10 for "random" and 1 for an
        array (for which any number means 1).
    max_iter : int, default=300
        Iterations of one run.
    tol : float, default=1e-6
        A run ends when an iteration lowers the objective by no more than this share of it. With 0 it goes on until no
        point moves.
    memory_limit : int or str, optional
        Bytes (or for example "2GB") that `fit` may allocate beyond its input. A fit that cannot keep to it raises
        MemoryError before it starts.
    n_jobs : int, optional
        Threads; None and -1 are all cores. Results are the same bits for any number.
    random_state : int, RandomState or None
        Draws depend on the content of the rows, not on their order.
    verbose : int, default=0
        1 prints a line for each run, 2 also for each iteration.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    inertia_ : float
        Objective of `labels_`, in float64: the kernel objective for "exact"; for a map the same with centres held in
        its span, which is no less.
    n_iter_ : int
        Iterations of the best run.
    history_ : tuple of Iteration
        Objective, points moved and seconds of each iteration of the best run.
    medoid_indices_ : array of shape (n_clusters,)
        The point of each cluster that is nearest to its centre; -1 for an empty cluster. Not after later batches of
        `partial_fit`.
    gamma_ : float or None
        gamma in use; None for a kernel that has none.
    kernel_ : Kernel
        The kernel object in use.
    feature_map_ : FeatureMap
        The fitted map of an approximate method.
    cluster_centers_ : array of shape (n_clusters, n_coordinates)
        Centres in its coordinates.
    certificate_ : Certificate
        Objective, a lower bound on that of any partition, and their ratio; or why no bound is valid. Computed when
        first asked for, from 2000 landmarks.
    plan_ : Plan
        How the fit was carried out, and why; ``print(model.plan_)``.
    n_samples_seen_ : int
        Rows of the fit, or of all batches.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        If X has string column names.

    Notes
    -----
    Time: n^2 / 2 kernel values once, then for each iteration the rows of the points that moved. Memory: n^2 / 2 values
    for "memory", O(n n_clusters) for "recompute".

    References
    ----------
    R. Zhang, A. Rudnicky, "A large scale clustering scheme for kernel k-means", ICPR 2002.

    Examples
    --------
    >>> from mercer import KernelKMeans
    >>> from mercer.datasets import make_rings
    >>> X, y = make_rings(500, noise=0.03, factor=0.3, random_state=0)
    >>> model = KernelKMeans(2, gamma=3.0, random_state=0).fit(X)
    >>> model.labels_.shape, model.predict(X[:3]).shape
    ((500,), (3,))
    """

    labels_: Labels

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        method: str | FeatureMap = "auto",
        n_components: int | None = None,
        storage: str = "auto",
        metric: str = "auto",
        init: str | ArrayLike = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.method = method
        self.n_components = n_components
        self.storage = storage
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting ------------------------------------------------------------------------------------------------

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
        with Threads(self.n_jobs) as pool:
            found = self._fit(data, weight, pool)
        self.n_samples_seen_ = data.shape[0]
        self._set_fitted(found)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with a batch of new rows of a stream, by an approximate method ("auto" is then "nystroem").

        The first batch is a fit like any other, unless there was one by a map before: it learns the map, so it should
        be a fair sample of what follows. Later batches are clustered with the rows before them held in their clusters.
        Afterwards `labels_` and `history_` are of this batch, `cluster_centers_` and `inertia_` of all rows so far.

        Time and memory are those of the batch.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self

        Examples
        --------
        >>> from mercer import KernelKMeans
        >>> from mercer.datasets import make_rings
        >>> X, _ = make_rings(3000, noise=0.03, factor=0.3, random_state=0)
        >>> model = KernelKMeans(2, gamma=3.0, random_state=0)
        >>> for batch in (X[:1000], X[1000:2000], X[2000:]):
        ...     model = model.partial_fit(batch)
        >>> model.n_samples_seen_
        3000
        """
        before = getattr(self, "_model", None)
        before = before if isinstance(before, EmbeddedModel) else None
        data = self._validate(X, reset=before is None)
        self._check_parameters()
        self._check_method_for_streams()
        weight = check_weights(sample_weight, data.shape[0])
        if before is None:
            checks.enough_rows(weight, self.n_clusters)
            with Threads(self.n_jobs) as pool:
                found = self._fit(data, weight, pool, in_batches=True)
            self.n_samples_seen_ = data.shape[0]
        else:
            found = self._fit_more(before, data, weight)
            self.n_samples_seen_ += data.shape[0]
            self.__dict__.pop("_training", None)
        self._set_fitted(found)
        return self

    def _fit_more(self, before: EmbeddedModel, X: Matrix, weight: NDArray[np.float64]) -> Fitted:
        if self.n_clusters != before.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters}, but the rows before were put in {before.n_clusters}: start again by fit"
            )
        with Threads(self.n_jobs) as pool:
            plan = self._embedded_plan(before.feature_map, X, pool, ("a batch of a stream",))
            return fit_more(before, X, weight, self._settings(0), plan, pool)

    def _check_method_for_streams(self) -> None:
        if self._is_precomputed:
            raise ValueError("partial_fit needs rows: with kernel='precomputed' k(x, x) of later rows is unknown")
        if self.method == "exact":
            raise ValueError(
                "partial_fit goes on in the coordinates of a feature map, which the exact method does not have: "
                "use method='nystroem' or another approximate one"
            )

    def _validate(self, X: ArrayLike, *, reset: bool) -> Matrix:
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
        )

    def _check_parameters(self) -> None:
        checks.integer("n_clusters", self.n_clusters, 1)
        if not isinstance(self.method, FeatureMap):
            checks.choice("method", self.method, _METHODS)
        checks.integer("max_iter", self.max_iter, 1)
        checks.number("tol", self.tol, 0.0)
        checks.integer("verbose", int(self.verbose), 0)
        if self.n_init != "auto":
            checks.integer("n_init", self.n_init, 1)
        if self.n_components is not None:
            checks.integer("n_components", self.n_components, 1)
        if isinstance(self.init, str):
            checks.choice("init", self.init, _INITS)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _fit(self, X: Matrix, weight: NDArray[np.float64], pool: Threads, *, in_batches: bool = False) -> Fitted:
        """Plan, then call the method's function."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._training = (X, weight, seed)
        feature_map, reasons = self._feature_map(X, seed, in_batches)
        if feature_map is None:
            plan = self._exact_plan(X, pool, reasons)
            checks.choice("metric", self.metric, ("auto", "l2"))
            return fit_exact(self._data(X, weight), self._settings(seed), plan, pool)
        metric = metric_code(self.metric, feature_map)
        plan = self._embedded_plan(feature_map, X, pool, reasons)
        data = self._data(X, weight, feature_map)
        return fit_embedded(data, self._settings(seed), plan, feature_map, metric, pool)

    def _feature_map(self, X: Matrix, seed: int, in_batches: bool = False) -> tuple[FeatureMap | None, tuple[str, ...]]:
        """Return the map of an approximate method, None for the exact one, and why."""
        if isinstance(self.method, FeatureMap):
            return prepared_map(self.method, seed, self.n_clusters), ()
        name, reasons = self.method, tuple[str, ...]()
        if name == "auto" and in_batches:
            name, reasons = "nystroem", ("approximate: more rows are to come",)
        elif name == "auto":
            exact, reason = prefers_exact(X.shape[0], X.dtype.itemsize, parse_bytes(self.memory_limit))
            exact = exact or self._is_precomputed or self.storage != "auto"
            name, reasons = "exact" if exact else "nystroem", (reason,)
        if name == "exact":
            return None, reasons
        named = named_map(name, self.n_components, self.n_clusters)
        return prepared_map(named, seed, self.n_clusters), reasons

    def _data(self, X: Matrix, weight: NDArray[np.float64], feature_map: FeatureMap | None = None) -> Data:
        """Rows with their hashes and the kernel: the map's own if it has one."""
        if feature_map is not None and feature_map.has_own_kernel:
            kernel = feature_map.own_kernel(X, weight)
        elif self._is_precomputed:
            kernel = Precomputed()
        else:
            kernel = make_kernel(
                self.kernel,
                X,
                gamma=self.gamma,
                degree=self.degree,
                coef0=self.coef0,
                kernel_params=self.kernel_params,
                sample_weight=weight,
            )
        given = isinstance(kernel, Precomputed)
        return Data(X, weight, np.arange(X.shape[0], dtype=np.uint64) if given else content_hash(X), kernel)

    def _settings(self, seed: int) -> Settings:
        return Settings(
            n_clusters=self.n_clusters,
            init=self.init,
            n_init=None if self.n_init == "auto" else int(self.n_init),
            max_iter=self.max_iter,
            tol=self.tol,
            memory_limit=parse_bytes(self.memory_limit),
            seed=seed,
            report=self._reporter(),
        )

    def _exact_plan(self, X: Matrix, pool: Threads, reasons: tuple[str, ...]) -> Plan:
        return plan_exact(
            X.shape[0],
            X.shape[1],
            self.n_clusters,
            dtype=X.dtype,
            storage=self.storage,
            precomputed=self._is_precomputed,
            memory_limit=parse_bytes(self.memory_limit),
            n_jobs=pool.n_jobs,
            reasons=reasons,
        )

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
            reasons=reasons,
        )

    def _reporter(self) -> Reporter:
        def report(run: int, number: int, record: Iteration) -> None:
            if self.verbose > 1 or (self.verbose == 1 and record.moved == 0):
                print(
                    f"run {run + 1}, iteration {number}: objective {record.objective:.6g}, {record.moved} moved, "
                    f"{record.seconds:.3f} s"
                )

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

    def _warn_about(self, found: Fitted) -> None:
        if found.filled < self.n_clusters:
            warnings.warn(
                f"Found {found.filled} distinct clusters, fewer than n_clusters={self.n_clusters}: the data have too "
                "few distinct points. Use fewer clusters.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not found.converged:
            indefinite = found.kernel is not None and found.kernel.positive_semidefinite is False
            warnings.warn(
                f"Kernel k-means did not converge in max_iter={self.max_iter} iterations (the last one moved "
                f"{found.history[-1].moved} points). Raise max_iter or tol"
                + ("; an indefinite kernel such as this one may never settle." if indefinite else "."),
                ConvergenceWarning,
                stacklevel=4,
            )

    def fit_predict(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Labels:
        """Cluster the rows of `X` and return `labels_`, shape (n_samples,)."""
        return self.fit(X, sample_weight=sample_weight).labels_

    @property
    def certificate_(self) -> Certificate:
        """How far `labels_` can be from the optimum: `objective`, `lower_bound`, `ratio`; computed when asked for."""
        check_is_fitted(self)
        if not hasattr(self, "_certificate"):
            self._certificate = self._certify()
        return self._certificate

    def _certify(self) -> Certificate:
        feature_map = getattr(self, "feature_map_", None)
        if isinstance(self.kernel_, Precomputed):
            return Certificate(
                self.inertia_, None, "whether the precomputed kernel is positive semidefinite is not known"
            )
        if feature_map is not None and not feature_map.bounds_kernel:
            name = type(feature_map).__name__
            return Certificate(
                self.inertia_, None, f"the objective in coordinates of {name} does not bound the kernel's"
            )
        if self.n_samples_seen_ > len(self.labels_):
            return Certificate(self.inertia_, None, "a bound needs all rows at once, and a stream has left them behind")
        if not hasattr(self, "_training"):
            raise AttributeError("certificate_ needs the training data, which a pickled model leaves behind: fit again")
        X, weight, seed = self._training
        with Threads(self.n_jobs) as pool:
            return certify(self.kernel_, X, weight, self.inertia_, self.n_clusters, seed, pool)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the reference to the training data."""
        return {name: value for name, value in super().__getstate__().items() if name != "_training"}

    # ---- new points ----------------------------------------------------------------------------------------------

    def _new(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        return self._validate(X, reset=False)

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
            return self._model.nearest(data, pool)[0]

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Distances in feature space (not squared) from each row of `X` to the centres, shape (n, n_clusters).

        Not for ``kernel="precomputed"``, where the new points' own k(x, x) are unknown.
        """
        data = self._new(X)
        if not self._model.knows_distances:
            raise ValueError(
                "distances need k(x, x) of the new points, which kernel='precomputed' does not give; predict works"
            )
        with Threads(self.n_jobs) as pool:
            distances = np.sqrt(self._model.distances(data, pool))
        return distances.astype(data.dtype, copy=False)

    def fit_transform(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.floating]:
        """Cluster the rows of `X` and return their distances to the centres, shape (n_samples, n_clusters)."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the weighted sum of squared distances of the rows of `X` to their nearest centres."""
        data = self._new(X)
        if not self._model.knows_distances:
            raise ValueError("a score needs k(x, x) of the new points, which kernel='precomputed' does not give")
        weight = check_weights(sample_weight, data.shape[0])
        with Threads(self.n_jobs) as pool:
            return -float(weight @ self._model.nearest(data, pool)[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
