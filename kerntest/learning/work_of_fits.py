"""What fits, and models applied to rows, take, counted: units of work and bytes, least and most where the values decide."""

from __future__ import annotations

from copy import copy
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.engines.engine import CURRENT, RUN_BYTES, allowed_bytes
from kerntest.engines.plan import SECOND, added, count_wanted, taken_by_rows, tell
from kerntest.errors import counted, option
from kerntest.kernels.base import Points
from kerntest.kernels.counting import work_of_values
from kerntest.kernels.elementary import Linear
from kerntest.learning.solvers import least_squares, rotations
from kerntest.learning.solvers.hinge import KEPT_BYTES as KEPT_ROWS
from kerntest.learning.solvers.hinge import PAIRS_BYTES
from kerntest.learning.solvers.smoothed import CHOOSING_BYTES, TRIANGLE_BYTES, WHOLE_ROWS
from kerntest.matrices.factor import BLOCK, MOST_DIRECTIONS, expected_rank, parse_features
from kerntest.matrices.matrix import KEPT_BYTES as KEPT_TRIANGLE
from kerntest.matrices.matrix import matrix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.engine import Engine
    from kerntest.engines.plan import Work
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.learner import Learner
    from kerntest.learning.machines.svm_fit import Pilot
    from kerntest.learning.rows.model_outputs import ModelColumns
    from kerntest.learning.rows.training_rows import TrainingRows

# How much is too much work for kernel matrices, in nanoseconds: of a pair of rows in a machine, of one for numbers, most of
# whose rows are free where its cost suits their spread, or of one whose cost is searched for by nu, and in the products that find eigenvectors, and of a cube of the rows
# in an eigendecomposition. The race of a grid is as many fits; ridge regression tries
# so many bandwidths.
OF_MACHINES, OF_NUMBERS, OF_PRODUCTS, OF_SPECTRA = 80.0, 240.0, 100.0, 0.2
FITS_OF_A_GRID, BANDWIDTHS = 10, 10
# All measured. Values of the kernel that a machine takes in units of its rows squared: where few rows support it, and where
# most do; of a machine of a grid, which is rough and starts from another; and the share of a matrix that is kept.
EASY, HARD, ROUGH, KEPT_LEAST, KEPT_MOST = 1.0, 8.0, 0.4, 0.02, 0.2
# Bytes that a machine may keep in any case, and a search of its matrices; and copies of the matrix of all rows by those
# that are solved together.
KEPT_ALWAYS, KEPT_BY_SEARCH, COPIES = 8e7, 2e8, 3.0
# And of a search that solves with whole matrices, by each thread.
SEARCHED_ARRAYS = 6.0
# What rows of a matrix that come and go leave unused, as a share of what is kept.
GAPS = 0.15
# By which powers of the rows machines take longer than one of a part of them, least and most; bytes for each entry of the
# largest system, whose rows may grow with all.
POWERS, SYSTEM_BYTES = (1.5, 2.25), 24.0
# Of a fit of a search, systems in units of the cube of the rows, of which as many are free as of a part.
SYSTEMS_OF_FIT = 0.15
# And by features.
FEATURE_POWERS = 0.9, 1.5
# By features: the share of a pilot's work that pairs of classes may take where the largest has so many times the rows of most.
EASY_PAIRS, UNEVEN = 0.25, 4.0
# Calls of numpy of a machine by itself, least and most, and of one of many that are solved together; of one of a search, as a
# share of these.
CALLS, CALLS_STACKED, CALLS_OF_FIT = (3e3, 2e4), 200.0, 0.3
# Rows up to which machines of pairs of classes are solved together.
STACKED_ROWS = 60
# Passes of Lanczos over a matrix, in columns of a vector each; and steps of conjugate gradients.
PASSES, STEPS = (10.0, 40.0), (10.0, 60.0)
# Of steps that all rows have preconditioned, with a first pass and a last, and the products of their features.
FEW_STEPS, OF_ALL_ROWS = (4.0, 6.0), 1.6
# Cubes of an eigendecomposition of a large matrix in units of one of few rows, and what little ones take beside.
LARGE_SPECTRUM, SMALL_ROWS = 0.35, 100.0
# Steps over the entries of a matrix that an eigendecomposition is judged by, for each lambda; arrays of features at once.
JUDGED, FEATURE_ARRAYS = 3.0, 8.0
# Sweeps of the search for sources over all pairs; steps of a climb when its densities are chosen, of the descent on HSIC;
# and how often two Gaussian sources are permuted.
SWEEPS, CLIMBS, DESCENTS, RELABELLED = (3.5, 11.0), (1.0, 100.0), (5.0, 30.0), 100.0
# Columns of features that each source has, with copies, by the likelihood and by HSIC: long tails take more.
SOURCE_COLUMNS = (10.0, 50.0), (80.0, 340.0)
# Calls of numpy for a group of rows that is left out, for each lambda.
CALLS_OF_GROUP, ALONE = 80.0, 1.5
# Bytes for each entry of a matrix that is decomposed.
DENSE_BYTES = 8.0 * least_squares.DENSE_ARRAYS
# Cubes of the landmarks of canonical pairs, of which each side has two eigendecompositions; arrays of them that are held.
DECOMPOSED, LANDMARK_ARRAYS = 2.5, 4.5
# Blocks of rows that a thread holds meanwhile, least and most.
BLOCKS_OF_THREAD = 2.0, 4.0
# And of blocks of features, where they are made.
FEATURE_BLOCKS = 11.0
# Rounds of the search for a pre-image; bytes that a number is written in, in units of what is read by the interpreter; and
# that of a file.
ROUNDS, WRITTEN_BYTES, READ_SHARE = (10.0, 100.0), 4.0, 0.2
# A multiplication of low blocks with large matrices, in units of one of square ones.
FLAT = 1.3
# Numbers of features of which the largest that fits into the memory is named.
ROUND_NUMBERS = tuple(digit * 10**power for power in (4, 3, 2, 1) for digit in (5, 2, 1))
# What loading what learners need, scores and the report take.
BESIDES = {"call": 1e5}


