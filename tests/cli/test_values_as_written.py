"""Values that people write otherwise than a parser reads them, through the commands: read, refused or told, never in silence."""

import gzip
import json
import random
import shlex
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
import pytest
from tolerances import SAME_MACHINE

from kerntest import read_table

SAMPLES = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def columns(kerntest):
    """Write columns of 40 rows as CSV, and return what `kerntest inspect` says of them, and of the file."""

    def inspected(values, *options):
        write("a.csv", values | {"k": [k * k % 17 for k in range(40)]})
        plain = json.loads(kerntest("inspect", "a.csv", "--json", *options).out)
        return {column["name"]: column for column in plain["columns"]}, plain["warnings"]

    return inspected


def write(path, values):
    rows = zip(*values.values(), strict=True)
    lines = [";".join(map(str, row)) for row in (values, *rows)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def many(pattern, *choices, n=40):
    draw = random.Random(0)
    return [pattern.format(draw.randint(10, 99), draw.randint(100, 999), *map(draw.choice, choices)) for _ in range(n)]


READ = {
    "sign": (many("€{0}.50"), "number with €"),
    "behind": (many("{0},5 €"), "number with € and decimal comma"),
    "code": (many("CHF {0}'{1}.50"), "number with CHF"),
    "unit": (many("{0} kg"), "number with kg"),
    "square": (many("{0}.{1}m²"), "number with m²"),
    "french": (many("{0} {1},50 €"), "number with € and decimal comma"),
    "swiss": (many("{0}'{1}"), "typographic number"),
    "minus": (many("{2}{0}.5", "−–+"), "typographic number"),
    "brackets": (["(0.42)", "1.5"] * 20, "typographic number"),
}
LEFT = {
    "names": many("A{0}"),
    "pairs": many("{0} {1}"),
    "planes": many("B-{0}"),
    "houses": many("{0}{2}", "ABC"),
    "rooms": many("{2}", ["1 bedroom", "2 bedrooms", "studio"]),
    "ages": many("{2}", ["18-25", "26-35"]),
    "places": many("{2}", ["1st", "2nd", "3rd", "4th"]),
    "streets": many("{0} {2} Street", ["Oak", "Elm", "Main", "High", "Park", "Mill", "Lake"]),
    "times": many("{2}", ["1974Q1", "1974Q2"]),
}


def test_numbers_with_a_currency_a_unit_or_other_signs_are_read_and_told(columns):
    found, warnings = columns({name: values for name, (values, _) in READ.items()})
    assert {column["type"] for column in found.values()} == {"number"}
    assert {column["use"] for column in found.values()} == {"used"}
    assert found["brackets"]["minimum"] == -0.42
    assert found["minus"]["minimum"] < -10
    assert found["swiss"]["minimum"] > 10_000
    assert len(warnings) == 2
    assert "were read as numbers in sign, behind, code, unit, square, french (€" in warnings[0]
    assert warnings[0].endswith("; --categorical sign,behind,code,unit,square,french keeps them as text")
    assert "were read as numbers in swiss, minus, brackets (10'" in warnings[1]
    found, warnings = columns({"unit": READ["unit"][0]}, "--categorical", "unit")
    assert (found["unit"]["type"], warnings) == ("text", [])


def test_names_with_numbers_in_them_stay_text(columns):
    found, warnings = columns(LEFT)
    assert {found[name]["type"] for name in LEFT} == {"text"}
    assert warnings == []
    found, warnings = columns({"size": ["10 mm", "12 mm"] * 20})
    assert found["size"]["type"] == "text"
    assert warnings[0].startswith("a.csv: 10 mm and its like in column 'size' are taken for categories")
    # One value alone is a label.
    found, warnings = columns({"region": ["2. Middle Atlantic"] * 40, "n": [str(k % 7) for k in range(40)]})
    assert (found["region"]["type"], warnings) == ("text", [])


def test_months_of_years_are_dates_and_seasons_stay_text(columns):
    months = [f"{1949 + k // 12}-{k % 12 + 1:02}" for k in range(40)]
    found, warnings = columns(
        {
            "month": months,
            "some": ["", *months[1:]],
            "seasons": [f"{2000 + k % 11}-{k % 11 + 1:02}" for k in range(40)],
            "few": ["2009-10", "2010-11"] * 20,
            "long": [*months[:-1], "2019-20"],
            "old": ["0949-01", *months[1:]],
            "mixed": [*months[:-1], "1949-01-05"],
        }
    )
    for name in ("month", "some"):
        assert found[name]["type"] == "date"
        assert found[name]["maximum"] == "1952-04-01"
    assert (found["month"]["minimum"], found["some"]["minimum"]) == ("1949-01-01", "1949-02-01")
    assert {found[name]["type"] for name in ("seasons", "few", "long", "old", "mixed")} == {"text"}
    told = " ".join(warnings)
    assert "months were read as their first days" in told
    assert "1949-01 is 1949-01-01" in told


def test_months_are_the_same_dates_in_every_format_and_for_a_model(kerntest):
    months = [f"{1949 + k // 12}-{k % 12 + 1:02}" for k in range(40)]
    values = {"month": months, "y": [k % 12 + k for k in range(40)]}
    write("train.csv", values)
    pd.DataFrame(values).to_parquet("train.parquet")
    first, last = (float((date(*day) - date(1970, 1, 1)).days) for day in ((1949, 1, 1), (1952, 4, 1)))
    for table in map(read_table, ("train.csv", "train.parquet", pd.DataFrame(values))):
        assert (table["month"].kind, *table["month"].range) == ("date", first, last)
    assert kerntest("ridge", "train.csv", "--target", "y", "--output", "m.kt").code == 0
    outs = []
    for path, new in (("new.csv", ["1952-05", "1952-06"]), ("days.csv", ["1952-05-01", "1952-06-01"])):
        write(path, {"month": new, "k": [1, 2]})
        outcome = kerntest("predict", "m.kt", path, "-q")
        assert outcome.code == 0
        outs.append(outcome.out)
    assert len(outs[0].splitlines()) == 3
    assert outs[0] == outs[1]


def test_two_units_and_ambiguous_commas_are_refused(columns, kerntest):
    found, _ = columns({"w": ["5 kg", *many("{0} kg", n=24), *many("{1} g", n=15)], "p": many("${2},{1}", "123")})
    assert found["w"]["note"] == "line 27: holds '876 g', which is not a number with kg (25 of 40 values are)"
    assert found["p"]["use"] == "refused"
    assert found["p"]["note"].endswith(", and no value tells which")
    outcome = kerntest("mmd", "a.csv", "a.csv", "--columns", "p")
    assert (outcome.code, outcome.err.splitlines()[1][:35]) == (3, "hint: --decimal ',' or --decimal '.")
    found, _ = columns({"p": many("${2},{1}", "123")}, "--decimal", ".")
    assert found["p"]["minimum"] > 1000
    write("b.csv", {"w": READ["unit"][0]})
    write("c.csv", {"w": many("{0} g")})
    outcome = kerntest("mmd", "b.csv", "c.csv")
    assert (outcome.code, "as number with kg in b.csv and as number with g in c.csv" in outcome.err) == (3, True)


def test_a_model_reads_new_rows_as_they_were_written(kerntest):
    days = [date(2020, 1, 1) + timedelta(days=11 * k) for k in range(40)]
    values = {name: READ[name][0] for name in ("behind", "unit", "swiss")} | {
        "day": [day.strftime("%d/%m/%Y") for day in days],
        "share": [f"{k * 7 % 50}%" for k in range(40)],
        "y": range(40),
    }
    write("a.csv", values)
    assert kerntest("ridge", "a.csv", "--target", "y", "-o", "m.kt", "--kernel", "linear").code == 0
    told = kerntest("inspect", "m.kt").out
    for name in ("behind", "unit", "swiss"):
        assert READ[name][1] in told
    expected = kerntest("predict", "m.kt", "a.csv")
    assert expected.code == 0
    # ISO dates mean one thing only.
    write("b.csv", values | {"day": [day.isoformat() for day in days]})
    assert kerntest("predict", "m.kt", "b.csv").out == expected.out
    for name, others, example in (
        ("unit", many("{0} g"), "12 kg"),
        ("share", [k / 100 for k in range(40)], "12.5%"),
        ("day", [day.strftime("%b %d %Y") for day in days], "31/12/2025"),
    ):
        write("b.csv", values | {name: others})
        outcome = kerntest("predict", "m.kt", "b.csv")
        assert outcome.code == 3
        assert f"hint: write '{name}' as in training, such as {example}, or train" in outcome.err


def test_an_infinite_value_is_shown_as_it_is_written(kerntest):
    write("a.csv", {"x": range(30), "y": range(30)})
    write("b.csv", {"x": [*range(29), "1e400"], "y": range(30)})
    kerntest("ridge", "a.csv", "--target", "y", "-o", "m.kt", "--kernel", "linear")
    outcome = kerntest("predict", "m.kt", "b.csv")
    assert (outcome.code, "line 31: column 'x' holds '1e400'" in outcome.err) == (3, True)


def test_dates_written_as_numbers_are_told(columns, kerntest):
    day, start = 86_400_000, 946_684_800_000
    values = {
        "day": [19580329, 19580330, 19590101, 20001231] * 10,
        "item": [19589929, *range(39)],
        "old": [16000101, 16000102] * 20,
        "t": range(start, start + 40 * day, day),
        "s": [*range(-2 * day, start, start // 39 // day * day)][:40],
        "gdp": range(10**9, 10**12, 25 * 10**9),
    }
    found, warnings = columns(values)
    assert (found["day"]["type"], found["day"]["use"], len(warnings)) == ("number", "used", 3)
    assert "'day' looks like dates written as numbers" in warnings[0]
    assert "19580329 is a date if written 1958-03-29" in warnings[0]
    assert "'t' looks like dates in milliseconds, and is used as numbers; 946684800000 is a date if" in warnings[1]
    assert warnings[1].endswith("written 2000-01-01")
    Path("a.jsonl").write_text("".join(json.dumps({"t": t}) + "\n" for t in values["t"]))
    assert "milliseconds" in kerntest("inspect", "a.jsonl").out


def test_json_lines_are_read_by_the_same_judgement(kerntest):
    rows = [{"t": f"{k % 24}:05", "share": f"{k}%", "zip": str(k), "y": k} for k in range(30)]
    Path("a.jsonl").write_text("\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    plain = json.loads(kerntest("inspect", "a.jsonl", "--json").out)
    assert [column["type"] for column in plain["columns"]] == ["number", "number", "text", "number"]
    assert plain["warnings"][0] == "a.jsonl: times of day were read as hours in t (0:05 is 0.0833333)"
    assert kerntest("ridge", "a.jsonl", "--target", "y", "--exclude", "zip", "-o", "m.kt").code == 0
    assert kerntest("predict", "m.kt", "a.jsonl").code == 0


def test_a_line_that_names_the_delimiter_is_no_row(kerntest):
    write("a.csv", {"x": range(30), "y": range(30)})
    text = Path("a.csv").read_text()
    Path("b.csv").write_bytes(b"\xef\xbb\xbfsep=;\r\n" + text.replace("\n", "\r\n").encode())
    kerntest("ridge", "a.csv", "--target", "y", "-o", "m.kt", "--kernel", "linear")
    assert kerntest("predict", "m.kt", "b.csv").out == kerntest("predict", "m.kt", "a.csv").out
    Path("b.csv").write_text("sep=;\n" + text.replace("\n3;", "\n?;"))
    for words in (("mmd", "a.csv", "b.csv"), ("predict", "m.kt", "b.csv")):
        assert "b.csv, line 6: column 'x' holds '?'" in kerntest(*words).err


def test_dates_of_new_rows_are_read_as_is_said_and_else_as_the_model_was_trained(kerntest):
    days = [f"{1 + k % 12}/{1 + k % 7}/2020" for k in range(40)]
    write("a.csv", {"d": days, "y": range(40)})
    told = kerntest("ridge", "a.csv", "--target", "y", "-o", "m.kt", "--kernel", "linear", "--dayfirst")
    assert told.code == 0, told.err
    write("new.csv", {"d": ["2/3/2020"]})
    write("turned.csv", {"d": ["3/2/2020"]})
    trained, same, turned, other = (
        kerntest("predict", "m.kt", *words).out
        for words in (["new.csv"], ["new.csv", "--dayfirst"], ["turned.csv", "--no-dayfirst"], ["turned.csv"])
    )
    assert trained == same == turned != other
    assert "--dayfirst is for tables, and m.kt is a model" in kerntest("inspect", "m.kt", "--dayfirst").err


def test_a_forgotten_no_header_is_named(kerntest):
    write("a.csv", {"x": range(30), "y": range(30)})
    bare = "".join(Path("a.csv").read_text().splitlines(keepends=True)[1:])
    Path("b.csv").write_text(bare)
    kerntest("ridge", "a.csv", "--target", "y", "-o", "named.kt", "--kernel", "linear")
    kerntest("ridge", "b.csv", "--target", "x2", "-o", "counted.kt", "--kernel", "linear", "--no-header")
    says = "hint: if the first line is a row and not a header, --no-header says so"
    assert says in kerntest("inspect", "b.csv").err
    for header, doubtful in (("0.5;17;Ulm", True), ("0.5;Bonn;Ulm", False), ("1990;1991;1992", False)):
        Path("c.csv").write_text(f"{header}\n1.5;18;Bonn\n")
        told = kerntest("ridge", "c.csv", "--target", "price").err.splitlines()
        assert told[0] == "error: column 'price' is not in c.csv"
        assert told[1] == f"{says + ';' if doubtful else 'hint:'} the columns are {header.replace(';', ', ')}"
    Path("b.csv").write_text(bare.replace("0;0", "7;0"))
    assert "by position: if b.csv has no header, --no-header says so" in kerntest("predict", "counted.kt", "b.csv").err
    assert "by name: b.csv needs a header" in kerntest("predict", "named.kt", "b.csv", "--no-header").err
    Path("b.csv").write_text(bare + "1;2;3\n")
    assert "hint: the first row has 2 fields" in kerntest("inspect", "b.csv", "--no-header").err


@pytest.mark.parametrize("options", [(), ("--na", "?,NA,none")])
def test_the_words_for_missing_values_that_a_hint_offers_do_what_it_says(kerntest, options):
    for name in ("a.csv", "b.csv"):
        strange = ["NA", "-"] if name == "b.csv" else ["1", "2"]
        write(name, {"x": [*range(30), *strange], "y": range(32)})
    outcome = kerntest("mmd", "a.csv", "b.csv", "--columns", "x", "--missing", "drop", *options)
    assert outcome.code == 3
    hint = shlex.split(outcome.err.splitlines()[1])
    offered = hint[hint.index("--na") + 1]
    again = kerntest("mmd", "a.csv", "b.csv", "--columns", "x", "--missing", "drop", "--na", offered)
    assert (again.code, "30 of 32 rows used" in again.out) == (0, True)


def test_columns_that_are_not_used_are_not_spoken_of(kerntest):
    n = 200
    values = {"x": range(n), "y": [k * k % 17 for k in range(n)], "p": [f"{k}%" for k in range(n)], "": range(n)}
    for name in ("a.csv", "b.csv"):
        write(name, values)
    for words in (
        ("inspect", "a.csv", "--columns", "x"),
        ("mmd", "a.csv", "b.csv", "--exclude", "p,unnamed_4"),
        ("hsic", "a.csv", "--x", "x", "--y", "y"),
        ("ridge", "a.csv", "--target", "y", "--columns", "x"),
        ("mmd", "a.csv", "b.csv", "--columns", "x", "--method", "features"),
    ):
        outcome = kerntest(*words)
        assert outcome.code == 0
        assert "percent" not in outcome.out + outcome.err
        assert "unnamed_4" not in outcome.out + outcome.err
    assert "percents were read as numbers in p" in kerntest("mmd", "a.csv", "b.csv", "--exclude", "x").out


def test_sizes_that_were_categories_in_training_are_so_in_test_rows(kerntest):
    write("a.csv", {"s": ["10 mm", "12 mm", "16 mm"] * 10, "y": range(30)})
    # By themselves these would be numbers.
    write("b.csv", {"s": ["10 mm", "12 mm", "16 mm"], "y": range(3)})
    assert kerntest("ridge", "a.csv", "--target", "y", "--test", "b.csv", "-o", "m.kt").code == 0
    assert kerntest("predict", "m.kt", "b.csv").code == 0


def test_notes_are_told_once(columns, kerntest):
    columns({"m": [f"\u2212{k / 100:.2f}" for k in range(40)]})
    assert kerntest("mmd", "a.csv", "a.csv").out.count("were read as numbers in m (\u22120.01 is -0.01)") == 1


def test_blanks_around_text_make_no_other_category(kerntest):
    n = 480
    bare = {"g": ["y", "n", "NA", "NA"] * 120, "k": [k * k % 17 for k in range(n)], "y": range(n)}
    write("a.csv", bare)
    write("b.csv", bare | {"g": ["y", " n ", " NA", "  "] * 120, "k": [f" {k}" for k in bare["k"]]})
    columns = [json.loads(kerntest("inspect", name, "--json").out)["columns"] for name in ("a.csv", "b.csv")]
    assert columns[1] == columns[0]
    kerntest("ridge", "a.csv", "--target", "y", "-o", "m.kt", "--kernel", "linear", "--missing", "drop")
    results = [kerntest("predict", "m.kt", name, "--missing", "drop") for name in ("a.csv", "b.csv")]
    assert (results[0].code, results[1].out) == (0, results[0].out)
    for method in ("exact", "features"):
        words = ("--columns", "g,k", "--missing", "drop", "--method", method, "--format", "json")
        found = [json.loads(kerntest("mmd", "a.csv", name, *words).out) for name in ("a.csv", "b.csv")]
        assert found[1]["statistic"] == found[0]["statistic"]


def test_a_row_taken_for_the_header_is_told(kerntest):
    write("a.csv", {"59.30": [f"{k}.5" for k in range(40, 100)], "7": range(60), "x": ["x", "y"] * 30})
    write("b.csv", {"58.30": [f"{k}.5" for k in range(40, 100)], "8": range(60), "y": ["x", "y"] * 30})
    told = "the first line of a.csv was taken as the header, but 59.30, 7 are values like those below; --no-header"
    for words in (("inspect", "a.csv"), ("mmd", "a.csv", "a.csv"), ("hsic", "a.csv", "--pairwise"), ("kpca", "a.csv")):
        assert told in " ".join(kerntest(*words).out.split())
    assert (
        "hint: if the first line is a row and not a header, --no-header says so"
        in kerntest("mmd", "a.csv", "b.csv").err
    )
    assert "--no-header" in kerntest("mmd", "?.csv", "a.csv").err
    assert kerntest("mmd", "a.csv", "b.csv", "--no-header").code == 0
    write("day.csv", {"2024-01-31": [f"2024-02-{k:02}" for k in range(1, 29)], "NA": range(28)})
    assert "but 2024-01-31 is a value like those below" in " ".join(kerntest("inspect", "day.csv").out.split())
    years = {str(year): [k * year % 2999 for k in range(30)] for year in (1990, 2000, 2005, 2006)}
    for columns in ({"land": ["a", "b", "c"] * 10, **years}, years, {"land": ["a", "b"] * 15, "2006": range(30)}):
        write("wide.csv", columns)
        assert "--no-header" not in kerntest("inspect", "wide.csv").out


def test_comments_without_the_option_are_named(kerntest):
    rows = "".join(f"{k},{k * k % 17}\n" for k in range(30))
    hint = "if lines that begin with # are comments, --comment '#' leaves them out"
    Path("a.csv").write_text("a,b\n" + rows)
    kerntest("ridge", "a.csv", "--target", "b", "-o", "m.kt", "--kernel", "linear")
    b, commands = "b.csv", [("mmd", "a.csv", "b.csv"), ("predict", "m.kt", "b.csv")]
    for above in ("# made by hand\n", "# exported by LIMS\n# plate 3, run 2\n"):
        Path(b).write_text(above + "a,b\n" + rows)
        for words in (*commands, ("hsic", b, "--x", "a", "--y", "b")):
            assert f"hint: {hint}" in kerntest(*words).err
            assert kerntest(*words, "--comment", "#").code == 0
        outcome = kerntest("inspect", b)
        assert "--comment '#'" in outcome.out + outcome.err
        assert "row names" not in outcome.out + outcome.err
    Path(b).write_text("# x, y, z by hand\na,b\n" + rows)
    assert "--comment '#'" in kerntest("inspect", b).err
    Path(b).write_text("a,b\n" + rows + "# checked,\n" + rows)
    assert f"hint: {hint}" in kerntest("mmd", b, b).err
    Path(b).write_text("a,b\n" + rows + "#REF!,1\n" + rows)
    assert "#REF!' reads it as missing" in kerntest("mmd", b, b, "--columns", "a").err


# Files in parts, and damaged ones.


def test_parts_give_the_same_result_as_the_whole(kerntest):
    header, *rows = (SAMPLES / "before.csv").read_bytes().splitlines(keepends=True)
    Path("part-1.csv").write_bytes(header + b"".join(rows[:150]))
    Path("part-2.csv.gz").write_bytes(gzip.compress(header + b"".join(rows[150:])))
    words = ("mmd", SAMPLES / "after.csv", "--permutations", "20", "--json", "-v")
    whole, outcome = json.loads(kerntest(*words, SAMPLES / "before.csv").out), kerntest(*words, "part-*")
    parts = json.loads(outcome.out)
    assert parts["p_value"] == whole["p_value"]
    assert parts["statistic"] == pytest.approx(whole["statistic"], rel=SAME_MACHINE, abs=0)
    assert [one["provenance"]["inputs"][1]["files"] for one in (whole, parts)] == [1, 2]
    assert "part-*: csv with delimiter ',', compressed with gzip, 2 files, 400 rows read" in outcome.err
    outcome = kerntest(*words, "part-*", "-o", "part-1.csv")
    assert (outcome.code, "would replace the data in part-*" in outcome.err) == (2, True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_damaged_compression_is_3_wherever_rows_are_streamed(kerntest, kind):
    plain, path = SAMPLES / f"before.{kind}", Path(f"d.{kind}.gz")
    assert kerntest("kpca", plain, "-o", "m.kt", "-q").code == 0
    stored = gzip.compress(plain.read_bytes(), mtime=0)
    commands = (
        ["transform", "m.kt", path],
        ["transform", "m.kt", path, "-o", "o.csv"],
        ["mmd", path, plain, "--method", "features"],
        ["hsic", path, "--x", "items", "--y", "site_minutes", "--method", "features"],
        ["inspect", path],
    )
    # The header of gzip, its first block, the middle, the checksum; and a file that is cut off.
    for place in [2, 3, 10, 11, len(stored) // 2, len(stored) - 6, None]:
        damaged = bytearray(stored)
        if place is None:
            del damaged[len(stored) // 3 :]
        else:
            damaged[place] ^= 255
        path.write_bytes(damaged)
        for arguments in commands:
            outcome = kerntest(*arguments)
            assert outcome.code == 3, (place, arguments, outcome.err)
            assert f"{path} is compressed with gzip, but it is truncated or damaged: " in outcome.err
            assert "hint: copy or compress it again" in outcome.err
            assert not Path("o.csv").exists()
