"""Approximate kernel k-means end to end against scikit-learn's pipeline of Nystroem and k-means.

Forest cover type (581,012 x 54, float32, min-max, k=7, 500 landmarks) at two widths, MNIST (k=10, gamma "median").
Both sides are scored by the same function, the kernel objective over all rows: a quarter of an hour for each width of
forest. Peak memory beyond the input is measured in a process of its own.

Run: python -m benchmarks embedded
"""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from mercer import KernelKMeans, datasets, metrics
from mercer.kernels import RBF, choose_gamma

SEEDS = range(5)
LANDMARKS = 500
ASKED_SPEED, ASKED_MEGABYTES = 15, 450


def forest() -> np.ndarray:
    """Forest cover type, scaled."""
    return datasets.load_covtype(return_X_y=True, scale="minmax")[0]


def mnist() -> np.ndarray:
    """MNIST, in [0, 1]."""
    return datasets.load_mnist(return_X_y=True)[0] / np.float32(255)


def ours(X: np.ndarray, k: int, gamma: float, seed: int) -> np.ndarray:
    """Labels by `KernelKMeans`."""
    model = KernelKMeans(k, gamma=gamma, method="nystroem", n_components=LANDMARKS, random_state=seed)
    return model.fit(X).labels_


def pipeline(X: np.ndarray, k: int, gamma: float, seed: int) -> np.ndarray:
    """Labels by scikit-learn."""
    steps = Nystroem(gamma=gamma, n_components=LANDMARKS, random_state=seed), KMeans(k, n_init=1, random_state=seed)
    return make_pipeline(*steps).fit_predict(X)


def mini_batch(X: np.ndarray, k: int, gamma: float, seed: int) -> np.ndarray:
    """Labels by scikit-learn, with mini-batches for the k-means."""
    nystroem = Nystroem(gamma=gamma, n_components=LANDMARKS, random_state=seed)
    return make_pipeline(nystroem, MiniBatchKMeans(k, n_init=1, random_state=seed)).fit_predict(X)


RIVALS: dict[str, Callable[..., np.ndarray]] = {"ours": ours, "pipeline": pipeline, "mini-batch": mini_batch}


def compare(name: str, X: np.ndarray, k: int, gamma: float) -> bool:
    """Interleave the rivals over the seeds; print seconds and objectives."""
    seconds = {rival: [] for rival in RIVALS}
    objectives = {rival: [] for rival in RIVALS}
    ours(X[:5000], k, gamma, 0)
    for seed in SEEDS:
        for rival, run in RIVALS.items():
            started = time.perf_counter()
            labels = run(X, k, gamma, seed)
            seconds[rival].append(time.perf_counter() - started)
            objectives[rival].append(metrics.kernel_objective(X, labels, gamma=gamma))
    print(f"\n{name}: {len(X):,} x {X.shape[1]}, k={k}, gamma={gamma:.4g}, objective over all rows")
    for rival in RIVALS:
        values = objectives[rival]
        print(
            f"  {rival:12} best {min(seconds[rival]):7.2f} s, median {np.median(seconds[rival]):7.2f} s   objective "
            f"median {np.median(values):,.1f}, worst {max(values):,.1f}, best {min(values):,.1f}"
        )
    ratios = [np.median(seconds[rival]) / np.median(seconds["ours"]) for rival in ("pipeline", "mini-batch")]
    better = np.median(objectives["ours"]) <= min(objectives["pipeline"])
    print(f"  faster than the pipeline {ratios[0]:.1f}x (asked {ASKED_SPEED}x), than mini-batches {ratios[1]:.1f}x")
    print(f"  our median objective is no worse than the pipeline's best: {better}")
    return bool(ratios[0] >= ASKED_SPEED and better)


def peak_memory() -> bool:
    """Peak resident set of a forest fit beyond what the process had with the data loaded."""
    code = (
        "import resource; from benchmarks.embedded import forest, ours; X = forest(); ours(X[:5000], 7, 1 / 54, 0);"
        "before = int([l for l in open('/proc/self/status') if l.startswith('VmRSS')][0].split()[1]);"
        "open('/proc/self/clear_refs', 'w').write('5');"
        "ours(X, 7, 1 / 54, 0);"
        "after = int([l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1]);"
        "print((after - before) / 1000)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    megabytes = float(run.stdout)
    print(f"\npeak memory of the forest fit beyond the input: {megabytes:.0f} MB, asked under {ASKED_MEGABYTES}")
    return megabytes < ASKED_MEGABYTES


def main() -> bool:
    """Run all; whether everything asked was reached."""
    X = forest()
    reached = [compare("forest", X, 7, 1 / 54), compare("forest", X, 7, 1.0)]
    del X
    M = mnist()
    reached.append(compare("MNIST", M, 10, choose_gamma("median", M, RBF)))
    return all([*reached, peak_memory()])
