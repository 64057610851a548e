"""Pictures of tests and screens: what they show is right, and they can be drawn whatever the columns are."""

from types import SimpleNamespace

import naive
import numpy as np
import pandas as pd
import pytest
from pictures import HOSTILE, drawn_by, layers, legend, panel, panels, points, scatters, texts, tick_labels
from scipy.stats import pearson3

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from tolerances import assert_close

from kerntest import hsic_pairs, hsic_test, mmd_test, parse_kernel, read_table
from kerntest.inference.explain import pictures
from kerntest.inference.screens.pairwise import by_similarity, pairs_figure, ranking_figure
from kerntest.report.panels import COLOUR_Y, NEUTRAL
from kerntest.report.summaries.words import shortened_kernel

HOSTILE_NAMES = [HOSTILE[2] + HOSTILE[0], HOSTILE[7] + HOSTILE[4]]
GAUSSIANS = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}


def circle(rows=60, names=("east", "north")):
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, rows)
    return pd.DataFrame({names[0]: 5 + np.cos(angle), names[1]: 100 * np.sin(angle)})


def cities(rows=80, levels=3):
    rng = np.random.default_rng(1)
    city = rng.integers(0, levels, rows)
    names = np.array([f"{HOSTILE[place % len(HOSTILE)]} {place}" for place in range(levels)])
    return pd.DataFrame({"city": names[city], "price": city + rng.normal(size=rows), "vip": city > rng.random(rows)})


def series(rows=60):
    rng = np.random.default_rng(2)
    x = np.convolve(rng.normal(size=rows + 4), np.ones(5), "valid")
    return pd.DataFrame({"load": x, "price": np.roll(x, 2) + 0.3 * rng.normal(size=rows)})


