"""From what a first pass has counted to a layout of the columns, a sample of the rows, and warnings."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.diagnostics import (
    FEWEST_ROWS,
    apart_text,
    left_out_unevenly,
    repeated_rows,
    time_trouble,
    unequal_sizes,
)
from kerntest.data.messages import option_value
from kerntest.data.rows import reason_from_facts
from kerntest.errors import UndecidedError
from kerntest.inference.streamed.rows import Layout
from kerntest.inference.streamed.tally import MOST_LEVELS, NumberFacts, RandomRows
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.inference.sides import Scale
    from kerntest.inference.streamed.rows import Wanted
    from kerntest.inference.streamed.tally import Tally


def lay_out(
    wanted: Sequence[Wanted], facts: Sequence[Tally], scale: Scale
) -> tuple[Layout, tuple[str, ...], tuple[str, ...]]:
    """Return how columns are laid out, which are left out, and why.

    Raises
    ------
    UndecidedError
        If the numbers of a column are too far apart to be scaled.
    """
    n = sum(tally.used for tally in facts)
    numbers: dict[str, tuple[float, float]] = {}
    levels: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, str] = {}
    for one in wanted:
        if one.kind in {"boolean", "text"}:
            each = [tally.levels.get(one.name, set()) for tally in facts]
            found = None if any(part is None for part in each) else set().union(*(part or () for part in each))
            reason = _too_many(one.name) if found is None or len(found) > MOST_LEVELS else None
            n_levels, value = len(found or ()), 0.0
            constant = n_levels == 1
            levels[one.name] = tuple(sorted(found or ()))
        else:
            pooled = _pooled([tally.numbers[one.name] for tally in facts])
            constant, n_levels, value, reason = pooled.low == pooled.high, 0, pooled.low, None
            spread = math.sqrt(pooled.squares / pooled.count)
            if not math.isfinite(spread) or not (constant or spread):
                raise _out_of_range(one.name)
            numbers[one.name] = (pooled.mean, spread) if scale == "standardize" else (0.0, 1.0)
        reason = reason or reason_from_facts(
            one.name, one.kind, n_rows=n, n_levels=n_levels, constant=constant, value=value
        )
        if reason is not None:
            reasons[one.name] = reason
    numeric = tuple(name for name in numbers if name not in reasons)
    categories = tuple(name for name in levels if name not in reasons)
    layout = Layout(
        numeric,
        categories,
        np.array([numbers[name][0] for name in numeric]),
        np.array([numbers[name][1] for name in numeric]),
        tuple(levels[name] for name in categories),
    )
    return layout, tuple(reasons), tuple(reasons.values())


def _pooled(each: Sequence[NumberFacts]) -> NumberFacts:
    """Return what is known of a column of all inputs together."""
    pooled = replace(each[0])
    for facts in each[1:]:
        pooled.add(facts)
    return pooled


def pooled_sample(facts: Sequence[Tally], layout: Layout, most: int) -> Points:
    """Return the sampled rows of all inputs together, in the random order of their keys."""
    drawn = [tally.sample for tally in facts if tally.sample is not None]
    pooled = RandomRows(drawn[0].keys, dict(drawn[0].numbers), dict(drawn[0].texts))
    for other in drawn[1:]:
        pooled.add(other, most)
    numeric = [pooled.numbers[name] for name in layout.numeric_names]
    codes = [
        np.searchsorted(np.array(levels, dtype=object), np.array(pooled.texts[name], dtype=object))
        for name, levels in zip(layout.category_names, layout.levels, strict=True)
    ]
    m = len(pooled.keys)
    values = np.column_stack(numeric) if numeric else np.empty((m, 0))
    scaled = (values - layout.centre) / layout.spread
    return Points(scaled, np.column_stack(codes).astype(np.int64) if codes else np.empty((m, 0), dtype=np.int64))


def misleading_facts(
    names: Sequence[str], wanted: Sequence[Wanted], facts: Sequence[Tally], layout: Layout
) -> tuple[str, ...]:
    """Return what a reader must know before believing a two-sample test of these inputs; see `misleading`."""
    rows = [tally.rows for tally in facts]
    missing = {one.name: sum(tally.missing.get(one.name, 0) for tally in facts) for one in wanted}
    found = [
        *left_out_unevenly(names, rows, [tally.rows - tally.used for tally in facts], missing),
        *unequal_sizes(names, [tally.used for tally in facts]),
    ]
    for one in wanted:
        if one.kind in {"boolean", "text"}:
            continue
        columns = [tally.numbers[one.name] for tally in facts]
        if _pooled(columns).low == _pooled(columns).high:
            continue
        enough = all(column.count >= FEWEST_ROWS for column in columns)
        counts = enough and all(column.counts_rows for column in columns)
        runs = enough and all(column.runs for column in columns)
        trouble = time_trouble(
            one.kind,
            apart_text([(column.low, column.high) for column in columns], names),
            counts=partial(bool, counts),
            runs=partial(bool, runs),
        )
        if trouble is not None:
            found.append(f"column {one.name!r} {trouble}; leave it out with --exclude {option_value([one.name])}")
    return (*found, *_repeated(names, facts, layout))


def _repeated(names: Sequence[str], facts: Sequence[Tally], layout: Layout) -> list[str]:
    """Return the warnings about repeated rows that the samples of both inputs show.

    Of many more rows than these only such show as occur very often; of no more, all.
    """
    drawn = [tally.sample for tally in facts if tally.sample is not None]
    n_x, n = len(drawn[0].keys), sum(len(one.keys) for one in drawn)
    numeric, codes = np.empty((n, len(layout.numeric_names))), np.empty((n, len(layout.category_names)), dtype=np.int64)
    for place, name in enumerate(layout.numeric_names):
        numeric[:, place] = np.concatenate([one.numbers[name] for one in drawn])
    for place, name in enumerate(layout.category_names):
        texts = [text for one in drawn for text in one.texts[name]]
        codes[:, place] = np.unique(np.array(texts, dtype=object), return_inverse=True)[1]
    return repeated_rows(names, numeric, codes, n_x, totals=[tally.used for tally in facts])


def _too_many(name: str) -> str:
    return (
        f"column {name!r} has more than {MOST_LEVELS:,} different values, too many for categories of so many rows, and is "
        "left out"
    )


def _out_of_range(name: str) -> UndecidedError:
    return UndecidedError(
        f"the values of column {name!r} are too large, or too close together, for their spread to be a number",
        hint=f"divide them by a power of ten, or leave the column out with --exclude {option_value([name])}",
        code="undecided.distance_range",
    )
