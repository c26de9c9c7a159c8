"""A lock on a folder, which the system lets go of when the process ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

_TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class FolderLock:
    """Taken as long as this object holds it, by one thread of one process.

    Where the file system knows no locks, it is as if nobody else were there.

    Parameters
    ----------
    folder : path
    taken : str
        What to say if somebody else has it.

    Raises
    ------
    BlockingIOError
        If somebody else has it.
    """

    def __init__(self, folder: Path, taken: str) -> None:
        self.path = folder / "lock"
        self._handle: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                self.release()
                raise BlockingIOError(error.errno, f"{taken}: wait for it, or use another folder") from None

    def release(self) -> None:
        """Let go of it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def remove(self) -> None:
        """Let go of it, and remove its file."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.release()
