"""Random Fourier features of the rbf and laplacian kernels (Rahimi & Recht 2007).

``y(x) = sqrt(2 / D) [cos(W x), sin(W x)]``, with rows of W from the kernel's spectrum: normal of variance 2 gamma for
rbf, Cauchy of scale gamma for the laplacian. Inner products are unbiased estimates of kernel values with error falling
as 1 / sqrt(D), and |y| is exactly 1. "orthogonal" makes the rows of W orthogonal in blocks (Yu et al. 2016), which
lowers the variance. With singular vectors, coordinates are the leading left singular vectors of the features (Chitta,
Jin & Jain 2012).

Time: n D d. Memory: n D.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer.engine.threads import Threads, blocks
from mercer.features.base import FeatureMap
from mercer.features.nystroem import at_least_one
from mercer.kernels import RBF, Kernel, KernelRows, Laplacian
from mercer.sources import Matrix, Sample

_BLOCK_VALUES = 1 << 19
_SAMPLINGS = ("iid", "orthogonal")
_AT_ONCE = 4


class RandomFourier(FeatureMap):
    """Random Fourier features.

    Parameters
    ----------
    n_components : int, default=100
        Number of features D; an odd number is raised by one, since cosines and sines come in pairs.
    sampling : {"iid", "orthogonal"}, default="iid"
    singular_vectors : bool or int, default=False
        If a number, that many leading left singular vectors of the features are the coordinates (they no longer
        estimate kernel values). True is the number of clusters inside an estimator.
    kernel : {"rbf", "laplacian"} or object, optional
    gamma : float or {"auto", "scale", "median"}, default="auto"
    random_state : int, RandomState or None
    n_jobs : int, optional

    Attributes
    ----------
    kernel_ : Kernel
    gamma_ : float
    frequencies_ : array of shape (n_features, D / 2)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import RandomFourier
    >>> Y = RandomFourier(2000, gamma=0.5, random_state=0).fit_transform(np.array([[0.0], [1.0]]))
    >>> bool(abs(Y[0] @ Y[1] - np.exp(-0.5)) < 0.05)
    True
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        sampling: str = "iid",
        singular_vectors: bool | int = False,
        kernel: str | Kernel | Callable[..., Any] | None = None,
        gamma: float | str = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.sampling = sampling
        self.singular_vectors = singular_vectors
        self.kernel = kernel
        self.gamma = gamma
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def geometric(self) -> bool:  # type: ignore[override]
        """Whether inner products of coordinates estimate kernel values."""
        return self.singular_vectors is False

    def _check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, (RBF, Laplacian)):
            raise ValueError(
                "random Fourier features need a kernel of x - z whose spectrum is known, rbf or laplacian, not "
                f"{kernel!r}"
            )
        if isinstance(kernel, Laplacian) and self.sampling == "orthogonal":
            raise ValueError("sampling='orthogonal' is for the rbf kernel; use 'iid' with the laplacian")

    def size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Coordinates; no rows are kept."""
        count = at_least_one("n_components", self.n_components) + 1
        return count, 0 if self.singular_vectors is False else 2 * count

    def _learn(self, sample: Sample, seed: int, pool: Threads) -> None:
        if self.sampling not in _SAMPLINGS:
            raise ValueError(f"sampling={self.sampling!r} is not known; choose from 'iid', 'orthogonal'")
        X = sample.X
        pairs = (at_least_one("n_components", self.n_components) + 1) // 2
        rng = np.random.default_rng(seed)
        self.frequencies_ = _frequencies(self.kernel_, self.sampling, X.shape[1], pairs, rng).astype(X.dtype)
        self._like = self.kernel_.rows(X[:1])
        self._rotation: NDArray[Any] | None = None
        self._n_features_out = 2 * pairs
        if self.singular_vectors is not False:
            self._rotation = self._leading(X, sample.weight, pool)
            self._n_features_out = self._rotation.shape[1]

    def _leading(self, X: Matrix, weight: NDArray[np.float64], pool: Threads) -> NDArray[Any]:
        """V S^-1 of the features' singular value decomposition, from their Gram matrix."""
        if self.singular_vectors is True:
            raise ValueError("singular_vectors=True needs an estimator to say how many; give their number")
        count = min(at_least_one("singular_vectors", self.singular_vectors), self._n_features_out)

        def part_of(part: slice) -> NDArray[np.float64]:
            Y = self._features(X[part]).astype(np.float64)
            return np.asarray(Y.T @ (Y * weight[part, None]))

        gram, parts = np.zeros((self._n_features_out, self._n_features_out)), blocks(X.shape[0], self._rows)
        for first in range(0, len(parts), _AT_ONCE):  # each gives a matrix as large as the sum
            for product in pool.map(part_of, parts[first : first + _AT_ONCE]):
                gram += product
        size = len(gram)
        values, vectors = linalg.eigh(gram, subset_by_index=(size - count, size - 1))
        kept = values > 1e-12 * values[-1]
        return np.asarray((vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1].astype(X.dtype))

    @property
    def _rows(self) -> int:
        """Rows of a block, whose features stay in the cache."""
        return max(64, _BLOCK_VALUES // int(self.frequencies_.shape[1]))

    def _features(self, X: Matrix) -> NDArray[Any]:
        angles = np.asarray(X @ self.frequencies_)
        pairs = angles.shape[1]
        out = np.empty((len(angles), 2 * pairs), dtype=angles.dtype)
        np.cos(angles, out=out[:, :pairs])
        np.sin(angles, out=out[:, pairs:])
        out *= 1 / np.sqrt(pairs)
        return out

    def embed(self, X: Matrix, pool: Threads) -> Matrix:
        """Coordinates of validated rows, block by block."""
        X = X.astype(self.frequencies_.dtype, copy=False)
        out = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)

        def run(part: slice) -> None:
            features = self._features(X[part])
            out[part] = features if self._rotation is None else features @ self._rotation

        pool.map(run, blocks(X.shape[0], self._rows))
        return out

    def _embed(self, rows: KernelRows, out: NDArray[Any]) -> None:
        out[...] = self._features(rows.X)


def _frequencies(kernel: Kernel, sampling: str, d: int, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw from the kernel's spectrum, shape (d, count)."""
    if isinstance(kernel, Laplacian):
        return kernel.gamma * rng.standard_cauchy(size=(d, count))
    assert isinstance(kernel, RBF)
    if sampling == "iid":
        normal = rng.normal(size=(d, count))
    else:
        square = [linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(-(-count // d))]
        normal = np.concatenate(square, axis=1)[:, :count] * np.sqrt(rng.chisquare(d, size=count))
    return np.asarray(np.sqrt(2 * kernel.gamma) * normal)
