"""What holds for the two-sample test and the independence test alike: options, invariances, records, nulls, refusals."""

import functools
import json
import math
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pyarrow as pa
import pytest
import two_samples
import two_variables
from records import assert_same, assert_same_statistic, numbers
from tolerances import assert_close

import kerntest
from kerntest import hsic_test, mmd_test
from kerntest.errors import DataError, UndecidedError, UsageError

TESTS = (mmd_test, hsic_test)
NULLS = ("permutation", "moments", "gamma", "spectral", "pearson")
CURVES = NULLS[1:]
BOTH = pytest.mark.parametrize("test", TESTS)
X, Y = "x", "y"


def kernels(test, text, side="both"):
    """Return the kernel of a test; of one side of two variables, with a plain one on the other."""
    if test is mmd_test:
        return {"kernel": text}
    others = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}
    return others | {f"kernel_{one}": text for one in ("xy" if side == "both" else side)}


def median(test):
    return kernels(test, "gaussian") | {"bandwidth": "median"}


def arrays(test, n=40, strength=1.0, p=2):
    if test is mmd_test:
        return two_samples.arrays(n, n + n // 4, p, shift=0.5 * strength)
    return two_variables.arrays(n, p, 1, strength=strength)


def framed(test, n=40, **options):
    """Return the test of a frame with numbers, text, booleans, as a function of further options."""
    data = two_samples.frames(n, n + 15) if test is mmd_test else (two_variables.frame(n),)
    options = ({} if test is mmd_test else {"y_columns": "price"}) | options
    return test(*data, **options)


def refused(test, error, message, *data, code=None, **options):
    with pytest.raises(error, match=message) as caught:
        test(*(data or arrays(test)), **options)
    assert code is None or caught.value.code == code
    assert caught.value.exit_code == {UsageError: 2, DataError: 3, UndecidedError: 4}[error]
    return caught.value


def joined(result):
    return " | ".join(result.warnings)


# Options


@BOTH
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("alpha", None, "^alpha must be between 0 and 1, not None$"),
        ("alpha", 0, "^alpha must be between 0 and 1, not 0$"),
        ("alpha", 1.0, "^alpha must be between 0 and 1, not 1$"),
        ("alpha", float("nan"), "^alpha must be between 0 and 1, not nan$"),
        ("permutations", 0, "^permutations must be a whole number of at least 1, not 0$"),
        ("permutations", 99.5, "^permutations must be a whole number of at least 1, not 99.5$"),
        ("seed", -1, "^seed must be a whole number of at least 0, not -1$"),
        ("seed", True, "^seed must be a whole number of at least 0, not True$"),
        ("estimator", "unbiasd", "^estimator must be unbiased or biased, not 'unbiasd'$"),
        ("null", "momemts", "^null must be permutation or moments.*, not 'momemts'$"),
        ("judge", "smalest", "^judge must be together or smallest, not 'smalest'$"),
        ("method", "feature", "^method must be auto or exact or features, not 'feature'$"),
        ("resampling", "shift", "^resampling must be (blocks|shifts) or random, not 'shift'$"),
        ("scale", "standardise", "^scale must be standardize or none, not 'standardise'$"),
        ("missing", "dorp", "^missing must be error or drop or indicator, not 'dorp'$"),
        ("threads", 0, "^threads must be at least 1, not 0$"),
        ("threads", "2", "^threads must be at least 1, not '2'$"),
        *(("bandwidth", one, f"^bandwidth must be auto or median, not '{one}'$") for one in ("medain", "3")),
        *(
            ("bandwidth", one, f"^bandwidth must be positive and finite, not {one}$")
            for one in (-1, -1.5, 0, float("nan"), float("inf"), None)
        ),
        ("bandwidth", [1.0, -2.0], "^bandwidth must be positive and finite, not -2$"),
        ("bandwidth", [1.0, "x"], "^bandwidth must be positive and finite, not 'x'$"),
        *(("bandwidth", one, "^no bandwidth was given$") for one in ([], np.array([]))),
    ],
)
def test_options_that_cannot_be(test, name, value, message):
    error = refused(test, UsageError, message, code=f"usage.{name}", **{name: value})
    meant = {"unbiasd": "unbiased", "momemts": "moments", "standardise": "standardize", "medain": "median"}
    if str(value) in meant:
        assert error.hint == f"did you mean '{meant[value]}'?"


