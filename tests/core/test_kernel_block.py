"""Kernel values between blocks of rows."""

import threading

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from core.calls import (
    KINDS,
    core_rows,
    eps,
    few,
    kernel_block,
    numbers,
    rounding,
    seeds,
    sizes,
    sizes_or_none,
    storages,
    widths,
)
from mercer import _core

PARAMETERS = {
    "linear": {},
    "rbf": {"gamma": 0.07},
    "laplacian": {"gamma": 0.05},
    "polynomial": {"gamma": 0.1, "coef0": 0.5, "degree": 5},
    "sigmoid": {"gamma": 0.03, "coef0": -0.1},
    "cosine": {},
}


def largest_error(kind, X, Z, dtype):
    """Bound on |error| from rounding: that of the inner product or distance, times the slope of what follows."""
    rounded, parameters = rounding(X.shape[1], dtype), PARAMETERS[kind]
    left, right = np.linalg.norm(X, axis=1)[:, None], np.linalg.norm(Z, axis=1)
    if kind == "rbf":
        return rounded * (1 + parameters["gamma"] * (left**2 + right**2))
    if kind == "laplacian":
        return rounded * (1 + parameters["gamma"] * (np.abs(X).sum(axis=1)[:, None] + np.abs(Z).sum(axis=1)))
    if kind == "polynomial":
        return rounded * 10 * (parameters["coef0"] + parameters["gamma"] * left * right) ** parameters["degree"]
    return rounded * (1 + {"linear": 1, "sigmoid": parameters.get("gamma"), "cosine": 0}[kind] * left * right)


