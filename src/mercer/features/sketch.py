"""One-pass randomised sketch of the kernel matrix (Pourkamali-Anaraki & Becker 2016).

W = K Omega, with every kernel value computed once and none stored; Q the leading left singular vectors of W; B from the
least-squares solution of B (Q' Omega) = Q' W, symmetrised, its negative eigenvalues clipped; Y = Q V S^(1/2), cut to
the leading `rank`. Omega is a subsampled randomised Hadamard transform (signs, transform, columns at random) or
Gaussian. The paper keeps no more vectors in Q than coordinates; rank + oversample / 2 of them make, from the same
sketch, the error smaller.

Time: n^2 (d + r') for r' = rank + oversample, once. Memory: n r'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg

from mercer import _core
from mercer.engine.threads import Threads, blocks
from mercer.features.base import FeatureMap
from mercer.features.nystroem import at_least_one
from mercer.features.spectrum import with_signs
from mercer.kernels import Factor, Kernel, KernelRows, Precomputed
from mercer.sources import Matrix, Sample, content_hash, distinct_rows

_BLOCK = 512
_SKETCHES = ("srht", "gaussian")


class OnePassSketch(FeatureMap):
    """Coordinates of the training rows from one pass over their kernel matrix.

    New rows are placed by the extension ``S^(-1/2) V' Q' k(X, x)``, which needs their kernel values with all training
    rows; rows that were there in training, known by their content, have the coordinates of the sketch.

    Parameters
    ----------
    rank : int, default=2
        Number of coordinates.
    oversample : int, default=10
        Extra columns of the sketch.
    sketch : {"srht", "gaussian"}, default="srht"
    kernel, gamma, degree, coef0, kernel_params
        As in `KernelKMeans`.
    random_state : int, RandomState or None
    n_jobs : int, optional

    Attributes
    ----------
    kernel_ : Kernel
    gamma_ : float or None
    rank_ : int
    embedding_ : array of shape (n_samples, rank_)
        Coordinates of the training rows, what `fit_transform` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import OnePassSketch
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> Y = OnePassSketch(rank=3, kernel="polynomial", degree=2, coef0=0, random_state=0).fit_transform(X)
    >>> Y.shape
    (100, 3)
    """

    leading_first: ClassVar[bool] = True

    def __init__(
        self,
        rank: int = 2,
        *,
        oversample: int = 10,
        sketch: str = "srht",
        kernel: str | Kernel | Callable[..., Any] | None = None,
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rank = rank
        self.oversample = oversample
        self.sketch = sketch
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.n_jobs = n_jobs

    def size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Coordinates and the columns of the sketch; no landmarks."""
        rank = at_least_one("rank", self.rank)
        return rank + 4 * (rank + at_least_one("oversample", self.oversample)), 0

    def _learn(self, sample: Sample, seed: int, pool: Threads) -> None:
        X, keys = sample.X, sample.keys
        rank, n = at_least_one("rank", self.rank), X.shape[0]
        if self.sketch not in _SKETCHES:
            raise ValueError(f"sketch={self.sketch!r} is not known; choose from 'srht', 'gaussian'")
        columns = min(n, rank + at_least_one("oversample", self.oversample))
        given = isinstance(self.kernel_, Precomputed)
        rows, total = distinct_rows(keys, sample.weight)
        root, columns = np.sqrt(total)[:, None], min(len(rows), columns)
        self._like = self.kernel_.select(X, rows)
        left = self.kernel_.rows(X[rows]) if given else self._like
        omega = _omega(self.sketch, len(rows), columns, np.random.default_rng(seed))
        W = root * self._multiply(left, root * omega, pool)
        Q, values, V = _eigenpairs(W, omega, rank, X.dtype)
        kept = values > 10 * np.finfo(X.dtype).eps * max(values[0], np.finfo(np.float64).tiny)
        kept[0] = True
        basis, values = with_signs(Q @ V[:, kept]), np.maximum(values[kept], np.finfo(np.float64).tiny)
        self._factor = Factor((root * basis / np.sqrt(values)).astype(X.dtype))
        self._known = None if given else keys[rows]
        self._coordinates = (basis * np.sqrt(values) / root).astype(X.dtype)
        self.rank_ = self._n_features_out = len(values)
        self.embedding_ = self._place(keys[rows], keys, X, pool)

    def _place(self, known: NDArray[np.uint64], keys: NDArray[np.uint64], X: Matrix, pool: Threads) -> NDArray[Any]:
        """Coordinates of rows: those of the sketch where a row's key is known, by the extension elsewhere."""
        position = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        out: NDArray[Any] = self._coordinates[position]
        absent = np.flatnonzero(known[position] != keys)
        if len(absent):
            out[absent] = super().embed(X[absent], pool)
        return out

    def embed(self, X: Matrix, pool: Threads) -> Matrix:
        """Coordinates of validated rows; rows met in training have those of the sketch."""
        X = X.astype(self._coordinates.dtype, copy=False)
        return super().embed(X, pool) if self._known is None else self._place(self._known, content_hash(X), X, pool)

    def _multiply(self, left: KernelRows, V: NDArray[np.float64], pool: Threads) -> NDArray[np.float64]:
        """K V, each kernel value computed once."""
        panels, factor = self.kernel_.panels(self._like), Factor(V.astype(left.dtype))
        out = np.empty(V.shape, dtype=left.dtype)
        pool.map(lambda part: self.kernel_.product(left.slice(part), panels, factor, out[part]), blocks(left.n, _BLOCK))
        return out.astype(np.float64)

    def embed_training(self, X: Matrix, pool: Threads) -> Matrix:
        """Coordinates of the rows the map was learned from."""
        return self.embedding_

    def fit_transform(self, X: Any, y: object = None, **fit_params: Any) -> Matrix:
        """Learn the map and return the coordinates of the rows of `X`, shape (n_samples, rank_)."""
        embedding: Matrix = self.fit(X, **fit_params).embedding_
        return embedding

    def _embed(self, rows: KernelRows, out: NDArray[Any]) -> None:
        self.kernel_.product(rows, self.kernel_.panels(self._like), self._factor, out)


def _omega(sketch: str, n: int, columns: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the test matrix, shape (n, columns): rows of D H R beyond n meet only the padding, and are left out."""
    if sketch == "gaussian":
        return np.asarray(rng.normal(size=(n, columns)) / np.sqrt(columns))
    padded = 1 << (n - 1).bit_length()
    signs = rng.choice([-1.0, 1.0], padded)
    chosen = np.zeros((columns, padded))
    chosen[np.arange(columns), rng.choice(padded, columns, replace=False)] = 1 / np.sqrt(padded)
    _core.hadamard(chosen)
    return np.asarray((signs * chosen)[:, :n].T)


def _eigenpairs(
    W: NDArray[np.float64], omega: NDArray[np.float64], rank: int, dtype: DTypeLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Q (n, q), the leading eigenvalues (r,) of the least-squares core, descending, and their eigenvectors (q, r)."""
    Q, sizes, _ = linalg.svd(W, full_matrices=False)
    above = int((sizes > 10 * np.finfo(dtype).eps * sizes[0]).sum())
    Q = Q[:, : max(1, min(above, rank + (W.shape[1] - rank) // 2))]
    core = linalg.lstsq((Q.T @ omega).T, (Q.T @ W).T)[0].T
    values, V = linalg.eigh((core + core.T) / 2)
    return Q, np.maximum(values[::-1], 0.0)[:rank], V[:, ::-1][:, :rank]
