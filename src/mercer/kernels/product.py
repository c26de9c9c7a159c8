"""Kernels of the inner product: linear, polynomial, sigmoid (the papers' neural kernel) and cosine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import CompiledKernel, KernelRows, positive, squared_norms


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Linear(CompiledKernel):
    """Linear kernel x.z: kernel k-means with it is k-means.

    Examples
    --------
    >>> from mercer import kernels
    >>> kernels.Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    name: ClassVar[str] = "linear"
    kind: ClassVar[int] = 0

    @property
    def positive_semidefinite(self) -> bool:
        """Always."""
        return True

    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """Squared norms, shape (n,)."""
        return squared_norms(rows)


@dataclass(frozen=True)
class Polynomial(CompiledKernel):
    """Polynomial kernel (gamma x.z + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
    gamma : float, default=1.0
    coef0 : float, default=1.0
        Zero gives the homogeneous kernel; a negative value may make kernel matrices indefinite.

    Examples
    --------
    >>> from mercer import kernels
    >>> kernels.Polynomial(degree=2, coef0=0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0
    name: ClassVar[str] = "polynomial"
    kind: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or not isinstance(self.degree, (int, np.integer)):
            raise TypeError(f"degree must be an integer, got {self.degree!r}")
        if not 1 <= self.degree <= 1000:
            raise ValueError(f"degree must be between 1 and 1000, got {self.degree}")
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", _finite("coef0", self.coef0))

    @property
    def positive_semidefinite(self) -> bool | None:
        """True unless `coef0` is negative."""
        return True if self.coef0 >= 0 else None

    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """(gamma |x|^2 + coef0)^degree, shape (n,)."""
        return (self.gamma * squared_norms(rows) + self.coef0) ** self.degree


@dataclass(frozen=True)
class Sigmoid(CompiledKernel):
    """Sigmoid ("neural") kernel tanh(gamma x.z + coef0). It is not positive semidefinite.

    Parameters
    ----------
    gamma : float, default=1.0
    coef0 : float, default=1.0

    Examples
    --------
    >>> from mercer import kernels
    >>> kernels.Sigmoid(gamma=0.0045, coef0=0.11)([[1.0, 2.0]], [[3.0, 4.0]]).round(4)
    array([[0.1582]])
    """

    gamma: float = 1.0
    coef0: float = 1.0
    name: ClassVar[str] = "sigmoid"
    kind: ClassVar[int] = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", _finite("coef0", self.coef0))

    @property
    def positive_semidefinite(self) -> bool:
        """Not in general."""
        return False

    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """tanh(gamma |x|^2 + coef0), shape (n,)."""
        return np.asarray(np.tanh(self.gamma * squared_norms(rows) + self.coef0))


@dataclass(frozen=True)
class Cosine(CompiledKernel):
    """Cosine kernel x.z / (|x| |z|); a row of zeros has similarity zero to everything, itself included.

    Examples
    --------
    >>> from mercer import kernels
    >>> kernels.Cosine()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    name: ClassVar[str] = "cosine"
    kind: ClassVar[int] = 5
    norm: ClassVar[int | None] = -2

    @property
    def positive_semidefinite(self) -> bool:
        """Always."""
        return True

    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """Ones, and zeros for rows of zeros, shape (n,)."""
        assert rows.norms is not None
        return (rows.norms > 0).astype(np.float64)
