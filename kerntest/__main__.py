"""Make ``python -m kerntest`` the same as ``kerntest``."""

from __future__ import annotations

from kerntest.cli.main import main

if __name__ == "__main__":
    main()
