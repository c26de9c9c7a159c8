"""From what a user has (a path, a frame, a table, a chunked array) to a source of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.engine.threads import Threads, blocks
from mercer.sources.files import NpySource, ParquetSource, TableSource, ZarrSource, as_float, read_csv
from mercer.sources.source import GroupedSource, Source, SourceError

_BLOCK_VALUES = 1 << 20
_SCALES = (None, "minmax", "standard")


def scan(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    dtype: DTypeLike | None = None,
    scale: str | None = None,
    missing: str = "refuse",
    n_jobs: int | None = None,
) -> Source:
    """Rows from a file, a folder, a frame or a chunked array, read when they are needed.

    Parameters
    ----------
    data : path, sequence of paths, array, data frame, Arrow table, Zarr array, Dask array or data frame
        A path may be a ``.npy`` file, a Parquet file or a folder of them, a Zarr array, or a CSV file (which is read
        into memory).
    columns : sequence of str, optional
        Of a table; all if not given.
    filter : pyarrow.dataset.Expression, optional
        Rows of Parquet files to read.
    dtype : {"float32", "float64"}, optional
        That of the data if not given; anything but float32 is float64.
    scale : {"minmax", "standard"}, optional
        Columns to [0, 1], or to mean 0 and standard deviation 1, as they are read. Takes one pass to begin with.
    missing : {"refuse", "drop"}, default="refuse"
        What to do about rows with missing values: nothing, so that a fit refuses them with the row and the column, or
        leave them out. The latter takes one pass to begin with; `dropped` of the source says how many.
    n_jobs : int, optional
        Threads for these passes.

    Returns
    -------
    source : Source
        Goes where an array goes: ``KernelKMeans(...).fit(source)``.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from mercer import KernelKMeans, scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.random.default_rng(0).normal(size=(2000, 3)))
    ...     source = scan(f"{folder}/rows.npy", scale="standard")
    ...     model = KernelKMeans(4, random_state=0).fit(source)
    >>> model.labels_.shape
    (2000,)
    """
    if scale not in _SCALES:
        raise ValueError(f"scale={scale!r} is not known; choose from {', '.join(map(repr, _SCALES))}")
    if missing not in ("refuse", "drop"):
        raise ValueError(f"missing={missing!r} is not known; choose from 'refuse', 'drop'")
    source = open_source(data, columns, filter)
    if dtype is not None:
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is not known; choose from 'float32', 'float64'")
        source = source.astype(dtype)
    with Threads(n_jobs) as pool:
        if missing == "drop":
            source = CompleteRows(source, pool)
        if scale is not None:
            source = ScaledSource(source, scale, pool)
    return source


def open_source(data: Any, columns: Sequence[str] | None = None, filter: Any = None) -> Source:
    """Find the source for what a user has."""
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    if filter is not None and not isinstance(data, (str, os.PathLike, list, tuple)):
        raise ValueError("filter is for Parquet files")
    if isinstance(data, (str, os.PathLike)):
        return _open_path(os.fspath(data), columns, filter)
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, os.PathLike)) for path in data):
        return ParquetSource(data, columns, filter)
    if kind == "pyarrow.Table":
        return TableSource(data if columns is None else data.select(list(columns)))
    if kind in ("pandas.DataFrame", "polars.DataFrame"):
        return _of_frame(data if columns is None else data[list(columns)])
    if columns is not None and not kind.startswith("dask"):
        raise ValueError("columns are chosen from tables; this data has no column names")
    if isinstance(data, Source):
        return data
    if kind == "zarr.Array":
        return ZarrSource(data)
    if kind.startswith("dask") and hasattr(data, "partitions") and hasattr(data, "map_partitions"):
        return PartitionedSource.of_frame(data if columns is None else data[list(columns)])
    if kind == "dask.Array":
        return PartitionedSource.of_array(data)
    return ArraySource(data)


def _open_path(path: str, columns: Sequence[str] | None, filter: Any) -> Source:
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    ending = os.path.splitext(path.rstrip("/"))[1].lower()
    zarr_folder = os.path.isdir(path) and any(os.path.exists(os.path.join(path, f)) for f in ("zarr.json", ".zarray"))
    if ending == ".npy" or zarr_folder:
        if columns is not None or filter is not None:
            raise ValueError(f"{path} has no column names: columns and filter are for tables")
        return NpySource(path) if ending == ".npy" else _open_zarr(path)
    if ending in (".csv", ".tsv", ".txt"):
        return read_csv(path, columns)
    if ending in (".parquet", ".pq") or os.path.isdir(path):
        return ParquetSource([path], columns, filter)
    raise SourceError(
        f"{path} is of no kind that is known: .npy, .parquet, .csv, a Zarr array, a folder of Parquet files"
    )


def _open_zarr(path: str) -> ZarrSource:
    import zarr

    array = zarr.open(path, mode="r")
    if not hasattr(array, "chunks"):
        raise SourceError(f"{path} is a Zarr group: name one of its arrays, as in {path}/rows")
    return ZarrSource(array, path)


def _of_frame(frame: Any) -> Source:
    """An array of the frame's numbers; frames are in memory as it is."""
    values = frame.to_numpy()
    if values.dtype.kind not in "fiub":
        raise SourceError("the data frame has columns that are not numbers; choose columns")
    source = ArraySource(values)
    source.names = [str(name) for name in frame.columns]
    return source


