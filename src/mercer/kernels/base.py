"""What a kernel is: a frozen object that owns its parameters and evaluates blocks."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_array

from mercer import _core
from mercer.engine.memory import aligned_empty, scratch
from mercer.sources import Matrix, content_hash, core_rows, in_memory, is_sparse

Geometry = Literal["distance", "product"]


class KernelRows:
    """Rows prepared for one kernel: shifted where that helps, with the norms the kernel needs.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows; not copied unless `origin` is given.
    norm : {1, 2, -2} or None
        The norm of a row to keep: l1, squared l2, inverse l2, or none.
    origin : array of shape (d,), optional
        Subtracted from every row.
    """

    def __init__(self, X: Matrix, *, norm: int | None = None, origin: NDArray[Any] | None = None) -> None:
        self.X = X if origin is None else X - origin
        self.norm = norm
        self.origin = origin
        self.n, self.d = X.shape
        self.dtype = X.dtype

    @cached_property
    def core(self) -> _core.Rows:
        """The rows in the core's format."""
        return core_rows(self.X)

    @cached_property
    def norms(self) -> NDArray[Any] | None:
        """One norm per row, shape (n,)."""
        if self.norm is None:
            return None
        out = np.empty(self.n, dtype=self.dtype)
        _core.norms(self.core, self.norm, out)
        if self.norm > 0 and not np.isfinite(out).all():
            raise ValueError(f"rows are too large for {self.dtype}: their norms overflow; scale the data")
        return out

    def slice(self, part: slice) -> KernelRows:
        """Rows `part`, as a view."""
        view = object.__new__(KernelRows)
        view.X, view.norm, view.origin = self.X[part], self.norm, self.origin
        view.n, view.d, view.dtype = view.X.shape[0], self.d, self.dtype
        view.core = self.core.slice(part.start, part.stop)
        view.norms = None if self.norms is None else self.norms[part]
        return view

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the core's view, which is made again when needed."""
        return {name: value for name, value in self.__dict__.items() if name != "core"}

    def take(self, indices: NDArray[np.integer]) -> KernelRows:
        """Rows at `indices`, as a copy; the shift is not applied again."""
        part = KernelRows(self.X[indices], norm=self.norm)
        part.origin = self.origin
        return part

    def astype(self, dtype: DTypeLike) -> KernelRows:
        """Return the same rows in another precision."""
        other = copy.copy(self)
        other.X = self.X.astype(dtype)
        other.dtype = other.X.dtype
        for derived in ("core", "norms"):
            other.__dict__.pop(derived, None)
        return other


@dataclass(frozen=True)
class Panels:
    """The right-hand rows of a block, packed for the core (or as they are, for a Python callable)."""

    rows: KernelRows
    packed: NDArray[Any] | None = None

    @property
    def n(self) -> int:
        """Number of rows, which are the block's columns."""
        count: int = self.rows.n
        return count


