"""Data sets of the kernel clustering papers, and small synthetic ones.

A real set is read from a folder of ``.npz`` files (see `data_folder`), or, without one, downloaded once
through scikit-learn, which caches it in its own data home::

    from mercer import datasets

    X, y = datasets.load_pendigits(scale="minmax", return_X_y=True)

The order of the rows may differ between the folder and the download; rows, columns and labels are the same.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, cast, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch, check_random_state

__all__ = [
    "available",
    "data_folder",
    "load",
    "load_a3",
    "load_coil20",
    "load_covtype",
    "load_mnist",
    "load_pendigits",
    "load_pie_first10",
    "load_segment",
    "load_usps",
    "make_blobs_with_noise",
    "make_moons",
    "make_rings",
]

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.intp]
RandomState = int | np.random.RandomState | None
Scale = Literal["minmax", "standard", "unit-columns", "unit-rows"]


# ---- what the sets are -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _DataSet:
    """What is known of a real set; `labels` are the classes as the download spells them, in our order."""

    title: str
    origin: str
    notes: str
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    class_sizes: tuple[int, ...]
    download: Callable[[], Any] | None = None
    labels: tuple[str, ...] = ()


def _openml(data_id: int) -> Any:
    """Fetch a set of OpenML as plain arrays, by the parser that the installed packages allow."""
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    return sklearn_datasets.fetch_openml(data_id=data_id, as_frame=False, parser=parser)


def _covtype() -> Any:
    """Look the fetcher up at call time, as `_openml` does."""
    return sklearn_datasets.fetch_covtype()


def _numbered(prefix: str, n: int, first: int = 0) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(first, first + n))


_DIGITS = _numbered("", 10)

_SETS: dict[str, _DataSet] = {
    "pendigits": _DataSet(
        title="Pen-based handwritten digits",
        origin="UCI, Alpaydin and Alimoglu",
        notes="Eight resampled pen positions of each digit, 0 to 100. In the folder's file rows 0 to 7493 "
        "are the official training set.",
        feature_names=tuple(f"{axis}{i}" for i in range(1, 9) for axis in "xy"),
        target_names=_DIGITS,
        class_sizes=(1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055),
        download=partial(_openml, 32),
        labels=_DIGITS,
    ),
    "covtype": _DataSet(
        title="Forest cover type",
        origin="UCI, Blackard and Dean, Colorado State University",
        notes="Ten measurements, four flags of wilderness area and forty of soil type for each 30 m cell.",
        feature_names=(
            "elevation",
            "aspect",
            "slope",
            "horizontal_distance_to_hydrology",
            "vertical_distance_to_hydrology",
            "horizontal_distance_to_roadways",
            "hillshade_9am",
            "hillshade_noon",
            "hillshade_3pm",
            "horizontal_distance_to_fire_points",
            *_numbered("wilderness_area_", 4, first=1),
            *_numbered("soil_type_", 40, first=1),
        ),
        target_names=(
            "spruce/fir",
            "lodgepole pine",
            "ponderosa pine",
            "cottonwood/willow",
            "aspen",
            "douglas-fir",
            "krummholz",
        ),
        class_sizes=(211840, 283301, 35754, 2747, 9493, 17367, 20510),
        download=_covtype,
        labels=_numbered("", 7, first=1),
    ),
    "mnist": _DataSet(
        title="MNIST handwritten digits",
        origin="LeCun, Cortes and Burges",
        notes="Grey images of 28 x 28 pixels, row by row, 0 to 255. In the folder's file rows 0 to 59999 are "
        "the official training set.",
        feature_names=_numbered("pixel_", 784),
        target_names=_DIGITS,
        class_sizes=(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        download=partial(_openml, 554),
        labels=_DIGITS,
    ),
    "usps": _DataSet(
        title="USPS zip-code digits",
        origin="Le Cun et al. 1990, the version of The Elements of Statistical Learning",
        notes="Grey images of 16 x 16 pixels, row by row, -1 to 1. In the folder's file rows 0 to 7290 are "
        "the official training set.",
        feature_names=_numbered("pixel_", 256),
        target_names=_DIGITS,
        class_sizes=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        download=partial(_openml, 41082),
        labels=_numbered("", 10, first=1),
    ),
    "segment": _DataSet(
        title="Image segmentation",
        origin="UCI, Vision Group of the University of Massachusetts",
        notes="Statistics of 3 x 3 pixel regions of seven outdoor images. One column, region-pixel-count, is "
        "constant, and 224 rows repeat another row.",
        feature_names=(
            "region-centroid-col",
            "region-centroid-row",
            "region-pixel-count",
            "short-line-density-5",
            "short-line-density-2",
            "vedge-mean",
            "vedge-sd",
            "hedge-mean",
            "hedge-sd",
            "intensity-mean",
            "rawred-mean",
            "rawblue-mean",
            "rawgreen-mean",
            "exred-mean",
            "exblue-mean",
            "exgreen-mean",
            "value-mean",
            "saturation-mean",
            "hue-mean",
        ),
        target_names=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
        class_sizes=(330,) * 7,
        download=partial(_openml, 36),
        labels=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
    ),
    "a3": _DataSet(
        title="A3, fifty overlapping groups in the plane",
        origin="Karkkainen and Franti 2002, University of Eastern Finland",
        notes="Synthetic, 150 points in each group, coordinates 0 to 65535.",
        feature_names=("x", "y"),
        target_names=_numbered("group_", 50),
        class_sizes=(150,) * 50,
    ),
    "coil20": _DataSet(
        title="COIL-20 object images",
        origin="Nene, Nayar and Murase 1996, the 32 x 32 version of D. Cai",
        notes="Twenty objects seen from 72 sides; grey images, column by column, 0 to 1.",
        feature_names=_numbered("pixel_", 1024),
        target_names=_numbered("object_", 20, first=1),
        class_sizes=(72,) * 20,
    ),
    "pie_first10": _DataSet(
        title="CMU PIE faces, the first ten subjects",
        origin="Carnegie Mellon University, the 32 x 32 version of D. Cai",
        notes="A part of PIE, which has 68 subjects: never report a result on it as one on PIE. Grey images, "
        "column by column, 0 to 255.",
        feature_names=_numbered("pixel_", 1024),
        target_names=_numbered("subject_", 10, first=1),
        class_sizes=(170,) * 10,
    ),
}


# ---- where they are ----------------------------------------------------------------------------------------


def data_folder() -> Path | None:
    """Folder that the real sets are read from.

    It is the folder named by the environment variable ``MERCER_DATA``. Where that is unset and this is a
    checkout of Mercer (seen from this file or from the working directory), it is ``../shared/data`` beside
    the checkout.

    Returns
    -------
    pathlib.Path or None
        None where there is no such folder; the sets that can be are then downloaded.

    Examples
    --------
    >>> from mercer.datasets import data_folder
    >>> folder = data_folder()
    >>> folder is None or folder.is_dir()
    True
    """
    named = os.environ.get("MERCER_DATA")
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise NotADirectoryError(f"MERCER_DATA names {named!r}, which is not a folder.")
        return folder
    roots = (_checkout_root(start) for start in (Path(__file__), Path.cwd()))
    folders = (root.parent / "shared" / "data" for root in roots if root)
    return next((folder for folder in folders if folder.is_dir()), None)


def available() -> list[str]:
    """Names of the real sets that have a file in `data_folder`.

    Returns
    -------
    list of str
        Names that `load` takes, each readable without a network.

    Examples
    --------
    >>> from mercer.datasets import available
    >>> "iris" in available()
    False
    """
    return [name for name in _SETS if _file(name)]


def _checkout_root(start: Path) -> Path | None:
    """Nearest folder at or above `start` whose pyproject.toml is Mercer's."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if _is_checkout(folder)), None)


