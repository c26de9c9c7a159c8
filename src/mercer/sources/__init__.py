"""Rows from anywhere, as blocks."""

from mercer.sources.rows import (
    Matrix,
    Sample,
    canonical,
    content_hash,
    core_rows,
    distinct_rows,
    finite_block,
    is_sparse,
    require_finite,
    scramble,
)
from mercer.sources.scan import in_memory, open_source, scan
from mercer.sources.source import GroupedSource, Source, SourceError
from mercer.sources.weights import check_weights

__all__ = [
    "GroupedSource",
    "Matrix",
    "Sample",
    "Source",
    "SourceError",
    "canonical",
    "check_weights",
    "content_hash",
    "core_rows",
    "distinct_rows",
    "finite_block",
    "in_memory",
    "is_sparse",
    "open_source",
    "require_finite",
    "scan",
    "scramble",
]
