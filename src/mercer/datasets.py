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
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, cast, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from mercer._catalogue import SETS, DataSet
from mercer._mammals import MAMMAL_FEATURES, make_mammals
from mercer._synthetic import make_blobs_with_noise, make_moons, make_rings

__all__ = [
    "MAMMAL_FEATURES",
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
    "make_mammals",
    "make_moons",
    "make_rings",
]

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.intp]
Scale = Literal["minmax", "standard", "unit-columns", "unit-rows"]


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
    return [name for name in SETS if _file(name)]


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
    described = _one_of(SETS, name, "data set")
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


def _openml(data_id: int) -> Any:
    """Fetch a set of OpenML as plain arrays, by the parser that the installed packages allow."""
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    return sklearn_datasets.fetch_openml(data_id=data_id, as_frame=False, parser=parser)


_DOWNLOADS: dict[str, Callable[[], Any]] = {
    "pendigits": partial(_openml, 32),
    "covtype": lambda: sklearn_datasets.fetch_covtype(),
    "mnist": partial(_openml, 554),
    "usps": partial(_openml, 41082),
    "segment": partial(_openml, 36),
}


def _downloaded(name: str) -> tuple[NDArray[Any], Labels]:
    remedy = f"set the environment variable MERCER_DATA to a folder that holds {name}.npz"
    if name not in _DOWNLOADS:
        raise FileNotFoundError(f"{name!r} has no public download: {remedy}.")
    try:
        fetched = _DOWNLOADS[name]()
    except OSError as error:
        raise ConnectionError(f"{name!r} could not be downloaded ({error}): try again, or {remedy}.") from error
    position = {label: i for i, label in enumerate(SETS[name].labels)}
    y = [position.get(label, -1) for label in np.asarray(fetched.target).astype(str)]
    return np.asarray(fetched.data), np.array(y, dtype=np.intp)


def _check_known(name: str, X: NDArray[Any], y: Labels) -> None:
    """Refuse a file or a download that is not the set it is named after."""
    described = SETS[name]
    sizes = tuple(int(np.count_nonzero(y == c)) for c in range(len(described.class_sizes)))
    expected = (sum(described.class_sizes), len(described.feature_names))
    if X.shape != expected or y.shape != expected[:1] or sizes != described.class_sizes:
        raise ValueError(
            f"What was read is not the set {name!r}: data of shape {X.shape} with class sizes {sizes} "
            f"instead of {expected} with {described.class_sizes}."
        )


def _bunch(described: DataSet, X: Floats, y: Labels) -> Bunch:
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
        loaded: Bunch | tuple[Floats, Labels] = cast(Any, load)(name, scale=scale, dtype=dtype, return_X_y=return_X_y)
        return loaded

    described = SETS[name]
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
            if name in _DOWNLOADS
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
