"""Progress of long work: quiet, a bar in the terminal, or scikit-learn's callbacks.

Work that is long says what it is and how many steps it has; who listens decides what is shown. Nothing is shown of work
that ends within half a second.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

_DELAY = 0.5  # seconds before work is shown
_BAR_EVERY, _LINE_EVERY = 0.1, 10.0  # seconds between two updates, in a terminal and elsewhere
_STEPS = 100  # that a listener is told of, at most


class Steps(Protocol):
    """Work under way."""

    def advance(self, steps: int = 1) -> None:
        """Some steps more are done; called from any thread."""


class Progress:
    """Nobody listens.

    Examples
    --------
    >>> with Progress().task("kernel tiles", 10, "tiles") as task:
    ...     task.advance()
    """

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Steps]:
        """Announce work of `total` steps, and say when it has ended."""
        yield self

    def advance(self, steps: int = 1) -> None:
        """Go on."""

    def iteration(self, run: int, number: int, most: int) -> bool:
        """Say that an iteration has ended; whether to stop there."""
        return False


class _Counter:
    """Counts steps from any thread and shows them now and then."""

    def __init__(self, total: int, every: float, show: Callable[[int, float], None]) -> None:
        self.total, self.every, self.show = total, every, show
        self.done, self.lock = 0, threading.Lock()
        self.started = time.perf_counter()
        self.due = self.started + _DELAY
        self.shown = False

    def advance(self, steps: int = 1) -> None:
        with self.lock:
            self.done += steps
            now = time.perf_counter()
            if now >= self.due:
                self.due, self.shown = now + self.every, True
                self.show(self.done, now - self.started)


class TerminalProgress(Progress):
    """A line that is written over in a terminal, and now and then a new line elsewhere.

    Parameters
    ----------
    stream : text file, optional
        Standard error if not given.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.live = self.stream.isatty()

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Steps]:
        """Show steps done, their rate and the time left."""

        def show(done: int, seconds: float) -> None:
            self._write(f"{what}: {describe(done, total, unit, seconds)}")

        counter = _Counter(total, _BAR_EVERY if self.live else _LINE_EVERY, show)
        try:
            yield counter
        finally:
            if counter.shown and self.live:
                self._write("")

    def _write(self, line: str) -> None:
        self.stream.write(f"\r\033[K{line}" if self.live else f"{line}\n")
        self.stream.flush()


def describe(done: int, total: int, unit: str, seconds: float) -> str:
    """Steps done, rate and time left in words.

    Examples
    --------
    >>> describe(250, 1000, "tiles", 5.0)
    '250 of 1,000 tiles (25%), 50 a second, 15 s left'
    """
    rate = done / max(seconds, 1e-9)
    left = (total - done) / rate if done else float("inf")
    speed = f"{rate:,.0f} a second" if rate >= 2 else f"{seconds / max(done, 1):.1f} s each"
    return f"{done:,} of {total:,} {unit} ({100 * done // max(total, 1)}%), {speed}, {format_seconds(left)} left"


def format_seconds(seconds: float) -> str:
    """Write a duration with the unit that suits it.

    Examples
    --------
    >>> format_seconds(0.4), format_seconds(12), format_seconds(600), format_seconds(9000)
    ('0.4 s', '12 s', '10 min', '2.5 h')
    """
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.5 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"


class CallbackProgress(Progress):
    """The callbacks that a user has set on an estimator through scikit-learn's interface.

    Parameters
    ----------
    estimator : estimator
        Whose callbacks they are.
    context : sklearn.callback.CallbackContext
        Of its fit.
    """

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator, self.context = estimator, context
        self._runs: dict[int, Any] = {}

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Steps]:
        """Tell of at most a hundred steps, once the work has turned out to be long."""
        steps = min(total, _STEPS)
        told: list[Any] = []

        def show(done: int, seconds: float) -> None:
            if not told:
                told.append(self._begin(self.context, f"{what} ({total:,} {unit})", steps))
            for _ in range(len(told) - 1, done * steps // total):
                told.append(self._step(told[0], what))

        counter = _Counter(total, 0.0, show)
        try:
            yield counter
        finally:
            if told:
                self._end(told[0])

    def iteration(self, run: int, number: int, most: int) -> bool:
        """Each run is a task, and each iteration a step of it."""
        if run not in self._runs:
            self.finish_runs()
            self._runs[run] = self._begin(self.context, f"run {run + 1}", most)
        return bool(self._end(self._begin(self._runs[run], "iteration", 0)))

    def finish_runs(self) -> None:
        """The run under way has ended."""
        for run, context in self._runs.items():
            if context is not None:
                self._end(context)
                self._runs[run] = None

    def _begin(self, parent: Any, name: str, steps: int) -> Any:
        return parent.subcontext(task_name=name, max_subtasks=steps).call_on_fit_task_begin(estimator=self.estimator)

    def _step(self, parent: Any, name: str) -> bool:
        return self._end(self._begin(parent, name, 0))

    def _end(self, context: Any) -> bool:
        return bool(context.call_on_fit_task_end(estimator=self.estimator))
