"""Watching jobs of this process through the kit's signal, without asking the storage again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from queue import Empty, Queue
from types import TracebackType
from typing import Any, Final, Self

from django_jobkit.jobs import JobStatus, State
from django_jobkit.signals import status_saved

_PATIENCE: Final = 120.0


class JobWatch:
    """Hears of every status saved while it is entered."""

    def __init__(self) -> None:
        self._heard: Queue[tuple[str, JobStatus]] = Queue()

    def __enter__(self) -> Self:
        status_saved.connect(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        status_saved.disconnect(self._hear)

    def _hear(self, *, job_id: str, status: JobStatus, **_: Any) -> None:
        self._heard.put((job_id, status))

    def until_ended(self, job_ids: Iterable[str], say: Callable[[str], object]) -> Iterator[JobStatus]:
        """Yield the status of each of the jobs when it ends, and ``say`` what the others are doing meanwhile.

        Raises TimeoutError when nothing at all is heard for two minutes.
        """
        waiting = set(job_ids)
        while waiting:
            try:
                job_id, status = self._heard.get(timeout=_PATIENCE)
            except Empty:
                raise TimeoutError(f"{len(waiting)} jobs have given no sign of life for {_PATIENCE:.0f} s.") from None
            if job_id not in waiting:
                continue
            if status.state in (State.SUCCEEDED, State.FAILED):
                waiting.remove(job_id)
                yield status
            elif status.state == State.RUNNING:
                say(f"{status.title}: {status.progress_message or 'started'}")
