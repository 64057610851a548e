"""What lets a learner know what it is asked: copies of a row on both sides of a split, rows of one case, columns that tell."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.column_types import as_text
from kerntest.data.columns import laid_below, reason_to_leave_out
from kerntest.data.diagnostics.cases import ALIKE, FEW_OF_CASE, case_columns
from kerntest.data.diagnostics.copies import copies_of
from kerntest.data.diagnostics.dependent_rows import alike_in_place, in_place_words
from kerntest.data.diagnostics.series import (
    FEWEST_IN_TIME,
    IN_TIME,
    LEAST_LOCAL,
    LONG_STRETCH,
    SERIAL_ERRORS,
    STRONG,
    alike_neighbours,
    are_years,
    in_time,
    most_follow,
)
from kerntest.data.facts import FEWEST_ROWS, counts_rows, explained_share, scaled
from kerntest.data.missing import in_tables
from kerntest.errors import counted, listed, option, rows_alike
from kerntest.learning.scores import average_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.diagnostics.cases import Cases
    from kerntest.data.table import Column, Table
    from kerntest.kernels.base import Array
    from kerntest.learning.rows.training_rows import Labelled

# A column that alone predicts the target leaves no more of its variance than this, or of each class no more rows.
UNEXPLAINED = 1e-3
FEWEST_OF_CLASS, MISPLACED = 5, 0.01
# Numbers of rows have fewer than so many between two of them.
SPARSE = 100
# What --cluster does.
TOGETHER = "keeps them together in test parts and folds"


def guarded(labelled: Labelled, *, by_class: bool) -> Labelled:
    """Return all rows, before they are split, with those marked that stay together, and with warnings of what may leak."""
    marked = kept_together(labelled)
    # Where nothing is predicted, no rows are held out to be predicted.
    clusters = tuple(_possible_clusters(labelled)) if labelled.targets else ()
    # What to do with cases is told once.
    cases = [name for name in labelled.shown.names if any(text.startswith(rows_alike(name)) for text in clusters)]
    telling = _telling(labelled, cases, by_class=by_class)
    return replace(marked, warnings=(*marked.warnings, *running_numbers(labelled), *telling, *clusters))


def kept_together(labelled: Labelled) -> Labelled:
    """Return the rows with those marked that no split parts, copies and rows of one value of --cluster; copies are told."""
    running = [column.name for column in labelled.shown.columns if _names_rows(column)]
    features = [column for column in labelled.shown.columns if column.name not in running]
    columns = [column.values for column in (*features, *labelled.targets, *labelled.beside)]
    copies = copies_of(columns) if features else None
    clusters, warnings = None, labelled.warnings
    if labelled.cluster is not None:
        _, clusters = np.unique(labelled.cluster.values, return_inverse=True)
    if copies is not None:
        clusters = copies.group if clusters is None else _joined(clusters, copies.group)
        but = f" but for {listed(list(map(repr, running)))}" if running else ""
        told = f"{counted(copies.repeats, 'row')} of {labelled.n:,} repeat another row"
        known = {*running, *(column.name for column in (*features, *labelled.targets, *labelled.beside))}
        unused = [column for column in labelled.features.with_all_columns().columns if column.name not in known]
        others = [column.values for column in unused if not _names_rows(column)]
        if others and ((whole := copies_of([*columns, *others])) is None or whole.repeats < copies.repeats):
            told += " in the columns that are used"
        told += f"{but}"
        warnings = (*warnings, f"{told}: a row and its copies stay together in test parts and folds")
    return replace(labelled, clusters=clusters, warnings=warnings)


def told_of_shared(learned: Labelled, held: Labelled) -> Labelled:
    """Return further rows to judge by, in their clusters, with warnings about copies and cases of rows that are learned from."""
    if learned.cluster is not None:
        held = _in_clusters(held, learned.cluster)
    tables = [one.features.with_all_columns() for one in (learned, held)]
    used = {*held.features.names, *(one.name for one in held.targets[:1])}
    shared_names = [name for name in tables[0].names if name in tables[1].names]
    pairs = [(tables[0][name], tables[1][name]) for name in shared_names]
    pairs = [pair for pair in pairs if pair[0].kind == pair[1].kind and not any(map(_names_rows, pair))]
    # What is not used tells other cases from copies, but for what names the tables.
    pairs = [pair for pair in pairs if pair[0].name in used or not all(len(np.unique(one.values)) == 1 for one in pair)]
    found = copies_of([laid_below(*pair).values for pair in pairs]) if pairs else None
    shared = 0 if found is None else int(np.isin(found.group[learned.n :], found.group[: learned.n]).sum())
    if not shared:
        return held
    warning = (
        f"{counted(shared, 'row')} of {held.n:,} of {held.read.name} are among those that are learned from: what is known by "
        "heart is no test; take them out"
    )
    return replace(held, warnings=(*held.warnings, warning))


def _in_clusters(held: Labelled, known: Column) -> Labelled:
    """Return further rows with those marked that are of one value of --cluster; told is where they are learned from, or unknown."""
    if held.cluster is None:
        told = f"{held.read.name} has no column {known.name!r}: its rows are taken for independent"
        return replace(
            held, warnings=(*held.warnings, f"{told}, and what is told of errors over them may be too little")
        )
    both = laid_below(as_text(known), as_text(held.cluster)).values
    before, own = both[: -held.n], both[-held.n :]
    values, clusters = np.unique(own, return_inverse=True)
    shared, warnings = int(np.isin(values, before).sum()), held.warnings
    if shared:
        told = (
            f"{shared:,} of {counted(len(values), 'cluster')} of {held.read.name} are among those that are learned from"
        )
        warnings = (*warnings, f"{told}: how new ones are predicted is not known by them; take them out")
    return replace(held, clusters=clusters, warnings=warnings)


def told_of_time(learned: Labelled, held: Labelled | None, *, by_class: bool) -> Iterator[str]:
    """Yield a warning about columns that tell the time of rows in their order, and of others to judge by if these are given.

    Rows between others in time are easier than those to come, which only rows later than all others stand for.
    """
    among, beyond = list[str](), list[str]()
    # What is not predicted is not predicted for rows to come.
    for column in filter(_tells_time, learned.shown.columns if learned.targets else ()):
        others = held.features[column.name] if held is not None and column.name in held.features.names else None
        later = others is not None and others.values[~others.missing].min(initial=np.inf) >= column.values.max()
        (beyond if later else among).append(column.name)
    named = [one.name for one in learned.targets[:1] if one.name in learned.read.names]
    # Others to judge by may be later in a column that is not learned from.
    known = () if held is None else [one for one in in_time(learned.read) if one.name in held.read.names]
    later = [held.read[one.name].values.min() >= one.values.max() for one in known] if held is not None else []
    alone = bool(named) and not among and not beyond and not any(later)
    # What to do with cases is told already; only a column of time settles that it is time.
    cases = learned.cluster is not None or any(
        text.startswith(rows_alike(name)) for name in learned.read.names for text in learned.warnings
    )
    # Nor is it known of others to judge by that they are not later.
    follow = () if cases or held is not None else learned.shown.columns
    if alone and _follows_time(learned.read[named[0]], learned.read, follow, by_class=by_class):
        yield (
            f"neighbouring rows are alike in {named[0]!r}: if the rows are a series in time, the "
            "rows to judge by lie among those that are learned from, and rows to come are harder to predict; to judge by such, "
            f"give the latest rows in a file of their own, with {option('test')}"
        )
    if among:
        yield (
            f"{_columns(among)} {'tells' if len(among) == 1 else 'tell'} the time: the rows to judge by lie in time among "
            "those that are learned from, and rows to come are harder to predict; to judge by such, give the latest rows "
            f"in a file of their own, with {option('test')}"
        )
    if beyond and held is not None:
        yield (
            f"{_columns(beyond)} of {held.read.name} {'lies' if len(beyond) == 1 else 'lie'} beyond all that is learned "
            f"from, where a kernel knows little: see whether it is better without, with {option('exclude', beyond)}"
        )


def _follows_time(target: Column, table: Table, learned: Sequence[Column], *, by_class: bool) -> bool:
    """Say whether neighbouring rows are alike in a target, nearer or of the same level oftener, in time or by half of the columns."""
    timed, others = bool(in_time(table)), [one for one in learned if one.name != target.name]
    # What they are learned from follows time as the target does, and one of the two by far.
    if not timed and not most_follow(others, table, STRONG if by_class else LEAST_LOCAL):
        return False
    if not by_class:
        return bool(alike_neighbours([target], table, local=LEAST_LOCAL if timed else STRONG))
    levels = target.values[~target.missing]
    _, counts = np.unique(levels, return_counts=True)
    # Two rows have the same level with probability q.
    n, q = len(levels), float(np.sum((counts / max(len(levels), 1)) ** 2))
    same, errors = np.count_nonzero(levels[1:] == levels[:-1]), IN_TIME if timed else SERIAL_ERRORS
    alike = n >= FEWEST_IN_TIME and q < 1.0 and bool(same > n * q + errors * math.sqrt(n * q * (1.0 - q)))
    if timed or not alike or not _in_stretches(levels):
        return alike
    # Of a table that is sorted by them, each level stands in one place; within groups, these stand in stretches, too.
    grouped = any(_in_stretches(one.values) for one in table.columns if one.name != target.name)
    return bool(n - 1 - same >= len(counts) and not grouped and most_follow(others, table, wandering=True))


def _in_stretches(values: Array) -> bool:
    """Say whether equal values, but not all, stand together in long stretches."""
    changes = int(np.count_nonzero(values[1:] != values[:-1]))
    return 0 < changes * LONG_STRETCH <= len(values)


def told_of_series(read: Table, sides: Sequence[Sequence[str]], meaning: str) -> Iterator[str]:
    """Yield a warning where neighbouring rows are alike in a column of each side: what these have in common may be that alone."""
    alike = [alike_neighbours([read[name] for name in side if name in read.names], read) for side in sides]
    if alike and all(alike):
        yield (
            f"neighbouring rows are alike in {listed([repr(names[0]) for names in alike])}: if the rows are a series in time, "
            f"{meaning}; hsic with {option('time-series', True)} tests two series"
        )


def _tells_time(column: Column) -> bool:
    return column.kind == "date" or (column.kind == "number" and are_years(column.values))


def _names_rows(column: Column) -> bool:
    """Say whether a column tells rows apart that a learner must not: running numbers, and texts that name them."""
    return _numbers_rows(column) or (column.kind == "text" and reason_to_leave_out(laid_below(column)) is not None)


def _joined(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return groups of rows that are in one group of either kind, directly or through others."""
    from scipy.sparse import coo_array  # noqa: PLC0415 - both at once are rare
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - the same

    n_first = int(first.max()) + 1
    size = n_first + int(second.max()) + 1
    links = coo_array((np.ones(len(first)), (first, n_first + second)), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1][first], dtype=np.intp)


