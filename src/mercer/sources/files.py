"""Sources in files: ``.npy``, Parquet, Zarr, CSV."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sources.source import GroupedSource, Source, SourceError

_CHUNK_BYTES = 32 << 20  # of rows that are read together where nothing else says how many


def as_float(dtype: Any) -> np.dtype[Any]:
    """Return the type that values of `dtype` are worked on in: float32 stays, all others become float64."""
    found = np.dtype(dtype)
    if found.kind not in "fiub":
        raise SourceError(f"values of type {found} are not numbers")
    return np.dtype(np.float32) if found == np.float32 else np.dtype(np.float64)


class Stamp:
    """What a file looked like when it was opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.seen = self._look()

    def _look(self) -> tuple[int, int]:
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns

    def check(self) -> None:
        """Refuse a file that is another one by now."""
        try:
            same = self._look() == self.seen
        except OSError as error:
            raise SourceError(f"{self.path} cannot be read any more: {error.strerror}") from error
        if not same:
            raise SourceError(f"{self.path} has changed since it was opened: scan it again")


class NpySource(Source):
    """An array of rows in a ``.npy`` file, read where it is and not mapped: memory is that of the rows asked for.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self.stamp = Stamp(path)
        with open(path, "rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, fortran, self._held = read(file)
            except ValueError as error:
                raise SourceError(f"{self.name} is not a .npy file: {error}") from error
            self._begin = file.tell()
        if len(shape) != 2:
            raise SourceError(f"{self.name} has an array of shape {shape}; rows and columns are needed")
        if fortran and min(shape) > 1:
            raise SourceError(f"{self.name} has its columns one after another: save it with np.ascontiguousarray")
        self.shape, self.dtype = (int(shape[0]), int(shape[1])), as_float(self._held)
        self._row = self.shape[1] * self._held.itemsize
        if (size := self.stamp.seen[0]) < self._begin + self.shape[0] * self._row:
            raise SourceError(
                f"{self.name} is cut off: {size:,} bytes in place of {self._begin + self.shape[0] * self._row:,}"
            )

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some of the file."""
        self.stamp.check()
        with open(self.name, "rb", buffering=0) as file:
            return self._read(file, start, stop)

    def _read(self, file: Any, start: int, stop: int) -> NDArray[Any]:
        out = np.empty((stop - start, self.shape[1]), dtype=self._held)
        file.seek(self._begin + start * self._row)
        left = out.reshape(-1).view(np.uint8).data
        while len(left):
            count = file.readinto(left)
            if not count:
                raise SourceError(f"{self.name} ends before row {stop:,}")
            left = left[count:]
        return out.astype(self.dtype, copy=False)

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Read some rows of the file."""
        self.stamp.check()
        out = np.empty((len(indices), self.shape[1]), dtype=self.dtype)
        with open(self.name, "rb", buffering=0) as file:
            for at in np.argsort(indices, kind="stable"):
                out[at] = self._read(file, int(indices[at]), int(indices[at]) + 1)[0]
        return out


class TableSource(GroupedSource):
    """An Arrow table in memory, a piece of which is an array at a time.

    Parameters
    ----------
    table : pyarrow.Table
    name : str
    """

    def __init__(self, table: Any, name: str = "table") -> None:
        dtype = common_type(
            {column: field.type for column, field in zip(table.column_names, table.schema, strict=True)}, name
        )
        rows = max(1, _CHUNK_BYTES // max(1, table.num_columns * dtype.itemsize))
        counts = [min(rows, table.num_rows - start) for start in range(0, table.num_rows, rows)]
        super().__init__(counts)
        self.name, self.names, self.table = name, list(table.column_names), table
        self._finish(table.num_columns, dtype)

    def load(self, group: int) -> NDArray[Any]:
        """A slice of the table."""
        start = int(self.starts[group])
        return rows_of_table(self.table.slice(start, int(self.starts[group + 1]) - start), self.dtype)


class ParquetSource(GroupedSource):
    """Parquet files, row group by row group.

    Parameters
    ----------
    paths : sequence of path
        Files, or folders with files, in the order of their names.
    columns : sequence of str, optional
        All if not given.
    filter : pyarrow.dataset.Expression, optional
        Of rows to read; counting them takes one pass over the columns that it names.
    """

    def __init__(
        self, paths: Sequence[str | os.PathLike[str]], columns: Sequence[str] | None = None, filter: Any = None
    ) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds

        self.files = _files(paths, ".parquet")
        self.stamps = [Stamp(path) for path in self.files]
        self.filter, types, counts = filter, dict[str, Any](), list[int]()
        self._pieces: list[tuple[int, Any]] = []
        for number, path in enumerate(self.files):
            try:
                fragment = next(iter(ds.dataset(path, format="parquet").get_fragments()))
                schema, pieces = fragment.physical_schema, fragment.split_by_row_group()
                chosen = list(schema.names) if columns is None else list(columns)
                _require_columns(path, schema.names, chosen, list(types) if columns is None and types else None)
                types = types or dict.fromkeys(chosen)
                found = {name: schema.field(name).type for name in types}
                common_type(found, path)
                types = {name: _wider(types[name], found[name]) for name in types}
                counts += [_count(piece, filter) for piece in pieces]
            except (pa.ArrowInvalid, OSError) as error:
                raise SourceError(f"{path} cannot be read as Parquet: {error}") from error
            self._pieces += [(number, piece) for piece in pieces]
        super().__init__(counts)
        self.name = os.fspath(paths[0]) if len(paths) == 1 else f"{len(self.files)} files"
        self.names = list(types)
        self._finish(len(types), common_type(types, self.name))

    def load(self, group: int) -> NDArray[Any]:
        """Read a row group."""
        import pyarrow as pa

        number, piece = self._pieces[group]
        self.stamps[number].check()
        try:
            table = piece.to_table(columns=self.names, filter=self.filter)
        except (pa.ArrowInvalid, OSError) as error:
            raise SourceError(f"{self.files[number]} cannot be read: {error}") from error
        return rows_of_table(table, self.dtype)


class ZarrSource(GroupedSource):
    """A Zarr array of two dimensions, a few chunks of rows at a time.

    Parameters
    ----------
    array : zarr.Array
    name : str
    """

    def __init__(self, array: Any, name: str = "Zarr array") -> None:
        if len(array.shape) != 2:
            raise SourceError(f"{name} has shape {array.shape}; rows and columns are needed")
        dtype, chunk = as_float(array.dtype), int(array.chunks[0])
        per_chunk = max(1, chunk * array.shape[1] * dtype.itemsize)
        rows = chunk * max(1, _CHUNK_BYTES // per_chunk)
        super().__init__([min(rows, array.shape[0] - start) for start in range(0, array.shape[0], rows)])
        self.name, self.array = name, array
        self._finish(int(array.shape[1]), dtype)

    def load(self, group: int) -> NDArray[Any]:
        """Read some chunks."""
        return np.asarray(self.array[int(self.starts[group]) : int(self.starts[group + 1])])


def read_csv(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> TableSource:
    """Read a CSV file into memory, as Arrow reads it."""
    import pyarrow as pa
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(include_columns=None if columns is None else list(columns))
    try:
        return TableSource(pyarrow.csv.read_csv(os.fspath(path), convert_options=options), os.fspath(path))
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise SourceError(f"{os.fspath(path)} cannot be read as CSV: {error}") from error


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def common_type(types: dict[str, Any], name: str) -> np.dtype[Any]:
    """Return float32 if all columns are (or are smaller), else float64; columns that are not numbers are refused."""
    import pyarrow.types as kinds

    wide = False
    for column, kind in types.items():
        if not (kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)):
            raise SourceError(
                f"{name}: column {column!r} has values of type {kind}, which are not numbers; choose columns"
            )
        wide |= not (kinds.is_float32(kind) or kinds.is_float16(kind))
    return np.dtype(np.float64 if wide else np.float32)


def rows_of_table(table: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows of an Arrow table; what is missing is NaN."""
    out = np.empty((table.num_rows, table.num_columns), dtype=dtype)
    for number, column in enumerate(table.columns):
        out[:, number] = column.to_numpy()
    return out


def _wider(before: Any, now: Any) -> Any:
    """Of two types of numbers, one that makes `common_type` take both for what they are."""
    import pyarrow as pa

    return now if before is None or before == now else pa.float64()


def _require_columns(path: str, there: list[str], wanted: list[str], before: list[str] | None) -> None:
    missing = [name for name in (wanted if before is None else before) if name not in there]
    if missing:
        raise SourceError(f"{path} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, there))}")
    extra = [] if before is None else [name for name in wanted if name not in before]
    if extra:
        raise SourceError(f"{path} has a column {extra[0]!r} that the files before it do not have; choose columns")


def _count(piece: Any, filter: Any) -> int:
    if filter is None:
        return int(piece.row_groups[0].num_rows)
    return int(piece.scanner(columns=[], filter=filter).count_rows())


def _files(paths: Sequence[str | os.PathLike[str]], ending: str) -> list[str]:
    found: list[str] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(map(os.fspath, path.rglob(f"*{ending}")))
        elif path.exists():
            found.append(os.fspath(path))
        else:
            raise SourceError(f"{path} does not exist")
    if not found:
        raise SourceError(f"no *{ending} files in {', '.join(os.fspath(path) for path in paths)}")
    return found
