from __future__ import annotations

import threading

import pytest

from django_jobkit.storages.attempts import Absent, Call, Failed, Mismatch, Refused, Unclear, Wrong


class Time:
    """A clock that stands still but for what sleeps and requests take."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def make_call(time):
    def make(timeout: float = 10.0, slots: int = 1) -> Call:
        return Call(
            timeout, threading.BoundedSemaphore(slots), clock=time, sleep=time.sleep, spread=lambda low, high: high
        )

    return make


class Script:
    """A request that comes to one thing after another, the last of them for ever."""

    def __init__(self, *outcomes, time: Time | None = None, takes: float = 0.0) -> None:
        self.outcomes = list(outcomes)
        self.seconds: list[float] = []
        self.time, self.takes = time, takes

    def __call__(self, seconds: float):
        self.seconds.append(seconds)
        if self.time is not None:
            self.time.now += min(self.takes, seconds)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def test_what_succeeds_is_asked_once(make_call, time):
    request = Script("answer")
    assert make_call().ask(request, repeat_unclear=True) == "answer"
    assert len(request.seconds) == 1
    assert time.slept == []


@pytest.mark.parametrize("repeat_unclear", [True, False])
def test_what_was_refused_is_repeated_with_growing_pauses(make_call, time, repeat_unclear):
    call = make_call()
    request = Script(*[Refused("later")] * 6, "answer")
    assert call.ask(request, repeat_unclear=repeat_unclear) == "answer"
    assert time.slept == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0])
    assert not call.unclear


def test_what_is_unclear_is_repeated_only_where_that_is_safe(make_call):
    call = make_call()
    assert call.ask(Script(Unclear("lost"), "answer"), repeat_unclear=True) == "answer"
    assert call.unclear
    call = make_call()
    request = Script(Unclear("lost"), "answer")
    with pytest.raises(Unclear):
        call.ask(request, repeat_unclear=False)
    assert call.unclear
    assert len(request.seconds) == 1


@pytest.mark.parametrize("answer", [Absent("none"), Mismatch("other"), Wrong("denied"), Failed("what?")])
def test_other_answers_are_final(make_call, answer):
    request = Script(answer)
    with pytest.raises(type(answer)):
        make_call().ask(request, repeat_unclear=True)
    assert len(request.seconds) == 1


@pytest.mark.parametrize("takes", [0.0, 0.3, 60.0], ids=["refuses at once", "is slow", "hangs"])
def test_time_is_bounded_and_the_last_answer_told(make_call, time, takes):
    request = Script(Refused("first"), Unclear("last"), time=time, takes=takes)
    with pytest.raises(Unclear, match="last"):
        make_call(timeout=10).ask(request, repeat_unclear=True)
    assert 107 < time.now <= 110


def test_a_request_that_hangs_leaves_half_of_the_time_for_the_next(make_call, time):
    request = Script(Unclear("hangs"), "answer", time=time, takes=60)
    assert make_call(timeout=10).ask(request, repeat_unclear=True) == "answer"
    assert request.seconds == pytest.approx([5.0, 2.45])


def test_what_may_not_be_repeated_has_all_the_time_but_the_reserve(make_call):
    request = Script("answer")
    make_call(timeout=10).ask(request, repeat_unclear=False, reserve=2.5)
    assert request.seconds == [7.5]


def test_the_reserve_is_left_for_the_next_question(make_call, time):
    call = make_call(timeout=10)
    with pytest.raises(Unclear):
        call.ask(Script(Unclear("hangs"), time=time, takes=60), repeat_unclear=True, reserve=2.5)
    assert time.now <= 107.5
    look = Script("there")
    assert call.ask(look, repeat_unclear=True) == "there"
    assert look.seconds[0] >= 1.25


def test_nothing_is_repeated_that_could_not_end_in_time(make_call, time):
    request = Script(Unclear("hangs"), time=time, takes=2.5)
    with pytest.raises(Unclear):
        make_call(timeout=10).ask(request, repeat_unclear=True, shortest=2.5)
    assert len(request.seconds) == 3
    assert time.now <= 110


def test_waiting_for_a_connection_counts_and_ends():
    slots = threading.BoundedSemaphore(1)
    assert slots.acquire()
    with pytest.raises(Refused, match="busy"):
        Call(0.02, slots).ask(Script("answer"), repeat_unclear=True)
    slots.release()
    assert Call(5, slots).ask(Script("answer"), repeat_unclear=True) == "answer"
    assert slots.acquire(blocking=False), "a request gives its connection back"


def test_pauses_differ_from_caller_to_caller():
    slept: list[float] = []
    for _ in range(20):
        call = Call(10, threading.BoundedSemaphore(1), sleep=slept.append)
        call.ask(Script(Refused("later"), "answer"), repeat_unclear=True)
    assert all(0.05 <= pause <= 0.1 for pause in slept)
    assert len(set(slept)) > 10
