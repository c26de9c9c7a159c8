"""Ctrl-C in the middle of a fit."""

from mercer.engine.checkpoint import Checkpoint
from mercer.engine.progress import Progress


def interrupt_after(monkeypatch, iterations):
    """Ctrl-C after so many iterations, the last of which is not saved yet; all others are."""
    left = iterations

    def interrupted(*_):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(Progress, "iteration", interrupted)
    monkeypatch.setattr(Checkpoint, "due", property(lambda self: self.folder is not None))
