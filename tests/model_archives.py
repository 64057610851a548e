"""Model files as bytes: valid ones, and ones that no writer of ours would make."""

import hashlib
import io
import json
import warnings
import zipfile

import numpy as np

MANIFEST = {"kind": "other", "cost": 1 / 3, "classes": ["ja", "größe"], "nested": {"b": [1, None, True], "a": "x\ny"}}
ARRAYS = {
    "support": np.arange(12.0).reshape(3, 4) / 7,
    "dual": np.array([1.5, -0.0, 5e-324]),
    "codes": np.array([[3, -1]], dtype=np.int64),
    "flags": np.array([True, False]),
    "bias": np.array(0.25),
    "none": np.empty((0, 5), dtype=np.float32),
}


def same(first, second):
    """Say whether the arrays that were read are the very ones that were written."""
    return first.keys() == second.keys() and all(
        first[name].dtype == second[name].dtype
        and first[name].shape == second[name].shape
        and first[name].tobytes() == second[name].tobytes()
        for name in first
    )


def members_of(content):
    """Return the manifest and the members of a model, to be changed and put together again by `archive`."""
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    return json.loads(members.pop("manifest.json")), members


def archive(manifest, members, *, also=(), compression=zipfile.ZIP_STORED):
    """Return a zip archive with right checksums of its own, whatever is in it; text and bytes stand for a manifest."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as zipped:
        warnings.simplefilter("ignore")
        if manifest is not None:
            zipped.writestr("manifest.json", manifest if isinstance(manifest, str | bytes) else json.dumps(manifest))
        for name, content in [*members.items(), *also]:
            zipped.writestr(name, content)
    return stream.getvalue()


def npy(name, content, manifest, members):
    """Put bytes in the place of an array, with the right digest in the manifest."""
    members[f"{name}.npy"] = content
    manifest["members"][name]["sha256"] = hashlib.sha256(content).hexdigest()


def rewritten(content, fields=(), arrays=()):
    """Return a model with other fields in its manifest and other arrays, rightly described; None leaves one out."""
    manifest, members = members_of(content)
    manifest |= fields
    for name, array in dict(arrays).items():
        members.pop(f"{name}.npy", None)
        manifest["members"].pop(name, None)
        if array is not None:
            stream = io.BytesIO()
            np.save(stream, array)
            manifest["members"][name] = {"dtype": array.dtype.name, "shape": array.shape, "nbytes": array.nbytes}
            npy(name, stream.getvalue(), manifest, members)
    return archive(manifest, members)


def array_of(content, name):
    """Return an array of a model."""
    return np.load(io.BytesIO(members_of(content)[1][f"{name}.npy"]))


def valid_model(manifest, arrays):
    """Return a model as anybody may write it who knows the format."""
    whole = {"format_version": 1, "kerntest_version": "0.1.0", "members": {}, **manifest}
    return rewritten(archive(whole, {}), arrays=arrays)
