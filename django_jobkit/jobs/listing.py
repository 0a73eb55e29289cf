"""Which jobs there are: one directory under the prefix is one job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import ids
from .files import JobStorage


def iterate(
    storage: JobStorage,
    prefix: str,
    *,
    keep: Callable[[str], bool] | None = None,
    valid_ids_only: bool = False,
) -> Iterator[str]:
    """Yield the names of the pseudo-directories directly under ``prefix``, each once, in no order that means anything.

    The storage answers one entry per job, however many files it has. Files directly under the prefix are no jobs.
    A job that died before its status was saved is listed too. ``keep`` and ``valid_ids_only`` (those that
    `ids.validate` accepts) leave some out. Raises ValueError for an empty prefix, at once, and `StorageUnavailable`
    when the listing fails, maybe while iterating: an outage is never an empty list. Sorting is for `select_ids`.
    """
    base = prefix.strip().strip("/")
    if not base:
        raise ValueError("The prefix that holds the job directories is empty.")
    return _names(storage, base, keep, valid_ids_only)


def collect(
    storage: JobStorage,
    prefix: str,
    *,
    keep: Callable[[str], bool] | None = None,
    valid_ids_only: bool = False,
) -> list[str]:
    """`iterate`, as a list."""
    return list(iterate(storage, prefix, keep=keep, valid_ids_only=valid_ids_only))


def _names(storage: JobStorage, base: str, keep: Callable[[str], bool] | None, valid_ids_only: bool) -> Iterator[str]:
    seen: set[str] = set()
    for name in storage.list_dirs(base):
        if name in seen or (valid_ids_only and not ids.is_valid(name)) or (keep is not None and not keep(name)):
            continue
        seen.add(name)
        yield name