def _is_checkout(folder: Path) -> bool:
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        return bool(project["project"]["name"] == "mercer")
    except (OSError, ValueError, LookupError, TypeError):  # no such file, or one that is not ours to judge
        return False


def _file(name: str) -> Path | None:
    folder = data_folder()
    return folder / f"{name}.npz" if folder and (folder / f"{name}.npz").is_file() else None


# ---- reading them ------------------------------------------------------------------------------------------


@overload
def load(
    name: str,
    *,
    scale: Scale | None = None,
    dtype: DTypeLike = np.float32,
    return_X_y: Literal[False] = False,
) -> Bunch: ...


@overload
def load(
    name: str, *, scale: Scale | None = None, dtype: DTypeLike = np.float32, return_X_y: Literal[True]
) -> tuple[Floats, Labels]: ...


def load(
    name: str, *, scale: Scale | None = None, dtype: DTypeLike = np.float32, return_X_y: bool = False
) -> Bunch | tuple[Floats, Labels]:
    """Load a real set by name.

    The order of the rows may differ between a file of `data_folder` and a download.

    Parameters
    ----------
    name : str
        "pendigits", "covtype", "mnist", "usps", "segment", "a3", "coil20" or "pie_first10".
    scale : {"minmax", "standard", "unit-columns", "unit-rows"}, optional
        "minmax": each column to [0, 1]; "standard": each column to mean 0 and variance 1; "unit-columns" and
        "unit-rows": each column or row to Euclidean length 1. A constant column becomes 0 under the first
        two, and a column or row of zeros stays so.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the data.
    return_X_y : bool, default=False
        Return the data and the labels alone.

    Returns
    -------
    sklearn.utils.Bunch or tuple of (data, target)
        `data` of shape (n_samples, n_features); `target` of shape (n_samples,), the class of each row as
        0, 1, ...; and in the Bunch `feature_names`, `target_names` and `DESCR`.

    Examples
    --------
    Read the forest cover types in double precision, each column to mean 0 and variance 1::

        forest = load("covtype", scale="standard", dtype=np.float64)
        forest.data.shape  # (581012, 54)
    """
    described = _one_of(_SETS, name, "data set")
    rescale = _one_of(_SCALES, scale, "scale") if scale is not None else None
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {np.dtype(dtype)}.")
    raw, y = _raw(name)
    _check_known(name, raw, y)
    X: Floats = np.array(raw, dtype=dtype, order="C")
    if rescale:
        rescale(X)
    return (X, y) if return_X_y else _bunch(described, X, y)