def two_of_four(rows=40):
    """Two signs that are independent exactly: no function of one has a covariance with one of the other."""
    return pd.DataFrame({"a": np.tile([0.0, 0, 1, 1], rows // 4), "b": np.tile([0.0, 1, 0, 1], rows // 4)})


def wide():
    return pd.DataFrame(np.random.default_rng(3).normal(size=(50, 6)), columns=list("abcdef"))


# What is tested, options of the test, and how many panels there are.
CASES = {
    "numbers": (circle, {}, 4),
    "moments": (circle, {"null": "moments", **GAUSSIANS}, 4),
    "category and number": (lambda: cities(levels=5)[["city", "price"]], {}, 4),
    "two categories": (lambda: cities()[["city", "vip"]], {}, 4),
    "many hostile levels": (lambda: cities(200, 40)[["city", "price"]].set_axis(HOSTILE_NAMES, axis=1), {}, 4),
    "one against five": (wide, {"y_columns": "f"}, 4),
    "three against three": (wide, {"x_columns": "a:c", "statistic": "coco", "permutations": 20, "bandwidth": 1.0}, 4),
    "some of the columns": (wide, {"y_columns": "f", "kernel_x": "b: gaussian(1)", "kernel_y": "gaussian(1)"}, 4),
    "series": (series, {"time_series": True, "min_lag": 10}, 5),
    "four rows": (lambda: circle(4), {"permutations": 4}, 4),
    "no function": (two_of_four, {"kernel_x": "linear", "kernel_y": "linear"}, 4),
    "no space of functions": (circle, {"kernel_x": "polynomial(offset=-1)", "kernel_y": "gaussian(1)"}, 2),
    "several, no space": (wide, {"y_columns": "f", "kernel_x": "polynomial(offset=-1)", "kernel_y": "gaussian(1)"}, 1),
}
# Those whose texts and axes are laid out by a drawing.
RENDERED = ("two categories", "three against three", "series", "no function")


@pytest.fixture(scope="module")
def drawn_case():
    """Return the result and the figure of a case, each drawn once."""
    kept = {}

    def drawn(name):
        if name not in kept:
            make, options, _ = CASES[name]
            kept[name] = drawn_by(hsic_test, make(), render=name in RENDERED, **({"permutations": 200} | options))
        return kept[name]

    return drawn


@pytest.mark.parametrize("name", CASES)
def test_every_case_has_its_panels(drawn_case, name):
    result, made = drawn_case(name)
    assert len(panels(made)) == CASES[name][2]
    assert panels(made)[0].get_title() == "If x and y were independent"
    told = "" if "no space" in name else f"f(x) and g(y) are those of the kernels {shortened_kernel(result.kernel)}"
    caption = made.get_supxlabel().replace(r"\$", "$")
    assert caption == told or (caption.endswith("…") and told.startswith(caption[:-1]))
    assert made.get_suptitle().replace("\n", " ").startswith(result.decision[:20].replace("$", r"\$"))


def test_labels_are_the_columns_in_their_own_units(drawn_case):
    _, made = drawn_case("numbers")
    assert panels(made)[0].get_xlabel() == "HSIC (unbiased) of the clearest of 18 pairs"
    assert panels(drawn_case("three against three")[1])[0].get_xlabel() == "COCO"
    # Columns that the kernel does not see are not drawn.
    for case, frame, names in (("numbers", circle(), ["east", "north"]), ("some of the columns", wide(), ["b", "f"])):
        rows = panel(drawn_case(case)[1], "The rows")
        assert [rows.get_xlabel(), rows.get_ylabel()] == names
        assert_close(points(rows), sorted(frame[names].to_numpy().tolist()))
    for axis, name in ((panel(made, "f(x)"), "east"), (panel(made, "g(y)"), "north")):
        low, high = axis.get_xlim()
        assert axis.get_xlabel() == name
        assert low < circle()[name].min() < circle()[name].max() < high
        assert_close(curve(axis)[0][[0, -1]], [low, high])


def test_a_witness_function_over_days_shows_dates():
    x, y = (frame[["day"]] for frame in two_frames())
    axis = panel(drawn_by(mmd_test, x, y, render=True, kernel="gaussian(1)", permutations=20)[1], "Above 0")
    assert any("Apr" in text for text in tick_labels(axis, "x"))


def test_the_functions_are_the_pair_with_the_largest_covariance():
    """At the rows, f is proportional to K~ alpha and g to L~ beta, and no others have a larger covariance."""
    options = {"y_columns": "f", **GAUSSIANS, "permutations": 20}
    for place in range(2):
        chosen = {"y_columns": "b,c" if place else "f", "columns": "a,b,c,f"}
        _, made = drawn_by(hsic_test, wide(), **(options | chosen))
        f, g = np.array(points(panel(made, "The rows"))).T
        result = hsic_test(wide(), statistic="coco", **(options | chosen))
        assert_close(np.mean(f * g), result.coco)
        told = float(panel(made, "The rows").get_title().split()[-1])
        assert told == pytest.approx(np.corrcoef(f, g)[0, 1], abs=0.006)


def curve(axis):
    """Return the grid and the values of the function over a column."""
    (twin,) = [one for one in axis.figure.axes if one is not axis and one.bbox.bounds == axis.bbox.bounds]
    return twin.lines[0].get_data()


def test_bars_are_the_function_at_each_level_in_ascending_order(drawn_case):
    frame, (_, made) = cities(levels=5), drawn_case("category and number")
    axis = panel(made, "f(x)")
    labels = [label.replace("\\$", "$").split("  (") for label in tick_labels(axis, "y")]
    ends, counts = ([name[-1] for name, _ in labels], [int(count.removesuffix(")")) for _, count in labels])
    assert dict(zip(ends, counts, strict=True)) == frame["city"].str[-1].value_counts().to_dict()
    widths = [bar.get_width() for bar in axis.patches]
    assert widths == sorted(widths)
    # The function has mean zero over the rows.
    assert np.dot(widths, counts) == pytest.approx(0)
    for place, (_, own) in enumerate(frame.groupby("city")["price"]):
        assert_close(sorted(y for x, y in points(panel(made, "The rows")) if round(x) == place), sorted(own))


def test_of_many_levels_those_that_matter_most_are_drawn(drawn_case):
    """Names that are cut alike have a bar each."""
    _, made = drawn_case("many hostile levels")
    axis = panel(made, "f(x)")
    assert axis.get_title().endswith("(20 of 40 levels)")
    widths = [bar.get_width() for bar in axis.patches]
    assert len(widths) == 20
    assert widths == sorted(widths)
    others = {round(x, 12) for x, _ in points(panel(made, "The rows"))}
    assert max(abs(one) for one in others if not np.isclose(one, widths, rtol=1e-6).any()) <= min(map(abs, widths))


def test_equal_rows_are_one_point_with_their_number(drawn_case):
    counts = cities()[["city", "vip"]].value_counts()
    axis = panel(drawn_case("two categories")[1], "The rows")
    assert sorted(int(text.get_text()) for text in axis.texts) == sorted(counts)
    assert len(points(axis)) == len(counts)
    made = drawn_case("no function")[1]
    assert panel(made, "The rows").get_title() == "The rows: no function of x varies with one of y"
    assert panel(made, "f(x)").get_title() == "f(x): 0 everywhere"


def test_of_many_rows_some_are_drawn_and_the_titles_say_so(monkeypatch):
    monkeypatch.setattr(pictures, "ROWS_DRAWN", 1000)
    x, noise = np.random.default_rng(4).normal(size=(2, 1250))
    frame = pd.DataFrame({"x": x, "y": x**2 + noise})
    options = {"null": "gamma", "kernel_x": "gaussian(1)", "kernel_y": "linear"}
    made = [drawn_by(hsic_test, frame, **options)[1] for _ in range(2)]
    assert all("1,000 of 1,250 rows" in axis.get_title() for axis in panels(made[0])[1:])
    one, again = (np.array(points(panel(figure, "The rows"))) for figure in made)
    assert len(set(one[:, 0])) == 1000
    assert set(np.round(one[:, 0], 9)) <= set(np.round(x, 9))
    assert_close(one, again)


def test_far_rows_do_not_squeeze_the_others_and_are_counted():
    frame = circle()
    frame.loc[0, "east"], frame.loc[1, "north"] = 1e6, -1e7
    axis = panel(drawn_by(hsic_test, frame, permutations=50)[1], "The rows")
    low, high = axis.get_xlim()
    assert 0 < low < frame["east"][1:].min()
    assert frame["east"][1:].max() < high < 12
    assert axis.get_title().endswith("(2 beyond the axes)")


def test_lags_say_which_row_of_y_goes_with_a_row_of_x():
    frame = series(20)
    options = {"time_series": True, "min_lag": 5, "kernel_x": "gaussian(1)", "kernel_y": "laplacian(1)"}
    result, made = drawn_by(hsic_test, frame, **options)
    axis = panel(made, "Lags of 5 rows and more")
    assert legend(axis) == ["observed, lag 0", "largest of all, lag +2"]
    before, after = (np.array(line.get_xydata()) for line in axis.lines[:2])
    assert [*before[:, 0], *after[:, 0]] == [*range(-9, -4), *range(5, 11)]
    x, y = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy().T
    for lag, statistic in [*before, *after][::3]:
        K, L = (naive.gram(naive.gaussian, x[:, None]), naive.gram(naive.laplacian, np.roll(y, -int(lag))[:, None]))
        assert_close(statistic, naive.hsic_unbiased(K, L))
    assert axis.lines[-1].get_data() == ([2], [result.lags.statistic_at_strongest])


@pytest.mark.parametrize("skewness", [-0.8, 0.0, 0.4, 1.5])
def test_a_null_without_relabellings_is_a_pearson_iii_curve(skewness):
    values, density = pictures.null_curve(SimpleNamespace(mean=2.0, standard_deviation=0.5, skewness=skewness))
    np.testing.assert_allclose(density, pearson3.pdf(values, skewness, loc=2.0, scale=0.5), rtol=0.02, atol=1e-3)


def two_frames(rows=120):
    rng = np.random.default_rng(0)

    def draw(spread, p):
        numbers = {"same": rng.normal(size=rows), "wider": spread * rng.normal(size=rows)}
        days = np.datetime64("2024-03-01") + rng.integers(0, 90, rows)
        return pd.DataFrame(numbers | {"city": rng.choice(["a", "b", "$c$"], rows, p=p), "day": days})

    return draw(1.0, [0.5, 0.3, 0.2]), draw(1.8, [0.2, 0.3, 0.5])


@pytest.mark.parametrize("columns", [["same"], ["same", "wider"], ["same", "wider", "city"]])
def test_the_witness_function_is_that_of_the_kernel_and_in_the_units_of_the_table(columns):
    x, y = (frame[columns] for frame in two_frames())
    kernel = "gaussian(1)" if len(columns) < 3 else "auto"
    result, made = drawn_by(mmd_test, x, y, kernel=kernel, scale="none", permutations=50)
    assert made.get_supxlabel() == f"The witness function is that of the kernel {shortened_kernel(result.kernel)}"
    if len(columns) == 3:
        axis = panel(made, "Left: more typical of y\nRight: more typical of x")
        assert sum(bar.get_height() for bar in axis.patches) == pytest.approx(2.0)
        return
    axis = panel(made, "Above 0: x is denser\nBelow: y is")
    assert axis.get_xlabel() == "same"
    gaussian = parse_kernel("gaussian(1)")
    if len(columns) == 1:
        grid, values = curve(axis)
        at, expected = grid[:, None], values
    else:
        (line,) = [one for one in layers(axis, "QuadContourSet") if not one.filled]
        at = np.concatenate([path.vertices for path in line.get_paths()])
        expected = np.zeros(len(at))
        assert [len(found) for found, *_ in scatters(axis)] == [120, 120]
        assert_close(points(axis), sorted([*x.to_numpy().tolist(), *y.to_numpy().tolist()]))
    witness = gaussian(at, x.to_numpy()).mean(axis=1) - gaussian(at, y.to_numpy()).mean(axis=1)
    np.testing.assert_allclose(witness, expected, rtol=1e-9, atol=1e-9 if len(columns) == 1 else 2e-3)


LONG = ("/2023" + "/long" * 6, "/2024" + "/long" * 6)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("before.csv", "before.csv"), ["before.csv (X)", "before.csv (Y)"]),
        (LONG, [f"{name[:14]}…{name[-13:]}" for name in LONG]),
        # Groups of one file.
        (["/long" * 6 + f", a.csv, sex = {one}" for one in "mf"], ["sex = m", "sex = f"]),
    ],
)
def test_a_legend_tells_files_apart(names, expected):
    x, y = (read_table(frame[["same", "wider"]], name=name) for frame, name in zip(two_frames(20), names, strict=True))
    _, made = drawn_by(mmd_test, x, y, kernel="gaussian(1)", permutations=20)
    assert legend(made.axes[1]) == expected
    # Bars of both over each other have a third colour.
    _, made = drawn_by(mmd_test, x.select(["wider"]), y.select(["wider"]), kernel="gaussian(1)", permutations=20)
    assert legend(made.axes[1]) == [*expected, "both", "witness function"]


