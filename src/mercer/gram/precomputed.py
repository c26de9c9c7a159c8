"""A kernel matrix that the user has computed: read where it is, never copied whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads
from mercer.gram.tiled import TiledGram
from mercer.sources import Matrix, is_sparse

_TOLERANCE = {
    4: 1e-4,
    8: 1e-8,
}  # asymmetry left by rounding in a product of matrices, relative to the largest value


class PrecomputedGram(TiledGram):
    """Kernel matrix given as an array (or memory map, or sparse matrix) of shape (n, n).

    Only its lower triangle is used; that it is symmetric is checked tile by tile.

    Parameters
    ----------
    K : array or sparse matrix of shape (n, n)
    pool : Threads
        For the check.
    """

    def __init__(self, K: Matrix, pool: Threads) -> None:
        if K.shape[0] != K.shape[1]:
            raise ValueError(
                f"a precomputed kernel matrix must be square (n_samples, n_samples); this one has shape {K.shape}"
            )
        super().__init__(K.shape[0], K.dtype)
        self._K = K if is_sparse(K) or K.strides[1] == K.itemsize else K.T  # symmetric: either order will do
        self.diagonal = K.diagonal().astype(np.float64)
        gaps = pool.map(lambda pair: self._asymmetry(*pair), self.pairs, "check of the kernel matrix", "tiles")
        worst = max(range(len(gaps)), key=lambda p: gaps[p][0])
        if gaps[worst][0] > _TOLERANCE[K.dtype.itemsize] * max(size for _, size in gaps):
            raise ValueError(
                "the precomputed kernel matrix is not symmetric: entries differ from their mirror image by up to "
                f"{gaps[worst][0]:.3g}, in rows {self._where(worst)}. Symmetrise it with (K + K.T) / 2 if that is "
                "rounding, or check that it compares the same points on both sides"
            )

    def _asymmetry(self, i: int, j: int) -> tuple[float, float]:
        tile, mirror = self.tile(i, j), self._read(j, i)
        return float(np.abs(tile - mirror.T).max()), float(np.abs(tile).max())

    def _where(self, pair: int) -> str:
        block = self.blocks[self.pairs[pair][0]]
        return f"{block.start} to {block.stop - 1}"

    def _read(self, i: int, j: int) -> NDArray[Any]:
        part = self._K[self.blocks[i], self.blocks[j]]
        return np.asarray(part.toarray() if is_sparse(part) else part)

    def tile(self, i: int, j: int) -> NDArray[Any]:
        """Return a view of the user's matrix (a small dense copy if it is sparse)."""
        return self._read(i, j)
