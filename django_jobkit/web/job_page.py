"""What the page of one job shows beside the status itself: the site's own fields, times, and the raw record."""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from typing import Any, Final, NamedTuple

from ..jobs import fields, retries, strictjson
from ..jobs.status import State, Status
from .display import BIDI_CONTROLS, cut, duration_text, member

_RELOAD_SECONDS: Final[dict[str, int]] = {State.QUEUED: 5, State.RUNNING: 5}
_RELOAD_SECONDS_OF_OTHERS: Final = 30

_LONGEST_ERROR_LINES: Final = 8
_LONGEST_ERROR: Final = 600
_LONGEST_VALUE: Final = 2_000
_LONGEST_RECORD: Final = 100_000
_DEEPEST_INDENT: Final = 30

# Those that have a place of their own on the page.
_SHOWN: Final = {
    *("job_id", "command", "state", "title", "error", "attempts", "queued_at", "updated_at", "started_at"),
    *("finished_at", "progress_current", "progress_total", "progress_message", "outputs", "owner", "retry_of"),
}

_PART = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{},:]|[^][{},:"\s]+')
_HIDDEN = re.compile(f"[\x7f-\x9f\u2028\u2029{BIDI_CONTROLS}]")


class Field(NamedTuple):
    """A member of the record: ``time`` is set where it is one, otherwise ``text``.

    ``own`` is set for a field of the status class, which the page keeps up to date.
    """

    name: str
    text: str
    time: datetime | None = None
    own: bool = False


class Timeline(NamedTuple):
    """How long the job waited, ran, and has been running by now, as texts; empty where that can't be said."""

    waited: str = ""
    ran: str = ""
    running: str = ""


class ErrorText(NamedTuple):
    """``gist`` is the line that says what is wrong; it is all that shows of a ``long`` one until it is unfolded."""

    text: str
    gist: str
    long: bool


def timeline_of(status: Status, now: datetime) -> Timeline:
    """The durations between the status's own times, and until the aware time ``now``."""
    queued, started, finished = (member(status, name) for name in ("queued_at", "started_at", "finished_at"))
    if started is None:
        return Timeline()
    return Timeline(
        waited=duration_text((started - queued).total_seconds()) if queued else "",
        ran=duration_text((finished - started).total_seconds()) if finished else "",
        running=duration_text((now - started).total_seconds()) if status.state == State.RUNNING else "",
    )


def reload_seconds_of(status: Status) -> int | None:
    """After how many seconds the page of the job loads itself again where there are no scripts; None for never.

    A failed job may be retried, and one in a state that the kit doesn't know may go on: both are watched slowly.
    """
    return None if status.is_terminal else _RELOAD_SECONDS.get(status.state, _RELOAD_SECONDS_OF_OTHERS)


def error_text(text: str) -> ErrorText:
    """The error as the page shows it. The script of the page decides by the same numbers."""
    long = len(text) > _LONGEST_ERROR or text.count("\n") >= _LONGEST_ERROR_LINES
    lines = text.strip().split("\n")
    return ErrorText(text, cut(lines[-1 if lines[0].startswith("Traceback") else 0], 200), long)


def other_fields(status: Status) -> list[Field]:
    """Fields without a place of their own, then members that the class doesn't know; unset ones are left out."""
    written: dict[str, Any] = {**fields.write_object(status, type(status)), **status.extra}
    own = {field.name for field in dataclasses.fields(status)}
    found = []
    for name, value in written.items():
        if (name in _SHOWN and name in own) or name in retries.NOTES:
            continue
        time = getattr(status, name) if name in own else None
        if isinstance(time, datetime):
            found.append(Field(name, "", time, own=True))
        else:
            text = value if isinstance(value, str) else strictjson.dumps(value)
            found.append(Field(name, cut(text, _LONGEST_VALUE), own=name in own))
    return found


def raw_record(data: bytes) -> str:
    """The record's JSON, indented; nothing in it is reworded but characters that would hide others.

    The beginning of one that is too long for a page.
    """
    pieces: list[str] = []
    depth = 0
    length = 0
    for match in _PART.finditer(data.decode("utf-8", "replace")):
        part = match.group()
        if part in "}]":
            depth -= 1
            pieces.append(_line(depth) if pieces[-1][-1:] not in "{[" else "")
        elif pieces and pieces[-1][-1:] in "{[":
            pieces.append(_line(depth))
        pieces.append(part)
        if part in "{[":
            depth += 1
        elif part == ",":
            pieces.append(_line(depth))
        elif part == ":":
            pieces.append(" ")
        length += len(part)
        if length > _LONGEST_RECORD:
            break
    text = cut("".join(pieces), _LONGEST_RECORD)
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST_INDENT)
