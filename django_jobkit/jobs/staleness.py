"""Whether a job that isn't finished will be, as far as its record tells.

Computed when it is read, and never written: a rescuer that rewrites what only looks dead fails healthy jobs.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from .status import State, Status

Staleness = Literal["", "waiting", "lost"]


def staleness(status: Status, now: datetime, *, queued_after: float | None) -> Staleness:
    """What is doubtful about an unfinished job at the aware time ``now``.

    ``lost``: it is ``running``, and its worker's lease has run out; it runs again when its task is delivered again.
    ``waiting``: it is ``queued`` for more than ``queued_after`` seconds (None: never); see whether a worker is up.
    ``""``: nothing. A job that runs without a lease never looks lost: how long one may take, only its owner knows.
    """
    if status.state == State.RUNNING:
        expires: datetime | None = getattr(status, "lease_expires_at", None)
        return "lost" if expires is not None and expires <= now else ""
    if status.state == State.QUEUED and queued_after is not None:
        since = status.updated_at or status.queued_at
        return "waiting" if since is not None and now - since > timedelta(seconds=queued_after) else ""
    return ""
