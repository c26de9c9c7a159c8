"""What the c-means loop needs of a space, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads

Labels = NDArray[np.int32]
Centers = TypeVar("Centers")


@dataclass(frozen=True)
class Assignment(Generic[Centers]):
    """Nearest centres: labels, and the new centres where one pass gives both."""

    labels: Labels
    centers: Centers | None = None


class Space(Protocol[Centers]):
    """Where points and centres live: the feature space itself, or coordinates in an embedding.

    Attributes
    ----------
    n : int
        Number of points.
    n_clusters : int
    pool : Threads
    weight : array of shape (n,)
        Sample weights, float64.
    held : array of shape (n_clusters,)
        Clusters with weight beyond these points, which are not empty without them.
    resolution : float
        Squared distances below it are rounding.
    kept : tuple of type
        The dataclasses that its centres are made of, for checkpoints.
    keeps_best : bool
        Whether to go back to the lowest objective if it rises: not where points go by another distance than its.
    """

    n: int
    n_clusters: int
    pool: Threads
    weight: NDArray[np.float64]
    held: NDArray[np.bool_]
    resolution: float
    kept: tuple[type, ...]
    keeps_best: bool

    def distances_to(self, indices: NDArray[np.intp]) -> NDArray[np.floating]:
        """Squared distances of all points to some of the points, shape (len(indices), n)."""

    def centers(self, labels: Labels) -> Centers:
        """Weighted means of the clusters of a partition."""

    def assign(self, centers: Centers, labels: Labels) -> Assignment[Centers]:
        """Nearest centre of every point; `labels` are those before."""

    def recentre(self, centers: Centers, old: Labels, found: Assignment[Centers], refilled: bool) -> Centers:
        """Centres of the labels found; `centers` may be overwritten, `refilled` says that labels were changed since."""

    def objective(self, centers: Centers) -> float:
        """Objective of the partition that `centers` are the means of."""

    def own_distances(self, centers: Centers, labels: Labels) -> NDArray[np.floating]:
        """Squared distance of every point to the centre of its own cluster, shape (n,)."""
