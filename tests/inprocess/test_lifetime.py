"""What becomes of jobs when a process ends or forks: in real processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import pytest

from .helpers import Held

PREAMBLE = """
    import os, signal, sys, threading
    from django_jobkit.inprocess import JobQueue, current_cancellation

    signal.alarm(300)  # whatever goes wrong, this process ends

    def say(*words):
        os.write(1, (" ".join(map(str, words)) + "\\n").encode())

    def child(do):
        # Exit status of a fork that does this.
        pid = os.fork()
        if not pid:
            signal.alarm(60)
            status = 99
            try:
                do()
                status = 0
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def run_program(program, timeout=60):
    """What a fresh interpreter prints, in lines; what it logs; and how long it took from its line ``end``."""
    code = textwrap.dedent(PREAMBLE) + textwrap.dedent(program)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines, ended = [], time.monotonic()
            for line in process.stdout:
                lines.append(line.strip())
                if lines[-1] == "end":
                    ended = time.monotonic()
            errors = process.stderr.read()
            assert process.wait(timeout) == 0, errors
            return lines, errors, time.monotonic() - ended
        finally:
            process.kill()


# The end of the process


def test_a_process_with_an_idle_queue_ends_at_once():
    lines, errors, seconds = run_program("""
        queue = JobQueue(exit_timeout=60)
        queue.enqueue(lambda: say("ran"))
        while not queue.stats().done:
            pass
        queue.enqueue(lambda: None, delay=3600)
        say("end")
    """)
    assert lines == ["ran", "end"]
    assert "1 jobs of queue 'jobkit' never started, 0 cancelled" in errors
    assert seconds < 30


@pytest.mark.parametrize("how", ["pass", "queue.start()"])
def test_jobs_that_wait_at_the_end_of_the_process_are_still_run_however_the_queue_was_started(how):
    lines, errors, _ = run_program(f"""
        queue = JobQueue(1, exit_timeout=60)
        {how}
        queue.enqueue(lambda: threading.main_thread().join())  # until Python is about to end
        for number in range(3):
            queue.enqueue(lambda number=number: say("ran", number))
        say("end")
    """)
    assert lines == ["end", "ran 0", "ran 1", "ran 2"]
    assert errors == ""


def test_the_time_that_other_queues_have_taken_at_the_end_counts(make_queue, caplog):
    held = Held()
    queue = make_queue(1, exit_timeout=3600)
    queue.enqueue(held)
    assert held.has_started()
    queue.stop_at_exit(elapsed=3600)
    assert "1 cancelled, 1 of these still running" in caplog.text
    held.release()


@pytest.mark.parametrize("how", ["pass", "sys.exit(0)"])
def test_a_job_that_takes_too_long_is_cancelled_and_may_clean_up(how):
    lines, errors, _ = run_program(f"""
        queue = JobQueue(1, exit_timeout=0.05)

        def job():
            say("started")
            current_cancellation().wait()
            say("cleaned up")

        started = threading.Event()
        queue.enqueue(lambda: (started.set(), job()))
        queue.enqueue(lambda: say("never"))
        started.wait()
        {how}
    """)
    assert lines == ["started", "cleaned up"]
    assert "1 jobs of queue 'jobkit' never started, 1 cancelled, 0 of these still running" in errors


def test_jobs_that_never_end_delay_the_end_of_the_process_by_a_bounded_time_however_many_queues_there_are():
    _, errors, seconds = run_program("""
        for number in range(3):
            queue, started = JobQueue(1, exit_timeout=0.5, name=f"q{number}"), threading.Event()
            queue.enqueue(lambda: (started.set(), threading.Event().wait()))
            started.wait()
        say("end")
    """)
    assert errors.count("1 cancelled, 1 of these still running") == 3
    assert 0.5 <= seconds < 30


def test_a_second_control_c_cancels_at_once():
    lines, errors, _ = run_program("""
        queue = JobQueue(1, exit_timeout=3600)

        def job():
            while queue.stats().state != "stopping":
                current_cancellation().wait(0.001)
            os.kill(os.getpid(), signal.SIGINT)
            current_cancellation().wait()
            say("cleaned up")

        queue.enqueue(job)
    """)
    assert lines == ["cleaned up"]
    assert "1 cancelled, 0 of these still running" in errors


@pytest.mark.slow
@pytest.mark.parametrize("timeout", [60, 0])
def test_a_queue_can_be_stopped_by_a_signal_handler_whatever_the_main_thread_is_doing_and_loses_no_job(timeout):
    """300 times, each at another moment: many signals interrupt a method of the queue that holds its lock."""
    lines, errors, _ = run_program(f"""
        def handler(number, frame):
            queue.stop({timeout}, grace=60)

        signal.signal(signal.SIGPROF, handler)
        outcomes = set()
        for round in range(300):
            queue, accepted = JobQueue(2, 50), 0
            signal.setitimer(signal.ITIMER_PROF, 0.0005 + round * 1e-6)
            while queue.stats().state in ("new", "running"):
                accepted += queue.enqueue(lambda: None, priority=accepted % 3)
                accepted += queue.enqueue(lambda: None, delay=0.0001)
            report, stats = queue.stop(60), queue.stats()
            outcomes.add((report.running, stats.depth, accepted - stats.done - len(report.waiting)))
        say(outcomes)
    """)
    assert (lines, errors) == (["{(0, 0, 0)}"], "")


