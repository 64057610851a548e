"""What a hint says, followed to the letter, leads on: no hint goes in a circle."""

import shlex

import numpy as np
import pandas as pd
import pytest

import kerntest as package
from kerntest import KerntestError

RNG = np.random.default_rng(0)
N = 60
NAMES = ["a,b", "it's", 'q"r', "x*y", "p:q", "plain"]


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {name: RNG.normal(size=N) for name in "abt"} | {"c": np.resize(["x", "y", "z"], N), "m": RNG.normal(size=N)}
    pd.DataFrame(rows).assign(m=lambda frame: frame["m"].where(frame.index.to_series() != 5)).to_csv(
        "d.csv", index=False
    )
    pd.DataFrame(rows).assign(a=lambda frame: frame["a"] + 1).to_csv("e.csv", index=False)
    odd = pd.DataFrame(RNG.normal(size=(N, len(NAMES))), columns=NAMES)
    odd.to_csv("odd.csv", index=False)
    odd.drop(index=3).reindex(range(N)).assign(plain=RNG.normal(size=N)).to_csv("holes.csv", index=False)
    mixed = {"v": ["rotary", *range(N - 1)], "few": ["rotary", *np.resize(np.arange(9), N - 1)]}
    pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)} | mixed).to_csv("mixed.csv", index=False)
    (tmp_path / "latin.csv").write_bytes("a,b\n1,é\n2,ü\n".encode("latin-1"))
    (tmp_path / "blanks.csv").write_text("u v\n" + "".join(f"{x} {y}\n" for x, y in RNG.normal(size=(N, 2))))
    comments = "".join(f"{x},{y}\n" for x, y in RNG.normal(size=(N, 2)))
    (tmp_path / "comments.csv").write_text(f"# hello, you\na,b\n{comments}")


def outcome(kerntest, words):
    found = kerntest(*shlex.split(words))
    lines = found.err.splitlines()
    return found.code, next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), "")


# The command, what of its hint is to be followed, and the exit code then.
FOLLOWED = {
    "mmd d.csv e.csv": ("--missing drop", 0),
    "mmd d.csv e.csv --columns a,m": ("--exclude m", 0),
    "mmd d.csv --exclude m": ("--by c", 0),
    "mmd d.csv --exclude m --by c --witness w.csv": ("--where 'c in ('\\''x'\\'', '\\''y'\\'')'", 0),
    "mmd holes.csv odd.csv": ('--exclude \'"a,b",it\'\\\'\'s,"q""r",x*y,p:q\'', 0),
    "hsic d.csv --joint a,b,m": ("--missing drop", 0),
    "hsic d.csv --target m --select 1 --columns a,b": ("--missing drop", 0),
    "hsic odd.csv --x a,b --y plain": ("'\"a,b\"'", 0),
    "hsic d.csv --x a --y b --kernel 'gaussian(1e9)'": ("--kernel gaussian --bandwidth median", 0),
    "mmd d.csv e.csv --columns a --kernel 'gaussian(1e-9)'": ("--kernel gaussian --bandwidth median", 0),
    "mmd d.csv e.csv --columns a --features nystroem:20": ("--method exact", 0),
    "svm mixed.csv --target a --task regress --columns b,v": ("--exclude v", 0),
    "svm mixed.csv --target a --task regress --columns few": ("--categorical few", 0),
    "inspect latin.csv": ("--encoding latin-1", 0),
    "hsic blanks.csv": ("--delimiter space", 0),
    "hsic comments.csv": ("--comment '#'", 0),
    "svm d.csv --target a --exclude m": ("--task regress", 0),
    "svm d.csv --target c --exclude m --select-by auc": ("--grid", 0),
    "svm d.csv --target c --exclude m --features nystroem": ("--features nystroem:500", 0),
    "hsic d.csv --x a --y b --time-series --min-lag 40": ("30", 0),
}


@pytest.mark.parametrize("command", FOLLOWED)
def test_a_hint_that_is_followed_leads_on(kerntest, command):
    way, code = FOLLOWED[command]
    first, hint = outcome(kerntest, command)
    assert first in {2, 3, 4}
    assert way in hint
    words, added = shlex.split(command), shlex.split(way)
    # What is there already is replaced.
    if not added[0].startswith("-"):
        words[words.index("a,b" if "a,b" in added[0] else "40")] = added[0]
        added = []
    for option in [word for word in added if word.startswith("--")]:
        if option in words:
            place = words.index(option)
            del words[place : place + 2]
    if added[:1] == ["--method"]:
        place = words.index("--features")
        del words[place : place + 2]
    again, hint = outcome(kerntest, shlex.join([*words, *added]))
    assert again == code, hint


@pytest.mark.parametrize(
    "how",
    ["", "--columns wage,hours", "--columns 'wage,hours,k*' --missing drop --where 'year > 1980'", "--cluster person"],
)
def test_what_asks_the_same_of_whole_cases_can_be_copied(kerntest, how):
    level = np.repeat(RNG.normal(size=(40, 2)), 8, axis=0) + 0.5 * RNG.normal(size=(320, 2))
    kind = np.where(np.arange(320) % 40 < 18, "u", np.where(np.arange(320) < 160, "v", "u"))
    rows = {"person": np.repeat(np.arange(40), 8), "year": np.tile(np.arange(1980, 1988), 40), "kind": kind}
    pd.DataFrame(rows | {"wage": level[:, 0] - (kind == "u"), "hours": level[:, 1]}).to_csv("my panel.csv", index=False)
    found = kerntest(*shlex.split(f"mmd 'my panel.csv' --by kind {how}"))
    told = " ".join((found.out + found.err).split())
    command = told[told.index("`kerntest hsic") :].split("`")[1]
    again = kerntest(*shlex.split(command)[1:])
    assert again.code == 0, again.err
    assert "kind" in again.out
    assert "rows with the same 'person'" not in again.out


