"""Values far from the training rows are told where a model is applied, and ordinary new rows are not."""

import warnings

import numpy as np
import pandas as pd
import pytest

from kerntest import (
    SVM,
    KernelCCA,
    KernelPCA,
    KernelRidge,
    KerntestWarning,
    inspect_model,
    predict_file,
    train_ridge,
    train_svm,
    transform_file,
)
from kerntest.learning.model_file import model_bytes, read_model
from kerntest.learning.rows.encoding import Encoder
from kerntest.learning.rows.ranges import ranges_of, values_outside
from kerntest.learning.rows.training_rows import TrainingOptions


def birds(n, seed=0):
    rng = np.random.default_rng(seed)
    bill, mass = rng.uniform(30, 60, n), rng.uniform(2700, 6300, n)
    day = (np.datetime64("2024-01-01") + rng.integers(0, 300, n)).astype(str)
    kind = np.where(bill + mass / 100 > 90, "a", "b")
    return pd.DataFrame({"bill": bill, "mass": mass, "day": day, "kind": kind})


@pytest.fixture
def told(tmp_path):
    """Return what a fitted model of some kind tells of rows, as a command does."""
    birds(200).to_csv(tmp_path / "old.csv", index=False)

    def applied(frame, fit=train_svm, target="kind", **options):
        frame.to_csv(tmp_path / "new.csv", index=False)
        block = options.pop("block", None)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            fit(tmp_path / "old.csv", target, output=tmp_path / "m.kt", force=True, **options)
            return predict_file(tmp_path / "m.kt", tmp_path / "new.csv", output=tmp_path / "out.csv", block=block)

    return applied


def test_one_value_in_another_unit_is_told_with_its_column_its_rows_and_the_range(told):
    new = birds(30, seed=1)
    assert told(new).warnings == ()
    new.loc[[3, 7], "bill"] = [39_000.0, 41_000.0]
    report = told(new)
    (warning,) = report.warnings
    low, high = (f"{end:.4g}" for end in (birds(200).bill.min(), birds(200).bill.max()))
    assert f"column 'bill' is 39000 to 41000 in 2 rows, far from the {low} to {high} of the training rows" in warning
    assert warning.endswith("the farther off, the more alike are predictions")
    assert told(new, train_ridge, "mass", exclude="kind").warnings[0].endswith("go back to the mean farther off")
    assert told(new, kernel="linear").warnings[0].endswith("they are extrapolated")
    (outside,) = report.to_dict()["outside"]
    # Without the digits that scaling makes.
    assert outside["training_low"] == pytest.approx(birds(200).bill.min(), rel=1e-11)
    assert len(f"{outside['training_low']}") <= 13
    assert (outside["column"], outside["rows"], outside["lowest"], outside["highest"]) == ("bill", 2, 39_000, 41_000)


def test_the_blocks_of_a_file_tell_together_what_the_whole_does(told):
    new = pd.concat([birds(400, seed=1)] * 20)
    new.iloc[[5, 4000, 7999], 0] = [1000.0, 3000.0, 2000.0]
    (whole,), (part,) = told(new).warnings, told(new, block=20_000).warnings
    assert whole == part
    assert "1000 to 3000 in 3 rows" in whole


def test_a_file_in_another_unit_is_told_though_no_value_is_farther_than_the_range_is_wide(told):
    """Kilograms are 0.75 ranges below grams: told of all rows, and of one among many where a kernel does not reach so far."""
    new = birds(60, seed=1)
    for kernel in ("linear", "gaussian(1)"):
        told_of_all = told(new.assign(mass=new.mass / 1000), kernel=kernel).warnings
        assert "column 'mass'" in told_of_all[0]
    new.loc[0, "mass"] /= 1000
    assert told(new, kernel="linear").warnings == ()
    assert "in 1 row, far from" in told(new, kernel="gaussian(1)").warnings[0]


