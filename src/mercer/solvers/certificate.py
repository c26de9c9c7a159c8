"""How far a partition can be from the best one: a lower bound on the kernel objective of every partition.

With coordinates Y whose residual kernel K - Y Y' is positive semidefinite, no partition into k clusters costs less than
the sum of all but the k largest eigenvalues of Y' W Y (Pourkamali-Anaraki & Becker 2016, theorem 1), nor less than the
sum of all but the k - 1 largest after centring (Ding & He 2004): the trace the residual adds, it can also take away.
The better of the two is taken. More landmarks bring it nearer to the optimum; it is valid for any number.

Time: n m (d + m) for m landmarks. Memory: m^2, and blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer.engine.threads import Threads, blocks
from mercer.features import Nystroem
from mercer.kernels import Kernel
from mercer.sources import Sample

LANDMARKS = 2000
_BLOCK, _AT_ONCE = 2048, 8


@dataclass(frozen=True)
class Certificate:
    """What is known of the distance to the optimum.

    Attributes
    ----------
    objective : float
        Kernel objective of the partition, or a bound on it from above.
    lower_bound : float or None
        No partition costs less; None if no bound is valid.
    reason : str
        Where the bound comes from, or why there is none.
    """

    objective: float
    lower_bound: float | None
    reason: str

    @property
    def ratio(self) -> float | None:
        """Objective over lower bound: 1 is optimal. None if there is no bound, or it is zero."""
        return self.objective / self.lower_bound if self.lower_bound else None

    def __str__(self) -> str:
        if self.lower_bound is None:
            return f"objective {self.objective:.6g}, no lower bound: {self.reason}"
        ratio = "" if self.ratio is None else f", at most {self.ratio:.3f} times the optimum"
        return f"objective {self.objective:.6g}, lower bound {self.lower_bound:.6g}{ratio} ({self.reason})"


def lower_bound(scatter: NDArray[np.float64], sums: NDArray[np.float64], weight: float, n_clusters: int) -> float:
    """Bound from the coordinates' second moments.

    Parameters
    ----------
    scatter : array of shape (p, p)
        Y' W Y.
    sums : array of shape (p,)
        Y' w.
    weight : float
        Total weight.
    n_clusters : int
    """
    centred = scatter - np.outer(sums, sums) / weight
    plain = linalg.eigvalsh(scatter)[: max(0, len(scatter) - n_clusters)]
    moved = linalg.eigvalsh(centred)[: max(0, len(scatter) - n_clusters + 1)]
    return float(max(plain.clip(0).sum(), moved.clip(0).sum()))


def certify(
    kernel: Kernel,
    sample: Sample,
    objective: float,
    n_clusters: int,
    seed: int,
    pool: Threads,
) -> Certificate:
    """Certificate of a partition whose kernel objective is at most `objective`.

    Parameters
    ----------
    kernel : Kernel
    sample : Sample
    objective : float
    n_clusters : int
    seed : int
        Of the landmarks.
    pool : Threads
    """
    if not kernel.positive_semidefinite:
        known = "is not" if kernel.positive_semidefinite is False else "is not known to be"
        return Certificate(objective, None, f"{kernel!r} {known} positive semidefinite")
    feature_map = Nystroem(max(LANDMARKS, 10 * n_clusters), random_state=seed)
    feature_map.learn(sample, kernel, pool)
    X, weight = sample.X, sample.weight

    def moments(part: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        Y = feature_map.embed(X[part], Threads(1)).astype(np.float64)
        weighted = Y * weight[part, None]
        return Y.T @ weighted, weighted.sum(axis=0)

    p = feature_map.rank_
    scatter, sums = np.zeros((p, p)), np.zeros(p)
    parts = blocks(X.shape[0], _BLOCK)
    for first in range(0, len(parts), _AT_ONCE):
        for product, total in pool.map(moments, parts[first : first + _AT_ONCE]):
            scatter += product
            sums += total
    bound = lower_bound(scatter, sums, float(weight.sum()), n_clusters)
    return Certificate(objective, bound, f"spectral, from {feature_map.n_landmarks_} landmarks")
