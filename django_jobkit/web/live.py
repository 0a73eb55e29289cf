"""A job that a page keeps up to date by itself: what the page is given at first, and the texts its script uses."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from ..access import Action
from ..exceptions import StatusUnavailable
from ..jobs import ids
from ..kit import JobKit, jobkits
from .display import STATES, UNITS, title_of
from .job_page import error_text
from .responses import HANDLED, answer_to


def etag_of(data: bytes) -> str:
    """The ETag of the JSON that is a record's bytes."""
    return f'"{hashlib.blake2b(data, digest_size=16).hexdigest()}"'


def job_on_page(request: HttpRequest | None, job_id: str, alias: str, namespace: str) -> dict[str, Any]:
    """The context of ``{% job_live %}``: empty for who may not see the job, ``problem`` where it can't be shown.

    One read of the storage. ``job_id`` is cleaned by `ids.sanitize`. A job that can't be read just now is watched all
    the same.
    """
    kit = jobkits[alias]
    if request is None or not _may(kit, request):
        return {}
    problem = ""
    try:
        job_id = ids.sanitize(job_id)
        status = kit.store.get(job_id)
    except StatusUnavailable as error:
        status = kit.status_class(job_id=job_id, state="")
        problem = str(answer_to(error).title)
    except HANDLED as error:
        return {"problem": str(answer_to(error).title)} if _may(kit, request, job_id) else {}
    if not _may(kit, request, job_id, None if problem else status):
        return {}
    namespace = namespace or ("jobkit" if alias == "default" else alias)
    return {
        "job": status,
        "job_title": title_of(job_id, status),
        "error": error_text(status.error),
        "problem": problem,
        "queued_after": kit.settings.queued_warning,
        "detail_url": reverse(f"{namespace}:detail", args=[job_id]),
        "live_url": "" if status.is_terminal else reverse(f"{namespace}:status", args=[job_id]),
    }


def _may(kit: JobKit, request: HttpRequest, *job: Any) -> bool:
    try:
        if not job:
            return kit.access.allows(request, Action.VIEW)
        return kit.access.allows_job(request, Action.VIEW, job[0], job[1] if job[1:] else None)
    except (PermissionDenied, *HANDLED):
        return False


def _group_separator() -> str:
    """What stands between groups of three digits, where the site's templates write numbers so; else empty."""
    text = str(formats.localize(1_234_567))
    separator = text[1]
    return separator if text == separator.join(["1", "234", "567"]) else ""


def script_texts() -> str:
    """What the script of the pages says, as JSON, in the current language and time zone."""
    zone = re.sub(r"^([+-]\d\d)(\d\d)$", r"\1:\2", timezone.get_current_timezone_name())
    today = timezone.localtime(datetime.now(UTC))
    days = [today + timedelta(days=n) for n in (-1, 0, 1)]
    texts = {
        "zone": zone,
        # The times that change are of today: these are written as the server writes them.
        "dates": {f"{day:%Y-%m-%d}": formats.date_format(day, "DATE_FORMAT") for day in days},
        "states": {str(state): str(label) for state, label in STATES.items()},
        "unknown": _("Unknown"),
        "group": _group_separator(),
        "units": [[size, text % {"count": "{count}"}] for size, text in UNITS],
        "of": _("%(current)s of %(total)s") % {"current": "{current}", "total": "{total}"},
        "after": _("after %(duration)s") % {"duration": "{duration}"},
        "runningFor": _("for %(duration)s") % {"duration": "{duration}"},
        "error": _("Error"),
        "lastError": _("Last error"),
        "stale": _("The site doesn’t answer. What you see is as of %(time)s.") % {"time": "{time}"},
        "gone": _("This job is no longer there."),
        "closed": _("You may not see this job any more. Load the page again to log in."),
    }
    return json.dumps(texts, ensure_ascii=False)
