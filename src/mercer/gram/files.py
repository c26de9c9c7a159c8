"""Numbered tiles in a few files: written once and in order, each with a checksum, read in any order.

A folder has ``manifest.json``, which says what the tiles are of, and ``tiles-0000.bin`` and so on, in which tiles
follow one another, each with 64 bytes after it that begin with its checksum. The file being written ends in ``.part``.
The checksum depends on the manifest and on the tile's number, so that a tile of something else is no more accepted than
a damaged one. Without a folder the files have no names, and are gone when the process is, however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.lock import FolderLock
from mercer.engine.memory import format_bytes

_VERSION = 1
_TRAILER = 64
_FILE_BYTES, _FILES = 256 << 20, 256  # files of this size, or larger ones so that there are not more than these


class TileFileError(OSError):
    """A file of tiles cannot be used."""


class OtherTilesError(TileFileError):
    """A folder has tiles of something else."""


@dataclass(frozen=True)
class _File:
    """Tiles [first, last) with the place where each begins, and the file's size."""

    number: int
    first: int
    offsets: tuple[int, ...]
    size: int

    @property
    def last(self) -> int:
        return self.first + len(self.offsets)


class TileFiles:
    """Tiles of given sizes in a folder, or in unnamed files.

    Parameters
    ----------
    sizes : sequence of int
        Bytes of each tile.
    identity : mapping of str to str or int
        What the tiles are of; a folder with tiles of something else is refused.
    folder : path, optional
        Made if need be. Without it, unnamed files in `spare`.
    spare : path, optional
        Folder for unnamed files; the system's if not given.

    Attributes
    ----------
    missing : list of int
        Tiles that are to be written, in this order.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        identity: Mapping[str, Any],
        folder: str | os.PathLike[str] | None = None,
        spare: str | os.PathLike[str] | None = None,
    ) -> None:
        self.folder = None if folder is None else Path(folder).expanduser().absolute()
        self.sizes = list(sizes)
        self._spare = spare
        self._files = _layout(sizes)
        self._home = [file for file in self._files for _ in file.offsets]
        of = {**identity, "files": len(self._files)}
        manifest = json.dumps({"format": "mercer tiles", "version": _VERSION, "of": of}, indent=1)
        self._seed = int.from_bytes(hashlib.sha256(manifest.encode()).digest()[:8], "little")
        self._handles: dict[int, int] = {}
        self._lock: FolderLock | None = None
        self.missing = list(range(len(self.sizes)))
        try:
            if self.folder is not None:
                self._open(self.folder, manifest)
            self._require_space()
        except BaseException:
            self.close()
            raise

    # ---- opening ------------------------------------------------------------------------------------------------

    def _open(self, folder: Path, manifest: str) -> None:
        path = folder / "manifest.json"
        with _explained(f"tiles cannot be kept in {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            if not (path.exists() and all(self._path(file, "bin").exists() for file in self._files)):
                self._hold(folder)
            if path.exists():
                _compare(path, json.loads(manifest)["of"])
            else:
                _require_no_tiles(folder)
                _write_whole(path, manifest)
        self.missing = [index for file in self._files for index in self._to_write(file)]

    def _hold(self, folder: Path) -> None:
        """Keep others from writing here; whole folders are read by any number."""
        try:
            self._lock = FolderLock(folder, f"another process is writing tiles in {folder}")
        except BlockingIOError as error:
            raise TileFileError(error.errno, error.strerror) from None
        for part in folder.glob("manifest.*.part"):  # of processes that were killed
            part.unlink()

    def _to_write(self, file: _File) -> list[int]:
        """Tiles of a file that are not there, of which a last part may have been cut off."""
        whole, part = self._path(file, "bin"), self._path(file, "part")
        if whole.exists():
            if (found := whole.stat().st_size) != file.size:
                raise TileFileError(
                    errno.EIO, f"it has {found:,} bytes in place of {file.size:,}; {_CURE}", os.fspath(whole)
                )
            return []
        kept = self._valid_tiles(file, part) if part.exists() else 0
        if kept == len(file.offsets):  # the end came between the last tile and the new name
            os.rename(part, whole)
        return list(range(file.first + kept, file.last))

    def _valid_tiles(self, file: _File, part: Path) -> int:
        buffer = np.empty(max(self.sizes[file.first : file.last]), dtype=np.uint8)
        handle = os.open(part, os.O_RDONLY)
        try:
            for kept, offset in enumerate(file.offsets):
                size = self.sizes[file.first + kept]
                if not self._read_tile(handle, offset, file.first + kept, buffer[:size]):
                    return kept
            return len(file.offsets)
        finally:
            os.close(handle)

    def _require_space(self) -> None:
        needed = sum(self.sizes[index] + _TRAILER for index in self.missing)
        where = self.folder if self.folder is not None else self._spare or tempfile.gettempdir()
        if needed and needed > (free := shutil.disk_usage(where).free):
            raise TileFileError(
                errno.ENOSPC,
                f"the tiles to be written take {format_bytes(needed)} and {format_bytes(free)} are free",
                os.fspath(where),
            )

    def _path(self, file: _File, ending: str) -> Path:
        assert self.folder is not None
        return self.folder / f"tiles-{file.number:04d}.{ending}"

    # ---- writing ------------------------------------------------------------------------------------------------

    def write(self, data: NDArray[np.uint8]) -> None:
        """Write the next of the missing tiles."""
        index = self.missing[0]
        file = self._home[index]
        if file.number not in self._handles:
            self._handles[file.number] = self._create(file)
        handle, offset = self._handles[file.number], file.offsets[index - file.first]
        trailer = struct.pack("<Q56x", self._checksum(data, index))
        try:
            _write_all(handle, [data.data, memoryview(trailer)], offset)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, offset)
            raise TileFileError(
                error.errno,
                f"{error.strerror} after {index:,} of {len(self.sizes):,} tiles"
                + ("" if self.folder is None else "; the next fit goes on from there"),
                self._name(file, "part"),
            ) from error
        self.missing.pop(0)
        if index + 1 == file.last:
            self._complete(file)
        if not self.missing and self._lock is not None:
            self._lock.remove()

    def _create(self, file: _File) -> int:
        if self.folder is None:
            with tempfile.TemporaryFile(dir=self._spare) as unnamed:
                return os.dup(unnamed.fileno())
        with _explained(f"tiles cannot be written in {self.folder}"):
            return os.open(self._path(file, "part"), os.O_RDWR | os.O_CREAT, 0o666)

    def _complete(self, file: _File) -> None:
        if self.folder is None:
            return
        handle = self._handles[file.number]
        with _explained(f"tiles cannot be written in {self.folder}"):
            os.ftruncate(handle, file.size)
            os.fsync(handle)
            os.rename(self._path(file, "part"), self._path(file, "bin"))

    def _checksum(self, data: NDArray[np.uint8], index: int) -> int:
        return _core.checksum(data, self._seed ^ index)

    # ---- reading ------------------------------------------------------------------------------------------------

    def read(self, index: int, out: NDArray[np.uint8]) -> None:
        """Read a tile into `out`, checked."""
        file = self._home[index]
        handle = self._reader(file)
        if not self._read_tile(handle, file.offsets[index - file.first], index, out):
            raise TileFileError(
                errno.EIO, f"tile {index:,} is damaged (its checksum differs); {_CURE}", self._name(file, "bin")
            )

    def expect(self, index: int) -> None:
        """Have the system read ahead a tile that will be asked for soon."""
        if hasattr(os, "posix_fadvise"):
            file = self._home[index]
            place = file.offsets[index - file.first]
            os.posix_fadvise(self._reader(file), place, self.sizes[index] + _TRAILER, os.POSIX_FADV_WILLNEED)

    def _reader(self, file: _File) -> int:
        handle = self._handles.get(file.number)
        if handle is None:
            with _explained(f"a file of tiles in {self.folder} cannot be read"):
                opened = os.open(self._path(file, "bin"), os.O_RDONLY)
            handle = self._handles.setdefault(file.number, opened)
            if handle != opened:  # another thread was first
                os.close(opened)
        return handle

    def _read_tile(self, handle: int, offset: int, index: int, out: NDArray[np.uint8]) -> bool:
        """Whether a tile was there and undamaged."""
        trailer = bytearray(_TRAILER)
        if not _read_all(handle, [out.data, memoryview(trailer)], offset):
            return False
        expected: int = struct.unpack_from("<Q", trailer)[0]
        return self._checksum(out, index) == expected

    def _name(self, file: _File, ending: str) -> str:
        if self.folder is None:
            return f"temporary file in {self._spare or tempfile.gettempdir()}"
        return os.fspath(self._path(file, ending))

    # ---- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the files; those without a name are gone then."""
        if self.__dict__.get("_lock") is not None:
            self.__dict__["_lock"].release()
        handles = self.__dict__.get("_handles", {})
        while handles:
            os.close(handles.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


_CURE = "delete it and fit again, which writes it anew"


def _layout(sizes: Sequence[int]) -> list[_File]:
    most = max(_FILE_BYTES, -(-sum(sizes) // _FILES))
    files, offsets, used = list[_File](), list[int](), 0
    for size in sizes:
        if offsets and used + size + _TRAILER > most:
            files.append(_file(files, offsets, used))
            offsets, used = [], 0
        offsets.append(used)
        used += size + _TRAILER
    return [*files, _file(files, offsets, used)]


def _file(before: list[_File], offsets: list[int], size: int) -> _File:
    return _File(len(before), before[-1].last if before else 0, tuple(offsets), size)


def _compare(path: Path, expected: dict[str, Any]) -> None:
    """Refuse tiles of something else, and say what differs."""
    try:
        manifest = json.loads(path.read_text())
        found, version = manifest["of"], manifest["version"]
    except (ValueError, KeyError, TypeError):
        raise OtherTilesError(
            errno.EINVAL, "not a manifest of tiles; use another folder, or delete this one", os.fspath(path)
        ) from None
    if version != _VERSION:
        raise OtherTilesError(
            errno.EINVAL, f"written by another version of Mercer (format {version}); delete the folder", os.fspath(path)
        )
    gaps = [
        f"{name} {_short(found.get(name))} there, {_short(value)} here"
        for name, value in expected.items()
        if found.get(name) != value
    ]
    if gaps:
        raise OtherTilesError(
            errno.EINVAL,
            f"the folder has the tiles of something else: {'; '.join(gaps)}. Use another folder, or delete this one",
            os.fspath(path.parent),
        )


def _short(value: Any) -> str:
    return str(value) if len(str(value)) <= 80 else f"{str(value)[:12]}..."


def _require_no_tiles(folder: Path) -> None:
    for path in folder.glob("tiles-*"):
        raise OtherTilesError(
            errno.EINVAL, "there are tiles but no manifest.json to say of what; delete them", os.fspath(path)
        )


def _write_whole(path: Path, text: str) -> None:
    """All of a file or nothing."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with part.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def discard_tiles(folder: Path) -> None:
    """Remove tiles and what belongs to them, the manifest last; nothing else that may be in the folder."""
    with contextlib.suppress(OSError):
        for pattern in ("tiles-*.bin", "tiles-*.part", "manifest.*.part", "manifest.json", "lock"):
            for path in folder.glob(pattern):
                path.unlink()
        folder.rmdir()


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except TileFileError:
        raise
    except OSError as error:
        raise TileFileError(error.errno, f"{what}: {error.strerror}", error.filename) from error


def _write_all(handle: int, parts: list[memoryview], offset: int) -> None:
    while parts:
        offset += (written := os.pwritev(handle, parts, offset))
        parts = _rest(parts, written)


def _read_all(handle: int, parts: list[memoryview], offset: int) -> bool:
    """Whether the file was long enough."""
    while parts:
        offset += (found := os.preadv(handle, parts, offset))
        if not found:
            return False
        parts = _rest(parts, found)
    return True


def _rest(parts: list[memoryview], done: int) -> list[memoryview]:
    while parts and done >= len(parts[0]):
        done -= len(parts[0])
        parts = parts[1:]
    return [parts[0][done:], *parts[1:]] if parts else []
