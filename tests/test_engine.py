"""Threads, memory sizes and buffers."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import ThreadpoolController

from mercer.engine import memory
from mercer.engine.memory import aligned_empty, available_memory, format_bytes, parse_bytes
from mercer.engine.threads import Threads, blocks, effective_n_jobs

every_n_jobs = pytest.mark.parametrize("n_jobs", [1, 2, 5])


def within(seconds, function, *arguments):
    """Call in another thread, so that a deadlock fails instead of hanging."""
    outcome = []

    def call():
        try:
            outcome.append((function(*arguments), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"nothing came back within {seconds} s"
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def blas_threads():
    return [library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"]


# ---- map ----------------------------------------------------------------------------------------------------------


@every_n_jobs
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_map_keeps_the_order_of_the_tasks(n_jobs, count):
    def late_if_early(task):
        time.sleep(0.001 * (task % 3 == 0))
        return task * task

    with Threads(n_jobs) as pool:
        assert pool.map(late_if_early, (task for task in range(count))) == [task * task for task in range(count)]


@every_n_jobs
def test_map_passes_exceptions_on(n_jobs):
    with Threads(n_jobs) as pool:
        with pytest.raises(ZeroDivisionError):
            pool.map(lambda task: 1 / (task - 3), range(10))
        assert pool.map(abs, [-1, -2]) == [1, 2]


def test_map_runs_in_parallel():
    together = threading.Barrier(3, timeout=30)
    with Threads(3) as pool:
        assert sorted(pool.map(lambda _: together.wait(), range(3))) == [0, 1, 2]


def test_no_thread_outlives_the_pool():
    before = threading.active_count()
    with Threads(4) as pool:
        pool.map(abs, range(20))
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_one_job_and_one_task_start_no_thread():
    with Threads(1) as one, Threads(4) as four:
        here = threading.get_ident()
        assert one.map(lambda _: threading.get_ident(), range(3)) == [here] * 3
        assert four.map(lambda _: threading.get_ident(), range(1)) == [here]
        calls = []
        one.run_in_order(lambda i, j: calls.append(threading.get_ident()), [(0, 1), (1, 2)])
        assert calls == [here] * 2


# ---- run_in_order -------------------------------------------------------------------------------------------------


class Places:
    """Records who came to which place, and notices two at once."""

    def __init__(self):
        self.visits = {}
        self.busy = set()
        self.collided = False

    def visit(self, i, j):
        mine = {i, j}
        self.collided |= bool(self.busy & mine)
        self.busy |= mine
        time.sleep(0)
        for place in mine:
            self.visits.setdefault(place, []).append((i, j))
        self.busy -= mine


@settings(max_examples=100)
@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40), n_jobs=st.integers(1, 6))
def test_every_place_is_visited_in_order_and_alone(pairs, n_jobs):
    expected, actual = Places(), Places()
    for i, j in pairs:
        expected.visit(i, j)
    with Threads(n_jobs) as pool:
        within(60, pool.run_in_order, actual.visit, pairs)
    assert actual.visits == expected.visits
    assert not actual.collided


def test_pairs_without_a_common_place_run_in_parallel():
    together = threading.Barrier(3, timeout=30)
    with Threads(3) as pool:
        within(60, pool.run_in_order, lambda i, j: together.wait(), [(0, 1), (2, 3), (4, 4)])
    assert not together.broken


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize(
    "pairs", [[(0, 0)] * 200, [(k, k + 1) for k in range(200)], [(k % 7, k % 3) for k in range(200)]]
)
def test_an_exception_stops_the_rest(n_jobs, pairs):
    calls, lock = [], threading.Lock()

    def fail_at_the_tenth(i, j):
        with lock:
            calls.append((i, j))
            if len(calls) == 10:
                raise LookupError("the tenth")
        time.sleep(0.0005)

    with Threads(n_jobs) as pool:
        with pytest.raises(LookupError, match="the tenth"):
            within(60, pool.run_in_order, fail_at_the_tenth, pairs)
        finished = len(calls)
        assert 10 <= finished <= 10 + n_jobs
        within(60, pool.run_in_order, lambda i, j: calls.append((i, j)), pairs)
        assert calls[finished:] != []
    assert len(calls) == finished + len(pairs)


def test_when_an_exception_arrives_nothing_runs_any_more():
    running, started = [], threading.Event()

    def fail_or_linger(i, j):
        if i == 0:
            started.wait(30)
            raise LookupError
        running.append(i)
        started.set()
        time.sleep(0.05)
        running.remove(i)

    with Threads(2) as pool:
        with pytest.raises(LookupError):
            within(60, pool.run_in_order, fail_or_linger, [(0, 0), (1, 1), (2, 2)])
        assert running == []
    assert started.is_set()


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt, also in a background job, which starts with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_stops_the_rest():
    """Ctrl-C while the main thread waits for 4 s of work."""
    calls = []

    def interrupt_at_the_tenth(i, j):
        calls.append(i)
        if i == 9:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.004)

    with Threads(2) as pool:
        with pytest.raises(KeyboardInterrupt):
            pool.run_in_order(interrupt_at_the_tenth, [(k, k) for k in range(2000)])
        finished = len(calls)
        assert pool.map(abs, [-1, -2]) == [1, 2]
    assert 10 <= len(calls) == finished < 1000


# ---- BLAS ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_blas_threads():
    """BLAS with two threads, whatever the machine."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


