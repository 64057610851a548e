"""The format of model files: whatever is written comes back, and a stranger can read it."""

import io
import math
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from model_archives import ARRAYS, MANIFEST, same

from kerntest.errors import DataError
from kerntest.learning import model_file

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
    path.write_bytes(model_file.model_bytes({**content, "kind": "ridge"}, stored))
    model = model_file.read_model(path)
    native = {name: array.astype(array.dtype.newbyteorder("="), order="C") for name, array in stored.items()}
    assert same(model.arrays, native)
    assert not any(array.flags.writeable for array in model.arrays.values())
    assert all(array.flags.aligned and array.dtype.isnative for array in model.arrays.values())
    reserved = ("kind", "format_version", "kerntest_version", "members")
    kept = {name: value for name, value in content.items() if name not in reserved}
    assert {name: value for name, value in model.manifest.items() if name not in reserved} == kept
    assert (model.kind, model.name, model.manifest["format_version"]) == ("ridge", str(path), 1)
    assert model_file.model_bytes(model.manifest, model.arrays) == path.read_bytes()


def test_equal_models_are_equal_bytes_whatever_the_order_of_their_keys():
    valid = model_file.model_bytes(MANIFEST, ARRAYS)

    def turned(mapping):
        return dict(reversed(mapping.items()))

    assert model_file.model_bytes(turned(MANIFEST) | {"nested": turned(MANIFEST["nested"])}, turned(ARRAYS)) == valid
    with zipfile.ZipFile(io.BytesIO(valid)) as zipped:
        infos = zipped.infolist()
    assert [info.filename for info in infos] == ["manifest.json", *(f"{name}.npy" for name in sorted(ARRAYS))]
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {info.external_attr >> 16 for info in infos} == {0o100644}


def test_archives_beyond_the_old_limits_of_zip_come_back(tmp_path, monkeypatch, valid):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 300)
    (tmp_path / "m.model").write_bytes(model_file.model_bytes(MANIFEST, ARRAYS))
    assert b"PK\x06\x06" in (tmp_path / "m.model").read_bytes()
    assert b"PK\x06\x06" not in valid
    assert same(model_file.read_model(tmp_path / "m.model").arrays, ARRAYS)


def test_what_the_format_cannot_hold_is_not_written(monkeypatch):
    with pytest.raises(ValueError, match="'a' has entries that are not finite"):
        model_file.model_bytes({"kind": "svm"}, {"a": np.array([1.0, math.inf])})
    monkeypatch.setattr(model_file, "LARGEST_MANIFEST", 100)
    with pytest.raises(DataError, match=r"the description has .* bytes, more than the 100"):
        model_file.model_bytes(MANIFEST, {})
