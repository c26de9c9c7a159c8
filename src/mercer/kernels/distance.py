"""Kernels of x - z: rbf exp(-gamma |x - z|^2) and laplacian exp(-gamma |x - z|_1).

Both cost one product or one sum of absolute differences per pair plus an exponential, in the same pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import CompiledKernel, KernelRows, positive
from mercer.sources import Matrix, is_sparse

_SHIFT_WHEN = 3.0  # |mean|^2 over the total variance: above it, |x|^2 + |z|^2 - 2 x.z loses more than two bits


@dataclass(frozen=True)
class _DistanceKernel(CompiledKernel):
    """What the two have in common: a width, and ones on the diagonal."""

    gamma: float = 1.0
    geometry: ClassVar[Any] = "distance"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))

    @property
    def positive_semidefinite(self) -> bool:
        """Always."""
        return True

    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """Ones, shape (n,)."""
        return np.ones(rows.n)


@dataclass(frozen=True)
class RBF(_DistanceKernel):
    """Gaussian kernel exp(-gamma |x - z|^2).

    Parameters
    ----------
    gamma : float, default=1.0
        1 / (2 sigma^2) for a Gaussian of standard deviation sigma.

    Examples
    --------
    >>> from mercer import kernels
    >>> kernels.RBF(gamma=0.5)([[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]).round(3)
    array([[1.   , 0.368]])
    """

    name: ClassVar[str] = "rbf"
    kind: ClassVar[int] = 1
    norm: ClassVar[int | None] = 2

    def _origin(self, X: Matrix) -> NDArray[Any] | None:
        """Return the mean, if the rows lie far from zero compared with their spread (cancellation)."""
        if is_sparse(X):
            return None
        mean = X.mean(axis=0, dtype=np.float64)
        at_mean = float(mean @ mean)
        spread = float(np.einsum("ij,ij->", X, X, dtype=np.float64)) / len(X) - at_mean
        return mean.astype(X.dtype) if at_mean > _SHIFT_WHEN * spread else None


@dataclass(frozen=True)
class Laplacian(_DistanceKernel):
    """Laplacian kernel exp(-gamma sum_t |x_t - z_t|).

    Parameters
    ----------
    gamma : float, default=1.0

    Examples
    --------
    >>> from mercer import kernels
    >>> kernels.Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(3)
    array([[0.368]])
    """

    name: ClassVar[str] = "laplacian"
    kind: ClassVar[int] = 2
    norm: ClassVar[int | None] = 1
