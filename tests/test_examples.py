import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DEMO = Path(__file__).parent.parent / "examples" / "demo.py"


def run(folder, data):
    """Run the demo in an empty folder; return what it printed and the rows of its table by data set and method."""
    environment = os.environ | {"MERCER_DATA": str(data), "MPLCONFIGDIR": str(folder / "matplotlib")}
    command = [sys.executable, "-W", "error", str(DEMO), "--quick"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(\S+) +(K.*?) +([\d.]+) +([\d.]+) +([\d.]+)$", done.stdout, re.MULTILINE)
    return done.stdout, {(name, method): [float(v) for v in values] for name, method, *values in found}


@pytest.fixture
def empty(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    return data


def test_demo_without_data_separates_the_rings_and_draws_them(tmp_path, empty):
    printed, rows = run(tmp_path, empty)
    assert len(rows) == 3
    nmi, objective, _ = rows["rings", "KernelKMeans, gamma=4"]
    assert nmi > 0.95
    assert rows["rings", "KMeans"][0] < 0.2
    assert objective < min(rows["rings", "KMeans"][1], rows["rings", "KernelKMeans, gamma='auto'"][1])
    assert "pendigits: left out" in printed
    picture = tmp_path / "demo" / "rings.png"
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_with_pendigits_in_the_data_folder(tmp_path, empty):
    # A stand-in with the set's shape and classes, which are easy to tell apart.
    y = np.repeat(np.arange(10), [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055])
    centers = np.random.default_rng(0).integers(0, 100, (10, 16))
    np.savez(empty / "pendigits.npz", X=centers[y] + np.arange(len(y))[:, None] % 3, y=y)
    printed, rows = run(tmp_path, empty)
    assert len(rows) == 6
    assert rows["pendigits", "KernelKMeans, gamma=1"][0] > 0.95
    assert "left out" not in printed