def _numbers_rows(column: Column) -> bool:
    """Say whether a column counts the rows, in their order, or in another one without a gap."""
    # Of nearly every column the first rows tell that it does not: they are not whole, or not all different.
    if column.kind != "number" or not column.values[0].is_integer():
        return False
    first = column.values[:FEWEST_ROWS].tolist()
    if len(set(first)) < FEWEST_ROWS or not all(map(float.is_integer, first)):
        return False
    values = np.sort(column.values)
    return counts_rows(column.values) or bool(values[0] == np.floor(values[0]) and np.all(np.diff(values) == 1.0))


def running_numbers(labelled: Labelled) -> Iterator[str]:
    """Yield a warning about numbers of rows among the columns to learn from, where these are not all there is."""
    shown = labelled.shown.columns
    names = [column.name for column in shown if _numbers_rows(column) and not _tells_time(column)]
    if 0 < len(names) < len(shown):
        sparse = any(np.ptp(labelled.shown[name].values) > SPARSE * labelled.n for name in names)
        counting = "run{} in one direction along the file, as a running number does" if sparse else "count{} the rows"
        yield (
            f"{_columns(names)} {counting.format('s' * (len(names) == 1))}: "
            f"a running number tells where a row stands, not what it is; leave it out with {option('exclude', names)}"
        )


