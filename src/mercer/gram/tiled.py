"""A kernel matrix as the tiles on and below its diagonal, wherever they are.

Work on tiles is ordered so that tiles which follow each other have no block in common (a round-robin tournament):
each block's sums then receive their contributions in one fixed order for any number of threads, and need no partial
copies. One pass reads each tile once and uses it for its rows and for its columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.memory import scratch
from mercer.engine.threads import Threads, blocks
from mercer.gram.base import Moves


def block_size(n: int) -> int:
    """Rows of a tile: depends on the number of points only, so results do not depend on anything else."""
    if n <= 512:
        return max(1, n)
    return 256 if n <= 2048 else 512 if n <= 8192 else 1024


def strip_bytes(n: int, itemsize: int) -> int:
    """Bytes in which a thread transposes a part of a tile."""
    return _core.segment_scratch(block_size(n), itemsize) * itemsize


def tournament(count: int) -> list[tuple[int, int]]:
    """Return all pairs (i, j) with i >= j of `count` blocks, pairs of one round having no block in common.

    Examples
    --------
    >>> tournament(3)
    [(0, 0), (1, 1), (2, 2), (1, 0), (2, 1), (2, 0)]
    """
    pairs = [(i, i) for i in range(count)]
    seats = count + count % 2  # an odd one out has a free round
    for turn in range(seats - 1):
        circle = [seats - 1] + [(turn + step) % (seats - 1) for step in range(seats - 1)]
        for left, right in zip(circle[: seats // 2], circle[: seats // 2 - 1 : -1], strict=True):
            if max(left, right) < count:
                pairs.append((max(left, right), min(left, right)))
    return pairs


class TiledGram(ABC):
    """A kernel matrix reached through its tiles.

    Parameters
    ----------
    n : int
    dtype : dtype
    """

    def __init__(self, n: int, dtype: np.dtype[np.floating]) -> None:
        self.n = n
        self.dtype = dtype
        self.eps = float(np.finfo(dtype).eps)
        self.blocks = blocks(n, block_size(n))
        self.pairs = tournament(len(self.blocks))
        self.diagonal: NDArray[np.float64]

    @abstractmethod
    def tile(self, i: int, j: int) -> NDArray[Any]:
        """Kernel values of block `i` (rows) against block `j` (columns), j <= i."""

    def announce(self, pairs: list[tuple[int, int]]) -> None:  # noqa: B027
        """Take note of the tiles that will be asked for, in this order."""

    def close(self) -> None:  # noqa: B027
        """Let go of what lies outside memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, sums: NDArray[np.float64], moves: Moves, pool: Threads) -> None:
        """Add the moved points' kernel rows to the clusters' sums; tiles without moved points are not touched."""
        parts = [moves.within(block) for block in self.blocks]
        rows = [part.by_cluster() if part.are_first else part for part in parts]
        columns = [
            row if 2 * len(part) > block.stop - block.start else part
            for row, part, block in zip(rows, parts, self.blocks, strict=True)
        ]

        def apply(i: int, j: int) -> None:
            tile = self.tile(i, j)
            segment(tile, rows[i], sums[:, self.blocks[j]], by_rows=True)
            if i != j:
                segment(tile, columns[j], sums[:, self.blocks[i]], by_rows=False)

        self.run(apply, [(i, j) for i, j in self.pairs if len(parts[i]) or len(parts[j])], pool)

    def multiply(self, factor: NDArray[np.float64], pool: Threads) -> NDArray[np.float64]:
        """K times each row of `factor`, shape (k, n): one pass over the tiles, sums of tiles in float64."""
        right = np.ascontiguousarray(factor.T, dtype=self.dtype)
        out = np.zeros((self.n, len(factor)))

        def apply(i: int, j: int) -> None:
            tile, rows, columns = self.tile(i, j), self.blocks[i], self.blocks[j]
            out[rows] += tile @ right[columns]
            if i != j:
                out[columns] += tile.T @ right[rows]

        self.run(apply, self.pairs, pool)
        return np.ascontiguousarray(out.T)

    def run(self, apply: Callable[[int, int], None], pairs: list[tuple[int, int]], pool: Threads) -> None:
        """Go over some of the tiles."""
        self.announce(pairs)
        pool.run_in_order(apply, pairs, "pass over the kernel matrix")

    def columns(self, indices: NDArray[np.intp]) -> NDArray[np.floating]:
        """Whole columns, shape (n, len(indices))."""
        out = np.empty((len(indices), self.n), dtype=self.dtype)
        size = self.blocks[0].stop
        for row, index in zip(out, indices, strict=True):
            home, inside = divmod(int(index), size)
            for other, block in enumerate(self.blocks):
                row[block] = self.tile(home, other)[inside] if other <= home else self.tile(other, home)[:, inside]
        return out.T


def segment(tile: NDArray[Any], moves: Moves, sums: NDArray[np.float64], *, by_rows: bool) -> None:
    """Add the tile's moved rows (or columns) to the sums of their clusters.

    Columns that are fewer than half must come in ascending order.
    """
    if not len(moves):
        return
    room, width = None, tile.shape[1]
    if not by_rows and 2 * len(moves) > width:
        room = scratch(_core.segment_scratch(width, tile.itemsize), tile.dtype)
    _core.segment(by_rows, tile, moves.position, moves.old, moves.new, moves.weight, sums, room)
