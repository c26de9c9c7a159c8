"""Rows from anywhere, as blocks."""

from mercer.sources.rows import (
    Matrix,
    Sample,
    canonical,
    content_hash,
    core_rows,
    distinct_rows,
    is_sparse,
    require_finite,
    scramble,
)
from mercer.sources.weights import check_weights

__all__ = [
    "Matrix",
    "Sample",
    "canonical",
    "check_weights",
    "content_hash",
    "core_rows",
    "distinct_rows",
    "is_sparse",
    "require_finite",
    "scramble",
]
