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


def encode(job_ids: list[str]) -> str:
    """One text that holds all IDs: a line with the mark of its format, then a line for each ID.

    A text is much faster to pickle than a list. JSON is for IDs that contain a line feed.
    """
    lines = "\n".join((_LINES, *job_ids))
    return lines if lines.count("\n") == len(job_ids) else f"{_JSON}\n{json.dumps(job_ids)}"


def decode(payload: object) -> list[str] | None:
    """A fresh list of the IDs; None if there is no payload, or one in the format of another version."""
    if not isinstance(payload, str):
        return None
    if payload.startswith(f"{_JSON}\n"):
        return cast("list[str]", json.loads(payload[2:]))
    lines = payload.split("\n")
    if lines[0] != _LINES:
        return None
    del lines[0]
    return lines
