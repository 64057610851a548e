import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kerntest.cli.main import group
from kerntest.cli.manpages import differences, pages, write_pages

MAN = Path(__file__).parents[2] / "man"
SECTIONS = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "EXIT STATUS",
    "ENVIRONMENT",
    "FILES",
    "EXAMPLES",
    "SEE ALSO",
]


def test_the_committed_pages_are_those_of_the_commands():
    assert differences(MAN) == [], "run `python -m kerntest.cli.manpages`"


def test_there_is_a_page_for_each_command():
    assert sorted(pages()) == sorted(["kerntest.1", *(f"kerntest-{name}.1" for name in group.homes)])


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_has_the_sections_that_readers_expect(name):
    headings = [line[4:].strip('"') for line in pages()[name].splitlines() if line.startswith(".SH ")]
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_clean_and_shows_examples_as_they_are_typed(name):
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-P-c", "-rLL=300n"],
        input=pages()[name].encode(),
        capture_output=True,
        check=True,
        timeout=600,
    )
    assert done.stderr == b""
    text = done.stdout.decode()
    command = group if name == "kerntest.1" else group.documented()[name.removeprefix("kerntest-").removesuffix(".1")]
    for _, line in command.manual.examples:
        assert line in text


def test_check_fails_on_a_stale_page_and_writes_nothing(tmp_path):
    runner = CliRunner()
    assert runner.invoke(write_pages, [str(tmp_path)]).exit_code == 0
    assert differences(tmp_path) == []
    stale = tmp_path / "kerntest.1"
    stale.write_text("old")
    (tmp_path / "kerntest-gone.1").write_text("old")
    assert differences(tmp_path) == ["kerntest-gone.1", "kerntest.1"]
    assert write_pages.main(["--check", str(tmp_path)], standalone_mode=False) == 1
    assert stale.read_text() == "old"
