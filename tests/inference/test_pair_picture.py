"""The picture of an independence test: what it shows is right, and it can be drawn whatever the columns are."""

import dataclasses
import functools

import naive
import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearson3

pytest.importorskip("matplotlib")

from tolerances import assert_close

from kerntest import hsic_test
from kerntest.errors import MissingExtraError
from kerntest.inference.explain import pictures
from kerntest.inference.explain.coco import coco, coco_function
from kerntest.inference.explain.pictures import null_picture, pair_figure, pair_picture
from kerntest.inference.independence import analyse_pair
from kerntest.inference.sides import Options, Reading
from kerntest.kernels.base import Points
from kerntest.report.pair_plot import LAGS_DRAWN, LEVELS_DRAWN, _outline
from kerntest.report.plot import bin_edges, picture_bytes
from kerntest.report.results.record import Null
from kerntest.report.summaries.words import shortened_kernel

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
# Those whose texts and axes are laid out by a drawing; what the others show is in their records.
DRAWN = ("two categories", "three against three", "series", "no function")
HOSTILE = ["price $ per $", "two\nlines", "x" * 300, "$\\frac{1}{0$", "a\tb\x1b[31m", "\\$", "_^{}", "温度 😀"]
HOSTILE_NAMES = [HOSTILE[2] + HOSTILE[0], HOSTILE[7] + HOSTILE[4]]


def circle(rows=60, names=("east", "north")):
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, rows)
    return pd.DataFrame({names[0]: 5 + np.cos(angle), names[1]: 100 * np.sin(angle)})


def cities(rows=80, levels=3):
    rng = np.random.default_rng(1)
    city = rng.integers(0, levels, rows)
    names = np.array([f"{HOSTILE[place % len(HOSTILE)]} {place}" for place in range(levels)])
    return pd.DataFrame({"city": names[city], "price": city + rng.normal(size=rows), "vip": city > rng.random(rows)})


def series(rows=60, names=("load", "price")):
    rng = np.random.default_rng(2)
    x = np.convolve(rng.normal(size=rows + 4), np.ones(5), "valid")
    return pd.DataFrame({names[0]: x, names[1]: np.roll(x, 2) + 0.3 * rng.normal(size=rows)})


