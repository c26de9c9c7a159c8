"""Checks of what users pass, with errors that say what is wrong and what to do."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from mercer.estimators.settings import Data
from mercer.kernels import Precomputed
from mercer.solvers.space import Labels


def integer(name: str, value: Any, low: int) -> int:
    """Check an integer parameter."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    return int(value)


def number(name: str, value: Any, low: float) -> float:
    """Check a finite real parameter."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value) or value < low:
        raise ValueError(f"{name} must be finite and at least {low}, got {value}")
    return float(value)


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Check a parameter that is one of a few words."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}={value!r} is not known; choose from {', '.join(map(repr, options))}")
    return value


def enough_rows(weight: NDArray[np.float64], n_clusters: int) -> None:
    """Check that there are as many rows (of positive weight) as clusters."""
    rows = len(weight)
    if rows < n_clusters:
        raise ValueError(f"n_samples={rows} should be >= n_clusters={n_clusters}")
    counted = int(np.count_nonzero(weight))
    if counted < n_clusters:
        raise ValueError(f"only {counted} rows have a positive weight, fewer than n_clusters={n_clusters}")


def first_labels(init: NDArray[Any], n: int, n_clusters: int) -> Labels:
    """Check labels to start from, shape (n,)."""
    if init.shape != (n,):
        raise ValueError(f"init has {len(init)} labels for {n} rows: give one first label for each row")
    if init.dtype.kind not in "iu":
        raise TypeError(f"first labels must be integers, got {init.dtype}; points to start from go in a 2-D array")
    if init.min() < 0 or init.max() >= n_clusters:
        raise ValueError(f"first labels must lie between 0 and {n_clusters - 1}, got {init.min()} to {init.max()}")
    return init.astype(np.int32)


def given_start(init: Any, data: Data, n_clusters: int) -> NDArray[Any]:
    """Check what a run starts from: first labels, shape (n,), or points, shape (n_clusters, n_features)."""
    init = np.asarray(init)
    if init.ndim == 1:
        return first_labels(init, data.X.shape[0], n_clusters)
    if isinstance(data.kernel, Precomputed):
        raise ValueError("points as init need a kernel to map them; with kernel='precomputed' give first labels")
    points = check_array(init, dtype=data.X.dtype, input_name="init")
    expected = (n_clusters, data.X.shape[1])
    if points.shape != expected:
        raise ValueError(f"init has shape {points.shape}; expected (n_clusters, n_features) {expected}")
    return np.asarray(points)
