"""Two tables compared: what `mmd_test` does with two, and of several with every two of them."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.data.columns import Arranged, identifiers_with_gaps, pool
from kerntest.data.diagnostics.copies import is_one_twice, repeated_in, same_in_pairs
from kerntest.data.diagnostics.dependent_rows import dependent_rows
from kerntest.data.diagnostics.dependent_units import (
    clusters_in_time,
    dependent_pairs,
    dependent_strata,
    within_strata,
)
from kerntest.data.diagnostics.misleading import (
    column_of_pairs,
    identifiers,
    tables_of_counts,
    telling_apart,
    two_sample_warnings,
)
from kerntest.data.facts import TableFacts, lone_values
from kerntest.dataclass import dataclass
from kerntest.engines.engine import part_of
from kerntest.errors import option
from kerntest.inference import exact
from kerntest.inference.explain.differences import explained, explanation_work, parts_of_explanation
from kerntest.inference.family import BandwidthOption, Family, KernelChooser, all_equal
from kerntest.inference.method import ByFeatures, OneOfTests, Way
from kerntest.inference.relabelling.designs import (
    BlockedRows,
    cosets_needed,
    different_relabellings,
)
from kerntest.inference.relabelling.designs_of_columns import can_be_strata, designed, without_standard_error
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import Groups, Options, Reading, Sample, lay_out, names_apart, read_two, without_missing
from kerntest.inference.sizes.location import ShiftsOfColumns, smallest_shift
from kerntest.inference.sizes.margins import NO_ERRORS, Asked, Law, errors_of, largest_mmd
from kerntest.inference.sizes.work_of_sizes import size_work
from kerntest.inference.verdict import Verdict, verdict_of
from kerntest.inference.work_of_tests import Step, step_of_test
from kerntest.report.results import record, two_sample_record
from kerntest.report.summaries.size_summary import margin_warnings
from kerntest.report.summaries.test_summary import decision_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kerntest.data.table import Table
    from kerntest.engines.engine import Progress
    from kerntest.inference.explain.pictures import Files
    from kerntest.kernels.base import Kernel


def told_of_uneven() -> str:
    """Return the warning of clusters that have more rows in one of two samples."""
    return (
        "clusters of one of the two have more rows: relabelled they are no longer what they were, and the p-value is "
        f"approximate; kernels are judged one by one, as by {option('judge', 'smallest')}, and with as many rows of each it is exact"
    )


class Compared(NamedTuple):
    """Two tables before their test: the rows of each that are used, these pooled, and the kernels."""

    tables: Groups
    used: tuple[Table, Table]
    dropped: Sequence[str]
    pooled: Arranged
    sample: Sample
    chooser: KernelChooser
    family: Family


@dataclass(frozen=True, eq=False)
class Comparison:
    """How two tables are compared: the options of `mmd_test`; `subject` is what a sentence calls both, of so many `tests`."""

    run: exact.RunOfTest
    options: Options
    reading: Reading
    way: Way
    kernel: Kernel | str
    bandwidth: BandwidthOption
    features: str | None
    asked: Asked
    explain: bool
    files: Files | None
    threads: int | None
    progress: Progress | None
    subject: str = ""
    tests: int = 1
    among: OneOfTests | None = None
    same: Callable[[str], str] | None = None
    within: Callable[[str], str] | None = None

    def of(self, x: Any, y: Any) -> two_sample_record.TwoSampleResult:
        """Return the test of two tables, which are read."""
        with self.way.tables(read_two, x, y, self.reading) as tables:
            if isinstance(tables, ByFeatures):
                return self.by_features(*tables)
        compared = self.prepared(tables)
        self.run.prepare("mmd", len(compared.sample.points), len(compared.sample.names), partial(self.steps, compared))
        analysis = self.judged(compared)
        if self.files is not None:
            self.files.write_of(analysis)
        return analysis.result

    def by_features(self, x: Any, y: Any, why: Sequence[str] = ()) -> two_sample_record.TwoSampleResult:
        """Return the test of two tables by features."""
        from kerntest.inference.features import block_sums, two_passes  # noqa: PLC0415 - few need them

        asked = self.features or block_sums.FEATURES
        survey = two_passes.Survey(
            "mmd",
            self.options,
            asked,
            self.reading,
            threads=self.threads,
            progress=self.progress,
            why=why,
            among=self.among,
        )
        result = partial(two_sample_result, subject=self.subject)
        return block_sums.mmd_by_features(
            x, y, survey, result, kernel=self.kernel, bandwidth=self.bandwidth, asked=self.asked, tests=self.tests
        )

    def prepared(self, tables: Groups) -> Compared:
        """Return the rows of two tables that are used, and the kernels that judge them."""
        options, tables = self.run.options, tables.with_gaps(self.reading.missing)
        idle = identifiers_with_gaps(tables.tables)
        seen = [name for name in tables.tables[0].names if name not in idle]
        used, dropped = without_missing([one.select(seen) for one in tables.tables], self.reading.missing)
        used, design, lost = designed(tables, used, self.reading, options.alpha, same=self.same, pairs=self.within)
        dropped += [*lost, *(lone_values(*used) if options.scale == "standardize" else ())]
        pooled = pool(*used, keep_equal=self.tests == 1)
        pooled = replace(pooled, reasons={**idle, **pooled.reasons})
        if all_equal(pooled):
            dropped.append(
                f"all rows are equal, in both {' and '.join(names_apart(used))}: no test can see more than that"
            )
        sample = lay_out(pooled, options.scale, design)
        chooser = KernelChooser(sample, options.seed, relabellings=different_relabellings(sample, options))
        single = options.null != "permutation"
        # Of rows that are all equal any bandwidth tells the same.
        one: dict[str, Any] = {"single": True, "idle": True} if all_equal(pooled) else {"single": single}
        family = chooser.family(self.kernel, 1.0 if all_equal(pooled) else self.bandwidth, **one)
        self.asked.check_limit(family.kernels[0], sample.points)
        return Compared(tables, used, dropped, pooled, sample, chooser, family)

    def steps(self, compared: Compared) -> tuple[Step, ...]:
        """Return what the test of two tables takes."""
        sample, family, options = compared.sample, compared.family, self.run.options
        blocks = BlockedRows.of(sample.labels, options.seed, sample.design)
        told: Any = {"cosets": cosets_needed(sample, blocks, options.permutations)}
        if sample.design is not None:
            told["designed"] = blocks
            told["several"] = sample.design.n_units is not None
        test = step_of_test([(sample.points, family.kernels)], options, **told)
        size = size_work(sample, family.kernels, options.seed, options.alpha / self.tests)
        return test, size, *(explanation_work(sample, options) if self.explain else ())

    def judged(self, compared: Compared) -> exact.TwoSampleAnalysis:
        """Return the test of two tables, with what it was made from."""
        tables, used, dropped, pooled, sample, _, family = compared
        run = self.run
        uneven = sample.design is not None and sample.design.uneven(sample.labels)
        if sample.design is not None and uneven and not sample.design.swaps:
            run, dropped = copy(run), [*dropped, told_of_uneven()]
            run.options = replace(run.options, judge="smallest")
        options = run.options
        # Each test of an explanation takes as long as this one.
        progress = part_of(self.progress, 0, parts_of_explanation(sample)) if self.explain else self.progress
        test = TwoSamples(options, run.engine, progress, sample)
        verdict = verdict_of(test, family, lone_values(*used))
        verdict = verdict._replace(null=replace(verdict.null, exact=verdict.null.exact and not uneven))
        twice = all_equal(pooled) or is_one_twice(pooled)
        sized, explanation = self.sized(test, verdict, compared, twice=twice), None
        # Of clusters and pairs the design knows which rows belong together.
        repeated: Iterable[str] = repeated_in(used, pooled) if self.reading.cluster is None else ()
        if (design := sample.design) is not None:
            # In the order of the tables again.
            units = design.units[np.lexsort((sample.origin, 1 - sample.labels))]
            repeated = same_in_pairs(pooled, units) if design.swaps else repeated
        warnings, dependent = (*tables.warnings, *dropped), tuple[str, ...]()
        within = partial(can_be_strata, tables.read, used, alpha=options.alpha)
        if verdict.p_value <= options.alpha and sample.design is None:
            dependent = tuple(dependent_rows(tables.read, tables.tables, self.same, within))
        elif verdict.p_value <= options.alpha and (cluster := self.reading.cluster) is not None:
            pairs = zip(tables.tables, tables.read, strict=True)
            told = (text for some, read in pairs for text in clusters_in_time(some.columns, read, cluster))
            dependent = tuple(islice(told, 1))
        elif verdict.p_value <= options.alpha and (strata := self.reading.strata) is not None:
            dependent = tuple(dependent_strata(used, tables.read, strata, self.same))
            dependent = dependent or tuple(
                dependent_rows(*within_strata(tables.tables, tables.read, strata), self.same, lambda _: False)
            )
        elif verdict.p_value <= options.alpha and sample.design is not None:
            dependent = tuple(dependent_pairs(used, tables.read, units, str(self.reading.paired)))
        facts, names = (
            [TableFacts.of(table) for table in tables.tables],
            (*pooled.numeric_names, *pooled.category_names),
        )
        read, of_pairs = [one.with_all_columns() for one in tables.read], None
        if sample.design is None:
            of_pairs = column_of_pairs(read, names)
        warnings += (*two_sample_warnings(facts, names, of_pairs), *repeated, *pooled.warnings)
        warnings += tuple(identifiers(tables.tables, names, warnings))
        warnings += tuple(tables_of_counts(read, names)) if of_pairs is None else ()
        warnings += (*telling_apart(facts, names, (*warnings, *dependent)), *dependent)
        if self.explain:
            explanation = explained(replace(test, progress=self.progress), verdict, tables.tables, used)
        result = two_sample_result(
            run,
            verdict,
            family,
            run.provenance(tables.read, [kept.n_rows for kept in used], (self.kernel,), family.rule),
            n=(pooled.n_x, pooled.n_y),
            columns=used[0].names,
            left_out=pooled.left_out,
            sized=sized,
            explanation=explanation,
            **self.reading.design,
            units=None if sample.design is None else sample.design.n_units,
            exact=not uneven,
            warnings=warnings,
            subject=self.subject,
        )
        return exact.TwoSampleAnalysis(result, verdict, sample, used)

    def sized(self, test: TwoSamples, verdict: Verdict, compared: Compared, *, twice: bool) -> dict[str, Any]:
        """Return how large the difference is under a kernel chosen beforehand, or the shift that would have been found.

        Of one table `twice` there is no difference, and no error of it.
        """
        sample, alpha = test.sample, self.run.options.alpha / self.tests
        family, chooser = compared.family, compared.chooser
        measure = family.kernels[0]
        if len(family.members) > 1:
            (measure,) = chooser.family(self.kernel, "median", single=True, idle=True).kernels
        asked = any(one is not None for one in self.asked)
        if verdict.p_value > alpha and not asked:
            # A test that cannot reject finds no shift, and none is looked for in one table twice.
            able = not twice and (verdict.null.p_floor is None or verdict.null.p_floor <= alpha)
            shift = (
                smallest_shift(family, measure, sample, sample.sizes, options=self.run.options, alpha=alpha)
                if able
                else None
            )
            return {"smallest_shift": shift}
        if self.tests > 1 and not asked:
            return {}
        effect = verdict.found if measure == verdict.kernels[0] else test.measured((measure,))
        if math.isnan(effect.variance):
            if not asked:
                return {}
            given = next(self.asked.names())
            raise without_standard_error(compared.tables, compared.used, self.reading, alpha, given)
        if twice:
            law = Law(effect._replace(unbiased=0.0, variance=0.0), NO_ERRORS)
        else:
            errors = errors_of(measure, sample, effect, self.run.options.seed)
            law = Law(effect, errors, verdict.p_value, largest_mmd(measure, sample.points))
        shifts = ShiftsOfColumns(measure, sample)
        answered = self.asked.answered(law, measure, shifts, alpha, sample.sizes)
        return {"interval": law.interval(effect, measure, alpha)} | answered


def two_sample_result(
    run: exact.RunOfTest,
    verdict: Verdict,
    family: Family,
    provenance: record.Provenance,
    *,
    n: Sequence[int],
    columns: Sequence[str],
    left_out: Sequence[str],
    sized: dict[str, Any],
    warnings: Sequence[str],
    subject: str = "",
    exact: bool = True,
    **more: Any,
) -> two_sample_record.TwoSampleResult:
    """Return the record of a test."""
    found, (kernel,), alpha = verdict.found, verdict.kernels, run.options.alpha
    minimum: two_sample_record.MinimumEffect | None = sized.get("minimum_effect")
    warnings = (*warnings, *margin_warnings(sized.get("margin")))
    rejects, left_out = verdict.p_value <= alpha, (*left_out, *family.unused)
    subject = subject or ("the two files" if provenance.inputs[0].sha256 else "the two samples")
    return two_sample_record.TwoSampleResult(
        schema="kerntest.mmd/1",
        command="mmd",
        **run.fields(verdict, family, record.FamilyMember, warnings),
        provenance=provenance,
        reject=rejects and (minimum is None or minimum.reached),
        decision=decision_sentence(verdict.p_value, alpha, subject, exact=exact, **sized),
        kernel=str(kernel),
        bandwidth=getattr(kernel, "bandwidth", None),
        gamma=getattr(kernel, "gamma", None),
        n_x=n[0],
        n_y=n[1],
        columns=tuple(name for name in columns if name not in left_out),
        columns_left_out=left_out,
        mmd2_unbiased=found.unbiased,
        mmd2_biased=found.biased,
        mmd=math.sqrt(max(found.unbiased, 0.0)),
        # Where MMD is not clearly above 0 its error means nothing.
        mmd_standard_error=found.standard_error if rejects and math.isfinite(found.standard_error) else None,
        **sized,
        **more,
    )
