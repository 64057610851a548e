"""Models applied to tables piece by piece: whoever works on the pieces, in whatever order, the output is the same."""

import io
import os
import platform
import shutil
import sys
import tracemalloc
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest
from learning.alike import assert_records_alike, assert_tables_alike, read_output
from learning.files_to_apply import as_arrow
from pyarrow import parquet

from kerntest import compute_on, predict_file, transform_file
from kerntest.errors import DataError
from tests.elsewhere import Elsewhere

ROWS = 360


@pytest.fixture
def elsewhere(monkeypatch):
    """Return what makes predicting and projecting compute on an engine, or on so many threads."""
    with ExitStack() as stack:

        def use(engine):
            if isinstance(engine, int):
                stack.enter_context(compute_on("local", threads=engine))
            else:
                monkeypatch.setattr("kerntest.learning.apply.engine_of", lambda _: engine)
            return engine

        yield use


def rows(count=ROWS):
    table = as_arrow(count).to_pandas()
    return table.assign(note=[f"text {k}" * (k % 5) for k in range(count)])


@pytest.fixture(scope="module")
def folder(folder):
    """Return the folder of the models, with the same rows in files with row groups of many kinds."""
    table = pa.Table.from_pandas(holes(rows()))
    write_layouts(folder, table)
    place = table.column_names.index("colour")
    coded = table.set_column(place, "colour", table["colour"].dictionary_encode())
    parquet.write_table(coded, folder / "coded.parquet", row_group_size=30)
    return folder


def holes(table):
    """Return rows of which two lack a value."""
    table = table.copy()
    table.loc[[133, 310], "size"] = np.nan
    return table


def write_layouts(path, table):
    """Write rows as one row group, as several, as tiny ones, and as a folder of uneven files; and as CSV."""
    for size, name in ((len(table), "one"), (90, "groups"), (4, "tiny")):
        parquet.write_table(table, path / f"{name}.parquet", row_group_size=size)
    (path / "parts").mkdir(exist_ok=True)
    ends = [0, 1, 150, 151, 200, len(table)]
    for place in range(5):
        part = table[ends[place] : ends[place + 1]]
        parquet.write_table(part, path / "parts" / f"{place}.parquet", row_group_size=60)
    table.to_pandas().to_csv(path / "rows.csv", index=False)


LAYOUTS = ("one.parquet", "groups.parquet", "tiny.parquet", "parts", "rows.csv")
RUNS = {
    "svm": (predict_file, "kind.kt", {"proba": True, "decision": True}),
    "ridge": (predict_file, "ridge.kt", {"interval": 0.9}),
    "scores": (transform_file, "all.kt", {"residual": True}),
    "preimages": (transform_file, "all.kt", {"reconstruct": True}),
}


# Pre-images end where a step is less than 1e-8 of the spread of a column.
CONDITIONS = {"preimages": 1e3}


def table_and_report(folder, run, data, output, **options):
    """Return the output as a table and what the report says of the rows."""
    function, model, extra = RUNS[run]
    options = {"missing": "empty", "keep": "note,id", **extra, **options}
    report = function(folder / model, data, output=output, **options).to_dict()
    return read_output(output), {name: value for name, value in report.items() if name not in {"seconds", "output"}}


def assert_alike(found, expected, run="svm"):
    """Fail unless tables and reports agree."""
    condition = CONDITIONS.get(run, 1.0)
    assert_tables_alike(found[0], expected[0], condition=condition)
    assert_records_alike(found[1], expected[1], condition=condition)


@pytest.mark.parametrize(
    ("run", "layout"),
    [
        *((run, "groups.parquet") for run in RUNS),
        *(("svm", one) for one in (*LAYOUTS, "coded.parquet") if one != "groups.parquet"),
        ("ridge", "rows.csv"),
    ],
)
def test_whoever_works_on_the_pieces_gives_the_same_table_and_the_same_report(folder, tmp_path, elsewhere, run, layout):
    output = tmp_path / ("out.csv" if layout in {"rows.csv", "parts"} else "out.parquet")
    block = 2000 if layout == "rows.csv" else 50
    found = [table_and_report(folder, run, folder / layout, output, block=block, threads=threads) for threads in (1, 5)]
    engine = elsewhere(Elsewhere())
    found.append(table_and_report(folder, run, folder / layout, output, block=block))
    assert engine.tasks > 2
    # Workers read row groups themselves.
    assert layout in {"rows.csv", "one.parquet"} or max(engine.sent) < 2500
    for other in found[1:]:
        assert_alike(other, found[0], run)


