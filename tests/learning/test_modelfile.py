"""Models on disk: what is written comes back, a stranger can read it, and other files are told from models."""

import hashlib
import io
import json
import math
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from model_archives import ARRAYS, MANIFEST, archive, members_of, same

from kerntest.errors import DataError, ModelError
from kerntest.learning import model_file
from kerntest.learning.components.kpca_fit import KpcaModel
from kerntest.learning.machines.ridge_fit import RidgeModel
from kerntest.learning.machines.svm_fit import SvmModel
from kerntest.learning.model_fields import load_model, save_model
from kerntest.learning.model_file import model_bytes, read_model, write_model

ROOT = Path(__file__).parents[2]


# What is written comes back.


def test_a_model_comes_back_as_it_was(tmp_path):
    path = tmp_path / "m.model"
    write_model(path, MANIFEST, ARRAYS, force=False)
    model = read_model(path)
    assert same(model.arrays, ARRAYS)
    assert {name: model.manifest[name] for name in MANIFEST} == MANIFEST
    assert model.manifest["format_version"] == 1
    assert model.manifest["kerntest_version"]
    assert (model.kind, model.name) == ("other", str(path))
    assert all(array.flags.aligned and array.dtype.isnative for array in model.arrays.values())
    with pytest.raises(ValueError, match="read-only"):
        model.arrays["dual"][0] = 1.0


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
any_array = st.sampled_from(["f8", "f4", "i8", "i4", "u1", "?", ">f8", ">i4"]).flatmap(
    lambda dtype: arrays(
        dtype,
        array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements={"allow_nan": False, "allow_infinity": False} if "f" in dtype else None,
    )
)
names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@given(
    content=st.dictionaries(st.text(), plain_json, max_size=4),
    stored=st.dictionaries(names, any_array, max_size=4),
    fortran=st.booleans(),
)
@settings(max_examples=60)
def test_any_content_comes_back_exactly_and_is_written_again_as_it_was(tmp_path_factory, content, stored, fortran):
    path = tmp_path_factory.getbasetemp() / "any.model"
    if fortran:
        stored = {name: np.asfortranarray(array) if array.ndim else array for name, array in stored.items()}
    path.write_bytes(model_bytes({**content, "kind": "ridge"}, stored))
    model = read_model(path)
    native = {name: array.astype(array.dtype.newbyteorder("="), order="C") for name, array in stored.items()}
    assert same(model.arrays, native)
    reserved = ("kind", "format_version", "kerntest_version", "members")
    kept = {name: value for name, value in content.items() if name not in reserved}
    assert {name: value for name, value in model.manifest.items() if name not in reserved} == kept
    assert model_bytes(model.manifest, model.arrays) == path.read_bytes()


@pytest.mark.parametrize(
    ("name", "kind"), [("species", SvmModel), ("orders", SvmModel), ("wear", RidgeModel), ("shop", KpcaModel)]
)
def test_models_of_before_are_read_and_written_as_they_were(tmp_path, name, kind):
    path = ROOT / "sample_data" / f"{name}.kt"
    save_model(tmp_path / "m.kt", load_model(path, kind), {}, force=False)
    (manifest, members), (old, stored) = (members_of(one.read_bytes()) for one in (tmp_path / "m.kt", path))
    assert members == stored
    assert {**manifest, "kerntest_version": ""} == {**old, "kerntest_version": "", "parameters": {}}


def test_equal_models_are_equal_bytes_whatever_the_order_of_their_keys():
    valid = model_bytes(MANIFEST, ARRAYS)

    def turned(mapping):
        return dict(reversed(mapping.items()))

    assert model_bytes(turned(MANIFEST) | {"nested": turned(MANIFEST["nested"])}, turned(ARRAYS)) == valid
    with zipfile.ZipFile(io.BytesIO(valid)) as zipped:
        infos = zipped.infolist()
    assert [info.filename for info in infos] == ["manifest.json", *(f"{name}.npy" for name in sorted(ARRAYS))]
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {info.external_attr >> 16 for info in infos} == {0o100644}


def test_archives_beyond_the_old_limits_of_zip_come_back(tmp_path, monkeypatch, valid):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 300)
    large = model_bytes(MANIFEST, ARRAYS)
    assert b"PK\x06\x06" in large
    assert b"PK\x06\x06" not in valid
    (tmp_path / "m.model").write_bytes(large)
    assert same(read_model(tmp_path / "m.model").arrays, ARRAYS)


def test_numpy_reads_and_writes_each_member_alike(valid):
    _, members = members_of(valid)
    for name, array in ARRAYS.items():
        assert same({"it": np.load(io.BytesIO(members[f"{name}.npy"]), allow_pickle=False)}, {"it": array})
        plain = io.BytesIO()
        np.lib.format.write_array(plain, array, version=(1, 0), allow_pickle=False)
        assert members[f"{name}.npy"] == plain.getvalue()