class Factor:
    """The right factor V, shape (m, p), of products K(X, Z) V; packed for the core when first needed.

    Parameters
    ----------
    V : array of shape (m, p)
    """

    def __init__(self, V: NDArray[Any]) -> None:
        self.V = V

    @cached_property
    def packed(self) -> NDArray[Any]:
        """The columns of V as panels."""
        m, p = self.V.shape
        out = aligned_empty(_core.packed_size(p, m, self.V.dtype.itemsize), self.V.dtype)
        _core.pack(_core.dense_rows(np.ascontiguousarray(self.V.T)), None, out)
        return out

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the packed columns, whose layout belongs to one instruction set."""
        return {"V": self.V}


class Kernel(ABC):
    """A kernel function k(x, z) on blocks of rows.

    Kernels are immutable. Calling one with two blocks gives the matrix between them.
    """

    name: ClassVar[str] = "kernel"
    geometry: ClassVar[Geometry] = "product"
    """Whether values depend on x - z or on the inner product."""

    @property
    def identity(self) -> str:
        """What tells this kernel from others in a later process."""
        return repr(self)

    @property
    def positive_semidefinite(self) -> bool | None:
        """True if every kernel matrix has no negative eigenvalue, False if some have, None if not known."""
        return None

    def rows(self, X: Matrix, like: KernelRows | None = None) -> KernelRows:
        """Prepare the rows of `X`; with `like`, in the same way as those."""
        return KernelRows(X)

    def same_bits_in_any_block(self, rows: KernelRows) -> bool:
        """Whether values have the same bits whatever block they are evaluated in, and for k(x, z) as for k(z, x)."""
        return False

    def check(self, X: Matrix) -> None:  # noqa: B027
        """Refuse data whose kernel values cannot be had: too large for their precision, or not a kernel matrix."""

    def keys(self, X: Matrix) -> NDArray[np.uint64]:
        """Return what tells the rows of `X` apart, shape (n,): equal rows have equal keys, and draws go by them."""
        return content_hash(X)

    def select(self, X: Matrix, indices: NDArray[np.integer]) -> KernelRows:
        """Prepare some of the rows of `X` for the right-hand side of blocks."""
        return self.rows(X[indices])

    def square(self, rows: KernelRows) -> NDArray[np.float64]:
        """K(rows, rows) in float64, for small factorisations."""
        rows = rows.astype(np.float64)
        out = np.empty((rows.n, rows.n))
        self.block(rows, self.panels(rows), out)
        return np.asarray((out + out.T) / 2)

    def panels(self, rows: KernelRows) -> Panels:
        """Pack the right-hand side of blocks, to be used with many left-hand sides."""
        return Panels(rows)

    @abstractmethod
    def block(self, rows: KernelRows, panels: Panels, out: NDArray[Any]) -> None:
        """Write K(rows, panels) to `out`, shape (rows.n, panels.n)."""

    def product(self, rows: KernelRows, panels: Panels, factor: Factor, out: NDArray[Any]) -> None:
        """Write K(rows, panels) V to `out`, shape (rows.n, p)."""
        block = np.empty((rows.n, panels.n), dtype=out.dtype)
        self.block(rows, panels, block)
        np.matmul(block, factor.V, out=out)

    @abstractmethod
    def diagonal(self, rows: KernelRows) -> NDArray[np.float64]:
        """k(x, x) for every row, shape (n,)."""

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> NDArray[Any]:
        """Kernel matrix between the rows of `X` (n, d) and of `Z` (m, d); `Z` defaults to `X`."""
        X = _as_rows(X, "X")
        Z = X if Z is None else _as_rows(Z, "Z")
        if X.shape[1] != Z.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns but Z has {Z.shape[1]}")
        dtype = np.promote_types(X.dtype, Z.dtype)
        right = self.rows(Z.astype(dtype, copy=False))
        left = self.rows(X.astype(dtype, copy=False), like=right)
        out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        self.block(left, self.panels(right), out)
        return out


def _as_rows(X: Any, name: str) -> Matrix:
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name=name)


class CompiledKernel(Kernel):
    """A kernel of the compiled core: one pass from rows to values, dense or CSR."""

    kind: ClassVar[int]
    norm: ClassVar[int | None] = None

    @property
    def spec(self) -> _core.KernelSpec:
        """Kind and parameters, as the core takes them."""
        return (
            self.kind,
            getattr(self, "gamma", 1.0),
            getattr(self, "coef0", 0.0),
            getattr(self, "degree", 1),
        )

    def rows(self, X: Matrix, like: KernelRows | None = None) -> KernelRows:
        """Prepare the rows of `X`; with `like`, shifted by the same origin."""
        origin = self._origin(X) if like is None else like.origin
        return KernelRows(X, norm=self.norm, origin=origin)

    def _origin(self, X: Matrix) -> NDArray[Any] | None:
        return None

    def same_bits_in_any_block(self, rows: KernelRows) -> bool:
        """Sums go over the columns in one order; sparse rows have differences taken from one side's norm."""
        return not (self.norm == 1 and is_sparse(rows.X))

    def check(self, X: Matrix) -> None:
        """No kernel value is larger than the largest k(x, x), if the kernel is positive semidefinite."""
        if self.geometry == "distance":
            return
        with np.errstate(over="ignore"):
            most = max(float(np.abs(self.diagonal(self.rows(part))).max(initial=0.0)) for part in in_memory(X))
        if not most <= float(np.finfo(X.dtype).max):
            raise ValueError(
                f"values of {self!r} overflow {X.dtype}: k(x, x) is up to {most:.3g}. Scale the data, choose a smaller "
                "gamma or degree, or give float64"
            )

    def panels(self, rows: KernelRows) -> Panels:
        """Pack rows into the core's panels."""
        packed = aligned_empty(_core.packed_size(rows.n, rows.d, rows.dtype.itemsize), rows.dtype)
        _core.pack(rows.core, rows.norms, packed)
        return Panels(rows, packed)

    def block(self, rows: KernelRows, panels: Panels, out: NDArray[Any]) -> None:
        """Write K(rows, panels) to `out`."""
        assert panels.packed is not None
        _core.kernel_block(self.spec, rows.core, rows.norms, panels.packed, panels.n, out)

    def product(self, rows: KernelRows, panels: Panels, factor: Factor, out: NDArray[Any]) -> None:
        """Write K(rows, panels) V to `out`; no kernel value leaves the cache."""
        assert panels.packed is not None
        itemsize = rows.dtype.itemsize
        buffer = scratch(_core.product_scratch(itemsize), rows.dtype)
        _core.kernel_product(self.spec, rows.core, rows.norms, panels.packed, panels.n, factor.packed, out, buffer)


def squared_norms(rows: KernelRows) -> NDArray[np.float64]:
    """Return |x|^2 of every row in float64, shape (n,)."""
    X = rows.X
    if is_sparse(X):
        return np.asarray(X.astype(np.float64).multiply(X.astype(np.float64)).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Check a positive finite parameter and return it as a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be {'zero or ' if zero else ''}positive and finite, got {value!r}")
    return float(value)
