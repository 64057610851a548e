"""What all tests of the columns of one table keep: pairs, pairs with a target, selection, and groups all together."""

import itertools
import json
from functools import partial

import naive
import numpy as np
import pandas as pd
import pytest
from mixed_columns import mixed_frame
from records import assert_same
from tolerances import assert_close

from kerntest import hsic_joint, hsic_pairs, hsic_select, hsic_test
from kerntest.errors import DataError, KerntestError, UsageError

BASE = ["plain", "wide", "city", "ties", "y"]


def joint(data, **options):
    """Test the numbers, the city and y for joint independence."""
    groups = [[name for name in data.columns if name not in {"city", "y"}], "city", "y"]
    return hsic_joint(data, groups, **options)


SCREENS = {
    "pairs": hsic_pairs,
    "target": partial(hsic_pairs, target="y"),
    "select": partial(hsic_select, target="y", k=3),
    "joint": joint,
}
EVERY = pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
OF_ALL_ROWS = pytest.mark.parametrize("screen", [SCREENS["select"], joint], ids=["select", "joint"])


def frame_of(n=60):
    return mixed_frame(n)[BASE]


def told(result):
    """Return statistics and p-values over relabellings, by the names of the columns."""
    if hasattr(result, "dhsic"):
        return {"all": (result.dhsic, result.p_value)}
    if hasattr(result, "selected"):
        return {step.column: (step.effect_size, step.p_value) for step in result.selected}
    return {(pair.x, pair.y): (pair.effect_size**2, pair.p_permutation) for pair in result.pairs}


@EVERY
def test_nothing_depends_on_threads_on_the_order_of_rows_or_on_units(screen):
    frame, permutations = frame_of().assign(y=np.random.default_rng(5).normal(size=60)), 200
    base = screen(frame, permutations=permutations, threads=1)
    assert_same(screen(frame, permutations=permutations, threads=2), base)
    scaled = frame.assign(wide=frame["wide"] * 1000, plain=5 - frame["plain"], y=frame["y"] / 7)
    for data in (frame.sample(frac=1, random_state=1), scaled):
        other = told(screen(data, permutations=permutations))
        assert other.keys() == told(base).keys()
        for name, (statistic, p) in told(base).items():
            assert_close(other[name][0], statistic)
            # Within the Monte-Carlo error: five standard errors of the difference of two shares.
            error = np.sqrt(2 * p * (1 - p) / permutations)
            assert abs(other[name][1] - p) <= (
                0 if data is scaled and screen is not SCREENS["select"] else 5 * error + 0.01
            )
    # The seed chooses relabellings; the statistics have none.
    other = told(screen(frame, permutations=permutations, seed=9))
    for name, (statistic, _) in told(base).items():
        assert_close(other[name][0], statistic)
    assert other != told(base)


@EVERY
def test_missing_values_may_be_refused(screen):
    frame = frame_of()
    frame.loc[[3, 7], "plain"] = np.nan
    frame.loc[3, "city"] = None
    with pytest.raises(DataError, match="3 missing values") as caught:
        screen(frame, missing="error", permutations=20)
    assert caught.value.code == "data.missing_values"
    # A column that takes no part is not looked at.
    assert screen(frame.assign(city=frame["city"].fillna("Rome")), missing="error", exclude="plain", permutations=20)


@OF_ALL_ROWS
def test_rows_with_missing_values_may_be_left_out(screen):
    frame = frame_of()
    frame.loc[[3, 7], "plain"] = np.nan
    frame.loc[3, "city"] = None
    dropped = screen(frame, missing="drop", permutations=50)
    assert dropped.n == 58
    assert_same(list(told(dropped).items()), list(told(screen(frame.dropna(), permutations=50)).items()))


@EVERY
def test_columns_that_tell_nothing_are_left_out_with_a_word_and_excluded_ones_without(screen):
    frame = frame_of().assign(same=1.0, row=[f"id {k}" for k in range(60)])
    found = screen(frame, permutations=50)
    assert set(found.columns_left_out) == {"same", "row"}
    assert set(found.columns) | {"y"} == set(BASE)
    for name in ("same", "row"):
        assert any(repr(name) in warning and "left out" in warning for warning in found.warnings)
    without = screen(frame, exclude=["same", "row"], permutations=50)
    assert without.columns_left_out == ()
    assert_same(list(told(without).items()), list(told(found).items()))