@BOTH
@pytest.mark.parametrize("options", [{"alpha": 2}, {"estimator": "x"}], ids=str)
def test_options_are_checked_before_files_are_read(test, options):
    refused(test, UsageError, "must be", "nowhere.csv", "nor_here.csv", **options)


@BOTH
def test_kernels_and_bandwidths_that_do_not_fit(test):
    fixed, open_ = kernels(test, "gaussian(1)"), kernels(test, "gaussian")
    refused(test, UsageError, "leaves no bandwidth open", code="usage.bandwidth_twice", bandwidth=2.0, **fixed)
    refused(test, UsageError, "^this null judges one kernel", bandwidth=[1, 2], null="moments", **open_)
    refused(test, UsageError, "^unknown kernel 'gausian' at character 1", **kernels(test, "gausian", "x"))
    refused(test, UsageError, "^there is no column 'colour'", **kernels(test, "colour: delta", "y"))
    refused(test, UsageError, "columns* 'colour' is (in neither|not in) x (n)?or y$", exclude="colour")


# Data


@BOTH
@pytest.mark.parametrize("source", [[1.0, 2.0, 3.0], 3])
def test_what_is_no_table(test, source):
    x, y = arrays(test)
    refused(test, UsageError, "^x is a .*, which cannot be read as a table$", source, y)
    refused(test, UsageError, "^y is a .*, which cannot be read as a table$", x, source)


@BOTH
@pytest.mark.parametrize(
    ("values", "message", "code"),
    [
        (np.zeros((0, 2)), "^y has no rows$", "data.no_rows"),
        (np.zeros((40, 2, 2)), "^y is an array of 3 dimensions$", "data.wrong_shape"),
        (np.array([["a", "b"]] * 40), "^y is an array of <U1, not of numbers$", "data.not_numeric"),
        (np.repeat([[1.0, np.inf]], 40, axis=0), "^y, row 1: column '[xy]2' holds 'inf'", "data.infinite_values"),
    ],
)
def test_data_that_cannot_be_used(test, values, message, code):
    refused(test, DataError, message, arrays(test)[0], values, code=code)
    refused(test, DataError, "no_such_file.csv", "no_such_file.csv", arrays(test)[1])


def outcome(result):
    return result.p_value, result.statistic, result.kernel


@BOTH
def test_arrays_of_one_dimension_are_one_column(test):
    x, y = arrays(test, p=1)
    result = test(x, y)
    assert outcome(result) == outcome(test(x[:, 0], y[:, 0]))
    assert result.columns == (("x1",) if test is mmd_test else ("x1", "y1"))
    assert test(*arrays(test)).columns == (("x1", "x2") if test is mmd_test else ("x1", "x2", "y1"))


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_arrays_of_other_numbers(test, dtype):
    x, y = np.random.default_rng(0).integers(0, 2, (2, 25, 2)).astype(dtype)
    assert outcome(test(x, y)) == outcome(test(x.astype(float), y.astype(float)))


@BOTH
def test_the_same_data_from_everywhere(test, tmp_path):
    """Paths, texts, CSV, Parquet, frames, Arrow and tables; files are named and hashed."""
    if test is mmd_test:
        frames = two_samples.frames()
    else:
        frame = two_variables.frame()
        frames = frame.drop(columns="price"), frame[["price"]]
    expected = test(*frames)
    paths = [tmp_path / name for name in ("x.csv", "y.csv", "x.parquet", "y.parquet")]
    for path, frame in zip(paths, frames * 2, strict=True):
        (frame.to_csv if path.suffix == ".csv" else frame.to_parquet)(path, index=False)
    sources = [paths[:2], [str(paths[0]), str(paths[1])], paths[2:], [pa.Table.from_pandas(frame) for frame in frames]]
    sources += [[kerntest.read_table(paths[0]), kerntest.read_table(frames[1])], [paths[0], paths[3]]]
    for one in sources:
        assert outcome(test(*one)) == outcome(expected)
    first, second = test(paths[0], frames[1]).provenance.inputs
    rows = [len(frame) for frame in frames]
    assert (first.name, first.format, first.rows, first.rows_used) == (str(paths[0]), "csv", rows[0], rows[0])
    assert len(first.sha256) == 64
    assert (second.name, second.format, second.rows, second.sha256) == (Y, "frame", rows[1], None)