def test_the_picture_of_an_explanation_shows_both_distributions_of_the_first_columns():
    x, y = two_frames()
    # A number that many rows have would hide the others.
    x["words"], y["words"] = np.arange(120) % 5 // 4 * np.random.default_rng(0).random(120), 0.0
    result, made = drawn_by(mmd_test, x, y, kernel="wider: gaussian(1)", explain=True, permutations=200, render=True)
    effects = result.explanation.columns
    bars = panel(made, "Each column alone")
    assert tick_labels(bars, "y") == [effect.column for effect in effects[::-1]]
    assert [bar.get_width() for bar in bars.patches] == [effect.effect_size for effect in effects[::-1]]
    drawn = {axis.get_title().split(":")[0]: axis for axis in panels(made)[3:]}
    assert list(drawn) == [effect.column for effect in effects]
    shares = {patch.get_x() + 0.5 * patch.get_width(): patch.get_height() for patch in drawn["city"].patches}
    for place, value in enumerate(tick_labels(drawn["city"], "x")):
        for frame, offset in ((x, -0.2), (y, 0.2)):
            assert_close(shares[place + offset], (frame["city"] == value.replace("\\$", "$")).mean())
    assert drawn["words"].get_xlabel() == "not drawn: 0 in 80 % and 100 % of the rows"
    assert_close(sum(patch.get_height() for patch in drawn["words"].patches), 0.2)
    assert 1.9 < sum(patch.get_height() for patch in drawn["same"].patches) <= 2.0 + 1e-9
    assert any("Apr" in text for text in tick_labels(drawn["day"], "x"))


