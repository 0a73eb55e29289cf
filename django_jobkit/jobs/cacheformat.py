"""How names and lists of IDs are spelled inside a cache."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Final, cast
from urllib.parse import quote

_LINES: Final = "L"
_JSON: Final = "J"


def safe_name(text: str, *, also: str = "", limit: int = 100) -> str:
    """The text as a part of a key that memcached takes, too: ASCII without blanks, at most ``limit`` characters.

    Different texts give different names. ``also`` are characters to leave as they are, besides ``/``.
    """
    quoted = quote(text, safe="/" + also, errors="surrogatepass")
    if len(quoted) <= limit:
        return quoted
    return "#" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()  # no quoted text has "#"


def encode(job_ids: list[str], heard: int = 0) -> str:
    """One text that holds all IDs: a line with the mark of its format and ``heard``, then a line for each ID.

    A text is much faster to pickle than a list. JSON is for IDs that contain a line feed.
    """
    lines = "\n".join((f"{_LINES}{heard}", *job_ids))
    return lines if lines.count("\n") == len(job_ids) else f"{_JSON}{heard}\n{json.dumps(job_ids)}"


def decode(payload: object) -> tuple[list[str], int] | None:
    """A fresh list of the IDs, and ``heard``; None if there is no payload, or one in the format of another version."""
    if not isinstance(payload, str):
        return None
    head, _, rest = payload.partition("\n")
    if not head[1:].isdecimal():
        return None
    if head[0] == _JSON:
        return cast("list[str]", json.loads(rest)), int(head[1:])
    if head[0] != _LINES:
        return None
    return payload.split("\n")[1:], int(head[1:])