@BOTH
def test_rows_with_missing_values_can_be_dropped(test):
    x, y = arrays(test)
    holed = np.concatenate([x, [[np.nan, 1.0]]]), y if test is mmd_test else np.concatenate([y, y[:1]])
    result = test(*holed, missing="drop")
    assert outcome(result) == outcome(test(x, y))
    assert not any("missing" in text for text in result.warnings)
    assert [one.rows - one.rows_used for one in result.provenance.inputs] == [1, len(holed[1]) - len(y)]


@BOTH
def test_a_kernel_object_is_as_good_as_its_text(test):
    text = kernels(test, "laplacian(2)")
    objects = {name: kerntest.parse_kernel(one) for name, one in text.items()}
    assert_same(numbers(test(*arrays(test), **objects)), numbers(test(*arrays(test), **text)))


@BOTH
@pytest.mark.parametrize("options", [{}, {"null": "moments"}, {"resampling": "random"}], ids=str)
def test_progress_is_called_up_to_the_total(test, options):
    calls = []
    test(*arrays(test), progress=lambda done, total: calls.append((done, total)), **options)
    assert calls
    assert calls[-1][0] == calls[-1][1]


# What must not change a result, and what must


def ways(test):
    moments = median(test) | {"null": "moments"}
    return {
        "family": {},
        "one": median(test),
        "moments": moments,
        "gamma": moments | {"null": "gamma"},
        "random": median(test) | {"resampling": "random", "permutations": 200},
    }


WAYS = pytest.mark.parametrize("way", ways(mmd_test))


@BOTH
@WAYS
def test_the_number_of_threads_changes_nothing(test, way):
    one, several = (framed(test, 200, threads=threads, **ways(test)[way]) for threads in (1, 3))
    assert_same(several, one)


@BOTH
@pytest.mark.parametrize("way", ["one", "moments", "gamma", "random"])
def test_the_order_of_rows_leaves_the_statistic(test, way):
    """Of a family the reported kernel hangs on the relabellings."""
    x, y = arrays(test, 60, strength=0.5)
    expected = test(x, y, **ways(test)[way])
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(x))
    others = rng.permutation(len(y)) if test is mmd_test else rows
    assert_same_statistic(test(x[rows], y[others], **ways(test)[way]), expected)


def test_rows_of_samples_are_sets():
    """Relabellings are drawn for the rows in ascending order, equal ones of both samples too, and are blind to labels."""
    x, y = (frame.round()[["price", "city", "new"]] for frame in two_samples.frames(40, 50))
    moved = x.sample(frac=1, random_state=1), y.sample(frac=1, random_state=2)[["new", "city", "price"]]
    assert_same(mmd_test(*moved), mmd_test(x, y))
    x, y = arrays(mmd_test, strength=0.5)
    one, other = (mmd_test(*data, resampling="random", permutations=100).p_value for data in ((x, y), (y, x)))
    assert one == other


@BOTH
@pytest.mark.parametrize("way", ["one", "moments", "gamma", "random"])
@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_which_is_x_does_not_matter(test, strength, way):
    x, y = arrays(test, 60, strength=strength)
    one, other = test(x, y, **ways(test)[way]), test(y, x, **ways(test)[way])
    assert_same_statistic(other, one)
    if test is mmd_test:
        assert (one.n_x, one.n_y) == (other.n_y, other.n_x)
    else:
        assert_close([other.bandwidth_y, other.bandwidth_x], [one.bandwidth_x, one.bandwidth_y])
        assert (other.columns_x, other.columns_y) == (("x1",), ("y1", "y2"))


