"""Has a server process look for jobs that were left, when its first request comes, and now and then from there on.

Not on import, nor when apps are ready: a server that forks or reloads would look in the wrong process, and every
management command would run jobs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import request_started, setting_changed

if TYPE_CHECKING:
    from .inprocess import InProcessBackend

_UID = "django_jobkit.backends.startup"
_found: list[InProcessBackend] | None = None
_reported: set[str] = set()

logger = logging.getLogger("django_jobkit.backends")


def connect() -> None:
    """May be called again."""
    request_started.connect(look_for_jobs, dispatch_uid=_UID)


def look_for_jobs(**_: Any) -> None:
    """Takes a microsecond where there is nothing to do; never fails a request."""
    global _found
    if _found is None:
        _found = durable_backends()
    if not _found:
        return
    from .processwide import service_of

    for backend in _found:
        try:
            service_of(backend).look_if_due()
        except Exception:
            logger.exception("backend %r can't look for jobs that were left", backend.alias)


def backends() -> list[InProcessBackend]:
    """Those that the site's TASKS have. None where Django's tasks aren't installed.

    A backend of the site, of whatever kind, that can't be made is left out; that is logged once.
    """
    try:
        from .compat import task_backends
        from .inprocess import InProcessBackend
    except ImproperlyConfigured:
        return []
    found = []
    for alias in task_backends:
        try:
            backend = task_backends[alias]
        except Exception as error:
            if alias not in _reported:
                _reported.add(alias)
                logger.error("TASKS[%r] can't be used: %s", alias, error)
            continue
        if isinstance(backend, InProcessBackend) and not backend.problems:
            found.append(backend)
    return found


def durable_backends() -> list[InProcessBackend]:
    return [backend for backend in backends() if backend.settings.durable]


def _forget(*, setting: str, **_: Any) -> None:
    global _found
    if setting == "TASKS":
        _found = None
        _reported.clear()


setting_changed.connect(_forget, dispatch_uid=_UID)
