"""A ridge regression applied to the rows of a file: a column for each target, and its interval."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.checks import check_probability
from kerntest.errors import UsageError
from kerntest.learning.predicted_columns import float_columns
from kerntest.learning.predicting import Predicting, Range, Told, Wanted
from kerntest.learning.rowwise import ROW, Found

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Points
    from kerntest.learning.ridge_model import RidgeModel


def check_wanted(model: RidgeModel, wanted: Wanted, shown: str) -> None:
    """Refuse what a regression does not have.

    Raises
    ------
    UsageError
        As above.
    """
    for asked, name in ((wanted.proba, "--proba"), (wanted.decision, "--decision")):
        if asked:
            raise UsageError(
                f"{name} is for support vector machines, and {shown} is a ridge regression",
                hint="--interval 0.9 gives intervals, --std standard deviations",
                code="usage.no_decision",
            )
    if wanted.interval is not None:
        check_probability(wanted.interval)
    if (wanted.std or wanted.interval is not None) and model.spread is None:
        raise UsageError(
            f"{shown} was fitted with --no-intervals, and has none",
            hint="fit it without that option",
            code="usage.no_intervals",
        )


def output_names(model: RidgeModel, wanted: Wanted) -> list[str]:
    """Return the columns that predictions take, in their order.

    Raises
    ------
    UsageError
        If two of them have one name.
    """
    endings = [""]
    if wanted.std or wanted.interval is not None:
        endings.append("_std")
    if wanted.interval is not None:
        endings += ["_low", "_high"]
    names = [f"{target}{ending}" for target in model.targets for ending in endings]
    twice = [name for name, count in Counter([ROW, *names]).items() if count > 1]
    if twice:
        raise UsageError(
            f"the predictions would have two columns {twice[0]!r}",
            hint="rename the target, and fit the model again",
            code="usage.output_names",
        )
    return names


@dataclass(slots=True, eq=False)
class RidgeTally:
    """The range of the predictions of each target."""

    ranges: dict[str, Range] = field(default_factory=dict)

    def add(self, other: RidgeTally) -> None:
        """Take note of the next rows."""
        for target, one in other.ranges.items():
            self.ranges.setdefault(target, Range()).add(one)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RidgePredictions(Predicting[RidgeTally]):
    """Predictions of a ridge regression."""

    model: RidgeModel

    def found(self, points: Points | None, engine: Engine) -> Found[RidgeTally]:
        """Return the predictions for rows."""
        model, wanted = self.model, self.wanted
        spread = None
        if points is None:
            mean = np.empty((0, len(model.targets)))
            spread = mean
        else:
            mean = model.predicted(points, engine)
            if wanted.std or wanted.interval is not None:
                spread = model.deviations(points, engine)
        columns = {}
        for place, target in enumerate(model.targets):
            columns[target] = mean[:, place]
            if spread is None or not (wanted.std or wanted.interval is not None):
                continue
            columns[f"{target}_std"] = spread[:, place]
            if wanted.interval is not None:
                reach = model.reach(wanted.interval) * spread[:, place]
                columns[f"{target}_low"] = mean[:, place] - reach
                columns[f"{target}_high"] = mean[:, place] + reach
        tally = RidgeTally()
        for target in model.targets:
            tally.ranges.setdefault(target, Range()).take(columns[target])
        return Found(float_columns(columns), len(mean), tally)

    def nothing(self) -> RidgeTally:
        """Return the tally of no rows."""
        return RidgeTally()

    def told(self, tally: RidgeTally) -> Told:
        """Return what the report tells."""
        summaries = {target: one.summary() for target, one in tally.ranges.items()}
        there = {target: summary for target, summary in summaries.items() if summary is not None}
        several = len(self.model.targets) > 1
        target = ", ".join(self.model.targets)
        numbers = None if several else there.get(self.model.targets[0])
        return Told("ridge", "regress", target, None, numbers, there if several else None)
