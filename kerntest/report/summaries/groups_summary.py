"""Comparisons of several samples in words: all together, two by two, and by which columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.errors import counted, either
from kerntest.report.summaries.size_summary import shift_clause
from kerntest.report.summaries.test_summary import (
    CORRECTIONS,
    MARKS,
    PAIRS_SHOWN,
    UNTESTED_SHOWN,
    contents_lines,
    decided,
    estimates,
    summary_of,
)
from kerntest.report.summaries.words import (
    ResultTable,
    Summary,
    clearest_lines,
    name_list,
    null_text,
    number,
    p_number,
    p_value_meaning,
    p_value_text,
    shortened_kernel,
    visible,
)

if TYPE_CHECKING:
    from kerntest.report.results.groups_record import GroupsResult, PairsWithinMargin
    from kerntest.report.results.two_sample_record import MinimumEffect, SmallestShift
    from kerntest.report.summaries.words import Cell

# Groups of which every two have a cell in a table, and pairs that are explained, with so many columns of each.
GROUPS_IN_TABLE, PAIRS_EXPLAINED, COLUMNS_EXPLAINED = 12, 5, 3


def groups_sentence(
    p_value: float,
    alpha: float,
    pairs: tuple[int, int, int],
    groups: tuple[int, str | None],
    *,
    reference: str | None,
    together: bool,
    shift: SmallestShift | None,
    margin: PairsWithinMargin | None = None,
    minimum: MinimumEffect | None = None,
) -> str:
    """Return what a comparison of several samples found as a sentence; of `pairs` so many were tested, differ, and could not be tested.

    Where none do, `shift` is what would have been found in each.
    """
    (tests, rejected, untested), (count, by) = pairs, groups
    noun, kind = "pair" if reference is None else "group" if by is not None else "table", "tested " * bool(untested)
    if margin is not None:
        told = f"the same in {margin.same:,} of {counted(tests, f'{kind}pair')}, different in {margin.differ:,}, undecided in {margin.undecided:,}"
        plain = groups_sentence(p_value, alpha, pairs, groups, reference=reference, together=together, shift=shift)
        return f"Within {margin.asked.strip()} {told} (each at alpha / {tests:,}). {plain}"
    made = counted(tests, f"{kind}{noun}")
    among = f"{rejected:,} of {made} {'differs' if rejected == 1 else 'differ'}"
    among += f" from {reference!r}" * (reference is not None)
    among += "" if minimum is None else f" by at least {minimum.asked.strip()}"
    left = f", {untested:,} cannot be tested" if untested else ""
    if together:
        all_groups = f"the {count} groups of {by!r}"
        answer = decided(p_value, alpha, f"T{all_groups[1:]} differ", f"No difference found between {all_groups}")
        return f"{answer} {among}{left} (corrected by Holm).{shift_clause(shift, ' in each pair')}"
    among = among if rejected else f"No difference found in {made}"
    return (
        f"{among}{left} (p-values corrected by Holm, alpha = {number(alpha)}).{shift_clause(shift, f' in each {noun}')}"
    )


def groups_summary(result: GroupsResult) -> Summary:
    """Return a comparison of several samples in words."""
    lines = [("columns", name_list(result.columns))]
    if result.by is not None:
        lines.append(("groups", name_list([f"{one.name} ({one.n})" for one in result.groups])))
    if result.kernel is not None and result.null is not None and result.statistic is not None:
        lines.append(("kernel", visible(shortened_kernel(result.kernel))))
        lines += clearest_lines(result.family, "kernels", result.p_value, result.alpha)
        lines += [
            estimates("MMD^2", result.estimator, result.mmd2_unbiased or 0.0, result.mmd2_biased or 0.0),
            ("", "the mean over all pairs of rows of different groups"),
            ("null", null_text(result.null)),
            ("p-value", p_value_text(result.p_value, result.null)),
            ("", p_value_meaning(result.p_value, "there is no difference")),
            ("effect size", f"{number(result.effect_size or 0.0)} on a scale from 0 (alike) to 1"),
        ]
    relabellings = {pair.permutations for pair in result.pairs if pair.permutations is not None}
    most = f", {'up to ' * (len(relabellings) > 1)}{max(relabellings):,} relabellings" if relabellings else ""
    by_itself = f"each by itself{most}"
    lines.append(("pairs", f"{by_itself}; {CORRECTIONS[result.correction]}"))
    tables = [*_effects_table(result), _samples_table(result), *_explained_pairs(result)]
    return summary_of("Test of several samples (maximum mean discrepancy)", result, lines, *tables)


def _effects_table(result: GroupsResult) -> list[ResultTable]:
    """Return the effect sizes of every two groups, where these are few."""
    if result.effect_sizes is None or result.reference is not None or len(result.groups) > GROUPS_IN_TABLE:
        return []
    names = [visible(group.name) for group in result.groups]
    cells = [["" if one is None else f"{one:.2f}" for one in line] for line in result.effect_sizes]
    rows = tuple((name, *line) for name, line in zip(names, cells, strict=True))
    title = "Effect sizes of every two:"
    return [ResultTable((("", "name"), *((name, "number") for name in names)), rows, title, lettered=True)]


def _samples_table(result: GroupsResult) -> ResultTable:
    """Return the pairs, the surest first, and what could not be tested."""
    tested = [pair for pair in result.pairs if pair.p_adjusted is not None]
    untested = [pair for pair in result.pairs if pair.p_adjusted is None]
    place, sizes = {group.name: k for k, group in enumerate(result.groups)}, result.effect_sizes
    rows: list[tuple[str | Cell, ...]] = []
    # Strata, and partners, leave each pair other rows of a group.
    used = {named for pair in tested for named in ((pair.x, pair.n_x), (pair.y, pair.n_y))}
    apart = len(used) > len({name for name, _ in used})
    for pair in tested[:PAIRS_SHOWN]:
        effect = pair.effect_size if sizes is None else sizes[place[pair.x]][place[pair.y]]
        verdict = [] if result.margin is None else ["" if pair.margin is None else pair.margin.verdict]
        shown = (number(effect or 0.0, 2), *(p_number(p or 0.0, 2) for p in (pair.p_adjusted, pair.p_value)))
        counts = (f"{pair.n_x:,}", f"{pair.n_y:,}") * apart
        rows.append((MARKS[pair.reject], visible(pair.x), visible(pair.y), *counts, *shown, *verdict))
    own = "that shows the pair most clearly" if sizes is None else "above, to be compared"
    notes = {
        f"and {len(tested) - PAIRS_SHOWN:,} more: {either('--format csv', 'to_frame()')} shows all": len(tested)
        > PAIRS_SHOWN,
        f"* p at most alpha = {number(result.alpha)}": any(pair.reject for pair in tested[:PAIRS_SHOWN]),
        f"p: corrected for all pairs; p alone: of the pair; effect: under the kernel {own}": True,
    }
    reasons = [f"not tested: {visible(pair.x)}, {visible(pair.y)}: {visible(pair.note or '')}" for pair in untested]
    if len(reasons) > UNTESTED_SHOWN:
        reasons[UNTESTED_SHOWN:] = [f"and {counted(len(reasons) - UNTESTED_SHOWN, 'more pair')} not tested"]
    told = tuple(note for note, is_told in notes.items() if is_told)
    return ResultTable(
        (
            ("", "mark"),
            ("X", "name"),
            ("Y", "name"),
            *((name, "number") for name in (*("n X", "n Y") * apart, "effect", "p", "p alone")),
            *(("margin", "text"),) * (result.margin is not None),
        ),
        tuple(rows),
        "Two by two, the surest first:",
        notes=(*told, *reasons),
        keep="p",
    )


def _explained_pairs(result: GroupsResult) -> list[ResultTable]:
    """Return the columns that differ most in the first pairs, if that was asked for."""
    explained = [(pair, pair.explanation) for pair in result.pairs if pair.explanation is not None]
    if not explained:
        return []
    rows = []
    for pair, explanation in explained[:PAIRS_EXPLAINED]:
        names = [visible(pair.x), visible(pair.y)]
        for effect in explanation.columns[:COLUMNS_EXPLAINED]:
            told = "" if effect.x is None or effect.y is None else "; ".join(contents_lines(effect.x, effect.y))
            rows.append(
                (*names, visible(effect.column), number(effect.effect_size, 3), number(effect.p_adjusted), told)
            )
            names = ["", ""]
    notes = ["p alone: of the column by itself, under kernels of its own, corrected for all columns of the pair"]
    if len(explained) > PAIRS_EXPLAINED or any(len(one.columns) > COLUMNS_EXPLAINED for _, one in explained):
        notes.insert(
            0,
            f"the first {PAIRS_EXPLAINED} pairs and {COLUMNS_EXPLAINED} columns of each: {either('--json', 'to_dict()')} has all",
        )
    return [
        ResultTable(
            (
                ("X", "name"),
                ("Y", "name"),
                ("column", "name"),
                ("effect", "number"),
                ("p alone", "number"),
                ("X -> Y", "text"),
            ),
            tuple(rows),
            "Columns of each pair, the largest effect first:",
            tuple(notes),
            keep="effect",
        )
    ]
