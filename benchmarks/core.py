"""The compiled core against scikit-learn, FAISS and SciPy, two threads each, float32.

Run: python -m benchmarks core
"""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.timing import Row, race, show
from mercer import _core
from mercer.engine.memory import aligned_empty
from mercer.engine.threads import Threads, blocks
from mercer.kernels import RBF

THREADS = 2


def kernel_rows(n: int = 200_000, d: int = 54, m: int = 512) -> list[Row]:
    """Time `kernel_block` for the rbf kernel: all rows against m landmarks, into one array."""
    rng = np.random.default_rng(0)
    X, Z = rng.random((n, d), dtype=np.float32), rng.random((m, d), dtype=np.float32)
    kernel, out = RBF(gamma=1 / 54), np.empty((n, m), dtype=np.float32)

    def ours() -> None:
        with Threads(THREADS) as pool:
            right = kernel.rows(Z)
            left, panels = kernel.rows(X, like=right), kernel.panels(right)
            assert left.norms is not None
            pool.map(lambda part: kernel.block(left.slice(part), panels, out[part]), blocks(n, 4096))

    def theirs() -> None:
        rbf_kernel(X, Z, gamma=1 / 54)

    best = race({"ours": ours, "theirs": theirs})
    np.testing.assert_allclose(out[:1000], rbf_kernel(X[:1000], Z, gamma=1 / 54), rtol=1e-4)
    per_value = best["ours"] / n / m * 1e9
    return [
        Row(
            f"kernel_block rbf n={n} d={d} m={m} ({per_value:.2f} ns)",
            best["ours"],
            "sklearn rbf_kernel",
            best["theirs"],
            6,
        )
    ]


def nearest_l2(n: int = 200_000, d: int = 256, k: int = 100) -> list[Row]:
    """Time the nearest centre with sums, as scikit-learn's Lloyd iteration, and without, as FAISS's search."""
    import faiss

    rng = np.random.default_rng(0)
    X, C = rng.random((n, d), dtype=np.float32), rng.random((k, d), dtype=np.float32)
    weight, new = np.ones(n, dtype=np.float32), np.empty_like(C)
    totals, shift, labels = np.zeros(k, dtype=np.float32), np.zeros(k, dtype=np.float32), np.zeros(n, dtype=np.int32)
    index = faiss.IndexFlatL2(d)
    index.add(C)
    faiss.omp_set_num_threads(THREADS)
    best = race(
        {
            "iteration": lambda: assign(X, C, metric=0, sums=True),
            "assignment": lambda: assign(X, C, metric=0, sums=False),
            "lloyd": lambda: lloyd_iter_chunked_dense(X, weight, C, new, totals, labels, shift, THREADS),
            "faiss": lambda: index.search(X, 1),
        }
    )
    agree = np.mean(assign(X, C, metric=0, sums=True) == labels)
    assert agree > 0.999, agree
    what = f"n={n} d={d} k={k}"
    return [
        Row(f"nearest centre l2 with sums {what}", best["iteration"], "sklearn Lloyd iteration", best["lloyd"], 2.3),
        Row(f"nearest centre l2 {what}", best["assignment"], "FAISS IndexFlatL2.search", best["faiss"], 3),
    ]


def nearest_l1(n: int = 20_000, d: int = 256, k: int = 100) -> list[Row]:
    """Time the nearest centre in l1 with one thread; SciPy's is the distances and their argmin."""
    rng = np.random.default_rng(0)
    X, C = rng.random((n, d), dtype=np.float32), rng.random((k, d), dtype=np.float32)
    best = race(
        {
            "ours": lambda: assign(X, C, metric=1, sums=False, n_jobs=1),
            "theirs": lambda: cdist(X, C, "cityblock").argmin(axis=1),
        },
        rounds=3,
    )
    assert np.mean(assign(X, C, metric=1, sums=False) == cdist(X, C, "cityblock").argmin(axis=1)) > 0.999
    return [
        Row(
            f"nearest centre l1 n={n} d={d} k={k}, 1 thread", best["ours"], "scipy cdist(cityblock)", best["theirs"], 12
        )
    ]


def assign(X: np.ndarray, C: np.ndarray, *, metric: int, sums: bool, n_jobs: int = THREADS) -> np.ndarray:
    """Labels of the rows of X by the core, with the new centres' sums if asked for."""
    n, d = X.shape
    half = (C * C).sum(axis=1) / 2
    labels, norms, rows = np.zeros(n, dtype=np.int32), np.empty(n, dtype=X.dtype), _core.dense_rows(X)

    def run(part: slice) -> tuple[np.ndarray, np.ndarray] | None:
        scratch = aligned_empty(_core.assign_scratch(d, X.itemsize), X.dtype)
        view = rows.slice(part.start, part.stop)
        _core.norms(view, 2, norms[part])
        total = (np.zeros((len(C), d)), np.zeros(len(C))) if sums else (None, None)
        _core.assign(view, C, half, metric, None, norms[part], labels[part], None, *total, scratch)
        return total

    with Threads(n_jobs) as pool:
        parts = pool.map(run, blocks(n, 16384))
    if sums:
        np.divide(sum(p[0] for p in parts), sum(p[1] for p in parts)[:, None])
    return labels


def main() -> bool:
    """Run all comparisons; whether every ratio was reached."""
    print(f"instruction set: {_core.active()}; {THREADS} threads unless stated; best of interleaved rounds")
    with threadpool_limits(THREADS):
        return show("Compiled core, float32", kernel_rows() + nearest_l2() + nearest_l1())
