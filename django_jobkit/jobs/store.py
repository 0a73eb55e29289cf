"""One status file per job: read, written, deleted, each with one request to the storage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar, overload

from ..exceptions import StatusCorrupt, StatusNotFound, StatusUnavailable, StorageUnavailable, VersionConflict
from . import codec, ids
from .files import ANY, IfVersion, JobStorage, StoredFile
from .status import JobStatus, Status

S = TypeVar("S", bound=Status)

STATUS_FILE = "status.json"

Locate = Callable[[str], str]
"""From a valid job ID to the name of its status file."""


def under_job_dir(prefix: str) -> Locate:
    """Locate ``PREFIX/{job_id}/status.json``, beside the job's own outputs, so that deleting the job's directory
    deletes its status too. Raises ValueError for an empty prefix."""
    base = prefix.strip().strip("/")
    if not base:
        raise ValueError("The prefix that holds the job directories is empty.")
    return lambda job_id: f"{base}/{job_id}/{STATUS_FILE}"


def utc_now() -> datetime:
    return datetime.now(UTC)


class StatusStore(Generic[S]):
    """Reads and writes the statuses of jobs, always the latest one of each.

    Every method cleans the ID with `ids.sanitize` first and raises `InvalidJobID` for one that can't be cleaned.
    ``clock`` returns the aware time that a save stamps. Safe to share between threads if the storage is.
    """

    @overload
    def __init__(
        self: StatusStore[JobStatus],
        storage: JobStorage,
        *,
        locate: Locate = ...,
        clock: Callable[[], datetime | None] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        storage: JobStorage,
        status_class: type[S],
        *,
        locate: Locate = ...,
        clock: Callable[[], datetime | None] | None = None,
    ) -> None: ...
    def __init__(
        self,
        storage: JobStorage,
        status_class: type[Any] = JobStatus,
        *,
        locate: Locate | None = None,
        clock: Callable[[], datetime | None] | None = None,
    ) -> None:
        self.storage = storage
        self.status_class: type[S] = status_class
        self.locate = locate or under_job_dir("jobs")
        self.clock = clock or utc_now

    @property
    def min_write_interval(self) -> float:
        """The seconds that the storage wants between two writes of one file; 0.0 where it doesn't say."""
        return float(getattr(self.storage, "min_write_interval", 0.0))

    def get(self, job_id: str) -> S:
        """The status last saved.

        Raises `StatusNotFound` if none was, `StatusUnavailable` if the storage can't tell, and `StatusCorrupt` if
        the file isn't a status. A file without ``job_id`` has it filled in.
        """
        return self.read(job_id)[0]

    def read(self, job_id: str) -> tuple[S, str]:
        """As `get`, with the version of the file, for `save`'s ``if_version``."""
        status, file = self.read_file(job_id)
        return status, file.version

    def read_file(self, job_id: str) -> tuple[S, StoredFile]:
        """As `get`, with the file itself, whose bytes are the record exactly as it was stored."""
        job_id = ids.sanitize(job_id)
        name = self.locate(job_id)
        try:
            file = self.storage.read(name)
        except FileNotFoundError as error:
            raise StatusNotFound(f"No status is recorded for job {job_id}.") from error
        except StorageUnavailable as error:
            raise StatusUnavailable(f"The status of job {job_id} can't be read: {error}") from error
        return self.decode(job_id, file.data, file.version), file

    def decode(self, job_id: str, data: bytes, version: str | None = None) -> S:
        """The status that ``data`` holds, as `read` gives it; for bytes that were kept elsewhere, as in a cache."""
        try:
            status = codec.decode(data, self.status_class)
        except StatusCorrupt as error:
            raise StatusCorrupt(
                f"The status file of job {job_id} is damaged: {error}", kind=error.kind, version=version
            ) from error
        status.job_id = status.job_id or job_id
        return status

    def save(self, job_id: str, status: S, *, if_version: IfVersion = ANY) -> str:
        """Write the status with its ID and the time stamped in, and return the file's new version.

        ``status`` itself isn't changed. Raises `StatusNotEncodable` if it holds what a file can't,
        `StatusUnavailable` if the storage fails, and `VersionConflict` if the file isn't in the version that
        ``if_version`` expects; nothing was written then.
        """
        job_id = ids.sanitize(job_id)
        name = self.locate(job_id)
        stamped = status.clone()
        stamped.job_id = job_id
        stamped.updated_at = self.clock()
        data = codec.encode(stamped)
        try:
            try:
                version = self.storage.write(name, data, if_version=if_version)
            except VersionConflict as conflict:
                version = self._version_if_ours(name, data, conflict)
        except StorageUnavailable as error:
            raise StatusUnavailable(f"The status of job {job_id} can't be written: {error}") from error
        self.saved(job_id, stamped)
        return version

    def delete(self, job_id: str) -> None:
        """Remove the status file. Nothing happens if there is none; raises `StatusUnavailable` if it can't be told."""
        job_id = ids.sanitize(job_id)
        try:
            self.storage.delete(self.locate(job_id))
        except StorageUnavailable as error:
            raise StatusUnavailable(f"The status of job {job_id} can't be deleted: {error}") from error
        self.deleted(job_id)

    def saved(self, job_id: str, status: S) -> None:
        """Called after each save with what was written; does nothing. A subclass may tell others."""

    def deleted(self, job_id: str) -> None:
        """Called after each delete; does nothing. A subclass may tell others."""

    async def aget(self, job_id: str) -> S:
        """`get`, in a thread of its own."""
        return await asyncio.to_thread(self.get, job_id)

    async def asave(self, job_id: str, status: S, *, if_version: IfVersion = ANY) -> str:
        """`save`, in a thread of its own."""
        return await asyncio.to_thread(self.save, job_id, status, if_version=if_version)

    async def adelete(self, job_id: str) -> None:
        """`delete`, in a thread of its own."""
        await asyncio.to_thread(self.delete, job_id)

    def _version_if_ours(self, name: str, data: bytes, conflict: VersionConflict) -> str:
        """The version of our own write, where only its answer was lost and the repeated request met it.

        Only where the storage isn't certain: two workers whose records happen to be the same bytes must not both
        count as the writer.
        """
        if conflict.certain:
            raise conflict
        try:
            file = self.storage.read(name)
        except FileNotFoundError:
            raise conflict from None
        if file.data != data:
            raise conflict
        return file.version