def test_an_axis_of_effect_sizes_ends_at_the_largest_there_is():
    figure = Figure()
    for axis, effects in zip(figure.subplots(1, 2), ([0.97, 0.4], [0.1, 0.05]), strict=True):
        pictures.draw_effects(axis, ["a", "b"], np.array(effects), np.array([0.01, 0.3]), 0.05)
        assert effects[0] <= max(axis.get_xticks()) <= 1.0
        assert axis.get_xlim()[1] > 1.4 * effects[0]


def test_of_few_numbers_each_has_its_bar():
    r = np.random.default_rng(0)
    x, y = (pd.DataFrame({"size": 2.0 + r.binomial(4, p, 80)}) for p in (0.2, 0.4))
    _, made = drawn_by(mmd_test, x, y, explain=True, permutations=50)
    for axis in (panel(made, "size"), panel(made, "Above 0")):
        found = {}
        for bar in axis.patches:
            found.setdefault(bar.get_x() + 0.5 * bar.get_width(), []).append(bar.get_height())
        shares = [[(frame["size"] == value).mean() for frame in (x, y)] for value in np.arange(2.0, 7.0)]
        assert_close(sorted(found), np.arange(2.0, 7.0))
        assert_close([found[at] for at in sorted(found)], shares)
        assert axis.get_xlim()[0] <= 1.5
        assert axis.get_xticks().tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    _, made = drawn_by(hsic_test, x, y, permutations=50)
    rows = panel(made, "f(x)").patches
    assert_close([bar.get_height() for bar in rows], x["size"].value_counts().sort_index())


