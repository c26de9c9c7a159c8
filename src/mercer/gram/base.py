"""What solvers know of a kernel matrix: products with memberships, never the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads


@dataclass(frozen=True)
class Moves:
    """Points that change cluster: ascending positions, old and new cluster (-1: none), weights."""

    position: NDArray[np.int32]
    old: NDArray[np.int32]
    new: NDArray[np.int32]
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def between(cls, old: NDArray[np.int32] | None, new: NDArray[np.int32], weight: NDArray[np.float64]) -> Moves:
        """From one labelling, shape (n,), to another; from nothing if `old` is None. Weights of zero do not move."""
        changed = weight != 0 if old is None else (old != new) & (weight != 0)
        position = np.flatnonzero(changed).astype(np.int32)
        before = np.full(len(position), -1, dtype=np.int32) if old is None else old[position]
        return cls(position, before, new[position], weight[position])

    def within(self, part: slice) -> Moves:
        """Moves of the points in `part`, at positions relative to its start."""
        begin, end = np.searchsorted(self.position, (part.start, part.stop))
        inside = slice(begin, end)
        return Moves(
            self.position[inside] - np.int32(part.start),
            self.old[inside],
            self.new[inside],
            self.weight[inside],
        )

    def stacked(self) -> Moves:
        """Return the same moves for a block that has their points alone, one after another."""
        return Moves(np.arange(len(self), dtype=np.int32), self.old, self.new, self.weight)

    @property
    def are_first(self) -> bool:
        """Whether nothing leaves a cluster, so that the order within each cluster is all that matters."""
        return bool((self.old < 0).all())

    def by_cluster(self) -> Moves:
        """Return the same moves, those to one cluster together and in their order."""
        order = np.argsort(self.new, kind="stable")
        return Moves(self.position[order], self.old[order], self.new[order], self.weight[order])


class Gram(Protocol):
    """A symmetric kernel matrix that can be multiplied by memberships.

    Attributes
    ----------
    n : int
        Number of points.
    dtype : dtype
        Of kernel values.
    eps : float
        Relative rounding of kernel values, which may be held in a smaller type.
    diagonal : array of shape (n,)
        k(x_i, x_i), float64.
    """

    n: int
    dtype: np.dtype[np.floating]
    eps: float
    diagonal: NDArray[np.float64]

    def add(self, sums: NDArray[np.float64], moves: Moves, pool: Threads) -> None:
        """Bring ``sums[c, i] = sum over j in c of w_j K_ij``, shape (k, n), up to date with `moves`."""

    def multiply(self, factor: NDArray[np.float64], pool: Threads) -> NDArray[np.float64]:
        """K times each row of `factor`, shape (k, n)."""

    def columns(self, indices: NDArray[np.intp]) -> NDArray[np.floating]:
        """Whole columns of the matrix, as an array of shape (n, len(indices))."""
