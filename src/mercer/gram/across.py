"""Sums of kernel values between new points and the clusters of known ones, block by block.

Time: m n kernel values for m new points. Memory: one tile per thread beyond the result, shape (k, m).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads, blocks
from mercer.gram.base import Moves
from mercer.gram.tiled import block_size, segment
from mercer.kernels import Factor, Kernel, KernelRows
from mercer.sources import Matrix, is_sparse

_PRODUCT_ROWS = 1024


def sums_across(
    kernel: Kernel, known: KernelRows, members: Moves, new: KernelRows, n_clusters: int, pool: Threads
) -> NDArray[np.float64]:
    """Per-cluster sums ``F[c, x] = sum over j in c of w_j k(x, x_j)`` for new rows x, shape (k, m)."""
    sums = np.zeros((n_clusters, new.n))
    parts = [(known.slice(part), members.within(part).by_cluster()) for part in blocks(known.n, block_size(known.n))]

    def apply(part: slice) -> None:
        panels = kernel.panels(new.slice(part))
        for rows, moves in parts:
            tile = np.empty((rows.n, panels.n), dtype=new.dtype)
            kernel.block(rows, panels, tile)
            segment(tile, moves, sums[:, part], by_rows=True)

    pool.map(apply, blocks(new.n, block_size(new.n)))
    return sums


def sums_of_matrix(K: Matrix, members: Moves, n_clusters: int, pool: Threads) -> NDArray[np.float64]:
    """Return the same sums from kernel values that the user has computed, ``K`` of shape (m, n)."""
    sums = np.zeros((n_clusters, K.shape[0]))

    def apply(part: slice) -> None:
        segment(_dense(K[part]), members, sums[:, part], by_rows=False)

    pool.map(apply, blocks(K.shape[0], block_size(K.shape[0])))
    return sums


def weighted_sums(
    kernel: Kernel, known: KernelRows, given: NDArray[np.float64], new: KernelRows, pool: Threads
) -> NDArray[np.float64]:
    """Sums ``F[c, x] = sum over j of given[c, j] k(x, x_j)`` for new rows x, shape (k, m), from weights (k, n)."""
    panels, factor = kernel.panels(known), Factor(np.ascontiguousarray(given.T).astype(known.dtype))
    out = np.empty((new.n, len(given)), dtype=known.dtype)
    pool.map(lambda part: kernel.product(new.slice(part), panels, factor, out[part]), blocks(new.n, _PRODUCT_ROWS))
    return out.T.astype(np.float64)


def _dense(rows: Matrix) -> NDArray[Any]:
    return np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows)
