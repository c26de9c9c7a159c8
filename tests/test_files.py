"""Tiles in files: written once, checked when read, refused when they are of something else."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from mercer import Disk, KernelKMeans, kernels
from mercer.engine.threads import Threads
from mercer.gram import DiskGram, Moves, TileFileError, TileFiles, files

SIZES = [4000, 4000, 1000, 4000, 40, 4000]


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(files, "_FILE_BYTES", 9000)  # two tiles a file


def tile(index):
    return np.random.default_rng(index).integers(256, size=SIZES[index], dtype=np.uint8)


def tiles(folder, of="x", until=6):
    found = TileFiles(SIZES, {"of": of}, folder)
    while found.missing and found.missing[0] < until:
        found.write(tile(found.missing[0]))
    return found


def assert_whole(found, of=tile):
    assert found.missing == []
    for index in (3, 0, 5, 1, 2, 4):
        out = np.empty(SIZES[index], dtype=np.uint8)
        found.read(index, out)
        np.testing.assert_array_equal(out, of(index))


@pytest.mark.parametrize("named", [True, False])
def test_what_is_written_is_read(tmp_path, named):
    with tiles(tmp_path if named else None) as found:
        assert_whole(found)
        found.expect(2)
    if named:
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "manifest.json",
            *(f"tiles-000{number}.bin" for number in range(3)),
        ]
        with TileFiles(SIZES, {"of": "x"}, tmp_path) as again:
            assert_whole(again)


@pytest.mark.parametrize("until", range(len(SIZES)))
def test_an_interrupted_build_goes_on(tmp_path, until):
    tiles(tmp_path, until=until).close()
    with TileFiles(SIZES, {"of": "x"}, tmp_path) as found:
        assert found.missing == list(range(until, len(SIZES)))
    with tiles(tmp_path) as found:
        assert_whole(found)


@pytest.mark.parametrize("cut", [1, 63, 64, 65, 4000, 4063])
def test_what_was_half_written_is_written_again(tmp_path, cut):
    tiles(tmp_path, until=4).close()
    part = tmp_path / "tiles-0001.part"
    os.truncate(part, part.stat().st_size - cut)
    with TileFiles(SIZES, {"of": "x"}, tmp_path) as found:
        assert found.missing[0] == 3
    with tiles(tmp_path) as found:
        assert_whole(found)


def test_an_interrupted_manifest_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tiles(tmp_path)
    assert not list(tmp_path.glob("manifest*"))
    (tmp_path / "manifest.123.part").write_text("of a process that was killed")
    with tiles(tmp_path) as found:
        assert_whole(found)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("number", range(3))
def test_a_file_that_is_whole_but_has_not_got_its_name_yet_is_taken(tmp_path, number):
    tiles(tmp_path).close()
    os.rename(tmp_path / f"tiles-000{number}.bin", tmp_path / f"tiles-000{number}.part")
    with TileFiles(SIZES, {"of": "x"}, tmp_path) as found:
        assert_whole(found)


def test_tiles_of_something_else_are_refused_with_what_differs(tmp_path):
    tiles(tmp_path).close()
    with pytest.raises(TileFileError, match=r"of something else: of x there, y here.*another folder"):
        TileFiles(SIZES, {"of": "y"}, tmp_path)


def test_a_file_of_something_else_is_found(tmp_path):
    """The manifest is right, but one file comes from other tiles of the same sizes."""
    tiles(tmp_path / "a").close()
    tiles(tmp_path / "b", of="y").close()
    os.replace(tmp_path / "b" / "tiles-0001.bin", tmp_path / "a" / "tiles-0001.bin")
    with TileFiles(SIZES, {"of": "x"}, tmp_path / "a") as found:
        with pytest.raises(TileFileError, match=r"tile 2 is damaged.*delete it and fit again.*tiles-0001\.bin"):
            found.read(2, np.empty(SIZES[2], dtype=np.uint8))
        found.read(0, np.empty(SIZES[0], dtype=np.uint8))


@pytest.mark.parametrize("index", range(len(SIZES)))
def test_a_flipped_byte_in_any_tile_is_found_before_it_is_used(tmp_path, index):
    with tiles(tmp_path) as found:
        home = found._home[index]
        place = found.folder / f"tiles-{home.number:04d}.bin"
        at = home.offsets[index - home.first]
    for byte in (0, SIZES[index] - 1, SIZES[index], SIZES[index] + 7):  # in the values, and in the checksum
        data = bytearray(place.read_bytes())
        data[at + byte] ^= 16
        place.write_bytes(data)
        with TileFiles(SIZES, {"of": "x"}, tmp_path) as found, pytest.raises(TileFileError, match=place.name):
            found.read(index, np.empty(SIZES[index], dtype=np.uint8))
        data[at + byte] ^= 16
        place.write_bytes(data)
    with TileFiles(SIZES, {"of": "x"}, tmp_path) as found:
        assert_whole(found)


def test_a_missing_file_is_written_again_and_a_short_one_is_named(tmp_path):
    tiles(tmp_path).close()
    (tmp_path / "tiles-0001.bin").unlink()
    with tiles(tmp_path) as found:
        assert_whole(found)
    os.truncate(tmp_path / "tiles-0002.bin", 100)
    with pytest.raises(TileFileError, match=r"100 bytes in place of 4,064; delete it and fit again.*tiles-0002\.bin"):
        TileFiles(SIZES, {"of": "x"}, tmp_path)


def test_a_file_that_goes_missing_during_a_fit_is_named(tmp_path):
    tiles(tmp_path).close()
    with TileFiles(SIZES, {"of": "x"}, tmp_path) as found:
        (tmp_path / "tiles-0001.bin").unlink()
        with pytest.raises(TileFileError, match=r"cannot be read: No such file.*tiles-0001\.bin"):
            found.read(2, np.empty(SIZES[2], dtype=np.uint8))


@pytest.mark.parametrize(
    ("text", "message"),
    [("not json", "not a manifest"), ("[]", "not a manifest"), ('{"of": {}, "version": 99}', "another version")],
)
def test_a_manifest_that_cannot_be_read_is_named(tmp_path, text, message):
    tiles(tmp_path).close()
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(TileFileError, match=rf"{message}.*manifest\.json"):
        TileFiles(SIZES, {"of": "x"}, tmp_path)


def test_tiles_without_a_manifest_are_refused(tmp_path):
    tiles(tmp_path).close()
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(TileFileError, match=r"tiles but no manifest"):
        TileFiles(SIZES, {"of": "x"}, tmp_path)


def test_one_process_writes_at_a_time(tmp_path):
    with tiles(tmp_path, until=2), pytest.raises(TileFileError, match="another process is writing"):
        TileFiles(SIZES, {"of": "x"}, tmp_path)
    with tiles(tmp_path), TileFiles(SIZES, {"of": "x"}, tmp_path) as second:  # reading is for all
        assert_whole(second)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TileFileError, match=r"tiles cannot be kept in .*: Not a directory.*folder"):
        TileFiles(SIZES, {"of": "x"}, tmp_path / "file" / "folder")


def test_a_folder_without_permission_is_named(tmp_path):
    code = f"""
        import os
        from mercer.gram import TileFileError, TileFiles
        folder = {str(tmp_path)!r}
        os.chmod(folder, 0o500)
        if os.geteuid() == 0:  # to whom everything is permitted
            os.chmod(folder, 0o555)
            os.setuid(65534)
        try:
            TileFiles([8], {{}}, folder)
        except TileFileError as error:
            assert folder in str(error), error
            print(error.strerror)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "tiles cannot be kept in" in run.stdout, run.stderr
    assert "Permission denied" in run.stdout


