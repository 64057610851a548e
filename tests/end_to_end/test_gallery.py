"""The gallery: its figures have the numbers that direct calls and plain formulas give, and it is there whole or not at all."""

import math
import shlex
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from pictures import legend, panels
from PIL import Image
from scipy.integrate import quad
from tolerances import assert_close

import kerntest
from kerntest import gallery
from kerntest.cli.main import run
from kerntest.errors import MissingExtraError


def drawn(picture):
    """Return the figure of a picture as it is laid out, and the headings of its panels."""
    figure = picture.figure()
    figure.draw_without_rendering()
    return figure, [axis.get_title() for axis in panels(figure)]


def test_the_witness_is_that_of_the_densities():
    picture = gallery.witness()
    figure, (heading,) = drawn(picture)
    scale, bandwidth = math.sqrt(0.5), 0.7071

    def difference(x):
        return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) - math.exp(-abs(x) / scale) / (2 * scale)

    def witness(x):
        return quad(lambda z: math.exp(-((x - z) ** 2) / (2 * bandwidth**2)) * difference(z), -12, 12, limit=200)[0]

    # Six standard errors of a mean over 20,000 kernel values of each.
    (line,) = [line for axis in figure.axes for line in axis.lines if line.get_label() == "witness function"]
    for place in (100, 200, 260):
        assert abs(line.get_ydata()[place] - witness(line.get_xdata()[place])) < 6 * math.sqrt(2 * 0.25 / 20_000)
    squared = quad(lambda x: witness(x) * difference(x), -8, 8, epsabs=1e-6)[0]
    assert picture.numbers["MMD"] == pytest.approx(math.sqrt(squared), abs=0.01)
    assert picture.numbers["p"] == 0.001
    assert heading == f"MMD = {picture.numbers['MMD']:.3f}, p = 0.001"


def test_the_shares_of_p_values_are_those_of_direct_calls():
    picture = gallery.dependence(samples=6)
    figure, headings = drawn(picture)
    found = [kerntest.hsic_test(*gallery.circle(gallery.stream(2, number), 100)).p_value for number in range(6)]
    assert picture.numbers["circle, HSIC"] == np.mean(np.array(found) <= 0.05)
    assert picture.numbers["circle, HSIC"] > picture.numbers["circle, Kendall"]
    assert headings[5] == "circle: p-values"
    told = f"HSIC: {100 * picture.numbers['circle, HSIC']:.0f} % up to 0.05"
    assert told in legend(panels(figure)[5])


def test_ridge_regressions_are_those_of_the_formula():
    numbers = gallery.smoothness().numbers
    rng, x, grid = gallery.stream(4), np.linspace(-0.5, 1.5, 60), np.linspace(-0.5, 1.5, 401)
    y = np.sinc(2.5 * x) + 0.15 * rng.normal(size=60)
    K, at = (np.exp(-(np.subtract.outer(one, x) ** 2) / (2 * 0.15**2)) for one in (x, grid))
    H = np.eye(60) - 1 / 60
    alpha = np.linalg.solve(H @ K @ H + 0.1 * np.eye(60), H @ y)
    fit = (at - K.mean(axis=0)) @ (H @ alpha) + y.mean()
    assert numbers["lambda = 0.1"] == numbers["bandwidth = 0.15"]
    assert_close(numbers["lambda = 0.1"], math.sqrt(np.mean((fit - np.sinc(2.5 * grid)) ** 2)), condition=1e3)
    assert numbers["lambda = 0.1"] < min(numbers["lambda = 10"], numbers["lambda = 1e-07"])


def test_the_nearest_mean_is_that_of_double_loops():
    numbers, rng = gallery.densities().numbers, gallery.stream(6)
    X, classes = gallery.two_normals(rng, gallery.TRAINING_ROWS)
    new, truth = gallery.two_normals(rng, gallery.NEW_ROWS)
    assert_close(numbers["two normals, linear"], np.mean(nearer(X, classes, new) == truth), scale=1, share=2 / len(new))


def nearer(X, classes, new):
    """Return the class of the nearer mean, columns standardised."""
    Z, new = (X - X.mean(axis=0)) / X.std(axis=0), (new - X.mean(axis=0)) / X.std(axis=0)
    means = [Z[classes == one].mean(axis=0) for one in (0, 1)]
    return np.linalg.norm(new - means[1], axis=1) < np.linalg.norm(new - means[0], axis=1)


