"""Turning whatever a storage raises into the two answers of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import SuspiciousOperation

from django_jobkit.exceptions import JobKitError, StorageUnavailable


@contextmanager
def unavailable(action: str, name: str) -> Iterator[None]:
    """Raise `StorageUnavailable`, its cause chained, for any error but a missing file on reading.

    That leaves as a FileNotFoundError that names the file; where other actions may meet it, they answer it before it
    comes here. Names that try to leave the storage (SuspiciousOperation) and the kit's own errors pass as they are.
    """
    try:
        yield
    except (JobKitError, SuspiciousOperation):
        raise
    except Exception as error:
        if action == "read" and is_missing(error):
            raise FileNotFoundError(f"{name} is not in the storage") from error
        raise StorageUnavailable(f"Could not {action} {name!r}: {describe(error)}") from error


def is_missing(error: BaseException) -> bool:
    """Whether this is how a storage says that there is no such file."""
    # The second is Azure's; a missing container has a code of its own.
    return isinstance(error, FileNotFoundError) or getattr(error, "error_code", None) == "BlobNotFound"


def describe(error: BaseException) -> str:
    """The error in one line: its text, and its class where that says more than the text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
