"""Kernel k-means as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.engine.memory import parse_bytes
from mercer.engine.threads import Threads
from mercer.estimators import checks
from mercer.gram import Gram, MemoryGram, Moves, PrecomputedGram, RecomputedGram
from mercer.kernels import Kernel, KernelRows, make_kernel, warn_if_uninformative
from mercer.planner import Plan, plan_exact
from mercer.solvers import GramSpace, Iteration, Partition
from mercer.solvers.exact import ImplicitModel, best_partition, medoids, starts
from mercer.solvers.gram_space import ImplicitCenters
from mercer.solvers.space import Labels
from mercer.sources import Matrix, check_weights, content_hash

_METHODS = ("auto", "exact")
_INITS = ("k-means++", "random")
_RUNS = {"k-means++": 5, "random": 10}
_LOOKED_AT = 16  # kernel columns, to see whether the matrix says anything


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
    method : {"auto", "exact"}, default="auto"
        "exact" works with the kernel matrix itself.
    storage : {"auto", "memory", "recompute"}, default="auto"
        Where the exact method has its kernel matrix. "memory" keeps half of it (it is symmetric); "recompute" evaluates
        it whenever needed; "auto" takes the first that fits. Results are the same. `plan_` says what was chosen.
    init : {"k-means++", "random"} or array, default="k-means++"
        First partition: greedy k-means++ in the feature space; random memberships; an integer array of n_samples
        labels; or an array (n_clusters, n_features) of points whose images are the first centres.
    n_init : int or "auto", default="auto"
        Runs from different starts, the best of which is kept. "auto" is 5 for "k-means++", 10 for "random" and 1 for
        an array (for which any number means 1).
    max_iter : int, default=300
        Iterations of one run.
    tol : float, default=1e-4
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
        Kernel objective of `labels_`, in float64.
    n_iter_ : int
        Iterations of the best run.
    history_ : tuple of Iteration
        Objective, points moved and seconds of each iteration of the best run.
    medoid_indices_ : array of shape (n_clusters,)
        The point of each cluster that is nearest to its centre; -1 for an empty cluster.
    gamma_ : float or None
        gamma in use; None for a kernel that has none.
    kernel_ : Kernel or None
        The kernel object in use; None for "precomputed".
    plan_ : Plan
        How the fit was carried out, and why; ``print(model.plan_)``.
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
        method: str = "auto",
        storage: str = "auto",
        init: str | ArrayLike = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
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
        self.storage = storage
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
            plan = self._plan(data, pool)
            kernel, rows, gram = self._gram(data, weight, plan, pool)
            space = GramSpace(gram, weight, self.n_clusters, pool)
            first = self._first(data, kernel, rows, space)
            partition = best_partition(space, first, max_iter=self.max_iter, tol=self.tol, report=self._report())
            self.medoid_indices_ = medoids(space, partition)
        self._model = _model(kernel, rows, space, partition)
        self._set_fitted(kernel, plan, partition)
        self._warn_about(partition)
        return self

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
        checks.choice("method", self.method, _METHODS)
        checks.integer("max_iter", self.max_iter, 1)
        checks.number("tol", self.tol, 0.0)
        checks.integer("verbose", int(self.verbose), 0)
        if self.n_init != "auto":
            checks.integer("n_init", self.n_init, 1)
        if isinstance(self.init, str):
            checks.choice("init", self.init, _INITS)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _plan(self, X: Matrix, pool: Threads) -> Plan:
        return plan_exact(
            X.shape[0],
            X.shape[1],
            self.n_clusters,
            dtype=X.dtype,
            storage=self.storage,
            precomputed=self._is_precomputed,
            memory_limit=parse_bytes(self.memory_limit),
            n_jobs=pool.n_jobs,
        )

    def _gram(
        self, X: Matrix, weight: NDArray[np.float64], plan: Plan, pool: Threads
    ) -> tuple[Kernel | None, KernelRows | None, Gram]:
        """Kernel, prepared rows and kernel matrix (no kernel and no rows if the matrix is given)."""
        if self._is_precomputed:
            return None, None, PrecomputedGram(X, pool)
        kernel = make_kernel(
            self.kernel,
            X,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            sample_weight=weight,
        )
        rows = kernel.rows(X)
        gram: Gram = MemoryGram(kernel, rows, pool) if plan.storage == "memory" else RecomputedGram(kernel, rows)
        if gram.n > 1:
            sample = np.linspace(0, gram.n - 1, min(gram.n, _LOOKED_AT)).astype(np.intp)
            warn_if_uninformative(kernel, gram.columns(sample), gram.diagonal, sample, X)
        return kernel, rows, gram

    def _first(self, X: Matrix, kernel: Kernel | None, rows: KernelRows | None, space: GramSpace) -> Any:
        """Iterate over the first labels of the runs."""
        if not isinstance(self.init, str):
            return iter([self._given_start(kernel, rows, space)])
        runs = _RUNS[self.init] if self.n_init == "auto" else int(self.n_init)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=runs)
        keys = np.arange(space.n, dtype=np.uint64) if kernel is None else content_hash(X)
        return starts(space, self.init, runs, keys, seeds)

    def _given_start(self, kernel: Kernel | None, rows: KernelRows | None, space: GramSpace) -> Labels:
        init = np.asarray(self.init)
        if init.ndim == 1:
            return checks.first_labels(init, space.n, self.n_clusters)
        if kernel is None or rows is None:
            raise ValueError("points as init need a kernel to map them; with kernel='precomputed' give first labels")
        points = check_array(init, dtype=rows.dtype, input_name="init")
        if points.shape != (self.n_clusters, rows.d):
            raise ValueError(
                f"init has shape {points.shape}; expected (n_clusters, n_features) {(self.n_clusters, rows.d)}"
            )
        return _nearest_points(kernel, rows, points, space.pool)

    def _report(self) -> Callable[[int, int, Iteration], None]:
        def report(run: int, number: int, record: Iteration) -> None:
            if self.verbose > 1 or (self.verbose == 1 and record.moved == 0):
                print(
                    f"run {run + 1}, iteration {number}: objective {record.objective:.6g}, {record.moved} moved, "
                    f"{record.seconds:.3f} s"
                )

        return report

    def _set_fitted(self, kernel: Kernel | None, plan: Plan, partition: Partition[ImplicitCenters]) -> None:
        self.kernel_ = kernel
        self.gamma_ = getattr(kernel, "gamma", None)
        self.plan_ = plan
        self.labels_ = partition.labels
        self.inertia_ = partition.objective
        self.n_iter_ = len(partition.history)
        self.history_ = partition.history
        self._n_features_out = self.n_clusters

    def _warn_about(self, partition: Partition[ImplicitCenters]) -> None:
        found = int(np.count_nonzero(partition.centers.totals))
        if found < self.n_clusters:
            warnings.warn(
                f"Found {found} distinct clusters, fewer than n_clusters={self.n_clusters}: the data have too few "
                "distinct points. Use fewer clusters.",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif not partition.converged:
            warnings.warn(
                f"Kernel k-means did not converge in max_iter={self.max_iter} iterations (the last one moved "
                f"{partition.history[-1].moved} points). Raise max_iter or tol"
                + (
                    "; an indefinite kernel such as this one may never settle."
                    if self.kernel_ is not None and self.kernel_.positive_semidefinite is False
                    else "."
                ),
                ConvergenceWarning,
                stacklevel=3,
            )

    def fit_predict(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Labels:
        """Cluster the rows of `X` and return `labels_`, shape (n_samples,)."""
        return self.fit(X, sample_weight=sample_weight).labels_

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
            return self._model.nearest(self._model.prepare(data), pool)[0]

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Distances in feature space (not squared) from each row of `X` to the centres, shape (n, n_clusters).

        Not for ``kernel="precomputed"``, where the new points' own k(x, x) are unknown.
        """
        data = self._new(X)
        if self.kernel_ is None:
            raise ValueError(
                "distances need k(x, x) of the new points, which kernel='precomputed' does not give; predict works"
            )
        with Threads(self.n_jobs) as pool:
            distances = np.sqrt(self._model.distances(self._model.prepare(data), pool))
        return distances.astype(data.dtype, copy=False)

    def fit_transform(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.floating]:
        """Cluster the rows of `X` and return their distances to the centres, shape (n_samples, n_clusters)."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the weighted sum of squared distances of the rows of `X` to their nearest centres."""
        data = self._new(X)
        if self.kernel_ is None:
            raise ValueError("a score needs k(x, x) of the new points, which kernel='precomputed' does not give")
        weight = check_weights(sample_weight, data.shape[0])
        with Threads(self.n_jobs) as pool:
            return -float(weight @ self._model.nearest(self._model.prepare(data), pool)[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _model(
    kernel: Kernel | None, rows: KernelRows | None, space: GramSpace, partition: Partition[ImplicitCenters]
) -> ImplicitModel:
    """Centres of the final partition, to compare with new points."""
    members = Moves.between(None, partition.labels, space.weight)
    return ImplicitModel(kernel, rows, members, *partition.centers.affine(), space.resolution)


def _nearest_points(kernel: Kernel, rows: KernelRows, points: NDArray[Any], pool: Threads) -> Labels:
    """Labels by the nearest image of some points."""
    count = len(points)
    right = kernel.rows(points, like=rows)
    members = Moves.between(None, np.arange(count, dtype=np.int32), np.ones(count))
    model = ImplicitModel(kernel, right, members, np.ones(count), kernel.diagonal(right))
    return model.nearest(rows, pool)[0]
