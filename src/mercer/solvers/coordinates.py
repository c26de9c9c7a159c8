"""Coordinates of rows by a feature map, where there is room for them: in memory, in a file, or nowhere.

In memory they are an array. In a file they are written once, with checksums, a block of a pass after the other, and
read in every pass. Nowhere means that they are found again in every pass from the rows. All three have the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads
from mercer.features import FeatureMap
from mercer.gram import TileFiles
from mercer.solvers.embedded_space import pass_blocks
from mercer.sources import GroupedSource, Matrix, Source

_SERIAL = Threads(1)


def coordinates(
    X: Matrix, feature_map: FeatureMap, where: str, pool: Threads, spare: str | None = None
) -> tuple[Matrix, NDArray[np.float64]]:
    """Coordinates of the rows that a map was learned from, and what they leave of k(x, x).

    Parameters
    ----------
    X : array, CSR matrix or source of shape (n, d)
    feature_map : FeatureMap
    where : {"memory", "disk", "recompute"}
    pool : Threads
    spare : path, optional
        Folder of temporary files.
    """
    if not isinstance(X, Source):
        Y = feature_map.embed_training(X, pool)
        return Y, feature_map.leave(X, Y, pool)
    n, p = X.shape[0], feature_map._n_features_out
    residual, parts = np.empty(n), pass_blocks(n, p)
    if where == "recompute":
        return FoundAgain(X, feature_map), _residuals(X, feature_map, residual, parts, pool)
    if where == "disk":
        return Spilled(X, feature_map, residual, pool, spare), residual
    Y = np.empty((n, p), dtype=X.dtype)

    def embed(part: slice) -> None:
        Y[part], residual[part] = _block(X[part], feature_map)

    pool.map(embed, parts, "coordinates")
    return Y, residual


def _block(rows: NDArray[Any], feature_map: FeatureMap) -> tuple[NDArray[Any], NDArray[np.float64]]:
    Y = feature_map.embed(rows, _SERIAL)
    return Y, feature_map.leave(rows, Y, _SERIAL)


def _residuals(
    X: Source, feature_map: FeatureMap, out: NDArray[np.float64], parts: list[slice], pool: Threads
) -> NDArray[np.float64]:
    def run(part: slice) -> None:
        out[part] = _block(X[part], feature_map)[1]

    pool.map(run, parts, "coordinates")
    return out


class FoundAgain(Source):
    """Coordinates that are computed whenever they are read.

    Parameters
    ----------
    X : Source
    feature_map : FeatureMap
    """

    name = "coordinates"

    def __init__(self, X: Source, feature_map: FeatureMap) -> None:
        self.X, self.feature_map = X, feature_map
        self.shape, self.dtype = (X.shape[0], feature_map._n_features_out), X.dtype

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows and embed them."""
        return np.asarray(self.feature_map.embed(self.X[start:stop], _SERIAL))

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Take rows and embed them."""
        return np.asarray(self.feature_map.embed(self.X[indices], _SERIAL))


class Spilled(GroupedSource):
    """Coordinates in unnamed files, which are gone when this is.

    Parameters
    ----------
    X : Source
    feature_map : FeatureMap
    residual : array of shape (n,)
        Filled with what the coordinates leave of k(x, x).
    pool : Threads
    spare : path, optional
        Folder of the files.
    """

    def __init__(
        self, X: Source, feature_map: FeatureMap, residual: NDArray[np.float64], pool: Threads, spare: str | None
    ) -> None:
        parts = pass_blocks(X.shape[0], feature_map._n_features_out)
        super().__init__([part.stop - part.start for part in parts])
        self.name, self.kept = "coordinates", 1 + pool.n_jobs
        self._finish(feature_map._n_features_out, X.dtype)
        row = self.shape[1] * self.dtype.itemsize
        self.files = TileFiles([(part.stop - part.start) * row for part in parts], {"of": "coordinates"}, None, spare)

        def embed(slot: int, part: slice) -> NDArray[np.uint8]:
            Y, residual[part] = _block(X[part], feature_map)
            return np.ascontiguousarray(Y).reshape(-1).view(np.uint8)

        pool.stream(embed, parts, self.files.write, 2 * pool.n_jobs, "coordinates to disk")

    def load(self, group: int) -> NDArray[Any]:
        """Read a block of a pass, checked."""
        if group + 1 < len(self.starts) - 1:
            self.files.expect(group + 1)
        out = np.empty((int(self.starts[group + 1] - self.starts[group]), self.shape[1]), dtype=self.dtype)
        self.files.read(group, out.reshape(-1).view(np.uint8))
        return out
