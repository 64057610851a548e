"""Our data classes do what those of the standard library do."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field

import pytest

from kerntest.dataclass import dataclass

WAYS = {"ours": dataclass, "theirs": dataclasses.dataclass}


@dataclass(frozen=True)
class Book:
    """One that can be pickled."""

    title: str
    pages: int = 100


def classes(way):
    """Return a frozen class with all kinds of fields, one that inherits from it, one that changes and one with names only."""
    made = WAYS[way]

    @made(frozen=True)
    class Base:
        title: str
        pages: int = 100
        tags: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="s", repr=False)

        def __post_init__(self):
            object.__setattr__(self, "title", self.title.strip())

    @made(frozen=True)
    class Derived(Base):
        year: int = 2000

        def __repr__(self):
            return "own"

    class Same(Base):
        pass

    @made()
    class Changing:
        count: int = 0

    @made(frozen=True, eq=False, kw_only=True)
    class Named:
        x: int
        y: int = 1

    return Base, Derived, Changing, Named, Same


def told(way, does):
    """Return what comes of it, an error by its class."""
    try:
        return does(*classes(way))
    except (TypeError, FrozenInstanceError) as error:
        return type(error)


DOES = {
    "order": lambda base, *_: vars(base(" a ", 5, ["t"])),
    "names": lambda base, *_: vars(base(pages=5, title="a")),
    "defaults": lambda base, *_: vars(base("a")),
    "own lists": lambda base, *_: base("a").tags is base("a").tags,
    "missing": lambda base, *_: base(),
    "strange": lambda base, *_: base("a", strange=1),
    "twice": lambda base, *_: base("a", title="b"),
    "too many": lambda base, *_: base("a", 1, [], "s", 2),
    "by name only": lambda *all_: all_[3](1),
    "by name": lambda *all_: vars(all_[3](x=1)),
    "set": lambda base, *_: setattr(base("a"), "pages", 1),
    "set another": lambda base, *_: setattr(base("a"), "other", 1),
    "delete": lambda base, *_: delattr(base("a"), "pages"),
    "change": lambda *all_: setattr(all_[2](), "count", 1),
    "repr": lambda base, *_: repr(base("a", 5)).rpartition(".")[2],
    "own repr": lambda *all_: repr(all_[1]("a")),
    "inherited": lambda *all_: vars(all_[1]("a", 5, [], "s", 1999)),
    "equal": lambda base, *_: (base("a", 5) == base("a", 5), base("a", 5) == base("a", 6), base("a") == 1),
    "not compared": lambda base, *_: base("a", 5, ["t"]) == base("a", 5, []),
    "other class": lambda base, derived, *_: base("a") == derived("a"),
    "class without more": lambda *all_: (all_[0]("a") == all_[4]("a"), all_[4]("a") == all_[0]("a")),
    "hash": lambda base, *_: {base("a"): 1}[base("a")],
    "no hash": lambda *all_: hash(all_[2]()),
    "identity": lambda *all_: (all_[3](x=1) == all_[3](x=1), len({all_[3](x=1), all_[3](x=1)})),
    "replace": lambda base, *_: vars(dataclasses.replace(base("a", 5), pages=6)),
    "asdict": lambda base, *_: dataclasses.asdict(base("a", 5)),
    "fields": lambda *all_: [one.name for one in dataclasses.fields(all_[1])],
    "copy": lambda base, *_: copy.copy(base("a", 5)) == base("a", 5),
}


@pytest.mark.parametrize("does", DOES.values(), ids=DOES)
def test_what_they_do_is_the_same(does):
    assert told("ours", does) == told("theirs", does)


def test_they_travel():
    assert pickle.loads(pickle.dumps(Book("a", 5))) == Book("a", 5)


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="Book takes title, pages, each once"):
        Book(pages=5)