@BOTH
def test_bandwidths_of_a_sample_of_pairs_do_not_depend_on_the_order_of_rows(test):
    x, y = arrays(test, 2001)
    rows = np.random.default_rng(0).permutation(2001)
    options = median(test) | {"null": "moments"}
    found = [test(*data, **options) for data in ((x, y), (x[rows], y if test is mmd_test else y[rows]))]
    names = ("bandwidth",) if test is mmd_test else ("bandwidth_x", "bandwidth_y")
    wanted, shuffled = ([getattr(one, name) for name in (*names, "statistic")] for one in found)
    assert_close(shuffled, wanted, scale=1.0)


@BOTH
@pytest.mark.parametrize("way", ["family", "moments"])
@pytest.mark.parametrize(("factor", "offset"), [(1000.0, 0.0), (1e-6, 5.0), (3.7, -1e3)])
def test_the_unit_of_a_column_does_not_matter(test, way, factor, offset):
    x, y = arrays(test, 25, strength=0.5)
    options = ways(test)[way] | {"permutations": 150, "threads": 1}
    one = test(x, y, **options)
    change = np.array([factor, 1.0]), np.array([0.0, offset])
    turned = [x * change[0] + change[1], y * change[0] + change[1] if test is mmd_test else factor * (y + offset)]
    other = test(*turned, **options)
    # Scaling loses the digits that the offset takes.
    assert_close([other.p_value, other.statistic], [one.p_value, one.statistic], scale=1.0, condition=1 + abs(offset))
    if way == "family":
        assert other.p_value == one.p_value


@BOTH
@pytest.mark.parametrize("way", ["family", "moments"])
def test_the_order_of_columns_does_not_matter(test, way):
    if test is mmd_test:
        data = two_samples.frames(60, 70)
        turned = [frame[["new", "weight", "city", "price"]] for frame in data]
        assert_same(test(data[0], turned[1], **ways(test)[way]), test(*data, **ways(test)[way]))
        options = ways(test)[way]
    else:
        data = (two_variables.frame(60),)
        turned = [data[0][["sold", "price", "new", "city", "weight", "depth"]]]
        options = ways(test)[way] | {"y_columns": "price"}
    one, other = test(*data, **options), test(*turned, **options)
    assert_close([other.p_value, other.statistic], [one.p_value, one.statistic], scale=1.0)


@BOTH
@pytest.mark.parametrize("resampling", ["usual", "random"])
def test_the_seed_decides(test, resampling):
    options = median(test) | ({} if resampling == "usual" else {"resampling": "random", "permutations": 300})
    found = [test(*arrays(test, strength=0.3), seed=seed, **options) for seed in (0, 0, 1, 2)]
    assert_same(found[1], found[0])
    assert len({result.p_value for result in found}) > 1
    # Another seed is another set of relabellings of the same statistic.
    assert_close([result.statistic for result in found], [found[0].statistic] * 4)
    assert found[2].null.standard_deviation != pytest.approx(found[0].null.standard_deviation, rel=1e-9)


# What a result says


@BOTH
def test_what_every_record_says(test):
    result = test(*arrays(test), alpha=0.1, seed=5, threads=1, **kernels(test, "gaussian(2)"))
    name = "mmd" if test is mmd_test else "hsic"
    assert (result.schema, result.command, result.estimator) == (f"kerntest.{name}/1", name, "unbiased")
    assert (result.alpha, result.reject, result.family) == (0.1, result.p_value <= 0.1, None)
    null = result.null
    assert (null.method, null.exact, null.requested) == ("permutation", True, 1000)
    assert (null.trace, null.kurtosis, null.p_floor) == (None, None, 1 / null.permutations)
    # The permutation mean of the unbiased estimate is 0.
    assert abs(null.mean) < null.standard_deviation / 4
    made = result.provenance
    assert (made.version, made.seed, made.threads, made.scale) == (kerntest.__version__, 5, 1, "standardize")
    assert (made.dtype, made.engine, made.device, made.bandwidth) == ("float64", "local", None, "in the kernel")
    assert made.libraries["numpy"] == np.__version__
    assert made.seconds > 0
    rows = [len(one) for one in arrays(test)]
    assert [(one.name, one.format, one.rows, one.rows_used, one.sha256) for one in made.inputs] == [
        (X, "array", rows[0], rows[0], None),
        (Y, "array", rows[1], rows[1], None),
    ]
    with pytest.raises(FrozenInstanceError):
        result.p_value = 0.0


