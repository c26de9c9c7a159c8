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
    stopped: bool = False  # from outside


@dataclass(frozen=True)
class Unfinished(Generic[Centers]):
    """A run between two iterations: all that the next one depends on."""

    labels: Labels
    centers: Centers
    objective: float
    best: Labels
    best_objective: float
    history: tuple[Iteration, ...]


def hard_c_means(
    space: Space[Centers],
    start: Labels | Unfinished[Centers],
    *,
    max_iter: int = 300,
    tol: float = 0.0,
    on_iteration: Callable[[int, Iteration], object] = lambda number, iteration: None,
    keep: Callable[[Unfinished[Centers]], None] = lambda unfinished: None,
) -> Partition[Centers]:
    """Lloyd's iteration from given labels.

    Parameters
    ----------
    space : Space
    start : array of shape (n,) or Unfinished
        First partition, not changed; or a run to go on with.
    max_iter : int
    tol : float
        Stop when an iteration lowers the objective by no more than `tol` times its value. Zero: when nothing moves.
    on_iteration : callable
        Called with the iteration's number and its record; a true answer ends the run.
    keep : callable
        Called with the run after each iteration that is not the last.
    """
    run = start if isinstance(start, Unfinished) else _begin(space, start)
    converged = stopped = False
    for number in range(len(run.history) + 1, max_iter + 1):
        run, converged = _iterate(space, run, tol)
        stopped = bool(on_iteration(number, run.history[-1]))
        if stopped or converged:
            break
        keep(run)
    labels, centers, objective = run.labels, run.centers, run.objective
    if space.keeps_best and objective > run.best_objective + 1e-9 * abs(run.best_objective):  # an indefinite kernel
        centers, labels, objective = space.centers(run.best), run.best, run.best_objective
    return Partition(labels, centers, objective, converged, run.history, stopped)


def _begin(space: Space[Centers], labels: Labels) -> Unfinished[Centers]:
    centers = space.centers(labels)
    objective = space.objective(centers)
    return Unfinished(labels, centers, objective, labels, objective, ())


def _iterate(space: Space[Centers], run: Unfinished[Centers], tol: float) -> tuple[Unfinished[Centers], bool]:
    """One iteration, and whether it was the last."""
    started = time.perf_counter()
    # 1. and 2.
    found = space.assign(run.centers, run.labels)
    refilled = refill_empty(space, run.centers, found.labels)
    moved = int(np.count_nonzero(found.labels != run.labels))
    # 3.
    centers, objective = run.centers, run.objective
    if moved:
        centers = space.recentre(centers, run.labels, found, refilled)
        objective = space.objective(centers)
    history = (*run.history, Iteration(objective, moved, time.perf_counter() - started))
    better = objective <= run.best_objective
    best, best_objective = (found.labels, objective) if better else (run.best, run.best_objective)
    converged = moved == 0 or (tol > 0 and 0 <= run.objective - objective <= tol * abs(run.objective))
    return Unfinished(found.labels, centers, objective, best, best_objective, history), converged


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
