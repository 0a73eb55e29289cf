"""Things that must not cross a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """One value for each process, made on first use and shared by its threads.

    Connections that a child shares with its parent give each of them the other's answers. The values of processes
    higher up are kept as they are, never closed: closing them could write into the parent's connections.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[int, T] = {}
        self._locks: dict[int, threading.Lock] = {}

    def get(self) -> T:
        pid = os.getpid()
        try:
            return self._values[pid]
        except KeyError:
            # A lock for each process, too: another thread may hold the parent's at the moment of the fork.
            with self._locks.setdefault(pid, threading.Lock()):
                if pid not in self._values:
                    self._values[pid] = self._make()
                return self._values[pid]
