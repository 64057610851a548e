"""Models from before and from strangers: there is the model or one line of ours, and nothing is run or allocated."""

import json
import math
import os
import pickle
import random
import re
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from model_archives import ARRAYS, MANIFEST, archive, members_of, npy, valid_model

from kerntest import SVM, KernelPCA, KernelRidge, inspect_model
from kerntest.errors import DataError, KerntestError, ModelError

MUTATIONS = 1000
SAMPLES = Path(__file__).parents[2] / "sample_data"


@pytest.mark.parametrize(
    ("name", "kind"), [("species", SVM), ("orders", SVM), ("wear", KernelRidge), ("shop", KernelPCA)]
)
def test_models_of_before_are_read_and_written_as_they_were(tmp_path, name, kind):
    path = SAMPLES / f"{name}.kt"
    kind.load(path).save(tmp_path / "m.kt")
    (manifest, members), (old, stored) = (members_of(one.read_bytes()) for one in (tmp_path / "m.kt", path))
    assert members == stored
    # What came later was not asked for.
    later = dict.fromkeys(manifest.keys() - old.keys())
    assert {**manifest, "kerntest_version": ""} == {
        **old,
        **later,
        "kerntest_version": "",
        "parameters": manifest["parameters"],
    }
    with pytest.raises(DataError, match=r"m\.kt exists already") as caught:
        kind.load(path).save(tmp_path / "m.kt")
    assert "force=True" in caught.value.hint
    kind.load(path).save(os.devnull)


# Files that are no model.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"a,b\n1,2\n", "it is text, such as a CSV table"),
        (b"PAR1" + bytes(100), "it is a Parquet table"),
        (pickle.dumps({"a": 1}), "it is neither a zip archive nor text"),
        (archive(None, {}), "it is a zip archive without manifest.json"),
    ],
)
def test_other_files_are_told_from_models(refused, content, message):
    error = refused(content)
    assert error.code == "model.not_a_model"
    assert error.message.endswith(message)
    assert ("the model comes first" in error.hint) == ("table" in message.lower())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are POSIX")
def test_what_is_no_file_is_told(tmp_path):
    for path, message in ((tmp_path, "is not a model: it is a folder"), (tmp_path / "pipe", "it is no regular file")):
        if path != tmp_path:
            os.mkfifo(path)
        with pytest.raises(ModelError, match=message):
            inspect_model(path)


def test_a_file_that_cannot_be_read_is_an_error_of_data_as_for_tables(tmp_path, valid, monkeypatch):
    (tmp_path / "iris.model").write_bytes(valid)
    with pytest.raises(DataError, match=r"iris\.modle does not exist") as caught:
        inspect_model(tmp_path / "iris.modle")
    assert (caught.value.code, caught.value.exit_code) == ("data.missing_file", 3)
    assert "did you mean" in caught.value.hint
    for path, message in ((tmp_path / "nowhere" / "at_all", "does not exist"), ("a\0b", "cannot be read")):
        with pytest.raises(DataError, match=message):
            inspect_model(path)

    def deny(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(DataError, match="cannot be read: permission denied") as caught:
        inspect_model(tmp_path / "iris.model")
    assert caught.value.code == "data.permission_denied"


# Archives from strangers.


def test_an_archive_cut_off_or_added_to_anywhere_is_refused(refused, valid):
    for length in range(4, len(valid), 41):
        refused(valid[:length])
    for added in (b"x", bytes(100), b"PK\x05\x06" + bytes(18)):
        refused(valid + added)
        refused(valid[:4] + added + valid[4:])


@pytest.mark.parametrize("name", ["../support.npy", "a\\b.npy", "..", "support.npy/", "Support.npy", "é.npy"])
def test_members_missing_extra_or_twice_are_refused(refused, valid, name):
    manifest, members = members_of(valid)
    assert "is not in its manifest" in refused(archive(manifest, members, also=[(name, b"x")])).message
    # And one whose name hides behind a zero byte.
    hidden = archive(manifest, members, also=[("extra.npy!evil", b"x")]).replace(b"extra.npy!evil", b"extra.npy\0evil")
    assert "extra.npy is not in its manifest" in refused(hidden).message
    twice = archive(manifest, members, also=[("dual.npy", members["dual.npy"])])
    assert "one of its members twice" in refused(twice).message
    assert "one of its members twice" in refused(archive(manifest, members, also=[("manifest.json", "{}")])).message
    del members["dual.npy"]
    assert "dual.npy is missing" in refused(archive(manifest, members)).message


def test_compressed_members_are_refused_without_being_unpacked(refused, valid):
    manifest, members = members_of(valid)
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        assert "it holds compressed members" in refused(archive(manifest, members, compression=compression)).message
    bomb = archive(b" " * 30_000_000 + b"{}", {}, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    tracemalloc.start()
    refused(bomb)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_encrypted_members_and_a_directory_that_points_elsewhere_are_refused(refused, valid, monkeypatch):
    content = bytearray(valid)
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 8] |= 1
    assert "is encrypted" in refused(bytes(content)).message
    content = bytearray(valid)
    content[entry + 42 : entry + 46] = struct.pack("<L", 2**32 - 2)
    assert "is damaged: Truncated file header" in refused(bytes(content)).message
    assert "the directory at its end" in refused(valid[:-2] + b"\x05\x00PK\x05\x06x").message
    for moved in (valid + valid, valid[:-6] + struct.pack("<L", 30) + valid[-2:]):
        assert "something before its members" in refused(moved).message
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 300)
    large = valid_model(MANIFEST, ARRAYS)
    # Newer versions of zipfile see it first.
    assert re.search("something before its members|is damaged: Corrupt zip64", refused(large + large).message)


