"""The engine of a GPU on PyTorch's processors: the same numbers as numpy's, the same p-values, and its errors."""

import sys

import numpy as np
import pytest
import two_samples
import two_variables
from catalogue_kernels import GROUPED, UNBOUND, kernel_of, mixed_points
from tolerances import STATISTIC, assert_close

import kerntest
from kerntest.cli.main import run
from kerntest.engines.local import LocalEngine
from kerntest.errors import MissingExtraError, UndecidedError, UsageError
from kerntest.inference.permuted_blocks import BlockedRows, block_sums
from kerntest.inference.shifts import low_rank_sums, shift_sums
from kerntest.kernels.base import DensePairs, Points
from kerntest.matrices.factor import centred_factor, kernel_factor
from kerntest.matrices.lags import KernelStack, LagPairs
from kerntest.matrices.matrix import Centring, sweep

HERE = LocalEngine(1)
TEXTS = [*UNBOUND, *GROUPED]
N = 61


@pytest.fixture
def engine(monkeypatch):
    """Return the engine on the processors; little work is sent to it too."""
    torch = pytest.importorskip("torch")
    # Its threads wait for each other busily, which takes most of the time where the machine has other work.
    torch.set_num_threads(1)
    monkeypatch.setenv("KERNTEST_DEVICE", "cpu")
    monkeypatch.setattr("kerntest.engines.base.FEW_ENTRIES", 0)
    from kerntest.engines.gpu import GpuEngine  # noqa: PLC0415 - needs what may not be there

    return GpuEngine(1)


def both_layouts(kernel, points, count=11, size=37):
    """Return the values of all pairs of two sets of rows, and of lags 5, 6, ..."""
    yield kernel.evaluate(DensePairs(points.take(slice(0, 7)), points.take(slice(3, N))))
    yield kernel.evaluate(LagPairs(points.take(slice(0, size)), points.take(slice(5, size + 4 + count)), count))


@pytest.mark.parametrize("text", TEXTS)
def test_every_kernel_is_what_numpy_computes(engine, text):
    points, kernel = mixed_points(N, 3), kernel_of(text)
    there = list(both_layouts(kernel, points.sent(engine)))
    for expected, found in zip(both_layouts(kernel, points), there, strict=True):
        assert type(found) is not np.ndarray
        assert_close(np.asarray(found), expected, share=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e7], ids=["a crowd", "a row far away"])
@pytest.mark.parametrize("columns", [0, 1, 5])
def test_distances_are_computed_alike(engine, columns, offset):
    numeric = np.random.default_rng(0).normal(size=(N, columns))
    numeric[0] += offset
    points = Points.of(numeric)
    for text in ("gaussian(1.5)", "laplacian2(2)", "laplacian(0.7)", "periodic(2, 0.8)", "delta", "linear"):
        there = list(both_layouts(kernel_of(text), points.sent(engine)))
        for expected, found in zip(both_layouts(kernel_of(text), points), there, strict=True):
            # The root of a rounding error.
            assert_close(np.asarray(found), expected, share=1e-7 if offset else 1e-12)


def test_an_overflow_is_refused(engine):
    points = Points.of(np.full((4, 1), 1e200)).sent(engine)
    with pytest.raises(UndecidedError, match="overflows"):
        kernel_of("polynomial(3)").evaluate(DensePairs(points, points))


@pytest.mark.parametrize("kernels", [1, 4], ids=["each pair alone", "one product for each frequency"])
@pytest.mark.parametrize(("n", "circle", "orders"), [(12, 12, 1), (13, 9, 3), (151, 150, 2)])
def test_sums_over_shifts(engine, n, circle, orders, kernels):
    rng = np.random.default_rng(n)
    places = [rng.permutation(n) for _ in range(orders)]
    chosen = [kernel_of(text) for text in ("gaussian(2)", "gaussian(1)", "laplacian(0.7)", "delta*laplacian2(2)")]
    first, second = (
        KernelStack([(mixed_points(n, seed), chosen[:kernels])], of, circle, hollow=True, centred_by_rows=True)
        for seed, of in ((3, places[:1]), (4, places))
    )
    found, expected = (
        shift_sums(first, second, n=n, circle=circle, orders=orders, engine=one) for one in (engine, HERE)
    )
    for name in ("values", "rows_first", "rows_second", "squares_first", "squares_second"):
        assert_close(getattr(found, name), getattr(expected, name), share=STATISTIC)


@pytest.mark.parametrize("n", [80, 700])
@pytest.mark.parametrize("hollow", [None, True, False])
def test_sweeps(engine, hollow, n):
    rng = np.random.default_rng(0)
    points, kernel = mixed_points(n, 1), kernel_of("gaussian(1.5)*hamming(2)")
    options = {"square_vectors": rng.normal(size=(n, 2)), "cubes": True}
    if hollow is not None:
        options["centring"] = Centring(rng.random(n), 0.3, hollow=hollow)
    vectors = rng.normal(size=(n, 3))
    found, expected = (sweep(kernel, points, vectors, one, **options) for one in (engine, HERE))
    for name in ("product", "total_square", "squares", "cubes"):
        assert_close(getattr(found, name), getattr(expected, name), share=STATISTIC)


