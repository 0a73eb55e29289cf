"""The view that hands out a job's outputs, to those who may see the job."""

from __future__ import annotations

import mimetypes
import posixpath
from http import HTTPStatus
from typing import Any, Final

from django.core.files import File
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.http import content_disposition_header

from ..jobs.files import content_type
from .baseviews import PageView
from .byte_ranges import Unsatisfiable, part_asked_for
from .outputs import names_of, open_output, signed_url, storage_name
from .responses import Answer, NoSuchOutput, OutputGone
from .streaming import Pieces, StreamedFile

POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
"""For a document that strangers may have written: it is shown as of no site, and runs and loads nothing.

Middleware that sets this header for all pages has to leave one that is there, as Django's own does.
"""

PLAYER_POLICY: Final = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; img-src data:"
"""For sound and films: the page that a browser makes for its player may load them, as a sandbox would not let it."""

_PLAYED_KINDS: Final = ("audio/", "video/")
_SHOWN_KINDS: Final = ("image/", *_PLAYED_KINDS)
_SHOWN_TYPES: Final = {
    *("text/plain", "text/csv", "text/tab-separated-values", "text/markdown", "application/json", "application/pdf"),
}
# No page is to find a script or a style here, not even one under a policy that allows the site's own.
_PLAIN_TYPES: Final = {"text/css", "text/javascript", "application/javascript", "application/x-javascript"}


class JobOutputView(PageView):
    """A file that the job's record lists in ``outputs``; any other name is 404, whether there is such a file or not.

    Where the storage signs its URLs, this leads to one. Otherwise the file comes through the storage's ``open``, a
    piece at a time. Text, images, sound, films, JSON and PDFs are shown; other types, HTML among them, are for saving.
    A part of a file can be asked for by ``Range``, as players do: one range, of a file that can be sought in.

    Not in the OpenAPI document: its paths answer in JSON, and take no parameter with slashes. Programs with a token
    find files here all the same.
    """

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        status, _file = self.read_job()
        name: str = kwargs["name"]
        path = storage_name(self.kit, self.job_id, name) if name in names_of(status) else ""
        if not path:
            raise NoSuchOutput(name)
        if url := signed_url(self.kit, path):
            return HttpResponseRedirect(url)
        try:
            file, size = open_output(self.kit, self.job_id, path)
        except FileNotFoundError as error:
            raise OutputGone(name) from error
        return _answer(request, file, size, headers_for(name))

    def about(self, answer: Answer, error: Exception) -> dict[str, Any]:
        about = super().about(answer, error)
        if isinstance(error, NoSuchOutput | OutputGone):
            about["job_url"] = self.links.to("detail", self.job_id)
        return about


def headers_for(name: str) -> dict[str, str]:
    """What a browser is told of an output of this name, so that it shows it harmlessly or saves it."""
    base = posixpath.basename(name)
    media_type = _media_type(base)
    shown = media_type in _SHOWN_TYPES or media_type.startswith(_SHOWN_KINDS)
    is_text = media_type.startswith("text/") or media_type == "application/json"
    headers = {
        "Content-Type": f"{media_type}; charset=utf-8" if is_text else media_type,
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": PLAYER_POLICY if media_type.startswith(_PLAYED_KINDS) else POLICY,
    }
    if disposition := content_disposition_header(as_attachment=not shown, filename=base):
        headers["Content-Disposition"] = disposition
    return headers


def _media_type(name: str) -> str:
    if mimetypes.guess_type(name)[1]:
        return "application/octet-stream"  # report.csv.gz is no CSV
    media_type = content_type(name).partition(";")[0]
    return "text/plain" if media_type in _PLAIN_TYPES else media_type


def _answer(request: HttpRequest, file: File[Any], size: int | None, headers: dict[str, str]) -> HttpResponseBase:
    """Closes the file, if not at once then with the response."""
    part = None if size is None else range(size)
    status = HTTPStatus.OK
    if part is not None:
        headers["Accept-Ranges"] = "bytes"
        # RFC 9110, 14.2: for GET only. If-Range would name a version of the file, and none is ever given out.
        if request.method == "GET" and "If-Range" not in request.headers:
            try:
                asked_for = part_asked_for(request.headers.get("Range", ""), len(part))
            except Unsatisfiable:
                file.close()
                return HttpResponse(
                    status=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers={"Content-Range": f"bytes */{size}"}
                )
            if asked_for is not None:
                part = asked_for
                status = HTTPStatus.PARTIAL_CONTENT
                headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{size}"
                # Else GZipMiddleware would pack the part, and who joins it to others would get nonsense.
                headers["Content-Encoding"] = "identity"
        headers["Content-Length"] = str(len(part))
    if request.method == "HEAD":
        file.close()
        return HttpResponse(status=status, headers=headers)
    return StreamedFile(Pieces(file, part), status, headers)
