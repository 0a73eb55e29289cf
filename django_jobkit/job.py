"""What the function of a job gets: `Job`, by which it says what it is doing."""

from __future__ import annotations

from typing import Any

from django.core.files.base import ContentFile, File

from .engines import stop_requested
from .exceptions import JobCancelled
from .jobs.run import Run
from .kit import JobKit


class Job:
    """A running job, as its function sees it. Its attributes may be set from any thread of the job.

    What is set here is recorded in the background, at most once per PROGRESS_INTERVAL, and with the job's end.
    """

    def __init__(self, kit: JobKit, job_id: str, attempt: int) -> None:
        self.kit = kit
        self.job_id = job_id
        self.attempt = attempt
        """1 for the first run of the job, 2 and more for retries."""
        self.outputs: list[str] = []
        """Names of the files made, relative to the job's directory."""
        self.result: Any = None
        self._title = ""
        self._current = 0
        self._total = 0
        self._message = ""
        self._run: Run[Any] | None = None
        self._stop = stop_requested.get()  # here, since the job's own threads have contexts of their own

    @property
    def title(self) -> str:
        """What the job is about, for people; set it as soon as it is known."""
        return self._title

    @title.setter
    def title(self, value: str) -> None:
        self._title = value
        if self._run is not None:
            self._run.touch()

    def progress(self, current: int, total: int | None = None, message: str | None = None) -> None:
        """Say how far the job is. May be called as often as one likes: it neither writes nor waits nor fails.

        ``total`` and ``message`` stay as they were where they aren't given. The latest values are recorded within
        PROGRESS_INTERVAL seconds, by a thread of the run's own, which renews the lease with them.
        """
        self._current = current
        if total is not None:
            self._total = total
        if message is not None:
            self._message = message
        run = self._run
        if run is not None and not run.dirty:
            run.touch()

    def save_output(self, name: str, content: bytes | str | File[Any]) -> str:
        """Write a file into the job's directory, list it in ``outputs``, and return its name.

        ``name`` is relative to the job's directory; a file of that name, as of an earlier attempt, is replaced.
        Raises ValueError for a name that would lead out of it, and what the storage raises.
        """
        path = self.kit.output_name(self.job_id, name)
        data = (
            content.encode() if isinstance(content, str) else content.read() if isinstance(content, File) else content
        )
        if isinstance(data, str):
            data = data.encode()
        self.kit.storage.write(path, data)
        if name not in self.outputs:
            self.outputs.append(name)
        return name

    def read_file(self, name: str) -> ContentFile[bytes]:
        """A file of the job's directory, as one that was stored there when the job was submitted."""
        return ContentFile(self.kit.storage.read(self.kit.output_name(self.job_id, name)).data, name=name)

    @property
    def cancelled(self) -> bool:
        """Whether the job is to end: its lease is lost, it was deleted, or its queue is stopping. Look often."""
        return (self._run is not None and self._run.lost.is_set()) or (self._stop is not None and self._stop())

    def check_cancelled(self) -> None:
        """Raise `JobCancelled` if the job is `cancelled`."""
        if self.cancelled:
            raise JobCancelled("The job was told to end before it was done.")

    def belongs_to(self, run: Run[Any]) -> None:
        """Called by the tracker, once the start has been recorded."""
        self._run = run

    def write_into(self, status: Any) -> None:
        """Called by the tracker's threads: put what is known of the job by now into its record."""
        values = {
            "title": _text(self._title) or status.title,
            "progress_current": _count(self._current),
            "progress_total": _count(self._total),
            "progress_message": _text(self._message),
            "outputs": [_text(name) for name in self.outputs],
        }
        for name, value in values.items():
            if hasattr(status, name):
                setattr(status, name, value)


def _count(value: Any) -> int:
    """A number that a status file can hold; 0 for what is none."""
    try:
        return max(min(int(value), 2**63 - 1), -(2**63))
    except (TypeError, ValueError, OverflowError):
        return 0


def _text(value: object) -> str:
    """Text that a status file can hold."""
    return str(value).encode("utf-8", "replace").decode("utf-8")
