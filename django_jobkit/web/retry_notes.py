"""What a retry leaves in the records of the two jobs: which one is whose."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from ..exceptions import JobKitError
from ..jobs import StatusStore, retries
from ..jobs.swap import NotSaved, Previous, Saved, swap
from ..kit import JobKit

_PAUSES: Final = (0.02, 0.05, 0.1, 0.2)
"""Seconds in which a job is recorded that its engine has taken, if the record comes after that."""

logger = logging.getLogger("django_jobkit.views")


class RetryNotes:
    """What a job's record says of its retries, written without a signal: the job itself stays as it is."""

    def __init__(self, kit: JobKit, job_id: str) -> None:
        self.kit = kit
        self.job_id = job_id
        site = kit.store
        self.store: StatusStore[Any] = StatusStore(
            site.storage, site.status_class, locate=site.locate, clock=site.clock
        )

    def claim(self, seen: str | None, known: Saved[Any]) -> retries.Claim[Any]:
        """As `retries.claim`."""
        held = retries.claim(self.store, self.job_id, seen, self.kit.recorder.now(), known=known)
        self.kit.metadata_cache.delete(self.job_id)
        return held

    def settle(self, held: retries.Claim[Any], new_id: str) -> None:
        """As `retries.settle`; what can't be noted is logged, and the claim ends by itself."""
        self._try(f"is not recorded as retried as {new_id!a}", retries.settle, held, new_id)

    def release(self, held: retries.Claim[Any]) -> None:
        """As `retries.release`; in trouble, as `settle`."""
        self._try("can't be retried for some minutes", retries.release, held)

    def _try(self, trouble: str, note: Callable[..., None], *args: Any) -> None:
        try:
            note(self.store, self.job_id, *args)
        except JobKitError as error:
            logger.warning("job %a %s: %s", self.job_id, trouble, error, extra={"job_id": self.job_id})
        finally:
            self.kit.metadata_cache.delete(self.job_id)


def link(kit: JobKit, new_id: str, old_id: str, *, pause: Callable[[float], object] = time.sleep) -> None:
    """Have the new job's record say which job it is a retry of. What can't be recorded now is logged.

    A job that runs again under its own ID is left as it is, as is one whose class has no ``retry_of``.
    """
    if new_id == old_id or not hasattr(kit.status_class, "retry_of"):
        return

    is_there = False

    def decide(previous: Previous[Any]) -> Any:
        nonlocal is_there
        if previous.error is not None:
            raise previous.error
        is_there = previous.status is not None
        if previous.status is None or previous.status.retry_of == old_id:
            return None
        next_ = previous.status.clone()
        next_.retry_of = old_id
        return next_

    try:
        swap(kit.store, new_id, decide)
        for seconds in _PAUSES:
            if is_there:
                return
            pause(seconds)
            swap(kit.store, new_id, decide)
        if not is_there:
            logger.warning("job %a is not recorded as a retry of %a: it has no record yet", new_id, old_id)
    except (NotSaved, JobKitError) as error:
        logger.warning("job %a is not recorded as a retry of %a: %s", new_id, old_id, error, extra={"job_id": new_id})
