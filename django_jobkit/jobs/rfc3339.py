"""Times as they stand in a status file: strict RFC 3339, as Go's ``time.Time`` reads and writes them.

Python keeps microseconds and years 1 to 9999: further digits are cut on reading, and a time whose year is 0 both
in its own zone and in UTC can't be read. Go's zero time, 0001-01-01T00:00:00Z in any zone, is None.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

ZERO: Final = "0001-01-01T00:00:00Z"

_ZERO_LOCAL: Final = datetime(1, 1, 1)  # noqa: DTZ001  # compared to local times of any zone

# datetime.fromisoformat takes far more than RFC 3339 (week dates, no seconds, 24:00), so the shape is checked first.
_SHAPE = re.compile(
    r"([0-9]{4})(-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])(?:\.([0-9]+))?"
    r"(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


def parse(text: str) -> datetime | None:
    """The time, aware, or None for Go's zero time. Raises ValueError for all that isn't strict RFC 3339."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ValueError("not a strict RFC 3339 time")
    year, rest, fraction, offset = match.groups()
    rest += f".{fraction[:6]:0<6}{offset}" if fraction else offset
    if year == "0000":
        # The same moment a leap year's length on, moved back: 0000 and 2000 have the same calendar.
        later = datetime.fromisoformat("2000" + rest)
        since_zero = later - datetime(2001, 1, 1, tzinfo=UTC)
        return _from_zero(since_zero)
    value = datetime.fromisoformat(year + rest)
    return None if is_zero(value) else value


def _from_zero(since_zero: timedelta) -> datetime | None:
    if not since_zero:
        return None
    try:
        return datetime.min.replace(tzinfo=UTC) + since_zero
    except OverflowError:
        raise ValueError("a year before 1, which Python's datetime can't hold") from None


def render(value: datetime | None) -> str:
    """RFC 3339 with the shortest fraction and ``Z`` for UTC; None is Go's zero time.

    Raises ValueError for a time without a zone. An offset of odd seconds, which RFC 3339 can't spell, is written
    as the same moment in UTC.
    """
    if value is None:
        return ZERO
    offset = value.utcoffset()
    if offset is None:
        raise ValueError("a time without a time zone")
    if offset % timedelta(minutes=1):
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            raise ValueError("a year outside 1 to 9999 in UTC") from None
        offset = timedelta()
    text = value.replace(tzinfo=None).isoformat()
    if value.microsecond:
        text = text.rstrip("0")
    if not offset:
        return text + "Z"
    sign, offset = ("-", -offset) if offset < timedelta() else ("+", offset)
    minutes = offset // timedelta(minutes=1)
    return f"{text}{sign}{minutes // 60:02}:{minutes % 60:02}"


def is_zero(value: datetime) -> bool:
    """Whether this is the moment that Go takes for "not set", in whatever zone it is spelt."""
    return value.year == 1 and value.replace(tzinfo=None) - _ZERO_LOCAL == value.utcoffset()
