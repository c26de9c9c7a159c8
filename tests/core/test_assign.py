"""Nearest centres, with the centres' sums in the same pass."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from core.calls import (
    L1,
    L2,
    assign,
    core_rows,
    empty_sums,
    few,
    numbers,
    rounding,
    seeds,
    shifts,
    sizes,
    sizes_or_none,
    storages,
    whole_numbers,
    widths,
)
from mercer import _core

metrics = pytest.mark.parametrize("metric", [L2, L1], ids=["l2", "l1"])
NAMES = {L2: "l2", L1: "l1"}


@metrics
@few
@given(n=sizes_or_none, k=sizes, d=widths, seed=seeds, storage=storages, weighted=st.booleans())
def test_whole_numbers_exactly(dtype, metric, n, k, d, seed, storage, weighted):
    rng = np.random.default_rng(seed)
    X, C = whole_numbers(rng, (n, d), dtype), whole_numbers(rng, (k, d), dtype)
    C[k // 2 :: 2] = C[k // 2]  # ties go to the lower
    before = rng.integers(0, k, n)
    weights = rng.integers(0, 4, n).astype(dtype) if weighted else None
    expected = reference.nearest_centers(X.astype(np.float64), C, NAMES[metric], weights)
    actual = assign(core_rows(X, storage), C, metric, weights=weights, labels=before)
    assert np.array_equal(actual.labels, expected.labels)
    assert np.array_equal(actual.distances, expected.distances)
    assert actual.moved == (before != expected.labels).sum()
    assert actual.objective == expected.objective
    assert np.array_equal(actual.sums, expected.sums)
    assert np.array_equal(actual.totals, expected.totals)


@metrics
@few
@given(n=sizes, k=sizes, d=widths, seed=seeds, storage=storages)
def test_real_numbers(dtype, metric, n, k, d, seed, storage):
    rng = np.random.default_rng(seed)
    X, C = numbers(rng, (n, d), dtype), numbers(rng, (k, d), dtype)
    C[: min(n, k) // 2] = X[: min(n, k) // 2]  # at a distance that rounding may take below zero
    weights = rng.random(n).astype(dtype)
    D = reference.distances(X, C, NAMES[metric])
    order = 1 if metric == L1 else 2
    size = sum(np.linalg.norm(A, order, axis=1).max() ** order for A in (X.astype(np.float64), C.astype(np.float64)))
    bound = rounding(d, dtype) * size
    actual = assign(core_rows(X, storage), C, metric, weights=weights)
    assert (D[np.arange(n), actual.labels] <= D.min(axis=1) + 2 * bound).all()
    assert (np.abs(actual.distances - D.min(axis=1)) <= bound).all()
    assert actual.distances.min() >= 0
    assert actual.objective == pytest.approx(weights.astype(np.float64) @ actual.distances, rel=1e-12)
    U = weights[:, None] * (actual.labels[:, None] == np.arange(k)).astype(np.float64)
    np.testing.assert_allclose(actual.sums, U.T @ X, rtol=1e-12, atol=1e-12 * n)
    np.testing.assert_allclose(actual.totals, U.sum(axis=0), rtol=1e-12)


@metrics
@few
@given(n=sizes, k=sizes, d=widths, seed=seeds, storage=storages)
def test_slices_give_the_same_bits(dtype, metric, n, k, d, seed, storage):
    rng = np.random.default_rng(seed)
    X, C, cut = numbers(rng, (n, d), dtype), numbers(rng, (k, d), dtype), rng.integers(0, n + 1)
    rows, sums = core_rows(X, storage), empty_sums(k, d)
    whole = assign(rows, C, metric)
    parts = [assign(part, C, metric, sums=sums) for part in (rows.slice(0, cut), rows.slice(cut, n))]
    for field in ("labels", "distances"):
        assert np.array_equal(np.concatenate([getattr(part, field) for part in parts]), getattr(whole, field))
    assert sum(part.moved for part in parts) == whole.moved == n
    assert np.array_equal(sums[0], whole.sums)
    assert np.array_equal(sums[1], whole.totals)


@metrics
@few
@given(n=sizes, k=sizes, seed=seeds)
def test_what_is_not_asked_for_changes_nothing(dtype, metric, n, k, seed):
    rng = np.random.default_rng(seed)
    rows, C = core_rows(numbers(rng, (n, 3), dtype)), numbers(rng, (k, 3), dtype)
    full, bare = assign(rows, C, metric), assign(rows, C, metric, distances=False, sums=False)
    assert np.array_equal(full.labels, bare.labels)
    assert (full.objective, full.moved) == (bare.objective, bare.moved)
    assert assign(rows, C, metric, labels=full.labels).moved == 0


@metrics
def test_weight_zero_is_assigned_but_not_counted(dtype, metric):
    X, C = np.array([[0], [10], [11]], dtype=dtype), np.array([[0], [12]], dtype=dtype)
    result = assign(core_rows(X), C, metric, weights=np.array([1, 0, 2], dtype=dtype))
    assert list(result.labels) == [0, 1, 1]
    assert list(result.totals) == [1, 2]
    assert list(result.sums.ravel()) == [0, 22]
    assert result.objective == 2


def test_residual_is_added_to_the_distance(dtype):
    """The points' norms may hold a residual: it does not change the labels."""
    X, C = np.array([[0, 0], [3, 4]], dtype=dtype), np.array([[0, 1]], dtype=dtype)
    labels, distances = np.zeros(2, dtype=np.int32), np.empty(2, dtype=dtype)
    scratch = np.empty(_core.assign_scratch(2, X.itemsize), dtype=dtype)
    offset, norms = np.array([0.5], dtype=dtype), np.array([0 + 7, 25 + 9], dtype=dtype)
    _core.assign(core_rows(X), C, offset, L2, None, norms, labels, distances, None, None, scratch)
    assert list(distances) == [1 + 7, 18 + 9]


