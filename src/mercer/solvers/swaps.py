"""Better local optima by swaps: a centre that is hardly missed moves to where one is needed.

Lloyd's iteration cannot carry a centre from one group of points to another. Local search can (Lattanzi & Sohler
2019): (1) draw a few points with probability ~ weight x squared distance to their centre, (2) compute what the
objective would be with each of them as a centre in place of any of the present ones, (3) make the best exchange and
iterate from there. Here step (3) is tried even where (2) promises no gain, because the iteration that follows often
finds one; what does not end lower is forgotten.

Time: for each round n k p for the distances, and a few iterations. Memory: n k numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.solvers.cmeans import Partition, hard_c_means
from mercer.solvers.embedded_space import EmbeddedSpace, ExplicitCenters
from mercer.solvers.seeding import draw
from mercer.solvers.space import Labels

_TRIALS = 8
_ITERATIONS = 10


def search_swaps(
    space: EmbeddedSpace,
    start: Partition[ExplicitCenters],
    order: NDArray[np.intp],
    rng: np.random.Generator,
    *,
    patience: int,
    rounds: int,
    tol: float,
) -> Partition[ExplicitCenters]:
    """Exchange centres until `patience` rounds in a row gain nothing, or for so many rounds.

    Parameters
    ----------
    space : EmbeddedSpace
    start : Partition
        Where a run converged.
    order : array of shape (n,)
        Order in which the draws go through the points.
    rng : Generator
    patience, rounds : int
    tol : float
        Of the iterations after an exchange; also the share of the objective that counts as a gain.
    """
    best, failed = start, 0
    for _ in range(rounds if space.n_clusters > 1 else 0):
        exchanged = best_exchange(space, best, order, rng)
        if exchanged is None:
            break
        found = hard_c_means(space, exchanged, max_iter=_ITERATIONS, tol=tol)
        failed = 0 if found.objective < best.objective * (1 - tol) else failed + 1
        if found.objective < best.objective:
            best = found
        if failed == patience:
            break
    return best


def best_exchange(
    space: EmbeddedSpace, partition: Partition[ExplicitCenters], order: NDArray[np.intp], rng: np.random.Generator
) -> Labels | None:
    """Labels after the best exchange of one centre for one of a few points; None if all points are on centres."""
    # 1.
    labels, weight, every = partition.labels, space.weight, np.arange(space.n)
    D = space.distances_to_centers(partition.centers)
    own = D[every, labels]
    mass = weight * own
    if not mass.any():
        return None
    candidates = draw(mass, order, rng.random(_TRIALS))
    # 2.
    D[every, labels] = np.inf
    second = D.min(axis=1)
    lowest = np.inf
    for distances in space.distances_to(candidates):
        with_it = np.minimum(own, distances)
        missed = np.bincount(labels, weight * (np.minimum(second, distances) - with_it), space.n_clusters)
        objective = float(weight @ with_it) + float(missed.min())
        if objective < lowest:
            lowest, leaving, to_it = objective, missed.argmin(), distances
    # 3.
    orphans = labels == leaving
    new = np.where(orphans, D.argmin(axis=1), labels).astype(np.int32)
    new[to_it < np.where(orphans, second, own)] = leaving
    return new
