#!/usr/bin/env python3
"""Write every data file of this folder again, byte for byte.

Run ``python make_sample_data.py`` to write beside this script, or name another folder. The invented tables come from
NumPy generators with fixed seeds; the measured ones are exported from scikit-learn and left alone where it is not
installed. README.md says what each file holds, where it comes from and how the seed was chosen.
"""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The first of 0, 1, 2, ... under which the weeks agree column by column; README.md gives the exact rule.
SEED = 42
PAYMENTS = np.array(["card", "wallet", "invoice"])
# Probabilities of PAYMENTS for (first orders, repeat orders). The two weeks differ, their totals do not: the
# change is in how payment goes together with first_order.
PAYMENT_MIX_BEFORE = ((0.50, 0.30, 0.20), (0.40, 0.25, 0.35))
PAYMENT_MIX_AFTER = ((0.35, 0.30, 0.35), (0.50, 0.25, 0.25))
FIRST_ORDER_SHARE = 0.4
DELIVERY_MEAN_HOURS = 36.0
DELIVERY_SD_HOURS = 8.0
# Correlation of delivery time with the logarithm of the order value in the first week; in the second week, within
# one warehouse, positive for repeat orders and negative for first orders.
VALUE_CORRELATION_BEFORE = 0.6
VALUE_CORRELATION_AFTER = 0.9
# Probability that (first orders, repeat orders) leave from the far warehouse: together one half.
FAR_WAREHOUSE_SHARE = (0.95, 0.2)
# Half the distance between the two warehouses' delivery times, in standard deviations of the whole.
HUMP = 0.85
LINES = np.array(["A", "B", "C"])
# Standard deviations in seconds of the cycle on LINES; its mean is the same on all of them.
SPREAD_OF_LINES = np.array([0.5, 1.0, 2.0])
RIVER_DELAY_HOURS = 3
# How loud each of voice, hum and fan is in each of the microphones.
MICROPHONES = ("door", "desk", "window")
MIXING = np.array([[3.0, 1.0, 2.0], [1.5, 2.0, -1.0], [-1.0, 1.0, 2.5]])


def delivery_score(generator: np.random.Generator, size: np.ndarray, first_order: np.ndarray, *, after: bool) -> Any:
    """Draw delivery times as scores of mean 0 and variance 1.

    Parameters
    ----------
    generator
        Stream of random numbers; advanced by the call.
    size
        Standard normal scores of the order value, shape (rows,).
    first_order
        Whether the customer is new, shape (rows,).
    after
        Whether the second warehouse is open. With `w` = +1 (far) or -1 (near), equally likely in all, and a score
        `z` of variance 1 independent of it, ``HUMP w + sqrt(1 - HUMP^2) z`` again has mean 0 and variance 1.

    Returns
    -------
    numpy.ndarray
        Shape (rows,).
    """
    noise = generator.standard_normal(size.size)
    warehouse_draw = generator.random(size.size)
    if not after:
        return VALUE_CORRELATION_BEFORE * size + np.sqrt(1.0 - VALUE_CORRELATION_BEFORE**2) * noise
    slope = np.where(first_order, -VALUE_CORRELATION_AFTER, VALUE_CORRELATION_AFTER)
    within = slope * size + np.sqrt(1.0 - VALUE_CORRELATION_AFTER**2) * noise
    far = warehouse_draw < np.where(first_order, *FAR_WAREHOUSE_SHARE)
    return np.where(far, HUMP, -HUMP) + np.sqrt(1.0 - HUMP**2) * within


def orders(generator: np.random.Generator, rows: int, *, after: bool) -> pa.Table:
    """Draw one week of orders of an invented online shop.

    Parameters
    ----------
    generator
        Stream of random numbers; advanced by the call.
    rows
        Number of orders.
    after
        Whether to draw the second week, whose joint distribution is another one while every numeric column keeps its
        mean and standard deviation.

    Returns
    -------
    pyarrow.Table
        `rows` rows and the columns of ``before.csv``.
    """
    first_order = generator.random(rows) < FIRST_ORDER_SHARE
    size = generator.standard_normal(rows)
    delivery = delivery_score(generator, size, first_order, after=after)
    items = 1 + generator.poisson(np.exp(0.3 + 0.4 * size))
    site_minutes = generator.gamma(3.0, 4.0, rows)
    mix = np.array(PAYMENT_MIX_AFTER if after else PAYMENT_MIX_BEFORE)
    thresholds = np.cumsum(mix, axis=1)[np.where(first_order, 0, 1), :-1]
    payment = PAYMENTS[(generator.random(rows)[:, None] >= thresholds).sum(axis=1)]
    return pa.table(
        {
            "order_value_eur": np.round(np.exp(3.9 + 0.5 * size), 2),
            "items": items.astype(np.int64),
            "delivery_hours": np.round(DELIVERY_MEAN_HOURS + DELIVERY_SD_HOURS * delivery, 1),
            "site_minutes": np.round(site_minutes, 1),
            "payment": pa.array(payment.tolist(), pa.string()),
            "first_order": first_order,
        }
    )


