"""How large a difference is: margins, intervals, and the shift that a test would have found."""

import math
import re
from functools import partial
from itertools import chain

import naive
import numpy as np
import pandas as pd
import pytest
from scipy.special import bdtr, bdtrc, ndtri
from tolerances import assert_close

from kerntest import mmd_test
from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError, UsageError
from kerntest.inference.relabelling.designs import Design
from kerntest.inference.sides import Sample
from kerntest.inference.sizes import margins
from kerntest.inference.sizes.margins import Errors, Law, errors_of
from kerntest.inference.statistic import Effect, discrepancy
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel

# A correct procedure fails a check of shares below with this probability at most.
FALSE_ALARM = 1e-6
FEW = {"permutations": 20, "threads": 1}


def normals(rows, columns=1, *, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(rows, columns)), rng.normal(size=(rows, columns))
    y[:, 0] += shift
    return x, y


def mmd_of_normals(shift, bandwidth=1.0):
    """Return MMD between N(0, 1) and N(shift, 1) under a Gaussian kernel: the integral is one of Gaussians."""
    variance = bandwidth**2 + 2.0
    return math.sqrt(2 * bandwidth / math.sqrt(variance) * (1 - math.exp(-(shift**2) / 2 / variance)))


def shift_of(mmd, bandwidth=1.0):
    variance = bandwidth**2 + 2.0
    return math.sqrt(-2 * variance * math.log(1 - mmd**2 * math.sqrt(variance) / bandwidth / 2))


