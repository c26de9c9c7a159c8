"""What estimators hand to the parts, checked once, and what they get back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.engine.checkpoint import Checkpoint
from mercer.engine.threads import Threads
from mercer.features import FeatureMap
from mercer.gram import Disk
from mercer.kernels import Kernel, make_kernel
from mercer.planner import Plan
from mercer.solvers.space import Labels
from mercer.sources import Matrix, Sample

Reporter = Callable[[int, int, Any], bool]
"""Told of a run, an iteration of it, and its record; whether to stop there."""


@dataclass(frozen=True)
class Data(Sample):
    """Validated rows with their weights and content hashes, and the kernel to use.

    A precomputed kernel matrix is its own data: `kernel` is then a `Precomputed`.
    """

    kernel: Kernel


def kernel_of(estimator: Any, X: Matrix, weight: NDArray[np.float64], keys: NDArray[np.uint64]) -> Kernel:
    """Kernel object that an estimator's parameters name, for its rows."""
    return make_kernel(
        estimator.kernel,
        X,
        gamma=estimator.gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        kernel_params=estimator.kernel_params,
        sample_weight=weight,
        keys=keys,
    )


@dataclass(frozen=True)
class Settings:
    """Parameters of a fit that do not depend on the space."""

    n_clusters: int
    init: Any
    n_init: int | None  # None: as many as is sensible, where it is cheapest
    max_iter: int
    tol: float
    memory_limit: int | None
    disk: Disk
    own_tiles: Path | None  # a folder of tiles that no user has named
    seed: int
    report: Reporter
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def seeds(self, runs: int) -> NDArray[np.integer]:
        """One seed for each run."""
        return np.random.default_rng(self.seed).integers(2**62, size=runs)


class Model(Protocol):
    """Centres that new rows can be compared with."""

    @property
    def knows_distances(self) -> bool:
        """Whether k(x, x) of new rows is known."""

    def nearest(self, X: Matrix, pool: Threads) -> tuple[Labels, NDArray[np.float64]]:
        """Nearest centre of new rows and the squared distance to it."""

    def distances(self, X: Matrix, pool: Threads) -> NDArray[np.float64]:
        """Squared distances to all centres, shape (m, k)."""


@dataclass(frozen=True)
class Fitted:
    """Result of a fit in any space."""

    labels: Labels
    objective: float
    history: tuple[Any, ...]
    converged: bool
    stopped: bool  # by a callback
    filled: int
    medoids: NDArray[np.intp] | None
    plan: Plan
    kernel: Kernel
    model: Model
    feature_map: FeatureMap | None = None
    centers: NDArray[np.float64] | None = None
    soft: Any = None
    spread: float = 0.0  # mean squared distance of points to their centres
    resolution: float = 0.0  # squared distances below it are rounding
