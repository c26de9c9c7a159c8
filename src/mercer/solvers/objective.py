"""The objective: one function, in float64, for every space.

A partition costs ``sum_i w_i |phi(x_i) - v_c(i)|^2`` with each centre the weighted mean of its cluster, which is
``sum_i w_i |phi(x_i)|^2 - sum_c |sum_{i in c} w_i phi(x_i)|^2 / w_c``. The first term does not depend on the
partition; a space supplies the squared norms of the clusters' sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def total_weights(labels: NDArray[np.integer], weight: NDArray[np.float64], n_clusters: int) -> NDArray[np.float64]:
    """Sum of `weight`, shape (n,), in each cluster, shape (n_clusters,)."""
    return np.bincount(labels, weight, n_clusters).astype(np.float64, copy=False)


def partition_objective(constant: float, squared_sums: NDArray[np.float64], totals: NDArray[np.float64]) -> float:
    """Objective of a partition.

    Parameters
    ----------
    constant : float
        sum_i w_i |phi(x_i)|^2.
    squared_sums : array of shape (k,)
        |sum_{i in c} w_i phi(x_i)|^2.
    totals : array of shape (k,)
        Weight of each cluster; empty clusters contribute nothing.

    Examples
    --------
    >>> partition_objective(10.0, np.array([9.0, 0.0]), np.array([1.0, 0.0]))
    1.0
    """
    filled = totals > 0
    return float(constant - (squared_sums[filled] / totals[filled]).sum())
