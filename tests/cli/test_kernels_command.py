import csv
import io
import json

import pytest

from kerntest import parse_kernel

NAMES = [
    "gaussian",
    "laplacian",
    "laplacian2",
    "student-t",
    "rational-quadratic",
    "matern",
    "periodic",
    "linear",
    "polynomial",
    "exponential",
    "delta",
    "hamming",
    "additive",
]


def test_the_list_for_people(kerntest):
    outcome = kerntest("kernels")
    assert (outcome.code, outcome.err) == (0, "")
    for kernel in json.loads(kerntest("kernels", "--json").out)["kernels"]:
        assert f"\n  {kernel['name']}" in outcome.out
        assert "".join(kernel["formula"].split()) in "".join(outcome.out.split())
    algebra = outcome.out.splitlines()[-4:]
    assert algebra[0] == "Kernels make kernels"
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_the_list_for_programs(kerntest):
    document = json.loads(kerntest("kernels", "--json").out)
    assert document["schema"] == "kerntest.kernels/1"
    assert [kernel["name"] for kernel in document["kernels"]] == NAMES
    for kernel in document["kernels"]:
        assert type(kernel["positive_definite"]) is bool
        assert type(kernel["characteristic"]) is bool
    rows = list(csv.DictReader(io.StringIO(kerntest("kernels", "--format", "csv").out)))
    assert [row["formula"] for row in rows] == [kernel["formula"] for kernel in document["kernels"]]


def test_the_examples_of_the_algebra_are_kernels(kerntest):
    examples = json.loads(kerntest("kernels", "--json").out)["algebra"]
    assert len(examples) == 3
    for example in examples:
        parse_kernel(example["example"])


@pytest.mark.parametrize("arguments", [["extra"], ["--format", "yaml"]])
def test_mistakes_are_usage_errors(kerntest, arguments):
    outcome = kerntest("kernels", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