@BOTH
def test_a_family_reports_its_members_and_the_one_that_saw_most(test):
    x, y = arrays(test, strength=0.8)
    result = test(x, y)
    members = {
        str(member.to_dict() | dict.fromkeys(("z", "p_value", "excess"))): member for member in result.family.members
    }
    assert len(members) == len(result.family.members) > 4
    names = ("kernel",) if test is mmd_test else ("kernel_x", "kernel_y")
    chosen = [one for one in members.values() if all(getattr(one, name) == getattr(result, name) for name in names)]
    assert [one.z for one in chosen] == [max(one.z for one in members.values())]
    assert (result.family.judge, "towards an excess" in result.family.combination) == ("together", True)
    smallest = test(x, y, judge="smallest")
    assert smallest.p_value >= min(one.p_value for one in members.values())
    assert {one.excess for one in smallest.family.members} == {None}
    # A member alone has the p-value that it has in the family.
    for one in result.family.members[::4]:
        assert test(x, y, **{name: getattr(one, name) for name in names}).p_value == one.p_value


@BOTH
@pytest.mark.parametrize("null", ["permutation", "moments"])
def test_to_dict_is_strict_json_and_to_frame_is_one_row(test, null):
    result = framed(test, null=null)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (plain["p_value"], plain["null"]["method"], plain["columns"]) == (result.p_value, null, list(result.columns))
    table = result.to_frame()
    assert len(table) == 1
    assert table.loc[0, "null.method"] == null
    assert table.loc[0, "columns"] == ";".join(result.columns)
    assert math.isclose(table.loc[0, "statistic"], result.statistic, rel_tol=1e-15)


REPORTED = [
    {},
    {"kernel": "gaussian", "bandwidth": "median"},
    {"kernel": "matern(nu=2.5) + 0.5*linear", "bandwidth": "median"},
    {"kernel": "weight: gaussian; city: delta; *: laplacian"},
    {"kernel": "weight, city: laplacian*delta", "bandwidth": 0.7},
    {"null": "moments"},
    {"null": "gamma"},
    {"estimator": "biased"},
    {"scale": "none", "kernel": "normalise(polynomial(2))", "exclude": "new"},
]
OF_PAIRS = [
    {"kernel_x": "matern(nu=2.5) + 0.5*linear", "kernel_y": "student-t", "bandwidth": "median"},
    {"x_columns": "city,new"},
    {"x_columns": "weight:city", "y_columns": "price,new,sold"},
    {"scale": "none", "kernel_x": "normalise(polynomial(2))", "kernel_y": "exponential(0.1)", "exclude": "sold"},
    {"time_series": True, "min_lag": 3},
    *({"statistic": name, "permutations": 30} for name in ("coco", "kcc", "kmi")),
]
EACH = [*((test, options) for test in TESTS for options in REPORTED), *((hsic_test, options) for options in OF_PAIRS)]


@pytest.mark.parametrize(("test", "options"), EACH)
def test_the_reported_kernels_given_back_give_the_same_statistic(test, options):
    names = ("kernel",) if test is mmd_test else ("kernel_x", "kernel_y")
    options = {"kernel_x" if name == "kernel" and test is hsic_test else name: one for name, one in options.items()}
    result = framed(test, **options)
    again = framed(test, **options | {name: getattr(result, name) for name in names} | {"bandwidth": "auto"})
    for name in names:
        assert getattr(again, name) == getattr(result, name)
    assert_close([again.statistic, again.effect_size], [result.statistic, result.effect_size])
    if result.null.method in CURVES:
        assert_close(again.p_value, result.p_value)


# Nulls


@functools.cache
def long_run(test, estimator):
    return test(*arrays(test, 80, strength=0.45), permutations=20_000, estimator=estimator, **median(test))


