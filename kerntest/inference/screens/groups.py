"""Several samples: groups of the rows of one table, or tables; all together, and every two or each with a reference.

A pair is tested as if it were alone: its rows, its scale, its bandwidths and its relabellings are those of two files with
these rows. What a third group holds then cannot make it reject. Nor would one matrix for all pairs spare much: of k groups of
a size, those of the pairs have 2 (k - 1) / k times the entries of the one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from kerntest.data.columns import told_of_left_out
from kerntest.data.diagnostics.dependent_rows import groups_warnings
from kerntest.engines.plan import added, count_wanted
from kerntest.errors import (
    KerntestError,
    UndecidedError,
    UsageError,
    counted,
    either,
    option,
)
from kerntest.inference.comparison import Compared, Comparison
from kerntest.inference.exact import RunOfTest, paired_copies
from kerntest.inference.family import choose_pair
from kerntest.inference.method import ByFeatures, OneOfTests, Way, told_of_pieces
from kerntest.inference.relabelling.permuted_pairs import SeveralSamples, pairs_of
from kerntest.inference.screens.many_pairs import adjusted
from kerntest.inference.screens.pairwise import pairs_figure, ranking_figure
from kerntest.inference.screens.row_groups import (
    Samples,
    asks_of_whole_cases,
    asks_within_cases,
    groups_of,
    one_table,
    refuse_many,
)
from kerntest.inference.sides import Groups, pair_up, read_one, read_two
from kerntest.inference.verdict import verdict_of
from kerntest.inference.work_of_tests import Step, step_of_test
from kerntest.kernels.elementary import Linear, moved_to_origin
from kerntest.report import panels
from kerntest.report.results import record, two_sample_record
from kerntest.report.results.groups_record import GroupsResult, PairsWithinMargin, SamplePair, SampleSize
from kerntest.report.summaries.groups_summary import groups_sentence
from kerntest.report.summaries.words import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from kerntest.data.table import Table
    from kerntest.engines.engine import Progress
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Paired
    from kerntest.report.results.two_sample_record import SmallestShift

_Told = TypeVar("_Told", SamplePair, two_sample_record.TwoSampleResult, GroupsResult)
# Why a pair alone cannot be tested while others can.
UNTESTABLE = {"data.no_columns", "data.too_few_rows", "data.no_rows_left", "data.apart"}
UNTESTABLE |= {"undecided.degenerate_kernel", "undecided.floor"}
# Different warnings of pairs that are told; each pair has its own in the record.
WARNINGS_TOLD = 4
# What is read in pieces where several samples are not.
TWO_FILES = "two files, a sample in each, may be of any size with {}"
# Steps of progress; a row by features in pairs of rows by kernel matrices, whose values are half as many.
STEPS, PER_ROW = 1000, 600


def compare_groups(
    comparison: Comparison, data: Any, others: Sequence[Any], by: str, reference: str | float | None
) -> two_sample_record.TwoSampleResult | GroupsResult:
    """Return the comparison of the groups of rows that a column names: of two groups the two-sample test of these."""
    if any(one is not None for one in others):
        hint = f"give one table, or leave out {option('by')}"
        raise UsageError(f"{option('by', by)} compares groups of the rows of one table", hint=hint, code="usage.by")
    if comparison.reading.common:
        raise UsageError(
            f"{option('common', True)} is for two tables",
            hint=f"leave it out: {option('by')} reads one",
            code="usage.by",
        )
    reading = comparison.reading
    with told_of_pieces(TWO_FILES.format(option("method", "features"))):
        table = read_one(data, reading, "x")
    samples, told = groups_of(reading, data, table, by, reference)
    same = partial(asks_of_whole_cases, comparison.reading, data, samples, alpha=comparison.options.alpha)
    within = partial(asks_within_cases, comparison.reading, data, samples)
    # Rows and columns are chosen by now.
    reading = replace(
        reading, columns=None, exclude=None, categorical=(), csv=replace(reading.csv, where=None, sample=None)
    )
    comparison = replace(comparison, reading=reading, subject="the two groups", same=same, within=within)
    if len(samples.names) > 2:
        found = _compared(comparison, samples, (table,), told)
        pairs = tuple(_of_one_file(pair, table, by) for pair in found.pairs)
        return _of_one_file(replace(found, pairs=pairs), table, by)
    # What is said of the table is said once.
    first, second = (samples.tables[place] for place in samples.pairs[0])
    return _of_one_file(comparison.of(replace(first, notes=told), second), table, by)


def _of_one_file(result: _Told, table: Table, by: str) -> _Told:
    """Return a record whose warnings name groups alone, without the one table that they are of."""
    told: dict[str, Any] = {
        "warnings": tuple(text.replace(f"{table.name}, {by} = ", f"{by} = ") for text in result.warnings)
    }
    if isinstance(result, SamplePair) and result.note is not None:
        told["note"] = result.note.replace(f"{table.name}, {by} = ", f"{by} = ")
    return replace(result, **told)


def compare_tables(comparison: Comparison, sources: Sequence[Any], reference: object) -> GroupsResult:
    """Return the comparison of each of several tables with the first."""
    if reference is not None:
        hint = f"the first of several tables is the one with which each is compared; {option('by')} names groups of one"
        raise UsageError(f"{option('reference', reference)} needs {option('by')}", hint=hint, code="usage.reference")
    if len(sources) == 2 and sources[1] is None:
        raise one_table(comparison.reading, sources[0])
    letters = ["x", "y", *(f"y{place}" for place in range(2, len(sources)))]
    reading = comparison.reading
    with told_of_pieces(TWO_FILES.format(option("method", "features"))):
        tables = [read_one(one, reading, letter) for one, letter in zip(sources, letters, strict=True)]
    names = [table.name for table in tables]
    # Equal names are told apart by their place.
    names = [f"{name} ({place})" if names.count(name) > 1 else name for place, name in enumerate(names, 1)]
    tables = [replace(table, name=name) for table, name in zip(tables, names, strict=True)]
    # Rows are chosen by now.
    comparison = replace(comparison, reading=replace(reading, csv=replace(reading.csv, where=None, sample=None)))
    pairs = [(0, place) for place in range(1, len(tables))]
    refuse_many(len(pairs), len(names), "tables")
    return _compared(comparison, Samples(names, tables, pairs, names[0]), tables)


# Every pair, and all together


def _compared(
    comparison: Comparison, samples: Samples, read: Sequence[Table], warnings: Sequence[str] = ()
) -> GroupsResult:
    """Return the tests of all pairs, and of the groups of one table that of all together."""
    if comparison.files is not None and comparison.files.witness is not None:
        hint = f"{option('where', samples.two)} takes two of them" if samples.two else "give two of them"
        said = f"{option('witness')} is about two samples, and there are {len(samples.names)}"
        raise UsageError(said, hint=hint, code="usage.groups")
    run, pairs, options = comparison.run, samples.pairs, comparison.options
    # So many that two relabellings as extreme as the observed one, it among them, leave the corrected p-value at alpha.
    enough = math.ceil(2 * len(pairs) / options.alpha * (1.0 - 1e-12))
    own = replace(options, permutations=max(options.permutations, enough))
    sizes = [(samples.tables[a].n_rows, samples.tables[b].n_rows) for a, b in pairs]
    # All pairs together are at most the work of one test.
    way = replace(comparison.way, pairs=sizes)
    each = replace(comparison, options=own, run=RunOfTest(own, comparison.threads), tests=len(pairs), way=way)
    all_groups = (
        None
        if samples.pooled is None or comparison.reading.apart
        else _AllGroups.of(comparison, samples, samples.pooled)
    )
    ready = [_prepared(each, samples.tables[a], samples.tables[b]) for a, b in pairs]
    if all_groups is None and samples.by is not None:
        apart = next((option(name) for name, one in comparison.reading.design.items() if one is not None), None)
        told = "there is no test of all groups together, and the smallest corrected p-value of a pair stands for it"
        way_out = f"by features {told}; {option('method', 'exact')} has one"
        warnings = (*warnings, way_out if apart is None else f"with {apart} {told}")
    if all_groups is None:
        left_out = [one.pooled.reasons for one in ready if isinstance(one, Compared)]
        in_all = {
            name: why
            for name, why in dict(chain(*(one.items() for one in left_out))).items()
            if all(one.get(name) == why for one in left_out)
        }
        warnings = (*warnings, *told_of_left_out(in_all))
    warnings = (*warnings, *dict.fromkeys(chain(*(one.why for one in ready if isinstance(one, ByFeatures)))))
    rows, totals = sum(table.n_rows for table in samples.tables), [x + y for x, y in sizes]
    # By features first: the first of them that can be tested tells the plan of all.
    order = sorted(range(len(pairs)), key=lambda place: not isinstance(ready[place], ByFeatures))
    featured = [totals[place] for place in order if isinstance(ready[place], ByFeatures)]
    beside = _exact_steps(each, ready, all_groups) if count_wanted(rows) else []
    if beside and not featured:
        run.announce("mmd", rows, len(samples.tables[0].names), beside)
    each.run.engine = run.engine
    work = [totals[place] * (PER_ROW if isinstance(ready[place], ByFeatures) else totals[place]) for place in order]
    work += [rows * rows] * (all_groups is not None)
    parts, planned = iter(_parts(comparison.progress, work)), False
    made = dict[int, tuple[SamplePair, two_sample_record.TwoSampleResult | None]]()
    for place in order:
        among = OneOfTests(len(featured), rows, 0.0 if planned else sum(featured) / totals[place], beside)
        a, b = pairs[place]
        names = [samples.names[a], samples.names[b]]
        made[place] = _tested(replace(each, progress=next(parts), among=among), names, sizes[place], ready[place])
        planned = planned or (isinstance(ready[place], ByFeatures) and made[place][1] is not None)
    together = None if all_groups is None else all_groups.judged(next(parts))
    tested = [made[place] for place in range(len(pairs))]
    errors = [one for one in ready if isinstance(one, KerntestError)]
    counts = [_rows_used(place, pairs, ready, tested) for place in range(len(samples.tables))]
    result = _result(comparison, samples, read, tested, counts, together=together, warnings=warnings, errors=errors)
    if comparison.files is not None:
        comparison.files.write(dict, lambda: groups_figure(result))
    return result


def _exact_steps(
    each: Comparison, ready: Sequence[Compared | ByFeatures | KerntestError], all_groups: _AllGroups | None
) -> list[Step]:
    """Return the steps of the pairs that are tested exactly, as one, and of the test of all groups."""
    exact = [one for one in ready if isinstance(one, Compared)]
    told = f"{counted(len(exact), 'pair')}, each under {each.options.permutations:,} relabellings"
    tests = [step for one in exact for step in each.steps(one)]
    return ([] if all_groups is None else [all_groups.step()]) + ([_as_one(told, tests)] if tests else [])


def _prepared(each: Comparison, x: Table, y: Table) -> Compared | ByFeatures | KerntestError:
    """Return a pair before its test, or why it cannot be tested while others can."""
    try:
        tables = read_two(x, y, each.reading)
        why = each.way.goes_by_features(tables, [x.n_rows, y.n_rows], each.reading)
        return ByFeatures(x, y, why) if why or each.way.method == "features" else each.prepared(tables)
    except KerntestError as error:
        return _if_untestable(error)


def _if_untestable(error: KerntestError) -> KerntestError:
    """Return an error that is one of a pair alone; raise any other."""
    if error.code not in UNTESTABLE:
        raise error
    return error


def _tested(
    each: Comparison, names: Sequence[str], sizes: Sequence[int], ready: Compared | ByFeatures | KerntestError
) -> tuple[SamplePair, two_sample_record.TwoSampleResult | None]:
    """Return the record of a pair, before any correction, and its test if there is one."""
    (x, y), (n_x, n_y), about_two = names, sizes, tuple[str, ...]()
    try:
        if isinstance(ready, Compared):
            found, verdict, *_ = each.judged(ready)
            # Whether relabellings are enough, the correction decides; what tells nothing in one pair may in others.
            about_two = (*verdict.warnings, *ready.pooled.warnings)
        elif isinstance(ready, ByFeatures):
            found = each.by_features(*ready)
    except KerntestError as error:
        ready = _if_untestable(error)
    if isinstance(ready, KerntestError):
        return SamplePair(x, y, n_x, n_y, note=ready.message), None
    told = {name: getattr(found, name) for name in SamplePair.names() if hasattr(found, name)}
    told["smallest_shift"] = found.smallest_shift and found.smallest_shift.standard_deviations
    told |= {"permutations": found.null.permutations, "p_floor": found.null.p_floor, "reject": False}
    told["warnings"] = tuple(text for text in found.warnings if text not in about_two)
    return SamplePair(x, y, **told), found


def _rows_used(
    place: int,
    pairs: Sequence[tuple[int, int]],
    ready: Sequence[Compared | ByFeatures | KerntestError],
    tested: Sequence[tuple[SamplePair, two_sample_record.TwoSampleResult | None]],
) -> int:
    """Return how many rows of a sample some pair uses: strata, and partners, leave other ones to each."""
    rows, most = [np.empty(0, dtype=np.int64)], 0
    for pair, one, (_, found) in zip(pairs, ready, tested, strict=True):
        if place in pair and found is not None:
            side = pair.index(place)
            most = max(most, (found.n_x, found.n_y)[side])
            rows += [one.used[side].numbers()] if isinstance(one, Compared) else []
    return max(most, len(np.unique(np.concatenate(rows))))


def _as_one(what: str, steps: Sequence[Step]) -> Step:
    """Return many steps, one after another, as one."""

    def held(threads: int) -> float:
        return max(step.held(threads) for step in steps)

    def least(threads: int) -> float:
        return max((step.least or step.held)(threads) for step in steps)

    return Step(what, held, added(*(step.work for step in steps)), added(*(step.most for step in steps)), least)


def _parts(progress: Progress | None, work: Sequence[int]) -> Iterator[Progress | None]:
    """Yield for each part of the work what takes its progress, as its share of that of all.

    A test with its explanation counts twice from its beginning: what is done stays done.
    """
    reached = 0
    ends = np.cumsum([0.0, *work]) / sum(work) * STEPS
    for start, stop in pairwise(ends):

        def told(done: int, steps: int, start: float = start, stop: float = stop) -> None:
            nonlocal reached
            reached = max(reached, int(start + (stop - start) * done / max(steps, 1)))
            if progress is not None:
                progress(reached, STEPS)

        yield None if progress is None else told


def _result(
    comparison: Comparison,
    samples: Samples,
    read: Sequence[Table],
    tested: Sequence[tuple[SamplePair, two_sample_record.TwoSampleResult | None]],
    counts: Sequence[int],
    *,
    together: _Together | None,
    warnings: Sequence[str],
    errors: Sequence[KerntestError],
) -> GroupsResult:
    """Return the record of all tests, p-values of pairs corrected; errors are of pairs that cannot be tested."""
    alpha, run = comparison.options.alpha, comparison.run
    corrected = adjusted([np.nan if pair.p_value is None else pair.p_value for pair, _ in tested], "holm").tolist()
    pairs = [
        pair if pair.p_value is None else replace(pair, p_adjusted=p, reject=p <= alpha and _reached(pair))
        for (pair, _), p in zip(tested, corrected, strict=True)
    ]
    # The surest first; equal p-values, of which relabellings give many, by effect size.
    pairs.sort(key=lambda pair: (2.0 if pair.p_value is None else pair.p_value, -(pair.effect_size or 0.0)))
    made = [pair for pair in pairs if pair.p_adjusted is not None]
    results = [found for _, found in tested if found is not None]
    if not made:
        if few := next((one for one in errors if one.code == "undecided.floor"), None):
            raise UndecidedError(f"no pair can be tested: {pairs[0].note}", hint=few.hint, code="undecided.groups")
        design = comparison.reading.design
        unit = next((name for name in (design["cluster"], design["paired"]) if name is not None), None)
        more = "give more rows, or other columns"
        if unit is not None:
            more = f"give more clusters, each with another value of {unit!r}, to every group; or fewer, larger groups"
        fewer = f"; {option('method', 'exact')} takes fewer rows" if comparison.way.method == "features" else ""
        raise UndecidedError(
            f"no pair can be tested: {pairs[0].note}",
            hint=f"{more}{fewer}",
            code="undecided.groups",
        )
    rejected = sum(pair.reject for pair in made)
    columns = tuple(dict.fromkeys(name for one in results for name in one.columns))
    told: dict[str, Any] = {
        "estimator": run.options.estimator,
        "p_value": min(pair.p_adjusted for pair in made if pair.p_adjusted is not None),
        "alpha": alpha,
        "effect_size": max(pair.effect_size or 0.0 for pair in made),
        "columns": columns,
        "columns_left_out": tuple(
            dict.fromkeys(name for one in results for name in one.columns_left_out if name not in columns)
        ),
        "warnings": tuple(warnings),
    }
    groups = tuple(
        SampleSize(name, count or (0 if together is None else table.n_rows))
        for name, count, table in zip(samples.names, counts, samples.tables, strict=True)
    )
    if together is not None:
        told |= together.fields
        said = [text for pair in made for text in pair.warnings]
        of_all = groups_warnings(samples.tables, told["columns"], said)
        told["warnings"] = (*warnings, *together.fields["warnings"], *of_all)
    told["warnings"] += tuple(_warnings_of_pairs(made, len(pairs), alpha, told["warnings"]))
    margin = _within_margin(made)
    rows = [sum(group.n for group in groups)] if samples.by is not None else [group.n for group in groups]
    rule = str(comparison.bandwidth) if together is None else together.rule
    return GroupsResult(
        schema="kerntest.mmd.groups/1",
        command="mmd",
        provenance=run.provenance(read, rows, (comparison.kernel,), rule),
        by=samples.by,
        reference=samples.reference,
        n=sum(group.n for group in groups),
        groups=groups,
        reject=told["p_value"] <= alpha and any(map(_reached, made)),
        margin=margin,
        decision=groups_sentence(
            told["p_value"],
            alpha,
            (len(made), rejected, len(pairs) - len(made)),
            (len(groups), samples.by),
            reference=samples.reference,
            together=together is not None,
            shift=None if rejected else _largest_shift(results),
            margin=margin,
            minimum=next((pair.minimum_effect for pair in made if pair.minimum_effect is not None), None),
        ),
        tests=len(made),
        rejected=rejected,
        pairs=tuple(pairs),
        **told,
    )


def _reached(pair: SamplePair) -> bool:
    """Say whether a pair differs by enough to matter, where that was asked."""
    return pair.minimum_effect is None or pair.minimum_effect.reached


def _within_margin(pairs: Sequence[SamplePair]) -> PairsWithinMargin | None:
    """Return how many pairs are the same but for a margin, if one was asked for."""
    found = [pair.margin for pair in pairs if pair.margin is not None]
    if not found:
        return None
    counts = Counter(one.verdict for one in found)
    verdict = "differ" if counts["differ"] else "undecided" if counts["undecided"] else "same"
    return PairsWithinMargin(found[0].asked, verdict, counts["same"], counts["differ"], counts["undecided"])


def _largest_shift(results: Sequence[two_sample_record.TwoSampleResult]) -> SmallestShift | None:
    """Return the shift that the test of each pair would have found; None where one of them finds none."""
    shifts = [found.smallest_shift for found in results if found.smallest_shift is not None]
    return max(shifts, key=lambda one: one.standard_deviations) if len(shifts) == len(results) else None


def _warnings_of_pairs(pairs: Sequence[SamplePair], of: int, alpha: float, known: Sequence[str]) -> Iterator[str]:
    """Yield what pairs, of so many in all, warn of, the first of them, and that some have too few rows for any corrected p-value to reject."""
    # Those that differ in names of samples and in numbers alone are one.
    names = sorted({name for pair in pairs for name in (pair.x, pair.y)}, key=len, reverse=True)
    varied = re.compile("|".join([*(rf"(?<!\w){re.escape(name)}(?!\w)" for name in names), r"[\d.,]*\d"]))
    alike: dict[str, dict[str, list[SamplePair]]] = {}
    for pair in pairs:
        for text in (one for one in pair.warnings if one not in known):
            alike.setdefault(varied.sub("#", text), {}).setdefault(text, []).append(pair)
    for texts in [*alike.values()][:WARNINGS_TOLD]:
        text, (first, *_) = next(iter(texts.items()))
        count = len({(pair.x, pair.y) for own in texts.values() for pair in own})
        more = f" and {counted(count - 1, 'other pair')}" if count > 1 else ""
        if count < of:
            yield f"{first.x!r} and {first.y!r}{more}: {text}"
        else:
            yield text if len(texts) == 1 else f"all {count:,} pairs, such as {first.x!r} and {first.y!r}: {text}"
    if len(alike) > WARNINGS_TOLD:
        more = counted(len(alike) - WARNINGS_TOLD, "more warning")
        yield f"{more} of single pairs: {either('--json', 'pairs')} has them with each pair"
    few = [pair for pair in pairs if pair.p_floor is not None and pair.p_floor * len(pairs) > alpha and not pair.reject]
    if few:
        such = f"{few[0].x!r} and {few[0].y!r} ({few[0].n_x} and {few[0].n_y} rows)"
        yield (
            f"{counted(len(few), 'pair')} can hardly be told apart after the correction, for want of rows, such as {such}: the "
            f"smallest p-value there is {number(few[0].p_floor or 0.0, 2)}, {number(min((few[0].p_floor or 0.0) * len(pairs), 1.0), 2)} corrected"
        )


class _Together(NamedTuple):
    """What the test of all groups together adds to the record, and how its bandwidths were chosen."""

    fields: dict[str, Any]
    rule: str


class _AllGroups(NamedTuple):
    """The rows of all groups against their groups, before the test."""

    comparison: Comparison
    tables: tuple[Table, ...]
    paired: Paired
    test: SeveralSamples
    family: Family

    @classmethod
    def of(cls, comparison: Comparison, samples: Samples, rows: Table) -> Self | None:
        """Return them; None where features stand for the kernel matrices of pairs: these have no such test."""
        run, way, kernels = comparison.run, comparison.way, (comparison.kernel, Linear())
        single = run.options.null != "permutation"
        told: Any = {"kernels": kernels, "bandwidth": comparison.bandwidth, "single": single}
        way = replace(Way.of(way.method, comparison.features, {}, **told), needs_matrices=way.needs_matrices)
        pooled = Groups((rows,), (rows,), ()).with_gaps(comparison.reading.missing)
        if way.method == "features" or way.goes_by_features(
            Groups(pooled.read * 2, pooled.tables * 2, ()), [rows.n_rows], comparison.reading
        ):
            return None
        # Cyclic shifts are what blocks are to two samples.
        options = replace(run.options, resampling="random" if run.options.resampling == "random" else "shifts")
        paired = pair_up(pooled, comparison.reading.missing, options.scale)
        (variable,) = paired.variables
        test = SeveralSamples.of(options, run.engine, None, variable.points, samples.codes[paired.origin])
        label = replace(variable, points=test.points[1], numeric_names=tuple(samples.names), category_names=())
        relabellings = test.different(options.permutations)
        family = choose_pair(
            kernels,
            comparison.bandwidth,
            (variable, label),
            seed=options.seed,
            single=single,
            relabellings=relabellings,
        )
        test = replace(test, points=(moved_to_origin(variable.points, family.sides()[0]), test.points[1]))
        sides = list(zip(test.points, family.sides(), strict=True))
        run.refuse_dense(sides, test.dense, "blocks")
        return cls(comparison, pooled.tables, paired, test, family)

    def step(self) -> Step:
        """Return what the test takes."""
        sides = list(zip(self.test.points, self.family.sides(), strict=True))
        return step_of_test(sides, self.test.options, pairs=pairs_of(self.family))

    def judged(self, progress: Progress | None) -> _Together:
        """Return the test of all groups together."""
        run = self.comparison.run
        test = replace(self.test, engine=run.engine, progress=progress)
        verdict = verdict_of(test, self.family)
        # The kernel of the groups is nobody's choice, and not told.
        kernels, left_out = verdict.kernels[:1], self.family.left_out[:1]
        family = self.family._replace(members=tuple(one[:1] for one in self.family.members), left_out=left_out)
        found = test.groups(kernels[0])
        sizes = found.effect_sizes.tolist()
        unused = (*self.paired.arranged[0].left_out, *left_out[0])
        warnings = (*self.paired.warnings, *paired_copies(self.paired, self.tables))
        fields = run.fields(verdict._replace(kernels=kernels), family, record.FamilyMember, warnings) | {
            "kernel": str(kernels[0]),
            "mmd2_unbiased": found.together.unbiased,
            "mmd2_biased": found.together.biased,
            "effect_sizes": tuple(
                tuple(None if g == h else one for h, one in enumerate(line)) for g, line in enumerate(sizes)
            ),
            "columns": tuple(name for name in self.tables[0].names if name not in unused),
            "columns_left_out": unused,
        }
        return _Together(fields, family.rule)


# Pictures


def groups_figure(result: GroupsResult) -> Any:
    """Return a heat map of the effect sizes of all pairs, or a bar for each sample where all are compared with one."""
    names = [group.name for group in result.groups]
    place = {name: k for k, name in enumerate(names)}
    effect, p = np.full((2, len(names), len(names)), np.nan)
    for pair in result.pairs:
        g, h = place[pair.x], place[pair.y]
        size = pair.effect_size if result.effect_sizes is None else result.effect_sizes[g][h]
        effect[g, h] = effect[h, g] = np.nan if pair.p_adjusted is None else size
        p[g, h] = p[h, g] = np.nan if pair.p_adjusted is None else pair.p_adjusted
    if result.reference is None:
        return pairs_figure(names, effect, p, result.alpha, result.decision)
    first = place[result.reference]
    others = [k for k in range(len(names)) if k != first]
    heading = f"Each against {panels.named(result.reference)}"
    shown = [names[k] for k in others]
    return ranking_figure(
        shown, effect[first, others], p[first, others], result.alpha, result.decision, heading=heading
    )
