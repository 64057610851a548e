"""Compressed files, globs and decimal commas, from the command line to the record of the result."""

import gzip
import json
from pathlib import Path

import pytest
from tolerances import SAME_MACHINE

SAMPLES = Path(__file__).parents[2] / "sample_data"
QUICK = ["--permutations", "20", "--json"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with the first sample file in two parts, one of them compressed."""
    monkeypatch.chdir(tmp_path)
    header, *rows = (SAMPLES / "before.csv").read_bytes().splitlines(keepends=True)
    Path("part-1.csv").write_bytes(header + b"".join(rows[:150]))
    Path("part-2.csv.gz").write_bytes(gzip.compress(header + b"".join(rows[150:])))
    Path("before.csv").write_bytes((SAMPLES / "before.csv").read_bytes())
    Path("after.csv").write_bytes((SAMPLES / "after.csv").read_bytes())
    return tmp_path


def test_parts_give_the_same_result_as_the_whole(kerntest, folder):  # noqa: ARG001 - the fixture is the working folder
    whole = json.loads(kerntest("mmd", "before.csv", "after.csv", *QUICK).out)
    outcome = kerntest("mmd", "part-*", "after.csv", *QUICK, "-v")
    parts = json.loads(outcome.out)
    assert parts["p_value"] == whole["p_value"]
    assert parts["statistic"] == pytest.approx(whole["statistic"], rel=SAME_MACHINE, abs=0)
    record = parts["provenance"]["inputs"][0]
    assert (record["name"], record["rows"], record["compression"], record["files"]) == ("part-*", 400, "gzip", 2)
    assert "part-*: csv with delimiter ',', compressed with gzip, 2 files, 400 rows read" in outcome.err
    assert whole["provenance"]["inputs"][0]["files"] == 1


def test_a_result_is_not_written_over_one_of_many_inputs(kerntest, folder):
    before = (folder / "part-1.csv").read_bytes()
    outcome = kerntest("mmd", "part-*", "after.csv", *QUICK, "-o", "part-1.csv")
    assert outcome.code == 2
    assert "would replace the data in part-*" in outcome.err
    assert (folder / "part-1.csv").read_bytes() == before


def test_decimal_commas(kerntest, folder):
    for name in ("before", "after"):
        text = (folder / f"{name}.csv").read_text().replace(",", ";").replace(".", ",")
        (folder / f"{name}_comma.csv").write_text(text)
    whole = json.loads(kerntest("mmd", "before.csv", "after.csv", *QUICK).out)
    outcome = kerntest("mmd", "before_comma.csv", "after_comma.csv", *QUICK)
    comma = json.loads(outcome.out)
    assert comma["p_value"] == whole["p_value"]
    assert comma["columns"] == whole["columns"]
    assert len(comma["warnings"]) == 2
    assert outcome.err.count("numbers with a decimal comma were read as such in order_value_eur, ") == 2
    settled = kerntest("mmd", "before_comma.csv", "after_comma.csv", "--decimal", ",", *QUICK)
    assert json.loads(settled.out)["warnings"] == []
    pointed = kerntest("mmd", "before_comma.csv", "after_comma.csv", "--decimal", ".", *QUICK)
    assert pointed.code == 3
    assert "column 'order_value_eur' holds" in pointed.err


def test_warnings_of_misleading_tables_are_on_stderr(kerntest, folder):
    text = (folder / "before.csv").read_text().splitlines()
    numbered = [f"order_id,{text[0]}", *(f"{1000 + i},{line}" for i, line in enumerate(text[1:]))]
    (folder / "old.csv").write_text("\n".join(numbered[:201]))
    (folder / "new.csv").write_text("\n".join([numbered[0], *numbered[201:]]))
    outcome = kerntest("mmd", "old.csv", "new.csv", *QUICK)
    assert "warning: column 'order_id' counts the rows, and all of it in new.csv lies above" in outcome.err
    assert "--exclude order_id" in outcome.err
    assert kerntest("mmd", "old.csv", "new.csv", "--exclude", "order_id", *QUICK).err == ""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_damaged_compression_is_3_wherever_rows_are_streamed(kerntest, tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    model, path = tmp_path / "m.kt", tmp_path / f"d.{kind}.gz"
    table = pandas.read_csv(SAMPLES / "before.csv")
    plain = tmp_path / f"d.{kind}"
    table.to_csv(plain, index=False) if kind == "csv" else table.to_parquet(plain)
    assert kerntest("kpca", plain, "-o", model, "-q").code == 0
    stored = gzip.compress(plain.read_bytes(), mtime=0)
    commands = (
        ["transform", model, path],
        ["transform", model, path, "-o", tmp_path / "o.csv"],
        ["mmd", path, plain, "--method", "features"],
        ["hsic", path, "--x", "items", "--y", "site_minutes", "--method", "features"],
        ["inspect", path],
    )
    # The header of gzip, its first block, the middle, the checksum; and a file that is cut off.
    damages = [2, 3, 10, 11, len(stored) // 2, len(stored) - 6, None]
    for place in damages:
        damaged = bytearray(stored)
        if place is None:
            del damaged[len(stored) // 3 :]
        else:
            damaged[place] ^= 255
        path.write_bytes(damaged)
        for arguments in commands:
            outcome = kerntest(*arguments)
            assert outcome.code == 3, (place, arguments, outcome.err)
            assert f"{path} is compressed with gzip, but it is truncated or damaged: " in outcome.err
            assert "hint: copy or compress it again" in outcome.err
            assert not (tmp_path / "o.csv").exists()
