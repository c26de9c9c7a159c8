"""The core's functions with their buffers: every buffer has exactly the size asked for, so an overrun is seen."""

from collections import namedtuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse

from mercer import _core

KINDS = ["linear", "rbf", "laplacian", "polynomial", "sigmoid", "cosine"]
NORMS = {"rbf": 2, "laplacian": 1, "cosine": -2}
L2, L1 = 0, 1

few = settings(max_examples=20)

# One, sizes around multiples of the row groups (6, 12) and of the panel widths (4 to 32), and any other.
EDGES = sorted({m * q + r for m in (6, 8, 12, 16, 32) for q in (1, 2, 3) for r in (-1, 0, 1)})
sizes = st.one_of(st.just(1), st.sampled_from(EDGES), st.integers(1, 140))
sizes_or_none = st.one_of(st.just(0), sizes)
widths = st.one_of(st.just(1), st.integers(2, 70))
seeds = st.integers(0, 2**32 - 1)
storages = st.sampled_from(["dense", "strided", "backwards", "csr", "csr slice"])


def eps(dtype):
    return float(np.finfo(dtype).eps)


def rounding(d, dtype):
    """Relative error of an inner product of d terms, with room to spare."""
    return (4 + 2 * np.sqrt(d)) * eps(dtype)


# ---- data -----------------------------------------------------------------------------------------------------


def numbers(rng, shape, dtype, zeros=0.3):
    """Normal numbers, some of them zero."""
    return (rng.standard_normal(shape) * (rng.random(shape) >= zeros)).astype(dtype)


def whole_numbers(rng, shape, dtype, largest=4):
    """Small integers: sums and products of them are exact, and many are equal."""
    return rng.integers(-largest, largest, shape, endpoint=True).astype(dtype)


def core_rows(X, storage="dense"):
    """Rows of the dense array `X` as the core sees them, stored in one of several ways; the rest of memory is NaN."""
    if storage == "dense":
        return _core.dense_rows(X.copy())
    if storage == "strided":
        wide = np.full((len(X), X.shape[1] + 3), np.nan, dtype=X.dtype)
        wide[:, 1:-2] = X
        return _core.dense_rows(wide[:, 1:-2])
    if storage == "backwards":
        return _core.dense_rows(X[::-1].copy()[::-1])
    if storage == "csr":
        return csr_rows(X)
    around = np.full((2, X.shape[1]), np.nan, dtype=X.dtype)
    return csr_rows(np.vstack([around, X, around])).slice(2, 2 + len(X))


def csr_rows(X):
    S = sparse.csr_array(X)
    return _core.csr_rows(S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data, S.shape[1])


# ---- calls ----------------------------------------------------------------------------------------------------


def spec(kind, gamma=1.0, coef0=1.0, degree=3):
    return (KINDS.index(kind), gamma, coef0, degree)


def norms(rows, power, dtype):
    out = np.full(rows.n, np.nan, dtype=dtype)
    _core.norms(rows, power, out)
    return out


def row_hash(rows):
    out = np.zeros(rows.n, dtype=np.uint64)
    _core.row_hash(rows, out)
    return out


def pack(rows, dtype, power=None):
    """Packed rows with the norm of that power, or none."""
    packed = np.full(_core.packed_size(rows.n, rows.d, np.dtype(dtype).itemsize), np.nan, dtype=dtype)
    _core.pack(rows, None if power is None else norms(rows, power, dtype), packed)
    return packed


def kernel_block(kind, rows, columns, dtype, out=None, **parameters):
    """Kernel values between two sets of core rows."""
    power = NORMS.get(kind)
    out = np.full((rows.n, columns.n), np.nan, dtype=dtype) if out is None else out
    row_norms = None if power is None else norms(rows, power, dtype)
    _core.kernel_block(spec(kind, **parameters), rows, row_norms, pack(columns, dtype, power), columns.n, out)
    return out


def kernel_product(kind, rows, columns, V, **parameters):
    """Kernel values between two sets of core rows, times V."""
    dtype, power = V.dtype, NORMS.get(kind)
    out = np.full((rows.n, V.shape[1]), np.nan, dtype=dtype)
    scratch = np.full(_core.product_scratch(dtype.itemsize), np.nan, dtype=dtype)
    row_norms = None if power is None else norms(rows, power, dtype)
    packed, packed_v = pack(columns, dtype, power), pack(_core.dense_rows(V.T.copy()), dtype)
    _core.kernel_product(spec(kind, **parameters), rows, row_norms, packed, columns.n, packed_v, out, scratch)
    return out


