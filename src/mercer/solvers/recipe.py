"""Better optima for little: many restarts where they are cheap, the winner chosen by what is wanted.

Local minima cost more than approximation does. So (1) take a sample of the rows by their content, (2) embed it in
about twice as many leading coordinates as clusters, (3) run k-means++ and c-means there several times, (4) go on from
the best few by swaps, (5) if their objectives there differ, score them by the exact one of part of the sample. The
partition of the sample is a start for any space: its centres are the means of its clusters.

Time: a hundred or two iterations of 8192 x 2k x k, and a kernel matrix of 2048 points. Memory: that matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads
from mercer.features import Nystroem
from mercer.gram import Gram, MemoryGram, PrecomputedGram
from mercer.kernels import Kernel, Precomputed
from mercer.solvers.cmeans import Partition, hard_c_means, rounded
from mercer.solvers.embedded_space import EmbeddedSpace, ExplicitCenters
from mercer.solvers.gram_space import GramSpace
from mercer.solvers.seeding import k_means_plus_plus
from mercer.solvers.space import Labels
from mercer.solvers.swaps import search_swaps
from mercer.sources import Matrix, Sample, distinct_rows, scramble

_RUNS, _FINALISTS, _PATIENCE = 4, 2, 4
_SAMPLE, _SCORED, _LANDMARKS = 8192, 2048, 300
_TOL = 1e-4
_SERIAL = Threads(1)


@dataclass(frozen=True)
class Seedling:
    """A good partition of some rows, drawn by their content: positions, labels and weights, each of shape (s,)."""

    rows: NDArray[np.intp]
    labels: Labels
    weight: NDArray[np.float64]

    def head(self) -> Seedling:
        """A part of it that is small enough for kernel values between all of its rows and all others."""
        kept = slice(_scored(int(self.labels.max()) + 1))
        return Seedling(self.rows[kept], self.labels[kept], self.weight[kept])


def plant(
    kernel: Kernel,
    sample: Sample,
    n_clusters: int,
    seed: int,
    pool: Threads,
    leading: Matrix | None = None,
) -> Seedling:
    """Find a good partition of a sample of the rows by the recipe above.

    Parameters
    ----------
    kernel : Kernel
    sample : Sample
        All rows.
    n_clusters : int
    seed : int
    pool : Threads
    leading : array of shape (n, p), optional
        Coordinates of all rows, the leading ones first, if there are any.
    """
    # 1.
    rows, total = distinct_rows(scramble(sample.keys, seed), sample.weight, max(_SAMPLE, 2 * _scored(n_clusters)))
    # 2.
    if leading is None:
        few = Sample(_among(kernel, sample.X, rows), total, sample.keys[rows])
        embedding = Nystroem(max(_LANDMARKS, 4 * n_clusters), rank=2 * n_clusters, random_state=seed)
        embedding.learn(few, kernel, pool)
        leading = embedding.embed(few.X, pool)
    else:
        leading = np.ascontiguousarray(leading[rows][:, : 2 * n_clusters])
    space, order = EmbeddedSpace(leading, total, n_clusters, _SERIAL), np.arange(len(rows))

    def start(run: int) -> Partition[ExplicitCenters]:  # 3.
        first, _ = k_means_plus_plus(space, order, np.random.default_rng(run))
        return hard_c_means(space, first, max_iter=100, tol=_TOL)

    def search(partition: Partition[ExplicitCenters]) -> Partition[ExplicitCenters]:  # 4.
        rng = np.random.default_rng(seed)
        return search_swaps(space, partition, order, rng, patience=_PATIENCE, rounds=3 * n_clusters, tol=_TOL)

    found = pool.map(start, np.random.default_rng(seed).integers(2**62, size=_RUNS))
    finalists = pool.map(search, sorted(found, key=_objective)[:_FINALISTS])
    # 5.
    best = min(finalists, key=_objective)
    rivals = [partition for partition in finalists if _objective(partition) > (1 + _TOL) * _objective(best)]
    if rivals:
        part = rows[: _scored(n_clusters)]
        exact = GramSpace(_gram(kernel, _among(kernel, sample.X, part), pool), total[: len(part)], n_clusters, pool)
        first = [found.labels[: exact.n].copy() for found in (best, *rivals)]
        costs = [rounded(exact.objective(exact.centers(labels))) for labels in first]
        best = (best, *rivals)[int(np.argmin(costs))]
    return Seedling(rows, best.labels, total)


def _objective(partition: Partition[ExplicitCenters]) -> float:
    return rounded(partition.objective)


def _scored(n_clusters: int) -> int:
    """Rows that the exact objective is taken over."""
    return max(_SCORED, 20 * n_clusters)


def _among(kernel: Kernel, X: Matrix, rows: NDArray[np.intp]) -> Matrix:
    """Return some of the rows (of a matrix of kernel values, also the columns)."""
    return X[np.ix_(rows, rows)] if isinstance(kernel, Precomputed) else X[rows]


def _gram(kernel: Kernel, X: Matrix, pool: Threads) -> Gram:
    return PrecomputedGram(X, pool) if isinstance(kernel, Precomputed) else MemoryGram(kernel, kernel.rows(X), pool)
