"""Finding a GPU, the errors where there is none, and memory."""

import builtins
import sys
import types

import numpy as np
import pytest
from devices import LIBRARIES, device_of, engine_on

import kerntest
from kerntest.cli.main import run
from kerntest.engines import device as devices
from kerntest.engines.device import SHARE, VARIABLE, find_device
from kerntest.engines.gpu import GpuEngine
from kerntest.errors import MissingExtraError, UndecidedError, UsageError


def without(monkeypatch, *names):
    """Make imports of some packages fail as where they are not installed."""
    usual = builtins.__import__

    def refuse(name, *arguments, **options):
        if any(name == one or name.startswith(f"{one}.") for one in names):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])
        return usual(name, *arguments, **options)

    for name in list(sys.modules):
        if name.startswith("array_api_compat.") and "array_api_compat" in names:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)


def test_missing_packages_name_the_extra(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    without(monkeypatch, "torch", "cupy", "array_api_compat")
    with pytest.raises(MissingExtraError, match="array_api_compat") as caught:
        GpuEngine()
    assert caught.value.exit_code == 4
    assert caught.value.hint == "pip install 'kerntest[gpu]'"


def test_a_library_that_was_asked_for_and_is_missing(monkeypatch):
    monkeypatch.setenv(VARIABLE, "cupy")
    without(monkeypatch, "cupy", "array_api_compat.cupy")
    with pytest.raises(MissingExtraError):
        find_device()


def test_no_gpu_is_said_in_one_line(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    without(monkeypatch, "cupy")
    with pytest.raises(UndecidedError, match="no GPU was found") as caught, kerntest.compute_on("gpu"):
        pass
    assert type(caught.value) is UndecidedError
    assert (caught.value.exit_code, caught.value.code) == (4, "undecided.no_gpu")
    assert "--engine gpu" in caught.value.hint


def test_a_cupy_without_a_gpu_is_passed_over(monkeypatch):
    pytest.importorskip("torch")

    class CUDARuntimeError(RuntimeError):
        pass

    def count():
        raise CUDARuntimeError("cudaErrorNoDevice")

    runtime = types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=count)
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "array_api_compat.cupy", types.ModuleType("array_api_compat.cupy"))
    monkeypatch.setenv(VARIABLE, "cupy")
    with pytest.raises(UndecidedError, match="no GPU"):
        find_device()


def test_a_name_that_is_no_device(monkeypatch):
    monkeypatch.setenv(VARIABLE, "abacus:1")
    with pytest.raises(UsageError, match="KERNTEST_DEVICE=abacus:1"):
        find_device()


def test_the_processors_can_stand_in(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv(VARIABLE, "torch:cpu")
    with kerntest.compute_on("gpu", threads=1) as engine:
        assert (engine.name, engine.dtype, engine.threads, engine.here.name) == ("gpu", "float32", 1, "local")
        assert torch.__version__.partition("+")[0] in engine.arrays.describe()
        assert list(engine.map(abs, [-1, -2])) == [1, 2]
        rng = np.random.default_rng(0)
        x = rng.normal(size=(60, 2))
        assert kerntest.hsic_test(x, x + 0.1 * rng.normal(size=(60, 2))).reject
        assert 0 < engine.arrays.error < 1e-5


def test_no_gpu_is_exit_code_4(monkeypatch, tmp_path, capsys):
    torch = pytest.importorskip("torch")
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    without(monkeypatch, "cupy")
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "\n".join(f"{k},{k * k % 7}" for k in range(20)))
    assert run(["mmd", str(table), str(table), "--engine", "gpu"]) == 4
    assert "error: no GPU was found" in capsys.readouterr().err


@pytest.mark.parametrize("library", LIBRARIES)
def test_blocks_fit_into_the_memory(library):
    device = device_of(library, memory=10**6)
    assert device.allowed() == 10**6
    assert device_of(library).allowed() == int(SHARE * 2**32)
    assert device.most(1000.0, 5000, "one") == 1000
    assert device.most(1000.0, 50, "one") == 50
    with pytest.raises(UndecidedError, match=r"one line takes 2 MB.* 1 MB") as caught:
        device.most(2e6, 5, "one line")
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_sent_comes_back(library):
    device = device_of(library)
    values = np.arange(6, dtype=np.float64).reshape(2, 3).T
    values.flags.writeable = False
    for kind in ("float64", "int32", None):
        found = device.fetch(device.send(values, kind))
        assert found.dtype == (kind or "float32")
        # Sent and fetched, nothing computed; float32 holds these whole numbers.
        np.testing.assert_array_equal(found, values)
    assert engine_on(library).arrays.describe().endswith("on the processors")


def test_free_memory_of_this_machine(monkeypatch):
    assert devices._free_here() > 10**6
    monkeypatch.delattr(devices.os, "sysconf")
    assert devices._free_here() == 2**32
