"""From errors to answers: each error class has one status code, one word and one text, on pages and in JSON alike.

The texts are the kit's own. What a storage said may hold its address or the name of a bucket, so that goes to the
log only.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.utils.translation import gettext_lazy as _

from ..exceptions import (
    AccountRefused,
    InvalidJobID,
    JobExists,
    JobKitError,
    KeysUnavailable,
    PageLoadTimeout,
    QueueFull,
    QueueStopped,
    StatusCorrupt,
    StatusNotFound,
    StatusUnavailable,
    StorageMisconfigured,
    StorageUnavailable,
    TokenRefused,
)
from .history_filters import InvalidFilter
from .page_query import NotANumber

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

RETRY_AFTER_SECONDS: Final = 10

logger = logging.getLogger("django_jobkit.views")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request that fails is told. ``code`` is for machines and stays the same in every language."""

    status: int
    code: str
    title: str | _StrPromise
    text: str | _StrPromise
    retry_after: int | None = None


NOT_LOGGED_IN: Final = Answer(401, "not_authenticated", _("Log in first"), _("Log in to see these jobs."))
METHOD_NOT_ALLOWED: Final = Answer(
    405, "method_not_allowed", _("Not possible"), _("This URL can't be asked to do that.")
)


class CsrfFailed(Exception):
    """The request may have been forged by another site's page."""


class NotAnObject(Exception):
    """The request's body should be a JSON object and isn't."""


class NoSuchOutput(Exception):
    """The job's record names no such output."""


class OutputGone(Exception):
    """The job's record names an output whose file isn't there."""


class NotRetriable(Exception):
    """The job hasn't ended, or the site has nothing that retries jobs."""


_NOT_ALLOWED: Final = Answer(403, "forbidden", _("Not allowed"), _("Your account has no permission to do this."))
_OUTAGE: Final = _("Jobs can’t be read just now")

# The first class that an error is an instance of counts.
_ANSWERS: Final[list[tuple[type[Exception], Answer]]] = [
    (PermissionDenied, _NOT_ALLOWED),
    (AccountRefused, _NOT_ALLOWED),
    (
        TokenRefused,
        Answer(
            401,
            "invalid_token",
            _("Token refused"),
            _("The identity token that came with the request isn’t valid here."),
        ),
    ),
    (
        KeysUnavailable,
        Answer(
            503,
            "unavailable",
            _("Can’t find out who you are just now"),
            _("The keys that identity tokens are signed with can’t be fetched. Try again in a moment."),
            retry_after=RETRY_AFTER_SECONDS,
        ),
    ),
    (
        CsrfFailed,
        Answer(403, "csrf_failed", _("Not allowed"), _("The request has no valid CSRF token. Send it as X-CSRFToken.")),
    ),
    (
        NotANumber,
        Answer(400, "invalid_parameter", _("Not a number"), _("“page” and “per_page” have to be whole numbers.")),
    ),
    (InvalidFilter, Answer(400, "invalid_parameter", _("Not a filter"), _("A filter has a value that it can’t have."))),
    (
        NotRetriable,
        Answer(409, "not_retriable", _("Not to be retried"), _("This job can’t be retried, or not while it runs.")),
    ),
    (
        InvalidJobID,
        Answer(
            400,
            "invalid_job_id",
            _("Not a job ID"),
            _(
                "A job ID has ASCII letters, digits, “-” and “_” only, begins with a letter or a digit, and has at "
                "most 128 bytes."
            ),
        ),
    ),
    (
        NotAnObject,
        Answer(400, "invalid_json", _("Not JSON"), _("The body of the request has to be a JSON object.")),
    ),
    (StatusNotFound, Answer(404, "not_found", _("No such job"), _("There is no job with this ID."))),
    (NoSuchOutput, Answer(404, "not_found", _("No such output"), _("This job has no output of this name."))),
    (
        OutputGone,
        Answer(
            404,
            "not_found",
            _("This output is gone"),
            _("The job’s record names this output, but its file isn’t there any more."),
        ),
    ),
    (
        StatusCorrupt,
        Answer(
            500,
            "corrupt",
            _("This job’s record is damaged"),
            _("The record is there, but it can’t be read as one. Somebody has to mend or delete it."),
        ),
    ),
    (
        JobExists,
        Answer(409, "job_exists", _("There is such a job"), _("A job under this ID is waiting or running already.")),
    ),
    (
        QueueFull,
        Answer(
            429,
            "queue_full",
            _("Too many jobs are waiting"),
            _("The queue takes no more jobs just now. Nothing has been submitted: try again in a moment."),
            retry_after=RETRY_AFTER_SECONDS,
        ),
    ),
    (
        QueueStopped,
        Answer(
            503,
            "queue_stopped",
            _("The site is being restarted"),
            _("The queue takes no more jobs just now. Nothing has been submitted: try again in a moment."),
            retry_after=RETRY_AFTER_SECONDS,
        ),
    ),
    (
        StorageMisconfigured,
        Answer(
            503,
            "misconfigured",
            _OUTAGE,
            _("The storage that holds the jobs is set up wrongly. The site’s log says how."),
            retry_after=RETRY_AFTER_SECONDS,
        ),
    ),
    *(
        (
            error_class,
            Answer(
                503,
                "unavailable",
                _OUTAGE,
                _("The storage that holds the jobs doesn’t answer as it should. Try again in a moment."),
                retry_after=RETRY_AFTER_SECONDS,
            ),
        )
        for error_class in (StatusUnavailable, StorageUnavailable, PageLoadTimeout)
    ),
]