def test_dates_are_told_as_dates_and_many_columns_shortly(told):
    new = birds(30, seed=1).assign(day="2031-05-01")
    assert "column 'day' is 2031-05-01 in 30 rows, far from the 2024-01-02 to" in told(new).warnings[0]
    wide = birds(200).assign(**{f"w{k}": birds(200, seed=k).bill for k in range(6)})
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        SVM().fit(wide.drop(columns="kind"), wide.kind).predict(wide.drop(columns="kind").assign(w1=1e6))
    assert [str(one.message).split(" is ")[0] for one in met if "far from" in str(one.message)] == ["X: column 'w1'"]


def test_older_models_and_machines_of_one_class_tell_nothing(tmp_path, told):
    new = birds(30, seed=1)
    new.loc[0, "bill"] = 39_000.0
    report = told(new, target=None, task="one-class", exclude="kind")
    assert report.warnings == ()
    assert report.predictions["false"] >= 1
    assert told(new).warnings
    file = read_model(tmp_path / "m.kt")
    shown = inspect_model(tmp_path / "m.kt")
    assert {one.name: one.low for one in shown.columns}["bill"] == pytest.approx(birds(200).bill.min(), rel=1e-11)
    assert "2024-01-02 to 2024-" in shown.summary()
    manifest = {name: value for name, value in file.manifest.items() if name != "ranges"}
    (tmp_path / "older.kt").write_bytes(model_bytes(manifest, file.arrays))
    assert predict_file(tmp_path / "older.kt", tmp_path / "new.csv", output=tmp_path / "out.csv").warnings == ()
    assert inspect_model(tmp_path / "older.kt").columns[0].low is None


def test_estimators_and_test_files_warn_too(tmp_path):
    frame, new = birds(200), birds(40, seed=1)
    new.loc[0, "bill"] = 39_000.0
    x, far = frame[["bill", "mass"]], new[["bill", "mass"]]
    message = r"X: column 'bill' is 39000 in 1 row, far from"
    for model, apply in (
        (SVM().fit(x, frame.kind), "predict"),
        (KernelRidge().fit(x[["bill"]], frame.mass), "predict"),
        (KernelPCA().fit(x), "transform"),
        (KernelCCA().fit(x[["bill"]], x[["mass"]]), "transform"),
    ):
        model.save(tmp_path / type(model).__name__)
        loaded = type(model).load(tmp_path / type(model).__name__)
        for one in (model, loaded):
            with pytest.warns(KerntestWarning, match=message):
                getattr(one, apply)(far[list(one.feature_names_in_)])
    for name, table in (("old", frame), ("new", new)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.warns(KerntestWarning):
        result = train_svm(tmp_path / "old.csv", "kind", test=tmp_path / "new.csv")
    assert any("test rows of" in one and "'bill' is 39000" in one for one in result.warnings)
    with pytest.warns(KerntestWarning, match="column 'bill'"):
        report = transform_file(tmp_path / "KernelPCA", tmp_path / "new.csv", output=tmp_path / "out.csv")
    assert report.outside[0].rows == 1


@pytest.mark.parametrize("draw", ["normal", "uniform", "exponential", "integers"])
def test_ordinary_new_rows_are_told_of_seldom(draw):
    """Of 400 columns of 60 new rows after 40: none, but of exponential tails 60 E exp(-3 max) = 360 / 40^3, that is 2 or 3."""
    rng = np.random.default_rng(1)
    sample = {
        "normal": lambda: rng.normal(size=(100, 400)),
        "uniform": lambda: rng.uniform(size=(100, 400)),
        "exponential": lambda: rng.exponential(size=(100, 400)),
        "integers": lambda: rng.integers(0, 5, size=(100, 400)).astype(float),
    }[draw]
    table = TrainingOptions().read(sample())
    encoder, points, _ = Encoder.fit(table.take(np.arange(40)), "standardize")
    others, _ = encoder.transform(table.take(np.arange(40, 100)))
    found, _ = values_outside(ranges_of(encoder, points), encoder, others)
    told = sum(one.tells(60) for one in found)
    assert told <= (9 if draw == "exponential" else 0)


def test_a_lone_value_is_told_whichever_part_it_is_drawn_into():
    """As so far from all others that these look alike in the training part, as far from these in the test part."""
    frame = birds(80).drop(columns="day")
    frame.loc[17, "bill"] = 1e6
    for seed in range(8):
        with pytest.warns(KerntestWarning):
            result = train_svm(frame, "kind", test_fraction=0.3, seed=seed)
        assert [one for one in result.warnings if "column 'bill' is 1000000 in " in one]


def test_ends_are_those_of_the_rows_without_what_scaling_makes_of_them(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"c{k}": rng.random(101) < share for k, share in enumerate(np.linspace(0.1, 0.9, 40))}) * 1.0
    table = table.assign(tiny=1e-20 * rng.integers(0, 5, 101), y=rng.normal(size=101))
    train_ridge(table, "y", lambda_=1.0, bandwidth=3.0, output=tmp_path / "m.kt")
    columns = inspect_model(tmp_path / "m.kt").columns
    ends = {one.name: (one.low, one.high) for one in columns}
    assert {ends[name] for name in table.columns[:40]} == {(0.0, 1.0)}
    assert ends["tiny"] == (0.0, pytest.approx(4e-20, rel=1e-11))


