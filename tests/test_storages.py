"""Same start, same labels, wherever the kernel matrix is."""

import numpy as np
import pytest
from scipy import sparse

from mercer import Disk, KernelKMeans, kernels
from mercer.gram import DiskGram, RecomputedGram


def city_block(A, B):
    A, B = (np.asarray(M.todense()) if sparse.issparse(M) else M for M in (A, B))
    return 1.0 / (1.0 + abs(A[:, None, :] - B[None, :, :]).sum(axis=2))


KERNELS = {
    "rbf": kernels.RBF(0.15),
    "laplacian": kernels.Laplacian(0.2),
    "polynomial": kernels.Polynomial(2, gamma=0.1),
    "function": kernels.Function(city_block),
}


def rows(n=1700, dtype=np.float32):
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(c, 1.4, size=(n // 4, 5)) for c in (0, 1.5, 3, 4.5)])
    return np.where(abs(X) > 0.8, X, 0).astype(dtype)


def given(X, kernel, how, folder):
    """The kernel matrix, made by the user."""
    K = kernel(X)
    K = (K + K.T) / 2
    if how == "sparse":
        return sparse.csr_array(K)
    np.save(folder / "K.npy", K)
    return np.load(folder / "K.npy", mmap_mode="r") if how == "memory-mapped" else K


STORAGES = ["memory", "disk", "disk, tiles only", "recompute", "array", "memory-mapped", "sparse"]


def fit(storage, X, kernel, folder, monkeypatch, **more):
    settings = {"init": np.random.default_rng(7).integers(6, size=X.shape[0]), "tol": 0, "n_clusters": 6} | more
    weight = np.random.default_rng(8).integers(0, 4, X.shape[0])
    if storage in ("array", "memory-mapped", "sparse"):
        K = given(X, kernel, storage, folder)
        return KernelKMeans(kernel="precomputed", **settings).fit(K, sample_weight=weight)
    if storage == "disk, tiles only":
        monkeypatch.setattr(DiskGram, "_rows_are_cheaper", lambda self, moves: False)
        storage = Disk(folder / "tiles")
    return KernelKMeans(kernel=kernel, storage=storage, **settings).fit(X, sample_weight=weight)


@pytest.mark.parametrize("kind", ["dense", "sparse rows"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_are_the_same_from_every_storage(tmp_path, monkeypatch, name, kind, dtype):
    X = rows(dtype=dtype) if name != "function" else rows(600, dtype)
    X = sparse.csr_array(X) if kind == "sparse rows" else X
    models = {storage: fit(storage, X, KERNELS[name], tmp_path, monkeypatch) for storage in STORAGES}
    first = models["memory"]
    assert first.n_iter_ > 4
    for storage, model in models.items():
        np.testing.assert_array_equal(model.labels_, first.labels_, err_msg=storage)
        assert model.inertia_ == pytest.approx(first.inertia_, rel=1e-6), storage
        assert [record.moved for record in model.history_] == [record.moved for record in first.history_], storage
    assert models["disk"].plan_.storage == "disk"
    assert models["disk"].plan_.disk_bytes > X.shape[0] ** 2 / 2 * X.dtype.itemsize
    bits = {storage: [record.objective for record in model.history_] for storage, model in models.items()}
    assert bits["disk"] == bits["disk, tiles only"]
    if name == "rbf":  # others have k(x, x) from tiles or exact, or differ in the last bit between k(x, z) and k(z, x)
        assert bits["disk"] == bits["recompute"] == bits["memory"]


@pytest.mark.parametrize("storage", ["disk", "recompute"])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_bits_for_any_number_of_threads(tmp_path, monkeypatch, storage, n_jobs):
    X = rows()
    one, many = (
        fit(storage, X, KERNELS["rbf"], tmp_path, monkeypatch, n_jobs=jobs, init="random", n_init=2, random_state=0)
        for jobs in (1, n_jobs)
    )
    np.testing.assert_array_equal(one.labels_, many.labels_)
    assert one.inertia_ == many.inertia_
    assert [record.objective for record in one.history_] == [record.objective for record in many.history_]


# ---- work goes with the points that moved ---------------------------------------------------------------------------


def test_a_pass_reads_each_tile_once_and_later_ones_those_of_moved_points(monkeypatch):
    monkeypatch.setattr(DiskGram, "_rows_are_cheaper", lambda self, moves: False)
    passes, tile, add = [], DiskGram.tile, DiskGram.add

    def counted(self, sums, moves, pool):
        passes.append((sorted({int(at) // 256 for at in moves.position}), []))
        add(self, sums, moves, pool)

    def read(self, i, j):
        if passes:
            passes[-1][1].append((i, j))
        return tile(self, i, j)

    monkeypatch.setattr(DiskGram, "add", counted)
    monkeypatch.setattr(DiskGram, "tile", read)
    X = rows()
    fit("disk", X[np.argsort(X[:, 0])], KERNELS["rbf"], None, monkeypatch)
    everything = [(i, j) for i in range(7) for j in range(i + 1)]
    assert sorted(passes[0][1]) == everything
    for touched, read in passes:
        assert sorted(read) == [(i, j) for i, j in everything if i in touched or j in touched]
    assert any(len(read) < len(everything) for _, read in passes)


@pytest.mark.parametrize("storage", ["disk", "recompute"])
def test_few_moved_points_cost_few_kernel_values(monkeypatch, storage):
    values, block = [], kernels.RBF.block

    def counted(self, rows, panels, out):
        values.append(out.size)
        block(self, rows, panels, out)

    X = rows()
    moved = fit(storage, X, KERNELS["rbf"], None, monkeypatch).history_
    monkeypatch.setattr(kernels.RBF, "block", counted)
    monkeypatch.setattr(DiskGram, "_rows_are_cheaper", RecomputedGram._rows_are_cheaper)
    fit(storage, X, KERNELS["rbf"], None, monkeypatch, n_jobs=1)
    n = len(X)
    half = n * (n + 256) / 2
    later = sum(min(half, record.moved * n) for record in moved)
    assert sum(values) <= half + later + 17 * n  # the first pass, moved rows, and a look at some columns
