"""Which adapter a Django storage gets."""

from __future__ import annotations

from typing import Final, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage, InMemoryStorage, InvalidStorageError, Storage, storages
from django.utils.functional import LazyObject, empty
from django.utils.module_loading import import_string

from django_jobkit.exceptions import StorageMisconfigured
from django_jobkit.jobs.files import JobStorage
from django_jobkit.storages.faults import describe
from django_jobkit.storages.filesystem import FileSystemJobStorage
from django_jobkit.storages.generic import GenericJobStorage
from django_jobkit.storages.memory import MemoryJobStorage

# By name, so that a site without these services needs none of their packages.
_SERVICES: Final = {
    "storages.backends.gcloud": "django_jobkit.storages.gcs.GCSJobStorage",
    "storages.backends.s3": "django_jobkit.storages.s3.S3JobStorage",
}
_EXTRAS: Final = {"storages.backends.gcloud": "gcs", "storages.backends.s3": "s3"}
_CONTRACT: Final = ("read", "write", "delete", "delete_tree", "list_dirs", "atomic_swap")


def adapt(
    django_storage: Storage | JobStorage,
    *,
    timeout: float = 10.0,
    concurrency: int = 10,
    alias: str = "",
) -> JobStorage:
    """The adapter for a Django storage; what already keeps the contract is returned as it is.

    ``timeout`` bounds each call in seconds, retries included, where the storage lets it be bounded.
    ``concurrency`` is how many threads will use it at once (the size of its connection pool). ``alias`` is named in
    errors, beside the bucket. A subclass that has its own way of storing bytes (that encrypts them, say) gets the
    generic adapter, which goes through that way.
    """
    if isinstance(django_storage, LazyObject):  # default_storage is one
        django_storage = _unwrapped(django_storage)
    if all(hasattr(django_storage, name) for name in _CONTRACT):
        return cast(JobStorage, django_storage)
    storage = cast(Storage, django_storage)
    if _stores_like(storage, InMemoryStorage):
        return MemoryJobStorage(cast(InMemoryStorage, storage))
    if _stores_like(storage, FileSystemStorage):
        return FileSystemJobStorage(cast(FileSystemStorage, storage), timeout=timeout)
    for module, adapter in _SERVICES.items():
        if any(base.__module__ == module for base in type(storage).__mro__):
            made = import_string(adapter)(storage, timeout=timeout, concurrency=concurrency, alias=alias)
            return cast(JobStorage, made)
    return GenericJobStorage(storage)


def from_settings(alias: str, *, timeout: float = 10.0, concurrency: int = 10) -> JobStorage:
    """The adapter for the storage of this alias in ``STORAGES``.

    Raises `StorageMisconfigured` if there is none, or it can't be made; it then names the extra to install, if that
    is what is missing.
    """
    try:
        django_storage = storages[alias]
    except (ImportError, ImproperlyConfigured, TypeError) as error:  # TypeError: an option
        backend = str(settings.STORAGES.get(alias, {}).get("BACKEND", ""))
        for module, extra in _EXTRAS.items():
            if backend.startswith(module) and _is_missing(error):
                raise StorageMisconfigured(
                    f"Storage {alias!r} needs packages that aren't installed. "
                    f'Run: pip install "django-jobkit[{extra}]" ({describe(error)})'
                ) from error
        raise StorageMisconfigured(f"Storage {alias!r} can't be used: {describe(error)}") from error
    return adapt(django_storage, timeout=timeout, concurrency=concurrency, alias=alias)


def _is_missing(error: Exception) -> bool:
    """Whether a package is what is missing, and not a name in it; django-storages says it in its own way."""
    if isinstance(error, InvalidStorageError):
        return isinstance(error.__cause__, ModuleNotFoundError)
    return isinstance(error.__context__, ImportError)


def _unwrapped(lazy: LazyObject[Storage]) -> Storage:
    if lazy._wrapped is empty:
        lazy._setup()
    return cast(Storage, lazy._wrapped)


def _stores_like(storage: Storage, base: type[Storage]) -> bool:
    """Whether the storage is a ``base`` that reads and writes as that one does."""
    kind = type(storage)
    return issubclass(kind, base) and all(
        getattr(kind, method) is getattr(base, method) for method in ("_open", "_save", "delete", "listdir")
    )
