"""Exact kernel k-means on pendigits against plain NumPy and tslearn, and the latency of small fits.

Run: python -m benchmarks exact
"""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from benchmarks.timing import Row, race, show
from mercer import KernelKMeans, datasets, metrics

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import reference  # the naive versions that the tests compare with

GAMMA, K = 1 / 16, 10


def pendigits_rows() -> list[Row]:
    """Compare one random start to convergence, from the same labels; tslearn runs as many iterations."""
    from tslearn.clustering import KernelKMeans as TimeSeriesKernelKMeans

    X, y = datasets.load_pendigits(return_X_y=True, scale="minmax")
    start = np.random.default_rng(0).integers(K, size=len(X))
    model = KernelKMeans(K, gamma=GAMMA, init=start, tol=0)
    best = race(
        {"ours": lambda: model.fit(X), "numpy": lambda: reference.kernel_kmeans_numpy(X, GAMMA, start, K)}, rounds=3
    )
    same = np.array_equal(model.labels_, reference.kernel_kmeans_numpy(X, GAMMA, start, K))
    print(f"pendigits: {model.n_iter_} iterations, same labels as NumPy: {same}")
    assert same
    other = TimeSeriesKernelKMeans(K, kernel="rbf", kernel_params={"gamma": GAMMA}, max_iter=model.n_iter_, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slow = race({"ours": lambda: model.fit(X), "tslearn": lambda: other.fit(X[:, :, None])}, rounds=1)
    print(f"NMI of this start: ours {metrics.normalized_mutual_info(y, model.labels_):.3f}, ", end="")
    print(f"tslearn (own random start) {metrics.normalized_mutual_info(y, other.labels_):.3f}")
    return [
        Row("pendigits, one start to convergence", best["ours"], "NumPy float32, K @ U", best["numpy"], 5),
        Row(
            "pendigits, as many iterations",
            slow["ours"],
            f"tslearn KernelKMeans ({other.n_iter_} it.)",
            slow["tslearn"],
            60,
        ),
    ]


def pendigits_quality() -> bool:
    """NMI of ten random starts; published (Lin & Yang, table 2): .6775 exact."""
    X, y = datasets.load_pendigits(return_X_y=True, scale="minmax")
    scores = [
        metrics.normalized_mutual_info(
            y, KernelKMeans(K, gamma=GAMMA, init="random", n_init=1, tol=0, random_state=seed).fit(X).labels_
        )
        for seed in range(10)
    ]
    print(
        f"\npendigits NMI over ten random starts: {np.mean(scores):.3f} (sd {np.std(scores):.3f}), asked .675 +- .012"
    )
    return abs(np.mean(scores) - 0.675) <= 0.012


def latency() -> bool:
    """Milliseconds of a small fit after warm-up, and what importing adds to scikit-learn."""
    X = load_iris().data
    small = race({"fit": lambda: KernelKMeans(3).fit(X)}, rounds=50)["fit"] * 1e3
    code = "import time, sklearn.cluster; t = time.perf_counter(); import mercer; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True) for _ in range(5)]
    added = min(float(run.stdout) for run in runs) * 1e3
    print(f"\nKernelKMeans(3).fit(iris): {small:.2f} ms, asked under 5")
    print(f"import mercer adds {added:.0f} ms, asked under 150")
    return small < 5 and added < 150


def main() -> bool:
    """Run all; whether everything asked was reached."""
    return all([show("Exact kernel k-means", pendigits_rows()), pendigits_quality(), latency()])
