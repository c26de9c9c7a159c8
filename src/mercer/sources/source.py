"""Rows that are read when they are needed: a shape, a dtype, blocks of rows, and rows by their positions.

A source stands where an array would: ``source[10:20]`` and ``source[[3, 5]]`` are arrays of rows. It is read from
several threads at once. What it is made of must not change while it is read, and an error names what did.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class SourceError(ValueError):
    """Rows cannot be read: a file is damaged, has changed, or does not go with the others."""


class Source(ABC):
    """Rows from somewhere.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        float32 or float64.
    names : list of str or None
        Of the columns.
    name : str
        Of what is read, for messages.
    working_bytes : int
        Memory that reading takes beside the rows asked for.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: list[str] | None = None
    name: str = "source"
    working_bytes: int = 0

    @abstractmethod
    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows from `start` up to `stop`, as a C-ordered array of the source's dtype."""

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Rows at `indices`, in that order."""
        order = np.argsort(indices, kind="stable")
        out = np.empty((len(indices), self.shape[1]), dtype=self.dtype)
        for at in order:  # ascending: neighbours are read one after another
            out[at] = self.read(int(indices[at]), int(indices[at]) + 1)[0]
        return out

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            if step != 1:
                raise IndexError("rows of a source are read in steps of one")
            return self.read(start, max(start, stop))
        indices = np.asarray(rows)
        if indices.dtype == bool:
            indices = np.flatnonzero(indices)
        return self.take(np.where(indices < 0, indices + self.shape[0], indices))

    def __len__(self) -> int:
        return self.shape[0]

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Source:
        """Return the same rows in another precision."""
        return self if np.dtype(dtype) == self.dtype else _Cast(self, np.dtype(dtype))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.shape[0]:,} x {self.shape[1]:,} {self.dtype}>"


class _Cast(Source):
    """Rows in another precision."""

    def __init__(self, source: Source, dtype: np.dtype[Any]) -> None:
        self.source, self.dtype = source, dtype
        self.shape, self.names, self.name = source.shape, source.names, source.name
        self.working_bytes = source.working_bytes

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read and convert."""
        return self.source.read(start, stop).astype(self.dtype)

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Take and convert."""
        return self.source.take(indices).astype(self.dtype)


class GroupedSource(Source):
    """Rows that come in groups (row groups, chunks, partitions), each of which is read as a whole.

    The last groups read are kept, so that blocks of rows that lie in one group read it once.

    Parameters
    ----------
    counts : sequence of int
        Rows of each group.
    """

    kept = 3
    """Groups in memory at most: what two threads work on, and the one they come to next."""

    def __init__(self, counts: Any) -> None:
        self.starts = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
        self._groups: OrderedDict[int, _Group] = OrderedDict()
        self._lock = threading.Lock()

    @abstractmethod
    def load(self, group: int) -> NDArray[Any]:
        """All rows of a group."""

    def _finish(self, columns: int, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = (int(self.starts[-1]), columns)
        largest = int(np.diff(self.starts).max(initial=0))
        self.working_bytes = 2 * self.kept * largest * columns * self.dtype.itemsize  # as they come, and as an array

    def _rows(self, group: int) -> NDArray[Any]:
        with self._lock:
            entry = self._groups.setdefault(group, _Group())
            self._groups.move_to_end(group)
            while len(self._groups) > self.kept:
                self._groups.popitem(last=False)
        with entry.lock:  # one thread reads, others wait for it
            if entry.rows is None:
                rows = np.ascontiguousarray(self.load(group), dtype=self.dtype)
                expected = int(self.starts[group + 1] - self.starts[group])
                if rows.shape != (expected, self.shape[1]):
                    raise SourceError(
                        f"{self.name}: part {group} has {rows.shape[0]:,} rows and {rows.shape[1]:,} columns where it "
                        f"had {expected:,} and {self.shape[1]:,}: it has changed since it was opened"
                    )
                entry.rows = rows
            return entry.rows

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows of one group or of several."""
        if start >= stop:
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        first, last = (int(np.searchsorted(self.starts, at, side="right")) - 1 for at in (start, stop - 1))
        parts = []
        for group in range(first, last + 1):
            begin, end = int(self.starts[group]), int(self.starts[group + 1])
            if begin < end:
                parts.append(self._rows(group)[max(start, begin) - begin : min(stop, end) - begin])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, indices: NDArray[np.integer]) -> NDArray[Any]:
        """Rows by position, group by group."""
        out = np.empty((len(indices), self.shape[1]), dtype=self.dtype)
        homes = np.searchsorted(self.starts, indices, side="right") - 1
        for group in np.unique(homes):
            here = np.flatnonzero(homes == group)
            out[here] = self._rows(int(group))[np.asarray(indices)[here] - self.starts[group]]
        return out

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what has been read."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_groups", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._groups, self._lock = OrderedDict(), threading.Lock()


class _Group:
    """A group of rows, once it is read."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows: NDArray[Any] | None = None
