"""The site's one task, which writes down when it begins and ends, and waits for a file in between."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings

from django_jobkit.tracking import Job, tracked

try:
    from django.tasks import task
except ModuleNotFoundError:
    from django_tasks import task

RELEASE = "release"


def note(**line: Any) -> None:
    """Add a line to the log that all processes share, whole even if the process is killed."""
    data = (json.dumps({"pid": os.getpid(), "at": time.time(), **line}) + "\n").encode()
    descriptor = os.open(settings.DATA / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def wait_until(true: Callable[[], bool], patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    pause = threading.Event()
    while not true():
        assert time.monotonic() < deadline
        pause.wait(0.005)


@task()
@tracked(command="work")
def work(job: Job, wait: bool = False, pool: bool = False) -> int:
    """``wait`` until the test has put a file where it looks, or its queue stops; ``pool``: use threads at the end."""
    status = job.kit.store.get(job.job_id)
    note(what="begin", job=job.job_id, attempt=job.attempt, lease_ends=status.lease_expires_at.timestamp())
    if wait:
        wait_until(lambda: (settings.DATA / RELEASE).exists() or job.cancelled)
        job.check_cancelled()
    if pool:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(os.getpid).result()
    note(what="end", job=job.job_id)
    return os.getpid()
