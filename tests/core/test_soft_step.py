"""Fuzzy memberships and possibilistic typicalities, with the centres' sums in the same pass."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from core.calls import (
    core_rows,
    empty_sums,
    eps,
    few,
    numbers,
    rounding,
    seeds,
    sizes,
    sizes_or_none,
    soft_step,
    storages,
    whole_numbers,
    widths,
)

FUZZINESS = [1.01, 1.5, 2.0, 3.0, 10.0]
fuzziness = pytest.mark.parametrize("m", FUZZINESS)
rules = pytest.mark.parametrize("possibilistic", [False, True], ids=["fuzzy", "possibilistic"])
cluster_counts = st.one_of(st.sampled_from([1, 200]), sizes)


def relative_error(m, dtype):
    """Of a membership from exact distances: the quotient's rounding to the power 1/(m-1), and the power's own."""
    return (4 / (m - 1) + 300) * eps(dtype)


def expected_memberships(D, m, nu):
    return reference.fuzzy_memberships(D, m) if nu is None else reference.typicalities(D, nu.astype(np.float64), m)


def compare(actual, X, D, m, nu, weights, dtype):
    """Everything a step returns, from exact distances."""
    U = expected_memberships(D, m, nu)
    tolerance = relative_error(m, dtype)
    np.testing.assert_allclose(actual.memberships, U, rtol=tolerance, atol=1e-30)
    assert np.array_equal(actual.labels, actual.memberships.argmax(axis=1))
    expected = reference.soft_objective(D, U, m, weights, nu)
    rounded = 0.0 if nu is None else float(nu.sum()) * (len(D) if weights is None else float(weights.sum()))
    assert actual.objective == pytest.approx(expected, rel=(m + 1) * tolerance, abs=m * tolerance * rounded)
    sums, totals = reference.soft_sums(X.astype(np.float64), U, m, weights)
    sizes, _ = reference.soft_sums(np.abs(X).astype(np.float64), U, m, weights)
    np.testing.assert_allclose(actual.totals, totals, rtol=(m + 1) * tolerance, atol=1e-30)
    np.testing.assert_array_equal(actual.own, D[np.arange(len(D)), actual.labels])
    given = np.ones(len(D)) if weights is None else weights
    np.testing.assert_allclose(actual.costs, given @ (U**m * D), rtol=(m + 2) * tolerance, atol=1e-30)
    highest = np.where(given[:, None] > 0, U, 0).max(axis=0, initial=0)
    np.testing.assert_allclose(actual.peaks, highest, rtol=tolerance, atol=1e-30)
    assert (np.abs(actual.sums - sums) <= (m + 1) * tolerance * sizes + 1e-30).all()


@rules
@fuzziness
@few
@given(
    n=sizes_or_none,
    k=cluster_counts,
    d=widths,
    seed=seeds,
    storage=storages,
    weighted=st.booleans(),
    residual=st.sampled_from([0, 3]),
)
def test_step(dtype, possibilistic, m, n, k, d, seed, storage, weighted, residual):
    """Small integers: distances are exact, and many are zero or equal."""
    rng = np.random.default_rng(seed)
    X, C = whole_numbers(rng, (n, d), dtype, 2), whole_numbers(rng, (k, d), dtype, 2)
    C[: min(n, k) // 2] = X[: min(n, k) // 2]
    nu = rng.integers(1, 2 * d + 2, k).astype(dtype) if possibilistic else None
    weights = rng.integers(0, 4, n).astype(dtype) if weighted else None
    actual = soft_step(core_rows(X, storage), C, m, nu=nu, weights=weights, residual=residual)
    compare(actual, X, reference.distances(X, C, residual=residual), m, nu, weights, dtype)


@rules
@pytest.mark.parametrize("m", [1.5, 2.0, 3.0])
@few
@given(n=sizes, k=sizes, d=widths, seed=seeds, storage=storages)
def test_real_numbers(dtype, possibilistic, m, n, k, d, seed, storage):
    rng = np.random.default_rng(seed)
    X, C = numbers(rng, (n, d), dtype), numbers(rng, (k, d), dtype) + 2
    nu = rng.uniform(1, 2 * d, k).astype(dtype) if possibilistic else None
    D = reference.distances(X, C)
    U = expected_memberships(D, m, nu)
    size = (X**2).sum(axis=1, dtype=np.float64)[:, None] + (C**2).sum(axis=1, dtype=np.float64)
    rounded = rounding(d, dtype) * size / D / (m - 1)  # of d^(1/(m-1)), relative
    bound = U * np.expm1(np.minimum(rounded + (U * rounded).sum(axis=1, keepdims=True), 50) + 100 * eps(dtype))
    actual = soft_step(core_rows(X, storage), C, m, nu=nu)
    assert (np.abs(actual.memberships - U) <= bound).all()


@rules
@fuzziness
@few
@given(n=sizes, k=cluster_counts, seed=seeds)
def test_memberships_in_and_out(dtype, possibilistic, m, n, k, seed):
    rng = np.random.default_rng(seed)
    rows, C = core_rows(numbers(rng, (n, 4), dtype)), numbers(rng, (k, 4), dtype)
    nu = rng.uniform(0.5, 5, k).astype(dtype) if possibilistic else None
    before = rng.random((n, k)).astype(dtype)
    first = soft_step(rows, C, m, nu=nu, memberships=before)
    assert first.change == np.abs(first.memberships - before).max()
    again = soft_step(rows, C, m, nu=nu, memberships=first.memberships)
    assert again.change == 0
    bare = soft_step(rows, C, m, nu=nu, keep=False)
    assert (bare.objective, bare.change) == (first.objective, 0)
    assert np.array_equal(bare.sums, first.sums)
    assert np.array_equal(bare.totals, first.totals)


@rules
@few
@given(n=sizes, k=sizes, d=widths, seed=seeds, storage=storages)
def test_slices(dtype, possibilistic, n, k, d, seed, storage):
    """Memberships to the bit; sums are added in float64 block by block, so they agree to rounding."""
    rng = np.random.default_rng(seed)
    rows, C = core_rows(numbers(rng, (n, d), dtype), storage), numbers(rng, (k, d), dtype)
    nu = rng.uniform(0.5, 2 * d, k).astype(dtype) if possibilistic else None
    whole, cut, sums = soft_step(rows, C, 1.7, nu=nu), rng.integers(0, n + 1), empty_sums(k, d)
    parts = [soft_step(part, C, 1.7, nu=nu, sums=sums) for part in (rows.slice(0, cut), rows.slice(cut, n))]
    for field in ("memberships", "labels"):
        assert np.array_equal(np.concatenate([getattr(part, field) for part in parts]), getattr(whole, field))
    tolerance = 200 * eps(dtype)
    assert sum(part.objective for part in parts) == pytest.approx(whole.objective, rel=1e-12)
    np.testing.assert_allclose(sums[0], whole.sums, rtol=tolerance, atol=tolerance * n)
    np.testing.assert_allclose(sums[1], whole.totals, rtol=1e-12)


@fuzziness
def test_a_point_on_a_centre_belongs_to_it_alone(dtype, m):
    X = np.array([[5.0, 0.0], [0.0, 0.0]], dtype=dtype)
    C = np.vstack([np.full((199, 2), 3.0), [[5.0, 0.0]]]).astype(dtype)
    memberships = soft_step(core_rows(X), C, m).memberships
    assert np.array_equal(memberships[0], [0] * 199 + [1])


@fuzziness
def test_centres_in_the_same_place_share(dtype, m):
    X, C = np.array([[1.0], [4.0]], dtype=dtype), np.array([[1.0], [2.0], [1.0]], dtype=dtype)
    memberships = soft_step(core_rows(X), C, m).memberships
    assert np.array_equal(memberships[0], [0.5, 0, 0.5])
    assert memberships[1, 0] == memberships[1, 2]


@fuzziness
def test_a_point_on_a_centre_is_fully_typical(dtype, m):
    X, C = np.array([[1.0], [2.0], [1e9]], dtype=dtype), np.array([[1.0]], dtype=dtype)
    typical = soft_step(core_rows(X), C, m, nu=np.array([1.0], dtype=dtype)).memberships.ravel()
    assert typical[0] == 1
    assert typical[1] == 0.5
    assert typical[2] == pytest.approx(1 / (1 + 10 ** min(18 / (m - 1), 300)), rel=1e-3, abs=1e-30)


@fuzziness
def test_a_cluster_without_width_is_its_centre(dtype, m):
    X, C = np.array([[1.0], [2.0], [1e9]], dtype=dtype), np.array([[1.0], [1.5]], dtype=dtype)
    result = soft_step(core_rows(X), C, m, nu=np.array([0, 0.25], dtype=dtype))
    assert np.array_equal(result.memberships[:, 0], [1, 0, 0])
    assert np.array_equal(result.memberships[:2, 1], [0.5, 0.5])
    assert result.totals[0] == 1
    assert np.isfinite(result.objective)


@rules
@fuzziness
def test_distances_of_all_sizes_give_no_nan(dtype, possibilistic, m):
    reach = np.finfo(dtype).maxexp // 2 - 2
    scale = (2.0 ** np.arange(-reach, reach)).astype(dtype)[:, None]
    nu = np.array([1, 1e-30, 1e30], dtype=dtype) if possibilistic else None
    result = soft_step(core_rows(scale), np.array([[0], [1e-3], [1e9]], dtype=dtype), m, nu=nu)
    assert np.isfinite(result.memberships).all()
    assert result.memberships.min() >= 0
    assert result.memberships.max() <= 1
    if not possibilistic:
        np.testing.assert_allclose(result.memberships.sum(axis=1), 1, rtol=4 * eps(dtype))


@few
@given(n=sizes, k=st.integers(2, 20), seed=seeds)
def test_fuzziness_near_one_is_the_nearest_centre(dtype, n, k, seed):
    rng = np.random.default_rng(seed)
    X, C = whole_numbers(rng, (n, 3), dtype), whole_numbers(rng, (k, 3), dtype) + dtype(0.25)
    D = reference.distances(X, C)
    nearest = D.min(axis=1, keepdims=True) == D
    expected = nearest / nearest.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(soft_step(core_rows(X), C, 1.0001).memberships, expected, atol=0.02)


@few
@given(n=sizes, k=cluster_counts, d=widths, seed=seeds, storage=storages)
def test_the_hard_rule_is_the_first_of_the_nearest(dtype, n, k, d, seed, storage):
    rng = np.random.default_rng(seed)
    X, C = whole_numbers(rng, (n, d), dtype, 2), whole_numbers(rng, (k, d), dtype, 2)
    weights = rng.integers(0, 4, n).astype(dtype)
    expected = reference.nearest_centers(X.astype(float), C.astype(float), weights=weights)
    actual = soft_step(core_rows(X, storage), C, 1.0, weights=weights)
    assert np.array_equal(actual.labels, expected.labels)
    assert np.array_equal(actual.memberships, expected.labels[:, None] == np.arange(k))
    np.testing.assert_allclose(actual.sums, expected.sums)
    assert np.array_equal(actual.totals, expected.totals)
    assert actual.objective == pytest.approx(expected.objective)


@rules
@fuzziness
@few
@given(n=sizes, k=cluster_counts, seed=seeds)
def test_the_change_without_memberships_is_the_change_with_them(dtype, possibilistic, m, n, k, seed):
    rng = np.random.default_rng(seed)
    rows, C = core_rows(numbers(rng, (n, 4), dtype)), numbers(rng, (k, 4), dtype)
    old = numbers(rng, (k, 4), dtype)
    nu = rng.uniform(0.5, 5, k).astype(dtype) if possibilistic else None
    before = soft_step(rows, old, m, nu=nu).memberships
    kept = soft_step(rows, C, m, nu=nu, memberships=before)
    bare = soft_step(rows, C, m, nu=nu, keep=False, old=(old, nu))
    assert bare.change == kept.change
    assert bare.objective == kept.objective


@pytest.mark.parametrize("m", [20.0, 60.0, 120.0])
def test_large_fuzziness_does_not_lose_the_weights(dtype, m):
    rng = np.random.default_rng(0)
    X, C = numbers(rng, (500, 3), dtype), numbers(rng, (40, 3), dtype)
    actual = soft_step(core_rows(X), C, m)
    U = reference.fuzzy_memberships(reference.distances(X.astype(float), C.astype(float)), m)
    sums, totals = reference.soft_sums(X.astype(float), U, m)
    assert (totals < 1e-25).all()  # lost in float32, if it were not for the scale
    np.testing.assert_allclose(actual.totals, totals, rtol=500 * m * eps(dtype))
    np.testing.assert_allclose(
        actual.sums / actual.totals[:, None], sums / totals[:, None], atol=500 * m * eps(dtype) * np.abs(X).max()
    )


def test_old_centres_come_whole(dtype):
    rows, C = core_rows(np.ones((3, 2), dtype)), np.ones((2, 2), dtype)
    nu = np.ones(2, dtype)
    with pytest.raises(ValueError, match="one rule"):
        soft_step(rows, C, 2.0, nu=nu, old=(C, None))
    with pytest.raises(ValueError, match="one rule"):
        soft_step(rows, C, 2.0, old=(C, nu))
    with pytest.raises(ValueError, match="shape"):
        soft_step(rows, C, 2.0, old=(np.ones((2, 3), dtype), None))
    with pytest.raises(ValueError, match="so large"):
        soft_step(rows, C, 1000.0)
