"""Independence tests from the command line with the numerics: what they find, in every format, and how they fail."""

import csv
import io
import json
import shutil

import pytest
from records import assert_alike
from tolerances import SAME_MACHINE

from kerntest import hsic_joint, hsic_pairs, hsic_select, hsic_test


def strict(text):
    def no_constant(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=no_constant)


def settled(document):
    document["provenance"].pop("seconds")
    document["provenance"].pop("threads")
    return document


@pytest.fixture
def samples(shop, monkeypatch):
    monkeypatch.chdir(shop)
    return shop


CALLS = [
    (["machines.csv", "--x", "temp_c", "--y", "wear_um"], hsic_test, {"x_columns": "temp_c", "y_columns": "wear_um"}),
    (
        ["machines.csv", "--x", "temp_c", "--y", "wear_um", "--statistic", "coco", "--kernel-x", "laplacian(1)"],
        hsic_test,
        {"x_columns": "temp_c", "y_columns": "wear_um", "statistic": "coco", "kernel_x": "laplacian(1)"},
    ),
    (
        ["river.csv", "--x", "rain_mm", "--y", "level_cm", "--time-series", "--min-lag", "30"],
        hsic_test,
        {"x_columns": "rain_mm", "y_columns": "level_cm", "time_series": True, "min_lag": 30},
    ),
    (["machines.csv", "--pairwise"], hsic_pairs, {}),
    (["machines_with_missing.csv", "--target", "line"], hsic_pairs, {"target": "line"}),
    (["machines.csv", "--target", "wear_um", "--select", "2"], hsic_select, {"target": "wear_um", "k": 2}),
    (
        ["stairs.csv", "--joint", "lower_switch,upper_switch,lamp"],
        hsic_joint,
        {"groups": [["lower_switch"], ["upper_switch"], ["lamp"]]},
    ),
]


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(("arguments", "function", "options"), CALLS, ids=[" ".join(call[0]) for call in CALLS])
def test_the_command_line_is_one_call_of_the_library(kerntest, arguments, function, options):
    outcome = kerntest("hsic", *arguments, "--json", "-q")
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(outcome.out)
    assert_alike(settled(document), settled(json.loads(json.dumps(function(arguments[0], **options).to_dict()))))
    assert document["schema"].startswith("kerntest.hsic")


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["machines.csv", "--x", "temp_c", "--y", "wear_um"], 1),
        (["machines.csv", "--pairwise", "--exclude", "line,power_kw"], 1),
        (["machines.csv", "--target", "wear_um", "--select", "1"], 1),
        (["stairs.csv", "--joint", "lower_switch,upper_switch,lamp"], 1),
        (["stairs.csv", "--joint", "lower_switch,upper_switch"], 0),
    ],
)
def test_a_gate_ends_with_1_where_dependence_was_found(kerntest, arguments, code):
    assert kerntest("hsic", *arguments, "--permutations", "100", "--fail-on", "reject", "-q").code == code


@pytest.mark.usefixtures("samples")
def test_two_files_are_the_columns_of_one_table(kerntest, samples, tmp_path):
    header, *rows = (samples / "machines.csv").read_text(encoding="utf-8").splitlines()
    for name, places in (("x.csv", (3,)), ("y.csv", (4,))):
        lines = [",".join(line.split(",")[place] for place in places) for line in (header, *rows)]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    apart = strict(kerntest("hsic", tmp_path / "x.csv", tmp_path / "y.csv", "--json").out)
    together = strict(kerntest("hsic", "machines.csv", "--x", "temp_c", "--y", "wear_um", "--json").out)
    names = ("p_value", "statistic", "kernel_x", "kernel_y", "columns_x", "columns_y", "n")
    assert_alike({name: apart[name] for name in names}, {name: together[name] for name in names})
    assert len(apart["provenance"]["inputs"]) == 2


@pytest.mark.usefixtures("samples")
def test_all_rows_of_a_screen_are_in_every_format(kerntest):
    arguments = ["hsic", "wine.csv", "--pairwise", "--permutations", "20", "-q"]
    pairs = strict(kerntest(*arguments, "--json").out)["pairs"]
    assert len(pairs) == 14 * 13 / 2
    assert_alike([strict(line) for line in kerntest(*arguments, "--format", "jsonl").out.splitlines()], pairs)
    rows = list(csv.DictReader(io.StringIO(kerntest(*arguments, "--format", "csv").out)))
    assert [(row["x"], row["y"]) for row in rows] == [(pair["x"], pair["y"]) for pair in pairs]
    for row, pair in zip(rows, pairs, strict=True):
        assert float(row["p_value"]) == pytest.approx(pair["p_value"], rel=SAME_MACHINE, abs=0)
    assert "and 61 more: --format csv shows all" in kerntest(*arguments).out


