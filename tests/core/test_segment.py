"""Per-cluster sums of a tile's rows and columns, and the nearest implicit centre."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from core.calls import few, seeds, sizes, sizes_or_none, whole_numbers
from mercer import _core

cluster_counts = st.sampled_from([1, 2, 3, 10, 100])
layouts = st.sampled_from(["all", "run", "scattered", "none"])


def positions(rng, length, layout):
    """Which rows or columns move, ascending."""
    if layout == "all":
        return np.arange(length)
    if layout == "none" or length == 0:
        return np.arange(0)
    if layout == "run":
        begin, end = sorted(rng.integers(0, length + 1, 2))
        return np.arange(begin, end)
    return np.flatnonzero(rng.random(length) < 0.6)


def surrounded(A):
    """The same values inside a larger array of NaN, so that rows are not neighbours in memory."""
    around = np.full((A.shape[0] + 2, A.shape[1] + 5), np.nan, dtype=A.dtype)
    view = around[1:-1, 2:-3]
    view[...] = A
    return around, view


@pytest.mark.parametrize("by_rows", [True, False], ids=["rows", "columns"])
@few
@given(n=sizes_or_none, m=sizes_or_none, k=cluster_counts, layout=layouts, seed=seeds)
def test_sums_follow_the_moves(dtype, by_rows, n, m, k, layout, seed):
    """Small integers, so that the order of additions does not matter."""
    rng = np.random.default_rng(seed)
    tile = whole_numbers(rng, (n, m), dtype)
    length, across = (n, m) if by_rows else (m, n)
    position = positions(rng, length, layout).astype(np.int32)
    if by_rows:
        rng.shuffle(position)
    old, new = rng.integers(-1, k, (2, len(position)), dtype=np.int32)
    weight = rng.integers(1, 4, len(position)).astype(np.float64)
    F = whole_numbers(rng, (k, across), np.float64)
    expected = reference.segment(tile, position, old, new, weight, F, by_rows)

    around, inside = surrounded(F)
    _core.segment(by_rows, surrounded(tile)[1], position, old, new, weight, inside)
    assert np.array_equal(inside, expected)
    inside[...] = np.nan
    assert np.isnan(around).all()
    _core.segment(by_rows, tile, position, old, new, weight, F)
    assert np.array_equal(F, expected)


def some_moves(rng, length, layout, k):
    """Moves sorted by cluster, as those of a first pass are, or in any order."""
    position = positions(rng, length, layout).astype(np.int32)
    rng.shuffle(position)
    old, new = rng.integers(-1, k, (2, len(position)), dtype=np.int32)
    if rng.random() < 0.5:
        old[:] = -1
        new = np.sort(np.maximum(new, 0))
    return position, old, new, rng.integers(1, 4, len(position)).astype(np.float64)


big_or_small = st.one_of(sizes_or_none, st.sampled_from([255, 256, 257, 300, 520]))


@few
@given(n=big_or_small, m=sizes_or_none, k=st.sampled_from([1, 2, 5, 40]), layout=layouts, seed=seeds)
def test_columns_by_way_of_a_transposition(dtype, n, m, k, layout, seed):
    rng = np.random.default_rng(seed)
    tile, moves = whole_numbers(rng, (n, m), dtype), some_moves(rng, m, layout, k)
    F = whole_numbers(rng, (k, n), np.float64)
    expected = reference.segment(tile, *moves, F, False)
    scratch = np.full(_core.segment_scratch(m, tile.itemsize), np.nan, dtype=dtype)
    around, inside = surrounded(F)
    _core.segment(False, surrounded(tile)[1], *moves, inside, scratch)
    assert np.array_equal(inside, expected)
    inside[...] = np.nan
    assert np.isnan(around).all()


@few
@given(n=big_or_small, m=sizes, seed=seeds)
def test_runs_of_one_cluster_have_the_bits_of_single_moves(dtype, n, m, seed):
    """Also those of rows, and those by way of a transposition: additions come in the same order."""
    rng = np.random.default_rng(seed)
    tile, weight = rng.standard_normal((n, m)).astype(dtype), rng.random(m)
    new = np.sort(rng.integers(0, 3, m)).astype(np.int32)
    old, position = np.full(m, -1, dtype=np.int32), np.arange(m, dtype=np.int32)
    sums = [np.zeros((3, n)) for _ in range(4)]
    _core.segment(False, tile, position, old, new, weight, sums[0])
    _core.segment(False, tile, position, old, new, weight, sums[1], np.empty(256 * m, dtype))
    _core.segment(True, np.ascontiguousarray(tile.T), position, old, new, weight, sums[2])
    for e in range(m):
        one = slice(e, e + 1)
        _core.segment(False, tile, position[one], old[one], new[one], weight[one], sums[3])
    for found in sums[:3]:
        assert np.array_equal(found, sums[3])


@pytest.mark.parametrize("by_rows", [True, False], ids=["rows", "columns"])
@few
@given(n=sizes, m=sizes, layout=layouts, seed=seeds)
def test_real_numbers_are_added_in_float64(dtype, by_rows, n, m, layout, seed):
    rng = np.random.default_rng(seed)
    tile = rng.standard_normal((n, m)).astype(dtype)
    position = positions(rng, n if by_rows else m, layout).astype(np.int32)
    old, new = rng.integers(-1, 3, (2, len(position)), dtype=np.int32)
    weight, F = rng.random(len(position)), np.zeros((3, m if by_rows else n))
    expected = reference.segment(tile, position, old, new, weight, F, by_rows)
    _core.segment(by_rows, tile, position, old, new, weight, F)
    np.testing.assert_allclose(F, expected, rtol=0, atol=1e-13 * (1 + len(position)))


@pytest.mark.parametrize("by_rows", [True, False], ids=["rows", "columns"])
def test_moving_back_leaves_nothing(dtype, by_rows):
    rng = np.random.default_rng(0)
    tile, F = whole_numbers(rng, (50, 50), dtype), np.zeros((4, 50))
    position, weight = np.arange(50, dtype=np.int32), np.ones(50)
    old, new = rng.integers(0, 4, (2, 50), dtype=np.int32)
    _core.segment(by_rows, tile, position, old, new, weight, F)
    assert F.any()
    _core.segment(by_rows, tile, position, new, old, weight, F)
    assert not F.any()


# ---- nearest implicit centre ----------------------------------------------------------------------------------


@few
@given(n=st.one_of(sizes_or_none, st.sampled_from([63, 64, 65, 128, 129])), k=cluster_counts, seed=seeds)
def test_gram_assign(n, k, seed):
    rng = np.random.default_rng(seed)
    F = whole_numbers(rng, (k, n), np.float64)
    scale, offset = rng.integers(1, 3, k) / 2, rng.integers(0, 5, k).astype(np.float64)
    diagonal, before = rng.integers(0, 6, n).astype(np.float64), rng.integers(0, k, n, dtype=np.int32)
    D = (diagonal - 2 * F * scale[:, None] + offset[:, None]).T
    for tile in (F, surrounded(F)[1]):
        labels, distances = before.copy(), np.full(n, np.nan)
        moved = _core.gram_assign(tile, scale, offset, diagonal, labels, distances)
        assert np.array_equal(labels, D.argmin(axis=1))
        assert np.array_equal(distances, np.maximum(D.min(axis=1), 0))
        assert moved == (labels != before).sum()


def test_an_empty_cluster_is_infinitely_far():
    F, labels, distances = np.array([[0.0, 0.0], [-9.0, 1.0]]), np.zeros(2, dtype=np.int32), np.empty(2)
    scale, offset = np.array([0.0, 1.0]), np.array([np.inf, 1.0])
    assert _core.gram_assign(F, scale, offset, np.ones(2), labels, distances) == 2
    assert list(labels) == [1, 1]
    assert list(distances) == [20, 0]
