"""The test of joint independence of several groups of columns: dHSIC (Pfister et al. 2018)."""

from __future__ import annotations

import time
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import match_names
from kerntest.data.diagnostics import counters
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.rows import check_usable
from kerntest.engines.plan import TABLE_BYTES, tell
from kerntest.engines.setting import engine_of
from kerntest.errors import UsageError, telling
from kerntest.inference.exact import inputs_of, paired_copies, provenance_of
from kerntest.inference.family import BandwidthOption, choose_kernel
from kerntest.inference.joint_sums import joint_bound, refuse_too_many, relabelled_joint
from kerntest.inference.nulls.invariants import kernel_invariants
from kerntest.inference.nulls.moments import moments_p_value, permutation_moments
from kerntest.inference.nulls.permutation import judge, tie_tolerance
from kerntest.inference.planning import ABOUT_COLUMNS
from kerntest.inference.sides import ORDER_STREAM, Groups, MissingPolicy, Options, Reading, Scale, pair_up, read_one
from kerntest.inference.statistic import dependence, factor
from kerntest.inference.verdict import degenerate_pair, refuse_overflow, relabelling_warning
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.report import independence_record, record
from kerntest.report.independence_record import GroupPair, JointGroup
from kerntest.report.independence_summary import joint_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import Table
    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Paired
    from kerntest.kernels.base import Kernel

JointResult = independence_record.JointResult


