"""`compute_on` chooses the engine for everything inside it; `engine_of` finds it."""

import threading

import numpy as np
import pytest
from tolerances import SAME_MACHINE

import kerntest
from kerntest.engines.local import available_threads
from kerntest.engines.setting import allowed_bytes, announce, compute_on, engine_of, plan_wanted
from kerntest.errors import UsageError

GIGABYTE = 10**9


def test_without_a_choice_the_threads_of_this_process_compute():
    engine = engine_of()
    assert (engine.name, engine.threads, engine.memory, engine.dtype) == ("local", available_threads(), None, "float64")
    assert engine.here is engine
    assert engine_of(3).threads == 3


def test_the_choice_holds_inside_and_ends_outside():
    with compute_on("local", threads=3, memory="2GB") as chosen:
        assert engine_of() is chosen
        assert (chosen.threads, chosen.memory) == (3, 2 * GIGABYTE)
        with compute_on(threads=1):
            assert (engine_of().threads, engine_of().memory) == (1, None)
        assert engine_of() is chosen
    assert engine_of().memory is None


def test_threads_given_to_a_function_keep_the_memory_of_the_choice():
    with compute_on(memory="2GB", threads=4):
        assert (engine_of(2).threads, engine_of(2).memory) == (2, 2 * GIGABYTE)


def test_pieces_of_work_on_threads_know_the_choice():
    with compute_on(memory="2GB", threads=2) as engine:
        seen = list(engine.map(lambda _: (engine_of().memory, threading.get_ident()), range(6)))
    assert {memory for memory, _ in seen} == {2 * GIGABYTE}


def test_an_error_inside_ends_the_choice_too():
    with pytest.raises(ZeroDivisionError), compute_on(memory="2GB"):
        raise ZeroDivisionError
    assert engine_of().memory is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "loca"}, "no engine 'loca'"),
        ({"engine": "spark"}, "no engine 'spark'"),
        ({"engine": "local", "scheduler": "tcp://127.0.0.1:1"}, "not for local"),
        ({"engine": "gpu", "scheduler": "tcp://127.0.0.1:1"}, "not for gpu"),
        ({"memory": "lots"}, "no amount of memory"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message) as caught, compute_on(**arguments):
        pass
    assert caught.value.hint or "threads" in arguments


def test_plans_reach_the_listener_and_nobody_else():
    heard = []
    assert not plan_wanted(10**9)
    announce("unheard")
    with compute_on(planned=heard.append, planned_from=100):
        assert plan_wanted(100)
        assert not plan_wanted(99)
        announce("heard")
    announce("unheard")
    assert heard == ["heard"]


def test_methods_hold_what_they_usually_do_or_two_thirds_of_what_is_left():
    assert allowed_bytes(17) == 17
    with compute_on(memory="1.13GB"):
        assert allowed_bytes(17) == 2 * GIGABYTE // 3


def test_it_is_public():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2))
    alone = kerntest.mmd_test(x, y)
    with kerntest.compute_on("local", threads=2, memory="1GB"):
        found = kerntest.mmd_test(x, y)
    assert found.p_value == alone.p_value
    assert found.statistic == pytest.approx(alone.statistic, rel=SAME_MACHINE)
    assert (found.provenance.engine, found.provenance.threads) == ("local", 2)