def test_the_size_of_the_pieces_changes_nothing(folder, elsewhere, monkeypatch):
    output = folder / "out.parquet"
    layouts = ("tiny.parquet", "one.parquet")
    expected = [table_and_report(folder, "svm", folder / one, output, block=20, threads=1) for one in layouts]
    monkeypatch.setattr("kerntest.data.formats.parquet.PIECES_EACH", 1)
    elsewhere(Elsewhere())
    for together, parts in ((1, 1), (3, 2), (50, 40)):
        monkeypatch.setattr("kerntest.data.formats.parquet.PIECE_BLOCKS", together)
        monkeypatch.setattr("kerntest.data.formats.parquet.GROUP_PARTS", parts)
        for one, before in zip(layouts, expected, strict=True):
            assert_alike(table_and_report(folder, "svm", folder / one, output, block=20), before)


def test_what_only_this_process_can_read_is_sent_as_rows(folder, tmp_path, elsewhere, monkeypatch):
    expected, _ = table_and_report(folder, "svm", folder / "groups.parquet", tmp_path / "out.csv", block=50)
    packed = pa.compress((folder / "groups.parquet").read_bytes(), codec="gzip", asbytes=True)
    (tmp_path / "rows.parquet.gz").write_bytes(packed)
    engine = elsewhere(Elsewhere())
    found, _ = table_and_report(folder, "svm", tmp_path / "rows.parquet.gz", tmp_path / "out.csv", block=50)
    assert_tables_alike(found, expected)
    assert engine.tasks > 2
    assert min(engine.sent) > 1000
    content = io.TextIOWrapper(io.BytesIO((folder / "groups.parquet").read_bytes()))
    monkeypatch.setattr(sys, "stdin", content)
    found, _ = table_and_report(folder, "svm", "-", tmp_path / "out.csv", block=50)
    assert_tables_alike(found, expected)