@pytest.mark.usefixtures("samples")
def test_each_pair_uses_the_rows_that_it_has(kerntest):
    document = strict(kerntest("hsic", "machines_with_missing.csv", "--pairwise", "--json", "-q").out)
    rows = {frozenset((pair["x"], pair["y"])): pair["n"] for pair in document["pairs"]}
    assert rows[frozenset(("temp_c", "cycle_s"))] == 120
    assert rows[frozenset(("line", "temp_c"))] == 118
    assert rows[frozenset(("power_kw", "wear_um"))] == 113
    refused = kerntest("hsic", "machines_with_missing.csv", "--pairwise", "--missing", "error")
    assert refused.code == 3
    assert "has 10 missing values: line 2, power_kw 5, wear_um 3" in refused.err


@pytest.mark.usefixtures("samples")
def test_pairs_between_two_groups(kerntest):
    arguments = ["--pairwise", "--x", "temp_c,load_percent", "--y", "wear_um,line"]
    document = strict(kerntest("hsic", "machines.csv", *arguments, "--json").out)
    assert document["tests"] == 4


@pytest.mark.usefixtures("samples")
def test_witness_and_plot_are_written_and_stdout_has_the_result_alone(kerntest, tmp_path):
    pytest.importorskip("matplotlib")
    witness, plot, heat = (tmp_path / name for name in ("w.csv", "p.png", "h.svg"))
    arguments = ["--x", "temp_c", "--y", "wear_um", "--permutations", "20", "--witness", witness, "--plot", plot]
    outcome = kerntest("hsic", "machines.csv", *arguments, "--json")
    assert strict(outcome.out)["n"] == 300
    rows = list(csv.DictReader(io.StringIO(witness.read_text(encoding="utf-8"))))
    assert len(rows) == 300
    assert {"f", "g"} <= rows[0].keys()
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert (
        kerntest("hsic", "machines.csv", "--pairwise", "--x", "temp_c,line", "--y", "wear_um", "--plot", heat).code == 0
    )
    assert "<svg" in heat.read_text(encoding="utf-8")


BAD = [
    (["machines.csv"], 2, "which of the 8 columns of machines.csv are x, and which are y?"),
    (["machines.csv", "--x", "tempc", "--y", "wear_um"], 2, "column 'tempc' is not in machines.csv"),
    (["machines.csv", "--x", "temp_c,wear_um", "--y", "wear_um"], 2, "column 'wear_um' is in both --x and --y"),
    (["machines.csv", "--target", "wear"], 2, "column 'wear' is not in machines.csv"),
    (["machines.csv", "--joint", "line"], 2, ""),
    (["machines.csv", "--joint", "line,nowhere"], 2, "column 'nowhere' is not in machines.csv"),
    (["machines.csv", "--x", "temp_c", "--y", "wear_um", "--kernel-y", "gausian"], 2, "unknown kernel 'gausian'"),
    (
        ["river.csv", "--x", "rain_mm", "--y", "level_cm", "--time-series", "--min-lag", "300"],
        2,
        "no shift of 400 rows",
    ),
    (["gaussian.csv", "before.csv"], 3, "gaussian.csv has 500 rows and before.csv 400: rows cannot be paired"),
    (["machines_with_missing.csv", "--x", "line", "--y", "wear_um"], 3, "has 5 missing values: line 2, wear_um 3"),
    (["nowhere.csv", "--pairwise"], 3, "nowhere.csv does not exist"),
    (["nowhere.csv", "--target", "a", "--select", "1"], 3, "nowhere.csv does not exist"),
    (["nowhere.csv", "--joint", "a,b"], 3, "nowhere.csv does not exist"),
    (["machines.csv", "--x", "temp_c", "--y", "wear_um", "--kernel", "exponential(gain=1e6)"], 4, ""),
]


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=[" ".join(case[0]) for case in BAD])
def test_what_is_wrong_is_told_in_a_line_with_a_hint(kerntest, arguments, code, message):
    outcome = kerntest("hsic", *arguments)
    lines = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (code, "")
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert lines[-1].startswith("hint: ")
    assert "Traceback" not in outcome.err
    document = json.loads(kerntest("hsic", *arguments, "--json", "--fail-on", "accept").err)
    assert document["error"]["exit_code"] == code


def test_a_result_is_not_written_over_its_data(kerntest, samples, tmp_path, monkeypatch):
    shutil.copy(samples / "machines.csv", tmp_path / "machines.csv")
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "machines.csv").read_bytes()
    for name in ("-o", "--plot"):
        assert kerntest("hsic", "machines.csv", "--pairwise", name, "machines.csv").code == 2
    assert (tmp_path / "machines.csv").read_bytes() == before
