"""Fuzzy kernel c-means."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.soft import SoftClusterer
from mercer.features import FeatureMap
from mercer.gram import Disk
from mercer.kernels import Kernel


class KernelFuzzyCMeans(SoftClusterer):
    """Fuzzy c-means in the feature space of a kernel: every point belongs to every cluster to a degree.

    Minimises ``sum_ic w_i u_ic^m |phi(x_i) - v_c|^2`` over memberships that add up to 1 for each point, and centres. On
    landmarks (``method="nystroem"``) it is akFCM.

    Parameters
    ----------
    n_clusters : int, default=8
    m : float, default=2.0
        Fuzzifier, above 1. Close to 1 memberships are nearly hard; the larger it is, the more alike they are, until the
        centres coincide, which a warning says.
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
    memberships_ : array of shape (n_samples, n_clusters)
        If they are kept.
    labels_ : array of shape (n_samples,)
        Cluster of largest membership.
    objective_ : float
    n_iter_ : int
    history_ : tuple
        Objective, largest change of a membership and seconds of each iteration.
    cluster_centers_ : array of shape (n_clusters, n_coordinates)
        Of an approximate method.
    medoid_indices_ : array of shape (n_clusters,)
        The point of each cluster that is nearest to its centre; -1 if the cluster is no point's largest.
    gamma_, kernel_, feature_map_, plan_, n_features_in_, feature_names_in_
        As in `KernelKMeans`.

    References
    ----------
    T. C. Havens, J. C. Bezdek, M. Palaniswami, "Soft clustering of large data in kernel-induced spaces", 2011. Its
    equations (6) and (7) are for distances, and those of (8) are squared: the exponent is 1 / (m - 1).

    Examples
    --------
    >>> from mercer import KernelFuzzyCMeans
    >>> from mercer.datasets import make_rings
    >>> X, y = make_rings(500, noise=0.03, factor=0.3, random_state=0)
    >>> model = KernelFuzzyCMeans(2, m=1.3, gamma=3.0, random_state=0).fit(X)
    >>> model.memberships_.shape, bool((abs(model.memberships_.sum(axis=1) - 1) < 1e-6).all())
    ((500, 2), True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        m: float = 2.0,
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
