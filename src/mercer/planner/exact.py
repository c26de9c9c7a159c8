"""Where an exact fit keeps its kernel matrix."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.engine.memory import available_memory, format_bytes
from mercer.engine.progress import format_seconds
from mercer.gram import Disk, disk_bytes, memory_bytes, recompute_bytes, strip_bytes, tile_sizes
from mercer.planner.plan import Plan, recipe_bytes
from mercer.planner.speeds import Speeds, existing, lies_in_memory

STORAGES = ("auto", "memory", "disk", "recompute")
_SHARE = 0.8  # of the memory that is free, when no limit is given
_SUM_SECONDS = 8e-10  # of one thread, to add a kernel value to the sums of both its points
_WORTH_WRITING = 1.5  # times quicker that "auto" wants a disk to be: it fills up, and its speed varies
_OTHER_SECONDS = 0.3  # the search for a start on a sample, and what else does not depend on the storage


@dataclass(frozen=True)
class _Needs:
    """Bytes of memory for each storage, beside the work that they share."""

    memory: int
    disk: int
    recompute: int
    work: int

    def of(self, storage: str) -> int:
        return int(getattr(self, storage, 0)) + self.work


def plan_exact(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    dtype: np.dtype[np.floating],
    storage: str | Disk = "auto",
    precomputed: bool = False,
    memory_limit: int | None = None,
    n_jobs: int = 1,
    memberships: int = 0,
    passes: float = 1.0,
    measure: Callable[[bool], Speeds] | None = None,
    reasons: tuple[str, ...] = (),
) -> Plan:
    """Plan an exact fit, or say why it cannot be done.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
    dtype : dtype
        Of the kernel values.
    storage : {"auto", "memory", "disk", "recompute"} or Disk
    precomputed : bool
        Whether the user holds the kernel matrix already.
    memory_limit : int, optional
        Bytes; without it, four fifths of the memory that is free.
    n_jobs : int
        Threads, each of which has buffers of its own.
    memberships : int
        Bytes for what a soft rule keeps of every point and cluster.
    passes : float
        How often the fit is expected to need the whole matrix.
    measure : callable, optional
        Measures the speeds by which "auto" chooses, those of the disk too if its argument is true; called only where
        the matrix does not fit in memory.
    reasons : tuple of str
        Why the fit is exact.

    Raises
    ------
    MemoryError
        If the plan does not fit, with what would.

    Examples
    --------
    >>> plan_exact(60_000, 784, 10, dtype=np.dtype("f4"), memory_limit=10**9).storage
    'recompute'
    """
    disk = storage if isinstance(storage, Disk) else Disk()
    storage = "disk" if isinstance(storage, Disk) else storage
    if storage not in STORAGES:
        raise ValueError(f"storage={storage!r} is not known; choose from {', '.join(map(repr, STORAGES))}, or a Disk")
    needs = _needs(n_samples, n_features, n_clusters, dtype.itemsize, n_jobs, memberships)
    limit = memory_limit if memory_limit is not None else int(_SHARE * available_memory())
    budget = f"{format_bytes(limit)} {'allowed' if memory_limit is not None else '(four fifths of what is free)'}"
    choices = _choices(storage, precomputed, needs.of("memory") <= limit)
    fitting = [choice for choice in choices if needs.of(choice) <= limit]
    if not fitting:
        raise MemoryError(_advice(choices[0], n_samples, needs, limit, budget))
    held = sum(tile_sizes(n_samples, disk.held(dtype))) if "disk" in fitting else 0
    speeds = measure("disk" in fitting) if measure is not None and fitting[0] in ("disk", "recompute") else None
    times = {} if speeds is None else _seconds(n_samples, n_clusters, n_jobs, passes, held, speeds)
    times = {choice: seconds for choice, seconds in times.items() if choice in fitting}
    choice = _quickest(times, disk, held) if storage == "auto" and times else fitting[0]
    return Plan(
        "exact",
        choice,
        n_samples,
        n_features,
        n_clusters,
        needs.of(choice) - needs.work,
        needs.work,
        memory_limit,
        (*reasons, _first_reason(choice, storage, needs, budget), *_described(times, speeds, held, passes))
        + (_obstacle(disk, held) if storage == "auto" and "disk" in times else ()),
        disk_bytes=held if choice == "disk" else 0,
        seconds=times.get(choice),
        speeds=speeds,
    )


def _choices(storage: str, precomputed: bool, fits_in_memory: bool) -> tuple[str, ...]:
    if precomputed:
        return ("precomputed",)
    if storage != "auto":
        return (storage,)
    return ("memory",) if fits_in_memory else ("recompute", "disk")


def _first_reason(choice: str, storage: str, needs: _Needs, budget: str) -> str:
    if choice == "precomputed":
        return "the kernel matrix is given and read where it is"
    if choice == "memory":
        return f"half the kernel matrix and the work fit in the {budget}"
    if storage != "auto":
        return "asked for"
    return f"half the kernel matrix is {format_bytes(needs.memory)}, more than the {budget}"


def _needs(n: int, d: int, k: int, itemsize: int, n_jobs: int, memberships: int) -> _Needs:
    sums = 2 * 8 * k * n  # of the best run so far and of the current one
    columns = max(16, 2 + int(np.log(k))) * n * (itemsize + 3 * 8)  # a look at the matrix; k-means++
    vectors = 12 * 8 * n  # labels, distances, weights, order
    rows = itemsize * n * (d + 1)  # shifted copy and norms
    strips = n_jobs * strip_bytes(n, itemsize)  # of transposed tiles
    return _Needs(
        memory_bytes(n, itemsize) + itemsize * n_jobs * (d + 1) * 1024,
        disk_bytes(n, d, itemsize, n_jobs),
        recompute_bytes(n, d, itemsize, n_jobs),
        sums + memberships + columns + vectors + rows + strips + recipe_bytes(n, d, k, itemsize),
    )


# ---- which is quicker ------------------------------------------------------------------------------------------------


def _seconds(n: int, k: int, n_jobs: int, passes: float, held: int, speeds: Speeds) -> dict[str, float]:
    """Seconds that a fit is expected to take from each storage."""
    values = n * (n + 1) / 2
    evaluate = values * speeds.kernel_value
    add = values * _SUM_SECONDS * (1 + min(1.0, k / 1000)) / n_jobs
    times = {"recompute": _OTHER_SECONDS + passes * (evaluate + add)}
    if speeds.read and held:
        once = max(evaluate, held / speeds.write)
        times["disk"] = _OTHER_SECONDS + once + passes * max(held / speeds.read, add)
    return times


def _quickest(times: dict[str, float], disk: Disk, held: int) -> str:
    worth_it = "disk" in times and _WORTH_WRITING * times["disk"] < times.get("recompute", float("inf"))
    return "disk" if worth_it and not _obstacle(disk, held) else "recompute"


def _obstacle(disk: Disk, held: int) -> tuple[str, ...]:
    """Why "auto" does not use the disk although it could be quicker."""
    place = existing(disk.folder)
    if lies_in_memory(place):
        return (f"{place} is kept in memory, so tiles there save none",)
    free = shutil.disk_usage(place).free
    return (f"{place} has {format_bytes(free)} free, too little for tiles",) if held > free else ()


def _described(times: dict[str, float], speeds: Speeds | None, held: int, passes: float) -> tuple[str, ...]:
    if speeds is None:
        return ()
    evaluating = f"{1e9 * speeds.kernel_value:.2g} ns for a kernel value, {passes:.3g} times the matrix"
    files = f"{format_bytes(held)} written at {format_bytes(speeds.write)}/s and read at {format_bytes(speeds.read)}/s"
    details = {"recompute": evaluating, "disk": f"{files}, {passes:.3g} times"}
    return tuple(
        f"{storage}: about {format_seconds(seconds)} ({details[storage]})" for storage, seconds in times.items()
    )


def _advice(choice: str, n: int, needs: _Needs, limit: int, budget: str) -> str:
    kernel_bytes = needs.of(choice) - needs.work
    what = {
        "memory": f"half of the {n:,} x {n:,} kernel matrix takes {kernel_bytes:,} bytes",
        "disk": f"tiles on their way to and from the disk take {format_bytes(kernel_bytes)}",
        "recompute": f"recomputing tiles takes {format_bytes(kernel_bytes)}",
        "precomputed": "the kernel matrix is given",
    }[choice]
    message = f"This fit does not fit in the {budget}: {what}, and the work beside it {format_bytes(needs.work)}."
    if choice in ("memory", "disk") and needs.of("recompute") <= limit:
        return (
            f"{message} Use storage='recompute' (or 'auto'), which needs {format_bytes(needs.of('recompute'))} "
            f"in all, or allow {format_bytes(needs.of(choice))}."
        )
    return f"{message} Allow {format_bytes(needs.of(choice))}, or use fewer rows or clusters."
