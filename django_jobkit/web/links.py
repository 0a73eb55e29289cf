"""The kit's URLs, and links between them that stay under the prefix the request came in by.

`reverse` alone can't promise that: a site may include the URLs several times, under one namespace or with parts of
the prefix captured (``teams/<slug>/jobs/``). The prefix is what remains of the request's own path.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from urllib.parse import quote

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.encoding import escape_uri_path
from django.utils.http import escape_leading_slashes

APP_NAME: Final = "jobkit"

ROUTES: Final = {
    "history": "",
    "delete-selected": "-/delete-selected/",
    "queue": "-/queue/",
    "api-list": "-/api/",
    "api-queue": "-/api/-/queue/",
    "openapi": "-/api/openapi.json",
    "api-job": "-/api/{job_id}/",
    "detail": "{job_id}/",
    "status": "{job_id}/status/",
    "delete": "{job_id}/delete/",
    "retry": "{job_id}/retry/",
    "output": "{job_id}/outputs/{name}",
}
"""Below the prefix, by name. No job ID begins with ``-``, so that fixed paths below ``-/`` never hide a job."""

RELOAD: Final = "reload"
"""The one parameter that a job's page has for itself."""

_WITH_LIST: Final = frozenset({"history", "delete-selected", "detail", "delete", "retry"})
"""Their query is that of the history, as the reader has left it: its filters and its page."""


class Links:
    """Makes the URLs that a page shows. ``list_query`` (``?…``, or empty) is what the reader's list was asked for."""

    def __init__(self, request: HttpRequest) -> None:
        self.prefix: str | None = None
        self.list_query = ""
        match = request.resolver_match
        if match is not None and match.app_names[-1:] == [APP_NAME] and match.url_name in ROUTES:
            parts = {part: match.kwargs.get(part, "") for part in ("job_id", "name")}
            own = ROUTES[match.url_name].format(**parts)
            # The slashes: where the site's own prefix takes any text, "//elsewhere/" would be another host's URL.
            self.prefix = escape_leading_slashes(escape_uri_path(request.path.removesuffix(own)))
            if match.url_name in _WITH_LIST:
                query = request.GET.copy()
                query.pop(RELOAD, None)
                self.list_query = f"?{query.urlencode()}" if query else ""

    def to(self, name: str, job_id: str = "", output: str = "") -> str:
        """The URL of this name, for a valid job ID and the name of an output where it has them.

        For a view that the site has mapped by itself, outside the kit's URL conf, it is that of the ``jobkit``
        namespace, or else in the admin; raises NoReverseMatch if there is neither.
        """
        if self.prefix is not None:
            return self.prefix + ROUTES[name].format(job_id=job_id, name=quote(output))
        args = [value for part, value in (("job_id", job_id), ("name", output)) if f"{{{part}}}" in ROUTES[name]]
        try:
            return reverse(f"{APP_NAME}:{name}", args=args)
        except NoReverseMatch:
            with suppress(NoReverseMatch):
                return reverse(f"admin:{APP_NAME}:{name}", args=args)
            raise

    def to_job(self, name: str, job_id: str) -> str:
        """As `to`, and from there back to the reader's list."""
        return self.to(name, job_id) + self.list_query

    @property
    def history(self) -> str:
        """All jobs; for templates."""
        return self.to("history")

    @property
    def list(self) -> str:
        """The history as the reader has left it; for templates."""
        return self.history + self.list_query
