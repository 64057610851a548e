"""What a release may not change by accident: results of a hundred commands on the sample data, kept in ``goldens``.

Each line of ``goldens/commands`` has a name and a command. To renew the results after a change on purpose:
``KERNTEST_RENEW_GOLDENS=1 python -m pytest tests/end_to_end/test_goldens.py``, then read the difference.
"""

import csv
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from records import differences
from tolerances import STATISTIC

GOLDENS = Path(__file__).parent / "goldens"
COMMANDS = dict(
    line.split(": ", 1)
    for line in (GOLDENS / "commands").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
# What hangs on the day, the machine and the libraries.
PASSING = {"seconds", "seconds_saved", "version", "libraries", "threads", "sha256", "iterations"}
TIMES = r"(?:(?:about )?[\d.]+ seconds?|less than a second)"
# A plan has two of them where the machine is slow.
TIME = re.compile(rf"(?:(?:{TIMES}|[\d.]+) to )?{TIMES}")
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def lasting(value):
    """Return a record without what passes."""
    if isinstance(value, dict):
        return {name: lasting(one) for name, one in value.items() if PASSING.isdisjoint(name.split("."))}
    return [lasting(one) for one in value] if isinstance(value, list) else value


def parsed(text):
    """Return JSON, and CSV of a result, as records, and any other text as its lines."""
    try:
        return lasting(json.loads(text))
    except ValueError:
        lines = TIME.sub("# seconds", text).splitlines()
    return lasting(list(csv.DictReader(lines))) if lines and "seconds" in re.split("[,.]", lines[0]) else lines


def same_lines(found, expected):
    """Say whether two texts have the same words, and numbers that differ by no more than their last digit."""
    if not (isinstance(found, list) and isinstance(expected, list) and all(isinstance(one, str) for one in expected)):
        return False
    found, expected = ("\n".join(lines) for lines in (found, expected))
    if re.sub(r"[ ─━]+", " ", NUMBER.sub("#", found)) != re.sub(r"[ ─━]+", " ", NUMBER.sub("#", expected)):
        return False
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True):
        mantissa, _, power = other.replace("−", "-").partition("e")
        last = 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
        if "." in other and not abs(float(one.replace("−", "-")) - float(other.replace("−", "-"))) <= 1.5 * last:
            return False
        if "." not in other and one != other:
            return False
    return True


@pytest.fixture
def folder(shop, tmp_path, monkeypatch):
    """Stand among copies of the sample data and of some files with faults."""
    shutil.copytree(shop, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.png", "*.py"))
    lines, iris = (
        (shop / name).read_text(encoding="utf-8").splitlines(keepends=True) for name in ("before.csv", "iris.csv")
    )
    for name, some in {
        "three_rows.csv": lines[:2],
        "ragged.csv": [*lines[:5], "1,2\n"],
        "iris_two_classes.csv": [*iris[:1], *iris[51::4]],
        "unknown_payment.csv": [lines[0], lines[1].replace(lines[1].split(",")[4], "barter")],
    }.items():
        (tmp_path / name).write_text("".join(some), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_result_stays_as_it_was(name, folder, kerntest):
    before = {path.name for path in folder.iterdir()}
    outcome = kerntest(*shlex.split(COMMANDS[name]))
    written = sorted(path for path in folder.iterdir() if path.name not in before)
    found = {
        "exit": outcome.code,
        "stdout": parsed(outcome.out),
        "stderr": parsed(outcome.err.replace(str(folder), "FOLDER")),
        "files": {
            path.name: None if path.suffix == ".kt" else parsed(path.read_text(encoding="utf-8")) for path in written
        },
    }
    assert outcome.code != 70, outcome.err
    golden = GOLDENS / f"{name}.json"
    if os.environ.get("KERNTEST_RENEW_GOLDENS"):
        golden.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    expected = json.loads(golden.read_text(encoding="utf-8"))
    texts = [(found, expected, place) for place in ("exit", "stdout", "stderr")]
    texts += [(found["files"], expected["files"], place) for place in {**found["files"], **expected["files"]}]
    told = [
        one
        for some, others, place in texts
        if not same_lines(some.get(place), others.get(place))
        for one in differences(some.get(place), others.get(place), share=STATISTIC, place=place)
    ]
    assert not told, "\n".join(told)


def test_every_golden_has_its_command():
    assert {path.stem for path in GOLDENS.glob("*.json")} == set(COMMANDS)
