"""How often, and for how long, a request to a remote storage is repeated.

Nothing here knows a provider. An adapter turns whatever its SDK raises into one of the answers below; what may be
repeated follows from the answer alone:

=============  ==========================================  ======================================
answer         what happened                               repeated
=============  ==========================================  ======================================
``Refused``    surely nothing: 429, 503, no connection     always
``Unclear``    maybe everything: reset, hang, 500, 502     only where that can't undo a later write
``Absent``     there is no such object                     never
``Mismatch``   the precondition is not met                 never
``Wrong``      nothing; a setting or a permission is why   never
``Failed``     nothing that anybody has foreseen           never
=============  ==========================================  ======================================
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0


class Answer(Exception):
    """What a request came to when it did not succeed. Never leaves the storages."""


class Refused(Answer):
    """Surely not applied, and worth repeating."""


class Unclear(Answer):
    """Perhaps applied: the answer was lost on its way."""


class Absent(Answer):
    """No such object. ``sure`` is false when it may be the bucket that is missing."""

    def __init__(self, message: str, *, sure: bool = True) -> None:
        super().__init__(message)
        self.sure = sure


class Mismatch(Answer):
    """The object isn't in the version that the request was conditional on."""


class Wrong(Answer):
    """Refused for a reason that a person has to remove."""


class Failed(Answer):
    """Any other refusal."""


class Call:
    """One call of the contract: its time, and what its requests came to so far. Used by one thread.

    ``timeout`` bounds all requests and pauses together, in seconds. ``slots`` bounds how many requests are under way
    at once; waiting for one counts, too.
    """

    def __init__(
        self,
        timeout: float,
        slots: threading.BoundedSemaphore,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        spread: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.unclear = False
        """Whether any request so far may have been applied without an answer."""
        self._deadline = clock() + timeout
        self._slots = slots
        self._clock = clock
        self._sleep = sleep
        self._spread = spread

    def ask(
        self, request: Callable[[float], T], *, repeat_unclear: bool, reserve: float = 0.0, shortest: float = 0.0
    ) -> T:
        """What ``request(seconds)`` returns, repeated with growing pauses until it does or time is up.

        ``seconds`` is how long that one request may take. The last ``reserve`` seconds of the call are left for what
        comes after, and no request is repeated with fewer than ``shortest`` to go. Raises the last answer.
        """
        pause = _FIRST_PAUSE
        end = self._deadline - reserve
        while True:
            try:
                return self._once(request, end, share=0.5 if repeat_unclear else 1.0)
            except Refused as answer:
                last: Answer = answer
            except Unclear as answer:
                self.unclear = True
                if not repeat_unclear:
                    raise
                last = answer
            # Spread, so that many who were refused together don't come back together.
            wait = self._spread(pause / 2, pause)
            if self._clock() + wait + shortest >= end:
                raise last
            self._sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _once(self, request: Callable[[float], T], end: float, share: float) -> T:
        if not self._slots.acquire(timeout=max(0.0, end - self._clock())):
            raise Refused("all connections were busy")
        try:
            left = end - self._clock()
            # Half of what is left, so that a request that hangs leaves time for another that doesn't.
            return request(max(left * share, 0.05))
        finally:
            self._slots.release()