@EVERY
def test_the_record_is_plain_data_and_a_frame_has_a_row_for_each_test(screen):
    calls = []
    found = screen(frame_of(), permutations=40, progress=lambda done, total: calls.append((done, total)))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["schema"].startswith("kerntest.hsic.")
    rows = plain[found.rows_from] if found.rows_from else [plain]
    frame = found.to_frame()
    assert len(frame) == len(rows)
    assert list(frame["p_value"]) == [row["p_value"] for row in rows]
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert len({total for _, total in calls}) == 1
    assert calls[-1][0] == calls[-1][1]


@EVERY
@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        ({"alpha": 1.5}, "^alpha must be between 0 and 1", "usage.alpha"),
        ({"permutations": 0}, "^permutations must be a whole number", "usage.permutations"),
        ({"seed": -1}, "^seed must be a whole number", "usage.seed"),
        ({"threads": 0}, "^threads must be at least 1", "usage.threads"),
        ({"missing": "dorp"}, "^missing must be error or drop", "usage.missing"),
        ({"exclude": "nothing"}, "^column 'nothing' is not in data$", "usage.unknown_column"),
        ({"exclude": "*"}, "left to select|is selected|has no column left|both the target and excluded", "usage."),
    ],
)
def test_options_that_cannot_be(screen, options, message, code):
    with pytest.raises(UsageError, match=message) as caught:
        screen(frame_of(), **options)
    assert caught.value.code.startswith(code)


FRAME = frame_of()
INFINITE = FRAME.assign(plain=[np.inf] + [1.0] * 59)


@pytest.mark.parametrize(
    ("screen", "options", "message", "code"),
    [
        (hsic_pairs, {"target": "nothing"}, "^column 'nothing' is not in data$", "usage.unknown_column"),
        (hsic_pairs, {"columns": "wide,nothing"}, "^column 'nothing' is not in data$", "usage.unknown_column"),
        (hsic_pairs, {"target": "y", "columns": "y"}, "^no pair of columns of data is selected$", "usage."),
        (hsic_pairs, {"correction": "bonferroni"}, "^correction must be holm or bh or none", "usage.correction"),
        (hsic_pairs, {"estimator": "unbiasd"}, "^estimator must be unbiased or biased", "usage.estimator"),
        (hsic_pairs, {"target": "plain:city"}, "^target= is one column, not 'plain', 'wide', 'city'$", "usage."),
        (hsic_pairs, {"data": FRAME[["y"]]}, "^fewer than two columns of data are left to test", "data.no_columns"),
        (hsic_pairs, {"data": FRAME[["y"]].assign(b=1.0)}, "^fewer than two .*'b' has one value", "data.no_columns"),
        (hsic_pairs, {"data": FRAME.assign(y=1.0), "target": "y"}, "^the target cannot be.*one value", "data.target"),
        (hsic_pairs, {"data": FRAME.assign(y=np.nan), "target": "y"}, "target .* missing values only", "data.target"),
        (hsic_pairs, {"data": INFINITE}, "column 'plain' holds 'inf'", "data.infinite_values"),
        (hsic_pairs, {"data": np.zeros((3, 2, 2))}, "is an array of 3 dimensions", "data.wrong_shape"),
        (hsic_pairs, {"kernel": "exponential(1000)", "bandwidth": "auto"}, "overflows", "undecided.overflow"),
        (hsic_select, {"target": "nothing"}, "^column 'nothing' is not in data$", "usage.unknown_column"),
        (hsic_select, {"target": "y", "k": 1.5}, "must be a whole number of at least 1, not 1.5$", "usage."),
        (hsic_select, {"target": "y", "columns": "nothing"}, "^column 'nothing' is not in", "usage.unknown_column"),
        (hsic_select, {"target": "y", "columns": "y"}, "^no column of data is left to select from$", "usage."),
        (
            hsic_joint,
            {"groups": ["plain", ["wide", "plain"]]},
            "^column 'plain' is in two groups$",
            "usage.column_twice",
        ),
        (hsic_joint, {"groups": ["plain:city", "w*"]}, "^column 'wide' is in two groups$", "usage.column_twice"),
        (hsic_joint, {"groups": ["plain", "nothing"]}, "^column 'nothing' is not in data$", "usage.unknown_column"),
        *((hsic_joint, {"groups": one}, "at least two groups of columns", "usage.groups") for one in (["plain"], [])),
        (hsic_joint, {"groups": ["plain", "y"], "exclude": "y"}, "group 2 has no column left", "usage.groups"),
        (
            hsic_joint,
            {"groups": ["y", "wide"], "kernel": "gaussian(1e-9)"},
            "one value of the",
            "undecided.degenerate_kernel",
        ),
        (hsic_joint, {"groups": ["y", "wide"], "kernel": "exponential(1000)"}, "overflows", "undecided.overflow"),
        *(
            (one, {"data": data}, message, code)
            for one in (SCREENS["select"], joint)
            for data, message, code in (
                (FRAME.assign(y=1.0), "'y' has one value in all rows", "data."),
                (FRAME[:3], "3 rows; the test needs at least 4", "data.too_few_rows"),
            )
        ),
    ],
)
def test_what_cannot_be_tested(screen, options, message, code):
    with pytest.raises(KerntestError, match=message) as caught:
        screen(**{"data": FRAME} | options)
    assert caught.value.code.startswith(code)