def move(rng, C):
    """Centres a little off, each in its own measure, some not at all."""
    steps = rng.choice([0.0, 0.01, 0.3], size=(len(C), 1))
    return (C + steps * rng.standard_normal(C.shape)).astype(C.dtype)


@metrics
@few
@given(n=sizes, k=sizes, d=widths, seed=seeds, storage=storages)
def test_gaps_are_bounds_from_below(dtype, metric, n, k, d, seed, storage):
    rng = np.random.default_rng(seed)
    X, C = numbers(rng, (n, d), dtype), numbers(rng, (k, d), dtype)
    D = reference.distances(X, C, NAMES[metric])
    D = np.sqrt(D) if metric == L2 else D
    result = assign(core_rows(X, storage), C, metric, gaps=True)
    own = D[np.arange(n), result.labels]
    D[np.arange(n), result.labels] = np.inf
    assert (result.gaps <= D.min(axis=1) - own + 1e-12).all()  # infinity for a single centre
    if k > 1 and d > 4:
        assert np.median(result.gaps) > 0.5 * np.median(D.min(axis=1) - own) - 0.1


@metrics
@few
@given(n=sizes, k=sizes, d=widths, seed=seeds, storage=storages, weighted=st.booleans())
def test_bounds_give_the_labels_of_a_full_pass(dtype, metric, n, k, d, seed, storage, weighted):
    rng = np.random.default_rng(seed)
    X, C = numbers(rng, (n, d), dtype), numbers(rng, (k, d), dtype)
    weights = rng.integers(0, 4, n).astype(dtype) if weighted else None
    rows = core_rows(X, storage)
    now = assign(rows, C, metric, weights=weights, gaps=True)
    for _ in range(4):
        before, C = C, move(rng, C)
        full = assign(rows, C, metric, weights=weights, labels=now.labels)
        now = assign(
            rows,
            C,
            metric,
            weights=weights,
            labels=now.labels,
            sums=(now.sums, now.totals),
            gaps=now.gaps,
            shifts=shifts(before, C, metric),
        )
        assert np.array_equal(now.labels, full.labels)
        assert now.moved == full.moved
        np.testing.assert_allclose(now.sums, full.sums, rtol=1e-12, atol=1e-12 * n)
        np.testing.assert_allclose(now.totals, full.totals, rtol=1e-12, atol=1e-12)


@metrics
def test_points_with_a_lead_are_passed_over(dtype, metric):
    """A wrong label stays where the gap says that it cannot change, and only there."""
    X, C = np.array([[0], [0], [9]], dtype=dtype), np.array([[0], [9]], dtype=dtype)
    gaps, labels = np.array([5, 1, 1], dtype=dtype), np.array([1, 1, 1])
    result = assign(core_rows(X), C, metric, labels=labels, gaps=gaps, shifts=np.array([1, 1], dtype=dtype))
    assert list(result.labels) == [1, 0, 1]
    assert result.gaps[0] == 3
    assert result.moved == 1