# Forks


def test_a_child_has_an_empty_queue_whose_workers_work_and_the_parent_goes_on():
    lines, errors, _ = run_program("""
        queue, gate, started = JobQueue(1, 5), threading.Event(), threading.Event()
        queue.enqueue(lambda: (started.set(), gate.wait(), say("parent", os.getpid() == parent)))
        queue.enqueue(lambda: say("parent too", os.getpid() == parent))
        queue.enqueue(lambda: None, delay=3600)
        parent = os.getpid()
        started.wait()

        def in_the_child():
            stats = queue.stats()
            say(stats.state, stats.depth, stats.running, stats.delayed, stats.refused)
            done = threading.Event()
            assert queue.enqueue(lambda: (say("child", os.getpid() != parent), done.set()))
            assert done.wait(30)
            assert queue.stop(30).drained
            say(queue.stats().done)

        say("exit", child(in_the_child))
        stats = queue.stats()
        say(stats.state, stats.depth, stats.running, stats.delayed)
        gate.set()
        say("drained", len(queue.stop(30).waiting), queue.stats().done)
    """)
    assert lines == [
        "new 0 0 0 0",
        "child True",
        "1",
        "exit 0",
        "running 2 1 1",
        "parent True",
        "parent too True",
        "drained 1 2",
    ]
    assert errors == ""


def test_a_fork_while_other_threads_hold_the_lock_leaves_the_child_a_working_queue():
    lines, errors, _ = run_program("""
        queue, stop = JobQueue(4, 50), threading.Event()

        def hammer():
            while not stop.is_set():
                queue.enqueue(lambda: None)
                queue.stats()

        threads = [threading.Thread(target=hammer) for _ in range(4)]
        for thread in threads:
            thread.start()

        def in_the_child():
            done = threading.Event()
            assert queue.enqueue(done.set) and done.wait(20)

        say({child(in_the_child) for _ in range(50)})
        stop.set()
        for thread in threads:
            thread.join()
        say(queue.stop(30).drained)
    """)
    assert (lines, errors) == (["{0}", "True"], "")


def test_children_forked_before_first_use_each_have_workers_of_their_own():
    """As with gunicorn's ``--preload``: the queue is made in the master and used in the workers."""
    lines, errors, _ = run_program("""
        queue, parent = JobQueue(2), os.getpid()

        def in_the_child():
            assert queue.enqueue(lambda: None)
            assert queue.stop(30).drained and queue.stats().done == 1

        say([child(in_the_child) for _ in range(3)], queue.stats().state, queue.stats().done)
    """)
    assert (lines, errors) == (["[0, 0, 0] new 0"], "")


def test_a_child_drains_its_queue_at_its_end_too():
    lines, errors, _ = run_program("""
        queue = JobQueue(1, exit_timeout=60)
        queue.start()
        pid = os.fork()
        if pid:
            say("exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        else:
            queue.enqueue(lambda: threading.main_thread().join())
            queue.enqueue(lambda: say("ran in the child"))
    """)
    assert (lines, errors) == (["ran in the child", "exit 0"], "")


def test_a_job_that_forks_does_not_make_its_child_a_worker():
    lines, errors, _ = run_program("""
        queue, parent, children = JobQueue(1), os.getpid(), []
        started, locked = threading.Event(), threading.Event()

        def job():
            started.set()
            locked.wait()
            pid = os.fork()
            if pid:
                children.append(pid)
            else:
                signal.alarm(30)  # and return, into a worker that isn't one any more

        queue.enqueue(job)
        for _ in range(3):
            queue.enqueue(lambda: say("ran", os.getpid() == parent))
        started.wait()
        with queue._crew._lock:  # which nobody will give back in the child
            locked.set()
            while not children:
                pass
        say(queue.stop(30).drained, os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
    """)
    assert (lines, errors) == (["ran True", "ran True", "ran True", "True 0"], "")


def test_a_queue_that_was_stopped_before_the_fork_stays_stopped():
    lines, _, _ = run_program("""
        queue = JobQueue()
        queue.stop()
        child(lambda: say(queue.stats().state, queue.enqueue(lambda: None)))
    """)
    assert lines == ["stopped False"]


# Imports


def test_importing_starts_nothing_and_needs_no_django():
    lines, errors, _ = run_program("""
        queue = JobQueue()
        say(threading.active_count(), "django" in sys.modules)
    """)
    assert (lines, errors) == (["1 False"], "")
