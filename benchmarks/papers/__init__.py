"""The papers' tables as data: settings, published values, tolerances; one runner.

Run: python -m benchmarks papers [name of a file, without its ending, ...]
"""

import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

import mercer
from benchmarks.papers.codebook import show_codebook
from benchmarks.papers.curves import show_curve
from benchmarks.papers.scheme import show_scheme
from mercer import KernelFuzzyCMeans, KernelKMeans, KernelPossibilisticCMeans, datasets, metrics

FOLDER = Path(__file__).parent
_KERNEL = ("kernel", "gamma", "degree", "coef0")
_SCORES = {
    "nmi": metrics.normalized_mutual_info,
    "accuracy": metrics.clustering_accuracy,
    "purity": metrics.purity,
}
_ESTIMATORS = {"fuzzy": KernelFuzzyCMeans, "possibilistic": KernelPossibilisticCMeans}


def load(data: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of a table's data set."""
    if data["name"] == "rings":
        X, y = datasets.make_rings(data["rows"], factor=data["factor"], noise=data["noise"], random_state=0)
        return X.astype(np.float32), y
    if data["name"] == "mammals":
        X, y = datasets.make_mammals(data["rows"], random_state=0)
        return (X - X.min()) / (X.max() - X.min()), y
    X, y = datasets.load(data["name"], return_X_y=True, scale=data.get("scale"))
    if "rows" in data:
        some = np.random.default_rng(0).choice(len(X), data["rows"], replace=False)
        X, y = X[some], y[some]
    return (X + np.float32(data.get("add", 0))) / np.float32(data.get("divide", 1)), y


def make_map(row: dict[str, Any], common: dict[str, Any], seed: int, *, alone: bool) -> Any:
    """Build a feature map from its table entry; with the kernel when it stands alone."""
    settings = dict(row["map"])
    kind = getattr(mercer, settings.pop("name"))
    names = kind().get_params()
    if alone:
        settings |= {name: common[name] for name in _KERNEL if name in common and name in names}
    return kind(**settings | ({"random_state": seed} if "random_state" in names else {}))


def score_once(table: dict[str, Any], row: dict[str, Any], X: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Score of one run of one row."""
    common = table["common"]
    if table["score"] == "error":
        kernel = {name: common[name] for name in _KERNEL if name in common}
        Y = make_map(row, common, seed, alone=True).fit_transform(X)
        return metrics.kernel_approximation_error(X, Y, **kernel)
    if row.get("linear"):
        runs = common.get("n_init", 1)
        labels = KMeans(table["n_clusters"], n_init=runs, init="random", random_state=seed).fit_predict(X)
    else:
        parameters = common | row.get("parameters", {})
        if "map" in row:
            parameters["method"] = make_map(row, common, seed, alone=False)
        estimator = _ESTIMATORS.get(row.get("estimator", "hard"), KernelKMeans)
        labels = estimator(table["n_clusters"], random_state=seed, **parameters).fit_predict(X)
    return _SCORES[table["score"]](y, labels) * (100 if table.get("percent") else 1)


def show_table(table: dict[str, Any]) -> bool:
    """Run and print a table; whether every published value was met (or beaten) within its tolerance."""
    X, y = load(table["data"])
    print(f"\n{table['name']}: {len(X):,} x {X.shape[1]}, {table['runs']} runs")
    print(f"  {'':24} {'published':>10} {'ours':>9} {'sd':>7} {'seconds':>8}")
    reached = True
    for row in table["row"]:
        if row.get("printed"):
            print(f"  {row['label']:24} {row['published']:10.4g}  as printed")
            continue
        started = time.perf_counter()
        scores = [score_once(table, row, X, y, seed) for seed in range(table["runs"])]
        seconds = (time.perf_counter() - started) / table["runs"]
        mean, published = float(np.mean(scores)), row.get("published")
        met = published is None or _met(mean, published, row["tolerance"], table["score"])
        reached &= met
        printed = "" if published is None else f"{published:.4g}"
        mark = "" if met else f"  <-- off by more than {row['tolerance']}"
        print(f"  {row['label']:24} {printed:>10} {mean:9.4g} {np.std(scores):7.2g} {seconds:8.3f}{mark}")
    return reached


def _met(mean: float, published: float, tolerance: float, score: str) -> bool:
    worse = mean - published if score == "error" else published - mean
    return worse <= tolerance


def main(names: list[str] | None = None) -> bool:
    """Run the named papers, or all."""
    warnings.simplefilter("ignore")  # of runs cut at the papers' number of iterations
    reached = True
    for file in sorted(FOLDER.glob("*.toml")):
        if not names or file.stem in names:
            paper = tomllib.loads(file.read_text())
            print(f"\n==== {paper['title']}\n{paper['note']}")
            for table in paper.get("table", []):
                reached &= show_table(table)
            for curve in paper.get("curve", []):
                reached &= show_curve(curve, *load(curve["data"]))
            for table in paper.get("codebook", []):
                reached &= show_codebook(table, *load(table["data"]))
            for table in paper.get("scheme", []):
                reached &= show_scheme(table, *load(table["data"]))
    return reached
