import inspect
import pickle
from urllib.error import URLError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import datasets as sklearn_datasets
from sklearn.cluster import KMeans
from sklearn.utils import Bunch

from mercer import datasets, metrics

# Rows, columns, smallest and largest value, sizes of the classes.
FACTS = {
    "pendigits": (10992, 16, 0, 100, [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055]),
    "covtype": (581012, 54, -173, 7173, [211840, 283301, 35754, 2747, 9493, 17367, 20510]),
    "mnist": (70000, 784, 0, 255, [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]),
    "usps": (9298, 256, -1, 1, [1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821]),
    "segment": (2310, 19, -49.6667, 1386.33, [330] * 7),
    "a3": (7500, 2, 0, 65535, [150] * 50),
    "coil20": (1440, 1024, 0, 1, [72] * 20),
    "pie_first10": (1700, 1024, 0, 255, [170] * 10),
}

# Number of the set at OpenML and its labels there, in our order; the cover types have their own fetcher.
DOWNLOADS = {
    "pendigits": (32, list("0123456789")),
    "covtype": (None, [1, 2, 3, 4, 5, 6, 7]),
    "mnist": (554, list("0123456789")),
    "usps": (41082, [str(digit + 1) for digit in range(10)]),
    "segment": (36, ["brickface", "sky", "foliage", "cement", "window", "path", "grass"]),
}

NEVER_DOWNLOADED = sorted(FACTS.keys() - DOWNLOADS.keys())

SCALES = ["minmax", "standard", "unit-columns", "unit-rows"]


def stand_in(name):
    """Return X and y of a real set's shape and class sizes: values 0 to 22, a constant first column."""
    rows, columns, _, _, sizes = FACTS[name]
    X = (np.arange(rows)[:, None] * np.arange(columns) % 23).astype(np.int16)
    return X, np.repeat(np.arange(len(sizes)), sizes)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No data folder: neither the variable nor a checkout."""
    monkeypatch.delenv("MERCER_DATA", raising=False)
    monkeypatch.setattr(datasets, "__file__", str(tmp_path / "site" / "mercer" / "datasets.py"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Return a data folder that holds a stand-in for the segmentation data."""
    X, y = stand_in("segment")
    np.savez(tmp_path / "segment.npz", X=X, y=y.astype(np.uint8))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def network(monkeypatch, nowhere):
    """Replace scikit-learn's fetchers; return the list of calls made to them."""
    calls = []

    def fetched(name):
        X, y = stand_in(name)
        labels = np.array(DOWNLOADS[name][1])
        return Bunch(data=X.astype(float), target=labels[y].astype(object if name != "covtype" else np.int32))

    def fetch_openml(*, data_id, **options):
        calls.append(options)
        return fetched(next(name for name, (known, _) in DOWNLOADS.items() if known == data_id))

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch_openml)
    monkeypatch.setattr(sklearn_datasets, "fetch_covtype", lambda: fetched("covtype"))
    return calls


def loader(name):
    return getattr(datasets, f"load_{name}")


# ---- real files: only where there are any ------------------------------------------------------------------

if datasets.available():

    @pytest.mark.parametrize("name", datasets.available())
    def test_real_file_has_the_published_facts(name):
        rows, columns, low, high, sizes = FACTS[name]
        X, y = loader(name)(return_X_y=True)
        assert X.shape == (rows, columns)
        assert X.dtype == np.float32
        assert X.flags.c_contiguous
        assert (X.min(), X.max()) == pytest.approx((low, high), rel=1e-6)
        assert y.dtype == np.intp
        assert np.bincount(y).tolist() == sizes

    @pytest.mark.parametrize("name", sorted({"segment", "pendigits"} & set(datasets.available())))
    def test_real_file_in_double_precision_and_scaled(name):
        X = loader(name)(scale="minmax", dtype=np.float64).data
        varies = np.ptp(loader(name)().data, axis=0) > 0
        assert X.dtype == np.float64
        np.testing.assert_array_equal(X.min(axis=0), 0)
        np.testing.assert_array_equal(X.max(axis=0), varies)


# ---- the folder --------------------------------------------------------------------------------------------


def test_folder_named_by_the_environment(folder):
    assert datasets.data_folder() == folder
    assert datasets.available() == ["segment"]


def test_environment_that_names_no_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "absent"))
    with pytest.raises(NotADirectoryError, match=r"MERCER_DATA names '.*absent', which is not a folder"):
        datasets.data_folder()


