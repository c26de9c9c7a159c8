"""Solvers: free functions from a space to a frozen result."""

from mercer.solvers.cmeans import Iteration, Partition, hard_c_means
from mercer.solvers.embedded_space import EmbeddedSpace, ExplicitCenters
from mercer.solvers.gram_space import GramSpace, ImplicitCenters
from mercer.solvers.objective import partition_objective
from mercer.solvers.seeding import k_means_plus_plus, random_labels

__all__ = [
    "EmbeddedSpace",
    "ExplicitCenters",
    "GramSpace",
    "ImplicitCenters",
    "Iteration",
    "Partition",
    "hard_c_means",
    "k_means_plus_plus",
    "partition_objective",
    "random_labels",
]
