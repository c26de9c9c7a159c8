"""How fast this machine is at what an exact fit can choose between: kernel values, and bytes to and from a disk."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from mercer.engine.threads import Threads
from mercer.kernels import Kernel, KernelRows
from mercer.sources import Matrix

_FIRST, _LARGEST = 64, 1024  # rows of the blocks tried
_ENOUGH, _TRIES = 0.05, 4  # seconds of a block that is large enough, and how often a smaller one is tried
_TRIAL_BYTES = 32 << 20
_PIECE = 4 << 20
_IN_MEMORY = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Speeds:
    """What was measured.

    Attributes
    ----------
    kernel_value : float
        Seconds for a kernel value with all threads at work.
    read, write : float
        Bytes in a second, of the disk where tiles would be; 0 if it was not asked for.
    """

    kernel_value: float
    read: float = 0.0
    write: float = 0.0


def measure_kernel(kernel: Kernel, X: Matrix, pool: Threads) -> float:
    """Seconds for a kernel value of the rows of `X` with all threads at work."""
    size = _FIRST
    while True:
        some = np.linspace(0, X.shape[0] - 1, min(size, X.shape[0])).astype(np.intp)
        seconds = _trial(kernel, kernel.rows(X[some]), pool)
        if 16 * seconds > _ENOUGH or 4 * size > _LARGEST:
            return seconds / len(some) ** 2
        size *= 4


def _trial(kernel: Kernel, rows: KernelRows, pool: Threads) -> float:
    """Seconds for a block while all threads evaluate some: the best of a few tries, or the first if that is long."""
    buffers = [np.empty((rows.n, rows.n), dtype=rows.dtype) for _ in range(pool.n_jobs)]
    best, turns = float("inf"), 1
    for _ in range(_TRIES):
        started = time.perf_counter()
        tasks = [(out, turns) for out in buffers]
        pool.map(lambda task: [kernel.block(rows, kernel.panels(rows), task[0]) for _ in range(task[1])], tasks)
        best = min(best, (time.perf_counter() - started) / (turns * pool.n_jobs))
        if best * pool.n_jobs > _ENOUGH:
            break
        turns = 4  # so that waking the threads does not count
    return best


def measure_disk(folder: str | os.PathLike[str] | None) -> tuple[float, float]:
    """Bytes read and written in a second where `folder` is (or will be), measured once for a disk; 0 if that fails."""
    place = existing(folder)
    try:
        return _measure_device(os.stat(place).st_dev, place)
    except OSError:  # it is full, or not to be written to
        return 0.0, 0.0


@lru_cache
def _measure_device(device: int, place: str) -> tuple[float, float]:
    piece = np.random.default_rng(0).integers(256, size=_PIECE, dtype=np.uint8).data
    with tempfile.TemporaryFile(dir=place, buffering=0) as file:
        started = time.perf_counter()
        for _ in range(_TRIAL_BYTES // _PIECE):
            file.write(piece)
        os.fsync(file.fileno())
        written = time.perf_counter()
        if hasattr(os, "posix_fadvise"):  # forget it, so that reading is reading
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        buffer = bytearray(_PIECE)
        again = time.perf_counter()
        file.seek(0)
        while file.readinto(buffer):
            pass
        done = time.perf_counter()
    return _TRIAL_BYTES / (done - again), _TRIAL_BYTES / (written - started)


def existing(folder: str | os.PathLike[str] | None) -> str:
    """Return the nearest folder above that exists; that of temporary files for None."""
    place = Path(temporary_folder() if folder is None else folder).expanduser().absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return os.fspath(place)


@lru_cache
def temporary_folder() -> str:
    """Return the system's folder for temporary files, or /var/tmp where that would be in memory."""
    usual = tempfile.gettempdir()
    other = "/var/tmp"
    if "TMPDIR" not in os.environ and lies_in_memory(usual) and os.path.isdir(other) and os.access(other, os.W_OK):
        return usual if lies_in_memory(other) else other
    return usual


def lies_in_memory(folder: str) -> bool:
    """Whether what is written there stays in memory."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
    except OSError:  # not Linux
        return False
    device = os.stat(existing(folder)).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    return any(fields[2] == name and _kind(fields) in _IN_MEMORY for fields in map(str.split, mounts.splitlines()))


def _kind(fields: list[str]) -> str:
    return fields[fields.index("-") + 1]
