"""Synthetic data sets: rings, moons, and blobs among noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.utils import check_random_state

Labels = NDArray[np.intp]
RandomState = int | np.random.RandomState | None


def make_rings(
    n_samples: int = 1000,
    *,
    n_rings: int = 2,
    factor: float = 0.5,
    noise: float = 0.05,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], Labels]:
    """Concentric rings in the plane, which no straight line separates.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, shared among the rings as evenly as can be.
    n_rings : int, default=2
        Number of rings.
    factor : float, default=0.5
        Radius of the innermost ring, above 0 and below 1; the outermost has radius 1 and the others are
        evenly spaced between. A single ring has radius 1.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise added to each coordinate.
    random_state : int, RandomState or None, default=None
        Seed of the noise and of the order of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        The ring of each point, 0 for the innermost.

    Examples
    --------
    >>> from mercer.datasets import make_rings
    >>> X, y = make_rings(300, n_rings=3, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 2), [0, 1, 2])
    """
    if not 1 <= n_rings <= n_samples:
        raise ValueError(f"n_rings must lie between 1 and n_samples={n_samples}, not be {n_rings}.")
    if not (0 < factor < 1 and noise >= 0):
        raise ValueError(f"factor must lie between 0 and 1 and noise be non-negative, not {factor} and {noise}.")
    rng = check_random_state(random_state)
    order: Labels = rng.permutation(n_samples)
    place, y = np.divmod(order, n_rings)
    angle = 2 * np.pi * place / np.bincount(y)[y]
    radius = np.linspace(1.0, factor, n_rings)[::-1][y]
    X = radius[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return X + rng.normal(scale=noise, size=X.shape), y


def make_moons(
    n_samples: int = 1000, *, noise: float = 0.05, random_state: RandomState = None
) -> tuple[NDArray[np.float64], Labels]:
    """Two interleaved half circles in the plane.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise added to each coordinate.
    random_state : int, RandomState or None, default=None
        Seed of the noise and of the order of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        The half circle of each point, 0 or 1.

    Examples
    --------
    >>> from mercer.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> X.shape, y.shape
    ((200, 2), (200,))
    """
    X, y = sklearn_datasets.make_moons(n_samples, noise=noise, random_state=random_state)
    return X, y.astype(np.intp)


def make_blobs_with_noise(
    n_samples: int = 1000,
    *,
    n_clusters: int = 3,
    n_features: int = 2,
    noise_fraction: float = 0.1,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], Labels]:
    """Round Gaussian clusters among points spread evenly over the box that holds them.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, noise included.
    n_clusters : int, default=3
        Number of clusters, of variance 1 and as equal in size as can be.
    n_features : int, default=2
        Number of columns.
    noise_fraction : float, default=0.1
        Share of the points that belong to no cluster, at least 0 and below 1.
    random_state : int, RandomState or None, default=None
        Seed of centres, points and the order of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The points.
    y : ndarray of shape (n_samples,)
        The cluster of each point, or -1 for noise.

    Examples
    --------
    >>> from mercer.datasets import make_blobs_with_noise
    >>> X, y = make_blobs_with_noise(100, n_clusters=4, noise_fraction=0.2, random_state=0)
    >>> X.shape, int((y == -1).sum())
    ((100, 2), 20)
    """
    if not 0 <= noise_fraction < 1:
        raise ValueError(f"noise_fraction must be at least 0 and below 1, not {noise_fraction}.")
    n_noise = round(noise_fraction * n_samples)
    if not 1 <= n_clusters <= n_samples - n_noise:
        raise ValueError(f"{n_samples - n_noise} points outside the noise cannot make {n_clusters} clusters.")
    rng = check_random_state(random_state)
    points, cluster = sklearn_datasets.make_blobs(
        n_samples - n_noise, n_features=n_features, centers=n_clusters, random_state=rng
    )
    noise = rng.uniform(points.min(axis=0), points.max(axis=0), size=(n_noise, n_features))
    X, y = np.vstack((points, noise)), np.append(cluster, np.full(n_noise, -1)).astype(np.intp)
    order = rng.permutation(n_samples)
    return X[order], y[order]
