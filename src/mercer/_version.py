"""What is installed here, for bug reports."""

from __future__ import annotations

import platform
from importlib import metadata

from mercer import _core

_LIBRARIES = (
    "mercer",
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "threadpoolctl",
    "pyarrow",
    "dask",
    "matplotlib",
)


def show_versions() -> None:
    """Print versions, the processor's instruction sets and the one in use (``MERCER_ISA`` forces one).

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    mercer: ...
    """
    lines = {name: _version_of(name) for name in _LIBRARIES}
    lines["python"] = platform.python_version()
    lines["system"] = f"{platform.system()} {platform.machine()}"
    lines["instruction sets"] = ", ".join(_core.instruction_sets())
    lines["in use"] = _core.active()
    print("\n".join(f"{name}: {value}" for name, value in lines.items()))


def _version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
