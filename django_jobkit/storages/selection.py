"""Which adapter a Django storage gets."""

from __future__ import annotations

from typing import cast

from django.core.files.storage import FileSystemStorage, InMemoryStorage, Storage
from django.utils.functional import LazyObject, empty

from django_jobkit.jobs.files import JobStorage
from django_jobkit.storages.filesystem import FileSystemJobStorage
from django_jobkit.storages.generic import GenericJobStorage
from django_jobkit.storages.memory import MemoryJobStorage

_CONTRACT = ("read", "write", "delete", "delete_tree", "list_dirs", "atomic_swap")


def adapt(
    django_storage: Storage | JobStorage,
    *,
    timeout: float = 10.0,
    concurrency: int = 10,  # noqa: ARG001
    alias: str = "",  # noqa: ARG001
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
    return GenericJobStorage(storage)


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
