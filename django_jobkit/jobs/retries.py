"""Doing an ended job again: once for each time that somebody, having seen how it stands, asks for it.

Two requests meet in the old job's record. One of them claims it by a compare-and-swap before anything is submitted;
then it notes there what the job was retried as, or takes the claim back. What a request has seen is `seen_of` the
record, which each retry changes: two clicks on one button bring the same, and the second comes to nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from ..exceptions import StatusNotFound
from . import rfc3339
from .status import RETRY_CLAIM, State, Status
from .swap import NotSaved, Previous, Saved, Store, swap

S = TypeVar("S", bound=Status)

RETRIABLE: Final = frozenset({State.FAILED, State.SUCCEEDED})
CLAIM_SECONDS: Final = 300
"""After how long a claim counts no more: its process must have died. Submitting a job has to take less."""

RETRIED_AS: Final = "retried_as"
NOTES: Final = frozenset({RETRIED_AS, RETRY_CLAIM})
"""The members of a record that are kept here. A class without a field ``retried_as`` has it in ``extra``."""


class NotEnded(Exception):
    """The job is queued or running, or in a state that isn't known."""


class BeingRetried(Exception):
    """Somebody else's claim is alive."""


class AlreadyRetried(Exception):
    """The job was retried after the request had seen it: as ``retried_as``, which is empty for its own ID."""

    def __init__(self, retried_as: str) -> None:
        super().__init__(retried_as)
        self.retried_as = retried_as


class Claim(NamedTuple, Generic[S]):
    """A hold on an ended job: its ID, the record as it was before, and what is saved now.

    ``spent`` is the ID of the claim that was there before, where that is what `settle` leaves.
    """

    claim_id: str
    status: S
    saved: Saved[S]
    spent: str


def retried_as(status: Status) -> str:
    """The ID of the job that last did this one again, as its record says it; empty if none did."""
    found = getattr(status, RETRIED_AS) if _has_field(status) else status.extra.get(RETRIED_AS)
    return found if isinstance(found, str) else ""


def seen_of(status: Status) -> str:
    """What a request for a retry brings along: the submission that it is about, and how that was last retried."""
    queued_at = status.queued_at
    return f"{rfc3339.render(queued_at) if queued_at else ''} {_quoted(retried_as(status))} {_spent(status)}"


def _quoted(job_id: str) -> str:
    """As it comes back from a form: browsers have line breaks of their own, and a record may hold any text."""
    return quote(job_id, safe="")


def claim(store: Store[S], job_id: str, seen: str | None, now: datetime, *, known: Saved[S] | None = None) -> Claim[S]:
    """Take hold of an ended job. Call `settle` or `release` afterwards.

    Without ``seen``, a job is taken that was never retried. ``known`` is as for `swap`. Raises `BeingRetried`,
    `AlreadyRetried`, `NotEnded`, `StatusNotFound`, and what `StatusStore.read` and `StatusStore.save` raise.
    """
    claim_id = secrets.token_hex(8)
    before: list[S] = []
    spent: list[str] = []

    def decide(previous: Previous[S]) -> S:
        status = previous.status
        if status is None:
            raise previous.error or StatusNotFound(f"No status is recorded for job {job_id}.")
        if _is_claimed(status, now):
            raise BeingRetried
        if seen != seen_of(status) if seen is not None else retried_as(status):
            is_news = seen is None or seen.split(" ")[1:2] != [_quoted(retried_as(status))]
            raise AlreadyRetried(retried_as(status) if is_news else "")
        if status.state not in RETRIABLE:
            raise NotEnded
        next_ = status.clone()
        until = rfc3339.render(now + timedelta(seconds=CLAIM_SECONDS))
        next_.extra[RETRY_CLAIM] = {"id": claim_id, "until": until}
        before[:] = [status.clone()]
        spent[:] = [_spent(status)]
        before[0].extra.pop(RETRY_CLAIM, None)
        return next_

    try:
        saved = swap(store, job_id, decide, known=known)
    except NotSaved as error:
        raise error.cause from None
    assert saved is not None
    return Claim(claim_id, before[0], saved, spent[0])


def settle(store: Store[S], job_id: str, held: Claim[S], new_id: str) -> None:
    """Note what the job was retried as, and end the claim. A job that is gone is left alone.

    One that is to run again itself has been queued anew as a rule, which took the claim away. Where that happens later,
    the claim's ID stays: by it, what was seen before is told from what is there now.
    Raises as `StatusStore.read` and `StatusStore.save`.
    """

    def note(next_: S) -> bool:
        was_there = _drop(next_, held)
        if new_id == job_id:
            next_.extra[RETRY_CLAIM] = {"id": held.claim_id}
            return was_there
        if _has_field(next_):
            vars(next_)[RETRIED_AS] = new_id
        else:
            next_.extra[RETRIED_AS] = new_id
        return True

    _change(store, job_id, note, known=None if new_id == job_id else held.saved)


def release(store: Store[S], job_id: str, held: Claim[S]) -> None:
    """End the claim, as nothing was submitted.

    Raises as `StatusStore.read` and `StatusStore.save`.
    """

    def take_back(next_: S) -> bool:
        was_there = _drop(next_, held)
        if was_there and held.spent:
            next_.extra[RETRY_CLAIM] = {"id": held.spent}
        return was_there

    _change(store, job_id, take_back)


def _change(store: Store[S], job_id: str, change: Callable[[S], bool], *, known: Saved[S] | None = None) -> None:
    """Save what ``change`` makes of the record, if there is one and it says that there is something to save."""

    def decide(previous: Previous[S]) -> S | None:
        if previous.status is None:
            if previous.error is not None:
                raise previous.error
            return None
        next_ = previous.status.clone()
        return next_ if change(next_) else None

    try:
        swap(store, job_id, decide, known=known)
    except NotSaved as error:
        raise error.cause from None


def _drop(status: Status, held: Claim[Any]) -> bool:
    found = status.extra.get(RETRY_CLAIM)
    is_ours = isinstance(found, dict) and found.get("id") == held.claim_id
    if is_ours:
        del status.extra[RETRY_CLAIM]
    return is_ours


def _spent(status: Status) -> str:
    found = status.extra.get(RETRY_CLAIM)
    return str(found.get("id", "")) if isinstance(found, dict) and "until" not in found else ""


def _is_claimed(status: Status, now: datetime) -> bool:
    found = status.extra.get(RETRY_CLAIM)
    try:
        until = rfc3339.parse(found["until"]) if isinstance(found, dict) else None
    except (KeyError, TypeError, ValueError):
        return False  # nothing of ours
    # Not longer than a claim lasts: a clock that was wrong once must not lock the job for years.
    return until is not None and now < until <= now + timedelta(seconds=2 * CLAIM_SECONDS)


def _has_field(status: Status) -> bool:
    return any(field.name == RETRIED_AS for field in fields(status))
