"""The independence test on explicit features: two passes over any number of rows."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.messages import listed
from kerntest.data.table import Table
from kerntest.engines.plan import tell
from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError
from kerntest.inference.exact import fitting
from kerntest.inference.family import choose_pair
from kerntest.inference.planning import piece_bytes, pieces_read_twice
from kerntest.inference.sides import FEWEST_ROWS, Groups, Reading, Variable, read_pair, too_few_rows
from kerntest.inference.streamed.block_features import refuse_indefinite
from kerntest.inference.streamed.feature_sums import PairFeatures, pair_sums
from kerntest.inference.streamed.feature_verdict import Found, curve_verdict
from kerntest.inference.streamed.independence_result import feature_result
from kerntest.inference.streamed.pair_features import side_features, split_sample
from kerntest.inference.streamed.sources import open_source
from kerntest.inference.streamed.survey import survey
from kerntest.kernels.base import Columns
from kerntest.matrices.factor import parse_features

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.family import BandwidthOption, Family
    from kerntest.inference.sides import Options
    from kerntest.inference.streamed.sources import Source
    from kerntest.inference.streamed.survey import Survey
    from kerntest.kernels.base import Kernel, Points
    from kerntest.report.independence_record import IndependenceResult

DEFAULT_FEATURES = "nystroem:200"
NULLS = ("moments", "gamma", "spectral")
# Rows of the sample for so many landmarks on each side, and at least.
SAMPLED_ROWS = 2000


@dataclass(frozen=True, slots=True)
class FeatureTest:
    """The options of an independence test on features that are not about reading tables.

    Parameters
    ----------
    options : Options
    kernels : (Kernel or str, Kernel or str)
    bandwidth : "auto", "median", float or sequence of float
    features : str
        "nystroem:200" or "fourier:500", for either side.
    """

    options: Options
    kernels: tuple[Kernel | str, Kernel | str]
    bandwidth: BandwidthOption
    features: str

    def __post_init__(self) -> None:
        """Refuse what features cannot do.

        Raises
        ------
        UsageError
            As above.
        """
        parse_features(self.features)
        if self.options.null not in NULLS:
            raise UsageError(
                f"--null {self.options.null} needs relabelled values that the features do not give",
                hint="with --method features the null is moments, gamma or spectral",
                code="usage.method",
            )
        if self.options.resampling != "shifts":
            raise UsageError(
                f"--resampling {self.options.resampling} needs --method exact",
                hint="leave it out: features have relabellings of their own",
                code="usage.method",
            )
        if not isinstance(self.bandwidth, str) and np.size(self.bandwidth) > 1:
            raise UsageError(
                "features stand for one pair of kernels: give one bandwidth",
                hint="--method exact judges several bandwidths together",
                code="usage.method",
            )


@np.errstate(over="ignore", invalid="ignore")
def analyse_features(
    x: Any,
    y: Any,
    test: FeatureTest,
    reading: Reading,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> IndependenceResult:
    """Run the test of `hsic_test` on explicit features. Arguments and errors as there.

    Notes
    -----
    Cost: O(n (M (p + r) + r^2)) time for M landmarks and r features on both sides. Memory does not
    grow with n.
    """
    started = time.perf_counter()
    engine = engine_of(threads)
    options, adapted = fitting(test.options, "hsic")
    test = replace(test, options=options)
    with _opened(x, y, reading) as (source, groups):
        names = [table.names for table in groups.tables]
        chosen = Reading(
            columns=[name for side in names for name in side],
            categorical=reading.categorical if y is None else (),
            missing=reading.missing,
            csv=reading.csv,
        )
        sampled = max(SAMPLED_ROWS, 2 * parse_features(test.features)[1])
        with survey(
            (source,), chosen, options.scale, options.seed, engine, progress=progress, sampled=sampled
        ) as known:
            sides = _sides(groups, known)
            found, family = _summed(test, known, sides, engine, progress, started=started)
            verdict = curve_verdict(found, options)
            return feature_result(
                test,
                verdict,
                family,
                found=found,
                known=known,
                groups=groups,
                engine=engine,
                warnings=adapted,
                started=started,
            )


@contextmanager
def _opened(x: Any, y: Any, reading: Reading) -> Iterator[tuple[Source, Groups]]:
    """Give an input with its two groups of columns, as its first rows show them."""
    if y is None:
        name = None if isinstance(x, Table) else "data"
        with open_source(x, name, Reading(categorical=reading.categorical, csv=reading.csv)) as source:
            yield source, read_pair(source.head, None, replace(reading, categorical=()))
        return
    if any(isinstance(one, (str, Path)) for one in (x, y)):
        raise UsageError(
            "--method features reads one file with the columns of both sides",
            hint="join the two files row by row into one, and name the columns with --x and --y",
            code="usage.method",
        )
    groups = joined(read_pair(x, y, reading))
    with open_source(groups.read[0], None, Reading()) as source:
        yield source, groups


def joined(groups: Groups) -> Groups:
    """Return two tables whose rows pair as one table; a name that both have is followed by that of its table."""
    first, second = groups.tables
    both = set(first.names) & set(second.names)
    tables = tuple(
        replace(
            table,
            columns=tuple(
                replace(column, name=f"{column.name} of {letter}" if column.name in both else column.name, remarks=())
                for column in table.columns
            ),
        )
        for table, letter in zip(groups.tables, "xy", strict=True)
    )
    name = " and ".join(dict.fromkeys(table.name for table in groups.tables))
    together = replace(
        first, name=name, columns=tuple(column for table in tables for column in table.columns), notes=()
    )
    return Groups((together,), tables, groups.warnings)


def _sides(groups: Groups, known: Survey) -> tuple[Columns, Columns]:
    """Return which columns of the rows are x, and which y.

    Raises
    ------
    DataError
        If there are too few rows, or a side has no column that can tell anything.
    """
    n = known.n[0]
    if n < FEWEST_ROWS:
        raise too_few_rows(groups, n, dropped=known.rows[0] > n)
    sides = []
    for table in groups.tables:
        numeric, categories = (
            tuple(place for place, name in enumerate(names) if name in table.names)
            for names in (known.layout.numeric_names, known.layout.category_names)
        )
        if not numeric and not categories:
            raise DataError(
                f"no column is left to test among {listed(table.names)} of {table.name}: {'; '.join(known.warnings)}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": table.name},
            )
        sides.append(Columns(numeric, categories))
    return sides[0], sides[1]


def _summed(
    test: FeatureTest,
    known: Survey,
    sides: tuple[Columns, Columns],
    engine: Engine,
    progress: Progress | None,
    *,
    started: float,
) -> tuple[Found, Family]:
    """Return the features of both sides with their sums over all rows, and the kernels that they stand for."""
    n, seed = known.n[0], test.options.seed
    speaking = split_sample(n, len(known.sample), seed)
    if _turned(known, sides):
        speaking = speaking[::-1]
    rows = [known.sample.take(places) for places in speaking]
    variables = [_variable(known, columns, some) for columns, some in zip(sides, rows, strict=True)]
    family = choose_pair(test.kernels, test.bandwidth, variables, seed=seed, single=True)
    kernels = family.members[0]
    for kernel in kernels:
        refuse_indefinite(kernel)
    features = PairFeatures(
        *(
            side_features(test.features, kernel, columns, rows=some, seed=seed)
            for kernel, columns, some in zip(kernels, sides, rows, strict=True)
        )
    )
    width = features.x.rank + features.y.rank
    tell(
        "hsic",
        n,
        len(known.columns),
        steps=(
            f"products of {features.x.rank:,} + {features.y.rank:,} features, for the {test.options.null} null"
            + pieces_read_twice(known.n_pieces),
        ),
        held=engine.threads * piece_bytes(len(known.columns)) + 8.0 * width**2 * (engine.threads + 2),
        operations={"kernel": 1.0 * width * n, "product": 1.0 * width**2 * n},
        engine=engine,
        method="features",
        besides=time.perf_counter() - started,
    )
    sums = pair_sums(features, known.pieces(), known.reader.read, engine, progress, total=known.n_pieces)
    return Found(features, sums.centred(), known.sample, (rows[1], rows[0])), family


def _turned(known: Survey, sides: tuple[Columns, Columns]) -> bool:
    """Say whether y stands first in the file: which rows speak for a side does not depend on which one is called x."""
    layout = known.layout
    names = [
        [layout.numeric_names[place] for place in side.numeric]
        + [layout.category_names[place] for place in side.categories]
        for side in sides
    ]
    first, second = (min(known.columns.index(name) for name in some) for some in names)
    return second < first


def _variable(known: Survey, columns: Columns, rows: Points) -> Variable:
    """Return rows that speak for one side as a variable."""
    layout = known.layout
    numeric, categories = list(columns.numeric), list(columns.categories)
    chosen = rows.select(columns)
    return Variable(
        points=type(chosen)(chosen.numeric, chosen.codes),
        centre=layout.centre[numeric],
        spread=layout.spread[numeric],
        numeric_names=tuple(layout.numeric_names[place] for place in numeric),
        category_names=tuple(layout.category_names[place] for place in categories),
        levels=tuple(layout.levels[place] for place in categories),
    )
