"""Digests of values: the same in another process, and another for any other value."""

import functools
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from mercer.kernels.identity import stable_digest

SCALE = 2.0


def scaled(A, B):
    return SCALE * A @ B.T


def other(A, B):
    return SCALE * A @ B.T + 0


def outer(A, B):
    return scaled(A, B)


class Gaussian:
    def __init__(self, gamma):
        self.gamma = gamma

    def __call__(self, A, B):
        return np.exp(-self.gamma * A @ B.T)

    def method(self, A, B):
        return self.gamma * A @ B.T


def closure(value):
    return lambda A, B: value * A @ B.T


def keyword(slope):
    def kernel(A, B, *, slope=slope):
        return slope * A @ B.T

    return kernel


def nested(number):
    source = f"def kernel(A, B):\n    return (lambda: {number} * A @ B.T)()"
    space = {}
    exec(source, space)
    return space["kernel"]


long = np.arange(2000.0)
changed = long.copy()
changed[1000] += 1e-9

PAIRS = [
    (1, 2),
    (1, 1.0),
    (1, True),
    ("a", b"a"),
    ([1, 2], [2, 1]),
    ([1, [2]], [[1], 2]),
    ((1,), [1]),
    ({"a": 1}, {"a": 2}),
    (long, changed),
    (long, long.astype(np.float32)),
    (long, long.reshape(2, 1000)),
    (sparse.eye_array(5, format="csr"), sparse.eye_array(5, format="csr") * 2),
    (scaled, other),
    (Gaussian(1.0), Gaussian(2.0)),
    (Gaussian(1.0).method, Gaussian(2.0).method),
    (functools.partial(scaled, B=1), functools.partial(scaled, B=2)),
    (closure(1.0), closure(2.0)),
    (closure(long), closure(changed)),
    (keyword(1.0), keyword(2.0)),
    (nested(1), nested(2)),
    (np.dot, np.inner),
    (np.sin, np.cos),
    (np.float64(1.0), np.float32(1.0)),
]


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_other_values_have_other_digests_and_equal_ones_the_same(number):
    one, two = PAIRS[number]
    assert stable_digest(one) != stable_digest(two)
    assert stable_digest(one) == stable_digest(one)


def test_a_global_that_a_function_names_belongs_to_it(monkeypatch):
    before = stable_digest(scaled), stable_digest(outer)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert stable_digest(scaled) != before[0]
    assert stable_digest(outer) != before[1]


def test_equal_objects_have_equal_digests():
    assert stable_digest(Gaussian(1.0)) == stable_digest(Gaussian(1.0))
    assert stable_digest(closure(long)) == stable_digest(closure(long.copy()))
    assert stable_digest({"a": 1, "b": 2}) == stable_digest({"b": 2, "a": 1})


def test_what_holds_itself_ends():
    values = [1]
    values.append(values)
    assert len(stable_digest(values)) == 16


def test_what_cannot_be_known_is_never_the_same():
    lock = __import__("threading").Lock()
    assert stable_digest(lock) != stable_digest(lock)


def test_another_process_finds_the_same():
    code = "import test_identity as t; print([t.stable_digest(one) for one, _ in t.PAIRS])"
    folder = __file__.rpartition("/")[0]
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str([stable_digest(one) for one, _ in PAIRS])
