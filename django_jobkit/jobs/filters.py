"""Which jobs of a history are wanted: by what their IDs tell, for all of them, and by what only their files tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from . import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a job must be to be shown; what is empty or None asks for nothing.

    ``since`` (inclusive) and ``until`` (exclusive) are aware times that the job was made at, as its ID tells; a job
    whose ID tells none is left out by either. ``prefix`` is what its ID begins with. ``state``, ``command`` and
    ``owner`` are as in its file; ``text`` is somewhere in its title or its ID, whatever the case of the letters.
    ``owner`` None asks for nothing, and ``""`` for jobs without an owner.
    """

    state: str = ""
    command: str = ""
    text: str = ""
    owner: str | None = None
    prefix: str = ""
    since: datetime | None = None
    until: datetime | None = None
    newest_first: bool = True

    @property
    def need_files(self) -> bool:
        """Whether the jobs' files have to be read to tell."""
        return bool(self.state or self.command or self.text or self.owner is not None)

    def by_id(self, job_ids: list[str]) -> list[str]:
        """Those whose IDs fit."""
        if self.prefix:
            job_ids = [job_id for job_id in job_ids if job_id.startswith(self.prefix)]
        if self.since is not None or self.until is not None:
            first, end = _key(self.since, "0"), _key(self.until, "9" * 15)
            job_ids = [job_id for job_id in job_ids if first <= ids.sort_key(job_id) < end]
        return job_ids

    def by_file(self, rows: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Those (ID and row) whose rows fit, in their order."""
        text = self.text.casefold()
        return [
            (job_id, row)
            for job_id, row in rows
            if (not self.state or _text(row, "state") == self.state)
            and (not self.command or _text(row, "command") == self.command)
            and (self.owner is None or _owner(row) == self.owner)
            and (not text or text in job_id.casefold() or text in _text(row, "title").casefold())
        ]


def _key(moment: datetime | None, default: str) -> str:
    return default if moment is None else f"{moment.astimezone(UTC):%Y%m%d%H%M%S}"


def _member(row: Any, name: str) -> Any:
    """A member of what the row is made of: a `HistoryRow`'s status, or the site's own object or dict."""
    about = row.status if hasattr(row, "problem") and hasattr(row, "status") else row
    return about.get(name) if isinstance(about, dict) else getattr(about, name, None)


def _text(row: Any, name: str) -> str:
    return str(_member(row, name) or "")


def _owner(row: Any) -> str | None:
    """None where it can't be told whose job it is: such a job is nobody's, not of those without an owner."""
    owner = _member(row, "owner")
    return owner if isinstance(owner, str) else None
