"""The kernel matrix as tiles: nothing above this package ever sees an n x n array."""

from mercer.gram.across import sums_across, sums_of_matrix, weighted_sums
from mercer.gram.base import Gram, Moves
from mercer.gram.memory import MemoryGram, memory_bytes
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.recompute import RecomputedGram, recompute_bytes
from mercer.gram.tiled import TiledGram, block_size

__all__ = [
    "Gram",
    "MemoryGram",
    "Moves",
    "PrecomputedGram",
    "RecomputedGram",
    "TiledGram",
    "block_size",
    "memory_bytes",
    "recompute_bytes",
    "sums_across",
    "sums_of_matrix",
    "weighted_sums",
]
