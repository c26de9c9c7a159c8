"""Taylor features of the rbf kernel (Lin & Yang 2014).

``exp(-gamma |x-z|^2) = exp(-gamma |x|^2) exp(-gamma |z|^2) sum_p (2 gamma x.z)^p / p!``, cut at a degree: the features
are the monomials x^a of degree |a| = p <= degree, times exp(-gamma |x|^2) sqrt((2 gamma)^p / a!). Their number is
C(N + degree, degree) for N input features. Sparse rows give sparse features. What is left of the kernel matrix is
positive semidefinite, and at most (2 gamma |x| |z|)^(degree + 1) / (degree + 1)! in size.

Time and memory: n times the number of features (of monomials of nonzero entries, for sparse rows).
"""

from __future__ import annotations

from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mercer.engine.memory import available_memory, format_bytes
from mercer.engine.threads import Threads, blocks
from mercer.features.base import FeatureMap
from mercer.features.nystroem import at_least_one
from mercer.kernels import RBF, Kernel, KernelRows
from mercer.sources import Matrix, Sample, is_sparse

_BLOCK = 1024


class TaylorFeatures(FeatureMap):
    """Taylor features of the rbf kernel.

    Parameters
    ----------
    degree : int, default=2
        Of the polynomial: 2 is what the paper uses. Works best for data scaled to [0, 1].
    kernel : {"rbf"} or RBF object, optional
    gamma : float or {"auto", "scale", "median"}, default="auto"
    n_jobs : int, optional

    Attributes
    ----------
    kernel_ : RBF
    gamma_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import TaylorFeatures
    >>> Y = TaylorFeatures(degree=6, gamma=0.5).fit_transform(np.array([[0.0, 1.0], [1.0, 1.0]]))
    >>> Y.shape, round(float(Y[0] @ Y[1]), 3)
    ((2, 28), 0.606)
    """

    bounds_kernel: ClassVar[bool] = True

    def __init__(
        self,
        degree: int = 2,
        *,
        kernel: str | Kernel | None = None,
        gamma: float | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.degree = degree
        self.kernel = kernel
        self.gamma = gamma
        self.n_jobs = n_jobs

    def _check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, RBF):
            raise ValueError(f"Taylor features are those of the rbf kernel, not of {kernel!r}")

    def size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Coordinates; no rows are kept."""
        degree = at_least_one("degree", self.degree)
        return comb(shape[1] + degree, degree), 0

    def _learn(self, sample: Sample, seed: int, pool: Threads) -> None:
        X = sample.X
        degree, d = at_least_one("degree", self.degree), X.shape[1]
        self._n_features_out = comb(d + degree, degree)
        self._like = KernelRows(X[:1], norm=2)
        if not is_sparse(X):
            need, free = X.shape[0] * self._n_features_out * X.dtype.itemsize, available_memory()
            if need > free:
                raise MemoryError(
                    f"Taylor features of degree {degree} of {d} columns are {self._n_features_out:,} columns, "
                    f"{format_bytes(need)} for {X.shape[0]:,} rows, and {format_bytes(free)} are free: lower the "
                    "degree, give sparse rows, or use another map, such as Nystroem"
                )

    def embed(self, X: Matrix, pool: Threads) -> Matrix:
        """Features of validated rows: dense for dense, CSR for CSR."""
        X = X.astype(self._like.dtype, copy=False)
        if is_sparse(X):
            return sparse.vstack(pool.map(lambda part: self._sparse(X[part]), blocks(X.shape[0], _BLOCK)), format="csr")
        out = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        pool.map(lambda part: self._dense(X[part], out[part]), blocks(X.shape[0], _BLOCK))
        return out

    def inverse_transform(self, Y: Matrix) -> Matrix:
        """Return the rows, shape (n, n_features), whose features are `Y`: those of degree 1 over that of degree 0.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.features import TaylorFeatures
        >>> taylor = TaylorFeatures(degree=2, gamma=0.5).fit(np.array([[0.5, 1.0]]))
        >>> taylor.inverse_transform(taylor.transform(np.array([[0.5, 1.0]]))).round(6)
        array([[0.5, 1. ]])
        """
        check_is_fitted(self)
        if Y.shape[1] != self._n_features_out:
            raise ValueError(f"features have {self._n_features_out} columns, these have {Y.shape[1]}")
        linear, constant = Y[:, 1 : self.n_features_in_ + 1], Y[:, [0]]
        constant = (constant.toarray() if is_sparse(Y) else constant) * np.sqrt(2 * self._gamma).astype(Y.dtype)
        return linear.multiply(1 / constant).tocsr() if is_sparse(Y) else linear / constant

    def _embed(self, rows: KernelRows, out: NDArray[Any]) -> None:
        self._dense(rows.X, out)

    def _damping(self, X: Matrix) -> NDArray[np.float64]:
        squares = X.multiply(X).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return np.exp(-self._gamma * np.asarray(squares, dtype=np.float64).ravel())

    @property
    def _gamma(self) -> float:
        assert isinstance(self.kernel_, RBF)
        return self.kernel_.gamma

    def _dense(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Monomials degree by degree: those of one degree, in the order of their last variable, times each variable.

        Those whose last variable is at most i are a prefix, and multiplying them by x_i keeps the order.
        """
        d, root = X.shape[1], np.sqrt(2 * self._gamma)
        out[:, 0] = self._damping(X)
        start, repeats = 0, np.zeros(1)  # of the degree before: first column, times its last variable occurs
        for p in range(1, self.degree + 1):
            column = begin = comb(d + p - 1, p - 1)
            now = np.empty(comb(d + p - 1, p))
            for i in range(d):
                prefix, fresh = comb(i + p - 1, p - 1), comb(i + p - 2, p - 1) if p > 1 else 1
                times = np.ones(prefix)
                times[fresh:] = repeats[fresh:prefix] + 1  # those that end in x_i already
                factor = (root / np.sqrt(times)).astype(X.dtype)
                np.multiply(
                    out[:, start : start + prefix], X[:, i : i + 1] * factor, out=out[:, column : column + prefix]
                )
                now[column - begin : column - begin + prefix] = times
                column += prefix
            start, repeats = begin, now

    def _sparse(self, X: Matrix) -> Matrix:
        """Return the same columns from the nonzero entries only, as CSR."""
        root, n = np.sqrt(2 * self._gamma), X.shape[0]
        level = _Terms(
            np.arange(n), np.zeros(n, np.int64), self._damping(X), X.indptr[:-1].astype(np.int64), np.zeros(n)
        )
        parts = [level]
        for p in range(1, self.degree + 1):
            level = level.times_variables(X, p, root)
            parts.append(level)
        begins = [0, *(comb(X.shape[1] + p, p) for p in range(self.degree))]
        columns = np.concatenate([part.column + begin for part, begin in zip(parts, begins, strict=True)])
        rows, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "value"))
        shape = (n, self._n_features_out)
        return sparse.csr_array((values.astype(X.dtype), (rows, columns)), shape=shape)


class _Terms:
    """Monomials of one degree of sparse rows, one entry each: where its last variable is among the row's entries."""

    def __init__(
        self,
        row: NDArray[np.intp],
        column: NDArray[np.int64],
        value: NDArray[np.float64],
        last: NDArray[np.int64],
        repeats: NDArray[np.float64],
    ) -> None:
        self.row, self.column, self.value, self.last, self.repeats = row, column, value, last, repeats

    def times_variables(self, X: Matrix, p: int, root: float) -> _Terms:
        """Multiply each by the variables from its last one on: the monomials of degree p."""
        counts = X.indptr[self.row + 1] - self.last
        source = np.repeat(np.arange(len(self.row)), counts)
        ends = np.cumsum(counts)
        step = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        entry = self.last[source] + step
        times = np.where((step == 0) & (p > 1), self.repeats[source] + 1, 1.0)
        variable = X.indices[entry].astype(np.int64)
        offset = np.array([comb(i + p - 1, p) for i in range(X.shape[1])], dtype=np.int64)
        value = self.value[source] * X.data[entry] * (root / np.sqrt(times))
        return _Terms(self.row[source], self.column[source] + offset[variable], value, entry, times)
