"""Better optima for little: many restarts where they are cheap, the winner chosen by what is wanted.

Local minima cost more than approximation does. So (1) take a sample of the rows by their content, (2) embed it by
Nystroem coordinates of about twice as many dimensions as clusters, (3) run k-means++ and c-means there many times,
(4) score every partition by the exact kernel objective of part of the sample, (5) polish the winner there with the
exact kernel. The partition of that part is a start for any space: its centres are the means of its clusters.

Time: runs x 8192 x 2k x k, and a kernel matrix of 2048 points. Memory: that matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.engine.threads import Threads
from mercer.features import Nystroem
from mercer.gram import Gram, MemoryGram, PrecomputedGram
from mercer.kernels import Kernel, Precomputed
from mercer.solvers.cmeans import hard_c_means
from mercer.solvers.embedded_space import EmbeddedSpace
from mercer.solvers.gram_space import GramSpace
from mercer.solvers.seeding import k_means_plus_plus
from mercer.solvers.space import Labels
from mercer.sources import Matrix, distinct_rows, scramble

RUNS = 16
_SAMPLE, _SCORED, _LANDMARKS = 8192, 2048, 300


@dataclass(frozen=True)
class Seedling:
    """A good partition of a few rows: their positions, labels and weights, each of shape (s,)."""

    rows: NDArray[np.intp]
    labels: Labels
    weight: NDArray[np.float64]


def plant(
    kernel: Kernel,
    X: Matrix,
    weight: NDArray[np.float64],
    keys: NDArray[np.uint64],
    n_clusters: int,
    seed: int,
    pool: Threads,
    runs: int = RUNS,
) -> Seedling:
    """Find a good partition of a sample of the rows by the recipe above.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n, d)
    weight : array of shape (n,)
    keys : array of shape (n,)
        Content hash of the rows.
    n_clusters : int
    seed : int
    pool : Threads
    runs : int
    """
    scored = max(_SCORED, 20 * n_clusters)
    rows, total = distinct_rows(scramble(keys, seed), weight, max(_SAMPLE, 2 * scored))
    sample = X[rows][:, rows] if isinstance(kernel, Precomputed) else X[rows]
    landmarks = max(_LANDMARKS, 4 * n_clusters)
    embedding = Nystroem(landmarks, rank=2 * n_clusters, random_state=seed)
    embedding.learn(sample, total, kernel, pool)
    space = EmbeddedSpace(embedding.embed(sample, pool), total, n_clusters, pool)
    exact = GramSpace(_gram(kernel, sample, scored, pool), total[:scored], n_clusters, pool)
    order, best, chosen = np.arange(space.n), np.inf, np.zeros(exact.n, dtype=np.int32)
    for run in np.random.default_rng(seed).integers(2**62, size=runs):
        first, _ = k_means_plus_plus(space, order, np.random.default_rng(int(run)))
        labels = hard_c_means(space, first, max_iter=100, tol=1e-4).labels[: exact.n].copy()
        objective = exact.objective(exact.centers(labels))
        if objective < best:
            best, chosen = objective, labels
    polished = hard_c_means(exact, chosen, max_iter=100, tol=1e-4).labels
    return Seedling(rows[: exact.n], polished, total[: exact.n])


def _gram(kernel: Kernel, sample: Matrix, scored: int, pool: Threads) -> Gram:
    if isinstance(kernel, Precomputed):
        return PrecomputedGram(np.ascontiguousarray(sample[:scored, :scored]), pool)
    return MemoryGram(kernel, kernel.rows(sample[:scored]), pool)