@pytest.mark.parametrize(("block", "tasks"), [(5, ROWS // 5), (None, 0)])
def test_a_huge_row_group_is_read_once_and_sent_as_rows_and_one_piece_is_not_sent(
    folder, tmp_path, elsewhere, block, tasks
):
    expected, _ = table_and_report(folder, "svm", folder / "one.parquet", tmp_path / "out.csv", block=5, threads=1)
    engine = elsewhere(Elsewhere())
    found, _ = table_and_report(folder, "svm", folder / "one.parquet", tmp_path / "out.csv", block=block)
    assert_tables_alike(found, expected)
    assert engine.tasks == tasks


@pytest.mark.parametrize("engine", [1, 3, Elsewhere()])
def test_the_first_row_that_does_not_fit_is_told_and_nothing_is_written(folder, tmp_path, elsewhere, engine):
    table = rows()
    table.loc[[205, 255, 260], "size"] = np.nan
    table.loc[[150, 310], "colour"] = "violet"
    write_layouts(tmp_path, pa.Table.from_pandas(table))
    elsewhere(engine)
    output = tmp_path / "out.csv"
    output.write_bytes(b"old")
    for layout in ("groups.parquet", "one.parquet"):
        with pytest.raises(DataError, match=r"'violet', unknown to .* in 1 row") as caught:
            table_and_report(folder, "svm", tmp_path / layout, output, block=40)
        assert caught.value.code == "data.unknown_level"
        with pytest.raises(DataError, match=r"parquet, row 206: column 'size' has no value") as caught:
            table_and_report(folder, "svm", tmp_path / layout, output, block=40, unknown="ignore", missing="error")
        assert caught.value.where == {"file": str(tmp_path / layout), "row": 206, "column": "size"}
        assert "missing='drop'" in caught.value.hint
    with pytest.raises(DataError, match=r"row 6 of .*parts/4\.parquet: column 'size'"):
        table_and_report(folder, "svm", tmp_path / "parts", output, block=40, unknown="ignore", missing="error")
    assert output.read_bytes() == b"old"


@pytest.mark.parametrize("engine", [1, 3, Elsewhere()])
def test_an_error_in_the_rows_is_told_before_text_below_it_that_cannot_be_read(folder, tmp_path, elsewhere, engine):
    table = rows()
    table.loc[100, "size"] = np.nan
    table.to_csv(tmp_path / "rows.csv", index=False)
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    lines[131] = "1,2"
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    elsewhere(engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kerntest.data.formats.csv.SMALL_BYTES", 500)
        with pytest.raises(DataError, match="line 102: column 'size' has no value"):
            table_and_report(
                folder, "svm", tmp_path / "rows.csv", tmp_path / "out.csv", block=800, missing="error", keep=None
            )
        with pytest.raises(DataError, match="line 132: expected 8 fields, found 2"):
            table_and_report(folder, "svm", tmp_path / "rows.csv", tmp_path / "out.csv", block=800, keep=None)


def test_a_worker_that_does_not_see_the_files_says_where_they_must_be(folder, tmp_path, elsewhere, monkeypatch):
    shutil.copytree(folder / "parts", tmp_path / "parts")

    def move():
        (tmp_path / "parts").rename(tmp_path / "away")

    elsewhere(Elsewhere(before=move))
    with pytest.raises(DataError, match=r"0\.parquet was there when the work began, and is gone") as caught:
        table_and_report(folder, "svm", tmp_path / "parts", tmp_path / "out.csv", block=50)
    assert "all workers must see" in caught.value.hint
    (tmp_path / "away").rename(tmp_path / "parts")

    def move_to_another_machine():
        move()
        monkeypatch.setattr(platform, "node", lambda: "far-away")

    elsewhere(Elsewhere(before=move_to_another_machine))
    with pytest.raises(DataError, match=r"0\.parquet is at .*, and the worker on far-away does not see it") as caught:
        table_and_report(folder, "svm", tmp_path / "parts", tmp_path / "out.csv", block=50)
    assert caught.value.code == "data.unseen_by_worker"
    assert "storage that all workers see" in caught.value.hint
    assert not (tmp_path / "out.csv").exists()


def test_workers_may_stand_in_another_folder(folder, tmp_path, elsewhere, monkeypatch):
    expected, _ = table_and_report(folder, "svm", folder / "groups.parquet", tmp_path / "out.csv", block=50)
    monkeypatch.chdir(folder)
    elsewhere(Elsewhere(before=lambda: os.chdir(tmp_path)))
    found, _ = table_and_report(folder, "svm", "groups.parquet", tmp_path / "out.csv", block=50)
    assert_tables_alike(found, expected)


def test_a_file_that_changes_meanwhile_is_refused(folder, tmp_path, elsewhere):
    table = pa.Table.from_pandas(rows())
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=90)
    elsewhere(Elsewhere(before=lambda: parquet.write_table(table[:350], tmp_path / "rows.parquet", row_group_size=90)))
    with pytest.raises(DataError, match=r"rows\.parquet had 360 rows when the work began, and has 350 now"):
        table_and_report(folder, "svm", tmp_path / "rows.parquet", tmp_path / "out.csv", block=50)


@pytest.mark.parametrize("engine", [1, 4, Elsewhere()])
@pytest.mark.parametrize("layout", ["one.parquet", "tiny.parquet", "parts", "rows.csv"])
def test_the_progress_ends_with_the_last_row_or_byte(folder, tmp_path, elsewhere, engine, layout):
    elsewhere(engine)
    steps, data = [], folder / layout
    block, total = (1000, data.stat().st_size) if layout == "rows.csv" else (50, ROWS)
    output = tmp_path / "out.csv"
    table_and_report(folder, "svm", data, output, block=block, progress=lambda *step: steps.append(step))
    assert len(steps) > 3
    assert steps == sorted(set(steps))
    assert steps[-1] == (total, total)


def test_many_files_need_no_more_open_files_than_few(folder, tmp_path, monkeypatch):
    write_layouts(tmp_path, pa.Table.from_pandas(rows()))
    still_open = []
    opened = parquet.ParquetFile

    class Counted(opened):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            still_open.append(self)
            assert sum(not one.closed for one in still_open) <= 1

    monkeypatch.setattr(parquet, "ParquetFile", Counted)
    table_and_report(folder, "svm", tmp_path / "parts", tmp_path / "out.csv", block=50, threads=1)
    # And the first once more, for how its numbers are written.
    assert len(still_open) == 11


def test_numbers_found_on_the_way_are_few_whatever_the_size_of_a_block(folder, tmp_path, monkeypatch):
    parquet.write_table(pa.Table.from_pandas(rows(30_000)), tmp_path / "rows.parquet")
    peaks = []
    for at_once in (4096, 30_000):
        monkeypatch.setattr("kerntest.learning.apply.SLICE_ROWS", at_once)
        tracemalloc.start()
        predict_file(
            folder / "ridge.kt", tmp_path / "rows.parquet", interval=0.9, output=tmp_path / "out.parquet", threads=1
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The variance takes some hundred numbers a row beside what is read and written.
    assert peaks[0] < 0.7 * peaks[1]
