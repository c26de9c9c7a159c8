"""Rows from anywhere, as blocks."""

from mercer.sources.rows import Matrix, content_hash, core_rows, distinct_rows, is_sparse, scramble
from mercer.sources.weights import check_weights

__all__ = ["Matrix", "check_weights", "content_hash", "core_rows", "distinct_rows", "is_sparse", "scramble"]