def rare(n, count, rng):
    column = np.zeros(n)
    column[rng.choice(n, count, replace=False)] = 1.0
    return column


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_pairs_of_columns_of_two_values_are_exact(estimator):
    """Against every way to put the ones of y beside x; by moments a few of many outcomes were 10 to 280 times too rare."""
    rng = np.random.default_rng(4)
    for r, s in ((2, 3), (4, 4), (2, 5), (6, 3)):
        x, y = np.zeros(9), np.zeros(9)
        x[rng.permutation(9)[:r]], y[rng.permutation(9)[:s]] = 1.0, 7.0
        K, values = np.exp(-np.square(x[:, None] - x)), []
        for ones in [np.flatnonzero(y), *map(list, itertools.combinations(range(9), s))]:
            other = np.isin(np.arange(9), ones).astype(float)
            L = np.exp(-np.square(other[:, None] - other))
            values.append(np.vdot(*(naive.centred[estimator](one.tolist()) for one in (K, L))))
        p = np.mean(np.array(values[1:]) >= values[0] - 1e-12)
        found = hsic_pairs(pd.DataFrame({"x": x, "y": y}), estimator=estimator, correction="none").pairs[0]
        assert found.p_value == pytest.approx(p, rel=1e-9)
    # Fisher's exact test of one side, of 877 rows.
    flags = pd.DataFrame(
        {"x": np.repeat([0.0, 0.0, 1.0, 1.0], [840, 8, 25, 4]), "y": np.repeat([0.0, 1.0, 0.0, 1.0], [840, 8, 25, 4])}
    )
    assert hsic_pairs(flags).pairs[0].p_value == pytest.approx(4.0e-4, rel=0.05)


def test_rare_flags_that_meet_nowhere_are_not_dependent():
    """Their null is a few outcomes, of which a curve through moments knows nothing: nine in ten such screens rejected."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        table = pd.DataFrame({f"f{count}": rare(1000, count, rng) for count in (3, 4, 6, 9)})
        found = hsic_pairs(table)
        assert not any(pair.reject for pair in found.pairs if pair.p_permutation > 0.2)
        for pair in found.pairs:
            assert pair.p_value is None or pair.p_value >= 0.3 * pair.p_permutation or pair.p_permutation < 0.1
    both = rare(1000, 6, rng)
    assert hsic_pairs(pd.DataFrame({"one": both, "other": both, "noise": rng.normal(size=1000)})).pairs[0].reject
    x, y = rare(1000, 3, rng), rare(1000, 5, rng)
    y[x > 0] = 0.0
    for options in ({"null": "moments"}, {"null": "pearson"}, {"method": "features"}):
        bandwidth = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}
        assert hsic_test(x, y, **bandwidth, **options).p_value > 0.2