def _telling(labelled: Labelled, known: Sequence[str], *, by_class: bool) -> Iterator[str]:
    """Yield a warning about columns, but known cases, each of which alone predicts the target, where there are others."""
    target, features = labelled.target, labelled.shown.columns
    if target is None or len(features) < 2 or labelled.n < FEWEST_ROWS:
        return
    tells = _tells_classes if by_class else _tells_number
    unknown = [column for column in features if column.name not in known]
    names = [column.name for column in unknown if tells(laid_below(column), target.values)]
    if names:
        left_out = option("exclude", in_tables(names, labelled.features.names))
        yield (
            f"{_columns(names)} {'alone predicts' if len(names) == 1 else 'each alone predict'} {target.name!r}: a column "
            f"that is known only once the target is must be left out, with {left_out}"
        )


def _columns(names: Sequence[str]) -> str:
    return f"column{'' if len(names) == 1 else 's'} {listed([repr(name) for name in names])}"


def _tells_classes(column: Column, target: NDArray[np.float64]) -> bool:
    """Say whether the classes are ranges of a number, or sets of levels, but for one row in a hundred of each."""
    _, codes, counts = np.unique(target, return_inverse=True, return_counts=True)
    if counts.min() < FEWEST_OF_CLASS:
        return False
    if column.is_category:
        return _few_levels(column) and bool(np.all(_misplaced(column.values, codes) <= MISPLACED * counts))
    order = np.lexsort((codes, column.values))
    steps = int(np.count_nonzero(np.diff(codes[order])))
    # A row out of place makes two steps more; one value of two classes tells neither.
    shared = _misplaced(np.unique(column.values, return_inverse=True)[1], codes)
    return steps <= len(counts) - 1 + 2 * int(MISPLACED * counts.min()) and bool(np.all(shared <= MISPLACED * counts))


