"""Kernel values times a matrix, without the kernel matrix."""

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
    kernel_product,
    numbers,
    rounding,
    seeds,
    sizes,
    sizes_or_none,
    storages,
    widths,
)
from mercer import _core

# Columns go through the cache 256 at a time.
column_counts = st.one_of(sizes, st.sampled_from([255, 256, 257, 513, 700]))
PARAMETERS = {"gamma": 0.05, "coef0": 0.5, "degree": 2}


@pytest.mark.parametrize("kind", KINDS)
@few
@given(n=sizes_or_none, m=column_counts, p=widths, d=widths, seed=seeds, storage=storages)
def test_product_is_the_block_times_the_factor(dtype, kind, n, m, p, d, seed, storage):
    rng = np.random.default_rng(seed)
    rows, columns = core_rows(numbers(rng, (n, d), dtype), storage), core_rows(numbers(rng, (m, d), dtype))
    V = numbers(rng, (m, p), dtype)
    K = kernel_block(kind, rows, columns, dtype, **PARAMETERS).astype(np.float64)
    actual = kernel_product(kind, rows, columns, V, **PARAMETERS)
    bound = rounding(m, dtype) * np.sqrt((K**2).sum(axis=1))[:, None] * np.linalg.norm(V, axis=0)
    assert (np.abs(actual - K @ V) <= bound).all()


def test_product_against_the_reference(dtype):
    rng = np.random.default_rng(0)
    X, Z, V = numbers(rng, (75, 20), dtype), numbers(rng, (300, 20), dtype), numbers(rng, (300, 9), dtype)
    expected = reference.kernel("rbf", X, Z, gamma=0.1) @ V
    actual = kernel_product("rbf", core_rows(X), core_rows(Z), V, gamma=0.1)
    np.testing.assert_allclose(actual, expected, atol=50 * eps(dtype) * np.abs(V).sum())


@few
@given(n=sizes, m=column_counts, p=sizes, seed=seeds, storage=storages)
def test_a_product_writes_nothing_beside_it_and_slices_give_the_same_bits(dtype, n, m, p, seed, storage):
    rng = np.random.default_rng(seed)
    rows, columns = core_rows(numbers(rng, (n, 5), dtype), storage), core_rows(numbers(rng, (m, 5), dtype))
    V = numbers(rng, (m, p), dtype)
    whole, cut = kernel_product("linear", rows, columns, V), rng.integers(0, n + 1)
    parts = [kernel_product("linear", part, columns, V) for part in (rows.slice(0, cut), rows.slice(cut, n))]
    assert np.array_equal(np.vstack(parts), whole)

    around = np.full((n + 2, p + 5), np.nan, dtype=dtype)
    packed = [np.empty(_core.packed_size(*shape, V.itemsize), dtype=dtype) for shape in ((m, 5), (p, m))]
    _core.pack(columns, None, packed[0])
    _core.pack(core_rows(V.T), None, packed[1])
    scratch = np.empty(_core.product_scratch(V.itemsize), dtype=dtype)
    _core.kernel_product((0, 1.0, 0.0, 1), rows, None, packed[0], m, packed[1], around[1:-1, 2:-3], scratch)
    assert np.array_equal(around[1:-1, 2:-3], whole)
    around[1:-1, 2:-3] = np.nan
    assert np.isnan(around).all()
