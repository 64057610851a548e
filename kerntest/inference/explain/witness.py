"""Witness functions: where two samples differ, and the functions of x and y that vary together most; as files.

w(z) = mean_x k(z, x) - mean_y k(z, y) is positive where X is denser and negative where Y is; MMD is its norm (Gretton
et al. 2012, section 2.3). f(x) and g(y) of unit norm have the largest covariance, see `coco`.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import UsageError
from kerntest.inference.sides import names_apart
from kerntest.matrices.factor import sum_of_kernels
from kerntest.report.panels import picture_bytes, picture_kind
from kerntest.report.write import check_writable, write_file, written_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.data.table import Table
    from kerntest.inference.exact import IndependenceAnalysis, TwoSampleAnalysis
    from kerntest.inference.sides import Sample
    from kerntest.kernels.base import Array, Kernel, Points


class Files:
    """The witness function and the picture of a test, each for a path or not at all; refused before the test runs."""

    def __init__(self, witness: str | PathLike[str] | None, plot: str | PathLike[str] | None) -> None:
        self.witness = None if witness is None else (os.fspath(witness), witness_kind(witness))
        self.plot = None if plot is None else (os.fspath(plot), picture_kind(plot))
        for asked in (self.witness, self.plot):
            if asked is not None:
                check_writable(asked[0])

    def write(self, columns: Callable[[], Mapping[str, Any]], figure: Callable[[], Any]) -> None:
        """Write both, or neither."""
        with written_together():
            if self.witness is not None:
                write_file(self.witness[0], _table_bytes(columns(), self.witness[1]))
            if self.plot is not None:
                write_file(self.plot[0], picture_bytes(figure(), self.plot[1]))


def witness_kind(path: str | PathLike[str]) -> str:
    """Return the kind of table that a file name asks for, before anything is computed."""
    kind = {".csv": "csv", ".parquet": "parquet"}.get(Path(path).suffix.lower())
    if kind is None:
        raise UsageError(
            f"the witness function cannot be written into {os.fspath(path)}",
            hint="end its name in .csv or .parquet",
            code="usage.witness",
            where={"file": os.fspath(path)},
        )
    return kind


def witness_at(kernel: Kernel, sample: Sample, points: Points) -> Array:
    """Return the witness function at m points, scaled like the n rows of the sample. Cost: O(m n p) time, 2 MB."""
    in_x = sample.labels == 1
    weights = np.where(in_x, 1.0 / in_x.sum(), -1.0 / (~in_x).sum())
    return sum_of_kernels(kernel, sample.points, weights, points)


def sample_columns(analysis: TwoSampleAnalysis) -> dict[str, Any]:
    """Return the leave-one-out witness function at every row that was used, in the order of the tables, X first."""
    sample, tables = analysis.sample, analysis.tables
    order = np.lexsort([sample.origin, 1 - sample.labels.astype(np.int64)])
    return {
        "sample": np.repeat(names_apart(tables), [table.n_rows for table in tables]),
        "row": sample.origin[order] + 1,
        "line": np.concatenate([_lines(table) for table in tables]),
        "witness": analysis.verdict.found.witness[order],
    }


def pair_columns(analysis: IndependenceAnalysis) -> dict[str, Any]:
    """Return f(x) and g(y) of the reported kernels at every row that was used, in the order of the table."""
    from kerntest.inference.explain.coco import CrossCovariance  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load

    paired = analysis.paired
    found = CrossCovariance(analysis.verdict.kernels, tuple(one.points for one in paired.variables)).functions()
    lines = _lines(analysis.groups.tables[0])[paired.origin]
    return {"row": paired.origin + 1, "line": lines, "f": found.f, "g": found.g}


def _lines(table: Table) -> NDArray[np.intp]:
    """Return the line of each row in a CSV file; -1 in others."""
    return np.full(table.n_rows, -1) if table.lines is None else np.asarray(table.lines)


def _table_bytes(columns: Mapping[str, Any], kind: str) -> bytes:
    """Return columns as a file of this kind, with no lines below 0."""
    import pyarrow as pa  # noqa: PLC0415 - only to write
    from pyarrow import csv, parquet  # noqa: PLC0415 - only to write

    written = pa.table({**columns, "line": pa.array(columns["line"], mask=columns["line"] < 0)})
    stream = io.BytesIO()
    (parquet.write_table if kind == "parquet" else csv.write_csv)(written, stream)
    return stream.getvalue()
