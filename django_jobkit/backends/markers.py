"""What was accepted and hasn't ended, so that another process finds it when this one has died.

One file for each accepted call, ``PREFIX.queue/{job ID}.{token}/task.json``: beside the jobs, so that finding the
unfinished ones takes one listing of a directory that holds no others. A call is named by its token besides, so that
whoever has ended one never removes what was submitted under the same ID meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from django_jobkit.jobs import ids, rfc3339
from django_jobkit.kit import JobKit

from .calls import TaskCall

FILE = "task.json"


class Key(NamedTuple):
    """Names one accepted call."""

    job_id: str
    token: str


class Marker(NamedTuple):
    """What was accepted, and when."""

    call: TaskCall
    accepted_at: datetime


class Markers:
    """The markers of one kit. Methods raise `StorageUnavailable`, and are safe to call from threads."""

    def __init__(self, kit: JobKit) -> None:
        self._kit = kit
        self.prefix = f"{kit.prefix}.queue"

    def name_of(self, key: Key) -> str:
        return f"{self.prefix}/{key.job_id}.{key.token}/{FILE}"

    def put(self, key: Key, marker: Marker) -> None:
        document = {"accepted_at": rfc3339.render(marker.accepted_at), "call": marker.call.member()}
        data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        self._kit.storage.write(self.name_of(key), data)

    def read(self, key: Key) -> Marker | None:
        """None where there is none (any more). Raises ValueError if it isn't a marker."""
        try:
            data = self._kit.storage.read(self.name_of(key)).data
        except FileNotFoundError:
            return None
        try:
            document = json.loads(data)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        if not isinstance(document, dict):
            raise ValueError("no JSON object")
        accepted_at = rfc3339.parse(str(document.get("accepted_at")))
        if accepted_at is None:
            raise ValueError("no time")
        return Marker(TaskCall.from_member(document.get("call")), accepted_at)

    def remove(self, key: Key) -> None:
        self._kit.storage.delete(self.name_of(key))

    def __iter__(self) -> Iterator[Key]:
        """The keys of those there are, in no order."""
        for name in self._kit.storage.list_dirs(self.prefix):
            job_id, _, token = name.rpartition(".")
            if ids.is_valid(job_id) and token.isalnum():
                yield Key(job_id, token)
