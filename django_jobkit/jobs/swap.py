"""Read, decide, save on the condition that nothing has changed since; and again on a conflict."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ..exceptions import StatusCorrupt, StatusNotFound, StatusUnavailable, VersionConflict
from .files import ABSENT, ANY, IfVersion
from .status import Status

S = TypeVar("S", bound=Status)

_CONFLICTS: Final = 500  # lost races in a row before giving up: with fair chances among dozens, never
_LONGEST_PAUSE: Final = 0.05  # seconds between two tries of one race


class Store(Protocol[S]):
    """What recording needs. With `StatusStore.read` and ``if_version`` besides, saves are conditional."""

    def get(self, job_id: str) -> S: ...

    def save(self, job_id: str, status: S) -> object: ...


class Previous(NamedTuple, Generic[S]):
    """What stood in the file: ``status`` is None where there is no file, or where it couldn't be read."""

    status: S | None
    if_version: IfVersion
    error: Exception | None = None


class Saved(NamedTuple, Generic[S]):
    """What now stands in the file. ``version`` is None where the store doesn't tell."""

    status: S
    version: IfVersion | None


class NotSaved(Exception):
    """The write failed, for ``cause``."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def swap(
    store: Store[S], job_id: str, decide: Callable[[Previous[S]], S | None], *, known: Saved[S] | None = None
) -> Saved[S] | None:
    """Save what ``decide`` makes of the previous record, and return it; None, if it decides to write nothing.

    With ``known``, what the caller has saved last, the first try saves a request: nothing is read unless somebody
    else has written since. In the version ABSENT it is what the job had as its first record, had that been saved.
    ``decide`` is called again after each conflict and may raise what it likes. A write that fails raises `NotSaved`.
    """
    previous = None if known is None or known.version is None else Previous(known.status, known.version)
    for lost in range(_CONFLICTS):
        if previous is None:
            previous = _read(store, job_id)
        next_ = decide(previous)
        if next_ is None:
            return None
        try:
            return Saved(next_, _save(store, job_id, next_, previous.if_version))
        except VersionConflict:
            previous = None
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.001 * 2 ** min(lost, 6))))  # noqa: S311
        except Exception as error:
            raise NotSaved(error) from error
    raise NotSaved(StatusUnavailable(f"Other workers kept changing job {job_id}."))


def _read(store: Any, job_id: str) -> Previous[Any]:
    try:
        if hasattr(store, "read"):
            return Previous(*store.read(job_id))
        return Previous(store.get(job_id), ANY)
    except StatusNotFound:
        return Previous(None, ABSENT)
    except StatusCorrupt as error:
        return Previous(None, error.version or ANY, error)  # whoever has replaced the damaged file meanwhile wins
    except Exception as error:
        return Previous(None, ANY, error)


def _save(store: Any, job_id: str, status: Status, if_version: IfVersion) -> str | None:
    if not hasattr(store, "read"):
        store.save(job_id, status)
        return None
    version: str | None = store.save(job_id, status, if_version=if_version)
    return version
