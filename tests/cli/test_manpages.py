import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kerntest.cli.main import group
from kerntest.cli.manual import DocumentedGroup, Manual, pages

MAN = Path(__file__).parents[2] / "man"
PAGES = pages(group)


def test_the_committed_pages_are_those_of_the_commands():
    if os.environ.get("KERNTEST_RENEW_MAN"):
        for name, text in PAGES.items():
            (MAN / name).write_text(text, encoding="utf-8")
    there = {file.name: file.read_text(encoding="utf-8") for file in MAN.glob("*.1")}
    assert there == PAGES, "to write them anew: KERNTEST_RENEW_MAN=1 python -m pytest tests/cli/test_manpages.py"
    assert sorted(PAGES) == sorted(["kerntest.1", *(f"kerntest-{name}.1" for name in group.homes)])


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("path", sorted(MAN.iterdir()), ids=lambda path: path.name)
def test_a_page_is_clean_and_shows_examples_as_they_are_typed(path):
    command = ["groff", "-man", "-ww", "-Tutf8", "-P-c", "-rLL=300n", path]
    done = subprocess.run(command, capture_output=True, check=True, timeout=600)
    assert done.stderr == b""
    text = done.stdout.decode()
    assert path.stem.upper() in text.splitlines()[0]
    commands = {"kerntest.1": group} | {f"kerntest-{name}.1": one for name, one in group.documented().items()}
    for line in commands[path.name].manual.examples.values() if path.name in commands else ():
        assert line in text


def test_text_is_no_request_of_roff():
    manual = Manual(examples={"'quoted' -x": ".hidden ~/a"})
    lines = pages(DocumentedGroup("program", manual=manual, homes={}))["program.1"].splitlines()
    assert {"\\&\\(aqquoted\\(aq \\-x:", "\\&.hidden \\(ti/a"} <= set(lines)
