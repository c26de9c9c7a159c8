"""Imports go one way, and `import mercer` is quick: read from the source, not from what happens to run."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

PACKAGE = Path(mercer.__file__).parent

# From the ground up. A part may import those on lower lines and itself, never a neighbour on its own line.
LAYERS = [
    ["_core"],
    ["engine"],
    ["sources"],
    ["kernels"],
    ["gram", "features"],
    ["solvers"],
    ["planner", "metrics"],
    ["estimators"],
    ["persistence", "plotting"],
    ["report"],
    ["cli"],
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}

# Parts beside the layers, and all that they may import.
BESIDE = {
    "_catalogue": set(),
    "_mammals": set(),
    "_synthetic": set(),
    "_version": {"_core"},
    "datasets": {"_catalogue", "_mammals", "_synthetic", "sources", "kernels", "gram", "solvers"},
}
# Narrower than their line in the layers.
NARROWER = {"metrics": {"engine", "sources", "kernels", "gram", "solvers"}}

EVERYWHERE = sys.stdlib_module_names | {"mercer", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}


def part_of(name):
    """`engine` for "mercer.engine.threads"; None for the package itself."""
    part = [*name.split("."), "__init__"][1]
    return None if part == "__init__" else part


def imported(node):
    """Full names that one statement imports; `from mercer import gram` may mean a part, so it counts as one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, "imports are absolute"
    return [f"{node.module}.{alias.name}" for alias in node.names]


def is_import(node):
    return isinstance(node, (ast.Import, ast.ImportFrom))


def for_types_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def all_imports(source):
    """Names imported anywhere, also inside functions and for types only."""
    return {name for node in ast.walk(ast.parse(source)) if is_import(node) for name in imported(node)}


def imports_when_loaded(source):
    """Names imported when the module is: not those inside functions, nor those for types only."""
    names, nodes = set(), [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if is_import(node):
            names.update(imported(node))
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not for_types_only(node):
            nodes.extend(ast.iter_child_nodes(node))
    return names


def allowed(part):
    """Parts that `part` may import, besides itself."""
    if part in BESIDE:
        return BESIDE[part]
    below = {other for other, level in LEVEL.items() if level < LEVEL[part]}
    return NARROWER.get(part, below | BESIDE.keys() if "solvers" in below else below)


def wrong_way(module, source):
    """Imports of `mercer` that the module's place in the layers does not allow."""
    part = part_of(module)
    inside = {name for name in all_imports(source) if name.split(".")[0] == "mercer"}
    return sorted(name for name in inside if part_of(name) not in {part, *allowed(part)})


def not_everywhere(source):
    """Third-party modules imported when the module is."""
    return sorted({name.split(".")[0] for name in imports_when_loaded(source)} - EVERYWHERE)


def module_name(path):
    return ".".join(["mercer", *path.relative_to(PACKAGE).with_suffix("").parts])


MODULES = {module_name(path): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}


def test_every_module_has_a_place():
    parts = {part_of(module) for module in MODULES} - {None}
    assert parts <= LEVEL.keys() | BESIDE.keys()
    assert {"engine", "sources", "kernels", "gram", "solvers", "estimators"} <= parts


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module)])
def test_imports_go_one_way(module):
    assert wrong_way(module, MODULES[module]) == []


@pytest.mark.parametrize("module", MODULES)
def test_only_what_is_always_installed_is_imported_on_loading(module):
    dask = {"dask", "distributed"} if module.startswith("mercer.engine.dask") else set()
    assert set(not_everywhere(MODULES[module])) <= dask


def test_only_the_dask_engine_knows_dask():
    users = {module for module, source in MODULES.items() for name in all_imports(source) if name.startswith("dask")}
    assert all(module.startswith("mercer.engine.dask") for module in users)


# ---- the rules see what they should ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "line", "found"),
    [
        ("mercer.kernels.rbf", "from mercer.gram import Gram", ["mercer.gram.Gram"]),
        ("mercer.kernels.rbf", "from mercer import gram", ["mercer.gram"]),
        ("mercer.kernels.rbf", "import mercer.gram.tiled", ["mercer.gram.tiled"]),
        ("mercer.kernels.rbf", "import mercer", ["mercer"]),
        ("mercer.kernels.rbf", "def f():\n    from mercer.solvers import c", ["mercer.solvers.c"]),
        ("mercer.kernels.rbf", "if TYPE_CHECKING:\n    from mercer.gram import Gram", ["mercer.gram.Gram"]),
        ("mercer.kernels.rbf", "from mercer.kernels.base import Kernel\nfrom mercer import _core", []),
        ("mercer.gram.disk", "from mercer.features import Nystroem", ["mercer.features.Nystroem"]),
        ("mercer.engine.threads", "from mercer.sources import Matrix", ["mercer.sources.Matrix"]),
        ("mercer.metrics", "from mercer.estimators import KernelKMeans", ["mercer.estimators.KernelKMeans"]),
        ("mercer.kernels.rbf", "from mercer import datasets", ["mercer.datasets"]),
        ("mercer.metrics", "from mercer.gram import Gram", []),
        ("mercer.datasets", "from mercer.metrics import purity", ["mercer.metrics.purity"]),
        ("mercer.cli", "from mercer.report import render\nfrom mercer.estimators import KernelKMeans", []),
    ],
)
def test_a_wrong_import_is_found(module, line, found):
    assert wrong_way(module, line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import pandas", ["pandas"]),
        ("try:\n    import zarr.storage\nexcept ImportError:\n    zarr = None", ["zarr"]),
        ("class A:\n    from matplotlib import pyplot", ["matplotlib"]),
        ("if TYPE_CHECKING:\n    import pandas\nelse:\n    import numpy", []),
        ("def f():\n    import pandas", []),
        ("import os.path\nfrom scipy import sparse\nfrom mercer import gram", []),
    ],
)
def test_an_import_on_loading_is_found(line, found):
    assert not_everywhere(line) == found


# ---- how long it takes ----------------------------------------------------------------------------------------

SECONDS = """
import sklearn.cluster
from time import perf_counter
start = perf_counter()
import mercer
print(perf_counter() - start)
"""


def test_importing_adds_little_to_scikit_learn():
    times = [
        float(subprocess.run([sys.executable, "-c", SECONDS], capture_output=True, check=True).stdout) for _ in range(3)
    ]
    assert min(times) < 0.15
