"""Results of independence tests in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.report.summaries.words import (
    Cell,
    ResultTable,
    Summary,
    clearest_lines,
    compared,
    counted,
    family_notes,
    input_notes,
    input_text,
    name_list,
    null_text,
    number,
    p_value_meaning,
    p_value_text,
    run_note,
    shortened_kernel,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from kerntest.report.results.independence_record import (
        IndependenceResult,
        JointResult,
        PairApproximation,
        PairEffect,
        ScreenResult,
        SelectionResult,
    )

    AnyResult: TypeAlias = IndependenceResult | ScreenResult | SelectionResult | JointResult

INDEPENDENT = "x and y are independent"
PAIRS_SHOWN, UNTESTED_SHOWN = 30, 5
# A coefficient of correlation that nobody would look at twice.
FAINT = 0.1
ABSENT = "-"
MARKS = {True: Cell(" *", "right"), False: Cell("  ")}
COEFFICIENTS = ("pearson", "spearman", "kendall")
# The numbers of a pair by their headings.
PAIR_COLUMNS = {
    "n": "n",
    "effect": "effect_size",
    "p": "p_adjusted",
    "p exact": "p_step_down",
    "p perm.": "p_permutation",
    **dict(zip(("r", "rho", "tau"), COEFFICIENTS, strict=True)),
}
# Narrower tables would lose numbers: the terminal then wraps the lines itself.
NARROWEST = 78


def independence_sentence(p_value: float, alpha: float, names: tuple[str, str]) -> str:
    """Return the answer of an independence test as a sentence, with the comparison that made it."""
    x, y = names
    return _decided(p_value, alpha, f"{x} and {y} depend on each other", f"No dependence found between {x} and {y}")


def joint_sentence(p_value: float, alpha: float, groups: int) -> str:
    """Return the answer of a joint test as a sentence, with the comparison that made it."""
    none = f"No joint dependence of the {groups} groups found"
    return _decided(p_value, alpha, f"The {groups} groups are not jointly independent", none)


def _decided(p_value: float, alpha: float, found: str, none: str) -> str:
    p_text, sign, alpha_text = compared(p_value, alpha)
    if p_value <= alpha:
        return f"{found} (p = {p_text} {sign} alpha = {alpha_text})."
    return f"{none} at alpha = {alpha_text} (p = {p_text}). That is not proof that there is none."


def _summary(title: str, result: AnyResult, lines: Sequence[tuple[str, str]], *tables: ResultTable) -> Summary:
    """Return lines and tables below those of the inputs, with the decision and the warnings."""
    inputs = result.provenance.inputs
    labels = ("data",) if len(inputs) == 1 else ("X", "Y")
    read = [(label, input_text(one)) for label, one in zip(labels, inputs, strict=True)]
    warnings = tuple(visible(warning) for warning in result.warnings)
    return Summary(title, (*read, *lines), visible(result.decision), warnings, tables)


def _notes(result: AnyResult, columns: Sequence[str], found: Sequence[str] = (), null: str = "") -> list[str]:
    """Return what was read, which columns were taken, what was chosen and how long it took, one line each."""
    notes = [*input_notes(result.provenance), *columns]
    if columns and result.columns_left_out:
        notes.append(f"columns left out: {name_list(result.columns_left_out, shown=None)}")
    null = null or (result.null if isinstance(result.null, str) else null_text(result.null))
    notes += [*found, f"null: {null}, seed {result.provenance.seed}", run_note(result.provenance)]
    return [visible(note) for note in notes]


def _labelled(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return a label beside the first of several lines."""
    return [("" if place else label, text) for place, text in enumerate(texts)]


