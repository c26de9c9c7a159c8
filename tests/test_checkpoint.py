"""Checkpoints: an interrupted fit goes on to the result of an undisturbed one, and no other fit is taken for it."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from interrupt import interrupt_after

from mercer import Disk, KernelFuzzyCMeans, KernelKMeans, KernelPossibilisticCMeans, Nystroem
from mercer.engine.checkpoint import Checkpoint, CheckpointError


@dataclass(frozen=True)
class Thing:
    number: float
    parts: tuple


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, Thing):
        return isinstance(b, Thing) and same((a.number, a.parts), (b.number, b.parts))
    return type(a) is type(b) and a == b


numbers = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text()
dtypes = st.sampled_from([np.float64, np.float32, np.int32, np.int64, np.uint64, np.bool_])
leaves = numbers | dtypes.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=1, min_side=0)))
states = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.tuples(inner, inner)
        | st.builds(Thing, st.floats(allow_nan=False), st.tuples(inner))
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(states)
def test_state_comes_back_as_it_was(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("state")
    with Checkpoint(folder) as first:
        first.save(state)
    with Checkpoint(folder) as again:
        assert same(state, again.load([Thing]))


def test_without_a_folder_nothing_is_kept():
    checkpoint = Checkpoint()
    assert not checkpoint.due
    assert checkpoint.load() is None
    checkpoint.remove()


def test_saving_is_seldom(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.due
    checkpoint.save({"large": np.zeros(10**6)})
    assert not checkpoint.due


def test_other_work_is_refused_with_what_differs(tmp_path):
    with Checkpoint(tmp_path) as first:
        first.require({"seed": 3, "kernel": "RBF(gamma=1.0)"})
        first.save({})
    with Checkpoint(tmp_path) as again:
        again.require({"seed": 3, "kernel": "RBF(gamma=1.0)"})
    message = r"of another fit: seed was 3 and is 4\. Restore that, use another"
    with Checkpoint(tmp_path) as other, pytest.raises(CheckpointError, match=message):
        other.require({"seed": 4, "kernel": "RBF(gamma=1.0)"})


def load(folder):
    with Checkpoint(folder) as checkpoint:
        return checkpoint.load()


def test_every_damaged_byte_is_found(tmp_path):
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.save({"labels": np.arange(5), "number": 3})
    path = tmp_path / "state.mercer"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(CheckpointError, match=r"state\.mercer is (damaged|of another version).*delete it"):
            load(tmp_path)
    for length in (0, 5, 40, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="damaged"):
            load(tmp_path)


# ---- fits that are interrupted ------------------------------------------------------------------------------------


def rows(n=700):
    rng = np.random.default_rng(4)
    return np.concatenate([rng.normal(c, 1.2, size=(n // 5, 3)) for c in (0, 1, 2, 3, 4)]).astype(np.float32)


FITS = {
    "exact": lambda **more: KernelKMeans(5, gamma=0.3, method="exact", init="random", n_init=2, tol=0, **more),
    "k-means++": lambda **more: KernelKMeans(5, gamma=0.3, method="exact", n_init=3, tol=0, **more),
    "recompute": lambda **more: KernelKMeans(5, gamma=0.3, storage="recompute", init="random", n_init=2, tol=0, **more),
    "disk": lambda **more: KernelKMeans(5, gamma=0.3, storage="disk", init="points", n_init=2, tol=0, **more),
    "indefinite": lambda **more: KernelKMeans(
        5, kernel="sigmoid", method="exact", init="random", n_init=2, max_iter=12, tol=0, **more
    ),
    "nystroem": lambda **more: KernelKMeans(5, gamma=0.3, method="nystroem", init="random", n_init=2, tol=0, **more),
    "apnc": lambda **more: KernelKMeans(5, gamma=0.3, method="apnc", n_init=2, tol=0, **more),
    "fuzzy": lambda **more: KernelFuzzyCMeans(3, gamma=0.3, method="exact", init="points", n_init=2, m=1.5, **more),
    "fuzzy, embedded": lambda **more: KernelFuzzyCMeans(3, gamma=0.3, method="nystroem", init="points", m=1.5, **more),
    "fuzzy, not kept": lambda **more: KernelFuzzyCMeans(
        3, gamma=0.3, method="nystroem", init="points", m=1.5, keep_memberships=False, **more
    ),
    "possibilistic": lambda **more: KernelPossibilisticCMeans(
        3, gamma=0.3, method="exact", init="points", n_init=2, m=1.5, **more
    ),
}


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("random_state", [0, None])
def test_an_interrupted_fit_ends_as_an_undisturbed_one(tmp_path, monkeypatch, name, random_state):
    X, weight = rows(), np.random.default_rng(1).integers(1, 4, 700).astype(float)
    folder = tmp_path / "checkpoint"
    interruptions = 0
    while True:
        with monkeypatch.context() as patch:
            interrupt_after(patch, 2)
            try:
                model = FITS[name](checkpoint=folder, random_state=random_state).fit(X, sample_weight=weight)
                break
            except KeyboardInterrupt:
                interruptions += 1
                with Checkpoint(folder) as left:
                    seed = left.known("seed")
                assert interruptions < 200
    assert interruptions > 0
    assert not folder.exists()
    if random_state is None:  # the draws are those of the first attempt
        monkeypatch.setattr(KernelKMeans, "_seed", lambda self, checkpoint: seed)
        monkeypatch.setattr(KernelFuzzyCMeans, "_seed", lambda self, checkpoint: seed)
        monkeypatch.setattr(KernelPossibilisticCMeans, "_seed", lambda self, checkpoint: seed)
    whole = FITS[name](random_state=random_state).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    assert model.n_iter_ == whole.n_iter_
    records = [[(r.objective, getattr(r, "moved", 0)) for r in m.history_] for m in (model, whole)]
    assert records[0] == records[1]
    objective = "inertia_" if hasattr(model, "inertia_") else "objective_"
    assert getattr(model, objective) == getattr(whole, objective)
    np.testing.assert_array_equal(model.predict(X[:50]), whole.predict(X[:50]))


def interrupted_fit(monkeypatch, folder, **more):
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            FITS["exact"](checkpoint=folder, **{"random_state": 0} | more).fit(rows())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 4}, "n_clusters was 5 and is 4"),
        ({"tol": 0.1}, r"tol was 0 and is 0\.1"),
        ({"gamma": 0.4}, r"kernel was RBF\(gamma=0\.3\) and is RBF\(gamma=0\.4\)"),
        ({"random_state": 5}, "seed was"),
        ({"method": "nystroem"}, "method was 'exact' and is 'nystroem'"),
        ({"init": np.zeros(700, int)}, r"init was 'random' and is ndarray \(700,\)"),
    ],
)
def test_other_parameters_are_refused(tmp_path, monkeypatch, change, message):
    interrupted_fit(monkeypatch, tmp_path)
    with pytest.raises(CheckpointError, match=message):
        FITS["exact"](checkpoint=tmp_path, random_state=0).set_params(**change).fit(rows())


def test_other_data_and_weights_are_refused(tmp_path, monkeypatch):
    interrupted_fit(monkeypatch, tmp_path)
    model = FITS["exact"](checkpoint=tmp_path, random_state=0)
    with pytest.raises(CheckpointError, match="data was 700 x 3 float32"):
        model.fit(rows() * 2)
    with pytest.raises(CheckpointError, match="data was 700 x 3 float32"):
        model.fit(rows().astype(float))
    with pytest.raises(CheckpointError, match="sample_weight was"):
        model.fit(rows(), sample_weight=np.arange(700))


def test_another_storage_and_number_of_threads_go_on(tmp_path, monkeypatch):
    interrupted_fit(monkeypatch, tmp_path, storage="memory", n_jobs=1)
    model = FITS["exact"](checkpoint=tmp_path, random_state=0, storage=Disk(tmp_path / "kept"), n_jobs=2).fit(rows())
    np.testing.assert_array_equal(model.labels_, FITS["exact"](random_state=0).fit(rows()).labels_)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]  # what the user named stays


def test_a_checkpoint_is_of_the_whole_kernel_matrix(tmp_path, monkeypatch):
    K = np.exp(-0.3 * ((rows()[:, None] - rows()[None]) ** 2).sum(axis=2))
    settings = {
        "kernel": "precomputed",
        "init": "random",
        "n_init": 2,
        "tol": 0,
        "checkpoint": tmp_path,
        "random_state": 0,
    }
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            KernelKMeans(5, **settings).fit(K)
    K[13, 500] = K[500, 13] = K[13, 500] + 1e-6
    with pytest.raises(CheckpointError, match="data was"):
        KernelKMeans(5, **settings).fit(K)


@pytest.mark.parametrize("change", ["landmarks", "rank"])
def test_a_checkpoint_is_of_the_map_with_its_parameters(tmp_path, monkeypatch, change):
    landmarks = rows(600)
    settings = {"init": "random", "n_init": 2, "tol": 0, "gamma": 0.3, "checkpoint": tmp_path, "random_state": 0}
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            KernelKMeans(5, method=Nystroem(600, landmarks=landmarks, rank=9), **settings).fit(rows())
    other = landmarks.copy()
    other[300] += 0.1
    method = (
        Nystroem(600, landmarks=other, rank=9) if change == "landmarks" else Nystroem(600, landmarks=landmarks, rank=8)
    )
    with pytest.raises(CheckpointError, match=f"method__{change} was"):
        KernelKMeans(5, method=method, **settings).fit(rows())


def test_half_precision_is_another_fit(tmp_path, monkeypatch):
    interrupted_fit(monkeypatch, tmp_path, storage=Disk(dtype="float16"))
    with pytest.raises(CheckpointError, match="kernel values was float16 and is float32"):
        FITS["exact"](checkpoint=tmp_path, random_state=0, storage="memory").fit(rows())


def test_auto_stays_with_the_method_of_the_interrupted_fit(tmp_path, monkeypatch):
    def fit(**more):
        return KernelKMeans(5, gamma=0.3, init="random", n_init=2, tol=0, random_state=0, **more).fit(rows())

    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            fit(checkpoint=tmp_path)
    monkeypatch.setattr("mercer.estimators.base.prefers_exact", lambda *_: (False, "no room by now"))
    model = fit(checkpoint=tmp_path)
    assert model.plan_.method == "exact"
    np.testing.assert_array_equal(model.labels_, fit(method="exact").labels_)


def test_one_fit_at_a_time_uses_a_checkpoint(tmp_path):
    with Checkpoint(tmp_path), pytest.raises(BlockingIOError, match="another fit is using the checkpoint"):
        FITS["exact"](checkpoint=tmp_path).fit(rows())
    FITS["exact"](checkpoint=tmp_path).fit(rows())


def test_what_others_have_put_in_the_folder_stays(tmp_path, monkeypatch):
    for name in ("tiles", "kernel-tiles"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "map.png").write_text("precious")
    FITS["disk"](checkpoint=tmp_path).fit(rows())
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")) == [
        "kernel-tiles/map.png",
        "tiles/map.png",
    ]
    monkeypatch.chdir(tmp_path)
    assert FITS["exact"](checkpoint=".").fit(rows()).labels_.shape == (700,)


def test_tiles_that_were_left_behind_are_replaced(tmp_path):
    """As a process leaves them that is killed while it cleans up."""
    tiles = tmp_path / "kernel-tiles"
    KernelKMeans(3, gamma=0.9, storage=Disk(tiles)).fit(rows())
    FITS["disk"](checkpoint=tmp_path).fit(rows())
    KernelKMeans(3, gamma=0.9, storage=Disk(tiles)).fit(rows())
    (tiles / "manifest.json").unlink()
    FITS["disk"](checkpoint=tmp_path).fit(rows())
    assert not tmp_path.exists()


# ---- killed -------------------------------------------------------------------------------------------------------

VICTIM = """
    import sys
    import numpy as np
    from mercer import Disk, KernelKMeans
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.5, size=(1000, 3)) for c in (0, 1, 2, 3)]).astype(np.float32)
    model = KernelKMeans(30, gamma=0.5, storage="disk", init="random", n_init=2, tol=0, random_state=0, max_iter=40,
                         checkpoint=sys.argv[1] if len(sys.argv) > 2 else None)
    print("ready", flush=True)
    model.fit(X)
    np.save(sys.argv[-1], model.labels_)
"""


def test_a_killed_fit_ends_in_the_same_labels(tmp_path):
    """`python -m benchmarks faults` does this more often."""
    script = tmp_path / "victim.py"
    script.write_text("import warnings\nwarnings.simplefilter('ignore')\n" + textwrap.dedent(VICTIM))
    subprocess.run([sys.executable, script, tmp_path / "whole.npy"], check=True, capture_output=True)
    kills, rng = 0, random.Random(0)
    for _ in range(30):
        arguments = [sys.executable, script, tmp_path / "checkpoint", tmp_path / "killed.npy"]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0.02, 0.2 + 0.15 * kills))
            process.kill()
            kills += process.wait() == -signal.SIGKILL
            if process.returncode == 0:
                break
    assert kills > 0
    np.testing.assert_array_equal(np.load(tmp_path / "killed.npy"), np.load(tmp_path / "whole.npy"))
    assert not os.path.exists(tmp_path / "checkpoint")
