"""Which rows stand for all: uniform, k-means, ridge leverage scores, randomly pivoted Cholesky.

All draw from distinct rows by their content, with probabilities that follow the weights, so that the order of the rows
does not matter and a weight is a repetition. Beyond a few thousand rows they draw from a sample of them.

References: Alaoui & Mahoney (2015) for ridge leverage; Chen, Epperly, Tropp & Webber (2023) for pivoted Cholesky.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer import _core
from mercer.engine.memory import scratch
from mercer.kernels import Kernel, KernelRows, Precomputed
from mercer.sources import Matrix, Sample, canonical, core_rows, distinct_rows, is_sparse, scramble

RULES = ("uniform", "kmeans", "leverage", "pivoted-cholesky")
_CANDIDATES = 8192
LEVERAGE_ROWS = 1024  # rows whose leverage is computed, in the cube of their number
_KMEANS_ITERATIONS = 10


def choose_landmarks(rule: str | NDArray[Any], kernel: Kernel, sample: Sample, count: int, seed: int) -> KernelRows:
    """Landmarks as the right-hand side of kernel blocks; fewer than `count` if there are fewer distinct rows.

    Parameters
    ----------
    rule : str or array of shape (m, n_features)
        One of "uniform", "kmeans", "leverage", "pivoted-cholesky", or the landmarks themselves.
    kernel : Kernel
    sample : Sample
    count : int
    seed : int
    """
    X = sample.X
    if not isinstance(rule, str):
        return _given(rule, kernel, X)
    if rule not in RULES:
        raise ValueError(f"landmarks={rule!r} is not known; choose from {', '.join(map(repr, RULES))}, or give rows")
    rows, total = distinct_rows(scramble(sample.keys, seed), sample.weight, max(_CANDIDATES, 4 * count))
    rng, count = np.random.default_rng(seed), min(count, len(rows))
    if rule == "kmeans":
        if isinstance(kernel, Precomputed):
            raise ValueError("landmarks='kmeans' needs rows, not a kernel matrix; use 'uniform' or 'pivoted-cholesky'")
        return kernel.rows(_kmeans(X[rows], total, count, rng))
    if rule == "uniform" or count == len(rows):
        return kernel.select(X, rows[_draw(total, count, rng)])
    candidates = kernel.select(X, rows)
    pick = _leverage if rule == "leverage" else _pivoted_cholesky
    return kernel.select(X, rows[pick(kernel, candidates, total, count, rng)])


def _given(points: Any, kernel: Kernel, X: Matrix) -> KernelRows:
    if isinstance(kernel, Precomputed):
        indices = np.asarray(points)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise ValueError("with a precomputed kernel, landmarks are given as an array of positions")
        return kernel.select(X, indices)
    points = canonical(points.tocsr()) if is_sparse(points) else np.asarray(points)
    if points.ndim != 2 or points.shape[1] != X.shape[1] or points.shape[0] == 0:
        raise ValueError(f"landmarks have shape {points.shape}; expected (at least 1, {X.shape[1]})")
    return kernel.rows(points.astype(X.dtype, copy=False))


def _draw(mass: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions drawn without replacement in proportion to `mass`, in order: the first of exponential races."""
    with np.errstate(divide="ignore"):
        finish = rng.exponential(size=len(mass)) / mass
    return np.sort(np.argsort(finish, kind="stable")[:count])


def _kmeans(rows: Matrix, weight: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Means of a few iterations of k-means on the candidates."""
    view, (n, d) = core_rows(rows), rows.shape
    first = rows[_draw(weight, count, rng)]
    centers = np.ascontiguousarray(first.toarray() if is_sparse(first) else first)
    labels, norms = np.zeros(n, dtype=np.int32), np.empty(n, dtype=rows.dtype)
    _core.norms(view, 2, norms)
    buffer = scratch(_core.assign_scratch(d, rows.dtype.itemsize), rows.dtype)
    for _ in range(_KMEANS_ITERATIONS):
        sums, totals = np.zeros((count, d)), np.zeros(count)
        offset = (np.einsum("ij,ij->i", centers, centers) / 2).astype(rows.dtype)
        own = weight.astype(rows.dtype)
        moved = _core.assign(view, centers, offset, 0, own, norms, labels, None, sums, totals, buffer)[1]
        filled = totals > 0
        centers[filled] = sums[filled] / totals[filled, None]
        if moved == 0:
            break
    return centers


def _leverage(
    kernel: Kernel, rows: KernelRows, weight: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw in proportion to ridge leverage scores, with the ridge at which they add up to the number of landmarks."""
    few = np.arange(min(rows.n, max(LEVERAGE_ROWS, 3 * count)))
    root = np.sqrt(weight[few])
    values, vectors = linalg.eigh(kernel.square(rows.take(few)) * root * root[:, None])
    values = np.maximum(values, 0.0)
    low, high = 0.0, float(values.sum())
    for _ in range(60):  # bisection
        ridge = (low + high) / 2
        low, high = (low, ridge) if (values / (values + ridge)).sum() < count else (ridge, high)
    scores = (vectors * vectors) @ (values / (values + high))
    return _draw(np.maximum(scores, 0.0), count, rng)


def _between(kernel: Kernel, rows: KernelRows, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.float64]:
    out = np.empty((len(left), len(right)), dtype=rows.dtype)
    kernel.block(rows.take(left), kernel.panels(rows.take(right)), out)
    return out.astype(np.float64)


def _pivoted_cholesky(
    kernel: Kernel, rows: KernelRows, weight: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw each landmark in proportion to what those before it leave of k(x, x)."""
    left = kernel.diagonal(rows).copy()
    factor, chosen = np.zeros((count, rows.n)), list[int]()
    while len(chosen) < count and (left > 1e-12 * left.max(initial=0.0)).any() and left.max() > 0:
        reached = np.cumsum(weight * left)
        pivot = int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))
        column = _between(kernel, rows, np.array([pivot]), np.arange(rows.n))[0]
        done = len(chosen)
        column -= factor[:done, pivot] @ factor[:done]
        factor[done] = column / np.sqrt(max(column[pivot], 1e-300))
        left = np.maximum(left - factor[done] ** 2, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.sort(np.array(chosen, dtype=np.intp))
