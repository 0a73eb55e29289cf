"""The queues of this process: one for each backend, made on first use, stopped when the process ends.

A child that was forked begins without any. Django makes a backend object for each thread that asks for one; all
those of one alias share the queue.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # its own hook for the end is set on import, see _stop_at_the_end
import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.core.signals import setting_changed

from django_jobkit.conf import SETTING
from django_jobkit.inprocess import StopReport

from .options import Options
from .service import Service
from .stats import BackendStats

if TYPE_CHECKING:
    from .inprocess import InProcessBackend

logger = logging.getLogger("django_jobkit.backends")


class _Process:
    """What belongs to one process, and to no child of it."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.lock = threading.Lock()
        self.stops_at_the_end = False
        self.worker_id = f"{socket.gethostname()[:30]}-{os.getpid()}-{secrets.token_hex(4)}"


_process = _Process()


def _begin_anew() -> None:
    global _process
    _process = _Process()


os.register_at_fork(after_in_child=_begin_anew)


def service_of(backend: InProcessBackend) -> Service:
    """The queue of the backend in this process, which is made now if there is none."""
    process = _process
    service = process.services.get(backend.alias)
    if service is None:
        with process.lock:
            service = process.services.get(backend.alias)
            if service is None:
                service = Service(backend.alias, backend.settings, type(backend), process.worker_id)
                process.services[backend.alias] = service
                if not process.stops_at_the_end:
                    process.stops_at_the_end = True
                    _call_at_the_end(_stop_at_the_end)
    return service


def unwritten(kit: str, job_id: str) -> Any:
    """The status of a job of this kit that this process has accepted, and that has no record yet; else None."""
    services = [service for service in list(_process.services.values()) if service.options.kit == kit]
    return next((status for service in services if (status := service.behind.find(job_id))), None)


def stats_of(alias: str, options: Options) -> BackendStats:
    """The counts of one backend, also where this process has not used it yet."""
    service = _process.services.get(alias)
    return (service or Service(alias, options, None, _process.worker_id)).stats()


def queue_stats() -> list[BackendStats]:
    """The counts of all backends that this process has used."""
    return [service.stats() for service in list(_process.services.values())]


def stop_queues(timeout: float | None = None, *, grace: float = 1.0) -> dict[str, StopReport]:
    """Stop the queues of this process, for a server's own hook or a command; the reports by the backends' aliases.

    All refuse new jobs at once. Then they are drained, within ``timeout`` seconds together (None: each within its
    STOP_TIMEOUT); jobs that still run are told to end, and get ``grace`` seconds more. What is left of a durable
    backend is run by another process. A process does this by itself when it ends. May be called again.
    """
    services = list(_process.services.values())
    for service in services:
        service.close()
    began = time.monotonic()
    reports = {}
    for service in services:
        most = service.options.stop_timeout if timeout is None else timeout
        left = max(0.0, most - (time.monotonic() - began))
        reports[service.alias] = report = service.stop(left, grace=grace)
        if not report.drained:
            logger.warning(
                "backend %r stops with %d jobs not begun and %d told to end, %d of which still run%s",
                *(service.alias, len(report.waiting), report.cancelled, report.running),
                ", to be run again by another process" if service.options.durable else "",
            )
    return reports


def _stop_at_the_end() -> None:
    try:
        stop_queues()
    except KeyboardInterrupt:  # somebody has had enough of waiting
        stop_queues(0)


def _call_at_the_end(function: Callable[[], object]) -> None:
    """Have it called when the process ends, before what jobs may need is gone.

    ``atexit`` is too late for that: by then no pool of threads takes work any more, and ``asyncio.to_thread`` is one.
    Python's own pools use this hook, too, which calls last what was registered first.
    """
    register: Any = getattr(threading, "_register_atexit", atexit.register)
    with contextlib.suppress(RuntimeError):  # the process is ending already
        register(function)


def forget_queues() -> None:
    """Stop all queues as they are, so that the next use makes new ones. For tests."""
    for service in list(_process.services.values()):
        with contextlib.suppress(RuntimeError):  # called by one of their jobs
            service.stop(0)
    _process.services.clear()


def _settings_changed(*, setting: str, **_: Any) -> None:
    if setting in ("TASKS", SETTING):
        forget_queues()


setting_changed.connect(_settings_changed, dispatch_uid="django_jobkit.backends")