def _raw(name: str) -> tuple[NDArray[Any], Labels]:
    """Read data and labels as they are stored, from the folder or the network."""
    file = _file(name)
    if file:
        with np.load(file) as arrays:
            return arrays["X"], arrays["y"].astype(np.intp)
    return _downloaded(name)


def _downloaded(name: str) -> tuple[NDArray[Any], Labels]:
    described = _SETS[name]
    remedy = f"set the environment variable MERCER_DATA to a folder that holds {name}.npz"
    if described.download is None:
        raise FileNotFoundError(f"{name!r} has no public download: {remedy}.")
    try:
        fetched = described.download()
    except OSError as error:
        raise ConnectionError(
            f"{name!r} could not be downloaded ({error}): try again, or {remedy}."
        ) from error
    position = {label: i for i, label in enumerate(described.labels)}
    y = [position.get(label, -1) for label in np.asarray(fetched.target).astype(str)]
    return np.asarray(fetched.data), np.array(y, dtype=np.intp)


def _check_known(name: str, X: NDArray[Any], y: Labels) -> None:
    """Refuse a file or a download that is not the set it is named after."""
    described = _SETS[name]
    sizes = tuple(int(np.count_nonzero(y == c)) for c in range(len(described.class_sizes)))
    expected = (sum(described.class_sizes), len(described.feature_names))
    if X.shape != expected or y.shape != expected[:1] or sizes != described.class_sizes:
        raise ValueError(
            f"What was read is not the set {name!r}: data of shape {X.shape} with class sizes {sizes} "
            f"instead of {expected} with {described.class_sizes}."
        )


def _bunch(described: _DataSet, X: Floats, y: Labels) -> Bunch:
    facts = f"{X.shape[0]:,} samples, {X.shape[1]:,} features, {len(described.target_names)} classes"
    return Bunch(
        data=X,
        target=y,
        feature_names=list(described.feature_names),
        target_names=list(described.target_names),
        DESCR=f"{described.title}\n\n{described.notes}\n\n{facts}. Origin: {described.origin}.\n",
    )


