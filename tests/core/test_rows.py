"""Norms and hashes of rows, and the views they are taken from."""

import numpy as np
import pytest
from hypothesis import given

from core.calls import (
    core_rows,
    eps,
    few,
    norms,
    numbers,
    rounding,
    row_hash,
    seeds,
    sizes,
    sizes_or_none,
    storages,
    widths,
)
from mercer import _core

POWERS = {1: lambda X: np.abs(X).sum(axis=1), 2: lambda X: (X * X).sum(axis=1)}


def tolerance(d, dtype):
    """Sums are in float64 whatever the data are."""
    return max(eps(dtype), rounding(d, np.float64))


@few
@given(n=sizes_or_none, d=widths, seed=seeds, storage=storages)
def test_norms(dtype, n, d, seed, storage):
    X = numbers(np.random.default_rng(seed), (n, d), dtype)
    for power, expected in POWERS.items():
        actual = norms(core_rows(X, storage), power, dtype)
        np.testing.assert_allclose(actual, expected(X.astype(np.float64)), rtol=tolerance(d, dtype))


@few
@given(n=sizes, d=widths, seed=seeds, storage=storages)
def test_inverse_norms_of_rows_and_of_zero_rows(dtype, n, d, seed, storage):
    X = numbers(np.random.default_rng(seed), (n, d), dtype)
    X[::3] = 0
    length = np.linalg.norm(X.astype(np.float64), axis=1)
    expected = np.divide(1, length, out=np.zeros(n), where=length > 0)
    np.testing.assert_allclose(norms(core_rows(X, storage), -2, dtype), expected, rtol=tolerance(d, dtype))


@few
@given(n=sizes_or_none, d=widths, seed=seeds, storage=storages)
def test_hash_depends_on_the_content_only(dtype, n, d, seed, storage):
    rng = np.random.default_rng(seed)
    X = numbers(rng, (n, d), np.float32)
    expected = row_hash(core_rows(X.astype(np.float64)))
    order = rng.permutation(n)
    assert np.array_equal(row_hash(core_rows(X.astype(dtype), storage)), expected)
    assert np.array_equal(row_hash(core_rows(X.astype(dtype)[order], storage)), expected[order])


def test_hash_tells_rows_apart(dtype):
    rows = np.vstack([np.eye(40), -np.eye(40), 2 * np.eye(40), np.zeros((1, 40)), np.tri(40)[1:]])
    assert len(np.unique(row_hash(core_rows(rows.astype(dtype))))) == len(rows)


def test_hash_takes_all_zeros_as_one(dtype):
    plain, negative = np.array([[0, 1, 0]], dtype=dtype), np.array([[-0.0, 1, -0.0]], dtype=dtype)
    stored = _core.csr_rows(
        np.array([0, 3]), np.array([2, 0, 1], dtype=np.int32), np.array([0, -0.0, 1], dtype=dtype), 3
    )
    assert row_hash(core_rows(plain)) == row_hash(core_rows(negative)) == row_hash(stored)


@few
@given(n=sizes_or_none, d=widths, seed=seeds, storage=storages)
def test_slices_are_the_rows_they_name(dtype, n, d, seed, storage):
    rng = np.random.default_rng(seed)
    X = numbers(rng, (n, d), dtype)
    begin, end = sorted(rng.integers(0, n + 1, 2))
    rows = core_rows(X, storage)
    part = rows.slice(begin, end)
    assert (part.n, part.d) == (end - begin, d)
    assert np.array_equal(norms(part, 1, dtype), norms(rows, 1, dtype)[begin:end])
    assert np.array_equal(row_hash(part), row_hash(rows)[begin:end])


def test_rows_keep_their_arrays_alive(dtype):
    rows = core_rows(np.ones((50, 7), dtype=dtype)).slice(10, 20)
    assert np.array_equal(norms(rows, 2, dtype), np.full(10, 7))


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_no_columns(dtype, storage):
    rows = core_rows(np.empty((5, 0), dtype=dtype), storage)
    assert np.array_equal(norms(rows, 2, dtype), np.zeros(5))
    assert len(np.unique(row_hash(rows))) == 1
