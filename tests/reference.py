"""What Mercer computes, written as plainly as NumPy allows: float64, dense, slow. Fast paths are compared with it."""

from collections import namedtuple

import numpy as np
from scipy.linalg import hadamard as hadamard_matrix
from scipy.spatial.distance import cdist

# ---- kernels --------------------------------------------------------------------------------------------------


def linear(X, Z):
    return X @ Z.T


def rbf(X, Z, gamma=1.0):
    return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))


def laplacian(X, Z, gamma=1.0):
    return np.exp(-gamma * cdist(X, Z, "cityblock"))


def polynomial(X, Z, gamma=1.0, coef0=1.0, degree=3):
    return (gamma * X @ Z.T + coef0) ** degree


def sigmoid(X, Z, gamma=1.0, coef0=1.0):
    return np.tanh(gamma * X @ Z.T + coef0)


def cosine(X, Z):
    lengths = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Z, axis=1))
    return np.divide(X @ Z.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)


KERNELS = {
    "linear": linear,
    "rbf": rbf,
    "laplacian": laplacian,
    "polynomial": polynomial,
    "sigmoid": sigmoid,
    "cosine": cosine,
}


def kernel(name, X, Z=None, **parameters):
    """Kernel matrix in float64 of dense or sparse rows of any type."""
    X, Z = as_float64(X), as_float64(X if Z is None else Z)
    return KERNELS[name](X, Z, **parameters)


