"""Who wakes whom: no wake-up is lost, none is wasted, and signal handlers and time limits do no harm."""

from __future__ import annotations

import ctypes
import threading
import time
from pathlib import Path

import pytest

from django_jobkit.inprocess.crew import Crew

from .helpers import PATIENCE, Clock, Held, eventually


def workers_of(queue):
    return [t for t in threading.enumerate() if t.name.startswith("test-")]


def idle(queue, workers):
    """Whether that many workers have come to rest."""
    crew = queue._crew
    return eventually(lambda: crew._idle + crew._timekeeper == workers)


def test_a_delayed_job_runs_by_itself_when_its_time_has_come(make_queue):
    times = []
    queue = make_queue(2)
    began = time.monotonic()
    queue.enqueue(lambda: times.append(time.monotonic()), delay=0.05)
    assert eventually(lambda: times)
    assert times[0] >= began + 0.05


def test_an_earlier_job_does_not_wait_for_a_later_one_that_came_before(make_queue):
    done = threading.Event()
    queue = make_queue(1)
    queue.enqueue(lambda: None, delay=3600)
    assert idle(queue, 1)
    queue.enqueue(done.set, delay=0.01)
    assert done.wait(PATIENCE)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_for_now_is_taken_while_a_worker_waits_for_a_delayed_one(make_queue, workers):
    queue = make_queue(workers)
    queue.enqueue(lambda: None, delay=3600)
    assert idle(queue, workers)
    together = threading.Barrier(workers + 1)
    for _ in range(workers):
        queue.enqueue(lambda: together.wait(PATIENCE))
    together.wait(PATIENCE)


def test_while_one_delayed_job_runs_another_worker_waits_for_the_next(make_queue):
    first, second = Held(), threading.Event()
    queue = make_queue(2)
    queue.enqueue(first, delay=0.01)
    queue.enqueue(second.set, delay=0.05)
    assert first.has_started()
    assert second.wait(PATIENCE)
    first.release()


def test_a_worker_that_comes_free_waits_for_the_delayed_job_when_the_one_who_did_was_given_work(make_queue):
    one, other, delayed = Held(), Held(), threading.Event()
    queue = make_queue(2)
    queue.enqueue(one)
    assert one.has_started()
    queue.enqueue(delayed.set, delay=0.05)
    queue.enqueue(other)
    assert other.has_started()
    one.release()
    assert delayed.wait(PATIENCE)
    other.release()


def test_jobs_that_are_due_together_run_at_the_same_time(make_queue):
    clock, together = Clock(), threading.Barrier(4)
    queue = make_queue(3, clock=clock)
    for _ in range(3):
        queue.enqueue(lambda: together.wait(PATIENCE), delay=3600)
    assert idle(queue, 3)
    clock.now += 3600
    queue.enqueue(lambda: None)  # has a worker look, since real time doesn't pass
    together.wait(PATIENCE)


def test_a_job_for_the_year_9999_neither_runs_nor_breaks_a_worker(make_queue, caplog):
    queue = make_queue(1)
    queue.enqueue(lambda: None, delay=2.5e11)
    assert idle(queue, 1)
    assert (queue.stats().delayed, caplog.records) == (1, [])
    assert len(queue.stop().waiting) == 1


def context_switches(threads):
    """How often they have gone to sleep so far, by the kernel's count."""
    counts = {}
    for thread in threads:
        status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
        counts[thread.name] = int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return counts


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts what Linux counts, in /proc")
def test_an_idle_queue_never_wakes_up(make_queue):
    queue = make_queue(4)
    for _ in range(100):
        queue.enqueue(lambda: None)
    queue.enqueue(lambda: None, delay=3600)
    assert idle(queue, 4)
    workers = workers_of(queue)
    settled = []

    def has_settled():  # the last one may be on its way into its wait
        settled.append(context_switches(workers))
        return settled[-2:].count(settled[-1]) == 2

    assert eventually(has_settled)
    threading.Event().wait(1.0)  # what is measured is that nothing happens meanwhile
    assert context_switches(workers) == settled[-1]


