"""The rule for names that every storage shares."""

from __future__ import annotations

from django.core.exceptions import SuspiciousFileOperation


def tree_prefix(prefix: str) -> str:
    """``prefix`` without slashes around it, for a removal of all that is below it.

    Raises ValueError for an empty one, and SuspiciousFileOperation for one with ``.`` or ``..`` in it: after the
    storages have tidied up ``jobs/..`` it names everything there is.
    """
    bare = prefix.strip("/")
    if not bare:
        raise ValueError("Refusing to delete the whole storage: the prefix is empty.")
    if any(segment in ("", ".", "..") for segment in bare.split("/")):
        raise SuspiciousFileOperation(f"Refusing to delete below {prefix!r}: not a plain path.")
    return bare