def machines(generator: np.random.Generator, rows: int) -> pa.Table:
    """Draw readings of invented machines, some pairs of which depend without any correlation.

    Parameters
    ----------
    generator
        Stream of random numbers; advanced by the call.
    rows
        Number of readings.

    Returns
    -------
    pyarrow.Table
        `rows` rows and the columns of ``machines.csv``.
    """
    line = generator.integers(0, LINES.size, rows)
    load = generator.uniform(20.0, 100.0, rows)
    power = 3.0 + 0.12 * load + generator.normal(0.0, 1.0, rows)
    temperature = generator.uniform(40.0, 80.0, rows)
    # Least wear at 60 degrees and at 60 % load: it falls and rises again, so that no coefficient of correlation shows it.
    off_temperature, off_load = (temperature - 60.0) / 20.0, (load - 60.0) / 40.0
    wear = 5.0 + 6.0 * off_temperature**2 + 5.0 * off_load**2 + generator.normal(0.0, 1.0, rows)
    angle = generator.uniform(0.0, 2.0 * np.pi, rows)
    radius = 50.0 + generator.normal(0.0, 5.0, rows)
    cycle = 30.0 + SPREAD_OF_LINES[line] * generator.standard_normal(rows)
    return pa.table(
        {
            "line": pa.array(LINES[line].tolist(), pa.string()),
            "load_percent": np.round(load, 1),
            "power_kw": np.round(power, 2),
            "temp_c": np.round(temperature, 1),
            "wear_um": np.round(wear, 2),
            "shaft_x_um": np.round(radius * np.cos(angle), 1),
            "shaft_y_um": np.round(radius * np.sin(angle), 1),
            "cycle_s": np.round(cycle, 2),
        }
    )


def autoregression(noise: np.ndarray, memory: float) -> np.ndarray:
    """Return a series that keeps the share `memory` of each value in the next one, shape as `noise`."""
    series = np.empty_like(noise)
    last = 0.0
    for time, shock in enumerate(noise):
        last = memory * last + shock
        series[time] = last
    return series


def river(generator: np.random.Generator, hours: int) -> pa.Table:
    """Draw three invented hourly series: a river that rises some hours after the rain, and wind that has no part in it.

    Parameters
    ----------
    generator
        Stream of random numbers; advanced by the call.
    hours
        Length of the series.

    Returns
    -------
    pyarrow.Table
        `hours` rows and the columns of ``river.csv``.
    """
    burn_in = 200
    total = burn_in + hours
    wetness = autoregression(generator.standard_normal(total), 0.8)
    rain = np.exp(0.6 * wetness)
    late = np.concatenate([np.zeros(RIVER_DELAY_HOURS), rain[:-RIVER_DELAY_HOURS]])
    level = 120.0 + autoregression(4.0 * late + 2.0 * generator.standard_normal(total), 0.5)
    wind = 8.0 + autoregression(generator.standard_normal(total), 0.95)
    columns = {"rain_mm": np.round(rain, 2), "level_cm": np.round(level, 1), "wind_m_s": np.round(wind, 2)}
    return pa.table({name: values[burn_in:] for name, values in columns.items()})


def stairs(generator: np.random.Generator, rows: int) -> pa.Table:
    """Draw two switches of a lamp on a staircase, and the lamp, which is lit when exactly one of them is down."""
    lower, upper = generator.random((2, rows)) < 0.5
    return pa.table({"lower_switch": lower, "upper_switch": upper, "lamp": lower ^ upper})


def mixed(generator: np.random.Generator, rows: int) -> pa.Table:
    """Draw what three microphones hear of a voice, a hum and a fan that is on or off, at random moments."""
    voice = generator.laplace(0.0, np.sqrt(0.5), rows)
    hum = np.sqrt(2.0) * np.sin(generator.uniform(0.0, 2.0 * np.pi, rows))
    on = generator.random(rows) < 0.4
    fan = np.where(on, 1.2, -0.8) + 0.3 * generator.standard_normal(rows)
    heard = np.column_stack([voice, hum, fan]) @ MIXING.T
    columns = {f"{name}_mv": np.round(values, 3) for name, values in zip(MICROPHONES, heard.T, strict=True)}
    return pa.table({**columns, "fan": np.where(on, "on", "off")})


def with_missing_cells(table: pa.Table, cells: Mapping[str, tuple[int, ...]]) -> pa.Table:
    """Return `table` with the given rows (from 0) of the given columns emptied."""
    for name, rows in cells.items():
        position = table.column_names.index(name)
        values = [None if row in rows else value for row, value in enumerate(table[name].to_pylist())]
        table = table.set_column(position, name, pa.array(values, table.schema.field(name).type))
    return table


