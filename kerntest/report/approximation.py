"""What stood for the kernels of a test of any number of rows, as a frozen record."""

from __future__ import annotations

from dataclasses import dataclass

from kerntest.report.record import Record


@dataclass(frozen=True, slots=True)
class PairApproximation(Record):
    """Explicit features that stood for the kernels of both sides.

    Parameters
    ----------
    features : str
        As asked for: "nystroem:200".
    kind : str
        "nystroem" or "fourier".
    number_x, number_y : int
        Features of each side: of Nystroem, less those that show nothing.
    kernel_error_x, kernel_error_y : float
        Root mean square error of kernel values between sampled rows.
    matrix_error_x, matrix_error_y : float
        Error of the centred kernel matrix of sampled rows, relative to it (Frobenius norm).
    rows_sampled : int
        Rows from which bandwidths and landmarks were chosen.
    rows_per_chunk, fixed_rows : None
        Of results of earlier versions, which moved the rows of y inside chunks.
    """

    features: str
    kind: str
    number_x: int
    number_y: int
    kernel_error_x: float
    kernel_error_y: float
    matrix_error_x: float
    matrix_error_y: float
    rows_sampled: int
    rows_per_chunk: int | None = None
    fixed_rows: int | None = None
