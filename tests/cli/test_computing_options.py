"""Options about where to compute: taken by every command that computes, and a plan instead of a result."""

import json
import re
from csv import reader
from types import SimpleNamespace

import pytest
from command_line import ROOT
from pyarrow import csv, parquet

from kerntest.cli import run as computing

DATA = ROOT / "sample_data"
BEFORE, AFTER = DATA / "before.csv", DATA / "after.csv"
COMMANDS = {
    "mmd": (BEFORE, AFTER),
    "hsic": (DATA / "machines.csv", "--x", "temp_c", "--y", "wear_um"),
    "svm": (DATA / "iris.csv", "--target", "species"),
    "ridge": (DATA / "machines.csv", "--target", "wear_um", "--exclude", "line"),
    "kpca": (DATA / "wine.csv",),
    "unmix": (DATA / "mixed.csv",),
    "cca": (DATA / "iris.csv", "--y", "petal_*"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dry_run_prints_the_plan_for_people_and_for_programs_and_writes_nothing(kerntest, tmp_path, command):
    output = "-o" if command in {"mmd", "hsic"} else "--report"
    words = (command, *COMMANDS[command], "--dry-run", "--threads", "1")
    outcome = kerntest(*words, output, tmp_path / "out.txt")
    assert (outcome.code, outcome.err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    lines = outcome.out.splitlines()
    assert lines[0] == f"Plan of kerntest {command}"
    labels = [line.split()[0] for line in lines[1:-1] if not line.startswith("   ")]
    assert labels == ["data", "work", "where", "memory", "time"]
    assert lines[-1] == "Dry run: nothing was computed"
    assert lines[-2].endswith("second on 1 thread") or lines[-2].endswith("seconds on 1 thread")
    plan = json.loads(kerntest(*words, "--json").out)
    expected = {"schema": "kerntest.plan/1", "command": command, "where": "1 thread of this process"}
    assert (expected | {"memory_limit": None}).items() <= plan.items()
    assert plan["rows"] > 100
    assert plan["memory_bytes"] > 10**8
    header, values = reader(kerntest(*words, "--format", "csv").out.splitlines())
    assert dict(zip(header, values, strict=True))["work"] == "; ".join(plan["work"])


def test_the_time_of_a_plan_is_that_of_the_whole_command(kerntest, monkeypatch):
    clock = iter([100.0, 107.0])
    monkeypatch.setattr(computing, "time", SimpleNamespace(process_time=lambda: next(clock)))
    plan = json.loads(kerntest("mmd", BEFORE, AFTER, "--dry-run", "--json").out)
    # Seven seconds since the command began, and half of one for loading it.
    assert 7.5 < plan["seconds"] < 12
    assert plan["seconds_range"][0] > 7.5


def test_verbose_tells_the_plan_before_the_result(kerntest):
    outcome = kerntest("mmd", BEFORE, AFTER, "-v", "--memory", "2GB")
    assert outcome.code == 0
    plan = [line for line in outcome.err.splitlines() if line.startswith("plan: ")]
    assert plan[0] == "plan: data: 850 rows, 6 columns"
    assert re.fullmatch(r"plan: memory: about \d+ MB of the 2 GB allowed", plan[4])
    assert outcome.err.startswith(plan[0])
    assert "Decision" in outcome.out


@pytest.mark.parametrize("mode", [["--pairwise"], ["--target", "wear_um"], ["--joint", "temp_c,wear_um,power_kw"]])
def test_every_test_of_hsic_takes_them(kerntest, mode):
    outcome = kerntest("hsic", DATA / "machines.csv", *mode, "--memory", "2GB", "--threads", "1", "--engine", "local")
    assert outcome.code == 0


@pytest.mark.parametrize("data", ["iris.csv", "iris.parquet"])
def test_applying_a_model_has_a_plan_too_and_then_writes_nothing(kerntest, tmp_path, data):
    source = DATA / "iris.csv"
    parquet.write_table(csv.read_csv(source), tmp_path / "iris.parquet")
    rows = source if data.endswith("csv") else tmp_path / data
    model, output = tmp_path / "iris.kt", tmp_path / "out.csv"
    assert kerntest("svm", source, "--target", "species", "-o", model, "-q").code == 0
    plan = json.loads(
        kerntest("predict", model, rows, "-o", output, "--dry-run", "--json", "--threads", 8, "--memory", "300MB").out
    )
    assert (plan["command"], plan["rows"], plan["columns"]) == ("predict", 150, 4)
    # As many as the memory allows, whatever this process holds already.
    assert plan["where"] in [f"{threads} threads of this process" for threads in range(2, 8)]
    assert plan["work"] == ["predictions of 150 rows, a block of them at a time"]
    assert not output.exists()
    outcome = kerntest("predict", model, rows, "-o", output, "-v", "--memory", "300MB")
    assert outcome.err.startswith("plan: data: 150 rows, 4 columns\n")
    assert output.exists()


@pytest.mark.parametrize("watched", [True, False])
def test_who_waits_is_told_how_long(kerntest, monkeypatch, watched):
    monkeypatch.setattr(computing, "ROWS_TO_WAIT_FOR", 0)
    monkeypatch.setattr(computing, "SECONDS_TO_WAIT", 0.0)
    monkeypatch.setattr(computing, "is_terminal", lambda _: watched)
    said = kerntest("svm", *COMMANDS["svm"]).err
    assert said.startswith("note: this takes less than a second (") is watched


@pytest.mark.parametrize(
    ("more", "way_out"), [([], "--sample takes a part"), (["--time-series"], "--where takes a stretch")]
)
def test_who_waits_long_for_a_test_is_told_of_fewer_rows(kerntest, monkeypatch, more, way_out):
    monkeypatch.setattr(computing, "ROWS_TO_WAIT_FOR", 0)
    monkeypatch.setattr(computing, "LONG", 0.0)
    said = kerntest("hsic", DATA / "river.csv", "--x", "rain_mm", "--y", "level_cm", *more).err
    assert said.splitlines()[0].endswith(f"; --dry-run shows the plan; {way_out} of the rows")
