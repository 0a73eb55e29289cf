"""What the JSON is like, for programs: an OpenAPI document, which is also shipped as a static file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from .baseviews import JSONView
from .responses import json_body

PATH: Final = Path(__file__).parent.parent / "static" / "django_jobkit" / "openapi.json"


class OpenAPIView(JSONView):
    """The document, with the place that the request came by as its server."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        document = json.loads(PATH.read_bytes())
        document["servers"] = [{"url": self.links.history.rstrip("/") or "/"}]
        return json_body(json.dumps(document, ensure_ascii=False).encode())