@pytest.mark.usefixtures("two_blas_threads")
@every_n_jobs
@pytest.mark.parametrize("count", [1, 4])
def test_blas_has_one_thread_while_ours_run(n_jobs, count):
    """Also with one job or one task: the last bits of a product depend on the number of BLAS threads."""
    with Threads(n_jobs) as pool:
        assert pool.map(lambda _: set(blas_threads()), range(count)) == [{1}] * count
    assert set(blas_threads()) == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_products_have_the_same_bits_for_any_number_of_threads():
    A = np.random.default_rng(0).standard_normal((1000, 5000)).astype(np.float32)

    def products(n_jobs):
        with Threads(n_jobs) as pool:
            return np.concatenate(pool.map(lambda part: A[part] @ A[:30].T, blocks(1000, 500)))

    assert np.array_equal(products(1), products(2))
    assert np.array_equal(products(1), products(3))


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_is_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), Threads(2) as pool:
        pool.map(lambda task: 1 / task, range(4))
    assert set(blas_threads()) == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_is_restored_when_the_last_of_several_pools_ends():
    """Two fits in two threads of the user's may end in any order."""
    first, second = Threads(2), Threads(2)
    for pool in (first, second):
        pool.__enter__().map(abs, range(4))
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert set(blas_threads()) == {2}


# ---- n_jobs -------------------------------------------------------------------------------------------------------


def test_effective_n_jobs():
    cores = joblib.cpu_count()
    assert effective_n_jobs(None) == effective_n_jobs(-1) == cores
    assert effective_n_jobs(-2) == max(1, cores - 1)
    assert effective_n_jobs(-cores - 5) == 1
    assert effective_n_jobs(7) == effective_n_jobs(np.int64(7)) == 7
    assert Threads(3).n_jobs == 3


@pytest.mark.parametrize("n_jobs", [True, False, 1.0, "2"])
def test_n_jobs_must_be_an_integer(n_jobs):
    with pytest.raises(TypeError, match="n_jobs"):
        effective_n_jobs(n_jobs)


def test_no_jobs_make_no_sense():
    with pytest.raises(ValueError, match="n_jobs=0"):
        effective_n_jobs(0)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_joblib_worker_gets_one_thread_unless_it_asks(backend):
    asked = [None, 3, None, 3]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(effective_n_jobs)(n_jobs) for n_jobs in asked) == [1, 3, 1, 3]


# ---- fork ---------------------------------------------------------------------------------------------------------

FORK = """
    import multiprocessing
    import warnings

    import numpy as np

    from mercer import kernels
    from mercer.engine.threads import Threads

    X = np.random.default_rng(0).standard_normal((300, 20))
    kernel = kernels.RBF(gamma=0.1)

    def total():
        with Threads(2) as pool:
            return sum(pool.map(lambda part: kernel(X[part], X).sum(), [slice(0, 100), slice(100, 300)]))

    def child(queue):
        queue.put(total())

    expected = total()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads: our case
    with Threads(2) as pool:  # its threads are alive here, and absent in the child
        pool.map(abs, range(4))
        process = context.Process(target=child, args=(queue,))
        process.start()
        assert queue.get(timeout=60) == expected
        process.join(60)
    assert process.exitcode == 0
"""