class Cost(NamedTuple):
    """The method in a word, the step in a sentence, the work and the bytes held then, least and most."""

    method: str
    step: str
    work: tuple[Work, Work]
    held: tuple[float, float]


def prepare(learner: Learner[Any, Any], rows: TrainingRows, engine: Engine, why: Sequence[str] = ()) -> None:
    """Tell the plan of a fit, which threads of this process compute, or refuse what takes more memory than is allowed."""
    n, columns = len(rows), len(rows.columns)
    if not count_wanted(n):
        return
    cost, command = learner.cost(rows), learner.COMMAND
    taken = taken_by_rows(n, columns)
    told: Any = {
        "steps": (cost.step, *why),
        "memory": (taken + cost.held[0], taken + cost.held[1]),
        "work": cost.work[0],
        "most": cost.work[1],
    }
    hint, memory = f"give it more {option('memory')}, or fewer rows", engine.memory
    if memory is not None and taken + cost.held[1] > memory:
        hint = _way_out(learner, rows, memory - taken - 2 * RUN_BYTES) or hint
    refusal = f"kerntest {command} of {n:,} rows takes", hint
    tell(command, n, columns, method=cost.method, engine=engine.here, refusal=refusal, **told)


def _way_out(learner: Learner[Any, Any], rows: TrainingRows, room: float) -> str | None:
    """Return the hint for a fit that does not fit into so many bytes: the most features of a round number that do, if any do."""
    asked, other = learner.options.features, copy(learner)
    kind, most = ("nystroem", 500) if asked is None else parse_features(asked)
    for count in ROUND_NUMBERS:
        if count < most or (asked is None and count == most):
            other.options = learner.options.with_features(f"{kind}:{count}")
            if other.cost(rows).held[1] <= room:
                return f"{option('features', f'{kind}:{count}')} fits into it"
    return None


def of_values(kernel: Kernel | None, points: Points | Array) -> Work:
    """Return what a value of a kernel takes; of a matrix that is given a step."""
    return {"entry": 1.0} if kernel is None or not isinstance(points, Points) else work_of_values([kernel], points)


def _blocks_of_features(entries: float) -> float:
    """Return the bytes of the blocks of features that all threads but one hold while they are made."""
    return FEATURE_BLOCKS * 8.0 * min(entries, float(BLOCK)) * (CURRENT.get().engine.threads - 1)


