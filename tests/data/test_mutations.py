"""Damaged files: whatever happens to the bytes, there is a table or an error of ours.

The mutations of Parquet run in a process of their own, which is started again where it stopped if it crashes: pyarrow
is C++, and what it reads here is hostile.
"""

import functools
import gzip
import io
import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kerntest import read_table
from kerntest.data.columns import match_tables, pool
from kerntest.data.diagnostics.misleading import two_sample_warnings
from kerntest.data.facts import TableFacts
from kerntest.data.gaps import apply_missing
from kerntest.errors import KerntestError

SAMPLES = Path(__file__).parents[2] / "sample_data"
# Mutations of each file, quickly and for a release.
CSV_PER_FILE = (25, 400)
PARQUET_PER_FILE = (15, 400)
HAND_MADE = {
    "quoted.csv": b'"na""me","two\nlines",t\r\n1,"a, b",x\r\n"2","c ""d""",\r\n\r\n3,"e\r\nf",y\r\n' * 1
    + b"4,g,z\r\n" * 9,
    "comma.csv": "preis;größe;ort\n1,5;1.234;Köln\n2,25;2.345;Bonn\n1.000,5;3.456;\n".encode(),
    "marked.csv": b"\xef\xbb\xbfa\tb\tc\n001\t2024-01-01\ttrue\n002\t2024-02-01T10:00:00\tfalse\n" + b"3\tNA\t\n" * 9,
    "piped.csv": b"a|b\n" + b"".join(b"%d|%d.5e%d\n" % (i, i, i % 300) for i in range(40)),
    "empty_fields.csv": b"a,b,c\n,,\n1,,inf\n,x,\n" * 3,
    "packed.csv": gzip.compress((SAMPLES / "with_missing.csv").read_bytes(), mtime=0),
}


IN_PLACE = ("flip", "overwrite")
INJURIES = (*IN_PLACE, "cut", "truncate", "repeat", "insert")
PIECES = [b'"', b"\n", b"\r", b",", b"\0", b"1e999", b"-", b"nan", b"\xc3", b"2024-13-45", b"9" * 40, b"'"]


def mutated(content, dice, in_place=0.0):
    """Return the bytes with one to four injuries, which leave all else where it was with probability `in_place`."""
    content = bytearray(content)
    for _ in range(dice.randint(1, 4)):
        if not content:
            break
        start, injury = dice.randrange(len(content)), dice.choice(IN_PLACE if dice.random() < in_place else INJURIES)
        stop = len(content) if injury == "truncate" else start + dice.randint(1, 64)
        if injury == "flip":
            content[start] ^= 1 << dice.randrange(8)
        elif injury == "overwrite":
            content[start] = dice.choice(b'\0\n\r",;\t|\xff\xfe\x80-.eE')
        elif injury in {"cut", "truncate"}:
            del content[start:stop]
        else:
            content[start:start] = content[start:stop] if injury == "repeat" else dice.choice(PIECES)
    return bytes(content)


def outcome(path, original):
    """Read a file and put it through what a test does first; return the error, None for a table."""
    try:
        table = read_table(path)
        try:
            usable = original.select([column.name for column in original.columns if column.problem is None])
            x, y, _ = match_tables(usable, table, common=True)
            used = apply_missing(x, "drop")[0], apply_missing(y, "drop")[0]
            pooled = pool(*used)
            list(two_sample_warnings([TableFacts.of(one) for one in (x, y)], pooled.numeric_names))
            error = None
        except KerntestError as caught:
            error = caught
        assert all(len(column.values) == table.n_rows for column in table.columns)
    except KerntestError as caught:
        error = caught
    if error is not None:
        assert error.exit_code == 3, repr(error)
        assert error.hint
        assert "\n" not in error.message + error.hint
    return error


def csv_files():
    names = ["before.csv", "with_missing.csv", "gaussian.csv", "iris.csv"]
    return {**{name: (SAMPLES / name).read_bytes() for name in names}, **HAND_MADE}


@pytest.mark.parametrize("count", [CSV_PER_FILE[0], pytest.param(CSV_PER_FILE[1], marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", csv_files())
def test_damaged_csv(tmp_path, name, count):
    content = csv_files()[name]
    dice = random.Random(f"{name} 0")
    path = tmp_path / name
    path.write_bytes(content)
    original = read_table(path)
    errors = 0
    for _ in range(count):
        path.write_bytes(mutated(content, dice))
        errors += outcome(path, original) is not None
    # Some injuries kill and some do not, or there is nothing to learn here.
    assert errors > 0
    # The checksum of gzip lets next to nothing pass.
    assert errors < count or name == "packed.csv"


def parquet_files():
    """Return Parquet files of each encoding and compression, by name."""
    content = {name: (SAMPLES / name).read_bytes() for name in ("before.parquet", "after.parquet")}
    table = pa.table(
        {
            "n": pa.array([1.5, None, 3.0] * 20),
            "i": pa.array(range(60), pa.int32()),
            "t": pa.array(["a", "größe", None] * 20),
            "d": pa.array([0, 1, None] * 20, pa.date32()),
            "s": pa.array([0, 10**9, None] * 20, pa.timestamp("us")),
            "b": pa.array([True, False, None] * 20),
            "l": pa.array([[1], [], None] * 20),
            "c": pa.array(["u", "v", "u"] * 20).dictionary_encode(),
        }
    )
    for compression in ("none", "snappy", "gzip", "zstd"):
        for version, dictionary in (("1.0", True), ("2.0", False)):
            stream = io.BytesIO()
            parquet.write_table(
                table, stream, compression=compression, use_dictionary=dictionary, data_page_version=version
            )
            content[f"{compression}{version}.parquet"] = stream.getvalue()
    return content


def parquet_run(folder, count, first):
    """Work on so many mutations of each file, from the `first` of all on; tell the number of each before it is tried."""
    folder = Path(folder)
    counts = {}
    for place, (name, content) in enumerate(parquet_files().items()):
        dice = random.Random(f"{name} 0")
        (folder / "original.parquet").write_bytes(content)
        original = read_table(folder / "original.parquet")
        counts[name] = {"tables": 0, "errors": 0}
        for index in range(place * count, (place + 1) * count):
            # A file that is cut or longer is soon found out; what lies deeper takes bytes that stay where they were.
            injured = mutated(content, dice, in_place=0.95)
            if index < first:
                continue
            print(json.dumps({"index": index}), flush=True)
            (folder / name).write_bytes(injured)
            counts[name]["tables" if outcome(folder / name, original) is None else "errors"] += 1
    print(json.dumps({"done": counts}), flush=True)


@functools.cache
def parquet_program():
    """Return the program that a process of its own runs."""
    return f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_mutations; test_mutations.parquet_run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"


@pytest.mark.parametrize("count", [PARQUET_PER_FILE[0], pytest.param(PARQUET_PER_FILE[1], marks=pytest.mark.thorough)])
def test_damaged_parquet(tmp_path, count):
    first, crashes, counts = 0, [], {}
    whole = count * len(parquet_files())
    while first < whole:
        done = subprocess.run(
            [sys.executable, "-c", parquet_program(), str(tmp_path), str(count), str(first)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode == 0:
            counts = lines[-1]["done"]
            break
        # A signal (negative code) is a crash of pyarrow, which Python cannot catch; anything else is ours.
        assert done.returncode < 0, done.stderr
        crashes.append(lines[-1]["index"])
        first = crashes[-1] + 1
    assert len(crashes) <= whole // 100, f"{len(crashes)} crashes of pyarrow, at {crashes}"
    if not crashes:
        assert all(min(found.values()) > 0 for found in counts.values()), counts
