"""Golden cases: each folder in ``cases`` has the command line and what must come of it.

To renew them after a change on purpose: ``KERNTEST_RENEW_CASES=1 python -m pytest tests/cli/test_cases.py``, then read the difference.
"""

import os
import shlex
from pathlib import Path

import pytest

CASES = sorted((Path(__file__).parent / "cases").iterdir())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, kerntest):
    program, *arguments = shlex.split((case / "cmd").read_text(encoding="utf-8"))
    assert program == "kerntest"
    outcome = kerntest(*arguments)
    got = {"expout": outcome.out, "experr": outcome.err, "exitcode": f"{outcome.code}\n"}
    if os.environ.get("KERNTEST_RENEW_CASES"):
        for name, text in got.items():
            (case / name).write_text(text, encoding="utf-8")
    assert got == {name: (case / name).read_text(encoding="utf-8") for name in got}
    if outcome.code:
        assert not outcome.out
