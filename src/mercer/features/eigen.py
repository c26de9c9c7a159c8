"""Exact leading eigenvectors of the kernel matrix: the best coordinates of their number, and the costliest.

``y(x) = L^(-1/2) V' k(X, x)`` with the leading eigenpairs of the whole kernel matrix. Up to a few hundred rows the
matrix is written out; beyond, Lanczos iterations multiply by it without holding it.

Time: n^3 for small n; else n^2 (d + 1) for each of some tens of iterations. Memory: n^2 for small n; else n rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from mercer.engine.threads import Threads, blocks
from mercer.features.base import FeatureMap
from mercer.features.nystroem import at_least_one
from mercer.features.spectrum import Spectrum, spectrum, warn_if_indefinite, with_signs
from mercer.kernels import Factor, Kernel, KernelRows, Panels, Precomputed
from mercer.sources import Matrix, Sample

_WRITE_OUT = 500
_BLOCK = 1024


class KernelEigen(FeatureMap):
    """Leading eigenvectors of the kernel matrix of the training rows.

    Parameters
    ----------
    rank : int, default=10
        Coordinates; fewer if the kernel matrix has fewer eigenvalues above rounding (`rank_`).
    kernel, gamma, degree, coef0, kernel_params
        As in `KernelKMeans`.
    random_state : int, RandomState or None
        Start of the iterations for large data.
    n_jobs : int, optional

    Attributes
    ----------
    kernel_ : Kernel
    gamma_ : float or None
    rank_ : int
    eigenvalues_ : array of shape (rank_,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import KernelEigen
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> KernelEigen(2, kernel="linear").fit(X).eigenvalues_
    array([4., 1.])
    """

    bounds_kernel: ClassVar[bool] = True
    leading_first: ClassVar[bool] = True

    def __init__(
        self,
        rank: int = 10,
        *,
        kernel: str | Kernel | Callable[..., Any] | None = None,
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rank = rank
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.n_jobs = n_jobs

    def size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Coordinates, and all rows."""
        rank = at_least_one("rank", self.rank)
        return rank, shape[0] if shape[0] <= max(_WRITE_OUT, 8 * rank) else 0

    def _learn(self, sample: Sample, seed: int, pool: Threads) -> None:
        X, weight = sample.X, sample.weight
        rank = at_least_one("rank", self.rank)
        heavy = np.flatnonzero(weight > 0)
        root = np.sqrt(weight[heavy])
        self._like = self.kernel_.select(X, heavy)
        if len(heavy) <= max(_WRITE_OUT, 8 * rank):
            K = self.kernel_.square(self._like) * root * root[:, None]
            found = spectrum(K, rank, X.dtype, definite=self.kernel_.positive_semidefinite is True)
        else:
            found = self._iterate(X[heavy], root, rank, seed, pool)
        self._factor = Factor((found.inverse_root * root[:, None]).astype(X.dtype))
        self.eigenvalues_ = found.values
        self.rank_ = self._n_features_out = len(found.values)

    def _iterate(self, X: Matrix, root: NDArray[np.float64], rank: int, seed: int, pool: Threads) -> Spectrum:
        """Lanczos, with a product of the kernel matrix and a vector in each step."""
        left = self.kernel_.rows(X) if isinstance(self.kernel_, Precomputed) else self._like
        panels, n = self.kernel_.panels(self._like), left.n

        def multiply(v: NDArray[np.float64]) -> NDArray[np.float64]:
            factor = Factor((root * v.ravel())[:, None].astype(X.dtype))
            out = np.empty((n, 1), dtype=X.dtype)
            pool.map(lambda part: self._block(left, panels, factor, part, out), blocks(n, _BLOCK))
            return root * out[:, 0]

        start = np.random.default_rng(seed).normal(size=n)
        K = LinearOperator((n, n), multiply, dtype=np.float64)
        values, vectors = eigsh(K, k=rank, v0=start, which="LA")
        if self.kernel_.positive_semidefinite is not True:
            lowest = eigsh(K, k=1, v0=start, which="SA", tol=1e-2, return_eigenvectors=False)[0]
            warn_if_indefinite(-min(float(lowest), 0.0), float(values[values > 0].sum()))
        kept = np.flatnonzero(values > 10 * np.finfo(X.dtype).eps * values[-1])[::-1]
        return Spectrum(values[kept], with_signs(vectors[:, kept]), float(values[kept].sum()))

    def _block(self, left: KernelRows, panels: Panels, factor: Factor, part: slice, out: NDArray[Any]) -> None:
        self.kernel_.product(left.slice(part), panels, factor, out[part])

    def _embed(self, rows: KernelRows, out: NDArray[Any]) -> None:
        self.kernel_.product(rows, self.kernel_.panels(self._like), self._factor, out)
