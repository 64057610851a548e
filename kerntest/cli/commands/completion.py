"""``kerntest completion``: the script that makes a shell complete our commands, options and kernels."""

from __future__ import annotations

import click

from kerntest.cli.documented import DocumentedCommand, Manual
from kerntest.cli.options import OneOf
from kerntest.report.write import write_standard_output

MANUAL = Manual(
    examples=(
        ("bash: for this and every later shell", "kerntest completion bash >> ~/.bashrc"),
        ("zsh: for every later shell", "kerntest completion zsh >> ~/.zshrc"),
        ("fish: for every later shell", "kerntest completion fish > ~/.config/fish/completions/kerntest.fish"),
    ),
    arguments=(("SHELL", "bash, zsh or fish."),),
)


@click.command(cls=DocumentedCommand, manual=MANUAL)
@click.argument("shell", type=OneOf("bash", "zsh", "fish"))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, file names and kernel names."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only this command needs it

    completer = get_completion_class(shell)
    if completer is None:  # pragma: no cover - click has had all three since 8.0
        raise click.UsageError(f"click cannot complete for {shell}")
    script = completer(click.Command("kerntest"), {}, "kerntest", "_KERNTEST_COMPLETE")
    # Not script.source(): for bash that first starts bash to ask for its version.
    write_standard_output(script.source_template % script.source_vars())
