"""Errors in our own words, short, and with a way out that works."""

import pickle
import socket
import threading
from contextlib import contextmanager

import pytest

import kerntest as package
from kerntest.errors import UsageError, as_typed, either, option

LONG = "linear*" * 3000 + "linear"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "".join(f"{i},{i * i % 17},{'xy'[i % 2]}\n" for i in range(40)))
    return str(path)


@pytest.mark.parametrize("command", [["kpca"], ["hsic", "--x", "a", "--y", "b"], ["kpca", "--json"]])
def test_a_long_kernel_is_not_echoed_whole(kerntest, table, command):
    outcome = kerntest(command[0], table, *command[1:], "--kernel", LONG)
    assert outcome.code == 4
    assert len(outcome.err) < 500
    assert "'linear*linear*" in outcome.err


@pytest.mark.parametrize("null", [[], ["--null", "moments"], ["--resampling", "random"]])
def test_where_a_single_row_differs_the_hint_works(kerntest, tmp_path, null):
    """Anscombe's fourth: of all rows but one x is the same."""
    heights = [6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.5, 5.56, 7.91, 6.89]
    path = tmp_path / "fourth.csv"
    path.write_text("x,y\n" + "".join(f"{19 if y == 12.5 else 8},{y}\n" for y in heights))
    arguments = ["hsic", path, "--x", "x", "--y", "y", *null]
    outcome = kerntest(*arguments)
    assert outcome.code == 4
    assert "hint: --estimator biased can test them" in outcome.err
    assert kerntest(*arguments, "--estimator", "biased").code == 0


@pytest.mark.parametrize(
    ("arguments", "typed", "called"),
    [
        (("missing", "drop"), "--missing drop", "missing='drop'"),
        (("exclude", ["2020"]), "--exclude 2020", "exclude='2020'"),
        (("x", ["unit price", "b"]), "--x 'unit price,b'", "x_columns='unit price,b'"),
        (("common", True), "--common", "common=True"),
        (("header", False), "--no-header", "header=False"),
        (("columns",), "--columns", "columns="),
        (("lambda", 0.5), "--lambda 0.5", "lambda_=0.5"),
        (("o", "a b.csv"), "-o 'a b.csv'", "output='a b.csv'"),
        (("decimal", "."), "--decimal '.'", "decimal='.'"),
        (("exclude", ["it's", 'a,"b', " c"]), r"""--exclude 'it'\''s,"a,""b"," c"' """, r"""exclude='it\'s,"a,""b"," c"' """),
        (("exclude", ["a,b"]), """--exclude '"a,b"' """, """exclude='"a,b"' """),
        (("na", ["", "?"]), """--na '"",?' """, """na='"",?' """),
        (("exclude", ["a\nb"]), r"""--exclude $'"a\nb"' """, r"""exclude='"a\nb"' """),
        (("keep", ["a"] * 42), f"--keep {','.join('a' * 40)} and 2 more", f"keep='{','.join('a' * 40)}' and 2 more"),
    ],
)  # fmt: skip
def test_an_option_is_told_as_who_reads_it_writes_it(arguments, typed, called):
    assert option(*arguments) == called.strip()
    with as_typed():
        assert option(*arguments) == typed.strip()
        assert either("a", "b") == "a"
    assert either("a", "b") == "b"


def test_errors_speak_to_who_called_in_python_or_typed(kerntest, table):
    for names, way_out in (
        ("--x and --y", "--x a,b --y c names"),
        ("x_columns= and y_columns=", "x_columns='a,b', y_"),
    ):
        for wrong, told in (({"x": "a", "y": "a"}, names), ({}, way_out)):
            if way_out.startswith("--"):
                error = kerntest("hsic", table, *(word for name in wrong for word in (f"--{name}", "a"))).err
            else:
                with pytest.raises(UsageError) as caught:
                    package.hsic_test(table, **{f"{name}_columns": "a" for name in wrong})
                error = pickle.loads(pickle.dumps(caught.value))
                error = f"{error} {error.hint}"
            assert told in error


@contextmanager
def stranger(answer):
    """A server that says the same to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"\x01" + b"\0" * 31])
def test_a_server_that_is_no_scheduler(kerntest, table, answer, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("kerntest.engines.dask.ANSWER", 2.0)
    with stranger(answer) as place:
        outcome = kerntest("hsic", table, "--x", "a", "--y", "b", "--scheduler", f"tcp://{place}")
    assert outcome.code == 4
    assert "Dask scheduler" in outcome.err.splitlines()[0]
    assert "memory" not in outcome.err
    assert "hint: " in outcome.err


@pytest.mark.parametrize("scheme", ["tls", "http"])
def test_an_address_is_refused_in_our_own_words(kerntest, table, scheme):
    pytest.importorskip("distributed")
    outcome = kerntest("hsic", table, "--x", "a", "--y", "b", "--scheduler", f"{scheme}://127.0.0.1:1")
    assert outcome.code == 2
    assert "ssl" not in outcome.err
    assert "known schemes" not in outcome.err
    assert "hint: " in outcome.err
