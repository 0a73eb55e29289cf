"""What the queue promises, read from top to bottom."""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import gc
import json
import logging
import threading
import weakref

import pytest

from django_jobkit.inprocess import JobQueue, QueueState, current_cancellation, with_retry

from .helpers import PATIENCE, Clock, Held, eventually

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


@pytest.fixture
def busy(make_queue):
    """A queue of one worker, which is busy, and three places to wait; and the job to release."""
    held = Held()
    queue = make_queue(1, 3)
    assert queue.enqueue(held)
    assert held.has_started()
    yield queue, held
    held.release()


def drained(queue):
    return queue.stop(PATIENCE).drained


# Starting


def test_a_queue_starts_no_thread_until_it_is_used(make_queue):
    before = threading.active_count()
    queue = make_queue()
    assert (queue.stats().state, threading.active_count()) == (QueueState.NEW, before)


def test_the_first_job_starts_all_workers(make_queue):
    queue = make_queue(3)
    queue.enqueue(lambda: None)
    assert queue.stats().state == "running"
    assert len([t for t in threading.enumerate() if t.name.startswith("test-")]) == 3


def test_starting_it_by_hand_may_be_repeated(make_queue):
    queue = make_queue(3)
    queue.start()
    queue.start()
    assert len([t for t in threading.enumerate() if t.name.startswith("test-")]) == 3


@pytest.mark.parametrize(("workers", "buffer", "name"), [(0, 10, "workers"), (-1, 10, "workers"), (1, -1, "buffer")])
def test_sizes_that_make_no_sense_are_refused(workers, buffer, name):
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        JobQueue(workers, buffer)


def test_the_defaults_are_four_workers_and_a_hundred_places(make_queue):
    stats = make_queue().stats()
    assert (stats.workers, stats.capacity) == (4, 100)


