"""Statuses as the vectors spell them."""

from __future__ import annotations

import base64
import re
from typing import Any

from django_jobkit.jobs import rfc3339
from django_jobkit.jobs.status import Status
from tests.jobs.shapes import SHAPES, Nested
from tests.vectors import text

TIMES = ("queued_at", "updated_at", "finished_at")


def time(value: str | None):
    """The vector's time, cut to the microseconds that Python keeps."""
    return None if value is None else rfc3339.parse(value)


def has_nanoseconds(value: Any) -> bool:
    """Whether a time has digits that Python's datetime can't keep."""
    return isinstance(value, str) and re.search(r"\.\d{6}\d", value) is not None


def status(record: dict[str, Any], shape: str = "output_dir") -> Status:
    """The status that a vector's ``status``, ``next`` or ``record`` describes."""
    names = {key.removesuffix("_b64") for key in record}
    values = {name: text(record, name) for name in names}
    for name in TIMES:
        if name in values:
            values[name] = time(values[name])
    for name in ("metrics", "metrics_omitempty", "metrics_omitzero", "parent", "parent_omitempty"):
        if name in values:
            values[name] = nested(values[name])
    if isinstance(values.get("score"), str):
        values["score"] = float(values["score"])
    if "blob_omitempty" in values:
        values["blob_omitempty"] = base64.b64decode(values["blob_omitempty"] or "")
    return SHAPES[shape](**values)


def nested(value: dict[str, Any] | None) -> Nested | None:
    if value is None:
        return None
    return Nested(name=value["name"], ratio=value["ratio"], deep=nested(value["deep"]))
