"""The README tells the truth: its commands are run, its output compared, its lists checked against the code.

A ```console block is run from the root of the repository, command by command. Below each `$ command` stands what it prints on stdout and stderr, where a line of `...` stands
for any lines, and seconds, versions and thread counts may be others. A ```python block is a doctest.
"""

import dataclasses
import doctest
import math
import os
import re
import shutil
from tempfile import TemporaryFile
from typing import get_args

import pytest
from command_line import ROOT, run_line

from kerntest.cli.documented import EXIT_CODES
from kerntest.inference.options import NullMethod
from kerntest.kernels.names import NAMES
from kerntest.report import (
    approximation,
    independence_record,
    kpca_record,
    learning_record,
    model_report,
    plan,
    prediction_report,
    record,
    ridge_record,
    svm_record,
    transform_report,
)

README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(README[: found.start()].count("\n") + 1, *found.groups()) for found in FENCE.finditer(README)]
RECORDS = (
    record.TwoSampleResult,
    record.Null,
    record.Family,
    record.FamilyMember,
    record.Provenance,
    record.InputRecord,
    record.MinimumEffect,
    record.Explanation,
    record.ColumnEffect,
    record.ColumnContents,
    record.TypicalRow,
    independence_record.IndependenceResult,
    independence_record.KernelPairs,
    independence_record.KernelPair,
    independence_record.Lags,
    independence_record.ScreenResult,
    independence_record.PairEffect,
    independence_record.SelectionResult,
    independence_record.SelectedColumn,
    independence_record.JointResult,
    independence_record.JointGroup,
    independence_record.GroupPair,
    svm_record.SvmResult,
    svm_record.GridSearch,
    svm_record.GridCell,
    svm_record.Baseline,
    ridge_record.RidgeResult,
    ridge_record.RidgeGrid,
    ridge_record.RidgeCell,
    ridge_record.TargetFit,
    ridge_record.IntervalMetrics,
    learning_record.ClassificationMetrics,
    learning_record.ClassMetrics,
    learning_record.RegressionMetrics,
    prediction_report.PredictionReport,
    prediction_report.UnknownLevels,
    prediction_report.NumberSummary,
    kpca_record.KpcaResult,
    kpca_record.KpcaPart,
    kpca_record.ComponentAssociation,
    transform_report.TransformReport,
    transform_report.ColumnError,
    model_report.ModelReport,
    model_report.ModelColumn,
    plan.Plan,
    record.Approximation,
    approximation.PairApproximation,
)
MASKS = (
    (re.compile(r'("seconds": )[\d.e-]+'), r"\1..."),
    (re.compile(r'("threads": )\d+'), r"\1..."),
    (re.compile(r'("(?:numpy|scipy|pyarrow|version)": )"[^"]*"'), r"\1..."),
    (re.compile(r"\b\d+ threads?\b"), "... threads"),
    (re.compile(r"[\d.]+ seconds\b"), "... seconds"),
)
LONG_NUMBER = re.compile(r"-?\d+\.\d{8,}(?:e[-+]?\d+)?")


def blocks(language):
    return [pytest.param(text, id=f"line-{line}") for line, name, text in BLOCKS if name == language]


def dialogue(text):
    """Return the commands of a console block, each with the lines that must follow it."""
    turns = []
    for line in text.splitlines():
        if line.startswith("$ "):
            turns.append((line[2:], []))
        else:
            turns[-1][1].append(line)
    return turns


def masked(line):
    for pattern, replacement in MASKS:
        line = pattern.sub(replacement, line)
    return line


def same_line(shown, printed):
    """Whether two lines agree: long numbers to rounding, everything else to the letter."""
    shown, printed = masked(shown), masked(printed)
    if LONG_NUMBER.sub("#", shown) != LONG_NUMBER.sub("#", printed):
        return False
    numbers = zip(LONG_NUMBER.findall(shown), LONG_NUMBER.findall(printed), strict=True)
    return all(math.isclose(float(one), float(other), rel_tol=1e-9) for one, other in numbers)


def matches(shown, printed):
    """Whether the printed lines are those shown; a shown line of `...` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(matches(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and same_line(shown[0], printed[0]) and matches(shown[1:], printed[1:])


@pytest.fixture
def root(tmp_path, shop, monkeypatch):
    """Stand in a copy of the root of the repository, as far as the README needs it."""
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copytree(shop, folder / "sample_data")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("text", blocks("console"))
def test_commands_print_what_the_readme_shows(text, root):
    del root
    code = 0
    for command, shown in dialogue(text):
        with TemporaryFile() as output:
            code = run_line(command, stdout=output, stderr=output, code=code)
            output.seek(0)
            printed = output.read().decode()
        assert matches(shown, printed.splitlines()), f"$ {command}\n{printed}"


@pytest.mark.parametrize("text", blocks("python"))
def test_python_blocks_are_true(text, root):
    del root
    test = doctest.DocTestParser().get_doctest(text, {}, "README", "README.md", 0)
    assert test.examples
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test, out=said.append).failed == 0, "".join(said)


def test_there_is_something_to_run():
    assert len(blocks("console")) >= 4
    assert len(blocks("python")) >= 1


def test_a_wildcard_stands_for_any_lines_and_masks_hide_what_varies():
    assert matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert matches(["..."], [])
    assert not matches(["a", "d"], ["a", "b", "d"])
    assert same_line('"seconds": 0.12,', '"seconds": 3.4,')
    assert same_line("p = 0.123456789012", "p = 0.123456789013")
    assert not same_line("p = 0.123456789012", "p = 0.123456799012")
    assert not same_line("p = 0.1234", "p = 0.1235")


def test_the_set_up_commands_are_those_of_ci():
    commands = [text.strip() for _, language, text in BLOCKS if language == "sh"]
    assert len(commands) == 2
    assert all(command.startswith("python3 -m venv .venv && ") for command in commands)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace('"$work/.venv"', ".venv").replace('"$work/', "")
    ci = ci.replace('"', "").replace(" --quiet --disable-pip-version-check", "")
    lines = ci.splitlines()
    job, tests = ([step.strip() for step in command.split("&&")] for command in commands)
    assert [step for step in tests if step not in lines] == []
    # CI installs the package once, with the extra.
    assert [step for step in job if step not in lines] == [".venv/bin/pip install ."]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def section(title):
    """Return the text below a heading of the README, up to the next one of its level."""
    level = title.partition(" ")[0]
    assert f"\n{title}\n" in README, title
    return re.split(rf"^{level} ", README.partition(f"\n{title}\n")[2], flags=re.MULTILINE)[0]


def test_the_tables_of_the_readme_are_complete():
    contract = section("## JSON")
    for kept in RECORDS:
        names = [field.name.rstrip("_") for field in dataclasses.fields(kept)]
        missing = [name for name in names if f"`{name}`" not in contract]
        assert missing == [], kept.__name__
    codes = re.findall(r"^\| (\d+) \|", section("## Exit codes"), flags=re.MULTILINE)
    assert codes == [code for code, _ in EXIT_CODES]
    nulls = re.findall(r"^\| `(\w+)` \|", section("## Where the p-value comes from"), flags=re.MULTILINE)
    assert sorted(nulls) == sorted(get_args(NullMethod))
    kernels = section("## Kernels")
    assert [name for name in NAMES if f"`{name}" not in kernels] == []


def test_the_readme_names_every_part_of_the_package():
    built = section("## How it is built")
    parts = [path.name for path in (ROOT / "kerntest").iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert [part for part in parts if f"`{part}/`" not in built] == []
