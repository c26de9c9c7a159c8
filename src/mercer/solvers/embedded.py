"""Clustering in the coordinates of a feature map, and a model that places new points there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads, blocks
from mercer.features import FeatureMap
from mercer.solvers.embedded_space import EmbeddedSpace, ExplicitCenters
from mercer.solvers.recipe import Seedling
from mercer.solvers.space import Labels
from mercer.sources import Matrix

_BLOCK = 16384
_SERIAL = Threads(1)


def grow(space: EmbeddedSpace, seedling: Seedling) -> Labels:
    """First labels of all points: the nearest of the means of a partition of some of them."""
    few = EmbeddedSpace(space.Y[seedling.rows], seedling.weight, space.n_clusters, space.pool)
    return space.assign(few.centers(seedling.labels), np.zeros(space.n, dtype=np.int32)).labels


@dataclass(frozen=True)
class EmbeddedModel:
    """Centres in the coordinates of a map, to compare with new rows in fixed memory.

    Attributes
    ----------
    feature_map : FeatureMap
    centers : ExplicitCenters
    metric : {0, 1}
    constant : float
        Sum of w |phi(x)|^2 over the rows that the centres are means of.
    """

    feature_map: FeatureMap
    centers: ExplicitCenters
    metric: int
    constant: float

    @classmethod
    def of(cls, feature_map: FeatureMap, space: EmbeddedSpace, centers: ExplicitCenters) -> Self:
        """Keep of a space what new rows need."""
        return cls(feature_map, replace(centers, trail=None), space.metric, space.constant)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, empty ones too."""
        return len(self.centers.totals)

    @property
    def knows_distances(self) -> bool:
        """Whether k(x, x) of new rows is known."""
        return self.feature_map.kernel_.name != "precomputed"

    def nearest(self, X: Matrix, pool: Threads) -> tuple[Labels, NDArray[np.float64]]:
        """Nearest centre of new rows and the squared distance (l1 distance) to it, both of shape (m,)."""
        labels, distances = np.zeros(X.shape[0], dtype=np.int32), np.empty(X.shape[0])

        def run(part: slice) -> None:
            labels[part], distances[part] = self._space(X[part]).nearest(self.centers)

        pool.map(run, blocks(X.shape[0], _BLOCK))
        return labels, distances

    def distances(self, X: Matrix, pool: Threads) -> NDArray[np.float64]:
        """Squared distances (l1 distances) of new rows to the centres, shape (m, k); infinite for an empty cluster."""
        out = np.empty((X.shape[0], len(self.centers.totals)))

        def run(part: slice) -> None:
            out[part] = self._space(X[part]).distances_to_centers(self.centers)

        pool.map(run, blocks(X.shape[0], _BLOCK))
        return out

    def _space(self, X: Matrix) -> EmbeddedSpace:
        Y = self.feature_map.embed(X, _SERIAL)
        residual = self.feature_map.leave(X, Y, _SERIAL) if self.knows_distances else None
        return EmbeddedSpace(Y, np.ones(X.shape[0]), len(self.centers.totals), _SERIAL, residual, self.metric)
