from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from django_jobkit.exceptions import ListTimeout
from django_jobkit.jobs.flights import Flights

SOON = 20.0  # seconds that no test needs


class CountingClock:
    """The real time, and who has looked at it: a thread looks right before it starts to wait."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._threads: set[int] = set()
        self._looked = threading.Condition()

    def __call__(self) -> float:
        with self._looked:
            self._threads.add(threading.get_ident())
            self._looked.notify_all()
        return time.monotonic() + self.ahead

    def wait_for(self, threads: int) -> None:
        with self._looked:
            assert self._looked.wait_for(lambda: len(self._threads) >= threads, SOON)


class Scan:
    """A `collect` that stops in the middle, between looking and answering, until released."""

    def __init__(self, storage: list[str]) -> None:
        self.calls = 0
        self.begun = threading.Event()
        self.release = threading.Event()
        self._storage = storage

    def __call__(self) -> list[str]:
        self.calls += 1
        seen = list(self._storage)
        self.begun.set()
        assert self.release.wait(SOON)
        return seen


@pytest.fixture
def clock() -> CountingClock:
    return CountingClock()


@pytest.fixture
def flights(clock: CountingClock) -> Flights:
    return Flights(10.0, clock)


@pytest.fixture
def call(flights: Flights) -> Iterator[Callable[..., Future[list[str]]]]:
    with ThreadPoolExecutor(32) as pool:
        yield lambda collect, key="jobs", within=SOON: pool.submit(flights.run, key, collect, time.monotonic() + within)


def test_of_many_callers_at_once_one_scans_and_one_scans_for_all_others(
    call: Callable[..., Future[list[str]]], clock: CountingClock
) -> None:
    scan = Scan(["a"])
    first = call(scan)
    assert scan.begun.wait(SOON)
    others = [call(scan) for _ in range(19)]
    clock.wait_for(threads=20)
    scan.release.set()
    results = [future.result(SOON) for future in (first, *others)]
    assert results == [["a"]] * 20
    assert scan.calls == 2
    assert len({id(result) for result in results}) == 20, "every caller may change its list"


def test_a_caller_sees_what_was_written_before_it_asked(
    call: Callable[..., Future[list[str]]], clock: CountingClock
) -> None:
    storage = ["a", "deleted"]
    scan = Scan(storage)
    early = call(scan)
    assert scan.begun.wait(SOON)
    storage.remove("deleted")
    late = call(lambda: list(storage))
    clock.wait_for(threads=2)
    scan.release.set()
    assert early.result(SOON) == ["a", "deleted"]
    assert late.result(SOON) == ["a"]


def test_one_that_gives_up_takes_nobody_along(call: Callable[..., Future[list[str]]], clock: CountingClock) -> None:
    scan = Scan(["a"])
    first = call(scan)
    assert scan.begun.wait(SOON)
    patient = call(lambda: ["b"])
    clock.wait_for(threads=2)
    with pytest.raises(ListTimeout, match="'jobs'"):
        call(scan, within=0.05).result(SOON)
    scan.release.set()
    assert first.result(SOON) == ["a"]
    assert patient.result(SOON) == ["b"]


def test_an_error_reaches_the_one_whose_scan_failed_and_the_others_try_themselves(
    call: Callable[..., Future[list[str]]], clock: CountingClock
) -> None:
    begun, release = threading.Event(), threading.Event()

    def failing() -> list[str]:
        begun.set()
        assert release.wait(SOON)
        raise OSError("no network")

    first = call(failing)
    assert begun.wait(SOON)
    others = [call(lambda: ["a"]) for _ in range(5)]
    clock.wait_for(threads=6)
    release.set()
    with pytest.raises(OSError, match="no network"):
        first.result(SOON)
    assert [other.result(SOON) for other in others] == [["a"]] * 5


def test_those_who_shared_a_scan_that_failed_try_themselves_too(
    call: Callable[..., Future[list[str]]], clock: CountingClock
) -> None:
    scan = Scan(["early"])
    first = call(scan)
    assert scan.begun.wait(SOON)
    calls = itertools.count()

    def failing_at_first() -> list[str]:
        if next(calls) == 0:
            raise OSError("no network")
        return ["a"]

    others = [call(failing_at_first) for _ in range(5)]
    clock.wait_for(threads=6)
    scan.release.set()
    assert first.result(SOON) == ["early"]
    failed = [other for other in others if other.exception(SOON)]
    assert len(failed) == 1
    assert [other.result() for other in others if other not in failed] == [["a"]] * 4


def test_all_get_their_own_error_when_all_fail(call: Callable[..., Future[list[str]]]) -> None:
    def failing() -> list[str]:
        raise OSError("no network")

    errors = [call(failing).exception(SOON) for _ in range(8)]
    assert [type(error) for error in errors] == [OSError] * 8


def test_a_scan_that_hangs_is_not_waited_for_any_longer_than_the_patience(
    call: Callable[..., Future[list[str]]], clock: CountingClock
) -> None:
    hanging = Scan([])
    first = call(hanging)
    assert hanging.begun.wait(SOON)
    clock.ahead = 10.0
    assert call(lambda: ["a"]).result(SOON) == ["a"]
    assert not first.done()
    hanging.release.set()
    assert first.result(SOON) == []
    assert call(lambda: ["b"]).result(SOON) == ["b"]


def test_passengers_of_a_scan_that_hangs_change_to_the_next() -> None:
    """Which of two waiting callers scans is chance: both scans hang, and the other caller gets off."""
    short = Flights(0.05)
    hanging = Scan(["late"])
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(short.run, "jobs", hanging, time.monotonic() + SOON) for _ in range(3)]
        deadline = time.monotonic() + SOON
        while hanging.calls < 3:
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
        hanging.release.set()
        assert [future.result(SOON) for future in futures] == [["late"]] * 3


def test_lists_of_different_names_do_not_wait_for_each_other(call: Callable[..., Future[list[str]]]) -> None:
    scan = Scan(["a"])
    first = call(scan)
    assert scan.begun.wait(SOON)
    assert call(lambda: ["b"], key="other").result(SOON) == ["b"]
    scan.release.set()
    assert first.result(SOON) == ["a"]
