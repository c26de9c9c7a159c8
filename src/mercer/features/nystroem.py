"""Nystroem map: the best coordinates in the span of some landmarks.

``y(x) = L^(-1/2) V' k(landmarks, x)`` with V L V' the landmarks' kernel matrix, cut to its leading eigenvalues. What is
left of the kernel matrix, K - Y Y', is positive semidefinite if K is. Clustering in these coordinates is approximate
kernel k-means (Chitta, Jin, Havens & Jain 2011), and akFCM (Havens 2011) with the soft rules.

Time: m^3 for m landmarks, then n m (d + rank). Memory: n rank, and blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.engine.threads import Threads
from mercer.features.base import FeatureMap
from mercer.features.landmarks import LEVERAGE_ROWS, choose_landmarks
from mercer.features.spectrum import check_rank, spectrum
from mercer.kernels import Factor, Kernel, KernelRows
from mercer.sources import Sample


class Nystroem(FeatureMap):
    """Nystroem map of any kernel from landmarks.

    Parameters
    ----------
    n_components : int, default=100
        Landmarks. Fewer are used if there are fewer distinct rows; `n_landmarks_` says how many.
    landmarks : {"uniform", "kmeans", "leverage", "pivoted-cholesky"} or array, default="uniform"
        How they are chosen: rows at random; means of a short k-means; by ridge leverage scores; by randomly pivoted
        Cholesky; or the landmarks themselves, shape (m, n_features).
    rank : int, float or None, default=None
        Number of coordinates; or the share of the landmarks' trace that may be lost; or all above rounding.
    kernel, gamma, degree, coef0, kernel_params
        As in `KernelKMeans`; ``kernel="precomputed"`` and callables too.
    random_state : int, RandomState or None
    n_jobs : int, optional

    Attributes
    ----------
    kernel_ : Kernel
    gamma_ : float or None
    n_landmarks_ : int
    rank_ : int
        Number of coordinates.
    eigenvalues_ : array of shape (rank_,)
        Of the landmarks' kernel matrix.

    Examples
    --------
    >>> from mercer.datasets import make_rings
    >>> from mercer.features import Nystroem
    >>> X, _ = make_rings(300, random_state=0)
    >>> Nystroem(50, rank=5, gamma=1.0, random_state=0).fit_transform(X).shape
    (300, 5)
    """

    bounds_kernel: ClassVar[bool] = True
    leading_first: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int = 100,
        *,
        landmarks: str | ArrayLike = "uniform",
        rank: int | float | None = None,
        kernel: str | Kernel | Callable[..., Any] | None = None,
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.landmarks = landmarks
        self.rank = rank
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.n_jobs = n_jobs

    def size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Coordinates (at most) and landmarks."""
        given: Any = self.landmarks
        if isinstance(given, str):
            count = at_least_one("n_components", self.n_components)
        else:
            count = given.shape[0] if hasattr(given, "shape") else len(given)
        count = min(count, shape[0])
        scored = isinstance(given, str) and given == "leverage"
        factored = min(shape[0], max(LEVERAGE_ROWS, 3 * count)) if scored else count
        return min(count, self.rank) if isinstance(self.rank, (int, np.integer)) else count, factored

    def _learn(self, sample: Sample, seed: int, pool: Threads) -> None:
        check_rank(self.rank)
        count = at_least_one("n_components", self.n_components)
        self._like = choose_landmarks(self.landmarks, self.kernel_, sample, count, seed)  # type: ignore[arg-type]
        definite, dtype = self.kernel_.positive_semidefinite is True, sample.X.dtype
        found = spectrum(self.kernel_.square(self._like), self.rank, dtype, definite=definite)
        self._factor = Factor(found.inverse_root.astype(dtype))
        self.n_landmarks_ = self._like.n
        self.rank_ = self._n_features_out = len(found.values)
        self.eigenvalues_ = found.values
        self.lost_ = 1 - found.values.sum() / found.trace if found.trace > 0 else 0.0

    def _embed(self, rows: KernelRows, out: NDArray[Any]) -> None:
        self.kernel_.product(rows, self.kernel_.panels(self._like), self._factor, out)


def at_least_one(name: str, value: object) -> int:
    """Check a count."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)
