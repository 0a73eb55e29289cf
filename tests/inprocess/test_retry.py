from __future__ import annotations

import contextvars
import logging
import random
import threading

import pytest
import tenacity

from django_jobkit.exceptions import JobCancelled, PermanentJobError
from django_jobkit.inprocess import Cancellation, exponential, linear, with_retry
from django_jobkit.inprocess.cancellation import running_under

from .helpers import PATIENCE


class Waits(Cancellation):
    """A cancellation on which no time passes; keeps what was asked for, and cancels at the given wait."""

    def __init__(self, cancel_at=0):
        super().__init__()
        self.seconds = []
        self.cancel_at = cancel_at

    def wait(self, seconds=None):
        self.seconds.append(seconds)
        if len(self.seconds) == self.cancel_at:
            self.cancel()
        return self.cancelled


class Flaky:
    """Raises the given errors, one at each call; then returns."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def run_under(cancellation, job):
    def run():
        running_under(cancellation)
        return job()

    return contextvars.copy_context().run(run)


def waits_of(backoff, count):
    waits = Waits()
    run_under(waits, with_retry(Flaky(*[OSError()] * count), count + 1, backoff))
    return waits.seconds


def test_a_job_that_succeeds_is_called_once_and_never_waits():
    waits, job = Waits(), Flaky()
    assert run_under(waits, with_retry(job, 5, 1.0)) == "done"
    assert (job.calls, waits.seconds) == (1, [])


def test_a_job_is_tried_until_it_succeeds():
    waits, job = Waits(), Flaky(OSError(), ValueError())
    assert run_under(waits, with_retry(job, 5, 1.0)) == "done"
    assert (job.calls, len(waits.seconds)) == (3, 2)


def test_after_the_last_attempt_its_error_is_raised_as_it_was():
    errors = [OSError("first"), OSError("last")]
    waits, job = Waits(), Flaky(*errors)
    with pytest.raises(OSError, match="last") as raised:
        run_under(waits, with_retry(job, 2, 1.0))
    assert raised.value is errors[1]
    assert (job.calls, len(waits.seconds)) == (2, 1)


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (linear(jitter=0), [1, 2, 3, 4, 5]),
        (linear(5, 10, maximum=30, jitter=0), [5, 15, 25, 30, 30]),
        (exponential(jitter=0), [1, 2, 4, 8, 16]),
        (exponential(0.5, 3, maximum=10, jitter=0), [0.5, 1.5, 4.5, 10, 10]),
        (lambda failed: failed * 10.0, [10, 20, 30, 40, 50]),
        (tenacity.wait_fixed(3), [3, 3, 3, 3, 3]),
        (0, [0, 0, 0, 0, 0]),
    ],
)
def test_the_waits_are_those_of_the_backoff(backoff, expected):
    assert waits_of(backoff, 5) == expected


def test_a_bare_number_is_the_first_of_exponential_waits():
    with_jitter = waits_of(2.0, 5)
    for wait, at_least in zip(with_jitter, [2, 4, 8, 16, 32], strict=True):
        assert at_least <= wait <= at_least + 1


@pytest.mark.parametrize(
    ("backoff", "least", "most"),
    [
        (linear(1, 2, jitter=0.5), [1, 3, 5], [2, 4, 6]),
        (linear(1, 2, maximum=4, jitter=0.5), [1, 3, 4], [2, 4, 5]),  # those who wait for the maximum spread as well
        (exponential(3, 2, jitter=1), [3, 6, 12], [6, 9, 15]),
        (exponential(3, 4, jitter=0.1), [3, 12, 48], [3.9, 12.9, 48.9]),
    ],
)
def test_jitter_adds_at_random_a_part_of_the_first_growth(monkeypatch, backoff, least, most):
    monkeypatch.setattr(random, "random", lambda: 0.0)
    assert waits_of(backoff, 3) == pytest.approx(least)
    monkeypatch.setattr(random, "random", lambda: 1.0)
    assert waits_of(backoff, 3) == pytest.approx(most)


@pytest.mark.parametrize("backoff", [linear(maximum=1000, jitter=1), exponential(0.01, 1.1, jitter=1), 0.1])
def test_each_wait_is_longer_than_the_one_before(backoff):
    for _ in range(20):
        waits = waits_of(backoff, 8)
        assert waits == sorted(waits)


def test_no_number_of_attempts_makes_the_wait_overflow():
    assert max(waits_of(exponential(), 3000)) <= 60.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: linear(-1),
        lambda: linear(1, 0),
        lambda: linear(10, maximum=5),
        lambda: linear(jitter=1.1),
        lambda: exponential(-1),
        lambda: exponential(1, 1),
        lambda: exponential(10, maximum=5),
        lambda: exponential(jitter=-0.1),
        lambda: with_retry(Flaky(), 3, -1.0),
    ],
)
def test_waits_that_do_not_grow_are_refused(make):
    with pytest.raises(ValueError, match="doesn't grow"):
        make()


@pytest.mark.parametrize("attempts", [0, -1])
def test_at_least_one_attempt_is_made(attempts):
    with pytest.raises(ValueError, match=f"attempts must be at least 1, not {attempts}"):
        with_retry(Flaky(), attempts, 1.0)


@pytest.mark.parametrize(
    ("on", "calls"),
    [
        (Exception, 3),
        (OSError, 3),
        ((ValueError, OSError), 3),
        (ValueError, 1),
        (lambda error: isinstance(error, OSError), 3),
        (lambda error: False, 1),
    ],
)
def test_only_errors_worth_it_are_tried_again(on, calls):
    job = Flaky(*[OSError()] * 3)
    with pytest.raises(OSError):
        run_under(Waits(), with_retry(job, 3, 1.0, on=on))
    assert job.calls == calls


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, PermanentJobError, JobCancelled])
@pytest.mark.parametrize("on", [Exception, lambda error: True])
def test_what_says_that_it_is_final_is_never_tried_again(error, on):
    job = Flaky(error())
    with pytest.raises(error):
        run_under(Waits(), with_retry(job, 3, 1.0, on=on))
    assert job.calls == 1


def test_cancelled_during_a_wait_the_last_error_is_raised_without_another_attempt():
    errors = [OSError(n) for n in range(5)]
    waits, job = Waits(cancel_at=2), Flaky(*errors)
    with pytest.raises(OSError) as raised:
        run_under(waits, with_retry(job, 5, 1.0))
    assert raised.value is errors[1]
    assert (job.calls, len(waits.seconds)) == (2, 2)


def test_a_wait_of_an_hour_ends_when_cancelled():
    cancellation, failed = Cancellation(), threading.Event()
    raised = []

    def job():
        failed.set()
        raise OSError

    def run():
        try:
            run_under(cancellation, with_retry(job, 2, lambda failed: 3600.0))
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert failed.wait(PATIENCE)
    cancellation.cancel()
    thread.join(PATIENCE)
    assert len(raised) == 1


def test_outside_of_a_queue_it_just_waits():
    assert with_retry(Flaky(OSError()), 2, lambda failed: 0.001)() == "done"


def test_every_failed_attempt_but_the_last_is_a_line_in_the_log(caplog):
    logger = logging.getLogger("tests.retry")
    with pytest.raises(OSError):
        run_under(Waits(), with_retry(Flaky(*[OSError("gone")] * 3), 3, linear(jitter=0), logger=logger))
    assert [(record.name, record.levelname) for record in caplog.records] == [("tests.retry", "WARNING")] * 2
    assert "Attempt 1 of 3 of job" in caplog.messages[0]
    assert "in 1.00 s: OSError('gone')" in caplog.messages[0]
    assert "Attempt 2 of 3" in caplog.messages[1]


def test_a_cancelled_job_promises_no_further_attempt_in_the_log(caplog):
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(OSError):
        run_under(cancellation, with_retry(Flaky(OSError()), 3, 1.0))
    assert not caplog.records


def test_an_async_job_is_tried_again_too():
    flaky = Flaky(OSError())

    async def job():
        return flaky()

    assert run_under(Waits(), with_retry(job, 2, 1.0)) == "done"


def test_each_run_counts_its_own_attempts_even_one_inside_another():
    inner = with_retry(Flaky(OSError(), OSError(), OSError()), 2, 1.0)
    outer = with_retry(inner, 2, 1.0)
    assert run_under(Waits(), outer) == "done"


def test_the_job_keeps_its_name():
    def compute():
        pass

    assert "compute" in repr(with_retry(compute, 2, 1.0))
