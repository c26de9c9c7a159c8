"""Fits that are killed: 20 times while tiles are written and 20 times between, at random moments, and resumed.

Each kill is SIGKILL to a process of its own; the next process goes on from the checkpoint. Every chain of processes
ends with a fit that was left alone, whose labels must be those of a fit that never was disturbed. Then a byte is
flipped in each of the tiles of a folder, one after the other.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mercer import Disk, KernelKMeans
from mercer.gram import TileFileError

KILLS = 20
FIT = {"n_clusters": 60, "gamma": 0.02, "init": "random", "n_init": 2, "tol": 0, "max_iter": 60, "random_state": 0}


def data(rows: int = 7000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(rows, 60)) + rng.integers(3, size=(rows, 1))).astype(np.float32)


def fit(checkpoint: str | None) -> np.ndarray:
    return KernelKMeans(storage="disk", checkpoint=checkpoint, **FIT).fit(data()).labels_


def start(folder: Path) -> subprocess.Popen:
    code = (
        "import sys, warnings, numpy as np; warnings.simplefilter('ignore'); from benchmarks.faults import fit; "
        "print('ready', flush=True); np.save(sys.argv[2], fit(sys.argv[1]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder / "checkpoint"), str(folder / "labels.npy")],
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    return process


def chain(folder: Path, rng: random.Random, kills: dict[str, int], seconds: float) -> np.ndarray:
    """Kill and go on until the fit has ended; how often in which phase is counted in `kills`."""
    state, tiles = folder / "checkpoint" / "state.mercer", folder / "checkpoint" / "kernel-tiles"
    while True:
        in_tiles = kills["tiles"] < KILLS and not state.exists() and not any(tiles.glob("*.bin"))
        process = start(folder)
        while in_tiles and process.poll() is None and not any(tiles.glob("*.part")):
            time.sleep(0.0005)  # until tiles are being written
        time.sleep(rng.uniform(0.0, 0.1 if in_tiles else 1.2 * seconds))
        saved = state.exists()
        process.kill()
        if process.wait() == 0:
            return np.load(folder / "labels.npy")
        if process.returncode > 0:
            raise SystemExit("a fit that was resumed failed: see above")
        if saved:
            kills["iterations"] += 1
        elif any(tiles.glob("*.part")):
            kills["tiles"] += 1


def kill_all() -> bool:
    started = time.perf_counter()
    whole = fit(None)
    seconds = time.perf_counter() - started
    kills, rng, chains, same = {"tiles": 0, "iterations": 0}, random.Random(0), 0, True
    while min(kills.values()) < KILLS:
        with tempfile.TemporaryDirectory() as folder:
            found = chain(Path(folder), rng, kills, seconds)
            same &= np.array_equal(found, whole) and not (Path(folder) / "checkpoint").exists()
        chains += 1
    print(f"killed {kills['tiles']} times while tiles were written and {kills['iterations']} times in iterations")
    print(f"all {chains} fits that were resumed ended in the labels of the undisturbed one: {'yes' if same else 'NO'}")
    return same


def flip_all() -> bool:
    """Flip a random bit of every tile in turn."""
    X, rng, found = data(3000), np.random.default_rng(0), 0
    with tempfile.TemporaryDirectory() as folder:
        model = KernelKMeans(5, storage=Disk(folder), random_state=0).fit(X)
        places = [(file, at, size) for file in sorted(Path(folder).glob("*.bin")) for at, size in _tiles(len(X))]
        for file, at, size in places:
            _flip(file, place := at + int(rng.integers(size)))
            try:
                KernelKMeans(5, storage=Disk(folder), random_state=0).fit(X)
            except TileFileError as error:
                found += file.name in str(error)
            _flip(file, place)
        again = KernelKMeans(5, storage=Disk(folder), random_state=0).fit(X)
    print(f"flipped a bit in each of {len(places)} tiles: {found} found and named")
    return found == len(places) and np.array_equal(again.labels_, model.labels_)


def _tiles(n: int) -> list[tuple[int, int]]:
    from mercer.gram import tile_sizes

    sizes = tile_sizes(n, np.dtype(np.float32))
    starts = np.cumsum([0] + [size + 64 for size in sizes])
    return [(int(start), size) for start, size in zip(starts, sizes, strict=False)]


def _flip(file: Path, at: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ 32]))


def main() -> bool:
    """Run all; whether every fit ended as it should."""
    return all([kill_all(), flip_all()])
