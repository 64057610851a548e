"""Results of independence tests, field by field their JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kerntest.dataclass import dataclass
from kerntest.report.results.record import AnyTestResult, Record, StatisticResult

if TYPE_CHECKING:
    from kerntest.report.results.record import FamilyRecord, Null


@dataclass(frozen=True)
class KernelPair(Record):
    """One pair of kernels of a family: its statistic in null standard deviations, its own p-value, and its excess."""

    kernel_x: str
    kernel_y: str
    z: float
    p_value: float
    excess: float | None = None

    @property
    def kernel(self) -> str:
        """Both in one text."""
        return f"{self.kernel_x} on x, {self.kernel_y} on y"


@dataclass(frozen=True)
class Lags(Record):
    """The shifts of a test of two series.

    Parameters
    ----------
    minimum : int
        Smallest shift, in rows, that stands for independence; shifts up to n - minimum were used.
    shifts : int
        How many that are.
    strongest : int
        The shift of y against x, of all of them, with the largest statistic: at `strongest` > 0 row i of x goes with
        row i + strongest of y.
    statistic_at_strongest : float
        The statistic there.
    memory : float
        As how many shifts the observed one counts in the p-value: 1 where the minimum is 1, else how many that follow one
        another say as much as one, 1 + 2 times the sum of the autocorrelations of the statistic up to the first below 0.05.
    """

    minimum: int
    shifts: int
    strongest: int
    statistic_at_strongest: float
    memory: float


@dataclass(frozen=True)
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


@dataclass(frozen=True, kw_only=True)
class IndependenceResult(StatisticResult):
    """The result of an independence test.

    Parameters
    ----------
    schema : str
        "kerntest.hsic/1".
    statistic : float
        What was tested: the estimate of HSIC named by `estimator`, COCO, KCC or KMI, for the named kernels.
    statistic_name : str
        "hsic", "coco", "kcc" or "kmi".
    estimator : str
        "unbiased" or "biased".
    p_value : float
        In (0, 1]; of the whole family where there is one.
    kernel_x, kernel_y : str
        The kernels as resolved; given back as `kernel_x=` and `kernel_y=` they give the same statistic. With a family:
        the pair that saw the dependence most clearly, selected by the test itself.
    kernel : str
        Both in one text.
    bandwidth_x, bandwidth_y, gamma_x, gamma_y : float or None
        Of kernels that have one bandwidth; gamma = 1 / (2 bandwidth^2) for the Gaussian.
    n : int
        Rows.
    columns : tuple of str
        All columns that were used, those of x first.
    columns_x, columns_y : tuple of str
        Those of each side.
    hsic_unbiased, hsic_biased : float
        Both estimators: <U(K), U(L)> / (n (n - 3)), which may be negative, and tr(KHLH) / n^2.
    effect_size : float
        sqrt of the normalised statistic <A, B> / sqrt(<A, A> <B, B>), between 0 and 1.
    coco : float or None
        The constrained covariance, where it was asked for.
    witness_correlation : float or None
        Pearson's correlation of the witness functions f(x) and g(y) that belong to the largest singular value.
    penalties : tuple of (float, float) or None
        What KCC and KMI are regularised by, in units of the kernel matrices of x and y: 0.03 n^(-1/4) of the trace of HKH.
    lags : Lags or None
        For time series.
    columns_left_out : tuple of str
        Columns that were named but not used: constant, identifiers, not seen by the kernel.
    method : str
        "exact": over the whole kernel matrices. "features": over features that stand for the kernels, for any number
        of rows; every number is then exact for the kernels of these features.
    approximation : PairApproximation or None
        Of these features.
    """

    WORDS = "summaries.test_summary.independence_summary"
    statistic_name: str
    kernel_x: str
    kernel_y: str
    bandwidth_x: float | None
    bandwidth_y: float | None
    gamma_x: float | None
    gamma_y: float | None
    n: int
    columns_x: tuple[str, ...]
    columns_y: tuple[str, ...]
    hsic_unbiased: float
    hsic_biased: float
    effect_size: float
    coco: float | None
    witness_correlation: float | None
    family: FamilyRecord | None
    lags: Lags | None
    method: str = "exact"
    approximation: PairApproximation | None = None
    penalties: tuple[float, float] | None = None


@dataclass(frozen=True)
class PairEffect(Record):
    """One pair of columns of a screen.

    Parameters
    ----------
    x, y : str
        The two columns.
    n : int
        Rows in which neither is missing.
    hsic_unbiased, hsic_biased : float or None
        Both estimators, at the median bandwidths; None where the pair cannot be tested.
    effect_size : float or None
        sqrt of the normalised statistic, between 0 and 1.
    p_value : float or None
        By the moments of the permutation distribution (no floor).
    p_adjusted : float or None
        Corrected for all pairs of the screen.
    p_permutation : float or None
        Over the relabellings, not corrected: at least 1 / permutations.
    permutations : int or None
        How many relabellings those are.
    p_step_down : float or None
        With a target: corrected exactly by the step-down maximum over the shared relabellings of the target.
    reject : bool
        p_adjusted <= alpha.
    pearson, spearman, kendall : float or None
        Correlation coefficients; None where a column is text or constant.
    kernel_x, kernel_y : str or None
    note : str or None
        Why the pair could not be tested.
    """

    x: str
    y: str
    n: int
    hsic_unbiased: float | None = None
    hsic_biased: float | None = None
    effect_size: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    p_permutation: float | None = None
    permutations: int | None = None
    p_step_down: float | None = None
    reject: bool = False
    pearson: float | None = None
    spearman: float | None = None
    kendall: float | None = None
    kernel_x: str | None = None
    kernel_y: str | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class ScreenResult(AnyTestResult):
    """Every pair of columns of a table, or every column against a target, ranked by how surely they depend.

    Parameters
    ----------
    schema : str
        "kerntest.hsic.pairwise/1".
    target : str or None
        The column that all others were tested against; None for all pairs.
    correction : str
        "holm", "bh" or "none".
    tests : int
        Pairs that were tested and corrected for.
    rejected : int
        How many are significant at level `alpha` after the correction.
    reject : bool
        Whether any is.
    pairs : tuple of PairEffect
        The smallest p-value first; pairs that cannot be tested come last.
    columns : tuple of str
        Columns that take part.
    """

    WORDS = "summaries.test_summary.screen_summary"
    rows_from: ClassVar[str] = "pairs"
    target: str | None
    estimator: str
    null: str
    correction: str
    tests: int
    rejected: int
    n: int
    pairs: tuple[PairEffect, ...]


@dataclass(frozen=True)
class SelectedColumn(Record):
    """One step of a greedy selection.

    Parameters
    ----------
    step : int
        Counted from 1.
    column : str
        The column that was added.
    hsic_unbiased, effect_size : float
        Of the target and all columns selected so far, together.
    gain : float
        By how much that effect size grew with this column; it falls where a column adds less than it widens the kernel.
    partial_effect : float
        Effect size of the column, together with those before it, on what those before it leave of the target.
    p_value : float
        That the target is independent of the column given the columns selected before it, corrected for all candidates
        of the step by the step-down maximum over shared relabellings: exact in the first step, approximate later.
    p_alone : float
        Of the column and the target alone, corrected for all candidates: exact.
    significant : bool
        Whether in this step and all before it p_value <= alpha.
    """

    step: int
    column: str
    hsic_unbiased: float
    effect_size: float
    gain: float
    partial_effect: float
    p_value: float
    p_alone: float
    significant: bool


@dataclass(frozen=True, kw_only=True)
class SelectionResult(AnyTestResult):
    """Columns selected one after another for their joint dependence with a target.

    Parameters
    ----------
    schema : str
        "kerntest.hsic.selection/1".
    selected : tuple of SelectedColumn
        In the order of selection.
    significant : int
        How many of the first steps are significant in a row.
    """

    WORDS = "summaries.test_summary.selection_summary"
    rows_from: ClassVar[str] = "selected"
    target: str
    n: int
    selected: tuple[SelectedColumn, ...]
    significant: int
    null: Null


@dataclass(frozen=True)
class JointGroup(Record):
    """One group of columns of a joint test, and its kernel."""

    columns: tuple[str, ...]
    kernel: str


@dataclass(frozen=True)
class GroupPair(Record):
    """Two groups of a joint test tested by themselves: the HSIC test at the same kernels, by moments."""

    first: str
    second: str
    hsic_unbiased: float
    effect_size: float
    p_value: float


@dataclass(frozen=True, kw_only=True)
class JointResult(StatisticResult):
    """The result of a test of joint independence of several groups (dHSIC).

    Parameters
    ----------
    schema : str
        "kerntest.hsic.joint/1".
    statistic : float
        dHSIC (Pfister et al. 2018), biased.
    dhsic : float
        The same.
    groups : tuple of JointGroup
    pairs : tuple of GroupPair
        Every two groups by themselves: groups may be independent in pairs and dependent jointly.
    """

    WORDS = "summaries.test_summary.joint_summary"
    statistic_name: str
    dhsic: float
    n: int
    groups: tuple[JointGroup, ...]
    pairs: tuple[GroupPair, ...]
