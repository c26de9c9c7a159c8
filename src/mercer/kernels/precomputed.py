"""Kernel values that the user has computed, for maps that need the columns of some landmarks only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Kernel, KernelRows, Panels
from mercer.sources import Matrix, is_sparse


class _SelectedRows(KernelRows):
    """Some of the training points, which are known by their positions only."""

    indices: NDArray[np.integer]

    def take(self, indices: NDArray[np.integer]) -> KernelRows:
        """Some of them."""
        part = _SelectedRows(self.X[indices])
        part.indices = self.indices[indices]
        return part


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A kernel matrix: "rows" are rows of kernel values between a point and all training points."""

    name: ClassVar[str] = "precomputed"

    def keys(self, X: Matrix) -> NDArray[np.uint64]:
        """Positions: there are no rows to tell apart."""
        return np.arange(X.shape[0], dtype=np.uint64)

    def select(self, X: Matrix, indices: NDArray[np.integer]) -> KernelRows:
        """Prepare the training points at `indices`."""
        chosen = _SelectedRows(X[indices])
        chosen.indices = indices
        return chosen

    def block(self, rows: KernelRows, panels: Panels, out: NDArray[Any]) -> None:
        """Copy the columns of the selected points to `out`."""
        if not isinstance(panels.rows, _SelectedRows):
            raise TypeError("kernel values are known between any points and training points only")
        values = rows.X[:, panels.rows.indices]
        out[...] = values.toarray() if is_sparse(values) else values

    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """k(x, x) of the training points, from their whole kernel matrix."""
        if isinstance(rows, _SelectedRows):
            return np.asarray(rows.X[np.arange(rows.n), rows.indices], dtype=np.float64).ravel()
        if rows.n != rows.d:
            raise ValueError("with kernel='precomputed' the k(x, x) of new points are unknown")
        return np.asarray(rows.X.diagonal(), dtype=np.float64)
