"""scikit-learn estimators: each a named combination of a space, a rule and an engine."""

from mercer.estimators.kernel_kmeans import KernelKMeans

__all__ = ["KernelKMeans"]
