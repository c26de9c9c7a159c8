"""Arrays and CSR matrices as the compiled core sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite

from mercer import _core
from mercer.engine.threads import Threads, blocks
from mercer.sources.source import Source, SourceError

_BLOCK_VALUES = 1 << 20
_SERIAL = Threads(1)

Matrix = Any
"""A 2-D float32 or float64 array, a CSR matrix of those, or a source of rows."""


@dataclass(frozen=True)
class Sample:
    """Rows (n, d), how much each counts (n,), and what tells them apart (n,): equal rows have equal keys."""

    X: Matrix
    weight: NDArray[np.float64]
    keys: NDArray[np.uint64]


def is_sparse(X: Matrix) -> bool:
    """Whether ``X`` is a SciPy sparse matrix or array."""
    return bool(sparse.issparse(X))


def canonical(X: Matrix) -> Matrix:
    """Return CSR rows with each column once and in order, as a copy if they were not; dense rows as they are."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


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
    X = canonical(X)
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    return _core.csr_rows(np.ascontiguousarray(X.indptr, dtype=np.int64), indices, X.data, X.shape[1])


def distinct_rows(
    keys: NDArray[np.uint64], weight: NDArray[np.float64] | None = None, at_most: int | None = None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Rows of distinct content, the lowest by hash, and the total weight of each with its copies.

    The same rows come out whatever their order, and a weight is a repetition. Rows of no weight are left out.

    Parameters
    ----------
    keys : array of shape (n,)
        Content hash of the rows.
    weight : array of shape (n,), optional
    at_most : int, optional

    Returns
    -------
    rows : array of shape (m,)
        First row of each content, in the order of the hashes.
    total : array of shape (m,)
    """
    weight = np.ones(len(keys)) if weight is None else weight
    few = np.flatnonzero(weight > 0)
    if at_most is not None:
        few = few[_hold_the_lowest(keys[few], at_most)]
    _, first, group = np.unique(keys[few], return_index=True, return_inverse=True)
    total = np.bincount(group, weights=weight[few]).astype(np.float64, copy=False)
    return few[first[:at_most]], total[:at_most]


def _hold_the_lowest(keys: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """Mark keys among which are all copies of the `count` lowest, without sorting them all."""
    size = count + count // 4
    while size < len(keys):
        low: NDArray[np.bool_] = keys <= np.partition(keys, size)[size]
        if len(np.unique(keys[low])) >= count:
            return low
        size *= 4
    return np.ones(len(keys), dtype=bool)


def content_hash(X: Matrix, pool: Threads | None = None) -> NDArray[np.uint64]:
    """Hash every row by its content, shape (n,): equal rows are equal, dense or sparse, float32 or float64.

    Whatever is drawn by the order of these numbers does not depend on the order of the rows, and repeating a row
    repeats its number: that is how seeding gives the same result for shuffled or repeated data.
    """
    out = np.empty(X.shape[0], dtype=np.uint64)
    parts = blocks(X.shape[0], max(1, _BLOCK_VALUES // max(1, X.shape[1])))
    pool = pool or _SERIAL
    if isinstance(X, Source):
        pool.map(
            lambda part: _core.row_hash(core_rows(finite_block(X, part)), out[part]), parts, "first look at the rows"
        )
        return out
    view = core_rows(X)
    pool.map(lambda part: _core.row_hash(view.slice(part.start, part.stop), out[part]), parts)
    return out


def finite_block(source: Source, part: slice) -> NDArray[Any]:
    """Rows of a source that are looked at for the first time: NaN and infinity are refused with their place."""
    rows = source[part]
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        name = column if source.names is None else repr(source.names[column])
        what = "NaN (a missing value)" if np.isnan(rows[row, column]) else "infinity"
        raise SourceError(
            f"{source.name} has {what} in row {part.start + row:,}, column {name}: leave such rows out with "
            "scan(..., missing='drop'), or mend them"
        )
    return rows


def require_finite(X: Matrix, n_jobs: int | None, estimator_name: str) -> None:
    """Refuse NaN and infinity, in scikit-learn's words; many values are looked at by several threads.

    Rows of a source are looked at when they are hashed.
    """
    if isinstance(X, Source):
        return
    values = X.data if is_sparse(X) else X
    if values.size < 2 * _BLOCK_VALUES:
        assert_all_finite(X, estimator_name=estimator_name, input_name="X")
        return
    parts = blocks(len(values), max(1, _BLOCK_VALUES * len(values) // values.size))

    def total(part: slice) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(values[part].sum())  # in which NaN and infinity leave a trace

    with Threads(n_jobs) as pool:
        sums = pool.map(total, parts)
    for part, found in zip(parts, sums, strict=True):
        if not np.isfinite(found):
            assert_all_finite(values[part], estimator_name=estimator_name, input_name="X")


def scramble(keys: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Mix keys with a seed into new keys that look random: the finaliser of splitmix64.

    Parameters
    ----------
    keys : array of shape (n,)
    seed : int
    """
    x = keys ^ np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
