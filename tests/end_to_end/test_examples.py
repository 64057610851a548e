"""Every example of every help text runs as it stands; every command has a man page and a place in the README."""

import os
import shutil
import subprocess

import pytest
from command_line import ROOT, environment, put_on_path

from kerntest.cli.main import group

EXAMPLES = [
    pytest.param(line, id=f"{name}-{number}")
    for name, command in (("kerntest", group), *group.commands.items())
    for number, (_, line) in enumerate(command.manual.examples)
]


@pytest.mark.skipif(os.name != "posix", reason="the examples are lines for a POSIX shell")
@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_runs_where_the_sample_data_are(line, shop, tmp_path):
    folder, home = tmp_path / "sample_data", tmp_path / "home"
    shutil.copytree(shop, folder)
    (home / ".config" / "fish" / "completions").mkdir(parents=True)
    variables = environment(PATH=put_on_path(tmp_path / "bin"), HOME=str(home))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    gate_failed = "--fail-on" in line
    assert done.returncode == (1 if gate_failed else 0), done.stderr
    assert "error:" not in done.stderr
    written = [path for path in home.rglob("*") if path.is_file()]
    assert done.stdout or (written and all(path.stat().st_size for path in written))


@pytest.mark.parametrize("name", list(group.commands))
def test_a_command_has_a_man_page_and_a_place_in_the_readme(name):
    assert (ROOT / "man" / f"kerntest-{name}.1").is_file()
    assert f"kerntest {name}" in (ROOT / "README.md").read_text(encoding="utf-8")
