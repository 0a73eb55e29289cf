from __future__ import annotations

import asyncio
import contextvars
import threading

from django_jobkit.inprocess import Cancellation, current_cancellation
from django_jobkit.inprocess.cancellation import running_under

from .helpers import PATIENCE


def test_it_is_cancelled_once_and_for_all():
    cancellation = Cancellation()
    assert not cancellation.cancelled
    cancellation.cancel()
    cancellation.cancel()
    assert cancellation.cancelled


def test_waiting_answers_false_when_the_time_has_passed():
    assert Cancellation().wait(0.001) is False
    assert Cancellation().wait(0) is False
    assert Cancellation().wait(-1) is False


def test_waiting_ends_at_once_when_cancelled():
    cancellation = Cancellation()
    answers = []
    waiters = [threading.Thread(target=lambda s=s: answers.append(cancellation.wait(s))) for s in (None, 3600, 1e12)]
    for waiter in waiters:
        waiter.start()
    cancellation.cancel()
    for waiter in waiters:
        waiter.join(PATIENCE)
    assert answers == [True] * 3
    assert cancellation.wait(3600) is True


def test_outside_of_a_job_nobody_cancels():
    assert not current_cancellation().cancelled


def test_the_current_one_is_that_of_the_context_in_coroutines_and_their_threads_too():
    cancellation = Cancellation()

    async def ask():
        return current_cancellation(), await asyncio.to_thread(current_cancellation)

    def job():
        running_under(cancellation)
        return current_cancellation(), *asyncio.run(ask())

    assert contextvars.copy_context().run(job) == (cancellation,) * 3
    assert current_cancellation() is not cancellation
