"""What an embedded fit takes, and when `method="auto"` prefers one."""

from __future__ import annotations

import shutil

import numpy as np

from mercer.engine.memory import available_memory, format_bytes
from mercer.gram import memory_bytes
from mercer.planner.plan import Plan, recipe_bytes
from mercer.planner.speeds import lies_in_memory, temporary_folder

_EXACT_ROWS = 20_000  # an exact fit of so many rows takes a second or two
_SHARE = 0.8


def prefers_exact(n_samples: int, itemsize: int, memory_limit: int | None) -> tuple[bool, str]:
    """Whether `method="auto"` is the exact method, and why.

    Parameters
    ----------
    n_samples : int
    itemsize : int
    memory_limit : int, optional

    Examples
    --------
    >>> prefers_exact(1000, 4, None)
    (True, 'exact: the kernel matrix of 1,000 rows is small')
    """
    need = memory_bytes(n_samples, itemsize)
    limit = memory_limit if memory_limit is not None else int(_SHARE * available_memory())
    if n_samples > _EXACT_ROWS:
        return False, f"approximate: an exact fit of {n_samples:,} rows would take time in proportion to their square"
    if 2 * need > limit:
        return False, f"approximate: half the kernel matrix is {format_bytes(need)} of {format_bytes(limit)}"
    return True, f"exact: the kernel matrix of {n_samples:,} rows is small"


def plan_embedded(
    method: str,
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    columns: int,
    landmarks: int,
    dtype: np.dtype[np.floating],
    memory_limit: int | None = None,
    n_jobs: int = 1,
    memberships: int = 0,
    reading: int | None = None,
    reasons: tuple[str, ...] = (),
) -> Plan:
    """Plan a fit in the coordinates of a feature map, or say why it cannot be done.

    Parameters
    ----------
    method : str
    n_samples, n_features, n_clusters : int
    columns : int
        Coordinates, an upper bound if not known.
    landmarks : int
        Rows that the map keeps.
    dtype : dtype
    memory_limit : int, optional
    n_jobs : int
    memberships : int
        Bytes for what a soft rule keeps of every point and cluster.
    reading : int, optional
        Bytes that reading takes, of rows that are not in memory; their coordinates need not be either.
    reasons : tuple of str

    Raises
    ------
    MemoryError
        If the coordinates do not fit.
    """
    coordinates = dtype.itemsize * n_samples * columns
    vectors = n_samples * (2 * dtype.itemsize + 9 * 8)
    values = min(n_samples * (n_features + columns), 1 << 20)
    block = n_jobs * (4 * dtype.itemsize * values + 3 * 8 * n_clusters * columns)
    learned = 3 * 8 * landmarks * landmarks + dtype.itemsize * landmarks * (2 * n_features + columns)
    work = memberships + vectors + block + learned + recipe_bytes(n_samples, n_features, n_clusters, dtype.itemsize)
    limit = memory_limit if memory_limit is not None else int(_SHARE * available_memory())
    work += reading or 0
    storage = "embedding"
    if reading is not None and work <= limit < coordinates + work:
        storage, reason = _elsewhere(coordinates, limit)
        reasons, coordinates = (*reasons, reason), 0
    if coordinates + work > limit:
        raise MemoryError(
            f"This fit does not fit in {format_bytes(limit)}: {columns:,} coordinates of {n_samples:,} rows take "
            f"{format_bytes(coordinates)} and the work beside them {format_bytes(work)}. Allow "
            f"{format_bytes(coordinates + work)}, or use fewer coordinates (a smaller rank or n_components)."
        )
    disk = dtype.itemsize * n_samples * columns if storage == "embedding, disk" else 0
    sizes = n_samples, n_features, n_clusters, coordinates, work
    return Plan(method, storage, *sizes, memory_limit, reasons, disk_bytes=disk)


def _elsewhere(coordinates: int, limit: int) -> tuple[str, str]:
    """Where coordinates are that do not fit in memory: on disk if there is room, else found again in every pass."""
    too_much = f"the coordinates take {format_bytes(coordinates)}, too much beside the work for {format_bytes(limit)}"
    place = temporary_folder()
    free = shutil.disk_usage(place).free
    if lies_in_memory(place) or coordinates > free:
        return "embedding, recompute", f"{too_much}; {place} has no room for them, so every pass finds them again"
    return "embedding, disk", f"{too_much}; they are in temporary files in {place}"
