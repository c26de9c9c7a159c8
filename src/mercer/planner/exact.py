"""Where an exact fit keeps its kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.engine.memory import available_memory, format_bytes
from mercer.gram import memory_bytes, recompute_bytes
from mercer.planner.plan import Plan, recipe_bytes

STORAGES = ("auto", "memory", "recompute")
_SHARE = 0.8  # of the memory that is free, when no limit is given


@dataclass(frozen=True)
class _Needs:
    memory: int
    recompute: int
    work: int


def plan_exact(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    dtype: np.dtype[np.floating],
    storage: str = "auto",
    precomputed: bool = False,
    memory_limit: int | None = None,
    n_jobs: int = 1,
    memberships: int = 0,
    reasons: tuple[str, ...] = (),
) -> Plan:
    """Plan an exact fit, or say why it cannot be done.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
    dtype : dtype
        Of the kernel values.
    storage : {"auto", "memory", "recompute"}
    precomputed : bool
        Whether the user holds the kernel matrix already.
    memory_limit : int, optional
        Bytes; without it, four fifths of the memory that is free.
    n_jobs : int
        Threads, each of which has buffers of its own.
    memberships : int
        Bytes for what a soft rule keeps of every point and cluster.
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
    if storage not in STORAGES:
        raise ValueError(f"storage={storage!r} is not known; choose from {', '.join(map(repr, STORAGES))}")
    needs = _needs(n_samples, n_features, n_clusters, dtype.itemsize, n_jobs, memberships)
    limit = memory_limit if memory_limit is not None else int(_SHARE * available_memory())
    budget = f"{format_bytes(limit)} {'allowed' if memory_limit is not None else '(four fifths of what is free)'}"
    if precomputed:
        choice, kernel_bytes, reason = "precomputed", 0, "the kernel matrix is given and read where it is"
    elif storage == "memory" or (storage == "auto" and needs.memory + needs.work <= limit):
        choice, kernel_bytes = "memory", needs.memory
        reason = f"half the kernel matrix and the work fit in the {budget}"
    else:
        choice, kernel_bytes = "recompute", needs.recompute
        reason = (
            "asked for"
            if storage == "recompute"
            else f"half the kernel matrix is {format_bytes(needs.memory)}, more than the {budget}"
        )
    if kernel_bytes + needs.work > limit:
        raise MemoryError(_advice(choice, n_samples, kernel_bytes, needs, limit, budget))
    return Plan(
        "exact", choice, n_samples, n_features, n_clusters, kernel_bytes, needs.work, memory_limit, (*reasons, reason)
    )


def _needs(n: int, d: int, k: int, itemsize: int, n_jobs: int, memberships: int) -> _Needs:
    sums = 2 * 8 * k * n  # of the best run so far and of the current one
    columns = max(16, 2 + int(np.log(k))) * n * (itemsize + 3 * 8)  # a look at the matrix; k-means++
    vectors = 12 * 8 * n  # labels, distances, weights, order
    rows = itemsize * n * (d + 1)  # shifted copy and norms
    return _Needs(
        memory_bytes(n, itemsize) + itemsize * n_jobs * (d + 1) * 1024,
        recompute_bytes(n, d, itemsize, n_jobs),
        sums + memberships + columns + vectors + rows + recipe_bytes(n, d, k, itemsize),
    )


def _advice(choice: str, n: int, kernel_bytes: int, needs: _Needs, limit: int, budget: str) -> str:
    what = {
        "memory": f"half of the {n:,} x {n:,} kernel matrix takes {kernel_bytes:,} bytes",
        "recompute": f"recomputing tiles takes {format_bytes(kernel_bytes)}",
        "precomputed": "the kernel matrix is given",
    }[choice]
    message = f"This fit does not fit in the {budget}: {what}, and the work beside it {format_bytes(needs.work)}."
    if choice == "memory" and needs.recompute + needs.work <= limit:
        return (
            f"{message} Use storage='recompute' (or 'auto'), which needs {format_bytes(needs.recompute + needs.work)} "
            f"in all, or allow {format_bytes(kernel_bytes + needs.work)}."
        )
    return f"{message} Allow {format_bytes(kernel_bytes + needs.work)}, or use fewer rows or clusters."
