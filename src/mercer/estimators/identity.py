"""What tells one fit from another, so that a checkpoint is used for the fit it is of and no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.engine.threads import Threads
from mercer.estimators.settings import Data
from mercer.features import FeatureMap
from mercer.kernels.identity import stable_digest
from mercer.sources import content_hash, is_sparse

# Whatever these are, the result is the same.
_OF_NO_MATTER = {"n_jobs", "memory_limit", "storage", "verbose", "checkpoint", "random_state", "keep_memberships"}
# Said by the kernel.
_OF_THE_KERNEL = {"kernel", "gamma", "degree", "coef0", "kernel_params"}


def fit_identity(
    estimator: BaseEstimator, data: Data, seed: int, method: str, held: str, pool: Threads
) -> Mapping[str, Any]:
    """Names and values, as text, of all that the result of a fit depends on.

    Parameters
    ----------
    estimator : estimator
    data : Data
    seed : int
    method : str
        In use, where the parameter leaves it open.
    held : str
        Type that kernel values are held in.
    pool : Threads
    """
    parameters = {
        name: _text(value)
        for name, value in estimator.get_params(deep=True).items()
        if name not in _OF_NO_MATTER | _OF_THE_KERNEL
    }
    return {
        "estimator": type(estimator).__name__,
        **parameters,
        "method in use": method,
        "kernel": data.kernel.identity,
        "kernel values": held,
        "data": _data_text(data, pool),
        "sample_weight": stable_digest(data.weight),
        "seed": seed,
    }


def _data_text(data: Data, pool: Threads) -> str:
    n, d = data.X.shape
    keys = content_hash(data.X, pool) if data.kernel.name == "precomputed" else data.keys
    return f"{n:,} x {d:,} {data.X.dtype}{', sparse' if is_sparse(data.X) else ''} {stable_digest(keys)}"


def _text(value: Any) -> str:
    if isinstance(value, (str, bool, int, float, type(None))):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, FeatureMap):  # its parameters are among the nested ones
        return type(value).__name__
    shape = f" {np.shape(value)}" if isinstance(value, (list, tuple, np.ndarray)) else ""
    return f"{type(value).__name__}{shape} {stable_digest(value)}"
