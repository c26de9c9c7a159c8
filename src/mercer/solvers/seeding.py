"""First partitions: k-means++ in the space, random labels.

Draws go through the rows in the order of their content (their hash), not of their position: shuffling the rows
shuffles the labels and nothing else, and a weight of 3 is the same as three copies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.solvers.space import Centers, Labels, Space
from mercer.sources import distinct_rows, scramble

_CONTENTS = 8192


def random_labels(keys: NDArray[np.uint64], n_clusters: int, seed: int) -> Labels:
    """Uniform random labels, shape (n,): equal keys get equal labels.

    Parameters
    ----------
    keys : array of shape (n,)
        Content hash of the rows.
    n_clusters : int
    seed : int
    """
    return (scramble(keys, seed) % np.uint64(n_clusters)).astype(np.int32)


def random_points(
    keys: NDArray[np.uint64], weight: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Points drawn by weight, no two of one content (the papers' first centres), shape (count,) or shorter.

    Beyond some thousands they are drawn from a sample of the contents.

    Parameters
    ----------
    keys : array of shape (n,)
        Content hash of the rows.
    weight : array of shape (n,)
    count : int
    rng : Generator
    """
    seed = int(rng.integers(2**62))
    rows, total = distinct_rows(scramble(keys, seed), weight, max(_CONTENTS, 4 * count))
    finish = rng.exponential(size=len(rows)) / total  # the first of exponential races: a draw without replacement
    chosen: NDArray[np.intp] = rows[np.argsort(finish, kind="stable")[:count]]
    return chosen


def k_means_plus_plus(
    space: Space[Centers], order: NDArray[np.intp], rng: np.random.Generator
) -> tuple[Labels, NDArray[np.intp]]:
    """Greedy k-means++: each new centre is the best of a few points drawn with probability ~ weight x distance.

    Parameters
    ----------
    space : Space
    order : array of shape (n,)
        Order in which the draws go through the points.
    rng : Generator

    Returns
    -------
    labels : array of shape (n,)
        Nearest chosen point.
    chosen : array of shape (n_clusters,) or shorter
        The chosen points; fewer when there are fewer distinct points.
    """
    trials = 2 + int(np.log(space.n_clusters))
    weight = space.weight
    chosen = draw(weight, order, rng.random(1))
    closest = _clean(space, space.distances_to(chosen))[0]
    labels = np.zeros(space.n, dtype=np.int32)
    for cluster in range(1, space.n_clusters):
        uniform = rng.random(trials)
        mass = weight * closest
        if not mass.any():
            break
        candidates = draw(mass, order, uniform)
        distances = np.minimum(_clean(space, space.distances_to(candidates)), closest)
        winner = int(np.argmin(distances @ weight))
        labels[distances[winner] < closest] = cluster
        closest = distances[winner]
        chosen = np.append(chosen, candidates[winner])
    return labels, chosen


def draw(mass: NDArray[np.float64], order: NDArray[np.intp], uniform: NDArray[np.float64]) -> NDArray[np.intp]:
    """Points with probability proportional to `mass`, by inversion along `order`."""
    reached = np.cumsum(mass[order])
    positions = np.searchsorted(reached, uniform * reached[-1], side="right")
    last = int(np.searchsorted(reached, reached[-1]))  # never a point of mass zero, whatever the rounding
    chosen: NDArray[np.intp] = order[np.minimum(positions, last)]
    return chosen


def _clean(space: Space[Centers], distances: NDArray[np.floating]) -> NDArray[np.floating]:
    """Set distances that are only rounding to zero, so that copies of a centre are never drawn."""
    distances[distances <= space.resolution] = 0.0
    return distances