def checkout(root, pyproject='[project]\nname = "mercer"\n'):
    (root / "main" / "src" / "mercer").mkdir(parents=True)
    (root / "main" / "pyproject.toml").write_text(pyproject)
    (root / "shared" / "data").mkdir(parents=True)
    return root / "main" / "src" / "mercer"


def test_folder_beside_the_checkout_that_holds_the_module(monkeypatch, nowhere):
    monkeypatch.setattr(datasets, "__file__", str(checkout(nowhere / "work") / "datasets.py"))
    assert datasets.data_folder() == nowhere / "work" / "shared" / "data"


def test_folder_beside_the_checkout_one_works_in(monkeypatch, nowhere):
    monkeypatch.chdir(checkout(nowhere / "work"))
    assert datasets.data_folder() == nowhere / "work" / "shared" / "data"
    assert datasets.available() == []


@pytest.mark.parametrize("pyproject", ['[project]\nname = "other"\n', "[tool.x]\n", "project = 3\n", "not toml"])
def test_other_projects_are_not_checkouts(monkeypatch, nowhere, pyproject):
    monkeypatch.chdir(checkout(nowhere / "work", pyproject))
    assert datasets.data_folder() is None


def test_checkout_without_data_beside_it(monkeypatch, nowhere):
    inside = checkout(nowhere / "work")
    (nowhere / "work" / "shared" / "data").rmdir()
    monkeypatch.chdir(inside)
    assert datasets.data_folder() is None
    assert datasets.available() == []


# ---- what a loader returns ---------------------------------------------------------------------------------


def test_bunch(folder):
    X, y = stand_in("segment")
    loaded = datasets.load_segment()
    np.testing.assert_array_equal(loaded.data, X)
    np.testing.assert_array_equal(loaded.target, y)
    assert len(loaded.feature_names) == len(set(loaded.feature_names)) == X.shape[1]
    assert loaded.target_names[:2] == ["brickface", "sky"]
    assert "2,310 samples, 19 features, 7 classes" in loaded.DESCR


@pytest.mark.parametrize("dtype", [np.float32, "float64"])
def test_dtype(folder, dtype):
    for scale in (None, *SCALES):
        assert datasets.load_segment(dtype=dtype, scale=scale).data.dtype == dtype


def test_arguments_that_are_refused(folder):
    with pytest.raises(ValueError, match="dtype must be float32 or float64, not int32"):
        datasets.load_segment(dtype=np.int32)
    with pytest.raises(ValueError, match="Unknown scale 'max': choose one of 'minmax', 'standard'"):
        datasets.load_segment(scale="max")
    with pytest.raises(ValueError, match="Unknown data set 'iris': choose one of 'pendigits'"):
        datasets.load("iris")


@pytest.mark.parametrize("name", FACTS)
def test_each_loader_is_a_documented_function(name):
    load = loader(name)
    rows, columns, _, _, sizes = FACTS[name]
    assert load.__doc__.splitlines()[0].endswith(f"{rows:,} rows, {columns:,} columns, {len(sizes)} classes.")
    assert list(inspect.signature(load).parameters) == ["scale", "dtype", "return_X_y"]
    assert pickle.loads(pickle.dumps(load)) is load
    assert load.__name__ in datasets.__all__


def test_every_public_name_exists_and_every_set_has_a_loader():
    assert all(hasattr(datasets, name) for name in datasets.__all__)
    assert {name for name in datasets.__all__ if name.startswith("load_")} == {f"load_{name}" for name in FACTS}


@pytest.mark.parametrize("change", ["rows", "columns", "labels"])
def test_file_that_is_another_set_is_refused(folder, change):
    X, y = stand_in("segment")
    changed = {"rows": (X[1:], y[1:]), "columns": (X[:, 1:], y), "labels": (X, np.maximum(y, 1))}[change]
    np.savez(folder / "segment.npz", X=changed[0], y=changed[1])
    with pytest.raises(ValueError, match="not the set 'segment'"):
        datasets.load_segment()


# ---- scaling -----------------------------------------------------------------------------------------------


def test_minmax(folder):
    X = datasets.load_segment(scale="minmax").data
    np.testing.assert_array_equal(X.min(axis=0), 0)
    np.testing.assert_array_equal(X.max(axis=0), [0, *[1] * 18])


def test_standard(folder):
    X = datasets.load_segment(scale="standard", dtype=np.float64).data
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), [0, *[1] * 18], rtol=1e-12)


