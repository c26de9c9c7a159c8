"""Choosing gamma from the data, and noticing when a kernel matrix says nothing.

"scale" is 1 / (d var X), as in scikit-learn. "median" is 1 / (the median of |x - z|^2, or of |x - z|_1 for the
laplacian, or of |x|^2 for kernels of the inner product). "auto" is "median" for distances and "scale" for products.
The median is taken over at most 256 distinct rows drawn by their content, weighted, so that the order of the rows
does not matter and a weight is a repetition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from mercer.engine.warn import warn_user
from mercer.kernels.base import CompiledKernel, Kernel, positive
from mercer.sources import Matrix, content_hash, distinct_rows, is_sparse

_SAMPLE = 256
_ROWS = 4096
_NOTHING = 0.01  # of a point's own similarity, shared with all others together: nearly the identity
_EVERYTHING = 1e-3  # mean of 1 - similarity: nearly constant


class KernelScaleWarning(UserWarning):
    """A kernel matrix is nearly the identity or nearly constant, so it has nothing to cluster by."""


def choose_gamma(
    gamma: float | str,
    X: Matrix,
    kind: type[CompiledKernel],
    sample_weight: NDArray[np.float64] | None = None,
    keys: NDArray[np.uint64] | None = None,
) -> float:
    """Return `gamma` as a number, chosen from `X`, shape (n, d), if it is a word; `keys` are its content hashes.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> choose_gamma("median", np.array([[0.0], [1.0], [3.0]]), RBF)
    0.25
    """
    if not isinstance(gamma, str):
        return positive("gamma", gamma)
    rule = {"auto": "median" if kind.geometry == "distance" else "scale"}.get(gamma, gamma)
    if rule == "scale":
        typical = X.shape[1] * _variance(X, sample_weight, content_hash(X) if keys is None else keys)
    elif rule == "median":
        typical = _typical_size(X, kind, sample_weight, content_hash(X) if keys is None else keys)
    else:
        raise ValueError(f"gamma={gamma!r} is not known; give a number, 'scale', 'median' or 'auto'")
    return 1.0 / typical if typical > 0 and np.isfinite(1.0 / typical) else 1.0


def _variance(X: Matrix, weight: NDArray[np.float64] | None, keys: NDArray[np.uint64]) -> float:
    """Variance of all entries of `X` together, added in the order of the rows' hashes."""
    first, weight = distinct_rows(keys, weight)
    count = weight.sum() * X.shape[1]
    mean = (weight * _sums_of_rows(X, 0.0, 1)[first]).sum() / count
    return float((weight * _sums_of_rows(X, mean, 2)[first]).sum() / count)


def _sums_of_rows(X: Matrix, origin: float, power: int) -> NDArray[np.float64]:
    """Sum of (x - origin)^power over the entries of every row, in blocks."""
    sums = np.empty(X.shape[0])
    for start in range(0, X.shape[0], _ROWS):
        part = X[start : start + _ROWS].astype(np.float64)
        if is_sparse(part):
            part.sum_duplicates()
            part.data = (part.data - origin) ** power
            absent = (X.shape[1] - np.diff(part.indptr)) * (0.0 - origin) ** power
            sums[start : start + _ROWS] = np.asarray(part.sum(axis=1)).ravel() + absent
        else:
            sums[start : start + _ROWS] = ((part - origin) ** power).sum(axis=1)
    return sums


def _typical_size(
    X: Matrix, kind: type[CompiledKernel], weight: NDArray[np.float64] | None, keys: NDArray[np.uint64]
) -> float:
    rows, weight = _sample(X, weight, keys)
    if kind.geometry == "product":
        squares = rows.multiply(rows).sum(axis=1) if is_sparse(rows) else (rows * rows).sum(axis=1)
        return _weighted_median(np.asarray(squares).ravel(), weight)
    distances = _pairwise(rows, kind)
    above = np.triu_indices(len(weight), 1)
    repeated = np.maximum(weight * (weight - 1) / 2, 0)  # pairs of copies of one row, at distance zero
    values = np.concatenate([distances[above], np.zeros(len(weight))])
    pairs = np.concatenate([weight[above[0]] * weight[above[1]], repeated])
    return _weighted_median(values, pairs)


