from __future__ import annotations

import functools
import threading
from collections import Counter

import pytest

from .helpers import PATIENCE, eventually


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "buffer"), [(4, 100), (1, 1), (16, 0)])
def test_of_20000_jobs_from_8_threads_none_is_lost_or_run_twice_and_the_bound_is_never_passed(
    make_queue, workers, buffer
):
    queue = make_queue(workers, buffer)
    runs: list[tuple[int, int]] = []
    refused = [0] * 8
    deepest, finished, pause = [], threading.Event(), threading.Event()

    def producer(thread):
        for number in range(2500):
            job = functools.partial(runs.append, (thread, number))
            while not queue.enqueue(job, priority=number % 3, delay=0.0001 if buffer and number % 50 == 0 else 0):
                refused[thread] += 1
                pause.wait(0.001)

    def watcher():
        while not finished.is_set():
            stats = queue.stats()
            deepest.append((stats.depth, stats.running))
            pause.wait(0.0005)

    producers = [threading.Thread(target=producer, args=(thread,)) for thread in range(8)]
    watching = threading.Thread(target=watcher)
    for thread in (watching, *producers):
        thread.start()
    for thread in producers:
        thread.join()
    assert eventually(lambda: not queue.stats().delayed)  # stopping would drop what isn't due
    report = queue.stop(PATIENCE * 5)
    finished.set()
    watching.join()

    assert report.drained
    assert Counter(runs) == Counter((thread, number) for thread in range(8) for number in range(2500))
    stats = queue.stats()
    assert (stats.done, stats.failed, stats.refused) == (20_000, 0, sum(refused))
    assert max(depth for depth, _ in deepest) <= buffer
    assert max(running for _, running in deepest) <= workers