# ---- a disk that is full ----------------------------------------------------------------------------------------


def test_too_little_space_is_said_before_anything_is_written(tmp_path):
    with pytest.raises(TileFileError, match=r"the tiles to be written take 10000 TB and .* are free"):
        TileFiles([10**16], {"of": "x"}, tmp_path)
    with pytest.raises(TileFileError, match="are free"):
        TileFiles([10**16], {"of": "x"})


FULL = """
    import resource, signal, sys
    import numpy as np
    from mercer.gram import TileFileError, TileFiles, files
    sys.path.insert(0, {tests!r})
    import test_files
    files._FILE_BYTES = 9000
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    try:
        test_files.tiles({folder!r})
    except TileFileError as error:
        print(error)
"""


def test_a_write_that_fails_leaves_nothing_half_written(tmp_path):
    """A limit on the size of files stands for a disk that is full in the middle of a tile."""
    code = textwrap.dedent(FULL.format(tests=os.path.dirname(__file__), folder=str(tmp_path)))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "File too large after 1 of 6 tiles; the next fit goes on from there" in run.stdout
    assert "tiles-0000.part" in run.stdout
    assert (tmp_path / "tiles-0000.part").stat().st_size == SIZES[0] + 64
    with tiles(tmp_path) as found:
        assert_whole(found)


