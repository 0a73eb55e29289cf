from __future__ import annotations

from django_jobkit.access import Access


class Everybody(Access):
    """Lets anybody do anything. It knows of no users: a site may have none."""

    def allows(self, request, action):
        return True
