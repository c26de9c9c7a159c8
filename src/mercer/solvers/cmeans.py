"""The c-means loop: hard assignments, in any space.

Each iteration: (1) every point to its nearest centre, (2) empty clusters get the worst-placed points, (3) centres move
to the means of their clusters. The objective never rises for a positive semidefinite kernel; for others the best
partition seen is returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import numpy as np

from mercer.solvers.space import Centers, Labels, Space


@dataclass(frozen=True)
class Iteration:
    """What happened in one iteration: objective after it, points that moved, seconds it took."""

    objective: float
    moved: int
    seconds: float


def rounded(objective: float) -> float:
    """Objective to nine digits: runs that differ by less found the same, and the first of them is taken.

    Rounding in the tenth digit would otherwise choose between two numberings of one partition.
    """
    return float(f"{objective:.9g}")


@dataclass(frozen=True)
class Partition(Generic[Centers]):
    """Where a run ended: labels, the centres that are their means, and how it got there."""

    labels: Labels
    centers: Centers
    objective: float
    converged: bool
    history: tuple[Iteration, ...]


def hard_c_means(
    space: Space[Centers],
    labels: Labels,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
    on_iteration: Callable[[int, Iteration], None] = lambda number, iteration: None,
) -> Partition[Centers]:
    """Lloyd's iteration from given labels.

    Parameters
    ----------
    space : Space
    labels : array of shape (n,)
        First partition; not changed.
    max_iter : int
    tol : float
        Stop when an iteration lowers the objective by no more than `tol` times its value. Zero: when nothing moves.
    on_iteration : callable
        Called with the iteration's number and its record.
    """
    centers = space.centers(labels)
    objective = best_objective = space.objective(centers)
    best, history, converged = labels, list[Iteration](), False
    for number in range(1, max_iter + 1):
        started = time.perf_counter()
        # 1. and 2.
        found = space.assign(centers, labels)
        refilled = refill_empty(space, centers, found.labels)
        moved = int(np.count_nonzero(found.labels != labels))
        # 3.
        before = objective
        if moved:
            centers = space.recentre(centers, labels, found, refilled)
            objective = space.objective(centers)
        labels = found.labels
        history.append(Iteration(objective, moved, time.perf_counter() - started))
        on_iteration(number, history[-1])
        if objective <= best_objective:
            best, best_objective = labels, objective
        converged = moved == 0 or (tol > 0 and 0 <= before - objective <= tol * abs(before))
        if converged:
            break
    if space.keeps_best and objective > best_objective + 1e-9 * abs(best_objective):  # an indefinite kernel
        centers, labels, objective = space.centers(best), best, best_objective
    return Partition(labels, centers, objective, converged, tuple(history))


def refill_empty(space: Space[Centers], centers: Centers, labels: Labels) -> bool:
    """Give each empty cluster, in place, the point farthest from its centre, with its copies.

    Returns whether a label was changed. `centers` are those that the labels are the nearest of.

    A point is left where it is if its cluster would be empty without it. A cluster stays empty when no point is
    farther from its centre than rounding: then there are fewer distinct points than clusters.
    """
    heavy = space.weight > 0
    counts = np.bincount(labels[heavy], minlength=space.n_clusters) + space.held
    if counts.all():
        return False
    before = labels.copy()
    left = np.where(heavy, space.own_distances(centers, labels), 0.0)
    for cluster in np.flatnonzero(counts == 0):
        while left[point := int(np.argmax(left))] > space.resolution:
            copies = heavy & (space.distances_to(np.array([point]))[0] <= space.resolution)
            copies[point] = True
            left[copies] = 0.0
            lost = np.bincount(labels[copies], minlength=space.n_clusters)
            if ((counts - lost)[lost > 0] > 0).all():
                counts += np.where(np.arange(space.n_clusters) == cluster, lost.sum(), 0) - lost
                labels[copies] = cluster
                break
    return not np.array_equal(before, labels)
