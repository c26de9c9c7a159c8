import numpy as np
import pytest

from mercer import _core


@pytest.fixture(params=_core.instruction_sets(), scope="module", autouse=True)
def instruction_set(request):
    """Run every test of this folder once for each instruction set of this machine."""
    before = _core.active()
    _core.use(request.param)
    yield request.param
    _core.use(before)


@pytest.fixture(params=[np.float32, np.float64], scope="module", ids=["float32", "float64"])
def dtype(request):
    return request.param