def can_mount():
    probe = "d=$(mktemp -d) && mount -t tmpfs -o size=1m none $d"
    return subprocess.run(["unshare", "-rm", "sh", "-c", probe], capture_output=True).returncode == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts a file system of Linux")
def test_a_small_file_system_that_fills_up(tmp_path):
    """A tmpfs of 2 MB, 1 MB of which is taken after the fit has looked how much is free."""
    if not can_mount():
        pytest.skip("file systems cannot be mounted here")
    code = f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import numpy as np, os, shutil
        from mercer.gram import TileFileError, TileFiles, files
        files._FILE_BYTES = 700_000
        sizes = [100_000] * 15
        def write(found):
            while found.missing:
                found.write(np.full(100_000, found.missing[0], np.uint8))
        found = TileFiles(sizes, {{}}, "tiles")
        open("ballast", "wb").write(bytes(1_000_000))
        try:
            write(found)
        except TileFileError as error:
            print(error)
        found.close()
        os.unlink("ballast")
        found = TileFiles(sizes, {{}}, "tiles")
        print("to do:", len(found.missing))
        write(found)
        for index in range(15):
            out = np.empty(100_000, np.uint8)
            found.read(index, out)
            assert (out == index).all()
        print("whole")
    """
    script = tmp_path / "fill.py"
    script.write_text(textwrap.dedent(code))
    shell = f"mount -t tmpfs -o size=2m none {tmp_path} && cd {tmp_path} && {sys.executable} -"
    run = subprocess.run(
        ["unshare", "-rm", "sh", "-c", shell], input=script.read_text(), capture_output=True, text=True
    )
    assert "No space left on device after" in run.stdout, run.stderr
    assert "whole" in run.stdout, run.stderr
    assert 0 < int(run.stdout.split("to do:")[1].split()[0]) < 15


# ---- as a user meets them ---------------------------------------------------------------------------------------


def rows(n=1200, d=4):
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


def fit(X, folder, k=3, seed=0, gamma=0.3, **more):
    return KernelKMeans(k, gamma=gamma, storage=Disk(folder), random_state=seed, **more).fit(X)


def test_a_folder_serves_later_fits_of_other_k_seed_and_weights(tmp_path, monkeypatch):
    X = rows()
    fit(X, tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("tiles-*")}

    def never(*_):
        raise AssertionError("a tile was evaluated")

    monkeypatch.setattr(DiskGram, "_evaluate", never)
    model = fit(X, tmp_path, k=5, seed=7)
    fit(X, tmp_path, n_init=2, init="random")
    KernelKMeans(4, gamma=0.3, storage=Disk(tmp_path)).fit(X, sample_weight=np.arange(1200) % 3)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("tiles-*")} == times
    in_memory = KernelKMeans(5, gamma=0.3, storage="memory", random_state=7).fit(X)
    np.testing.assert_array_equal(model.labels_, in_memory.labels_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 0.31}, r"kernel RBF\(gamma=0\.3\) there, RBF\(gamma=0\.31\) here"),
        ({"X": rows() + 1}, "data .* there, .* here"),
        ({"X": rows().astype(np.float64)}, "precision float32 there, float64 here"),
        ({"X": rows(1100)}, "rows 1200 there, 1100 here"),
        ({"X": rows()[::-1]}, "data .* there"),
    ],
)
def test_a_folder_of_another_matrix_is_refused(tmp_path, change, message):
    fit(rows(), tmp_path)
    with pytest.raises(TileFileError, match=message):
        fit(**{"X": rows(), "folder": tmp_path} | change)


def test_a_whole_folder_is_read_without_permission_to_write(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_FILE_BYTES", 256 << 20)  # as in another process
    X = rows(4200)
    fit(X, tmp_path)
    code = f"""
        import os, sys, tempfile
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_files
        from mercer import KernelKMeans
        KernelKMeans(2, storage="disk").fit(test_files.rows(50))  # imports what it needs
        if os.geteuid() == 0:
            os.setuid(65534)
        print(test_files.fit(test_files.rows(4200), {str(tmp_path)!r}).labels_.sum())
    """
    for path in (tmp_path, *tmp_path.parents):
        if path.name.startswith("pytest") or path == tmp_path:
            path.chmod(0o755)
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    tmp_path.chmod(0o555)
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert run.stdout.split() == [str(fit(X, tmp_path).labels_.sum())], run.stderr


def test_a_disk_whose_speed_cannot_be_measured_is_no_obstacle(monkeypatch):
    from mercer.planner import speeds

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(speeds, "_measure_device", full)
    X = rows(4200)
    assert KernelKMeans(3, gamma=0.3, storage="recompute").fit(X).plan_.storage == "recompute"
    model = KernelKMeans(3, gamma=0.3, method="exact", memory_limit="30MB", n_jobs=1).fit(X)
    assert model.plan_.storage == "recompute"


def test_processes_that_start_together_in_one_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_FILE_BYTES", 256 << 20)  # as in another process
    code = f"""
        import sys, time
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_files
        from mercer.gram import TileFileError
        X = test_files.rows(3000)
        while time.time() < float(sys.argv[1]):
            pass
        try:
            print(test_files.fit(X, {str(tmp_path / "tiles")!r}).labels_.sum())
        except TileFileError as error:
            print(error.strerror)
    """
    begin = str(time.time() + 3)
    command = [sys.executable, "-c", textwrap.dedent(code), begin]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [run.communicate()[0].strip() for run in runs]
    good = str(fit(rows(3000), tmp_path / "tiles").labels_.sum())
    assert good in said
    assert all(words == good or "another process is writing tiles" in words for words in said), said


def test_a_home_folder_is_understood(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    fit(rows(), "~/tiles")
    assert (tmp_path / "tiles" / "manifest.json").exists()


def test_nothing_stays_open_after_an_error(monkeypatch, tmp_path):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.estimators.exact.warn_if_uninformative", fail)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(rows(), tmp_path)
    assert set(os.listdir("/proc/self/fd")) <= before  # while the traceback is held
    assert caught.tb is not None


def test_a_folder_without_locks_is_used_without(tmp_path, monkeypatch):
    def unknown(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", unknown)
    with tiles(tmp_path) as found:
        assert_whole(found)


def test_a_function_is_read_from_its_tiles_only(tmp_path):
    calls = []

    def kernel(A, B):
        calls.append(A.shape)
        return A @ B.T

    for _ in range(2):
        model = KernelKMeans(3, kernel=kernel, storage=Disk(tmp_path), init="random", random_state=0).fit(rows())
        first, calls[:] = len(calls), []
    assert first <= 10  # diagonal blocks alone
    assert model.n_iter_ > 1


def test_a_changed_function_is_another_kernel(tmp_path):
    def kernel(slope):
        return lambda A, B: slope * A @ B.T

    KernelKMeans(3, kernel=kernel(1.0), storage=Disk(tmp_path)).fit(rows())
    KernelKMeans(3, kernel=kernel(1.0), storage=Disk(tmp_path)).fit(rows())
    with pytest.raises(TileFileError, match="kernel"):
        KernelKMeans(3, kernel=kernel(2.0), storage=Disk(tmp_path)).fit(rows())


def test_an_interrupted_fit_leaves_tiles_that_the_next_goes_on_from(tmp_path, monkeypatch):
    calls = 0
    evaluate = DiskGram._evaluate

    def interrupted(self, i, j, out):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return evaluate(self, i, j, out)

    monkeypatch.setattr(DiskGram, "_evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(rows(), tmp_path, n_jobs=1)
    fit(rows(), tmp_path, n_jobs=1)
    assert calls == 15 + 1  # five blocks, fifteen tiles, one of which twice
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["of"]["kernel"] == "RBF(gamma=0.3)"


def test_temporary_files_have_no_name_and_no_folder(tmp_path):
    """Whatever ends the process, nothing is left: also SIGKILL in the middle."""
    code = """
        import os, signal
        import numpy as np
        from mercer import KernelKMeans
        from mercer.gram import DiskGram
        X = np.random.default_rng(0).normal(size=(3000, 4))
        KernelKMeans(3, storage="disk").fit(X)
        assert os.listdir(os.environ["TMPDIR"]) == []
        def die(*_):
            os.kill(os.getpid(), signal.SIGKILL)
        DiskGram.announce = die
        KernelKMeans(3, storage="disk").fit(X)
    """
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert list(tmp_path.iterdir()) == []


def test_half_precision_takes_half_and_refuses_what_it_cannot_hold(tmp_path):
    X = rows()
    whole, half = (
        KernelKMeans(3, gamma=0.3, storage=Disk(tmp_path / name, name), random_state=0).fit(X)
        for name in ("float32", "float16")
    )
    size = {name: sum(p.stat().st_size for p in (tmp_path / name).glob("*.bin")) for name in ("float32", "float16")}
    assert size["float16"] < 0.51 * size["float32"]
    assert half.inertia_ == pytest.approx(whole.inertia_, rel=2e-3)
    assert (half.labels_ == whole.labels_).mean() > 0.98
    with pytest.raises(ValueError, match=r"values of Linear\(\) overflow float16"):
        KernelKMeans(3, kernel="linear", storage=Disk(dtype="float16")).fit(300 * X)


def test_half_precision_gives_the_same_sums_from_tiles_and_from_rows():
    X, kernel = rows(), kernels.RBF(0.3)
    model = {}
    for cost in (0.0, np.inf):
        with (
            Threads(2) as pool,
            DiskGram(kernel, kernel.rows(X), kernel.keys(X), Disk(dtype="float16"), pool, cost) as gram,
        ):
            labels, later = np.zeros(1200, np.int32), (np.arange(1200) % 7 == 0).astype(np.int32)
            sums = np.zeros((2, 1200))
            gram.add(sums, Moves.between(None, labels, np.ones(1200)), pool)
            gram.add(sums, Moves.between(labels, later, np.ones(1200)), pool)
            model[cost] = sums
    np.testing.assert_array_equal(model[0.0], model[np.inf])


@pytest.mark.parametrize("bad", [{"dtype": "int8"}, {"folder": 3}])
def test_a_disk_that_makes_no_sense_is_refused(bad):
    with pytest.raises((TypeError, ValueError), match=r"dtype=|folder must"):
        Disk(**bad)
