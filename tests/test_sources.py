"""Rows as the parts see them: hashes, distinct rows, the check for NaN."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import assert_all_finite

from mercer.engine.threads import Threads
from mercer.sources import content_hash, distinct_rows, require_finite


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_hashes_are_the_same_from_any_number_of_threads(form):
    X = np.random.default_rng(0).random((9000, 130), dtype=np.float32)  # more than one block
    X[X < 0.5] = 0
    with Threads(3) as pool:
        np.testing.assert_array_equal(content_hash(form(X), pool), content_hash(X.astype(np.float64)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(30, 4), (25_000, 120)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_in_the_words_of_scikit_learn(form, shape, value):
    X = np.ones(shape, dtype=np.float32)
    require_finite(form(X), 2, "Some")
    X[-3, -1] = value
    with pytest.raises(ValueError, match="contains") as ours:
        require_finite(form(X), 2, "Some")
    with pytest.raises(ValueError, match="contains") as theirs:
        assert_all_finite(X, estimator_name="Some", input_name="X")
    assert str(ours.value) == str(theirs.value)


def test_large_finite_values_are_no_infinity():
    X = np.full((25_000, 120), 3e38, dtype=np.float32)  # whose sum overflows
    require_finite(X, 2, "Some")


@pytest.mark.parametrize("at_most", [1, 7, 300, 1000, None])
def test_distinct_rows_are_the_lowest_hashes_with_all_their_copies(at_most):
    rng = np.random.default_rng(1)
    kinds = rng.integers(2**63, size=400).astype(np.uint64)
    keys, weight = kinds[rng.integers(400, size=3000)], rng.integers(0, 3, 3000).astype(float)
    rows, total = distinct_rows(keys, weight, at_most)
    expected = np.unique(keys[weight > 0])[:at_most]
    np.testing.assert_array_equal(keys[rows], expected)
    np.testing.assert_array_equal(total, [weight[keys == key].sum() for key in expected])
