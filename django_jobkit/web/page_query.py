"""The page's numbers in a URL's query string: read from it, and written into the links to other pages."""

from __future__ import annotations

import re
from typing import Final

from django.http import QueryDict

_WHOLE_NUMBER = re.compile(r"([+-]?)([0-9]+)")
_HUGE: Final = 10**18  # past every page there is, within what a database or another service takes for a number


class NotANumber(ValueError):
    """A parameter that should be a whole number isn't; ``args[0]`` is the parameter's name."""


def read_number(query: QueryDict, name: str) -> int | None:
    """The parameter as a number, None where it is absent or blank; the last one counts if there are several.

    ASCII digits with an optional sign, however many: what is past 10**18 is taken for that. Raises `NotANumber` for
    anything else.
    """
    text = query.get(name, "").strip(" ")
    if not text:
        return None
    match = _WHOLE_NUMBER.fullmatch(text)
    if match is None:
        raise NotANumber(name)
    sign, digits = match[1], match[2].lstrip("0") or "0"
    value = int(digits) if len(digits) <= 18 else _HUGE
    return -value if sign == "-" else value


def read_page(query: QueryDict, per_page: int, max_per_page: int, *, lenient: bool) -> tuple[int, int]:
    """``page`` and ``per_page`` of a request, the latter always from 1 to ``max_per_page``.

    A ``page`` outside the range is left to paging, which shows the first or the last one. ``per_page`` is the
    default where the parameter is absent or below 1: no request can have everything on one page. What isn't a number
    raises `NotANumber`, or with ``lenient`` (for people, who follow mangled links) counts as absent.
    """
    numbers = {}
    for name in ("page", "per_page"):
        try:
            numbers[name] = read_number(query, name)
        except NotANumber:
            if not lenient:
                raise
            numbers[name] = None
    page = numbers["page"]
    rows = numbers["per_page"]
    return (1 if page is None else page), min(rows if rows is not None and rows > 0 else per_page, max_per_page)


def nearby(page: int, total_pages: int, around: int = 2) -> list[int]:
    """The numbers of the pages to show around ``page``: ``2 * around + 1`` of them, or all if there are fewer.

    At either end of the range the window is moved inwards, so that its width, and what stands under the pointer,
    stays.
    """
    width = 2 * around + 1
    first = max(1, min(page - around, total_pages - width + 1))
    return list(range(first, min(first + width - 1, total_pages) + 1))


def with_page(query: QueryDict | None, page: int) -> str:
    """``?…`` for another page: the other parameters kept, in their order and as often as they occur."""
    wanted = QueryDict(mutable=True) if query is None else query.copy()
    wanted["page"] = str(page)
    return f"?{wanted.urlencode()}"
