"""Kernel clustering at scale: kernel k-means and its kin, on an array or on data larger than memory."""

from typing import TYPE_CHECKING, Any

from mercer import kernels
from mercer._version import show_versions
from mercer.estimators import CodebookClassifier, KernelFuzzyCMeans, KernelKMeans, KernelPossibilisticCMeans
from mercer.features import (
    CentroidEmbedding,
    KernelEigen,
    Nystroem,
    OnePassSketch,
    RandomFourier,
    TaylorFeatures,
)
from mercer.gram import Disk
from mercer.sources import scan

if TYPE_CHECKING:
    from mercer import datasets, metrics

__version__ = "0.1.0"

__all__ = [
    "CentroidEmbedding",
    "CodebookClassifier",
    "Disk",
    "KernelEigen",
    "KernelFuzzyCMeans",
    "KernelKMeans",
    "KernelPossibilisticCMeans",
    "Nystroem",
    "OnePassSketch",
    "RandomFourier",
    "TaylorFeatures",
    "datasets",
    "kernels",
    "metrics",
    "scan",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    """Load parts that a fit does not need when they are asked for: importing Mercer is quick."""
    if name in ("datasets", "metrics"):
        import importlib

        return importlib.import_module(f"mercer.{name}")
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")
