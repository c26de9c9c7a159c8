"""The fast Walsh-Hadamard transform."""

import numpy as np
import pytest
import reference

from core.calls import eps, whole_numbers
from mercer import _core

lengths = pytest.mark.parametrize("length", [2**p for p in range(16)])


@lengths
def test_transform_is_the_definition(dtype, length):
    """Integers: sums are exact, so any order gives the same."""
    A = whole_numbers(np.random.default_rng(length), (3, length), dtype)
    expected = reference.hadamard(A)
    around = np.full((5, length + 3), np.nan, dtype=dtype)
    around[1:-1, 2:-1] = A
    for rows in (A, around[1:-1, 2:-1]):
        _core.hadamard(rows)
        assert np.array_equal(rows, expected)
    around[1:-1, 2:-1] = np.nan
    assert np.isnan(around).all()


@lengths
def test_transform_is_its_own_inverse(dtype, length):
    A = np.random.default_rng(length).standard_normal((2, length)).astype(dtype)
    twice = A.copy()
    _core.hadamard(twice)
    _core.hadamard(twice)
    np.testing.assert_allclose(twice / length, A, atol=20 * eps(dtype) * np.abs(A).max())


def test_no_rows(dtype):
    A = np.empty((0, 8), dtype=dtype)
    _core.hadamard(A)
    assert A.shape == (0, 8)