def test_digits_differ_and_are_grey_values():
    images = gallery.handwriting(np.random.default_rng(0), 20)
    assert images.shape == (20, 256)
    assert (images.min(), images.max()) == (pytest.approx(0, abs=0.01), pytest.approx(1, abs=0.05))
    # Two of one digit are nearer than two of different ones.
    apart = np.linalg.norm(images[:10, None] - images[None, 10:], axis=2)
    assert (apart.argmin(axis=1) == np.arange(10)).mean() >= 0.8


@pytest.fixture(autouse=True)
def _small(request, monkeypatch):
    """Two figures, which take little time."""
    if request.node.get_closest_marker("thorough"):
        return
    monkeypatch.setattr(gallery, "FIGURES", (gallery.smoothness, gallery.densities))


class Page(HTMLParser):
    """What a page refers to and says."""

    def __init__(self, text):
        super().__init__()
        self.images, self.commands, self.inside = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        self.images += [dict(attrs)["src"]] if tag == "img" else []

    def handle_data(self, data):
        if self.inside == "pre" and data.strip():
            self.commands.append(data)


def test_a_folder_gets_pictures_and_a_page(tmp_path, capsys):
    folder = tmp_path / "new" / "gallery"
    assert gallery.main([str(folder)]) == 0
    page = Page((folder / "index.html").read_text())
    assert page.images == ["smoothness.png", "densities.png"]
    assert sorted(one.name for one in folder.iterdir()) == sorted(["index.html", *page.images])
    assert capsys.readouterr().out == f"{folder / 'index.html'}\n"
    for name in page.images:
        with Image.open(folder / name) as image:
            assert image.width > 1000


def test_what_fails_leaves_nothing(tmp_path, monkeypatch, capsys):
    def broken():
        raise KeyboardInterrupt

    monkeypatch.setattr(gallery, "FIGURES", (gallery.smoothness, broken))
    assert gallery.main([str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    assert gallery.main([str(tmp_path / "file")]) == 3
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'file'} is no folder: File exists\nhint: name a folder in which files can be written, or a new one\n"
    )
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert gallery.main([str(tmp_path / "g")]) == MissingExtraError.exit_code
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: pictures need matplotlib, which is not installed"
    assert "pip install" in hint
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--plot"]])
def test_usage(arguments, capsys):
    assert gallery.main(arguments) == 2
    assert capsys.readouterr().err == gallery.USAGE
    assert gallery.main(["--help"]) == 0
    assert capsys.readouterr().out == gallery.USAGE


@pytest.mark.thorough
def test_every_figure_tells_what_is_to_be_seen_and_every_command_runs(tmp_path, monkeypatch):
    pictures = gallery.draw_gallery(str(tmp_path))
    numbers = {name: one.numbers for name, one in pictures.items()}
    for kind in ("rising and falling", "circle"):
        shares = {test: numbers["dependence"][f"{kind}, {test}"] for test in ("HSIC", "Spearman", "Kendall")}
        assert shares["HSIC"] > 0.9
        assert max(shares["Spearman"], shares["Kendall"]) < 0.2
    assert all(numbers["dependence"][f"rising, {test}"] > 0.9 for test in ("HSIC", "Spearman", "Kendall"))
    errors = numbers["regression"]
    assert min(errors, key=errors.get) == "Gaussian"
    assert max(errors, key=errors.get) == "periodic"
    accuracy = numbers["classification"]
    assert accuracy["two normals, linear"] >= max(
        accuracy["two normals, polynomial"], accuracy["two normals, Gaussian"]
    )
    for name in ("half-circles", "wave"):
        assert accuracy[f"{name}, Gaussian"] > accuracy[f"{name}, linear"] + 0.05
    assert accuracy["wave, Gaussian"] > accuracy["wave, polynomial"]
    denoised = numbers["components"]
    assert denoised["Gaussian"] < 0.95 * denoised["linear"] < denoised["with noise"]
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("A", "B", "TRAIN", "NEW", "DATA", "CLEAN", "NOISY"):
        rows = pd.DataFrame(rng.normal(size=(60, 2)), columns=["x", "z"])
        if name in {"TRAIN", "NEW", "DATA"}:
            rows["y"] = rows.x + rng.normal(size=60)
            rows["class"] = np.where(rows.x + rows.z > 0, "over", "under")
        rows.to_csv(f"{name}.csv", index=False)
    for command in Page((tmp_path / "index.html").read_text()).commands:
        for one in command.split("&&"):
            assert run(shlex.split(one)[1:]) == 0, one