def test_after_an_orderly_stop_no_thread_is_left_however_long_each_takes_to_go(make_queue, monkeypatch):
    live = Crew._live

    def live_and_linger(crew):
        live(crew)
        threading.Event().wait(0.05)

    monkeypatch.setattr(Crew, "_live", live_and_linger)
    queue = make_queue(3)
    queue.start()
    workers = workers_of(queue)
    queue.stop()
    assert [worker.is_alive() for worker in workers] == [False] * 3


def throw_into(thread, error):
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(error)) == 1


def test_a_time_limit_that_hits_between_two_jobs_neither_ends_a_worker_nor_loses_a_job(make_queue, caplog):
    class TimeLimit(BaseException):
        pass

    queue = make_queue(2)
    queue.start()
    assert idle(queue, 2)
    for worker in workers_of(queue):
        throw_into(worker, TimeLimit)  # lands when the worker is woken: in the middle of taking the job
    together = threading.Barrier(3)
    for _ in range(2):
        assert queue.enqueue(lambda: together.wait(PATIENCE))
    together.wait(PATIENCE)
    assert eventually(lambda: queue.stats().done == 2)
    assert [record.exc_info[0] for record in caplog.records] == [TimeLimit] * 2
    assert idle(queue, 2)


def test_a_time_limit_that_hits_a_worker_on_its_way_to_rest_leaves_it_to_be_woken_later(make_queue, caplog):
    queue = make_queue(1)
    crew = queue._crew
    real = crew._work.wait

    def interrupted():
        crew._work.wait = real
        raise TimeoutError

    crew._work.wait = interrupted
    queue.start()
    assert eventually(lambda: caplog.records)
    queue.enqueue(lambda: None, delay=3600)
    assert eventually(lambda: crew._timekeeper)
    done = threading.Event()
    queue.enqueue(done.set)
    assert done.wait(PATIENCE)


def test_a_time_limit_that_hits_a_job_after_its_end_leaves_the_counts_right(make_queue, caplog):
    """Between the end of a job and its count: the worker has one, and only one, to account for."""

    class TimeLimit(BaseException):
        pass

    queue = make_queue(1)
    crew, failing = queue._crew, [TimeLimit]

    class Lock:
        def __enter__(self):
            if failing and crew._running:
                raise failing.pop()
            return lock.__enter__()

        def __exit__(self, *args):
            return lock.__exit__(*args)

        def __getattr__(self, name):
            return getattr(lock, name)

    lock = crew._lock
    held = Held()
    queue.enqueue(held)
    assert held.has_started()
    crew._lock = Lock()
    held.release()
    assert eventually(lambda: not failing)
    crew._lock = lock
    assert eventually(lambda: queue.stats().failed == 1)
    assert (queue.stats().running, queue.stats().done) == (0, 0)
    assert queue.enqueue(lambda: None)
    assert eventually(lambda: queue.stats().done == 1)


def test_a_signal_handler_may_stop_the_queue_in_the_middle_of_an_enqueue(make_queue):
    """The handler runs in the thread that it interrupts, which holds the lock: here, in the call of the clock."""
    ran, reports = [], []

    def clock():
        if armed:
            armed.clear()
            reports.append(queue.stop(PATIENCE))
        return 0.0

    armed = []
    queue = make_queue(1, clock=clock)
    queue.enqueue(lambda: ran.append("before"))
    armed.append(True)
    assert queue.enqueue(lambda: ran.append("refused")) is False
    assert reports[0].drained
    assert (ran, queue.stats().refused) == (["before"], 1)


def test_a_job_whose_enqueueing_is_interrupted_by_a_stop_is_refused_or_run_but_never_lost(make_queue):
    """As above, but after the check that the queue is running: as the job goes into the line, and just after."""
    for moment in ("before", "after"):
        ran = []
        queue = make_queue(1)
        queue.start()
        line = queue._crew._line
        add = line.add

        def interrupted(thing, *, priority, now, queue=queue, add=add, moment=moment):
            if moment == "after":
                added = add(thing, priority=priority, now=now)
            assert queue.stop(PATIENCE).drained
            if moment == "before":
                added = add(thing, priority=priority, now=now)
            return added

        line.add = interrupted
        accepted = queue.enqueue(lambda ran=ran: ran.append(1))
        assert (accepted, len(ran), queue.stats().depth) == ((True, 1, 0) if moment == "after" else (False, 0, 0))
