"""What is written for readers is true: commands are run, their output compared, lists checked against the code.

A ```console block of a text in Markdown, and an example in a man page that begins with `$ `, is run from the root of the
repository, command by command. Below each `$ command` stands what it prints on stdout and stderr, where a line of `...`
stands for any lines, and seconds, versions and thread counts may be others. Python is a doctest.
"""

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
from tempfile import TemporaryFile

import pytest
from command_line import ROOT, run_line
from records import differences

import kerntest

TEXTS = ("README.md", "kerntest/README.md", "tests/benchmarks/README.md")
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "man").glob("*.[57]"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^\.EX\n(.*?)^\.EE$", re.MULTILINE | re.DOTALL)
ROFF = {"\\e": "\\", "\\-": "-", "\\(aq": "'", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~", "\\&": ""}
GOLDENS = "tests/end_to_end/goldens"
LANGUAGES = {"$ ": "console", ">>>": "python"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def plain(roff):
    """Return text as a man page shows it."""
    return re.sub(r"\\(?:\(\w\w|[-e&]|f[BIR])", lambda found: ROFF.get(found[0], ""), roff)


def blocks_of(name):
    """Give the blocks of a text: language and content."""
    if name in PAGES:
        for found in EXAMPLE.finditer(read(name)):
            text = plain(found[1])
            yield next((LANGUAGES[start] for start in LANGUAGES if text.startswith(start)), ""), text
    else:
        yield from (found.groups() for found in FENCE.finditer(read(name)))


README = read("README.md")
BLOCKS = [
    (f"{name}-{number}", *block) for name in (*TEXTS, *PAGES) for number, block in enumerate(blocks_of(name), start=1)
]
MASKS = (
    (re.compile(r'("seconds": )[\d.e-]+'), r"\1..."),
    (re.compile(r'("threads": )\d+'), r"\1..."),
    (re.compile(r'("(?:numpy|scipy|pyarrow|version)": )"[^"]*"'), r"\1..."),
    (re.compile(r"\b\d+ threads?\b"), "... threads"),
    (re.compile(r"[\d.]+ seconds\b"), "... seconds"),
)


def blocks(language):
    return [pytest.param(text, id=name) for name, found, text in BLOCKS if found == language]


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
    return not any(differences(masked(printed), masked(shown), share=1e-9))


def matches(shown, printed):
    """Whether the printed lines are those shown; a shown line of `...` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(matches(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and same_line(shown[0], printed[0]) and matches(shown[1:], printed[1:])


@pytest.fixture
def root(tmp_path, shop, monkeypatch):
    """Stand in a copy of the root of the repository, as far as readers need it."""
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copytree(shop, folder / "sample_data")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("text", blocks("console"))
def test_commands_print_what_is_shown(text, root):
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
    test = doctest.DocTestParser().get_doctest(text, {}, "example", None, 0)
    assert test.examples
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test, out=said.append).failed == 0, "".join(said)


def test_there_is_something_to_run():
    assert len(blocks("console")) >= 16
    assert len(blocks("python")) >= 4
    assert {language for _, language, _ in BLOCKS} == {"sh", "console", "python"}


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
    ci = ci.replace('"', "").replace(" --quiet --no-compile", "")
    lines = ci.splitlines()
    job, tests = ([step.strip() for step in command.split("&&")] for command in commands)
    assert [step for step in tests if step not in lines] == []
    # CI installs the package once, with the extra.
    assert [step for step in job if step not in lines] == [".venv/bin/pip install '.[plot]'"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def fields(value, parent=""):
    """Give the names of the fields of a JSON text, but for those that users choose."""
    if isinstance(value, list):
        for one in value:
            yield from fields(one, parent)
    elif isinstance(value, dict) and parent not in {"predictions", "libraries", "by_target"}:
        for name, one in value.items():
            yield name
            yield from fields(one, name)


def test_the_manual_names_every_field_of_the_json():
    manual = plain(read("man/kerntest-json.5").replace("\\fB", "`").replace("\\fR", "`"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / GOLDENS).glob("*.json")]
    named = set(fields([result["stdout"] for result in results if isinstance(result["stdout"], dict)]))
    assert len(named) > 150
    assert sorted(name for name in named if not re.search(rf"`{name}`|\.{name}`", manual)) == []


def test_the_lists_of_the_readme_and_the_manual_are_complete():
    codes = set(re.findall(r"^\| (\d+) \|", README, flags=re.MULTILINE))
    assert codes == set(re.findall(r"^\\fB(\d+)\\fR$", read("man/kerntest.1"), flags=re.MULTILINE))
    nulls = {"permutation", "moments", "pearson", "spectral", "gamma"}
    assert nulls <= set(re.findall(r"^\.TP\n\\fB(\w+)\\fR$", read("man/kerntest-tests.7"), flags=re.MULTILINE))
    kernels = plain(read("man/kerntest-kernels.7"))
    listed = subprocess.run(
        [sys.executable, "-m", "kerntest", "kernels", "--json"], capture_output=True, check=True, timeout=600
    ).stdout
    assert [one["name"] for one in json.loads(listed)["kernels"] if one["name"] not in kernels] == []
    assert [name for name in kerntest.__all__ if name[0].islower() and name not in README] == []


def test_the_contributors_guide_names_every_part_of_the_package():
    built = read("kerntest/README.md")
    parts = [path.name for path in (ROOT / "kerntest").iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert [part for part in parts if f"`{part}/`" not in built] == []
