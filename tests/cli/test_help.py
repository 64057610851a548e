import click
import pytest

from kerntest.cli.main import group

COMMANDS = [[], *([name] for name in group.homes)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "kerntest")
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_begins_and_ends_with_examples(kerntest, command, flag):
    outcome = kerntest(*command, flag)
    assert (outcome.code, outcome.err) == (0, "")
    found = group.documented()[command[0]] if command else group
    examples = list(found.manual.examples.values())
    assert examples
    lines = outcome.out.splitlines()
    assert lines[-1].strip() == examples[-1]
    assert outcome.out.index("\nExample:\n") < outcome.out.index("--help")
    assert outcome.out.index(examples[0]) < outcome.out.index("--help")
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "kerntest")
def test_every_command_and_every_option_has_its_help(command):
    found = group.documented()[command[0]] if command else group
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
    if command:
        assert found.short_help


@pytest.mark.parametrize("command", list(group.homes))
def test_an_option_without_its_value_is_told_what_it_takes(kerntest, command):
    for parameter in group.documented()[command].params:
        if not isinstance(parameter, click.Option):
            continue
        name = max(parameter.opts, key=len)
        words = [[f"{name}=yes"]] if parameter.is_flag else [[name], [name, name, "1"]]
        for given in words:
            outcome = kerntest(command, "no.csv", *given)
            assert outcome.code == 2
            told = "does not take a value" if parameter.is_flag else "needs a value"
            assert f"option '{name}' {told}" in outcome.err
            hint = outcome.err.split("hint")[1]
            assert f"{name} {parameter.metavar or ''}".rstrip() in hint
            assert len(hint) > len(name) + 20


def test_a_word_behind_a_flag_is_no_value_of_it(kerntest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (["hsic", "a.csv", "--time-series", "quarter"], ["svm", "a.csv", "--grid", "yes"]):
        outcome = kerntest(*words)
        assert outcome.code == 2
        told = f"option '{words[2]}' does not take a value, and there is no file '{words[3]}'"
        assert outcome.err.splitlines()[0] == f"error: {told}"
    # A file, be it there or not.
    (tmp_path / "table").write_text("a\n1\n")
    for words in (["inspect", "-q", "table"], ["inspect", "-q", "no.csv"], ["inspect", "-q", "-"]):
        assert "a value" not in kerntest(*words).err


def test_help_shows_defaults_topics_and_exit_codes(kerntest):
    text = kerntest("mmd", "--help").out
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    told = "Groups:Test:Rows that belong together:Columns and rows:How CSV is written:Where they differ:Computing:Output:Other:"
    notes = "How to read the result:Groups:Several kernels:Same or different:Nulls:"
    assert "".join(headings) == f"Example:Arguments:{told}{notes}Exit codes:Examples:"
    squeezed = " ".join(text.split())
    for default in ("auto", "unbiased", "permutation", "1000", "0.05", "0", "all cores", "standardize", "table"):
        assert f"[default: {default}]" in squeezed
    for code in (0, 1, 2, 3, 4, 5, 70, 130, 141):
        assert f"\n  {code} " in text
