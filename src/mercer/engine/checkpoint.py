"""The state of long work in a file, from which an interrupted fit goes on.

The file is written whole and then renamed, so that there is always a complete one. It has a version, what the work is
of, and a checksum for each array. State is made of numbers, strings, lists, dictionaries, arrays and dataclasses. It is
saved so seldom that saving takes a few percent of the time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.engine.lock import FolderLock

_MAGIC = b"mercer checkpoint"
_VERSION = 1
_HEAD = struct.Struct(f"<{len(_MAGIC)}sHQQ")  # magic, version, length and checksum of the description
_SHARE = 20  # time between two saves over that of one


class CheckpointError(ValueError):
    """A checkpoint cannot be used."""


class Checkpoint:
    """Where a fit keeps its state; without a folder, nowhere.

    Parameters
    ----------
    folder : path, optional
        Made if need be, and removed by `remove` if nothing else is in it. One fit at a time may use it.

    Attributes
    ----------
    on_remove : list of callable
        Called when the work has ended, to remove what it left elsewhere.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Checkpoint(folder) as first:
    ...         first.save({"iteration": 3, "labels": np.array([0, 1])})
    ...     with Checkpoint(folder) as again:
    ...         again.load()
    {'iteration': 3, 'labels': array([0, 1])}
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else Path(folder).expanduser().absolute()
        self.of: Mapping[str, Any] = {}
        self.on_remove: list[Callable[[], None]] = []
        self._due = 0.0
        self._head: dict[str, Any] | None = None
        self._lock: FolderLock | None = None
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.folder, f"another fit is using the checkpoint {self.folder}")
            try:
                self._head = self._read_head()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let other fits use the folder."""
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The file."""
        assert self.folder is not None
        return self.folder / "state.mercer"

    def known(self, name: str) -> Any:
        """What the file says of the work it is of; None if there is no file."""
        return None if self._head is None else self._head["of"].get(name)

    def require(self, of: Mapping[str, Any]) -> None:
        """Say what the work is; a file of other work is refused, with what differs."""
        self.of = json.loads(json.dumps(dict(of)))
        if self._head is None:
            return
        gaps = [
            f"{name} was {self.known(name)} and is {value}"
            for name, value in self.of.items()
            if self.known(name) != value
        ]
        if gaps:
            raise CheckpointError(
                f"the checkpoint {self.path} is of another fit: {'; '.join(gaps)}. Restore that, use another "
                "folder, or delete it to start again"
            )

    # ---- saving -------------------------------------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """Whether it is time to save again."""
        return self.folder is not None and time.perf_counter() >= self._due

    def save(self, state: Any) -> None:
        """Replace the file by one with this state."""
        started = time.perf_counter()
        arrays: list[NDArray[Any]] = []
        tree = _to_tree(state, arrays)
        facts = [{"dtype": array.dtype.str, "shape": array.shape, "checksum": _checksum(array)} for array in arrays]
        text = json.dumps({"of": self.of, "state": tree, "arrays": facts}).encode()
        part = self.path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(_HEAD.pack(_MAGIC, _VERSION, len(text), _checksum(np.frombuffer(text, np.uint8))))
            file.write(text)
            for array in arrays:
                file.write(array.data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.path)
        ended = time.perf_counter()
        self._due = ended + _SHARE * (ended - started)

    def remove(self) -> None:
        """The work has ended: nothing is left, but for what others have put in the folder."""
        if self.folder is None or self._lock is None:
            return
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
            self.path.with_suffix(".part").unlink(missing_ok=True)
            for clean_up in self.on_remove:
                clean_up()
            self._lock.remove()
            self.folder.rmdir()

    # ---- loading ------------------------------------------------------------------------------------------------

    def load(self, classes: Sequence[type] = ()) -> Any:
        """State of the interrupted work, None if there is none; `classes` are the dataclasses in it."""
        if self._head is None:
            return None
        with self.path.open("rb") as file:
            file.seek(self._start)
            arrays = [self._read_array(file, facts) for facts in self._head["arrays"]]
        return _from_tree(self._head["state"], arrays, {kind.__name__: kind for kind in classes})

    def _read_head(self) -> dict[str, Any] | None:
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size or head[: len(_MAGIC)] != _MAGIC:
                raise self._damaged()
            _, version, length, checksum = _HEAD.unpack(head)
            if version != _VERSION:
                raise CheckpointError(
                    f"{self.path} is of another version of Mercer (format {version}, here {_VERSION}): delete it"
                )
            if length > self.path.stat().st_size:
                raise self._damaged()
            text = file.read(length)
        if len(text) < length or _checksum(np.frombuffer(text, np.uint8)) != checksum:
            raise self._damaged()
        self._start = _HEAD.size + length
        found: dict[str, Any] = json.loads(text)
        return found

    def _read_array(self, file: Any, facts: dict[str, Any]) -> NDArray[Any]:
        array = np.empty(facts["shape"], dtype=facts["dtype"])
        if file.readinto(array.data) != array.nbytes or _checksum(array) != facts["checksum"]:
            raise self._damaged()
        return array

    def _damaged(self) -> CheckpointError:
        return CheckpointError(f"the checkpoint {self.path} is damaged: delete it to start again")


def _checksum(array: NDArray[Any]) -> int:
    return _core.checksum(array.reshape(-1).view(np.uint8), 0) if array.size else 0


def _to_tree(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """JSON for a state; arrays are put aside."""
    if isinstance(value, np.ndarray):
        arrays.append(np.ascontiguousarray(value))
        return {"array": len(arrays) - 1}
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": _to_tree(fields, arrays)}
    if isinstance(value, dict):
        return {"dict": {name: _to_tree(part, arrays) for name, part in value.items()}}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_to_tree(part, arrays) for part in value]}
    return value.item() if isinstance(value, np.generic) else value


def _from_tree(tree: Any, arrays: list[NDArray[Any]], classes: Mapping[str, type]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "class" in tree:
        return classes[tree["class"]](**_from_tree(tree["fields"], arrays, classes))
    if "dict" in tree:
        return {name: _from_tree(part, arrays, classes) for name, part in tree["dict"].items()}
    (kind, parts), *_ = tree.items()
    return (tuple if kind == "tuple" else list)(_from_tree(part, arrays, classes) for part in parts)
