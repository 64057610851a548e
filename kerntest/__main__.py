"""The program: ``kerntest``, and ``python -m kerntest``, which is the same."""

from __future__ import annotations

import gc
import os
import signal
from typing import NoReturn


def main() -> NoReturn:
    """Load the command line and run it; interrupted while it loads, leave at once: there is nothing to clean up."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # As in `kerntest.__getattr__`.
    gc.disable()
    from kerntest.cli.main import main as run  # noqa: PLC0415 - loaded when an interruption is no traceback any more

    gc.enable()
    run()


if __name__ == "__main__":
    main()
