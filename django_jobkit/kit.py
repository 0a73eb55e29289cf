"""Puts the parts together for one alias of ``settings.JOBKIT``: `jobkits["default"]`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import Storage, storages
from django.core.signals import setting_changed
from django.utils.connection import ConnectionProxy
from django.utils.module_loading import import_string

from . import conf, signals, submission
from .jobs import IDListCache, JobHistory, Recorder, Status, StatusStore, TTLCache, ids
from .jobs.cachecalls import Cache
from .jobs.files import ABSENT, ANY, IfVersion, JobStorage
from .jobs.guard import GuardedCache
from .jobs.store import under_job_dir
from .storages import from_settings

if TYPE_CHECKING:
    from django.http import HttpRequest

    from .access import Access


class JobKit:
    """The parts of one alias, each made on first use and then kept. Safe to share between threads.

    ``store`` sends the signals and keeps the caches true; ``storage`` is the contract's view of ``django_storage``.
    """

    def __init__(self, alias: str, settings: conf.KitSettings | None = None) -> None:
        self.alias = alias
        self.settings = settings or conf.get(alias)
        self.prefix = self.settings.prefix.strip().strip("/")

    def __repr__(self) -> str:
        return f"<JobKit {self.alias!r}>"

    @cached_property
    def django_storage(self) -> Storage:
        return storages[self.settings.storage]

    @cached_property
    def storage(self) -> JobStorage:
        return from_settings(
            self.settings.storage, timeout=self.settings.timeout, concurrency=self.settings.concurrency
        )

    @cached_property
    def status_class(self) -> type[Status]:
        found = self.imported("STATUS_CLASS")
        if not (isinstance(found, type) and issubclass(found, Status)):
            raise ImproperlyConfigured(f"{self.name_of('STATUS_CLASS')} is {found!r}, which is no subclass of Status.")
        return found

    @cached_property
    def store(self) -> StatusStore[Any]:
        return SiteStore(self)

    @cached_property
    def recorder(self) -> Recorder[Any]:
        """A recorder without a lease, for submitting and for simple workers."""
        return Recorder(self.store)

    @cached_property
    def cache(self) -> GuardedCache:
        """The guard that both caches share, so that a failing server is found out once."""
        alias = self.settings.cache
        cache = None if alias is None else cast(Cache, ConnectionProxy(caches, alias))
        return GuardedCache(cache, retry_after=self.settings.cache_retry)

    @cached_property
    def metadata_cache(self) -> TTLCache[Any]:
        return TTLCache(self.cache, self.settings.metadata_ttl, namespace=f"jobkit:{self.alias}:row")

    @cached_property
    def ids_cache(self) -> IDListCache:
        return IDListCache(self.cache, self.settings.list_ttl, namespace=f"jobkit:{self.alias}:ids")

    @cached_property
    def history(self) -> JobHistory:
        return JobHistory(
            self.store,
            self.prefix,
            ids_cache=self.ids_cache,
            metadata_cache=self.metadata_cache,
            sort_key=self.imported("SORT_KEY"),
            load=self.imported("LOAD"),
            concurrency=self.settings.concurrency,
            timeout=self.settings.timeout,
            search_limit=self.settings.search_limit,
        )

    @cached_property
    def access(self) -> Access:
        """Who may see what: the one object that the views ask."""
        return cast("Access", self.imported("ACCESS")())

    @cached_property
    def retry(self) -> Callable[[str, Any, HttpRequest], str] | None:
        """The site's function that submits a job anew; None where it has none."""
        return cast("Callable[[str, Any, HttpRequest], str] | None", self.imported("RETRY"))

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> str:
        """`enqueue` a task with these arguments under a fresh ID, and return the ID."""
        return self.enqueue(task, args, kwargs)

    def enqueue(
        self,
        task: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        job_id: str | None = None,
        prefix: str = "",
        replace: bool = False,
        **fields: Any,
    ) -> str:
        """Record ``queued``, then hand the task to its engine with the job's ID as its first argument.

        ``task`` is a function that `tracked` wraps, as its engine knows it: a Django task, a Celery task, or a
        function that hands it over. ``prefix`` begins a fresh ID (default: the command); ``fields`` are those of the
        status (``title``, ``owner``, ``retry_of``, …). Returns the ID at once; within a transaction of the default
        database, the task is handed over when that commits, and after a rollback the job is ``failed``.

        Under an ID that is given, a job that has ended runs again; raises `JobExists` while it is queued or running,
        unless ``replace``. Raises `InvalidJobID`, `StatusUnavailable` when the record can't be written (nothing is
        handed over then), and whatever the engine raises: the job is ``failed`` then, with the reason.
        """
        return submission.submit(
            self, task, args, kwargs or {}, job_id=job_id, prefix=prefix, replace=replace, fields=fields
        )

    def hand_over(self, task: Any, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Give the recorded job to its task's engine. Raises what the engine does."""
        submission.hand_over(task, job_id, args, kwargs)

    def job_dir(self, job_id: str) -> str:
        """The storage name of the job's directory, ``PREFIX/{job_id}``. Raises `InvalidJobID`."""
        return f"{self.prefix}/{ids.sanitize(job_id)}"

    def output_name(self, job_id: str, name: str) -> str:
        """The storage name of one of the job's outputs.

        Raises ValueError for a name that would lead out of the job's directory: names come from files.
        """
        parts = name.split("/")
        if "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{name!a} is no name of a file in the job's directory.")
        return f"{self.job_dir(job_id)}/{name}"

    def imported(self, setting: str) -> Any:
        """What the dotted path in this setting names; None where it is None.

        Raises ImproperlyConfigured, naming the setting, if it can't be imported.
        """
        path = getattr(self.settings, setting.lower())
        if path is None:
            return None
        try:
            return import_string(path)
        except ImportError as error:
            raise ImproperlyConfigured(f"{self.name_of(setting)} = {path!r} can't be imported: {error}") from error

    def name_of(self, setting: str) -> str:
        """How the setting is written in settings.py, for messages."""
        return f"{conf.SETTING}[{self.alias!r}][{setting!r}]"


