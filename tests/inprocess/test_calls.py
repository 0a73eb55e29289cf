from __future__ import annotations

import asyncio
import contextvars
import logging

import pytest

from django_jobkit.inprocess import Cancellation, current_cancellation
from django_jobkit.inprocess.calls import call, run

logger = logging.getLogger("tests.inprocess")
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def run_here(job, after_each=None, cancellation=None):
    context = contextvars.copy_context()
    return run(job, context, cancellation or Cancellation(), after_each, logger)


def fail(error):
    raise error


def test_a_call_returns_what_the_job_returns():
    assert call(lambda: 7) == 7


def test_a_coroutine_function_is_run_in_an_event_loop_of_its_own():
    loops = []

    async def job():
        loops.append(asyncio.get_running_loop())
        return 7

    assert [call(job), call(job)] == [7, 7]
    assert loops[0] is not loops[1]


def test_the_answer_is_whether_the_job_ended_without_an_error():
    assert run_here(lambda: None) is True
    assert run_here(lambda: 1 / 0) is False


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_no_error_gets_out_and_each_is_logged_once_with_its_traceback(caplog, error):
    def job():
        raise error("the reason")

    assert run_here(job) is False
    (record,) = caplog.records
    assert (record.levelname, record.exc_info[0]) == ("ERROR", error)
    assert "job" in record.message
    assert "the reason" in caplog.text


def test_an_async_job_fails_like_any_other(caplog):
    async def job():
        raise LookupError

    assert run_here(job) is False
    assert caplog.records[0].exc_info[0] is LookupError


def test_the_job_sees_its_cancellation_in_its_context_and_nobody_else_does():
    cancellation = Cancellation()
    seen = []
    run_here(lambda: seen.append(current_cancellation()), cancellation=cancellation)
    assert seen == [cancellation]
    assert current_cancellation() is not cancellation


@pytest.mark.parametrize("job", [lambda: None, lambda: 1 / 0, lambda: fail(SystemExit())])
def test_what_is_to_be_done_after_each_job_is_done_whatever_became_of_it(job, caplog):
    calls = []
    run_here(job, after_each=lambda: calls.append(1))
    assert calls == [1]


def test_what_is_done_after_a_job_is_done_in_its_context():
    seen = []
    run_here(lambda: variable.set("the job's"), after_each=lambda: seen.append(variable.get()))
    assert seen == ["the job's"]


def test_an_error_after_a_job_is_logged_and_does_not_make_the_job_fail(caplog):
    assert run_here(lambda: None, after_each=lambda: 1 / 0) is True
    (record,) = caplog.records
    assert record.exc_info[0] is ZeroDivisionError
    assert "after each" in record.message


def test_a_broken_log_filter_does_no_harm():
    broken = logging.getLogger("tests.inprocess.broken")
    broken.addFilter(lambda record: 1 / 0)
    assert run(lambda: 1 / 0, contextvars.copy_context(), Cancellation(), None, broken) is False
