"""Possibilistic kernel c-means."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.engine.warn import warn_user
from mercer.estimators import checks
from mercer.estimators.settings import Fitted
from mercer.estimators.soft import Soft, SoftClusterer, SoftClusteringWarning
from mercer.features import FeatureMap
from mercer.gram import Disk
from mercer.kernels import Kernel

_TYPICAL = 0.5
_LARGEST = 1e9


class KernelPossibilisticCMeans(SoftClusterer):
    """Possibilistic c-means in the feature space of a kernel: how typical every point is of every cluster.

    Typicalities do not add up to 1: a point may be typical of no cluster, as outliers are, or of several. Minimises
    ``sum_ic w_i u_ic^m |phi(x_i) - v_c|^2 + sum_c nu_c sum_i w_i (1 - u_ic)^m``, from the end of a fuzzy run, which
    also gives the widths ``nu_c = theta sum_i w_i u_ic^m d_ic / sum_i w_i u_ic^m``. On landmarks
    (``method="nystroem"``) it is akPCM.

    Parameters
    ----------
    n_clusters : int, default=8
    m : float, default=2.0
        Fuzzifier, above 1, of both runs.
    theta : float, default=1.0
        Scale of the widths: a typicality is one half at a squared distance of nu. Nothing keeps two centres apart, so
        with large widths they coincide, which a warning says.
    kernel, gamma, degree, coef0, kernel_params, method, n_components, storage, memory_limit, checkpoint
        As in `KernelKMeans`.
    n_jobs, random_state
        As in `KernelKMeans`; not ``method="apnc"``, whose coordinates give no squared distances.
    metric : {"auto", "l2"}, default="auto"
    init : {"k-means++", "random", "points"} or array, default="k-means++"
        First centres: means of the partition that `KernelKMeans` starts from; means of random memberships; n_clusters
        rows drawn at random (the paper's); means of the clusters of given labels, shape (n_samples,); or the images of
        given points, shape (n_clusters, n_features).
    n_init : int or "auto", default="auto"
        Runs from different starts, as in `KernelKMeans`; the lowest objective is kept.
    max_iter : int, default=300
    tol : float, default=1e-3
        A run ends when no membership changes by more.
    keep_memberships : bool, default=True
        Whether all n_samples x n_clusters are kept. Without them an approximate fit takes no memory beyond the
        coordinates, but twice as long: the change is then told by computing those of the step before once more.
    verbose : int, default=0
        1 prints a line for each run, 2 also for each iteration.

    Attributes
    ----------
    typicalities_ : array of shape (n_samples, n_clusters)
        If they are kept; also as `memberships_`.
    nu_ : array of shape (n_clusters,)
        Widths: squared distances in feature space.
    labels_ : array of shape (n_samples,)
        Cluster of largest typicality.
    objective_ : float
    n_iter_ : int
    history_ : tuple
        Objective, largest change of a typicality and seconds of each iteration.
    cluster_centers_ : array of shape (n_clusters, n_coordinates)
        Of an approximate method.
    medoid_indices_ : array of shape (n_clusters,)
        The point of each cluster that is nearest to its centre; -1 if the cluster is no point's largest.
    gamma_, kernel_, feature_map_, plan_, n_features_in_, feature_names_in_
        As in `KernelKMeans`.

    References
    ----------
    R. Krishnapuram, J. M. Keller, "A possibilistic approach to clustering", IEEE Transactions on Fuzzy Systems, 1993.

    T. C. Havens, J. C. Bezdek, M. Palaniswami, "Soft clustering of large data in kernel-induced spaces", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPossibilisticCMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 0.1, (50, 2)), rng.normal(3, 0.1, (50, 2)), [[1.5, 9.0]]])
    >>> model = KernelPossibilisticCMeans(2, gamma=0.5, random_state=0).fit(X)
    >>> bool(model.typicalities_[-1].max() < 0.1), bool(model.typicalities_[:-1].max(axis=1).min() > 0.1)
    (True, True)
    """

    nu_: NDArray[np.float64]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        m: float = 2.0,
        theta: float = 1.0,
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
        tol: float = 1e-3,
        keep_memberships: bool = True,
        memory_limit: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.m = m
        self.theta = theta
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
        self.keep_memberships = keep_memberships
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _theta(self) -> float:  # type: ignore[override]
        return float(self.theta)

    @property
    def typicalities_(self) -> NDArray[np.floating]:
        """Typicality of every row in every cluster, shape (n_samples, n_clusters)."""
        typicalities: NDArray[np.floating] = self.memberships_
        return typicalities

    def _check_parameters(self) -> None:
        super()._check_parameters()
        theta = checks.number("theta", self.theta, 0.0)
        if theta == 0:
            raise ValueError("theta must be above 0: with widths of zero a point is typical of its own place only")
        if theta > _LARGEST:
            raise ValueError(f"theta must be at most {_LARGEST:g}: all points are typical of all clusters")

    def _set_fitted(self, found: Fitted) -> None:
        assert found.soft is not None
        self.nu_ = found.soft.rule.nu
        super()._set_fitted(found)

    def _warn_about_peaks(self, soft: Soft) -> None:
        bare = np.flatnonzero(soft.peaks < _TYPICAL)
        if len(bare):
            warn_user(
                f"No point is typical of cluster {', '.join(map(str, bare))} (the largest typicality is "
                f"{soft.peaks[bare].max():.2g}): its centre lies between the points. Try a larger theta, another "
                "gamma, or fewer clusters.",
                SoftClusteringWarning,
            )
