"""Models applied to tables on the workers of a cluster: they read the row groups, and the output is the same."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from records import assert_alike
from tolerances import SAME_MACHINE

from kerntest import predict_file, train_kpca, train_svm, transform_file
from kerntest.errors import DataError

ROWS = 500


@pytest.fixture
def on_the_cluster(engine, monkeypatch):
    """Return what lets all that follows compute on the cluster."""

    def use():
        for module in ("predict",):
            monkeypatch.setattr(f"kerntest.learning.{module}.engine_of", lambda _: engine)

    return use


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with models, a folder of Parquet, and the same rows as CSV."""
    path = tmp_path_factory.mktemp("cluster")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=ROWS), "colour": rng.choice(["red", "green"], ROWS)})
    train = table[:80].assign(kind=np.where(table["size"][:80] > 0, "large", "small"))
    train.to_csv(path / "train.csv", index=False)
    train_svm(path / "train.csv", "kind", output=path / "kind.kt")
    train_kpca(path / "train.csv", exclude="kind", components=2, output=path / "axes.kt")
    (path / "parts").mkdir()
    for place, part in enumerate((table[:200], table[200:290], table[290:])):
        parquet.write_table(pa.Table.from_pandas(part), path / "parts" / f"{place}.parquet", row_group_size=100)
    table.loc[[440, 444], "size"] = np.nan
    table.to_csv(path / "rows.csv", index=False)
    return path


def outcome(folder, function, model, data, **options):
    """Return the output as a frame, and what is told of the rows."""
    output = folder / "out.parquet"
    report = function(folder / model, folder / data, output=output, **options).to_dict()
    return pd.read_parquet(output), {name: value for name, value in report.items() if name != "seconds"}


@pytest.mark.parametrize(
    ("function", "model", "options"),
    [
        (predict_file, "kind.kt", {"decision": True, "keep": "*"}),
        (transform_file, "axes.kt", {"residual": True}),
        (transform_file, "axes.kt", {"reconstruct": True}),
    ],
)
def test_the_output_is_that_of_this_process(folder, on_the_cluster, function, model, options):
    runs = [("parts", {"block": 40}), ("rows.csv", {"block": 3000, "missing": "empty"})]
    expected = [outcome(folder, function, model, data, threads=1, **options, **more) for data, more in runs]
    on_the_cluster()
    steps = []
    found = [
        outcome(folder, function, model, data, progress=lambda *step: steps.append(step), **options, **more)
        for data, more in runs
    ]
    for (rows, told), (expected_rows, expected_told) in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(rows, expected_rows, rtol=SAME_MACHINE, atol=SAME_MACHINE)
        assert_alike(told, expected_told)
    assert (ROWS, ROWS) in steps


def test_errors_of_workers_come_back_as_they_are(folder, on_the_cluster):
    on_the_cluster()
    with pytest.raises(DataError, match=r"rows\.csv, line 442: column 'size' has no value") as caught:
        outcome(folder, predict_file, "kind.kt", "rows.csv", block=1500)
    assert caught.value.where["line"] == 442
    assert "--missing drop" in caught.value.hint
