"""Job IDs: made, checked, cleaned, and read for the time they were made.

An ID stands in URLs and in storage paths, so what counts as one is a security boundary: ASCII letters, digits,
``-`` and ``_``, the first a letter or digit, at most 128 bytes. Path separators, ``..`` and URL escapes can't occur.
The rules are those of the Go services that share the files (package ``jobid`` of ``shouni/go-utils``);
``tests/vectors/jobid_*.json`` holds what they print.

Everything here is a pure function, safe to call from any thread.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from ..exceptions import EmptyJobID, InvalidJobID, JobIDTooLong, MalformedJobID, NoTimestamp

MAX_LENGTH: Final = 128
"""The most bytes an ID may have."""

_DEFAULT_PREFIX: Final = "job"
_GENERATED_SUFFIX: Final = len("-20060102-150405-") + 12
_FIRST_YEAR: Final = "2000"  # random digits can look like a date; no job is older than this

_VALID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_NOT_IN_PREFIX = re.compile(r"[^a-z0-9_-]")

# Unicode's White_Space, which is what Go's strings.TrimSpace takes off. Python's str.strip() also takes
# U+001C to U+001F, and would so accept IDs that the Go services refuse.
_WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

# Date and time, together or on both sides of a hyphen, up to the end of a segment between hyphens. Letters may
# stand before them in their segment ("k20260811-081530-…"), digits may not ("v220260614-…").
_TIMESTAMP = re.compile(r"([0-9]{8})-?([0-9]{6})(?=-|\Z)")
_DIGIT = re.compile(r"[0-9]")


def validate(job_id: str) -> None:
    """Raise `EmptyJobID`, `JobIDTooLong` or `MalformedJobID` unless ``job_id`` is an ID exactly as it stands.

    The length, in UTF-8 bytes, is checked before the characters.
    """
    if not isinstance(job_id, str):
        raise MalformedJobID(f"A job ID is text, not {type(job_id).__name__}.")
    if not job_id:
        raise EmptyJobID("A job ID is required.")
    if len(job_id) * 4 > MAX_LENGTH and (length := _byte_length(job_id)) > MAX_LENGTH:
        raise JobIDTooLong(f"The job ID has {length} bytes; at most {MAX_LENGTH} are allowed.")
    if _VALID.fullmatch(job_id) is None:
        raise MalformedJobID(
            f"{job_id!a} is no job ID: use ASCII letters, digits, '-' and '_', beginning with a letter or digit."
        )


def is_valid(job_id: str) -> bool:
    """Whether `validate` accepts ``job_id``."""
    try:
        validate(job_id)
    except InvalidJobID:
        return False
    return True


def sanitize(job_id: str) -> str:
    """The ID that a path-like text names: its last path element, with white space around the text taken off.

    ``" jobs/abc/ "`` gives ``"abc"``, ``"../../etc/passwd"`` gives ``"passwd"``. Raises `InvalidJobID` (as
    `validate` does) if that element isn't a valid ID. Pass everything that comes from outside through here
    before it becomes a part of a path.
    """
    if isinstance(job_id, str):
        if len(job_id) <= MAX_LENGTH and _VALID.fullmatch(job_id):
            return job_id  # nearly every call
        job_id = job_id.strip(_WHITE_SPACE)
        if path := job_id.rstrip("/"):
            job_id = path.rpartition("/")[2]
    validate(job_id)
    return job_id


def new(prefix: str = _DEFAULT_PREFIX, *, now: datetime | None = None) -> str:
    """A fresh ID, ``{prefix}-{yyyymmdd}-{hhmmss}-{12 hex digits}``, the time in UTC.

    ``prefix`` is decoration and never a reason to fail: it is lower-cased, characters that can't stand in an ID
    are dropped, ``-`` and ``_`` are trimmed from its ends, a long one is cut so that the ID fits, and an empty one
    is ``job``. ``now``, an aware datetime, stands in for the clock.
    """
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{_cleaned(prefix)}-{_stamp(moment.replace(microsecond=0))}-{secrets.token_hex(6)}"


@lru_cache(maxsize=64)
def _stamp(moment: datetime) -> str:
    # Not strftime: it drops the leading zeros of a year before 1000 on some platforms.
    date = f"{moment.year:04}{moment.month:02}{moment.day:02}"
    return f"{date}-{moment.hour:02}{moment.minute:02}{moment.second:02}"


@lru_cache(maxsize=1024)  # most sites have a few commands
def _cleaned(prefix: str) -> str:
    name = _NOT_IN_PREFIX.sub("", prefix.lower()).strip("-_") or _DEFAULT_PREFIX
    return name[: MAX_LENGTH - _GENERATED_SUFFIX].rstrip("-_")


def created_at(job_id: str) -> datetime:
    """When the job was made, in UTC, as its ID tells. Raises `NoTimestamp` if it doesn't.

    Three formats are read, the first plausible time (from the year 2000 on) counts:
    ``{prefix}-20060102-150405-…`` as `new` makes them, ``k20060102-150405-…``, and ``20060102150405-…``.
    The ID needn't be valid; check that apart.
    """
    key = sort_key(job_id)
    if not key:
        raise NoTimestamp(f"{job_id!a} carries no creation time.")
    return datetime.strptime(key, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def sort_key(job_id: str) -> str:
    """Fourteen digits that sort by creation time, or ``""`` (the oldest of all) if the ID doesn't tell it."""
    match = _TIMESTAMP.search(job_id)
    while match is not None:
        start = match.start()
        if not start or job_id[start - 1] == "-" or not _DIGIT.search(job_id, job_id.rfind("-", 0, start) + 1, start):
            date, time = match.groups()
            if _is_date(date) and time < "240000" and time[2] < "6" and time[4] < "6":
                return date + time
        match = _TIMESTAMP.search(job_id, start + 1)
    return ""


@lru_cache(maxsize=4096)  # a history has many jobs a day
def _is_date(digits: str) -> bool:
    if digits < _FIRST_YEAR:
        return False
    try:
        datetime(int(digits[:4]), int(digits[4:6]), int(digits[6:]), tzinfo=UTC)
    except ValueError:
        return False
    return True


def _byte_length(text: str) -> int:
    """The length in UTF-8; bytes that came in through ``surrogateescape`` count as the bytes they were."""
    try:
        return len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return len(text.encode("utf-8", "surrogatepass"))
