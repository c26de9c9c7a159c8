"""Half precision and checksums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import _core


def narrow(values):
    out = np.empty(len(values), dtype=np.uint16)
    _core.narrow(values, out)
    return out.view(np.float16)


def widen(halves):
    out = np.empty(len(halves), dtype=np.float32)
    _core.widen(halves.view(np.uint16), out)
    return out


def test_every_half_is_widened_as_numpy_does():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(widen(halves), halves.astype(np.float32))


def test_every_half_comes_back():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(narrow(widen(halves)), halves)


@pytest.mark.parametrize("length", [0, 1, 7, 16, 17, 1000])
def test_narrowing_rounds_as_numpy_does(length):
    words = np.random.default_rng(length).integers(2**32, size=length, dtype=np.uint32)
    values = words.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(narrow(values), values.astype(np.float16))


def test_ties_go_to_the_even_neighbour():
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (halves[1:] + halves[:-1]) / 2
    for values in (between, -between, np.nextafter(between, np.float32(0)), np.nextafter(between, np.float32(1e9))):
        np.testing.assert_array_equal(narrow(values), values.astype(np.float16))
    beyond = np.array([65503.9, 65519.9, 65520, 65536, 1e30, np.inf, np.nan], dtype=np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow(beyond), beyond.astype(np.float16))


def reference_checksum(data, seed):
    """The same in Python's integers."""

    def scramble(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    padded = data + bytes(-len(data) % 256)
    lanes = [0] * 64
    for at in range(0, len(padded), 4):
        lane = (lanes[at // 4 % 64] ^ int.from_bytes(padded[at : at + 4], "little")) * 0x9E3779B1 % 2**32
        lanes[at // 4 % 64] = lane ^ (lane >> 15)
    total = scramble(seed ^ len(data))
    for lane in lanes:
        total = scramble((total + lane + 0x9E3779B97F4A7C15) % 2**64)
    return total


@given(st.binary(max_size=900), st.integers(0, 2**64 - 1))
def test_checksum_is_the_definition(data, seed):
    assert _core.checksum(np.frombuffer(data, np.uint8), seed) == reference_checksum(data, seed)


def test_every_flipped_bit_is_seen():
    data = np.random.default_rng(0).integers(256, size=1111, dtype=np.uint8)
    sums = {_core.checksum(data, 5)}
    for at in range(len(data)):
        for bit in (0, 3, 7):
            data[at] ^= 1 << bit
            sums.add(_core.checksum(data, 5))
            data[at] ^= 1 << bit
    assert len(sums) == 1 + 3 * len(data)
    assert len({_core.checksum(data, seed) for seed in range(100)} | {_core.checksum(data[:-1], 0)}) == 101


def test_short_buffers_are_refused():
    with pytest.raises(ValueError, match="too short"):
        _core.narrow(np.zeros(4, np.float32), np.zeros(3, np.uint16))
    with pytest.raises(ValueError, match="too short"):
        _core.widen(np.zeros(4, np.uint16), np.zeros(3, np.float32))
