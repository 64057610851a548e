import pytest

from kerntest.kernels import NAMES, NORMALISE


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "#compdef kerntest"), ("fish", "complete")]
)
def test_the_script_of_each_shell(kerntest, shell, word):
    outcome = kerntest("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert word in outcome.out
    assert f"_KERNTEST_COMPLETE={shell}_complete" in outcome.out


def test_another_shell_is_a_usage_error(kerntest):
    outcome = kerntest("completion", "bsh")
    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean 'bash'?" in outcome.err


@pytest.fixture
def complete(kerntest, monkeypatch):
    def invoke(line):
        words = line.split(" ")
        monkeypatch.setenv("_KERNTEST_COMPLETE", "fish_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", words[-1])
        outcome = kerntest()
        return [answer.partition("\t")[0].removeprefix("plain,") for answer in outcome.out.splitlines()]

    return invoke


def test_commands_options_and_words_complete(complete):
    assert complete("kerntest m") == ["mmd"]
    assert complete("kerntest mmd --perm") == ["--permutations"]
    assert complete("kerntest mmd --null ") == ["permutation", "moments", "gamma", "spectral", "pearson"]
    assert complete("kerntest completion z") == ["zsh"]


def test_kernel_names_complete_also_inside_an_expression(complete):
    assert complete("kerntest mmd --kernel gau") == ["gaussian"]
    assert complete("kerntest mmd --kernel linear+lap") == ["linear+laplacian", "linear+laplacian2"]
    assert complete("kerntest mmd --kernel ") == ["auto", *NAMES, NORMALISE]
