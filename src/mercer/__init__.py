"""Kernel clustering at scale: kernel k-means and its kin, on an array or on data larger than memory."""

from mercer import datasets, kernels, metrics
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
    "show_versions",
]
