"""Kernel k-means as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.engine.checkpoint import Checkpoint
from mercer.engine.threads import Threads
from mercer.estimators import checks
from mercer.estimators.base import KernelClusterer
from mercer.estimators.embedded import fit_more
from mercer.estimators.listening import fit_progress, with_callbacks
from mercer.estimators.settings import Data, Fitted
from mercer.features import FeatureMap
from mercer.gram import Disk
from mercer.kernels import Kernel, Precomputed
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.embedded import EmbeddedModel
from mercer.sources import Matrix, check_weights


class KernelKMeans(KernelClusterer):
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
    storage : {"auto", "memory", "disk", "recompute"} or Disk, default="auto"
        Where the exact method has its kernel matrix. "memory" keeps half of it (it is symmetric); "disk" has that half
        in temporary files; a :class:`mercer.Disk` names a folder, whose tiles later fits use again, or a smaller type;
        "recompute" evaluates it whenever needed; "auto" takes memory if it fits, else what is expected to be quicker,
        from a short measurement of the disk and the kernel. Results are the same. `plan_` says what was chosen and why.
    metric : {"auto", "l2", "l1"}, default="auto"
        Nearest centre by which distance between coordinates: l1 for "apnc", l2 for all else. The exact method has l2
        only.
    init : {"k-means++", "random", "points"} or array, default="k-means++"
        First partition: greedy k-means++ in the feature space; random memberships; the nearest of n_clusters rows
        drawn at random; an integer array of n_samples labels; or an array (n_clusters, n_features) of points whose
        images are the first centres.
    n_init : int or "auto", default="auto"
        Runs from different starts, the best of which is kept. "auto" with "k-means++" searches where runs are
        cheapest, in a few coordinates of a sample of the rows: several runs, exchanges of centres from the best of
        them, a choice by the exact objective; and goes on from there (for up to 512 rows and the exact method, 5 runs
        in full). It is 10 for "random" and "points" and 1 for an array (for which any number means 1).
    max_iter : int, default=300
        Iterations of one run.
    tol : float, default=1e-6
        A run ends when an iteration lowers the objective by no more than this share of it. With 0 it goes on until no
        point moves.
    memory_limit : int or str, optional
        Bytes (or for example "2GB") that `fit` may allocate beyond its input. A fit that cannot keep to it raises
        MemoryError before it starts.
    checkpoint : path, optional
        Folder, made if need be, where a fit keeps its state: one that was interrupted goes on from there when it is
        called again with the same data and parameters (but for n_jobs, memory_limit, storage and verbose), to the same
        result; float16 tiles are another fit. Removed when the fit has ended. Not used by partial_fit.
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
    for "memory", O(n n_clusters) for "disk" and "recompute".

    References
    ----------
    S. Lattanzi, C. Sohler, "A better k-means++ algorithm via local search", ICML 2019, for the exchanges.

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
        storage: str | Disk = "auto",
        metric: str = "auto",
        init: str | ArrayLike = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        memory_limit: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
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
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- streams ------------------------------------------------------------------------------------------------

    @with_callbacks
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
            with fit_progress(self, self.verbose) as progress, Threads(self.n_jobs, progress) as pool:
                found = self._fit(data, weight, pool, Checkpoint(), in_batches=True)
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
            return fit_more(before, X, weight, self._settings(0, pool.progress, Checkpoint()), plan, pool)

    def _check_method_for_streams(self) -> None:
        if self._is_precomputed:
            raise ValueError("partial_fit needs rows: with kernel='precomputed' k(x, x) of later rows is unknown")
        if self.method == "exact":
            raise ValueError(
                "partial_fit goes on in the coordinates of a feature map, which the exact method does not have: "
                "use method='nystroem' or another approximate one"
            )

    # ---- quality -------------------------------------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """How far `labels_` can be from the optimum: `objective`, `lower_bound`, `ratio`; computed when asked for."""
        check_is_fitted(self)
        if not hasattr(self, "_certificate"):
            self._certificate = self._certify()
        return self._certificate

    def _keep_training(self, data: Data, seed: int) -> None:
        self._training = (data, seed)

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
        data, seed = self._training
        with Threads(self.n_jobs) as pool:
            return certify(self.kernel_, data, self.inertia_, self.n_clusters, seed, pool)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the reference to the training data."""
        return {name: value for name, value in super().__getstate__().items() if name != "_training"}