def test_members_that_share_bytes_are_refused(refused, valid):
    _, members = members_of(valid)
    big = archive("{}", {"a.npy": bytes(5000), "b.npy": members["bias.npy"]})
    content = bytearray(big)
    a = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    second = content.rindex(b"PK\x01\x02")
    assert content[second + 46 : second + 51] == b"b.npy"
    # The directory gives b the size and the place of a.
    content[second + 20 : second + 28] = content[a + 20 : a + 28]
    content[second + 42 : second + 46] = content[a + 42 : a + 46]
    assert "members larger than the file" in refused(bytes(content)).message


def test_a_directory_that_is_longer_than_that_of_any_model_is_refused_unread(refused):
    long = [zipfile.ZipInfo(f"a{number}.npy") for number in range(20)]
    for info in long:
        info.comment = bytes(60_000)
    content = archive("{}", {}, also=[(info, b"") for info in long])
    assert "longer than that of any model" in refused(content).message


# Manifests from strangers.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff\xfe{}", "is not JSON"),
        ("[1]", "manifest.json must be an object"),
        ('{"a": ' + "9" * 5000 + "}", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ({"format_version": None}, "format_version is missing"),
        ({"format_version": 1.0}, "format_version must be a whole number"),
        ({"format_version": 0}, "format_version must be at least 1"),
        ({"kerntest_version": 1}, "kerntest_version must be a text, not 1"),
        ({"members": []}, "members must be an object"),
    ],
)
def test_manifests_that_are_none_are_refused(refused, text, message):
    if isinstance(text, dict):
        whole = {"format_version": 1, "kind": "svm", "kerntest_version": "1", "members": {}}
        text = {name: value for name, value in (whole | text).items() if value is not None}
    assert message in refused(archive(text, {})).message


def test_a_newer_format_is_told_before_anything_else_is_looked_at(refused):
    manifest = {"format_version": 7, "kerntest_version": "3.1", "members": "elsewhere"}
    error = refused(archive(manifest, {"a.npy": b""}))
    assert "was written by a newer kerntest (format 7; this one reads up to 1): upgrade" in error.message
    assert (error.code, error.hint) == ("model.newer_format", "kerntest 3.1 can read it")
    assert "newer kerntest" in refused(archive({"format_version": 10**40, "kerntest_version": []}, {})).message


def test_a_manifest_that_is_too_large_is_not_read(refused, valid, monkeypatch):
    monkeypatch.setattr("kerntest.learning.model_file.LARGEST_MANIFEST", 1000)
    assert "a manifest.json of more than 1,000 bytes" in refused(valid).message


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("dtype", "object", "must be 'float64' or 'float32'"),
        ("dtype", "float32", "members.dual.nbytes must be 12, as dtype and shape say, not 24"),
        ("dtype", "int64", "the header of dual.npy is not that of int64"),
        ("shape", 3, "must be a list, not 3"),
        ("shape", [3, 1], "not that of float64 of shape (3, 1)"),
        ("shape", [0, 2**53], "nbytes must be 0"),
        ("sha256", "0" * 64, "the checksum of dual.npy"),
        ("offset", 3, "unknown fields: offset"),
    ],
)
def test_descriptions_that_do_not_fit_their_arrays_are_refused(refused, valid, field, value, message):
    manifest, members = members_of(valid)
    manifest["members"]["dual"][field] = value
    assert message in refused(archive(manifest, members)).message