class SiteStore(StatusStore[Any]):
    """A kit's store: tells the caches and the other apps what was saved and deleted."""

    def __init__(self, kit: JobKit) -> None:
        super().__init__(kit.storage, kit.status_class, locate=under_job_dir(kit.prefix))
        self.kit = kit

    def save(self, job_id: str, status: Any, *, if_version: IfVersion = ANY) -> str:
        version = super().save(job_id, status, if_version=if_version)
        if if_version is ABSENT:  # a new job, as the recorder knows; others appear when the list's TTL ends
            self.kit.ids_cache.announce(self.kit.prefix, ids.sanitize(job_id))
        return version

    def saved(self, job_id: str, status: Any) -> None:
        self.kit.metadata_cache.delete(job_id)
        signals.status_saved.send_robust(type(status), kit=self.kit.alias, job_id=job_id, status=status)

    def deleted(self, job_id: str) -> None:
        self.kit.metadata_cache.delete(job_id)
        signals.status_deleted.send_robust(JobKit, kit=self.kit.alias, job_id=job_id)


class JobKits:
    """The site's kits by alias, each made on first use. Raises ImproperlyConfigured for an alias that isn't there."""

    def __init__(self) -> None:
        self._kits: dict[str, JobKit] = {}
        self._makers: dict[str, Callable[[str], JobKit]] = {}
        self._lock = threading.Lock()

    def __getitem__(self, alias: str) -> JobKit:
        if (known := self._kits.get(alias)) is not None:
            return known
        with self._lock:
            if (kit := self._kits.get(alias)) is None:
                kit = self._kits[alias] = self._makers.get(alias, JobKit)(alias)
            return kit

    def __contains__(self, alias: object) -> bool:
        return alias in list(self)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*conf.aliases(), *self._makers]))

    def forget(self) -> None:
        """Have every kit made anew, as when settings changed in a test."""
        with self._lock:
            self._kits.clear()

    @contextmanager
    def made_by(self, alias: str, make: Callable[[str], JobKit]) -> Iterator[None]:
        """Within the block, have ``make(alias)`` make this alias's kit; see `django_jobkit.testing`."""
        previous = self._makers.get(alias)
        try:
            self._make_by(alias, make)
            yield
        finally:
            self._make_by(alias, previous)

    def _make_by(self, alias: str, make: Callable[[str], JobKit] | None) -> None:
        with self._lock:
            self._kits.pop(alias, None)
            if make is None:
                self._makers.pop(alias, None)
            else:
                self._makers[alias] = make


jobkits = JobKits()


def _forget(*, setting: str, **_: Any) -> None:
    if setting in (conf.SETTING, "STORAGES", "CACHES", "MEDIA_ROOT", "MEDIA_URL"):
        jobkits.forget()


setting_changed.connect(_forget, dispatch_uid="django_jobkit.kit")
