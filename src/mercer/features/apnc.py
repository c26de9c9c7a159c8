"""Centroid embedding, APNC by stable distributions (Elgohary et al. 2013).

``y(x) = R k(landmarks, x)`` with R = S E H: H centres the landmarks, E = V L^(-1/2) V' is the symmetric inverse square
root of their centred kernel matrix without its zero and negative eigenvalues, and each row of S adds up a random
fraction of its columns. l1 distances between coordinates then estimate kernel distances up to a common factor: the
nearest centroid is taken in l1, and centroids are means. Inner products of coordinates mean nothing.

Time: l^3 for l landmarks, then n l (d + n_components). Memory: n n_components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads
from mercer.features.base import FeatureMap
from mercer.features.landmarks import choose_landmarks
from mercer.features.nystroem import at_least_one
from mercer.features.spectrum import spectrum
from mercer.kernels import Factor, Kernel, KernelRows
from mercer.sources import Sample


class CentroidEmbedding(FeatureMap):
    """APNC embedding, for the nearest centroid in l1.

    Parameters
    ----------
    n_landmarks : int, default=300
    n_components : int, default=1000
        Coordinates.
    fraction : float, default=0.4
        Share of the landmarks that each coordinate adds up.
    kernel, gamma, degree, coef0, kernel_params
        As in `KernelKMeans`.
    random_state : int, RandomState or None
    n_jobs : int, optional

    Attributes
    ----------
    kernel_ : Kernel
    gamma_ : float or None
    n_landmarks_ : int
    rank_ : int
        Positive eigenvalues of the landmarks' centred kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import CentroidEmbedding
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> CentroidEmbedding(30, 100, random_state=0).fit_transform(X).shape
    (200, 100)
    """

    geometric: ClassVar[bool] = False

    def __init__(
        self,
        n_landmarks: int = 300,
        n_components: int = 1000,
        *,
        fraction: float = 0.4,
        kernel: str | Kernel | Callable[..., Any] | None = None,
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.n_components = n_components
        self.fraction = fraction
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.n_jobs = n_jobs

    def size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Coordinates and landmarks."""
        columns = at_least_one("n_components", self.n_components)
        return columns, min(at_least_one("n_landmarks", self.n_landmarks), shape[0])

    def _learn(self, sample: Sample, seed: int, pool: Threads) -> None:
        if not isinstance(self.fraction, (int, float)) or not 0 < self.fraction <= 1:
            raise ValueError(f"fraction must lie above 0 and be at most 1, got {self.fraction!r}")
        columns = at_least_one("n_components", self.n_components)
        count = at_least_one("n_landmarks", self.n_landmarks)
        self._like = choose_landmarks("uniform", self.kernel_, sample, count, seed)
        m = self.n_landmarks_ = self._like.n
        K = self.kernel_.square(self._like)
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        found = spectrum(centred, None, sample.X.dtype)
        self.rank_ = len(found.values)
        rng, added = np.random.default_rng(seed), max(1, round(self.fraction * m))
        S = np.zeros((columns, m))
        for row in S:
            row[rng.choice(m, added, replace=False)] = 1.0
        R = S @ found.symmetric_inverse_root
        R -= R.mean(axis=1)[:, None]  # times the centring matrix
        self._factor = Factor(np.ascontiguousarray(R.T).astype(sample.X.dtype))
        self._n_features_out = columns

    def _embed(self, rows: KernelRows, out: NDArray[Any]) -> None:
        self.kernel_.product(rows, self.kernel_.panels(self._like), self._factor, out)