def read_by_hand(path):
    """Read a model as a stranger would who has only the page that describes the format."""
    letters = {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "uint8": "B", "bool": "?"}
    arrays = {}
    with zipfile.ZipFile(path) as zipped:
        manifest = json.loads(zipped.read("manifest.json"))
        if manifest["format_version"] != 1:
            raise SystemExit("another format")
        for name, member in manifest["members"].items():
            content = zipped.read(f"{name}.npy")
            if hashlib.sha256(content).hexdigest() != member["sha256"]:
                raise SystemExit("damaged")
            entries = content[len(content) - member["nbytes"] :]
            letter = letters[member["dtype"]]
            numbers = struct.unpack(f"<{math.prod(member['shape'])}{letter}", entries)
            arrays[name] = (member["shape"], numbers)
    return manifest, arrays


def test_a_stranger_can_read_a_model_without_kerntest(tmp_path):
    path = tmp_path / "m.model"
    write_model(path, MANIFEST, ARRAYS, force=False)
    manifest, found = read_by_hand(path)
    assert manifest["kind"] == "other"
    assert manifest["cost"] == 1 / 3
    assert found.keys() == ARRAYS.keys()
    for name, (shape, numbers) in found.items():
        np.testing.assert_array_equal(np.reshape(np.array(numbers), shape), ARRAYS[name])


# Writing.


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "m.model"
    path.write_text("old")
    with pytest.raises(DataError, match=r"m\.model exists already") as caught:
        write_model(path, MANIFEST, ARRAYS, force=False)
    assert (caught.value.code, caught.value.exit_code) == ("data.exists", 3)
    assert "--force" in caught.value.hint
    assert path.read_text() == "old"
    write_model(path, MANIFEST, ARRAYS, force=True)
    assert same(read_model(path).arrays, ARRAYS)


@pytest.mark.skipif(os.name != "posix", reason="/dev/null is POSIX")
def test_a_device_needs_no_force():
    write_model("/dev/null", MANIFEST, ARRAYS, force=False)


@pytest.mark.parametrize(
    ("manifest", "stored", "message"),
    [
        ({"kind": "svm", "cost": math.nan}, {}, "JSON compliant"),
        ({"kind": "svm"}, {"a": np.array([1.0, math.inf])}, "'a' has entries that are not finite"),
        ({"kind": "svm"}, {"a": np.array(["text"], dtype=object)}, "'a' is object"),
        ({"kind": "svm"}, {"a": np.array([1j])}, "'a' is complex128"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(tmp_path, manifest, stored, message):
    with pytest.raises(ValueError, match=message):
        write_model(tmp_path / "m.model", manifest, stored, force=False)
    assert list(tmp_path.iterdir()) == []


def test_a_description_that_is_too_large_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "LARGEST_MANIFEST", 100)
    with pytest.raises(DataError, match=r"the description has .* bytes, more than the 100"):
        write_model(tmp_path / "m.model", MANIFEST, {}, force=False)


# Files that are no model.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"a,b\n1,2\n", "it is text, such as a CSV table"),
        (b"PAR1" + bytes(100), "it is a Parquet table"),
        (pickle.dumps({"a": 1}), "it is neither a zip archive nor text"),
        (bytes(1000), "it is neither a zip archive nor text"),
        (archive(None, {}), "it is a zip archive without manifest.json"),
        (archive(None, {"support.npy": b"x"}), "it is a zip archive without manifest.json"),
    ],
)
def test_other_files_are_told_from_models(refused, content, message):
    error = refused(content)
    assert error.code == "model.not_a_model"
    assert error.message.endswith(message)


def test_a_table_or_a_folder_given_as_the_model_is_told(tmp_path):
    with pytest.raises(ModelError) as caught:
        read_model(ROOT / "sample_data" / "with_missing.csv")
    assert caught.value.hint == "the model comes first, then the data: kerntest COMMAND MODEL DATA"
    with pytest.raises(ModelError, match="is not a model: it is a folder"):
        read_model(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are POSIX")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="it is no regular file"):
        read_model(tmp_path / "pipe")


def test_a_missing_file_is_an_error_of_data_as_for_tables(tmp_path, valid):
    (tmp_path / "iris.model").write_bytes(valid)
    with pytest.raises(DataError, match=r"iris\.modle does not exist") as caught:
        read_model(tmp_path / "iris.modle")
    assert (caught.value.code, caught.value.exit_code) == ("data.missing_file", 3)
    assert "did you mean" in caught.value.hint
    with pytest.raises(DataError, match="does not exist"):
        read_model(tmp_path / "nowhere" / "at_all")
    with pytest.raises(DataError, match="cannot be read"):
        read_model("a\0b")


def test_a_file_that_may_not_be_read_is_an_error_of_data(tmp_path, monkeypatch, valid):
    (tmp_path / "m.model").write_bytes(valid)

    def deny(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(DataError, match="cannot be read: permission denied") as caught:
        read_model(tmp_path / "m.model")
    assert caught.value.code == "data.permission_denied"