def test_a_job_is_refused_with_an_error_where_no_thread_can_be_started(make_queue, monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    queue = make_queue()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            queue.enqueue(lambda: None)
        assert (queue.stats().state, queue.stats().depth) == ("new", 0)
    queue.enqueue(lambda: None)
    assert drained(queue)


def test_fewer_threads_than_asked_for_are_enough_to_go_on_and_the_rest_is_started_later(
    make_queue, monkeypatch, caplog
):
    real, left = threading.Thread.start, [1]

    def start(thread):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        real(thread)

    queue = make_queue(2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert queue.enqueue(lambda: None)
    assert "runs on 1 of 2 workers" in caplog.text
    both = threading.Barrier(2)
    assert queue.enqueue(lambda: both.wait(PATIENCE))
    assert queue.enqueue(lambda: both.wait(PATIENCE))
    assert drained(queue)
    assert queue.stats().done == 3


# Accepting and refusing


def test_a_full_queue_answers_false_at_once(busy):
    queue, held = busy
    assert [queue.enqueue(lambda: None) for _ in range(5)] == [True, True, True, False, False]
    stats = queue.stats()
    assert (stats.depth, stats.capacity, stats.refused) == (3, 3, 2)
    held.release()
    assert drained(queue)
    assert queue.stats().done == 4


def test_there_is_room_again_when_a_job_has_been_taken(busy):
    queue, held = busy
    while queue.enqueue(lambda: None):
        pass
    held.release()
    assert eventually(lambda: queue.stats().depth == 0)
    assert queue.enqueue(lambda: None)


def test_what_free_workers_take_at_once_does_not_wait(make_queue):
    """However fast the jobs come: none is refused because a worker had no time yet to take the one before."""
    jobs = [Held() for _ in range(5)]
    queue = make_queue(3, 2)
    assert [queue.enqueue(job) for job in jobs] == [True] * 5
    assert queue.enqueue(lambda: None) is False
    stats = queue.stats()
    assert (stats.running, stats.depth) == (3, 2)
    for job in jobs:
        job.release()
    assert drained(queue)


def test_without_a_buffer_only_free_workers_are_given_jobs(make_queue):
    held = Held()
    queue = make_queue(1, 0)
    assert queue.enqueue(held) is True
    assert queue.enqueue(lambda: None) is False
    held.release()
    assert eventually(lambda: queue.enqueue(lambda: None))


@pytest.mark.parametrize("job", [None, 7, "job"])
def test_only_callables_are_jobs(make_queue, job):
    with pytest.raises(TypeError, match="must be callable"):
        make_queue().enqueue(job)


@pytest.mark.parametrize("priority", ["high", 1.5, None])
def test_only_integers_are_priorities(make_queue, priority):
    with pytest.raises(TypeError):
        make_queue().enqueue(lambda: None, priority=priority)


@pytest.mark.parametrize("delay", [float("nan"), float("inf")])
def test_only_finite_numbers_are_delays(make_queue, delay):
    with pytest.raises(ValueError, match="delay must be a finite number"):
        make_queue().enqueue(lambda: None, delay=delay)


# Order


def test_urgent_jobs_are_run_first_and_those_of_one_priority_in_the_order_they_came(make_queue):
    held, order = Held(), []
    queue = make_queue(1)
    queue.enqueue(held)
    assert held.has_started()
    for name, priority in [("a", 0), ("b", -100), ("c", 100), ("d", 0), ("e", 100), ("f", -100)]:
        assert queue.enqueue(functools.partial(order.append, name), priority=priority)
    held.release()
    assert drained(queue)
    assert "".join(order) == "ceadbf"


def test_as_many_jobs_run_at_a_time_as_there_are_workers(make_queue):
    together = threading.Barrier(4)
    queue = make_queue(4)
    for _ in range(8):
        queue.enqueue(lambda: together.wait(PATIENCE))
    assert drained(queue)
    assert (queue.stats().done, queue.stats().failed) == (8, 0)


# Jobs


def test_a_job_runs_in_a_copy_of_the_context_of_the_one_who_enqueued_it(make_queue):
    seen = []

    def job():
        seen.append(user.get())
        user.set("changed by the job")

    queue = make_queue(1)
    for name in ("ann", "bob"):
        token = user.set(name)
        queue.enqueue(job)
        queue.enqueue(job)
        user.reset(token)
    assert drained(queue)
    assert seen == ["ann", "ann", "bob", "bob"]
    assert user.get() == "nobody"


def test_an_async_job_is_run_to_its_end(make_queue):
    seen = []

    async def job():
        seen.append(user.get())

    queue = make_queue(1)
    queue.enqueue(job)
    assert drained(queue)
    assert seen == ["nobody"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_job_that_raises_anything_is_counted_and_logged_once_and_the_worker_goes_on(make_queue, caplog, error):
    def job():
        raise error

    queue = make_queue(1)
    for _ in range(3):
        queue.enqueue(job)
    queue.enqueue(lambda: None)
    assert drained(queue)
    stats = queue.stats()
    assert (stats.done, stats.failed) == (1, 3)
    assert [record.exc_info[0] for record in caplog.records] == [error] * 3


def test_errors_go_to_the_logger_that_was_given(make_queue, caplog):
    queue = make_queue(1, logger=logging.getLogger("my.queue"))
    queue.enqueue(lambda: 1 / 0)
    assert drained(queue)
    assert [record.name for record in caplog.records] == ["my.queue"]


def test_after_each_job_the_given_function_is_called_in_its_thread(make_queue):
    threads = []

    def note():
        threads.append(threading.current_thread())

    queue = make_queue(1, after_each=note)
    queue.enqueue(note)
    queue.enqueue(lambda: 1 / 0)
    assert drained(queue)
    assert len(threads) == 3
    assert len(set(threads)) == 1


def test_a_job_counts_as_running_until_what_comes_after_it_has_been_done(make_queue):
    after = Held()
    queue = make_queue(1, after_each=after)
    queue.enqueue(lambda: None)
    assert after.has_started()
    assert (queue.stats().running, queue.stats().done) == (1, 0)
    after.release()
    assert drained(queue)
    assert (queue.stats().running, queue.stats().done) == (0, 1)


def test_a_job_may_enqueue_others(make_queue):
    done = threading.Event()
    queue = make_queue(1, 1)
    queue.enqueue(lambda: queue.enqueue(done.set))
    assert done.wait(PATIENCE)


def test_an_idle_worker_holds_on_to_no_job(make_queue):
    class Job:
        def __call__(self):
            pass

    job = Job()
    gone = weakref.ref(job)
    queue = make_queue(1)
    queue.enqueue(job)
    del job
    assert eventually(lambda: queue.stats().done)
    assert eventually(lambda: gc.collect() is not None and gone() is None)


# Delayed jobs


def test_a_delayed_job_runs_at_its_time_and_not_before(make_queue):
    clock, done = Clock(), threading.Event()
    queue = make_queue(1, clock=clock)
    assert queue.enqueue(done.set, delay=60)
    clock.now += 59.9
    queue.enqueue(lambda: None)  # has a worker look, since real time doesn't pass
    assert eventually(lambda: queue.stats().done == 1)
    assert (queue.stats().delayed, queue.stats().depth, done.is_set()) == (1, 1, False)
    clock.now += 0.1
    assert (queue.stats().delayed, queue.stats().depth) == (0, 1)
    queue.enqueue(lambda: None)
    assert done.wait(PATIENCE)


@pytest.mark.parametrize("delay", [0, -1, -1e12])
def test_a_time_that_has_passed_means_now(busy, delay):
    queue, _ = busy
    queue.enqueue(lambda: None, delay=delay)
    assert (queue.stats().depth, queue.stats().delayed) == (1, 0)


@pytest.mark.parametrize("delay", [0, 3600])
def test_a_job_that_waits_can_be_taken_back_once_and_frees_its_place(busy, delay):
    queue, held = busy
    ran = []
    jobs = [functools.partial(ran.append, number) for number in range(3)]
    assert all(queue.enqueue(job, delay=delay) for job in jobs)
    assert (queue.withdraw(jobs[1]), queue.withdraw(jobs[1])) == (True, False)
    assert (queue.stats().depth, queue.stats().refused) == (2, 0)
    assert queue.enqueue(functools.partial(ran.append, "new"))
    held.release()
    queue.stop(PATIENCE)
    assert ran == (["new"] if delay else [0, 2, "new"])


def test_a_job_that_runs_or_is_only_equal_to_one_that_waits_cannot_be_taken_back(busy):
    queue, held = busy
    queue.enqueue([].clear)
    assert not queue.withdraw(held)
    assert not queue.withdraw([].clear)


def test_delayed_jobs_count_in_the_bound_also_while_workers_are_free(make_queue):
    queue = make_queue(4, 2)
    assert [queue.enqueue(lambda: None, delay=3600) for _ in range(3)] == [True, True, False]
    assert queue.enqueue(lambda: None)  # a free worker takes it


def test_a_delayed_job_has_its_priority_when_its_time_has_come(make_queue):
    clock, held, order = Clock(), Held(), []
    queue = make_queue(1, clock=clock)
    queue.enqueue(held)
    assert held.has_started()
    queue.enqueue(functools.partial(order.append, "low"))
    queue.enqueue(functools.partial(order.append, "high"), priority=1, delay=10)
    clock.now += 10
    held.release()
    assert drained(queue)
    assert order == ["high", "low"]


def test_a_delayed_job_stands_before_one_that_came_after_its_time_even_if_no_worker_was_free_to_notice(make_queue):
    clock, held, order = Clock(), Held(), []
    queue = make_queue(1, clock=clock)
    queue.enqueue(held)
    assert held.has_started()
    queue.enqueue(functools.partial(order.append, "delayed"), delay=5)
    clock.now += 6
    queue.enqueue(functools.partial(order.append, "came later"))
    held.release()
    assert drained(queue)
    assert order == ["delayed", "came later"]


# Stopping


def test_stopping_runs_what_waits_and_ends_the_workers(busy):
    queue, held = busy
    for _ in range(3):
        queue.enqueue(lambda: None)
    held.release()
    report = queue.stop()
    assert (report.drained, report.waiting, report.cancelled, report.running) == (True, (), 0, 0)
    stats = queue.stats()
    assert (stats.state, stats.done, stats.depth, stats.running) == ("stopped", 4, 0, 0)
    assert not [t for t in threading.enumerate() if t.name.startswith("test-")]


def test_from_the_moment_of_stopping_every_job_is_refused(busy):
    queue, held = busy
    stopper = threading.Thread(target=queue.stop)
    stopper.start()
    assert eventually(lambda: queue.stats().state == "stopping")
    assert queue.enqueue(lambda: None) is False
    held.release()
    stopper.join(PATIENCE)
    assert queue.enqueue(lambda: None) is False
    assert (queue.stats().state, queue.stats().refused) == ("stopped", 2)


def test_when_the_time_is_up_what_waits_is_dropped_and_what_runs_is_cancelled(make_queue):
    started, saw = threading.Event(), []

    def patient():
        started.set()
        saw.append(current_cancellation().wait(PATIENCE))

    def never_run(name):
        saw.append(name)

    queue = make_queue(1)
    queue.enqueue(patient)
    assert started.wait(PATIENCE)
    jobs = [functools.partial(never_run, name) for name in "abc"]
    for job, priority in zip(jobs, (0, 5, 0), strict=True):
        queue.enqueue(job, priority=priority)
    report = queue.stop(0, grace=PATIENCE)
    assert report.waiting == (jobs[1], jobs[0], jobs[2])
    assert (report.cancelled, report.running, report.drained) == (1, 0, False)
    assert saw == [True]
    assert (queue.stats().done, queue.stats().depth, queue.stats().state) == (1, 0, "stopped")


def test_a_job_that_does_not_listen_is_left_running_and_counted(busy):
    queue, held = busy
    report = queue.stop(0, grace=0)
    assert (report.cancelled, report.running, report.drained) == (1, 1, False)
    assert queue.stats().state == "stopping"
    held.release()
    assert eventually(lambda: queue.stats().state == "stopped")
    report = queue.stop()
    assert (report.cancelled, report.running, report.drained) == (1, 0, False)


def test_a_retried_job_stops_waiting_when_it_is_cancelled(make_queue):
    failed = threading.Event()

    def job():
        failed.set()
        raise OSError

    queue = make_queue(1)
    queue.enqueue(with_retry(job, 5, lambda attempts: 3600.0))
    assert failed.wait(PATIENCE)
    report = queue.stop(0, grace=PATIENCE)
    assert (report.cancelled, report.running, queue.stats().failed) == (1, 0, 1)


def test_delayed_jobs_are_not_waited_for_but_reported(make_queue):
    clock, ran, late = Clock(), [], Held()
    queue = make_queue(1, clock=clock)
    queue.enqueue(functools.partial(ran.append, "due"), delay=5)
    queue.enqueue(late, delay=3600)
    clock.now += 5
    report = queue.stop()
    assert report.waiting == (late,)
    assert ran == ["due"]


def test_a_queue_that_was_never_used_is_stopped_at_once(make_queue):
    queue = make_queue()
    assert queue.stop().drained
    assert queue.enqueue(lambda: None) is False


def test_what_has_been_stopped_can_not_be_started_again(make_queue):
    queue = make_queue()
    queue.stop()
    with pytest.raises(RuntimeError, match="can't be started again"):
        queue.start()


def test_stopping_may_be_repeated(make_queue):
    queue = make_queue()
    queue.enqueue(lambda: None)
    assert drained(queue)
    assert drained(queue)


def test_a_job_can_not_stop_its_own_queue(make_queue, caplog):
    queue = make_queue(1)
    queue.enqueue(queue.stop)
    assert eventually(lambda: queue.stats().failed)
    assert "A job can't stop the queue that runs it" in caplog.text


def test_of_two_that_stop_the_queue_the_less_patient_wins(busy):
    queue, held = busy
    reports = []
    patient = threading.Thread(target=lambda: reports.append(queue.stop(None, grace=0)))
    patient.start()
    assert eventually(lambda: queue.stats().state == "stopping")
    reports.append(queue.stop(0, grace=0))
    patient.join(PATIENCE)
    assert [(report.cancelled, report.running) for report in reports] == [(1, 1)] * 2
    held.release()


@pytest.mark.parametrize("timeout", [1e12, float("inf")])
def test_any_timeout_will_do(make_queue, timeout):
    queue = make_queue()
    queue.enqueue(lambda: None)
    assert queue.stop(timeout, grace=timeout).drained


# Statistics


def test_statistics_of_a_queue_that_was_never_used(make_queue):
    assert dataclasses.asdict(make_queue(2, 5).stats()) == {
        "state": "new",
        "workers": 2,
        "capacity": 5,
        "depth": 0,
        "delayed": 0,
        "running": 0,
        "done": 0,
        "failed": 0,
        "refused": 0,
        "oldest_wait": 0.0,
    }


def test_oldest_wait_is_that_of_the_job_that_has_waited_longest_for_a_worker(make_queue):
    clock, held = Clock(), Held()
    queue = make_queue(1, clock=clock)
    queue.enqueue(held)
    assert held.has_started()
    assert queue.stats().oldest_wait == 0.0
    queue.enqueue(lambda: None, delay=3)
    clock.now += 2
    queue.enqueue(lambda: None, priority=1)
    assert queue.stats().oldest_wait == 0.0  # the delayed one isn't owed a worker yet
    clock.now += 4
    assert queue.stats().oldest_wait == 4.0
    clock.now += 1
    assert queue.stats().oldest_wait == 5.0
    held.release()
    assert drained(queue)
    assert queue.stats().oldest_wait == 0.0


def test_statistics_are_frozen_and_can_be_written_as_json(make_queue):
    stats = make_queue().stats()
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.depth = 1
    assert json.loads(json.dumps(dataclasses.asdict(stats)))["state"] == "new"
