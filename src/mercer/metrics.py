"""How well a clustering agrees with known classes, what it costs, and how well features stand for a kernel.

Labels are only names: any integers or strings will do, and -1 is a label like the others. The scores that
take `sample_weight` treat a weight as a repetition: weight 2 counts a sample twice, weight 0 leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.special import entr, rel_entr
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from mercer.engine.threads import Threads
from mercer.gram import PrecomputedGram, RecomputedGram, TiledGram
from mercer.kernels import Kernel, KernelRows, Linear, make_kernel
from mercer.solvers import GramSpace, partition_objective
from mercer.solvers.objective import total_weights
from mercer.solvers.rules import Rule
from mercer.sources import Matrix

__all__ = [
    "adjusted_rand",
    "clustering_accuracy",
    "kernel_approximation_error",
    "kernel_objective",
    "normalized_mutual_info",
    "partition_coefficient",
    "partition_entropy",
    "purity",
    "xie_beni",
]

# ---- agreement with known classes --------------------------------------------------------------------------


def normalized_mutual_info(
    labels_true: ArrayLike, labels_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mutual information over the geometric mean of the two entropies.

    This is the form the kernel clustering papers report. scikit-learn's default divides by the arithmetic
    mean, which is never smaller, so its scores are never larger.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Cluster of each sample.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between 0 (independent) and 1 (the same partition).

    Examples
    --------
    >>> from mercer.metrics import normalized_mutual_info
    >>> round(normalized_mutual_info([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8165
    """
    table = _contingency(labels_true, labels_pred, sample_weight)
    if min(table.shape) == 1:
        return float(table.shape == (1, 1))
    joint = table / table.sum()
    of_true, of_pred = joint.sum(axis=1), joint.sum(axis=0)
    rows, columns = joint.coords
    information = rel_entr(joint.data, of_true[rows] * of_pred[columns]).sum()
    return float(np.clip(information / np.sqrt(entr(of_true).sum() * entr(of_pred).sum()), 0.0, 1.0))


