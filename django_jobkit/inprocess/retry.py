"""A job that is tried again when it fails, after waits that get longer.

The waits are `tenacity`'s; this module adds that they end when the job is cancelled.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

import tenacity
from tenacity.wait import wait_base

from django_jobkit.exceptions import JobCancelled, PermanentJobError

from .calls import call
from .cancellation import current_cancellation

# Seconds before the second attempt; a function of the number of attempts that failed; or any tenacity wait.
Backoff = float | Callable[[int], float] | wait_base
RetryOn = type[Exception] | tuple[type[Exception], ...] | Callable[[BaseException], bool]

_logger = logging.getLogger(__name__)


def linear(first: float = 1.0, step: float = 1.0, *, maximum: float = 60.0, jitter: float = 0.5) -> wait_base:
    """Waits that grow by the same amount: with the defaults 1, 2, 3, 4 … 60 seconds, and up to 0.5 s more each.

    ``first``, ``step`` and ``maximum`` are in seconds. ``jitter`` is how much of a step, from 0 to 1, is added at
    random (after ``maximum`` is applied), so that jobs that failed together don't all come back together; up to 1 no
    wait is shorter than the one before, below ``maximum``. Raises ValueError for values that don't grow.
    """
    _check(first >= 0 and step > 0 and maximum >= first and 0 <= jitter <= 1, "linear", first, step, maximum, jitter)
    return tenacity.wait_incrementing(first, step, maximum) + tenacity.wait_random(0, jitter * step)


def exponential(first: float = 1.0, factor: float = 2.0, *, maximum: float = 60.0, jitter: float = 0.5) -> wait_base:
    """Waits that grow by the same factor: with the defaults 1, 2, 4, 8, 16, 32, 60 seconds, and up to 0.5 s more each.

    ``first`` and ``maximum`` are in seconds. ``jitter`` is how much of the first growth (``first * (factor - 1)``),
    from 0 to 1, is added at random, as with `linear`. Raises ValueError for values that don't grow.
    """
    _check(
        first >= 0 and factor > 1 and maximum >= first and 0 <= jitter <= 1,
        "exponential",
        first,
        factor,
        maximum,
        jitter,
    )
    growth = first * (factor - 1)
    return tenacity.wait_exponential(first, maximum, factor) + tenacity.wait_random(0, jitter * growth)


def with_retry(
    job: Callable[[], object],
    attempts: int,
    backoff: Backoff,
    *,
    on: RetryOn = Exception,
    logger: logging.Logger | None = None,
) -> Callable[[], object]:
    """A job that calls ``job`` up to ``attempts`` times in all, until one call raises nothing.

    ``backoff`` gives the waits: `linear(...)`, `exponential(...)`, any other wait of `tenacity`, a function of the
    number of attempts that have failed so far, or a number of seconds, short for ``exponential(that)``.
    ``on`` says which errors are worth another attempt: a class, a tuple of them, or a predicate. `PermanentJobError`,
    `JobCancelled` and what isn't an `Exception` (``SystemExit``) never are, whatever it says.

    The last error is raised as it was. So it is, at once and without another attempt, when the job is cancelled
    before or during a wait. The worker is kept through the waits. Each failed attempt but the last is logged as a
    warning in one line. The returned job may be run any number of times, also at the same time.
    Raises ValueError if ``attempts`` is less than 1.
    """
    if attempts < 1:
        raise ValueError(f"attempts must be at least 1, not {attempts}.")
    wait = _as_wait(backoff)
    worth_it = tenacity.retry_if_exception(_as_predicate(on))
    log = logger or _logger

    def pause(state: tenacity.RetryCallState) -> None:
        # Here and not in tenacity's `sleep`, after which it makes the next attempt whatever happened meanwhile.
        error = state.outcome.exception() if state.outcome else None
        cancellation = current_cancellation()
        if not cancellation.cancelled:
            log.warning(
                "Attempt %d of %d of job %r failed; the next one is in %.2f s: %r",
                *(state.attempt_number, attempts, job, state.upcoming_sleep, error),
            )
        if cancellation.wait(state.upcoming_sleep) and error is not None:
            raise error

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(attempts),
        wait=wait,
        retry=worth_it,
        before_sleep=pause,
        sleep=lambda seconds: None,
        reraise=True,
    )

    @functools.wraps(job)
    def run() -> object:
        return retrying.copy()(call, job)

    return run


def _as_wait(backoff: Backoff) -> wait_base:
    if isinstance(backoff, wait_base):
        return backoff
    if callable(backoff):
        return _Function(backoff)
    return exponential(backoff, maximum=max(60.0, backoff))


class _Function(wait_base):
    def __init__(self, seconds: Callable[[int], float]) -> None:
        self._seconds = seconds

    def __call__(self, retry_state: tenacity.RetryCallState) -> float:
        return self._seconds(retry_state.attempt_number)


def _as_predicate(on: RetryOn) -> Callable[[BaseException], bool]:
    def worth_it(error: BaseException) -> bool:
        if not isinstance(error, Exception) or isinstance(error, (PermanentJobError, JobCancelled)):
            return False
        return isinstance(error, on) if isinstance(on, (type, tuple)) else on(error)

    return worth_it


def _check(fine: bool, name: str, *values: float) -> None:
    if not fine:
        raise ValueError(f"{name}() doesn't grow, or has a jitter that isn't from 0 to 1: {values}.")
