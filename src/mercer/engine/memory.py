"""Buffers for the core, and bytes as people write them."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_ALIGNMENT = 64
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def aligned_empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialised C-ordered array that starts on a cache line, as the core's packed panels want."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.empty(count * dtype.itemsize + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


_thread = threading.local()


def scratch(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a buffer of this thread for one call of the core: the next call here gives the same memory again.

    A fresh one for each block would cost page faults, as much time as a quarter of the work on the block.
    """
    dtype = np.dtype(dtype)
    needed = count * dtype.itemsize
    if getattr(_thread, "buffer", None) is None or len(_thread.buffer) < needed:
        _thread.buffer = aligned_empty(needed, np.uint8)
    out: NDArray[Any] = _thread.buffer[:needed].view(dtype)
    return out


def parse_bytes(limit: int | float | str | None) -> int | None:
    """Bytes from a number or a string such as ``"2GB"``, ``"512 MB"``, ``"1.5GiB"``; ``None`` stays ``None``.

    Examples
    --------
    >>> parse_bytes("2GB"), parse_bytes("1KiB"), parse_bytes(100)
    (2000000000, 1024, 100)
    """
    if limit is None:
        return None
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?\s*", limit.upper())
        if match is None or (match[3] and not match[2]):
            raise ValueError(f"memory_limit={limit!r} is not a size: write bytes, or for example '500MB' or '2GiB'")
        unit = 1024 ** "KMGT".find(match[2]) * 1024 if match[3] else _UNITS[match[2]]
        value = float(match[1]) * unit
    elif isinstance(limit, bool) or not isinstance(limit, (int, float, np.integer, np.floating)):
        raise TypeError(f"memory_limit must be a number of bytes or a string such as '2GB', got {limit!r}")
    else:
        value = float(limit)
    if not 1 <= value < float("inf"):
        raise ValueError(f"memory_limit must be at least one byte and finite, got {limit!r}")
    return int(value)


def format_bytes(count: float) -> str:
    """Write bytes with the unit that leaves one to three digits before the point.

    Examples
    --------
    >>> format_bytes(999), format_bytes(7_200_000_000)
    ('999 B', '7.2 GB')
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5 or unit == "TB":  # more is rounded to 1000
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"


def available_memory() -> int:
    """Bytes this process can still take: what the system calls available, within the control group's limit."""
    free = _meminfo_available()
    for limit_file, usage_file in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        limit, usage = _number_in(limit_file), _number_in(usage_file)
        if limit is not None and usage is not None:
            free = min(free, max(0, limit - usage))
    return free


def _meminfo_available() -> int:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _number_in(path: str) -> int | None:
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):  # absent, or "max"
        return None