def test_a_forked_child_can_compute():
    subprocess.run([sys.executable, "-c", textwrap.dedent(FORK)], check=True, timeout=120)


# ---- blocks and bytes ---------------------------------------------------------------------------------------------


@given(n=st.integers(0, 1000), size=st.integers(1, 100))
def test_blocks_cover_the_range_once(n, size):
    cut = blocks(n, size)
    assert [row for part in cut for row in range(n)[part]] == list(range(n))
    assert all(0 < part.stop - part.start <= size for part in cut)
    assert len(cut) == -(-n // size)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, None),
        (1, 1),
        (1e9, 10**9),
        (np.int64(5), 5),
        (np.float32(5.9), 5),
        ("17", 17),
        ("17 b", 17),
        ("2GB", 2 * 10**9),
        ("2g", 2 * 10**9),
        (" 512 MB ", 512 * 10**6),
        ("1.5GiB", 3 * 2**29),
        ("1KiB", 1024),
        ("1kb", 1000),
        ("3 TB", 3 * 10**12),
        ("1TiB", 2**40),
        ("2MiB", 2**21),
    ],
)
def test_parse_bytes(limit, expected):
    parsed = parse_bytes(limit)
    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize(
    "limit", [0, -1, 0.5, np.nan, np.inf, "", "GB", "0", "0.4 B", "-2GB", "2 G G", "2iB", "2EB", "1e9", "nan"]
)
def test_what_is_not_a_size(limit):
    with pytest.raises(ValueError, match="memory_limit"):
        parse_bytes(limit)


@pytest.mark.parametrize("limit", [True, False, [1], 1j, b"2GB"])
def test_what_cannot_be_a_size(limit):
    with pytest.raises(TypeError, match="memory_limit"):
        parse_bytes(limit)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1234, "1.2 kB"),
        (99_940, "99.9 kB"),
        (999_400, "999 kB"),
        (999_600, "1.0 MB"),
        (123_456_789, "123 MB"),
        (7_200_000_000, "7.2 GB"),
        (5e12, "5.0 TB"),
        (1.5e16, "15000 TB"),
    ],
)
def test_format_bytes(count, expected):
    assert format_bytes(count) == expected


@given(st.integers(0, 10**15))
def test_formatted_bytes_can_be_read_again(count):
    assert parse_bytes(format_bytes(count + 1)) == pytest.approx(count + 1, rel=0.051)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("shape", [0, 1, 7, (), (3, 5), (0, 4), (2, 3, 4)])
def test_aligned_empty(shape, dtype):
    array = aligned_empty(shape, dtype)
    array.fill(1)
    assert array.shape == np.empty(shape).shape
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.size == 0 or array.ctypes.data % 64 == 0
    assert array.sum() == array.size


def test_available_memory_is_plausible():
    assert 2**20 < available_memory() < 2**50


@pytest.mark.parametrize(
    ("limit", "usage", "expected"),
    [(1000, 300, 700), (1000, 2000, 0), (None, 300, 10**6), (1000, None, 10**6), (10**9, 0, 10**6)],
)
def test_available_memory_keeps_to_the_control_group(monkeypatch, limit, usage, expected):
    files = {"/sys/fs/cgroup/memory.max": limit, "/sys/fs/cgroup/memory.current": usage}
    monkeypatch.setattr(memory, "_meminfo_available", lambda: 10**6)
    monkeypatch.setattr(memory, "_number_in", files.get)
    assert available_memory() == expected


def test_files_of_the_system_that_are_absent_or_say_max(tmp_path):
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "number").write_text("123\n")
    assert memory._number_in(str(tmp_path / "absent")) is None
    assert memory._number_in(str(tmp_path / "max")) is None
    assert memory._number_in(str(tmp_path / "number")) == 123
