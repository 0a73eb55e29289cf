"""How a running job learns that it should end soon."""

from __future__ import annotations

import threading
from contextvars import ContextVar


class Cancellation:
    """Says whether the work at hand is still wanted. Nothing is interrupted: the job looks, and ends by itself.

    Once cancelled, it stays so. Thread-safe; one may be shared by any number of jobs.
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the job should end as soon as it can. Costs well under a microsecond: ask as often as you like."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask for the end, and end every `wait` at once. May be called again."""
        self._event.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Pause for ``seconds`` (None: for ever), or until cancelled; the answer is `cancelled`.

        What a job calls instead of ``time.sleep``. Zero and less return at once.
        """
        return self._event.wait(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))


_NEVER = Cancellation()
_current: ContextVar[Cancellation] = ContextVar("jobkit_cancellation", default=_NEVER)


def current_cancellation() -> Cancellation:
    """The `Cancellation` of the job that is running here, for the job or anything that it calls.

    Follows the context: it is also right in a coroutine that the job runs, and in ``asyncio.to_thread``. In a bare
    ``threading.Thread`` that a job starts it isn't: hand it over. Outside of a job it is one that nobody cancels,
    so that a function written for the queue also works when called by itself.
    """
    return _current.get()


def running_under(cancellation: Cancellation) -> None:
    """Make it the current one for the rest of this context."""
    _current.set(cancellation)