@telling
@np.errstate(over="ignore", invalid="ignore")
def hsic_joint(
    data: Any,
    groups: str | Sequence[Patterns],
    *,
    kernel: Kernel | str = "auto",
    bandwidth: BandwidthOption = "median",
    permutations: int = 1000,
    alpha: float = 0.05,
    scale: Scale = "standardize",
    seed: int = 0,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> independence_record.JointResult:
    """Test whether several groups of columns are jointly independent.

    Groups can be independent in pairs and dependent together: of two fair coins and whether they agree, any two tell
    nothing of one another and the three are dependent.

    Parameters
    ----------
    data : path, "-", ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
    groups : str, or sequence of str or of sequences of str
        The columns of each group, two groups or more: names, ranges `a:b`, wildcards `temp_*`. One text makes every
        column that it names a group of its own.
    kernel : Kernel or str
        For every group. "auto" is the Gaussian for numbers and the hamming kernel for categories.
    bandwidth : "median" or float
        Of each group.
    permutations : int
        Random relabellings, the observed one among them: every group but the first has its rows, whole, permuted.
    alpha, scale, seed, exclude, categorical, missing, threads, progress
        As in `hsic_test`.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    JointResult

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError
        If a column is in two groups or not there, or there are fewer than two groups.
    DataError
        If the table cannot be read, or a group has nothing to test.
    UndecidedError
        If the kernel matrices of all groups would take more than 1 GB.

    Notes
    -----
    Cost: O(d n^2) time for each relabelling and up to 8 d n^2 bytes for d groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.integers(0, 2, size=(100, 2))
    >>> hsic_joint(np.column_stack([coins, coins.sum(axis=1) % 2]), ["x1", "x2", "x3"]).reject
    True
    """
    started = time.perf_counter()
    options = Options("biased", "permutation", permutations, alpha, scale, seed)
    engine = engine_of(threads)
    table = read_one(data, Reading(categorical=categorical, csv=CsvOptions.of(**csv)))
    tables = _groups(table, groups, exclude)
    paired = pair_up(tables, missing, scale)
    refuse_too_many(paired.n, len(paired.variables))
    families = [
        choose_kernel(
            kernel,
            bandwidth,
            numeric_names=variable.numeric_names,
            category_names=variable.category_names,
            chooser=BandwidthChooser(variable.points, seed),
        )
        for variable in paired.variables
    ]
    kernels = [family.kernels[0] for family in families]
    columns = sum(len(one.names) for one in paired.variables)
    tell(
        "hsic",
        paired.n,
        columns,
        steps=(
            f"{len(kernels)} kernel matrices whole, under {permutations:,} random permutations of all groups but one",
        ),
        held=TABLE_BYTES * paired.n * columns + 8.0 * len(kernels) * paired.n**2,
        operations={"relabelled": (len(kernels) - 1.0) * permutations * paired.n**2},
        engine=engine,
        refusal=(f"this test of {paired.n:,} rows takes", ABOUT_COLUMNS),
    )
    values, null = _relabelled(kernels, paired, options, engine, progress)
    judged = judge(values[None], np.array([joint_bound(kernels, [one.points for one in paired.variables])]))
    if judged.degenerate.all() and len(values) > 1:
        raise degenerate_pair(kernels[0], kernels[1])
    names = [
        tuple(name for name in one.names if name not in family.unused)
        for one, family in zip(paired.variables, families, strict=True)
    ]
    return JointResult(
        schema="kerntest.hsic.joint/1",
        command="hsic",
        statistic=float(values[0]),
        statistic_name="dhsic",
        estimator="biased",
        dhsic=float(values[0]),
        p_value=judged.p_value,
        alpha=alpha,
        reject=judged.p_value <= alpha,
        decision=joint_sentence(judged.p_value, alpha, len(kernels)),
        kernel="; ".join(str(one) for one in kernels),
        n=paired.n,
        columns=tuple(name for group in names for name in group),
        groups=tuple(JointGroup(group, str(one)) for group, one in zip(names, kernels, strict=True)),
        pairs=_in_pairs(kernels, paired, engine, seed),
        null=null,
        warnings=(
            *tables.warnings,
            *paired.warnings,
            *(text for table in tables.tables for text in counters(table.columns)),
            *paired_copies(paired),
            *relabelling_warning(judged.p_value, len(values), alpha),
        ),
        provenance=provenance_of(
            options,
            inputs_of(tables.read, [paired.n]),
            asked=(kernel,),
            rule=str(bandwidth),
            engine=engine,
            started=started,
        ),
        columns_left_out=(
            *(name for one in paired.arranged for name in one.left_out),
            *(name for family in families for name in family.unused),
        ),
    )


def _groups(table: Table, groups: str | Sequence[Patterns], exclude: Patterns) -> Groups:
    """Return the columns of each group as a table.

    Raises
    ------
    UsageError
        If a column is in two groups or not there, a group is empty, or there are fewer than two.
    """
    excluded = set(match_names(exclude, table.names, table.name))
    if isinstance(groups, str):
        groups = [[name] for name in match_names(groups, table.names, table.name) if name not in excluded]
    owner: dict[str, int] = {}
    members: list[list[str]] = []
    for number, patterns in enumerate(groups):
        names = [name for name in match_names(patterns, table.names, table.name) if name not in excluded]
        for name in names:
            if owner.setdefault(name, number) != number:
                raise UsageError(
                    f"column {name!r} is in two groups",
                    hint="a column depends on itself: name it in one group",
                    code="usage.column_twice",
                    where={"file": table.name, "column": name},
                )
        if not names:
            raise UsageError(
                f"group {number + 1} has no column left",
                hint="name more in it, and exclude fewer",
                code="usage.groups",
                where={"file": table.name},
            )
        members.append(names)
    if len(members) < 2:
        raise UsageError(
            f"a joint test needs at least two groups of columns, not {len(members)}",
            hint="--joint a,b,c makes three groups of one column; --joint a,b --joint c makes two groups",
            code="usage.groups",
        )
    return Groups(
        (table,), tuple(check_usable(table.select(names)) for names in members), table.select(list(owner)).warnings
    )


def _relabelled(
    kernels: Sequence[Kernel], paired: Paired, options: Options, engine: Engine, progress: Progress | None
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], record.Null]:
    """Return dHSIC under every relabelling, the observed first, and what the relabellings are."""
    n, moved = paired.n, len(kernels) - 1
    rng = np.random.default_rng((options.seed, ORDER_STREAM))
    unchanged = np.arange(n, dtype=np.int32)
    permutations = [[unchanged] * moved]
    permutations += [
        [rng.permutation(n).astype(np.int32) for _ in range(moved)] for _ in range(options.permutations - 1)
    ]
    values = relabelled_joint(kernels, [one.points for one in paired.variables], permutations, engine, progress)
    refuse_overflow(kernels[:1], values[None])
    null = record.Null(
        method="permutation",
        permutations=len(values),
        requested=options.permutations,
        p_floor=1.0 / len(values),
        exact=True,
        resampling="random permutations of whole groups",
        orders=None,
        mean=float(values.mean()),
        standard_deviation=float(values.std()),
        skewness=float(np.mean(((values - values.mean()) / (values.std() or 1.0)) ** 3)),
        trace=None,
    )
    return values, null


def _in_pairs(kernels: Sequence[Kernel], paired: Paired, engine: Engine, seed: int) -> tuple[GroupPair, ...]:
    """Return the HSIC test of every two groups, by moments."""
    points = [one.points for one in paired.variables]
    known = [
        kernel_invariants(kernel, one, engine, hollow=True, seed=seed)[0]
        for kernel, one in zip(kernels, points, strict=True)
    ]
    largest = [float(np.abs(kernel.diagonal(one)).max()) for kernel, one in zip(kernels, points, strict=True)]
    pairs = []
    for a, b in combinations(range(len(kernels)), 2):
        found = dependence(kernels[a], points[a], kernels[b], points[b], engine)
        moments = permutation_moments(known[a], known[b], paired.n)
        rounding = tie_tolerance(largest[a], paired.n, largest[b] * paired.n)
        value = found.unbiased / factor(paired.n, "unbiased")
        p_value = moments_p_value(value, moments) if moments.standard_deviation > rounding else 1.0
        names = (", ".join(paired.variables[a].names), ", ".join(paired.variables[b].names))
        pairs.append(GroupPair(*names, found.unbiased, found.effect_size, p_value))
    return tuple(pairs)
