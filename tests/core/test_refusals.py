"""Whatever does not fit is an error, never a crash: each argument of each function, spoilt in every way."""

import numpy as np
import pytest

from core.calls import L1, L2, core_rows, pack, spec, whole_numbers
from mercer import _core

N, M, K, D, P = 9, 7, 3, 5, 4  # rows, columns of a kernel block, clusters, features, columns of a right factor


@pytest.fixture(scope="module", autouse=True)
def instruction_set():
    """Arguments are checked before an instruction set comes into play: one is enough."""
    return _core.active()


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
    centers = {"points": rows, "centers": C, "weights": ones(N)}
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
            "offset": ones(K),
            "metric": L2,
            "norms": ones(N),
            "labels": ones(N, dtype=np.int32),
            "distances": ones(N),
            "scratch": ones(_core.assign_scratch(D, itemsize)),
            "gaps": ones(N),
            "shifts": ones(K),
            "slack": 0.0,
        },
        "soft_step": {
            **centers,
            **sums,
            "half": ones(K),
            "norms": ones(N),
            "nu": ones(K),
            "m": 2.0,
            "memberships": ones(K, N),
            "labels": ones(N, dtype=np.int32),
            "scratch": ones(_core.soft_scratch(K, D, itemsize)),
            "costs": ones(K, dtype=np.float64),
            "peaks": ones(K),
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
    "assign": {"labels", "distances", "sums", "totals", "scratch", "gaps"},
    "soft_step": {"memberships", "labels", "sums", "totals", "scratch", "costs", "peaks"},
    "segment rows": {"F"},
    "segment columns": {"F"},
    "gram_assign": {"labels", "distances"},
    "hadamard": {"a"},
}
OPTIONAL = {
    "pack": {"norms"},
    "kernel_block": {"x_norms"},
    "kernel_product": {"x_norms"},
    "assign": {"weights", "distances", "shifts"},
    "soft_step": {"weights", "memberships", "labels", "nu", "costs", "peaks"},
    "gram_assign": {"distances"},
}
# Arrays that are valid after all: they stand alone, or nothing refers to what was taken away.
FINE = {
    ("dense_rows", "array", shorter),
    ("dense_rows", "array", narrower),
    ("dense_rows", "array", other_precision),
    ("csr_rows", "indptr", shorter),
    ("csr_rows", "data", other_precision),
    ("kernel_product", "out", narrower),
    ("segment rows", "tile", shorter),
    ("segment rows", "tile", other_precision),
    ("segment columns", "tile", narrower),
    ("segment columns", "tile", other_precision),
    ("gram_assign", "F", shorter),
    ("gram_assign", "F", narrower),
    ("hadamard", "a", shorter),
    ("hadamard", "a", other_precision),
}


def ways_to_spoil(name, argument, value):
    ways = {shorter, other_dtype, other_precision, scattered, deeper, swapped, nothing}
    if value.ndim == 2:
        ways.add(narrower)
    if argument in OUTPUTS.get(name, ()):
        ways.add(read_only)
    if argument in OPTIONAL.get(name, ()):
        ways.remove(nothing)
    return sorted(ways - {way for *place, way in FINE if place == [name, argument]}, key=lambda way: way.__name__)


SPOILT = [
    pytest.param(name, argument, way, id=f"{name}-{argument}-{way.__name__}")
    for name, arguments in valid_calls(np.float32).items()
    for argument, value in arguments.items()
    if isinstance(value, np.ndarray)
    for way in ways_to_spoil(name, argument, value)
]


def test_valid_calls_are_accepted(dtype):
    for name, arguments in valid_calls(dtype).items():
        call(name, arguments)


@pytest.mark.parametrize(("name", "argument", "way"), SPOILT)
def test_spoilt_array(dtype, name, argument, way):
    arguments = valid_calls(dtype)[name]
    arguments[argument] = way(arguments[argument])
    with pytest.raises((TypeError, ValueError)):
        call(name, arguments)


# ---- numbers --------------------------------------------------------------------------------------------------


def int32(*values):
    return np.array(values, dtype=np.int32)


