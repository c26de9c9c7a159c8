"""Kernels: frozen objects that own their parameters, callable on two blocks of rows.

Examples
--------
>>> import numpy as np
>>> from mercer import kernels
>>> X = np.array([[0.0], [1.0]])
>>> kernels.RBF(gamma=1.0)(X).round(2)
array([[1.  , 0.37],
       [0.37, 1.  ]])
"""

from mercer.kernels.bandwidth import KernelScaleWarning, choose_gamma, warn_if_uninformative
from mercer.kernels.base import CompiledKernel, Factor, Kernel, KernelRows, Panels
from mercer.kernels.distance import RBF, Laplacian
from mercer.kernels.function import Function
from mercer.kernels.precomputed import Precomputed
from mercer.kernels.product import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.registry import KERNELS, make_kernel, names

__all__ = [
    "KERNELS",
    "RBF",
    "CompiledKernel",
    "Cosine",
    "Factor",
    "Function",
    "Kernel",
    "KernelRows",
    "KernelScaleWarning",
    "Laplacian",
    "Linear",
    "Panels",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "choose_gamma",
    "make_kernel",
    "names",
    "warn_if_uninformative",
]
