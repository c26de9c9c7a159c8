"""Kernel values that the user has computed, for maps that need the columns of some landmarks only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Kernel, KernelRows, Panels
from mercer.sources import Matrix, is_sparse

_LOOKED_AT = 512
_ROUNDING = {4: 1e-4, 8: 1e-8}  # asymmetry of a product of matrices, relative to the largest value


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

    def check(self, X: Matrix) -> None:
        """A kernel matrix is square and symmetric: the latter is looked at on some of its rows and columns."""
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel matrix must be square (n_samples, n_samples); this one has shape {X.shape}"
            )
        some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _LOOKED_AT)).astype(np.intp)
        part = X[some][:, some]
        part = part.toarray() if is_sparse(part) else part
        if np.abs(part - part.T).max() > _ROUNDING[X.dtype.itemsize] * np.abs(part).max():
            raise ValueError(
                "the precomputed kernel matrix is not symmetric. Symmetrise it with (K + K.T) / 2 if that is rounding, "
                "or check that it compares the same points on both sides"
            )

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
