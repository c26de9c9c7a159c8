"""The kernel matrix on disk: each tile on or below the diagonal is evaluated once, written, and read when needed.

Memory: a tile per thread, and a few more while they are written. Disk: n^2 / 2 values, as float32, float64 or float16.
Time: the kernel values once; then a pass reads each tile once, in the order they lie in, while the one before is worked
on. Later passes read the tiles that hold points that moved, or evaluate the rows of these points anew if that is less
work: values have the same bits either way.

Reference: R. Zhang, A. Rudnicky, "A large scale clustering scheme for kernel k-means", ICPR 2002.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.memory import aligned_empty
from mercer.engine.threads import Threads, blocks
from mercer.gram.base import Moves
from mercer.gram.files import TileFiles
from mercer.gram.recompute import RecomputedGram, recompute_bytes
from mercer.gram.tiled import TiledGram, block_size, tournament
from mercer.kernels import Kernel, KernelRows
from mercer.sources import is_sparse

_AHEAD = 4  # tiles of each thread that are read while one is worked on: the disk is then never idle
_TELLING = 10**7  # values that take long enough to tell how long one takes
_DTYPES = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Disk:
    """Where and how kernel tiles are kept on disk: ``storage=Disk(...)``.

    Parameters
    ----------
    folder : path, optional
        Made if need be. Its tiles stay, and the next fit with the same kernel and data reads them: with another number
        of clusters, other weights, another start. A build that was interrupted goes on where it stopped. Tiles of
        anything else are refused. Without a folder, tiles are in unnamed temporary files that end with the fit.
    dtype : {"float16", "float32", "float64"}, optional
        Of the values on disk; that of the data if not given. "float16" takes half the space of float32, for kernel
        values rounded to three digits; sums are the same float64.

    Examples
    --------
    >>> import tempfile
    >>> from mercer import Disk, KernelKMeans
    >>> from mercer.datasets import make_rings
    >>> X, y = make_rings(1000, noise=0.03, factor=0.3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in (2, 3):  # the second fit reads the tiles of the first
    ...         model = KernelKMeans(k, gamma=3.0, storage=Disk(folder), random_state=0).fit(X)
    >>> model.plan_.storage
    'disk'
    """

    folder: str | os.PathLike[str] | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in _DTYPES:
            raise ValueError(f"dtype={self.dtype!r} is not known; choose from {', '.join(map(repr, _DTYPES))}")
        if self.folder is not None and not isinstance(self.folder, (str, os.PathLike)):
            raise TypeError(f"folder must be a path, got {self.folder!r}")

    def held(self, dtype: np.dtype[np.floating]) -> np.dtype[np.floating]:
        """Type on disk of values of `dtype`."""
        return dtype if self.dtype is None else min(np.dtype(self.dtype), dtype, key=lambda held: held.itemsize)


def disk_bytes(n: int, d: int, itemsize: int, n_jobs: int) -> int:
    """Bytes of memory that `DiskGram` works in: buffers of the threads and tiles on their way to the file."""
    return recompute_bytes(n, d, itemsize, n_jobs) + (3 * n_jobs + 1) * itemsize * block_size(n) ** 2


class DiskGram(RecomputedGram):
    """Kernel matrix whose tiles are in files.

    Parameters
    ----------
    kernel : Kernel
    rows : KernelRows
        The points, as ``kernel.rows`` prepares them.
    keys : array of shape (n,)
        Content hash of the points.
    disk : Disk
    pool : Threads
        Evaluates the tiles that are not there yet.
    row_cost : float
        Seconds to evaluate a kernel value over seconds to read one; a first guess, unless it is 0 or infinite.
    spare : path, optional
        Folder of temporary files.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: KernelRows,
        keys: NDArray[np.uint64],
        disk: Disk,
        pool: Threads,
        row_cost: float = 1.0,
        spare: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(kernel, rows)
        self.held = disk.held(rows.dtype)
        self.dtype = np.dtype(np.float32) if self.held == np.float16 else self.held
        self.eps = float(np.finfo(self.held).eps)
        self.row_cost = row_cost
        self._seconds_for: dict[bool, float] = {}  # a value from rows evaluated (True), from tiles read (False)
        self._same_bits = kernel.same_bits_in_any_block(rows)
        self._place = {pair: index for index, pair in enumerate(self.pairs)}
        self._next: dict[tuple[int, int], tuple[int, int]] = {}
        self._ahead = _AHEAD * pool.n_jobs
        self.files = TileFiles(self._sizes(), identity(kernel, rows, keys, self.held), disk.folder, spare)
        try:
            self._build(pool)
        except BaseException:
            self.files.close()
            raise
        self.diagonal = self._as_held(self.diagonal).astype(np.float64)

    def _sizes(self) -> list[int]:
        return tile_sizes(self.n, self.held)

    # ---- building -----------------------------------------------------------------------------------------------

    def _build(self, pool: Threads) -> None:
        """Evaluate on all threads, write from this one."""
        missing = [self.pairs[index] for index in self.files.missing]
        ahead = 2 * pool.n_jobs
        slots = [aligned_empty(block_size(self.n) ** 2, self._parts[0].dtype) for _ in range(ahead if missing else 0)]
        narrow = [self._bytes(len(slot)) if self.held != slot.dtype else None for slot in slots]

        def evaluate(slot: int, pair: tuple[int, int]) -> NDArray[np.uint8]:
            height, width = (self._parts[b].n for b in pair)
            values = self._evaluate(*pair, slots[slot][: height * width].reshape(height, width)).ravel()
            out = narrow[slot]
            return values.view(np.uint8) if out is None else self._narrowed(values, out)

        pool.stream(evaluate, missing, self.files.write, ahead, "kernel matrix to disk", "tiles")

    def _bytes(self, values: int) -> NDArray[np.uint8]:
        return np.empty(values * self.held.itemsize, dtype=np.uint8)

    def _narrowed(self, values: NDArray[Any], out: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Values in the type held, as bytes."""
        target = out[: values.size * self.held.itemsize].view(self.held)
        single = values if values.dtype == np.float32 else values.astype(np.float32)
        if self.held == np.float16:
            _core.narrow(single, target.view(np.uint16))
        else:
            target[...] = single
        if not np.isfinite(target).all():
            raise ValueError(
                f"values of {self.kernel!r} overflow {self.held}: scale the data, or keep them in a larger dtype"
            )
        return target.view(np.uint8)

    def _as_held(self, values: NDArray[Any]) -> NDArray[Any]:
        """Evaluated values rounded as they are on disk."""
        if self.held == values.dtype:
            return values
        with np.errstate(over="ignore"):
            return values.astype(np.float32).astype(self.held).astype(self.dtype)

    # ---- reading ------------------------------------------------------------------------------------------------

    def announce(self, pairs: list[tuple[int, int]]) -> None:
        """Note which tile follows which, to read it ahead."""
        self._next = dict(zip(pairs, pairs[self._ahead :], strict=False))

    def tile(self, i: int, j: int) -> NDArray[Any]:
        """Read a tile into this thread's buffer, which the next call overwrites."""
        following = self._next.get((i, j))
        if following is not None:
            self.files.expect(self._place[following])
        height, width = self._parts[i].n, self._parts[j].n
        held = self._buffer(height, width, self.held)
        self.files.read(self._place[i, j], held.ravel().view(np.uint8))
        if self.held == self.dtype:
            return held
        out = self._buffer(height, width, self.dtype)
        _core.widen(held.ravel().view(np.uint16), out.ravel())
        return out

    def columns(self, indices: NDArray[np.intp]) -> NDArray[np.floating]:
        """Evaluate whole columns, or read them where values may have other bits anew."""
        return super().columns(indices) if self._same_bits else TiledGram.columns(self, indices)

    # ---- tiles or rows ------------------------------------------------------------------------------------------

    def add(self, sums: NDArray[np.float64], moves: Moves, pool: Threads) -> None:
        """Evaluate the moved points' rows, or read the tiles that hold them, whichever has been quicker so far."""
        from_rows = self._rows_are_cheaper(moves)
        values = len(moves) * self.n if from_rows else self._values_of_tiles(moves)
        started = time.perf_counter()
        super().add(sums, moves, pool)
        if values >= _TELLING:
            self._seconds_for[from_rows] = (time.perf_counter() - started) / values

    def _rows_are_cheaper(self, moves: Moves) -> bool:
        """Only where values have the same bits anew."""
        if not self._same_bits:
            return False
        cost = self.row_cost
        if len(self._seconds_for) == 2 and 0 < cost < float("inf"):
            cost = self._seconds_for[True] / self._seconds_for[False]
        return cost * len(moves) * self.n < self._values_of_tiles(moves)

    def _values_of_tiles(self, moves: Moves) -> int:
        """Values in tiles that hold moved points: all of the triangle but that of the blocks without any."""
        still = sum(block.stop - block.start for block in self.blocks if not len(moves.within(block)))
        return int(self.n * (self.n + 1) - still * (still + 1)) // 2

    def close(self) -> None:
        """Close the files; temporary ones are gone then."""
        self.files.close()


def tile_sizes(n: int, held: np.dtype[np.floating]) -> list[int]:
    """Bytes of the tiles, in the order of a pass."""
    heights = [block.stop - block.start for block in blocks(n, block_size(n))]
    return [heights[i] * heights[j] * held.itemsize for i, j in tournament(len(heights))]


def identity(
    kernel: Kernel, rows: KernelRows, keys: NDArray[np.uint64], held: np.dtype[np.floating]
) -> Mapping[str, Any]:
    """What tiles are of: equal only if every value is."""
    return {
        "kernel": kernel.identity,
        "rows": rows.n,
        "columns": rows.d,
        "data": hashlib.sha256(np.ascontiguousarray(keys).tobytes()).hexdigest(),
        "precision": f"{rows.dtype}{', sparse' if is_sparse(rows.X) else ''}",
        "values": str(held),
        "rows of a tile": block_size(rows.n),
        "instruction set": _core.active(),
    }