def shifts(before, C, metric):
    """How far centres have moved at most."""
    moved = np.linalg.norm(C.astype(np.float64) - before, axis=1, ord=2 - metric)
    return np.nextafter(moved.astype(C.dtype), C.dtype.type(np.inf))


def slack(rows, C, metric):
    """Bound on the rounding of the difference of two scores."""
    point = norms(rows, 1 if metric == L1 else 2, C.dtype).max(initial=0) ** (1 if metric == L1 else 0.5)
    center = np.linalg.norm(C, 1 if metric == L1 else 2, axis=1).max()
    return float(2 * (C.shape[1] + 8) * eps(C.dtype) * (point + center) * (1 if metric == L1 else center))


def half_norms(C):
    return (np.einsum("ij,ij->i", C, C, dtype=np.float64) / 2).astype(C.dtype)


def offsets(C, metric):
    return half_norms(C) if metric == L2 else (-C.sum(axis=1, dtype=np.float64) / 2).astype(C.dtype)


Assigned = namedtuple("Assigned", "objective moved labels distances sums totals gaps")
Softened = namedtuple("Softened", "objective change memberships labels sums totals costs peaks own")


def empty_sums(k, d):
    return np.zeros((k, d)), np.zeros(k)


def assign(rows, C, metric=L2, *, weights=None, labels=None, distances=True, sums=True, gaps=False, shifts=None):
    """Nearest centres. `labels` is the previous ones; distances, sums and gaps are wanted, or not, or given arrays."""
    dtype, (k, d) = C.dtype, C.shape
    labels = np.full(rows.n, -1, dtype=np.int32) if labels is None else labels.astype(np.int32)
    distances = np.full(rows.n, np.nan, dtype=dtype) if distances else None
    sums, totals = {True: empty_sums(k, d), False: (None, None)}[sums] if isinstance(sums, bool) else sums
    gaps = {True: np.full(rows.n, np.nan, dtype=dtype), False: None}[gaps] if isinstance(gaps, bool) else gaps
    scratch = np.full(_core.assign_scratch(d, dtype.itemsize), np.nan, dtype=dtype)
    point_norms = norms(rows, 2, dtype) if metric == L2 else None
    offset, bounds = offsets(C, metric), (gaps, shifts, slack(rows, C, metric))
    buffers = labels, distances, sums, totals, scratch
    objective, moved = _core.assign(rows, C, offset, metric, weights, point_norms, *buffers, *bounds)
    return Assigned(objective, moved, labels, distances, sums, totals, gaps)


def soft_step(rows, C, m, *, nu=None, weights=None, memberships=None, keep=True, residual=0, sums=None, old=None):
    """One soft step. `memberships` is the previous ones; without `keep` neither they nor the labels are wanted.

    `old` is the centres before, and their nu: what memberships that are not kept are compared with.
    """
    dtype, (k, d) = C.dtype, C.shape
    labels = np.full(rows.n, -1, dtype=np.int32) if keep else None
    kept = np.zeros((rows.n, k)) if memberships is None else memberships
    kept = np.array(kept.T, dtype=dtype, order="C") if keep else None
    sums, totals = empty_sums(k, d) if sums is None else sums
    scratch = np.full(_core.soft_scratch(k, d, dtype.itemsize), np.nan, dtype=dtype)
    point_norms = (norms(rows, 2, dtype) + residual).astype(dtype)
    costs, peaks = np.zeros(k), np.zeros(k, dtype=dtype)
    own = np.full(rows.n, np.nan, dtype=dtype) if keep else None
    before = (None, None, None) if old is None else (old[0], half_norms(old[0]), old[1])
    points = rows, point_norms, C, half_norms(C), nu, m, weights
    objective, change = _core.soft_step(*points, kept, labels, sums, totals, scratch, costs, peaks, *before, own)
    kept = None if kept is None else kept.T
    return Softened(objective, change, kept, labels, sums, totals, costs, peaks, own)
