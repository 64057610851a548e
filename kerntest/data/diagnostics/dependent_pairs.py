"""Pairs that are not independent: differences within them that follow time, or are of cases of several pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.diagnostics.cases import case_columns, means_of_groups
from kerntest.data.diagnostics.dependent_rows import alike_neighbours
from kerntest.errors import listed, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Table


def dependent_pairs(used: Sequence[Table], read: Sequence[Table], pairs: NDArray[np.intp]) -> Iterator[str]:
    """Yield a warning where differences within pairs are alike in neighbouring pairs, or in those of one case.

    `pairs` are those of the rows of both tables, one below the other.
    """
    n_x, count = used[0].n_rows, int(pairs.max()) + 1
    of_x, of_y = pairs[:n_x], pairs[n_x:]
    first = np.zeros(count, dtype=np.intp)
    first[of_x[::-1]] = np.arange(n_x)[::-1]
    # Pairs in the order of their rows of X.
    own = np.argsort(first)
    first = first[own]
    differences = [
        replace(
            one, values=(means_of_groups(one.values, of_x, count) - means_of_groups(other.values, of_y, count))[own]
        )
        for one, other in zip(used[0].columns, used[1].columns, strict=True)
        if one.kind == "number"
    ]
    whole, made = read[0].with_all_columns(), {one.name for one in differences}
    rows = whole.take(whole.places_of(used[0].numbers()[first]))
    table = replace(rows, columns=(*(one for one in rows.columns if one.name not in made), *differences))
    if alike := alike_neighbours(differences, table):
        yield (
            f"differences within neighbouring pairs are alike in {listed(list(map(repr, alike)))}: if the rows are a series in time, "
            f"the p-value is far too small; number stretches of rows in a column 'stretch': {option('paired', ['stretch'])} swaps "
            "them together"
        )
        return
    for cases in case_columns(table, differences):
        if cases.sure and cases.inflated(1.0, max(cases.alike.values())):
            yield (
                f"differences within pairs of the same {cases.column.name!r} are alike, and the test takes pairs for "
                f"independent: {option('paired', [cases.column.name])} swaps them together"
            )
            return
