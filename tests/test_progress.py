"""Progress: in a terminal, elsewhere, and through scikit-learn's callbacks."""

import io
import time

import numpy as np
import pytest

from mercer import KernelFuzzyCMeans, KernelKMeans
from mercer.engine import progress
from mercer.engine.progress import CallbackProgress, Progress, TerminalProgress, describe, format_seconds
from mercer.engine.threads import Threads


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def impatient(monkeypatch):
    """Work is shown from its first step on, and every step is."""
    monkeypatch.setattr(progress, "_DELAY", -1.0)
    monkeypatch.setattr(progress, "_BAR_EVERY", 0.0)
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 10, "tiles", 1.0), "0 of 10 tiles (0%), 1.0 s each, inf h left"),
        ((1, 10, "tiles", 4.0), "1 of 10 tiles (10%), 4.0 s each, 36 s left"),
        ((2000, 10_000, "tiles", 4.0), "2,000 of 10,000 tiles (20%), 500 a second, 16 s left"),
        ((10, 10, "tiles", 4.0), "10 of 10 tiles (100%), 2 a second, 0.0 s left"),
    ],
)
def test_progress_in_words(arguments, text):
    assert describe(*arguments) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0.0 s"), (99, "99 s"), (99.6, "2 min"), (7200, "2.0 h")])
def test_durations(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_terminal_shows_a_line_that_is_written_over(impatient, n_jobs):
    stream = Terminal()
    with Threads(n_jobs, TerminalProgress(stream)) as pool:
        pool.run_in_order(lambda i, j: None, [(i, i) for i in range(5)], "pass")
        pool.map(str, range(3), "blocks of rows")
        pool.map(str, range(3))
    shown = stream.getvalue().split("\r\033[K")
    assert [line.split(" (")[0] for line in shown if line] == [
        *(f"pass: {done} of 5 tiles" for done in range(1, 6)),
        *(f"blocks of rows: {done} of 3 blocks" for done in range(1, 4)),
    ]
    assert "\n" not in stream.getvalue()


def test_a_file_gets_lines(impatient):
    stream = io.StringIO()
    with Threads(1, TerminalProgress(stream)) as pool:
        pool.map(str, range(2), "rows")
    assert [line.split(" (")[0] for line in stream.getvalue().splitlines()] == [
        "rows: 1 of 2 blocks",
        "rows: 2 of 2 blocks",
    ]


def test_nothing_is_shown_of_what_is_quick():
    stream = Terminal()
    with Threads(2, TerminalProgress(stream)) as pool:
        pool.map(str, range(100), "rows")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_results_of_a_stream_come_in_order_and_slots_are_not_shared(n_jobs):
    busy, seen = set(), []

    def produce(slot, task):
        assert slot not in busy
        busy.add(slot)
        time.sleep(0.001 * (task % 3))
        return slot, task

    def consume(result):
        seen.append(result[1])
        busy.discard(result[0])

    with Threads(n_jobs) as pool:
        pool.stream(produce, range(40), consume, 2 * n_jobs)
    assert seen == list(range(40))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("where", ["produce", "consume"])
def test_an_error_in_a_stream_ends_it(n_jobs, where):
    def fail(*_):
        raise RuntimeError(where)

    steps = {"produce": lambda slot, task: task, "consume": lambda result: None} | {where: fail}
    with Threads(n_jobs) as pool, pytest.raises(RuntimeError, match=where):
        pool.stream(steps["produce"], range(9), steps["consume"], 2)


def rows(n=1500):
    return np.random.default_rng(0).normal(size=(n, 3))


def test_verbose_shows_the_kernel_matrix_and_the_passes(impatient, capsys):
    KernelKMeans(3, storage="disk", verbose=1, random_state=0).fit(rows())
    shown = capsys.readouterr().err
    assert "kernel matrix to disk: 21 of 21 tiles (100%)" in shown
    assert "pass over the kernel matrix: 21 of 21 tiles" in shown
    assert " a second, " in shown


# ---- scikit-learn's callbacks ----------------------------------------------------------------------------------

sklearn_callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")


class Recorder:
    def __init__(self, stop_after=None):
        self.events, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))
        return context.task_name == "iteration" and self.stop_after == self.count("iteration")

    def count(self, name):
        return self.events.count(("end", name))


def test_callbacks_are_told_of_the_fit_its_runs_and_iterations():
    recorder = Recorder()
    model = KernelKMeans(3, n_init=2, init="random", random_state=0).set_callbacks(recorder).fit(rows(300))
    assert recorder.events[0] == "setup"
    assert recorder.events[1] == ("begin", "fit")
    assert recorder.events[-2:] == [("end", "fit"), "teardown"]
    assert recorder.count("run 1") == recorder.count("run 2") == 1
    assert recorder.count("iteration") >= model.n_iter_
    assert recorder.events.count(("begin", "iteration")) == recorder.count("iteration")


def test_long_work_is_told_in_steps(impatient):
    recorder = Recorder()
    KernelKMeans(3, storage="disk", random_state=0).set_callbacks(recorder).fit(rows())
    assert recorder.count("kernel matrix to disk (21 tiles)") == 1
    assert recorder.count("kernel matrix to disk") == 21


def test_many_steps_are_told_as_a_hundred(impatient):
    class Context:
        def __init__(self):
            self.ended = []

        def subcontext(self, task_name, max_subtasks):
            self.ended.append((task_name, max_subtasks))
            return self

        def call_on_fit_task_begin(self, estimator):
            return self

        def call_on_fit_task_end(self, estimator):
            return False

    context = Context()
    with CallbackProgress(None, context).task("pass", 1_770, "tiles") as steps:
        for _ in range(1_770):
            steps.advance()
    assert context.ended[0] == ("pass (1,770 tiles)", 100)
    assert context.ended[1:] == [("pass", 0)] * 100


@pytest.mark.parametrize("kind", [KernelKMeans, KernelFuzzyCMeans])
def test_a_callback_can_stop_a_run(kind):
    recorder = Recorder(stop_after=2)
    model = kind(3, n_init=1, init="random", tol=0, random_state=0).set_callbacks(recorder).fit(rows(300))
    assert model.n_iter_ == 2  # and no warning: that is what was asked for


def test_callbacks_end_with_a_fit_that_fails():
    recorder = Recorder()
    with pytest.raises(ValueError, match="not known"):
        KernelKMeans(3, kernel="unknown").set_callbacks(recorder).fit(rows(30))
    assert recorder.events[-1] == "teardown"


def test_scikit_learns_own_bar_works():
    pytest.importorskip("rich")
    bar = sklearn_callback.ProgressBar()
    model = KernelKMeans(3, n_init=2, init="random", random_state=0).set_callbacks(bar).fit(rows(300))
    assert model.labels_.shape == (300,)


def test_nobody_listening_costs_nothing():
    quiet = Progress()
    with quiet.task("pass", 10, "tiles") as steps:
        assert steps is quiet
    assert quiet.iteration(0, 1, 10) is False