HANDLED: Final = (
    *(PermissionDenied, CsrfFailed, NotANumber, InvalidFilter, NotAnObject, NoSuchOutput, OutputGone, NotRetriable),
    JobKitError,
)
"""What views turn into an answer; one of the kit's errors that has none is raised again."""

DAMAGES: Final[dict[str, _StrPromise]] = {
    "truncated": _("The file ends too early."),
    "not_json": _("The file is not JSON."),
    "bad_escape": _("A text in it has a broken escape."),
    "invalid_utf8": _("A text in it is not UTF-8."),
    "duplicate_key": _("A name stands in it twice."),
    "trailing_data": _("Something follows after its end."),
    "too_deep": _("It is nested too deeply."),
    "wrong_type": _("A field holds a value of the wrong kind."),
    "not_an_integer": _("A field that counts holds no whole number."),
    "out_of_range": _("A number in it is too large."),
    "bad_time": _("A time in it is not written as RFC 3339 wants."),
}
"""What is wrong with a record, by `StatusCorrupt.kind`."""


def answer_to(error: Exception) -> Answer:
    """The answer for an error, logging what it hides where a person may have to look. Raises ``error`` if none is."""
    for error_class, answer in _ANSWERS:
        if isinstance(error, error_class):
            if answer.status >= 500 and not isinstance(error, QueueStopped):  # that is no trouble
                logger.log(logging.ERROR if answer.status == 500 else logging.WARNING, "%s", error, exc_info=error)
            return answer
    raise error


def about_error(error: Exception) -> dict[str, str]:
    """What the JSON says of an error besides its answer: ``kind`` of damage, or ``parameter`` that is wrong."""
    if isinstance(error, StatusCorrupt):
        return {"kind": error.kind}
    if isinstance(error, InvalidFilter):
        return {"parameter": error.name, "message": error.message}
    if isinstance(error, NotANumber):
        return {"parameter": str(error.args[0])}
    return {}


def json_body(body: bytes, status: int = 200) -> HttpResponse:
    """A JSON response that no cache keeps and no browser takes for anything else."""
    response = HttpResponse(body, status=status, content_type="application/json")
    # "private", too: until 5.2.9 or so, that is all that keeps Django's own UpdateCacheMiddleware from storing it.
    response["Cache-Control"] = "private, no-store"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def json_error(answer: Answer, **more: str) -> HttpResponse:
    """``{"error": {"code": …, "message": …}}``, with ``more`` beside them."""
    error = {"code": answer.code, "message": str(answer.text), **more}
    return with_retry(json_body(json.dumps({"error": error}, ensure_ascii=False).encode(), answer.status), answer)


def with_retry(response: HttpResponse, answer: Answer) -> HttpResponse:
    if answer.retry_after is not None:
        response["Retry-After"] = str(answer.retry_after)
    return response
