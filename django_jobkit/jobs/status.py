"""What is recorded of a job.

A status is a dataclass whose fields are the members of ``status.json``, in that order. The first eight are common
to all services that share the files (``Status`` of the Go kit); a site's own class adds fields of its own::

    @dataclass(kw_only=True)
    class ComicStatus(JobStatus):
        pages: int = json_field(0)
        cover: str = json_field("", omit="never")

A field's annotation says what a file may hold there: ``str``, ``int`` (64 bits), ``float``, ``bool``, ``bytes``
(base64 text), ``datetime`` (RFC 3339), ``list[…]``, ``dict[str, …]``, another dataclass, any of these ``| None``,
or ``Any`` for whatever JSON there is.
"""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, Self

OMIT: Final = "jobkit_omit"
RETRY_CLAIM: Final = "retry_claim"
"""A member of the record of a job that is being retried; see `retries`."""


class State(StrEnum):
    """Where a job stands. Other services may write other words; those stay the plain text they are."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


def json_field(default: Any, omit: Literal["zero", "empty", "never"] = "zero") -> Any:
    """A dataclass field with a rule for when it is left out of the file.

    ``zero`` leaves it out while it holds its type's zero value (``None``, ``""``, ``0``, ``False``, a nested
    dataclass of nothing but zeros; not an empty list), as Go's ``omitzero``. ``empty`` leaves it out when its JSON
    would be ``null``, ``""``, ``{}`` or ``[]`` (so never for 0 and false), as Go's ``omitempty``. ``never`` always
    writes it, as does a field made without `json_field`. A ``default`` that is a list or a dict is copied for
    each status.
    """
    if omit not in ("zero", "empty", "never"):
        raise ValueError(f"omit is 'zero', 'empty' or 'never', not {omit!r}.")
    metadata = {OMIT: omit}
    if isinstance(default, list | dict | set):
        return dataclasses.field(default_factory=lambda: copy.deepcopy(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(kw_only=True)
class Status:
    """The eight fields that every service records. Times are aware, or None while not set.

    ``state`` is a `State`, or the text of a state that this version doesn't know. ``attempts`` counts how often a
    worker began the job; 2 and more are retries. ``error`` says why the last one failed.
    """

    job_id: str = json_field("", omit="never")
    command: str = json_field("", omit="empty")
    state: State | str = json_field("", omit="never")
    title: str = json_field("", omit="empty")
    error: str = json_field("", omit="empty")
    attempts: int = json_field(0, omit="zero")
    queued_at: datetime | None = json_field(None, omit="zero")
    updated_at: datetime | None = json_field(None, omit="never")

    @property
    def is_terminal(self) -> bool:
        """Whether the job will never run again. True for ``succeeded`` only: an engine may retry what failed."""
        return self.state == State.SUCCEEDED

    @property
    def extra(self) -> dict[str, Any]:
        """Members of the file that this class doesn't know. Saving this very status writes them back.

        Not a field, so that `dataclasses.fields` are exactly the members the class knows. No part of equality.
        """
        found: dict[str, Any] = self.__dict__.setdefault("_extra", {})
        return found

    def carry_over(self, prev: Status) -> None:
        """Take from the previous record what a worker, who only knows the task, can't know.

        ``attempts`` and ``queued_at`` always, ``command`` and ``title`` where they are empty here. A subclass may
        take more; call ``super()``.
        """
        self.attempts = prev.attempts
        self.queued_at = prev.queued_at
        self.command = self.command or prev.command
        self.title = self.title or prev.title

    def clone(self) -> Self:
        """A copy that shares no list or dict with this one, so that changing it never changes this one."""
        twin = copy.copy(self)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | dict) or dataclasses.is_dataclass(value):
                setattr(twin, field.name, copy.deepcopy(value))
        if self.extra:  # deep documents can be nested past what deepcopy survives; the members are replaced whole
            twin.__dict__["_extra"] = dict(self.extra)
        else:
            twin.__dict__.pop("_extra", None)
        return twin


@dataclass(kw_only=True)
class JobStatus(Status):
    """The default status: the common fields and what the kit's own pages and workers make use of.

    None of the fields takes a byte of the file while it isn't set. ``outputs`` are file names relative to the
    job's directory. ``progress_total`` is 0 while it isn't known. ``owner`` is whatever text the site knows a
    person by; ``retry_of`` is the ID of the job that this one does again, ``retried_as`` that of the job that does this
    one again; ``result`` is any JSON.
    """

    started_at: datetime | None = json_field(None)
    finished_at: datetime | None = json_field(None)
    progress_current: int = json_field(0)
    progress_total: int = json_field(0)
    progress_message: str = json_field("")
    outputs: list[str] = json_field([], omit="empty")
    owner: str = json_field("")
    retry_of: str = json_field("")
    result: Any = json_field(None)
    lease_id: str = json_field("")
    lease_expires_at: datetime | None = json_field(None)
    retried_as: str = json_field("")

    def carry_over(self, prev: Status) -> None:
        """As `Status.carry_over`, and whose job it is, of what it is a retry, and as what it was retried.

        Whoever is retrying the job just now keeps it to themselves until it is queued anew.
        """
        super().carry_over(prev)
        if isinstance(prev, JobStatus):
            self.owner = self.owner or prev.owner
            self.retry_of = self.retry_of or prev.retry_of
            self.retried_as = self.retried_as or prev.retried_as
            if self.state != State.QUEUED and RETRY_CLAIM in prev.extra:
                self.extra.setdefault(RETRY_CLAIM, prev.extra[RETRY_CLAIM])
