"""From the columns that say which rows belong together to a design; what these cannot be is refused, with what to ask instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.column_types import as_text
from kerntest.data.columns import laid_below
from kerntest.data.condition import as_name, other_than
from kerntest.data.diagnostics.cases import names_together, starts_again, ways_with_shared_cases
from kerntest.data.facts import complete_rows
from kerntest.data.gaps import apply_missing, without_value
from kerntest.errors import DataError, UndecidedError, UsageError, counted, listed, option
from kerntest.inference.relabelling.designs import Design

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.inference.sides import Groups, Reading


# Strata of which most have so few rows of a table are cases; so many that are too small are named, to be left out.
OF_CASE, MOST_LEFT_OUT = 2, 10


def designed(
    groups: Groups,
    used: tuple[Table, Table],
    reading: Reading,
    alpha: float = 1.0,
    *,
    same: Callable[[str], str] | None = None,
    pairs: Callable[[str], str] | None = None,
) -> tuple[tuple[Table, Table], Design | None, tuple[str, ...]]:
    """Return the rows of two tables that take part, what of them moves together, and what to warn of.

    Of a design the rows of X come first. Without options that ask for one there is none. Of groups of one table, `same` is
    what asks of whole clusters whether they differ, and `pairs` what compares the rows of each.
    """
    cluster, paired, strata = reading.design.values()
    asked = {name: value for name, value in reading.design.items() if value is not None}
    if not asked:
        return used, None, ()
    _refuse_more_than_pairs(asked)
    used, warnings = _with_values(groups, used, [*asked.values()]) if reading.missing == "drop" else (used, [])
    n_x = used[0].n_rows
    codes = {name: _codes(groups, used, value, option(name, [value])) for name, value in asked.items()}
    kept = np.ones(n_x + used[1].n_rows, dtype=bool)
    if cluster is not None:
        again = starts_again(cluster, groups.read[0].whole or groups.read[0])
        _refuse_shared(codes, used, reading, alpha, again=again, same=same, pairs=pairs)
    for name, what in (("paired", "partner"), ("strata", "row of their stratum")):
        if name in asked:
            here = np.isin(codes[name], _shared(codes[name], n_x))
            if not here.any():
                said = f"no value of {asked[name]!r} is in both {' and '.join(one.name for one in used)}"
                hint = (
                    f"leave out {option(name, [asked[name]])}"
                    if same is not None
                    else "check that they are spelt alike"
                )
                raise DataError(said, hint=hint, code="data.apart", where={"column": asked[name]})
            if lost := int(np.count_nonzero(kept & ~here)):
                warnings.append(f"{counted(lost, 'row')} without a {what} in the other table ({asked[name]}) left out")
            kept &= here
    used = used[0].take(np.flatnonzero(kept[:n_x])), used[1].take(np.flatnonzero(kept[n_x:]))
    codes = {name: np.unique(some[kept], return_inverse=True)[1] for name, some in codes.items()}
    if paired is not None:
        _refuse_few_pairs(codes["paired"], used[0].n_rows, paired, alpha)
    rows = np.arange(int(kept.sum()))
    within = codes.get("strata", np.zeros_like(rows))
    units = codes.get("cluster", codes.get("paired", rows))
    if cluster is not None and strata is not None:
        least, most = np.full(units.max() + 1, len(rows)), np.full(units.max() + 1, -1)
        np.minimum.at(least, units, within)
        np.maximum.at(most, units, within)
        if parted := int(np.count_nonzero(least < most)):
            said = f"{counted(parted, 'cluster')} of {cluster!r} {'is' if parted == 1 else 'are'} in several strata of {strata!r}"
            raise DataError(
                said,
                hint=f"{names_together(cluster, strata, sure=False)}; else a stratum holds whole clusters: "
                f"{option('cluster', [cluster])} alone, or strata of another column",
                code="data.design",
                where={"column": strata},
            )
    warnings += _several(units, paired)
    return used, Design(units, within, paired is not None, _words(asked, units, within)), tuple(warnings)


def _with_values(
    groups: Groups, used: tuple[Table, Table], names: Sequence[str]
) -> tuple[tuple[Table, Table], list[str]]:
    """Return the rows that have a value of all columns of a design, and a warning of the others."""
    kept: list[Table] = []
    for read, some in zip((groups.read[0], groups.read[-1]), used, strict=True):
        whole = read.select(names).take(np.searchsorted(read.numbers(), some.numbers()))
        apply_missing(whole, "drop", names)
        kept.append(some.take(np.flatnonzero(complete_rows(whole))))
    lost = sum(one.n_rows for one in used) - sum(one.n_rows for one in kept)
    return (kept[0], kept[1]), without_value(lost, names)


def _refuse_few_pairs(pairs: NDArray[np.intp], n_x: int, name: str, alpha: float) -> None:
    """Refuse so few pairs that no p-value is at most alpha, as where a column of kinds is taken for one of cases."""
    count = int(pairs.max()) + 1
    # Where all change places nothing has changed.
    if (floor := 0.5 ** (count - 1)) <= alpha:
        return
    hint = "more pairs would"
    if len(pairs) > 2 * count and _ways_within(pairs, n_x) * alpha >= 1.0:
        hint = f"{option('strata', [name])}, without {option('paired', [name])}, compares rows within each {name!r}"
    told = f"{counted(2**count, 'relabelling')} by {_words({'paired': name}, pairs, pairs)} cannot give a p-value below {floor:.2g}"
    raise UndecidedError(f"{told}, and alpha is {alpha:g}", hint=hint, code="undecided.floor")


def _refuse_shared(
    asked: Mapping[str, NDArray[np.intp]],
    used: Sequence[Table],
    reading: Reading,
    alpha: float,
    *,
    again: str | None,
    same: Callable[[str], str] | None,
    pairs: Callable[[str], str] | None,
) -> None:
    """Refuse clusters that both tables have; what compares the rows within each is told, or what names them where numbers start `again`."""
    codes, n_x, cluster, strata = asked["cluster"], used[0].n_rows, str(reading.cluster), reading.strata
    if not len(both := _shared(codes, n_x)):
        return
    row = int(np.flatnonzero(codes[:n_x] == both[0])[0])
    said = f"{counted(len(both), 'cluster')} of {cluster!r} {'has' if len(both) == 1 else 'have'} rows in both tables"
    instead, compares = f", without {option('cluster', [cluster])}", "compares rows of the same cluster with each other"
    # Of a pair each stratum is its own, and a call names what it asks alone.
    alone = "" if strata is None else f" and {option('strata', [strata])}"
    hint = f"{option('paired', [cluster])}{instead}{alone}," if pairs is None else pairs(cluster)
    hint = f"{hint}{alone.replace(' and', ', without', 1)}, {compares}" if pairs and alone else f"{hint} {compares}"
    # Strata of few cases can reject where pairs of them cannot.
    if few := 0.5 ** (len(both) - 1) > alpha:
        others = 2 * len(both) <= codes.max()
        hint = f"{'leave out the clusters that are in both' if others else 'more clusters would do'}: so few are not compared with themselves"
    within = _ways_within(codes, n_x) * alpha >= 1.0
    if few and within:
        hint = ways_with_shared_cases(cluster, lambda _: "", within=True, instead=f"{instead}{alone},")
    if strata is None and same is not None and np.bincount(codes[:n_x]).max() > 1:
        told = ways_with_shared_cases(cluster, same, within=within, instead=f"{instead},")
        # Where most are in both, and can reject, the rows of each are compared before all else.
        first = 2 * len(both) > codes.max() and not few
        hint = "; ".join(filter(None, [hint if first else "", told])) or hint
    if again is not None:
        hint = names_together(cluster, again)
    elif strata is not None and not len(_shared(codes * (asked["strata"].max() + 1) + asked["strata"], n_x)):
        # Within strata each cluster is in one table.
        hint = f"{names_together(cluster, strata, sure=False)}; else {hint}"
    where = {**used[0].where(row), "column": cluster}
    said = f"{said} (the first in {used[0].name}, {used[0].place(row)})"
    raise DataError(said, hint=hint, code="data.clusters", where=where)


def can_be_strata(read: Sequence[Table], used: Sequence[Table], name: str, alpha: float) -> bool:
    """Say whether relabellings of the used rows of two tables within strata of a column are enough to reject."""
    columns = [
        of.with_all_columns()[name].take(np.searchsorted(of.numbers(), some.numbers()))
        for of, some in zip((read[0], read[-1]), used, strict=True)
        if name in of.with_all_columns().names
    ]
    if len(columns) < 2 or any(column.n_missing for column in columns):
        return False
    return _ways_within(_codes_of(columns), used[0].n_rows) * alpha >= 1.0


def without_standard_error(
    groups: Groups, used: tuple[Table, Table], reading: Reading, alpha: float, given: str
) -> UndecidedError:
    """Return the error of an option that takes the standard error where strata have one row, or cluster, of a table."""
    name, n_x = str(reading.strata), used[0].n_rows
    columns = [
        as_text(_whole(read, kept, name, option("strata", [name])))
        for read, kept in zip((groups.read[0], groups.read[-1]), used, strict=True)
    ]
    column = laid_below(*columns)
    rows = np.arange(len(column.values))
    units = rows if reading.cluster is None else _codes(groups, used, reading.cluster, option("cluster"))
    # Every stratum that is left has rows of both tables.
    cells = np.unique(np.column_stack([column.values, rows < n_x, units]), axis=0)
    fewer = np.bincount(2 * cells[:, 0] + cells[:, 1]).reshape(-1, 2).min(axis=1)
    strata = np.flatnonzero(np.bincount(column.values))
    lone = np.flatnonzero(fewer == 1)
    names, lost = [column.levels[one] for one in lone], int(np.isin(column.values, lone).sum())
    have = f"{'has' if len(lone) == 1 else 'have'} one {'row' if reading.cluster is None else 'cluster'} of a table"
    said = (
        f"{given} takes the standard error of MMD, and {len(lone):,} of the {len(strata):,} strata of {name!r} {have}"
    )
    ways = [f"leave out {given}"]
    if reading.cluster is None and np.median(fewer[strata]) <= OF_CASE and 0.5 ** (len(strata) - 1) <= alpha:
        ways.insert(0, f"{option('paired', [name])}, without {option('strata', [name])}, takes such strata for cases")
    elif 2 * len(lone) <= len(strata) and len(lone) <= MOST_LEFT_OUT:
        ways.insert(0, f"{option('where', other_than(name, names))} leaves {'it' if len(lone) == 1 else 'them'} out")
    return UndecidedError(
        f"{said}: {listed(names)} ({lost:,} of {counted(len(rows), 'row')})",
        hint="; or ".join(ways),
        code="undecided.standard_error",
    )


def _ways_within(codes: NDArray[np.intp], n_x: int) -> int:
    """Return in how many ways rows of X and of Y change places within strata."""
    rows, labels = np.arange(len(codes)), (np.arange(len(codes)) < n_x).astype(np.uint8)
    shared = np.isin(codes, _shared(codes, n_x))
    return Design(rows[: shared.sum()], codes[shared], False, "").ways(labels[shared]) if shared.any() else 1


def _refuse_more_than_pairs(asked: Mapping[str, str]) -> None:
    if "paired" not in asked or len(asked) == 1:
        return
    others = next(option(name, [value]) for name, value in asked.items() if name != "paired")
    hint = f"leave out {others}"
    if "cluster" in asked:
        hint = f"{option('paired', [asked['cluster']])} alone swaps all pairs of a case together"
    told = f"{option('paired', [asked['paired']])} and {others} exclude each other: a pair is a stratum of its own"
    raise UsageError(told, hint=hint, code="usage.design")


def _several(units: NDArray[np.intp], paired: str | None) -> list[str]:
    """Return a warning where a case of pairs has several rows in a table."""
    most = int(np.bincount(units).max())
    if paired is None or most <= 2:
        return []
    return [
        f"{paired!r} has up to {most} rows of one case, which change places together: each case counts by the difference of its means"
    ]


def _codes(groups: Groups, used: Sequence[Table], name: str, said: str) -> NDArray[np.intp]:
    """Return which value of a column each row has, of X, then of Y; refuse missing ones."""
    columns = [
        _whole(read, kept, name, said) for read, kept in zip((groups.read[0], groups.read[-1]), used, strict=True)
    ]
    return _codes_of(columns)


def _codes_of(columns: Sequence[Column]) -> NDArray[np.intp]:
    """Return which value of a column of two tables each row has."""
    if len({column.kind for column in columns}) > 1 or any(column.digits is not None for column in columns):
        columns = list(map(as_text, columns))
    return np.unique(laid_below(*columns).values, return_inverse=True)[1]


def clusters_of(groups: Groups, rows: NDArray[np.intp], name: str) -> NDArray[np.intp]:
    """Return the cluster of some rows of tables that are read side by side, as codes from 0."""
    holding = next((one for one in groups.read if name in one.names), groups.read[0])
    column = _whole(holding, holding.take(rows), name, option("cluster", [name]))
    return np.unique(laid_below(column).values, return_inverse=True)[1]


def _whole(read: Table, kept: Table, name: str, said: str) -> Column:
    """Return a column of a table in some of its rows; refuse missing values."""
    column = read[name].take(np.searchsorted(read.numbers(), kept.numbers()))
    if column.n_missing:
        row = int(np.argmax(column.missing))
        told = f"{kept.name}, {kept.place(row)}: no value of {name!r}, which {said} needs"
        hint = f"{option('where', f'{as_name(name)} is not missing')} leaves such rows out ({column.n_missing:,} of {kept.n_rows:,})"
        raise DataError(told, hint=hint, code="data.missing_values", where={**kept.where(row), "column": name})
    return column


def _shared(codes: NDArray[np.intp], n_x: int) -> NDArray[np.intp]:
    """Return which codes the first rows have, and the others too."""
    return np.intersect1d(codes[:n_x], codes[n_x:])


def _words(asked: Mapping[str, str], units: NDArray[np.intp], strata: NDArray[np.intp]) -> str:
    """Return what relabellings do."""
    if "paired" in asked:
        return f"swaps within {int(units.max()) + 1:,} pairs ({asked['paired']})"
    of = f"{int(units.max()) + 1:,} whole clusters ({asked['cluster']})" if "cluster" in asked else "rows"
    within = f" within {int(strata.max()) + 1:,} strata ({asked['strata']})" if "strata" in asked else ""
    return f"permutations of {of}{within}"
