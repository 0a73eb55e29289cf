from __future__ import annotations

import os

from django_jobkit.storages.processes import PerProcess
from tests.storages.processes import run_processes, run_threads


def test_threads_share_one_value():
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    value = PerProcess(make)
    assert set(run_threads(lambda number: value.get(), 16)) == {made[0]}
    assert len(made) == 1


def test_a_value_that_could_not_be_made_is_tried_again():
    outcomes = iter([OSError("not yet"), "made"])

    def make() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    value = PerProcess(make)
    try:
        value.get()
    except OSError:
        assert value.get() == "made"


def fork_with_the_lock_held() -> list[int]:
    """In a process of its own: fork while a value is being made, as another thread could be at it."""
    value: PerProcess[int] = PerProcess(os.getpid)
    first = value.get()
    value._locks[first].acquire()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, str(value.get()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return [first, child, int(os.read(read_end, 20)), value.get()]


def test_a_child_makes_its_own_even_when_the_parents_lock_is_held():
    [[first, child, in_child, again]] = run_processes(fork_with_the_lock_held, [()], timeout=20)
    assert in_child == child
    assert again == first
