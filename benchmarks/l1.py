"""Clustering in l1 by the core against a SciPy `cdist(cityblock)` Lloyd, on APNC coordinates of MNIST.

Both start from the same labels, make the same number of iterations with means as centres, and must agree.

Run: python -m benchmarks l1
"""

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.timing import Row, race, show
from mercer import CentroidEmbedding, datasets
from mercer.engine.threads import Threads
from mercer.solvers import EmbeddedSpace, hard_c_means

K, ITERATIONS = 10, 15


def lloyd(Y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Nearest mean in l1, with SciPy."""
    for _ in range(ITERATIONS):
        centers = np.stack([Y[labels == c].mean(axis=0, dtype=np.float64) for c in range(K)])
        labels = cdist(Y, centers, "cityblock").argmin(axis=1)
    return labels


def main() -> bool:
    """Run; whether the ratio was reached."""
    X = datasets.load_mnist(return_X_y=True)[0] / np.float32(255)
    parameters = {"kernel": "polynomial", "degree": 5, "gamma": 1.0, "random_state": 0}
    Y = CentroidEmbedding(300, 1000, **parameters).fit_transform(X)
    first = np.abs(Y[:, None, :8] - Y[None, :K, :8]).sum(axis=2).argmin(axis=1).astype(np.int32)
    labels = {}

    def ours() -> None:
        with Threads(2) as pool:
            space = EmbeddedSpace(Y, np.ones(len(Y)), K, pool, metric=1)
            labels["ours"] = hard_c_means(space, first, max_iter=ITERATIONS).labels

    def theirs() -> None:
        labels["theirs"] = lloyd(Y, first)

    best = race({"ours": ours, "theirs": theirs}, rounds=2)
    same = float(np.mean(labels["ours"] == labels["theirs"]))
    print(f"labels in common after {ITERATIONS} iterations: {same:.5f}")
    what = f"l1 c-means, {Y.shape[0]:,} x {Y.shape[1]:,}, k={K}, {ITERATIONS} iterations"
    return (
        show("Nearest mean in l1", [Row(what, best["ours"], "scipy cdist Lloyd", best["theirs"], 15)]) and same > 0.999
    )
