"""The kernel matrix recomputed whenever it is needed: nothing of size n x n is ever held.

Memory: a tile per thread. Time: half a kernel matrix for the first pass; after it, the rows of the moved points.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.engine.memory import aligned_empty
from mercer.engine.threads import Threads
from mercer.gram.base import Moves
from mercer.gram.tiled import TiledGram, block_size, segment
from mercer.kernels import Kernel, KernelRows


def recompute_bytes(n: int, d: int, itemsize: int, n_jobs: int) -> int:
    """Bytes that `RecomputedGram` works in: per thread a tile, a packed block and a copy of moved rows."""
    size = block_size(n)
    return itemsize * n_jobs * size * (size + 2 * (d + 1))


class RecomputedGram(TiledGram):
    """Kernel matrix whose tiles are evaluated on the fly.

    Parameters
    ----------
    kernel : Kernel
    rows : KernelRows
        The points, as ``kernel.rows`` prepares them.
    """

    def __init__(self, kernel: Kernel, rows: KernelRows) -> None:
        super().__init__(rows.n, rows.dtype)
        self.kernel = kernel
        self.evaluated = rows.dtype
        self._rows = rows
        self._parts = [rows.slice(block) for block in self.blocks]
        self._visits = _visits(self.pairs, len(self.blocks))
        self._thread = threading.local()
        self.diagonal = kernel.diagonal(rows)

    def tile(self, i: int, j: int) -> NDArray[Any]:
        """Evaluate a tile into this thread's buffer, which the next call overwrites."""
        return self._evaluate(i, j, self._buffer(self._parts[i].n, self._parts[j].n, self.evaluated))

    def _evaluate(self, i: int, j: int, out: NDArray[Any]) -> NDArray[Any]:
        self.kernel.block(self._parts[i], self.kernel.panels(self._parts[j]), out)
        if i == j and self.kernel.geometry == "distance":
            np.fill_diagonal(out, self.diagonal[self.blocks[i]])
        return out

    def add(self, sums: NDArray[np.float64], moves: Moves, pool: Threads) -> None:
        """Evaluate the moved points' rows only, or go over the tiles if that is less work."""
        if self._rows_are_cheaper(moves):
            self._add_rows(sums, moves, pool)
        else:
            super().add(sums, moves, pool)

    def _rows_are_cheaper(self, moves: Moves) -> bool:
        return 2 * len(moves) < self.n

    def _as_held(self, values: NDArray[Any]) -> NDArray[Any]:
        """Evaluated values as the tiles have them."""
        return values

    def _add_rows(self, sums: NDArray[np.float64], moves: Moves, pool: Threads) -> None:
        """Whole rows of the matrix, in the order of a pass over the tiles: sums get the same bits."""
        parts = [moves.within(block) for block in self.blocks]
        add = (
            self._few_at_once(sums, moves, parts) if len(moves) <= self.blocks[0].stop else self._by_block(sums, parts)
        )
        pool.map(add, range(len(self.blocks)), "rows of points that moved")

    def _by_block(self, sums: NDArray[np.float64], parts: list[Moves]) -> Callable[[int], None]:
        """Add values between the points of a block and the moved points, block of these by block."""

        def add(j: int) -> None:
            panels = self.kernel.panels(self._parts[j])
            for i in self._visits[j]:
                part = parts[i]
                if len(part):
                    out = self._buffer(len(part), panels.n, self.evaluated)
                    self.kernel.block(self._parts[i].take(part.position), panels, out)
                    self._fix_diagonal(i, j, part, out)
                    segment(self._as_held(out), part.stacked(), sums[:, self.blocks[j]], by_rows=True)

        return add

    def _few_at_once(self, sums: NDArray[np.float64], moves: Moves, parts: list[Moves]) -> Callable[[int], None]:
        """Do the same with the moved points packed once: packing all points would take longer than the values."""
        few = self._rows.take(moves.position)
        panels = self.kernel.panels(few)
        ends = np.cumsum([0] + [len(part) for part in parts])

        def add(j: int) -> None:
            out = self._buffer(self._parts[j].n, panels.n, self.evaluated)
            self.kernel.block(self._parts[j], panels, out)
            self._fix_diagonal(j, j, parts[j], out[:, ends[j] : ends[j + 1]].T)
            held = self._as_held(out)
            for i in self._visits[j]:
                if len(parts[i]):
                    columns = held[:, ends[i] : ends[i + 1]]
                    segment(columns, parts[i].stacked(), sums[:, self.blocks[j]], by_rows=False)

        return add

    def _fix_diagonal(self, i: int, j: int, part: Moves, out: NDArray[Any]) -> None:
        if i == j and self.kernel.geometry == "distance":
            out[np.arange(len(part)), part.position] = self.diagonal[self.blocks[i]][part.position]

    def columns(self, indices: NDArray[np.intp]) -> NDArray[np.floating]:
        """Evaluate whole columns, shape (n, len(indices))."""
        size = self.blocks[0].stop
        out = np.empty((len(indices), self.n), dtype=self.evaluated)
        for row, index in zip(out, indices, strict=True):
            home, inside = divmod(int(index), size)
            point = self._parts[home].take(np.array([inside]))
            for block, part in zip(self.blocks, self._parts, strict=True):
                self.kernel.block(point, self.kernel.panels(part), row[None, block])
            if self.kernel.geometry == "distance":
                row[index] = self.diagonal[index]
        return self._as_held(out).T

    def _buffer(self, height: int, width: int, dtype: DTypeLike) -> NDArray[Any]:
        """Memory of this thread, a tile for each type of values."""
        name = np.dtype(dtype).name
        if not hasattr(self._thread, name):
            setattr(self._thread, name, aligned_empty(block_size(self.n) ** 2, dtype))
        buffer: NDArray[Any] = getattr(self._thread, name)
        return buffer[: height * width].reshape(height, width)


def _visits(pairs: list[tuple[int, int]], count: int) -> list[list[int]]:
    """For each block, the blocks it meets in the order of a pass over the tiles: sums then have the same bits."""
    visits: list[list[int]] = [[] for _ in range(count)]
    for i, j in pairs:
        visits[j].append(i)
        if i != j:
            visits[i].append(j)
    return visits
