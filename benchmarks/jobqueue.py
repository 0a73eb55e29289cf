"""The figures of `queue.py`, which see.

Times differ from run to run and machine to machine; the ratios, of medians of rounds taken in turn, less so. Nothing
here asserts a time.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import taskbackends

from django_jobkit.inprocess import JobQueue

WORKERS = 4
Submit = Callable[[Callable[[], object]], object]
Engine = tuple[Submit, Callable[[], object]]  # how to hand over a job, and how to wait for the end of all


def job_queue(buffer: int) -> Engine:
    queue = JobQueue(WORKERS, buffer)
    queue.start()

    def end() -> None:
        report = queue.stop()
        assert report.drained

    return queue.enqueue, end


def thread_pool(buffer: int) -> Engine:  # noqa: ARG001 - it knows no bound
    pool = ThreadPoolExecutor(WORKERS)
    return pool.submit, pool.shutdown


ENGINES = {"JobQueue": job_queue, "ThreadPoolExecutor": thread_pool}


def noop() -> None:
    pass


def rates(jobs: int, rounds: int) -> None:
    print(f"\n{jobs:,} no-op jobs handed over by one thread to {WORKERS} workers, median of {rounds} rounds")
    handing: dict[str, list[float]] = {name: [] for name in ENGINES}
    whole: dict[str, list[float]] = {name: [] for name in ENGINES}
    for _ in range(rounds):
        for name, engine in ENGINES.items():
            gc.collect()
            submit, end = engine(jobs)
            began = time.perf_counter()
            for _ in range(jobs):
                submit(noop)
            handing[name].append(time.perf_counter() - began)
            end()
            whole[name].append(time.perf_counter() - began)
    for name in ENGINES:
        call, total = (statistics.median(times[name]) / jobs for times in (handing, whole))
        print(f"  {name:<20} {1 / total:>9,.0f} jobs/s   {call * 1e6:6.2f} us per job handed over")
    ratio = statistics.median(whole["ThreadPoolExecutor"]) / statistics.median(whole["JobQueue"])
    print(f"  {'ratio of the rates':<20} {ratio:9.2f}          (aim: at least 0.7)")


def start_delays(samples: int) -> None:
    print(f"\nFrom handing a job to {WORKERS} idle workers until it starts, {samples:,} one at a time, microseconds")
    delays: dict[str, list[float]] = {name: [] for name in ENGINES}
    engines = {name: engine(100) for name, engine in ENGINES.items()}
    started, at = threading.Event(), [0.0]

    def note() -> None:
        at[0] = time.perf_counter()
        started.set()

    for _ in range(samples):
        for name, (submit, _) in engines.items():
            started.clear()
            began = time.perf_counter()
            submit(note)
            started.wait()
            delays[name].append(at[0] - began)
    for name, (_, end) in engines.items():
        end()
        median, slow = statistics.median(delays[name]), statistics.quantiles(delays[name], n=100)[98]
        print(f"  {name:<20} median {median * 1e6:7.1f}   99 % within {slow * 1e6:8.1f}")
    ratio = statistics.median(delays["JobQueue"]) / statistics.median(delays["ThreadPoolExecutor"])
    print(f"  {'ratio of the medians':<20} {ratio:14.2f}")


def wakeups(seconds: float) -> None:
    print(f"\nWake-ups of {WORKERS} idle workers in {seconds:g} s (voluntary context switches counted by the kernel)")
    if not Path("/proc/self/task").exists():
        print("  not on this system")
        return

    def count(threads: list[threading.Thread]) -> int:
        files = [Path(f"/proc/self/task/{thread.native_id}/status") for thread in threads]
        return sum(int(file.read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0]) for file in files)

    for delayed in (False, True):
        others = set(threading.enumerate())
        queue = JobQueue(WORKERS)
        queue.start()
        for _ in range(50):
            queue.enqueue(noop)
        if delayed:
            queue.enqueue(noop, delay=3600)
        threads = [thread for thread in threading.enumerate() if thread not in others]
        time.sleep(0.2)
        before = count(threads)
        time.sleep(seconds)
        name = "one job due in an hour" if delayed else "empty queue"
        print(f"  {name:<24} {count(threads) - before}")
        queue.stop(0)


def memory(jobs: int) -> None:
    print(f"\nMemory of {jobs:,} waiting jobs (one function each time: what the engine itself keeps)")
    for name, engine in ENGINES.items():
        gate = threading.Event()
        submit, end = engine(jobs)
        for _ in range(WORKERS):
            submit(gate.wait)
        gc.collect()
        tracemalloc.start()
        for _ in range(jobs):
            submit(noop)
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        gate.set()
        end()
        print(f"  {name:<20} {size / jobs:7.0f} bytes per job")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs: shows that it runs, not how fast")
    quick = parser.parse_args().quick
    print(f"Python {sys.version.split()[0]}")
    rates(1000 if quick else 50_000, 3 if quick else 15)
    start_delays(50 if quick else 3000)
    wakeups(0.2 if quick else 5)
    memory(1000 if quick else 100_000)
    taskbackends.report(quick)


if __name__ == "__main__":
    main()
