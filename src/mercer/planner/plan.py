"""A plan: what will be done, what it needs, and why."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.engine.memory import format_bytes


@dataclass(frozen=True)
class Plan:
    """How a fit is carried out.

    Attributes
    ----------
    method : str
        For example "exact".
    storage : str
        Where the kernel matrix is: "memory", "recompute" or "precomputed"; "embedding" if there is none.
    n_samples, n_features, n_clusters : int
    kernel_bytes : int
        What the kernel matrix (or the coordinates) takes.
    work_bytes : int
        What the solver takes beside it.
    limit : int or None
        The memory limit the plan was made for, in bytes.
    reasons : tuple of str
        Why it is so.
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

    @property
    def total_bytes(self) -> int:
        """Bytes beyond the input, kernel matrix and work together."""
        return self.kernel_bytes + self.work_bytes

    def __str__(self) -> str:
        head = (
            f"{self.method} on {self.n_samples:,} x {self.n_features:,}, {self.n_clusters} clusters: "
            f"{'coordinates' if self.storage == 'embedding' else 'kernel matrix ' + self.storage} "
            f"({format_bytes(self.kernel_bytes)}), work {format_bytes(self.work_bytes)}"
        )
        limit = "" if self.limit is None else f", limit {format_bytes(self.limit)}"
        return head + limit + "".join(f"\n  - {reason}" for reason in self.reasons)


_CHOOSING = 4 * 10**6  # gamma from a sample of the rows, landmarks


def recipe_bytes(n: int, d: int, n_clusters: int, itemsize: int) -> int:
    """Bytes of choosing gamma and of the restarts on a sample (see `mercer.solvers.recipe`)."""
    scored, sample = min(n, max(2048, 20 * n_clusters)), min(n, max(8192, 40 * n_clusters))
    return _CHOOSING + itemsize * (scored * (scored + 512) // 2 + 2 * sample * (d + 2 * n_clusters + 8)) + 80 * sample
