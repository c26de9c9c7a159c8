"""Arrays and CSR matrices as the compiled core sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer import _core

Matrix = Any
"""A 2-D float32 or float64 array, or a CSR matrix of those."""


def is_sparse(X: Matrix) -> bool:
    """Whether ``X`` is a SciPy sparse matrix or array."""
    return bool(sparse.issparse(X))


def core_rows(X: Matrix) -> _core.Rows:
    """View of the rows of ``X``, shape (n, d), for the core: no copy when the columns are contiguous and aligned.

    Examples
    --------
    >>> core_rows(np.ones((3, 2))).n
    3
    """
    if not is_sparse(X):
        as_it_is = X.strides[1] == X.itemsize and X.flags.aligned
        return _core.dense_rows(X if as_it_is else np.array(X, order="C"))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    return _core.csr_rows(np.ascontiguousarray(X.indptr, dtype=np.int64), indices, X.data, X.shape[1])


def content_hash(X: Matrix) -> NDArray[np.uint64]:
    """Hash every row by its content, shape (n,): equal rows are equal, dense or sparse, float32 or float64.

    Whatever is drawn by the order of these numbers does not depend on the order of the rows, and repeating a row
    repeats its number: that is how seeding gives the same result for shuffled or repeated data.
    """
    out = np.empty(X.shape[0], dtype=np.uint64)
    _core.row_hash(core_rows(X), out)
    return out
