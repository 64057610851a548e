"""Every example of every help text runs as it stands; every command has a place in the README."""

import shutil
from tempfile import TemporaryFile

import pytest
from command_line import ROOT, run_line

from kerntest.cli.main import group

README = (ROOT / "README.md").read_text(encoding="utf-8")
# The commands of the README are run, and their output compared, by the test of the README.
SHOWN = {line.removeprefix("$ ").replace("sample_data/", "") for line in README.splitlines() if line.startswith("$ ")}
LINES = {
    line: f"{name}-{number}"
    for name, command in (("kerntest", group), *group.documented().items())
    for number, line in enumerate(command.manual.examples.values())
    if line not in SHOWN
}


@pytest.mark.parametrize("line", LINES, ids=LINES.values())
def test_an_example_runs_where_the_sample_data_are(line, shop, tmp_path, monkeypatch):
    folder, home = tmp_path / "sample_data", tmp_path / "home"
    shutil.copytree(shop, folder)
    (home / ".config" / "fish" / "completions").mkdir(parents=True)
    monkeypatch.chdir(folder)
    with TemporaryFile() as out, TemporaryFile() as err:
        code = run_line(line, stdout=out, stderr=err, home=home)
        printed, told = (file.seek(0) or file.read().decode() for file in (out, err))
    # Files differ; the rows that a model was trained on are not far from themselves.
    assert code == (1 if "--fail-on" in line and "outside_rows" not in line else 0), told
    assert "error:" not in told
    written = [path for path in home.rglob("*") if path.is_file()]
    assert printed or (written and all(path.stat().st_size for path in written))


def test_a_command_has_a_place_in_the_readme():
    assert [name for name in group.homes if f"kerntest {name}" not in README] == []