# Looks inside: the moments behind a bound are in no record.
@pytest.mark.parametrize("design", ["none", "clusters", "pairs", "strata"])
def test_the_errors_of_mean_embeddings_are_those_of_double_sums(design):
    rng = np.random.default_rng(3)
    labels = np.r_[np.ones(8), np.zeros(10)].astype(np.uint8)
    points, rows = Points.of(rng.normal(size=(18, 2))), np.arange(18)
    units, strata, made = rows, np.zeros(18, dtype=np.intp), None
    if design == "clusters":
        units = np.array([0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 5, 6, 7, 7, 7, 7])
        made = Design(units, strata, swaps=False, words="")
    elif design == "pairs":
        labels, units = np.r_[np.ones(9), np.zeros(9)].astype(np.uint8), np.r_[0:9, 0:9]
        made = Design(units, strata, swaps=True, words="")
    elif design == "strata":
        strata = np.r_[np.zeros(5), np.ones(3), np.zeros(4), np.ones(6)].astype(np.intp)
        made = Design(units, strata, swaps=False, words="")
    sample = Sample(points, np.zeros(2), np.ones(2), ("a", "b"), (), labels=labels, origin=rows, design=made)
    kernel = parse_kernel("gaussian(1)")
    found = discrepancy(kernel, points, labels, Engine(1), made)
    got = errors_of(kernel, sample, found, seed=0)
    cells = (2 * strata + labels).tolist()
    sizes = {c: cells.count(c) for c in cells}
    of_cell = {c: len({u for u, d in zip(units, cells, strict=True) if d == c}) for c in cells}
    if design == "pairs":
        of_cell = dict.fromkeys(cells, 9)
    shares = {s: sizes[2 * s] * sizes[2 * s + 1] / (sizes[2 * s] + sizes[2 * s + 1]) for s in strata.tolist()}
    weights = [
        (1 if c % 2 else -1)
        * shares[c // 2]
        / sum(shares.values())
        / sizes[c]
        * math.sqrt(of_cell[c] / (of_cell[c] - 1))
        for c in cells
    ]
    K = [[naive.gaussian(a, b) for b in points.numeric.tolist()] for a in points.numeric.tolist()]
    square, cube, twice = naive.embedding_errors(K, cells, weights, units.tolist(), found.witness.tolist())
    assert_close([got.square, got.cube, got.twice], [square, max(cube, 0.0), max(twice, 0.0)], condition=10)
    # Of a symmetric matrix whose diagonal is 0: at most the Frobenius norm, at least the cube over the square.
    assert cube / square - 1e-12 <= got.largest <= math.sqrt(square) + 1e-12


# Looks inside: at sizes where all rows could be taken, so that a part can be compared with them.
def test_the_errors_of_many_rows_are_told_by_a_part_of_them(monkeypatch):
    rng = np.random.default_rng(1)
    numeric = rng.normal(size=(900, 2))
    numeric[:200] += [0.5, 0.0]
    labels = (np.arange(900) < 200).astype(np.uint8)
    sample = Sample(Points.of(numeric), np.zeros(2), np.ones(2), ("a", "b"), (), labels=labels, origin=np.arange(900))
    kernel = parse_kernel("gaussian(1.5)")
    found = discrepancy(kernel, sample.points, labels, Engine(1))
    every = errors_of(kernel, sample, found, seed=0)
    monkeypatch.setattr(margins, "SAMPLED", 450)
    part = errors_of(kernel, sample, found, seed=0)
    assert part.square != every.square
    for one, other in zip(part, every, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.25)


# Looks inside: the law is closed in its moments.
def test_a_bound_is_where_the_estimate_is_a_quantile():
    errors = Errors(square=1e-6, cube=1e-10, largest=2e-4, twice=1e-8, freedom=1e9)
    law = Law(Effect(0.01, 0.011, 0.2, 4e-6), errors)
    for level in (0.025, 0.05, 0.95, 0.975):
        bound = law.bound(level)
        assert law.quantile(bound, level) == pytest.approx(0.01, rel=1e-9)
        # Without skewness it is normal: Student's quantile is the normal one for so many degrees.
        normal = Law(Effect(0.01, 0.011, 0.2, 4e-6), errors._replace(cube=0.0, twice=0.0))
        bound = normal.bound(level)
        off = (0.01 - bound**2) / math.sqrt(normal.variance(bound))
        assert off == pytest.approx(float(ndtri(level)), rel=1e-6)
    # Whatever the estimate is, an upper bound is above 0, and a lower one not below.
    for estimate in (-1.0, -1e-3, 0.0):
        law = Law(Effect(estimate, 0.0, 0.0, 1e-7), errors)
        assert law.bound(0.95) == 0.0
        assert 0.0 < law.bound(0.05) < 0.1


def tried(repetitions, rows, shift, margin, seed=0):
    """Return the verdicts of a margin, and the intervals, of independent data sets."""
    found = []
    for place in range(repetitions):
        x, y = normals(rows, shift=shift, seed=(seed, place))
        found.append(mmd_test(x, y, kernel="gaussian(1)", scale="none", margin=margin, **FEW))
    return [one.margin.verdict for one in found], [one.interval for one in found]


@pytest.mark.parametrize(("rows", "margin"), [(50, 0.2), (100, 0.4)])
def test_at_the_margin_neither_verdict_is_given_more_often_than_alpha(rows, margin):
    verdicts, _ = tried(150, rows, shift_of(margin), margin)
    for verdict in ("same", "differ"):
        # The share of so many or more.
        assert bdtrc(max(verdicts.count(verdict), 1) - 1, 150, 0.05) > FALSE_ALARM


def test_a_small_file_may_hold_no_row_of_a_rare_kind():
    # None of 20 rows of what every seventh row is elsewhere: that happens where one in ten is.
    x, y = np.zeros(20), (np.arange(500) % 7 == 0).astype(float)
    options = {"kernel": "gaussian(1)", "scale": "none"} | FEW
    assert mmd_test(x, y, margin=0.1, **options).margin.verdict == "undecided"
    assert mmd_test(np.zeros(500), y, margin=0.1, **options).margin.verdict == "differ"


def test_a_named_kernel_measures_in_tables_with_categories_too():
    rng = np.random.default_rng(1)
    x, y = (pd.DataFrame({"a": rng.normal(size=60), "w": rng.choice(["u", "v"], 60)}) for _ in range(2))
    for kernel in ("laplacian(1)", "laplacian"):
        assert mmd_test(x, y, kernel=kernel, margin=0.3, **FEW).margin.kernel.startswith("a: laplacian(")


def test_beyond_the_margin_and_within_it_the_verdict_is_clear():
    assert tried(20, 400, 0.0, 0.3)[0] == ["same"] * 20
    assert tried(20, 400, shift_of(0.45), 0.2)[0] == ["differ"] * 20
    assert tried(20, 60, shift_of(0.2), 0.2)[0].count("undecided") >= 12


def test_an_interval_covers_where_there_is_one():
    mmd = 0.55
    _, intervals = tried(120, 200, shift_of(mmd), 0.1)
    given = [one for one in intervals if one.lower is not None]
    assert len(given) > 110
    assert all(one.lower < one.mmd < one.upper and one.standard_errors > 4 for one in given)
    covered = sum(one.lower <= mmd <= one.upper for one in given)
    assert bdtr(covered, len(given), 0.95) > FALSE_ALARM
    assert all(one.effect_size_lower < one.effect_size < one.effect_size_upper for one in given)
    x, y = normals(5000, shift=shift_of(mmd), seed=7)
    effect = mmd_test(x, y, kernel="gaussian(1)", scale="none", **FEW).effect_size
    covered = sum(one.effect_size_lower <= effect <= one.effect_size_upper for one in given)
    assert bdtr(covered, len(given), 0.95) > FALSE_ALARM


def test_near_0_there_is_no_interval_and_the_report_says_so():
    x, y = normals(100, shift=0.45, seed=4)
    found = mmd_test(x, y)
    assert found.reject
    assert found.interval.standard_errors < 4
    assert found.interval.lower is found.interval.upper is found.interval.effect_size_lower is None
    told = " ".join(str(found).split())
    assert (
        f"none: under the kernel chosen for it beforehand MMD^2 is {found.interval.standard_errors:.2g} standard errors, and it "
        "takes 4; the p-value holds without one" in told
    )
    # Its own estimate lies within its ends, that of the clearest kernel need not.
    found = mmd_test(*normals(100, shift=1.5, seed=4))
    interval, told = found.interval, " ".join(str(found).split())
    assert interval.kernel != found.kernel
    for field, name in (("mmd", "MMD"), ("effect_size", "effect size")):
        ends = [
            getattr(interval, one)
            for one in (("lower", "upper") if name == "MMD" else ("effect_size_lower", "effect_size_upper"))
        ]
        assert ends[0] < getattr(interval, field) < ends[1]
        assert f"{name} {getattr(interval, field):.4g} ({ends[0]:.4g} to {ends[1]:.4g})" in told
    assert "interval 95 %, of another kernel than above: MMD" in told
    # A margin has its own bounds, which hold there too.
    assert "none: MMD" not in str(mmd_test(x, y, margin=0.1))
    assert mmd_test(*normals(100, seed=4)).interval is None


def test_a_margin_in_standard_deviations_is_the_mmd_of_a_shift_of_one_column():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(30, 2)) * [1.0, 3.0], rng.normal(size=(30, 2)) * [1.0, 3.0] + [5.0, 0.0]
    kernel = "gaussian(2)"
    found = mmd_test(x, y, kernel=kernel, scale="none", margin="0.3sd", **FEW).margin
    within = np.sqrt((x.var(axis=0, ddof=1) + y.var(axis=0, ddof=1)) / 2)
    expected = [
        math.sqrt(
            np.mean(
                [
                    naive.mmd_of_a_shift(rows.tolist(), c, 0.3 * within[c], lambda a, b: naive.gaussian(a, b, 2.0)) ** 2
                    for rows in (x, y)
                ]
            )
        )
        for c in (0, 1)
    ]
    assert_close(found.margin, min(expected))
    assert (found.asked, found.column) == ("0.3sd", f"x{1 + int(np.argmin(expected))}")
    # Of the formula for normals, and whatever the unit is.
    x, y = normals(2000, seed=5)
    near, far = (mmd_test(one, other, margin="0.5sd", **FEW).margin for one, other in ((x, y), (1000 * x, 1000 * y)))
    assert_close(near.margin, far.margin)
    bandwidth = float(near.kernel.removeprefix("gaussian(").rstrip(")")) * np.vstack([x, y]).std()
    assert near.margin == pytest.approx(mmd_of_normals(0.5, bandwidth), rel=0.03)


