"""Tiles: whatever holds them, products with memberships and columns are those of the whole matrix."""

import dataclasses

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer import kernels
from mercer.engine.threads import Threads
from mercer.gram import Disk, DiskGram, MemoryGram, Moves, PrecomputedGram, RecomputedGram, block_size, memory_bytes
from mercer.gram.tiled import tournament

SIZES = [1, 7, 512, 513, 700, 2100]


def points(n, d=5, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def grams(X, kernel, pool):
    rows = kernel.rows(X)
    K = kernel(X)
    return {
        "memory": MemoryGram(kernel, rows, pool),
        "recompute": RecomputedGram(kernel, rows),
        "disk": DiskGram(kernel, rows, kernel.keys(X), Disk(), pool, row_cost=0.0),
        "disk, tiles only": DiskGram(kernel, rows, kernel.keys(X), Disk(), pool, row_cost=np.inf),
        "precomputed": PrecomputedGram(K, pool),
        "fortran": PrecomputedGram(np.asfortranarray(K), pool),
        "sparse": PrecomputedGram(sparse.csr_array(K), pool),
    }


def expected_sums(K, labels, weight, k):
    return (weight[:, None] * (labels[:, None] == np.arange(k))).T @ K


@given(st.integers(0, 40))
def test_every_pair_of_blocks_meets_once_and_rounds_are_disjoint(count):
    pairs = tournament(count)
    assert sorted(pairs) == [(i, j) for i in range(count) for j in range(i + 1)]
    size = count // 2
    rounds = pairs[count:]
    for start in range(0, len(rounds), size or 1):
        blocks = [block for pair in rounds[start : start + size] for block in pair]
        assert len(set(blocks)) == len(blocks)


@pytest.mark.parametrize("n", SIZES)
def test_memory_is_what_it_says(n):
    with Threads(1) as pool:
        gram = MemoryGram(kernels.Linear(), kernels.Linear().rows(points(n)), pool)
    held = sum(tile.nbytes for tile in gram._tiles.values())
    assert held == memory_bytes(n, 8) <= 8 * n * (n + block_size(n)) / 2


@pytest.mark.parametrize(
    "storage", ["memory", "recompute", "disk", "disk, tiles only", "precomputed", "fortran", "sparse"]
)
@pytest.mark.parametrize("kernel", [kernels.RBF(0.3), kernels.Laplacian(0.2), kernels.Polynomial(2)], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_sums_and_columns_are_those_of_the_whole_matrix(storage, kernel, n):
    X, rng, k = points(n), np.random.default_rng(1), 4
    K = reference.kernel(kernel.name, X, **dataclasses.asdict(kernel))
    weight = rng.integers(0, 3, n).astype(float)
    labels, later = (rng.integers(k, size=n).astype(np.int32) for _ in range(2))
    with Threads(2) as pool:
        gram = grams(X, kernel, pool)[storage]
        np.testing.assert_allclose(gram.diagonal, K.diagonal(), rtol=1e-12)
        some = rng.integers(n, size=3)
        np.testing.assert_allclose(gram.columns(some), K[:, some], rtol=1e-9, atol=1e-12)
        sums = np.zeros((k, n))
        gram.add(sums, Moves.between(None, labels, weight), pool)
        np.testing.assert_allclose(sums, expected_sums(K, labels, weight, k), rtol=1e-9, atol=1e-9)
        for share in (1.0, 0.3, 0.01):
            now = np.where(rng.random(n) < share, later, labels)
            gram.add(sums, Moves.between(labels, now, weight), pool)
            labels, later = now, rng.integers(k, size=n).astype(np.int32)
            np.testing.assert_allclose(sums, expected_sums(K, labels, weight, k), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads_and_any_storage(dtype):
    X, labels = points(2100, dtype=dtype), np.random.default_rng(2).integers(3, size=2100).astype(np.int32)
    kernel, weight, results = kernels.RBF(0.3), np.ones(2100), []
    for n_jobs in (1, 2, 4):
        with Threads(n_jobs) as pool:
            rows = kernel.rows(X)
            keys = kernel.keys(X)
            disks = [DiskGram(kernel, rows, keys, Disk(), pool, row_cost=cost) for cost in (0.0, np.inf)]
            for gram in (MemoryGram(kernel, rows, pool), RecomputedGram(kernel, rows), *disks):
                sums = np.zeros((3, 2100))
                gram.add(sums, Moves.between(None, labels, weight), pool)
                moved = np.where(np.arange(2100) % 50 == 0, 0, labels).astype(np.int32)
                gram.add(sums, Moves.between(labels, moved, weight), pool)
                results.append(sums)
    for sums in results[1:]:
        np.testing.assert_array_equal(sums, results[0])


def test_precomputed_refuses_what_is_not_a_kernel_matrix():
    K = kernels.RBF(0.5)(points(600))
    K[590, 3] += 0.1
    with Threads(1) as pool:
        with pytest.raises(ValueError, match=r"not symmetric.*0\.1.*rows 512 to 599|not symmetric.*0\.1"):
            PrecomputedGram(K, pool)
        with pytest.raises(ValueError, match=r"square.*\(600, 5\)"):
            PrecomputedGram(points(600), pool)


def test_rounding_in_a_given_matrix_is_no_asymmetry():
    X = points(900, 40, dtype=np.float32)
    K = X @ X.T
    K[3, 5] = np.nextafter(K[3, 5], np.float32(np.inf))
    with Threads(2) as pool:
        assert PrecomputedGram(K, pool).n == 900
