"""How an engine takes part in the runs it calls for; engines that only call the function need none of this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .jobs.swap import Saved

stop_requested: ContextVar[Callable[[], bool] | None] = ContextVar("jobkit_stop_requested", default=None)
"""Set by an engine around a run: whether it wants its jobs to end."""


class Engine:
    """An engine that takes part in the runs it calls for. Subclass it, and call the function within `engine_of`.

    Methods may be called from other threads than the run's. Only `starting` and `accept_result` may raise.
    """

    lease: float | None = None
    """Seconds; None for the kit's own LEASE."""

    @property
    def known(self) -> Saved[Any] | None:
        """The job's record as the engine has saved it; the start then costs no read, unless it has changed since."""
        return None

    def starting(self, next_: Any, prev: Any) -> None:
        """About to record the start over ``prev`` (None: there is no record), once for each try at saving.

        May add to ``next_``, which is saved. What is raised here reaches the engine; nothing is recorded then.
        """

    def started(self, status: Any) -> None:
        """The start has been recorded, as ``status``. Without a lease, the recording may have failed: None then."""

    def accept_result(self, result: Any) -> Any:
        """What to record of what the function returned. Raise what the job is to fail with, if it may not be that."""
        return result

    def ending(self, status: Any, error: BaseException | None) -> None:
        """About to record the end, once for each try at saving; may change ``status``, which is saved."""

    def ended(self, status: Any, error: BaseException | None, *, lost: bool) -> None:
        """The end has been recorded, as ``status``.

        None if it hasn't: either ``lost``, since the job isn't this worker's any more, or the storage failed.
        """


current_engine: ContextVar[tuple[str, Engine] | None] = ContextVar("jobkit_engine", default=None)


@contextmanager
def engine_of(job_id: str, engine: Engine) -> Iterator[None]:
    """Within the block, let ``engine`` take part in the run of this job, and of no other that is run on the way."""
    token = current_engine.set((job_id, engine))
    try:
        yield
    finally:
        current_engine.reset(token)