def _misplaced(levels: NDArray[np.intp], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how many rows of each class have a level that another class has more rows of."""
    table = np.zeros((int(levels.max()) + 1, int(codes.max()) + 1))
    np.add.at(table, (levels, codes), 1.0)
    most = np.argmax(table, axis=1)
    table[np.arange(len(table)), most] = 0.0
    rows: NDArray[np.float64] = table.sum(axis=0)
    return rows


def _tells_number(column: Column, target: Array) -> bool:
    """Say whether the target is nearly a straight or a rising or falling function of a column, or one of its levels."""
    if target.dtype.kind != "f" or target.min() == target.max():
        return False
    if column.is_category:
        return _few_levels(column) and 1.0 - explained_share(column.values, target) <= UNEXPLAINED
    if column.values.min() == column.values.max():
        return False
    return any(
        1.0 - float(np.corrcoef(of(column.values), of(target))[0, 1]) ** 2 <= UNEXPLAINED
        for of in (scaled, average_ranks)
    )


def _few_levels(column: Column) -> bool:
    return len(column.levels) * FEWEST_OF_CLASS <= len(column.values)


def _possible_clusters(labelled: Labelled) -> Iterator[str]:
    """Yield a hint about a column whose rows of one value are alike, as those of a patient or a shop are.

    One that is learned from comes first: that names cases beyond doubt, or has so many values that these may be cases and tell
    the target.
    """
    names = [column.name for column in (*labelled.shown.columns, *labelled.targets[:1])]
    used = [labelled.read[name] for name in names if name in labelled.read.names]
    beside = {column.name for column in (*labelled.targets, *labelled.beside)}
    targets = {one.name for one in labelled.targets}
    named = () if labelled.cluster is not None else case_columns(labelled.read, used, unsure=True)
    alike = [one for one in named if max(one.alike.values()) > ALIKE]

    def tells(one: Cases) -> float:
        return max((one.alike.get(name, 0.0) for name in targets), default=0.0)

    def names_cases(one: Cases) -> bool:
        few = one.fixed & targets or (one.column.is_category and one.size <= FEW_OF_CASE)
        return one.sure or (bool(few) and tells(one) > ALIKE)

    # Texts that name rows are left out.
    idle = {column.name for column in labelled.shown.columns if _names_rows(column)}
    learned = [one for one in alike if one.column.name in names and one.column.name not in idle and names_cases(one)]
    others = [one for one in alike if one.column.name not in names or one.column.name in idle]
    cases = (
        max(learned, key=lambda one: (one.sure, tells(one))).column if learned else others[0].column if others else None
    )
    in_place = None
    if labelled.cluster is None and not alike:
        in_place = next(
            alike_in_place(labelled.read, used, [([name for name in names if name not in targets], [*targets])]), None
        )
    if in_place is not None and in_place[1].sure:
        cases = in_place[1].column
    if cases is not None and cases.name not in beside:
        said = f"{rows_alike(cases.name)} ({len(np.unique(cases.values[~cases.missing])):,} different values)"
        cluster = option("cluster", [cases.name])
        if cases.name in names and cases.name not in idle:
            said += ", and it is learned from, so that scores are of cases that the model knows"
            yield f"{said}: {cluster} learns without it, and {TOGETHER}"
        else:
            yield f"{said}: {cluster} {TOGETHER}"
    elif in_place is not None:
        yield (
            f"{in_place_words(*in_place)}: if several are of one case, number the cases in a column 'case': "
            f"{option('cluster', ['case'])} {TOGETHER}"
        )
