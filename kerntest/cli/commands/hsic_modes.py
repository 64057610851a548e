"""The tests that ``kerntest hsic`` makes, and which options belong to which of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kerntest.cli.options import option_name
from kerntest.cli.shared_options import CSV_WORDS
from kerntest.errors import UsageError
from kerntest.report.results.independence_record import IndependenceResult, JointResult, ScreenResult, SelectionResult
from kerntest.report.summaries.independence_summary import (
    independence_notes,
    independence_summary,
    joint_notes,
    joint_summary,
    screen_notes,
    screen_summary,
    selection_notes,
    selection_summary,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kerntest.report.results.record import Record
    from kerntest.report.summaries.words import Summary


@dataclass(frozen=True, slots=True)
class Mode:
    """One of the tests of the command."""

    switch: str
    function: str
    takes: frozenset[str]
    notes: Callable[[Any], list[str]]
    summarise: Callable[[Any], Summary]
    rows: str = ""

    @property
    def record(self) -> type[Record]:
        """What the function returns."""
        return RECORDS[self.function]


RECORDS: dict[str, type[Record]] = {
    "hsic_test": IndependenceResult,
    "hsic_pairs": ScreenResult,
    "hsic_select": SelectionResult,
    "hsic_joint": JointResult,
}
_ALWAYS = CSV_WORDS | frozenset({"exclude", "categorical", "missing", "kernel", "alpha", "seed", "threads"})
_BOTH_SIDES = frozenset({"x_columns", "y_columns", "columns"})
_SERIES = (
    _ALWAYS
    | _BOTH_SIDES
    | {
        "other",
        "kernel_x",
        "kernel_y",
        "bandwidth",
        "estimator",
        "scale",
        "judge",
        "witness",
        "plot",
        "time_series",
        "min_lag",
    }
)
_TARGET = _ALWAYS | {"target", "columns", "bandwidth", "estimator", "correction", "permutations", "plot"}

TEST = Mode(
    "",
    "hsic_test",
    _SERIES - {"time_series", "min_lag"} | {"statistic", "null", "permutations", "resampling", "method", "features"},
    independence_notes,
    independence_summary,
)
SERIES = Mode("--time-series", "hsic_test", _SERIES, independence_notes, independence_summary)
PAIRWISE = Mode(
    "--pairwise", "hsic_pairs", _TARGET - {"target"} | _BOTH_SIDES | {"pairwise"}, screen_notes, screen_summary, "pairs"
)
TARGET = Mode("--target", "hsic_pairs", _TARGET, screen_notes, screen_summary, "pairs")
SELECT = Mode(
    "--select",
    "hsic_select",
    _ALWAYS - {"kernel"} | {"target", "select", "columns", "permutations"},
    selection_notes,
    selection_summary,
    "selected",
)
JOINT = Mode(
    "--joint",
    "hsic_joint",
    _ALWAYS | {"joint", "bandwidth", "scale", "permutations"},
    joint_notes,
    joint_summary,
)

_TWO_P_VALUES = "pairs have the moments p-value, which can be corrected, and the permutation p-value beside it"
_OWN_KERNEL = "the selection has a kernel of its own, Gaussian at the median bandwidth"
# What an option needs that stands without it.
_NEEDS = {"select": "--target", "correction": "--pairwise or --target", "min_lag": "--time-series"}
# The way out, for an option or for an option under a switch.
_HINTS = {
    ("select", ""): "`kerntest hsic DATA --target NAME --select 3` finds three columns on which NAME depends",
    ("correction", ""): "a single test has nothing to correct for",
    ("min_lag", ""): "the smallest shift is one of a test of series",
    ("pairwise", "--target"): "--pairwise tests every pair, --target every pair with one column: choose one of them",
    ("x_columns", "--target"): "--columns names the columns to test against the target",
    ("y_columns", "--target"): "--columns names the columns to test against the target",
    ("x_columns", "--select"): "--columns names the columns to select from",
    ("y_columns", "--select"): "--columns names the columns to select from",
    ("x_columns", "--joint"): "--joint itself names the columns: --joint a,b,c",
    ("y_columns", "--joint"): "--joint itself names the columns: --joint a,b,c",
    ("columns", "--joint"): "--joint itself names the columns: --joint a,b,c",
    ("null", "--time-series"): "series have one null, the shift test",
    ("permutations", "--time-series"): "the shift test uses every shift there is; --min-lag says from which on",
    ("resampling", "--time-series"): "series have one null, the shift test",
    ("statistic", "--time-series"): "the shift test is one of HSIC",
    ("null", "--joint"): "the joint test has one null, random permutations of whole groups",
    ("null", "--pairwise"): _TWO_P_VALUES,
    ("null", "--target"): _TWO_P_VALUES,
    ("kernel", "--select"): _OWN_KERNEL,
    ("bandwidth", "--select"): _OWN_KERNEL,
    ("plot", "--select"): "`kerntest hsic DATA --target NAME --plot FILE` draws every column against the target",
    ("plot", "--joint"): "--plot draws the test of one pair of groups, or a heat map of many pairs",
    ("correction", "--select"): "the p-value of each step takes the choice among the columns into account",
    "method": "--method features tests one pair of groups: `kerntest hsic DATA --x a --y b --method features`",
    "features": "--features belongs to the test of one pair of groups: `kerntest hsic DATA --x a --y b --features KIND:M`",
    "other": "give one file: this is about columns of one table",
    "scale": "columns are always standardised here",
    "kernel_x": "--kernel is the kernel of all columns here",
    "kernel_y": "--kernel is the kernel of all columns here",
    "witness": "--witness belongs to the test of one pair: `kerntest hsic DATA --x a --y b --witness FILE`",
    "statistic": "--statistic belongs to the test of one pair: `kerntest hsic DATA --x a --y b --statistic coco`",
}


def mode_asked_for(options: Mapping[str, Any]) -> Mode:
    """Return the test that the options ask for; what contradicts it is found by `check_options`."""
    if options["joint"]:
        return JOINT
    if options["target"] is not None:
        return TARGET if options["select"] is None else SELECT
    if options["pairwise"]:
        return PAIRWISE
    return SERIES if options["time_series"] else TEST


def check_options(ctx: click.Context, mode: Mode, result_parameters: frozenset[str]) -> None:
    """Refuse options that mean nothing to the test that was asked for."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in mode.takes or name in result_parameters:
            continue
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        shown = "a second file" if isinstance(parameter, click.Argument) else option_name(parameter)
        needs = _NEEDS.get(name)
        raise UsageError(
            f"{shown} needs {needs}" if needs and not mode.switch else f"{shown} does not go with {mode.switch}",
            hint=_HINTS.get((name, mode.switch))
            or _HINTS.get(name)
            or f"leave out one of the two; see `{ctx.command_path} --help`",
            code="usage.contradiction",
        )
