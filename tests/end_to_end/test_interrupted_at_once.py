"""Ctrl-C before the program is loaded."""

import subprocess
import sys

STUB = """
import os, signal, sys, types
import kerntest.__main__ as program
loading = types.ModuleType("kerntest.cli.main")
loading.main = lambda: os.kill(os.getpid(), signal.SIGINT)
sys.modules["kerntest.cli.main"] = loading
program.main()
"""


def test_an_interruption_while_the_program_loads_is_no_traceback():
    ended = subprocess.run([sys.executable, "-c", STUB], capture_output=True, text=True, timeout=600, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