def test_with_strata_standard_deviations_are_those_within_them():
    """Three sites are three residual standard deviations apart: a shift of one is no smaller for that."""
    rng, site = np.random.default_rng(0), np.tile(np.arange(3), 40)
    plain = pd.DataFrame({"site": site.astype(str), "g": np.repeat(["a", "b"], 60), "y": rng.normal(size=120)})
    tables = [plain.assign(y=plain.y + 3 * site + (plain.g == "b") * shift) for shift in (0.0, 1.0, 2.5)]
    found = [mmd_test(one, by="g", strata="site", margin="1sd", **FEW) for one in tables]
    assert [one.margin.verdict for one in found] == ["same", "undecided", "differ"]
    # As of an analysis of variance: site and group, and no interaction.
    design = np.column_stack([np.eye(3)[site], plain.g == "b"]).astype(float)
    _, (square,), *_ = np.linalg.lstsq(design, tables[1].y.to_numpy(), rcond=None)
    assert_close(found[1].margin.shift, math.sqrt(square / (120 - 4)))
    assert f"1sd ({found[1].margin.shift:.2g}) of y: undecided" in " ".join(str(found[1]).split())
    # A t-test of 60 and 60 rows finds 0.51 of it, in columns of one site.
    shift = mmd_test(tables[0], by="g", strata="site", **FEW).smallest_shift
    assert 0.5 < shift.standard_deviations < 1.0


def test_sizes_hang_on_no_order_and_not_on_which_file_is_x():
    x, y = normals(150, 3, shift=0.8, seed=6)
    one = mmd_test(x, y, margin="0.4sd", **FEW)
    order = np.random.default_rng(0).permutation(150)
    for other in (mmd_test(y, x, margin="0.4sd", **FEW), mmd_test(x[order], y, margin="0.4sd", **FEW)):
        for record in ("margin", "interval"):
            first, second = (getattr(found, record).to_dict() for found in (one, other))
            assert first.keys() == second.keys()
            for name, value in first.items():
                assert second[name] == (pytest.approx(value, rel=1e-8) if isinstance(value, float) else value)


