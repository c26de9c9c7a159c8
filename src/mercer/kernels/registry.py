"""From what a user writes (a string, a kernel, a function) to a kernel object: the one place that reads strings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.bandwidth import choose_gamma
from mercer.kernels.base import CompiledKernel, Kernel
from mercer.kernels.distance import RBF, Laplacian
from mercer.kernels.function import Function
from mercer.kernels.product import Cosine, Linear, Polynomial, Sigmoid
from mercer.sources import Matrix

KERNELS: dict[str, type[CompiledKernel]] = {
    kernel.name: kernel for kernel in (RBF, Laplacian, Polynomial, Sigmoid, Linear, Cosine)
}
_ALIASES = {"poly": "polynomial", "gaussian": "rbf"}


def names() -> list[str]:
    """Names that `make_kernel` understands."""
    return sorted(KERNELS)


def make_kernel(
    kernel: Any,
    X: Matrix,
    *,
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 1.0,
    kernel_params: Mapping[str, Any] | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    keys: NDArray[np.uint64] | None = None,
) -> Kernel:
    """Kernel object for the data `X`, shape (n, d).

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name, an object (used as it is), or a function of two blocks of rows.
    X : array or CSR matrix of shape (n, d)
        Where ``gamma`` is chosen from, if it is not a number.
    gamma, degree, coef0
        Parameters of a kernel given by name; each kernel takes those it has.
    kernel_params : dict, optional
        Keyword arguments of a callable.
    sample_weight : array of shape (n,), optional
    keys : array of shape (n,), optional
        Content hash of the rows, if it is at hand.

    Examples
    --------
    >>> make_kernel("polynomial", np.ones((2, 2)), gamma=1.0, degree=2, coef0=0)
    Polynomial(degree=2, gamma=1.0, coef0=0.0)
    """
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"kernel must be an object, not the class: write {kernel.__name__}(...)")
    if callable(kernel) and not isinstance(kernel, Kernel):
        return Function(kernel, dict(kernel_params or {}))
    if kernel_params is not None:
        raise ValueError("kernel_params are the keyword arguments of a callable kernel; this kernel takes none")
    if isinstance(kernel, Kernel):
        if not (isinstance(gamma, str) and gamma == "auto"):
            raise ValueError(f"{kernel!r} owns its parameters: give gamma to the kernel, not beside it")
        return kernel
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be a name, a mercer.kernels object or a callable, got {kernel!r}")
    kind = KERNELS.get(_ALIASES.get(kernel, kernel))
    if kind is None:
        raise ValueError(f"kernel={kernel!r} is not known; choose from {', '.join(names())}, or pass a callable")
    fields = inspect.signature(kind).parameters
    chosen: dict[str, Any] = {"degree": degree, "coef0": coef0}
    if "gamma" in fields:
        chosen["gamma"] = choose_gamma(gamma, X, kind, sample_weight, keys)
    return kind(**{name: value for name, value in chosen.items() if name in fields})
