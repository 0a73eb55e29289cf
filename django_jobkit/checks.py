"""System checks: what can be known about a site's settings without touching a storage or a cache.

`jobkit_doctor` tries the rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages

from . import conf
from .access import Access
from .kit import JobKit
from .storages.generic import GenericJobStorage

_PER_PROCESS: Final = ("locmem.LocMemCache", "dummy.DummyCache")
_ADD_NOT_ATOMIC: Final = ("filebased.FileBasedCache",)
_REDIS: Final = "django_redis.cache.RedisCache"


def check_settings(**_: Any) -> list[CheckMessage]:
    """Everything wrong or doubtful about ``settings.JOBKIT``, each by the setting's name."""
    if wrong := conf.problems():
        return [Error(problem.message, hint=problem.hint, id="jobkit.E001") for problem in wrong]
    found: list[CheckMessage] = []
    for alias in conf.aliases():
        kit = JobKit(alias)
        found += [*_check_dotted_paths(kit), *_check_storage(kit), *_check_cache(kit)]
    return [*found, *_check_prefixes()]


def _check_dotted_paths(kit: JobKit) -> Iterable[CheckMessage]:
    sound = True
    for part in ("status_class", "access"):
        hint = f"Set {kit.name_of(part.upper())} to the path of a class."
        try:
            found = getattr(kit, part)
        except (ImproperlyConfigured, TypeError) as error:
            sound = False
            yield Error(str(error), hint=hint, id="jobkit.E002")
        else:
            if part == "access" and not isinstance(found, Access):
                name = kit.name_of("ACCESS")
                yield Error(f"{name} makes {found!r}, which is no Access.", hint=hint, id="jobkit.E002")
    for setting in ("SORT_KEY", "LOAD", "RETRY"):
        hint = f"Set {kit.name_of(setting)} to the path of a function, or to None."
        try:
            found = kit.imported(setting)
        except ImproperlyConfigured as error:
            yield Error(str(error), hint=hint, id="jobkit.E002")
        else:
            if found is not None and not callable(found):
                yield Error(f"{kit.name_of(setting)} is {found!r}, which can't be called.", hint=hint, id="jobkit.E002")
    if sound and kit.settings.lease is not None:
        members = {field.name for field in dataclasses.fields(kit.status_class)}
        if not {"lease_id", "lease_expires_at"} <= members:
            yield Error(
                f"{kit.name_of('LEASE')} is set, but {kit.settings.status_class} has no fields for a lease.",
                hint="Let the class inherit from django_jobkit.jobs.JobStatus, or set LEASE to None.",
                id="jobkit.E003",
            )


def _check_storage(kit: JobKit) -> Iterable[CheckMessage]:
    alias = kit.settings.storage
    if alias not in storages.backends:
        yield Error(
            f"{kit.name_of('STORAGE')} is {alias!r}, which is no alias in STORAGES.",
            hint=f"Add it to STORAGES, or choose from {', '.join(map(repr, storages.backends))}.",
            id="jobkit.E004",
        )
        return
    try:
        storage = kit.storage
    except Exception as error:
        # Whatever a third-party storage raises while it is made: an option it doesn't know, a missing SDK.
        yield Error(
            f"The storage {alias!r} of {kit.name_of('STORAGE')} can't be used: {error}",
            hint="Mend its entry in STORAGES, or install what it needs.",
            id="jobkit.E005",
        )
        return
    if getattr(kit.django_storage, "file_overwrite", True) is False:
        yield Error(
            f"The storage {alias!r} of {kit.name_of('STORAGE')} renames a file instead of overwriting it, so a job's "
            f"status could never change.",
            hint=f"Set file_overwrite to True in the OPTIONS of STORAGES[{alias!r}].",
            id="jobkit.E006",
        )
    elif isinstance(storage, GenericJobStorage):
        yield Warning(
            f"The storage {alias!r} of {kit.name_of('STORAGE')} can't write on a condition, so two workers that record "
            f"over one job at the same moment can lose an attempt or roll a success back.",
            hint="Use local files, Google Cloud Storage or S3, or have each job recorded by one worker at a time.",
            id="jobkit.W001",
        )


def _check_cache(kit: JobKit) -> Iterable[CheckMessage]:
    alias = kit.settings.cache
    if alias is None:
        return
    if alias not in settings.CACHES:
        yield Error(
            f"{kit.name_of('CACHE')} is {alias!r}, which is no alias in CACHES.",
            hint=f"Add it to CACHES, choose from {', '.join(map(repr, settings.CACHES))}, or set None.",
            id="jobkit.E007",
        )
        return
    backend = str(settings.CACHES[alias].get("BACKEND", ""))
    options: Any = settings.CACHES[alias].get("OPTIONS", {})
    if backend.endswith(_PER_PROCESS):
        yield Warning(
            f"The cache {alias!r} of {kit.name_of('CACHE')} is one per process, so a job that one process deletes or "
            f"finishes shows up as it was in the others until LIST_TTL or METADATA_TTL has passed.",
            hint="Use a cache that all processes share, as django-redis, or set CACHE to None.",
            id="jobkit.W002",
        )
    elif backend.endswith(_ADD_NOT_ATOMIC):
        yield Warning(
            f"The cache {alias!r} of {kit.name_of('CACHE')} can't add an entry atomically, so several processes may "
            f"list all jobs at the same time.",
            hint="Use django-redis or another cache server.",
            id="jobkit.W003",
        )
    elif backend == _REDIS and not {"SOCKET_TIMEOUT", "SOCKET_CONNECT_TIMEOUT"} <= set(options):
        yield Warning(
            f"The cache {alias!r} of {kit.name_of('CACHE')} has no SOCKET_TIMEOUT or no SOCKET_CONNECT_TIMEOUT, so a "
            f"page may wait for seconds on a Redis that hangs.",
            hint=f"Set both in the OPTIONS of CACHES[{alias!r}], for example to 0.5 (seconds).",
            id="jobkit.W004",
        )

    if backend == _REDIS and (
        options.get("IGNORE_EXCEPTIONS") or getattr(settings, "DJANGO_REDIS_IGNORE_EXCEPTIONS", 0)
    ):
        yield Warning(
            f"The cache {alias!r} of {kit.name_of('CACHE')} hides its failures (IGNORE_EXCEPTIONS), so an outage costs "
            f"a page two timeouts instead of one, and old rows may show up after it.",
            hint="Set it to False for this cache: the kit goes on without a cache that fails.",
            id="jobkit.W006",
        )


def _check_prefixes() -> Iterable[CheckMessage]:
    """Two histories in one place would show, and delete, each other's jobs."""
    seen: list[tuple[str, str, str]] = []
    for alias in conf.aliases():
        kit = conf.get(alias)
        prefix = kit.prefix.strip().strip("/") + "/"
        for other, storage, other_prefix in seen:
            if storage == kit.storage and (prefix.startswith(other_prefix) or other_prefix.startswith(prefix)):
                yield Warning(
                    f"JOBKIT[{alias!r}] and JOBKIT[{other!r}] keep their jobs in one place: {prefix!r} and "
                    f"{other_prefix!r} of the storage {storage!r}.",
                    hint="Give each its own PREFIX, none inside another.",
                    id="jobkit.W005",
                )
        seen.append((alias, kit.storage, prefix))