def test_sums_over_blocks(engine):
    labels = np.repeat([1, 0], [300, 900])
    points = mixed_points(len(labels), 3)
    blocks = BlockedRows.of(labels, 0)
    kernels = [kernel_of(f"gaussian({s})") for s in (4, 2, 1, 0.5)] + [kernel_of("linear")]
    found, expected = (block_sums(kernels, points, blocks, one) for one in (engine, HERE))
    # Pairs of rows in different tiles stand above the diagonal twice, and tiles are larger on a GPU.
    found, expected = (sums + sums.transpose(0, 2, 1) for sums in (found, expected))
    assert_close(found, expected, share=STATISTIC)


def test_correlations_of_factors(engine):
    n, circle, rng = 130, 120, np.random.default_rng(0)
    factors = [
        centred_factor(
            kernel_factor(kernel_of("gaussian(1.5)"), Points.of(rng.normal(size=n)), tolerance=1e-12, most=60)
        )
        for _ in range(2)
    ]
    places = [rng.permutation(n) for _ in range(2)]
    found, expected = (low_rank_sums(*factors, places, circle, hollow=True, engine=one) for one in (engine, HERE))
    assert_close(found, expected, share=STATISTIC)


def cases():
    x, y = two_samples.frames(90, 115)
    data = two_variables.frame(150)
    sides = data[["weight", "city"]], data[["depth", "price"]]
    yield kerntest.mmd_test, (x, y), {}
    yield kerntest.mmd_test, (x, y), {"kernel": "matern(nu=1.2)", "null": "moments"}
    yield kerntest.mmd_test, (x, y), {"kernel": "student-t * hamming", "resampling": "random", "permutations": 100}
    yield kerntest.hsic_test, sides, {}
    yield kerntest.hsic_test, sides, {"kernel_x": "laplacian", "kernel_y": "laplacian"}
    yield kerntest.hsic_test, sides, {"statistic": "coco", "permutations": 100}


@pytest.mark.parametrize("number", range(6))
def test_tests_have_the_same_p_value(engine, number):
    test, tables, options = list(cases())[number]
    expected = test(*tables, **options, threads=1)
    with kerntest.compute_on("gpu", threads=1):
        found = test(*tables, **options)
    assert found.p_value == pytest.approx(expected.p_value, rel=STATISTIC)
    assert_close(found.statistic, expected.statistic, share=STATISTIC)
    assert (found.provenance.engine, found.provenance.dtype) == ("gpu", "float64")
    assert found.provenance.device == engine.device


@pytest.mark.usefixtures("engine")
def test_screens_have_the_same_p_values():
    data = two_variables.frame(150)[["weight", "depth", "price", "city"]]
    expected = kerntest.hsic_pairs(data, permutations=100)
    with kerntest.compute_on("gpu", threads=1):
        found = kerntest.hsic_pairs(data, permutations=100)
    for ours, theirs in zip(found.pairs, expected.pairs, strict=True):
        assert ours.p_permutation == theirs.p_permutation


def test_little_work_stays_here(engine, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(engine, "send", None)
    points = Points.of(np.random.default_rng(0).normal(size=500))
    sweep(kernel_of("gaussian(1.5)"), points, np.ones((500, 1)), engine)


def test_too_little_memory_is_said(engine):
    torch = pytest.importorskip("torch")

    def work(_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(UndecidedError, match="too little memory"):
        list(engine.map(work, [1]))


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "kerntest.engines.gpu", raising=False)
    with pytest.raises(MissingExtraError, match="PyTorch") as caught, kerntest.compute_on("gpu"):
        pass
    assert (caught.value.exit_code, caught.value.hint) == (4, "pip install 'kerntest[gpu]'")


@pytest.mark.usefixtures("engine")
def test_a_name_that_is_no_device(monkeypatch):
    monkeypatch.setenv("KERNTEST_DEVICE", "abacus:1")
    with pytest.raises(UsageError, match="KERNTEST_DEVICE=abacus:1"), kerntest.compute_on("gpu"):
        pass


@pytest.mark.usefixtures("engine")
def test_no_gpu_is_exit_code_4(monkeypatch, tmp_path, capsys):
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("KERNTEST_DEVICE")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "\n".join(f"{k},{k * k % 7}" for k in range(20)))
    assert run(["mmd", str(table), str(table), "--engine", "gpu"]) == 4
    error = capsys.readouterr().err
    assert "error: no GPU was found" in error
    assert "--engine gpu" in error