def test_the_smallest_effect_is_the_other_half_of_a_margin():
    x, y = normals(300, 2, shift=0.7, seed=8)
    margin, least = mmd_test(x, y, margin="0.2sd").margin, mmd_test(x, y, min_effect="0.2sd").minimum_effect
    assert (least.minimum, least.lower_bound, least.column) == (margin.margin, margin.lower_bound, margin.column)
    assert (margin.verdict, least.reached) == ("differ", True)


def test_features_that_leave_out_much_call_nothing_the_same():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(1500, 6)), rng.normal(size=(1500, 6))
    y[:, 0] += 0.25
    told = {"kernel": "gaussian(1)", "margin": 0.05}
    exact = mmd_test(x, y, **told).margin
    few, many = (mmd_test(x, y, method="features", features=f"nystroem:{one}", **told) for one in (10, 400))
    # Few see less than there is, and a bound from above by what they see would be below it.
    assert few.margin.mmd < 0.7 * exact.mmd
    assert few.margin.verdict != "same"
    assert few.margin.upper_bound == pytest.approx(math.sqrt(2.0))
    assert few.margin.rows_to_decide is None
    assert any("they bound MMD from below alone" in one for one in few.warnings)
    assert exact.upper_bound < 0.2
    # What more of them leave out is added.
    assert many.margin.upper_bound > 0.97 * exact.upper_bound


def test_by_features_sizes_are_nearly_those_of_kernel_matrices():
    x, y = normals(800, 2, shift=0.6, seed=9)
    exact, features = (mmd_test(x, y, kernel="gaussian(1.5)", margin="0.2sd", method=m) for m in ("exact", "features"))
    for name in ("margin", "lower_bound", "upper_bound"):
        assert getattr(features.margin, name) == pytest.approx(getattr(exact.margin, name), rel=0.06)
    for name in ("lower", "upper", "effect_size_lower", "effect_size_upper"):
        assert getattr(features.interval, name) == pytest.approx(getattr(exact.interval, name), rel=0.06)
    x, y = normals(800, 2, seed=10)
    shifts = [mmd_test(x, y, method=method).smallest_shift for method in ("exact", "features")]
    assert shifts[1].standard_deviations == pytest.approx(shifts[0].standard_deviations, rel=0.25)


def test_designs_have_margins_too():
    rng = np.random.default_rng(11)
    case = np.arange(120)
    base = rng.normal(size=120)
    before, after = (pd.DataFrame({"case": case, "v": base + rng.normal(size=120) * 0.1}) for _ in range(2))
    # What cases differ in is in both files: with pairs it is no noise.
    paired, alone = (
        mmd_test(before, after, margin=0.1, **how).margin for how in ({"paired": "case"}, {"columns": "v"})
    )
    assert paired.verdict == "same"
    assert paired.upper_bound < alone.upper_bound
    rows = pd.DataFrame({"shop": np.repeat(np.arange(40), 10), "v": np.repeat(rng.normal(size=40), 10)})
    rows["v"] += rng.normal(size=400) * 0.1
    x, y = rows[:200], rows[200:]
    clustered, alone = (mmd_test(x, y, margin=0.3, **how).margin for how in ({"cluster": "shop"}, {"columns": "v"}))
    assert clustered.upper_bound > 1.5 * alone.upper_bound
    with pytest.raises(UndecidedError, match="margin= takes the standard error"):
        mmd_test(before, after, strata="case", margin=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0.1, "min_effect": 0.1}, "exclude each other"),
        ({"margin": 0.0}, "margin must be positive"),
        ({"margin": "0.2 m"}, "margin must be positive"),
        ({"min_effect": "-1sd"}, "min_effect must be positive"),
        ({"margin": math.inf}, "margin must be positive"),
        ({"margin": True}, "margin must be positive"),
    ],
)
def test_bad_margins_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        mmd_test(*normals(20), **options)


def test_a_margin_in_deviations_of_no_number_is_refused():
    words = pd.DataFrame({"w": ["u", "v", "w", "x"] * 10})
    with pytest.raises(UsageError, match="is one of a column of numbers"):
        mmd_test(words, words[::-1], margin="0.2sd")
    assert mmd_test(words, words[::-1], margin=0.3).margin.column is None


# What a test that found nothing would have found


