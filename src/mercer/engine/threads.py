"""A pool of threads over block tasks, with results that do not depend on the number of threads.

Blocks depend on the data's shape only, results come back in the order of the tasks, and tasks that write to the
same place run in the order given. The compiled core releases the GIL, so plain threads are enough: there is no
OpenMP runtime to fight with BLAS, and nothing to break after a fork, since a pool lives only inside its `with`.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Self, TypeVar

import joblib
from joblib.parallel import get_active_backend

from mercer.engine.progress import Progress, Steps

Task = TypeVar("Task")
Result = TypeVar("Result")


def effective_n_jobs(n_jobs: int | None) -> int:
    """Number of threads for the usual meaning of ``n_jobs``.

    ``None`` is every core this process may use, or one inside a joblib worker; negative numbers count from the
    number of cores as joblib does (-1: all, -2: all but one).
    """
    cores = joblib.cpu_count()
    if n_jobs is None:
        return 1 if get_active_backend()[0].nesting_level else cores
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning: use None or -1 for all cores")
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else int(n_jobs)


class _OneBlasThread:
    """Limits BLAS when the first of several pools starts, and restores it when the last of them ends."""

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        self.libraries = ThreadpoolController()  # a scan costs a millisecond: one per process
        self.lock = threading.Lock()
        self.pools = 0

    def __enter__(self) -> None:
        with self.lock:
            if self.pools == 0:
                self.limit = self.libraries.limit(limits=1, user_api="blas")
            self.pools += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.pools -= 1
            if self.pools == 0:
                self.limit.restore_original_limits()


_blas_of_process: dict[int, _OneBlasThread] = {}


def one_blas_thread() -> AbstractContextManager[None]:
    """Keep BLAS to one thread while our own threads run."""
    process = os.getpid()  # a forked child starts afresh
    if process not in _blas_of_process:
        _blas_of_process.setdefault(process, _OneBlasThread())
    return _blas_of_process[process]


class Threads:
    """A pool of ``n_jobs`` threads, used as a context manager.

    Parameters
    ----------
    n_jobs : int or None
        See :func:`effective_n_jobs`.
    progress : Progress, optional
        Is told of work that has a name (`what`).

    Examples
    --------
    >>> from mercer.engine.threads import Threads
    >>> with Threads(2) as pool:
    ...     pool.map(lambda x: x * x, range(4))
    [0, 1, 4, 9]
    """

    def __init__(self, n_jobs: int | None = None, progress: Progress | None = None) -> None:
        self.n_jobs = effective_n_jobs(n_jobs)
        self.progress = Progress() if progress is None else progress
        self._executor: ThreadPoolExecutor | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(one_blas_thread())  # for one job too: BLAS rounds differently with more threads
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None
        self._stack.close()

    def _workers(self) -> ThreadPoolExecutor:
        """Start the threads when the first parallel call needs them: tiny fits never do."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="mercer")
        return self._executor

    def map(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], what: str = "", unit: str = "blocks"
    ) -> list[Result]:
        """Results of ``function`` in the order of ``tasks``."""
        tasks = list(tasks)
        with self.progress.task(what, len(tasks) if what else 0, unit) as steps:
            call = _counted(function, steps) if what else function
            if self.n_jobs == 1 or len(tasks) < 2:
                return [call(task) for task in tasks]
            return list(self._workers().map(call, tasks))

    def stream(
        self,
        produce: Callable[[int, Task], Result],
        tasks: Iterable[Task],
        consume: Callable[[Result], None],
        ahead: int,
        what: str = "",
        unit: str = "blocks",
    ) -> None:
        """Consume the results of all tasks in order, in the calling thread, while the next ones are produced.

        ``produce(slot, task)`` is told which of ``ahead`` slots (for buffers) is its own until the result is consumed.
        """
        tasks = list(tasks)
        with self.progress.task(what, len(tasks) if what else 0, unit) as steps:
            if self.n_jobs == 1:
                for task in tasks:
                    consume(produce(0, task))
                    steps.advance()
                return
            waiting: deque[Future[Result]] = deque()
            executor = self._workers()
            try:
                for number, task in enumerate(tasks):
                    if len(waiting) == ahead:
                        consume(waiting.popleft().result())
                        steps.advance()
                    waiting.append(executor.submit(produce, number % ahead, task))
                while waiting:
                    consume(waiting.popleft().result())
                    steps.advance()
            finally:  # after an error or an interrupt nothing runs any more
                for future in waiting:
                    future.cancel()
                wait(waiting)

    def run_in_order(
        self,
        function: Callable[[int, int], None],
        pairs: Sequence[tuple[int, int]],
        what: str = "",
        unit: str = "tiles",
    ) -> None:
        """Call ``function(i, j)`` for all pairs; calls that share a number happen one after another, in order.

        Every write to "place i" thus happens in the same order for any number of threads, without a buffer for
        partial results. Pairs that follow each other should have no number in common, or threads will wait.
        """
        with self.progress.task(what, len(pairs) if what else 0, unit) as steps:
            if self.n_jobs == 1 or len(pairs) < 2:
                for i, j in pairs:
                    function(i, j)
                    steps.advance()
                return
            queue = _OrderedQueue(pairs)
            futures: list[Future[None]] = []
            executor = self._workers()
            try:
                for _ in range(min(self.n_jobs, len(pairs))):
                    futures.append(executor.submit(queue.work, function, steps))
                for future in futures:
                    future.result()
            finally:  # after an error or an interrupt nothing runs any more
                queue.stop()
                wait(futures)


def _counted(function: Callable[[Task], Result], steps: Steps) -> Callable[[Task], Result]:
    def call(task: Task) -> Result:
        result = function(task)
        steps.advance()
        return result

    return call


class _OrderedQueue:
    """Hands out pairs in order; a pair starts when all earlier pairs with the same numbers are done."""

    def __init__(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.pairs = pairs
        self.next = 0
        self.stopped = False
        self.changed = threading.Condition()
        self.done: dict[int, int] = {}
        self.turn: list[tuple[int, int]] = []
        seen: dict[int, int] = {}
        for i, j in pairs:
            self.turn.append((seen.get(i, 0), seen.get(j, 0)))
            for place in {i, j}:
                seen[place] = seen.get(place, 0) + 1
                self.done[place] = 0

    def stop(self) -> None:
        """Start no further pair."""
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

    def work(self, function: Callable[[int, int], None], steps: Steps) -> None:
        while True:
            with self.changed:
                position = self.next
                self.next += 1
                if position >= len(self.pairs) or self.stopped:
                    return
                (i, j), (turn_i, turn_j) = self.pairs[position], self.turn[position]
                while (self.done[i] < turn_i or self.done[j] < turn_j) and not self.stopped:
                    self.changed.wait()
                if self.stopped:
                    return
            try:
                function(i, j)
            except BaseException:
                self.stop()
                raise
            with self.changed:
                for place in {i, j}:
                    self.done[place] += 1
                self.changed.notify_all()
            steps.advance()


def blocks(n: int, size: int) -> list[slice]:
    """Cut ``range(n)`` into slices of ``size`` (the last may be shorter)."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
