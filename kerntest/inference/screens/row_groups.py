"""Several samples: groups of the rows of one table, as a column names them, and the pairs that are compared."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.data.column_types import as_text, identifies_rows
from kerntest.data.columns import check_usable, laid_below, match_names, named_columns, split_patterns
from kerntest.data.condition import as_name
from kerntest.data.diagnostics.dependent_rows import counters
from kerntest.data.facts import complete_rows
from kerntest.data.formats.dialect import AS_USUAL
from kerntest.data.gaps import apply_missing, lost_rows
from kerntest.data.missing import GAP, with_gap_level
from kerntest.errors import DataError, KerntestError, UsageError, counted, either, listed, option, shell_word, suggest
from kerntest.inference.relabelling.permuted_clusters import Exchanged
from kerntest.inference.sides import read_one
from kerntest.report.summaries.words import natural_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.missing import MissingPolicy
    from kerntest.data.table import Column, Table
    from kerntest.inference.sides import Reading

# More pairs than these are a search that needs a question.
MOST_PAIRS = 200
# So many groups of one row, and most of the rows in them, are measurements.
FEW_ALONE = 10


class Samples(NamedTuple):
    """Several samples: their names, their rows, and the pairs of them that are compared, as places.

    Groups of one table have a condition that takes the first two, all rows in one table, and the place of the group of each.
    """

    names: Sequence[str]
    tables: Sequence[Table]
    pairs: Sequence[tuple[int, int]]
    reference: str | None
    by: str | None = None
    two: str = ""
    pooled: Table | None = None
    codes: NDArray[np.intp] = np.empty(0, dtype=np.intp)


def one_table(reading: Reading, source: Any) -> UsageError:
    """Return the error for one table alone, which may have a column of groups."""
    table = read_one(source, reading, "x")
    columns = [one for one in table.columns if one.is_category and 2 <= len(one.used_levels) <= 20]
    example = columns[0].name if columns else "COLUMN"
    hint = f"{option('by', example)} compares the groups of its rows that a column names; or give another table"
    return UsageError(
        f"{table.name} is one table, and a comparison takes two",
        hint=hint,
        code="usage.one_table",
        where={"file": table.name},
    )


def groups_of(
    reading: Reading, source: Any, table: Table, by: str, reference: str | float | None
) -> tuple[Samples, tuple[str, ...]]:
    """Return the groups that a column names in the order of its values, numbers as numbers, and what was left out."""
    place = {"file": table.name, "column": by}
    column = check_usable(table.select([by]), [by]).columns[0]
    indicated, without = reading.missing == "indicator", column.n_missing
    if indicated and without:
        column = with_gap_level(column)
    others = [name for name in named_columns(table, reading.columns, reading.exclude).names if name != by]
    if not others:
        said, hint = f"no column of {table.name} is left to compare by {by!r}", f"name another in {option('columns')}"
        raise UsageError(said, hint=hint, code="usage.no_columns", where=place)
    # What belongs together is not compared, but known in every pair.
    apart = [name for name in table.select(reading.apart).names if name not in others]
    used = check_usable(table.select([*others, *apart]), table.select(reading.apart).names)
    # Without any group what is missing is all there is to tell.
    here, whole = ~column.missing, complete_rows(used)
    if not here.any():
        apply_missing(replace(table, columns=(column,)), "drop", [by])
    texts = as_text(column)
    present = np.flatnonzero(texts.level_counts)
    present = present[natural_order([texts.levels[code] for code in present])]
    names = [texts.levels[code] for code in present]
    if len(names) < 2:
        said = f"column {by!r} of {table.name} has one value: {names[0]!r}; groups are two or more"
        raise DataError(said, hint=f"name another column in {option('by')}", code="data.groups", where=place)
    first = None if reference is None else _named(reference, names, by, place)
    # The last is that of rows without a group.
    ranks = np.full(len(texts.levels) + 1, -1)
    ranks[present] = np.arange(len(names))
    codes = ranks[texts.values]
    ways = _Ways(reading, source, table, column, others, not (whole & here).all())
    every = np.ones(table.n_rows, dtype=np.bool_)
    if reading.missing == "error" and ways.gaps:
        able = _makes_groups(names, codes, whole, first, ways)
        if not able and not _makes_groups(names, codes, every, first, ways):
            # However gaps are taken, no groups can be compared.
            _parted(names, codes, whole, first, ways)
        apply_missing(replace(table, columns=(column,)), "error", [by])
        apply_missing(used.take(here), "error", beside=[column.take(here)], able=able)
    _, lost = apply_missing(replace(table, columns=(column,)), reading.missing, [by])
    warnings = _without_group(table, by, lost, len(names))
    names, rows, pairs, told = _parted(names, codes, every if indicated else whole, first, ways)
    warnings += told
    if indicated and without and GAP in names:
        said = (
            f"{counted(without, 'row')} of {table.n_rows:,} without a value of {by!r} are a group of their own, {GAP!r}"
        )
        warnings.append(f"{said}; {option('where', f'{as_name(by)} is not missing')} leaves them out")
    # What was remarked of columns is told of the table.
    plain = replace(used, notes=(), columns=tuple(replace(one, remarks=()) for one in used.columns))
    tables = [
        replace(plain.take(own), name=f"{table.name}, {by} = {name}") for name, own in zip(names, rows, strict=True)
    ]
    two = ways.condition([names[one] for one in pairs[0]])
    codes = np.full(table.n_rows, -1)
    for code, own in enumerate(rows):
        codes[own] = code
    pooled = plain.take(codes >= 0)
    return Samples(names, tables, pairs, first, by, two, pooled, codes[codes >= 0]), (*used.warnings, *warnings)


class _Ways(NamedTuple):
    """What else can be asked of a table with a column of groups, as options and calls that run as they stand."""

    reading: Reading
    source: Any
    table: Table
    column: Column
    others: Sequence[str]
    gaps: bool

    @property
    def by(self) -> str:
        """The column of groups."""
        return self.column.name

    @property
    def place(self) -> dict[str, str | int]:
        """Where the groups are."""
        return {"file": self.table.name, "column": self.by}

    def condition(self, names: Sequence[str]) -> str:
        """Return the condition that takes some groups."""
        plain = self.column.kind in {"number", "boolean"}
        shown = [one if plain else "'" + one.replace("'", "''") + "'" for one in names]
        return f"{as_name(self.by)} in ({', '.join(shown)})"

    def to_compare(self, name: str, value: str) -> str:
        """Return an option, and beside it what takes the missing values that stand in the way."""
        dropped = self.reading.missing == "error" and self.gaps
        return option(name, value) + (f"{either(' ', ', ')}{option('missing', 'drop')}" if dropped else "")

    def others_than_groups(self) -> str:
        """Return what to ask of numbers that are groups of one row each; of names of rows, which columns have groups."""
        counts = self.column.level_counts if self.column.is_category else np.empty(0)
        numbered = counters([self.column])
        if numbered or (len(counts) and identifies_rows(int(np.count_nonzero(counts)), int(counts.sum()))):
            most = min(20, self.table.n_rows // 2)
            grouping = (one.name for one in self.table.columns if one.is_category and 2 <= len(one.used_levels) <= most)
            example = next((f"; {option('by', name)} does" for name in grouping), "")
            return f"name a column in {option('by')} whose values occur in many rows{example}"
        reading, design = self.reading, self.reading.design
        apart = [name for name in (design["paired"], design["strata"]) if name not in {None, self.by}]
        present = complete_rows(self.table.select([*self.others, self.by])).any()
        way: MissingPolicy = "drop" if present else "indicator"
        call = call_of(
            "hsic",
            replace(reading, missing=way if reading.missing == "error" and self.gaps else reading.missing),
            self.source,
            x=None if reading.columns is None else list(self.others),
            y=[self.by],
            exclude=[*split_patterns(reading.exclude), *apart],
            categorical=split_patterns(reading.categorical),
            cluster=reading.cluster and [reading.cluster],
        )
        return f"{call} tests whether the other columns depend on it"


def _makes_groups(*parts: Any) -> bool:
    """Say whether groups can be compared."""
    try:
        _parted(*parts)
    except KerntestError:
        return False
    return True


def _parted(
    names: Sequence[str],
    codes: NDArray[np.intp],
    complete: NDArray[np.bool_],
    first: str | None,
    ways: _Ways,
) -> tuple[list[str], list[NDArray[np.intp]], list[tuple[int, int]], list[str]]:
    """Return the groups of two complete rows or more, of two groups both, their rows and pairs, and what was left out.

    Refuse what leaves too few groups, and more pairs than anybody reads: every row may have a value of its own, so that
    rows and pairs are looked for afterwards.
    """
    by = ways.by
    sizes, enough = (np.bincount(codes[some & (codes >= 0)], minlength=len(names)) for some in (True, complete))
    able = (enough >= 2) | (len(names) <= 2)
    left, few = (list(compress(names, some)) for some in (able, ~able))
    without = "" if complete.all() else " without missing values"
    if 2 * sizes[able].sum() < len(complete) and len(few) > FEW_ALONE:
        told = f"{len(few):,} of {counted(len(names), 'group')} in {by!r} have fewer than two rows{without}"
        raise UsageError(told, hint=ways.others_than_groups(), code="usage.groups", where=ways.place)
    if first in few or len(left) < 2:
        told = f"all groups of {by!r}{' but one' if left else ''} have"
        told = f"the reference {first!r} has" if first in few else told
        other = f"; {ways.to_compare('reference', left[0])} has more" if first in few and len(left) > 1 else ""
        other = other if len(left) > 1 else f"; {ways.others_than_groups()}"
        said, hint = f"{told} fewer than two rows{without}", f"a group needs two rows at least{other}"
        raise DataError(said, hint=hint, code="data.groups", where=ways.place)
    warnings = []
    if few:
        said = f"{counted(len(few), 'group')} of {by!r} with fewer than two rows left out"
        warnings.append(f"{said}: {listed([repr(one) for one in few], 5)}")
    others = [one for one, name in enumerate(left) if name != first]
    if first is None:
        refuse_many(math.comb(len(left), 2), len(left), "groups", ways, left[:2])
        pairs = list(combinations(others, 2))
    else:
        refuse_many(len(others), len(left), "groups", ways, [first, left[others[0]]])
        pairs = [(left.index(first), one) for one in others]
    return left, [np.flatnonzero(codes == one) for one in np.flatnonzero(able)], pairs, warnings


def _without_group(table: Table, by: str, lost: int, groups: int) -> list[str]:
    """Return the warning about rows without a group: any of them where a report counts the rows of two groups alone."""
    many = lost_rows(f"{table.name}, column {by!r}", lost, table.n_rows, {by: lost}, [by])
    if many or not lost or groups > 2:
        return many
    return [f"{table.name}: {counted(lost, 'row')} of {table.n_rows:,} without a value of {by!r} left out"]


def _named(reference: str | float, names: Sequence[str], by: str, place: Mapping[str, str]) -> str:
    """Return the group that is named, as a text or a number."""
    wanted = str(reference)
    found = [name for name in names if name == wanted or _as_number(name) == _as_number(wanted) is not None]
    if not found:
        close = suggest(wanted, list(names))
        hint = f"did you mean {close!r}?" if close else f"the groups are {listed([repr(name) for name in names])}"
        raise UsageError(f"column {by!r} has no group {wanted!r}", hint=hint, code="usage.reference", where=dict(place))
    return found[0]


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def asks_of_whole_cases(reading: Reading, data: Any, samples: Samples, cases: str, alpha: float) -> str:
    """Return the call of hsic that asks of whole cases, which a column names, what a comparison of groups asks of rows.

    Nothing where too few relabellings of whole cases move rows to another group: that call would be refused.
    """
    if (pooled := samples.pooled) is not None and cases in (table := pooled.with_all_columns()).names:
        # Rows that are left out as incomplete change no places.
        kept = complete_rows(pooled) if reading.missing == "drop" else slice(None)
        units = np.unique(laid_below(table[cases]).values[kept], return_inverse=True)[1]
        moved = Exchanged.of(units, [samples.codes[kept, None]])
        # Of many cases these are more than a float holds.
        if moved.relabellings < 1.0 / alpha or moved.too_few:
            return ""
    by, first = str(samples.by), samples.tables[0]
    whole, chosen, exclude = first.with_all_columns(), reading.columns, reading.exclude
    if chosen is not None and by in named_columns(whole, chosen, None).names:
        chosen = [name for name in first.names if name != cases]
    if by in (excluded := match_names(exclude, whole.names, whole.name)):
        exclude = [name for name in excluded if name != by] or None
    codes = [*split_patterns(reading.categorical)]
    # Of more than two groups numbers say more than which one.
    if len(samples.names) > 2 and not whole[by].is_category:
        codes.append(by)
    told = {"x": [by], "y": chosen, "exclude": exclude, "cluster": [cases], "categorical": codes}
    return call_of("hsic", reading, data, **told)


def asks_within_cases(reading: Reading, data: Any, samples: Samples, cases: str) -> str:
    """Return the call of the same comparison that compares the rows of each case, which a column names, with each other."""
    told = {"by": [samples.by], "reference": samples.reference, "columns": reading.columns, "exclude": reading.exclude}
    return call_of("mmd", reading, data, **told, paired=[cases], categorical=split_patterns(reading.categorical))


def call_of(command: str, reading: Reading, source: Any, **told: Any) -> str:
    """Return a call on the rows that are read, with missing values as they are taken; None and no names are not told."""
    told["missing"] = None if reading.missing == "error" else reading.missing
    told |= {name: value for name, value in vars(reading.csv).items() if value != vars(AS_USUAL)[name]}
    words = [option(name, value, most=None) for name, value in told.items() if value is not None and value != []]
    typed = " ".join([f"kerntest {command}", shell_word(str(source)), *words])
    return either(f"`{typed}`", f"{command}_test({', '.join(['data', *words])})")


def refuse_many(pairs: int, count: int, noun: str, ways: _Ways | None = None, two: Sequence[str] = ()) -> None:
    """Refuse more pairs than anybody reads, of which the first is of two."""
    if pairs <= MOST_PAIRS:
        return
    hint, column = f"at most {MOST_PAIRS + 1} {noun} can be compared with one of them", ""
    if ways is not None:
        where, column = ways.reading.csv.where, f" in {ways.by!r}"
        some = ways.condition(two)
        some = some if where is None else f"({where}) and {some}"
        hint = f"{ways.to_compare('where', some)} takes two of them; {ways.others_than_groups()}"
        if count - 1 <= MOST_PAIRS:
            hint = f"{ways.to_compare('reference', two[0])} compares each with that one; {hint}"
    said = f"{counted(count, noun.removesuffix('s'))}{column} make {pairs:,} pairs, more than {MOST_PAIRS}"
    raise UsageError(said, hint=hint, code="usage.groups")