def test_a_test_that_finds_nothing_says_what_it_would_have_found():
    found = mmd_test(*normals(100, 2, seed=12))
    shift = found.smallest_shift
    assert not found.reject
    assert shift.power == 0.8
    assert re.search(
        r"A shift of any one column \(x[12] is seen least\) by about 0\.\d+ standard deviations is found with 80 % power",
        found.decision,
    )
    assert mmd_test(*normals(100, 2, shift=2, seed=12)).smallest_shift is None
    assert mmd_test(*normals(100, 2, seed=12), margin=0.1).smallest_shift is None
    words = pd.DataFrame({"w": ["u", "v"] * 20})
    assert mmd_test(words, words).smallest_shift is None
    # A few far ones of tied values do not make the mean of those that are moved, whichever of them take part.
    counts = np.random.default_rng((21, 0)).poisson(np.exp(1 + np.random.default_rng((21, 1)).normal(size=240)))
    sides = [pd.DataFrame({"v": counts[start::2].astype(float)}) for start in (0, 1)]
    found = [mmd_test(*sides, seed=seed, permutations=200).smallest_shift.standard_deviations for seed in range(4)]
    assert max(found) < 1.35 * min(found)
    assert max(found) < 0.5
    # Of ten rows of each that lie a little apart (additional sleep, Student 1908) 1.6 is found so often, 0.9 in a quarter.
    sleep = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    sides = [pd.DataFrame({"extra": one}) for one in sleep]
    both = [mmd_test(*sides[::order], seed=seed).smallest_shift for order in (1, -1) for seed in (0, 1)]
    assert all(1.35 < one.standard_deviations < 2.1 for one in both)
    # More rows find less; pairs of many are corrected.
    more = mmd_test(*normals(400, 2, seed=12)).smallest_shift
    assert more.standard_deviations < 0.7 * shift.standard_deviations
    frame = pd.DataFrame({"g": np.repeat(["a", "b", "c"], 100), "v": np.random.default_rng(0).normal(size=300)})
    groups = mmd_test(frame, by="g")
    assert all(pair.smallest_shift > 0.3 for pair in groups.pairs)
    assert "in each pair" in groups.decision


@pytest.fixture
def found_among(request):
    """Return what counts the tests that reject; from then on they do not say what they would have found."""

    def count(tests):
        request.getfixturevalue("without_shifts")
        return sum(test().reject for test in tests)

    return count


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "gaussian", "bandwidth": "median"},
        {"null": "moments", "kernel": "gaussian"},
        {"judge": "smallest"},
    ],
    ids=["auto", "one kernel", "moments", "smallest"],
)
def test_the_shift_is_found_as_often_as_is_said(options, found_among):
    claimed = [mmd_test(*normals(60, 2, seed=(13, k)), alpha=0.05, **options).smallest_shift for k in range(8)]
    shift = float(np.median([one.standard_deviations for one in claimed if one is not None]))
    powers = {}
    for factor in (0.75, 1.25):
        data = (normals(60, 2, shift=factor * shift, seed=(14, k)) for k in range(60))
        powers[factor] = found_among(partial(mmd_test, *one, **options) for one in data)
    # Right within a quarter.
    assert bdtrc(powers[0.75] - 1, 60, 0.8) > FALSE_ALARM
    assert bdtr(powers[1.25], 60, 0.8) > FALSE_ALARM
    assert powers[0.75] < powers[1.25]


@pytest.mark.thorough
def test_the_shift_of_few_rows_is_found_as_often_as_is_said(found_among):
    """Rows that are shifted scale the columns, too, of three rows so much that it was found in 60 of 100 cases."""

    def few(seed, shift=0.0):
        rng = np.random.default_rng(seed)
        x = rng.normal([shift, 0.0], size=(3, 2))
        return mmd_test(x, rng.normal(size=(40, 2)))

    claimed = [few((22, k)).smallest_shift for k in range(20)]
    shift = float(np.median([one.standard_deviations for one in claimed if one is not None]))
    assert bdtr(found_among(partial(few, (23, k), shift) for k in range(150)), 150, 0.8) > FALSE_ALARM


def test_the_shift_of_clusters_is_found_as_often_as_is_said(found_among):
    """Ten clusters of 30 rows on either side, a third of the variance between them: a part of few would not tell it."""

    def clustered(seed, shift=0.0):
        rng, cluster = np.random.default_rng(seed), np.repeat(np.arange(20), 30)
        values = 0.7 * rng.normal(size=(20, 2))[cluster] + rng.normal(size=(600, 2))
        values[:300, 0] += shift * np.sqrt(1.49)
        frame = pd.DataFrame(values, columns=["u", "v"]).assign(case=cluster, arm=np.where(cluster < 10, "a", "b"))
        return mmd_test(frame, by="arm", cluster="case", columns=["u", "v"])

    claimed = [clustered((15, k)).smallest_shift for k in range(8)]
    shift = float(np.median([one.standard_deviations for one in claimed if one is not None]))
    powers = {
        factor: found_among(partial(clustered, (16, k), factor * shift) for k in range(40)) for factor in (0.6, 1.25)
    }
    assert bdtrc(powers[0.6] - 1, 40, 0.8) > FALSE_ALARM
    assert bdtr(powers[1.25], 40, 0.8) > FALSE_ALARM
    assert powers[0.6] < powers[1.25]