class ArraySource(Source):
    """Rows of an array in memory, or of a memory map.

    Parameters
    ----------
    array : array of shape (n, d)
    """

    name = "array"

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        if self.array.ndim != 2:
            raise SourceError(f"an array of shape {self.array.shape} has no rows and columns")
        self.shape, self.dtype = (int(self.array.shape[0]), int(self.array.shape[1])), as_float(self.array.dtype)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows of the array."""
        return np.ascontiguousarray(self.array[start:stop], dtype=self.dtype)

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Rows of the array."""
        return np.ascontiguousarray(self.array[indices], dtype=self.dtype)


class PartitionedSource(GroupedSource):
    """Rows of a Dask array or data frame, a block at a time, for fits on this machine.

    Parameters
    ----------
    parts : sequence
        Lazy blocks of rows, each with a method ``compute``.
    counts : sequence of int
        Their rows.
    """

    def __init__(self, parts: Sequence[Any], counts: Sequence[int], columns: int, dtype: Any) -> None:
        super().__init__(counts)
        self.name, self.parts = "partitions", list(parts)
        self._finish(columns, as_float(dtype))

    @classmethod
    def of_array(cls, array: Any) -> PartitionedSource:
        """Blocks of rows of a Dask array of two dimensions."""
        if array.ndim != 2:
            raise SourceError(f"an array of shape {array.shape} has no rows and columns")
        array = array.rechunk({1: array.shape[1]})
        if any(np.isnan(array.chunks[0])):
            array = array.compute_chunk_sizes()
        parts = [array.blocks[number] for number in range(len(array.chunks[0]))]
        return cls(parts, array.chunks[0], int(array.shape[1]), array.dtype)

    @classmethod
    def of_frame(cls, frame: Any) -> PartitionedSource:
        """Partitions of a Dask data frame."""
        types = [np.dtype(kind) for kind in frame.dtypes]
        dtype = np.result_type(*types) if len({as_float(kind) for kind in types}) == 1 else np.dtype(np.float64)
        counts = frame.map_partitions(len).compute()
        parts = [frame.partitions[number] for number in range(frame.npartitions)]
        source = cls(parts, list(counts), len(frame.columns), dtype)
        source.names = [str(name) for name in frame.columns]
        return source

    def load(self, group: int) -> NDArray[Any]:
        """Compute a block."""
        return np.asarray(self.parts[group].compute(scheduler="synchronous"))


# ---- rows changed as they are read ----------------------------------------------------------------------------------


class CompleteRows(Source):
    """The rows without missing values.

    Attributes
    ----------
    dropped : int
        How many rows have some.
    """

    def __init__(self, source: Source, pool: Threads) -> None:
        self.source, self.name, self.names = source, source.name, source.names
        self.dtype, self.working_bytes = source.dtype, source.working_bytes
        kept = pool.map(lambda part: ~np.isnan(source[part]).any(axis=1), row_blocks(source))
        self.kept = np.flatnonzero(np.concatenate(kept)) if kept else np.empty(0, np.intp)
        self.dropped = source.shape[0] - len(self.kept)
        self.shape = (len(self.kept), source.shape[1])

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the rows around, and leave some out."""
        rows = self.kept[start:stop]
        if not len(rows):
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        around = self.source.read(int(rows[0]), int(rows[-1]) + 1)
        return np.ascontiguousarray(around[rows - rows[0]])

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Take rows where they are."""
        return self.source.take(self.kept[indices])


class ScaledSource(Source):
    """Columns shifted and scaled, by their range or their standard deviation.

    Attributes
    ----------
    shift, factor : array of shape (d,)
        A row x is read as (x - shift) * factor.
    """

    def __init__(self, source: Source, scale: str, pool: Threads) -> None:
        self.source, self.name, self.names = source, source.name, source.names
        self.shape, self.dtype, self.working_bytes = source.shape, source.dtype, source.working_bytes

        def facts(part: slice) -> tuple[NDArray[Any], ...]:
            rows = source[part].astype(np.float64)
            mean = rows.mean(axis=0)
            return rows.min(axis=0), rows.max(axis=0), mean, ((rows - mean) ** 2).sum(axis=0)

        parts = row_blocks(source)
        low, high, means, spread = (np.array(found) for found in zip(*pool.map(facts, parts), strict=True))
        counts = np.array([part.stop - part.start for part in parts], dtype=np.float64)[:, None]
        self.shift, size = low.min(axis=0), high.max(axis=0) - low.min(axis=0)
        if scale == "standard":
            self.shift = (counts * means).sum(axis=0) / counts.sum()
            size = np.sqrt((spread + counts * (means - self.shift) ** 2).sum(axis=0) / counts.sum())
        self.factor = np.divide(1.0, size, out=np.ones_like(size), where=size > 0)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read and scale."""
        return self._scaled(self.source.read(start, stop))

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Take and scale."""
        return self._scaled(self.source.take(indices))

    def _scaled(self, rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((rows - self.shift) * self.factor, dtype=self.dtype)


def in_memory(X: Any) -> Iterator[Any]:
    """Blocks of rows of a source, one after the other; other rows as they are."""
    if isinstance(X, Source):
        yield from (X[part] for part in row_blocks(X))
    else:
        yield X


def row_blocks(source: Any) -> list[slice]:
    """Blocks of rows of a size that suits a pass."""
    return blocks(source.shape[0], max(1, _BLOCK_VALUES // max(1, source.shape[1])))
