"""A job with outputs, and what one gets of them."""

from __future__ import annotations

from django.core.files.base import ContentFile
from django.urls import reverse

from tests.web.conftest import JOB_ID, put

TEXT = b"0123456789"


def url(name: str = "a.txt", job_id: str = JOB_ID) -> str:
    return reverse("jobkit:output", args=[job_id, name])


def made(kit, *names: str, data: bytes = TEXT, **fields) -> None:
    """Record a job with these outputs, and save their files."""
    put(kit, outputs=list(names), **fields)
    for name in names:
        kit.django_storage.save(kit.output_name(JOB_ID, name), ContentFile(data))


def body(response) -> bytes:
    data = b"".join(response)
    response.close()
    return data