def test_columns_that_are_alike_in_every_cluster_stay_so_as_rows_of_tied_values_move():
    """Rows took the hour of others, which no cluster otherwise differs in: a third of the shift was said to be found."""
    rng = np.random.default_rng(1)
    score = np.rint(6 + 1.2 * rng.normal(size=(16, 1)) + 1.5 * rng.normal(size=(16, 15))).ravel()
    frame = pd.DataFrame(
        {"score": score, "phase": np.tile(np.repeat(list("abc"), 5), 16), "hour": np.tile(range(5), 48)}
    )
    frame = frame.assign(case=np.repeat(range(16), 15), arm=np.repeat(["a", "b"], 120))

    def shift(rows, *columns):
        return mmd_test(rows, by="arm", cluster="case", columns=["score", *columns]).smallest_shift

    alone = shift(frame).standard_deviations
    # A few missing rows make them nearly alike.
    for rows in (frame, frame.drop(index=[3, 50, 77])):
        found = shift(rows, "phase", "hour")
        assert found.column == "score"
        assert found.standard_deviations > 0.7 * alone


def of_a_list(n, seed, by=0.0, _=0):
    """Things of a list, whose prices go with their names; of equal chances, small tilts move the mean by as much."""
    price = np.round(np.random.default_rng(17).gamma(4.0, 3.0, 20), 2)
    chances = np.exp(by * (price - price.mean()) / price.std())
    some = np.random.default_rng(seed).choice(20, n, p=chances / chances.sum())
    return pd.DataFrame({"name": [f"thing {k}" for k in some], "price": price[some]})


def rounded(n, seed, by=0.0, column=0):
    """Values of each column are tied, rows are not."""
    x, _ = normals(n, 7, seed=seed)
    x = 0.6 * x[:, 6:] + 0.8 * x[:, :6]
    x[:, column] += by
    return pd.DataFrame(np.round(5.0 * x) / 5.0)


@pytest.mark.parametrize(("made", "n"), [(of_a_list, 200), (rounded, 50)])
def test_the_shift_of_tied_values_is_one_that_rows_make(made, n, found_among):
    """Prices that no longer go with names are seen at a tenth of it, and rows that become copies of others at half of it."""
    claimed = [mmd_test(made(n, (18, k)), made(n, (19, k))).smallest_shift for k in range(8)]
    shift = float(np.median([one.standard_deviations for one in claimed if one is not None]))
    powers = {}
    for factor in (0.5, 1.1):
        pairs = ((made(n, (20, k)), made(n, (21, k), factor * shift, k % 6)) for k in range(42))
        powers[factor] = found_among(partial(mmd_test, *one) for one in pairs)
    assert bdtrc(powers[0.5] - 1, 42, 0.8) > FALSE_ALARM
    assert bdtr(powers[1.1], 42, 0.8) > FALSE_ALARM
    assert powers[0.5] < powers[1.1]


def test_tied_values_on_a_grid_move_and_those_that_many_rows_share_become_more_frequent():
    # Money with two decimals, a few far ones among them: 84 different values of 128 rows.
    rng = np.random.default_rng(5)
    money = np.round(rng.standard_t(2, size=128) * 0.3, 2)
    assert 64 < len(np.unique(money)) < 0.8 * len(money)
    found = [
        mmd_test(*(pd.DataFrame({"v": money[i::2] + e[i::2]}) for i in (0, 1)))
        for e in (0 * money, 1e-3 * rng.normal(size=128))
    ]
    on_grid, apart = (one.smallest_shift for one in found)
    assert not on_grid.of_shares
    assert on_grid.standard_deviations == pytest.approx(apart.standard_deviations, rel=0.3)
    counts = rng.poisson(0.5, size=(2, 100))
    shares = mmd_test(*(pd.DataFrame({"v": one.astype(float)}) for one in counts))
    assert shares.smallest_shift.of_shares
    assert "(rows moving between the values that it has)" in shares.decision


def test_a_shift_of_a_few_rows_has_an_mmd_whatever_chance_makes_of_them():
    x = pd.DataFrame({"v": [-1.6634, -0.7483, -0.0951, 0.6079, 1.3566]})
    y = pd.DataFrame({"v": [-0.8352, -0.7473, -0.0190, 0.7322, 1.5616]})
    assert mmd_test(x, y, margin="0.5sd").margin.margin > 0