def test_unit_columns(folder):
    X = datasets.load_segment(scale="unit-columns", dtype=np.float64).data
    np.testing.assert_allclose(np.linalg.norm(X, axis=0), [0, *[1] * 18])


def test_unit_rows(folder):
    X = datasets.load_segment(scale="unit-rows", dtype=np.float64).data
    zero = ~datasets.load_segment().data.any(axis=1)
    assert zero.any()
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), ~zero)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_column_of_any_value(folder, scale, dtype):
    X, y = stand_in("segment")
    # A value that neither precision represents, so that the mean of the column need not equal it.
    np.savez(folder / "segment.npz", X=np.column_stack((np.full(len(X), 0.1), X[:, 1:])), y=y)
    column = datasets.load_segment(scale=scale, dtype=dtype).data[:, 0]
    assert np.isfinite(column).all()
    if scale in ("minmax", "standard"):
        np.testing.assert_array_equal(column, 0)


# ---- the network -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DOWNLOADS)
def test_download(network, name):
    X, y = loader(name)(return_X_y=True)
    expected, labels = stand_in(name)
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(y, labels)
    assert X.dtype == np.float32


def test_folder_comes_before_the_network(network, folder):
    datasets.load_segment()
    assert network == []
    datasets.load_usps()
    assert len(network) == 1


@pytest.mark.parametrize(("installed", "parser"), [(True, "pandas"), (False, "liac-arff")])
def test_parser_that_needs_nothing_beyond_what_is_installed(network, monkeypatch, installed, parser):
    monkeypatch.setattr(datasets, "find_spec", lambda name: name if installed else None)
    datasets.load_pendigits()
    assert network == [{"as_frame": False, "parser": parser}]


@pytest.mark.parametrize("name", NEVER_DOWNLOADED)
def test_set_without_a_download(network, name):
    with pytest.raises(FileNotFoundError, match=rf"'{name}' has no public download: .*MERCER_DATA.*{name}\.npz"):
        loader(name)()


def test_network_that_fails(network, monkeypatch):
    def unreachable(**options):
        raise URLError("no route")

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", unreachable)
    with pytest.raises(ConnectionError, match=r"could not be downloaded .*no route.*MERCER_DATA"):
        datasets.load_mnist()


def test_download_with_unknown_labels_is_refused(network, monkeypatch):
    X, y = stand_in("usps")
    monkeypatch.setattr(sklearn_datasets, "fetch_openml", lambda **_: Bunch(data=X, target=y.astype(str)))
    with pytest.raises(ValueError, match="not the set 'usps'"):
        datasets.load_usps()


# ---- synthetic sets ----------------------------------------------------------------------------------------


@given(n_rings=st.integers(1, 6), extra=st.integers(0, 50), factor=st.floats(0.05, 0.95))
def test_rings_without_noise(n_rings, extra, factor):
    X, y = datasets.make_rings(n_rings + extra, n_rings=n_rings, factor=factor, noise=0, random_state=0)
    sizes = np.bincount(y, minlength=n_rings)
    radii = np.linspace(factor, 1, n_rings) if n_rings > 1 else np.ones(1)
    assert X.shape == (n_rings + extra, 2)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), radii[y], rtol=1e-12)


def test_rings_are_round_and_shuffled():
    X, y = datasets.make_rings(4000, noise=0.1, random_state=0)
    np.testing.assert_allclose([X[y == ring].mean(axis=0) for ring in (0, 1)], 0, atol=0.01)
    off_the_ring = np.linalg.norm(X[y == 1], axis=1) - 1
    assert off_the_ring.std() == pytest.approx(0.1, rel=0.1)
    assert 0.4 < y[:1000].mean() < 0.6


def test_moons():
    X, y = datasets.make_moons(201, noise=0, random_state=0)
    assert np.bincount(y).tolist() in ([100, 101], [101, 100])
    centers = np.array([[0, 0], [1, 0.5]])
    np.testing.assert_allclose(np.linalg.norm(X - centers[y], axis=1), 1)
    spread = (
        datasets.make_moons(201, noise=0.3, random_state=0)[0] - datasets.make_moons(201, noise=0, random_state=0)[0]
    )
    assert spread.std() == pytest.approx(0.3, rel=0.1)