def independence_summary(result: IndependenceResult) -> Summary:
    """Return the result of an independence test in words."""
    kernels = [visible(shortened_kernel(kernel)) for kernel in (result.kernel_x, result.kernel_y)]
    lines = [
        ("x", name_list(result.columns_x)),
        ("y", name_list(result.columns_y)),
        ("kernels", f"{kernels[0]} on x, {kernels[1]} on y"),
    ]
    if result.family is not None:
        lines += clearest_lines(result.family, "pairs", result.p_value, result.alpha)
    if result.approximation is not None:
        lines.append(("features", pair_features_text(result.approximation)))
    values = {"unbiased": result.hsic_unbiased, "biased": result.hsic_biased}
    other = "biased" if result.estimator == "unbiased" else "unbiased"
    if result.coco is None:
        text = f"HSIC = {number(result.statistic)} ({result.estimator}), {number(values[other])} ({other})"
        lines.append(("statistic", text))
    else:
        lines.append(("statistic", f"COCO = {number(result.coco)}, the largest covariance of functions f(x) and g(y)"))
        if result.witness_correlation is not None:
            lines.append(("", f"the correlation of these two is {number(result.witness_correlation)}"))
        lines.append(("HSIC", f"{number(values['unbiased'])} (unbiased), {number(values['biased'])} (biased)"))
    lines += [
        ("null", null_text(result.null)),
        ("p-value", _p_value_text(result)),
        ("", p_value_meaning(result.p_value, INDEPENDENT)),
    ]
    if result.lags is not None:
        lines.append(("lags", f"shifts by {result.lags.minimum:,} rows and more stand for independence"))
        lines.append(("", _strongest(result.lags.strongest)))
    lines.append(("effect size", f"{number(result.effect_size)} on a scale from 0 (independent) to 1"))
    name = "constrained covariance" if result.coco is not None else "Hilbert-Schmidt independence criterion"
    return _summary(f"Independence test ({name})", result, lines)


def pair_features_text(approximation: PairApproximation) -> str:
    """Return which features stood for the kernels, and how well."""
    count = approximation.features.rpartition(":")[2]
    kind = "Nystroem landmarks" if approximation.kind == "nystroem" else "random Fourier features"
    errors = [number(error, 2) for error in (approximation.kernel_error_x, approximation.kernel_error_y)]
    return f"{count} {kind} a side; kernel values off by {errors[0]} on x, {errors[1]} on y (root mean square)"


def _p_value_text(result: IndependenceResult) -> str:
    """Return a p-value, saying so where the null could not have given a smaller one."""
    text = p_value_text(result.p_value, result.null)
    if result.lags is None or " (" not in text:
        return text
    return f"{number(result.p_value)} (the smallest that {counted(result.lags.shifts, 'shift')} can give)"


def _strongest(lag: int) -> str:
    """Return at which shift of y against x the dependence is strongest, in words."""
    if lag == 0:
        return "the statistic is largest where the rows are paired as they are"
    later, earlier = ("y", "x") if lag > 0 else ("x", "y")
    return f"the statistic is largest where {later} is taken {counted(abs(lag), 'row')} later than {earlier}"


def independence_notes(result: IndependenceResult) -> list[str]:
    """Return what was found out and chosen on the way to a result, one line each."""
    provenance = result.provenance
    columns = [f"columns of x: {name_list(result.columns_x, shown=None)}"]
    columns.append(f"columns of y: {name_list(result.columns_y, shown=None)}")
    notes = [f"kernels {provenance.kernel}, bandwidths: {provenance.bandwidth}, scale {provenance.scale}"]
    notes.append(f"kernels as resolved: {result.kernel}")
    notes += family_notes(result.family, "pairs of kernels")
    return _notes(result, columns, notes)


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


CORRECTIONS = {
    "holm": "Holm: the chance of any false finding is at most alpha",
    "bh": "Benjamini-Hochberg: at most alpha of the findings are false, on average",
    "none": "not corrected",
}


def screen_summary(result: ScreenResult) -> Summary:
    """Return a screen in words."""
    provenance = result.provenance
    what = "every pair of columns" if result.target is None else f"{visible(result.target)!r} and every other column"
    how = f"HSIC ({result.estimator}), kernel {visible(provenance.kernel)}, {provenance.bandwidth} bandwidth"
    lines = [
        ("columns", name_list(result.columns)),
        ("each pair", how),
        ("p-values", f"by {result.null}, for {counted(result.tests, 'test')}; {CORRECTIONS[result.correction]}"),
    ]
    return _summary(f"Independence tests of {what} (HSIC)", result, lines, _pairs_table(result))


def screen_notes(result: ScreenResult) -> list[str]:
    """Return what was chosen on the way to a screen, one line each."""
    columns = [f"columns: {name_list(result.columns, shown=None)}"]
    return _notes(result, columns, null=f"{result.null}, corrected by {result.correction}")


