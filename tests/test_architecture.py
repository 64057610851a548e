"""Imports only point down, and what loads slowly is loaded late."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kerntest

PACKAGE = Path(kerntest.__file__).parent
# What each part may import besides itself. A new part must be placed here.
ALLOWED = {
    "errors": set(),
    "engines": {"errors"},
    "kernels": {"errors", "engines"},
    "data": {"errors"},
    "report": {"errors", "engines"},
    "inference": {"errors", "engines", "kernels", "data", "report"},
    "learning": {"errors", "engines", "kernels", "data", "report"},
    "cli": {"errors", "engines", "kernels", "data", "report", "inference", "learning"},
    "__main__": {"cli"},
}
# The package itself only names what lives below, for readers of types, and keeps the version that reports print.
ROOT = "__init__"
NEVER_AT_MODULE_LEVEL = ("pandas", "scipy.stats", "scipy.spatial", "matplotlib")
FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(node):
    """Return the full names that an import statement brings in: modules, and names that may be modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def imports(path):
    return [name for node in ast.walk(ast.parse(path.read_text())) for name in imported(node)]


def imports_on_loading(path):
    """Return what loading the module imports: not what stands in functions or under TYPE_CHECKING."""
    found = []

    def visit(node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        found.extend(imported(node))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


def kerntest_parts(names):
    """Return the parts of kerntest among full names; names of the package itself (the version) are no part."""
    parts = {name.split(".")[1] for name in names if name.startswith("kerntest.")}
    return {part for part in parts if (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").is_file()}


def label(path):
    return str(path.relative_to(PACKAGE))


def test_every_part_of_the_package_has_its_place():
    present = {part_of(path) for path in FILES} - {ROOT}
    assert present <= set(ALLOWED), "place the new part in the table of this test"


def test_the_table_itself_points_down():
    seen = set()
    for part, below in ALLOWED.items():
        assert below <= seen, f"{part} may import only what comes before it"
        seen.add(part)


@pytest.mark.parametrize("path", [path for path in FILES if part_of(path) != ROOT], ids=label)
def test_imports_point_down(path):
    part = part_of(path)
    upward = kerntest_parts(imports(path)) - ALLOWED[part] - {part}
    assert not upward, f"{label(path)} imports {sorted(upward)}"


@pytest.mark.parametrize("path", [path for path in FILES if part_of(path) not in {"cli", "__main__"}], ids=label)
def test_nothing_below_the_command_line_knows_its_libraries(path):
    tops = {name.split(".")[0] for name in imports(path)}
    assert not tops & {"click", "rich"}


def test_no_null_or_solver_reads_files():
    inner = [path for path in FILES if {"nulls", "solvers"} & set(path.relative_to(PACKAGE).parts)]
    assert inner
    for path in inner:
        assert "data" not in kerntest_parts(imports(path)), label(path)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_slow_libraries_are_loaded_by_those_who_need_them(path):
    slow = [
        name
        for name in imports_on_loading(path)
        for late in NEVER_AT_MODULE_LEVEL
        if name == late or name.startswith(f"{late}.")
    ]
    assert not slow


@pytest.mark.parametrize("path", FILES, ids=label)
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) < 400


def loaded_by(statement):
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_kerntest_loads_no_numerics():
    assert not loaded_by("import kerntest; dir(kerntest); kerntest.__version__") & {
        "numpy",
        "scipy",
        "pandas",
        "pyarrow",
        "click",
        "rich",
    }


def test_the_test_itself_loads_neither_pandas_nor_scipy_stats():
    loaded = loaded_by("from kerntest import mmd_test")
    assert "numpy" in loaded
    assert not loaded & {"pandas", "scipy.stats", "scipy.spatial", "matplotlib", "click", "rich"}


def test_public_names_are_there_and_others_are_not():
    for name in kerntest.__all__:
        assert getattr(kerntest, name) is not None
    assert sorted(dir(kerntest)) == sorted(kerntest.__all__)
    with pytest.raises(AttributeError, match="module 'kerntest' has no attribute 'mmd_tset'"):
        kerntest.mmd_tset  # noqa: B018 - the access is what is tested