def test_few_combinations_of_categories_are_levels():
    frame = cities().assign(day=np.random.default_rng(5).choice(["sat", "sun"], 80))
    result, made = drawn_by(hsic_test, frame, x_columns="vip,day", y_columns="price", permutations=100)
    axis = panel(made, "f(x)")
    counts = frame.groupby(["vip", "day"]).size()
    assert sorted(tick_labels(axis, "y")) == sorted(
        f"{str(vip).lower()}, {day}  ({n})" for (vip, day), n in counts.items()
    )
    assert axis.get_ylabel() == "vip, day"
    assert panel(made, "The rows").get_xlabel() == "vip, day"
    # As the witness function has it at the rows.
    widths = [bar.get_width() for bar in axis.patches]
    sizes = [int(text.rpartition("(")[2].removesuffix(")")) for text in tick_labels(axis, "y")]
    assert np.dot(widths, sizes) == pytest.approx(0)
    assert np.dot(np.square(widths), sizes) > 0
    assert result.columns_x == ("vip", "day")


def screen(columns, seed=0):
    """Return names, effect sizes and adjusted p-values of all pairs of some columns."""
    rng = np.random.default_rng(seed)
    names = [f"column_number_{place}_with_a_long_name" for place in range(columns)]
    effect = np.triu(rng.random((columns, columns)), 1)
    p = np.triu(rng.random((columns, columns)) ** 3, 1)
    return names, effect + effect.T, p + p.T


def dots(axis):
    """Return the cells (row, column) that carry a dot."""
    return {(round(y + 0.1), round(x - 0.1)) for found, *_ in scatters(axis) for x, y in found.tolist()}


