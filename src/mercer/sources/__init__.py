"""Rows from anywhere, as blocks."""

from mercer.sources.rows import Matrix, content_hash, core_rows, distinct_rows, is_sparse

__all__ = ["Matrix", "content_hash", "core_rows", "distinct_rows", "is_sparse"]
