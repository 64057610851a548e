"""What is said of a test that ran is true, and what a hint recommends runs."""

import json
import re


def test_the_edge_of_the_gate_is_alpha_itself(kerntest, shop):
    files = (shop / "gaussian.csv", shop / "laplace.csv")
    p_value = json.loads(kerntest("mmd", *files, "--json").out)["p_value"]
    assert kerntest("mmd", *files, "--fail-on", "reject", "--alpha", p_value).code == 1
    assert kerntest("mmd", *files, "--fail-on", "reject", "--alpha", p_value * 0.999).code == 0


def test_the_numbers_on_a_line_show_no_excess(kerntest, tmp_path):
    """Every second number in each file: the files are more alike than any two halves of one are."""
    paths = [tmp_path / "even.csv", tmp_path / "odd.csv"]
    for start, path in enumerate(paths):
        path.write_text("v\n" + "".join(f"{value}\n" for value in range(start, 200, 2)))
    told = " ".join(kerntest("mmd", *paths).out.split())
    assert "no kernel shows an excess: no statistic lies above its mean, so p = 1" in told
    shown = json.loads(kerntest("mmd", *paths, "--json").out)
    assert shown["p_value"] == 1
    assert max(member["z"] for member in shown["family"]["members"]) <= 0


def test_the_bound_of_min_effect_names_its_kernel(kerntest, shop):
    files = (shop / "gaussian.csv", shop / "laplace.csv")
    told = " ".join(kerntest("mmd", *files, "--min-effect", "0.01").out.split())
    assert re.search(r"reached: [\d.]+, and at least [\d.]+, under another kernel than above, gaussian\(0.8977\)", told)
    assert "(MMD under gaussian(0.8977) is at least" in told
    assert "another kernel" not in kerntest("mmd", *files, "--min-effect", "0.01", "--kernel", "gaussian(1)").out


def test_a_screen_says_how_many_pairs_it_does_not_show(kerntest, shop):
    arguments = ["hsic", shop / "wine.csv", "--pairwise", "--permutations", "20", "-q"]
    assert len(json.loads(kerntest(*arguments, "--json").out)["pairs"]) == 14 * 13 / 2
    assert "and 61 more: --format csv shows all" in kerntest(*arguments).out


def test_what_a_hint_recommends_for_missing_values_runs(kerntest, tmp_path):
    (tmp_path / "gaps.csv").write_text("a,b,y\n1,,3\n2,5,\n3,4,4\n5,6,7\n", encoding="utf-8")
    assert "--exclude" not in kerntest("ridge", tmp_path / "gaps.csv", "--target", "y").err
    assert "--exclude b leaves" in kerntest("mmd", tmp_path / "gaps.csv", tmp_path / "gaps.csv", "--columns", "a,b").err
