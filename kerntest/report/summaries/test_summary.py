"""Results of tests in words: what was found, how, and which tables and notes go with it."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from kerntest.errors import counted, either, option
from kerntest.report.results.record import ALL_PERMUTATIONS
from kerntest.report.summaries.size_summary import (
    interval_lines,
    margin_lines,
    margin_text,
    minimum_clause,
    minimum_text,
    rows_to_decide_text,
    shift_clause,
)
from kerntest.report.summaries.words import (
    COLUMNS_SHOWN,
    Cell,
    ResultTable,
    Summary,
    clearest_lines,
    compared,
    family_notes,
    input_notes,
    input_text,
    labelled,
    name_list,
    null_text,
    number,
    p_is,
    p_number,
    p_value_meaning,
    p_value_text,
    percent,
    run_note,
    shortened_kernel,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.report.results import independence_record as pair_record
    from kerntest.report.results import record, two_sample_record

PAIRS_SHOWN, UNTESTED_SHOWN, INPUTS_SHOWN = 30, 5, 12
# A coefficient of correlation that nobody would look at twice.
FAINT = 0.1
ABSENT = "-"
MARKS = {True: Cell(" *", "right"), False: Cell("  ")}
# The numbers of a pair by their headings, coefficients of correlation last.
PAIR_COLUMNS = {
    "n": "n",
    "effect": "effect_size",
    "p": "p_adjusted",
    "p exact": "p_step_down",
    "p perm.": "p_permutation",
    "r": "pearson",
    "rho": "spearman",
    "tau": "kendall",
}
COEFFICIENTS = tuple(PAIR_COLUMNS.values())[-3:]
CORRECTIONS = {
    "holm": "Holm: the chance of any false finding is at most alpha",
    "bh": "Benjamini-Hochberg: at most alpha of the findings are false, on average",
    "none": "not corrected",
}


# What the results of all tests say


NO_PROOF = " That is not proof that there is none."


def decided(p_value: float, alpha: float, found: str, none: str, more: str = "", *, exact: bool = True) -> str:
    """Return the answer of a test as a sentence, with the comparison that made it."""
    (p_text, sign, alpha_text), how = compared(p_value, alpha), "" if exact else ", p approximate"
    if p_value <= alpha:
        equal = "" if p_text.startswith("<") else "= "
        return f"{found} (p {equal}{p_text} {sign} alpha = {alpha_text}{how}){more}."
    return f"{none} at alpha = {alpha_text} (p = {p_text}{how and ', approximate'}).{NO_PROOF}"


def summary_of(
    title: str, result: record.AnyTestResult, lines: Sequence[tuple[str, str]], *tables: ResultTable
) -> Summary:
    """Return lines and tables below those of the inputs, with the decision and the warnings."""
    inputs = result.provenance.inputs
    labels = ("data",) if len(inputs) == 1 else ("X", "Y", *("" for _ in inputs[2:]))
    read = [(label, input_text(one)) for label, one in zip(labels, inputs[:INPUTS_SHOWN], strict=False)]
    if len(inputs) > INPUTS_SHOWN:
        read.append(("", f"and {len(inputs) - INPUTS_SHOWN:,} more"))
    warnings = tuple(visible(warning) for warning in result.warnings)
    return Summary(title, (*read, *lines), visible(result.decision), warnings, tables)


def notes_of(result: Any) -> list[str]:
    """Return what was read, which columns were taken, what was chosen and how long it took, one line each."""
    made, explanation, names = result.provenance, getattr(result, "explanation", None), {"used": result.columns}
    if pairs := hasattr(result, "columns_x"):
        names = {"of x": result.columns_x, "of y": result.columns_y}
    names["left out"] = result.columns_left_out
    notes = [
        *input_notes(made),
        *(f"columns {which}: {name_list(some, None)}" for which, some in names.items() if some),
    ]
    notes.append(f"kernel {made.kernel}, bandwidth {made.bandwidth}, scale {made.scale}")
    if getattr(result, "kernel", None) is not None:
        notes.append(f"kernel as resolved: {result.kernel}")
    notes += family_notes(getattr(result, "family", None), "pairs of kernels" if pairs else "kernels")
    if explanation is not None:
        notes.append("columns alone, each by the kernel that shows it most clearly:")
        notes += [
            f"  {effect.column}: effect {number(effect.effect_size)}, z = {number(effect.z)}, {p_is(effect.p_value)}, "
            f"corrected {number(effect.p_adjusted)}: {shortened_kernel(effect.kernel)}"
            for effect in explanation.columns
        ]
    null = "of each pair" if result.null is None else result.null
    null = f"{null}, corrected by {result.correction}" if isinstance(null, str) else null_text(null)
    return [visible(note) for note in (*notes, f"null: {null}, seed {made.seed}", run_note(made))]


def estimates(name: str, chosen: str, unbiased: float, biased: float) -> tuple[str, str]:
    """Return the line of a statistic: the estimate that was tested, and the other one."""
    both = [f"{number(unbiased)} (unbiased)", f"{number(biased)} (biased)"]
    return "statistic", f"{name} = {', '.join(both if chosen == 'unbiased' else both[::-1])}"


def _judged(result: record.StatisticResult, nothing: str, p_value: str = "") -> list[tuple[str, str]]:
    """Return the lines of the null and of the p-value, and what that says where there is nothing to find."""
    p_value = p_value or p_value_text(result.p_value, result.null)
    return [("null", null_text(result.null)), ("p-value", p_value), ("", p_value_meaning(result.p_value, nothing))]


def _features(kind: str, number_of: str, *errors: str) -> tuple[str, str]:
    """Return the line of which features stood for the kernels, and how far they are from these."""
    of = "Nystroem landmarks" if kind == "nystroem" else "random Fourier features"
    return "features", f"{number_of.format(of)}; kernel values off by {', '.join(errors)} (root mean square)"


# Two samples


def two_sample_summary(result: two_sample_record.TwoSampleResult) -> Summary:
    """Return the result of a two-sample test in words."""
    lines = [("columns", name_list(result.columns)), ("kernel", visible(shortened_kernel(result.kernel)))]
    lines += clearest_lines(result.family, "kernels", result.p_value, result.alpha)
    if result.approximation is not None:
        made = result.approximation
        lines.append(_features(made.kind, f"{made.number:,} {{}}", number(made.kernel_error, 2)))
    lines += [
        estimates("MMD^2", result.estimator, result.mmd2_unbiased, result.mmd2_biased),
        *_judged(result, "there is no difference"),
        ("effect size", f"{number(result.effect_size)} on a scale from 0 (alike) to 1"),
        ("MMD", discrepancy_text(result)),
    ]
    # A margin has bounds of its own, also where an interval would not hold.
    if result.interval is not None and (result.margin is None or result.interval.lower is not None):
        lines += interval_lines(result.interval, result.kernel)
    if result.minimum_effect is not None:
        lines.append(("minimum", minimum_text(result.minimum_effect, result.kernel)))
    if result.margin is not None:
        lines += margin_lines(result.margin, result.kernel)
    tables = []
    if result.explanation is not None:
        lines += typical_rows(result.explanation)
        tables.append(explanation_table(result.explanation, within=result.strata))
    return summary_of("Two-sample test (maximum mean discrepancy)", result, lines, *tables)


def decision_sentence(
    p_value: float,
    alpha: float,
    subject: str = "the two files",
    *,
    minimum_effect: two_sample_record.MinimumEffect | None = None,
    margin: two_sample_record.Margin | None = None,
    smallest_shift: two_sample_record.SmallestShift | None = None,
    interval: two_sample_record.Interval | None = None,
    exact: bool = True,
) -> str:
    """Return the answer of a two-sample test as a sentence, and how that stands to what was asked of its size."""
    del interval
    subject = f"{subject[:1].upper()}{subject[1:]}"
    told = partial(decided, p_value, alpha, exact=exact)
    decision = told(f"{subject} differ", "No difference found", minimum_clause(minimum_effect))
    if margin is not None:
        sides = f"MMD is between {number(margin.lower_bound)} and {number(margin.upper_bound)}"
        answer = {
            "same": f"{subject} are the same within {margin_text(margin)}: MMD is at most {number(margin.upper_bound)}",
            "differ": f"{subject} differ by more than {margin_text(margin)}: MMD is at least {number(margin.lower_bound)}",
            "undecided": f"Undecided whether {subject[:1].lower()}{subject[1:]} are the same within {margin_text(margin)}: {sides}"
            f"; {rows_to_decide_text(margin)}",
        }[margin.verdict]
        if margin.verdict == "same" and p_value <= alpha:
            decision = told("There is a difference, but a smaller one", "")
        # The margin says more than that nothing was found.
        return f"{answer}. {decision if margin.verdict == 'undecided' else decision.removesuffix(NO_PROOF)}"
    return decision + shift_clause(smallest_shift)


def discrepancy_text(result: two_sample_record.TwoSampleResult) -> str:
    """Return MMD with its standard error, or why there is none."""
    error, null = result.mmd_standard_error, result.null
    if error is not None:
        return f"{number(result.mmd)} +- {number(error)} (standard error)"
    # Where the test rejects, it is strata of one row that have none.
    why = "too near 0" if not result.strata or result.p_value > result.alpha else "some strata have too few rows"
    if null.p_floor is not None and null.p_floor > result.alpha:
        # No MMD, however large, could have been told from 0.
        why = f"too few {'rows' if null.resampling == ALL_PERMUTATIONS else 'relabellings'}"
    return f"{number(result.mmd)} ({why} for a standard error)"


def typical_rows(explanation: two_sample_record.Explanation) -> list[tuple[str, str]]:
    """Return the most typical rows of each sample."""
    typical = []
    for sample in dict.fromkeys(row.sample for row in explanation.rows):
        rows = [row for row in explanation.rows if row.sample == sample]
        unit = "rows" if any(row.line is None for row in rows) else "lines"
        places = (f"{row.line or row.row}{f' of {visible(row.file)}' if row.file else ''}" for row in rows)
        typical.append(f"{visible(sample)}: {unit} {', '.join(places)}")
    return labelled("typical rows", typical)


def explanation_table(explanation: two_sample_record.Explanation, *, within: str | None = None) -> ResultTable:
    """Return the columns by how much each differs alone, `within` strata too, with what they were and are in all rows."""
    columns, rows = explanation.columns, []
    untested = sum(effect.p_without is None for effect in columns)
    # Of a single column the p-value of the test says it.
    numbers = [
        "effect",
        *(["p alone"] if len(columns) > 1 else []),
        *(["p without"] if untested < len(columns) else []),
    ]
    for effect in columns[:COLUMNS_SHOWN]:
        found = (number(effect.effect_size, 3), number(effect.p_adjusted), _or_absent(effect.p_without))
        told = "" if effect.x is None or effect.y is None else "; ".join(contents_lines(effect.x, effect.y))
        rows.append((visible(effect.column), *found[: len(numbers)], told))
    more, notes = len(columns) - COLUMNS_SHOWN, []
    if more > 0:
        notes.append(f"and {more:,} more: {either('--json', 'to_dict()')} has all")
    if len(columns) > 1:
        notes.append("p alone: of the column by itself, under kernels of its own, corrected for all columns")
    if untested < len(columns):
        notes[-1] += "; p without: of all other columns together"
    if within is not None:
        notes.append(
            f"effects and p are within {visible(within)!r}; X -> Y as if both had as many rows of every {visible(within)!r}"
        )
    if untested and len(columns) > 1:
        which = "none" if untested == len(columns) else f"the first {len(columns) - untested:,} only"
        notes.append(
            f"tests of all without one column: {which}, for so large tables; {option('exclude', 'COLUMN')} makes one"
        )
    return ResultTable(
        (("column", "name"), *((name, "number") for name in numbers), ("X -> Y", "text")),
        tuple(rows),
        "Each column, the largest effect first:" if columns[0].effect_size else "Each column, none with an effect:",
        tuple(notes),
        keep="effect",
    )


def _or_absent(p_value: float | None) -> str:
    return ABSENT if p_value is None else p_number(p_value)


def contents_lines(x: two_sample_record.ColumnContents, y: two_sample_record.ColumnContents) -> list[str]:
    """Return what a column was and what it is; quartiles on a line of their own."""
    parts, quartiles = [], []
    if x.standard_deviation is not None:
        spread = max(x.standard_deviation, y.standard_deviation or 0.0)

        def told(*values: float | str | None) -> str:
            return ", ".join(value if isinstance(value, str) else _to_spread(value, spread) for value in values)

        parts.append(f"mean {told(x.mean)} -> {told(y.mean)}")
        # Only dates have a mean in words.
        days = " days" if isinstance(x.mean, str) else ""
        parts.append(f"sd {told(x.standard_deviation)} -> {told(y.standard_deviation)}{days}")
        if x.value is None:
            of_x, of_y = (told(one.lower_quartile, one.median, one.upper_quartile) for one in (x, y))
            quartiles = [f"quartiles {of_x} -> {of_y}"]
    if x.value is not None:
        parts.append(f"{visible(x.value)}: {percent(x.share or 0.0)} -> {percent(y.share or 0.0)}")
    if x.missing or y.missing:
        parts.append(f"missing {percent(x.missing)} -> {percent(y.missing)}")
    return [", ".join(parts), *quartiles]


def _to_spread(value: float | None, spread: float) -> str:
    """Return a number to about a hundredth of the spread of what it belongs to."""
    if not value or not spread or not math.isfinite(value) or not math.isfinite(spread):
        return number(math.nan if value is None else value)
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(spread)) + 3
    return number(value, min(max(digits, 1), 15))


# Independence


def independence_sentence(p_value: float, alpha: float, names: tuple[str, str]) -> str:
    """Return the answer of an independence test as a sentence."""
    x, y = names
    return decided(p_value, alpha, f"{x} and {y} depend on each other", f"No dependence found between {x} and {y}")


def joint_sentence(p_value: float, alpha: float, groups: int) -> str:
    """Return the answer of a joint test as a sentence."""
    none = f"No joint dependence of the {groups} groups found"
    return decided(p_value, alpha, f"The {groups} groups are not jointly independent", none)


# What measures other than HSIC are called, and what they are.
SPECTRAL = {
    "coco": ("constrained covariance", "the largest covariance of functions f(x) and g(y)"),
    "kcc": ("kernel canonical correlation", "the largest regularised correlation of functions f(x) and g(y)"),
    "kmi": ("kernel mutual information", "in nats, which adds up all correlations of functions of x and y"),
}
PENALTY_TOLD = "a share of 0.03 n^(-1/4) of the variance"


def independence_summary(result: pair_record.IndependenceResult) -> Summary:
    """Return the result of an independence test in words."""
    kernels = [visible(shortened_kernel(kernel)) for kernel in (result.kernel_x, result.kernel_y)]
    lines = [
        ("x", name_list(result.columns_x)),
        ("y", name_list(result.columns_y)),
        ("kernels", f"{kernels[0]} on x, {kernels[1]} on y"),
        *clearest_lines(result.family, "pairs", result.p_value, result.alpha),
    ]
    if result.approximation is not None:
        made = result.approximation
        errors = f"{number(made.kernel_error_x, 2)} on x", f"{number(made.kernel_error_y, 2)} on y"
        lines.append(_features(made.kind, f"{made.features.rpartition(':')[2]} {{}} a side", *errors))
    statistic = estimates("HSIC", result.estimator, result.hsic_unbiased, result.hsic_biased)
    if result.statistic_name == "hsic":
        lines.append(statistic)
    else:
        what = SPECTRAL[result.statistic_name][1]
        lines.append(("statistic", f"{result.statistic_name.upper()} = {number(result.statistic)}, {what}"))
        if result.penalties is not None:
            x, y = (number(one) for one in result.penalties)
            lines.append(("", f"regularised by {x} on x and {y} on y, {PENALTY_TOLD}"))
        if result.witness_correlation is not None:
            lines.append(("", f"the correlation of f(x) and g(y) is {number(result.witness_correlation)}"))
        lines.append(("HSIC", f"{number(result.hsic_unbiased)} (unbiased), {number(result.hsic_biased)} (biased)"))
    lags, p_value = result.lags, p_value_text(result.p_value, result.null)
    if lags is not None and " (" in p_value:
        p_value = f"{number(result.p_value)} (the smallest that {counted(lags.shifts, 'shift')} can give)"
    lines += _judged(result, "x and y are independent", p_value)
    if lags is not None:
        independent = f"shifts by {lags.minimum:,} rows and more" if lags.minimum > 1 else f"all {lags.shifts:,} shifts"
        lines += labelled("lags", [f"{independent} stand for independence", _strongest(lags.strongest)])
    lines.append(("effect size", f"{number(result.effect_size)} on a scale from 0 (independent) to 1"))
    of_groups = len(result.provenance.inputs) == len(result.columns_y) == 1 and result.p_value <= result.alpha
    if of_groups and result.kernel_y.partition("(")[0] in {"hamming", "delta"}:
        by = f"{either('`kerntest mmd`', 'mmd_test')} with {option('by', result.columns_y[0])}"
        lines.append(("groups", f"{by} says which of at most 20 groups differ, two by two"))
    name = SPECTRAL.get(result.statistic_name, ("Hilbert-Schmidt independence criterion",))[0]
    return summary_of(f"Independence test ({name})", result, lines)


def _strongest(lag: int) -> str:
    """Return at which shift of y against x the dependence is strongest, in words."""
    if lag == 0:
        return "the statistic is largest where the rows are paired as they are"
    later, earlier = ("y", "x") if lag > 0 else ("x", "y")
    return f"the statistic is largest where {later} is taken {counted(abs(lag), 'row')} later than {earlier}"


def screen_sentence(tests: int, rejected: int, alpha: float, correction: str, target: str | None) -> str:
    """Return what a screen found as a sentence."""
    what = "pair" if target is None else "column"
    if not tests:
        return f"No {what} could be tested: nothing is known of their dependence."
    how = {"holm": "corrected by Holm", "bh": "corrected by Benjamini-Hochberg", "none": "not corrected"}[correction]
    among = counted(tests, what)
    if target is not None:
        none, found = f"No column of {tests:,} depends on {target!r}", f"{target!r} depends on {rejected:,} of {among}"
    else:
        none = f"No dependence found among {among}"
        found = f"{rejected:,} of {among} {'depends' if rejected == 1 else 'depend'} on each other"
    return f"{found if rejected else none} (p-values {how}, alpha = {number(alpha)})."


def screen_summary(result: pair_record.ScreenResult) -> Summary:
    """Return a screen in words."""
    provenance = result.provenance
    what = "every pair of columns" if result.target is None else f"{visible(result.target)!r} and every other column"
    how = f"HSIC ({result.estimator}), kernel {visible(provenance.kernel)}, {provenance.bandwidth} bandwidth"
    lines = [
        ("columns", name_list(result.columns)),
        ("each pair", how),
        (
            "p-values",
            f"by {result.null} (approximate), for {counted(result.tests, 'test')}; {CORRECTIONS[result.correction]}",
        ),
    ]
    return summary_of(f"Independence tests of {what} (HSIC)", result, lines, _pairs_table(result))


def _pairs_table(result: pair_record.ScreenResult) -> ResultTable:
    """Return the pairs, the surest first, with what the columns mean and what could not be tested."""
    tested = [pair for pair in result.pairs if pair.p_value is not None]
    untested = [pair for pair in result.pairs if pair.p_value is None]
    shown, found = tested[:PAIRS_SHOWN], [pair for pair in tested if pair.reject]
    corrected = result.correction != "none" and len(tested) > 1
    missed = [pair for pair in found if _missed(pair, result.alpha / (len(tested) if corrected else 1))]
    level = f"not significant{', corrected for all tests,' * corrected}"
    # That is of any false finding, not of their share.
    exact = result.correction != "bh" and any(pair.p_step_down is not None for pair in shown)
    # A target comes second.
    names = ("x", "y") if result.target is None else ("column",)
    columns = dict(PAIR_COLUMNS)
    if not exact:
        del columns["p exact"]
    if len({pair.n for pair in shown}) < 2:
        del columns["n"]
    twice = exact and all(pair.p_step_down == pair.p_permutation for pair in shown)
    if twice:
        del columns["p perm."]
    rows: list[tuple[str | Cell, ...]] = []
    for pair in shown:
        columns_of = (pair.x, pair.y)[: len(names)]
        numbers = [_number(field, getattr(pair, field)) for field in columns.values()]
        rows.append((MARKS[pair.reject], *map(visible, columns_of), *numbers))
    which = "all" if len(missed) == len(found) else f"{len(missed):,} of the {len(found):,}"
    notes = {
        f"and {len(tested) - len(shown):,} more: {either('--format csv', 'to_frame()')} shows all": len(tested)
        > len(shown),
        f"* p at most alpha = {number(result.alpha)}": any(pair.reject for pair in shown),
        "p: corrected for all tests": twice,
        "p: corrected for all tests; p perm.: over relabellings of this pair alone": not twice,
        f"p exact: corrected over relabellings that all tests share{'; without correction each is the same' * twice}": exact,
        f"r, rho, tau: Pearson, Spearman, Kendall; {ABSENT} where a column is not a number": True,
        f"r, rho and tau are below {FAINT} and {level} in {which} marked: they miss the dependence": bool(missed),
    }
    reasons = [
        f"not tested: {visible(pair.x)}, {visible(pair.y)}: {visible(pair.note or 'no reason given')}"
        for pair in untested[:UNTESTED_SHOWN]
    ]
    if len(untested) > UNTESTED_SHOWN:
        reasons.append(f"and {counted(len(untested) - UNTESTED_SHOWN, 'more pair')} not tested")
    return ResultTable(
        (("", "mark"), *((name, "name") for name in names), *((name, "number") for name in columns)),
        tuple(rows),
        notes=(*(note for note, told in notes.items() if told), *reasons),
        keep="p",
    )


def _missed(pair: pair_record.PairEffect, alpha: float) -> bool:
    """Whether the coefficients have values, are small, and none is significant at a level by its normal approximation."""
    from statistics import NormalDist  # noqa: PLC0415 - 3 ms that only this needs

    n, reach = pair.n, NormalDist().inv_cdf(1.0 - alpha / 2.0)
    # Of independent variables; that of Kendall's is smaller.
    error, of_kendall = (math.sqrt(one / (n - 1)) for one in (1.0, 2.0 * (2 * n + 5) / (9 * n)))
    errors = {field: of_kendall if field == "kendall" else error for field in COEFFICIENTS}
    values = [(abs(value), errors[field]) for field in COEFFICIENTS if (value := getattr(pair, field)) is not None]
    return bool(values) and all(value < min(FAINT, reach * error) for value, error in values)


def _number(field: str, value: float | None) -> str:
    """Return a number of a pair; coefficients to two decimals, so that a column of them can be read at a glance."""
    if value is None:
        return ABSENT
    if field in COEFFICIENTS or field == "n":
        return f"{value:,}" if field == "n" else f"{round(value, 2) + 0.0:.2f}"
    return p_number(value, 2) if field.startswith("p_") else number(value, 2)


def selection_sentence(target: str, steps: Sequence[pair_record.SelectedColumn]) -> str:
    """Return what a selection found as a sentence."""
    found = [repr(one.column) for one in steps if one.significant]
    if not found:
        return f"No column was found on which {target!r} depends."
    more = "" if len(found) == len(steps) else "; no further column was found to add to it"
    return f"{target!r} depends on {', '.join(found)}{more}."


def selection_summary(result: pair_record.SelectionResult) -> Summary:
    """Return a selection in words."""
    steps = ResultTable(
        (("", "mark"), ("column", "name"), *((name, "number") for name in ("step", "effect", "added", "p", "p alone"))),
        tuple(
            (
                MARKS[one.significant],
                visible(one.column),
                str(one.step),
                *(number(value, 2) for value in (one.effect_size, one.partial_effect)),
                *(p_number(value, 2) for value in (one.p_value, one.p_alone)),
            )
            for one in result.selected
        ),
        notes=(
            f"* in this step and all before it p is at most alpha = {number(result.alpha)}",
            "effect: of the columns up to this step together; added: of this one on what those before it leave",
            "p: of the step, approximate after the first; p alone: of the column by itself",
        ),
        keep="p",
    )
    title = f"Columns that {visible(result.target)!r} depends on, selected one after another (HSIC)"
    return summary_of(title, result, [("columns", name_list(result.columns)), ("null", null_text(result.null))], steps)


def joint_summary(result: pair_record.JointResult) -> Summary:
    """Return the result of a joint test in words."""
    groups = [f"{name_list(one.columns)}: {visible(shortened_kernel(one.kernel))}" for one in result.groups]
    pairs = [
        f"{visible(one.first)} and {visible(one.second)}: {p_is(one.p_value)}, effect {number(one.effect_size)}"
        for one in result.pairs
    ]
    lines = [
        *labelled("groups", groups),
        ("statistic", f"dHSIC = {number(result.dhsic)}"),
        *_judged(result, "the groups are independent"),
        *labelled("in pairs", pairs),
    ]
    return summary_of("Test of joint independence (dHSIC)", result, lines)
