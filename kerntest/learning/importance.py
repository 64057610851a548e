"""What each column is worth to a model: how much worse it predicts held-out rows whose values of that column are shuffled.

The difference is taken row by row, so that its error is that of a mean of differences. Columns that say the same stand in
for one another: each of them then seems to be worth little. The work is bounded by its count, never by the clock: rows
and shuffles are fewer where columns, or what the model keeps, are many. Where all classes count alike, as many rows of
each are drawn; the values that take the place of theirs are those of all rows, as if all were shuffled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.missing import presence_name
from kerntest.kernels.base import Points
from kerntest.learning.intervals import over_classes, standard_error, too_few
from kerntest.report.results.learning_record import ColumnImportance, Importance

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array, Codes

# Kernel values in all, about a second of them, or a share of those of the rows that were learned from; shuffles of a column, and rows, of which fewer than the last say nothing.
WORK, SHARE, SHUFFLES, FEWEST_ROWS = 10**8, 0.2, 5, 50
# Columns, and scores, that take as long as the exponential of a kernel value.
COLUMNS_A_VALUE, SCORES_A_VALUE = 20, 20


def permutation_importance(
    model: Any,
    points: Points,
    truth: NDArray[Any],
    engine: Engine,
    *,
    seed: int,
    unused: Collection[str] = (),
    clusters: Codes | None = None,
    balanced: bool = False,
) -> Importance | None:
    """Return what each column is worth, the most first, by accuracy or RMSE on some rows; None where that takes too long.

    See Breiman (2001), "Random forests", section 10. Rows of one of the `clusters` are not independent. Where accuracy is
    `balanced` all classes count alike.
    """
    rng, encoder, classifies, n = np.random.default_rng((seed, 3)), model.encoder, truth.ndim == 1, len(points)
    used = [column for column in encoder.columns if column.name not in unused]
    rows, shuffles = affordable(n, len(used), _values_a_row(model), model.n_train)
    if not rows:
        return None
    own = points
    if rows < n:
        chosen = np.sort(_of_each_class(truth, rows, rng) if balanced else rng.choice(n, rows, replace=False))
        own, truth = points.take(chosen), truth[chosen]
        clusters = None if clusters is None else clusters[chosen]
    losses, found = model.losses(own, truth, engine), list[ColumnImportance]()
    told: dict[str, Any] = {"classifies": classifies, "classes": truth if balanced else None}
    for column in used:
        # Of a column with gaps also whether a value is there.
        names = {column.name, *([presence_name(column.name)] if column.indicator else [])}
        places = [
            [k for k, one in enumerate(some) if one.name in names] for some in (encoder.numeric, encoder.categories)
        ]
        total = np.zeros(rows)
        for _ in range(shuffles):
            others = points.take(rng.permutation(n) if rows == n else rng.choice(n, rows, replace=False))
            total += model.losses(_with_values(own, others, places), truth, engine)
        found.append(ColumnImportance(column.name, *_worse(losses, total / shuffles, clusters, **told)))
    found.sort(key=lambda one: -one.mean)
    score: Any = "balanced accuracy" if balanced else "accuracy" if classifies else "RMSE"
    return Importance(score, rows, shuffles, tuple(found))


def affordable(rows: int, columns: int, values: float, learned: int = 0) -> tuple[int, int]:
    """Return how many of some rows, and shuffles of each column, beside a fit to so many; no rows where that takes too long."""
    most = max(WORK, SHARE * learned * values) / (max(columns, 1) * values)
    if most < min(rows, FEWEST_ROWS) or rows < 2:
        return 0, 0
    rows = min(rows, int(most))
    return rows, max(1, min(SHUFFLES, int(most / rows)))


def _values_a_row(model: Any) -> float:
    """Return what one row takes, in kernel values."""
    centres = model.features.size if model.features is not None else len(model.expansion.coefficients)
    parts = 1.0 + len(model.encoder.columns) / COLUMNS_A_VALUE + len(model.expansion.intercepts) / SCORES_A_VALUE
    return float(max(centres, 1) * (parts + (centres / COLUMNS_A_VALUE if model.features is not None else 0.0)))


def _of_each_class(codes: Codes, rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return so many rows, as many of each class, or all that a class has."""
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    # Small classes first: what they leave is for the others. Of more classes than rows chance says which have one.
    members = sorted(members, key=len) if rows >= len(members) else [members[k] for k in rng.permutation(len(members))]
    chosen, left = list["NDArray[np.intp]"](), rows
    for place, own in enumerate(members):
        share = min(len(own), -(-left // (len(members) - place)))
        chosen.append(rng.choice(own, share, replace=False))
        left -= share
    return np.concatenate(chosen)


def _with_values(points: Points, others: Points, places: Sequence[Sequence[int]]) -> Points:
    """Return rows with the values that others have in some columns, numbers and categories."""
    numeric, codes = places
    made = Points(points.numeric.copy(), points.codes.copy())
    made.numeric[:, numeric] = others.numeric[:, numeric]
    made.codes[:, codes] = others.codes[:, codes]
    return made


def _worse(
    before: Array, after: Array, clusters: Codes | None, *, classifies: bool, classes: Codes | None
) -> tuple[float, float | None]:
    """Return by how much accuracy falls or the RMSE rises, from losses of the same rows, with its standard error.

    Where there are `classes` all of them count alike. The error of a root of a mean follows from the slope there:
    d sqrt(m) = d m / (2 sqrt(m)).
    """
    if classes is not None:
        mean, differences = over_classes(after - before, classes)
    elif classifies:
        differences = after - before
        mean = float(differences.mean())
    else:
        roots = [float(np.sqrt(losses.mean())) for losses in (before, after)]
        mean = roots[1] - roots[0]
        halves = [
            losses / (2.0 * root) if root > 0 else losses for losses, root in zip((before, after), roots, strict=True)
        ]
        differences = halves[1] - halves[0]
    return mean, None if too_few(clusters) else standard_error(differences, clusters)
