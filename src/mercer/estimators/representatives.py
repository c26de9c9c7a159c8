"""Code books of classes: distances to representatives, and probabilities from distances.

The distance from x to a class is the mean distance in feature space to the L nearest of its representatives,
``D(x, class) = 1/L sum_l |phi(x) - m_l|``. These are the implicit centroids of the clusters, or the training rows
nearest to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads, blocks
from mercer.gram import Moves
from mercer.planner import Plan
from mercer.solvers.implicit import ImplicitModel
from mercer.solvers.space import Labels
from mercer.sources import Matrix, Sample, distinct_rows, scramble

CALIBRATED = 2000  # training rows that are left out to find the scale of probabilities
_AT_ONCE = 1 << 22  # distances in memory: 32 MB
_STRIP = 512  # rows whose distances one thread sorts

Means = NDArray[np.float64]
"""Mean distances to the nearest representatives, for several numbers of them: shape (numbers, rows, classes)."""

Change = Callable[[slice, int, NDArray[np.float64]], None]
"""What is done, in place, to the squared distances of a block of rows to the representatives of one class."""


@dataclass(frozen=True)
class Codebook:
    """The representatives of one class.

    Attributes
    ----------
    label : object
        The class.
    centroids, medoids : ImplicitModel
        What new rows are compared with: means in feature space, or the training rows nearest to them.
    rows : array of shape (n,)
        The training rows of the class, by their hashes.
    labels : array of shape (n,)
        The representative that each of them belongs to.
    medoid_indices : array of shape (size,)
        The training rows that are medoids.
    weights : array of shape (size,)
        Total weight of the rows that each representative stands for.
    inertia : float
        Objective of kernel k-means on the class.
    n_iter : int
        Its iterations.
    plan : Plan
        How it was carried out.
    """

    label: Any
    centroids: ImplicitModel
    medoids: ImplicitModel
    rows: NDArray[np.intp]
    labels: Labels
    medoid_indices: NDArray[np.intp]
    weights: NDArray[np.float64]
    inertia: float
    n_iter: int
    plan: Plan

    @property
    def size(self) -> int:
        """Number of representatives."""
        return len(self.weights)


def points_alone(model: ImplicitModel, indices: NDArray[np.intp]) -> ImplicitModel:
    """Return a model whose centres are some of the training points."""
    assert model.kernel is not None
    assert model.rows is not None
    points, ones = model.rows.take(indices), np.ones(len(indices))
    members = Moves.between(None, np.arange(len(indices), dtype=np.int32), ones)
    return ImplicitModel(model.kernel, points, members, ones, model.kernel.diagonal(points), model.resolution)


# ---- distances ------------------------------------------------------------------------------------------------------


def as_they_are(part: slice, number: int, squared: NDArray[np.float64]) -> None:
    """Leave distances alone."""


def mean_of_nearest(squared: NDArray[np.float64], counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Mean distance to the nearest representatives, shape (len(counts), m).

    Parameters
    ----------
    squared : array of shape (m, k)
        Squared distances. Infinite ones are left out of the means, unless all are.
    counts : array
        How many of the nearest; more than there are means all.

    Examples
    --------
    >>> mean_of_nearest(np.array([[9.0, 1.0, 4.0]]), np.array([1, 2, 99])).ravel()
    array([1. , 1.5, 2. ])
    """
    m, k = squared.shape
    most = min(int(counts.max()), k)
    nearest = squared if most == k else np.partition(squared, most - 1, axis=1)[:, :most]
    nearest = np.sqrt(np.sort(nearest, axis=1))
    finite = np.maximum(np.isfinite(nearest).sum(axis=1), 1)
    last = np.minimum(counts[:, None], finite) - 1
    means: NDArray[np.float64] = np.cumsum(nearest, axis=1)[np.arange(m), last] / (last + 1)
    return means