def _pairs_table(result: ScreenResult) -> ResultTable:
    """Return the pairs, the surest first, with what the columns mean and what could not be tested."""
    tested = [pair for pair in result.pairs if pair.p_value is not None]
    untested = [pair for pair in result.pairs if pair.p_value is None]
    shown, found = tested[:PAIRS_SHOWN], [pair for pair in tested if pair.reject]
    missed = [pair for pair in found if _faint(pair)]
    exact = any(pair.p_step_down is not None for pair in shown)
    # A target comes second.
    names = ("x", "y") if result.target is None else ("column",)
    columns = dict(PAIR_COLUMNS)
    if not exact:
        del columns["p exact"]
    if len({pair.n for pair in shown}) < 2:
        del columns["n"]
    rows: list[tuple[str | Cell, ...]] = []
    for pair in shown:
        columns_of = (pair.x, pair.y)[: len(names)]
        numbers = [_number(field, getattr(pair, field)) for field in columns.values()]
        rows.append((MARKS[pair.reject], *map(visible, columns_of), *numbers))
    which = "all" if len(missed) == len(found) else f"{len(missed):,} of the {len(found):,}"
    notes = {
        f"and {len(tested) - len(shown):,} more: --format csv shows all": len(tested) > len(shown),
        f"* p at most alpha = {number(result.alpha)}": any(pair.reject for pair in shown),
        "p: corrected for all tests; p perm.: over relabellings of this pair alone": True,
        "p exact: corrected over relabellings that all tests share": exact,
        f"r, rho, tau: Pearson, Spearman, Kendall; {ABSENT} where a column is not a number": True,
        f"r, rho and tau are all below {FAINT} in {which} marked: they miss the dependence": bool(missed),
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
        narrowest=NARROWEST,
    )


def _faint(pair: PairEffect) -> bool:
    """Whether the coefficients have values and none of them shows anything."""
    values = [value for field in COEFFICIENTS if (value := getattr(pair, field)) is not None]
    return bool(values) and all(abs(value) < FAINT for value in values)


def _number(field: str, value: float | None) -> str:
    """Return a number of a pair; coefficients to two decimals, so that a column of them can be read at a glance."""
    if value is None:
        return ABSENT
    return (
        f"{round(value, 2) + 0.0:.2f}" if field in COEFFICIENTS else number(value, 2) if field != "n" else f"{value:,}"
    )


def selection_sentence(target: str, names: Sequence[str], significant: int) -> str:
    """Return what a selection found as a sentence."""
    if not significant:
        return f"No column was found on which {target!r} depends."
    chosen = ", ".join(repr(name) for name in names[:significant])
    more = "" if significant == len(names) else "; no further column was found to add to it"
    return f"{target!r} depends on {chosen}{more}."


def selection_summary(result: SelectionResult) -> Summary:
    """Return a selection in words."""
    steps = ResultTable(
        (("", "mark"), ("column", "name"), *((name, "number") for name in ("step", "effect", "gain", "p", "p alone"))),
        tuple(
            (
                MARKS[one.significant],
                visible(one.column),
                str(one.step),
                *(number(value, 2) for value in (one.effect_size, one.gain, one.p_value, one.p_alone)),
            )
            for one in result.selected
        ),
        notes=(
            f"* in this step and all before it p is at most alpha = {number(result.alpha)} and the effect grew",
            "effect: of the columns up to this step together; p: of the step; p alone: of the column by itself",
        ),
        narrowest=NARROWEST,
    )
    title = f"Columns that {visible(result.target)!r} depends on, selected one after another (HSIC)"
    return _summary(title, result, [("columns", name_list(result.columns)), ("null", null_text(result.null))], steps)


def selection_notes(result: SelectionResult) -> list[str]:
    """Return what was chosen on the way to a selection, one line each."""
    return _notes(result, [f"candidates: {name_list(result.columns, shown=None)}"])


def joint_summary(result: JointResult) -> Summary:
    """Return the result of a joint test in words."""
    groups = [f"{name_list(one.columns)}: {visible(shortened_kernel(one.kernel))}" for one in result.groups]
    pairs = [
        f"{visible(one.first)} and {visible(one.second)}: p = {number(one.p_value)}, effect {number(one.effect_size)}"
        for one in result.pairs
    ]
    lines = [
        *_labelled("groups", groups),
        ("statistic", f"dHSIC = {number(result.dhsic)}"),
        ("null", null_text(result.null)),
        ("p-value", p_value_text(result.p_value, result.null)),
        ("", p_value_meaning(result.p_value, "the groups are independent")),
        *_labelled("in pairs", pairs),
    ]
    return _summary("Test of joint independence (dHSIC)", result, lines)


def joint_notes(result: JointResult) -> list[str]:
    """Return what was chosen on the way to a joint test, one line each."""
    return _notes(result, ())