def test_samples_differ_by_more_than_a_margin_only_where_the_test_finds_a_difference():
    rng, most = np.random.default_rng(4), math.sqrt(2.0)
    few = [
        rng.normal(size=(40, 2, rows, 1), scale=0.1) + 8.0 * rng.integers(0, 2, size=(40, 2, rows, 1))
        for rows in (2, 3)
    ]
    for x, y in chain(*few):
        one, found = mmd_test(x, y, margin="0.3sd", **FEW), mmd_test(x, y, min_effect="0.3sd", **FEW)
        assert (one.margin.verdict, one.margin.lower_bound, one.interval.lower) == ("undecided", 0.0, None)
        assert one.margin.upper_bound <= most + 1e-12
        assert not found.minimum_effect.reached
    # The 6 relabellings of 2 rows of each cannot reject, the 70 of 4 can.
    apart = [mmd_test(*(np.linspace(0, 0.1, rows)[:, None] + e for e in (0, 8)), margin=0.3) for rows in (2, 4)]
    assert [one.margin.verdict for one in apart] == ["undecided", "differ"]
    assert apart[0].margin.rows_to_decide == (6, 6)


def test_an_mmd_that_no_samples_have_is_no_margin():
    data = normals(40, 2, seed=3)
    for name, never in (("margin", "exceed"), ("min_effect", "reach")):
        with pytest.raises(UsageError, match=f"{name}= of 5 is an MMD that no two samples can {never}") as refused:
            mmd_test(*data, **FEW, **{name: 5})
        assert refused.value.hint == "'5sd' is the MMD of a shift of one column by 5 standard deviations"
    # A linear kernel has no largest MMD; products of directions lie between -1 and 1.
    assert mmd_test(*data, kernel="linear", margin=5, **FEW).margin.verdict == "same"
    assert mmd_test(*data, kernel="normalise(linear)", margin=1.9, **FEW).margin.verdict == "same"
    with pytest.raises(UsageError, match="at most 2"):
        mmd_test(*data, kernel="normalise(linear)", margin=2.1, **FEW)


def test_an_mmd_is_told_as_the_shift_that_has_it():
    data = normals(200, 1, seed=4)
    found = mmd_test(*data, kernel="gaussian(1)", scale="none", margin=0.2, **FEW).margin
    spread = math.sqrt(np.mean([np.var(one, ddof=1) for one in data]))
    # Of a part of the rows, which differ from the law that they are drawn from.
    assert found.standard_deviations * spread == pytest.approx(shift_of(0.2), rel=0.1)
    assert found.column == "x1"
    again = mmd_test(*data, kernel="gaussian(1)", scale="none", margin=f"{found.standard_deviations} sd", **FEW)
    assert again.margin.margin == pytest.approx(0.2, rel=0.05)
    told = str(mmd_test(*data, kernel="gaussian(1)", scale="none", margin=0.2, **FEW))
    assert f"as of a shift of x1 by {found.standard_deviations:.2g}sd ({found.shift:.2g}): same" in told
    assert found.shift == pytest.approx(found.standard_deviations * spread)


def test_a_margin_beyond_every_shift_is_warned_of():
    result = mmd_test(*normals(60, seed=5), kernel="gaussian(1)", margin=1.3, **FEW)
    assert result.margin.standard_deviations is None
    assert [
        text for text in result.warnings if text.startswith("no shift of one column, however far, has an MMD of 1.3")
    ]
    assert not mmd_test(*normals(60, seed=5), kernel="gaussian(1)", margin=0.3, **FEW).warnings


@pytest.mark.parametrize(
    ("value", "options"),
    [
        *((value, options) for value in (5.0, "on") for options in ({}, {"margin": 0.01})),
        (5.0, {"kernel": "linear"}),
        (5.0, {"margin": "0.1sd"}),
    ],
)
def test_lots_of_one_value_are_the_same_and_of_two_differ(value, options):
    lots = [pd.DataFrame({"v": [one] * rows}) for one, rows in ((value, 50), (value, 40), (value * 2, 40))]
    same, differ = (mmd_test(lots[0], one, **options) for one in lots[1:])
    assert (same.p_value, same.mmd, same.effect_size, same.reject) == (1.0, 0.0, 0.0, False)
    assert "all rows are equal, in both x and y" in same.warnings[0]
    assert differ.p_value == 0.001
    assert differ.reject
    if "margin" in options:
        assert (same.margin.verdict, differ.margin.verdict) == ("same", "differ")
        assert differ.margin.lower_bound < differ.margin.mmd < differ.margin.upper_bound


def test_a_table_is_the_same_as_itself():
    x, _ = normals(60, 2, seed=6)
    found = mmd_test(x, x, margin="0.01sd", **FEW)
    assert found.margin.verdict == "same"
    assert "the same rows in the same order: they are one and the same" in found.warnings[0]
    once = mmd_test(x, x, **FEW)
    assert (once.smallest_shift, "80 % power" in once.summary()) == (None, False)
    assert mmd_test(x, normals(60, 2, seed=7)[0], margin="0.01sd", **FEW).margin.verdict == "undecided"