def cell_text(value: float | str | bool | None) -> str:
    """Return one CSV cell; numbers in the fewest digits which read back as the same number."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def write_csv(table: pa.Table, path: Path) -> None:
    """Write `table` as UTF-8 CSV with a header and newline line ends on every system."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
            writer.writerow([cell_text(value) for value in row])


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write `table` as Parquet; every setting which shapes the bytes is fixed, only pyarrow's version is not."""
    pq.write_table(
        table,
        path,
        version="2.6",
        data_page_version="1.0",
        compression="NONE",
        use_dictionary=False,
        write_statistics=True,
        row_group_size=table.num_rows,
    )


def measured_table(data: Any, names: list[str], target: str, levels: tuple[str, ...]) -> pa.Table:
    """Turn a data set of scikit-learn into a table.

    Parameters
    ----------
    data
        The bunch of ``sklearn.datasets.load_*``.
    names
        One column name for each feature.
    target
        Name of the class column, which comes last.
    levels
        Text of the classes 0, 1, ...

    Returns
    -------
    pyarrow.Table
        A column of whole numbers only is written as integers.
    """
    columns: dict[str, Any] = {}
    for name, values in zip(names, data.data.T, strict=True):
        whole = bool(np.all(values == np.round(values)))
        columns[name] = values.astype(np.int64) if whole else values
    columns[target] = pa.array([levels[code] for code in data.target], pa.string())
    return pa.table(columns)


def write_invented(folder: Path) -> None:
    """Write the tables drawn from random numbers, each from a stream of its own."""

    def stream(number: int) -> np.random.Generator:
        return np.random.default_rng([SEED, number])

    before = orders(stream(0), 400, after=False)
    after = orders(stream(1), 450, after=True)
    for name, table in (("before", before), ("after", after)):
        write_csv(table, folder / f"{name}.csv")
        write_parquet(table, folder / f"{name}.parquet")
    write_csv(orders(stream(2), 420, after=False), folder / "same_week.csv")

    gaps = {"delivery_hours": (6, 23, 24, 51), "payment": (11, 40)}
    write_csv(with_missing_cells(orders(stream(3), 60, after=False), gaps), folder / "with_missing.csv")

    # A Laplace variable of scale b has variance 2 b^2.
    samples = {
        "gaussian": stream(4).standard_normal(500),
        "laplace": stream(5).laplace(0.0, np.sqrt(0.5), 500),
    }
    for name, values in samples.items():
        write_csv(pa.table({"value": np.round(values, 4)}), folder / f"{name}.csv")

    write_csv(machines(stream(6), 300), folder / "machines.csv")
    gaps = {"line": (3, 30), "power_kw": (17, 18, 19, 57, 90), "wear_um": (8, 57, 101)}
    write_csv(with_missing_cells(machines(stream(7), 120), gaps), folder / "machines_with_missing.csv")
    write_csv(river(stream(8), 400), folder / "river.csv")
    write_csv(stairs(stream(9), 120), folder / "stairs.csv")
    write_csv(mixed(stream(10), 600), folder / "mixed.csv")


def write_measured(folder: Path) -> None:
    """Write the real data sets which scikit-learn carries."""
    from sklearn import datasets  # noqa: PLC0415 - only the measured tables need scikit-learn

    def snake_case(data: Any) -> list[str]:
        return [name.replace(" (cm)", "_cm").replace("/", "_").replace(" ", "_") for name in data.feature_names]

    loaders: tuple[tuple[str, Callable[[], Any], str, tuple[str, ...]], ...] = (
        ("iris", datasets.load_iris, "species", ("setosa", "versicolor", "virginica")),
        ("wine", datasets.load_wine, "cultivar", ("barolo", "grignolino", "barbera")),
        ("breast_cancer", datasets.load_breast_cancer, "diagnosis", ("malignant", "benign")),
    )
    tables = {}
    for name, load, target, levels in loaders:
        data = load()
        tables[name] = measured_table(data, snake_case(data), target, levels)
    for species in ("versicolor", "virginica"):
        of_species = pc.equal(tables["iris"]["species"], species)
        tables[f"iris_{species}"] = tables["iris"].filter(of_species).drop_columns(["species"])
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")


def main(arguments: list[str]) -> None:
    """Write all files into the folder named by the first argument, else beside this script."""
    folder = Path(arguments[0]) if arguments else Path(__file__).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    write_invented(folder)
    if importlib.util.find_spec("sklearn") is None:
        sys.stderr.write("scikit-learn is not installed: iris, wine and breast_cancer stay as they are\n")
        return
    write_measured(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