def test_nothing_is_allocated_for_an_array_that_is_not_there(refused, valid):
    manifest, members = members_of(valid)
    manifest["members"]["dual"] |= {"shape": [2**30], "nbytes": 2**33}
    tracemalloc.start()
    assert "dual.npy has 152 bytes, and its manifest says 8,589,934,592" in refused(archive(manifest, members)).message
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        *(
            ("dual", old, new, "the header of dual.npy is not that of float64 of shape (3,) in C order")
            for old, new in [
                (
                    b"'<f8', 'fortran_order': False, 'shape': (3,), }",
                    b"'|O', 'fortran_order': False, 'shape': (3,), } ",
                ),
                (b"'<f8'", b"'>f8'"),
                (b"False, 'shape': (3,), } ", b"True, 'shape': (3,), }  "),
                (b"NUMPY\x01", b"NUMPY\x02"),
                (b"{'descr'", b"((((((((("),
            ]
        ),
        ("dual", struct.pack("<d", 1.5), struct.pack("<d", math.nan), "not finite"),
        ("flags", b"\x01\x00", b"\x02\x00", "neither true nor false"),
    ],
)
def test_headers_and_entries_that_no_model_has_are_refused_unevaluated(refused, valid, *, name, old, new, message):
    manifest, members = members_of(valid)
    before, found, after = members[f"{name}.npy"].rpartition(old)
    assert found == old
    npy(name, before + new + after, manifest, members)
    assert message in refused(archive(manifest, members)).message


def test_headers_may_be_long_but_not_too_long(refused, valid, tmp_path):
    manifest, members = members_of(valid)
    lead, header, entries = members["dual.npy"][:8], members["dual.npy"][10:-24], members["dual.npy"][-24:]

    def lengthened(length):
        long = header[:-1].ljust(length - 1) + b"\n"
        npy("dual", lead + struct.pack("<H", length) + long + entries, manifest, members)
        return archive(manifest, members)

    assert "dual.npy has" in refused(lengthened(60_000)).message
    (tmp_path / "long.model").write_bytes(lengthened(1024))
    assert inspect_model(tmp_path / "long.model").kind == "other"


# Anything at all.


def injured(content, dice):
    """Return the bytes with one of them changed, or with some left out, said twice or cut off from there on."""
    start = dice.randrange(1, len(content))
    end = start + dice.randint(1, 64)
    changed = bytes([content[start] ^ 1 << dice.randrange(8)])
    rest = (changed + content[start + 1 :], content[end:], content[start:end] + content[start:], b"")
    return content[:start] + dice.choice(rest)


ROWS = np.arange(24.0).reshape(8, 3) % 5


@pytest.fixture
def saved(tmp_path):
    """Return a fitted machine, its bytes, and what reads bytes as a machine, or as None where they are refused."""
    machine, path = SVM(C=2.0).fit(ROWS, [0, 1] * 4), tmp_path / "m.kt"

    def read(content):
        path.write_bytes(content)
        try:
            return SVM.load(path)
        except ModelError as error:
            assert error.message.isprintable()  # noqa: PT017 - not every file raises

    machine.save(path)
    return machine, path.read_bytes(), read


def test_whatever_happens_to_the_bytes_there_is_the_model_or_an_error_of_ours(saved, tmp_path, monkeypatch):
    machine, plain, read = saved
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 300)
    machine.save(tmp_path / "large.kt")
    large = (tmp_path / "large.kt").read_bytes()
    assert b"PK\x06\x06" in large
    dice, expected = random.Random(0), machine.decision_function(ROWS).tobytes()
    found = [read(injured(large if number % 4 == 0 else plain, dice)) for number in range(MUTATIONS)]
    survived = [one for one in found if one is not None]
    assert all(one.decision_function(ROWS).tobytes() == expected for one in survived)
    # Dates, permissions and the like may change without harm.
    assert 0 < len(survived) < MUTATIONS // 4


def replaced(plain, dice, junk):
    """Return JSON with one of its values, or one of its keys, replaced by junk; most often deep inside."""
    if not isinstance(plain, dict | list) or not plain or dice.random() > 0.9:
        return dice.choice(junk)
    items = plain if isinstance(plain, dict) else dict(enumerate(plain))
    key = dice.choice(list(items))
    if isinstance(plain, dict) and dice.random() < 0.1:
        return {("x" if name == key else name): value for name, value in plain.items()}
    items = items | {key: replaced(items[key], dice, junk)}
    return items if isinstance(plain, dict) else list(items.values())


def test_whatever_stands_in_the_manifest_there_is_a_model_or_an_error_of_ours(saved):
    junk = [None, True, -1, 0, 1, 2**70, 0.5, "", "x", "..", [], [[]], {}, {"a": 1}, [2**62, 0], "float32", "\ud800"]
    _, content, read = saved
    manifest, members = members_of(content)
    dice = random.Random(1)
    for _ in range(400):
        found = read(archive(json.dumps(replaced(manifest, dice, junk)), members))
        # What was fitted is told in numbers that may be others; the arrays are those that were written.
        if found is not None:
            assert np.isfinite(found.model.expansion.coefficients).all()
            with suppress(KerntestError):
                assert np.isfinite(found.decision_function(ROWS)).all()
