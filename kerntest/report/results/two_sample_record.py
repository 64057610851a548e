"""Results of two-sample tests, field by field their JSON."""

from __future__ import annotations

from kerntest.dataclass import dataclass
from kerntest.report.results.record import FamilyRecord, Record, StatisticResult

# At so many times as many rows at most it is told how many would decide about a margin.
MOST_TIMES_ROWS = 20
# An interval is given where MMD^2 is above so many of its standard errors.
ENOUGH_ERRORS = 4.0


@dataclass(frozen=True)
class MinimumEffect(Record):
    """Whether the difference is as large as was asked for.

    Parameters
    ----------
    asked : str
        The smallest effect that matters as it was given: an MMD, or as "0.2sd" the shift of one column in standard deviations.
    minimum : float
        As an MMD.
    column : str or None
        The column in which MMD shows a shift least; None where it sees no numbers.
    standard_deviations : float or None
        Of the shift of this column that has such an MMD, about where the minimum was given as an MMD; None where none has.
    shift : float or None
        The same in the units of the column.
    kernel : str
        The kernel it is measured with: the named one, or the Gaussian at the median bandwidth.
    mmd, standard_error : float or None
        MMD under that kernel; the error is None where MMD is 0.
    lower_bound : float
        Lower confidence bound of MMD at level 1 - alpha; 0 where there is none above.
    reached : bool
        lower_bound >= minimum.
    """

    asked: str
    minimum: float
    column: str | None
    standard_deviations: float | None
    shift: float | None
    kernel: str
    mmd: float
    standard_error: float | None
    lower_bound: float
    reached: bool


@dataclass(frozen=True)
class Margin(Record):
    """Whether two samples are the same but for a margin.

    Parameters
    ----------
    asked : str
        The margin as it was given: an MMD, or as "0.2sd" the shift of one column in standard deviations.
    margin : float
        As an MMD.
    column : str or None
        The column in which MMD shows a shift least; None where it sees no numbers.
    standard_deviations : float or None
        Of the shift of this column that has such an MMD, about where the margin was given as an MMD; None where none has.
    shift : float or None
        The same in the units of the column.
    kernel : str
        The kernel MMD is measured with: the named one, or the Gaussian at the median bandwidth.
    mmd : float
    lower_bound, upper_bound : float
        Confidence bounds of MMD, each at level 1 - alpha; the lower one is 0 where the test finds no difference.
    verdict : str
        "same" if the upper bound is below the margin, "differ" if the lower one is above it, else "undecided".
    rows_to_decide : tuple of int or None
        Where undecided: about how many rows of X and of Y decide, if the estimate of MMD stays as it is; None where those
        are more than 20 times as many.
    rows_if_equal : tuple of int or None
        Where undecided and the lower bound is 0: the same if there is no difference at all.
    """

    asked: str
    margin: float
    column: str | None
    standard_deviations: float | None
    shift: float | None
    kernel: str
    mmd: float
    lower_bound: float
    upper_bound: float
    verdict: str
    rows_to_decide: tuple[int, int] | None = None
    rows_if_equal: tuple[int, int] | None = None


@dataclass(frozen=True)
class Interval(Record):
    """How large a difference is, under a kernel that was chosen beforehand.

    Parameters
    ----------
    kernel : str
        The named one, or the Gaussian at the median bandwidth.
    level : float
        1 - alpha.
    mmd, effect_size : float
    standard_errors : float or None
        MMD^2 (unbiased) in its own standard errors; None where it has none.
    lower, upper, effect_size_lower, effect_size_upper : float or None
        Both ends of the intervals; None where MMD^2 is not above four of its standard errors, or the test finds no difference.
    """

    kernel: str
    level: float
    mmd: float
    effect_size: float
    standard_errors: float | None
    lower: float | None = None
    upper: float | None = None
    effect_size_lower: float | None = None
    effect_size_upper: float | None = None


@dataclass(frozen=True)
class SmallestShift(Record):
    """What a test that found nothing would have found.

    Parameters
    ----------
    standard_deviations : float
        The smallest shift of one column that the test finds with this `power` at level alpha, in standard deviations of the
        column within the samples, and strata.
    column : str
        The column in which a shift is seen least.
    power : float
        0.8.
    of_shares : bool
        Whether it is the shares of its values that shift, as many rows have each, and not the values.
    """

    standard_deviations: float
    column: str
    power: float
    of_shares: bool


@dataclass(frozen=True)
class ColumnContents(Record):
    """What one sample holds in a column, in the column's own units.

    Parameters
    ----------
    missing : float
        Share of the rows, as they were read, that have no value.
    mean, lower_quartile, median, upper_quartile : float, str or None
        Of the numbers that were tested; of dates in ISO form; None for text and booleans.
    standard_deviation : float or None
        Divisor n - 1; of dates in days.
    value : str or None
        Of text and booleans the value whose share differs most between the samples; of numbers and dates the one that at
        least half of all rows hold, None where there is none.
    share : float or None
        Of the rows that were tested, how many hold it.
    """

    missing: float
    mean: float | str | None = None
    standard_deviation: float | None = None
    lower_quartile: float | str | None = None
    median: float | str | None = None
    upper_quartile: float | str | None = None
    value: str | None = None
    share: float | None = None


