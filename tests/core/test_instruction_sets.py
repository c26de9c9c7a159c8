"""The choice of the instruction set."""

import os
import subprocess
import sys

import numpy as np
import pytest

from core.calls import KINDS, core_rows, kernel_block, numbers
from mercer import _core


def active_in_a_new_process(**variables):
    code = "from mercer import _core; print(_core.active())"
    environment = {name: value for name, value in os.environ.items() if name != "MERCER_ISA"} | variables
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_the_chosen_set_is_active(instruction_set):
    assert _core.active() == instruction_set


def test_short_names(instruction_set):
    _core.use(_core.instruction_sets()[0])
    _core.use(instruction_set.rsplit("-", 1)[-1])
    assert _core.active() == instruction_set


def test_unknown_set_names_those_that_can_be_had(instruction_set):
    with pytest.raises(ValueError, match=instruction_set):
        _core.use("x86-64-v9")
    assert _core.active() == instruction_set


def test_environment_forces_a_set(instruction_set):
    assert active_in_a_new_process(MERCER_ISA=instruction_set).stdout.strip() == instruction_set


def test_the_best_is_the_default():
    assert active_in_a_new_process().stdout.strip() == _core.instruction_sets()[-1]


def test_environment_with_an_unknown_set():
    result = active_in_a_new_process(MERCER_ISA="z80")
    assert result.returncode != 0
    assert "'z80' is not available" in result.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_all_sets_agree(dtype, kind, instruction_set):
    """To rounding: the sets differ in whether a product and a sum are rounded once or twice."""
    rng = np.random.default_rng(0)
    X, Z = core_rows(numbers(rng, (37, 11), dtype)), core_rows(numbers(rng, (41, 11), dtype))
    here = kernel_block(kind, X, Z, dtype, gamma=0.1)
    _core.use(_core.instruction_sets()[0])
    simplest = kernel_block(kind, X, Z, dtype, gamma=0.1)
    _core.use(instruction_set)
    np.testing.assert_allclose(here, simplest, rtol=0, atol=100 * np.finfo(dtype).eps * np.abs(simplest).max())
