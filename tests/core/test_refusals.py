"""Whatever does not fit is an error, never a crash: each argument of each function, spoilt in every way."""

import numpy as np
import pytest

from core.calls import L1, L2, assign, core_rows, kernel_block, pack, spec, whole_numbers
from mercer import _core

N, M, K, D, P = 9, 7, 3, 5, 4  # rows, columns of a kernel block, clusters, features, columns of a right factor


def small(rng, *shape, dtype):
    return whole_numbers(rng, shape, dtype)


def valid_calls(dtype):
    """Arguments that every function accepts."""
    rng = np.random.default_rng(0)
    itemsize = np.dtype(dtype).itemsize
    X, Z, C, V = (small(rng, *shape, dtype=dtype) for shape in ((N, D), (M, D), (K, D), (P, M)))
    rows, columns, factor = core_rows(X), core_rows(Z), core_rows(V)

    def ones(*shape, dtype=dtype):
        return np.ones(shape, dtype=dtype)

    moves = {
        "position": np.array([1, 3, 4], dtype=np.int32),
        "old": np.array([0, -1, 2], dtype=np.int32),
        "new": np.array([1, 2, -1], dtype=np.int32),
        "weight": np.ones(3),
    }
    centers = {"points": rows, "centers": C, "half": ones(K), "weights": ones(N)}
    sums = {"sums": ones(K, D, dtype=np.float64), "totals": ones(K, dtype=np.float64)}
    block = {"kernel": spec("rbf"), "rows": rows, "x_norms": ones(N), "packed": pack(columns, dtype, 2), "m": M}
    return {
        "dense_rows": {"array": X},
        "csr_rows": {
            "indptr": np.array([0, 2, 3]),
            "indices": np.array([0, 4, 2], dtype=np.int32),
            "data": ones(3),
            "d": D,
        },
        "pack": {"rows": rows, "norms": ones(N), "out": ones(_core.packed_size(N, D, itemsize))},
        "norms": {"rows": rows, "power": 2, "out": ones(N)},
        "row_hash": {"rows": rows, "out": ones(N, dtype=np.uint64)},
        "kernel_block": {**block, "out": ones(N, M)},
        "kernel_product": {
            **block,
            "packed_v": pack(factor, dtype),
            "out": ones(N, P),
            "scratch": ones(_core.product_scratch(itemsize)),
        },
        "assign": {
            **centers,
            **sums,
            "metric": L2,
            "norms": ones(N),
            "labels": ones(N, dtype=np.int32),
            "distances": ones(N),
            "scratch": ones(_core.assign_scratch(D, itemsize)),
        },
        "soft_step": {
            **centers,
            **sums,
            "norms": ones(N),
            "nu": ones(K),
            "m": 2.0,
            "memberships": ones(N, K),
            "labels": ones(N, dtype=np.int32),
            "scratch": ones(_core.soft_scratch(K, D, itemsize)),
        },
        "segment rows": {**moves, "by_rows": True, "tile": ones(N, M), "F": ones(K, M, dtype=np.float64)},
        "segment columns": {**moves, "by_rows": False, "tile": ones(N, M), "F": ones(K, N, dtype=np.float64)},
        "gram_assign": {
            "F": ones(K, N, dtype=np.float64),
            "scale": ones(K, dtype=np.float64),
            "offset": ones(K, dtype=np.float64),
            "diagonal": ones(N, dtype=np.float64),
            "labels": ones(N, dtype=np.int32),
            "distances": ones(N, dtype=np.float64),
        },
        "hadamard": {"a": ones(3, 8)},
    }


def call(name, arguments):
    return getattr(_core, name.split()[0])(**arguments)


# ---- arrays ---------------------------------------------------------------------------------------------------


def shorter(a):
    return a[:-1].copy()


def other_dtype(a):
    return a.astype({"f": np.int64, "i": np.uint8, "u": np.int64}[a.dtype.kind])


def other_precision(a):
    return a.astype({"float32": np.float64, "float64": np.float32, "int32": np.int64}.get(a.dtype.name, np.int32))


def scattered(a):
    """Twice as wide, every second column."""
    return np.repeat(a, 2, axis=-1)[..., ::2]


def narrower(a):
    return a[:, :-1].copy()


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def deeper(a):
    return a[None]


def swapped(a):
    return a.astype(a.dtype.newbyteorder())


def nothing(_):
    return None


OUTPUTS = {
    "pack": {"out"},
    "norms": {"out"},
    "row_hash": {"out"},
    "kernel_block": {"out"},
    "kernel_product": {"out", "scratch"},
    "assign": {"labels", "distances", "sums", "totals", "scratch"},
    "soft_step": {"memberships", "labels", "sums", "totals", "scratch"},
    "segment rows": {"F"},
    "segment columns": {"F"},
    "gram_assign": {"labels", "distances"},
    "hadamard": {"a"},
}
OPTIONAL = {
    "pack": {"norms"},
    "kernel_block": {"x_norms"},
    "kernel_product": {"x_norms"},
    "assign": {"weights", "distances"},
    "soft_step": {"weights", "memberships", "labels", "nu"},
}
# A smaller array that is as valid: fewer rows, or other features of rows that stand alone.
FINE = {
    ("dense_rows", "array", shorter),
    ("dense_rows", "array", narrower),
    ("dense_rows", "array", other_precision),
    ("segment rows", "tile", narrower),
    ("segment columns", "tile", shorter),
    ("hadamard", "a", shorter),
}
# What must be refused although it fits in size: smaller than what belongs with it.
FINE_FOR = {"segment rows": {"F", "tile"}, "segment columns": {"F", "tile"}}


def spoilt():
    """Every (function, argument, way to spoil it)."""
    for name, arguments in valid_calls(np.float32).items():
        for argument, value in arguments.items():
            if not isinstance(value, np.ndarray):
                continue
            ways = [shorter, other_dtype, other_precision, scattered, deeper, swapped]
            ways += [narrower] if value.ndim == 2 else []
            ways += [read_only] if argument in OUTPUTS.get(name, ()) else []
            ways += [nothing] if argument not in OPTIONAL.get(name, ()) else []
            for way in ways:
                if (name, argument, way) not in FINE:
                    yield pytest.param(name, argument, way, id=f"{name}-{argument}-{way.__name__}")


def test_valid_calls_are_accepted(dtype):
    for name, arguments in valid_calls(dtype).items():
        call(name, arguments)


@pytest.mark.parametrize(("name", "argument", "way"), spoilt())
def test_spoilt_array(dtype, name, argument, way):
    arguments = valid_calls(dtype)[name]
    arguments[argument] = way(arguments[argument])
    with pytest.raises((TypeError, ValueError)):
        call(name, arguments)
