"""A model of implicit centres that places new points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.threads import Threads
from mercer.gram import sums_across, sums_of_matrix, weighted_sums
from mercer.kernels import Kernel, KernelRows
from mercer.solvers.space import Labels
from mercer.sources import Matrix


@dataclass(frozen=True)
class ImplicitModel:
    """Implicit centres that can be compared with new points.

    Attributes
    ----------
    kernel : Kernel or None
        None if kernel matrices are given.
    rows : KernelRows or None
        The training points.
    members : Moves
        Which training points make up which centre, with their weights.
    scale, offset : array of shape (k,)
        distance = k(x, x) - 2 scale F + offset.
    resolution : float
        Squared distances below it are rounding, and zero.
    """

    kernel: Kernel | None
    rows: KernelRows | None
    members: Any
    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    resolution: float = 0.0

    @property
    def knows_distances(self) -> bool:
        """Whether k(x, x) of new rows is known."""
        return self.kernel is not None

    def _prepare(self, X: Matrix) -> KernelRows:
        """Prepare new rows as the training rows were (a matrix of kernel values is left as it is)."""
        if self.kernel is None or self.rows is None:
            return KernelRows(X)
        return self.kernel.rows(X.astype(self.rows.dtype, copy=False), like=self.rows)

    def distances(self, X: Matrix, pool: Threads) -> NDArray[np.float64]:
        """Squared distances of new rows to the centres, shape (m, k); infinite for an empty cluster."""
        diagonal, sums = self._sums(self._prepare(X), pool)
        squared = diagonal[:, None] - 2 * sums.T * self.scale + self.offset
        squared[squared <= self.resolution] = 0.0
        return squared

    def nearest(self, X: Matrix, pool: Threads) -> tuple[Labels, NDArray[np.float64]]:
        """Nearest centre of new rows and the squared distance to it, both of shape (m,).

        With given kernel values the new points' own k(x, x) are unknown, and so are the distances.
        """
        diagonal, sums = self._sums(self._prepare(X), pool)
        labels, distances = np.zeros(X.shape[0], dtype=np.int32), np.empty(X.shape[0])
        _core.gram_assign(sums, self.scale, self.offset, diagonal, labels, distances)
        return labels, distances

    def _sums(self, new: KernelRows, pool: Threads) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        k = len(self.scale)
        if self.kernel is None or self.rows is None:
            return np.zeros(new.n), sums_of_matrix(new.X, self.members, k, pool)
        return self.kernel.diagonal(new), sums_across(self.kernel, self.rows, self.members, new, k, pool)


@dataclass(frozen=True)
class SoftImplicitModel(ImplicitModel):
    """Implicit centres of which every training point is a part: `members` is what each gives to each, shape (k, n)."""

    def _sums(self, new: KernelRows, pool: Threads) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.kernel is None or self.rows is None:
            return np.zeros(new.n), np.ascontiguousarray(np.asarray((new.X @ self.members.T).T, dtype=np.float64))
        return self.kernel.diagonal(new), weighted_sums(self.kernel, self.rows, self.members, new, pool)
