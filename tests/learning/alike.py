"""Whether what was computed twice agrees: records, tables, files of models, and machines by what they decide."""

import io

import numpy as np
import pandas as pd
from model_archives import members_of
from tolerances import SAME_MACHINE, assert_close


def assert_records_alike(found, expected, *, condition=1.0):
    """Fail unless names, texts and whole numbers are the same, and floats agree as shares of their size, or of 1."""
    assert type(found) is type(expected), (found, expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, value in expected.items():
            assert_records_alike(found[name], value, condition=condition)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_records_alike(one, other, condition=condition)
    elif isinstance(expected, float):
        assert_close(found, expected, scale=max(1.0, abs(expected)), condition=condition, share=SAME_MACHINE)
    else:
        assert found == expected


def assert_tables_alike(found, expected, *, condition=1.0):
    """Fail unless two data frames have the same columns, texts and whole numbers, and floats that agree."""
    assert list(found.columns) == list(expected.columns)
    for name in expected.columns:
        one, other = found[name], expected[name]
        assert one.dtype == other.dtype
        if other.dtype.kind != "f":
            assert one.equals(other), name
            continue
        there = other.notna()
        assert one.notna().equals(there), name
        assert_close(one[there], other[there], condition=condition, share=SAME_MACHINE)


def read_output(path):
    """Return a written table with the types that pandas sees."""
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def assert_models_alike(first, second, *, condition=1.0, but=None):
    """Fail unless two model files tell of the same model, `but` for one part; their floats were computed twice."""
    (manifest, members), (other, theirs) = members_of(first.read_bytes()), members_of(second.read_bytes())
    shapes = manifest.pop("members"), other.pop("members")
    if but is not None:
        assert manifest.pop(but) != other.pop(but)
    assert_records_alike(manifest, other, condition=condition)
    assert [(name, one["dtype"], one["shape"]) for name, one in shapes[0].items()] == [
        (name, one["dtype"], one["shape"]) for name, one in shapes[1].items()
    ]
    for name, content in members.items():
        one, two = (np.load(io.BytesIO(stored)) for stored in (content, theirs[name]))
        if one.dtype.kind == "f":
            assert_close(one, two, condition=condition, share=SAME_MACHINE)
        else:
            np.testing.assert_array_equal(one, two)


def assert_decide_alike(first, second, data):
    """Fail unless two machines, each solved for itself, decide as near to each other as their duality gaps permit.

    |f - f*|^2 / 2 <= P - P* <= gap P in the norm of the kernel, whose values are at most about 1.
    """
    fits = [one.fit_ for one in (first, second) if one.fit_ is not None]
    permitted = 2.0 * sum((2.0 * (fit.gap or 0.0) * (fit.objective or 0.0)) ** 0.5 for fit in fits)
    scores, others = first.pair_scores(data), second.pair_scores(data)
    np.testing.assert_allclose(
        scores, others, rtol=0, atol=permitted + SAME_MACHINE * size_of_terms(first) * max(1.0, np.abs(scores).max())
    )


def size_of_terms(model_or_machine):
    """Return the sum of the sizes that the terms of a decision have at most, for kernels up to about 1."""
    model = getattr(model_or_machine, "model", model_or_machine)
    size = float(np.abs(model.expansion.coefficients).sum() + np.abs(model.expansion.intercepts).max())
    features = getattr(model, "features", None)
    return size if features is None else size * max(1.0, float(np.linalg.norm(features.projection, 2)))
