"""How the benchmarks measure: interleaved runs, so that a machine whose speed drifts slows all sides, and ratios."""

from __future__ import annotations

import argparse
import importlib.util
import math
import resource
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def processor_seconds():
    """Of this process, and of those that it started and that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass
class Case:
    """A line of a table: our work, that of peers by name, and what the results of both have to add."""

    what: str
    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]] = field(default_factory=dict)
    told: Callable[[Any, dict[str, Any]], str] = lambda _ours, _theirs: ""
    runs: int | None = None
    # Seconds of a peer are multiplied by this: where it makes only part of the relabellings.
    factor: float = 1.0


def interleaved(works, runs, clock):
    """The median seconds of each piece of work, after one run to warm up where there are several, and the last results."""
    seconds, results = [[] for _ in works], [None] * len(works)
    for _ in range(runs + (runs > 1)):
        for place, work in enumerate(works):
            started = clock()
            results[place] = work()
            seconds[place].append(clock() - started)
    return [statistics.median(one[-runs:]) for one in seconds], results


def compare(cases: Iterable[Case], runs: int, clock: Callable[[], float]):
    """Print a line for each case: seconds, and the ratio to the fastest peer; then the mean of the ratios and the worst."""
    ratios = {}
    for case in cases:
        (ours, *theirs), (result, *others) = interleaved([case.ours, *case.peers.values()], case.runs or runs, clock)
        peers = {name: case.factor * seconds for name, seconds in zip(case.peers, theirs, strict=True)}
        words = [f"{name} {seconds:.3g} s" for name, seconds in peers.items()]
        if peers:
            ratios[case.what] = ours / min(peers.values())
            words.append(f"ratio {ratios[case.what]:.3g}")
        words.append(case.told(result, dict(zip(case.peers, others, strict=True))))
        print(f"{case.what:52} {ours:8.3g} s   {'   '.join(filter(None, words))}", flush=True)
    if ratios:
        worst = max(ratios, key=ratios.get)
        mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
        print(
            f"geometric mean of {len(ratios)} ratios {mean:.3g}; the worst {ratios[worst]:.3g}: {worst}\n", flush=True
        )


def installed(module):
    """Whether a peer can be run here; says so where it cannot."""
    found = importlib.util.find_spec(module) is not None
    if not found:
        print(f"{module} is not installed: left out")
    return found


def clock(*, processor):
    return processor_seconds if processor else time.perf_counter


def parser_of(doc):
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