def class_distances(
    models: Sequence[ImplicitModel],
    X: Matrix,
    counts: NDArray[np.intp],
    pool: Threads,
    finish: Callable[[Means], NDArray[Any]],
    change: Change = as_they_are,
) -> NDArray[Any]:
    """What `finish` makes of the mean distances of one block of rows after the other, one entry for each row.

    Parameters
    ----------
    models : sequence of ImplicitModel
        The representatives of each class.
    X : array or CSR matrix of shape (m, d)
    counts : array
    pool : Threads
    finish : callable
        From `Means` to an array with one entry for each row of the block.
    change : callable
        Called with each block, the number of the class, and the squared distances.
    """
    values = max(len(model.scale) for model in models) + len(models) * len(counts)  # for each row

    def means(part: slice, number: int) -> NDArray[np.float64]:
        squared = models[number].distances(X[part], pool)
        change(part, number, squared)
        strips = blocks(len(squared), _STRIP)
        return np.concatenate(pool.map(lambda strip: mean_of_nearest(squared[strip], counts), strips), axis=1)

    parts = blocks(X.shape[0], max(1, _AT_ONCE // values))
    return np.concatenate([finish(np.stack([means(p, c) for c in range(len(models))], axis=2)) for p in parts])


# ---- probabilities --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeftOut:
    """Training rows, each with what leaving it out (with its copies) does to the distance to its own representative.

    A cluster of weight W has its mean farther from a row of weight w without this row, by W / (W - w) exactly. A medoid
    that is the row itself is gone, and so is the mean of a cluster of one.

    Attributes
    ----------
    X : array or CSR matrix of shape (m, d)
    weight : array of shape (m,)
    of : array of shape (m,)
        Number of the row's class.
    entry : array of shape (m,)
        The representative of the cluster that it belongs to.
    centroids, medoids : array of shape (m,)
        Factors of the squared distances to them; infinite if they are gone.
    """

    X: Matrix
    weight: NDArray[np.float64]
    of: NDArray[np.intp]
    entry: Labels
    centroids: NDArray[np.float64]
    medoids: NDArray[np.float64]

    def leave_out(self, factors: NDArray[np.float64], part: slice, number: int, squared: NDArray[np.float64]) -> None:
        """Change the squared distances of a block of rows to the representatives of one class, in place."""
        rows = np.flatnonzero(self.of[part] == number)
        entry, factor = self.entry[part][rows], factors[part][rows]
        with np.errstate(invalid="ignore"):  # zero times infinity
            squared[rows, entry] = np.where(np.isinf(factor), np.inf, squared[rows, entry] * factor)


def left_out(data: Sample, books: Sequence[Codebook], seed: int) -> LeftOut:
    """Draw rows to leave out, by their content and class.

    Parameters
    ----------
    data : Sample
        The training rows.
    books : sequence of Codebook
    seed : int
    """
    n = len(data.keys)
    of, entry, medoid, cluster = np.zeros(n, np.intp), np.zeros(n, np.int32), np.zeros(n, np.intp), np.zeros(n)
    for number, book in enumerate(books):
        of[book.rows], entry[book.rows] = number, book.labels
        medoid[book.rows], cluster[book.rows] = book.medoid_indices[book.labels], book.weights[book.labels]
    draws = scramble(data.keys ^ scramble(of.astype(np.uint64), seed), seed)  # of two classes, copies are two rows
    rows, weight = distinct_rows(draws, data.weight, CALIBRATED)
    rest = cluster[rows] - weight
    alone = rest <= 1e-9 * weight  # rounding of the sums
    return LeftOut(
        X=data.X[rows],
        weight=weight,
        of=of[rows],
        entry=entry[rows],
        centroids=np.where(alone, np.inf, cluster[rows] / np.where(alone, 1.0, rest)) ** 2,
        medoids=np.where(data.keys[medoid[rows]] == data.keys[rows], np.inf, 1.0),
    )


def softmax(distances: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Probabilities proportional to exp(-scale * distance), shape (m, number of classes)."""
    likely = np.exp(-scale * (distances - distances.min(axis=1, keepdims=True)))
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def likeliest_scale(distances: NDArray[np.float64], of: NDArray[np.intp], weight: NDArray[np.float64]) -> float:
    """Scale of the softmax under which the rows' own classes are the most likely; positive and finite.

    As in Platt's scaling, each class counts as if seen once more: the scale is then finite for classes that nothing
    confuses. Rows whose class is gone without them (an infinite distance) say nothing.

    Parameters
    ----------
    distances : array of shape (m, number of classes)
    of : array of shape (m,)
        Number of the row's class.
    weight : array of shape (m,)
    """
    finite = np.isfinite(distances)
    known = finite.all(axis=1)
    gaps = distances[known] - distances[known].min(axis=1, keepdims=True)
    sizes = gaps.max(axis=1) if known.any() else distances[finite]
    typical = float(sizes.mean()) if sizes.size else 0.0
    if not known.any() or not typical > 0:
        return 1.0 / typical if typical > 0 else 1.0
    m, classes = gaps.shape
    target = np.full(gaps.shape, 1.0 / (m + classes))
    target[np.arange(m), of[known]] += m / (m + classes)
    share = weight[known] / weight[known].sum()
    wanted = float(share @ (target * gaps).sum(axis=1))

    from scipy.optimize import brentq  # a twentieth of a second, which importing Mercer should not take

    def slope(logarithm: float) -> float:
        """Of the log likelihood: what the gaps are expected to be, less what they are."""
        return float(share @ (softmax(gaps, np.exp(logarithm)) * gaps).sum(axis=1)) - wanted

    low, high = np.log(1e-3 / typical), np.log(1e6 / typical)
    if slope(low) <= 0:  # own classes are no nearer than others
        return float(np.exp(low))
    return float(np.exp(high if slope(high) >= 0 else brentq(slope, low, high)))
