"""Small symmetric matrices: eigenvalues in float64, cut where they are rounding, and square roots."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg

_NEGATIVE_FROM = 1e-6  # share of the positive spectrum: below it, negative eigenvalues are rounding


class IndefiniteKernelWarning(UserWarning):
    """A kernel matrix has negative eigenvalues, which an embedding in a Euclidean space must drop."""


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenvalues (r,), descending, with their eigenvectors (m, r), and the trace that was cut off."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    trace: float

    @property
    def inverse_root(self) -> NDArray[np.float64]:
        """V L^(-1/2), shape (m, r)."""
        return np.asarray(self.vectors / np.sqrt(self.values))

    @property
    def symmetric_inverse_root(self) -> NDArray[np.float64]:
        """V L^(-1/2) V', shape (m, m)."""
        return np.asarray(self.inverse_root @ self.vectors.T)


def spectrum(K: NDArray[np.float64], rank: int | float | None, dtype: DTypeLike) -> Spectrum:
    """Leading eigenpairs of a symmetric matrix that are above the rounding of `dtype`.

    Parameters
    ----------
    K : array of shape (m, m)
    rank : int, float or None
        At most so many; or as many as leave less than this share of the trace; or all.
    dtype : dtype
        Precision of the kernel values that the result will multiply.
    """
    values, vectors = linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = _how_many(values, rank, 4 * float(np.finfo(dtype).eps))
    positive = float(values[values > 0].sum())
    negative = -float(values[values < 0].sum())
    if negative > _NEGATIVE_FROM * positive:
        warnings.warn(
            f"The kernel matrix is indefinite: its negative eigenvalues are {negative / max(positive, 1e-300):.2%} of "
            "the positive ones. They are dropped, so the coordinates follow its positive part only.",
            IndefiniteKernelWarning,
            stacklevel=2,
        )
    return Spectrum(values[:kept].copy(), with_signs(vectors[:, :kept]), positive)


def with_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give each column, shape (m, r), the sign that makes its largest entry positive: solvers leave it open."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.ascontiguousarray(vectors * np.where(largest < 0, -1.0, 1.0))


def _how_many(values: NDArray[np.float64], rank: int | float | None, cut: float) -> int:
    above = max(1, int((values > cut * max(float(values[0]), np.finfo(np.float64).tiny)).sum()))
    if rank is None:
        return above
    if isinstance(rank, (int, np.integer)):
        return min(int(rank), above)
    share = np.cumsum(np.maximum(values, 0)) / max(float(np.maximum(values, 0).sum()), np.finfo(np.float64).tiny)
    return min(above, int(np.searchsorted(share, 1 - rank)) + 1)


def check_rank(rank: object) -> None:
    """Check a rank: a whole number from 1, a share of the trace between 0 and 1, or None."""
    if rank is None:
        return
    if isinstance(rank, (bool, np.bool_)) or not isinstance(rank, (int, float, np.integer, np.floating)):
        raise TypeError(f"rank must be an integer, a share of the trace or None, got {rank!r}")
    if isinstance(rank, (int, np.integer)):
        if rank < 1:
            raise ValueError(f"rank must be at least 1, got {rank}")
    elif not 0 < rank < 1:
        raise ValueError(f"rank as a share of the trace that may be lost must lie between 0 and 1, got {rank}")
