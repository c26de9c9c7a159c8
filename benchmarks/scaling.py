"""Time of an approximate fit against the number of rows: 32 columns, ten overlapping groups, 300 landmarks.

Prints the fitted exponent and draws `build/scaling.png`.

Run: python -m benchmarks scaling
"""

import time
from pathlib import Path

import numpy as np

from mercer import KernelKMeans

SIZES = (100_000, 300_000, 1_000_000, 3_000_000)
COLUMNS, K, ROUNDS = 32, 10, 3
PICTURE = Path("build/scaling.png")


def rows(n: int) -> np.ndarray:
    """Ten groups that overlap."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size=(n, COLUMNS), dtype=np.float32)
    X += rng.normal(scale=0.35, size=(K, COLUMNS)).astype(np.float32)[rng.integers(K, size=n)]
    return X


def draw(seconds: np.ndarray, exponent: float) -> None:
    """Plot seconds against rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    axes.loglog(SIZES, seconds, "o-", label=f"measured, exponent {exponent:.2f}")
    axes.loglog(SIZES, seconds[0] * np.array(SIZES) / SIZES[0], "--", color="0.6", label="linear")
    axes.set(xlabel="rows", ylabel="seconds of a fit", title=f"{COLUMNS} columns, k={K}, 300 landmarks")
    axes.legend()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)


def main() -> bool:
    """Run; whether time grows linearly (exponent at most 1.1)."""
    X, seconds, iterations = rows(max(SIZES)), np.full(len(SIZES), np.inf), [0] * len(SIZES)
    KernelKMeans(K, method="nystroem", random_state=0).fit(X[:10_000])
    for _ in range(ROUNDS):
        for position, n in enumerate(SIZES):
            model = KernelKMeans(K, method="nystroem", n_components=300, random_state=0)
            started = time.perf_counter()
            model.fit(X[:n])
            seconds[position] = min(seconds[position], time.perf_counter() - started)
            iterations[position] = model.n_iter_
    exponent = float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0])
    print(f"\nTime against rows: {COLUMNS} columns, k={K}, best of {ROUNDS}")
    for n, taken, count in zip(SIZES, seconds, iterations, strict=True):
        print(f"  {n:>9,} rows  {taken:7.3f} s  {taken / n * 1e6:6.3f} us a row  {count} iterations")
    draw(seconds, exponent)
    print(f"  exponent {exponent:.3f}, asked at most 1.1; picture in {PICTURE}")
    return exponent <= 1.1