@pytest.mark.parametrize("kind", KINDS)
@few
@given(n=sizes_or_none, m=sizes_or_none, d=widths, seed=seeds, left=storages, right=storages)
def test_values(dtype, kind, n, m, d, seed, left, right):
    rng = np.random.default_rng(seed)
    X, Z = numbers(rng, (n, d), dtype), numbers(rng, (m, d), dtype)
    Z[: n // 2] = X[: n // 2][:m]
    expected = reference.kernel(kind, X, Z, **PARAMETERS[kind])
    actual = kernel_block(kind, core_rows(X, left), core_rows(Z, right), dtype, **PARAMETERS[kind])
    assert (np.abs(actual - expected) <= largest_error(kind, X, Z, dtype)).all()


@pytest.mark.parametrize("kind", ["linear", "rbf", "cosine"])
@few
@given(n=sizes, m=sizes.map(lambda m: m + 128), seed=seeds, filled=st.floats(0, 1))
def test_columns_of_zeros_are_skipped(dtype, kind, n, m, seed, filled):
    """Mostly zeros, in the same columns for many rows or not: only entries beside them count."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(16, 200))
    X, Z = numbers(rng, (n, d), dtype), numbers(rng, (m, d), dtype)
    X[:, rng.random(d) > filled] = 0
    X[rng.random((n, d)) > filled] = 0
    expected = reference.kernel(kind, X, Z, **PARAMETERS[kind])
    actual = kernel_block(kind, core_rows(X), core_rows(Z), dtype, **PARAMETERS[kind])
    assert (np.abs(actual - expected) <= largest_error(kind, X, Z, dtype)).all()


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 8, 20])
def test_every_degree(dtype, degree):
    X = np.array([[1.0], [-1.5], [0.5]], dtype=dtype)
    actual = kernel_block("polynomial", core_rows(X), core_rows(X), dtype, gamma=1, coef0=0, degree=degree)
    np.testing.assert_allclose(actual, np.outer(X, X).astype(np.float64) ** degree, rtol=20 * eps(dtype))


@pytest.mark.parametrize("kind", KINDS)
@few
@given(n=sizes, m=sizes, d=widths, seed=seeds, storage=storages)
def test_a_block_writes_nothing_beside_it(dtype, kind, n, m, d, seed, storage):
    rng = np.random.default_rng(seed)
    X, Z = core_rows(numbers(rng, (n, d), dtype), storage), core_rows(numbers(rng, (m, d), dtype))
    around = np.full((n + 2, m + 5), np.nan, dtype=dtype)
    kernel_block(kind, X, Z, dtype, out=around[1:-1, 2:-3])
    assert np.array_equal(around[1:-1, 2:-3], kernel_block(kind, X, Z, dtype))
    around[1:-1, 2:-3] = np.nan
    assert np.isnan(around).all()


@pytest.mark.parametrize("kind", KINDS)
@few
@given(n=sizes, m=sizes, d=widths, seed=seeds, storage=storages)
def test_slices_and_strides_give_the_same_bits(dtype, kind, n, m, d, seed, storage):
    rng = np.random.default_rng(seed)
    X, Z = numbers(rng, (n, d), dtype), core_rows(numbers(rng, (m, d), dtype))
    rows = core_rows(X, "csr" if storage.startswith("csr") else "dense")
    whole = kernel_block(kind, rows, Z, dtype, **PARAMETERS[kind])
    cut = rng.integers(0, n + 1)
    parts = [
        kernel_block(kind, part, Z, dtype, **PARAMETERS[kind]) for part in (rows.slice(0, cut), rows.slice(cut, n))
    ]
    assert np.array_equal(np.vstack(parts), whole)
    assert np.array_equal(kernel_block(kind, core_rows(X, storage), Z, dtype, **PARAMETERS[kind]), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_do_not_depend_on_their_neighbours(dtype, kind):
    rng = np.random.default_rng(0)
    X, Z = numbers(rng, (13, 9), dtype), numbers(rng, (90, 9), dtype)
    whole = kernel_block(kind, core_rows(X), core_rows(Z), dtype)
    for begin, end in [(0, 1), (3, 20), (40, 90)]:
        assert np.array_equal(kernel_block(kind, core_rows(X), core_rows(Z[begin:end]), dtype), whole[:, begin:end])


@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_nothing_is_nearer_than_itself(dtype, kind, storage):
    X = numbers(np.random.default_rng(1), (70, 300), dtype) * 10
    block = kernel_block(kind, core_rows(X, storage), core_rows(X), dtype, gamma=1.0)
    assert block.max() <= 1
    assert block.min() >= 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_no_columns(dtype, kind, storage):
    X = np.empty((5, 0), dtype=dtype)
    at_zero = {"rbf": 1, "laplacian": 1, "polynomial": 1, "sigmoid": np.tanh(1)}.get(kind, 0)
    block = kernel_block(kind, core_rows(X, storage), core_rows(X), dtype)
    np.testing.assert_allclose(block, np.full((5, 5), at_zero), rtol=4 * eps(dtype))


# ---- the exponential and the hyperbolic tangent -------------------------------------------------------------------

RELATIVE = {np.float32: 3e-7, np.float64: 1e-14}


def exactly_squared(dtype):
    """Numbers whose squares are exact, from 0 to where exp(-x^2) is below the smallest normal number."""
    return np.arange(0, {np.float32: 10, np.float64: 27}[dtype], 1 / 256).astype(dtype)[:, None]


@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
def test_exponential_is_accurate_down_to_underflow(dtype, kind):
    far = exactly_squared(dtype) if kind == "rbf" else exactly_squared(dtype) ** 2
    actual = kernel_block(kind, core_rows(np.zeros((1, 1), dtype=dtype)), core_rows(far), dtype)[0]
    expected = reference.kernel(kind, np.zeros((1, 1)), far)[0]
    normal = expected > 1.5 * np.finfo(dtype).tiny
    assert normal.sum() > 2000
    assert np.abs(actual / np.where(normal, expected, 1) - 1)[normal].max() <= RELATIVE[dtype]
    assert (actual[expected < np.finfo(dtype).tiny] == 0).all()
    assert actual[0] == 1


@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
def test_exponential_is_zero_far_out(dtype, kind):
    far = np.array([[30.0], [1e3], [1e6], [1e15]], dtype=dtype) ** (1 if kind == "rbf" else 2)
    assert (kernel_block(kind, core_rows(np.zeros((1, 1), dtype=dtype)), core_rows(far), dtype) == 0).all()


@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
def test_exponential_is_one_at_distance_zero(dtype, kind):
    X = np.random.default_rng(2).integers(-8, 9, (40, 30)).astype(dtype)
    assert (kernel_block(kind, core_rows(X), core_rows(X), dtype).diagonal() == 1).all()


def test_hyperbolic_tangent_is_accurate_and_bounded(dtype):
    x = np.concatenate([np.linspace(-0.1, 0.1, 2001), np.linspace(-30, 30, 2001), [-1e30, 1e30]]).astype(dtype)
    actual = kernel_block("sigmoid", core_rows(np.ones((1, 1), dtype=dtype)), core_rows(x[:, None]), dtype, coef0=0)[0]
    np.testing.assert_allclose(actual, np.tanh(x.astype(np.float64)), rtol=0, atol=4 * eps(dtype))
    assert (actual[x == 0] == 0).all()
    assert np.abs(actual).max() == 1


# ---- threads ------------------------------------------------------------------------------------------------------


def test_python_runs_while_a_block_is_computed(dtype):
    """The first value of the block is seen written when the last is not: the global lock was not held."""
    X = core_rows(np.ones((1500, 300), dtype=dtype))
    packed = np.empty(_core.packed_size(X.n, X.d, np.dtype(dtype).itemsize), dtype=dtype)
    _core.pack(X, None, packed)
    out = np.empty((X.n, X.n), dtype=dtype)
    seen = False
    for _ in range(50):
        out.fill(np.nan)
        worker = threading.Thread(target=_core.kernel_block, args=((0, 1.0, 0.0, 1), X, None, packed, X.n, out))
        worker.start()
        while worker.is_alive() and not seen:
            seen = bool(out[0, 0] == 300 and np.isnan(out[-1, -1]))
        worker.join()
        if seen:
            break
    assert seen
    assert (out == 300).all()