def _one_of(table: dict[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise ValueError(f"Unknown {what} {name!r}: choose one of {', '.join(map(repr, table))}.")
    return table[name]


class _Loader(Protocol):
    """A `load` whose name is given."""

    @overload
    def __call__(
        self, *, scale: Scale | None = None, dtype: DTypeLike = np.float32, return_X_y: Literal[False] = False
    ) -> Bunch: ...
    @overload
    def __call__(
        self, *, scale: Scale | None = None, dtype: DTypeLike = np.float32, return_X_y: Literal[True]
    ) -> tuple[Floats, Labels]: ...


_LOADER_DOC = """{title}: {rows:,} rows, {columns:,} columns, {classes} classes.

    {notes}
    Origin: {origin}.
    {source} The order of the rows may differ between sources.

    Parameters
    ----------
    scale : {{"minmax", "standard", "unit-columns", "unit-rows"}}, optional
        What to do to the columns or rows; see `load`.
    dtype : {{numpy.float32, numpy.float64}}, default=numpy.float32
        Type of the data.
    return_X_y : bool, default=False
        Return the data and the labels alone.

    Returns
    -------
    sklearn.utils.Bunch or tuple of (data, target)
        `data` of shape ({rows}, {columns}), `target` of shape ({rows},), and in the Bunch `feature_names`,
        `target_names` and `DESCR`.

    Examples
    --------
    Read the data, each column scaled to [0, 1]::

        X, y = load_{name}(scale="minmax", return_X_y=True)
    """


def _loader(name: str) -> _Loader:
    """Make the public function that loads one set."""

    def loader(
        *, scale: Scale | None = None, dtype: DTypeLike = np.float32, return_X_y: bool = False
    ) -> Bunch | tuple[Floats, Labels]:
        loaded: Bunch | tuple[Floats, Labels] = cast(Any, load)(
            name, scale=scale, dtype=dtype, return_X_y=return_X_y
        )
        return loaded

    described = _SETS[name]
    loader.__name__ = loader.__qualname__ = f"load_{name}"
    loader.__doc__ = _LOADER_DOC.format(
        name=name,
        title=described.title,
        notes=described.notes,
        origin=described.origin,
        rows=sum(described.class_sizes),
        columns=len(described.feature_names),
        classes=len(described.target_names),
        source=(
            "Read from `data_folder`, else downloaded through scikit-learn."
            if described.download
            else "Read from `data_folder`; there is no public download."
        ),
    )
    return cast(_Loader, loader)


load_pendigits = _loader("pendigits")
load_covtype = _loader("covtype")
load_mnist = _loader("mnist")
load_usps = _loader("usps")
load_segment = _loader("segment")
load_a3 = _loader("a3")
load_coil20 = _loader("coil20")
load_pie_first10 = _loader("pie_first10")


# ---- scaling, in place -------------------------------------------------------------------------------------


def _minmax(X: Floats) -> None:
    low, high = X.min(axis=0), X.max(axis=0)
    X -= low
    X /= np.where(high > low, high - low, 1)


def _standard(X: Floats) -> None:
    low, high = X.min(axis=0), X.max(axis=0)
    X -= np.where(high > low, X.mean(axis=0, dtype=np.float64), low).astype(X.dtype)
    spread = np.sqrt(np.einsum("ij,ij->j", X, X, dtype=np.float64) / len(X))
    X /= np.where(high > low, spread, 1).astype(X.dtype)


def _unit(X: Floats, sums: str) -> None:
    """Divide by Euclidean lengths; `sums` is the einsum of the axis they run along."""
    length = np.sqrt(np.einsum(sums, X, X, dtype=np.float64))
    length[length == 0] = 1
    X /= (length if sums.endswith("j") else length[:, None]).astype(X.dtype)


_SCALES: dict[str, Callable[[Floats], None]] = {
    "minmax": _minmax,
    "standard": _standard,
    "unit-columns": partial(_unit, sums="ij,ij->j"),
    "unit-rows": partial(_unit, sums="ij,ij->i"),
}


# ---- synthetic sets ----------------------------------------------------------------------------------------


def make_rings(
    n_samples: int = 1000,
    *,
    n_rings: int = 2,
    factor: float = 0.5,
    noise: float = 0.05,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], Labels]:
    """Concentric rings in the plane, which no straight line separates.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, shared among the rings as evenly as can be.
    n_rings : int, default=2
        Number of rings.
    factor : float, default=0.5
        Radius of the innermost ring, above 0 and below 1; the outermost has radius 1 and the others are
        evenly spaced between. A single ring has radius 1.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise added to each coordinate.
    random_state : int, RandomState or None, default=None
        Seed of the noise and of the order of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        The ring of each point, 0 for the innermost.

    Examples
    --------
    >>> from mercer.datasets import make_rings
    >>> X, y = make_rings(300, n_rings=3, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 2), [0, 1, 2])
    """
    if not 1 <= n_rings <= n_samples:
        raise ValueError(f"n_rings must lie between 1 and n_samples={n_samples}, not be {n_rings}.")
    if not (0 < factor < 1 and noise >= 0):
        raise ValueError(
            f"factor must lie between 0 and 1 and noise be non-negative, not {factor} and {noise}."
        )
    rng = check_random_state(random_state)
    order: Labels = rng.permutation(n_samples)
    place, y = np.divmod(order, n_rings)
    angle = 2 * np.pi * place / np.bincount(y)[y]
    radius = np.linspace(1.0, factor, n_rings)[::-1][y]
    X = radius[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return X + rng.normal(scale=noise, size=X.shape), y


def make_moons(
    n_samples: int = 1000, *, noise: float = 0.05, random_state: RandomState = None
) -> tuple[NDArray[np.float64], Labels]:
    """Two interleaved half circles in the plane.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise added to each coordinate.
    random_state : int, RandomState or None, default=None
        Seed of the noise and of the order of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        The half circle of each point, 0 or 1.

    Examples
    --------
    >>> from mercer.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> X.shape, y.shape
    ((200, 2), (200,))
    """
    X, y = sklearn_datasets.make_moons(n_samples, noise=noise, random_state=random_state)
    return X, y.astype(np.intp)


def make_blobs_with_noise(
    n_samples: int = 1000,
    *,
    n_clusters: int = 3,
    n_features: int = 2,
    noise_fraction: float = 0.1,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float64], Labels]:
    """Round Gaussian clusters among points spread evenly over the box that holds them.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, noise included.
    n_clusters : int, default=3
        Number of clusters, of variance 1 and as equal in size as can be.
    n_features : int, default=2
        Number of columns.
    noise_fraction : float, default=0.1
        Share of the points that belong to no cluster, at least 0 and below 1.
    random_state : int, RandomState or None, default=None
        Seed of centres, points and the order of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The points.
    y : ndarray of shape (n_samples,)
        The cluster of each point, or -1 for noise.

    Examples
    --------
    >>> from mercer.datasets import make_blobs_with_noise
    >>> X, y = make_blobs_with_noise(100, n_clusters=4, noise_fraction=0.2, random_state=0)
    >>> X.shape, int((y == -1).sum())
    ((100, 2), 20)
    """
    if not 0 <= noise_fraction < 1:
        raise ValueError(f"noise_fraction must be at least 0 and below 1, not {noise_fraction}.")
    n_noise = round(noise_fraction * n_samples)
    if not 1 <= n_clusters <= n_samples - n_noise:
        raise ValueError(f"{n_samples - n_noise} points outside the noise cannot make {n_clusters} clusters.")
    rng = check_random_state(random_state)
    points, cluster = sklearn_datasets.make_blobs(
        n_samples - n_noise, n_features=n_features, centers=n_clusters, random_state=rng
    )
    noise = rng.uniform(points.min(axis=0), points.max(axis=0), size=(n_noise, n_features))
    X, y = np.vstack((points, noise)), np.append(cluster, np.full(n_noise, -1)).astype(np.intp)
    order = rng.permutation(n_samples)
    return X[order], y[order]
