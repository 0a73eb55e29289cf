"""Locks that belong to a Django storage, however many adapters are made around it."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from django.core.files.storage import Storage

_STRIPES = 64
_guard = threading.Lock()
_locks: WeakKeyDictionary[Storage, tuple[threading.RLock, ...]] = WeakKeyDictionary()


def storage_lock(storage: Storage, name: str | None = None) -> threading.RLock:
    """The lock of one storage instance or, with ``name``, of that name in it (some names share a lock)."""
    with _guard:
        stripes = _locks.get(storage)
        if stripes is None:
            stripes = _locks[storage] = tuple(threading.RLock() for _ in range(_STRIPES))
    return stripes[0] if name is None else stripes[hash(name) % _STRIPES]