NUMBERS = [
    ("csr_rows", "d", 4, "column index"),
    ("csr_rows", "d", -1, "number of columns"),
    ("csr_rows", "d", 2**60, "number of columns"),
    ("csr_rows", "indices", int32(0, -1, 2), "column index"),
    ("csr_rows", "indptr", np.array([0, 2, 4]), "indptr"),
    ("csr_rows", "indptr", np.array([-1, 2, 3]), "indptr"),
    ("csr_rows", "indptr", np.array([0, 3, 2]), "indptr"),
    ("csr_rows", "indptr", np.empty(0, dtype=np.int64), "indptr"),
    ("norms", "power", 0, "power"),
    ("norms", "power", 3, "power"),
    ("kernel_block", "kernel", (6, 1.0, 0.0, 1), "kind"),
    ("kernel_block", "kernel", (-1, 1.0, 0.0, 1), "kind"),
    ("kernel_block", "kernel", (3, 1.0, 0.0, 0), "degree"),
    ("kernel_block", "m", -1, "packed"),
    ("kernel_block", "m", M + 1, "out"),
    ("kernel_block", "m", 2**62, "packed"),
    ("kernel_product", "kernel", (6, 1.0, 0.0, 1), "kind"),
    ("kernel_product", "m", -1, "packed"),
    ("kernel_product", "m", 0, "packed"),
    ("kernel_product", "m", 100, "packed"),
    ("kernel_product", "m", 2**62, "packed"),
    ("assign", "metric", 2, "metric"),
    ("assign", "metric", -1, "metric"),
    ("assign", "centers", np.empty((0, D)), "centre"),
    ("assign", "labels", int32(*[0] * (N - 1), K), "labels"),
    ("assign", "labels", int32(*[0] * (N - 1), -1), "labels"),
    ("assign", "slack", -1.0, "slack"),
    ("assign", "slack", np.nan, "slack"),
    ("assign", "gaps", None, "gaps"),
    ("soft_step", "centers", np.empty((0, D)), "centre"),
    ("soft_step", "m", 1.0, "m must"),
    ("soft_step", "m", 0.5, "m must"),
    ("soft_step", "m", np.nan, "m must"),
    ("soft_step", "m", np.inf, "m must"),
    ("soft_step", "own", np.ones(N - 1), "own"),
    ("soft_step", "old_centers", np.ones((K, D)), "old centres"),
    ("soft_step", "old_half", np.ones(K), "old centres"),
    ("soft_step", "old_nu", np.ones(K), "old centres"),
    ("segment rows", "position", int32(1, 3, N), "position"),
    ("segment rows", "position", int32(-1, 3, 4), "position"),
    ("segment rows", "old", int32(0, K, 1), "cluster"),
    ("segment rows", "new", int32(0, 1, -2), "cluster"),
    ("segment columns", "position", int32(1, 3, M), "position"),
    ("segment columns", "position", int32(3, 1, 4), "ascend"),
    ("segment columns", "position", int32(3, 3, 4), "ascend"),
    ("segment columns", "new", int32(0, K, 1), "cluster"),
    ("gram_assign", "F", np.empty((0, N)), "cluster"),
    ("hadamard", "a", np.ones((2, 0)), "power of two"),
    ("hadamard", "a", np.ones((2, 12)), "power of two"),
]


@pytest.mark.parametrize(("name", "argument", "value", "message"), NUMBERS)
def test_number_out_of_range(dtype, name, argument, value, message):
    arguments = valid_calls(dtype)[name]
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and name != "gram_assign":
        value = value.astype(dtype)
    with pytest.raises(ValueError, match=message):
        call(name, arguments | {argument: value})


@pytest.mark.parametrize(("begin", "end"), [(-1, 2), (3, 2), (0, N + 1), (N + 1, N + 1)])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_slice_out_of_range(dtype, storage, begin, end):
    rows = core_rows(np.ones((N, D), dtype=dtype), storage)
    with pytest.raises(ValueError, match="slice"):
        rows.slice(begin, end)


def test_l2_needs_the_points_norms_and_l1_does_not(dtype):
    arguments = valid_calls(dtype)["assign"] | {"norms": None}
    with pytest.raises(ValueError, match="norms"):
        call("assign", arguments)
    call("assign", arguments | {"metric": L1})


def test_sums_and_totals_go_together(dtype):
    arguments = valid_calls(dtype)["assign"]
    for missing in ("sums", "totals"):
        with pytest.raises(ValueError, match="both sums and totals"):
            call("assign", arguments | {missing: None})


def test_rows_of_another_type(dtype):
    other = {np.float32: np.float64, np.float64: np.float32}[dtype]
    for name, arguments in valid_calls(dtype).items():
        for argument in ("rows", "points"):
            if argument in arguments and name != "row_hash":
                with pytest.raises(TypeError):
                    call(name, arguments | {argument: core_rows(np.ones((N, D), dtype=other))})


@pytest.mark.parametrize("function", ["packed_size", "assign_scratch", "soft_scratch", "product_scratch"])
def test_sizes_of_buffers(function):
    arguments = {"packed_size": (3, 4), "assign_scratch": (4,), "soft_scratch": (3, 4), "product_scratch": ()}[function]
    size = getattr(_core, function)
    assert size(*arguments, 4) > 0
    with pytest.raises(ValueError, match="itemsize"):
        size(*arguments, 2)
    for position in range(len(arguments)):
        negative = [*arguments[:position], -1, *arguments[position + 1 :]]
        with pytest.raises(ValueError, match="negative"):
            size(*negative, 4)
