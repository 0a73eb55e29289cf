"""Which jobs there are: one directory under the prefix is one job."""

from __future__ import annotations

from collections.abc import Callable

from . import ids
from .files import JobStorage


def collect(
    storage: JobStorage,
    prefix: str,
    *,
    keep: Callable[[str], bool] | None = None,
    valid_ids_only: bool = False,
) -> list[str]:
    """The names of the pseudo-directories directly under ``prefix``, each once, in no order that means anything.

    The storage answers one entry per job, however many files it has. Files directly under the prefix are no jobs.
    A job that died before its status was saved is listed too. ``keep`` and ``valid_ids_only`` (those that
    `ids.validate` accepts) leave some out. Raises ValueError for an empty prefix and `StorageUnavailable` when the
    listing fails: an outage is never an empty list. Sorting is the task of `select_ids`.
    """
    base = prefix.strip().strip("/")
    if not base:
        raise ValueError("The prefix that holds the job directories is empty.")
    found: dict[str, None] = {}
    for name in storage.list_dirs(base):
        if name in found or (valid_ids_only and not ids.is_valid(name)) or (keep is not None and not keep(name)):
            continue
        found[name] = None
    return list(found)