def _sample(
    X: Matrix, weight: NDArray[np.float64] | None, keys: NDArray[np.uint64]
) -> tuple[Matrix, NDArray[np.float64]]:
    """Return at most 256 distinct rows in float64, the lowest by hash, and their total weights."""
    first, total = distinct_rows(keys, weight, _SAMPLE)
    return X[first].astype(np.float64), total


def _pairwise(rows: Matrix, kind: type[CompiledKernel]) -> NDArray[np.float64]:
    if kind.name == "laplacian":
        distances = manhattan_distances(_short_indices(rows)) if is_sparse(rows) else cdist(rows, rows, "cityblock")
    elif is_sparse(rows):
        products = (rows @ rows.T).toarray()
        distances = np.add.outer(products.diagonal(), products.diagonal()) - 2 * products
    else:
        rows = rows - rows.mean(axis=0)
        products = rows @ rows.T
        distances = np.add.outer(products.diagonal(), products.diagonal()) - 2 * products
    clipped: NDArray[np.float64] = np.maximum(distances, 0.0)
    return clipped


def _short_indices(X: Matrix) -> Matrix:
    """Return a CSR matrix with 32-bit indices, which is all that scikit-learn's l1 distances take."""
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=X.shape)


def _weighted_median(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Return the lower weighted median; if that is zero (many copies), the one of the values above zero."""
    median = 0.0
    for kept in (weight > 0, (weight > 0) & (values > 0)):
        if median == 0.0 and kept.any():
            order = np.argsort(values[kept], kind="stable")
            reached = np.cumsum(weight[kept][order])
            median = float(values[kept][order][np.searchsorted(reached, reached[-1] / 2)])
    return median


def warn_if_uninformative(
    kernel: Kernel, columns: NDArray[Any], diagonal: NDArray[np.float64], sample: NDArray[np.intp], X: Matrix
) -> None:
    """Warn if a kernel matrix is nearly the identity or nearly constant, and name a better gamma.

    Parameters
    ----------
    kernel : Kernel
    columns : array of shape (n, s)
        Kernel values between all points and a sample of them.
    diagonal : array of shape (n,)
    sample : array of shape (s,)
        Which points the columns belong to.
    X : array or CSR matrix of shape (n, d)
        The points, for the suggestion.
    """
    n, s = columns.shape
    size = np.sqrt(np.maximum(np.abs(diagonal), np.finfo(np.float64).tiny))
    similarity = np.abs(columns) / size[:, None] / size[sample]
    similarity[sample, np.arange(s)] = 0.0
    shared = similarity.sum(axis=0)
    if np.median(shared) < _NOTHING:
        problem = "nearly the identity: every point is similar to itself only, so any partition is as good as any other"
    elif 1 - float(shared.mean()) / (n - 1) < _EVERYTHING:
        problem = "nearly constant: all points look alike, and differences drown in rounding"
    else:
        return
    advice = _better_gamma(kernel, X)
    if advice is not None:
        warn_user(f"The kernel matrix of {kernel!r} is {problem}. {advice}", KernelScaleWarning)


def _better_gamma(kernel: Kernel, X: Matrix) -> str | None:
    gamma = getattr(kernel, "gamma", None)
    if gamma is None or not isinstance(kernel, CompiledKernel):
        return "Scale the data or choose another kernel."
    better = choose_gamma("auto", X, type(kernel))
    if 0.1 < better / gamma < 10:  # the width is not what is wrong
        return None
    return f"Try gamma={better:.3g} (gamma='auto'), about {max(better / gamma, gamma / better):,.0f} times " + (
        "larger." if better > gamma else "smaller."
    )
