"""What the in-process queues of a kit do, as a page and as JSON: those of the process that answers, and no other."""

from __future__ import annotations

import dataclasses
import os
import socket
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from ..backends import startup
from ..jobs import strictjson
from .baseviews import JSONView, KitView, PageView
from .responses import json_body

if TYPE_CHECKING:
    from ..backends.stats import BackendStats


def queues_of(kit_alias: str) -> list[BackendStats]:
    """The counts of all in-process backends that record in this kit; none where the site has no tasks."""
    return [backend.stats() for backend in startup.backends() if backend.settings.kit == kit_alias]


def this_process() -> dict[str, Any]:
    """What tells this process from others that serve the site."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


class _QueueView(KitView):
    """For those who see everybody's jobs, since everybody's are counted."""

    def admit(self) -> None:
        super().admit()
        if self.owner() is not None:
            raise PermissionDenied


class JobQueueView(_QueueView, PageView):
    """How much each queue of this process has to do."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        return self.page("queue", _("Queue"), queues=queues_of(self.kit.alias), process=this_process())


class JobQueueAPIView(_QueueView, JSONView):
    """``process`` (``host``, ``pid``), and ``queues`` with the members of `BackendStats`."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        queues = [dataclasses.asdict(stats) for stats in queues_of(self.kit.alias)]
        return json_body(strictjson.dumps({"process": this_process(), "queues": queues}).encode())
