"""What a test that ran gives: the same result in every format, from every kind of file, on any number of threads."""

import csv
import io
import json
import os
import random
import re
import shutil
import subprocess

import pytest
from command_line import environment, put_on_path
from records import assert_alike
from tolerances import SAME_MACHINE, assert_close

from kerntest import mmd_test

REQUIRED = {
    "schema",
    "statistic",
    "estimator",
    "p_value",
    "alpha",
    "reject",
    "kernel",
    "null",
    "columns",
    "n_x",
    "n_y",
    "mmd2_biased",
    "mmd2_unbiased",
    "warnings",
    "provenance",
}


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def strict(text):
    return json.loads(text, parse_constant=no_constant)


def without_seconds(document):
    document["provenance"].pop("seconds")
    document["provenance"].pop("threads")
    return document


@pytest.fixture
def shop_pair(shop):
    return shop / "before.csv", shop / "after.csv"


FEW = ("--permutations", "100")
ONE = (*FEW, "--kernel", "gaussian")


def test_json_is_strict_and_has_what_programs_need(kerntest, shop_pair):
    outcome = kerntest("mmd", *shop_pair, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    document = strict(outcome.out)
    assert document.keys() >= REQUIRED
    assert document["null"].keys() >= {"method", "permutations", "p_floor"}
    assert document["schema"] == "kerntest.mmd/1"
    assert document["reject"] is True
    assert (document["n_x"], document["n_y"]) == (400, 450)
    assert document["statistic"] == document["mmd2_unbiased"]
    assert document["p_value"] >= document["null"]["p_floor"] == 1 / document["null"]["permutations"]
    digest = "40c0c8aa55e9a1b2d6ed741c07b6dab07c9ab51feea5b8edd38410506942cbdd"
    assert document["provenance"]["inputs"][0]["sha256"] == digest


def test_the_edge_of_the_gate_is_alpha_itself(kerntest, shop):
    files = (shop / "gaussian.csv", shop / "laplace.csv")
    p_value = strict(kerntest("mmd", *files, "--json").out)["p_value"]
    assert kerntest("mmd", *files, "--fail-on", "reject", "--alpha", p_value).code == 1
    assert kerntest("mmd", *files, "--fail-on", "reject", "--alpha", p_value * 0.999).code == 0


@pytest.mark.parametrize("name", ["after.csv", "after.parquet"])
def test_a_pipe_is_as_good_as_a_file(kerntest, shop, name):
    outcome = kerntest("mmd", shop / "before.csv", "-", "--json", stdin=shop / name)
    assert (outcome.code, outcome.err) == (0, "")
    piped = strict(outcome.out)
    named = mmd_test(shop / "before.csv", shop / name)
    assert piped["p_value"] == named.p_value
    assert piped["statistic"] == pytest.approx(named.statistic, rel=SAME_MACHINE, abs=0)
    assert piped["provenance"]["inputs"][1]["name"] == "<stdin>"
    assert piped["provenance"]["inputs"][1]["sha256"] == named.provenance.inputs[1].sha256


def test_parquet_and_csv_of_the_same_values_give_the_same_result(shop, tmp_path):
    from_csv = mmd_test(shop / "before.csv", shop / "after.csv", permutations=100)
    folder = tmp_path / "after"
    folder.mkdir()
    shutil.copy(shop / "after.parquet", folder / "part-0.parquet")
    for y in (shop / "after.parquet", folder):
        from_parquet = mmd_test(shop / "before.parquet", y, permutations=100)
        names = ("p_value", "statistic", "mmd2_biased", "effect_size", "kernel", "columns")
        assert_alike(*({name: getattr(one, name) for name in names} for one in (from_parquet, from_csv)))


def test_neither_threads_nor_the_order_of_rows_and_columns_change_the_result(shop_pair, tmp_path):
    expected = mmd_test(*shop_pair, threads=1)
    assert mmd_test(*shop_pair, threads=3).p_value == expected.p_value
    header, *rows = shop_pair[1].read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(rows)
    shuffled = tmp_path / "shuffled.csv"
    shuffled.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    result = mmd_test(shop_pair[0], shuffled)
    assert result.p_value == expected.p_value
    assert result.statistic == pytest.approx(expected.statistic, rel=SAME_MACHINE, abs=0)


def test_a_result_can_be_found_again_from_its_own_record(kerntest, shop):
    files = (shop / "gaussian.csv", shop / "laplace.csv")
    document = strict(kerntest("mmd", *files, "--json").out)
    again = strict(kerntest("mmd", *files, "--json", "--kernel", document["kernel"]).out)
    assert again["statistic"] == pytest.approx(document["statistic"], rel=SAME_MACHINE, abs=0)
    own = {member["kernel"]: member["p_value"] for member in document["family"]["members"]}
    assert again["p_value"] == own[document["kernel"]]


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_leaves_early_is_no_error(shop, tmp_path):
    variables = environment(PATH=put_on_path(tmp_path / "bin"))
    line = "set -o pipefail; kerntest mmd before.csv after.csv | head -n 1"
    done = subprocess.run(["bash", "-c", line], cwd=shop, env=variables, capture_output=True, timeout=600, check=False)
    assert done.stdout.startswith(b"Two-sample test")
    assert done.stderr == b""
    assert done.returncode in {0, 141}


def test_the_numbers_on_a_line_show_no_excess(kerntest, tmp_path):
    """Every second number in each file: the files are more alike than any two halves of one are."""
    paths = [tmp_path / "even.csv", tmp_path / "odd.csv"]
    for start, path in enumerate(paths):
        path.write_text("v\n" + "".join(f"{value}\n" for value in range(start, 200, 2)))
    told = " ".join(kerntest("mmd", *paths).out.split())
    assert "no kernel shows an excess: no statistic lies above its mean, so p = 1" in told
    shown = strict(kerntest("mmd", *paths, "--json").out)
    assert shown["p_value"] == 1
    assert max(member["z"] for member in shown["family"]["members"]) <= 0


def test_far_but_few_rows_are_not_called_near(kerntest, tmp_path):
    paths = [tmp_path / "low.csv", tmp_path / "high.csv"]
    for start, path in zip((1, 11), paths, strict=True):
        path.write_text("v\n" + "".join(f"{start + step}\n" for step in range(3)))
    assert "(too few rows for a standard error)" in kerntest("mmd", *paths).out


@pytest.mark.parametrize("arguments", [("mmd", "before.csv", "after.csv"), ("hsic", "before.csv", "--y", "payment")])
def test_verbose_lists_what_each_member_adds(kerntest, shop, monkeypatch, arguments):
    monkeypatch.chdir(shop)
    told = kerntest(*arguments, *FEW, "-v").err
    members = strict(kerntest(*arguments, *FEW, "--json").out)["family"]["members"]
    assert all(member["excess"] >= 0 for member in members)
    most = max(members, key=lambda member: member["z"])
    assert f"z = {most['z']:.4g}, p = {most['p_value']:.4g}, excess = {most['excess']:.4g}:" in told
    assert told.count(", excess = ") == len(members)


def test_the_bound_of_min_effect_names_its_kernel(kerntest, shop):
    files = (shop / "gaussian.csv", shop / "laplace.csv")
    told = " ".join(kerntest("mmd", *files, "--min-effect", "0.01").out.split())
    assert re.search(r"reached: [\d.]+, and at least [\d.]+, under another kernel than above, gaussian\(0.8977\)", told)
    assert "(MMD under gaussian(0.8977) is at least" in told
    assert "another kernel" not in kerntest("mmd", *files, "--min-effect", "0.01", "--kernel", "gaussian(1)").out


def test_what_a_hint_recommends_for_missing_values_runs(kerntest, tmp_path):
    (tmp_path / "gaps.csv").write_text("a,b,y\n1,,3\n2,5,\n3,4,4\n5,6,7\n", encoding="utf-8")
    assert "--exclude" not in kerntest("ridge", tmp_path / "gaps.csv", "--target", "y").err
    assert "--exclude b leaves" in kerntest("mmd", tmp_path / "gaps.csv", tmp_path / "gaps.csv", "--columns", "a,b").err


def test_two_files_are_the_columns_of_one_table(kerntest, shop, tmp_path):
    header, *rows = (shop / "machines.csv").read_text(encoding="utf-8").splitlines()
    for name, place in (("x.csv", 3), ("y.csv", 4)):
        (tmp_path / name).write_text("\n".join(line.split(",")[place] for line in (header, *rows)), encoding="utf-8")
    apart = strict(kerntest("hsic", tmp_path / "x.csv", tmp_path / "y.csv", "--json").out)
    together = strict(kerntest("hsic", shop / "machines.csv", "--x", "temp_c", "--y", "wear_um", "--json").out)
    names = ("p_value", "statistic", "kernel_x", "kernel_y", "columns_x", "columns_y", "n")
    assert_alike({name: apart[name] for name in names}, {name: together[name] for name in names})
    assert len(apart["provenance"]["inputs"]) == 2


def test_all_rows_of_a_screen_are_in_every_format(kerntest, shop):
    arguments = ["hsic", shop / "wine.csv", "--pairwise", "--permutations", "20", "-q"]
    pairs = strict(kerntest(*arguments, "--json").out)["pairs"]
    assert len(pairs) == 14 * 13 / 2
    assert_alike([strict(line) for line in kerntest(*arguments, "--format", "jsonl").out.splitlines()], pairs)
    rows = list(csv.DictReader(io.StringIO(kerntest(*arguments, "--format", "csv").out)))
    assert [(row["x"], row["y"]) for row in rows] == [(pair["x"], pair["y"]) for pair in pairs]
    assert_close([float(row["p_value"]) for row in rows], [pair["p_value"] for pair in pairs], share=SAME_MACHINE)
    assert "and 61 more: --format csv shows all" in kerntest(*arguments).out


def test_the_witness_functions_are_a_table_of_all_rows(kerntest, shop, tmp_path):
    path = tmp_path / "w.csv"
    columns = ("--x", "temp_c", "--y", "wear_um")
    assert kerntest("hsic", shop / "machines.csv", *columns, "--permutations", "20", "--witness", path).code == 0
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(rows) == 300
    assert {"f", "g"} <= rows[0].keys()
