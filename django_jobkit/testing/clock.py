"""A time that tests can set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2026, 8, 31, 10, 20, 30, tzinfo=UTC)


class FrozenClock:
    """Stands still at ``now`` until it is told otherwise. Call it for the time, as `StatusStore` does.

    ``now`` is an aware datetime and may be set.
    """

    def __init__(self, now: datetime = START) -> None:
        if now.tzinfo is None:
            raise ValueError(f"The time needs a time zone: {now!r}.")
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def __repr__(self) -> str:
        return f"<FrozenClock at {self.now.isoformat()}>"

    def advance(self, by: float | timedelta) -> datetime:
        """Go on by so much, in seconds where it is a number; the new time."""
        self.now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self.now
