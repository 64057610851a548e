"""Where two samples differ: which columns, and which rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.wording import counted
from kerntest.inference.family import Family, choose_kernels
from kerntest.inference.nulls.permutation import SAME, descending, first_of, judge, scores, tie_tolerance
from kerntest.inference.planning import Further
from kerntest.inference.sample import names_apart
from kerntest.inference.verdict import Relabelled, different_relabellings, relabel
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.report import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Table
    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.options import Options
    from kerntest.inference.sample import Sample
    from kerntest.kernels.base import Array, Kernel

# How many of the most typical rows of each sample are shown.
ROWS_SHOWN = 5


def explain_columns(
    sample: Sample,
    options: Options,
    engine: Engine,
    progress: Progress | None = None,
    places: Sequence[int] | None = None,
) -> tuple[record.ColumnEffect, ...]:
    """Test each column alone, and all without it, and return the columns by how clearly they differ.

    Every column gets its own family of kernels (as `kernel="auto"`) over the same relabellings, and its score is the
    most extreme of them. Adjusted p-values are those of the step-down maximum over columns (Westfall and Young 1993,
    algorithm 4.1): exact control of the chance of naming any column that does not differ, with the dependence between
    columns taken into account.

    Parameters
    ----------
    sample : Sample
    options : Options
    engine : Engine
    progress : callable, optional
    places : sequence of int, optional
        Of these columns only, numeric ones counted first.

    Notes
    -----
    Cost: that of two default tests for each column.
    """
    every = (*sample.numeric_names, *sample.category_names)
    chosen = range(len(every)) if places is None else places
    names = [every[place] for place in chosen]
    found, without = [], []
    for done, place in enumerate(chosen, 1):
        alone = sample.with_columns({place})
        found.append(_best_scores(alone, options, engine))
        p_without = None
        if len(every) > 1:
            others = sample.with_columns(set(range(len(every))) - {place})
            p_without = _joint(others, options, engine)
        without.append(p_without)
        if progress is not None:
            progress(done, len(names))
    combined = np.stack([score for score, _, _ in found])
    adjusted = step_down(combined)
    effects = [
        record.ColumnEffect(
            column=name,
            kernel=kernel,
            z=z,
            p_value=float(np.mean(score >= score[0])),
            p_adjusted=float(p),
            p_without=p_without,
        )
        for name, (score, kernel, z), p, p_without in zip(names, found, adjusted, without, strict=True)
    ]
    order = descending(combined[:, 0], SAME * np.maximum(1.0, combined[:, 0]))
    order = order[np.argsort(adjusted[order], kind="stable")]
    return tuple(effects[place] for place in order)


def explanation_work(sample: Sample, options: Options) -> tuple[Further, ...]:
    """Return what `explain_columns` takes: one column of numbers, and one of categories, as often as there are any."""
    numbers, categories = len(sample.numeric_names), len(sample.category_names)
    without = ", and of all without each" if numbers + categories > 1 else ""

    def one_column(place: int, rows: NDArray[np.intp], engine: Engine) -> object:
        return explain_columns(sample.take(rows), options, engine, places=[place])

    return tuple(
        Further(
            f"tests of {counted(count, 'column')} of {kind} alone{without}",
            count,
            len(_family(sample.with_columns({place}), options).kernels),
            partial(one_column, place),
        )
        for kind, place, count in (("numbers", 0, numbers), ("categories", numbers, categories))
        if count
    )


def _joint(sample: Sample, options: Options, engine: Engine) -> float:
    """Return the p-value of the default test of a sample."""
    family, relabelled = _relabelled(sample, options, engine)
    return judge(relabelled.sums, relabelled.tolerances, options.judge, family.halvings).p_value


def _relabelled(sample: Sample, options: Options, engine: Engine) -> tuple[Family, Relabelled]:
    """Return the default family of a sample and its statistics under every relabelling."""
    family = _family(sample, options)
    return family, relabel(family.kernels, sample, options, engine, None, relabellings=options.permutations)


def _family(sample: Sample, options: Options) -> Family:
    """Return the kernels of the default test of a sample."""
    return choose_kernels(
        "auto",
        "auto",
        numeric_names=sample.numeric_names,
        category_names=sample.category_names,
        chooser=BandwidthChooser(sample.points, options.seed),
        single=False,
        relabellings=different_relabellings(sample.labels, options),
    )


def _best_scores(sample: Sample, options: Options, engine: Engine) -> tuple[Array, str, float]:
    """Return the score of the columns of a sample under every relabelling, their clearest kernel, and its z."""
    family, relabelled = _relabelled(sample, options, engine)
    scored, z, degenerate = scores(relabelled.sums, relabelled.tolerances)
    best = first_of(scored[:, 0], np.arange(len(scored)))
    if degenerate.all():
        return np.zeros(scored.shape[1]), str(family.kernels[best]), 0.0
    return scored.max(axis=0), str(family.kernels[best]), float(z[best, 0])


def step_down(values: Array) -> Array:
    """Return p-values adjusted by the step-down maximum over shared relabellings.

    Parameters
    ----------
    values : ndarray, shape (F, R)
        Scores on one scale, larger meaning further from the null; [:, 0] is observed.

    Returns
    -------
    ndarray, shape (F,)
        In the order of `values`; at least 1 / R.
    """
    order = np.argsort(-values[:, 0], kind="stable")
    # Maxima over each score and all that are observed below it.
    maxima = np.maximum.accumulate(values[order][::-1], axis=0)[::-1]
    p = np.mean(maxima >= values[order, :1], axis=1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted


def typical_rows(
    sample: Sample, kernel: Kernel, witness: Array, tables: tuple[Table, Table]
) -> tuple[record.TypicalRow, ...]:
    """Return the rows that are most typical of X, then those of Y, by the witness function.

    Parameters
    ----------
    sample : Sample
    kernel : Kernel
    witness : ndarray, shape (n,)
        The leave-one-out witness function at every row, in the order of the sample.
    tables : (Table, Table)
        X and Y, whose rows the sample has.
    """
    largest = float(np.abs(kernel.diagonal(sample.points)).max())
    sizes = np.bincount(sample.labels, minlength=2)
    # Its value at a row is the product of a row of K with the weights of the means.
    rounding = tie_tolerance(largest, 1, float(np.sqrt(len(witness) * (1.0 / sizes).sum())))
    rows = []
    for side, sign in ((1, 1.0), (0, -1.0)):
        members = np.flatnonzero(sample.labels == side)
        best = members[descending(sign * witness[members], rounding)[:ROWS_SHOWN]]
        table, name = tables[1 - side], names_apart(tables)[1 - side]
        for row in best:
            place = int(sample.origin[row])
            line = None if table.lines is None else int(table.lines[place])
            file = None if table.file_of is None else table.files[table.file_of[place]]
            rows.append(record.TypicalRow(name, place + 1, line, float(witness[row]), file))
    return tuple(rows)
