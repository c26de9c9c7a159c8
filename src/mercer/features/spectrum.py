"""Small symmetric matrices: eigenvalues in float64, cut where they are rounding, and square roots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg

from mercer.engine.warn import warn_user

_NEGATIVE_FROM = 1e-6  # share of the positive spectrum: below it, negative eigenvalues are rounding
_FEW = 4  # a quarter of the eigenpairs cost half of all
_TINY = float(np.finfo(np.float64).tiny)


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
        """V L^(-1/2), shape (m, r); zero for a matrix of zeros."""
        return np.asarray(self.vectors / np.sqrt(self.values) * (self.values > _TINY))

    @property
    def symmetric_inverse_root(self) -> NDArray[np.float64]:
        """V L^(-1/2) V', shape (m, m)."""
        return np.asarray(self.inverse_root @ self.vectors.T)


def spectrum(K: NDArray[np.float64], rank: int | float | None, dtype: DTypeLike, *, definite: bool = False) -> Spectrum:
    """Leading eigenpairs of a symmetric matrix that are above its noise.

    Noise is the rounding of `dtype`, and for an indefinite matrix the mean size of its negative eigenvalues: positive
    ones below it say no more than the negative ones, and an inverse square root would blow them up.

    Parameters
    ----------
    K : array of shape (m, m)
    rank : int, float or None
        At most so many; or as many as leave less than this share of the trace; or all.
    dtype : dtype
        Precision of the kernel values that the result will multiply.
    definite : bool
        Whether K is known to have no negative eigenvalue, so that a few leading pairs can be computed alone.
    """
    m, few = len(K), definite and isinstance(rank, (int, np.integer)) and _FEW * rank <= len(K)
    values, vectors = linalg.eigh(K, subset_by_index=(m - int(rank or 0), m - 1) if few else None)
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = float(np.trace(K)) if few else float(values[values > 0].sum())
    negative = 0.0 if definite else -float(values[values < 0].sum())
    noise = 4 * float(np.finfo(dtype).eps) * float(values[0])
    if warn_if_indefinite(negative, positive):
        noise = max(noise, float(np.mean(-values[values < -noise])))
    kept = _how_many(values, rank, noise, positive)
    return Spectrum(np.maximum(values[:kept], _TINY), with_signs(vectors[:, :kept]), positive)


def warn_if_indefinite(negative: float, positive: float) -> bool:
    """Warn if negative eigenvalues are more than rounding beside the positive ones; both are sums of their sizes."""
    if negative <= _NEGATIVE_FROM * positive:
        return False
    warn_user(
        f"The kernel matrix is indefinite: its negative eigenvalues are {negative / max(positive, _TINY):.2%} of the "
        "positive ones. They are dropped, and so are positive ones smaller than their mean.",
        IndefiniteKernelWarning,
    )
    return True


def with_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give each column, shape (m, r), the sign that makes its largest entry positive: solvers leave it open."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.ascontiguousarray(vectors * np.where(largest < 0, -1.0, 1.0))


def _how_many(values: NDArray[np.float64], rank: int | float | None, noise: float, positive: float) -> int:
    above = max(1, int((values > max(noise, _TINY)).sum()))
    if rank is None:
        return above
    if isinstance(rank, (int, np.integer)):
        return min(int(rank), above)
    share = np.cumsum(np.maximum(values, 0)) / max(positive, _TINY)
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
