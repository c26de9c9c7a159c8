"""scikit-learn estimators: each a named combination of a space, a rule and an engine."""

from mercer.estimators.base import KernelPrecisionWarning
from mercer.estimators.codebook import CodebookClassifier
from mercer.estimators.fuzzy import KernelFuzzyCMeans
from mercer.estimators.kernel_kmeans import KernelKMeans
from mercer.estimators.possibilistic import KernelPossibilisticCMeans
from mercer.estimators.representatives import Codebook
from mercer.estimators.soft import SoftClusteringWarning

__all__ = [
    "Codebook",
    "CodebookClassifier",
    "KernelFuzzyCMeans",
    "KernelKMeans",
    "KernelPossibilisticCMeans",
    "KernelPrecisionWarning",
    "SoftClusteringWarning",
]