def two_of_four(rows=40):
    """Two signs that are independent exactly: no function of one has a covariance with one of the other."""
    return pd.DataFrame({"a": np.tile([0.0, 0, 1, 1], rows // 4), "b": np.tile([0.0, 1, 0, 1], rows // 4)})


def wide():
    return pd.DataFrame(np.random.default_rng(3).normal(size=(50, 6)), columns=list("abcdef"))


# What is tested, options of the test, and how many panels (colour bars not counted).
CASES = {
    "numbers": (circle, {}, 4),
    "moments": (circle, {"null": "moments"}, 4),
    "category and number": (lambda: cities()[["city", "price"]], {}, 4),
    "two categories": (lambda: cities()[["city", "vip"]], {}, 4),
    "many hostile levels": (lambda: cities(200, 40)[["city", "price"]].set_axis(HOSTILE_NAMES, axis=1), {}, 4),
    "one against five": (wide, {"y_columns": "f"}, 4),
    "three against three": (wide, {"x_columns": "a:c", "statistic": "coco", "permutations": 20, "bandwidth": 1.0}, 4),
    "some of the columns": (wide, {"y_columns": "f", "kernels": ("b: gaussian(1)", "gaussian(1)")}, 4),
    "series": (series, {"time_series": True, "min_lag": 10}, 5),
    "four rows": (lambda: circle(4), {"permutations": 4}, 4),
    "no function": (two_of_four, {"kernels": ("linear", "linear"), "bandwidth": "auto"}, 4),
    "no space of functions": (circle, {"kernels": ("polynomial(offset=-1)", "gaussian(1)")}, 2),
    "several columns, no space": (wide, {"y_columns": "f", "kernels": ("polynomial(offset=-1)", "gaussian(1)")}, 1),
}


def analysed(frame, y=None, *, null="permutation", permutations=200, seed=0, **options):
    reading = Reading(x_columns=options.pop("x_columns", None), y_columns=options.pop("y_columns", None))
    fixed = Options("unbiased", null, permutations, 0.05, "standardize", seed, "shifts")
    return analyse_pair(frame, y, fixed, reading=reading, threads=1, **options)


@functools.cache
def analysis_of(name):
    make, options, _ = CASES[name]
    return analysed(make(), **options)


@functools.cache
def figure_of(name):
    return pair_figure(analysis_of(name))


def panels(figure):
    """Return the panels of a figure: a second axis over the same place, or a colour bar within, is none."""
    return [axis for axis in figure.axes if axis.get_title()]


def panel(figure, start):
    (found,) = [axis for axis in panels(figure) if axis.get_title().startswith(start)]
    return found


def numbers_in(record):
    """Return all numbers of nested records."""
    if dataclasses.is_dataclass(record):
        for field in dataclasses.fields(record):
            yield from numbers_in(getattr(record, field.name))
    elif isinstance(record, np.ndarray | tuple):
        for one in record:
            yield from numbers_in(one)
    elif isinstance(record, int | float | np.number):
        yield float(record)


def places(side):
    """Return where the rows lie on the axis of the only column of a side."""
    return np.asarray(side.column.values)


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_drawn_from_finite_numbers(name):
    analysis = analysis_of(name)
    picture = pair_picture(analysis)
    found = list(numbers_in(picture))
    assert len(found) > 100
    assert np.isfinite(found).all()
    made = figure_of(name)
    assert len(panels(made)) == CASES[name][2]
    assert panels(made)[0].get_title() == "If x and y were independent"
    kernels = shortened_kernel(analysis.result.kernel)
    told = "" if picture.x.function is None else f"f(x) and g(y) are those of the kernels {kernels}"
    caption = made.get_supxlabel().replace(r"\$", "$")
    assert caption == told or (caption.endswith("…") and told.startswith(caption[:-1]))
    if "hostile" in name:
        assert picture_bytes(made, "svg").startswith(MAGIC["svg"])
    elif name in DRAWN:
        made.draw_without_rendering()


def test_a_picture_is_written(tmp_path):
    hsic_test(cities()[["city", "price"]], plot=tmp_path / "drawn.png", permutations=50)
    assert (tmp_path / "drawn.png").read_bytes().startswith(MAGIC["png"])


@pytest.mark.parametrize("kind", MAGIC)
def test_every_format_is_drawn_and_alike_each_time(kind):
    """No file of a picture holds the time, or names that are drawn anew."""
    drawn, again = (picture_bytes(pair_figure(analysis_of("several columns, no space")), kind) for _ in range(2))
    assert drawn.startswith(MAGIC[kind])
    assert len(drawn) > 3000
    assert again == drawn


def test_labels_are_the_columns_in_their_own_units():
    made = figure_of("numbers")
    rows, f, g = (panel(made, start) for start in ("The rows", "f(x)", "g(y)"))
    assert (rows.get_xlabel(), rows.get_ylabel()) == ("east", "north")
    assert (f.get_xlabel(), g.get_xlabel()) == ("east", "north")
    frame = circle()
    (dots,) = rows.collections
    assert_close(sorted(dots.get_offsets().tolist()), sorted(frame.to_numpy().tolist()))
    for axis, name in ((f, "east"), (g, "north")):
        low, high = axis.get_xlim()
        assert low < frame[name].min() < frame[name].max() < high


@pytest.mark.parametrize(("start", "expected"), [("2024-01-01", "2024"), ("9999-12-26", "")])
def test_days_are_written_as_dates_where_the_calendar_has_them(start, expected):
    frame = circle()
    frame["east"] = np.datetime64(start, "us") + (frame["east"] * 86_400_000_000).astype("int64").astype("m8[us]")
    made = pair_figure(analysed(frame, kernels=("gaussian(1)", "gaussian(1)")))
    made.draw_without_rendering()
    axis = panel(made, "f(x)").xaxis
    assert axis.get_label_text() == "east"
    texts = [axis.get_offset_text().get_text(), *(label.get_text() for label in axis.get_ticklabels())]
    assert any(expected in text for text in texts)
    assert any(":" in text for text in texts) == bool(expected)


def test_the_statistic_is_named():
    assert panels(figure_of("numbers"))[0].get_xlabel() == "HSIC (unbiased) of the clearest of 18 pairs"
    assert panels(figure_of("three against three"))[0].get_xlabel() == "COCO"


def test_the_functions_are_the_pair_with_the_largest_covariance():
    analysis = analysis_of("one against five")
    picture = pair_picture(analysis)
    x, y = (variable.points for variable in analysis.paired.variables)
    found = coco(analysis.verdict.kernels[0], x, analysis.verdict.kernels[1], y)
    f, g = picture.x.function.at_rows, picture.y.function.at_rows
    assert_close(np.mean(f * g), found.value)
    assert_close(picture.correlation, np.corrcoef(f, g)[0, 1])
    assert (picture.x.columns, picture.x.column) == (5, None)
    grid = picture.y.function.grid
    scaled = (grid - analysis.paired.variables[1].centre) / analysis.paired.variables[1].spread
    assert_close(picture.y.function.curve, coco_function(analysis.verdict.kernels[1], y, found.beta, Points.of(scaled)))


def test_columns_that_the_kernel_does_not_see_are_not_drawn():
    picture = pair_picture(analysis_of("some of the columns"))
    assert (picture.x.columns, picture.x.column.name) == (1, "b")
    assert_close(np.sort(places(picture.x)), np.sort(wide()["b"]))
    # The curve passes through the values at the rows.
    nearest = np.abs(picture.x.function.grid[:, None] - places(picture.x)).argmin(axis=0)
    np.testing.assert_allclose(picture.x.function.curve[nearest], picture.x.function.at_rows, atol=0.05)


def test_bars_are_the_function_at_each_level_in_ascending_order():
    frame = cities()
    analysis = analysis_of("category and number")
    picture = pair_picture(analysis)
    column, function = picture.x.column, picture.x.function
    assert sorted(column.levels) == sorted(frame["city"].unique())
    assert dict(zip(column.levels, column.counts, strict=True)) == frame["city"].value_counts().to_dict()
    assert (np.diff(function.curve) >= 0).all()
    assert_close(function.curve[places(picture.x).astype(int)], function.at_rows)
    bars = panel(figure_of("category and number"), "f(x)").patches
    assert_close([bar.get_width() for bar in bars], function.curve)


def test_of_many_levels_those_that_matter_most_are_drawn():
    analysis = analysis_of("many hostile levels")
    axis = panel(figure_of("many hostile levels"), "f(x)")
    side = pair_picture(analysis).x
    curve = side.function.curve
    assert_close(curve[places(side).astype(int)], side.function.at_rows)
    np.testing.assert_array_equal(np.bincount(places(side).astype(int)), side.column.counts)
    assert axis.get_title().endswith(f"({LEVELS_DRAWN} of {len(curve)} levels)")
    expected = sorted(sorted(curve, key=abs)[-LEVELS_DRAWN:])
    assert_close([bar.get_width() for bar in axis.patches], expected)


def test_levels_with_names_that_are_cut_alike_keep_a_bar_each():
    frame = cities()[["city", "price"]]
    frame["city"] = "x" * 30 + frame["city"].str[-1] + "y" * 30
    assert len(panel(pair_figure(analysed(frame)), "f(x)").patches) == 3


def test_equal_rows_are_one_point_with_their_number():
    frame = cities()[["city", "vip"]]
    axis = panel(figure_of("two categories"), "The rows")
    counts = frame.value_counts()
    assert sorted(int(text.get_text()) for text in axis.texts) == sorted(counts)
    (dots,) = axis.collections
    assert len(dots.get_offsets()) == len(counts)


def test_functions_that_are_zero_are_said_to_be():
    made = figure_of("no function")
    assert pair_picture(analysis_of("no function")).correlation is None
    assert panel(made, "The rows").get_title() == "The rows: no function of x varies with one of y"
    assert panel(made, "f(x)").get_title() == "f(x): 0 everywhere"


def test_of_many_rows_some_are_drawn_and_the_titles_say_so(monkeypatch):
    monkeypatch.setattr(pictures, "ROWS_DRAWN", 1000)
    rng = np.random.default_rng(4)
    x = rng.normal(size=1250)
    frame = pd.DataFrame({"x": x, "y": x**2 + rng.normal(size=len(x))})
    analyses = [analysed(frame, seed=seed, null="gamma", kernels=("gaussian(1)", "linear")) for seed in (0, 0, 1)]
    one, again, other = map(pair_picture, analyses)
    assert one.rows == "1,000 of 1,250 rows"
    drawn = places(one.x)
    assert len(drawn) == len(one.x.function.at_rows) == len(set(drawn)) == 1000
    assert set(np.round(drawn, 9)) <= set(np.round(x, 9))
    assert_close(drawn, places(again.x))
    assert not np.allclose(drawn, places(other.x), rtol=1e-6)
    assert all("1,000 of 1,250 rows" in axis.get_title() for axis in panels(pair_figure(analyses[0]))[1:])


def test_far_rows_do_not_squeeze_the_others_and_are_counted():
    frame = circle()
    frame.loc[0, "east"] = 1e6
    frame.loc[1, "north"] = -1e7
    analysis = analysed(frame)
    low, high = pair_picture(analysis).x.column.limits
    assert 0 < low < frame["east"][1:].min()
    assert frame["east"][1:].max() < high < 12
    assert panel(pair_figure(analysis), "The rows").get_title().endswith("(2 beyond the axes)")


def test_lags_say_which_row_of_y_goes_with_a_row_of_x():
    frame = series(20)
    analysis = analysed(frame, time_series=True, min_lag=5, kernels=("gaussian(1)", "laplacian(1)"))
    lags = pair_picture(analysis).lags
    n = len(frame)
    assert lags.minimum == 5
    assert lags.strongest[0] == analysis.result.lags.strongest == 2
    assert sorted(lags.lags % n) == list(range(5, n - 5 + 1))
    x, y = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy().T
    for lag, statistic in list(zip(lags.lags, lags.statistics, strict=True))[::3]:
        moved = [y[(row + lag) % n] for row in range(n)]
        K, L = naive.gram(naive.gaussian, x[:, None]), naive.gram(naive.laplacian, np.array(moved)[:, None])
        assert_close(statistic, naive.hsic_unbiased(K, L))


def test_a_line_of_many_lags_keeps_its_extremes():
    values = np.random.default_rng(5).normal(size=50_001)
    lags, drawn = _outline(np.arange(50_001), values)
    assert len(lags) == len(drawn) == LAGS_DRAWN
    assert (drawn.min(), drawn.max()) == (values.min(), values.max())
    kept, same = _outline(np.arange(10), values[:10])
    np.testing.assert_array_equal(same, values[:10])
    assert len(kept) == 10


def test_the_panel_of_the_lags_marks_the_observed_and_the_strongest():
    axis = panel(figure_of("series"), "Lags of 10 rows and more")
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["observed, lag 0", "largest of all, lag +2"]
    assert pair_picture(analysis_of("numbers")).lags is None


@pytest.mark.parametrize("skewness", [-0.8, 0.0, 0.4, 1.5])
def test_a_null_without_relabellings_is_a_pearson_iii_curve(skewness):
    null = Null("moments", None, None, None, False, None, None, 2.0, 0.5, skewness, "exact")
    picture = null_picture(null, None, observed=1.0, p_value=0.5, statistic="T", title="If")
    values, density = picture.curve
    expected = pearson3.pdf(values, skewness, loc=2.0, scale=0.5)
    np.testing.assert_allclose(density, expected, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("value", [0.0, 0.25, -1e-9])
def test_bins_have_a_width_even_where_values_differ_by_rounding(value):
    values = np.array([value, np.nextafter(value, 1.0), value])
    edges = bin_edges(values, 20)
    assert (np.diff(edges) > 0).all()
    counts, _ = np.histogram(values, edges)
    assert counts.sum() == 3


def test_without_matplotlib_an_error_says_how_to_get_it(monkeypatch):
    analysis = analysis_of("numbers")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        pair_figure(analysis)
