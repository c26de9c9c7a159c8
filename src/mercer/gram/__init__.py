"""The kernel matrix as tiles: nothing above this package ever sees an n x n array."""

from mercer.gram.across import sums_across, sums_of_matrix, weighted_sums
from mercer.gram.base import Gram, Moves
from mercer.gram.disk import Disk, DiskGram, disk_bytes, tile_sizes
from mercer.gram.files import OtherTilesError, TileFileError, TileFiles, discard_tiles
from mercer.gram.memory import MemoryGram, memory_bytes
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.recompute import RecomputedGram, recompute_bytes
from mercer.gram.tiled import TiledGram, block_size, strip_bytes

__all__ = [
    "Disk",
    "DiskGram",
    "Gram",
    "MemoryGram",
    "Moves",
    "OtherTilesError",
    "PrecomputedGram",
    "RecomputedGram",
    "TileFileError",
    "TileFiles",
    "TiledGram",
    "block_size",
    "discard_tiles",
    "disk_bytes",
    "memory_bytes",
    "recompute_bytes",
    "strip_bytes",
    "sums_across",
    "sums_of_matrix",
    "tile_sizes",
    "weighted_sums",
]
