"""Types of the compiled core; see cpp/primitives.hpp for what each function does."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
KernelSpec = tuple[int, float, float, int]
"""Kind (linear, rbf, laplacian, polynomial, sigmoid, cosine), gamma, coef0, degree."""

class _Rows:
    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...

class Rows32(_Rows):
    def slice(self, begin: int, end: int) -> Rows32: ...

class Rows64(_Rows):
    def slice(self, begin: int, end: int) -> Rows64: ...

Rows = Rows32 | Rows64

def instruction_sets() -> list[str]: ...
def use(name: str) -> None: ...
def active() -> str: ...
def packed_size(rows: int, d: int, itemsize: int) -> int: ...
def product_scratch(itemsize: int) -> int: ...
def assign_scratch(d: int, itemsize: int) -> int: ...
def soft_scratch(k: int, d: int, itemsize: int) -> int: ...
def dense_rows(array: Array) -> Rows: ...
def csr_rows(indptr: Array, indices: Array, data: Array, d: int) -> Rows: ...
def pack(rows: Rows, norms: Array | None, out: Array) -> None: ...
def norms(rows: Rows, power: int, out: Array) -> None: ...
def row_hash(rows: Rows, out: Array) -> None: ...
def kernel_block(kernel: KernelSpec, rows: Rows, x_norms: Array | None, packed: Array, m: int, out: Array) -> None: ...
def kernel_product(
    kernel: KernelSpec,
    rows: Rows,
    x_norms: Array | None,
    packed: Array,
    m: int,
    packed_v: Array,
    out: Array,
    scratch: Array,
) -> None: ...
def assign(
    points: Rows,
    centers: Array,
    offset: Array,
    metric: int,
    weights: Array | None,
    norms: Array | None,
    labels: Array,
    distances: Array | None,
    sums: Array | None,
    totals: Array | None,
    scratch: Array,
    gaps: Array | None = None,
    shifts: Array | None = None,
    slack: float = 0.0,
) -> tuple[float, int]: ...
def soft_step(
    points: Rows,
    norms: Array,
    centers: Array,
    half: Array,
    nu: Array | None,
    m: float,
    weights: Array | None,
    memberships: Array | None,
    labels: Array | None,
    sums: Array,
    totals: Array,
    scratch: Array,
    costs: Array | None = None,
    peaks: Array | None = None,
    old_centers: Array | None = None,
    old_half: Array | None = None,
    old_nu: Array | None = None,
    own: Array | None = None,
) -> tuple[float, float]: ...
def segment_scratch(columns: int, itemsize: int) -> int: ...
def segment(
    by_rows: bool,
    tile: Array,
    position: Array,
    old: Array,
    new: Array,
    weight: Array,
    F: Array,
    scratch: Array | None = None,
) -> None: ...
def gram_assign(
    F: Array, scale: Array, offset: Array, diagonal: Array, labels: Array, distances: Array | None
) -> int: ...
def hadamard(a: Array) -> None: ...
def narrow(values: Array, out: Array) -> None: ...
def widen(halves: Array, out: Array) -> None: ...
def checksum(data: Array, seed: int) -> int: ...
