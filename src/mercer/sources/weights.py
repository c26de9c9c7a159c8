"""Sample weights as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST, _MOST = 1e-20, 1e20  # sums of weighted coordinates stay within the range of float32


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """Check sample weights, shape (n,); None is all ones, a number is that for all."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n,)}: one weight for each of the rows")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if (weight < 0).any():
        row = int(weight.argmin())
        raise ValueError(f"sample_weight must not be negative; the weight of row {row} is {weight.min()}")
    if not (weight > 0).any():
        raise ValueError("sample_weight is zero for every row: there is nothing to cluster")
    least, most = weight[weight > 0].min(), weight.max()
    if least < _LEAST or most > _MOST:
        raise ValueError(
            f"sample_weight goes from {least:.3g} to {most:.3g}: scale the weights so that they are zero or lie "
            f"between {_LEAST:g} and {_MOST:g}"
        )
    return weight
