"""How the values of a status look to a person: texts, times, states and progress.

Escaping for HTML is the templates' task, and stays on everywhere; what is here keeps a text from hiding or turning
round what stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils import formats, timezone
from django.utils.translation import gettext_lazy as _

from ..jobs import rfc3339
from ..jobs.status import State

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

STATES: Final[dict[str, _StrPromise]] = {
    State.QUEUED: _("Queued"),
    State.RUNNING: _("Running"),
    State.SUCCEEDED: _("Succeeded"),
    State.FAILED: _("Failed"),
}

LONGEST_TITLE: Final = 200

# Isolates, embeddings and overrides: the closing ones would also end the <bdi> that a text is wrapped in. The marks
# U+200E and U+200F, which right-to-left texts need, only move what is next to them and may stay.
BIDI_CONTROLS: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_KEPT: Final = "\t\n"
_VISIBLE: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT},
    0x7F: "\u2421",
    **{code: f"[U+{code:04X}]" for code in [*range(0x80, 0xA0), *map(ord, BIDI_CONTROLS), 0x2028, 0x2029]},
}


def visible(text: str) -> str:
    """The text with control characters shown instead of obeyed; tabs and line breaks (also CR LF) stay."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters of the text, an ellipsis standing for the rest."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def title_of(job_id: str, status: object) -> str:
    """One line for the browser's tab and the head of a page; the ID where the job has no title."""
    title = str(member(status, "title") or "")
    return visible(cut(" ".join(title.split()), LONGEST_TITLE)) or job_id


def member(item: object, name: str, default: Any = None) -> Any:
    """A field of a status, or of whatever a site's own `LOAD` makes of a row: an attribute or a dict's item."""
    if isinstance(item, Mapping):
        return item.get(name, default)
    return getattr(item, name, default)


@dataclass(frozen=True, slots=True)
class TimeShown:
    """``machine`` for the ``datetime`` attribute, ``text`` for people, ``exact`` with the zone's offset."""

    machine: str
    text: str
    exact: str


def shown_time(value: datetime) -> TimeShown:
    """An aware time in the current time zone: the date as the language writes it, the time to the second.

    A time so near the end of what `datetime` holds that it can't be moved to that zone is shown as it is.
    """
    machine = rfc3339.render(value)
    try:
        local = timezone.localtime(value)
    except (OverflowError, ValueError):
        return TimeShown(machine, machine, machine)
    text = f"{formats.date_format(local, 'DATE_FORMAT')} {local:%H:%M:%S}"
    return TimeShown(machine, text, local.isoformat(" ", "seconds"))


UNITS: Final[list[tuple[int, _StrPromise]]] = [
    (86400, _("%(count)s d")),
    (3600, _("%(count)s h")),
    (60, _("%(count)s min")),
    (1, _("%(count)s s")),
]
"""Seconds in a unit of time, and how a number of them is written."""


def duration_text(seconds: float) -> str:
    """``41 s``, ``3 min 5 s``, ``2 d 4 h``: the largest unit and the one below it, rounded down; nothing below 0 s."""
    left = max(int(seconds), 0)
    parts: list[str] = []
    for size, text in UNITS:
        count, left = divmod(left, size)
        parts.append(text % {"count": count} if count else "")
    first = next((n for n, part in enumerate(parts) if part), -1)
    return " ".join(filter(None, parts[first : first + 2])) if first >= 0 else UNITS[-1][1] % {"count": 0}


@dataclass(frozen=True, slots=True)
class Progress:
    """``percent`` is from 0 to 100, or None where the total isn't known."""

    current: int
    total: int
    percent: int | None
    message: str


def progress_of(status: object) -> Progress | None:
    """How far the job is, or None if it doesn't say. Numbers that make no sense are brought into the range."""
    current, total = (member(status, name) for name in ("progress_current", "progress_total"))
    message = member(status, "progress_message") or ""
    current, total = (max(value, 0) if isinstance(value, int) else 0 for value in (current, total))
    if not (current or total or message):
        return None
    current = min(current, total) if total else current
    return Progress(current, total, current * 100 // total if total else None, str(message))
