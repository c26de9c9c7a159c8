"""Soft c-means on landmarks against the full kernel, from the same start, by number of landmarks.

For each run the full kernel and every sample start from the same objects as centres. Printed are means over the runs,
with the least and the largest: how many times faster the memberships are found (ours with the kernel values of the
landmarks, the full kernel's without its own), purity less that of the full kernel, and the error in percent of the
objective sum u^m d, for both with the exact centres of their memberships. Pictures go to build/papers/.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from mercer import Nystroem, metrics
from mercer.engine.threads import Threads
from mercer.gram import MemoryGram
from mercer.kernels import make_kernel
from mercer.solvers import EmbeddedSpace, GramSpace
from mercer.solvers.rules import Rule
from mercer.solvers.soft import SoftPartition, best_soft_partition
from mercer.sources import Sample

FOLDER = Path("build/papers")
SETTINGS = {"max_iter": 300, "tol": 1e-3}
MEASURES = ("speed-up", "relative purity", "% error")


def show_curve(curve: dict[str, Any], X: np.ndarray, y: np.ndarray) -> bool:
    """Run and print the fuzzy and the possibilistic rule."""
    kernel = make_kernel(X=X, **curve["kernel"])
    with Threads() as pool:
        gram = MemoryGram(kernel, kernel.rows(X), pool)
        full = GramSpace(gram, np.ones(len(X)), curve["n_clusters"], pool)
        for rule, theta in (("akFCM", None), ("akPCM", 1.0)):
            found = np.array([_run(curve, kernel, X, y, full, theta, seed) for seed in range(curve["runs"])])
            _print(f"{curve['name']}: {rule}", curve, found)
            _draw(f"{curve['name']}, {rule}", curve, found)
    return True


def _run(
    curve: dict[str, Any], kernel: Any, X: np.ndarray, y: np.ndarray, full: GramSpace, theta: float | None, seed: int
) -> np.ndarray:
    """Measures of one run, shape (samples, 3)."""
    rng, say = np.random.default_rng(seed), lambda *_: None
    first = rng.choice(len(X), curve["n_clusters"], replace=False)
    started = time.perf_counter()
    whole = best_soft_partition(full, [full.centers_at(first)], 2.0, theta=theta, report=say, **SETTINGS)
    seconds = time.perf_counter() - started
    error, purity = _objective(full, whole), metrics.purity(y, whole.last.labels)
    out = []
    for count in curve["samples"]:
        started = time.perf_counter()
        nystroem = Nystroem(count, random_state=seed)
        nystroem.learn(Sample(X, full.weight, kernel.keys(X)), kernel, full.pool)
        Y = nystroem.embed(X, full.pool)
        space = EmbeddedSpace(Y, full.weight, full.n_clusters, full.pool, nystroem.leave(X, Y, full.pool))
        part = best_soft_partition(space, [space.centers_at(Y[first])], 2.0, theta=theta, report=say, **SETTINGS)
        taken = time.perf_counter() - started
        worse = 100 * (_objective(full, part) / error - 1)
        out.append((seconds / taken, metrics.purity(y, part.last.labels) - purity, worse))
    return np.array(out)


def _objective(full: GramSpace, partition: SoftPartition[Any]) -> float:
    """Sum of u^m d with the exact centres of the memberships: sum u^m k(x, x) - sum_c |sum u^m phi|^2 / sum u^m."""
    given = Rule(2.0).weights(partition.last.memberships, full.weight)
    centers = full.weighted_centers(np.ascontiguousarray(given.T))
    return float(full.gram.diagonal @ given.sum(axis=1) - (centers.squared_sums / centers.totals).sum())


def _print(title: str, curve: dict[str, Any], found: np.ndarray) -> None:
    print(f"\n{title}: {curve['runs']} runs, mean (least, largest)")
    print(f"  {'landmarks':>9}" + "".join(f"{measure:>34}" for measure in MEASURES))
    for position, count in enumerate(curve["samples"]):
        values = found[:, position]
        cells = (f"{v.mean():14.3f} ({v.min():7.3f}, {v.max():7.3f})" for v in values.T)
        print(f"  {count:>9}" + "".join(f"{cell:>34}" for cell in cells))


def _draw(title: str, curve: dict[str, Any], found: np.ndarray) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for axis, measure, values in zip(axes, MEASURES, np.moveaxis(found, 2, 0), strict=True):
        mean = values.mean(axis=0)
        spread = np.abs(np.stack([values.min(axis=0), values.max(axis=0)]) - mean)
        axis.errorbar(curve["samples"], mean, yerr=spread, fmt="o-", capsize=3)
        axis.set(xlabel="landmarks", title=measure, xscale="log", yscale="log" if measure == "speed-up" else "linear")
    figure.suptitle(title)
    FOLDER.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
    figure.savefig(FOLDER / f"{name}.png", dpi=110)
    plt.close(figure)
