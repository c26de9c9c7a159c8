"""Who is told of the progress of a fit: scikit-learn's callbacks, or the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mercer.engine.progress import CallbackProgress, Progress, TerminalProgress

__all__ = ["CallbackSupport", "fit_progress", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupport:  # type: ignore[no-redef]
        """Nothing: scikit-learn has no callbacks here."""

    def _with_callbacks(method: Any) -> Any:
        return method


Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Let a method's callbacks end with it, also when it fails."""
    decorated: Method = _with_callbacks(method)
    return decorated


@contextmanager
def fit_progress(estimator: Any, verbose: int) -> Iterator[Progress]:
    """Listeners for one fit: the callbacks that were set, else a bar in the terminal if `verbose`, else none."""
    if not getattr(estimator, "_skl_callbacks", None):
        yield TerminalProgress() if verbose else Progress()
        return
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator)
    progress = CallbackProgress(estimator, context)
    yield progress
    progress.finish_runs()
    context.call_on_fit_task_end(estimator=estimator)