@pytest.mark.parametrize("columns", [2, 8, 13, 60, 250])
def test_a_map_marks_significant_pairs_and_no_others(columns):
    names, effect, p = screen(columns)
    p[0, 1] = p[1, 0] = 0.05
    if columns > 2:
        effect[2, 3] = effect[3, 2] = p[2, 4] = p[4, 2] = np.nan
    np.fill_diagonal(effect, 1.0)
    made = pairs_figure(names, effect, p, 0.05, "All pairs")
    made.draw_without_rendering()
    (axis, _) = made.axes
    expected = {tuple(cell) for cell in np.argwhere((p <= 0.05) & ~np.isnan(effect)).tolist() if cell[0] != cell[1]}
    assert dots(axis) == expected
    told = f"adjusted p <= 0.05: {len(expected) // 2:,} pair{'s' if len(expected) > 2 else ''}"
    assert [text.get_text() for text in made.legends[0].get_texts()] == [told, "not tested"]
    (mesh,) = layers(axis, "QuadMesh")
    masked = np.ma.getmaskarray(mesh.get_array()).reshape(columns, columns)
    np.testing.assert_array_equal(masked, np.eye(columns, dtype=bool) | np.isnan(p) | np.isnan(effect))
    written = {place: text for place, text in texts(axis).items() if text}
    tested = [tuple(cell) for cell in np.argwhere(~masked).tolist()]
    assert written == ({place: f"{effect[place]:.2f}" for place in tested} if columns <= 12 else {})
    # The map is a square: the bar of colours beside it takes more room than the legend below.
    assert 20 > made.get_figwidth() > made.get_figheight() - 0.5
    assert len(tick_labels(axis, "y")) == columns if columns <= 60 else 50 < len(tick_labels(axis, "y")) < 250


def test_bars_are_ranked_and_coloured():
    effect, p = (np.array([0.2, 0.9, np.nan, 0.5, 0.5]), np.array([0.4, 1e-300, np.nan, 0.06, 0.05]))
    axis = ranking_figure(["c", "a", "untested", "b", "tie"], effect, p, 0.05, "With the target").axes[0]
    # The first on top.
    assert tick_labels(axis, "y")[::-1] == ["a", "tie", "b", "c"]
    bars = axis.patches[::-1]
    assert [bar.get_width() for bar in bars] == [0.9, 0.5, 0.5, 0.2]
    assert [bar.get_facecolor() for bar in bars] == [to_rgba(one) for one in (COLOUR_Y, COLOUR_Y, NEUTRAL, NEUTRAL)]
    told = ["0.90   p = 1e-300", "0.50   p = 0.05", "0.50   p = 0.06", "0.20   p = 0.4"]
    assert [text.get_text() for text in axis.texts][::-1] == told
    names, effect, p = screen(60)
    axis = ranking_figure(names, effect[0], p[0], 0.05, "").axes[0]
    assert [bar.get_width() for bar in axis.patches[::-1]] == sorted(effect[0], reverse=True)[:20]
    assert "first 20 of 60" in axis.get_title()


def test_a_screen_is_drawn_as_its_record_says():
    frame = wide().assign(c=lambda frame: frame["a"] ** 2).iloc[:, :4]
    found, made = drawn_by(hsic_pairs, frame, permutations=50)
    both = {("abcd".index(one.x), "abcd".index(one.y)): f"{one.effect_size:.2f}" for one in found.pairs}
    written = {place: text for place, text in texts(made.axes[0]).items() if text}
    assert written == both | {place[::-1]: text for place, text in both.items()}
    found, made = drawn_by(hsic_pairs, frame, target="c", permutations=50)
    assert [bar.get_width() for bar in made.axes[0].patches] == sorted(one.effect_size for one in found.pairs)


def test_columns_that_depend_on_one_another_stand_together_in_a_large_map():
    groups = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 3], 5))
    effect = np.where(groups[:, None] == groups, 0.8, 0.05)
    effect[3, 7] = effect[7, 3] = np.nan
    order = by_similarity(effect)
    assert sorted(order) == list(range(20))
    assert np.count_nonzero(np.diff(groups[order])) == 3
    # A small one keeps the order of the table.
    assert by_similarity(effect[:12, :12]) == list(range(12))


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_legend_hides_no_bars_and_no_rows(columns):
    rng = np.random.default_rng(4)
    _, figure = drawn_by(mmd_test, *rng.normal(size=(2, 60, columns)), render=True, permutations=50)
    for axis in panels(figure):
        drawn, told = axis.get_window_extent(), axis.get_legend().get_window_extent()
        assert told.y1 <= drawn.y0
