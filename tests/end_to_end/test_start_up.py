"""Starting is loading: what a command does not need is not imported. How long it takes is measured by `speed.py start`."""

import gc
from types import SimpleNamespace

import pytest
from command_line import modules_of

import kerntest
from kerntest import __main__ as program

RUN = "from kerntest.cli.main import run; run(sys.argv[1:])"


@pytest.mark.parametrize("arguments", [["--help"], ["mmd", "--help"], ["mmd"]], ids=" ".join)
def test_without_work_nothing_heavy_is_loaded(arguments):
    loaded = modules_of(RUN, *arguments)
    assert not loaded & {"numpy", "scipy", "pandas", "pyarrow", "rich", "matplotlib", "threadpoolctl"}
    assert {"click", "kerntest"} <= loaded


def test_help_loads_little_more_than_click():
    assert len(modules_of(RUN, "--help")) <= 2 * len(modules_of("import click"))


def test_a_small_test_loads_only_what_it_uses(shop):
    files = (shop / "gaussian.csv", shop / "laplace.csv")
    as_table, as_json = modules_of(RUN, "mmd", *files), modules_of(RUN, "mmd", *files, "--json")
    unused = {"pandas", "scipy", "matplotlib", "pyarrow.parquet"}
    assert as_table.isdisjoint(unused)
    assert modules_of(RUN, "inspect", files[0]).isdisjoint(unused | {"numpy.ma", "numpy.random"})
    assert {"numpy", "pyarrow"} <= as_json
    assert "rich" not in as_json
    assert "rich" in as_table


def test_no_garbage_is_looked_for_while_something_loads(monkeypatch):
    seen = []
    monkeypatch.setattr(kerntest, "import_module", lambda _: seen.append(gc.isenabled()) or SimpleNamespace(SVM=1))
    monkeypatch.setattr("kerntest.cli.main.main", lambda: seen.append(gc.isenabled()))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert (kerntest.__getattr__("SVM"), gc.isenabled()) == (1, True)
    program.main()
    assert (seen, gc.isenabled()) == ([False, True], True)
    gc.disable()
    try:
        assert (kerntest.__getattr__("SVM"), gc.isenabled()) == (1, False)
    finally:
        gc.enable()


def test_a_machine_is_trained_without_what_it_does_not_use(shop):
    loaded = modules_of(RUN, "svm", shop / "gaussian.csv", "--task", "one-class")
    assert "scipy.linalg" in loaded
    assert loaded.isdisjoint(
        {"pandas", "scipy.stats", "scipy.spatial", "scipy.optimize", "scipy.special", "matplotlib"}
    )
