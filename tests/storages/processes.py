"""Running a function in several processes at once, bounded in time, and collecting what they return."""

from __future__ import annotations

import multiprocessing
import queue
import time
import traceback
from collections.abc import Callable
from typing import Any

# A server forks the workers: quick, and never a copy of a process with threads. It has imported what takes eight of
# them some seconds; where one of these isn't there, it goes without.
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(
    [
        "tests.storages.processes",
        "tests.storages.providers",
        "tests.storages.remote",
        "django.core.files.storage",
        "django_jobkit.storages.gcs",
        "django_jobkit.storages.s3",
        "storages.backends.gcloud",
        "storages.backends.s3",
    ]
)


def run_processes(work: Callable[..., Any], arguments: list[tuple[Any, ...]], *, timeout: float = 60.0) -> list[Any]:
    """What ``work(*arguments[i])`` returned in each process, in order. All start at one moment; a failure fails."""
    barrier = context.Barrier(len(arguments))
    results = context.Queue()
    processes = [
        context.Process(target=_child, args=(barrier, results, index, work, given), daemon=True)
        for index, given in enumerate(arguments)
    ]
    for process in processes:
        process.start()
    returned: dict[int, Any] = {}
    deadline = time.monotonic() + timeout
    try:
        while len(returned) < len(arguments):
            try:
                index, ok, value = results.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{len(arguments) - len(returned)} processes not done in {timeout} s") from None
            assert ok, f"process {index} failed:\n{value}"
            returned[index] = value
    finally:
        for process in processes:
            if len(returned) < len(arguments):
                process.kill()
            process.join(5)
        results.close()
    return [returned[index] for index in range(len(arguments))]


def _child(barrier: Any, results: Any, index: int, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    try:
        barrier.wait(30)
        results.put((index, True, work(*given)))
    except BaseException:
        results.put((index, False, traceback.format_exc()))


def run_threads(work: Callable[[int], Any], count: int, *, timeout: float = 60.0) -> list[Any]:
    """What ``work(i)`` returned in each of ``count`` threads that start at one moment; a failure is raised."""
    import threading
    from concurrent.futures import ThreadPoolExecutor

    barrier = threading.Barrier(count)

    def started(index: int) -> Any:
        barrier.wait(30)
        return work(index)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(started, range(count), timeout=timeout))
