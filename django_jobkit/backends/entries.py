"""An accepted call, from when it is accepted until this process has no more to do with it."""

from __future__ import annotations

import threading
from datetime import datetime

from .calls import TaskCall
from .markers import Key


class Entry:
    """One call in the custody of this process.

    ``durable``: it has a marker. ``recovered``: found by its marker, and not accepted by this process. ``done``: it
    has been run to its end, though that could not be recorded.
    """

    __slots__ = ("_accepting", "abandoned", "accepted_at", "call", "done", "durable", "key", "recovered", "tries")

    def __init__(
        self, key: Key, call: TaskCall, accepted_at: datetime, *, durable: bool, recovered: bool = False
    ) -> None:
        self.key = key
        self.call = call
        self.accepted_at = accepted_at
        self.durable = durable
        self.recovered = recovered
        self.done = False
        self.tries = 0
        self.abandoned = not recovered  # until it is accepted
        self._accepting = threading.Lock()
        if not recovered:
            # A worker may have it in hand before all is written that belongs to its being accepted.
            self._accepting.acquire()

    def settle(self, *, accepted: bool) -> None:
        """Let the worker go on that waits, to run it or to drop it."""
        self.abandoned = not accepted
        self._accepting.release()

    def is_accepted(self, timeout: float = -1) -> bool:
        """Whether it was accepted, as soon as that is settled; False if it isn't within ``timeout`` seconds."""
        if not self._accepting.acquire(timeout=timeout):
            return False
        self._accepting.release()
        return not self.abandoned
