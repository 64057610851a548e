"""Results of comparisons of several samples, field by field their JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from kerntest.dataclass import dataclass
from kerntest.report.results.record import AnyTestResult, Record

if TYPE_CHECKING:
    from kerntest.report.results.record import FamilyRecord, Null
    from kerntest.report.results.two_sample_record import Explanation, Margin, MinimumEffect


@dataclass(frozen=True)
class SampleSize(Record):
    """One of several samples: a group of rows, or a table; and the rows of it that were used."""

    name: str
    n: int


@dataclass(frozen=True)
class SamplePair(Record):
    """Two of several samples, tested as if they were alone.

    Parameters
    ----------
    x, y : str
        The two samples.
    n_x, n_y : int
        Rows that were used.
    mmd2_unbiased, mmd2_biased, mmd, mmd_standard_error, effect_size, kernel, method
        As in `TwoSampleResult`; None where the pair could not be tested. The kernel is the clearest one of this pair: effect
        sizes under one kernel are in `GroupsResult.effect_sizes`.
    p_value : float or None
        Of the pair alone.
    p_adjusted : float or None
        Corrected for all pairs by Holm.
    permutations, p_floor
        Relabellings, and the smallest p-value that these can give before it is corrected.
    reject : bool
        p_adjusted <= alpha and, where a minimum effect was asked for, that it is reached.
    margin, minimum_effect : optional
        As in `TwoSampleResult`, each bound at level 1 - alpha over the number of pairs, so that all verdicts hold together.
    smallest_shift : float or None
        Where no difference was found: the shift of one column, in standard deviations, that the test would have found with
        power 0.8 at alpha over the number of pairs.
    explanation : Explanation or None
        Where it was asked for.
    note : str or None
        Why the pair could not be tested.
    warnings : tuple of str
    """

    x: str
    y: str
    n_x: int
    n_y: int
    mmd2_unbiased: float | None = None
    mmd2_biased: float | None = None
    mmd: float | None = None
    mmd_standard_error: float | None = None
    effect_size: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    permutations: int | None = None
    p_floor: float | None = None
    reject: bool = False
    kernel: str | None = None
    method: str | None = None
    smallest_shift: float | None = None
    margin: Margin | None = None
    minimum_effect: MinimumEffect | None = None
    explanation: Explanation | None = None
    note: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairsWithinMargin(Record):
    """How many pairs of several samples are the same but for a margin.

    Parameters
    ----------
    asked : str
        The margin as it was given.
    verdict : str
        "same" if all pairs that were tested are, "differ" if one does, else "undecided"; either is said wrongly in at most
        alpha of the cases.
    same, differ, undecided : int
        Pairs of each verdict.
    """

    asked: str
    verdict: str
    same: int
    differ: int
    undecided: int


@dataclass(frozen=True, kw_only=True)
class GroupsResult(AnyTestResult):
    """The result of a comparison of several samples: groups of the rows of one table, or tables.

    Parameters
    ----------
    schema : str
        "kerntest.mmd.groups/1".
    by : str or None
        The column that says which group a row is in; None for several tables.
    reference : str or None
        The sample with which each of the others is compared; None for every two.
    p_value : float
        Of all groups together, which has nothing to be corrected for. Of several tables, and by features, the smallest
        corrected one of a pair.
    reject : bool
        p_value <= alpha and, where a minimum effect was asked for, that a pair reaches it.
    margin : PairsWithinMargin or None
        Where it was asked for.
    statistic : float or None
        Of all groups together: the mean of MMD^2 over the pairs of rows of different groups, sum_{g<h} n_g n_h MMD^2(g, h)
        over the number of these, by `estimator` and `kernel`. None where they are not tested together, as of several tables;
        so are `mmd2_unbiased`, `mmd2_biased` (both estimates of it), `kernel`, `null` and `family`.
    effect_size : float or None
        sqrt of <A, B> / sqrt(<A, A> <B, B>) of all groups together; else the largest of a pair.
    groups : tuple of SampleSize
        In the order in which they are compared.
    effect_sizes : tuple of tuples of float, or None
        The effect sizes of every two groups, all of them under `kernel`, so that they can be compared; None on the diagonal.
    pairs : tuple of SamplePair
        The smallest p-value first; pairs that cannot be tested come last.
    tests, rejected : int
        Pairs that were tested and corrected for, and how many of them differ at level `alpha` after the correction.
    n : int
        Rows that were used.
    """

    WORDS = "summaries.groups_summary.groups_summary"
    rows_from: ClassVar[str] = "pairs"
    by: str | None
    reference: str | None
    n: int
    groups: tuple[SampleSize, ...]
    p_value: float
    estimator: str
    statistic: float | None = None
    mmd2_unbiased: float | None = None
    mmd2_biased: float | None = None
    effect_size: float | None = None
    kernel: str | None = None
    null: Null | None = None
    family: FamilyRecord | None = None
    margin: PairsWithinMargin | None = None
    correction: str = "holm"
    tests: int
    rejected: int
    effect_sizes: tuple[tuple[float | None, ...], ...] | None = None
    pairs: tuple[SamplePair, ...]

    def rows_of_tests(self) -> list[dict[str, Any]]:
        """Return the pairs as plain data, beside each the p-value of all groups together where there is one."""
        together = None if self.statistic is None else self.p_value
        return [{**pair, "p_value_together": together} for pair in super().rows_of_tests()]