def _of_features(features: str, kernel: Kernel | None, points: Points | Array) -> tuple[int, Work]:
    """Return the number of features that a text asks for, and what those of a row take."""
    kind, size = parse_features(features)
    if kind == "fourier" or not isinstance(points, Points):
        return size, added({"product": 20.0, "exp": 1.0, "entry": 2.0}, times=size)
    return size, added(of_values(kernel, points), {"product": size}, times=size)


def cost_of_machines(
    kernel: Kernel | None,
    points: Points | Array,
    sizes: Sequence[int],
    *,
    features: str | None,
    method: str,
    different: int,
    folds: int | None = None,
    cells: int = 1,
    judged: tuple[int, int] = (0, 0),
    again: int = 0,
    pilot: Pilot | None = None,
    tried: int = 1,
) -> Cost:
    """Return the cost of machines of so many rows each, and of a search in folds, in which so many cells are `judged`, least and most.

    Of all rows so many are `different`. And of as many folds `again` for probabilities. At most so many costs are `tried`. A `pilot` tells what a part of the rows
    takes, with all tries.
    """
    n, rows, threads = len(points), np.array(sizes, dtype=np.float64), CURRENT.get().engine.threads
    searched_in = (
        "" if folds is None else f", {folds} folds" + (", for a grid of costs and bandwidths" if cells > 1 else "")
    )
    # Fits in units of one to all rows: those of a fold have fewer.
    refitted = [some for some in (again, folds if cells == 1 else None) if some]

    def refits(power: float) -> float:
        return float(sum((1.0 - 1.0 / some) ** power * some for some in refitted))

    choosing = [0.0 if folds is None or cells == 1 else (1.0 - 1.0 / folds) ** 2 * fits for fits in judged]
    searched, widened = (refits(2.0) + fits for fits in choosing)
    # Where costs are tried each machine is solved by itself, again and again.
    few = float(np.count_nonzero(rows <= STACKED_ROWS)) if tried == 1 else 0.0
    alone = (len(rows) - few) * (tried if pilot is None else 1)
    calls = [{"call": (CALLS_STACKED * few + one * alone) * (1.0 + CALLS_OF_FIT * searched)} for one in CALLS]
    if features is not None:
        size, made = _of_features(features, kernel, points)
        fixed, bytes_ = added(added(made, times=2.0 * n), calls[1]), 8.0 * n * size
        step = f"{size:,} features of {n:,} rows{searched_in}"
        each = added({"product": 1.0 * size**2, "entry": 8.0 * size}, times=float(rows.sum()) * (1.0 + searched))
        machines = [added(each, times=times) for times in (1.0, 6.0)]
        if pilot is not None:
            # A machine is fitted on one thread.
            alone = pilot.seconds * threads / min(threads, len(rows) * max(folds or 1, 1))
            # Of fewer rows than the pilot's the smaller power is the larger work.
            works = [(rows / pilot.rows) ** power for power in FEATURE_POWERS]
            # The pilot's classes are the largest ones, which are harder to tell apart than a large one from a small one.
            easy = EASY_PAIRS if rows.max() > UNEVEN * np.sort(rows)[len(rows) // 2] else 1.0
            machines = [
                {SECOND: alone * easier * float(end(*works).sum()) * (1.0 + searched)}
                for end, easier in ((np.minimum, easy), (np.maximum, 1.0))
            ]
        least, hardest = (added(fixed, own) for own in machines)
        return _cost(method, step, least, hardest, 1.5 * bytes_, 5.0 * bytes_ + _blocks_of_features(float(n) * size))
    values, squares = added(of_values(kernel, points), {"entry": 2.0}), float((rows**2).sum())
    # Scores of the rows, by the machines and by the nearest mean.
    pairs = float(n) * different
    low = EASY * squares + 1.1 * pairs + ROUGH * searched * squares
    high = HARD * tried * squares + 2.0 * pairs + 4.0 * ROUGH * widened * squares
    fitted: list[Work] = [{}, {}]
    if pilot is not None:
        low, high = ROUGH * choosing[0] * squares + 1.1 * pairs, 4.0 * ROUGH * choosing[1] * squares + 2.0 * pairs
        # Machines of folds are fitted side by side; of a search systems may have as large a share of free rows, at narrow
        # bandwidths of nearly all.
        free, cubes = pilot.free / pilot.rows, float((rows**3).sum())
        fitted = [
            {
                SECOND: pilot.seconds * (_shared(works, threads) + refits(power) * float(works.sum())),
                "product": SYSTEMS_OF_FIT * systems * free * cubes,
            }
            for power, systems in zip(POWERS, (0.0, choosing[1]), strict=True)
            for works in [(rows / pilot.rows) ** power]
        ]
    together = 8.0 * (COPIES * float(different) ** 2 * (few > 0) + float(n) ** 2 * (cells > 1))
    least, hardest = (
        added(added(values, times=times), called, own)
        for times, called, own in zip((low, high), calls, fitted, strict=True)
    )
    largest = float(rows.max(initial=0.0))
    # Machines of folds are fitted side by side, before or after that of all rows.
    beside = [(min(threads, some), 1.0 - 1.0 / some) for some in refitted]
    single = kernel is not None and isinstance(points, Points) and matrix_of(kernel, points).single
    entry = 0.0 if isinstance(kernel, Linear) else 4.0 if single else 8.0
    # So are those of pairs of classes.
    at_once: list[float] = np.sort(rows)[-threads:].tolist()
    told: Any = {"pilot": pilot, "entry": entry, "tried": tried}
    pairs_held = [held_by_machine(one, beside=len(at_once), **told) for one in at_once or [0.0]]
    folds_held = [count * held_by_machine(largest * share, beside=1, **told)[1] for count, share in beside]
    held = (
        max(least for least, _ in pairs_held),
        max(sum(most for _, most in pairs_held), *folds_held, 0.0) + min(together, KEPT_BY_SEARCH),
    )
    trained = largest * (1.0 - 1.0 / (folds or 1))
    if cells > 1 and n * (1.0 - 1.0 / (folds or 1)) <= WHOLE_ROWS:
        held = 2.0 * 8.0 * n**2, (3.0 + SEARCHED_ARRAYS * min(threads, cells)) * 8.0 * n**2
    elif cells > 1:
        # Each thread has a triangle, and a factor of at most about as many entries.
        searching = min(TRIANGLE_BYTES * trained**2, allowed_bytes(CHOOSING_BYTES))
        searching *= min(threads, cells)
        held = max(held[0], searching), max(held[1], 2.0 * searching)
    return _cost(method, f"kernel matrix of {n:,} rows{searched_in}", least, hardest, *held)


def _shared(works: Array, threads: int) -> float:
    """Return the sum of works each of which is done on one thread, or what threads could do until the largest is done."""
    return max(float(works.sum()), threads * float(works.max(initial=0.0)))


def kept_by_machine(beside: int) -> int:
    """Return the bytes of rows that one of so many machines may keep: of a limit those that leave room for blocks and gaps."""
    room = allowed_bytes(KEPT_ROWS * beside) / beside
    if CURRENT.get().engine.memory is not None:
        room = (room - 8.0 * BLOCKS_OF_THREAD[1] * BLOCK) / (1.0 + GAPS)
    return int(min(KEPT_ROWS, max(0.0, room)))


def held_by_machine(rows: float, *, pilot: Pilot | None, entry: float, tried: int, beside: int) -> tuple[float, float]:
    """Return the bytes that one of so many machines `beside` one another keeps, least and most, at most so many costs tried.

    Of rows that crowd at the margin the whole matrix is held, of so many bytes an entry.
    """
    whole, most = 8.0 * rows**2, allowed_bytes(KEPT_ROWS * beside) / beside
    crowded = entry * rows**2 if PAIRS_BYTES * rows**2 <= kept_by_machine(beside) else 0.0
    kept = min(1.3 * whole, max(KEPT_ALWAYS + KEPT_MOST * whole, 1.3 * crowded))
    held = min(KEPT_LEAST * whole, most), min(kept, most)
    if tried > 1:
        # Rows that were free at some cost are kept, in single precision.
        held = held[0], held[1] + min(whole / 2.0, most)
    if pilot is not None:
        free = pilot.free * rows / pilot.rows
        held = held[0] + SYSTEM_BYTES * pilot.free**2, held[1] + SYSTEM_BYTES * free**2
    return held


def cost_of_ridge(
    kernels: Sequence[Kernel | None],
    points: Points | Array,
    *,
    features: str | None,
    lambdas: int,
    chosen_on: int,
    direct: bool,
    held: float,
    left_out: Array,
) -> Cost:
    """Return the cost of ridge regression over some kernels and lambdas; unless it is `direct`, of conjugate gradients on features.

    Each lambda is judged by groups that are such shares of the rows, if any.
    """
    n, widest = float(len(points)), 0.0
    total: list[Work] = []

    def judged(rank: float) -> Work:
        # Rows that are left out alone are judged all at once.
        sizes = n * left_out
        sizes = sizes[sizes > ALONE]
        products, entries = sizes**2 * (rank + sizes / 3) / 2, 8.0 * sizes**2
        work = {"product": float(products.sum()), "entry": float(entries.sum()), "call": CALLS_OF_GROUP * len(sizes)}
        return added(work, times=lambdas)

    if features is not None:
        size, made = _of_features(features, kernels[0], points)
        size = min(size, int(n))
        step = f"{size:,} features of {len(points):,} rows"
        if direct:
            each = added(made, {"product": 10.0 * size**2, "entry": JUDGED * lambdas * size}, times=n)
            each = added(each, judged(size), times=len(kernels))
            return _cost("features", step, each, each, max(FEATURE_ARRAYS * 8 * n * size, held))
        some = points.take(slice(0, chosen_on)) if isinstance(points, Points) else points[:chosen_on]
        told: Any = {"lambdas": lambdas, "chosen_on": chosen_on, "direct": direct, "held": 0.0, "left_out": left_out}
        chosen = added(cost_of_ridge(kernels, some, features=None, **told).work[0], {"spectrum": 2.0 * size**3})
        once = added(of_values(kernels[0], points), {"product": 4.0}, times=n * size)
        # Preconditioned by the products of the features of all rows they are few.
        here = CURRENT.get().engine.name == "local"
        chosen = added(chosen, {"product": OF_ALL_ROWS * size**2 * n if here else 0.0})
        low, high = (added(chosen, added(once, times=times)) for times in (FEW_STEPS if here else STEPS))
        least = DENSE_BYTES * chosen_on**2 * max(min(CURRENT.get().engine.threads, len(kernels)), 1)
        return _cost("features", step, low, high, least, least + DENSE_BYTES * size**2)
    for kernel in kernels:
        rank = n if kernel is None or not isinstance(points, Points) else _thin_rank(kernel, points)
        widest, values = max(widest, rank), of_values(kernel, points)
        total.append(judged(rank))
        if rank < n:
            total.append(added(values, {"product": 30.0 * rank, "entry": 20.0 + JUDGED * lambdas}, times=n * rank))
            continue
        spectrum = LARGE_SPECTRUM + SMALL_ROWS / max(n, SMALL_ROWS)
        total += [added(values, {"entry": 10.0 + JUDGED * lambdas}, times=n**2), {"spectrum": spectrum * n**3}]
    step = f"eigenvalues of the kernel matrix of {len(points):,} rows"
    every = added(*total)
    return _cost("dense", step, every, every, held if widest == n else DENSE_BYTES * n * widest)


def _thin_rank(kernel: Kernel, points: Points) -> float:
    """Return how many columns `thin_factor` finds, n where it finds too many."""
    n, most = len(points), least_squares.MOST_PROBED * least_squares.PROBED
    if n < least_squares.LEAST_ROWS:
        return n
    low, _ = expected_rank(
        kernel, points, least_squares.FACTOR_TOLERANCE, most=min(least_squares.MOST_COLUMNS * n, most)
    )
    return min(low, n)


def cost_of_components(
    kernel: Kernel | None, points: Points | Array, *, components: int, features: str | None, dense: bool
) -> Cost:
    """Return the cost of the leading eigenvectors of a kernel matrix, or of the covariance of features."""
    n, values = float(len(points)), added(of_values(kernel, points), {"entry": 2.0})
    if features is not None:
        size, made = _of_features(features, kernel, points)
        covariance = added(
            added(added(made, times=2.0), {"product": 1.0 * size**2}, times=n), {"spectrum": 1.0 * size**3}
        )
        step = f"covariance of {size:,} features of {len(points):,} rows"
        beside = 8.0 * size**2 * (CURRENT.get().engine.threads - 1)
        held = DENSE_BYTES * size**2 + beside + _blocks_of_features(n * size)
        return _cost("features", step, covariance, covariance, held)
    step, triangle = f"{components:,} components of the kernel matrix of {len(points):,} rows", n**2 / 2
    scores = added(values, {"product": components}, times=n**2)
    if dense:
        whole = added(scores, added(values, times=n**2), {"spectrum": n**3})
        return _cost("exact", step, whole, whole, 32.0 * n**2)
    kept, width = 4.0 * n**2 <= allowed_bytes(KEPT_TRIANGLE), float(min(max(components + 2, 4), 24))
    low, high = (
        added(
            scores,
            added(values, times=triangle * (1.0 if kept else passes)),
            added({"product": 4.0 * width, "entry": 3.0}, times=triangle * passes),
        )
        for passes in PASSES
    )
    return _cost("exact", step, low, high, 4.0 * n**2 if kept else 8.0 * n * 64)


def cost_of_sources(n: int, columns: int, count: int, *, contrast: str, searches: int) -> Cost:
    """Return the cost of `count` sources: of making rows white, the search, the steps to their end, and what is told of them."""
    pairs, m = 0.5 * count * (count - 1), float(count)
    seen, densities = float(min(n, rotations.SEARCHED_ROWS)), 2.0 * rotations.ANGLES
    grid = {"fft": 4.0 * rotations.GRID, "exp": 2.0 * rotations.GRID}
    pair = added(added(grid, {"entry": 22.0 * seen, "gather": 2.0 * seen}, times=densities), {"call": 250.0})
    white = {"product": n * columns * (columns + 2.0 * m), "entry": 6.0 * n * columns}
    # A density of each column for one choice of its smoothness, by some Newton steps on the grid; the rows in one step of a
    # climb; and a step of the descent on HSIC.
    r = 24.0
    density = added({"product": rotations.POINTS * r * r, "exp": rotations.POINTS}, times=6.0 * m)
    density = added(density, {"call": 60.0 * m})
    choices = float(len(rotations.WIDTHS) * len(rotations.DEVIATIONS))
    climbed = {"entry": 30.0 * n * m, "gather": 6.0 * n * m, "product": n * m * m, "call": 50.0}
    step = added({"exp": 20.0, "entry": 60.0, "product": 800.0 + 800.0 * m}, {"call": 100.0 / (n * m)}, times=n * m)
    told = added(
        {"product": 2.0 * 40.0**2 * n * (columns + m)}, {"product": 2.0 * 40.0**2 * n * (columns**2 + m**2)}, times=0.5
    )
    # Factors of both columns of a pair, and their correlations.
    turned = added({"product": 2000.0, "entry": 3000.0, "exp": 60.0}, {"call": 2500.0 / n}, times=pairs * n)
    # Gaussian sources: each pair is permuted until that is sure, and each search climbs on its own.
    permuted = added(
        {"gather": 12.0 * n, "entry": 40.0 * n, "product": 24.0**2 * n, "call": 20.0}, times=pairs * RELABELLED
    )
    low, high = (
        added(
            white,
            told,
            turned,
            added(pair, times=pairs * searches * SWEEPS[most]),
            added(added(density, times=choices), climbed, times=rotations.CHOOSING * (searches if most else 1)),
            added(density, climbed, times=CLIMBS[most] * (searches if most else 1)),
            added(step, times=DESCENTS[most] if contrast == "hsic" else 0.0),
            permuted if most else {},
        )
        for most in (0, 1)
    )
    held = (8.0 * n * (4.0 * (columns + m) + each * m) for each in SOURCE_COLUMNS[contrast == "hsic"])
    return _cost(contrast, f"{count:,} sources of {n:,} rows", low, high, *held)


def cost_of_pairs(
    kernels: Sequence[Kernel | None],
    points: Points | Array,
    *,
    landmarks: int,
    width: int,
    fits: int,
    folds: int,
    threads: int,
) -> Cost:
    """Return the cost of canonical pairs: features of each side, their directions, and a fit for each penalty and fold."""
    n, most = float(len(points)), float(min(width, MOST_DIRECTIONS, len(points)))
    if landmarks:
        made = added(*(of_values(kernel, points) for kernel in kernels), {"product": 2.0 * (most + landmarks / 3)})
        sides = added(added(made, times=3.0 * n * landmarks), {"spectrum": DECOMPOSED * landmarks**3})
        what = f"{landmarks:,} landmarks"
    else:
        sides, what = (
            added({"product": 3.0 * n * width * (width + most)}, {"spectrum": 2.0 * most**3}),
            f"{width:,} columns",
        )
    pairs = {"product": 6.0 * fits * most**3, "spectrum": (2.0 * folds + 0.5 * fits) * most**3, "call": 50.0 * fits}
    every = added(sides, pairs, {"product": 4.0 * n * most**2})
    step = f"pairs of functions of {len(points):,} rows over {what}, {fits:,} fits of {counted(int(most), 'direction')} a side"
    # Sides of few directions hold little of all that; of few rows a block has all.
    block, least = min(float(BLOCK), n * max(landmarks, width)), n * 8 + LANDMARK_ARRAYS * landmarks**2
    held = [
        8.0 * (least + some * threads * block + directions**2 * (folds + 3))
        for some, directions in zip(BLOCKS_OF_THREAD, (1.0, 2.0 * most), strict=True)
    ]
    return _cost("features" if landmarks and landmarks < n else "exact", step, every, every, *held)


def work_of_rows(columns: ModelColumns, rows: int, size: float) -> tuple[Work, Work]:
    """Return least and most of what a model makes of so many rows, which are so many bytes of a file."""
    model, deviates = columns.model, getattr(columns, "deviates", False)
    spread = model.spread.coefficients.shape[1] if deviates else 0
    outputs, written = model.expansion.coefficients.shape[1] + spread, len(columns.names) + len(columns.kept)
    features, encoder = model.features, columns.encoder
    centres = model.expansion.centres if features is None else features.landmarks
    values = added(*(of_values(one, centres) for one in model.kernels)) if features is None else {}
    # Rows come in blocks that are too low for a product of matrices to be at its fastest.
    products = FLAT * outputs if deviates else float(outputs)
    each = added(values, {"product": products, "entry": 1.0}, times=float(len(centres)))
    if features is not None:
        each = added(features.work(1.0), {"product": features.size * products})
    cells = {"text": WRITTEN_BYTES * written, "entry": 40.0 * (len(encoder.names) + written)}
    fixed = added(added(each, cells, times=float(rows)), {"text": READ_SHARE * size, "call": 2e4})
    if not getattr(columns, "reconstruct", False):
        return fixed, fixed
    step = added(
        of_values(model.kernel, centres), {"product": centres.numeric.shape[1], "entry": 3.0}, times=float(len(centres))
    )
    low, high = (added(fixed, added(step, times=rounds * rows)) for rounds in ROUNDS)
    return low, high


def _cost(method: str, step: str, least: Work, most: Work, *held: float) -> Cost:
    """Return a cost with all that is done besides; of one number of bytes that is the least and the most."""
    return Cost(method, step, (added(least, BESIDES), added(most, BESIDES)), (held[0], held[-1]))


# How much work is too much: coarser than what a plan counts, so that the same data go the same way on every machine.


def work_of_machines(learner: Any, rows: TrainingRows) -> float:
    """Return the work of the machines of all pairs of classes, and of a search; that of the linear kernel is little."""
    method = learner.options.method
    if isinstance(rows.kernel, Linear) or method == "mean":
        return 0.0
    rows = rows if method == "perceptron" else rows.merged()[0]
    sizes = [len(rows)]
    if rows.classes is not None and method == "svm":
        sizes = [sum(pair) for pair in combinations(np.bincount(rows.codes).tolist(), 2)]
    fits = FITS_OF_A_GRID if learner.grid else 1 + (learner.folds or 0)
    searched = learner.options.nu is not None and rows.classes is not None
    each = OF_NUMBERS if learner.options.task == "regress" or searched else OF_MACHINES
    return each * fits * sum(float(size) ** 2 for size in sizes)


def work_of_spectra(learner: Any, rows: TrainingRows) -> float:
    """Return the work of an eigendecomposition for each bandwidth."""
    return OF_SPECTRA * float(len(rows)) ** 3 * (1 if learner.options.fixed(rows)[1] else BANDWIDTHS)


def work_of_products(learner: Any, rows: TrainingRows) -> float:
    """Return the work of the products that find eigenvectors; those of the linear kernel are of columns."""
    of_columns = isinstance(rows.kernel, Linear) or learner.options.solver != "auto"
    return 0.0 if of_columns else OF_PRODUCTS * float(len(rows)) ** 2
