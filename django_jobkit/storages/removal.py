"""Removing many objects whose versions were listed before."""

from __future__ import annotations


class Removal:
    """How far the removal of one page of objects has come."""

    def __init__(self, entries: list[tuple[str, str]]) -> None:
        self.pending = dict(entries)
        """Key and version of what is still to be removed."""
        self.removed = 0
        self.changed = False
        """Whether one of them has been written anew since it was listed."""
