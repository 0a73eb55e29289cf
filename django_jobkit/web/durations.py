"""How long a job has run, for people and for machines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ..jobs.status import State
from .display import duration_text, member

_ENDED: Final = (State.SUCCEEDED, State.FAILED)


@dataclass(frozen=True, slots=True)
class Duration:
    """``seconds`` from the start to the end, or so far where ``goes_on``."""

    seconds: float
    goes_on: bool

    @property
    def machine(self) -> str:
        """For the ``datetime`` attribute."""
        return f"PT{self.seconds:.0f}S"

    @property
    def text(self) -> str:
        return duration_text(self.seconds)


def duration_of(status: object, now: datetime) -> Duration | None:
    """How long the job's last run took, or has taken so far; None where the record doesn't tell, or not sensibly."""
    started, finished = (member(status, name) for name in ("started_at", "finished_at"))
    state = member(status, "state")
    end = now if state == State.RUNNING else finished if state in _ENDED else None
    if not (_is_aware(started) and _is_aware(end)) or end < started:
        return None
    return Duration((end - started).total_seconds(), state == State.RUNNING)


def _is_aware(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None