def as_float64(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


# ---- explicit centres -----------------------------------------------------------------------------------------


def distances(X, C, metric="l2", residual=0.0):
    """Squared l2 distances (plus each point's residual) or l1 distances, shape (n, k)."""
    D = cdist(X, C, {"l2": "sqeuclidean", "l1": "cityblock"}[metric])
    return np.maximum(D + np.reshape(residual, (-1, 1)), 0)


Nearest = namedtuple("Nearest", "labels distances objective sums totals")


def nearest_centers(X, C, metric="l2", weights=None):
    """Nearest centre of every point (the lower of equals), and weighted sums and totals of each centre's points."""
    weights = np.ones(len(X)) if weights is None else weights
    D = distances(X, C, metric)
    labels = D.argmin(axis=1)
    U = weights[:, None] * (labels[:, None] == np.arange(len(C)))
    return Nearest(labels, D.min(axis=1), weights @ D.min(axis=1), U.T @ X, U.sum(axis=0))


def fuzzy_memberships(D, m=2.0):
    """u_ic proportional to d_ic^(-1/(m-1)) for squared distances d; centres at distance zero share the point."""
    with np.errstate(divide="ignore", invalid="ignore"):
        U = (D.min(axis=1, keepdims=True) / D) ** (1 / (m - 1))
    U[(D == 0).any(axis=1)] = 0
    U[D == 0] = 1
    return U / U.sum(axis=1, keepdims=True)


def typicalities(D, nu, m=2.0):
    """t_ic = 1 / (1 + (d_ic / nu_c)^(1/(m-1))); for nu = 0 its limit, 1 at the centre and 0 elsewhere."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(D > 0, D / nu, 0.0)
        return 1 / (1 + ratio ** (1 / (m - 1)))


def soft_objective(D, U, m=2.0, weights=None, nu=None):
    """sum w u^m d, and for typicalities also sum_c nu_c sum_i w (1 - t)^m."""
    weights = np.ones((len(D), 1)) if weights is None else weights[:, None]
    spare = 0.0 if nu is None else (weights * (1 - U) ** m @ nu).sum()
    return (weights * U**m * D).sum() + spare


def soft_sums(X, U, m=2.0, weights=None):
    """Sums and totals of the centres: their quotient is the next centre."""
    W = U**m if weights is None else weights[:, None] * U**m
    return W.T @ X, W.sum(axis=0)


# ---- the kernel matrix ----------------------------------------------------------------------------------------


def segment(tile, position, old, new, weight, F, by_rows=True):
    """F after the moves: row `position` of the tile joins row `new` of F and leaves row `old` (-1: nowhere)."""
    F = F.copy()
    for p, source, target, w in zip(position, old, new, weight, strict=True):
        values = (tile if by_rows else tile.T)[p].astype(np.float64)
        if target >= 0:
            F[target] += w * values
        if source >= 0:
            F[source] -= w * values
    return F


def kernel_objective(K, labels, sample_weight=None):
    """sum_i w_i K_ii - sum_c (1/w_c) sum_{i,j in c} w_i w_j K_ij."""
    weight = np.ones(len(K)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    U = weight[:, None] * (labels[:, None] == np.unique(labels))
    return weight @ K.diagonal() - sum(u @ K @ u / u.sum() for u in U.T if u.any())


def kernel_distances(K, labels, n_clusters, sample_weight=None):
    """Squared distances to the weighted means in feature space, shape (n, n_clusters); empty clusters are far."""
    weight = np.ones(len(K)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    U = weight[:, None] * (labels[:, None] == np.arange(n_clusters))
    total = U.sum(axis=0)
    mean = U[:, total > 0] / total[total > 0]
    D = np.full((len(K), n_clusters), np.inf)
    D[:, total > 0] = K.diagonal()[:, None] - 2 * K @ mean + np.einsum("ic,ic->c", mean, K @ mean)
    return D


def kernel_kmeans(K, labels, n_clusters, sample_weight=None, max_iter=300):
    """Exact kernel k-means from given labels: the labels, and the objective of the labels before each iteration."""
    history = [kernel_objective(K, labels, sample_weight)]
    for _ in range(max_iter):
        new = kernel_distances(K, labels, n_clusters, sample_weight).argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
        history.append(kernel_objective(K, labels, sample_weight))
    return labels, history


def soft_kernel_cmeans(K, given, iterations, m=2.0, sample_weight=None, nu=None):
    """Fuzzy (or possibilistic) kernel c-means from what points give to the centres (n, k): U, D, and objectives."""
    weight, objectives = np.ones(len(K)) if sample_weight is None else sample_weight, []
    for _ in range(iterations):
        W = given / given.sum(axis=0)
        D = np.maximum(K.diagonal()[:, None] - 2 * K @ W + np.einsum("ic,ic->c", W, K @ W), 0)
        U = fuzzy_memberships(D, m) if nu is None else typicalities(D, nu, m)
        objectives.append(soft_objective(D, U, m, weight, nu))
        given = weight[:, None] * U**m
    return U, D, objectives


def kernel_kmeans_numpy(X, gamma, labels, n_clusters, max_iter=300):
    """Kernel k-means with the rbf kernel as one would write it for speed in float32 NumPy: to time against."""
    X = np.asarray(X, dtype=np.float32)
    half = np.einsum("ij,ij->i", X, X) / 2
    K = X @ X.T
    K -= half
    K -= half[:, None]
    K *= np.float32(2 * gamma)
    np.exp(K, out=K)
    for _ in range(max_iter):
        U = (labels[:, None] == np.arange(n_clusters)).astype(np.float32)
        size = U.sum(axis=0)
        F = K @ U / np.maximum(size, 1)
        offset = np.where(size > 0, np.einsum("ic,ic->c", U, F) / np.maximum(size, 1), np.inf)
        new = (offset - 2 * F).argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
    return labels


# ---- transforms -----------------------------------------------------------------------------------------------


def hadamard(A):
    """Walsh-Hadamard transform of every row: A H, with H = H_outer (x) H_inner to keep the matrices small."""
    inner = min(A.shape[1], 1024)
    parts = A.reshape(len(A), -1, inner).astype(np.float64) @ hadamard_matrix(inner)
    return (hadamard_matrix(parts.shape[1]) @ parts).reshape(A.shape)