@dataclass(frozen=True)
class ColumnEffect(Record):
    """One column tested alone, and all the others without it; of a single column what the test says.

    Parameters
    ----------
    column : str
    kernel : str
        What the column is compared by: gaussian at its own median bandwidth, or delta where it holds categories.
    z : float
        Its statistic in null standard deviations.
    p_value, p_adjusted : float
        Of the column alone, and corrected for all columns.
    p_without : float or None
        Of the joint test without the column; None where there is no other, and where that would take too long.
    effect_size : float
        As in `TwoSampleResult`, of the column alone: on one scale for numbers and categories, whatever n.
    x, y : ColumnContents or None
        What it was, and what it is.
    """

    column: str
    kernel: str
    z: float
    p_value: float
    p_adjusted: float
    p_without: float | None
    effect_size: float = 0.0
    x: ColumnContents | None = None
    y: ColumnContents | None = None


@dataclass(frozen=True)
class TypicalRow(Record):
    """A row that is much more typical of its own sample than of the other.

    Parameters
    ----------
    sample : str
        Name of its table; of two tables of one name with the letter X or Y.
    row : int
        Its number among the data rows, counted from 1.
    line : int or None
        Its line in a CSV file.
    witness : float
        The witness function there: positive where the first sample is denser.
    file : str or None
        Of a table of several files, the one that has the line.
    """

    sample: str
    row: int
    line: int | None
    witness: float
    file: str | None = None


@dataclass(frozen=True)
class Explanation(Record):
    """Where two samples differ: columns by how much each differs alone, and the most typical rows of each."""

    columns: tuple[ColumnEffect, ...]
    rows: tuple[TypicalRow, ...]


@dataclass(frozen=True)
class Approximation(Record):
    """Explicit features that stood for a kernel, and the blocks that relabellings moved.

    Parameters
    ----------
    features : str
        As asked for, such as "nystroem:300".
    kind : str
        "nystroem" or "fourier".
    number : int
        Landmarks, or random features.
    kernel_error : float
        Root mean square of <z(x), z(y)> - k(x, y) over pairs of sampled rows that are no landmarks, of the reported
        kernel.
    matrix_error : float
        |A - A_z| / |A| in the Frobenius norm, A the centred kernel matrix of such rows and A_z that of the features.
    rows_sampled : int
        Rows from which bandwidths, landmarks and these errors come.
    blocks : int or None
        Blocks of rows that relabellings permute.
    rows_per_block : int or None
    fixed_rows : int or None
        Rows that keep their file under every relabelling: beyond the last whole block of each file, and most of a file
        that has very many more rows than the other.
    """

    features: str
    kind: str
    number: int
    kernel_error: float
    matrix_error: float
    rows_sampled: int
    blocks: int | None = None
    rows_per_block: int | None = None
    fixed_rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class TwoSampleResult(StatisticResult):
    """The result of a two-sample test. Field by field this is the JSON of `kerntest mmd`.

    Parameters
    ----------
    kernel : str
        Given back as `kernel=` it gives the same statistic.
    bandwidth, gamma : float or None
        Of a kernel that has one bandwidth; gamma = 1 / (2 bandwidth^2) for the Gaussian.
    mmd2_unbiased, mmd2_biased : float
        Both estimators of MMD^2. The unbiased one may be negative.
    mmd : float
        sqrt(max(mmd2_unbiased, 0)).
    mmd_standard_error : float or None
        Standard error of `mmd` when the distributions differ (Gretton et al. 2012, section 5); None near 0, where
        it is not valid.
    effect_size : float
        sqrt of the normalised statistic <A, B> / sqrt(<A, A> <B, B>), between 0 and 1.
    reject : bool
        p_value <= alpha and, where a minimum effect was asked for, that it is reached.
    interval : Interval or None
        Of MMD and the effect size, under a kernel that was chosen beforehand; where a difference was found, or with a margin.
    smallest_shift : SmallestShift or None
        Where no difference was found: what this test would have found.
    minimum_effect, margin, explanation : optional
        Where they were asked for.
    cluster, paired, strata : str or None
        The columns that say which rows move together, are pairs, or are compared with each other.
    units : int or None
        Clusters, or pairs.
    method : str
        "exact", or "features": every kernel value replaced by that of explicit features.
    approximation : Approximation or None
        How the features were made, and how far they are from the kernel.
    """

    WORDS = "summaries.test_summary.two_sample_summary"
    bandwidth: float | None
    gamma: float | None
    n_x: int
    n_y: int
    mmd2_unbiased: float
    mmd2_biased: float
    mmd: float
    mmd_standard_error: float | None
    effect_size: float
    family: FamilyRecord | None
    interval: Interval | None = None
    smallest_shift: SmallestShift | None = None
    minimum_effect: MinimumEffect | None = None
    margin: Margin | None = None
    explanation: Explanation | None = None
    cluster: str | None = None
    paired: str | None = None
    strata: str | None = None
    units: int | None = None
    method: str = "exact"
    approximation: Approximation | None = None