# The laws of both are known, and how many rows decide about them in half of the cases: these were found by simulation.
@pytest.mark.parametrize(
    ("shift", "margin", "rows", "enough"),
    [(0.0, 0.15, 40, 150), (0.3, 0.25, 50, 115), (0.8, 0.24, 40, 115)],
    ids=["equal", "within", "beyond"],
)
def test_an_undecided_margin_says_how_many_rows_would_decide(shift, margin, rows, enough):
    told = []
    for place in range(24):
        x, y = normals(rows, shift=shift, seed=(21, place))
        found = mmd_test(x, y, kernel="gaussian(1)", scale="none", margin=margin, **FEW)
        if found.margin.verdict == "undecided":
            near = abs(max(found.mmd2_unbiased, 0.0) - mmd_of_normals(shift) ** 2)
            told.append((near, (found.margin.rows_to_decide or (math.inf,))[0]))
            assert "would decide" in found.decision
            # Of rows that are out of reach no number is told.
            many = "not even 20 times as many rows"
            assert (many in found.decision) == (found.margin.rows_to_decide is None)
        else:
            assert found.margin.rows_to_decide is None
    # It is told of an estimate that stays as it is: here of those that are near enough to what they estimate.
    half = float(np.median([rows for _, rows in sorted(told)[:9]]))
    assert enough / 1.5 < half < enough * 1.5


@pytest.mark.parametrize("method", ["exact", "features"])
def test_pairs_of_several_samples_have_verdicts_that_hold_together(method):
    rng = np.random.default_rng(8)
    groups = {"a": rng.normal(size=300), "b": rng.normal(size=250), "c": rng.normal(2.0, size=220)}
    frame = pd.DataFrame([(name, one) for name, values in groups.items() for one in values], columns=["g", "v"])
    how = {"kernel": "gaussian(1)", "scale": "none", "method": method, "threads": 1}
    found = mmd_test(frame, by="g", margin=0.22, **how)
    pairs = {(pair.x, pair.y): pair.margin for pair in found.pairs}
    # Each bound as of two samples at a third of alpha.
    for (x, y), margin in pairs.items():
        alone = mmd_test(groups[x], groups[y], margin=0.22, alpha=0.05 / 3, **how).margin
        # Features divide by roots of the eigenvalues of a kernel matrix, and what they leave out is that of a sample of the rows.
        assert_close(margin.lower_bound, alone.lower_bound, condition=1 if method == "exact" else 1000)
        share = {} if method == "exact" else {"share": 1e-4}
        assert_close(margin.upper_bound, alone.upper_bound, condition=1, **share)
    assert {pair: one.verdict for pair, one in pairs.items()} == {
        ("a", "b"): "same",
        ("a", "c"): "differ",
        ("b", "c"): "differ",
    }
    assert (found.margin.verdict, found.margin.same, found.margin.differ, found.margin.undecided) == ("differ", 1, 2, 0)
    assert found.decision.startswith(
        "Within 0.22 the same in 1 of 3 pairs, different in 2, undecided in 0 (each at alpha / 3)."
    )
    assert mmd_test(frame[frame.g != "c"], by="g", margin=0.22, **how).margin.verdict == "same"


def test_pairs_of_several_samples_have_a_smallest_effect():
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"g": np.repeat(["a", "b", "c"], 150), "v": rng.normal(size=450) + np.repeat([0, 1, 3], 150)})
    found = mmd_test(frame, by="g", min_effect="2sd", permutations=200)
    assert [(pair.x, pair.y) for pair in found.pairs if pair.reject] == [("a", "c")]
    assert found.reject
    assert "1 of 3 pairs differs by at least 2sd" in found.decision
    assert not mmd_test(frame, by="g", min_effect="9sd", permutations=200).reject


def test_where_nothing_may_differ_the_rows_that_tell_so_are_told_too():
    found = mmd_test(*normals(40, seed=25, shift=0.3), kernel="gaussian(1)", scale="none", margin=0.15, **FEW)
    assert (found.margin.verdict, found.margin.lower_bound) == ("undecided", 0.0)
    # As of equal distributions above.
    assert 100 < found.margin.rows_if_equal[0] < 225
    assert (
        f"some {found.margin.rows_if_equal[0]:,} rows of each would decide if there is no difference, "
        in found.decision
    )
    sure = mmd_test(*normals(40, seed=20, shift=0.3), kernel="gaussian(1)", scale="none", margin=0.15, **FEW).margin
    assert sure.verdict == "undecided"
    assert sure.lower_bound > 0
    assert sure.rows_if_equal is None
