"""Versions for storages that keep none of their own: the content says it."""

from __future__ import annotations

import hashlib

from django_jobkit.exceptions import VersionConflict
from django_jobkit.jobs.files import ABSENT, ANY, IfVersion


def content_version(data: bytes) -> str:
    """A text that two files share exactly when their bytes are equal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def require_version(name: str, if_version: IfVersion, current: str | None, *, certain: bool = True) -> None:
    """Raise `VersionConflict` unless ``current`` (None: no file) is what the write was conditional on."""
    if if_version is ANY:
        return
    if if_version is ABSENT:
        if current is not None:
            raise VersionConflict(f"{name} is already there", certain=certain)
    elif current is None:
        raise VersionConflict(f"{name} is gone", certain=certain)
    elif current != if_version:
        raise VersionConflict(f"{name} has been changed by another writer", certain=certain)
