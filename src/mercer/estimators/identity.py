"""What tells one fit from another, so that a checkpoint is used for the fit it is of and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mercer.estimators.settings import Data
from mercer.sources import is_sparse

# Whatever these are, the result is the same.
_OF_NO_MATTER = {"n_jobs", "memory_limit", "storage", "verbose", "checkpoint", "random_state", "keep_memberships"}
# Said by the kernel.
_OF_THE_KERNEL = {"kernel", "gamma", "degree", "coef0", "kernel_params"}


def fit_identity(estimator: BaseEstimator, data: Data, seed: int) -> Mapping[str, Any]:
    """Names and values, as text, of all that the result of a fit depends on."""
    parameters = {
        name: _text(value)
        for name, value in estimator.get_params(deep=True).items()
        if name not in _OF_NO_MATTER | _OF_THE_KERNEL and not name.startswith("method__")
    }
    return {
        "estimator": type(estimator).__name__,
        **parameters,
        "kernel": data.kernel.identity,
        "data": _data_text(data),
        "sample_weight": _digest(data.weight),
        "seed": seed,
    }


def _data_text(data: Data) -> str:
    n, d = data.X.shape
    kind = f"{data.X.dtype}{', sparse' if is_sparse(data.X) else ''}"
    return f"{n:,} x {d:,} {kind} {_digest(data.keys if data.kernel.name != 'precomputed' else _look(data.X))}"


def _look(K: Any) -> NDArray[Any]:
    """Some columns of a kernel matrix stand for all of it."""
    some = np.linspace(0, K.shape[0] - 1, min(K.shape[0], 16)).astype(np.intp)
    columns = K[:, some]
    return np.asarray(columns.toarray() if is_sparse(columns) else columns)


def _digest(values: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def _text(value: Any) -> str:
    if is_sparse(value):
        value = value.toarray()
    if isinstance(value, (list, tuple, np.ndarray)):
        array = np.asarray(value)
        return f"array {array.shape} {_digest(array)}"
    return repr(value)
