"""The status shapes of the vectors, as a site would declare them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django_jobkit.jobs.status import Status, json_field


@dataclass(kw_only=True)
class OutputDirStatus(Status):
    output_dir: str = json_field("", omit="empty")


@dataclass(kw_only=True)
class Nested:
    name: str = json_field("", omit="never")
    ratio: float = json_field(0.0, omit="never")
    deep: Nested | None = json_field(None, omit="empty")


@dataclass(kw_only=True)
class RichStatus(Status):
    count: int = json_field(0, omit="never")
    count_omitempty: int = json_field(0, omit="empty")
    count_omitzero: int = json_field(0, omit="zero")
    flag: bool = json_field(False, omit="never")
    flag_omitempty: bool = json_field(False, omit="empty")
    flag_omitzero: bool = json_field(False, omit="zero")
    tags: list[str] | None = json_field(None, omit="never")
    tags_omitempty: list[str] | None = json_field(None, omit="empty")
    tags_omitzero: list[str] | None = json_field(None, omit="zero")
    labels: dict[str, str] | None = json_field(None, omit="never")
    labels_omitempty: dict[str, str] | None = json_field(None, omit="empty")
    metrics: Nested = json_field(None, omit="never")
    metrics_omitempty: Nested = json_field(None, omit="empty")
    metrics_omitzero: Nested = json_field(None, omit="zero")
    parent: Nested | None = json_field(None, omit="never")
    parent_omitempty: Nested | None = json_field(None, omit="empty")
    score: float = json_field(0.0, omit="never")
    blob_omitempty: bytes = json_field(b"", omit="empty")
    finished_at: datetime | None = json_field(None, omit="zero")


SHAPES = {"output_dir": OutputDirStatus, "rich": RichStatus}