@BOTH
@pytest.mark.parametrize("null", CURVES)
def test_every_curve_agrees_with_a_long_permutation_run(test, null):
    estimator = "biased" if null == "gamma" else "unbiased"
    exact = long_run(test, estimator)
    found = test(*arrays(test, 80, strength=0.45), null=null, estimator=estimator, **median(test))
    assert 0.001 < exact.p_value < 0.3
    assert_close(found.statistic, exact.statistic)
    # The Gamma has two moments only: its tail is known to be short.
    assert found.p_value == pytest.approx(exact.p_value, rel=0.5 if null == "gamma" else 0.2)
    # The Gamma and the weighted chi-squares have the spread of the limit, which differs by O(1/n).
    assert found.null.standard_deviation == pytest.approx(exact.null.standard_deviation, rel=0.1)
    assert found.null.mean == pytest.approx(exact.null.mean, abs=0.1 * exact.null.standard_deviation)
    assert (found.null.method, found.null.p_floor, found.null.exact) == (null, None, False)
    assert (found.null.resampling, found.null.orders) == (None, None)
    assert (found.null.permutations is None) == (null != "pearson")


@BOTH
@pytest.mark.parametrize("null", CURVES)
def test_curves_judge_one_kernel_at_the_median(test, null):
    result = framed(test, null=null)
    assert result.family is None
    assert "gaussian(" in result.kernel
    assert result.provenance.bandwidth == "median heuristic"


@BOTH
def test_gamma_tests_the_biased_statistic_and_says_so(test):
    result, asked = (framed(test, null="gamma", estimator=estimator) for estimator in ("unbiased", "biased"))
    assert (result.estimator, result.p_value) == ("biased", asked.p_value)
    assert result.statistic == (result.mmd2_biased if test is mmd_test else result.hsic_biased)
    assert "the Gamma null is a law of the biased statistic: that one is tested and reported" in result.warnings
    assert "biased" not in joined(asked)


@BOTH
@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_random_permutations_agree_with_the_usual_relabellings(test, estimator):
    x, y = arrays(test, 60, strength=0.35)
    options = median(test) | {"permutations": 4000, "estimator": estimator}
    usual, randomly = test(x, y, **options), test(x, y, resampling="random", **options)
    null = randomly.null
    assert (null.resampling, null.orders, null.permutations) == ("random permutations", None, 4000)
    # Statistics agree, and p-values to five standard errors of two independent estimates.
    assert_same_statistic(randomly, usual)
    # Two estimates from 4,000 values each; those of shifts are correlated.
    assert randomly.null.standard_deviation == pytest.approx(usual.null.standard_deviation, rel=0.1)


# Kernels that cannot tell


@BOTH
@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("side", ["x", "y", "both"])
@pytest.mark.parametrize("kernel", ["gaussian(1e-09)", "gaussian(1000000000)", "laplacian(1e-09)"])
def test_kernels_to_which_all_rows_are_alike(test, kernel, side, null):
    named = kernels(test, kernel, side)
    message = "finds all pairs of different rows" if test is mmd_test else "give one value of the statistic only"
    error = refused(test, UndecidedError, message, code="undecided.degenerate_kernel", null=null, **named)
    assert "bandwidth='median'" in error.hint
    assert all(f"'{text}'" in error.message for text in named.values())


def test_a_kernel_without_bandwidth_is_not_told_of_one():
    x = np.random.default_rng(0).normal(size=(20, 2))
    error = refused(mmd_test, UndecidedError, "finds all pairs", x, x + 7.0, kernel="delta", null="permutation")
    assert "a Gaussian can" in error.hint
    assert "bandwidth" not in error.hint


@BOTH
@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("side", ["x", "y"])
@pytest.mark.parametrize(
    ("kernel", "size"), [("exponential", 1e3), ("exponential + gaussian(1)", 1e3), ("linear", 1e160), ("linear", 1e200)]
)
def test_a_kernel_that_overflows_is_named(test, kernel, size, side, null):
    x, y = arrays(test, 30)
    sizes = [size if test is mmd_test or size < 1e9 or side == one else 1.0 for one in (X, Y)]
    message = f"^the kernel '{kernel.partition('(')[0].partition(' ')[0]}.*' overflows on these "
    options = {"code": "undecided.overflow", "scale": "none", "null": null} | kernels(test, kernel, side)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(test, UndecidedError, message, sizes[0] * x, sizes[1] * y, **options)