@pytest.mark.parametrize(
    ("kernel", "reach"),
    [("gaussian(0.2)", 0.2), ("3*gaussian(0.2)", 0.2), ("laplacian(0.4)", 0.2), ("student-t(1)", None)],
)
@pytest.mark.parametrize(("fit", "options"), [(train_ridge, {}), (train_svm, {"task": "regress"}), (train_svm, {})])
def test_values_farther_than_the_kernel_reaches_are_told(tmp_path, kernel, reach, fit, options):
    """As far as it keeps exp(-1/2) of its value: to a Gaussian its bandwidth, in units of the column."""
    x = np.random.default_rng(0).permutation(np.linspace(0.0, 100.0, 201))
    y = np.where(x > 50, "high", "low") if fit is train_svm and not options else np.sin(x / 10)
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "old.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(tmp_path / "old.csv", "y", kernel=kernel, output=tmp_path / "m.kt", **options)
    spread = np.std(x)
    reach = np.sqrt(np.exp(0.5) - 1.0) if reach is None else reach
    inside = pd.DataFrame({"x": [-0.99 * reach * spread, 50.0, 100.0 + 0.99 * reach * spread]})
    beyond = pd.DataFrame({"x": [*[50.0] * 200, 100.0 + 1.01 * reach * spread]})
    reports = []
    for frame in (inside, beyond):
        frame.to_csv(tmp_path / "new.csv", index=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reports.append(predict_file(tmp_path / "m.kt", tmp_path / "new.csv", output=tmp_path / "out.csv"))
    assert (reports[0].warnings, reports[0].outside) == ((), ())
    (outside,) = reports[1].to_dict()["outside"]
    assert (outside["rows"], outside["farther"]) == (1, 1)
    assert outside["reach"] == pytest.approx(reach * spread, rel=1e-5)
    assert f"beyond which the kernel reaches by {outside['reach']:.4g}: " in reports[1].warnings[0]


@pytest.mark.parametrize("kernel", ["linear", "gaussian(0.1) + linear", "polynomial(2, 1, 1)"])
def test_kernels_that_go_on_reach_everywhere(told, kernel):
    new = birds(30, seed=1).assign(bill=45.0)
    new.loc[0, "bill"] = 70.0
    assert told(new, kernel=kernel).outside == ()


def test_few_rows_of_ordinary_test_parts_are_farther_than_kernels_reach():
    """Of one normal column, where bandwidths are small beside its range, and of four."""
    rng = np.random.default_rng(0)
    for columns in (1, 4):
        rows = 0
        for _ in range(20):
            X, y = rng.normal(size=(300, columns)), rng.normal(size=300)
            machine = SVM(task="regress").fit(X[:200], y[:200])
            rows += sum(one.rows for one in machine.model.outside(machine._points(X[200:]))[0])
        assert rows <= 0.005 * 20 * 100