def adjusted_rand(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of pairs of samples on which two partitions agree, corrected for chance.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    float
        1 for the same partition, about 0 for independent ones, and at least -0.5.

    Examples
    --------
    >>> from mercer.metrics import adjusted_rand
    >>> round(adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    true, pred = _labels(labels_true, "labels_true"), _labels(labels_pred, "labels_pred")
    check_consistent_length(true, pred)
    return float(adjusted_rand_score(_encoded(true), _encoded(pred)))


def purity(labels_true: ArrayLike, labels_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Share of the samples that belong to the most frequent class of their cluster.

    Purity never falls when a cluster is split, so compare it only between clusterings of equal size.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Cluster of each sample.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Between the share of the largest class and 1.

    Examples
    --------
    >>> from mercer.metrics import purity
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = _contingency(labels_true, labels_pred, sample_weight)
    return min(1.0, float(table.max(axis=0).sum() / table.sum()))


def clustering_accuracy(
    labels_true: ArrayLike, labels_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the samples put right by the best one-to-one naming of clusters by classes.

    The matching is optimal (Hungarian method) and costs O(max(n_classes, n_clusters)^3) after one pass over
    the labels. Where there are more clusters than classes, the samples of those left over count as wrong.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Known classes.
    labels_pred : array-like of shape (n_samples,)
        Cluster of each sample.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Above 0, and 1 only for the same partition.

    Examples
    --------
    >>> from mercer.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    table = _contingency(labels_true, labels_pred, sample_weight).toarray()
    classes, clusters = linear_sum_assignment(table, maximize=True)
    return min(1.0, float(table[classes, clusters].sum() / table.sum()))


# ---- in the feature space of a kernel ----------------------------------------------------------------------


def kernel_objective(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    kernel: str | Kernel | Callable[..., Any] = "rbf",
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float:
    """Sum of squared distances in feature space between points and the means of their clusters.

    It is what kernel k-means minimises, for labels from anywhere: ``sum_i w_i k(x_i, x_i) - sum_c (1 / w_c)
    sum_{i,j in c} w_i w_j k(x_i, x_j)``. Values of different kernels cannot be compared.

    Time: half the kernel values within the clusters, n^2 / (2 n_clusters) if these are of one size. Memory: the rows of
    the largest cluster, and a tile of the kernel matrix per thread.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Or the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.
    kernel, gamma, degree, coef0, kernel_params
        As `KernelKMeans` takes them. gamma="auto" is chosen from `X`.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    n_jobs : int, optional
        Threads; None and -1 are all cores. The result is the same for any number.

    Returns
    -------
    float

    Examples
    --------
    >>> from mercer.metrics import kernel_objective
    >>> kernel_objective([[0.0], [2.0], [7.0]], [0, 0, 1], kernel="linear")
    2.0
    """
    X = _rows(X, "X")
    named = _labels(labels, "labels")
    check_consistent_length(X, named)
    weight = _weights(sample_weight, len(named))
    parameters = {"gamma": gamma, "degree": degree, "coef0": coef0, "kernel_params": kernel_params}
    clusters = _encoded(named).astype(np.int32)
    with Threads(n_jobs) as pool:
        if _is_precomputed(kernel):
            space = GramSpace(PrecomputedGram(X, pool), weight, int(clusters.max()) + 1, pool)
            return space.objective(space.centers(clusters))
        chosen = make_kernel(kernel, X, sample_weight=weight, **parameters)  # type: ignore[arg-type]
        rows = chosen.rows(X)
        members = [np.flatnonzero(clusters == c) for c in range(int(clusters.max()) + 1)]
        squared = np.array([_squared_sum(chosen, rows.take(few), weight[few], pool) for few in members])
        totals = total_weights(clusters, weight, len(members))
        return partition_objective(float(weight @ chosen.diagonal(rows)), squared, totals)


def _squared_sum(kernel: Kernel, rows: KernelRows, weight: NDArray[np.float64], pool: Threads) -> float:
    """|sum_i w_i phi(x_i)|^2: only the kernel values within one cluster are needed."""
    one = GramSpace(RecomputedGram(kernel, rows), weight, 1, pool)
    return float(one.centers(np.zeros(rows.n, dtype=np.int32)).squared_sums[0])


def kernel_approximation_error(
    X: ArrayLike,
    features: ArrayLike,
    *,
    kernel: str | Kernel | Callable[..., Any] = "rbf",
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> float:
    """Relative error ``|K - Y Y'|_F / |K|_F`` of features `Y` that stand for the kernel matrix `K`.

    Both matrices are evaluated tile by tile in the precision of the input, and the squares are summed in float64;
    neither is held whole. Time: n^2 / 2 kernel values and inner products of features. Memory: a few tiles per thread.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Or the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
    features : array or sparse matrix of shape (n_samples, n_components)
        Coordinates of the same samples.
    kernel, gamma, degree, coef0, kernel_params
        As `KernelKMeans` takes them. gamma="auto" is chosen from `X`.
    n_jobs : int, optional
        Threads; None and -1 are all cores. The result is the same for any number.

    Returns
    -------
    float
        0 for features that reproduce the kernel, 1 for features that are all zero.

    Examples
    --------
    >>> from mercer.metrics import kernel_approximation_error
    >>> round(kernel_approximation_error([[3.0, 1.0], [4.0, -1.0]], [[3.0], [4.0]], kernel="linear"), 2)
    0.08
    """
    X, Y = _rows(X, "X"), _rows(features, "features")
    check_consistent_length(X, Y)
    parameters = {"gamma": gamma, "degree": degree, "coef0": coef0, "kernel_params": kernel_params}
    with Threads(n_jobs) as pool:
        exact = _gram(X, kernel, pool, **parameters)
        products = RecomputedGram(Linear(), Linear().rows(Y))

        def squares(pair: tuple[int, int]) -> tuple[float, float]:
            tile = exact.tile(*pair).astype(np.float64)
            gap = tile - products.tile(*pair)
            copies = 1 if pair[0] == pair[1] else 2
            return copies * float(np.einsum("ij,ij->", gap, gap)), copies * float(np.einsum("ij,ij->", tile, tile))

        missed, total = np.sum(pool.map(squares, exact.pairs), axis=0)
    if total == 0:
        return 0.0 if missed == 0 else float("inf")
    return float(np.sqrt(missed / total))


# ---- validity of soft partitions ---------------------------------------------------------------------------


def partition_coefficient(memberships: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Bezdek's partition coefficient: the mean over the samples of sum_c u_c^2.

    1 for a hard partition, 1 / n_clusters if all memberships are equal.

    Parameters
    ----------
    memberships : array-like of shape (n_samples, n_clusters)
    sample_weight : array-like of shape (n_samples,), optional

    Examples
    --------
    >>> from mercer.metrics import partition_coefficient
    >>> partition_coefficient([[1.0, 0.0], [0.5, 0.5]])
    0.75
    """
    U, weight = _memberships(memberships, sample_weight)
    return float(weight @ (U * U).sum(axis=1) / weight.sum())


def partition_entropy(memberships: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Bezdek's partition entropy: the mean over the samples of -sum_c u_c log u_c, in nats.

    0 for a hard partition, log n_clusters if all memberships are equal.

    Parameters
    ----------
    memberships : array-like of shape (n_samples, n_clusters)
    sample_weight : array-like of shape (n_samples,), optional

    Examples
    --------
    >>> from mercer.metrics import partition_entropy
    >>> round(partition_entropy([[1.0, 0.0], [0.5, 0.5]]), 4)
    0.3466
    """
    U, weight = _memberships(memberships, sample_weight)
    return float(weight @ entr(U).sum(axis=1) / weight.sum())


def xie_beni(
    X: ArrayLike,
    memberships: ArrayLike,
    *,
    m: float = 2.0,
    kernel: str | Kernel | Callable[..., Any] = "rbf",
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float:
    """Xie-Beni index in the feature space of a kernel: compactness over separation; lower is better.

    ``sum_ic w_i u_ic^m |phi(x_i) - v_c|^2 / (w min_{a != b} |v_a - v_b|^2)`` with the centres that the memberships
    give. Infinite if two centres coincide.

    Time: n^2 n_clusters. Memory: O(n n_clusters), and a tile of the kernel matrix per thread.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Or the kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
    memberships : array-like of shape (n_samples, n_clusters)
    m : float, default=2.0
        Fuzzifier.
    kernel, gamma, degree, coef0, kernel_params
        As `KernelKMeans` takes them. gamma="auto" is chosen from `X`.
    sample_weight : array-like of shape (n_samples,), optional
    n_jobs : int, optional

    Examples
    --------
    >>> from mercer.metrics import xie_beni
    >>> U = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    >>> round(xie_beni([[0.0], [2.0], [10.0], [12.0]], U, kernel="linear"), 4)
    0.01
    """
    X = _rows(X, "X")
    U, weight = _memberships(memberships, sample_weight)
    check_consistent_length(X, U)
    U = U[:, (U[weight > 0] > 0).any(axis=0)]  # a cluster without members has no centre
    if U.shape[1] < 2:
        raise ValueError("the Xie-Beni index compares centres: at least two clusters are needed")
    rule, parameters = (
        Rule(float(m)),
        {"gamma": gamma, "degree": degree, "coef0": coef0, "kernel_params": kernel_params},
    )
    with Threads(n_jobs) as pool:
        space = GramSpace(_gram(X, kernel, pool, sample_weight=weight, **parameters), weight, U.shape[1], pool)
        centers = space.weighted_centers(np.ascontiguousarray(rule.weights(U, weight).T))
        between = space.center_distances(centers)
    assert centers.given is not None
    constant = float((centers.given @ space.gram.diagonal).sum())
    cost = partition_objective(constant, centers.squared_sums, centers.totals)
    separation = float(between[~np.eye(len(between), dtype=bool)].min())
    return cost / (float(weight.sum()) * separation) if separation > space.resolution else float("inf")


def _gram(X: Matrix, kernel: Any, pool: Threads, **parameters: Any) -> TiledGram:
    """Kernel matrix of the rows of `X`, in tiles that are not kept."""
    if _is_precomputed(kernel):
        return PrecomputedGram(X, pool)
    chosen = make_kernel(kernel, X, **parameters)
    return RecomputedGram(chosen, chosen.rows(X))


def _is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "precomputed"


# ---- arguments ---------------------------------------------------------------------------------------------


def _rows(X: ArrayLike, name: str) -> Matrix:
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", input_name=name)


def _contingency(labels_true: ArrayLike, labels_pred: ArrayLike, sample_weight: ArrayLike | None) -> Any:
    """Weight in each class and cluster: a COO array of shape (n_classes, n_clusters)."""
    true, pred = _labels(labels_true, "labels_true"), _labels(labels_pred, "labels_pred")
    check_consistent_length(true, pred)
    weight = _weights(sample_weight, len(true))
    # A sample of weight zero must not leave an empty class or cluster behind.
    kept = weight > 0
    true, pred, weight = _encoded(true[kept]), _encoded(pred[kept]), weight[kept]
    table = coo_array((weight, (true, pred)), shape=(true.max() + 1, pred.max() + 1))
    table.sum_duplicates()
    return table


def _labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    """One-dimensional, not empty, no NaN."""
    checked: NDArray[Any] = column_or_1d(check_array(labels, ensure_2d=False, dtype=None, input_name=name))
    return checked


def _encoded(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Labels renamed 0, 1, ... in sorted order."""
    encoded: NDArray[np.intp] = np.unique(labels, return_inverse=True)[1]
    return encoded


def _memberships(
    memberships: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Memberships between 0 and 1, shape (n, k), and weights."""
    U = check_array(memberships, dtype=np.float64, input_name="memberships")
    if U.min() < 0 or U.max() > 1 + 1e-6:
        raise ValueError(f"memberships must lie between 0 and 1; these go from {U.min():.3g} to {U.max():.3g}")
    return U, _weights(sample_weight, len(U))


def _weights(sample_weight: ArrayLike | None, n_samples: int) -> NDArray[np.float64]:
    """Weights as float64 of shape (n_samples,), refused unless finite, non-negative and not all zero."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight: NDArray[np.float64] = column_or_1d(
        check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    )
    if len(weight) != n_samples:
        raise ValueError(f"sample_weight has {len(weight)} entries for {n_samples} samples.")
    if weight.min() < 0 or weight.max() == 0:
        raise ValueError("sample_weight must be non-negative, with at least one positive entry.")
    return weight