PAY = {"pay": np.repeat(np.arange(60.0), 2), "year": np.tile([2001, 2002], 60), "size": RNG.normal(size=120)}
PAY |= {"kind": [*"uvw"] * 40, "name": [f"n{k}" for k in range(120)]}


@pytest.mark.parametrize("gaps", ["", "pay", "size", "pay,size"])
@pytest.mark.parametrize(
    "asked",
    [
        "--by pay",
        "--by pay --where 'year > 1900' --exclude name",
        "--by pay --sample 100 --columns size,kind",
        "--by pay --sample 30 --strata kind",
        "--by size --exclude name",
        "--by size --exclude name --strata size",
        "--by pay --where 'year == 2001 and pay < 9'",
    ],
)
def test_a_column_of_too_many_groups_leads_to_what_runs(kerntest, gaps, asked):
    frame = pd.DataFrame(PAY)
    for name in filter(None, gaps.split(",")):
        frame.loc[[4, 50, 71], name] = np.nan
    frame.to_csv("all pay.csv", index=False)
    words = shlex.split(f"mmd 'all pay.csv' {asked}")
    code, hint = outcome(kerntest, shlex.join(words))
    assert code in {2, 3}
    command = hint.split("`")[1]
    again = kerntest(*shlex.split(command)[1:])
    assert again.code == 0, again.err
    # Options that stand before the call run beside those that were given, of which a condition takes its own in.
    ways = [way.split(" takes ")[0].split(" compares ")[0] for way in hint.split("`")[0].split("; ") if way[:2] == "--"]
    for added in map(shlex.split, ways):
        kept = list(words)
        if added[0] in words:
            del kept[words.index(added[0]) : words.index(added[0]) + 2]
        again = kerntest(*kept, *added, "--permutations", "200")
        assert again.code == 0, again.err


def test_names_of_rows_lead_to_a_column_of_groups(kerntest):
    pd.DataFrame(PAY).to_csv("pay.csv", index=False)
    code, hint = outcome(kerntest, "mmd pay.csv --by name")
    assert code == 2
    assert hint == "name a column in --by whose values occur in many rows; --by kind does"
    assert kerntest(*shlex.split("mmd pay.csv --by kind --permutations 200")).code == 0


def test_missing_values_are_kept_where_no_group_would_be_left(kerntest):
    frame = pd.DataFrame(PAY | {"size": np.where(np.arange(120) % 3, np.nan, PAY["size"])})
    frame["group"] = np.where(np.arange(120) % 3, frame["kind"], frame["name"])
    frame[["group", "size", "year"]].to_csv("kept.csv", index=False)
    code, hint = outcome(kerntest, "mmd kept.csv --by group")
    assert code == 3
    assert hint == "--missing indicator keeps them; --exclude size leaves the column out"
    assert kerntest(*shlex.split("mmd kept.csv --by group --missing indicator --permutations 200")).code == 0


@pytest.mark.parametrize(
    ("command", "not_offered"),
    [
        # The target, and a column that is alone on its side, cannot be spared.
        ("hsic d.csv --target m --select 1 --columns a,b", "--exclude"),
        ("hsic d.csv --x a --y m", "--exclude"),
        ("hsic d.csv --joint a,b,m", "--exclude"),
        # Screens have one null.
        ("hsic d.csv --pairwise --columns a,b --bandwidth 1,2", "--null"),
        # Texts of which each is another say nothing.
        ("svm mixed.csv --target a --task regress --columns b,v", "--categorical"),
    ],
)
def test_what_would_not_help_is_not_offered(kerntest, command, not_offered):
    code, hint = outcome(kerntest, command)
    assert code in {2, 3}
    assert hint
    assert not_offered not in hint


@pytest.mark.parametrize(
    ("call", "told", "hint"),
    [
        (lambda: package.mmd_test("d.csv", "e.csv", alpha=2), "alpha must be between 0 and 1, not 2", "0.05 is usual"),
        (lambda: package.read_table("https://a.b/c.csv"), "does not exist", "^addresses are not fetched"),
        (lambda: package.hsic_test("e.csv", columns="a"), "e.csv has 1 column to test, and it takes two", "name the columns"),
        (lambda: package.hsic_select("e.csv", "a", k=0), "k must be a whole number of at least 1, not 0", "such as 1"),
        (lambda: package.hsic_select("e.csv", "a", k=1.5), "k must be a whole number of at least 1, not 1.5", "without a decimal"),
        (lambda: package.hsic_pairs("e.csv", bandwidth=[1, 2]), "many tests judge each column by one kernel", "hsic_test judges"),
        (lambda: package.hsic_test("d.csv", x_columns="a", y_columns="m"), "d.csv has 1 missing value", "^missing='drop' leaves"),
        (lambda: package.hsic_test("odd.csv", x_columns="a,b", y_columns="plain"), "column 'a' is not in odd.csv", "'\"a,b\"'"),
    ],
)  # fmt: skip
def test_a_hint_in_python(call, told, hint):
    with pytest.raises(KerntestError, match=told) as caught:
        call()
    assert (caught.value.hint or "").startswith(hint[1:]) if hint[0] == "^" else hint in caught.value.hint