def test_blobs_with_noise():
    X, y = datasets.make_blobs_with_noise(5000, n_clusters=4, n_features=3, noise_fraction=0.3, random_state=1)
    assert X.shape == (5000, 3)
    assert np.bincount(y + 1).tolist() == [1500, 875, 875, 875, 875]
    within = np.concatenate([X[y == c] - X[y == c].mean(axis=0) for c in range(4)])
    assert within.std() == pytest.approx(1, rel=0.05)
    low, high = X[y >= 0].min(axis=0), X[y >= 0].max(axis=0)
    uniform = (X[y == -1] - low) / (high - low)
    assert uniform.min() >= 0
    assert uniform.max() <= 1
    np.testing.assert_allclose(uniform.mean(axis=0), 0.5, atol=0.03)
    assert 0.2 < (y[:500] == -1).mean() < 0.4


def test_blobs_without_noise():
    assert datasets.make_blobs_with_noise(50, noise_fraction=0, random_state=0)[1].min() == 0


@pytest.mark.parametrize("make", [datasets.make_rings, datasets.make_moons, datasets.make_blobs_with_noise])
def test_seed_decides_everything_and_the_global_one_nothing(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the state that must not move
    first, second, other = (make(60, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert not np.array_equal(first[0], other[0])
    assert first[0].dtype == np.float64
    assert first[1].dtype == np.intp
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (datasets.make_rings, {"n_rings": 0}, "n_rings must lie between 1 and n_samples=20"),
        (datasets.make_rings, {"n_rings": 21}, "n_rings must lie between 1 and n_samples=20"),
        (datasets.make_rings, {"factor": 1.0}, "factor must lie between 0 and 1"),
        (datasets.make_rings, {"noise": -1}, "noise be non-negative"),
        (datasets.make_blobs_with_noise, {"noise_fraction": 1.0}, "at least 0 and below 1"),
        (
            datasets.make_blobs_with_noise,
            {"n_clusters": 15, "noise_fraction": 0.5},
            "10 points .* 15 clusters",
        ),
        (datasets.make_blobs_with_noise, {"n_clusters": 0}, "cannot make 0 clusters"),
    ],
)
def test_synthetic_arguments_that_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(20, **arguments)


# ---- mammals -------------------------------------------------------------------------------------------------


def column(X, name):
    return X[:, datasets.MAMMAL_FEATURES.index(name)]


def test_mammals_are_built_as_described():
    X, y = datasets.make_mammals(4000, random_state=0, dtype=np.float64)
    assert X.shape == (4000, 72)
    np.testing.assert_allclose(np.bincount(y) / 4000, 0.25, atol=0.03)
    assert (np.ptp(X, axis=0) == 0).sum() == 25
    ranges = [(10, 15), (4, 9), (36, 44), (58, 70)]  # of the legs: they tell the kinds apart
    for kind, (low, high) in enumerate(ranges):
        legs = column(X[y == kind], "leg1_height")
        assert low <= legs.min() < legs.max() <= high
        assert legs.mean() == pytest.approx((low + high) / 2, rel=0.01)
        assert legs.std() == pytest.approx(0.54 * (high - low) / 2, rel=0.05)  # a normal cut at one standard deviation
    H, R, L, N = (column(X, name) for name in ("torso_height", "torso_radius", "leg4_height", "neck_height"))
    np.testing.assert_allclose(column(X, "leg3_locationX"), -H / 2)
    np.testing.assert_allclose(column(X, "leg2_locationY"), -R)
    np.testing.assert_allclose(column(X, "leg1_locationZ"), -R - L / 2)
    np.testing.assert_allclose(column(X, "tail_locationX"), column(X, "tail_height") - H)
    flat, upright = y < 2, y >= 2
    np.testing.assert_allclose(column(X, "head_locationX")[flat], (H / 2 + N)[flat])
    np.testing.assert_allclose(column(X, "neck_locationX")[upright], (H / 2 + N / np.sqrt(8))[upright])
    np.testing.assert_allclose(column(X, "head_locationZ")[upright], (R + N / np.sqrt(2))[upright])
    np.testing.assert_array_equal(column(X, "head_axisZ"), np.where(upright, 0, 1))
    assert {"leg1_axisX", "leg4_axisX"} == {f"leg{i}_axisX" for i in range(1, 5) if np.ptp(column(X, f"leg{i}_axisX"))}


def test_mammals_are_easy_and_come_again():
    X, y = datasets.make_mammals(1000, random_state=3)
    again, _ = datasets.make_mammals(1000, random_state=3)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, again)
    labels = KMeans(4, n_init=10, random_state=0).fit(X).labels_
    assert metrics.normalized_mutual_info(y, labels) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="at least 1"):
        datasets.make_mammals(0)
