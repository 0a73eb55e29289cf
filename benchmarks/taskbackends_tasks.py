"""Tasks of `taskbackends.py`, which have to be in a module that can be imported by its name."""

import threading

from django.tasks import task

gate = threading.Event()


@task()
def noop() -> None:
    pass


@task()
def hold() -> None:
    gate.wait()
