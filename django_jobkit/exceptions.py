"""Every error the kit raises: one base class, one class for each decision a caller can take.

Nothing here imports Django, so that a worker without Django settings can catch the same classes.
"""

from __future__ import annotations


class JobKitError(Exception):
    """Base of everything the kit raises on purpose."""


class InvalidJobID(JobKitError, ValueError):
    """The text can't name a job. Answer 400; asking again with the same text never helps."""


class EmptyJobID(InvalidJobID):
    """The ID is empty, or blank."""


class JobIDTooLong(InvalidJobID):
    """The ID has more bytes than ``ids.MAX_LENGTH``."""


class MalformedJobID(InvalidJobID):
    """The ID has a character that is neither an ASCII letter, digit, ``-`` nor ``_``, or a wrong first one."""


class NoTimestamp(JobKitError, ValueError):
    """The ID carries no creation time in any of the known formats."""


class StatusNotFound(JobKitError):
    """No status has been recorded under this ID. Answer 404; a worker may go on."""


class StatusUnavailable(JobKitError):
    """The status may well exist, but couldn't be read or written just now. Answer 503; try again later.

    Never the same as `StatusNotFound`: taking an outage for absence runs (and bills) a finished job again.
    """


class StatusCorrupt(JobKitError):
    """The status file is there and isn't a status. Answer 500; a person has to look.

    ``kind`` is the word of ``tests/vectors/README.md`` (``truncated``, ``duplicate_key``, …); ``version`` is
    the version of the file that was read, when it came from a storage, so that a repair can replace just that one.
    """

    def __init__(self, message: str = "", *, kind: str = "not_json", version: str | None = None) -> None:
        super().__init__(message or kind)
        self.kind = kind
        self.version = version


class StatusNotEncodable(JobKitError, ValueError):
    """The status holds a value that a status file can't. Nothing has been written.

    ``kind`` is ``invalid_utf8`` (lone surrogates), ``bad_time`` (without a time zone, or past what RFC 3339
    spells), ``bad_number`` (NaN, infinities, past 64 bits) or ``wrong_type``.
    """

    def __init__(self, message: str = "", *, kind: str = "wrong_type") -> None:
        super().__init__(message or kind)
        self.kind = kind


class StorageUnavailable(JobKitError):
    """The storage did not do what was asked, for another reason than a missing file. Try again later."""


class StorageMisconfigured(StorageUnavailable):
    """The storage answers, but is set up so that it can't hold status files. A person has to change a setting.

    A subclass of `StorageUnavailable`, so that no caller takes it for "no jobs" or "not found".
    """


class VersionConflict(JobKitError):
    """The file isn't (any more) in the version that the write was conditional on. Read again, decide again.

    ``certain`` is true where the storage checked and wrote under one lock. Elsewhere (a request that may have
    been repeated after its answer was lost) the write that was refused may be one's own: compare the bytes.
    """

    def __init__(self, message: str = "", *, certain: bool = False) -> None:
        super().__init__(message)
        self.certain = certain


class JobBusy(JobKitError):
    """Another worker holds a live lease on the job. Have the engine deliver it again later."""


class JobExists(JobKitError):
    """A job under this ID is queued or running. Submit under another ID, or ask for it to be replaced."""


class QueueFull(JobKitError):
    """As many jobs are waiting as may. Nothing was accepted: answer 429, or submit again later."""


class QueueStopped(JobKitError):
    """The queue is stopping with its process and takes no more jobs. Nothing was accepted: answer 503."""


class ArgumentsRefused(JobKitError, TypeError, ValueError):
    """A task's arguments can't be kept until it runs: they aren't JSON, or too long. Nothing was accepted."""


class PermanentJobError(JobKitError):
    """Raised by a job that would fail again just so: it is recorded as failed, and the engine isn't to retry it."""


class ResultRefused(PermanentJobError):
    """What a task returned can't stand in its record: it isn't JSON, or too long. The job is failed, though it ran."""


class JobCancelled(JobKitError):
    """Raised in a job by `Job.check_cancelled` when it is to end: its lease is lost, or its queue is stopping."""


class PageLoadTimeout(JobKitError):
    """The rows of a page could not be read in time. Raised instead of showing a page that looks empty."""


class ListTimeout(StorageUnavailable):
    """Somebody else's listing of the jobs did not end within the caller's own timeout."""


class KeysNotListable(JobKitError):
    """The cache backend can't list its keys, so entries can't be counted."""


class TokenRefused(JobKitError):
    """The identity token is none that is valid here. Answer 401; asking again with the same token never helps.

    ``reason`` is one word (``expired``, ``audience``, …); the text explains it and holds nothing of the token.
    """

    def __init__(self, message: str = "", *, reason: str = "malformed") -> None:
        super().__init__(message or reason)
        self.reason = reason


class AccountRefused(JobKitError):
    """The identity token is valid, but its account is none of those that are let in here. Answer 403."""


class KeysUnavailable(JobKitError):
    """No token can be verified just now: the keys they are signed with couldn't be fetched. Answer 503, never 401."""
