"""The contract between the rules of a job and the place where its files live.

A *name* is a slash-separated path below the storage's root (``jobs/abc/status.json``), never starting or ending
with a slash. A *version* is an opaque text that changes whenever a file's bytes change; two equal versions of one
name mean equal bytes. Every implementation passes ``tests/storages/contract.py`` unchanged.
"""

from __future__ import annotations

import enum
import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias


class Expect(enum.Enum):
    """What a conditional write may expect of a file, where it isn't one certain version."""

    ANY = "any"
    ABSENT = "absent"


ANY: Final = Expect.ANY
"""``if_version=ANY``: write whatever is there."""
ABSENT: Final = Expect.ABSENT
"""``if_version=ABSENT``: write only if nothing is there (create only)."""

IfVersion: TypeAlias = str | Literal[Expect.ANY, Expect.ABSENT]

CACHE_CONTROL: Final = "no-store"
"""Sent with every file written through the contract: a status changes often, and no CDN may keep it."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The bytes of a file and the version they were read in."""

    data: bytes
    version: str


class JobStorage(Protocol):
    """Where a job's files live.

    All methods may be called from many threads at once. Besides what each method names, anything that goes wrong
    (no permission, no network, a full disk, a missing bucket) is `StorageUnavailable` with the cause chained,
    within a bounded time; it is never reported as a missing file or as an empty listing.

    A storage that takes only so many writes of one file may have an attribute ``min_write_interval``, in seconds:
    news are written at any rate, mere repetitions within that time are left out.
    """

    @property
    def atomic_swap(self) -> bool:
        """Whether conditional writes are safe against other processes, not only against this one."""
        ...

    def read(self, name: str) -> StoredFile:
        """The file and its version, in one request. Raises FileNotFoundError if there is none."""
        ...

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        """Replace the file as a whole, in one request, and return its new version.

        A reader sees the old bytes or the new ones, never a mixture or nothing. With ``if_version`` a version that
        `read` or `write` returned (or `ABSENT`), raises `VersionConflict` and changes nothing if that isn't what
        is there.
        """
        ...

    def delete(self, name: str) -> None:
        """Remove one file. One that isn't there is no error: a repeated delete has the same result."""
        ...

    def delete_tree(self, prefix: str) -> int:
        """Remove every file below ``prefix/`` and the pseudo-directory itself; return how many files went."""
        ...

    def list_dirs(self, prefix: str) -> Iterator[str]:
        """Yield the name (one segment) of each pseudo-directory directly under ``prefix/``, once, in any order.

        Files directly under the prefix are not yielded, and a prefix without anything under it yields nothing.
        Errors may come from the call or while iterating.
        """
        ...


def content_type(name: str) -> str:
    """The media type to store a file under: JSON with its charset, as the Go services write it."""
    if name.endswith(".json"):
        return "application/json; charset=utf-8"
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
