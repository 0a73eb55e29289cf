"""The tasks of a site, as its own module would have them."""

from __future__ import annotations

import threading

from django_jobkit.backends.compat import TaskContext
from django_jobkit.exceptions import JobExists, PermanentJobError
from django_jobkit.tracking import tracked

try:
    from django.tasks import task
except ModuleNotFoundError:
    from django_tasks import task

PATIENCE = 20.0

ran: list[object] = []
"""What the tasks have noted down, in order."""

raised_when_told: list[BaseException] = []
"""What `until_told` raises, instead of what tells that it was told to end."""

started = threading.Event()
released = threading.Event()


@task()
def add(a, b=0):
    ran.append(("add", a, b))
    return a + b


@task()
def note(value):
    ran.append(value)


@task()
def give(value):
    return _GIVEN[value]


_GIVEN = {
    "set": {1},
    "object": object(),
    "nan": float("nan"),
    "long": "x" * 70_000,
    "surrogate": "\ud800",
    "tuple": (1, 2),
    "bytes": b"abc",
    "keys": {1: "a"},
}


@task()
def fail(message):
    raise ValueError(message)


@task()
def leave():
    raise SystemExit(3)


@task()
def hold(value=None):
    started.set()
    assert released.wait(PATIENCE)
    ran.append(value)
    return value


@task()
async def add_slowly(a, b):
    import asyncio

    await asyncio.sleep(0)
    return a + b


@task(takes_context=True)
def tell_attempt(context: TaskContext, word):
    result = context.task_result
    return [word, context.attempt, result.id, str(result.status), len(result.worker_ids)]


@task(takes_context=True)
async def tell_attempt_slowly(context: TaskContext):
    return context.attempt


@task()
@tracked(command="summarize")
def summarize(job, path, depth=1):
    job.title = f"Summary of {path}"
    job.progress(1, 2, "half")
    ran.append((job.job_id, path, depth))
    return {"path": path, "depth": depth}


@task()
@tracked()
async def summarize_slowly(job, path):
    job.title = path
    return path


@task()
@tracked()
def give_up(job):
    raise PermanentJobError("never")


@task()
@tracked()
def until_told(job):
    """Runs until its queue stops, and says so."""
    started.set()
    while not released.wait(0.005):
        if job.cancelled and raised_when_told:
            raise raised_when_told[0]
        job.check_cancelled()
    ran.append(job.job_id)


@task()
@tracked()
def draw(job):
    started.set()
    assert released.wait(PATIENCE)
    job.save_output("chart.svg", "<svg/>")


@task()
@tracked()
def enqueue_again(job):
    """Enqueues another task under its own ID, which is taken."""
    try:
        summarize.enqueue(job.job_id, "b.csv")
    except JobExists as error:
        ran.append(str(error))


@task()
@tracked()
def fail_at_first(job):
    ran.append(job.attempt)
    if job.attempt == 1:
        raise ValueError("once")


def undecorated():
    pass


nameless = task(undecorated)
