"""Where the time of the disk scheme goes, for K and 2K clusters: kernel values, input and output, clustering.

Two ways from the same start and with the same tiles: as the paper does it, every iteration going over the whole matrix,
and as Mercer does it, only the first. Seconds of work, divided by the number of threads.
"""

import tempfile
import threading
import time
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from mercer import Disk, kernels
from mercer.engine.threads import Threads
from mercer.gram import DiskGram, Moves, TiledGram
from mercer.solvers import GramSpace, hard_c_means, random_labels


class TimedGram(DiskGram):
    """Tiles on disk that note what reading, writing and evaluating them takes."""

    spent: dict[str, float]
    lock: threading.Lock

    def _clocked(self, what: str, run: Any) -> Any:
        started = time.perf_counter()
        result = run()
        with self.lock:
            self.spent[what] = self.spent.get(what, 0.0) + time.perf_counter() - started
        return result

    def _evaluate(self, i: int, j: int, out: np.ndarray) -> np.ndarray:
        return self._clocked("kernel", lambda: super(TimedGram, self)._evaluate(i, j, out))

    def tile(self, i: int, j: int) -> np.ndarray:
        """Read a tile."""
        return self._clocked("I/O", lambda: super(TimedGram, self).tile(i, j))

    def _add_rows(self, sums: np.ndarray, moves: Moves, pool: Threads) -> None:
        started = time.perf_counter()
        super()._add_rows(sums, moves, pool)
        self.spent["rows"] = self.spent.get("rows", 0.0) + (time.perf_counter() - started) * pool.n_jobs


class WholeSpace(GramSpace):
    """Every iteration sums the whole matrix, as in the paper."""

    def recentre(self, centers: Any, old: Any, found: Any, refilled: bool) -> Any:
        """Start from nothing."""
        centers.sums[...] = 0.0
        TiledGram.add(self.gram, centers.sums, Moves.between(None, found.labels, self.weight), self.pool)
        return self._finish(centers.sums, found.labels)


def show_scheme(table: dict[str, Any], X: np.ndarray, y: np.ndarray) -> bool:
    """Run and print a table; whether the growth is at most the published one."""
    X = X[: table["rows_used"]]
    kernel, totals = kernels.Sigmoid(**table["kernel"]), {}
    print(f"\n{table['name']}: {len(X):,} rows, {table['iterations']} iterations")
    print(f"  {'':34} {'K':>5} {'kernel':>8} {'I/O':>8} {'clustering':>11} {'total':>8}")
    for k, minutes in zip(table["n_clusters"], table["published"], strict=True):
        print(
            f"  {'published, scheme (minutes)':34} {k:>5}"
            + "".join(f"{m:>{w}}" for m, w in zip(minutes, (9, 9, 12, 9), strict=True))
        )
    with tempfile.TemporaryDirectory() as folder, Threads() as pool:
        rows, keys = kernel.rows(X), kernel.keys(X)
        TimedGram.spent, TimedGram.lock = {}, threading.Lock()
        started = time.perf_counter()
        gram = TimedGram(kernel, rows, keys, Disk(folder), pool)
        built = time.perf_counter() - started
        evaluated = gram.spent["kernel"] / pool.n_jobs
        for name, kind in (
            ("as in the paper, all of each pass", WholeSpace),
            ("Mercer, rows of moved points", GramSpace),
        ):
            for k in table["n_clusters"]:
                seconds = _run(gram, kind(gram, np.ones(len(X)), k, pool), k, keys, table["iterations"], pool)
                parts = (evaluated + seconds[0], max(0.0, built - evaluated) + seconds[1], seconds[2])
                totals[kind, k] = sum(parts)
                print(f"  {name:34} {k:>5} {parts[0]:8.1f} {parts[1]:8.1f} {parts[2]:11.1f} {sum(parts):8.1f}")
    for k in table["n_clusters"]:
        started = time.perf_counter()
        KMeans(k, n_init=1, init="random", max_iter=table["iterations"], tol=0, random_state=0).fit(X)
        print(f"  {'k-means of scikit-learn':34} {k:>5} {'':8} {'':8} {'':11} {time.perf_counter() - started:8.1f}")
    growth = [_growth(totals, kind, *table["n_clusters"]) for kind in (WholeSpace, GramSpace)]
    return max(growth) <= table["growth"]


def _run(
    gram: TimedGram, space: GramSpace, k: int, keys: np.ndarray, iterations: int, pool: Threads
) -> tuple[float, float, float]:
    """Seconds of kernel values, of reading, and of the rest."""
    gram.spent.clear()
    started = time.perf_counter()
    hard_c_means(space, random_labels(keys, k, 0), max_iter=iterations)
    took = time.perf_counter() - started
    reading, values = (gram.spent.get(what, 0.0) / pool.n_jobs for what in ("I/O", "rows"))
    return values, reading, took - reading - values


def _growth(totals: dict[Any, float], kind: type, k: int, double: int) -> float:
    growth = totals[kind, double] / totals[kind, k] - 1
    name = "as in the paper" if kind is WholeSpace else "Mercer"
    print(f"  from K={k} to {double}, {name}: {100 * growth:+.1f}%")
    return growth
