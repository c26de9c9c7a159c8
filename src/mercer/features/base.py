"""What a feature map is: explicit coordinates y(x) with y(x).y(z) near k(x, z), as a scikit-learn transformer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import _core
from mercer.engine.threads import Threads, blocks
from mercer.kernels import Kernel, KernelRows, Precomputed, make_kernel
from mercer.sources import Matrix, Sample, canonical, check_weights, core_rows, in_memory, require_finite

_BLOCK_VALUES = 1 << 20  # input and output values of a block of rows


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all maps: validation, blocks of rows on threads, the kernel.

    A map has the kernel parameters of the estimators (those it can use). ``kernel=None`` is the rbf kernel when the map
    stands alone, and the estimator's kernel inside an estimator.
    """

    geometric: ClassVar[bool] = True
    """Whether inner products of coordinates estimate kernel values."""
    bounds_kernel: ClassVar[bool] = False
    """Whether K - Y Y' is positive semidefinite, up to rounding, when the kernel matrix is."""
    leading_first: ClassVar[bool] = False
    """Whether the first few coordinates are the best few."""

    kernel: Any = None
    gamma: float | str = "auto"
    degree: int = 3
    coef0: float = 1
    kernel_params: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    kernel_: Kernel
    _n_features_out: int
    _like: KernelRows

    # ---- what a map supplies ------------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, sample: Sample, seed: int, pool: Threads) -> None:
        """Learn the map from validated rows; sets `_n_features_out` and `_like` (rows prepared for the kernel)."""

    @abstractmethod
    def size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Coordinates (at most) and rows kept, for data of a shape."""

    @abstractmethod
    def _embed(self, rows: KernelRows, out: NDArray[Any]) -> None:
        """Write the coordinates of a block of rows to `out`, shape (rows.n, n_features_out)."""

    def _check_kernel(self, kernel: Kernel) -> None:
        """Refuse kernels that the map cannot approximate."""

    # ---- what users call ----------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from the rows of `X`, shape (n_samples, n_features).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The kernel matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            A weight of 3 counts as three copies of the row.

        Returns
        -------
        self
        """
        data = self._validate(X, reset=True)
        weight = check_weights(sample_weight, data.shape[0])
        with Threads(self.n_jobs) as pool:
            kernel = self.own_kernel(data, weight)
            self.learn(Sample(data, weight, kernel.keys(data)), kernel, pool)
        return self

    def transform(self, X: ArrayLike) -> Matrix:
        """Coordinates of the rows of `X`, shape (n, n_features_out)."""
        check_is_fitted(self)
        data = self._validate(X, reset=False)
        with Threads(self.n_jobs) as pool:
            return self.embed(data, pool)

    def residual(self, X: ArrayLike, Y: Matrix | None = None) -> NDArray[np.float64]:
        """What the coordinates leave of k(x, x): ``k(x, x) - |y|^2``, shape (n,).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        Y : array of shape (n, n_features_out), optional
            Coordinates of `X`, if they are at hand.
        """
        check_is_fitted(self)
        data = self._validate(X, reset=False)
        with Threads(self.n_jobs) as pool:
            return self.leave(data, self.embed(data, pool) if Y is None else Y, pool)

    # ---- what estimators call -----------------------------------------------------------------------------------

    def learn(self, sample: Sample, kernel: Kernel, pool: Threads) -> None:
        """Fit to validated rows with a given kernel."""
        self._check_kernel(kernel)
        kernel.check(sample.X)
        self.kernel_ = kernel
        self.gamma_ = getattr(kernel, "gamma", None)
        self.n_features_in_ = sample.X.shape[1]
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._learn(sample, seed, pool)

    def embed(self, X: Matrix, pool: Threads) -> Matrix:
        """Coordinates of validated rows, block by block."""
        X = X.astype(self._like.dtype, copy=False)
        out = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        size = max(256, _BLOCK_VALUES // (X.shape[1] + self._n_features_out + 1))

        def run(part: slice) -> None:
            self._embed(self.kernel_.rows(X[part], like=self._like), out[part])

        pool.map(run, blocks(X.shape[0], size))
        return out

    def embed_training(self, X: Matrix, pool: Threads) -> Matrix:
        """Coordinates of the rows the map was learned from."""
        return self.embed(X, pool)

    def leave(self, X: Matrix, Y: Matrix, pool: Threads) -> NDArray[np.float64]:
        """Residual of validated rows; zero for a map whose coordinates do not estimate kernel values."""
        if not self.geometric:
            return np.zeros(X.shape[0])
        diagonals = [self.kernel_.diagonal(self.kernel_.rows(part, like=self._like)) for part in in_memory(X)]
        out: NDArray[np.float64] = diagonals[0] if len(diagonals) == 1 else np.concatenate(diagonals)

        rows, squares = core_rows(Y), np.empty(Y.shape[0], dtype=Y.dtype)
        parts = blocks(Y.shape[0], max(256, _BLOCK_VALUES // (1 + Y.shape[1])))
        pool.map(lambda part: _core.norms(rows.slice(part.start, part.stop), 2, squares[part]), parts)
        return out - squares

    @property
    def has_own_kernel(self) -> bool:
        """Whether the map says what its kernel is, so that an estimator's is not used."""
        return self.kernel is not None or not (isinstance(self.gamma, str) and self.gamma == "auto")

    def own_kernel(self, X: Matrix, weight: NDArray[np.float64]) -> Kernel:
        """Return the kernel of the map's own parameters."""
        if self._is_precomputed:
            return Precomputed()
        return make_kernel(
            "rbf" if self.kernel is None else self.kernel,
            X,
            gamma=self.gamma,
            degree=self._kernel_degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            sample_weight=weight,
        )

    @property
    def _kernel_degree(self) -> int:
        return self.degree

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _validate(self, X: ArrayLike, *, reset: bool) -> Matrix:
        kinds = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        data = validate_data(self, X, reset=reset, ensure_all_finite=False, **kinds)
        require_finite(data, self.n_jobs, type(self).__name__)
        return canonical(data)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the map was learned: a fit that was refused leaves none."""
        return hasattr(self, "_n_features_out")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
