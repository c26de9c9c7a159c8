"""The kernel matrix in memory: each tile on or below the diagonal is computed once and kept.

Memory: n (n + block) / 2 values. Time: the same number of kernel values, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.memory import aligned_empty
from mercer.engine.threads import Threads
from mercer.gram.tiled import TiledGram, block_size
from mercer.kernels import Kernel, KernelRows


def memory_bytes(n: int, itemsize: int) -> int:
    """Bytes that `MemoryGram` keeps for `n` points.

    Examples
    --------
    >>> memory_bytes(60_000, 4)
    7322374144
    """
    full, rest = divmod(n, block_size(n))
    size = block_size(n)
    return itemsize * (size * size * full * (full + 1) // 2 + rest * (full * size + rest))


class MemoryGram(TiledGram):
    """Kernel matrix whose tiles are held in memory.

    Parameters
    ----------
    kernel : Kernel
    rows : KernelRows
        The points, as ``kernel.rows`` prepares them.
    pool : Threads
        Evaluates the tiles.
    """

    def __init__(self, kernel: Kernel, rows: KernelRows, pool: Threads) -> None:
        super().__init__(rows.n, rows.dtype)
        self._tiles = self._allocate()
        self._parts = [rows.slice(block) for block in self.blocks]
        pool.map(lambda pair: self._evaluate(kernel, *pair), self.pairs, "kernel matrix", "tiles")
        del self._parts
        self.diagonal = self._exact_diagonal(kernel, rows)

    def _allocate(self) -> dict[tuple[int, int], NDArray[Any]]:
        """One allocation for all tiles: large pages, and no fragmentation."""
        memory = aligned_empty(memory_bytes(self.n, self.dtype.itemsize) // self.dtype.itemsize, self.dtype)
        tiles, used = {}, 0
        for i, j in self.pairs:
            height, width = (self.blocks[b].stop - self.blocks[b].start for b in (i, j))
            tiles[i, j] = memory[used : used + height * width].reshape(height, width)
            used += height * width
        return tiles

    def _evaluate(self, kernel: Kernel, i: int, j: int) -> None:
        kernel.block(self._parts[i], kernel.panels(self._parts[j]), self._tiles[i, j])

    def _exact_diagonal(self, kernel: Kernel, rows: KernelRows) -> NDArray[np.float64]:
        """Replace the tiles' diagonal, which has rounding in it, by the exact one."""
        if kernel.geometry == "product":
            return np.concatenate([self._tiles[i, i].diagonal() for i in range(len(self.blocks))]).astype(np.float64)
        diagonal = kernel.diagonal(rows)
        for i, block in enumerate(self.blocks):
            np.fill_diagonal(self._tiles[i, i], diagonal[block])
        return diagonal

    def tile(self, i: int, j: int) -> NDArray[Any]:
        """Return the stored tile."""
        return self._tiles[i, j]
