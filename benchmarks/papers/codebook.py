"""Misclassifications of code books by the number of nearest representatives: linear and kernel, medoids and centroids.

One fit of each kernel and training size; all numbers of neighbours are scored from one pass over the distances. The
first rows train and the last ones test.
"""

import time
from typing import Any

import numpy as np

from mercer import CodebookClassifier

COLUMNS = ("linear centroid", "kernel medoid", "kernel centroid")


def show_codebook(table: dict[str, Any], X: np.ndarray, y: np.ndarray) -> bool:
    """Run and print a table; whether what is expected of it was reached."""
    reached = True
    for rows in table["train"]:
        started = time.perf_counter()
        linear = _fit({"kernel": "linear"}, table, X[:rows], y[:rows])
        between = time.perf_counter()
        kernel = _fit(table["kernel"], table, X[:rows], y[:rows])
        seconds = (between - started, time.perf_counter() - between)
        test = X[-table["test"] :], y[-table["test"] :], table["n_neighbors"]
        errors = np.stack([_errors(linear, "centroid", *test), *(_errors(kernel, r, *test) for r in _KERNEL)], axis=1)
        _print(table, rows, seconds, errors)
        if rows == table["expected"]["train"]:
            reached &= _reached(table, seconds[1], errors)
    return reached


_KERNEL = ("medoid", "centroid")


def _fit(kernel: dict[str, Any], table: dict[str, Any], X: np.ndarray, y: np.ndarray) -> CodebookClassifier:
    return CodebookClassifier(table["codebook_size"], random_state=0, **kernel).fit(X, y)


def _errors(
    model: CodebookClassifier, representatives: str, X: np.ndarray, y: np.ndarray, n_neighbors: list[int]
) -> np.ndarray:
    accuracy = model.set_params(representatives=representatives).score_neighbors(X, y, n_neighbors)
    return np.rint((1 - accuracy) * len(X)).astype(int)


def _print(table: dict[str, Any], rows: int, seconds: tuple[float, float], errors: np.ndarray) -> None:
    print(f"\n{table['name']}: {rows:,} rows to train; fit {seconds[0]:.1f} s linear, {seconds[1]:.1f} s kernel")
    print(f"  {'L':>4} {'published linear':>17} {'kernel':>7}" + "".join(f"{column:>17}" for column in COLUMNS))
    published = zip(table["published_linear"], table["published_kernel"], strict=True)
    for number, (linear, kernel), found in zip(table["n_neighbors"], published, errors, strict=True):
        print(f"  {number:>4} {linear:>17} {kernel:>7}" + "".join(f"{count:>17}" for count in found))


def _reached(table: dict[str, Any], seconds: float, errors: np.ndarray) -> bool:
    expected = table["expected"]
    number = expected["n_neighbors"]
    linear, _, centroid = errors[table["n_neighbors"].index(number)]
    all_linear, _, all_centroid = errors.sum(axis=0)
    print(f"  L={number}: kernel centroid {centroid}, linear centroid {linear}")
    met = {
        f"L={number}: at most {expected['errors']} errors with kernel centroids": centroid <= expected["errors"],
        f"all L together: fewer than linear, {all_centroid} and {all_linear}": all_centroid < all_linear,
        f"fit in {expected['seconds']} s": seconds < expected["seconds"],
    }
    for what, is_met in met.items():
        print(f"  {what}: {'yes' if is_met else '<-- no'}")
    return all(met.values())
