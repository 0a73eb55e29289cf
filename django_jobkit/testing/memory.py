"""A kit whose jobs are in memory: no other test sees them, and nothing is left of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from django.core.files.storage import InMemoryStorage

from django_jobkit import conf
from django_jobkit.conf import DEFAULT_ALIAS
from django_jobkit.jobs import StatusStore
from django_jobkit.kit import JobKit, SiteStore, jobkits
from django_jobkit.storages.memory import MemoryJobStorage
from django_jobkit.storages.owned_locks import storage_lock

from .eager import run_now
from .faults import FaultyStorage


@dataclass
class _Options:
    settings: Mapping[str, Any]  # in place of the site's own, which may change within the block
    storage: FaultyStorage
    clock: Callable[[], datetime] | None
    eager: bool
    raise_errors: bool


class MemoryKit(JobKit):
    """What ``jobkits[alias]`` is within `memory_kit`."""

    def __init__(self, alias: str, options: _Options) -> None:
        super().__init__(alias, conf.changed(alias, options.settings))
        self._options = options

    @property
    def storage(self) -> FaultyStorage:
        """Fails when told to, and counts calls."""
        return self._options.storage

    @property
    def django_storage(self) -> InMemoryStorage:
        return cast(InMemoryStorage, self.storage.storage)

    @cached_property
    def store(self) -> StatusStore[Any]:
        store = SiteStore(self)
        store.clock = self._options.clock or store.clock
        return store

    @property
    def files(self) -> dict[str, bytes]:
        """All files by their names in the storage, as ``jobs/<id>/chart.svg``. No call of the storage is counted."""
        inner = self.storage.inner
        with storage_lock(self.django_storage):  # a write is a delete and a save
            return {name: inner.read(name).data for name in sorted(_names(self.django_storage, ""))}

    def hand_over(self, task: Any, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if self._options.eager:
            run_now(task, job_id, args, kwargs, raise_errors=self._options.raise_errors)
        else:
            super().hand_over(task, job_id, args, kwargs)


@contextmanager
def memory_kit(
    alias: str = DEFAULT_ALIAS,
    *,
    clock: Callable[[], datetime] | None = None,
    eager: bool = False,
    raise_errors: bool = False,
    **kit_settings: Any,
) -> Iterator[MemoryKit]:
    """Within the block, the kit of this alias has an empty storage of its own, in memory, and no cache.

    A context manager and a decorator. ``kit_settings`` are those of ``JOBKIT[alias]``, in upper case; the site's
    own ones stand where none are given. ``clock`` stamps the records, as `FrozenClock` does. With ``eager``, jobs run
    within `JobKit.submit` (in a transaction: when that commits), one after another; a job's error is recorded and
    logged, and with ``raise_errors`` reaches the caller of ``submit``.

    It is ``jobkits[alias]`` that changes, for all threads: code that has kept a kit from before isn't met. Raises
    ImproperlyConfigured for wrong settings.
    """
    options = _Options({"CACHE": None, **kit_settings}, FaultyStorage(MemoryJobStorage()), clock, eager, raise_errors)
    # Not by override_settings: blocks of those have to end in the order in which they began, which fixtures can't.
    with jobkits.made_by(alias, lambda alias: MemoryKit(alias, options)):
        yield cast(MemoryKit, jobkits[alias])


def _names(storage: InMemoryStorage, directory: str) -> Iterator[str]:
    directories, files = storage.listdir(directory)
    below = f"{directory}/" if directory else ""
    yield from (below + name for name in files)
    for name in directories:
        yield from _names(storage, below + name)
