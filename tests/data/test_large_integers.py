"""Whole numbers beyond 2^53: what a number cannot hold is said, and categories hold it."""

from kerntest import mmd_test


def write(path, values):
    path.write_text("id,v\n" + "".join(f"{value},{number % 7}\n" for number, value in enumerate(values)))
    return str(path)


def test_integers_that_differ_beyond_sixteen_digits(tmp_path):
    x = write(tmp_path / "x.csv", [2**60 + number % 2 for number in range(40)])
    y = write(tmp_path / "y.csv", [2**60 + 10 + number % 2 for number in range(40)])
    result = mmd_test(x, y)
    assert any("to the 16 digits of a number" in warning for warning in result.warnings)
    assert mmd_test(x, y, categorical="id").p_value < 0.01
