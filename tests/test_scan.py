"""Sources: the same rows from wherever they are, and the same labels."""

import pickle
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupt import interrupt_after
from memory import peak_bytes

import mercer
from mercer import KernelFuzzyCMeans, KernelKMeans, KernelPossibilisticCMeans, scan
from mercer.engine.threads import Threads
from mercer.estimators import base, lazy
from mercer.features import Nystroem
from mercer.kernels import RBF
from mercer.solvers.coordinates import coordinates
from mercer.sources import Sample, Source, SourceError, content_hash, files
from mercer.sources.scan import ArraySource

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr")
polars = pytest.importorskip("polars")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

COLUMNS = ["a", "b", "c", "d"]


def rows(n=3000, dtype=np.float32):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(3 * c, 1.0, size=(n // 5, 4)) for c in range(5)]).astype(dtype)


def table(X, names=COLUMNS):
    return pa.table({name: X[:, i] for i, name in enumerate(names)})


def write_parquet(X, path, names=COLUMNS, group=700):
    pq.write_table(table(X, names), path, row_group_size=group)
    return path


def several_files(X, folder):
    folder.mkdir()
    for number, part in enumerate(np.array_split(X, 3)):
        write_parquet(part, folder / f"part-{number}.parquet", group=400)
    write_parquet(X[:0], folder / "part-9-empty.parquet")
    return folder


def npy(X, path):
    np.save(path, X)
    return path


def zarr_array(X, path):
    array = zarr.create_array(store=str(path), shape=X.shape, chunks=(333, 3), dtype=X.dtype)
    array[:] = X
    return path


KINDS = {
    "array": lambda X, folder: X,
    "memory map": lambda X, folder: np.load(npy(X, folder / "X.npy"), mmap_mode="r"),
    "npy": lambda X, folder: scan(npy(X, folder / "X.npy")),
    "path": lambda X, folder: str(npy(X, folder / "X.npy")),
    "Parquet file": lambda X, folder: scan(write_parquet(X, folder / "X.parquet")),
    "Parquet folder": lambda X, folder: scan(several_files(X, folder / "parts")),
    "Parquet files": lambda X, folder: scan(sorted(several_files(X, folder / "parts").iterdir())),
    "Arrow table": lambda X, folder: table(X),
    "pandas": lambda X, folder: pd.DataFrame(X, columns=COLUMNS),
    "pandas, scanned": lambda X, folder: scan(pd.DataFrame(X, columns=COLUMNS)),
    "polars, scanned": lambda X, folder: scan(polars.from_numpy(X, schema=COLUMNS)),
    "Zarr": lambda X, folder: scan(zarr_array(X, folder / "X.zarr")),
    "Zarr array": lambda X, folder: zarr.open(zarr_array(X, folder / "X.zarr"), mode="r"),
    "Dask array": lambda X, folder: da.from_array(X, chunks=(700, 3)),
    "Dask frame": lambda X, folder: dd.from_pandas(pd.DataFrame(X, columns=COLUMNS), npartitions=4),
    "array, scanned": lambda X, folder: scan(X),
    "Fortran order": lambda X, folder: scan(np.asfortranarray(X)),
}
SCANNED = [kind for kind in KINDS if kind not in ("array", "memory map", "pandas", "path")]


@pytest.fixture
def streamed(monkeypatch):
    """Rows are never read into memory as a whole because they are few."""
    monkeypatch.setattr(lazy, "_SMALL", 10**9)


def as_source(data):
    return data if isinstance(data, Source) else scan(data)


@pytest.mark.parametrize("kind", SCANNED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_source_is_its_rows(tmp_path, kind, dtype, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK_BYTES", 20_000)
    X = rows(dtype=dtype)
    source = as_source(KINDS[kind](X, tmp_path))
    assert source.shape == X.shape == (len(source), 4)
    assert source.dtype == dtype
    assert repr(source).endswith(f"3,000 x 4 {np.dtype(dtype)}>")
    for begin, end in ((0, 3000), (0, 1), (2999, 3000), (650, 1450), (5, 5), (699, 701)):
        part = source[begin:end]
        assert part.flags.c_contiguous
        assert part.dtype == dtype
        np.testing.assert_array_equal(part, X[begin:end])
    for chosen in ([0], [2999, 0, 700, 699, 700], np.arange(0, 3000, 7), [-1, -3000], []):
        np.testing.assert_array_equal(source[np.array(chosen, dtype=int)], X[np.array(chosen, dtype=int)])
    np.testing.assert_array_equal(source[X[:, 0] > 3], X[X[:, 0] > 3])
    np.testing.assert_array_equal(source.astype(np.float64)[3:9], X[3:9].astype(np.float64))
    with pytest.raises(IndexError, match="steps of one"):
        source[::2]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.data())
def test_any_rows_of_groups_of_any_size(counts, data):
    X = np.arange(2.0 * sum(counts)).reshape(-1, 2)
    with tempfile.TemporaryDirectory() as folder:
        begin = 0
        for number, count in enumerate(counts):
            write_parquet(X[begin : begin + count], Path(folder) / f"{number}.parquet", "xy", group=3)
            begin += count
        source = scan(folder)
        start = data.draw(st.integers(0, len(X)))
        stop = data.draw(st.integers(start, len(X)))
        np.testing.assert_array_equal(source[start:stop], X[start:stop])
        if len(X):
            chosen = data.draw(st.lists(st.integers(0, len(X) - 1), max_size=9))
            np.testing.assert_array_equal(source[np.array(chosen, dtype=int)], X[np.array(chosen, dtype=int)])


@pytest.mark.parametrize("kind", ["npy", "Parquet file", "Zarr"])
def test_threads_read_what_one_thread_reads(tmp_path, kind):
    X = rows()
    source = as_source(KINDS[kind](X, tmp_path))
    with Threads(4) as pool:
        found = pool.map(lambda at: source[at : at + 50], [at * 37 % 2950 for at in range(200)])
    for number, part in enumerate(found):
        np.testing.assert_array_equal(part, X[number * 37 % 2950 :][:50])


def test_a_row_group_is_read_once_by_a_pass(tmp_path, monkeypatch):
    loaded = []
    original = files.ParquetSource.load
    monkeypatch.setattr(files.ParquetSource, "load", lambda self, g: (loaded.append(g), original(self, g))[1])
    source = scan(write_parquet(rows(), tmp_path / "X.parquet", group=1000))
    for begin in range(0, 3000, 100):
        source[begin : begin + 100]
    assert loaded == [0, 1, 2]


# ---- the same labels -------------------------------------------------------------------------------------------------

METHODS = ["exact", "nystroem", "fourier", "taylor", "sketch", "apnc"]


def labels(X, method, **more):
    return KernelKMeans(5, gamma=0.1, method=method, random_state=0, **more).fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_labels_are_the_same_from_every_source(tmp_path, streamed, method):
    X = rows()
    expected = labels(X, method)
    for kind, make in KINDS.items():
        (tmp_path / kind).mkdir()
        model = labels(make(X, tmp_path / kind), method)
        np.testing.assert_array_equal(model.labels_, expected.labels_, err_msg=kind)
        assert model.inertia_ == expected.inertia_, kind
        np.testing.assert_array_equal(model.medoid_indices_, expected.medoid_indices_)


FITS = {
    "hard": lambda: KernelKMeans(5, gamma=0.1, method="nystroem", random_state=0),
    "random starts": lambda: KernelKMeans(
        5, gamma=0.1, method="nystroem", init="random", n_init=2, tol=0, random_state=0
    ),
    "apnc": lambda: KernelKMeans(5, gamma=0.1, method="apnc", random_state=0),
    "fuzzy": lambda: KernelFuzzyCMeans(5, gamma=0.1, method="nystroem", m=1.3, random_state=0),
    "fuzzy, not kept": lambda: KernelFuzzyCMeans(
        5, gamma=0.1, method="nystroem", m=1.3, keep_memberships=False, random_state=0
    ),
    "possibilistic": lambda: KernelPossibilisticCMeans(
        5, gamma=0.1, method="fourier", m=1.3, init="points", random_state=0
    ),
}


@pytest.mark.parametrize("where", ["memory", "disk", "recompute"])
@pytest.mark.parametrize("name", FITS)
def test_labels_are_the_same_wherever_the_coordinates_are(tmp_path, streamed, monkeypatch, where, name):
    X, weight = rows(), np.random.default_rng(1).integers(0, 3, 3000)
    expected = FITS[name]().fit(X, sample_weight=weight)
    if where != "memory":
        plan = base.plan_embedded
        monkeypatch.setattr(
            base, "plan_embedded", lambda *a, **o: replace(plan(*a, **o), storage=f"embedding, {where}")
        )
    source = scan(npy(X, tmp_path / "X.npy"))
    model = FITS[name]().fit(source, sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert model.n_iter_ == expected.n_iter_
    np.testing.assert_array_equal(model.predict(source), expected.predict(X))
    assert model.score(source) == pytest.approx(expected.score(X))
    np.testing.assert_allclose(model.transform(source), expected.transform(X), atol=1e-5)


@pytest.mark.parametrize(("room", "storage"), [(True, "embedding, disk"), (False, "embedding, recompute")])
def test_coordinates_that_do_not_fit_are_elsewhere(tmp_path, monkeypatch, room, storage):
    from mercer.planner import embedded

    monkeypatch.setattr(embedded, "lies_in_memory", lambda place: not room)
    X = rows(100_000)
    source = scan(npy(X, tmp_path / "X.npy"))
    model = KernelKMeans(5, gamma=0.1, method=Nystroem(300), memory_limit="90MB", random_state=0).fit(source)
    assert model.plan_.storage == storage
    assert "the coordinates take 120 MB" in str(model.plan_)
    expected = KernelKMeans(5, gamma=0.1, method=Nystroem(300), random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert peak_bytes(model.fit, source) < 90e6
    with pytest.raises(MemoryError, match=r"does not fit in 30.0 MB"):
        model.set_params(memory_limit="30MB").fit(source)


def test_the_exact_method_reads_rows_into_memory_or_says_that_they_do_not_fit(tmp_path, streamed):
    X = rows()
    source = scan(npy(X, tmp_path / "X.npy"))
    np.testing.assert_array_equal(labels(source, "exact").labels_, labels(X, "exact").labels_)
    with pytest.raises(MemoryError, match=r"exact method needs all rows in memory: 48.0 kB of .*X\.npy.*nystroem"):
        labels(source, "exact", memory_limit=50_000)


def test_batches_of_a_stream_may_be_sources(tmp_path, streamed):
    X = rows()
    models = [KernelKMeans(5, gamma=0.1, random_state=0) for _ in range(2)]
    for part in np.array_split(X, 3):
        models[0].partial_fit(part)
        models[1].partial_fit(scan(npy(part, tmp_path / "X.npy")))
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)


def test_a_checkpoint_goes_on_from_a_source(tmp_path, streamed, monkeypatch):
    X = rows()
    source = scan(npy(X, tmp_path / "X.npy"))
    more = {"init": "random", "n_init": 2, "tol": 0, "checkpoint": tmp_path / "state"}
    with monkeypatch.context() as patch:
        interrupt_after(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            labels(source, "nystroem", **more)
    model = labels(X, "nystroem", **more)  # the same rows, from an array
    np.testing.assert_array_equal(model.labels_, labels(X, "nystroem", **more | {"checkpoint": None}).labels_)


# ---- columns, filters, scales, missing values ------------------------------------------------------------------------


def test_columns_are_chosen_and_ordered(tmp_path):
    X = rows()
    for data in (write_parquet(X, tmp_path / "X.parquet"), table(X), pd.DataFrame(X, columns=COLUMNS)):
        source = scan(data, columns=["c", "a"])
        assert source.names == ["c", "a"]
        np.testing.assert_array_equal(source[:], X[:, [2, 0]])
    pd.DataFrame(X, columns=COLUMNS).to_csv(tmp_path / "X.csv", index=False)
    np.testing.assert_allclose(scan(tmp_path / "X.csv", columns=["b"])[:], X[:, [1]], rtol=1e-6)
    with pytest.raises(ValueError, match="no column names"):
        scan(npy(X, tmp_path / "X.npy"), columns=["a"])


def test_rows_are_filtered_as_they_are_read(tmp_path):
    import pyarrow.dataset as ds

    X = rows()
    source = scan(write_parquet(X, tmp_path / "X.parquet"), filter=ds.field("a") > 3)
    np.testing.assert_array_equal(source[:], X[X[:, 0] > 3])
    chosen = scan(tmp_path / "X.parquet", filter=ds.field("a") > 3, columns=["b"])
    np.testing.assert_array_equal(chosen[:], X[X[:, 0] > 3][:, [1]])


@pytest.mark.parametrize("kind", ["npy", "Parquet file"])
def test_scales_are_those_of_scikit_learn(tmp_path, kind):
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X = rows(dtype=np.float64)
    X[:, 2] = 7.0
    made = KINDS[kind](X, tmp_path)
    np.testing.assert_allclose(scan(made, scale="minmax")[:], MinMaxScaler().fit_transform(X), atol=1e-12)
    scaled = scan(made, scale="standard", dtype="float32")
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled[:], StandardScaler().fit_transform(X), atol=1e-5)
    np.testing.assert_array_equal(scaled[[5, 3]], scaled[:][[5, 3]])


def test_rows_with_missing_values_are_refused_with_their_place_or_left_out(tmp_path, streamed):
    X = rows()
    X[1234, 2] = np.nan
    X[17] = np.nan
    for made in (scan(npy(X, tmp_path / "X.npy")), scan(write_parquet(X, tmp_path / "X.parquet"))):
        column = "column 0" if made.names is None else "column 'a'"
        with pytest.raises(
            SourceError, match=rf"X\.\w+ has NaN \(a missing value\) in row 17, {column}.*missing='drop'"
        ):
            labels(made, "nystroem")
        complete = scan(made, missing="drop")
        assert complete.dropped == 2
        kept = X[~np.isnan(X).any(axis=1)]
        np.testing.assert_array_equal(complete[:], kept)
        np.testing.assert_array_equal(complete[[0, 1300, 17]], kept[[0, 1300, 17]])
        np.testing.assert_array_equal(complete[15:20], kept[15:20])
        np.testing.assert_array_equal(labels(complete, "nystroem").labels_, labels(kept, "nystroem").labels_)
    X[17], X[1234, 2] = 0, np.inf
    with pytest.raises(SourceError, match="infinity in row 1,234, column 2"):
        labels(scan(npy(X, tmp_path / "X.npy")), "nystroem")


def test_integers_and_booleans_become_float64(tmp_path):
    X = rows().astype(np.int16)
    assert scan(npy(X, tmp_path / "X.npy")).dtype == np.float64
    np.testing.assert_array_equal(scan(tmp_path / "X.npy")[:], X)
    mixed = pa.table({"a": X[:, 0], "b": X[:, 1] > 0, "c": X[:, 2].astype(np.float32)})
    pq.write_table(mixed, tmp_path / "X.parquet")
    source = scan(tmp_path / "X.parquet")
    np.testing.assert_array_equal(source[:], np.column_stack([X[:, 0], X[:, 1] > 0, X[:, 2]]))


def test_missing_integers_are_missing(tmp_path):
    pq.write_table(pa.table({"a": [1, None, 3], "b": [1.0, 2.0, 3.0]}), tmp_path / "X.parquet")
    np.testing.assert_array_equal(scan(tmp_path / "X.parquet")[:], [[1, 1], [np.nan, 2], [3, 3]])


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def truncated(path, left):
    data = path.read_bytes()
    path.write_bytes(data[:left])
    return path


def test_truncated_files_are_named(tmp_path):
    X = rows()
    with pytest.raises(SourceError, match=r"X\.npy is cut off: 1,000 bytes in place of 48,128"):
        scan(truncated(npy(X, tmp_path / "X.npy"), 1000))
    with pytest.raises(SourceError, match=r"X\.parquet cannot be read as Parquet"):
        scan(truncated(write_parquet(X, tmp_path / "X.parquet"), 5000))
    (tmp_path / "Y.npy").write_bytes(b"hello, world")
    with pytest.raises(SourceError, match=r"Y\.npy is not a \.npy file"):
        scan(tmp_path / "Y.npy")


def test_a_damaged_row_group_is_named(tmp_path, streamed):
    X = rows()
    path = tmp_path / "X.parquet"
    pq.write_table(table(X), path, row_group_size=700, compression="zstd", use_dictionary=False)
    source, data = scan(path), bytearray(path.read_bytes())
    data[20:2000] = bytes(1980)
    path.write_bytes(data)
    source.stamps[0] = files.Stamp(path)
    with pytest.raises(SourceError, match=r"X\.parquet cannot be read"):
        labels(source, "nystroem")


@pytest.mark.parametrize("kind", ["npy", "Parquet file"])
def test_a_file_that_changes_during_the_fit_is_named(tmp_path, streamed, monkeypatch, kind):
    X = rows()
    source = KINDS[kind](X, tmp_path)
    path, learn = Path(source.name), Nystroem.learn

    def changed(self, *arguments):
        learn(self, *arguments)
        KINDS[kind](X + 1, tmp_path)

    monkeypatch.setattr(Nystroem, "learn", changed)
    monkeypatch.setattr(source, "kept", 0, raising=False)
    with pytest.raises(SourceError, match=rf"{path.name} has changed since it was opened"):
        labels(source, "nystroem")
    path.unlink()
    with pytest.raises(SourceError, match=rf"{path.name} cannot be read any more"):
        source[0:10]


def test_files_of_a_folder_must_go_together(tmp_path):
    X = rows()
    write_parquet(X, tmp_path / "0.parquet")
    write_parquet(X[:, :3], tmp_path / "1.parquet", COLUMNS[:3])
    with pytest.raises(SourceError, match=r"1\.parquet has no column 'd'; it has 'a', 'b', 'c'"):
        scan(tmp_path)
    assert scan(tmp_path, columns=["a", "c"]).shape == (6000, 2)
    with pytest.raises(SourceError, match=r"0\.parquet has no column 'x'"):
        scan(tmp_path, columns=["x"])
    pq.write_table(pa.table({"a": ["text"], "b": [1], "c": [2], "d": [3]}), tmp_path / "1.parquet")
    with pytest.raises(SourceError, match=r"1\.parquet: column 'a' has values of type string, which are not numbers"):
        scan(tmp_path)


def test_types_that_differ_between_files_meet_in_float64(tmp_path):
    X = rows()
    write_parquet(X, tmp_path / "0.parquet")
    write_parquet(X.astype(np.int32), tmp_path / "1.parquet")
    source = scan(tmp_path)
    assert source.dtype == np.float64
    np.testing.assert_array_equal(source[:], np.concatenate([X, X.astype(np.int32)]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: scan(folder / "nowhere.npy"), "does not exist"),
        (lambda folder: scan(folder), "no \\*.parquet files"),
        (lambda folder: scan(__file__), "of no kind that is known"),
        (lambda folder: scan(npy(np.zeros(3), folder / "X.npy")), "shape \\(3,\\); rows and columns"),
        (lambda folder: scan(npy(np.array([["a"]]), folder / "X.npy")), "are not numbers"),
        (lambda folder: scan(npy(np.asfortranarray(rows()), folder / "X.npy")), "columns one after another"),
        (lambda folder: scan(np.zeros((3, 3, 3))), "no rows and columns"),
        (lambda folder: scan(rows(), scale="log"), "scale='log' is not known"),
        (lambda folder: scan(rows(), missing="guess"), "missing='guess' is not known"),
        (lambda folder: scan(rows(), dtype="int8"), "dtype='int8' is not known"),
        (lambda folder: scan(rows(), filter=1), "filter is for Parquet"),
        (lambda folder: scan(pd.DataFrame({"a": ["x"]})), "not numbers"),
        (lambda folder: labels(scan(np.zeros((0, 4))), "nystroem"), "has no rows"),
        (lambda folder: labels(scan(rows()), "nystroem", kernel="precomputed"), "not as a source"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, make, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        make(tmp_path)


def test_new_rows_must_have_the_columns_of_the_fit(tmp_path, streamed):
    X = rows()
    model = labels(scan(table(X)), "nystroem")
    assert list(model.feature_names_in_) == COLUMNS
    with pytest.raises(ValueError, match="X has 3 features, but KernelKMeans is expecting 4"):
        model.predict(scan(X[:, :3]))
    with pytest.raises(ValueError, match=r"columns of table are \['d'.*choose them by"):
        model.predict(scan(table(X, COLUMNS[::-1])))


# ---- small things ----------------------------------------------------------------------------------------------------


def test_sources_are_pickled_without_what_they_have_read(tmp_path):
    X = rows()
    source = scan(several_files(X, tmp_path / "parts"))
    source[0:100]
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again[:], X)
    assert not pickle.loads(pickle.dumps(source))._groups


def test_hashes_of_a_source_are_those_of_its_rows(tmp_path):
    X = rows()
    np.testing.assert_array_equal(content_hash(scan(npy(X, tmp_path / "X.npy"))), content_hash(X))


@pytest.mark.parametrize("where", ["disk", "recompute"])
def test_coordinates_elsewhere_are_those_in_memory(tmp_path, where):
    X, kernel = rows(), RBF(0.1)
    source = scan(npy(X, tmp_path / "X.npy"))
    feature_map = Nystroem(60, random_state=0)
    with Threads(2) as pool:
        feature_map.learn(Sample(X, np.ones(len(X)), kernel.keys(X)), kernel, pool)
        expected = coordinates(X, feature_map, "memory", pool)
        found = coordinates(source, feature_map, where, pool)
        np.testing.assert_array_equal(found[0][:], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_array_equal(found[0][[7, 2000]], expected[0][[7, 2000]])


def test_scan_is_at_the_top():
    assert mercer.scan is scan
    assert isinstance(scan(rows()), ArraySource)