@pytest.mark.parametrize("resampling", ["blocks", "random"])
def test_sums_that_overflow_though_the_kernel_does_not(resampling):
    size = np.sqrt(np.finfo(float).max) / 2
    data = size * np.repeat([0.9, 1.0], 20), size * np.repeat([0.8, 0.7], 20)
    options = {"kernel": "linear", "scale": "none", "resampling": resampling}
    refused(mmd_test, UndecidedError, "^the kernel 'linear' overflows", *data, code="undecided.overflow", **options)


@pytest.mark.parametrize("null", ["moments", "spectral", "pearson"])
def test_third_powers_that_overflow_though_the_kernels_do_not(null):
    """Third powers of entries of 1e120 are beyond the range of numbers."""
    x, y = arrays(hsic_test, 30)
    options = {"code": "undecided.overflow", "scale": "none", "null": null} | kernels(hsic_test, "linear", "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(hsic_test, UndecidedError, "overflows", 1e60 * x, y, **options)


def test_an_outlier_of_an_exponential_is_no_crash():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1000, 3)), rng.normal(size=1000)
    y[7] = 30.0
    with pytest.raises(UndecidedError):
        hsic_test(x, y, kernel_x="exponential", kernel_y="exponential")


# Warnings


@BOTH
def test_no_warning_where_nothing_is_odd(test):
    for n in (10, 40, 300):
        assert test(*arrays(test, n), **kernels(test, "gaussian(1)")).warnings == ()
    assert framed(test).warnings == ()


@BOTH
def test_a_kernel_that_does_not_see_everything(test):
    statistic = "MMD^2" if test is mmd_test else "HSIC"
    for side in ("x", "y"):
        prefix = "" if test is mmd_test else f"{side}: "
        found = joined(test(*arrays(test), **kernels(test, "linear", side)))
        assert found.startswith(f"{prefix}'linear' sees only differences of means: a value of zero does not mean")
        found = joined(test(*arrays(test), **kernels(test, "polynomial(2, 1, -1)", side)))
        assert f"{prefix}the kernel 'polynomial" in found
        assert f"is not positive definite: {statistic} is then no squared distance" in found
    name = "kernel" if test is mmd_test else "kernel_x"
    result = framed(test, **{name: "weight: gaussian; city: delta"})
    others = [one for one in ("weight", "depth", "city", "price", "new", "sold") if one in result.columns_left_out]
    unnamed = ["price", "new"] if test is mmd_test else ["depth", "new", "sold"]
    assert sorted(others) == sorted(result.columns_left_out) == sorted(unnamed)
    (warning,) = result.warnings
    assert warning.startswith("columns that the kernel does not name are left out: ")
    assert all(column in warning for column in unnamed)
    assert result.columns == (("weight", "city") if test is mmd_test else ("weight", "city", "price"))


@BOTH
def test_what_the_clearest_kernel_does_not_see_others_of_its_family_do(test):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 20))
    noise = rng.normal(size=(100, 20) if test is mmd_test else 100)
    y = 2.0 ** (np.arange(20) == 3) * noise if test is mmd_test else x[:, 4] ** 2 + noise
    result = test(x, y)
    assert result.kernel.startswith("additive(")
    assert result.warnings == ()
    assert "'additive' sees each column alone" in joined(test(x, y, **kernels(test, "additive(1)", "x")))


@BOTH
def test_a_floor_above_alpha_and_a_p_value_too_near_to_it(test):
    data = arrays(test, 45, strength=0.3)
    one = kernels(test, "gaussian(1)")
    found = joined(test(*data, permutations=45, alpha=0.01, **one))
    assert found.startswith("the smallest p-value that 45 relabellings can give is 0.0222, above alpha = 0.01")
    assert "permutations=" in found
    assert test(*data, permutations=100, alpha=0.01 / 1.05, **one).warnings == () or test is mmd_test
    p_value = test(*data, **one).p_value
    assert 0.002 < p_value < 1
    (warning,) = test(*data, alpha=p_value, **one).warnings
    assert "lies within two Monte-Carlo standard errors" in warning
    assert test(*data, alpha=p_value, null="moments", **one).warnings == ()
