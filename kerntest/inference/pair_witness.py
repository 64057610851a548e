"""The witness functions of dependence: f(x) and g(y) of unit norm with the largest covariance, row by row."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.coco import Coco, coco

if TYPE_CHECKING:
    from kerntest.inference.exact import IndependenceAnalysis


def witness_pair(analysis: IndependenceAnalysis) -> Coco:
    """Return the witness functions of the reported kernels at the rows of the analysis.

    Raises
    ------
    UndecidedError
        If there are too many rows for kernels of high rank.
    """
    x, y = (variable.points for variable in analysis.paired.variables)
    return coco(analysis.verdict.kernels[0], x, analysis.verdict.kernels[1], y)


def pair_witness_bytes(analysis: IndependenceAnalysis, kind: str) -> bytes:
    """Return f(x) and g(y) at every row that was used as a file, in the order of the table.

    Its columns are `row` (data row, counted from 1), `line` (in a CSV file), `f` and `g`.

    Parameters
    ----------
    analysis : IndependenceAnalysis
    kind : "csv" or "parquet"
    """
    import pyarrow as pa  # noqa: PLC0415 - only to write
    from pyarrow import csv, parquet  # noqa: PLC0415 - only to write

    found = witness_pair(analysis)
    origin = analysis.paired.origin
    table = analysis.groups.tables[0]
    lines = np.full(len(origin), -1) if table.lines is None else np.asarray(table.lines)[origin]
    written = pa.table(
        {
            "row": origin + 1,
            "line": pa.array(lines, mask=lines < 0),
            "f": found.f,
            "g": found.g,
        }
    )
    stream = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(written, stream)
    else:
        csv.write_csv(written, stream)
    return stream.getvalue()
