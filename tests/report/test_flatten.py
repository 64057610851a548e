from example_results import two_sample_result

from kerntest.report.results.record import flatten


def test_flatten_gives_one_level_with_dotted_names():
    flat = flatten(two_sample_result().to_dict())
    assert flat["null.method"] == "permutation"
    assert flat["columns"] == "order_value;payment"
    assert flat["provenance.inputs.name"] == "before.csv;after.csv"
    assert flat["provenance.inputs.delimiter"] == ";;"
    assert flat["family.members.z"] == "3.5;4.25"
    assert not any(isinstance(value, (dict, list)) for value in flat.values())


def test_flatten_keeps_an_empty_list_as_an_empty_text():
    assert flatten({"warnings": [], "other": None}) == {"warnings": "", "other": None}


def test_a_number_that_is_not_finite_is_null():
    assert two_sample_result(mmd=float("nan")).to_dict()["mmd"] is None


def test_records_inside_a_list_of_records_have_columns_of_their_own():
    fits = [{"name": "a", "test": {"rmse": 0.5, "of": {"n": 3}}}, {"name": "b", "test": {"rmse": 2.0, "of": {"n": 4}}}]
    expected = {"fits.name": "a;b", "fits.test.rmse": "0.5;2.0", "fits.test.of.n": "3;4"}
    assert flatten({"fits": fits}) == expected
