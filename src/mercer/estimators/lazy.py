"""Rows that are not in memory: what estimators check of them, and when they are read into it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mercer.engine.memory import available_memory, format_bytes, parse_bytes
from mercer.sources import Matrix, Source, finite_block, is_sparse

_LAZY = ("dask", "zarr", "pyarrow")
_SMALL = 8  # times smaller than the memory there is: such rows are read once and worked on as an array
_SHARE = 0.8  # of the memory that is free, when no limit is given


def is_lazy(X: Any) -> bool:
    """Whether `X` is a source, or a path or object to make one of; arrays and data frames are not."""
    return isinstance(X, (Source, str, os.PathLike)) or type(X).__module__.partition(".")[0] in _LAZY


def checked_source(estimator: Any, source: Source, memory_limit: Any, *, reset: bool) -> Matrix:
    """Check the columns as scikit-learn does; few rows come back as an array."""
    if getattr(estimator, "_is_precomputed", False):
        raise ValueError("kernel='precomputed' takes the kernel matrix as an array or memory map, not as a source")
    if source.shape[0] == 0:
        raise ValueError(f"{source.name} has no rows: a minimum of 1 is required")
    if reset:
        estimator.n_features_in_ = source.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        if source.names is not None:
            estimator.feature_names_in_ = np.array(source.names, dtype=object)
    else:
        _compare(estimator, source)
    bytes_of_rows = source.shape[0] * source.shape[1] * source.dtype.itemsize
    if _SMALL * bytes_of_rows <= _budget(parse_bytes(memory_limit)):
        return finite_rows(source)
    return source


def reading_bytes(X: Matrix, *, precomputed: bool) -> int | None:
    """Return what reading rows in blocks takes; None where that is not possible, or of no use."""
    if isinstance(X, Source):
        return X.working_bytes
    return None if precomputed or is_sparse(X) else 0


def finite_rows(source: Source) -> Matrix:
    """All rows as an array; NaN and infinity are refused with their place."""
    return finite_block(source, slice(0, source.shape[0]))


def rows_in_memory(source: Source, limit: int | None) -> tuple[Matrix, int | None]:
    """Read rows for a method that needs them all at once, and say what is left of the memory limit."""
    needed = source.shape[0] * source.shape[1] * source.dtype.itemsize
    if 2 * needed > _budget(limit):
        raise MemoryError(
            f"The exact method needs all rows in memory: {format_bytes(needed)} of {source.name}, where "
            f"{format_bytes(_budget(limit))} are allowed. Allow {format_bytes(2 * needed)} or more, or use "
            "method='nystroem', which reads them block by block."
        )
    return finite_rows(source), None if limit is None else limit - needed


def _budget(limit: int | None) -> int:
    return int(_SHARE * available_memory()) if limit is None else limit


def _compare(estimator: Any, source: Source) -> None:
    name, expected = type(estimator).__name__, estimator.n_features_in_
    if source.shape[1] != expected:
        raise ValueError(
            f"X has {source.shape[1]} features, but {name} is expecting {expected} features as input ({source.name})"
        )
    before = getattr(estimator, "feature_names_in_", None)
    if before is not None and source.names is not None and list(before) != source.names:
        raise ValueError(
            f"the columns of {source.name} are {source.names}, those of the fit were {list(before)}: choose them by "
            "scan(..., columns=[...])"
        )
