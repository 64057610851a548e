"""What units of work cost: measured once on a machine, kept in the cache folder, and built in where that cannot be."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from kerntest.engines import plan
from kerntest.engines.engine import Engine


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder; measurements that cannot be mistaken for the built-in costs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(plan, "measured", lambda: dict.fromkeys(plan.UNITS, 0.5))
    plan.costs.cache_clear()
    yield tmp_path / "kerntest"
    plan.costs.cache_clear()


def asked_again():
    plan.costs.cache_clear()
    return plan.costs()


def test_every_unit_is_measured_and_is_a_time():
    found = plan.measured()
    assert found.keys() == plan.UNITS.keys()
    assert all(0.0 < seconds < 1e-3 for seconds in found.values())
    assert found["product"] < found["entry"] < found["exp"]


def test_costs_are_measured_once_and_kept(folder, monkeypatch):
    assert set(plan.costs().values()) == {0.5}
    (file,) = folder.iterdir()
    kept = json.loads(file.read_text())
    assert kept.keys() == {"machine", "seconds"}
    assert all(part in kept["machine"] for part in ("kerntest ", "numpy "))
    monkeypatch.setattr(plan, "measured", pytest.fail)
    assert set(asked_again().values()) == {0.5}


@pytest.mark.parametrize(
    "kept", ["", "{", "[]", "{}", '{"machine": 1, "seconds": {}}', "MACHINE 0", "MACHINE nan", "MACHINE text", "\udcff"]
)
def test_what_is_kept_and_cannot_be_used_is_measured_anew(folder, kept):
    plan.costs()
    (file,) = folder.iterdir()
    if kept.startswith("MACHINE"):
        text = file.read_text().replace("0.5", {"0": "0.0", "nan": "NaN", "text": '"0,5"'}[kept.split()[1]], 1)
        file.write_text(text)
    else:
        file.write_bytes(kept.encode("utf-8", "surrogateescape"))
    assert set(asked_again().values()) == {0.5}
    assert json.loads(file.read_text())["seconds"] == dict.fromkeys(plan.UNITS, 0.5)
    assert len(list(folder.iterdir())) == 1


def test_another_processor_has_costs_of_its_own(folder, monkeypatch):
    plan.costs()
    monkeypatch.setattr(plan, "_machine", lambda: "another one")
    asked_again()
    assert len(list(folder.iterdir())) == 2


def test_where_nothing_can_be_kept_the_built_in_costs_are_said(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(plan, "measured", pytest.fail)
    (tmp_path / "file").write_text("no folder")
    for named in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(named))
        assert asked_again() == plan.UNITS
    assert not folder.exists()


def test_the_cache_folder_is_that_of_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert plan.cache_folder() == tmp_path / "kerntest"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/somebody"))
    for name, folder in (("linux", ".cache/kerntest"), ("darwin", "Library/Caches/kerntest")):
        monkeypatch.setattr(sys, "platform", name)
        assert plan.cache_folder() == Path("/home/somebody") / folder
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert plan.cache_folder() == Path("/local/kerntest/Cache")


def test_seconds_are_units_times_their_costs_shared_by_threads(monkeypatch):
    monkeypatch.setattr(plan, "costs", lambda: {"exp": 2.0, "call": 3.0})
    assert plan.seconds_of({"exp": 5.0, "call": 1.0}, Engine(1)) == 13.0
    assert plan.seconds_of({"exp": 5.0, "call": 1.0}, Engine(4)) == 3.25
    assert plan.added({"exp": 1.0}, {"exp": 2.0, "call": 1.0}, times=2.0) == {"exp": 6.0, "call": 2.0}


def test_a_gpu_takes_the_share_of_the_time_that_its_gram_matrix_does(monkeypatch):
    monkeypatch.setattr(plan, "GPU_ROWS", 64)
    known = plan.costs()
    found = plan._gpu_costs(Engine(1))
    shares = [found[unit] / known[unit] for unit in known]
    assert all(one == pytest.approx(other) for one, other in pairwise(shares))
    assert shares[0] > 0
