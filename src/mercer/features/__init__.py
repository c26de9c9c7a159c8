"""Feature maps: scikit-learn transformers from rows to coordinates whose inner products estimate kernel values."""

from mercer.features.apnc import CentroidEmbedding
from mercer.features.base import FeatureMap
from mercer.features.eigen import KernelEigen
from mercer.features.fourier import RandomFourier
from mercer.features.nystroem import Nystroem
from mercer.features.sketch import OnePassSketch
from mercer.features.spectrum import IndefiniteKernelWarning
from mercer.features.taylor import TaylorFeatures

__all__ = [
    "CentroidEmbedding",
    "FeatureMap",
    "IndefiniteKernelWarning",
    "KernelEigen",
    "Nystroem",
    "OnePassSketch",
    "RandomFourier",
    "TaylorFeatures",
]
