"""Imports only point down, and what loads slowly is loaded late."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from command_line import modules_of

import kerntest

PACKAGE = Path(kerntest.__file__).parent
# What all parts may import.
EVERYWHERE = "dataclass"
# What each part may import besides itself. A new part must be placed here.
ALLOWED = {
    EVERYWHERE: set(),
    "errors": set(),
    "engines": {"errors"},
    "kernels": {"errors", "engines"},
    "data": {"errors", "engines"},
    "matrices": {"errors", "engines", "kernels"},
    "report": {"errors", "engines", "data"},
    "inference": {"errors", "engines", "kernels", "matrices", "data", "report"},
    "learning": {"errors", "engines", "kernels", "matrices", "data", "report"},
    "cli": {"errors", "engines", "kernels", "matrices", "data", "report", "inference", "learning"},
    "__main__": {"cli"},
    # What it computes, it computes by public names.
    "gallery": {"errors", "report"},
}
# The package itself only names what lives below, for readers of types, and keeps the version that reports print.
ROOT = "__init__"
MOST_FILES = 12
NEVER_AT_MODULE_LEVEL = ("pandas", "scipy.stats", "scipy.spatial", "matplotlib")
# What users cause; each has a way out.
ERRORS = {"UsageError", "DataError", "UndecidedError", "MissingExtraError", "ModelError"}
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


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path):
    """Return what a module imports anywhere, what loading it imports, and what running it may import.

    Loading imports what stands neither in functions nor under TYPE_CHECKING, running also what stands in functions.
    """
    everywhere, on_loading, on_running = [], [], []

    def visit(node, loaded, ran):
        names = imported(node)
        everywhere.extend(names)
        on_loading.extend(names if loaded else ())
        on_running.extend(names if ran else ())
        checking = isinstance(node, ast.If) and any(
            "TYPE_CHECKING" in (getattr(part, "id", None), getattr(part, "attr", None)) for part in ast.walk(node.test)
        )
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            # Expressions hold no statements.
            if not isinstance(child, ast.expr):
                only_types = checking and child not in node.orelse
                visit(child, loaded and not inside and not only_types, ran and not only_types)

    visit(tree(path), loaded=True, ran=True)
    return everywhere, on_loading, on_running


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


def test_imports_point_down():
    for path in FILES:
        part = part_of(path)
        upward = set() if part == ROOT else kerntest_parts(imports(path)[0]) - ALLOWED[part] - {part, EVERYWHERE}
        assert not upward, f"{label(path)} imports {sorted(upward)}"


def test_nothing_below_the_command_line_knows_its_libraries():
    for path in FILES:
        if part_of(path) not in {"cli", "__main__"}:
            known = {"click"} if path.name == "drawing.py" else {"click", "rich"}
            assert not {name.split(".")[0] for name in imports(path)[0]} & known, label(path)


def test_no_null_or_solver_reads_files():
    inner = [path for path in FILES if {"nulls", "solvers"} & set(path.relative_to(PACKAGE).parts)]
    assert inner
    for path in inner:
        assert "data" not in kerntest_parts(imports(path)[0]), label(path)


def test_slow_libraries_are_loaded_by_those_who_need_them():
    for path in FILES:
        slow = [
            name
            for name in imports(path)[1]
            for late in NEVER_AT_MODULE_LEVEL
            if name == late or name.startswith(f"{late}.")
        ]
        assert not slow, f"{label(path)} loads {slow}"


def test_imports_are_told_apart_by_where_they_stand(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import one\nif TYPE_CHECKING:\n    import two\nelse:\n    import three\n"
        "def late():\n    import four\nclass Kept:\n    import five\n"
    )
    assert imports(path) == (
        ["one", "two", "three", "four", "five"],
        ["one", "three", "five"],
        ["one", "three", "four", "five"],
    )


def test_no_folder_is_crowded():
    folders = Counter(label(path.parent) for path in FILES)
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}


def test_a_name_means_one_thing():
    """A command may bear the name of what it runs."""
    modules = Counter(path.stem for path in FILES if path.stem[0] != "_" and "commands" not in path.parts)
    classes = Counter(node.name for path in FILES for node in tree(path).body if isinstance(node, ast.ClassDef))
    assert [name for name, count in modules.items() if count > 1] == []
    assert [name for name, count in classes.items() if count > 1 and name[0] != "_"] == []


def test_no_module_needs_itself():
    """Not even by late imports, but for types."""
    modules = {".".join(("kerntest", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in FILES}
    needs = {}
    for name, path in modules.items():
        names = imports(path)[2]
        needs[name] = {one if one in modules else one.rpartition(".")[0] for one in names} & set(modules) - {name}
    while free := [name for name, needed in needs.items() if not needed]:
        needs = {name: needed - set(free) for name, needed in needs.items() if name not in free}
    # What is left stands in a circle, or above one.
    above = {name for name in needs if not any(name in needed for needed in needs.values())}
    assert sorted(set(needs) - above) == []


def test_files_stay_small():
    for path in FILES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 550, label(path)


def test_importing_kerntest_loads_no_numerics():
    assert not modules_of("import kerntest; dir(kerntest); kerntest.__version__") & {
        "numpy",
        "scipy",
        "pandas",
        "pyarrow",
        "click",
        "rich",
    }


def test_public_names_are_there_and_others_are_not():
    for name in kerntest.__all__:
        assert getattr(kerntest, name) is not None
    assert sorted(dir(kerntest)) == sorted(kerntest.__all__)
    with pytest.raises(AttributeError, match="module 'kerntest' has no attribute 'mmd_tset'"):
        kerntest.mmd_tset  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize("path", FILES, ids=label)
def test_every_error_has_a_hint(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
            assert any(keyword.arg in {"hint", None} for keyword in node.keywords), f"line {node.lineno}: no hint"


@pytest.mark.parametrize("path", [path for path in FILES if part_of(path) not in {"cli", "gallery"}], ids=label)
def test_options_are_named_as_whoever_reads_them_writes_them(path):
    """`option("missing", "drop")` and `either(typed, called)` of `kerntest.errors`; below the commands no text has `--missing`."""
    free = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            free.add(node.body[0].value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "either":
            free.update(ast.walk(node))
    texts = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    named = {
        one.lineno: one.value for one in texts if one not in free and re.search(r"(?<![\w-])--[a-zA-Z]", one.value)
    }
    assert path.name == "errors.py" or not named
