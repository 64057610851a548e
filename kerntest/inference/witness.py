"""The witness function: where the samples differ.

w(z) = mean_x k(z, x) - mean_y k(z, y) is positive where X is denser and negative where Y is; MMD is its norm (Gretton
et al. 2012, section 2.3).
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UsageError
from kerntest.inference.sides import names_apart
from kerntest.kernels.base import DensePairs

if TYPE_CHECKING:
    from os import PathLike

    from kerntest.data.table import Table
    from kerntest.inference.sides import Sample
    from kerntest.kernels.base import Array, Kernel, Points

# Entries of one block of kernel values.
BLOCK = 2**20


def witness_at(kernel: Kernel, sample: Sample, points: Points) -> Array:
    """Return the witness function at any points, scaled like the sample.

    Parameters
    ----------
    kernel : Kernel
    sample : Sample
        n rows.
    points : Points
        m points.

    Returns
    -------
    ndarray, shape (m,)

    Notes
    -----
    Cost: O(m n p) time, 8 MB.
    """
    in_x = sample.labels == 1
    weights = np.where(in_x, 1.0 / in_x.sum(), -1.0 / (~in_x).sum())
    values = np.empty(len(points))
    step = max(1, BLOCK // len(sample.points))
    for start in range(0, len(points), step):
        block = DensePairs(points.take(slice(start, start + step)), sample.points)
        values[start : start + step] = kernel.evaluate(block) @ weights
    return values


def witness_bytes(sample: Sample, witness: Array, tables: tuple[Table, Table], kind: str) -> bytes:
    """Return the leave-one-out witness function at every row as a file, in the order of the tables, X first.

    Its columns are `sample` (the name of the table), `row` (data row in it, counted from 1, among those that were
    used), `line` (in a CSV file) and `witness`.

    Parameters
    ----------
    sample : Sample
    witness : ndarray, shape (n,)
        In the order of the sample.
    tables : (Table, Table)
        X and Y, whose rows the sample has.
    kind : "csv" or "parquet"
    """
    import pyarrow as pa  # noqa: PLC0415 - only to write
    from pyarrow import csv, parquet  # noqa: PLC0415 - only to write

    order = np.lexsort([sample.origin, 1 - sample.labels.astype(np.int64)])
    sizes = [table.n_rows for table in tables]
    lines = [np.full(table.n_rows, -1) if table.lines is None else np.asarray(table.lines) for table in tables]
    line = np.concatenate(lines)
    written = pa.table(
        {
            "sample": np.repeat(names_apart(tables), sizes),
            "row": sample.origin[order] + 1,
            "line": pa.array(line, mask=line < 0),
            "witness": witness[order],
        }
    )
    stream = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(written, stream)
    else:
        csv.write_csv(written, stream)
    return stream.getvalue()


def witness_kind(path: str | PathLike[str]) -> str:
    """Return the kind of table that a file name asks for, before anything is computed.

    Raises
    ------
    UsageError
        If it is none that can be written.
    """
    kind = {".csv": "csv", ".parquet": "parquet"}.get(Path(path).suffix.lower())
    if kind is None:
        raise UsageError(
            f"the witness function cannot be written into {os.fspath(path)}",
            hint="end its name in .csv or .parquet",
            code="usage.witness",
            where={"file": os.fspath(path)},
        )
    return kind
