"""Which part of a file a request asks for, by its ``Range`` header (RFC 9110, 14)."""

from __future__ import annotations

import re
from typing import Final

_SINGLE: Final = re.compile(r"bytes=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII | re.IGNORECASE)


class Unsatisfiable(Exception):
    """The file has nothing at this place."""


def part_asked_for(header: str, size: int) -> range | None:
    """The positions of the bytes that are asked for, of ``size``; None for all of them.

    All of them is the answer to several ranges at once, to other units and to nonsense, too, as the RFC allows. Of an
    empty file there is no part to name. Raises `Unsatisfiable`, for 416.
    """
    match = _SINGLE.fullmatch(header.strip())
    if match is None or not size:
        return None
    first, last = match.groups()
    if first:
        start, stop = int(first), int(last) + 1 if last else size
        if last and start >= stop:
            return None  # it ends before it begins
    elif last:
        start, stop = max(size - int(last), 0), size
    else:
        return None
    if start >= size:
        raise Unsatisfiable
    return range(start, min(stop, size))
