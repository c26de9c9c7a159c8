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
from mercer.engine.memory import scratch
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
    points = Points(X)
    best = race(
        {
            "iteration": lambda: points.assign(C, sums=True),
            "lloyd": lambda: lloyd_iter_chunked_dense(X, weight, C, new, totals, labels, shift, THREADS),
            "assignment": lambda: points.assign(C),
            "faiss": lambda: index.search(X, 1),
        }
    )
    agree = np.mean(points.assign(C, sums=True) == labels)
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
    points = Points(X, n_jobs=1)
    best = race(
        {
            "ours": lambda: points.assign(C, metric=1),
            "theirs": lambda: cdist(X, C, "cityblock").argmin(axis=1),
        },
        rounds=3,
    )
    assert np.mean(points.assign(C, metric=1) == cdist(X, C, "cityblock").argmin(axis=1)) > 0.999
    return [Row(f"nearest centre l1 n={n} d={d} k={k}, 1 thread", best["ours"], "scipy cdist", best["theirs"], 12)]


class Points:
    """Rows as `EmbeddedSpace` holds them through a run: the core's view, their squared norms, and threads that wait."""

    def __init__(self, X: np.ndarray, n_jobs: int = THREADS) -> None:
        self.X, self.rows = X, _core.dense_rows(X)
        self.pool = Threads(n_jobs)  # not entered: the rivals keep their BLAS threads
        self.norms = np.einsum("ij,ij->i", X, X)

    def assign(self, C: np.ndarray, *, metric: int = 0, sums: bool = False) -> np.ndarray:
        """Labels by the core, with the new centres if asked for."""
        n, d = self.X.shape
        offset, labels = (C.sum(axis=1) / -2 if metric else (C * C).sum(axis=1) / 2), np.zeros(n, dtype=np.int32)

        def run(part: slice) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
            buffer = scratch(_core.assign_scratch(d, self.X.itemsize), self.X.dtype)
            total = (np.zeros((len(C), d)), np.zeros(len(C))) if sums else (None, None)
            view, norms = self.rows.slice(part.start, part.stop), self.norms[part]
            _core.assign(view, C, offset, metric, None, norms, labels[part], None, *total, buffer)
            return total

        parts = self.pool.map(run, blocks(n, max(1024, (1 << 20) // d)))  # as EmbeddedSpace does
        if sums:
            np.divide(sum(p[0] for p in parts), sum(p[1] for p in parts)[:, None])
        return labels


def main() -> bool:
    """Run all comparisons; whether every ratio was reached."""
    print(f"instruction set: {_core.active()}; {THREADS} threads unless stated; best of interleaved rounds")
    with threadpool_limits(THREADS):
        return show("Compiled core, float32", kernel_rows() + nearest_l2() + nearest_l1())
