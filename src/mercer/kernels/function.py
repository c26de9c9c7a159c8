"""A kernel given as a Python function of two blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Kernel, KernelRows, Panels
from mercer.kernels.identity import stable_digest

_DIAGONAL_BLOCK = 128


@dataclass(frozen=True)
class Function(Kernel):
    """Kernel values from ``function(X, Z, **params)``, which returns an array of shape (len(X), len(Z)).

    The function must be symmetric, k(x, z) = k(z, x): only half of a kernel matrix is evaluated. It is called from
    several threads at once.

    Parameters
    ----------
    function : callable
    params : dict, optional
        Keyword arguments passed at every call.

    Examples
    --------
    >>> from mercer import kernels
    >>> kernels.Function(lambda X, Z: X @ Z.T)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    function: Callable[..., Any]
    params: dict[str, Any] = field(default_factory=dict)
    name: ClassVar[str] = "function"

    @property
    def identity(self) -> str:
        """Name, and a digest of code, globals, what it closes over, and parameters: see `mercer.kernels.identity`."""
        return f"{self._label()} {stable_digest([self.function, self.params])}"

    def block(self, rows: KernelRows, panels: Panels, out: NDArray[Any]) -> None:
        """Call the function and check what it returns."""
        values = np.asarray(self.function(rows.X, panels.rows.X, **self.params))
        if values.shape != out.shape:
            raise ValueError(
                f"the kernel function {self._label()} returned shape {values.shape} for blocks of {out.shape[0]} and "
                f"{out.shape[1]} rows; it must return {out.shape}. Mercer calls kernels on blocks of rows, not on pairs"
            )
        if values.dtype.kind not in "fiub":
            raise TypeError(f"the kernel function {self._label()} returned {values.dtype}, not real numbers")
        if not np.isfinite(values).all():
            raise ValueError(f"the kernel function {self._label()} returned NaN or infinity")
        out[...] = values

    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """k(x, x) from small diagonal blocks, shape (n,)."""
        out = np.empty(rows.n)
        for start in range(0, rows.n, _DIAGONAL_BLOCK):
            part = rows.slice(slice(start, min(start + _DIAGONAL_BLOCK, rows.n)))
            square = np.empty((part.n, part.n), dtype=rows.dtype)
            self.block(part, Panels(part), square)
            out[start : start + part.n] = square.diagonal()
        return out

    def _label(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)
