"""A plan: what will be done, what it needs, and why."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.engine.memory import format_bytes
from mercer.engine.progress import format_seconds
from mercer.planner.speeds import Speeds


@dataclass(frozen=True)
class Plan:
    """How a fit is carried out.

    Attributes
    ----------
    method : str
        For example "exact".
    storage : str
        Where the kernel matrix is: "memory", "disk", "recompute" or "precomputed"; without one, where the
        coordinates are: "embedding" (in memory), "embedding, disk" or "embedding, recompute".
    n_samples, n_features, n_clusters : int
    kernel_bytes : int
        What the kernel matrix (or the coordinates) takes.
    work_bytes : int
        What the solver takes beside it.
    limit : int or None
        The memory limit the plan was made for, in bytes.
    reasons : tuple of str
        Why it is so.
    disk_bytes : int
        What the kernel matrix takes on disk.
    seconds : float or None
        How long the fit is expected to take; None where nothing was measured.
    speeds : Speeds or None
        What was measured to tell.
    """

    method: str
    storage: str
    n_samples: int
    n_features: int
    n_clusters: int
    kernel_bytes: int
    work_bytes: int
    limit: int | None
    reasons: tuple[str, ...]
    disk_bytes: int = 0
    seconds: float | None = None
    speeds: Speeds | None = None

    @property
    def _what(self) -> str:
        if self.storage.startswith("embedding"):
            return self.storage.replace("embedding", "coordinates")
        return f"kernel matrix {self.storage}"

    @property
    def total_bytes(self) -> int:
        """Bytes beyond the input, kernel matrix and work together."""
        return self.kernel_bytes + self.work_bytes

    def __str__(self) -> str:
        head = (
            f"{self.method} on {self.n_samples:,} x {self.n_features:,}, {self.n_clusters} clusters: "
            f"{self._what} ({format_bytes(self.kernel_bytes)}), work {format_bytes(self.work_bytes)}"
        )
        if self.disk_bytes:
            head += f", disk {format_bytes(self.disk_bytes)}"
        if self.limit is not None:
            head += f", limit {format_bytes(self.limit)}"
        if self.seconds is not None:
            head += f", about {format_seconds(self.seconds)}"
        return head + "".join(f"\n  - {reason}" for reason in self.reasons)


_CHOOSING = 4 * 10**6  # gamma from a sample of the rows, landmarks


def recipe_bytes(n: int, d: int, n_clusters: int, itemsize: int) -> int:
    """Bytes of choosing gamma and of the restarts on a sample (see `mercer.solvers.recipe`)."""
    scored, sample = min(n, max(2048, 20 * n_clusters)), min(n, max(8192, 40 * n_clusters))
    return _CHOOSING + itemsize * (scored * (scored + 512) // 2 + 2 * sample * (d + 2 * n_clusters + 8)) + 80 * sample
