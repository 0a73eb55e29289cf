"""What `InProcessBackend` costs beside the thread backend of `django-tasks-local`, in the same run; see `queue.py`.

That one keeps its results in the memory of its process; the kit's are in the jobs' records, which any process reads
and which outlive it. Where the kit isn't durable, its records are written behind; where it is, a record and a marker
are on the disk before ``enqueue`` returns. So what is told apart here is the price of that.
"""

from __future__ import annotations

import gc
import logging
import statistics
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from typing import Any

import django
from django.conf import settings

WORKERS = 4
OURS = "django_jobkit.backends.InProcessBackend"
BACKENDS = {
    "django-tasks-local": "django_tasks_local.ThreadPoolBackend",
    "not durable": OURS,
    "durable": OURS,
}


def configure(directory: str) -> None:
    tasks: dict[str, Any] = {"default": {"BACKEND": OURS}}
    for alias, path in BACKENDS.items():
        if path == OURS:
            options = {"WORKERS": WORKERS, "BUFFER": 10**6, "DURABLE": alias == "durable"}
        else:
            options = {"MAX_WORKERS": WORKERS, "MAX_RESULTS": 10**6}
        tasks[alias] = {"BACKEND": path, "OPTIONS": options}
    settings.configure(
        USE_TZ=True,
        DATABASES={},
        INSTALLED_APPS=["django_jobkit"],
        JOBKIT={"default": {"CACHE": None}},
        TASKS=tasks,
        STORAGES={
            "default": {
                "BACKEND": "django.core.files.storage.FileSystemStorage",
                "OPTIONS": {"location": directory},
            }
        },
    )
    django.setup()
    logging.disable(logging.CRITICAL)


def report(quick: bool) -> None:
    jobs, rounds = (50, 2) if quick else (1000, 9)
    print(f"\n{jobs:,} no-op tasks enqueued by one thread, {WORKERS} workers, local files, median of {rounds} rounds")
    if django.VERSION < (6, 0) or not find_spec("django_tasks_local"):
        print("  needs Django 6.0 or newer and: pip install django-tasks-local")
        return
    with tempfile.TemporaryDirectory() as directory:
        configure(directory)
        _measure(jobs, rounds)


def _measure(jobs: int, rounds: int) -> None:
    import taskbackends_tasks
    from django.tasks import task_backends

    from django_jobkit import jobkits
    from django_jobkit.backends import stop_queues
    from django_jobkit.testing import FaultyStorage

    noop, hold, gate = taskbackends_tasks.noop, taskbackends_tasks.hold, taskbackends_tasks.gate
    kit = jobkits["default"]
    kit.storage = counting = FaultyStorage(kit.storage)

    def is_idle(alias: str, ids: list[str]) -> bool:
        backend = task_backends[alias]
        if BACKENDS[alias] == OURS:  # without a request to the storage, since these are counted
            stats = backend.stats()
            return not (stats.depth or stats.running)
        return all(backend.get_result(job_id).is_finished for job_id in ids)

    enqueuing: dict[str, list[float]] = {alias: [] for alias in BACKENDS}
    whole: dict[str, list[float]] = {alias: [] for alias in BACKENDS}
    calls: dict[str, Counter[str]] = {alias: Counter() for alias in BACKENDS}
    for _ in range(rounds):
        for alias in BACKENDS:
            # Held back first, so that the price of enqueuing is not that of running as well.
            gate.clear()
            held = [hold.using(backend=alias).enqueue().id for _ in range(WORKERS)]
            while BACKENDS[alias] == OURS and any(not task_backends[alias].get_result(i).attempts for i in held):
                time.sleep(0.001)
            task = noop.using(backend=alias)
            gc.collect()
            before = counting.calls.copy()
            began = time.perf_counter()
            ids = [task.enqueue().id for _ in range(jobs)]
            enqueuing[alias].append((time.perf_counter() - began) / jobs)
            gate.set()
            while not is_idle(alias, held + ids):
                time.sleep(0.001)
            whole[alias].append((time.perf_counter() - began) / jobs)
            calls[alias] = counting.calls - before
            calls[alias]["write"] -= WORKERS  # the ends of those that were held
            calls[alias]["delete"] -= WORKERS * (alias == "durable")
    stop_queues()
    theirs = statistics.median(enqueuing["django-tasks-local"])
    for alias in BACKENDS:
        one, all_of = statistics.median(enqueuing[alias]), statistics.median(whole[alias])
        print(
            f"  {alias:<20} {1 / one:>9,.0f} enqueued/s   {one * 1e6:7.1f} us each   "
            f"ratio to theirs {theirs / one:5.2f}   {1 / all_of:>9,.0f} run/s"
        )
    print("  Storage requests of one job, from enqueue to its end:")
    for alias in ("not durable", "durable"):
        counts = {kind: count / jobs for kind, count in sorted(calls[alias].items()) if count > 0}
        print(f"  {alias:<20} {', '.join(f'{count:.2f} {kind}' for kind, count in counts.items())}")


if __name__ == "__main__":
    report("--quick" in sys.argv)
