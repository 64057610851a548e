"""Gretton's Gamma null: two moments of the biased statistic, asymptotic.

For HSIC_b = <A, B> / n^2 (Gretton et al. 2007, eqs. 9 and Theorem 4)

    mean = tr A tr B / (n (n-1)^2)                    for unit diagonals: (1 - mu_x)(1 - mu_y) / n
    variance = 2 (n-4)(n-5) / (n (n-1)(n-2)(n-3)) * mean_{i != j} (A_ij B_ij)^2

and n HSIC_b is taken for a Gamma variable with these two moments. The notes' two-sample case is B from the delta kernel
of the label, which doubles HLH; any factor of B cancels in the p-value. Known weakness, measured against long permutation
runs (tests/benchmarks/nulls.py): two moments do not fix the tail. At the exact 5 % point it gives 0.043 to 0.052, at the
1 % point 0.006 to 0.010, at the 0.1 % point 0.0003 to 0.0008: it rejects up to three times too often there. It needs
n >= 6.
"""

from __future__ import annotations

from kerntest.errors import UndecidedError

FEWEST_ROWS = 6


def gamma_p_value(value: float, trace_a: float, trace_b: float, mean_square: float, n: int) -> float:
    """Return the upper tail at <A, B> = `value` of Gretton's Gamma.

    Parameters
    ----------
    value : float
        <A, B>, double centring.
    trace_a, trace_b : float
        tr A and tr B.
    mean_square : float
        Mean of (A_ij B_ij)^2 over i != j.
    n : int
        Rows, at least 6.

    Raises
    ------
    UndecidedError
        If there are too few rows, or a moment is not positive.
    """
    mean, variance = gamma_moments(trace_a, trace_b, mean_square, n)
    if not (mean > 0 and variance > 0):
        raise UndecidedError(
            "the Gamma null needs a positive mean and variance",
            hint="use --null permutation",
            code="undecided.gamma",
        )
    from scipy.special import gammaincc  # noqa: PLC0415 - takes 0.2 s to load

    return float(gammaincc(mean**2 / variance, max(value, 0.0) / n**2 * mean / variance))


def gamma_moments(trace_a: float, trace_b: float, mean_square: float, n: int) -> tuple[float, float]:
    """Return Gretton's mean and variance of HSIC_b = <A, B> / n^2 under independence.

    Raises
    ------
    UndecidedError
        If there are fewer than 6 rows: the variance would not be positive.
    """
    if n < FEWEST_ROWS:
        raise UndecidedError(
            f"the Gamma null needs at least {FEWEST_ROWS} rows", hint="use --null permutation", code="undecided.gamma"
        )
    mean = trace_a * trace_b / (n * (n - 1) ** 2)
    variance = 2.0 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3)) * mean_square
    return mean, variance
