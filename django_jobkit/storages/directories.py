"""Making and locking the directories of local files."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.core.files import locks

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable

_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.02


def make_directories(directory: str, mode: int | None) -> None:
    """Make the directory and those above it that are missing, each with ``mode`` (None: as the umask has it).

    Raises FileNotFoundError if somebody removes one of them at the same moment.
    """
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    if parent != directory:
        make_directories(parent, mode)
    try:
        os.mkdir(directory)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(directory).st_mode):
            raise NotADirectoryError(f"{directory} exists and is not a directory") from None
    else:
        if mode is not None:
            os.chmod(directory, mode)


@contextmanager
def open_locked(directory: str, timeout: float) -> Iterator[None]:
    """Hold the one lock of a directory, against all threads and processes that ask for it.

    Raises FileNotFoundError when the directory isn't there (any more), and StorageUnavailable when others hold the
    lock for ``timeout`` seconds. The lock is a `flock` of the directory itself: no lock file, and no lock that
    outlives its process.
    """
    deadline = time.monotonic() + timeout
    while True:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _lock(descriptor, directory, deadline)
            try:
                # Whoever held the lock before us may have removed the directory, and others made a new one.
                if os.path.samestat(os.fstat(descriptor), os.stat(directory)):
                    yield
                    return
            finally:
                # Not by closing alone: a child forked meanwhile holds the same descriptor.
                locks.unlock(descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor: int, directory: str, deadline: float) -> None:
    pause = _FIRST_PAUSE
    while True:
        try:
            if locks.lock(descriptor, locks.LOCK_EX | locks.LOCK_NB):
                return
        except OSError as error:
            raise StorageMisconfigured(
                f"The file system of {directory} can't lock a directory ({error.strerror}), as NFS can't; "
                "keep jobs on a local disk, or in object storage."
            ) from error
        if time.monotonic() >= deadline:
            raise StorageUnavailable(f"Another writer has held the lock of {directory} for too long")
        # Asking again and again, since only that can end: a stopped process keeps its lock.
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
