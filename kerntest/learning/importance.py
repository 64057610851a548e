"""What each column is worth to a model: how much worse it predicts held-out rows whose values of that column are shuffled.

The difference is taken row by row, so that its error is that of a mean of differences. Columns that say the same stand in
for one another: each of them then seems to be worth little. The work is bounded by its count, never by the clock: rows
and shuffles are fewer where columns, or what the model keeps, are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.missing import presence_name
from kerntest.kernels.base import Points
from kerntest.learning.intervals import standard_error, too_few
from kerntest.report.results.learning_record import ColumnImportance, Importance

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array, Codes

# Kernel values in all, about a second of them; shuffles of a column, and rows, of which fewer than the last say nothing.
WORK, SHUFFLES, FEWEST_ROWS = 10**8, 5, 50
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
    rng, encoder, classifies = np.random.default_rng((seed, 3)), model.encoder, truth.ndim == 1
    used = [column for column in encoder.columns if column.name not in unused]
    rows, shuffles = affordable(len(points), len(used), _values_a_row(model))
    if not rows:
        return None
    if rows < len(points):
        chosen = np.sort(rng.choice(len(points), rows, replace=False))
        points, truth = points.take(chosen), truth[chosen]
        clusters = None if clusters is None else clusters[chosen]
    losses, found, weight = model.losses(points, truth, engine), list[ColumnImportance](), np.ones(rows)
    if balanced:
        _, codes, sizes = np.unique(truth, return_inverse=True, return_counts=True)
        weight = rows / (len(sizes) * sizes[codes])
    losses = losses * weight
    for column in used:
        # Of a column with gaps also whether a value is there.
        names = {column.name, *([presence_name(column.name)] if column.indicator else [])}
        places = [
            [k for k, one in enumerate(some) if one.name in names] for some in (encoder.numeric, encoder.categories)
        ]
        total = np.zeros(rows)
        for _ in range(shuffles):
            total += weight * model.losses(_shuffled(points, places, rng), truth, engine)
        found.append(ColumnImportance(column.name, *_worse(losses, total / shuffles, clusters, classifies=classifies)))
    found.sort(key=lambda one: -one.mean)
    score: Any = "balanced accuracy" if balanced else "accuracy" if classifies else "RMSE"
    return Importance(score, rows, shuffles, tuple(found))


def affordable(rows: int, columns: int, values: float) -> tuple[int, int]:
    """Return how many of some rows, and shuffles of each column; no rows where that takes too long."""
    most = WORK / (max(columns, 1) * values)
    if most < min(rows, FEWEST_ROWS) or rows < 2:
        return 0, 0
    rows = min(rows, int(most))
    return rows, max(1, min(SHUFFLES, int(most / rows)))


def _values_a_row(model: Any) -> float:
    """Return what one row takes, in kernel values."""
    centres = model.features.size if model.features is not None else len(model.expansion.coefficients)
    parts = 1.0 + len(model.encoder.columns) / COLUMNS_A_VALUE + len(model.expansion.intercepts) / SCORES_A_VALUE
    return float(max(centres, 1) * (parts + (centres / COLUMNS_A_VALUE if model.features is not None else 0.0)))


def _shuffled(points: Points, places: Sequence[Sequence[int]], rng: np.random.Generator) -> Points:
    """Return rows with the values of some columns, numbers and categories, in another order."""
    order, (numeric, codes) = rng.permutation(len(points)), places
    shuffled = Points(points.numeric.copy(), points.codes.copy())
    shuffled.numeric[:, numeric] = points.numeric[order[:, None], numeric]
    shuffled.codes[:, codes] = points.codes[order[:, None], codes]
    return shuffled


def _worse(before: Array, after: Array, clusters: Codes | None, *, classifies: bool) -> tuple[float, float | None]:
    """Return by how much accuracy falls or the RMSE rises, from losses of the same rows, with its standard error.

    That of a root of a mean follows from the slope there: d sqrt(m) = d m / (2 sqrt(m)).
    """
    if classifies:
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
